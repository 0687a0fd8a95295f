"""Calibrated quantiles: what they must satisfy on any curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Calibrated
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import projected_bound
from optuna_daub.core.forecasts.gains import GainTable
from optuna_daub.core.forecasts.gains import describe
from optuna_daub.core.forecasts.gains import shipped


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


def upper(
    seen: LearningCurve, size: int = FULL, confidence: float = 0.95, **options: Any
) -> float:
    """Return the quantile of a learner that is alone in the pool."""
    forecasts = Calibrated(**options).forecasts(Pool().put(seen), size)
    return float(forecasts[seen.learner].quantile(confidence))


class TestQuantiles:
    @given(curves(), confidences)
    def test_is_the_score_at_the_full_size(self, seen: LearningCurve, confidence: float) -> None:
        assert upper(seen, seen.size, confidence) == pytest.approx(seen.score)

    @given(curves(), confidences, st.floats(1, 100), st.floats(1, 100))
    def test_never_falls_with_more_data_left(
        self, seen: LearningCurve, confidence: float, a: float, b: float
    ) -> None:
        near, far = (int(seen.size * factor) for factor in sorted([a, b]))
        assert upper(seen, near, confidence) <= upper(seen, far, confidence) + 1e-12

    @given(curves(), confidences, confidences)
    def test_never_falls_with_the_confidence(
        self, seen: LearningCurve, a: float, b: float
    ) -> None:
        low, high = sorted([a, b])
        assert upper(seen, confidence=low) <= upper(seen, confidence=high)

    @given(st.lists(unit, min_size=3, max_size=3), confidences, st.sampled_from([None, 50]))
    def test_is_never_above_the_projection_where_that_is_valid(
        self, scores: list[float], confidence: float, n: int | None
    ) -> None:
        first, second, third = sorted(scores)
        assume(second - first >= (third - second) / 2 > 0)
        seen = curve([first, second, third], n=n)
        projected = projected_bound(seen, FULL, use_training_score=False)
        assert upper(seen, confidence=confidence, ceiling=math.inf) <= projected + 1e-9

    @given(curves())
    def test_is_at_most_one_for_a_score_between_0_and_1(self, seen: LearningCurve) -> None:
        assert seen.score <= upper(seen, confidence=0.99) <= 1

    @given(curves(), st.floats(-1e3, 1e3))
    def test_moves_with_the_score(self, seen: LearningCurve, shift: float) -> None:
        def shifted(x: Observation) -> Observation:
            fitted = None if x.training_score is None else x.training_score + shift
            return replace(x, score=x.score + shift, training_score=fitted)

        there = LearningCurve(0, tuple(map(shifted, seen.observations)))
        stated = upper(seen, ceiling=math.inf)
        assume(stated < projected_bound(seen, FULL, use_training_score=False))
        gain = stated - seen.score
        assert upper(there, ceiling=math.inf) - there.score == pytest.approx(gain, abs=1e-6)

    def test_promises_nothing_before_two_observations(self) -> None:
        for seen in (LearningCurve(0), curve([0.8])):
            forecast = Calibrated().forecasts(Pool().put(seen), FULL)[0]
            assert float(forecast.quantile(0.6)) == float(forecast.mean) == math.inf
            assert float(forecast.reservation_value(0.1)) == math.inf
        assert float(Calibrated().newcomer(Pool(), FULL).mean) == math.inf

    def test_without_training_scores_takes_the_table_made_for_that(self) -> None:
        scores, fitted = (0.6, 0.62, 0.63), (0.99, 0.98, 0.97)
        without = upper(curve(scores, fitted), confidence=0.5, use_training_score=False)
        assert without == upper(curve(scores), confidence=0.5)
        assert without != upper(curve(scores, fitted), confidence=0.5)

    def test_few_validation_examples_widen_it_by_the_error_of_the_gain(self) -> None:
        table = GainTable((0.5, 0.95), ((0.1, 0, 0), (0.2, 0, 0)), ("rise",))
        gain = (
            upper(curve([0.5, 0.6]), 2000, with_training_score=table, without_training_score=table)
            - 0.6
        )  # of all examples: 0.2 x 0.1 x 1
        assert gain == pytest.approx(0.02)
        error = NormalDist().inv_cdf(0.95) * math.sqrt(gain / 200)
        few = upper(
            curve([0.5, 0.6], n=200), 2000, with_training_score=table, without_training_score=table
        )
        assert few == pytest.approx(0.62 + error)


def test_each_learner_has_the_probabilities_of_its_own_table() -> None:
    """The quantile that a table states at p is the one at p, whichever table it is."""
    scored = curve([0.5, 0.52, 0.65], [0.9, 0.85, 0.8])
    unscored = replace(curve([0.5, 0.52, 0.65]), learner=1)
    both = Calibrated(ceiling=math.inf).forecasts(Pool().put(scored).put(unscored), 2200)
    for seen in (scored, unscored):
        table = shipped()[seen is scored]
        gains = table.gains(describe(seen.observations), math.log2(2200 / 2000))
        for probability, gain in zip(table.probabilities, gains, strict=True):
            found = float(both[seen.learner].quantile(probability))
            assert found == pytest.approx(0.65 + gain)


def test_both_tables_state_equally_many_quantiles() -> None:
    one = GainTable((0.5,), ((1.0, 0.0, 0.0),), ("rise",))
    with pytest.raises(ValueError, match="equally many quantiles, but got 1 and 8"):
        Calibrated(with_training_score=one)


def test_a_ceiling_is_a_number() -> None:
    with pytest.raises(ValueError, match="`ceiling` must be a number or None, but got nan"):
        Calibrated(ceiling=math.nan)
