"""Functions for objectives: the sizes to train on, and the report of each score."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import optuna
from optuna.study import StudyDirection

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import Observation
from optuna_daub.core.intervals.confidence import check_probe
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.claims import settle
from optuna_daub.study.learner import differing
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.pruner import name_of
from optuna_daub.study.records import Run
from optuna_daub.study.records import point
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.setup_errors import check_steps
from optuna_daub.study.turns import End
from optuna_daub.study.turns import Go
from optuna_daub.study.turns import Turn
from optuna_daub.study.turns import TurnOverError
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def training_sizes(trial: optuna.Trial) -> Iterator[int]:
    """Yield the next training sizes as long as the pruner chooses this learner.

    Sizes are numbers of examples. They increase, and a resumed learner starts with a larger size
    than before, which the pruner chooses. Report each score before you ask for the next size, with
    `optuna_daub.report` or `trial.report(score, size)`. The loop ends normally only after a
    training on all the data; then return the last score.

    Args:
        trial: the objective's trial. With another library's sampler the trial gets all sizes in
            turn, until the pruner prunes it.

    Raises:
        optuna.TrialPruned: when the pruner chooses another learner; do not catch it.
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
    check_trial(trial)
    study, pruner, worker = trial.study, _pruner_of(trial), worker_of(trial.study)
    run = worker.known.runs.get(trial.number)
    if run is None and records.read_run(log.as_stored(study, trial)) is None:
        return _all_sizes(trial, pruner.policy, worker)
    run = run or worker.look().runs.get(trial.number)  # another process may have asked for it
    if run is not None:
        with log.unless_over(study, trial):
            run = settle(worker, trial, pruner.policy, run)
            _check_same_point(trial, worker, run)
            return _sizes_of_run(trial, pruner.policy, worker, run)
    raise liveness.end_lost(study, trial)


def report(
    trial: optuna.Trial,
    size: int,
    score: float,
    *,
    training_score: float | None = None,
    n_validation: int | None = None,
    seconds: float | None = None,
    examples: int | None = None,
) -> None:
    """Store the score of a training on `size` examples.

    Args:
        trial: the objective's trial.
        size: number of training examples, as `training_sizes` yielded it.
        score: score on validation data, in the direction of the study.
        training_score: the same score on the examples trained on. The paper's rule gives tighter
            bounds with it, and ABC needs it.
        n_validation: number of validation examples that were scored; ABC needs it.
        seconds: time of training and scoring. None (the default): measured since
            `training_sizes` yielded this size.
        examples: number of examples that this training used, from 1 to `size`, if it continued
            with the model of an earlier size. None (the default): `size`. It is the cost in
            examples; seconds are taken to be in proportion.

    Raises:
        ValueError: if `trial` is not a trial of Optuna; `training_sizes` did not yield the size;
            it was reported before; a score is not a number; `n_validation` is not a whole number
            of at least 1; `seconds` is not from 0 to 1e9; `examples` is not from 1 to `size`;
            or the pruner needs more: `ABCPruner` needs `training_score`, `n_validation`, scores in
            [0, 1] and a study that maximizes.
        optuna.TrialPruned: if other workers have declared this one dead and resumed its learner;
            do not catch it.
    """
    check_trial(trial)
    study, place = trial.study, trial.number
    with _ending_before_first(study):
        worker = worker_of(study)
        turn = worker.turns.get(place)
        if seconds is None and turn is not None:
            seconds = time.perf_counter() - turn.since
        seen = _checked(size, score, training_score, n_validation, seconds, examples)
        _check_size(trial, worker, seen.size)
        if isinstance(study.pruner, AllocationPruner):
            _check_needs(_pruner_of(trial), seen, trial)
        if turn is not None and turn.steps:
            _check_steps(trial, turn.steps)
            # Check just before the write: whoever took over the learner trains on this size too.
            if not worker.holds(place):
                raise liveness.end_lost(study, trial)
        with log.unless_over(study, trial):
            # Facts that `trial.report` cannot hold go first. A worker killed in between leaves
            # facts without a score, which count for nothing, and never a score without its facts.
            log.write_observation(study, trial, seen)
            trial.report(seen.score, seen.size)
            if turn is not None:
                worker.turns[place] = replace(turn, is_reported=True)
            return
        raise liveness.end_lost(study, trial)


