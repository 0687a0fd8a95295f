"""The exact binomial tails against SciPy's own interval, closed forms and the binomial itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import binomtest

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.core.intervals.clopper_pearson import half_width


@pytest.mark.parametrize("tail", [0.2, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize(("count", "n"), [(0, 1), (0, 40), (3, 40), (20, 40), (17, 2000)])
def test_equals_the_exact_interval_of_scipy(count: int, n: int, tail: float) -> None:
    upper = binomtest(count, n, alternative="less").proportion_ci(1 - tail, "exact").high
    assert count / n + half_width(n, count / n, tail) == pytest.approx(upper, rel=1e-9)
    lower = binomtest(n - count, n, alternative="greater").proportion_ci(1 - tail, "exact").low
    assert 1 - count / n - half_width(n, 1 - count / n, tail) == pytest.approx(lower, rel=1e-9)


def test_all_right_is_the_rule_of_three() -> None:
    n = np.array([1, 10, 1000, 10**6])
    assert half_width(n, 1.0, 0.05) == pytest.approx(-np.expm1(np.log(0.05) / n), rel=1e-9)
    assert half_width(10**6, 0.0, 0.05) == pytest.approx(3e-6, rel=2e-3)


@pytest.mark.parametrize("n", [1, 7, 60])
def test_neither_end_fails_more_often_than_promised_nor_much_less(n: int) -> None:
    tail, counts = 0.05, np.arange(n + 1)
    width = half_width(n, counts / n, tail)
    lower, upper = counts / n - width, counts / n + width
    # The promise is tightest for an expected value just beyond an end.
    beyond = np.concatenate([upper + 1e-12, lower - 1e-12, np.linspace(0.01, 0.99, 99)])
    expected = beyond[(beyond > 0) & (beyond < 1)][:, np.newaxis]
    chance = binom.pmf(counts, n, expected)
    too_low = (chance * (upper < expected)).sum(axis=1).max()
    too_high = (chance * (lower > expected)).sum(axis=1).max()
    assert 0.999 * tail < too_low < 1.000001 * tail
    assert 0.999 * tail < too_high < 1.000001 * tail


@pytest.mark.parametrize("other", [hoeffding, massart, chernoff])
@pytest.mark.parametrize("tail", [0.1, 1e-3, 1e-6])
def test_is_never_wider_than_what_bounds_the_tails_from_above(other: object, tail: float) -> None:
    for n in (5, 100, 10_000):
        mean = np.arange(n + 1) / n
        ratio = half_width(n, mean, tail) / other.half_width(n, mean, tail)  # type: ignore[attr-defined]
        assert ratio.max() <= 1 + 1e-9


def test_parts_of_an_outcome_lie_between_the_whole_ones() -> None:
    limits = np.arange(0, 21) / 40 + half_width(40, np.arange(0, 21) / 40, 0.05)
    between = 7.5 / 40 + half_width(40, 7.5 / 40, 0.05)
    assert limits[7] < between < limits[8]
