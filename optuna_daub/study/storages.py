"""Storages that users name by a URL."""

from __future__ import annotations

import gc
import traceback
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.storages import get_storage

from optuna_daub.core.checks import brief
from optuna_daub.study import log
from optuna_daub.study.messages import message_of


def opened(storage: Any) -> BaseStorage:
    """Return the storage of a search, in memory for None.

    Raises:
        ValueError: if it is neither a storage of Optuna nor the URL of one.
    """
    rule = '`storage` must be a URL such as "sqlite:///study.db", a storage of Optuna or None'
    if not isinstance(storage, str | BaseStorage | None):
        raise ValueError(f"{rule}, but got {brief(storage)}.")
    try:
        return get_storage(storage)
    except Exception as error:  # each database has its own; the URL may hold a password
        raise ValueError(f"{rule}, but this one cannot be opened: {message_of(error)}") from error


def end_interrupted(study: optuna.Study, error: BaseException | None) -> None:
    """End a transaction that an interrupt has broken off.

    So this worker can write again. On SQLite such a transaction locks the whole file for all
    workers, including this one, which then could not store how its trial ended.
    """
    if error is None or isinstance(error, Exception):
        return  # Optuna has rolled it back
    while error is not None:
        # A statement stays open, and locks the file, as long as anything refers to it: a frame of
        # the traceback that the storage has called (of SQLAlchemy or of its listeners), or a cycle
        # of such frames and results.
        is_of_storage = False
        for frame, _ in traceback.walk_tb(error.__traceback__):
            module = frame.f_globals.get("__name__", "")
            is_of_storage = is_of_storage or module.startswith(("optuna.storages.", "sqlalchemy."))
            if is_of_storage:
                frame.clear()
        error = error.__context__
    gc.collect()
    storage = log.storage_of(study)
    engine = getattr(getattr(storage, "_backend", storage), "engine", None)
    if engine is not None:
        # Slow to import, so only if there is an engine.
        from sqlalchemy.pool import QueuePool

        if isinstance(engine.pool, QueuePool):  # any other may hold a database in memory
            engine.dispose()  # a broken commit went back to the pool unchanged
