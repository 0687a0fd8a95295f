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

from optuna_daub.core import Forecast
from optuna_daub.core import Forecasts
from optuna_daub.core import Logistic
from tests.strategies import forecasts
from tests.strategies import levels


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


class TestWithoutWidth:
    @given(score=levels, over=levels, cost=positive, probability=probabilities)
    def test_is_the_score(
        self, score: float, over: float, cost: float, probability: float
    ) -> None:
        forecast = Logistic(score, 0.0)
        assert float(forecast.mean) == float(forecast.quantile(probability)) == score
        assert float(forecast.expected_improvement(over)) == max(0.0, score - over)
        assert float(forecast.reservation_value(cost)) == score - cost


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


@given(found=forecasts(1), overs=st.tuples(levels, levels))
def test_expected_improvement_falls_by_at_most_what_is_asked_for(
    found: Forecast, overs: tuple[float, float]
) -> None:
    low, high = sorted(overs)
    at_low, at_high = (found.expected_improvement(np.array([over])) for over in (low, high))
    assert (at_high >= 0).all()
    assert (at_high <= at_low + 1e-9).all()
    assert (at_low <= at_high + (high - low) + 1e-9).all()


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


class TestForecasts:
    def test_are_a_mapping_by_learner(self) -> None:
        both = Forecasts(np.array([3, 8]), Logistic(np.array([0.7, 0.9]), 0.0))
        assert [*both] == [3, 8]
        assert len(both) == 2
        assert {i: float(one.mean) for i, one in both.items()} == {3: 0.7, 8: 0.9}

    @pytest.mark.parametrize("learner", [0, 5, 9])
    def test_an_unknown_learner_is_a_key_error(self, learner: int) -> None:
        both = Forecasts(np.array([3, 8]), Logistic(np.array([0.7, 0.9]), 0.0))
        with pytest.raises(KeyError, match=str(learner)):
            both[learner]
        assert learner not in both
