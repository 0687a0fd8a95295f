"""Which process runs a trial, whether that process is surely dead, and who has only begun."""

from __future__ import annotations

import os
import socket
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from optuna.trial import FrozenTrial


UNDEALT_SECONDS = 30.0
"""How long a trial that was dealt nothing keeps a learner's place: dealing takes milliseconds."""
TIME_ZONE_STEP = 900.0
"""Seconds by multiples of which the local times of two machines may differ."""


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


def is_just_begun(trial: FrozenTrial) -> bool:
    """Return whether a trial was begun a moment ago, by a worker in whatever time zone.

    Optuna stores the worker's local time, of which only the part below `TIME_ZONE_STEP` says
    anything elsewhere. So an old trial is taken for a new one for a minute of every quarter hour.
    """
    age = (datetime.now() - (trial.datetime_start or datetime.now())).total_seconds()
    return (age + UNDEALT_SECONDS) % TIME_ZONE_STEP < 2 * UNDEALT_SECONDS


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
