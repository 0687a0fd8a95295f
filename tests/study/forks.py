"""Processes of tests, which start within milliseconds: all imports were made before."""

from __future__ import annotations

import multiprocessing


CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "tests.study.process_study",
        "tests.study.forked",
        # What a database is opened with, which Optuna imports when the first one is.
        "alembic.command",
        "optuna.storages._rdb.models",
    ]
)
