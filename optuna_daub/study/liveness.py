"""Liveness: which runs have lost their worker, so that others may resume their learners.

A run is given up where its process is known to be gone (on this machine), where its heartbeat has
stopped (databases), or where it has been silent for `stale_after` seconds. Silence is measured by
the clock of the process that listens, from the moment at which it saw the run change last: clocks
of two machines are never compared. A trial without a run of ours is never touched.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study import storage as stored
from optuna_daub.study.state import State


ABANDONED_SECONDS = 30.0
"""How long an enqueued trial may stay as it was taken from the queue: being assigned its learner
takes milliseconds."""

_logger = logging.getLogger(__name__)


def this_worker() -> str:
    """Return an id of this process: machine, process id, start time."""
    return _worker(os.getpid())


def is_dead(worker: str) -> bool:
    """Return whether `worker` ran on this machine and its process is gone.

    Elsewhere, and where the system does not tell (no /proc), nothing is sure: False. Heartbeats
    or `stale_after` are for those.
    """
    machine, pid, start_time = worker.split("|") if worker.count("|") == 2 else ("", "", "")
    if not start_time or machine != _machine():
        return False
    return _start_time(int(pid)) != start_time


def record_heartbeat(study: optuna.Study, trial: FrozenTrial) -> None:
    """Give a trial its first heartbeat, where the storage has any.

    Optuna gives it only once the objective runs: a worker that died before would hold its learner
    for ever.
    """
    storage = study._storage
    if optuna.storages._heartbeat.is_heartbeat_enabled(storage):
        storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]


def thinking(
    study: optuna.Study, trial: FrozenTrial
) -> optuna.storages._heartbeat.BaseHeartbeatThread:
    """Return a context in which a trial's heart beats: a base sampler may take minutes."""
    return optuna.storages._heartbeat.get_heartbeat_thread(trial._trial_id, study._storage)


def fail_stale(study: optuna.Study) -> None:
    """Fail the trials whose heartbeat stopped; Optuna itself only looks between trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def release_dead(
    study: optuna.Study, state: State, stale_after: float | None, but_for: int
) -> bool:
    """Give up the runs whose worker is surely dead, or silent for `stale_after` seconds.

    Returns whether there were any.
    """
    now = time.monotonic()
    is_any = False
    for number, run in [*state.runs.items()]:
        # A retry of a dead worker's trial bears its mark until its own worker has put its own.
        if number == but_for or run.trial != number:
            continue
        silent = now - state.unchanged_since[number]
        is_silent = stale_after is not None and run.learner is not None and silent > stale_after
        if is_silent or is_dead(run.worker):
            is_any = True
            with suppress(RuntimeError):  # another worker, or its own, was faster
                trial_id = state.unfinished[number]._trial_id
                study._storage.set_trial_state_values(trial_id, TrialState.FAIL)
                _logger.warning("Trial %d was given up: its worker is dead or silent.", number)
    return is_any


def release_own(study: optuna.Study, trial_id: int) -> None:
    """Give up a trial that this process began and left without an end."""
    with suppress(RuntimeError, KeyError):
        study._storage.set_trial_state_values(trial_id, TrialState.FAIL)
        _logger.warning("A trial was given up: its thread left it unfinished.")


def enqueue_abandoned(study: optuna.Study, state: State, but_for: int) -> bool:
    """Enqueue anew the learners whose worker died as it took them from the queue.

    Such a trial bears no mark of its worker, which may be of another sampler, and alive: so it is
    left as it is. If it comes back, both have the same parameters and are one learner. Returns
    whether there were any.
    """
    now = time.monotonic()
    is_any = False
    for trial in state.enqueued(TrialState.RUNNING):
        is_touched = trial.params or trial.intermediate_values or trial.number == but_for
        if is_touched or now - state.unchanged_since[trial.number] < ABANDONED_SECONDS:
            continue
        is_any = True
        stored.enqueue_anew(study, trial)
        _logger.warning(
            "Enqueued trial %d was begun and left; its parameters are enqueued once more.",
            trial.number,
        )
    return is_any


def is_thread_alive(ident: int) -> bool:
    """Return whether a thread of this process is still there."""
    return any(thread.ident == ident for thread in threading.enumerate())


@lru_cache(maxsize=1)
def _worker(pid: int) -> str:
    return f"{_machine()}|{pid}|{_start_time(pid)}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return what tells this machine, or container, from others that have its name."""
    try:
        machine_id = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine_id = ""
    try:
        return f"{socket.gethostname()}/{machine_id}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()}/{machine_id}"


def _start_time(pid: int) -> str:
    """Return when a process began: boot and the kernel's ticks; empty where none can be read."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else f"{boot}/{fields[18]}"
