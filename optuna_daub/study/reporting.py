"""Functions for objectives: the sizes to train on, and the report of each score."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

import numpy as np
import optuna
from optuna.study import StudyDirection

from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import Observation
from optuna_daub.core.intervals.confidence import check_probe
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.claims import settle
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.records import Run
from optuna_daub.study.records import point
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.worker import End
from optuna_daub.study.worker import Go
from optuna_daub.study.worker import Turn
from optuna_daub.study.worker import TurnOverError
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def training_sizes(trial: optuna.Trial) -> Iterator[int]:
    """Yield the numbers of examples to train on, for as long as it is this learner's turn.

    The sizes increase, and a resumed learner starts with the first size that it was not trained
    on. Report each score before you ask for the next size, with `optuna_daub.report` or
    `trial.report(score, size)`. The loop ends normally only after a training on all the data; then
    return the last score.

    Args:
        trial: the objective's trial. With another library's sampler the trial gets all sizes in
            turn, until the pruner prunes it.

    Raises:
        optuna.TrialPruned: when the turn goes to another learner; do not catch it.
        ValueError: if the study's pruner is not one of `optuna_daub`, or a size was not reported.

    >>> import optuna
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         score = skill - 10 / n
    ...         report(trial, n, score, training_score=skill + 10 / n)
    ...     return score
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=3)
    >>> pruner = DAUBPruner(max_resource=2000)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective)
    >>> [sorted(trial.intermediate_values) for trial in study.trials[:2]]
    [[250], [250]]
    """
    _check_trial(trial)
    pruner, worker = _pruner_of(trial), worker_of(trial.study)
    run = worker.known.runs.get(trial.number)
    if run is None:
        if records.read_run(log.as_stored(trial.study, trial)) is not None:
            _end_lost(trial, worker)
        return _all_sizes(trial, pruner.policy)
    try:
        run = settle(trial.study, trial, pruner.policy, run)
    except host.FinishedTrialError:
        if not log.is_over(trial.study, trial):
            raise
        _end_lost(trial, worker)
    _check_same_point(trial, worker, run)
    return _sizes_of_run(trial, pruner, run)


def report(
    trial: optuna.Trial,
    size: int,
    score: float,
    *,
    training_score: float | None = None,
    n_validation: int | None = None,
    seconds: float | None = None,
) -> None:
    """Store the score of a training on `size` examples.

    Args:
        trial: the objective's trial.
        size: number of training examples, as `training_sizes` yielded it.
        score: score on validation data, in the direction of the study.
        training_score: the same score on the examples trained on. The paper's rule gives tighter
            bounds with it, and ABC needs it.
        n_validation: number of validation examples that were scored; ABC needs it.
        seconds: time of training and scoring; by default measured from the moment at which
            `training_sizes` yielded the size.

    Raises:
        ValueError: if `trial` is not a trial of Optuna; the size was not handed out, or was
            reported before; a score is not a number; `n_validation` is not a whole number of at
            least 1; `seconds` is negative or not finite; or the pruner needs more: `ABCPruner`
            needs `training_score`, `n_validation`, scores in [0, 1] and a study that maximizes.
        optuna.TrialPruned: if other workers have declared this one dead and resumed its learner;
            do not catch it.
    """
    _check_trial(trial)
    worker = worker_of(trial.study)
    with _ending_before_first(worker):
        _report(trial, worker, size, score, training_score, n_validation, seconds)


def _report(
    trial: optuna.Trial,
    worker: Worker,
    size: int,
    score: float,
    training_score: float | None,
    n_validation: int | None,
    seconds: float | None,
) -> None:
    """Check one observation, and store it (see `report`)."""
    size = whole_number("size", size)
    turn = worker.turns.get(trial.number)
    if turn is None:
        _check_size(trial, size)
    elif turn.size != size:
        raise ValueError(
            f"`size` must be the one that was handed out, but got {size:,} while "
            f"trial {trial.number} was to train on {turn.size:,}."
        )
    was_reported = _is_stored(trial, size) if turn is None else turn.is_reported
    if was_reported or size in _own_steps(trial, worker):  # by `trial.report`
        raise ValueError(
            f"A size must be reported once, but {size:,} was reported for trial "
            f"{trial.number} before."
        )
    if seconds is None and turn is not None:
        seconds = time.perf_counter() - turn.since
    seen = _checked(size, score, training_score, n_validation, seconds)
    if isinstance(trial.study.pruner, AllocationPruner):
        _check_needs(trial.study.pruner, seen, trial)
    if turn is not None and turn.is_run:
        records.check_steps(_pruner_of(trial).policy.sizes, trial.number, _steps(trial))
        # Check just before the write: whoever took over the learner trains on this size too.
        _check_held(trial, worker)
    try:
        # Facts that `trial.report` cannot hold go first. A worker killed in between leaves facts
        # without a score, which count for nothing, and never a score without its facts.
        log.write_observation(trial.study, trial, seen)
        trial.report(seen.score, size)
    except host.FinishedTrialError:
        # The trial was failed by others meanwhile. In Optuna 4.0 other errors look the same.
        if not log.is_over(trial.study, trial):
            raise
        _end_lost(trial, worker)
    if turn is not None:
        worker.turns[trial.number] = replace(turn, is_reported=True)


def _pruner_of(trial: optuna.Trial) -> AllocationPruner:
    pruner = trial.study.pruner
    if isinstance(pruner, AllocationPruner):
        return pruner
    raise SetupError(
        "The pruner of the study must be one of optuna_daub, but got "
        f"{type(pruner).__name__}: pass `pruner=DAUBPruner(max_resource=...)` to "
        "`optuna.create_study`."
    )


@contextmanager
def _ending_before_first(worker: Worker) -> Iterator[None]:
    """Turn a ValueError into a SetupError until a first learner was trained.

    Before that it cannot be the fault of one learner, and with `catch` every trial would fail like
    the first.
    """
    try:
        yield
    except SetupError:
        raise
    except ValueError as error:
        if worker.known.is_begun:
            raise
        raise SetupError(str(error)) from error


def _sizes_of_run(trial: optuna.Trial, pruner: AllocationPruner, run: Run) -> Iterator[int]:
    """Yield the sizes of a run for as long as it is its learner's turn."""
    if run.learner is None:
        raise TurnOverError(run.reason)
    worker, number = worker_of(trial.study), trial.number
    following: Go | End = Go(run.size)
    if number in worker.turns:  # the objective calls `training_sizes` a second time
        worker.look()
    while isinstance(following, Go):
        size = following.size
        _check_held(trial, worker, run.learner)
        curve = worker.known.curves[run.learner]
        if size not in curve.sizes:
            yield _hand_out(trial, worker, size, is_run=True)
            if not (turn := worker.turns[number]).is_reported:  # else `report` has done this
                records.check_steps(pruner.policy.sizes, number, _steps(trial))
                log.write_seconds(trial.study, trial, size, turn.since)
            worker.look()
            _check_held(trial, worker, run.learner)
            curve = worker.known.curves[run.learner]
            if size not in curve.sizes:
                with _ending_before_first(worker):
                    raise ValueError(_not_reported(trial, size))
        full_size = pruner.policy.sizes[-1]
        if curve.size == full_size and curve.observations[-1].is_finite:
            _check_alive(trial, worker)
            # Only who has trained on all the data has a last score to return. Another that was
            # taken for dead may have ended late, as this one was about to train the learner.
            last = worker.turns.get(number)
            if last is None or last.size != full_size:
                raise TurnOverError(f"another worker has trained it on all {full_size:,} examples")
            return
        following = worker.turn(pruner.policy, number)
    _check_alive(trial, worker)
    raise TurnOverError(following.reason)


