"""DAUB's projection: vectors of formulas.md 1.9, second routes, and what must hold."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import linear_regression
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import projected_bound
from optuna_daub.core.forecasts.projection import monotone
from optuna_daub.core.forecasts.projection import slope
from tests.oracles import Daub
from tests.oracles import exact
from tests.strategies import GRID
from tests.strategies import learning_curves
from tests.strategies import power_laws
from tests.strategies import scores


N = GRID[-1]


def curve(sizes: Any, scores: Any, training_score: float | None = None) -> LearningCurve:
    pairs = zip(sizes, scores, strict=True)
    return LearningCurve(0, tuple(Observation(n, score, training_score) for n, score in pairs))


def last_mended(seen: LearningCurve) -> float:
    """Return the last score after the fix of [1], written for the last pair alone."""
    before: float | None = None
    for observation in seen.observations:
        score = observation.score
        before = score if before is None else max(score, (before + score) / 2)
    assert before is not None
    return before


class TestVectors:
    @pytest.mark.parametrize(
        ("sizes", "scores", "printed"),
        [
            ((500, 750, 1125), (0.60, 0.65, 0.68), "1.24210526e-04"),
            ((1000, 1500, 2500), (0.700, 0.720, 0.735), "2.21428571e-05"),
            ((19229, 28844, 38500), (0.86, 0.87, 0.88), "1.03782730e-06"),
        ],
    )
    def test_slopes(self, sizes: Any, scores: Any, printed: str) -> None:
        assert f"{slope(sizes, scores):.8e}" == printed

    @pytest.mark.parametrize(
        ("sizes", "scores", "full_size", "printed"),
        [
            ((500, 750, 1125), (0.60, 0.65, 0.68), 38500, "5.322368"),
            ((500, 750, 1125), (0.60, 0.65, 0.68), 5000, "1.161316"),
            ((1000, 1500, 2500), (0.700, 0.720, 0.735), 38500, "1.532143"),
        ],
    )
    def test_bounds(self, sizes: Any, scores: Any, full_size: int, printed: str) -> None:
        assert f"{projected_bound(curve(sizes, scores), full_size):.6f}" == printed
        assert projected_bound(curve(sizes, scores, 0.95), full_size) == 0.95

    def test_a_curve_that_falls_twice_is_mended_pair_by_pair(self) -> None:
        scores = (0.60, 0.80, 0.70, 0.60)  # formulas.md 1.5
        mended = monotone(scores)
        assert mended == pytest.approx([0.60, 0.75, 0.675, 0.675])
        rise = slope((750, 1125, 1688), mended[1:])
        assert f"{rise:.5e}" == "-7.36296e-05"
        assert f"{mended[-1] + (38500 - 1688) * rise:.3f}" == "-2.035"
        bound = projected_bound(curve((500, 750, 1125, 1688), scores), 38500)
        assert bound == pytest.approx(0.675)  # the slope is at least 0


class TestMonotone:
    def test_a_pair_that_falls_meets_in_the_middle(self) -> None:
        assert monotone([0.80, 0.76]) == pytest.approx([0.78, 0.78])  # formulas.md 1.4

    @given(seen=st.lists(scores, max_size=8))
    def test_scores_keep_their_sum_and_the_last_pair_rises(self, seen: list[float]) -> None:
        mended = monotone(seen)
        assert sum(mended) == sum(seen)
        assert len(mended) == len(seen)
        assert mended[-2:] == sorted(mended[-2:])

    @given(seen=st.lists(scores, max_size=8))
    def test_rising_scores_stay_as_they_are(self, seen: list[float]) -> None:
        assert monotone(sorted(seen)) == sorted(seen)

    @given(seen=learning_curves(0))
    def test_equals_the_transcription(self, seen: LearningCurve) -> None:
        mended = Daub(GRID, exact([seen])).fV[0]  # it goes on as far as the curve does
        assert monotone([observation.score for observation in seen.observations]) == mended

    def test_asking_does_not_touch_the_scores(self) -> None:
        seen = [0.8, 0.7, 0.6]
        monotone(seen)
        assert seen == [0.8, 0.7, 0.6]


class TestSlope:
    @given(
        sizes=st.lists(st.integers(1, 100_000), min_size=2, max_size=5, unique=True).map(sorted),
        seen=st.lists(st.floats(-10, 10), min_size=5, max_size=5),
    )
    def test_equals_the_standard_library(self, sizes: list[int], seen: list[float]) -> None:
        expected = linear_regression(sizes, seen[: len(sizes)]).slope
        assert slope(sizes, seen[: len(sizes)]) == pytest.approx(expected, rel=1e-9, abs=1e-9)

    @given(
        steps=st.tuples(st.integers(1, 9), st.integers(1, 9)).filter(lambda s: s[0] < s[1]),
        y=st.tuples(scores, scores, scores),
    )
    def test_is_the_weighted_mean_of_the_two_secants(
        self, steps: tuple[int, int], y: tuple[float, float, float]
    ) -> None:
        q, p = steps
        r = p / q
        x = (q * q, p * q, p * p)  # a factor r apart, as in formulas.md 1.2
        older, newer = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
        weight = (2 + r) / (2 * (1 + r + r * r))
        assert slope(x, y) == pytest.approx(weight * older + (1 - weight) * newer, abs=1e-12)


class TestProjectedBound:
    @given(seen=learning_curves(0, complete=True), training=st.booleans())
    def test_equals_the_transcription(self, seen: LearningCurve, training: bool) -> None:
        oracle = Daub(GRID, exact([seen]), use_training_score=training)
        expected = [float(u) for u in oracle.U[2:]]
        assert len(expected) == len(GRID) - 2
        assert expected == pytest.approx(
            [
                projected_bound(
                    LearningCurve(0, seen.observations[:k]), N, use_training_score=training
                )
                for k in range(3, len(GRID) + 1)
            ],
            abs=1e-12,
        )

    @given(seen=learning_curves(0, complete=True))
    def test_at_full_size_is_the_observed_score(self, seen: LearningCurve) -> None:
        assert projected_bound(seen, N) == seen.score
        assert projected_bound(seen, N, use_training_score=False) == seen.score

    @given(seen=learning_curves(0).filter(lambda c: 0 < c.size < N))
    def test_is_never_below_the_last_mended_score(self, seen: LearningCurve) -> None:
        assert projected_bound(seen, N, use_training_score=False) >= last_mended(seen)

    @given(seen=learning_curves(0).filter(lambda c: 0 < c.size < N))
    def test_training_scores_lower_it_to_the_last_one_at_most(self, seen: LearningCurve) -> None:
        without = projected_bound(seen, N, use_training_score=False)
        last = seen.observations[-1].training_score
        assert last is not None
        assert projected_bound(seen, N) == min(last, without)

    @given(seen=learning_curves(0, with_training_score=False).filter(lambda c: c.size > 0))
    def test_without_training_scores_the_projection_alone_counts(
        self, seen: LearningCurve
    ) -> None:
        expected = projected_bound(seen, N, use_training_score=False)
        assert projected_bound(seen, N) == expected

    @given(seen=learning_curves(0).filter(lambda c: c.size > 0), shift=scores)
    def test_moves_with_the_scores(self, seen: LearningCurve, shift: float) -> None:
        moved = curve(seen.sizes, [o.score + shift for o in seen.observations])
        bound = projected_bound(seen, N, use_training_score=False)
        assert projected_bound(moved, N) == pytest.approx(bound + shift, abs=1e-9)

    @given(known=power_laws((500, 750, 1125, 1688, 2532, 3798, 5000), count=1))
    def test_holds_and_falls_on_concave_curves(self, known: list[LearningCurve]) -> None:
        seen = known[0].observations
        bounds = [projected_bound(LearningCurve(0, seen[:k]), 5000) for k in range(3, 8)]
        assert all(bound >= known[0].score - 1e-12 for bound in bounds)
        assert all(later <= earlier + 1e-12 for earlier, later in pairwise(bounds))

    def test_only_the_last_three_points_count(self) -> None:
        recent = curve((6, 9, 15), (0.2, 0.3, 0.5))
        longer = curve((1, 3, 6, 9, 15), (0.0, 0.1, 0.2, 0.3, 0.5))
        assert projected_bound(longer, N) == projected_bound(recent, N)

    def test_fewer_points_than_three(self) -> None:
        assert projected_bound(curve([6], [0.25]), N) == 0.25
        assert projected_bound(curve([6], [0.25], 0.125), N) == 0.125
        assert projected_bound(curve([6, 10], [0.25, 0.5]), 14) == 0.75

    def test_a_curve_without_observations_has_none(self) -> None:
        with pytest.raises(IndexError):
            projected_bound(LearningCurve(0), N)

    @given(score=st.floats(-1e3, 1e3))
    def test_scores_may_be_any_numbers(self, score: float) -> None:
        flat = curve((6, 9, 15), [score] * 3)
        assert math.isclose(projected_bound(flat, N), score, rel_tol=1e-12)
