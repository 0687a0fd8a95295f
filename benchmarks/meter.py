"""Cost of a run: seconds, rows trained on, memory; each run in a process of its own."""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from functools import wraps
from multiprocessing.connection import Connection
from typing import Any


SPAWN = multiprocessing.get_context("spawn")
MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10
"""In the unit of `ru_maxrss`: bytes on macOS, kilobytes elsewhere."""


def cpu_seconds() -> float:
    """Return what this process, all its threads and its finished children have used."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


class Meter:
    """Counts the seconds and the training rows of a run.

    Fits are counted at their classes, so nothing handed to a rival is wrapped: a fit inside
    another (a step of a pipeline, a tree of a bag) is part of that one.
    """

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0
        self.fits = self.examples = 0
        self._lock = threading.Lock()
        self._inside = threading.local()

    def watch(self, classes: Iterable[type]) -> None:
        """Count the fits of some classes from now on, in this process."""
        for kind in classes:
            kind.fit = self._counted(kind.fit)  # type: ignore[attr-defined]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the seconds inside."""
        cpu, wall = cpu_seconds(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu += cpu_seconds() - cpu
            self.wall += time.perf_counter() - wall

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the seconds inside out of those that are counted around."""
        cpu, wall = cpu_seconds(), time.perf_counter()
        yield
        self.cpu -= cpu_seconds() - cpu
        self.wall -= time.perf_counter() - wall

    def readings(self) -> Mapping[str, float]:
        """Return all counts, and the largest memory that the process has had so far."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE
        counts = {"fits": self.fits, "examples": self.examples}
        return {"cpu": self.cpu, "wall": self.wall, **counts, "peak_mb": round(peak)}

    def _counted(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fit)
        def counted(estimator: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "fit", False):
                return fit(estimator, X, *args, **kwargs)
            with self._lock:
                self.fits += 1
                self.examples += X.shape[0]
            self._inside.fit = True
            try:
                return fit(estimator, X, *args, **kwargs)
            finally:
                self._inside.fit = False

        return counted


def apart(
    prepare: Callable[[], Callable[[], Mapping[str, Any]]], limit: float | None = None
) -> Mapping[str, Any]:
    """Run in a new process, and stop it if it takes too long.

    Args:
        prepare: what is not timed, such as reading data; returns what to run.
        limit: CPU seconds for the run; None for no limit.

    Returns:
        What the run returned; if it was stopped or failed, `stopped` or `failed` and why.
    """
    here, there = SPAWN.Pipe()
    worker = SPAWN.Process(target=_work, args=[prepare, limit, there])
    worker.start()
    there.close()
    try:
        result: Mapping[str, Any] = here.recv()
    except EOFError:
        result = {}
    worker.join()
    if worker.exitcode == -signal.SIGXCPU:
        return {"stopped": f"after {limit:,.0f} CPU s"}
    return result or {"failed": f"the process ended with {worker.exitcode}"}


def _work(
    prepare: Callable[[], Callable[[], Mapping[str, Any]]], limit: float | None, pipe: Connection
) -> None:
    warnings.simplefilter("ignore")  # of learners that do not suit the data
    try:
        run = prepare()
        if limit is not None:
            end = math.ceil(cpu_seconds() + limit)
            resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        pipe.send(run())
    except Exception as error:
        traceback.print_exc()
        pipe.send({"failed": f"{type(error).__name__}: {str(error)[:200]}"})
