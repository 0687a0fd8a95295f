"""DAUB's projection: vectors of formulas.md 1.9, second routes, and what must hold."""

from __future__ import annotations

import math
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


N = GRID[-1]


def curve(sizes: Any, scores: Any, training_score: float | None = None) -> LearningCurve:
    pairs = zip(sizes, scores, strict=True)
    return LearningCurve(0, tuple(Observation(n, score, training_score) for n, score in pairs))


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


class TestProjectedBound:
    @given(data=st.data(), measured=st.booleans(), training=st.booleans())
    def test_equals_the_transcription(
        self, data: st.DataObject, measured: bool, training: bool
    ) -> None:
        seen = data.draw(learning_curves(0, complete=True, with_training_score=measured))
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