def _check_same_point(trial: optuna.Trial, worker: Worker, run: Run) -> None:
    """Raise an error if a resumed learner would be trained with other parameters than before.

    Optuna does not ask the sampler about a range with a single value.
    """
    if run.learner is None or not run.inherited or run.learner not in worker.known.learners:
        return
    learner, now = worker.known.learners[run.learner], trial._cached_frozen_trial
    words = point(now.params, now.distributions)
    others = [name for name, word in words.items() if learner.words.get(name, word) != word]
    if others:
        name = others[0]
        raise ValueError(
            f"A learner must keep its parameters, but trial {trial.number}, which goes on with "
            f"learner {run.learner}, suggests {name} = {now.params[name]!r} where the learner has "
            f"{learner.params[name]!r}. Let ranges not depend on the trial's number, on time or "
            "on chance."
        )


def _check_held(trial: optuna.Trial, worker: Worker, learner: int | None = None) -> None:
    """End a run whose learner others have taken over, so their work is not repeated.

    The worker may have been paused at any point since its last look.
    """
    if time.monotonic() - worker.seen_at > worker.patience.checked:
        worker.look()
    run, assigned = worker.known.runs.get(trial.number), worker.assigned.get(trial.number)
    if run is None or (learner is not None and run.learner != learner):
        _end_lost(trial, worker)
    # On SQLite Optuna may hand one waiting trial to two workers. Whose record was written last
    # has it; the other one must not end it.
    if assigned is not None and run.worker != assigned.run.worker:
        del worker.assigned[trial.number]
        liveness.come_back(trial.study, trial)
        raise TurnOverError(GIVEN_UP)


def _check_alive(trial: optuna.Trial, worker: Worker) -> None:
    """End a run that others have failed; else Optuna would raise an error when it stores the
    end."""
    if log.is_failed(trial.study, trial):
        _end_lost(trial, worker)


