"""Hoeffding's, Massart's and Chernoff's inequality: published values, exact tails, and order."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.core.intervals.confidence import HalfWidth
from tests.core.intervals import INEQUALITIES


means = st.floats(0.0, 1.0)
inner = st.floats(0.001, 0.999)
tails = st.floats(0.001, 0.2)
tight = pytest.mark.parametrize("inequality", [chernoff, massart], ids=["chernoff", "massart"])


@pytest.mark.parametrize(
    ("mean", "probability", "by_chernoff", "by_massart"),
    [
        (0.3, 0.4, -0.021601, -0.021531),
        (0.6, 0.5, -0.020136, -0.020089),
        (0.0, 0.1, -0.105361, -0.080357),
        (1.0, 0.9, -0.105361, -0.080357),
    ],
)
def test_exponents_have_the_published_values(
    mean: float, probability: float, by_chernoff: float, by_massart: float
) -> None:
    assert chernoff.exponent(mean, probability) == pytest.approx(by_chernoff, abs=5e-7)
    assert massart.exponent(mean, probability) == pytest.approx(by_massart, abs=5e-7)


@given(mean=means, probability=inner)
def test_chernoffs_is_minus_the_divergence_of_two_coins(mean: float, probability: float) -> None:
    divergence = rel_entr(mean, probability) + rel_entr(1.0 - mean, 1.0 - probability)
    assert chernoff.exponent(mean, probability) == pytest.approx(-divergence, rel=1e-6, abs=1e-12)


def test_chernoffs_keeps_its_digits_for_tiny_differences() -> None:
    # Close to the mean the divergence is step^2 / (2 mean (1 - mean)).
    assert chernoff.exponent(0.4, 0.4 + 1e-8) == pytest.approx(-1e-16 / 0.48, rel=1e-6)


@given(mean=inner, probability=inner)
def test_massarts_is_the_quadratic_one_with_the_variance_of_a_point_between(
    mean: float, probability: float
) -> None:
    between = (mean + 2.0 * probability) / 3.0
    expected = -((mean - probability) ** 2) / (2.0 * between * (1.0 - between))
    assert massart.exponent(mean, probability) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@tight
@pytest.mark.parametrize("probability", [0.0, 1.0, -0.2, 1.3])
def test_exponents_are_minus_infinity_for_impossible_expectations(
    inequality: ModuleType, probability: float
) -> None:
    assert inequality.exponent(0.5, probability) == -np.inf


@pytest.mark.parametrize("inequality", [chernoff, massart, hoeffding], ids=["c", "m", "h"])
@given(n=st.integers(1, 10**6), mean=means, tail=tails)
def test_half_widths_are_where_the_inequality_gives_the_tail(
    inequality: ModuleType, n: int, mean: float, tail: float
) -> None:
    """On the side towards 1/2, unless the whole scale is within."""
    width = float(inequality.half_width(n, mean, tail))
    inside = 0.5 - abs(mean - 0.5)
    for shorter, is_below in ((0.0, True), (1e-6, False)):
        end = inside + width * (1.0 - shorter)
        reached = n * float(inequality.exponent(inside, end))
        assert end >= 1.0 or (reached <= np.log(tail) * (1 - 1e-9)) == is_below


@pytest.mark.parametrize(
    ("n", "mean", "delta", "expected"),
    [
        (148, 0.5, 0.1, 0.099709),
        (1000, 0.8, 0.05, 0.035804),
        (2000, 0.95, 0.05, 0.014377),
        (100, 1.0, 0.1, 0.038907),
        (100, 0.0, 0.1, 0.038907),
    ],
)
def test_massarts_half_width_has_the_published_values(
    n: int, mean: float, delta: float, expected: float
) -> None:
    assert massart.half_width(n, mean, tail=delta / 2) == pytest.approx(expected, abs=5e-7)


@given(n=st.integers(1, 10**5), mean=means, probability=inner, tail=tails)
def test_chernoffs_is_the_tightest_and_hoeffdings_the_loosest(
    n: int, mean: float, probability: float, tail: float
) -> None:
    order = (chernoff, massart, hoeffding)
    narrow, middle, wide = (float(each.half_width(n, mean, tail)) for each in order)
    assert narrow <= middle + 1e-12 <= wide + 2e-12
    tightest, between, loosest = (float(each.exponent(mean, probability)) for each in order)
    assert tightest * (1 - 1e-9) - 1e-15 <= between * (1 + 1e-9) + 1e-15
    assert between <= loosest + 1e-15


@pytest.mark.parametrize("half_width", INEQUALITIES.values(), ids=INEQUALITIES)
def test_half_widths_broadcast_sizes_against_means(half_width: HalfWidth) -> None:
    widths = half_width(np.array([[100], [1000]]), np.array([0.5, 0.9]), tail=0.05)
    assert widths.shape == (2, 2)
    assert np.all(widths[0] > widths[1])
    assert np.all(widths[:, 0] >= widths[:, 1])
    assert np.all(widths[:, 0] > widths[:, 1]) or half_width is hoeffding.half_width
