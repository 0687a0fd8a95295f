"""The closed forms of forecasts against numeric integration and simulation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import logistic

from optuna_daub.core import Certain
from optuna_daub.core import Forecast
from optuna_daub.core import Forecasts
from optuna_daub.core import Logistic
from optuna_daub.core import Quantiles
from tests.strategies import certains
from tests.strategies import forecasts
from tests.strategies import levels
from tests.strategies import logistics
from tests.strategies import quantiles


probabilities = st.floats(0.01, 0.99)
positive = st.floats(1e-6, 10)

SHAPES = [
    (0.8, 0.02, math.inf),
    (0.8, 0.02, 0.81),
    (0.8, 0.02, 0.8),
    (-55.0, 3.0, math.inf),
    (0.0, 1e-4, 3e-4),
]
"""Location, scale and limit."""

BOTH = np.array([0.5, 0.9])

every_shape = pytest.mark.parametrize(("location", "scale", "limit"), SHAPES)


def integral(forecast: Forecast, over: float = -math.inf) -> float:
    """Return E[max(0, score - over)], or the mean, from the quantiles: without any closed form."""

    def excess(probability: float) -> float:
        score = float(forecast.quantile(probability))
        return score if math.isinf(over) else max(0.0, score - over)

    # The tails beyond hold 1e-12 of the probability.
    pieces = [1e-12, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-6, 1 - 1e-12]
    return sum(quad(excess, a, b, limit=400)[0] for a, b in pairwise(pieces))


class TestLogistic:
    @every_shape
    def test_mean_is_the_integral_of_the_quantiles(
        self, location: float, scale: float, limit: float
    ) -> None:
        forecast = Logistic(location, scale, limit)
        assert float(forecast.mean) == pytest.approx(integral(forecast), abs=1e-5 * scale)

    @every_shape
    @pytest.mark.parametrize("deviates", [-3.0, -0.5, 0.0, 0.4, 2.5])
    def test_expected_improvement_is_the_integral_of_the_excess(
        self, location: float, scale: float, limit: float, deviates: float
    ) -> None:
        forecast, over = Logistic(location, scale, limit), location + deviates * scale
        expected = integral(forecast, over)
        assert float(forecast.expected_improvement(over)) == pytest.approx(
            expected, abs=1e-4 * scale
        )

    @every_shape
    def test_all_of_it_is_what_samples_show(
        self, location: float, scale: float, limit: float
    ) -> None:
        samples = np.random.default_rng(0).logistic(location, scale, 200_000)
        cut = np.minimum(samples, limit)
        forecast = Logistic(location, scale, limit)
        error = 5 * scale * math.pi / math.sqrt(3 * len(cut))  # five standard errors
        assert float(forecast.mean) == pytest.approx(cut.mean(), abs=error)
        over = location - scale / 2
        gained = np.maximum(0, cut - over).mean()
        assert float(forecast.expected_improvement(over)) == pytest.approx(gained, abs=error)
        for probability in (0.05, 0.4, 0.9):
            below = np.mean(cut <= forecast.quantile(probability))
            assert below >= probability - 0.01

    @given(location=levels, scale=st.floats(1e-3, 5), probability=probabilities)
    def test_without_a_limit_quantiles_are_those_of_scipy(
        self, location: float, scale: float, probability: float
    ) -> None:
        expected = logistic.ppf(probability, location, scale)
        found = float(Logistic(location, scale).quantile(probability))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_what_may_be_anything_improves_on_everything(self) -> None:
        anything = Logistic(np.array([0.0, 0.3]), np.array([math.inf, 0.0]))
        assert anything.quantile(0.5).tolist() == [0.0, 0.3]
        assert anything.quantile(0.9).tolist() == [math.inf, 0.3]
        assert anything.quantile(0.1).tolist() == [-math.inf, 0.3]
        assert anything.mean.tolist() == [0.0, 0.3]
        assert anything.expected_improvement(0.5).tolist() == [math.inf, 0.0]
        assert anything.reservation_value(np.array([0.1, 0.1])) == pytest.approx([math.inf, 0.2])

    def test_far_tails_neither_overflow_nor_vanish(self) -> None:
        forecast = Logistic(0.5, 1e-6)
        assert float(forecast.expected_improvement(0.9)) == 0.0
        assert float(forecast.expected_improvement(-1e9)) == pytest.approx(1e9)
        assert float(forecast.reservation_value(1e3)) == pytest.approx(0.5 - 1e3)
        tiny = float(Logistic(0.5, 0.01).expected_improvement(0.8))
        assert tiny == pytest.approx(0.01 * math.exp(-30), rel=1e-9)


class TestCertain:
    @given(score=levels, over=levels, cost=positive, probability=probabilities)
    def test_is_the_score(
        self, score: float, over: float, cost: float, probability: float
    ) -> None:
        forecast = Certain(score)
        assert float(forecast.mean) == float(forecast.quantile(probability)) == score
        assert float(forecast.expected_improvement(over)) == max(0.0, score - over)
        assert float(forecast.reservation_value(cost)) == score - cost

    @given(score=levels, over=levels, cost=positive)
    def test_is_a_logistic_without_width_and_quantiles_that_agree(
        self, score: float, over: float, cost: float
    ) -> None:
        known = Certain(score)
        for same in (Logistic(score, 0.0), Quantiles(BOTH, np.array([score] * 2), score)):
            assert float(same.mean) == pytest.approx(score)
            assert float(same.quantile(0.3)) == score
            assert float(same.expected_improvement(over)) == pytest.approx(
                float(known.expected_improvement(over)), abs=1e-12
            )
            assert float(same.reservation_value(cost)) == pytest.approx(score - cost)


class TestQuantiles:
    @given(found=quantiles(1))
    def test_mean_is_the_integral_of_the_quantiles(self, found: Quantiles) -> None:
        middles = (np.arange(2000) + 0.5) / 2000
        drawn = np.array([float(found.quantile(p)[0]) for p in middles])
        assert float(found.mean[0]) == pytest.approx(drawn.mean(), abs=1e-3 * (np.ptp(drawn) + 1))

    @given(found=quantiles(1), over=levels)
    def test_expected_improvement_is_the_excess_of_the_points_it_stands_for(
        self, found: Quantiles, over: float
    ) -> None:
        """Each point by the probability halfway to its neighbours; the last has all above it."""
        edges = [0.0, *np.ravel(found.probabilities)]
        points = [float(np.asarray(found.least)[0]), *found.values[0]]
        borders = [0.0, *((a + b) / 2 for a, b in pairwise(edges)), 1.0]
        expected = sum(
            (right - left) * max(0.0, point - over)
            for left, right, point in zip(borders, borders[1:], points, strict=False)
        )
        assert float(found.expected_improvement(over)[0]) == pytest.approx(expected, abs=1e-9)

    def test_is_exact_at_the_points_and_never_below_the_integral_between(self) -> None:
        found = Quantiles(np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.4, 0.8]), 0.1)
        for over in (0.1, 0.3, 0.4, 0.8):
            assert float(found.expected_improvement(over)) == pytest.approx(
                integral(found, over), abs=1e-6
            )
        for over in (0.2, 0.35, 0.6):
            assert float(found.expected_improvement(over)) > integral(found, over) + 1e-4

    def test_interpolates_and_ends_with_the_last(self) -> None:
        found = Quantiles(BOTH, np.array([[0.02, 0.10], [1.0, 2.0]]), np.array([0.0, 0.5]))
        assert found.quantile(0.5).tolist() == [0.02, 1.0]
        assert found.quantile(0.25) == pytest.approx([0.01, 0.75])
        assert found.quantile(0.8) == pytest.approx([0.08, 1.75])
        assert found.quantile(0.95).tolist() == found.quantile(0.9).tolist() == [0.10, 2.0]

    def test_what_may_be_anything_stays_so(self) -> None:
        unknown = Quantiles(BOTH, np.array([[math.inf] * 2] * 2), np.array([0.7, math.inf]))
        for probability in (0.1, 0.5, 0.7, 0.99):
            assert unknown.quantile(probability).tolist() == [math.inf] * 2
        assert unknown.mean.tolist() == [math.inf] * 2
        assert unknown.expected_improvement(0.8).tolist() == [math.inf] * 2
        assert unknown.reservation_value(np.array([0.1, 0.1])).tolist() == [math.inf] * 2


# ---- Any forecast ------------------------------------------------------------------------------


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-7, abs=1e-9)


@given(found=forecasts(1), cost=positive)
def test_the_reservation_value_is_where_the_expected_improvement_is_the_cost(
    found: Forecast, cost: float
) -> None:
    value = found.reservation_value(np.array([cost]))
    assert found.expected_improvement(value) == pytest.approx([cost], rel=1e-5, abs=1e-8)


@given(found=forecasts(1))
def test_what_costs_nothing_is_worth_it_up_to_the_largest_possible_score(found: Forecast) -> None:
    value = found.reservation_value(np.zeros(1))
    assert (value >= found.quantile(0.999) - 1e-9).all()
    assert found.expected_improvement(value) == pytest.approx([0.0], abs=1e-9)


@given(found=forecasts(1), costs=st.tuples(positive, positive))
def test_a_dearer_probe_is_worth_it_over_less(found: Forecast, costs: tuple[float, float]) -> None:
    cheap, dear = (found.reservation_value(np.array([cost])) for cost in sorted(costs))
    assert (dear <= cheap + 1e-9).all()


@given(found=forecasts(1), overs=st.tuples(levels, levels))
def test_expected_improvement_falls_by_at_most_what_is_asked_for(
    found: Forecast, overs: tuple[float, float]
) -> None:
    low, high = sorted(overs)
    at_low, at_high = (found.expected_improvement(np.array([over])) for over in (low, high))
    assert (at_high >= 0).all()
    assert (at_high <= at_low + 1e-9).all()
    assert (at_low <= at_high + (high - low) + 1e-9).all()


@given(found=forecasts(1))
def test_far_below_everything_the_expected_improvement_is_the_mean_above_it(
    found: Forecast,
) -> None:
    assert found.expected_improvement(np.array([-1e3])) == pytest.approx(
        np.asarray(found.mean) + 1e3, rel=1e-9
    )


@given(found=forecasts(1), a=probabilities, b=probabilities)
def test_quantiles_rise(found: Forecast, a: float, b: float) -> None:
    low, high = sorted([a, b])
    assert (found.quantile(low) <= found.quantile(high) + 1e-12).all()


@given(
    found=st.integers(1, 5).flatmap(lambda count: st.tuples(st.just(count), forecasts(count))),
    over=levels,
    cost=positive,
    probability=probabilities,
)
def test_many_at_once_are_as_one_by_one(
    found: tuple[int, Forecast], over: float, cost: float, probability: float
) -> None:
    count, many = found
    alone = [many.at(place) for place in range(count)]
    assert np.asarray(many.mean) == close([float(one.mean) for one in alone])
    assert many.quantile(probability) == close([float(o.quantile(probability)) for o in alone])
    assert many.expected_improvement(over) == close(
        [float(one.expected_improvement(over)) for one in alone]
    )
    of_each = np.full(count, over)
    assert many.expected_improvement(of_each) == close(many.expected_improvement(over))
    assert many.reservation_value(np.full(count, cost)) == close(
        [float(one.reservation_value(cost)) for one in alone]
    )


@pytest.mark.parametrize("kind", [certains, quantiles, logistics])
@given(data=st.data(), factor=st.floats(0.1, 10), shift=levels, over=levels)
def test_a_forecast_on_another_scale_is_the_forecast_scaled(
    kind: Any, data: st.DataObject, factor: float, shift: float, over: float
) -> None:
    found = data.draw(kind(2))

    def moved(value: Any) -> Any:
        return np.asarray(value) * factor + shift

    match found:
        case Certain(value):
            there: Forecast = Certain(moved(value))
        case Quantiles(probabilities, values, least):
            there = Quantiles(probabilities, moved(values), moved(least))
        case Logistic(location, scale, limit):
            there = Logistic(moved(location), np.asarray(scale) * factor, moved(limit))
    assert np.asarray(there.mean) == pytest.approx(moved(found.mean), rel=1e-7, abs=1e-7)
    improvement = factor * np.asarray(found.expected_improvement(over))
    assert there.expected_improvement(moved(over)) == pytest.approx(improvement, abs=1e-7)


class TestForecasts:
    def test_are_a_mapping_by_learner(self) -> None:
        both = Forecasts(np.array([3, 8]), Certain(np.array([0.7, 0.9])))
        assert [*both] == [3, 8]
        assert len(both) == 2
        assert {i: float(one.mean) for i, one in both.items()} == {3: 0.7, 8: 0.9}

    @pytest.mark.parametrize("learner", [0, 5, 9])
    def test_an_unknown_learner_is_a_key_error(self, learner: int) -> None:
        both = Forecasts(np.array([3, 8]), Certain(np.array([0.7, 0.9])))
        with pytest.raises(KeyError, match=str(learner)):
            both[learner]
        assert learner not in both
