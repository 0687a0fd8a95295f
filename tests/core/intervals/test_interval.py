"""Where a score is believed to lie."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Interval
from tests.strategies import finite


@given(ends=st.tuples(finite, finite).filter(lambda ends: ends[0] > ends[1]))
def test_the_lower_end_does_not_exceed_the_upper(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"must not exceed the upper one, but got \["):
        Interval(*ends)


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (0.0, math.nan)])
def test_ends_are_numbers(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="nan"):
        Interval(*ends)
