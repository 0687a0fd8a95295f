"""Detection of runs that have lost their worker, whose learners others may resume.

A run is failed if its process on this machine is gone, if its `study.optimize` in this process is
over, or if its heartbeat has stopped (in databases, by Optuna). A run that was silent for
`stale_after` seconds may still be alive: it loses its learner but is not failed, and its worker
ends it if it returns. Silence is measured by the clock of the process that watches, from the last
change that it saw, since clocks of two machines are never compared. A trial without a run of
optuna_daub is failed by Optuna alone, if its heartbeat has stopped.
"""

from __future__ import annotations

import hmac
import inspect
import logging
import os
import socket
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import optuna
import psutil
from optuna.trial import TrialState

from optuna_daub.core.checks import brief
from optuna_daub.study import host
from optuna_daub.study import log
from optuna_daub.study.messages import TAKEN_FOR_DEAD
from optuna_daub.study.records import Run
from optuna_daub.study.turns import TurnOverError
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import holders_elsewhere
from optuna_daub.study.worker import worker_of


MANY_DEATHS = 3
"""Number of broken-off runs of one training at which the log names its learner. Not tuned."""

_logger = logging.getLogger(__name__)


def this_worker() -> str:
    """Return the id of this process: machine, process id, boot and start time."""
    return _worker(os.getpid())


def is_dead(worker: str) -> bool:
    """Return whether `worker` ran on this machine and its process is gone.

    False if that is uncertain: on other machines, on a clone of this one (same name and id,
    another boot), and without a /proc that shows processes of all users. Heartbeats or
    `stale_after` cover these cases."""
    machine, pid, began = worker.split("|") if worker.count("|") == 2 else ("", "", "")
    if not began or machine not in (_machine(), _machine_in_clear()):
        return False
    if began.rpartition("/")[0] != _boot():
        return False
    now = _start_time(int(pid))
    return now != began if now else _is_gone(int(pid))


