"""Liveness: which runs have lost their worker, so that others may resume their learners.

A run whose process is known to be gone (on this machine), or whose heartbeat has stopped
(databases; by Optuna), is failed. One that has been silent for `stale_after` seconds may be alive:
it loses its learner and no more, and its worker, should it come back, ends it. Silence is measured
by the clock of the process that listens, from the moment at which it saw the run change last:
clocks of two machines are never compared. A trial without a run of ours is never touched.
"""

from __future__ import annotations

import hmac
import logging
import os
import socket
import threading
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import optuna
import psutil

from optuna_daub.study import log
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.records import Run
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


def this_worker() -> str:
    """Return an id of this process: machine, process id, boot and start time."""
    return _worker(os.getpid())


def is_dead(worker: str) -> bool:
    """Return whether `worker` ran on this machine and its process is gone.

    Nothing is sure of other machines, of a clone of this one (which has its name and id, but was
    booted by itself), and if the system does not tell (no /proc, or one that hides what other
    users run): False. Heartbeats or `stale_after` are for those.
    """
    machine, pid, began = worker.split("|") if worker.count("|") == 2 else ("", "", "")
    if not began or machine not in (_machine(), _machine_in_clear()):
        return False
    if began.rpartition("/")[0] != _boot():
        return False
    now = _start_time(int(pid))
    return now != began if now else _is_gone(int(pid))


def fail_stale(study: optuna.Study) -> None:
    """Fail the trials whose heartbeat stopped; Optuna itself only looks between trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def release(study: optuna.Study, worker: Worker, stale_after: float | None, but_for: int) -> bool:
    """Free what others than trial `but_for` hold and are surely not going to train.

    Returns whether there was any.
    """
    is_any = release_dead(study, worker, stale_after, but_for)
    return enqueue_abandoned(study, worker, but_for) or is_any


def release_dead(
    study: optuna.Study, worker: Worker, stale_after: float | None, but_for: int
) -> bool:
    """Fail the runs whose worker is surely dead, and give up those silent for `stale_after`.

    Returns whether there were any.
    """
    is_any = False
    for number, run in worker.known.runs.items():
        # A retry of a dead worker's trial bears its mark until its own worker has put its own.
        if number == but_for or run.trial != number:
            continue
        silent = worker.silence(number)
        is_silent = stale_after is not None and run.learner is not None and silent > stale_after
        with suppress(RuntimeError):  # another worker, or its own, was faster
            if is_dead(run.worker):
                is_any = True
                log.end(study, worker.reader.trial(number))
                _logger.warning("Trial %d was failed: its worker is dead.", number)
            # Read once more: this process may have been stopped itself since it looked.
            elif is_silent and not worker.has_changed(number):
                is_any = True
                log.write_given_up(study, worker.reader.trial(number))
                _logger.warning("Trial %d was given up: silent for %.0f s.", number, silent)
    return is_any


def patience_with(study: optuna.Study, stale_after: float | None) -> float | None:
    """Return after how many seconds of silence a run counts as dead, None for never.

    A gRPC proxy passes no heartbeat on.
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
    """Let a trial that others have failed end without an error, as an idle trial of a new number.

    Optuna fails a run whose heartbeat has stopped, and raises out of `study.optimize` where its
    worker comes back and tells how it ended.
    """
    worker = worker_of(study)
    n_learners = worker.known.n_learners
    run = Run(None, n_learners=n_learners, reason=GIVEN_UP, worker=this_worker())
    created = log.stand_in(study, trial, run)
    worker.look()
    _logger.warning(
        "Another worker has this one's trial, or took it for dead; trial %d stands in for it.",
        created.number,
    )
    return run


def release_own(study: optuna.Study, worker: Worker, number: int) -> None:
    """Give up a trial that this process began and left without an end."""
    with suppress(RuntimeError, KeyError):  # it has ended, whoever has seen to it
        log.end(study, worker.reader.trial(number))
        _logger.warning("A trial was given up: its thread left it unfinished.")


def enqueue_abandoned(study: optuna.Study, worker: Worker, but_for: int) -> bool:
    """Enqueue anew the learners whose worker died as it took them from the queue.

    Such a trial bears no mark of its worker, which may be of another sampler, and alive: so it is
    left as it is. If it comes back, both have the same parameters and are one learner. Returns
    whether there were any.
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
            "Enqueued trial %d was begun and left; its parameters are enqueued once more.", number
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
    """Return what tells this machine, or container, from others that have its name.

    The machine's id is a secret that stands for it: only a hash of it, of no use to others, goes
    into the storage.
    """
    host, machine_id, *namespace = _machine_in_clear().split("/", 2)
    key = hmac.new(machine_id.encode(), b"optuna_daub", "sha256").hexdigest()[:16]
    return "/".join([host, key if machine_id else "", *namespace])


@lru_cache(maxsize=1)
def _machine_in_clear() -> str:
    """Return the same as studies had it that were begun before the id was hashed."""
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
    """Return an id of this boot of the machine; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Return when a process began: boot and clock ticks since then.

    "zombie" of one that has ended and trains nothing; empty if nothing can be read. Without ids
    of boots it is the time of day.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return "zombie"
        if not _boot():
            return f"/{process.create_time():.2f}"
        # psutil adds the time of the boot, which moves with the clock, to ticks, which do not.
        booted, created = psutil.boot_time(), process.create_time()
        if psutil.boot_time() != booted:  # the clock was set in between
            booted, created = psutil.boot_time(), psutil.Process(pid).create_time()
        return f"{_boot()}/{round((created - booted) * os.sysconf('SC_CLK_TCK'))}"
    except (psutil.Error, OSError):
        return ""


def _is_gone(pid: int) -> bool:
    """Return whether there is surely no process of this id.

    A process that psutil does not find may be hidden; a signal finds it.
    """
    if os.name != "posix":  # elsewhere nothing is hidden, and `os.kill` ends the process
        return not psutil.pid_exists(pid)
    try:
        os.kill(pid, 0)
    except OSError as error:  # also where it is another user's
        return isinstance(error, ProcessLookupError)
    return False
