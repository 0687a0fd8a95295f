"""How often forecasts hold, if their distribution is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit.process import STATED
from benchmarks.fit.process import _held
from optuna_daub.core.forecasts.student import Student


@pytest.mark.parametrize(("wider", "is_true"), [(1.0, True), (3.0, False)])
def test_what_is_held_is_what_is_stated_if_and_only_if_the_truth_is_drawn_from_the_forecast(
    wider: float, is_true: bool
) -> None:
    truths = wider * np.random.default_rng(0).standard_t(4, size=2000)
    shares = np.mean([_held(Student(0.0, 1.0), float(truth)) for truth in truths], axis=0)
    assert (np.abs(shares - STATED) < 0.04).all() == is_true
