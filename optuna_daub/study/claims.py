"""Claims: a new trial is assigned a learner that no other worker holds.

No storage offers "write this trial only if that one is unchanged". So a worker writes its claim,
reads all claims, and goes ahead only if no other trial claims the same learner. If two workers
write at the same time, at least one of them sees the other's claim. Both may step back, but never
do both go ahead. The one with the lower trial number keeps its claim if it can.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from dataclasses import replace

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Wait
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.exploring import fixed_text
from optuna_daub.study.messages import TAKEN_FOR_DEAD
from optuna_daub.study.messages import repetition
from optuna_daub.study.records import Run
from optuna_daub.study.worker import Worker


RIVAL_PAUSE = 0.01
"""Seconds between two looks at a rival that is to step back."""


class TakenError(RuntimeError):
    """Raised if Optuna has handed one waiting trial to two workers. This happens on SQLite."""


@dataclass(frozen=True)
class Asking:
    """A new trial whose worker asks which learner to run."""

    study: optuna.Study
    worker: Worker
    trial: FrozenTrial
    policy: Policy
    """Rule that allocates."""
    n_learners: int | None
    """Number of learners that the sampler was asked for; None without a limit."""
    stale_after: float | None
    """Seconds without a report after which a run counts as dead; None for never."""

    def run(self, reason: str, learner: int | None = None, size: int = 0) -> Run:
        """Return a run of the trial; without a learner it is an idle run."""
        curves = self.worker.known.curves
        return Run(
            learner=learner,
            size=size,
            inherited=0 if learner is None or learner not in curves else curves[learner].size,
            n_learners=self.n_learners,
            full_size=self.policy.sizes[-1],
            reason=reason,
            worker=liveness.this_worker(),
            trial=self.trial.number,
            study=self.study.study_name,
            fixed=fixed_text(self.study.sampler),
        )


def settle(worker: Worker, trial: optuna.Trial, policy: Policy, run: Run) -> Run:
    """Return a new learner's run with its first training size, given its parameters.

    The run is idle if another learner has the same parameters, or if the policy declines them. New
    parameters are a claim too: write them first, then compare. Threads of a process compare one at
    a time. Of two processes, the one with the lower number waits until the other steps back or is
    settled: the other may have compared before these parameters were stored.
    """
    if run.learner != trial.number or run.inherited:
        return run
    study, number = trial.study, trial.number
    deadline = time.monotonic() + worker.patience.rival
    while True:
        # Look and compare under one lock, so a thread sees the learners that others have settled.
        # Otherwise two with the same parameters could each miss the other, and both go on.
        with worker.lock:
            worker.look()
            if not worker.holds(number):
                return run  # others have taken it over
            known = worker.known
            run = known.runs[number]
            if run.learner is None or worker.newcomers.get(number):
                return run  # it was settled before
            settled = {*filter(worker.newcomers.get, worker.newcomers)}
            if (other := known.forerunner(number, settled)) is not None:
                return repeating(study, worker, trial, run, other)
            # A rival that does not step back in time counts as dead; its parameters must not be
            # lost with it. If it returns, it finds this learner settled and steps back.
            if not known.is_contested(number, worker.newcomers) or time.monotonic() > deadline:
                worker.newcomers[number] = True
                has_score = bool(known.curves[number].observations)
                started = run if has_score else _started(worker, trial, policy, run)
                # A learner with a lower number may suggest the same after this look, and would go
                # first. So store that this one is settled.
                others = known.unfinished.keys() - worker.newcomers.keys()
                if started.learner is not None and min(others, default=number) < number:
                    started = replace(started, is_settled=True)
                # No read-back: the claim had its own, and nothing is decided on this record before
                # the next look.
                if started != run:
                    log.write_run(study, trial, started)
                return started
        time.sleep(RIVAL_PAUSE)


def settle_at_end(
    study: optuna.Study, worker: Worker, trial: FrozenTrial, run: Run, state: TrialState
) -> Run:
    """Return the run of a trial that ends.

    It is idle if another learner has its parameters, and it was pruned, or failed before it was
    settled. So parameters are also compared if the objective asks for no sizes, or fails before it
    does. A failure before anything was trained does not count: the program may be at fault, not
    the parameters.
    """
    number, is_begun = trial.number, worker.known.is_begun
    is_unsettled = state == TrialState.FAIL and worker.newcomers.get(number) is False
    may_repeat = state == TrialState.PRUNED or (is_unsettled and is_begun)
    if not may_repeat or run.learner != number or run.inherited:
        return run
    with worker.lock:
        other = worker.known.twin(number) if number in worker.known.runs else None
        return run if other is None else repeating(study, worker, trial, run, other)


def repeating(
    study: optuna.Study, worker: Worker, trial: log.AnyTrial, run: Run, other: int
) -> Run:
    """Make the run idle, because another learner has its parameters. Store and return it."""
    if worker.known.starter(other) != run.worker or other < worker.first:
        # Another sampler has proposed it, such as that of a notebook's cell before it was run
        # again. It may have had the same seed, and would be followed from point to point.
        study.sampler.reseed_rng()
    idle = replace(run, learner=None, size=0, reason=repetition(other), repeats=other)
    log.write_run(study, trial, idle)
    return idle


@host.one_blas_thread()
def _started(worker: Worker, trial: optuna.Trial, policy: Policy, run: Run) -> Run:
    """Return a new learner's run as the policy wants it. Its parameters are known by now."""
    number = trial.number
    # The pool that the run was decided on, so the next decision finds it again if this declines.
    pool = worker.pool(policy, number, proposes=True).put(worker.known.curves[number])
    decision = policy.start(pool, number, run.size)
    if isinstance(decision, Extend) and decision.size == run.size:
        return run
    reason = decision.reason.told(worker.sign, worker.limits)
    if isinstance(decision, Extend):
        return replace(run, size=decision.size, reason=reason)
    # GridSampler proposes each point of its grid once, so none may be declined. It starts at the
    # size for which it was proposed.
    if records.GRID_POINT in log.as_stored(trial.study, trial).system_attrs:
        return run
    return replace(run, learner=None, size=0, reason=f"declined: {reason}", is_declined=True)


