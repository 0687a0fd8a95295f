"""Who runs which learner: a new trial is dealt a learner that no other worker holds.

No storage can change a trial only if another is unchanged, so a claim is made in the open: write
it, read all claims, and go ahead only where no other trial claims the same learner. Of two
workers that write at the same time at least one sees the other; both may step back, but never do
both go ahead. The lower trial number stays where it can.
"""

from __future__ import annotations

import logging
import time
import warnings
from contextlib import suppress

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Wait
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study import keys
from optuna_daub.study import workers
from optuna_daub.study.keys import Run
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import ledger_of
from optuna_daub.study.reasons import spoken


SHORTEST_NAP, LONGEST_NAP = 0.01, 0.5
"""Seconds between two looks at the study of a worker that waits; doubled from one to the other."""

LOOKING_SHARE = 0.05
"""Of a waiting worker's time, what its looks may take at most: where the storage makes a look
dear (0.02 s of CPU on SQLite with eight running trials), the naps are longer."""

LONGEST_PAUSE = 2.0
"""Seconds of the longest of these naps: what made a look dear may have been done once for all,
such as reading the trials that ended meanwhile."""

PATIENCE = 1.0
"""Seconds that the lower trial number waits for a rival to step back."""

COMPLAINT = 60.0
"""Seconds of waiting after which a log line says what for."""

_logger = logging.getLogger(__name__)


def deal(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    n_learners: int,
    stale_after: float | None,
) -> Run:
    """Return which learner a new trial runs, or an idle run if the study has come to its end.

    Sleeps, holding no lock, while every learner that deserves data is held by others.
    """
    begun = time.monotonic()
    has_complained = False
    nap = SHORTEST_NAP
    awake = time.thread_time()
    while True:
        run = _claim(study, trial, policy, n_learners, stale_after)
        if run is not None:
            return run
        pause = (time.thread_time() - awake) / LOOKING_SHARE
        time.sleep(max(nap, min(pause, LONGEST_PAUSE)))
        awake = time.thread_time()
        fail_silent(study)
        nap = min(2 * nap, LONGEST_NAP)
        if not has_complained and time.monotonic() - begun > COMPLAINT:
            has_complained = True
            _logger.warning(_complaint(ledger_of(study), trial))


def fail_silent(study: optuna.Study) -> None:
    """Fail the trials whose heartbeat stopped; Optuna itself only looks between trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def release_dead(
    study: optuna.Study, ledger: Ledger, stale_after: float | None, but_for: int
) -> bool:
    """Give up the runs whose worker is surely dead, or silent for `stale_after` seconds.

    Returns whether there were any.
    """
    is_any = False
    for number, run in [*ledger.running.items()]:
        trial = ledger.unfinished[number]
        if number == but_for or _is_taken_over(trial, run):
            continue
        is_silent = (
            stale_after is not None
            and run.learner is not None
            and time.time() - _last_sign(trial, run) > stale_after
        )
        if is_silent or workers.is_dead(run.worker):
            is_any = True
            with suppress(RuntimeError):  # another worker, or its own, was faster
                study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                _logger.warning("Trial %d was given up: its worker is dead or silent.", number)
    return is_any


def _is_taken_over(trial: FrozenTrial, run: Run) -> bool:
    """Return whether a retry of a dead worker's trial, still marked as its, was begun just now."""
    return run.trial != trial.number and workers.is_just_begun(trial)


def release_abandoned(study: optuna.Study, ledger: Ledger, policy: Policy, but_for: int) -> bool:
    """Give up trials whose worker died before it was dealt anything.

    An enqueued one is dealt its own learner first: it is then like any whose first run died, and
    nobody begins another in its place. Returns whether there were any.
    """
    abandoned = [n for n in ledger.unfinished if n != but_for and ledger.is_abandoned(n)]
    for number in abandoned:
        trial = ledger.unfinished[number]
        with suppress(RuntimeError):  # another worker was faster
            if keys.is_enqueued(trial):
                run = _run(ledger, policy, trial, "enqueued", number, policy.sizes[0])
                keys.write_run(study, trial._trial_id, run)
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            _logger.warning("Trial %d was given up: its worker died as it began.", number)
    return bool(abandoned)


def _last_sign(trial: FrozenTrial, run: Run) -> float:
    """Return when a run was last heard of, seconds since the epoch."""
    sizes = keys.own_sizes(trial, run.inherited)
    return max([run.since, *(keys.read_time(trial, size) for size in sizes)])


