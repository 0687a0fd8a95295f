"""Empirical Bernstein against the theorem as written, its own promise, and its relatives."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals.empirical_bernstein import half_width


values = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12)


def as_written(z: list[float], delta: float) -> float:
    """Return the right side of Theorem 4, with the variance as a sum over pairs."""
    n = len(z)
    variance = sum((one - other) ** 2 for one, other in combinations(z, 2)) / (n * (n - 1))
    return math.sqrt(2 * variance * math.log(2 / delta) / n) + 7 * math.log(2 / delta) / (
        3 * (n - 1)
    )


@given(z=values, delta=st.floats(1e-6, 0.5))
def test_is_the_theorem_as_it_is_written(z: list[float], delta: float) -> None:
    width = half_width(len(z), np.mean(z), delta, variance=np.var(z, ddof=1))
    assert width == pytest.approx(as_written(z, delta), rel=1e-9)


@given(z=values, delta=st.floats(1e-6, 0.5))
def test_without_the_variance_it_is_no_narrower_than_with_it(z: list[float], delta: float) -> None:
    assert half_width(len(z), np.mean(z), delta) >= as_written(z, delta) * (1 - 1e-9)


@given(right=st.integers(0, 9), delta=st.floats(1e-6, 0.5))
def test_of_outcomes_the_mean_says_the_variance(right: int, delta: float) -> None:
    outcomes = [1.0] * right + [0.0] * (9 - right)
    assert half_width(9, right / 9, delta) == pytest.approx(as_written(outcomes, delta))


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize("shape", [(0.3, 0.3), (8.0, 2.0), (200.0, 20.0)])
@pytest.mark.parametrize("n", [5, 40, 300])
def test_the_expected_value_is_rarely_beyond_an_end(
    n: int, shape: tuple[float, float], tail: float
) -> None:
    """20,000 samples of a beta distribution: broad, skewed, and narrow."""
    rng = np.random.default_rng(n)
    samples = rng.beta(*shape, size=(20_000, n))
    mean, variance = samples.mean(axis=1), samples.var(axis=1, ddof=1)
    expected = shape[0] / sum(shape)
    width = half_width(n, mean, tail, variance)
    for side, missed in (("above", mean + width < expected), ("below", mean - width > expected)):
        share = missed.mean()
        allowed = tail + 3 * math.sqrt(tail / len(samples))
        assert share <= allowed, f"{missed.sum()} of {len(samples)} {side}, {tail} promised"


def test_is_narrower_than_hoeffding_for_close_values_and_wider_in_small_samples() -> None:
    width = half_width([20, 1000], 0.9, 0.05, variance=0.001)
    other = hoeffding.half_width([20, 1000], 0.9, 0.05)
    assert width[0] > other[0]
    assert width[1] < other[1] / 3


@pytest.mark.parametrize("tail", [0.3, 0.05, 1e-4])
def test_is_never_narrower_than_chernoff_so_that_it_holds_without_replacement_too(
    tail: float,
) -> None:
    """Hoeffding (1963, Section 6) has shown that for Chernoff's, which knows the mean alone."""
    for n in (2, 9, 60, 2000):
        mean = np.arange(n + 1) / n
        assert np.all(half_width(n, mean, tail) >= chernoff.half_width(n, mean, tail) - 1e-9)


def test_one_value_says_nothing_of_the_spread() -> None:
    assert np.array_equal(half_width([1, 1], [0.0, 0.5], 0.05), [np.inf, np.inf])


def test_broadcasts_sizes_against_means() -> None:
    widths = half_width(np.array([[100], [1000]]), np.array([0.5, 0.9]), tail=0.05)
    assert widths.shape == (2, 2)
    assert np.all(widths[0] > widths[1])
    assert np.all(widths[:, 0] > widths[:, 1])
