"""Waiting of a new trial for a learner that no other worker holds."""

from __future__ import annotations

import time

from optuna.trial import FrozenTrial

from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study.claims import Asking
from optuna_daub.study.claims import claim
from optuna_daub.study.known import Known
from optuna_daub.study.records import Run


SHORTEST_WAIT, LONGEST_WAIT = 0.01, 0.5
"""Seconds of sleep between two looks of a waiting worker: each is twice as long as the last."""

LOOKING_SHARE = 0.05
"""Largest share of a waiting worker's time that its looks may take. On SQLite with eight running
trials a look takes 0.02 s of CPU."""

LONGEST_PAUSE = 2.0
"""Largest number of seconds of sleep that a slow look causes. A look may be slow once
only, such as the first one, which reads many ended trials."""

COMPLAINT = 60.0
"""Seconds of waiting after which the log says what the worker is waiting for."""


def assign(asking: Asking) -> Run:
    """Return the run of a new trial, an idle one if the study has ended.

    While other workers hold every learner that could be trained next, this sleeps without holding
    a lock, but no longer than the study's `timeout`.

    Raises:
        RuntimeError: if no other worker could end the wait.
    """
    study, worker, trial = asking.study, asking.worker, asking.trial
    started, awake, wait, has_slept = time.monotonic(), time.thread_time(), SHORTEST_WAIT, False
    while True:
        left = host.seconds_left(study)
        # Optuna starts no trial after its `timeout`. So a trial that has not slept was started in
        # time, and it would be empty if the timeout passed while its worker looks at the study.
        is_over = has_slept and left is not None and left <= 0
        run = claim(asking, is_over=is_over, may_be_late=has_slept or left is None)
        if run is not None:
            return run
        _check_can_wait(asking)
        pause = max(wait, min((time.thread_time() - awake) / LOOKING_SHARE, LONGEST_PAUSE))
        time.sleep(pause if left is None else max(SHORTEST_WAIT, min(pause, left)))
        awake, has_slept = time.thread_time(), True
        # Optuna checks heartbeats only between two trials, and this trial may be long.
        liveness.fail_stale(study)
        wait = min(2 * wait, LONGEST_WAIT)
        if time.monotonic() - started > COMPLAINT:
            worker.warn(f"wait of trial {trial.number}", _complaint(worker.known, trial))


def _check_can_wait(asking: Asking) -> None:
    """Raise an error if this thread would wait for trials only it can end."""
    trial, known = asking.trial, asking.worker.known
    held = [
        number
        for number, other in known.unfinished.items()
        if number != trial.number and other.state == "running"
        if number not in known.runs or known.runs[number].learner is not None  # idle ones wait too
    ]
    if held and all(_is_own(asking, number) for number in held):
        raise RuntimeError(
            f"This thread has asked for trials {sorted(held)} without telling their results, and "
            "they hold every learner that could be trained next: call `study.tell` for one of "
            "them, with the trial or its number, before you ask for the next."
        )


def _is_own(asking: Asking, number: int) -> bool:
    """Return whether only this thread can end a trial."""
    holders = liveness.holders_of(asking.worker, number)
    # After `stale_after` seconds this object takes over what was asked for through another one.
    is_elsewhere = number not in asking.worker.holders
    if asking.stale_after is not None and is_elsewhere and all(h.begin is None for h in holders):
        return False
    # A thread in an objective that waits for the jobs of an inner study goes on with its trial.
    return bool(holders) and all(
        holder.is_here or (holder.begin is None and holder.is_waiting_for_its_jobs)
        for holder in holders
    )


def _complaint(known: Known, trial: FrozenTrial) -> str:
    runs = known.runs.items()
    held = [f"{run.learner} (trial {n})" for n, run in runs if run.learner is not None]
    if not held and not known.queued("running"):
        return (
            f"Trial {trial.number} has waited {COMPLAINT:.0f} s, as the rule asks, though no "
            "learner is in training and nothing is in the queue: a rule must not wait then."
        )
    if not held:
        return (
            f"Trial {trial.number} has waited {COMPLAINT:.0f} s for enqueued trials that other "
            "workers have taken and not started."
        )
    return (
        f"Trial {trial.number} has waited {COMPLAINT:.0f} s for one of the learners "
        f"{', '.join(held)}, which other workers hold. If such a worker is dead, use "
        "a storage with heartbeat, or `stale_after=` of DataAllocationSampler."
    )