def fail_stale(study: optuna.Study) -> None:
    """Fail the trials whose heartbeat stopped; Optuna itself checks only between trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def release_dead(
    study: optuna.Study, worker: Worker, stale_after: float | None, but_for: int
) -> bool:
    """Free learners and queued points that dead workers hold, except those of trial `but_for`.

    Runs that dead workers or this process left fail, and so do copies of another study's runs.
    Silent ones are given up. Returns whether there were any.
    """
    is_any = False
    for number, run in worker.known.runs.items():
        # A retry of a dead worker's trial carries the dead worker's id until the new one writes
        # its own. And a look below may have shown that a run has ended.
        if number == but_for or run.trial != number or number not in worker.known.runs:
            continue
        silent = worker.silence(number)
        is_silent = stale_after is not None and run.learner is not None and silent > stale_after
        with suppress(RuntimeError):  # its own or another worker has ended it already
            if (holders := holders_of(worker, number)) and all(map(is_left, holders)):
                is_any = True
                release_own(study, worker, number)
            elif run.study not in ("", study.study_name):
                is_any = True
                log.end(study, worker.reader.trial(number))
                _logger.warning("Trial %d was failed: it is a copy of a running one.", number)
            elif is_dead(run.worker):
                is_any = True
                log.end(study, worker.reader.trial(number))
                _logger.warning("Trial %d was failed: its worker is dead.", number)
                _warn_of_deaths(worker, run)
            # Look again: this process may have been paused since its last look.
            elif is_silent and number in worker.look().runs and worker.silence(number) >= silent:
                is_any = True
                log.write_given_up(study, worker.reader.trial(number))
                _logger.warning("Trial %d was given up: silent for %.0f s.", number, silent)
    return enqueue_abandoned(study, worker, but_for) or is_any


def _warn_of_deaths(worker: Worker, run: Run) -> None:
    """Warn if a training was broken off several times: its learner may need too much memory."""
    found = worker.look().learners.get(-1 if run.learner is None else run.learner)
    if found is None:
        return
    size = found.curve.size
    ends = [trial for trial in found.runs.values() if trial.state == "fail" and not trial.failure]
    count = sum(max(trial.observations, default=run.inherited) >= size for trial in ends)
    if count >= MANY_DEATHS:
        _logger.warning(
            "Learner %d was broken off %d times beyond %s examples, by the end of its worker. If "
            "it needs more memory than there is, let the objective raise `optuna.TrialPruned` for "
            "its parameters, %s, before it trains: then the learner is dropped.",
            run.learner,
            count,
            f"{size:,}",
            brief({**found.params}),
        )


def holders_of(worker: Worker, number: int) -> list[host.Holder]:
    """Return who holds a trial in this process, through any study object. Empty if unknown."""
    own, run = worker.holders.get(number), worker.known.runs.get(number)
    found = [] if own is None else [own]
    # A run of another process has no holder here. Trials of other studies may have its number.
    if run is not None and run.trial == number and run.worker == this_worker():
        found += holders_elsewhere(worker, number)
    return [holder for holder in found if holder.is_of_this_process]


def is_left(holder: host.Holder) -> bool:
    """Return whether a trial's `study.optimize` is over. False in ask-and-tell.

    `SystemExit` ends it without its trial, and so does Ctrl-C while Optuna asks or tells.
    """
    if holder.begin is None or not holder.is_of_this_process:
        return False  # any thread, or the parent of a fork, may still tell it
    if not holder.is_here:
        return not holder.is_alive
    # An objective may use another object of its own study, so its `optimize` may be further up.
    frames = host.frames_from(inspect.currentframe())
    return all(frame.f_locals.get("time_start") is not holder.begin for frame in frames)


def patience_with(study: optuna.Study, stale_after: float | None) -> float | None:
    """Return the seconds of silence after which a run counts as dead.

    None for never. A gRPC proxy passes no heartbeat on.
    """
    proxies = getattr(optuna.storages, "GrpcStorageProxy", ())  # since Optuna 4.2
    if stale_after is not None or not isinstance(log.storage_of(study), proxies):
        return stale_after
    worker = worker_of(study)
    worker.warn(
        "proxy",
        "A gRPC proxy passes no heartbeat on: a run counts as dead once it was silent for "
        f"{worker.patience.proxied:.0f} s. Pass `stale_after=` to DataAllocationSampler for "
        "another time.",
    )
    return worker.patience.proxied


def come_back(study: optuna.Study, trial: log.AnyTrial) -> Run:
    """Replace a lost trial by an idle one with a new number.

    Others have failed the lost one, or taken it.

    Optuna fails a run whose heartbeat has stopped. If its worker returned and stored its end,
    Optuna would raise out of `study.optimize`.
    """
    worker = worker_of(study)
    _, n_learners, fixed = worker.known.newest
    run = Run(
        None, n_learners=n_learners, reason=TAKEN_FOR_DEAD, worker=this_worker(), fixed=fixed
    )
    created = log.stand_in(study, trial, run)
    worker.look()
    _logger.warning(
        "Another worker has taken over this trial, or took its worker for dead. "
        "Trial %d replaces it.",
        created.number,
    )
    return run


def end_lost(study: optuna.Study, trial: optuna.Trial) -> TurnOverError:
    """End a run that others have given up, failed or taken. Return the error for its objective."""
    worker, number = worker_of(study), trial.number
    # Others can only set FAIL. Any other end was told here, and needs no trial in its place.
    state = log.as_stored(study, trial).state
    is_told = state in (TrialState.COMPLETE, TrialState.PRUNED)
    is_told |= state == TrialState.FAIL and number not in worker.assigned  # by this process
    if is_told and not host.is_optimizing(study):
        return TurnOverError(f"trial {number} was told before")
    is_taken = worker.is_taken(number)  # asked before the look too, which may show it given up
    if number not in worker.look().unfinished or is_taken or worker.is_taken(number):
        # It is another worker's: neither end it here nor release it later as left behind.
        worker.assigned.pop(number, None)
        worker.holders.pop(number, None)
        come_back(study, trial)
    return TurnOverError(TAKEN_FOR_DEAD)


def release_own(study: optuna.Study, worker: Worker, number: int) -> None:
    """Fail a trial that this process started and never ended."""
    with suppress(RuntimeError, KeyError):  # somebody has ended it already
        log.end(study, worker.reader.trial(number))
        _logger.warning("Trial %d was failed: its thread left it unfinished.", number)


def release_left_behind(study: optuna.Study, worker: Worker) -> None:
    """Fail trials that an earlier `optimize` of this study object has left.

    Those of other objects are failed once a claim has looked at the study.
    """
    left = [number for number, holder in [*worker.holders.items()] if is_left(holder)]
    if left:
        worker.look()  # forgets those that have ended since
    for number in left:
        if worker.holders.pop(number, None) is not None:  # else another thread has taken it
            worker.assigned.pop(number, None)
            release_own(study, worker, number)


def enqueue_abandoned(study: optuna.Study, worker: Worker, but_for: int) -> bool:
    """Enqueue again the learners whose worker died as it took them from the queue.

    Such a trial has no worker's id. Its worker may be alive and of another sampler, so the trial
    itself stays unchanged. If the worker returns, both trials have the same parameters and are one
    learner. Returns whether there were any.
    """
    is_any = False
    for number in worker.known.queued("running"):
        trial = worker.known.unfinished[number]
        is_touched = trial.params or trial.observations or number == but_for
        if is_touched or worker.silence(number) < worker.patience.abandoned:
            continue
        is_any = True
        log.enqueue_anew(study, worker.reader.trial(number))
        _logger.warning(
            "Enqueued trial %d was started and abandoned; its parameters are enqueued again.",
            number,
        )
    return is_any


@lru_cache(maxsize=1)
def _worker(pid: int) -> str:
    return f"{_machine()}|{pid}|{_start_time(pid)}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return an id of this machine or container.

    Others may have the same name. The machine's own id is confidential, so only a hash of it is
    stored.
    """
    name, machine_id, *namespace = _machine_in_clear().split("/", 2)
    key = hmac.new(machine_id.encode(), b"optuna_daub", "sha256").hexdigest()[:16]
    return "/".join([name, key if machine_id else "", *namespace])


