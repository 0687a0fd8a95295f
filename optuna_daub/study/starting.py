"""Checks and clean-up before a new trial is assigned a learner."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import PartialFixedSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.decision import Finish
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study import storages
from optuna_daub.study.claims import Asking
from optuna_daub.study.claims import TakenError
from optuna_daub.study.records import Run
from optuna_daub.study.spaces import holds
from optuna_daub.study.stored_policy import SETTINGS
from optuna_daub.study.stored_policy import settings_of
from optuna_daub.study.stored_policy import write_policy
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def check(asking: Asking) -> None:
    """Check that study, pruner and sampler fit together, and store their settings.

    Raises:
        ValueError: if they do not.
    """
    study, worker, policy = asking.study, asking.worker, asking.policy
    if isinstance(study.sampler, PartialFixedSampler):
        raise ValueError(
            "`PartialFixedSampler` must be the base sampler of DataAllocationSampler, not the "
            "other way round, as a learner that is resumed keeps its parameters: pass "
            "`sampler=DataAllocationSampler(PartialFixedSampler(fixed_params, base_sampler))`."
        )
    if asking.n_learners is None and policy.needs.closed_pool:
        raise ValueError(
            f"{type(study.pruner).__name__} with {type(policy).__name__} compares a known "
            "number of learners, but `n_learners` is None: pass `n_learners=...` to "
            "DataAllocationSampler, or take `DAUBPruner(max_resource=...)` for an open search."
        )
    if worker.agreed is not policy:  # ask the storage until that is certain
        is_begun = worker.look().is_begun
        check_settings(study, policy.sizes, is_begun=is_begun)
        write_policy(study, policy)
        worker.agreed = policy if is_begun else None


def check_settings(study: optuna.Study, sizes: Sequence[int], *, is_begun: bool) -> None:
    """Store a study's settings, or compare them with the stored ones.

    Until something was observed (`is_begun` is False) new settings replace the stored ones.

    Raises:
        ValueError: if the training sizes or the direction differ, the stored ones are damaged, or
            there are none, since the trials come from another study.
    """
    settings: dict[str, Any] = {"sizes": [*sizes], "direction": study.direction.name.lower()}
    begun = settings_of(study) if is_begun else {}
    if is_begun and not begun:
        raise ValueError(
            f"A study must have measured its own scores, but those of study '{study.study_name}' "
            "were added from another study. Start a study with "
            "`DataAllocationSampler(earlier=[...])`, which takes that study's best parameters. To "
            "go on with a copy, make it by `optuna.copy_study`, under a name of its own."
        )
    if not begun:
        log.write_mark(study, SETTINGS, settings)
        return
    for name, value in settings.items():
        if (before := begun.get(name, "settings that do not say it")) != value:
            raise ValueError(
                f"A study must go on with the {name} it was started with: study "
                f"'{study.study_name}' was started with {before}, but now has {value}. Use "
                "the earlier settings, or start a study with another name."
            )


def horizon(study: optuna.Study, worker: Worker, seconds: float | None) -> float | None:
    """Return the time (`time.monotonic`) at which this `optimize` must end, None without one.

    It is the end of its `timeout` or of the sampler's `seconds`, the earlier one.
    """
    left, elapsed = host.seconds_left(study), host.seconds_since_begin(study)
    ends = [] if left is None else [time.monotonic() + left]
    if seconds is not None and elapsed is not None:
        ends.append(time.monotonic() - elapsed + seconds)
    elif seconds is not None:
        # In ask-and-tell they count from the first trial that was asked for.
        worker.asked_since = worker.asked_since or time.monotonic()
        ends.append(worker.asked_since + seconds)
    return min(ends, default=None)


def stop_if_over(asking: Asking, number: int) -> None:
    """End the study of the idle trial `number` if nothing is left to do."""
    study, worker, begun = asking.study, asking.worker, host.begin(asking.study)
    decision = worker.answer(asking.policy)[1]
    is_alone = [*worker.known.unfinished] == [number]
    is_exhausted = worker.known.is_exhausted
    is_at_end = asking.n_learners is not None or is_exhausted
    if isinstance(decision, Finish) and is_alone and is_at_end:
        # If this `optimize` has ended a trial, in any thread, nobody asked for more.
        ends = [each.datetime_complete for each in study.get_trials(deepcopy=False)]
        if begun is None or not any(end is not None and end >= begun for end in ends):
            way_out = "Raise `n_learners`, or enqueue trials, to go on."
            if is_exhausted:
                way_out = (
                    "Its base sampler had nothing left to propose. Enqueue trials to go on, or "
                    "search other ranges in a new study with "
                    "`DataAllocationSampler(earlier=[study])`."
                )
            _logger.warning(
                "Study '%s' has come to its end, so trial %d is empty: Optuna starts a trial "
                "before it asks the sampler. %s",
                study.study_name,
                number,
                way_out,
            )
    if worker.is_over(decision):
        host.stop(study)


def is_new(worker: Worker, trial: FrozenTrial, run: Run) -> bool:
    """Return whether the base sampler must still propose the learner's parameters.

    This includes a learner whose first worker died before it could ask.
    """
    if run.learner is None or run.inherited:
        return False
    return run.learner == trial.number or not worker.known.learners[run.learner].params


def check_held(study: optuna.Study, trial: FrozenTrial) -> None:
    """Raise an error if a trial that was taken over is asked for parameters."""
    is_held, asked = worker_of(study).holds(trial.number), host.trial_of_caller()
    if not is_held and asked is not None and not host.is_asking():
        raise liveness.end_lost(study, asked)


@contextmanager
def failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """End a trial if assigning it a learner raises an error.

    Optuna would leave it running. An enqueued trial without a learner goes back to the queue.
    """
    try:
        yield
    except BaseException as error:
        storages.end_interrupted(study, error)
        if isinstance(error, TakenError):
            raise  # it is running at another worker
        with suppress(NotImplementedError):  # of several objectives
            worker_of(study).holders.pop(trial.number, None)
        is_enqueued = records.is_enqueued(log.as_stored(study, trial))
        with suppress(RuntimeError):  # others have ended it
            log.end(study, trial, TrialState.WAITING if is_enqueued else TrialState.FAIL)
        raise


def warn_of_range(
    learner: int | None, name: str, kept: Any, distribution: BaseDistribution
) -> None:
    """Warn of a resumed learner whose parameter is outside the range suggested now."""
    is_number = isinstance(distribution, FloatDistribution | IntDistribution)
    if is_number and not holds(distribution, kept):
        _logger.warning(
            "Learner %d goes on with %s = %s, which is not in the %s that is suggested now: a "
            "learner keeps its parameters. To leave it out, raise `optuna.TrialPruned` in the "
            "objective before it is trained.",
            learner,
            name,
            kept,
            distribution,
        )
