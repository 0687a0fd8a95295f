"""Training sizes: the lists of formulas.md 1.3, the rules that make them, and bad input."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import geometric_sizes
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import default_min_resource
from optuna_daub.core.steps import start_near
from tests.strategies import grids


PARITY = (500, 750, 1125, 1688, 2532, 3798, 5697, 8546, 12819, 19229, 21500)
COVTYPE = (*PARITY[:-1], 28844, 38500)
ratios = st.integers(110, 400).map(lambda percent: percent / 100)
geometries = st.tuples(st.integers(1, 600), st.integers(1, 20_000), ratios).filter(
    lambda g: g[0] * Decimal(str(g[2])) ** 2 <= g[1]
)


class TestGeometric:
    @pytest.mark.parametrize(("full", "sizes"), [(21500, PARITY), (38500, COVTYPE)])
    def test_lists_of_the_paper(self, full: int, sizes: tuple[int, ...]) -> None:
        assert geometric_sizes(500, full, 1.5) == sizes

    @given(geometry=geometries)
    def test_each_step_is_the_ceiling_of_the_decimal_product(
        self, geometry: tuple[int, int, float]
    ) -> None:
        first, full, ratio = geometry
        try:
            sizes = geometric_sizes(first, full, ratio)
        except ValueError:
            assume(False)
        assert (sizes[0], sizes[-1]) == (first, full)
        for earlier, later in pairwise(sizes):
            step = (earlier * Decimal(str(ratio))).to_integral_value(ROUND_CEILING)
            assert later == min(step, full)
            assert later > earlier


class TestFirstSize:
    @given(full=st.integers(3, 10**15), ratio=ratios)
    def test_it_leaves_room_for_three_sizes_in_any_training_set(
        self, full: int, ratio: float
    ) -> None:
        assume(full >= ratio**2)
        sizes = geometric_sizes(default_min_resource(full, ratio), full, ratio)
        assert len(sizes) >= 3
        assert sizes[-1] == full

    @given(full=st.integers(3, 10**6), ratio=ratios)
    def test_it_is_neither_more_than_500_nor_needlessly_few(self, full: int, ratio: float) -> None:
        assume(full >= ratio**2)
        first = default_min_resource(full, ratio)
        assert first <= 500
        if first < min(500, full / 64):
            with pytest.raises(ValueError, match="three sizes"):  # one more would leave no room
                geometric_sizes(first + 1, full, ratio)

    @pytest.mark.parametrize(
        ("full", "first"), [(8, 3), (20, 8), (40, 10), (300, 37), (1124, 140), (4000, 500)]
    )
    def test_small_training_sets_start_on_an_eighth_or_on_ten(self, full: int, first: int) -> None:
        assert default_min_resource(full, 1.5) == first


@pytest.mark.parametrize(
    ("first", "full", "ratio", "rule"),
    [
        *((n, 1000, 1.5, f"`min_resource` must be at least 1, .* {n}") for n in (0, -1)),
        *((500, 1000, r, f"must be greater than 1 and finite, but got {r}")
          for r in (1, 1.0, 0.5, 0, -2, math.nan, math.inf)),
        (500, 1124, 1.5, r"500 \* 1.5\^2 = [\d.]+ > 1124"),
        (100, 50, 2, r"100 \* 2\^2 = [\d.]+ > 50"),
        (4, 5, 1.1, "three sizes"),
        *((bad, 38500, 1.5, f"`min_resource` must be a whole number, but got {bad!r}")
          for bad in (500.0, "500", None)),
        *((500, bad, 1.5, f"`max_resource` must be a whole number, but got {bad!r}")
          for bad in (500.0, "500", None)),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_are_refused(first: Any, full: Any, ratio: float, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        geometric_sizes(first, full, ratio)


def test_three_sizes_just_fit() -> None:
    assert geometric_sizes(500, 1125, 1.5) == (500, 750, 1125)
    assert geometric_sizes(100, 121, 1.1) == (100, 110, 121)


class TestExplicit:
    @given(sizes=grids())
    def test_an_increasing_list_is_taken_as_it_is(self, sizes: tuple[int, ...]) -> None:
        assert checked_sizes(iter(sizes)) == sizes

    def test_numpy_integers_become_plain_ones(self) -> None:
        sizes = checked_sizes(np.array([1, 2, 3]))
        assert [type(size) for size in sizes] == [int, int, int]

    @pytest.mark.parametrize(
        ("sizes", "rule"),
        [
            ([500, 500, 1000], r"strictly increasing, but got \[500, 500, 1000\]"),
            ([1000, 500, 2000], "strictly increasing"),
            ([500, 1000], r"at least 3 training sizes.* but got \[500, 1000\]"),
            ([], "at least 3 training sizes"),
            ([0, 1, 2], r"be at least 1, but got \[0, 1, 2\]"),
            ([500, 750.5, 1000], "a whole number, but got 750.5"),
        ],
    )
    def test_bad_lists(self, sizes: list[Any], rule: str) -> None:
        with pytest.raises(ValueError, match="`sizes` must .*" + rule):
            checked_sizes(sizes)


@given(sizes=grids(), share=st.floats(1e-4, 1.0))
def test_a_start_has_the_ratio_nearest_to_1_except_that_two_sizes_are_left(
    sizes: tuple[int, ...], share: float
) -> None:
    ratios = {size: max(size / sizes[-1] / share, share * sizes[-1] / size) for size in sizes}
    found = start_near(sizes, share)
    assert found <= sizes[-3]
    assert found == sizes[-3] or ratios[found] <= min(ratios.values()) * (1 + 1e-12)


def test_a_start_is_near_by_the_ratio_and_the_smaller_of_two_as_near() -> None:
    assert start_near((100, 400, 800, 1600), 200 / 1600) == 100
    assert start_near((100, 400, 800, 1600), 230 / 1600) == 400