def _pruner_of(trial: optuna.Trial) -> AllocationPruner:
    pruner = trial.study.pruner
    if isinstance(pruner, AllocationPruner):
        is_wrong = trial.study.direction == StudyDirection.MINIMIZE
        if is_wrong and pruner.policy.needs.mean_of_examples:
            raise SetupError(
                f"{type(pruner).__name__} needs scores in [0, 1] that are larger for better "
                'learners: create the study with `direction="maximize"`, and report 1 - error '
                "for an error rate."
            )
        return pruner
    raise SetupError(
        f"The pruner of the study must be one of optuna_daub, but got {name_of(pruner)}: pass "
        "`pruner=DAUBPruner(max_resource=...)` and `sampler=DataAllocationSampler()` to "
        "`optuna.create_study` or `optuna.load_study`."
    )


@contextmanager
def _ending_before_first(study: optuna.Study) -> Iterator[None]:
    """Turn a ValueError into a SetupError until a first learner was trained.

    Before that it cannot be the fault of one learner, and with `catch` every trial would fail like
    the first.
    """
    try:
        yield
    except SetupError:
        raise
    except ValueError as error:
        if worker_of(study).known.is_begun:
            raise
        raise SetupError(str(error)) from error


def _sizes_of_run(trial: optuna.Trial, policy: Policy, worker: Worker, run: Run) -> Iterator[int]:
    """Yield the sizes of a run while it is its learner's turn."""
    if run.learner is None:
        raise TurnOverError(run.reason)
    study, place, full_size = trial.study, trial.number, policy.sizes[-1]
    following: Go | End = Go(run.size)
    if place in worker.turns:  # the objective calls `training_sizes` a second time
        worker.look()
    steps = _steps_so_far(trial, policy, worker, run)
    attrs = trial._cached_frozen_trial.system_attrs  # the objective's constraints are added
    n_before = len(attrs)
    while isinstance(following, Go):
        size = following.size
        # The worker may have been paused: do not repeat the work of others who took it over.
        if not worker.holds(place, run.learner):
            raise liveness.end_lost(study, trial)
        curve = worker.known.learners[run.learner].curve
        if size not in curve.sizes:
            steps |= {size}
            turn = worker.turns[place] = Turn(size, time.perf_counter(), steps)
            yield size
            _check_steps(trial, steps)
            # The turn is forgotten if others failed the trial and another thread looked since.
            if not worker.turns.get(place, turn).is_reported:  # else `report` has done this
                log.write_seconds(study, trial, size, turn.since)
            worker.look()
            if not worker.holds(place, run.learner):
                raise liveness.end_lost(study, trial)
            curve = worker.known.learners[run.learner].curve
            if size not in curve.sizes:
                with _ending_before_first(study):
                    raise ValueError(_not_reported(trial, size))
        if curve.size == full_size and curve.observations[-1].is_finite:
            break
        following = worker.turn(policy, place, has_measured=len(attrs) > n_before)
    # Others may have failed the run; else Optuna would raise an error when it stores the end.
    if log.is_failed(study, trial):
        raise liveness.end_lost(study, trial)
    if isinstance(following, End):
        raise TurnOverError(following.reason)
    # A worker taken for dead may have stored the score on all the data late. Then the learner is
    # done, but this run has no last score of its own to return.
    if place not in worker.turns or worker.turns[place].size != full_size:
        raise TurnOverError(f"another worker has trained it on all {full_size:,} examples")


def _steps_so_far(trial: optuna.Trial, policy: Policy, worker: Worker, run: Run) -> frozenset[int]:
    """Return the steps that a trial may have before it asks for its sizes."""
    if trial.number in worker.turns:
        return worker.turns[trial.number].steps
    assert run.learner is not None
    sizes = worker.known.curves[run.learner].sizes
    return frozenset(n for n in sizes if n <= run.inherited or n in policy.sizes)


def _check_same_point(trial: optuna.Trial, worker: Worker, run: Run) -> None:
    """Raise a SetupError if a resumed learner has other parameters than before.

    Optuna does not ask the sampler about a range with a single value.
    """
    if run.learner is None or not run.inherited or run.learner not in worker.known.learners:
        return
    learner, now = worker.known.learners[run.learner], trial._cached_frozen_trial
    words = point(now.params, now.distributions)
    if (name := differing(words, learner.words)) is not None:
        raise SetupError(
            f"A learner must keep its parameters, but trial {trial.number}, which goes on with "
            f"learner {run.learner}, suggests {name} = {brief(now.params[name])} where the "
            f"learner has {brief(learner.params[name])}. Ranges must not depend on the trial's "
            "number, on time or on chance. To fix a parameter, start a study with another name."
        )


