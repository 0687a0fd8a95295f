"""Warnings and threads of the process while tables are prepared and searched."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController
from threadpoolctl import threadpool_limits

from optuna_daub.objective.process import Changes
from optuna_daub.objective.process import logs_from


_CHANGES = Changes()


@contextmanager
def quiet(*loggers: str, hidden: type[Warning] = Warning) -> Iterator[None]:
    """Hide the logs of packages, and warnings of a kind.

    If all kinds are hidden, warnings that pass the filters are not shown either. Forests reset the
    filters in each of their threads, and if these do so at the same time, no filter may be left.

    >>> with quiet("optuna"):
    ...     warnings.warn("not seen", stacklevel=1)
    """

    def change(undo: ExitStack) -> None:
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", hidden)
        if hidden is Warning:
            warnings.showwarning = lambda *_args, **_options: None

    with logs_from(logging.CRITICAL, *loggers), _CHANGES.during(change):
        yield


@contextmanager
def limited(jobs: int) -> Iterator[None]:
    """Limit threads of linear algebra, and of OpenMP in this thread, to `jobs`.

    Models with an argument for their number of threads do not need it; those without one take a
    thread for each core.
    """

    def change(undo: ExitStack) -> None:
        undo.enter_context(threadpool_limits(_at_most(jobs, "blas"), user_api="blas"))

    # Every thread has its own limit of OpenMP, so searches in other threads do not change it.
    with threadpool_limits(_at_most(jobs, "openmp"), user_api="openmp"), _CHANGES.during(change):
        yield


def _at_most(jobs: int, api: str) -> int:
    """Return a number of threads, or the present one if that is smaller."""
    libraries = ThreadpoolController().select(user_api=api).info()
    return min([jobs, *(int(library["num_threads"]) for library in libraries)])
