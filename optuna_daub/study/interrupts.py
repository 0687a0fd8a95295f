"""Interrupts: Ctrl-C amid a write must not lock a database to its own worker and to others."""

from __future__ import annotations

import traceback

import optuna

from optuna_daub.study import log


def end_interrupted(study: optuna.Study, error: BaseException | None) -> None:
    """End the transaction that an interrupt has broken off, so that its worker can write again.

    On SQLite it locks the whole file, also to the worker itself, which then cannot store how its
    trial ended, while others wait with it.
    """
    if error is None or isinstance(error, Exception):
        return  # Optuna has rolled it back
    while error is not None:
        # A statement is alive as long as the frames of the traceback that have it.
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__", "").startswith("sqlalchemy."):
                frame.clear()
        error = error.__context__
    storage = log.storage_of(study)
    engine = getattr(getattr(storage, "_backend", storage), "engine", None)
    if engine is not None:
        # Slow to import, so only where there is an engine.
        from sqlalchemy.pool import QueuePool

        if isinstance(engine.pool, QueuePool):  # any other may hold a database in memory
            engine.dispose()  # a commit that was broken off has gone back to the pool as it was