def _all_sizes(trial: optuna.Trial, policy: Policy, worker: Worker) -> Iterator[int]:
    """Yield all sizes for a trial of another sampler, until the pruner prunes it."""
    worker.warn(
        "sampler",
        f"The sampler of the study is {type(trial.study.sampler).__name__}, so trials are pruned "
        "for good, and no learner is resumed. Pass `sampler=DataAllocationSampler()` to "
        "`optuna.create_study` or `optuna.load_study`.",
    )
    for size in policy.sizes:
        worker.turns[trial.number] = Turn(size, time.perf_counter())
        yield size
        _check_steps(trial, policy.sizes)
        if not _is_stored(trial, size):
            raise ValueError(_not_reported(trial, size))
        if trial.should_prune():
            raise optuna.TrialPruned(
                f"pruned at {size:,}: its bound is worse than a score already reached"
            )


def check_trial(trial: object) -> None:
    """Raise a ValueError unless it is a trial that can report."""
    if not isinstance(trial, optuna.Trial):
        raise ValueError(
            "`trial` must be the trial that Optuna hands to the objective, or `study.ask()` "
            f"returns, but got {brief(trial)}."
        )


def _score(name: str, value: object) -> float:
    """Return a score as a float. As in `trial.report`, anything that `float` takes is allowed."""
    try:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError  # NumPy still casts arrays of one value, with a warning
        return float(value)  # type: ignore[arg-type]
    except Exception:  # also of a class whose `__float__` fails
        raise ValueError(f"`{name}` must be a number, but got {brief(value)}.") from None


def _is_stored(trial: optuna.Trial, size: int) -> bool:
    return size in log.as_stored(trial.study, trial).intermediate_values


def _check_steps(trial: optuna.Trial, given: Collection[int]) -> None:
    """Raise a SetupError if a trial reported a step that it was not given."""
    if not {*_steps(trial)} <= {*given}:
        check_steps(_pruner_of(trial).policy.sizes, trial.number, _steps(trial), given)


def _steps(trial: optuna.Trial) -> Iterable[int]:
    """Return all steps reported so far, inherited ones included."""
    return trial._cached_frozen_trial.intermediate_values.keys()


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
        if seen.is_finite:
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
            "`training_score=` to `report`, or `use_training_score=False` to the rule."
        )


def _checked(
    size: object,
    score: object,
    training_score: object,
    n_validation: object,
    seconds: object,
    examples: object,
) -> Observation:
    """Return an observation. A ValueError names a value that is not a number."""
    seen = Observation(
        size=whole_number("size", size),
        seconds=None if seconds is None else number("seconds", seconds),
        n_validation=None if n_validation is None else whole_number("n_validation", n_validation),
        examples=None if examples is None else whole_number("examples", examples),
        score=_score("score", score),
        training_score=(
            None if training_score is None else _score("training_score", training_score)
        ),
    )
    if seen.n_validation is not None and seen.n_validation < 1:
        raise ValueError(
            f"`n_validation`, the number of examples scored on, must be at least 1, but got "
            f"{seen.n_validation}."
        )
    most = records.LONGEST
    if seen.seconds is not None and not 0 <= seen.seconds <= most:
        raise ValueError(f"`seconds` must be from 0 to {most:g}, but got {brief(seconds)}.")
    if seen.examples is not None and not 1 <= seen.examples <= seen.size:
        raise ValueError(
            f"`examples`, the number of examples that this training used, must be from 1 to "
            f"`size`, {seen.size:,}, but got {seen.examples:,}."
        )
    return seen


def _check_size(trial: optuna.Trial, worker: Worker, size: int) -> None:
    """Raise a ValueError if a size is wrong or was reported before."""
    pruner, place = trial.study.pruner, trial.number
    turn, run = worker.turns.get(place), worker.known.runs.get(place)
    if turn is not None and turn.size != size:
        raise ValueError(
            f"`size` must be the one that `training_sizes` yielded, but got {size:,} while "
            f"trial {place} was to train on {turn.size:,}."
        )
    if turn is None and run is not None and isinstance(pruner, AllocationPruner):
        sizes = pruner.policy.sizes
        if size not in sizes:
            raise ValueError(
                f"`size` must be one that `training_sizes(trial)` yields, of {sizes}, but got "
                f"{size}."
            )
    was_reported = _is_stored(trial, size) if turn is None else turn.is_reported
    # By `trial.report`, in this run: inherited steps are those of earlier ones.
    is_own = size in _steps(trial) and (run is None or size > run.inherited)
    if was_reported or is_own:
        raise ValueError(
            f"A size must be reported once, but {size:,} was reported for trial {place} before."
        )
