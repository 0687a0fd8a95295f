"""Liveness: which runs have lost their worker, so that others may resume their learners.

A run whose process is known to be gone (on this machine), or whose heartbeat has stopped
(databases; by Optuna), is failed. One that has been silent for `stale_after` seconds may be alive:
it loses its learner and no more, and its worker, should it come back, ends it. Silence is measured
by the clock of the process that listens, from the moment at which it saw the run change last:
clocks of two machines are never compared. A trial without a run of ours is never touched.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study import storage as stored
from optuna_daub.study.state import State
from optuna_daub.study.state import state_of
from optuna_daub.study.storage import Run


ABANDONED_SECONDS = 30.0
"""How long an enqueued trial may stay as it was taken from the queue: being assigned its learner
takes milliseconds."""

PROXY_STALE_AFTER = 3600.0
"""The `stale_after` of studies behind a gRPC proxy, which passes no heartbeat on."""

CHECKED_SECONDS = 1.0
"""How long a worker goes on before it asks whether its run is still its own: a look takes some
milliseconds, and no worker is taken for dead as soon."""

GIVEN_UP = "its worker was taken for dead, and the learner is free for others"

_logger = logging.getLogger(__name__)


def this_worker() -> str:
    """Return an id of this process: machine, process id, start time."""
    return _worker(os.getpid())


def is_dead(worker: str) -> bool:
    """Return whether `worker` ran on this machine and its process is gone.

    Elsewhere, and where the system does not tell (no /proc, or one that hides what other users
    run), nothing is sure: False. Heartbeats or `stale_after` are for those.
    """
    machine, pid, start_time = worker.split("|") if worker.count("|") == 2 else ("", "", "")
    if not start_time or machine != _machine():
        return False
    began = _start_time(int(pid))
    return began != start_time if began else _is_gone(int(pid))


def record_heartbeat(study: optuna.Study, trial: FrozenTrial) -> None:
    """Give a trial its first heartbeat, where the storage has any.

    Optuna gives it only once the objective runs: a worker that died before would hold its learner
    for ever.
    """
    if may_be_failed(study):
        study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]


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
    """Fail the runs whose worker is surely dead, and give up those silent for `stale_after`.

    Returns whether there were any.
    """
    is_any = False
    for number, run in [*state.runs.items()]:
        # A retry of a dead worker's trial bears its mark until its own worker has put its own.
        if number == but_for or run.trial != number:
            continue
        silent = state.silence(number)
        is_silent = stale_after is not None and run.learner is not None and silent > stale_after
        trial = state.unfinished[number]
        with suppress(RuntimeError):  # another worker, or its own, was faster
            if is_dead(run.worker):
                is_any = True
                study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                _logger.warning("Trial %d was failed: its worker is dead.", number)
            elif is_silent and not state.has_changed(number):
                is_any = True
                stored.write_given_up(study, trial)
                _logger.warning("Trial %d was given up: silent for %.0f s.", number, silent)
    return is_any


def patience_with(study: optuna.Study, stale_after: float | None) -> float | None:
    """Return after how many seconds of silence a run of the study counts as dead, None: never."""
    proxies = getattr(optuna.storages, "GrpcStorageProxy", ())  # since Optuna 4.2
    if stale_after is not None or not isinstance(study._storage, proxies):
        return stale_after
    return PROXY_STALE_AFTER


def may_be_failed(study: optuna.Study) -> bool:
    """Return whether others may fail a trial of a worker that is alive: only by heartbeat."""
    return optuna.storages._heartbeat.is_heartbeat_enabled(study._storage)


def is_over(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> bool:
    """Return whether the storage has a trial as finished, whoever has seen to it."""
    return study._storage.get_trial(trial._trial_id).state.is_finished()


def is_failed(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> bool:
    """Return whether others have failed the trial of this worker, which they took for dead."""
    return may_be_failed(study) and is_over(study, trial)


def come_back(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> Run:
    """Let a trial that others have failed end without an error, as an idle trial of a new number.

    Optuna fails a run whose heartbeat has stopped, and raises out of `study.optimize` where its
    worker comes back and tells how it ended.
    """
    state = state_of(study)
    run = Run(None, n_learners=state.n_learners, reason=GIVEN_UP, worker=this_worker())
    trial._trial_id = stored.create_idle(study, run, trial)
    stand_in = study._storage.get_trial(trial._trial_id)
    if isinstance(trial, optuna.Trial):
        trial._cached_frozen_trial = stand_in
    state.sync()
    _logger.warning(
        "This worker was taken for dead while it trained; trial %d stands in for its last one.",
        stand_in.number,
    )
    return run


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
    is_any = False
    for trial in state.enqueued(TrialState.RUNNING):
        is_touched = trial.params or trial.intermediate_values or trial.number == but_for
        if is_touched or state.silence(trial.number) < ABANDONED_SECONDS:
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
    """Return when a process began: boot and the kernel's ticks.

    "zombie" of one that has ended and trains nothing; empty where nothing can be read.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "zombie" if state == "Z" else f"{boot}/{fields[18]}"


def _is_gone(pid: int) -> bool:
    """Return whether there is surely no process of this id."""
    if os.name != "posix":  # elsewhere `os.kill` ends the process
        return False
    try:
        os.kill(pid, 0)
    except OSError as error:  # also where it is another user's
        return isinstance(error, ProcessLookupError)
    return False
