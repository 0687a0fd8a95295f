"""The Student t distribution in closed form against SciPy's and against integrals."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t

from optuna_daub.core.forecasts.student import Student


@pytest.mark.parametrize("probability", [1e-6, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_quantiles_are_those_of_four_degrees_of_freedom(probability):
    found = Student(1.0, 2.0).quantile(probability)
    assert found == pytest.approx(t.ppf(probability, 4, 1.0, 2.0), abs=1e-8)


@pytest.mark.parametrize("over", [-30.0, -1.0, 0.0, 2.0, 40.0])
def test_the_improvement_is_the_integral(over):
    expected = quad(lambda x: (x - over) * t.pdf(x, 4), over, math.inf)[0]
    assert Student(3.0, 0.5).expected_improvement(3.0 + 0.5 * over) == pytest.approx(
        0.5 * expected, rel=1e-6
    )


@pytest.mark.parametrize("cost", [1e-12, 1e-3, 0.3, 1.0, 10.0, 1e6])
def test_at_the_reservation_value_the_improvement_is_the_cost(cost):
    forecast = Student(0.5, 0.1)
    value = forecast.reservation_value(cost)
    assert forecast.expected_improvement(value) == pytest.approx(cost, rel=1e-9)


def test_what_is_certain_is_worth_its_score_less_the_cost():
    sure = Student(np.array([0.7, 0.9]), 0.0)
    assert sure.reservation_value(0.1) == pytest.approx([0.6, 0.8])
    assert sure.expected_improvement(0.8) == pytest.approx([0.0, 0.1])
    assert sure.quantile(0.95) == pytest.approx([0.7, 0.9])


def test_where_anything_may_come_any_improvement_may():
    anything = Student(0.0, math.inf)
    assert anything.expected_improvement(1.0) == math.inf
    assert anything.reservation_value(1.0) == math.inf
    assert (anything.quantile(0.05), anything.quantile(0.95)) == (-math.inf, math.inf)
    assert anything.quantile(0.5) == 0.0
