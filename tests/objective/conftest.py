"""Fixtures for all tests of the objective."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.objective.studies import Witness


@pytest.fixture(autouse=True)
def _fresh_witness() -> Iterator[None]:
    yield
    Witness.fits.clear()
    Witness.predictions.clear()