def _claim(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    n_learners: int,
    stale_after: float | None,
) -> Run | None:
    """Return a run once it is surely ours, None where there is nothing to run at the moment."""
    ledger = ledger_of(study)
    with ledger.lock:
        ledger.sync(study._storage)
        ledger.n_learners = n_learners
        if len(ledger.unfinished) > 1:
            has_released = release_dead(study, ledger, stale_after, but_for=trial.number)
            has_released |= release_abandoned(study, ledger, policy, but_for=trial.number)
            if has_released:
                ledger.sync(study._storage)
                ledger.n_learners = n_learners  # not what the dead one's sampler was asked for
        run = _offer(study, ledger, trial, policy)
        if run is None and trial.number in ledger.running:
            return None  # idle, and marked so
        run_or_idle = run or _run(ledger, policy, trial, "every learner is held")
        keys.write_run(study, trial._trial_id, run_or_idle)
        ledger.sync(study._storage)
    if run is None or run.learner is None:
        return run
    if not _stands(study, ledger, trial, run):
        keys.write_run(
            study, trial._trial_id, _run(ledger, policy, trial, "another worker was faster")
        )
        return None
    if run.inherited:
        known = ledger.scores(run.learner)
        missing = {n: score for n, score in known.items() if n not in trial.intermediate_values}
        keys.copy_scores(study._storage, trial._trial_id, missing)
    return run


def _offer(study: optuna.Study, ledger: Ledger, trial: FrozenTrial, policy: Policy) -> Run | None:
    """Return what the trial should run, None if it is to wait."""
    copied = keys.read_run(trial.system_attrs)  # what a run was dealt that died and was retried
    asked = None if copied is None else copied.learner
    if keys.is_enqueued(trial):
        return _run(ledger, policy, trial, "enqueued", trial.number, policy.sizes[0])
    if is_optimizing(study) and study._stop_flag:
        return _run(ledger, policy, trial, "the study was stopped")
    match ledger.decide(policy, trial.number):
        case Extend(learner, size, reason) if asked in (None, learner):
            return _run(ledger, policy, trial, spoken(reason, ledger.sign), learner, size)
        case Finish(_, reason):
            return _run(ledger, policy, trial, f"finished: {spoken(reason, ledger.sign)}")
        case _ if asked is not None:
            return _run(ledger, policy, trial, f"learner {asked} is not to be run now")
        case Wait() if ledger.n_enqueued(TrialState.WAITING):
            return _run(ledger, policy, trial, "enqueued learners come first")
    return None


def _stands(study: optuna.Study, ledger: Ledger, trial: FrozenTrial, run: Run) -> bool:
    """Return whether a claim that was written, and read back, is the only one on its learner."""
    assert run.learner is not None
    is_proposed = run.learner == trial.number and not keys.is_enqueued(trial)
    patience = time.monotonic() + PATIENCE
    while True:
        with ledger.lock:
            if is_proposed and ledger.is_excess(trial.number):
                return False
            if ledger.curves[run.learner].size != run.inherited:
                return False  # others ran it between our decision and our claim
            if trial.number not in ledger.running:
                return False  # others took us for dead
            rivals = [n for n, other in ledger.running.items() if other.learner == run.learner]
        rivals.remove(trial.number)
        if not rivals:
            return True
        if min(rivals) < trial.number or time.monotonic() > patience:
            return False
        time.sleep(SHORTEST_NAP)
        ledger.sync(study._storage)


def _run(
    ledger: Ledger,
    policy: Policy,
    trial: FrozenTrial,
    reason: str,
    learner: int | None = None,
    size: int = 0,
) -> Run:
    """Return what a trial is dealt; without a learner it is idle."""
    curve = None if learner is None else ledger.curves.get(learner)
    return Run(
        learner=learner,
        size=size,
        inherited=curve.size if curve else 0,
        n_learners=ledger.n_learners,
        full_size=policy.sizes[-1],
        reason=reason,
        worker=workers.this_worker(),
        since=time.time(),
        trial=trial.number,
    )


def is_optimizing(study: optuna.Study) -> bool:
    """Return whether the calling thread is in `study.optimize`, not in ask-and-tell."""
    return bool(study._thread_local.in_optimize_loop)


def _complaint(ledger: Ledger, trial: FrozenTrial) -> str:
    held = [
        f"{run.learner} (trial {number})"
        for number, run in ledger.running.items()
        if run.learner is not None
    ]
    return (
        f"Trial {trial.number} has waited {COMPLAINT:.0f} s for one of the learners "
        f"{', '.join(held) or '(none)'}, which other workers hold. If such a worker is dead, use "
        "a storage with heartbeat, or `stale_after=` of DataAllocationSampler."
    )
