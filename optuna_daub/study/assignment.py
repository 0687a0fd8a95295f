"""Assignment: a new trial is given a learner that no other worker holds.

No storage can change a trial only if another is unchanged, so a claim is made in the open: write
it, read all claims, and go ahead only where no other trial claims the same learner. Of two
workers that write at the same time at least one sees the other; both may step back, but never do
both go ahead. The lower trial number stays where it can.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Wait
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import storage as stored
from optuna_daub.study.messages import repetition
from optuna_daub.study.messages import sentence
from optuna_daub.study.state import State
from optuna_daub.study.state import state_of
from optuna_daub.study.storage import Run


SHORTEST_WAIT, LONGEST_WAIT = 0.01, 0.5
"""Seconds between two looks at the study of a worker that waits; doubled from one to the other."""

LOOKING_SHARE = 0.05
"""Of a waiting worker's time, what its looks may take at most: where the storage makes a look
dear (0.02 s of CPU on SQLite with eight running trials), it waits longer."""

LONGEST_PAUSE = 2.0
"""Seconds of the longest of these waits: what made a look dear may have been done once for all,
such as reading the trials that ended meanwhile."""

PATIENCE = 1.0
"""Seconds that the lower trial number waits for a rival to step back."""

COMPLAINT = 60.0
"""Seconds of waiting after which a log line says what for."""

_logger = logging.getLogger(__name__)


def assign(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    n_learners: int | None,
    stale_after: float | None,
    check_can_wait: Callable[[State], None],
) -> Run:
    """Return the run of a new trial, an idle one if the study has come to its end.

    Sleeps, holding no lock, while every learner that deserves data is held by others, and no
    longer than the study's `timeout`.

    Args:
        check_can_wait: raises where no other worker could end the wait; called before each sleep.
    """
    begun = time.monotonic()
    has_complained = has_slept = False
    wait = SHORTEST_WAIT
    awake = time.thread_time()
    while True:
        left = host.seconds_left(study)
        is_over = left is not None and left <= 0 and time.monotonic() > begun + SHORTEST_WAIT
        # Optuna begins no trial after its `timeout`: one that has not slept was begun in time, and
        # would be empty where the timeout passes while its worker looks at the study.
        may_be_late = left is None or has_slept
        run = _claim(
            study, trial, policy, n_learners, stale_after, is_over=is_over, may_be_late=may_be_late
        )
        if run is not None:
            return run
        check_can_wait(state_of(study))
        pause = max(wait, min((time.thread_time() - awake) / LOOKING_SHARE, LONGEST_PAUSE))
        time.sleep(pause if left is None else max(SHORTEST_WAIT, min(pause, left)))
        awake, has_slept = time.thread_time(), True
        liveness.fail_stale(study)
        wait = min(2 * wait, LONGEST_WAIT)
        if not has_complained and time.monotonic() - begun > COMPLAINT:
            has_complained = True
            _logger.warning(_complaint(state_of(study), trial))


def give_way_to_twin(study: optuna.Study, trial: FrozenTrial, run: Run) -> Run:
    """Return the run of a first run that has ended: idle, if another learner has its parameters.

    The same parameters twice are one learner. Where the objective asks for no sizes, that is
    found out with the first score.
    """
    if run.learner != trial.number or run.inherited:
        return run
    state = state_of(study)
    state.sync()
    with state.lock:
        other = state.twin(trial.number)
        if other is None or trial.number not in state.runs:
            return run
        return _repeating(study, state, trial, run, other)


def settled(study: optuna.Study, trial: optuna.Trial, run: Run) -> Run:
    """Return the run of a newcomer whose parameters are known: idle, if a learner has them.

    A newcomer that repeats a learner costs nothing. Parameters are a claim that is written before
    it is read back, as others are. One newcomer looks at a time in each process; across processes
    the lower number waits for the higher to step back, or to be settled: it may have looked
    before the lower one's parameters were stored.
    """
    if run.learner != trial.number or run.inherited:
        return run
    state = state_of(study)
    patience = time.monotonic() + PATIENCE
    while True:
        state.sync()
        with state.lock:
            if trial.number not in state.runs or state.here.newcomers.get(trial.number):
                return run
            other = state.forerunner(trial.number)
            if other is not None:
                return _repeating(study, state, trial, run, other)
            if not state.is_contested(trial.number) or time.monotonic() > patience:
                state.here.newcomers[trial.number] = True
                # One with a lower number may suggest the same after this look.
                lower = {n for n in state.unfinished if n < trial.number}
                if lower - state.here.newcomers.keys():
                    run = replace(run, is_settled=True)
                    stored.write_run(study, trial._trial_id, run)
                    state.sync()
                return run
        time.sleep(SHORTEST_WAIT)


def _repeating(
    study: optuna.Study, state: State, trial: optuna.Trial | FrozenTrial, run: Run, other: int
) -> Run:
    """Return the run as an idle one, which is stored, since a learner has its parameters."""
    idle = replace(run, learner=None, size=0, reason=repetition(other), repeats=other)
    stored.write_run(study, trial._trial_id, idle)
    state.sync()
    return idle


def with_start(study: optuna.Study, trial: optuna.Trial, policy: Policy, run: Run) -> Run:
    """Return the run of a newcomer whose parameters are known, with the size that it starts at.

    It is idle where the policy declines the newcomer.
    """
    if run.learner != trial.number or run.inherited:
        return run
    state = state_of(study)
    with state.lock:
        if trial.number not in state.runs or state.curve(trial.number).observations:
            return run
        pool, started = state.pool(policy, trial.number), run
        decision = policy.start(pool, trial.number, run.size)
        reason = sentence(decision.reason, state.sign)
        if isinstance(decision, Drop):
            # A grid is a list of points, of which GridSampler would not propose this one again:
            # such a point starts at the size for which it was proposed.
            attrs = study._storage.get_trial_system_attrs(trial._trial_id)
            if stored.GRID_POINT not in attrs:
                reason = f"declined: {reason}"
                started = replace(run, learner=None, size=0, reason=reason, is_declined=True)
        elif decision.size != run.size:
            started = replace(run, size=decision.size, reason=reason)
        if started != run:
            stored.write_run(study, trial._trial_id, started)
            state.sync()
    return started


def _claim(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    n_learners: int | None,
    stale_after: float | None,
    *,
    may_be_late: bool,
    is_over: bool,
) -> Run | None:
    """Return a run once it is surely ours, None where there is nothing to run at the moment."""
    state = state_of(study)
    with state.lock:
        state.sync()
        state.n_learners = n_learners
        if len(state.unfinished) > 1:
            has_released = liveness.release_dead(study, state, stale_after, but_for=trial.number)
            has_released |= liveness.enqueue_abandoned(study, state, but_for=trial.number)
            if has_released:
                state.sync()
                state.n_learners = n_learners  # not what the dead one's sampler was asked for
        if state.is_given_up(trial.number):
            return _run(state, policy, trial, liveness.GIVEN_UP)
        run = _offer(study, state, trial, policy, may_be_late=may_be_late)
        if run is None and is_over:
            run = _run(state, policy, trial, "the time is over")
        if run is None and trial.number in state.runs:
            return None  # idle, and marked so
        run_or_idle = run or _run(state, policy, trial, "every learner is held")
        if run is not None and run.learner is not None:
            liveness.record_heartbeat(study, trial)  # before it holds anything, should it die now
        stored.write_run(study, trial._trial_id, run_or_idle)
        state.sync()
    if run is None or run.learner is None:
        return run
    if not _is_only_claim(state, trial, run):
        if state.is_given_up(trial.number):  # what others have taken over is not withdrawn
            return _run(state, policy, trial, liveness.GIVEN_UP)
        idle = _run(state, policy, trial, "another worker was faster")
        stored.write_run(study, trial._trial_id, idle)
        return None
    if run.learner == trial.number:
        state.here.newcomers[trial.number] = False
    else:
        learner = state.learners[run.learner]
        scores = state.scores(run.learner)
        constraints = learner.constraints
        stored.write_inheritance(study, trial, scores, learner.user_attrs, constraints)
    return run


def _offer(
    study: optuna.Study,
    state: State,
    trial: FrozenTrial,
    policy: Policy,
    *,
    may_be_late: bool = True,
) -> Run | None:
    """Return what the trial should run, None if it is to wait."""
    copied = stored.read_run(trial.system_attrs)  # of a run that died and was retried
    asked = None if copied is None else copied.learner
    if stored.is_enqueued(trial):
        return _run(state, policy, trial, "enqueued", trial.number, _first_size(state, policy))
    if host.is_optimizing(study) and study._stop_flag:
        return _run(state, policy, trial, "the study was stopped")
    horizon = state.here.horizon if may_be_late else None
    if horizon is not None and time.monotonic() >= horizon:
        return _run(state, policy, trial, "the seconds are over")
    decision = _decide(state, policy, trial.number)
    reason = sentence(decision.reason, state.sign)
    match decision:
        case Extend(learner, size) if asked in (None, learner):
            return _run(state, policy, trial, reason, learner, size)
        case Finish():
            return _run(state, policy, trial, f"finished: {reason}")
        case _ if asked is not None:
            return _run(state, policy, trial, f"learner {asked} is not to be run now")
        case Propose(size) if state.has_room(trial.number):
            return _run(state, policy, trial, reason, trial.number, size)
        case Wait() | Propose() if state.enqueued(TrialState.WAITING):
            return _run(state, policy, trial, "enqueued learners come first")
    return None


def _decide(state: State, policy: Policy, number: int) -> Decision:
    """Return what the policy says to this worker, which leaves to others what failed here."""
    pool, decision = state.answer(policy, number)
    failed_here = state.failed_here(liveness.this_worker())
    if isinstance(decision, Extend) and decision.learner in failed_here:
        return policy.decide(replace(pool, busy=pool.busy | failed_here))
    return decision


def _first_size(state: State, policy: Policy) -> int:
    """Return the size on which the policy would train a newcomer."""
    pool = state.pool(policy)
    to_come = None if pool.to_come is None else 1
    only_newcomers = replace(pool, busy=frozenset(pool.curves), to_come=to_come)
    decision = policy.decide(only_newcomers)
    return decision.size if isinstance(decision, Propose) else policy.sizes[0]


def _is_only_claim(state: State, trial: FrozenTrial, run: Run) -> bool:
    """Return whether a claim that was written, and read back, is the only one on its learner."""
    assert run.learner is not None
    is_proposed = run.learner == trial.number and not stored.is_enqueued(trial)
    patience = time.monotonic() + PATIENCE
    while True:
        with state.lock:
            if trial.number not in state.runs:
                return False  # others took us for dead
            if state.curve(run.learner).size != run.inherited:
                return False  # others ran it between our decision and our claim
            excess = state.too_many(trial.number) if is_proposed else ()
            rivals = [n for n, other in state.runs.items() if other.learner == run.learner]
        rivals.remove(trial.number)
        if not rivals and excess == ():
            return True
        is_last = excess is None or min(rivals, default=trial.number) < trial.number
        if is_last or time.monotonic() > patience:
            return False
        time.sleep(SHORTEST_WAIT)
        state.sync()


def _run(
    state: State,
    policy: Policy,
    trial: FrozenTrial,
    reason: str,
    learner: int | None = None,
    size: int = 0,
) -> Run:
    """Return the run of a trial; without a learner it is idle."""
    return Run(
        learner=learner,
        size=size,
        inherited=state.curve(learner).size if learner in state.learners else 0,
        n_learners=state.n_learners,
        full_size=policy.sizes[-1],
        reason=reason,
        worker=liveness.this_worker(),
        trial=trial.number,
    )


def _complaint(state: State, trial: FrozenTrial) -> str:
    with state.lock:
        held = [
            f"{run.learner} (trial {number})"
            for number, run in state.runs.items()
            if run.learner is not None
        ]
    if not held:
        return (
            f"Trial {trial.number} has waited {COMPLAINT:.0f} s for enqueued trials that other "
            "workers have taken and not begun."
        )
    return (
        f"Trial {trial.number} has waited {COMPLAINT:.0f} s for one of the learners "
        f"{', '.join(held)}, which other workers hold. If such a worker is dead, use "
        "a storage with heartbeat, or `stale_after=` of DataAllocationSampler."
    )
