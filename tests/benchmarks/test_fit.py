"""Share of forecasts that hold, if their distribution is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit.process import STATED
from benchmarks.fit.process import held
from optuna_daub.core import Forecast


@pytest.mark.parametrize(("wider", "is_true"), [(1.0, True), (3.0, False)])
def test_what_is_held_is_what_is_stated_if_and_only_if_the_truth_is_drawn_from_the_forecast(
    wider: float, is_true: bool
) -> None:
    truths = wider * np.random.default_rng(0).standard_t(2, size=2000)
    shares = held(Forecast(np.zeros(2000), np.ones(2000)), truths).mean(axis=0)
    assert (np.abs(shares - STATED) < 0.04).all() == is_true
