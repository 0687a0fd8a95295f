"""Empirical Bernstein against the theorem as written, its own promise, and its relatives."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.intervals import chernoff
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
def test_is_no_narrower_than_the_theorem_for_any_values(z: list[float], delta: float) -> None:
    assert half_width(len(z), np.mean(z), delta) >= as_written(z, delta) * (1 - 1e-9)


@given(n=st.integers(2, 12), right=st.integers(0, 12), delta=st.floats(1e-6, 0.5))
def test_is_the_theorem_as_it_is_written_for_zeros_and_ones(
    n: int, right: int, delta: float
) -> None:
    outcomes = [1.0] * min(n, right) + [0.0] * max(0, n - right)
    width = half_width(n, np.mean(outcomes), delta)
    assert width == pytest.approx(as_written(outcomes, delta), rel=1e-9)


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