@lru_cache(maxsize=1)
def _machine_in_clear() -> str:
    """Return the id without hashing, as older studies stored it."""
    try:
        machine_id = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine_id = ""
    try:
        return f"{socket.gethostname()}/{machine_id}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()}/{machine_id}"


@lru_cache(maxsize=1)
def _boot() -> str:
    """Return an id of this boot of the machine. Empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Return the start of a process: boot id and clock ticks since the boot.

    "zombie" for a process that has ended; empty if nothing can be read. Without boot ids it is the
    time of day.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return "zombie"
        if not _boot():
            return f"/{process.create_time():.2f}"
        # psutil adds the boot's time, which moves if the clock is set, to the ticks, which do not.
        booted, created = psutil.boot_time(), process.create_time()
        if psutil.boot_time() != booted:  # the clock was set between the two reads
            booted, created = psutil.boot_time(), psutil.Process(pid).create_time()
        return f"{_boot()}/{round((created - booted) * os.sysconf('SC_CLK_TCK'))}"
    except (psutil.Error, OSError):
        return ""


def _is_gone(pid: int) -> bool:
    """Return whether there is certainly no process with this id.

    A process that psutil does not find may be hidden; sending signal 0 still finds it.
    """
    if os.name != "posix":  # Windows hides nothing, and `os.kill` would end the process
        return not psutil.pid_exists(pid)
    try:
        os.kill(pid, 0)
    except OSError as error:  # a process of another user raises too
        return isinstance(error, ProcessLookupError)
    return False
