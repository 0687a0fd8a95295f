"""The curves of all learners, and rankings that follow every change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import invariant
from hypothesis.stateful import precondition
from hypothesis.stateful import rule

from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from tests.strategies import known_curves
from tests.strategies import learning_curves


def by_score(curve: LearningCurve) -> tuple[Any, ...] | None:
    return None if curve.dropped else (curve.score,)


def by_size_and_score(curve: LearningCurve) -> tuple[Any, ...] | None:
    return (curve.size, curve.score) if curve.size else None


def scores_of(curve: LearningCurve) -> list[float]:
    return [seen.score for seen in curve.observations]


def sorted_fully(curves: dict[int, LearningCurve], rank: Any) -> list[LearningCurve]:
    ranked = [curve for curve in curves.values() if rank(curve) is not None]
    ranked.sort(key=lambda curve: curve.learner)
    return sorted(ranked, key=rank, reverse=True)  # stable: the lower id stays first


class RankingsFollow(RuleBasedStateMachine):
    """Random changes, against a dict that is sorted anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.curves = Curves()
        self.model: dict[int, LearningCurve] = {}

    @rule(curve=st.integers(0, 5).flatmap(learning_curves), dropped=st.sampled_from(["", "bad"]))
    def put(self, curve: LearningCurve, dropped: str) -> None:
        self.model[curve.learner] = curve.drop(dropped)
        self.curves.put(curve.drop(dropped))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        learner = data.draw(st.sampled_from(sorted(self.model)))
        del self.model[learner]
        self.curves.remove(learner)

    @rule(rank=st.sampled_from([by_score, by_size_and_score]))
    def first_look(self, rank: Any) -> None:
        assert list(self.curves.ranking(rank)) == sorted_fully(self.model, rank)

    @invariant()
    def rankings_equal_a_full_sort(self) -> None:
        assert list(self.curves.ranking(by_score)) == sorted_fully(self.model, by_score)

    @invariant()
    def pools_equal_a_full_sort(self) -> None:
        everything = [score for curve in self.model.values() for score in scores_of(curve)]
        assert list(self.curves.pooled(scores_of)) == sorted(everything)

    @invariant()
    def holds_the_same_curves(self) -> None:
        assert dict(self.curves) == self.model
        assert len(self.curves) == len(self.model)


TestRankingsFollow = RankingsFollow.TestCase
TestRankingsFollow.settings = settings(max_examples=40, stateful_step_count=25)


@given(known=known_curves(), data=st.data())
def test_the_order_in_which_curves_come_is_irrelevant(
    known: list[LearningCurve], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(known))
    assert list(Curves(shuffled).ranking(by_score)) == list(Curves(known).ranking(by_score))


def test_the_largest_rank_goes_first_and_ties_to_the_lower_id() -> None:
    scores = {3: 0.5, 1: 0.25, 7: 0.5, 2: 0.75}
    curves = Curves(LearningCurve(i, (Observation(1, score),)) for i, score in scores.items())
    assert [curve.learner for curve in curves.ranking(by_score)] == [2, 3, 7, 1]


def test_a_rank_is_asked_once_for_each_new_curve() -> None:
    asked: list[int] = []

    def rank(curve: LearningCurve) -> tuple[Any, ...]:
        asked.append(curve.learner)
        return (curve.score,)

    curves = Curves(LearningCurve(learner) for learner in range(3))
    for _ in range(2):
        assert len(list(curves.ranking(rank))) == 3
    assert sorted(asked) == [0, 1, 2]
    curves.put(LearningCurve(1, (Observation(1, 0.5),)))
    assert [curve.learner for curve in curves.ranking(rank)] == [1, 0, 2]
    assert sorted(asked) == [0, 1, 1, 2]


def test_an_unknown_learner_is_a_key_error() -> None:
    curves = Curves([LearningCurve(1)])
    with pytest.raises(KeyError, match="2"):
        curves[2]
    with pytest.raises(KeyError, match="2"):
        curves.remove(2)
    assert 2 not in curves


def test_a_later_curve_of_a_learner_takes_the_place_of_the_earlier() -> None:
    later = LearningCurve(1, (Observation(1, 0.5),))
    assert dict(Curves([LearningCurve(1), later])) == {1: later}
