from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart


@given(n=st.integers(1, 10**6), mean=st.floats(0.0, 1.0), tail=st.floats(0.001, 0.2))
def test_half_width_is_where_the_inequality_gives_the_tail(
    n: int, mean: float, tail: float
) -> None:
    width = float(hoeffding.half_width(n, mean, tail))
    assert n * float(hoeffding.exponent(mean, mean + width)) == pytest.approx(np.log(tail))


def test_half_width_of_a_textbook_case() -> None:
    # ln(2 / 0.1) / (2 * 0.1^2) = 149.79 values bring a two-sided error of 0.1 at risk 0.1.
    assert hoeffding.half_width(150, 0.3, tail=0.05) < 0.1 < hoeffding.half_width(149, 0.3, 0.05)


@given(n=st.integers(1, 10**5), mean=st.floats(0.0, 1.0), tail=st.floats(0.001, 0.2))
def test_half_width_is_at_least_massarts(n: int, mean: float, tail: float) -> None:
    assert massart.half_width(n, mean, tail) <= hoeffding.half_width(n, mean, tail) + 1e-12


def test_half_width_has_the_shape_of_size_and_mean() -> None:
    assert hoeffding.half_width(np.ones((3, 1)), np.zeros(2), 0.1).shape == (3, 2)
