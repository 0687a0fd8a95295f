"""The calibrated bound: what it must satisfy on any curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import projected_bound
from optuna_daub.core.bounds.calibrated import CalibratedBound
from optuna_daub.core.bounds.gains import GainTable


FULL = 54_000
unit = st.floats(0, 1)
training = st.one_of(st.none(), unit)
confidences = st.sampled_from([0.3, 0.5, 0.8, 0.9, 0.95, 0.99])


def curve(scores: Sequence[float], training: Sequence[float | None] = (), n: int | None = None
) -> LearningCurve:  # fmt: skip
    sizes = [500 * 2**k for k in range(len(scores))]
    fitted = training or [None] * len(scores)
    seen = zip(sizes, scores, fitted, strict=True)
    return LearningCurve(0, tuple(Observation(*probe, n_validation=n) for probe in seen))


@st.composite
def curves(draw: st.DrawFn, least: int = 2) -> LearningCurve:
    """Return a curve of up to five sizes, with or without training scores."""
    scores = draw(st.lists(unit, min_size=least, max_size=5))
    fitted = draw(st.one_of(st.none(), st.lists(unit, min_size=len(scores), max_size=len(scores))))
    return curve(scores, fitted or (), draw(st.sampled_from([None, 100, 10_000])))


class TestUpper:
    @given(curves(), confidences)
    def test_is_the_score_at_the_full_size(self, seen: LearningCurve, confidence: float) -> None:
        assert CalibratedBound(confidence).upper(seen, seen.size) == pytest.approx(seen.score)

    @given(curves(), confidences, st.floats(1, 100), st.floats(1, 100))
    def test_never_falls_with_more_data_left(
        self, seen: LearningCurve, confidence: float, a: float, b: float
    ) -> None:
        near, far = (int(seen.size * factor) for factor in sorted([a, b]))
        bound = CalibratedBound(confidence)
        assert bound.upper(seen, near) <= bound.upper(seen, far) + 1e-12

    @given(curves(), confidences, confidences)
    def test_never_falls_with_the_confidence(
        self, seen: LearningCurve, a: float, b: float
    ) -> None:
        low, high = sorted([a, b])
        assert CalibratedBound(low).upper(seen, FULL) <= CalibratedBound(high).upper(seen, FULL)

    @given(st.lists(unit, min_size=3, max_size=3), confidences, st.sampled_from([None, 50]))
    def test_is_never_above_the_projection_where_that_is_valid(
        self, scores: list[float], confidence: float, n: int | None
    ) -> None:
        first, second, third = sorted(scores)
        assume(second - first >= (third - second) / 2 > 0)
        seen = curve([first, second, third], n=n)
        projected = projected_bound(seen, FULL, use_training_score=False)
        assert CalibratedBound(confidence, ceiling=math.inf).upper(seen, FULL) <= projected + 1e-9

    @given(curves())
    def test_is_at_most_one_for_a_score_between_0_and_1(self, seen: LearningCurve) -> None:
        assert seen.score <= CalibratedBound(0.99).upper(seen, FULL) <= 1

    @given(curves(), st.floats(1, 8), st.floats(1, 8))
    def test_inflation_widens(self, seen: LearningCurve, a: float, b: float) -> None:
        low, high = sorted([a, b])
        narrow, wide = CalibratedBound(inflation=low), CalibratedBound(inflation=high)
        assert narrow.upper(seen, FULL) <= wide.upper(seen, FULL)

    @given(curves(), st.floats(1, 8), st.floats(1, 8))
    def test_inflated_multiplies_what_was_inflated_before(
        self, seen: LearningCurve, a: float, b: float
    ) -> None:
        twice = CalibratedBound(inflation=a).inflated(b)
        assert twice.upper(seen, FULL) == CalibratedBound(inflation=a * b).upper(seen, FULL)

    @given(curves(), st.floats(-1e3, 1e3))
    def test_moves_with_the_score(self, seen: LearningCurve, shift: float) -> None:
        def shifted(x: Observation) -> Observation:
            fitted = None if x.training_score is None else x.training_score + shift
            return replace(x, score=x.score + shift, training_score=fitted)

        there = LearningCurve(0, tuple(map(shifted, seen.observations)))
        bound = CalibratedBound(ceiling=math.inf)
        assume(bound.upper(seen, FULL) < projected_bound(seen, FULL, use_training_score=False))
        gain = bound.upper(seen, FULL) - seen.score
        assert bound.upper(there, FULL) - there.score == pytest.approx(gain, abs=1e-6)

    def test_promises_nothing_before_two_observations(self) -> None:
        assert CalibratedBound().upper(curve([0.8]), FULL) == math.inf
        assert CalibratedBound().prospect(curve([0.8]), FULL, 1000) == math.inf

    def test_without_training_scores_takes_the_table_made_for_that(self) -> None:
        scores, fitted = (0.6, 0.62, 0.63), (0.99, 0.98, 0.97)
        without = CalibratedBound(0.5, use_training_score=False)
        assert without.upper(curve(scores, fitted), FULL) == CalibratedBound(0.5).upper(
            curve(scores), FULL
        )
        assert without.upper(curve(scores, fitted), FULL) != CalibratedBound(0.5).upper(
            curve(scores, fitted), FULL
        )

    def test_few_validation_examples_widen_it_by_the_error_of_the_gain(self) -> None:
        table = GainTable((0.5, 0.95), ((0.1, 0, 0), (0.2, 0, 0)), ("rise",))
        bound = CalibratedBound(0.95, without_training_score=table)
        gain = bound.upper(curve([0.5, 0.6]), 2000) - 0.6  # of all examples: 0.2 x 0.1 x 1
        assert gain == pytest.approx(0.02)
        error = NormalDist().inv_cdf(0.95) * math.sqrt(gain / 200)
        assert bound.upper(curve([0.5, 0.6], n=200), 2000) == pytest.approx(0.62 + error)


class TestProspect:
    TABLE = GainTable((0.25, 0.75), ((0, 0, 0), (1, 0, 0)), ("rise",))

    @given(curves(), st.floats(0.001, 1), st.floats(0.001, 1))
    def test_falls_with_the_price_and_never_below_the_score(
        self, seen: LearningCurve, a: float, b: float
    ) -> None:
        cheap, dear = (CalibratedBound(price=p).prospect(seen, FULL, 1000) for p in sorted([a, b]))
        assert seen.score <= dear <= cheap

    @given(curves(), st.floats(0.01, 0.5), st.floats(0.02, 1))
    def test_the_expected_gain_above_it_is_the_price_of_the_next_step(
        self, seen: LearningCurve, price: float, share: float
    ) -> None:
        bound = CalibratedBound(price=price)
        probabilities, gains = bound._gains(seen, FULL)
        gaps = np.diff([0.0, *probabilities, 1.0])
        weights = np.array([*(gaps[:-2] + gaps[1:-1]) / 2, gaps[-2] / 2 + gaps[-1]])

        def surplus(level: float) -> float:
            return float(weights @ np.maximum(np.array(gains) - level, 0)) - price * share

        expected = brentq(surplus, 0, gains[-1]) if surplus(0) > 0 else 0.0
        size = round(share * FULL)
        assert bound.prospect(seen, FULL, size) == pytest.approx(seen.score + expected, abs=1e-4)

    @given(curves())
    def test_without_a_price_is_the_bound(self, seen: LearningCurve) -> None:
        bound = CalibratedBound(price=0.0)
        assert bound.prospect(seen, FULL, 1000) == bound.upper(seen, FULL)

    def test_what_is_cheap_to_find_out_is_found_out_more_surely(self) -> None:
        bound = CalibratedBound(price=0.05, without_training_score=self.TABLE)
        seen = curve([0.5, 0.6])
        assert bound.prospect(seen, FULL, 2000) > bound.prospect(seen, FULL, FULL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0.0}, r"`confidence` must be in \(0, 1\), but got 0.0"),
        ({"confidence": 1.0}, r"`confidence` must be in \(0, 1\), but got 1.0"),
        ({"price": -0.01}, "`price` must be at least 0, but got -0.01"),
        ({"price": math.nan}, "`price` must be at least 0, but got nan"),
        ({"inflation": 0.5}, "`inflation` must be at least 1, but got 0.5"),
        ({"ceiling": math.nan}, "`ceiling` must be a number or None"),
    ],
)
def test_bad_arguments(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CalibratedBound(**options)
