from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart


inner = st.floats(0.001, 0.999)


@pytest.mark.parametrize(
    ("mean", "probability", "expected"),
    [
        (0.3, 0.4, -0.021531),
        (0.6, 0.5, -0.020089),
        (0.0, 0.1, -0.080357),
        (1.0, 0.9, -0.080357),
    ],
)
def test_exponent_has_the_published_values(
    mean: float, probability: float, expected: float
) -> None:
    assert massart.exponent(mean, probability) == pytest.approx(expected, abs=5e-7)


@given(mean=inner, probability=inner)
def test_exponent_is_the_quadratic_one_with_the_variance_of_a_point_between(
    mean: float, probability: float
) -> None:
    between = (mean + 2.0 * probability) / 3.0
    expected = -((mean - probability) ** 2) / (2.0 * between * (1.0 - between))
    assert massart.exponent(mean, probability) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 7, 50, 400])
def test_exponent_bounds_the_exact_binomial_tails(n: int, probability: float) -> None:
    counts = np.arange(n + 1)
    bound = np.exp(n * massart.exponent(counts / n, probability))
    below = counts / n < probability
    tails = np.where(
        below, binom.cdf(counts, n, probability), binom.sf(counts - 1, n, probability)
    )
    interior = (counts > 0) & (counts < n)
    assert np.all(tails[interior] <= bound[interior])


@given(mean=st.floats(0.0, 1.0), probability=inner)
def test_exponent_lies_between_hoeffding_and_chernoff(mean: float, probability: float) -> None:
    loose, middle, tight = (
        float(inequality.exponent(mean, probability))
        for inequality in (hoeffding, massart, chernoff)
    )
    assert tight * (1 - 1e-9) - 1e-15 <= middle * (1 + 1e-9) + 1e-15
    assert middle <= loose + 1e-15


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.2, 1.3])
def test_exponent_is_minus_infinity_for_impossible_expectations(probability: float) -> None:
    assert massart.exponent(0.5, probability) == -np.inf


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
def test_half_width_has_the_published_values(
    n: int, mean: float, delta: float, expected: float
) -> None:
    assert massart.half_width(n, mean, tail=delta / 2) == pytest.approx(expected, abs=5e-7)


@given(n=st.integers(20, 10**6), mean=st.floats(0.0, 1.0), tail=st.floats(0.001, 0.2))
def test_half_width_is_where_the_inequality_gives_the_tail(
    n: int, mean: float, tail: float
) -> None:
    width = float(massart.half_width(n, mean, tail))
    inside = 0.5 - abs(mean - 0.5)
    if inside + width < 1.0:
        reached = n * float(massart.exponent(inside, inside + width))
        assert reached == pytest.approx(np.log(tail), rel=1e-6)


def test_half_width_broadcasts_sizes_against_means() -> None:
    widths = massart.half_width(np.array([[100], [1000]]), np.array([0.5, 0.9]), tail=0.05)
    assert widths.shape == (2, 2)
    assert np.all(widths[0] > widths[1])
    assert np.all(widths[:, 0] > widths[:, 1])


def test_one_sided_interval_covers() -> None:
    rng = np.random.default_rng(0)
    for probability in (0.1, 0.5, 0.97):
        means = rng.binomial(200, probability, size=20_000) / 200
        misses = np.mean(means + massart.half_width(200, means, tail=0.05) < probability)
        assert misses <= 0.05, f"{misses:.4f} misses at {probability}"
