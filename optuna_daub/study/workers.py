"""Which process runs a trial, and whether that process is surely dead."""

from __future__ import annotations

import os
import socket
from functools import lru_cache


def this_worker() -> str:
    """Return an id of this process: machine, process id, start time."""
    return _worker(os.getpid())


def is_dead(worker: str) -> bool:
    """Return whether `worker` ran on this machine and its process is gone.

    Elsewhere, and where the system does not tell (no /proc), nothing is sure: False. Heartbeats
    or `stale_after` are for those.
    """
    machine, pid, start_time = worker.split("|") if worker.count("|") == 2 else ("", "", "")
    if not start_time or machine != _machine() or int(pid) == os.getpid():
        return False
    return _start_time(int(pid)) != start_time


@lru_cache(maxsize=1)
def _worker(pid: int) -> str:
    return f"{_machine()}|{pid}|{_start_time(pid)}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return the host and, since containers may share a host's name, the process namespace."""
    try:
        return f"{socket.gethostname()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _start_time(pid: int) -> str:
    """Return when a process began in the kernel's ticks, empty where there is none to be read."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            state, *fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]
