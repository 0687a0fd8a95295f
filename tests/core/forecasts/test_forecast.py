"""Forecasts against SciPy's Student t, and the mapping of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from scipy.stats import t

from optuna_daub.core import Curves
from optuna_daub.core import Forecast
from optuna_daub.core import Forecasts
from optuna_daub.core import LearningCurve
from optuna_daub.core import Pool
from optuna_daub.core.forecasts.forecast import forecast_of
from optuna_daub.core.forecasts.forecast import lead_of
from optuna_daub.core.forecasts.forecast import widths
from optuna_daub.core.forecasts.forecast import winsorized
from tests.strategies import forecasts
from tests.strategies import levels


probabilities = st.floats(1e-6, 1.0 - 1e-6)


@given(mean=levels, scale=st.floats(1e-3, 5), probability=probabilities)
def test_quantiles_are_those_of_two_degrees_of_freedom(
    mean: float, scale: float, probability: float
) -> None:
    expected = t.ppf(probability, 2, mean, scale)
    found = float(Forecast(mean, scale).quantile(probability))
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


@given(score=levels, probability=probabilities)
def test_without_width_it_is_the_score(score: float, probability: float) -> None:
    assert float(Forecast(score, 0.0).quantile(probability)) == score


def test_of_what_may_be_anything_only_the_mean_is_known() -> None:
    either = Forecast(np.array([0.0, 0.3]), np.array([math.inf, 0.0]))
    assert either.quantile(0.5).tolist() == [0.0, 0.3]
    assert either.quantile(0.9).tolist() == [math.inf, 0.3]
    assert either.quantile(0.1).tolist() == [-math.inf, 0.3]


@given(
    found=st.integers(1, 5).flatmap(lambda count: st.tuples(st.just(count), forecasts(count))),
    probability=probabilities,
)
def test_many_at_once_are_as_one_by_one(found: tuple[int, Forecast], probability: float) -> None:
    count, many = found
    alone = [many.at(place) for place in range(count)]
    assert np.asarray(many.mean).tolist() == [one.mean for one in alone]
    assert many.quantile(probability).tolist() == [float(o.quantile(probability)) for o in alone]


def test_widths_make_normal_errors_those_of_forecasts() -> None:
    rng, sd = np.random.default_rng(0), np.array([2.0, 1.0, 0.0])
    found = Forecast(np.zeros(3), np.array([1.0, 3.0, 0.0]))
    drawn = widths(found, sd, 20_000, rng) * sd * rng.standard_normal((20_000, 3))
    for column, scale in zip(drawn.T[:2], (1.0, 3.0), strict=True):
        assert kstest(column / scale, t(2).cdf).pvalue > 0.01
    assert not drawn[:, 2].any()


@given(by=st.floats(0.01, 100), shift=st.floats(-10, 10))
def test_the_unit_and_origin_of_scores_change_no_forecast(by: float, shift: float) -> None:
    mean, sd = np.array([0.9, 0.7, 0.2]), np.array([0.0, 0.1, 0.3])
    scales = forecast_of(by * mean + shift, by * sd, by * 0.9 + shift).scale
    np.testing.assert_allclose(scales, by * forecast_of(mean, sd, 0.9).scale, rtol=1e-6)


def test_forecasts_far_from_the_best_are_wider() -> None:
    scales = forecast_of(np.array([0.95, 0.9, 0.8, 0.5]), np.full(4, 0.1), 0.9).scale
    assert scales[0] == scales[1] < scales[2] < scales[3]


def test_dropped_learners_do_not_lead() -> None:
    pool = Pool(Curves([LearningCurve(0), LearningCurve(1).drop("it failed")]))
    assert lead_of(pool, np.array([0.7, 0.9])) == 0.7
    assert lead_of(Pool(), np.array([])) == -math.inf


class TestForecasts:
    def test_are_a_mapping_by_learner(self) -> None:
        both = Forecasts(np.array([3, 8]), Forecast(np.array([0.7, 0.9]), 0.0))
        assert [*both] == [3, 8]
        assert len(both) == 2
        assert {i: one.mean for i, one in both.items()} == {3: 0.7, 8: 0.9}

    @pytest.mark.parametrize("learner", [0, 5, 9])
    def test_an_unknown_learner_is_a_key_error(self, learner: int) -> None:
        both = Forecasts(np.array([3, 8]), Forecast(np.array([0.7, 0.9]), 0.0))
        with pytest.raises(KeyError, match=str(learner)):
            both[learner]
        assert learner not in both

    def test_draws_are_independent_unless_the_forecaster_says_how_they_depend(self) -> None:
        both = Forecasts(np.array([3, 8]), Forecast(np.array([0.7, 0.9]), np.array([0.1, 0.2])))
        drawn = both.draws(20_000, np.random.default_rng(0))
        for place, (mean, scale) in enumerate([(0.7, 0.1), (0.9, 0.2)]):
            assert kstest(drawn[:, place], t(2, mean, scale).cdf).pvalue > 0.01
        ranks = drawn.argsort(axis=0).argsort(axis=0)
        assert abs(np.corrcoef(ranks.T)[0, 1]) < 0.03


@pytest.mark.parametrize("guess", [-0.6931471805599453, 0.0, 2.2e-16, -2.2e-16])
def test_scores_that_differ_by_a_rounding_are_equal_to_the_limit(guess: float) -> None:
    equal = np.array([guess - 0.2, guess, guess, guess, guess + 0.1])
    rounded = equal + np.array([0.0, -1e-16, 0.0, 2e-16, 0.0])
    np.testing.assert_allclose(winsorized(rounded), winsorized(equal), atol=1e-12)
    assert winsorized(rounded)[0] == guess - 0.2
