"""Fixtures of the tests of studies."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.storages import InMemoryStorage

from tests.study.table_study import Place
from tests.study.table_study import sqlite


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place for a study that several study objects can open."""
    return InMemoryStorage() if request.param == "memory" else sqlite(tmp_path)