def claim(asking: Asking, *, may_be_late: bool, is_over: bool) -> Run | None:
    """Return the trial's run, which may be idle, once its claim is certain.

    None if it must wait; an idle run is stored then.

    Raises:
        TakenError: if another worker or thread has this trial.
    """
    study, worker, trial = asking.study, asking.worker, asking.trial
    number = trial.number
    # Look, choose and write under one lock, so a second thread of this process sees the claim of
    # the first and chooses another learner. Other processes have other locks; they agree by
    # reading the claims back, below.
    with worker.lock:
        worker.look()
        if liveness.release_dead(study, worker, asking.stale_after, number):
            worker.look()
        # This sampler's number of learners and fixed parameters. Another worker's sampler, which
        # may have started the newest run, may have others.
        newest = number, asking.n_learners, fixed_text(study.sampler)
        worker.known = replace(worker.known, newest=newest)
        run = _offer(asking, may_be_late=may_be_late, is_over=is_over)
        if run is None and number in worker.known.runs:
            return None  # idle, and stored as such
        # A waiting worker stores an idle run, so others know that it holds no learner.
        written = run or asking.run("every learner is held")
        # Read again, as the last step before the write: do not overwrite a record that another
        # worker stored after `trial` was read.
        _check_own(study, worker, trial)
        # Before the claim: if the worker dies after it, others notice a heartbeat that stops. A
        # heartbeat that never started would never stop.
        log.record_heartbeat(study, trial)
        log.write_run(study, trial, written)
        # The read-back. All claims are written before they are read, so of two that name one
        # learner at least one sees the other.
        worker.look()
    if run is None or run.learner is None:
        return run
    # Without the lock: this may wait for a rival, and other threads can go on.
    if not _is_only_claim(worker, trial, run):
        if worker.known.is_given_up(number):  # it was taken over, so withdraw nothing
            return asking.run(TAKEN_FOR_DEAD)
        log.write_run(study, trial, asking.run("another worker was faster"))
        return None
    if run.learner == number:
        worker.newcomers[number] = False
    else:
        log.write_inheritance(study, trial, worker.known.learners[run.learner], worker.sign)
    return run


def _check_own(study: optuna.Study, worker: Worker, trial: FrozenTrial) -> None:
    """Raise an error if another worker or thread has claimed this same trial."""
    number, here = trial.number, host.Holder.here(study)
    run = records.read_run(log.as_stored(study, trial))
    is_theirs = run is not None and run.trial == number and run.worker != liveness.this_worker()
    if is_theirs or not worker.holders.setdefault(number, here).is_here:
        raise TakenError(f"Trial {number} was handed to two workers.")


