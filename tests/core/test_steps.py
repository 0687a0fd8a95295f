"""Which size a learner is trained on next."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import geometric_sizes
from optuna_daub.core import replay
from optuna_daub.core.steps import FASTEST
from optuna_daub.core.steps import SLOWEST
from optuna_daub.core.steps import AdaptiveStep
from optuna_daub.core.steps import exponent
from optuna_daub.core.steps import leap_of
from optuna_daub.core.steps import one_size
from optuna_daub.core.steps import sizes_near


SIZES = geometric_sizes(500, 64_000, 2)


def timed(alpha: float, *sizes: int, score: float = 0.5) -> LearningCurve:
    """Return a curve whose time grows exactly as n^alpha."""
    return LearningCurve(0, tuple(Observation(n, score, seconds=1e-3 * n**alpha) for n in sizes))


class TestExponent:
    def test_is_drawn_to_1_as_by_one_doubling(self) -> None:
        assert exponent(timed(0.25, 500, 4000)) == pytest.approx((3 * 0.25 + 1) / 4)

    @given(st.floats(FASTEST + 0.05, SLOWEST - 0.05))
    def test_comes_near_the_truth_with_many_doublings(self, alpha: float) -> None:
        found = exponent(timed(alpha, 1, 2**40))
        assert found == pytest.approx(alpha, abs=abs(alpha - 1) / 41 + 1e-9)

    @pytest.mark.parametrize(("alpha", "limit"), [(-3, FASTEST), (9, SLOWEST)])
    def test_is_limited(self, alpha: float, limit: float) -> None:
        assert exponent(timed(alpha, 500, 64_000)) == limit

    def test_is_1_where_times_are_unknown(self) -> None:
        assert exponent(LearningCurve(0, (Observation(500, 0.8), Observation(1000, 0.8)))) == 1.0


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
        left = (SIZES[-1] / size) ** exponent(curve)
        rounding = 2 ** (exponent(curve) / 2)  # half a step of the ladder
        assert size == SIZES[-1] or left * rounding >= factor**0.75

    @given(st.floats(1.5, 8))
    def test_all_steps_are_equal_where_the_exponent_is_known(self, factor: float) -> None:
        ladder = tuple(range(1000, 1_000_001, 50))
        seen, taken = timed(1.0, 1000, 2000), []
        while seen.size < ladder[-1]:
            size = AdaptiveStep(factor)(seen, ladder, math.inf)
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
    def test_is_a_larger_size_of_the_ladder(self, alpha: float, seen: int, factor: float) -> None:
        size = AdaptiveStep(factor)(timed(alpha, *SIZES[:seen]), SIZES, math.inf)
        assert size in SIZES[seen:]

    @pytest.mark.parametrize("factor", [1.0, 0.5, math.nan])
    def test_a_factor_that_leads_nowhere_is_refused(self, factor: float) -> None:
        with pytest.raises(ValueError, match="`cost_factor` must be greater than 1"):
            AdaptiveStep(factor)


class TestReasons:
    def test_a_leap_says_why(self) -> None:
        assert leap_of(timed(1, 500, 1000), 4000, 0.9) == (
            "; its time grows as n^1.00, so that it goes to 4,000 at once"
        )
        assert leap_of(timed(1, 500, 1000, score=0.95), 64_000, 0.9) == (
            "; its score is above all of them, so that it goes straight to 64,000"
        )

    def test_a_study_of_leaps_names_each_of_them(self) -> None:
        known = [
            LearningCurve(i, tuple(Observation(n, 0.5 + i / 10 - 9 / n, 1.0) for n in SIZES))
            for i in range(3)
        ]
        decisions = [*replay(DAUB(SIZES, steps=AdaptiveStep()), known)]
        reached = {learner: 0 for learner in range(3)}
        leaps = 0
        for step in decisions:
            if isinstance(step, Extend):
                is_next = step.size == one_size(timed(1, reached[step.learner] or 1), SIZES, 1.0)
                leapt = "so that it goes" in str(step.reason)
                assert leapt != is_next
                leaps += leapt
                reached[step.learner] = step.size
        assert leaps


class TestSizesNear:
    @given(st.floats(1e-4, 1), st.integers(1, 4))
    def test_are_consecutive_and_leave_a_size_to_go_to(self, share: float, count: int) -> None:
        found = sizes_near(SIZES, share, count)
        first = SIZES.index(found[0])
        assert found == SIZES[first : first + count]
        assert found[-1] < SIZES[-1]

    def test_the_first_is_the_nearest(self) -> None:
        assert sizes_near(SIZES, 1 / 32) == (2000, 4000)


class TestCostlyLearners:
    """Nine learners that take a millisecond, and one that takes a second."""

    def start(self, seconds: float, costly: float) -> Extend:
        quick = [timed(1.0, 500) for _ in range(9)]
        curves = Curves(LearningCurve(i + 1, c.observations) for i, c in enumerate(quick))
        curves.put(LearningCurve(0, (Observation(500, 0.5, seconds=seconds),)))
        decision = DAUB(SIZES, costly=costly).decide(curves)
        assert isinstance(decision, Extend)
        assert decision.learner == 0
        return decision

    def test_leap_after_their_first_probe_and_say_why(self) -> None:
        decision = self.start(seconds=8.5, costly=16)  # the others take half a second
        assert decision.size == 2000
        assert str(decision.reason) == (
            "its first probe took over 16 times the median, so that it leaps"
        )

    @pytest.mark.parametrize(("seconds", "costly"), [(7.9, 16), (8.5, math.inf)])
    def test_others_start_as_all_do(self, seconds: float, costly: float) -> None:
        assert self.start(seconds, costly).size == 1000
