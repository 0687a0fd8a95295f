"""Programs set Optuna's verbosity for themselves; afterwards it is as before."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
import pytest


@pytest.fixture(autouse=True)
def verbosity() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    yield
    optuna.logging.set_verbosity(before)