def _end_lost(trial: optuna.Trial, worker: Worker) -> NoReturn:
    """End a run that others have given up or failed."""
    if trial.number not in worker.look().unfinished:
        liveness.come_back(trial.study, trial)
    raise TurnOverError(GIVEN_UP)


def _all_sizes(trial: optuna.Trial, policy: Policy) -> Iterator[int]:
    """Yield all sizes for a trial of another sampler, until the pruner prunes it."""
    for size in policy.sizes:
        yield _hand_out(trial, worker_of(trial.study), size, is_run=False)
        if not _is_stored(trial, size):
            raise ValueError(_not_reported(trial, size))
        if trial.should_prune():
            raise optuna.TrialPruned(
                f"pruned at {size:,}: its bound is worse than a score already reached"
            )


def _hand_out(trial: optuna.Trial, worker: Worker, size: int, *, is_run: bool) -> int:
    """Record the start of a training on a size, and return the size."""
    worker.turns[trial.number] = Turn(size, time.perf_counter(), is_run)
    return size


def _check_trial(trial: object) -> None:
    if not isinstance(trial, optuna.Trial):
        raise ValueError(
            "`trial` must be the trial that Optuna hands to the objective, or `study.ask()` "
            f"returns, but got {trial!r}."
        )


def _score(name: str, value: object) -> float:
    """Return a score as a float; anything that `float` takes is allowed, as in `trial.report`."""
    try:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError  # NumPy still casts arrays of one value, with a warning
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`{name}` must be a number, but got {value!r}.") from None


def _is_stored(trial: optuna.Trial, size: int) -> bool:
    return size in log.as_stored(trial.study, trial).intermediate_values


def _steps(trial: optuna.Trial) -> Iterable[int]:
    """Return all steps reported so far, inherited ones included."""
    return trial._cached_frozen_trial.intermediate_values.keys()


def _own_steps(trial: optuna.Trial, worker: Worker) -> Iterable[int]:
    """Return the steps reported in this run, without inherited ones."""
    run = worker.known.runs.get(trial.number)
    return [step for step in _steps(trial) if run is None or step > run.inherited]


def _not_reported(trial: optuna.Trial, size: int) -> str:
    return (
        f"Every training size must be reported, but trial {trial.number} asked for the next one "
        f"without `report(trial, {size}, score)`."
    )


def _check_needs(pruner: AllocationPruner, seen: Observation, trial: optuna.Trial) -> None:
    """Raise a ValueError if an observation lacks a value that the policy needs."""
    needs, name = pruner.policy.needs, type(pruner).__name__
    is_missing = seen.training_score is None
    if needs.mean_of_examples:
        if trial.study.direction == StudyDirection.MINIMIZE:
            raise ValueError(
                f"{name} needs scores in [0, 1] that are larger for better learners: create the "
                'study with `direction="maximize"`, and report 1 - error for an error rate.'
            )
        if math.isfinite(seen.score):
            where = f"trial {trial.number} at {seen.size:,} training examples"
            check_probe(seen, where, needs.n_validation)
    elif needs.training_scores == "required" and is_missing:
        raise ValueError(
            f"{name} needs the training score of every training, but got none: pass "
            "`training_score=` to `report`."
        )
    elif needs.training_scores == "helpful" and is_missing and not pruner.has_warned:
        pruner.has_warned = True
        _logger.warning(
            "No training score was reported, so forecasts rest on validation scores alone: pass "
            "`training_score=` to `report`, or `use_training_score=False` to the pruner."
        )


def _checked(
    size: int, score: object, training_score: object, n_validation: object, seconds: object
) -> Observation:
    """Return an observation; raise a ValueError that names a value that is not a number."""
    seen = Observation(
        size,
        _score("score", score),
        None if training_score is None else _score("training_score", training_score),
        None if n_validation is None else whole_number("n_validation", n_validation),
        None if seconds is None else number("seconds", seconds),
    )
    if seen.n_validation is not None and seen.n_validation < 1:
        raise ValueError(
            f"`n_validation`, the number of examples scored on, must be at least 1, but got "
            f"{seen.n_validation}."
        )
    most = records.LONGEST
    if seen.seconds is not None and not 0 <= seen.seconds <= most:
        raise ValueError(f"`seconds` must be from 0 to {most:g}, but got {seen.seconds}.")
    return seen


def _check_size(trial: optuna.Trial, size: int) -> None:
    """Raise a ValueError if a run reports a size that is not one of the pruner's."""
    pruner = trial.study.pruner
    if not isinstance(pruner, AllocationPruner) or size in pruner.policy.sizes:
        return
    if trial.number in worker_of(trial.study).known.runs:
        raise ValueError(
            f"`size` must be one that was handed out, of {pruner.policy.sizes}, but got "
            f"{size}. Take it from `training_sizes(trial)`."
        )
