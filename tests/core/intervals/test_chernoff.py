from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import binom

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import massart


inner = st.floats(0.001, 0.999)


@pytest.mark.parametrize(
    ("mean", "probability", "expected"),
    [
        (0.3, 0.4, -0.021601),
        (0.6, 0.5, -0.020136),
        (0.0, 0.1, -0.105361),
        (1.0, 0.9, -0.105361),
    ],
)
def test_exponent_has_the_published_values(
    mean: float, probability: float, expected: float
) -> None:
    assert chernoff.exponent(mean, probability) == pytest.approx(expected, abs=5e-7)


@given(mean=st.floats(0.0, 1.0), probability=inner)
def test_exponent_is_minus_the_divergence_of_two_coins(mean: float, probability: float) -> None:
    divergence = rel_entr(mean, probability) + rel_entr(1.0 - mean, 1.0 - probability)
    assert chernoff.exponent(mean, probability) == pytest.approx(-divergence, rel=1e-6, abs=1e-12)


def test_exponent_keeps_its_digits_for_tiny_differences() -> None:
    # Close to the mean the divergence is step^2 / (2 mean (1 - mean)).
    assert chernoff.exponent(0.4, 0.4 + 1e-8) == pytest.approx(-1e-16 / 0.48, rel=1e-6)


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 7, 50, 400])
def test_exponent_bounds_the_exact_binomial_tails(n: int, probability: float) -> None:
    counts = np.arange(n + 1)
    bound = np.exp(n * chernoff.exponent(counts / n, probability))
    below = counts / n < probability
    tails = np.where(
        below, binom.cdf(counts, n, probability), binom.sf(counts - 1, n, probability)
    )
    assert np.all(tails <= bound * (1.0 + 1e-12))


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.2, 1.3])
def test_exponent_is_minus_infinity_for_impossible_expectations(probability: float) -> None:
    assert chernoff.exponent(0.5, probability) == -np.inf


@given(n=st.integers(1, 10**6), mean=st.floats(0.0, 1.0), tail=st.floats(0.001, 0.2))
def test_half_width_is_where_the_inequality_gives_the_tail(
    n: int, mean: float, tail: float
) -> None:
    width = float(chernoff.half_width(n, mean, tail))
    inside = 0.5 - abs(mean - 0.5)
    assert n * float(chernoff.exponent(inside, inside + width)) <= np.log(tail)
    less = inside + width * (1.0 - 1e-6)
    assert n * float(chernoff.exponent(inside, less)) > np.log(tail)


@given(n=st.integers(1, 10**4), tail=st.floats(0.001, 0.2))
def test_half_width_at_a_mean_of_one_has_a_closed_form(n: int, tail: float) -> None:
    # n ln(1 - eps) = ln(tail)
    assert chernoff.half_width(n, 1.0, tail) == pytest.approx(1.0 - tail ** (1.0 / n), rel=1e-9)


@given(n=st.integers(1, 10**5), mean=st.floats(0.0, 1.0), tail=st.floats(0.001, 0.2))
def test_half_width_never_exceeds_massarts(n: int, mean: float, tail: float) -> None:
    assert chernoff.half_width(n, mean, tail) <= massart.half_width(n, mean, tail) + 1e-12
