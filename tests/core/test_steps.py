"""Step rules: the size that a learner is trained on next."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import AdaptiveStep
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import geometric_sizes
from optuna_daub.core import next_of_grid
from optuna_daub.core.steps import FASTEST
from optuna_daub.core.steps import SLOWEST
from optuna_daub.core.steps import growth_exponent
from optuna_daub.core.steps import nearest
from tests.strategies import grids
from tests.strategies import learning_curves


SIZES = geometric_sizes(500, 64_000, 2)


def timed(alpha: float, *sizes: int, score: float = 0.5) -> LearningCurve:
    """Return a curve whose time grows exactly as n^alpha."""
    return LearningCurve(0, tuple(Observation(n, score, seconds=1e-3 * n**alpha) for n in sizes))


class TestExponent:
    def test_is_drawn_to_1_as_by_one_doubling(self) -> None:
        assert growth_exponent(timed(0.25, 500, 4000)) == pytest.approx((3 * 0.25 + 1) / 4)

    @given(st.floats(FASTEST + 0.05, SLOWEST - 0.05))
    def test_comes_near_the_truth_with_many_doublings(self, alpha: float) -> None:
        found = growth_exponent(timed(alpha, 1, 2**40))
        assert found == pytest.approx(alpha, abs=abs(alpha - 1) / 41 + 1e-9)

    @pytest.mark.parametrize(("alpha", "limit"), [(-3, FASTEST), (9, SLOWEST)])
    def test_is_limited(self, alpha: float, limit: float) -> None:
        assert growth_exponent(timed(alpha, 500, 64_000)) == limit

    def test_is_1_where_times_are_unknown(self) -> None:
        assert (
            growth_exponent(LearningCurve(0, (Observation(500, 0.8), Observation(1000, 0.8))))
            == 1.0
        )


class TestAdaptiveStep:
    def test_takes_cost_factor_times_as_long(self) -> None:
        seen = timed(1.0, 500, 1000)
        assert AdaptiveStep(4.0)(seen, SIZES, math.inf) == 4000
        assert AdaptiveStep(2.0)(seen, SIZES, math.inf) == 2000

    @given(st.floats(0.3, 2), st.integers(2, len(SIZES) - 2), st.floats(2, 8))
    def test_no_step_ends_just_short_of_all_the_data(
        self, alpha: float, seen: int, factor: float
    ) -> None:
        curve = timed(alpha, *SIZES[:seen])
        size = AdaptiveStep(factor)(curve, SIZES, math.inf)
        left = (SIZES[-1] / size) ** growth_exponent(curve)
        rounding = 2 ** (growth_exponent(curve) / 2)  # half a step of the grid
        assert size == SIZES[-1] or left * rounding >= factor**0.75

    @given(st.floats(1.5, 8))
    def test_all_steps_are_equal_where_the_exponent_is_known(self, factor: float) -> None:
        grid = tuple(range(1000, 1_000_001, 50))
        seen, taken = timed(1.0, 1000, 2000), []
        while seen.size < grid[-1]:
            size = AdaptiveStep(factor)(seen, grid, math.inf)
            taken.append(size / seen.size)
            seen = timed(1.0, 1000, size)
        assert max(taken) == pytest.approx(min(taken), rel=0.05)
        assert math.log(max(taken) / factor) == pytest.approx(0, abs=math.log(factor) / 2)

    def test_what_hardly_slows_down_leaps(self) -> None:
        slow, quick = timed(2.0, 500, 4000), timed(0.1, 500, 4000)
        assert AdaptiveStep()(slow, SIZES, math.inf) == 8000
        assert AdaptiveStep()(quick, SIZES, math.inf) == 64_000

    def test_goes_straight_to_the_end_once_no_other_promises_more(self) -> None:
        seen = timed(2.0, 500, 1000, score=0.8)
        assert AdaptiveStep()(seen, SIZES, 0.8) == SIZES[-1]
        assert AdaptiveStep()(seen, SIZES, 0.81) < SIZES[-1]

    def test_with_one_probe_nothing_is_known_of_the_times(self) -> None:
        assert AdaptiveStep()(timed(1.0, 500), SIZES, math.inf) == 1000

    @given(st.floats(0.1, 3), st.integers(1, len(SIZES) - 1), st.floats(1.1, 50))
    def test_is_a_larger_size_of_the_grid(self, alpha: float, seen: int, factor: float) -> None:
        size = AdaptiveStep(factor)(timed(alpha, *SIZES[:seen]), SIZES, math.inf)
        assert size in SIZES[seen:]

    @pytest.mark.parametrize("factor", [1.0, 0.5, math.nan])
    def test_a_factor_that_leads_nowhere_is_refused(self, factor: float) -> None:
        with pytest.raises(ValueError, match="`cost_factor` must be greater than 1"):
            AdaptiveStep(factor)


class TestNextOfGrid:
    @given(data=st.data(), sizes=grids(), to_beat=st.floats(allow_nan=False))
    def test_is_the_smallest_size_above(
        self, data: st.DataObject, sizes: tuple[int, ...], to_beat: float
    ) -> None:
        seen = data.draw(learning_curves(0, sizes).filter(lambda curve: curve.size < sizes[-1]))
        assert next_of_grid(seen, sizes, to_beat) == min(n for n in sizes if n > seen.size)


class TestNearest:
    @given(sizes=grids(), goal=st.floats(0.1, 1e4))
    def test_no_other_size_has_a_ratio_nearer_to_1(
        self, sizes: tuple[int, ...], goal: float
    ) -> None:
        found = nearest(sizes, goal)
        ratios = {size: max(size / goal, goal / size) for size in sizes}
        assert ratios[found] <= min(ratios.values()) * (1 + 1e-12)

    def test_the_smaller_of_two_as_near(self) -> None:
        assert nearest((100, 400), 200) == 100
