"""BLAS threads: decisions run on one thread, trainings on as many as the user has set.

The matrices of a decision are small. On busy cores the threads of BLAS wait for each other longer
than they compute: a solve of 100 rows took 180 ms on two threads, 0.9 ms on one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

from optuna_daub.study import host


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a block, or a decorated function, on one BLAS thread; then restore the old number.

    The number belongs to the whole process. While another Python thread may be training (`n_jobs`,
    other `study.optimize` calls, ask-and-tell beside any thread) it stays unchanged. Otherwise
    that training would become slow. And a library in it that saves and restores the number, as
    scikit-learn's KMeans does, could leave the process with one thread for good.
    """
    if threading.active_count() > 1 and not host.is_only_job():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return the handle of the BLAS libraries that decisions use, found once per process.

    Finding them takes some 10 ms, setting the number 0.02 ms. Libraries that the user loads later
    are not included; no decision runs on them.
    """
    import scipy.linalg  # noqa: F401  # loads scipy's BLAS, another one than numpy's

    return ThreadpoolController()
