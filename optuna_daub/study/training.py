"""What an objective uses: the sizes to train on, and the report of what came of it."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import optuna

from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.core.sizes import whole_number
from optuna_daub.study import keys
from optuna_daub.study.keys import Run
from optuna_daub.study.ledger import ledger_of
from optuna_daub.study.pruners import AllocationPruner
from optuna_daub.study.pruners import is_done
from optuna_daub.study.reasons import verdict


@dataclass(frozen=True)
class _Turn:
    """The size that an objective was told to train on, and when (`time.perf_counter`)."""

    size: int
    since: float
    is_reported: bool = False


_TURNS: weakref.WeakKeyDictionary[optuna.Trial, _Turn] = weakref.WeakKeyDictionary()


def training_sizes(trial: optuna.Trial) -> Iterator[int]:
    """Return the training sizes, in examples, that this run is to train on, increasing.

    The first is the next size that the learner has not been trained on; after each, the pruner's
    policy says whether the learner keeps its turn. Report every size before asking for the next,
    with `optuna_daub.report` or `trial.report(score, size)`, and return the last score when the
    sizes are at an end: only a learner trained on all the data gets there.

    Raises:
        optuna.TrialPruned: when the turn goes to another learner; let it pass through.
        ValueError: where the study's pruner is none of `optuna_daub`, or a size was not reported.

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
    [[500, 750], [500, 750]]
    """
    pruner = _pruner_of(trial)
    run = ledger_of(trial.study).running.get(trial.number)
    if run is None:
        return _all_sizes(trial, pruner.policy)
    return _sizes_of_run(trial, pruner.policy, run)


def report(
    trial: optuna.Trial,
    size: int,
    score: float,
    *,
    training_score: float | None = None,
    n_validation: int | None = None,
    seconds: float | None = None,
) -> None:
    """Store what came of training on `size` examples.

    Args:
        trial: the trial that was trained.
        size: number of training examples, as handed out by `training_sizes`.
        score: score on validation data, in the direction of the study.
        training_score: the same score on the examples trained on; DAUB's bound is tighter
            with it, ABC needs it.
        n_validation: number of validation examples scored; ABC needs it.
        seconds: time that training and scoring took; measured since the size was handed out
            unless given.

    Raises:
        ValueError: where the size was never handed out, or was reported before; where
            `n_validation` is below 1, or `seconds` is negative or not finite.
    """
    size = whole_number("size", size)
    turn = _TURNS.get(trial)
    if turn is None:
        _check_size(trial, size)
    elif turn.size != size:
        raise ValueError(
            f"`report` must be given the size that was handed out, but got {size:,} while "
            f"trial {trial.number} was to train on {turn.size:,}."
        )
    if turn.is_reported if turn else _is_stored(trial, size):
        raise ValueError(
            f"A size must be reported once, but {size:,} was reported for trial "
            f"{trial.number} before."
        )
    if seconds is None and turn is not None:
        seconds = time.perf_counter() - turn.since
    seen = Observation(
        size,
        float(score),
        training_score=None if training_score is None else float(training_score),
        n_validation=None if n_validation is None else whole_number("n_validation", n_validation),
        seconds=None if seconds is None else float(seconds),
    )
    if isinstance(trial.study.pruner, AllocationPruner):
        trial.study.pruner.check(seen, trial)
    _check_measures(seen)
    keys.write_observation(trial.study, trial._trial_id, seen)
    trial.report(score, size)
    if turn is not None:
        _TURNS[trial] = _Turn(size, turn.since, is_reported=True)


def _pruner_of(trial: optuna.Trial) -> AllocationPruner:
    study = getattr(trial, "study", None)
    pruner = getattr(study, "pruner", None)
    if isinstance(pruner, AllocationPruner):
        return pruner
    raise ValueError(
        "The pruner of the study must be one of optuna_daub, but got "
        f"{type(pruner).__name__}: pass `pruner=DAUBPruner(max_resource=...)` to "
        "`optuna.create_study`."
    )


def _sizes_of_run(trial: optuna.Trial, policy: Policy, run: Run) -> Iterator[int]:
    """Yield the sizes of a run that the sampler dealt."""
    if run.learner is None:
        raise optuna.TrialPruned(run.reason)
    size = run.size
    ledger = ledger_of(trial.study)
    if trial in _TURNS:  # the sizes are asked for a second time
        ledger.sync(trial.study._storage)
    while True:
        if size not in ledger.curves[run.learner]:
            yield from _handed_out(trial, size)
            ledger.sync(trial.study._storage)
            if size not in ledger.curves[run.learner]:
                raise ValueError(_not_reported(trial, size))
        if is_done(ledger.curves[run.learner], policy.sizes[-1]):
            return
        decision = ledger.decide(policy, trial.number)
        if not (isinstance(decision, Extend) and decision.learner == run.learner):
            raise optuna.TrialPruned(verdict(ledger, policy, run.learner, decision))
        size = decision.size


def _all_sizes(trial: optuna.Trial, policy: Policy) -> Iterator[int]:
    """Yield every size to a trial of another sampler, until the pruner ends it for good."""
    for size in policy.sizes:
        yield from _handed_out(trial, size)
        if not _is_stored(trial, size):
            raise ValueError(_not_reported(trial, size))
        if trial.should_prune():
            raise optuna.TrialPruned(f"pruned at {size:,}: bound below a score already reached")


def _handed_out(trial: optuna.Trial, size: int) -> Iterator[int]:
    _TURNS[trial] = _Turn(size, time.perf_counter())
    yield size


def _is_stored(trial: optuna.Trial, size: int) -> bool:
    return size in trial.study._storage.get_trial(trial._trial_id).intermediate_values


def _not_reported(trial: optuna.Trial, size: int) -> str:
    return (
        f"Every training size must be reported, but trial {trial.number} asked for the next one "
        f"without `report(trial, {size}, score)`."
    )


def _check_measures(seen: Observation) -> None:
    if seen.n_validation is not None and seen.n_validation < 1:
        raise ValueError(
            f"`n_validation`, the number of examples scored on, must be at least 1, but got "
            f"{seen.n_validation}."
        )
    if seen.seconds is not None and not 0 <= seen.seconds < math.inf:
        raise ValueError(f"`seconds` must be at least 0 and finite, but got {seen.seconds}.")


def _check_size(trial: optuna.Trial, size: int) -> None:
    """Raise where a run of the pair reports a size that the pruner does not train on."""
    pruner = trial.study.pruner
    if not isinstance(pruner, AllocationPruner) or size in pruner.policy.sizes:
        return
    if trial.number in ledger_of(trial.study).running:
        raise ValueError(
            f"`report` must be given a size that was handed out, one of {pruner.policy.sizes}, "
            f"but got {size}. Take it from `training_sizes(trial)`."
        )
