"""Starting: what is checked, and given up, before a new trial is assigned a learner."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import replace

import optuna
from optuna.samplers import PartialFixedSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.decision import Finish
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import keys
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study.claims import TakenError
from optuna_daub.study.interrupts import end_interrupted
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.stored_policy import write_policy
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def check(study: optuna.Study, policy: Policy, n_learners: int | None) -> None:
    """Raise where the study, the pruner and this sampler do not fit together."""
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
    if worker.agreed is not policy:  # asks the storage until that is sure
        is_begun = worker.look().is_begun
        log.check_settings(study, policy.sizes, is_begun=is_begun)
        write_policy(study, policy)
        worker.agreed = policy if is_begun else None


def release_left_behind(study: optuna.Study, worker: Worker) -> None:
    """Give up trials that threads of this process began and left: by `SystemExit`, say."""
    here, begun = threading.get_ident(), worker.assigned
    for place, assigned in [*begun.items()]:
        if not assigned.is_optimizing:
            continue  # what one thread has asked for may be told by any other
        is_left = assigned.thread == here or not liveness.is_thread_alive(assigned.thread)
        if is_left and begun.pop(place, None) is not None:  # else another thread has it
            liveness.release_own(study, worker, place)


def check_can_wait(worker: Worker, trial: FrozenTrial) -> None:
    """Raise where a thread would wait for trials that it alone can end."""
    here, known = threading.get_ident(), worker.known
    own = {
        number
        for number, assigned in [*worker.assigned.items()]
        if assigned.thread == here or host.is_waiting_for_its_jobs(assigned.thread)
    }
    held = {
        number
        for number, other in known.unfinished.items()
        if number != trial.number and other.state == "running"
        if number not in known.runs or known.runs[number].learner is not None  # idle: waits too
    }
    if held and own >= held:
        raise RuntimeError(
            "Every learner that deserves data is held by trials that this thread has asked "
            f"for, but trials {sorted(held)} were not told: call `study.tell` for one of them "
            "before you ask for the next."
        )


def horizon(study: optuna.Study, seconds: float | None) -> float | None:
    """Return when the seconds of this `optimize` are over, by the monotonic clock."""
    if seconds is None:
        left = host.seconds_left(study)  # of the `timeout`
        return None if left is None else time.monotonic() + left
    elapsed = host.seconds_since_begin(study)
    if elapsed is None:  # ask-and-tell: from the first question on
        worker = worker_of(study)
        worker.asked_since = worker.asked_since or time.monotonic()
        return worker.asked_since + seconds
    return time.monotonic() - elapsed + seconds


def stop_if_over(
    study: optuna.Study, trial: FrozenTrial, policy: Policy, n_learners: int | None
) -> None:
    """End the study of an idle trial where nothing is left to be done."""
    worker = worker_of(study)
    is_late = worker.horizon is not None and time.monotonic() >= worker.horizon
    is_finished = isinstance(worker.answer(policy).decision, Finish)
    is_asked_for_more = n_learners is not None and not _has_just_ended(study)
    if is_finished and is_asked_for_more and [*worker.known.unfinished] == [trial.number]:
        _logger.warning(
            "Study '%s' has come to its end, so trial %d is empty: Optuna begins a trial "
            "before it asks the sampler. Raise `n_learners`, or enqueue trials, to go on.",
            study.study_name,
            trial.number,
        )
    if is_late or is_finished:
        host.stop(study)


def _has_just_ended(study: optuna.Study) -> bool:
    """Return whether the thread's `study.optimize` has ended a trial, maybe in another thread."""
    begun = host.begin(study)
    if begun is None:
        return False
    ends = (trial.datetime_complete for trial in study.get_trials(deepcopy=False))
    return any(end is not None and end >= begun for end in ends)


@contextmanager
def proposing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Let the base sampler propose, and end a trial that was taken for dead meanwhile.

    Raises:
        optuna.TrialPruned: out of the objective that asks for parameters.
    """
    _check_held(study, trial)
    with log.beating(study, trial):
        yield
    _check_held(study, trial)


def _check_held(study: optuna.Study, trial: FrozenTrial) -> None:
    worker, now = worker_of(study), time.monotonic()
    assigned = worker.assigned.get(trial.number)
    if assigned is None or now - assigned.since < liveness.CHECKED_SECONDS:
        return
    worker.assigned[trial.number] = replace(assigned, since=now)
    asked, known = host.trial_of_caller(), looking(study).known
    if asked is None or host.is_asking() or trial.number in known.runs:
        return
    if trial.number not in known.unfinished:
        liveness.come_back(study, asked)
    raise optuna.TrialPruned(GIVEN_UP)


@contextmanager
def failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Leave no running trial behind where assigning it a learner raises: Optuna would.

    An enqueued one that was assigned nothing yet goes back to the queue.
    """
    try:
        yield
    except BaseException as error:
        end_interrupted(study, error)
        if isinstance(error, TakenError):
            raise  # it runs, and is another worker's
        with suppress(NotImplementedError):  # of several objectives
            worker_of(study).holders.pop(trial.number, None)
        is_enqueued = keys.is_enqueued(log.as_stored(study, trial))
        with suppress(RuntimeError):  # others have ended it
            log.end(study, trial, TrialState.WAITING if is_enqueued else TrialState.FAIL)
        raise
