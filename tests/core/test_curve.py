"""Observations and learning curves."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from tests.strategies import GRID
from tests.strategies import learning_curves
from tests.strategies import scores


@pytest.mark.parametrize("size", [0, -500])
def test_a_training_size_is_at_least_1(size: int) -> None:
    with pytest.raises(ValueError, match=f"must be at least 1, but got {size}"):
        LearningCurve(0, (Observation(size, 0.5),))


@pytest.mark.parametrize("errors", [-1, 1.5, "x", None])
def test_errors_are_counted(errors: Any) -> None:
    with pytest.raises(ValueError, match="`errors` must be"):
        LearningCurve(0, errors=errors)


@given(sizes=st.lists(st.integers(1, 20), min_size=2, max_size=5))
def test_sizes_are_strictly_increasing(sizes: list[int]) -> None:
    seen = tuple(Observation(size, 0.5) for size in sizes)
    if sizes == sorted(set(sizes)):
        assert LearningCurve(7, seen).sizes == tuple(sizes)
    else:
        with pytest.raises(ValueError, match="strictly increasing, but learner 7 has"):
            LearningCurve(7, seen)


def test_before_the_first_probe_every_other_score_is_better() -> None:
    empty = LearningCurve(7)
    assert (empty.sizes, empty.size, empty.score, empty.dropped) == ((), 0, -math.inf, "")


@given(seen=learning_curves(7).filter(lambda curve: curve.size > 0))
def test_size_and_score_are_those_of_the_last_probe(seen: LearningCurve) -> None:
    last = seen.observations[-1]
    assert (seen.size, seen.score) == (last.size, last.score)
    assert seen.sizes == GRID[: len(seen.observations)]


@given(seen=learning_curves(7, complete=True))
def test_extended_by_many_is_extended_one_by_one(seen: LearningCurve) -> None:
    one_by_one = LearningCurve(7)
    for probe in seen.observations:
        one_by_one = one_by_one.extended(probe)
    assert LearningCurve(7).extended(*seen.observations) == one_by_one == seen
    assert seen.extended() == seen


@given(seen=learning_curves(7).filter(lambda curve: curve.size > 0), score=scores)
def test_no_size_is_trained_twice(seen: LearningCurve, score: float) -> None:
    for size in seen.sizes:
        with pytest.raises(ValueError, match="strictly increasing"):
            seen.extended(Observation(size, score))


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (math.nan, "nan"),
        (math.inf, "infinite"),
        (-math.inf, "infinite"),
        (1e200, "beyond 1e+100"),
        (-1e300, "beyond 1e+100"),
    ],
)
def test_a_score_that_is_no_finite_number_drops_the_learner(score: float, said: str) -> None:
    """The core does not know the user's sign, so none is named."""
    curve = LearningCurve(7).extended(Observation(1500, score))
    assert curve.dropped == f"score {said} at 1,500 examples"
    assert curve.size == 1500


def test_a_training_score_that_is_nan_drops_the_learner() -> None:
    assert LearningCurve(7).extended(Observation(1500, 0.5, math.nan)).cause == "collapsed"
    assert LearningCurve(7, (Observation(1500, 0.5, math.nan),)).cause == "collapsed"


@given(seen=learning_curves(7))
def test_drop_keeps_the_observations_and_says_why(seen: LearningCurve) -> None:
    dropped = seen.drop("failed twice")
    assert (dropped.cause, seen.cause) == ("failed", "")
    assert seen.drop("worst", "ruled out").cause == "ruled out"
    assert dropped.drop("") == seen
    assert dropped == LearningCurve(7, seen.observations, "failed twice")
    assert seen.dropped == ""


@given(seen=learning_curves(7))
def test_a_dropped_learner_stays_dropped(seen: LearningCurve) -> None:
    probe = Observation(GRID[-1] + 1, 0.5)
    extended = seen.drop("worst", "ruled out").extended(probe)
    assert (extended.dropped, extended.cause) == ("worst", "ruled out")
    collapsed = extended.extended(Observation(GRID[-1] + 2, math.nan))
    assert collapsed.cause == "ruled out"  # that was first


@given(seen=learning_curves(7), size=st.integers(1, 60))
def test_at_finds_what_was_observed_at_a_size(seen: LearningCurve, size: int) -> None:
    assert seen.at(size) == {o.size: o for o in seen.observations}.get(size)
    assert (size in seen) == (size in seen.sizes)


def test_a_rule_is_asked_once_of_each_curve() -> None:
    asked: list[LearningCurve] = []

    def best(curve: LearningCurve) -> float:
        asked.append(curve)
        return max(seen.score for seen in curve.observations)

    curve = LearningCurve(0, (Observation(1, 0.7), Observation(2, 0.6)))
    longer = curve.extended(Observation(3, 0.8))
    assert [curve.once(best), curve.once(best), longer.once(best)] == [0.7, 0.7, 0.8]
    assert asked == [curve, longer]
    assert curve == LearningCurve(0, curve.observations)  # what was asked is no part of a value


def test_a_curve_is_a_key_whatever_its_parameters() -> None:
    plain, named = LearningCurve(0), LearningCurve(0, parameters={"x": [1]})
    assert hash(plain) == hash(named)
    assert plain != named
