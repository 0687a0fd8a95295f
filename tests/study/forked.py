"""Functions that tests run in processes of their own, which have imported them already."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import optuna

from optuna_daub.study import liveness
from tests.study.forks import CONTEXT
from tests.study.table_study import TableObjective
from tests.study.table_study import killing
from tests.study.table_study import one_number
from tests.study.table_study import table_study


def in_new_process(target: Callable[..., None], *args: Any) -> int | None:
    """Run a function of this module in a process of its own and return its exit code."""
    process = CONTEXT.Process(target=target, args=args)
    process.start()
    process.join(60)
    assert not process.is_alive(), "the study does not end"
    return process.exitcode


def is_another(worker: str) -> None:
    """Assert that this process is another worker than one that is not dead."""
    assert liveness.this_worker() != worker
    assert not liveness.is_dead(worker)


def be_killed(url: str, when: str, row: int, size: int) -> None:
    """Run a study, and be killed at a probe."""
    table_study(2, storage=url).optimize(TableObjective(**{when: killing(row, size)}))


def go_on(url: str) -> None:
    """Run a study to its end."""
    table_study(2, storage=url).optimize(TableObjective())


def train_asked(pickled: bytes) -> None:
    """Train what another process has asked for, and leave the telling to it."""
    with suppress(optuna.TrialPruned):
        one_number(pickle.loads(pickled))
