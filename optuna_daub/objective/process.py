"""Settings of the whole process that a search changes and then restores."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextlib import ExitStack
from contextlib import contextmanager


class Changes:
    """Changes by searches that may overlap in time. The last search to end undoes them all."""

    def __init__(self) -> None:
        self._lock, self._n_users, self._undo = threading.Lock(), 0, ExitStack()

    @contextmanager
    def during(self, change: Callable[[ExitStack], object]) -> Iterator[None]:
        """Make a change. It puts its undoing on the stack that it is given."""
        with self._lock:
            self._n_users += 1
        try:
            with self._lock:
                change(self._undo)
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if not self._n_users:
                    self._undo.close()  # from the last change to the first


_LEVELS = Changes()


def logs_from(level: int, *loggers: str) -> AbstractContextManager[None]:
    """Show no logs of packages below a level.

    >>> with logs_from(logging.ERROR, "optuna"):
    ...     logging.getLogger("optuna").warning("not seen")
    """

    def change(undo: ExitStack) -> None:
        for logger in map(logging.getLogger, loggers):
            undo.callback(logger.setLevel, logger.level)
            logger.setLevel(max(logger.level, level))

    return _LEVELS.during(change)