def _offer(asking: Asking, *, may_be_late: bool, is_over: bool) -> Run | None:
    """Return the run that the trial should have; None if it must wait."""
    worker, trial, policy = asking.worker, asking.trial, asking.policy
    number = trial.number
    if worker.known.is_given_up(number):
        return asking.run(TAKEN_FOR_DEAD)
    if records.is_enqueued(trial):
        return asking.run("enqueued", number, _first_size(worker, policy))
    copied = records.read_run(trial)  # the record of a run that died and was retried
    wanted = None if copied is None else copied.learner
    if idle := _idle(asking, wanted, may_be_late=may_be_late):
        return asking.run(idle)
    decision = _decide(worker, policy, number)
    reason = decision.reason.told(worker.sign, worker.limits)
    match decision:
        case Extend(learner, size) if wanted in (None, learner):
            return asking.run(reason, learner, size)
        case Finish():
            return asking.run(f"finished: {reason}")
        case _ if wanted is not None:
            return asking.run(f"learner {wanted} is not to be run now")
        case Propose(size) if worker.known.has_room(number):
            return asking.run(reason, number, size)
        case Wait() | Propose() if worker.known.queued("waiting"):
            return asking.run("enqueued learners come first")
    return asking.run("the time is over") if is_over else None


def _idle(asking: Asking, wanted: int | None, *, may_be_late: bool) -> str:
    """Return the reason why a trial trains nothing, whatever the policy decides; else "".

    Args:
        asking: the trial, which is not enqueued.
        wanted: learner of the run that died and was retried; None if the trial is no retry.
        may_be_late: whether the sampler's seconds may be over.
    """
    worker, trial = asking.worker, asking.trial
    if host.is_optimizing(asking.study) and asking.study._stop_flag:
        return "the study was stopped"
    if may_be_late and worker.is_late:
        return "the seconds are over"
    curve = None if wanted is None else worker.known.curves.get(wanted)
    if curve is not None and max(trial.intermediate_values, default=0) > curve.size:
        # As a run of its learner it would count the lost score, so no claim of it would hold.
        return "its copied score on all the data was lost"
    return ""


def _decide(worker: Worker, policy: Policy, number: int) -> Decision:
    """Return the policy's decision, without the learners that failed at this worker.

    Other workers, if there are any, try those once more.
    """
    pool, decision = worker.answer(policy, number)
    if not isinstance(decision, Extend) or not worker.known.learners[decision.learner].failures:
        return decision
    this, recently = liveness.this_worker(), time.monotonic() - worker.patience.recent
    # Workers with a run now were heard of at the last look.
    others = {other for other, at in worker.heard_of.items() if at > recently} - {this}
    failed = worker.known.failed_by(this)
    if decision.learner in failed and others:
        return policy.decide(replace(pool, busy=pool.busy | failed))
    return decision


def _first_size(worker: Worker, policy: Policy) -> int:
    """Return the training size at which the policy would start a new learner."""
    pool = worker.pool(policy)
    to_come = None if pool.to_come is None else 1
    decision = policy.decide(replace(pool, busy=frozenset(pool.curves), to_come=to_come))
    return decision.size if isinstance(decision, Propose) else policy.sizes[0]


def _is_only_claim(worker: Worker, trial: FrozenTrial, run: Run) -> bool:
    """Return whether a written claim is the only one on its learner.

    Raises:
        TakenError: if another worker has this trial, and has overwritten the run.
    """
    assert run.learner is not None
    number, known = trial.number, worker.known
    # If this takes over a dead worker's mere claim, others may have taken its place meanwhile.
    mere, is_new = known.learners.get(run.learner), run.learner == number
    # Enqueued trials always have a place, also one without parameters, `enqueue_trial({})`.
    takes_place = not records.is_enqueued(trial) and (is_new or (mere and mere.is_blank))
    deadline = time.monotonic() + worker.patience.rival
    while True:
        if number not in known.runs:
            return False  # others declared this worker dead
        if known.runs[number].worker != run.worker:
            raise TakenError(f"Trial {number} was handed to two workers.")
        rivals = {n for n, each in known.runs.items() if each.learner == run.learner} - {number}
        if known.curves[run.learner].size != run.inherited:
            return False  # others trained it between the decision and the claim
        excess = known.too_many(run.learner) if takes_place else ()
        if not rivals and excess == ():
            return True
        # If both saw each other and stepped back, nobody would run the learner. So the lower
        # number waits for the other to step back. A dead one never does.
        is_last = excess is None or min(rivals, default=number) < number
        if is_last or time.monotonic() > deadline:
            return False
        time.sleep(RIVAL_PAUSE)
        known = worker.look()
