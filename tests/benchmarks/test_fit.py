"""The fit of the forecasts: quantiles and spreads of gains, where they are known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit.calibrated import decision_points
from benchmarks.fit.calibrated import fit_quantile
from benchmarks.fit.gain_spread import gains
from benchmarks.fit.gain_spread import spreads
from benchmarks.fit.open_intervals import held
from benchmarks.replay_problems import Problem
from benchmarks.replay_problems import made_lcdb
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


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_gains_in_proportion_to_a_quantity_have_their_quantiles_as_coefficients(
    level: float,
) -> None:
    rng = np.random.default_rng(0)
    quantity, share = rng.uniform(0.0, 0.3, 20_000), rng.uniform(0.0, 1.0, 20_000)
    terms = np.column_stack([quantity, rng.uniform(0.0, 0.3, 20_000)])
    fitted = fit_quantile(terms, quantity * share, np.ones(20_000), level)
    assert fitted == pytest.approx([level, 0.0], abs=0.02)


def test_rare_points_may_count_as_much_as_frequent_ones() -> None:
    quantity = np.random.default_rng(0).uniform(0.1, 0.3, 1_000)
    share = np.r_[np.full(900, 0.2), np.full(100, 0.6)]
    weight = np.where(share < 0.4, 1.0, 27.0)  # three quarters of the weight are on 0.6
    (fitted,) = fit_quantile(quantity[:, np.newaxis], quantity * share, weight, 0.5)
    assert fitted == pytest.approx(0.6, abs=0.02)


def test_every_data_set_weighs_the_same_and_has_one_fold() -> None:
    points = decision_points(made_lcdb(4))
    numbers = np.unique(points.openml_id)
    shares = [points.weight[points.openml_id == number].sum() for number in numbers]
    assert shares == pytest.approx([len(points.gain) / len(numbers)] * len(numbers))
    assert all(len({*points.fold[points.openml_id == number]}) == 1 for number in numbers)
    assert not (points.learner == "DummyClassifier").any()
    assert (points.gain <= points.room + 0.1).all()


@pytest.mark.parametrize(("late", "least", "most"), [(0.0, 0.85, 1.0), (0.3, 0.0, 0.6)])
def test_intervals_hold_where_learners_gain_alike_and_not_where_dear_ones_gain_late(
    late: float, least: float, most: float
) -> None:
    rng = np.random.default_rng(0)
    sizes = (500, 1000, 2000, 4000, 8000, 16_000)
    rise = 0.3 - 2.0 / np.sqrt(sizes)
    known = []
    for i in range(60):
        # Every second learner takes ten times as long, and may catch up on all the data only.
        scores = 0.5 + 0.1 * rng.random() + rise + rng.normal(0.0, 0.002, len(sizes))
        scores -= late * (i % 2) * (np.array(sizes) < 16_000)
        seconds = [size / 1000 * (1 + 9 * (i % 2)) for size in sizes]
        known.append({"point": {"kind": i % 2}, "sizes": sizes, "scores": scores, "s": seconds})
    found = [pair for seed in range(5) for pair in held(known, seed)[30]]
    inside, above = np.mean(found, axis=0)
    assert least <= inside <= most
    assert inside + above == pytest.approx(1.0), "none ends below"
