"""Which process runs a trial, and whether that process is surely dead."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from pathlib import Path


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
