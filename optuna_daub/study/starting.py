"""Checks and clean-up before a new trial is assigned a learner."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import PartialFixedSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.decision import Finish
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.claims import TakenError
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.records import Run
from optuna_daub.study.spaces import holds
from optuna_daub.study.stored_policy import write_policy
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def check(study: optuna.Study, policy: Policy, n_learners: int | None) -> None:
    """Raise an error if the study, the pruner and this sampler do not fit together."""
    worker = worker_of(study)
    if isinstance(study.sampler, PartialFixedSampler):
        raise ValueError(
            "`PartialFixedSampler` must be the base sampler of DataAllocationSampler, not the "
            "other way round, as a learner that is resumed keeps its parameters: pass "
            "`sampler=DataAllocationSampler(PartialFixedSampler(fixed_params, base_sampler))`."
        )
    if n_learners is None and policy.needs.closed_pool:
        raise ValueError(
            f"{type(study.pruner).__name__} with {type(policy).__name__} compares a known "
            "number of learners, but `n_learners` is None: pass `n_learners=...` to "
            "DataAllocationSampler, or take `DAUBPruner(max_resource=...)` for an open search."
        )
    if worker.agreed is not policy:  # ask the storage until that is certain
        is_begun = worker.look().is_begun
        log.check_settings(study, policy.sizes, is_begun=is_begun)
        write_policy(study, policy)
        worker.agreed = policy if is_begun else None


def release_left_behind(study: optuna.Study, worker: Worker) -> None:
    """Give up trials that a thread of this process started and abandoned, as by `SystemExit`."""
    here, begun = threading.get_ident(), worker.assigned
    for place, assigned in [*begun.items()]:
        if not assigned.is_optimizing:
            continue  # any thread may tell a trial that was asked for
        is_left = assigned.thread == here or not liveness.is_thread_alive(assigned.thread)
        if is_left and begun.pop(place, None) is not None:  # else another thread has taken it
            liveness.release_own(study, worker, place)


def horizon(study: optuna.Study, seconds: float | None) -> float | None:
    """Return the time (`time.monotonic`) at which the seconds of this `optimize` are over."""
    if seconds is None:
        left = host.seconds_left(study)  # of the `timeout`
        return None if left is None else time.monotonic() + left
    elapsed = host.seconds_since_begin(study)
    if elapsed is None:  # ask-and-tell: since the first trial was asked for
        worker = worker_of(study)
        worker.asked_since = worker.asked_since or time.monotonic()
        return worker.asked_since + seconds
    return time.monotonic() - elapsed + seconds


def stop_if_over(
    study: optuna.Study, trial: FrozenTrial, policy: Policy, n_learners: int | None
) -> None:
    """End the study of an idle trial if there is nothing left to do."""
    worker = worker_of(study)
    decision = worker.answer(policy)[1]
    is_asked_for_more = n_learners is not None and not _has_just_ended(study)
    is_alone = [*worker.known.unfinished] == [trial.number]
    if isinstance(decision, Finish) and is_asked_for_more and is_alone:
        _logger.warning(
            "Study '%s' has come to its end, so trial %d is empty: Optuna starts a trial "
            "before it asks the sampler. Raise `n_learners`, or enqueue trials, to go on.",
            study.study_name,
            trial.number,
        )
    if worker.is_over(decision):
        host.stop(study)


def _has_just_ended(study: optuna.Study) -> bool:
    """Return whether the thread's `study.optimize` has ended a trial, in any thread."""
    begun = host.begin(study)
    if begun is None:
        return False
    ends = (trial.datetime_complete for trial in study.get_trials(deepcopy=False))
    return any(end is not None and end >= begun for end in ends)


def is_new(worker: Worker, trial: FrozenTrial, run: Run) -> bool:
    """Return whether the base sampler must still propose the learner's parameters.

    This includes a learner whose first worker died before it could ask.
    """
    if run.learner is None or run.inherited:
        return False
    return run.learner == trial.number or not worker.known.learners[run.learner].params


def explores(study: optuna.Study, worker: Worker, trial: FrozenTrial, run: Run) -> bool:
    """Return whether a new learner should avoid known points, because proposals were repeated.

    Enqueued points, and points of another sampler's grid, are kept.
    """
    if run.learner != trial.number or not worker.known.repeats:
        return False
    as_it_is = log.as_stored(study, trial)
    return not (records.enqueued_params(as_it_is) or records.marks_of_others(as_it_is))


@contextmanager
def proposing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Keep the trial alive while the base sampler proposes, and end it if it was declared dead.

    Raises:
        optuna.TrialPruned: in an objective that asks for parameters of a trial that is over.
    """
    _check_held(study, trial)
    with log.beating(study, trial):
        yield
    _check_held(study, trial)


def _check_held(study: optuna.Study, trial: FrozenTrial) -> None:
    worker, now = worker_of(study), time.monotonic()
    assigned = worker.assigned.get(trial.number)
    if assigned is None or now - assigned.since < worker.patience.checked:
        return
    worker.assigned[trial.number] = replace(assigned, since=now)
    asked, known = host.trial_of_caller(), looking(study).known
    if asked is None or host.is_asking() or trial.number in known.runs:
        return
    if trial.number not in known.unfinished:
        liveness.come_back(study, asked)
    raise optuna.TrialPruned(GIVEN_UP)


def end_interrupted(study: optuna.Study, error: BaseException | None) -> None:
    """End a transaction that an interrupt has broken off, so this worker can write again.

    On SQLite such a transaction locks the whole file for all workers, including this one, which
    then could not store how its trial ended.
    """
    if error is None or isinstance(error, Exception):
        return  # Optuna has rolled it back
    while error is not None:
        # A statement stays open as long as a frame of the traceback refers to it.
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__", "").startswith("sqlalchemy."):
                frame.clear()
        error = error.__context__
    storage = log.storage_of(study)
    engine = getattr(getattr(storage, "_backend", storage), "engine", None)
    if engine is not None:
        # Slow to import, so only if there is an engine.
        from sqlalchemy.pool import QueuePool

        if isinstance(engine.pool, QueuePool):  # any other may hold a database in memory
            engine.dispose()  # a broken commit went back to the pool unchanged


@contextmanager
def failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """End a trial if assigning it a learner raises an error; Optuna would leave it running.

    An enqueued trial without a learner goes back to the queue.
    """
    try:
        yield
    except BaseException as error:
        end_interrupted(study, error)
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
