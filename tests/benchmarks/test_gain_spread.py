"""The spread of gains, on data sets where it is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gain_spread import gains
from benchmarks.gain_spread import spreads
from benchmarks.problems import Problem
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation


def problem(scores: list[float], gain: float) -> Problem:
    """Return learners that all gain as much from 100 to 1,600 examples."""
    curves = tuple(
        LearningCurve(i, (Observation(100, score), Observation(1600, score + gain)))
        for i, score in enumerate(scores)
    )
    verdicts = {curve.learner: curve.score for curve in curves}
    return Problem("alike", (100, 1600), curves, {}, verdicts)


def test_who_gain_alike_differ_from_data_set_to_data_set_only() -> None:
    known = [
        gains(problem([0.5, 0.52, 0.48, 0.2], gain), 100) for gain in np.linspace(0.0, 0.2, 21)
    ]
    assert all(len(one.of_rivals) == 3 for one in known)  # the fourth is far behind
    assert all(one.rank_of_best == 0 for one in known)
    alone, less_the_median, less_the_leaders = map(float, spreads(known))
    assert alone == pytest.approx(18.0, abs=0.2)
    assert less_the_median == less_the_leaders == 0.0
