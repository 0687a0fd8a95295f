"""Curves and pools: immutable, equal to a plain dict, and made anew where something changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import invariant
from hypothesis.stateful import precondition
from hypothesis.stateful import rule

from optuna_daub.core import Cost
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.pool import CHUNK
from tests.strategies import costs
from tests.strategies import learning_curves
from tests.strategies import observations
from tests.strategies import pools


Row = tuple[float, ...]

ids = st.one_of(st.integers(0, 4), st.integers(CHUNK - 2, CHUNK + 2), st.integers(0, 20 * CHUNK))
"""The same few again and again, on either side of a border between chunks, and far ones."""


def facts(curve: LearningCurve) -> Row:
    return float(bool(curve.dropped)), float(curve.size), curve.score


def above(curve: LearningCurve, level: float) -> Row:
    return (float(curve.score > level),)


def rows(model: dict[int, LearningCurve], *question: float) -> list[Row]:
    """Return what a rule says of each curve, asked one by one in the order of the ids."""
    ask = above if question else facts
    return [ask(model[learner], *question) for learner in sorted(model)]


class CurvesAreADict(RuleBasedStateMachine):
    """Random changes, against a dict; every earlier value is kept and looked at again."""

    def __init__(self) -> None:
        super().__init__()
        self.curves = Curves()
        self.model: dict[int, LearningCurve] = {}
        self.earlier: list[tuple[Curves, dict[int, LearningCurve]]] = []

    def change(self, curves: Curves, model: dict[int, LearningCurve]) -> None:
        self.earlier.append((self.curves, self.model))
        self.curves, self.model = curves, model

    @rule(curve=ids.flatmap(learning_curves), dropped=st.sampled_from(["", "bad"]))
    def put(self, curve: LearningCurve, dropped: str) -> None:
        new = curve.drop(dropped)
        self.change(self.curves.put(new), {**self.model, curve.learner: new})

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        learner = data.draw(st.sampled_from(sorted(self.model)))
        left = {i: curve for i, curve in self.model.items() if i != learner}
        self.change(self.curves.remove(learner), left)

    @rule(learner=ids)
    def look_up(self, learner: int) -> None:
        assert self.curves.get(learner) == self.model.get(learner)
        assert (learner in self.curves) == (learner in self.model)
        if learner not in self.model:
            with pytest.raises(KeyError, match=f"^{learner}$"):
                self.curves[learner]
            with pytest.raises(KeyError, match=f"^{learner}$"):
                self.curves.remove(learner)

    @rule(level=st.sampled_from([0.25, 0.5]))
    def ask(self, level: float) -> None:
        expected = [list(row) for row in rows(self.model, level)]
        assert self.curves.columns(above, level).tolist() == expected

    @invariant()
    def holds_the_same_curves_in_the_order_of_their_ids(self) -> None:
        assert self.curves == self.model
        assert [*self.curves] == sorted(self.model) == self.curves.learners.tolist()
        assert len(self.curves) == len(self.model)
        anew = Curves(self.model.values())  # in the order in which they came
        assert self.curves == anew
        assert [*self.curves] == [*anew]

    @invariant()
    def columns_equal_the_rule_curve_by_curve(self) -> None:
        assert self.curves.columns(facts).tolist() == [list(row) for row in rows(self.model)]

    def teardown(self) -> None:
        for curves, model in self.earlier:
            assert curves == model
            assert curves.columns(facts).tolist() == [list(row) for row in rows(model)]


TestCurvesAreADict = CurvesAreADict.TestCase
TestCurvesAreADict.settings = settings(max_examples=40, stateful_step_count=25)


class TestCurves:
    def test_a_later_curve_of_a_learner_takes_the_place_of_the_earlier(self) -> None:
        later = LearningCurve(1, (Observation(1, 0.5),))
        assert dict(Curves([LearningCurve(1), later])) == {1: later}

    def test_the_same_object_is_equal_without_a_look_at_any_curve(self) -> None:
        class Closed(Curves):
            def __iter__(self) -> Iterator[int]:
                raise AssertionError("asked for its curves")

        closed = Closed([LearningCurve(0)])
        pool = Pool(closed)
        for left, right in ((closed, closed), (pool, dataclasses.replace(pool))):
            assert left == right
            assert not left != right  # noqa: SIM202
        with pytest.raises(AssertionError, match="asked for its curves"):
            assert closed == {0: LearningCurve(0)}

    def test_they_equal_nothing_that_is_no_mapping_and_have_no_hash(self) -> None:
        assert Curves() != ()
        assert Curves([LearningCurve(0)]) != Curves([LearningCurve(1)])
        with pytest.raises(TypeError, match="unhashable"):
            hash(Curves())


class TestOneMoreObservation:
    """Structure, not time: what is built anew and asked again, in small pools and in large."""

    @pytest.mark.parametrize("count", [20, 1000, 20_000])
    def test_rebuilds_one_chunk_and_asks_for_one_curve(self, count: int) -> None:
        asked: list[int] = []

        def score(curve: LearningCurve, times: float) -> Row:
            asked.append(curve.learner)
            return (times * curve.score,)

        before = Curves(LearningCurve(i, (Observation(1, i / count),)) for i in range(count))
        before.columns(score, 2.0)
        assert asked == [*range(count)]
        asked.clear()

        chosen = count // 2
        after = before.put(before[chosen].extended(Observation(2, 0.75)))
        columns = after.columns(score, 2.0)
        assert asked == [chosen]
        assert columns[chosen] == 1.5
        assert (np.delete(columns, chosen) == np.delete(before.columns(score, 2.0), chosen)).all()

        new = [n for n, chunk in after._chunks.items() if chunk is not before._chunks.get(n)]
        assert new == [chosen // CHUNK]
        assert len(after._chunks[chosen // CHUNK].curves) <= CHUNK
        kept = [curve is after[i] for i, curve in before.items() if i != chosen]
        assert all(kept)
        assert len(kept) == count - 1

    @pytest.mark.parametrize("count", [20, 20_000])
    def test_asks_nothing_where_nothing_changed(self, count: int) -> None:
        asked: list[int] = []

        def score(curve: LearningCurve) -> Row:
            asked.append(curve.learner)
            return (curve.score,)

        curves = Curves(LearningCurve(i, (Observation(1, 0.5),)) for i in range(count))
        assert curves.columns(score) is curves.columns(score)
        curves.put(LearningCurve(count)).remove(count).columns(score)
        assert len(asked) == count


class TestPool:
    @given(pool=pools(), data=st.data())
    def test_an_observation_is_added_and_its_cost_is_spent(
        self, pool: Pool, data: st.DataObject
    ) -> None:
        pool = pool.put(LearningCurve(7))
        seen = data.draw(observations(6))
        after = pool.observed(7, seen)
        assert after.curves[7] == LearningCurve(7, (seen,))
        assert after.spent.examples == pool.spent.examples + 6
        assert after.spent.seconds == pytest.approx(pool.spent.seconds + 0.006)
        assert pool.curves[7] == LearningCurve(7)
        untouched = dataclasses.replace(after, curves=pool.curves, spent=pool.spent)
        assert untouched == pool

    def test_an_observation_without_seconds_costs_its_examples(self) -> None:
        pool = Pool(to_come=1).with_newcomer(0)
        assert pool.observed(0, Observation(500, 0.8)).spent == Cost(500, 0.0)

    @given(pool=pools())
    def test_a_newcomer_is_one_less_to_come(self, pool: Pool) -> None:
        if not pool.may_propose:
            with pytest.raises(ValueError, match="`to_come` must be at least 0 or None, but got"):
                pool.with_newcomer(10_001)
            return
        after = pool.with_newcomer(10_001)
        assert after.curves[10_001] == LearningCurve(10_001)
        assert after.to_come == (None if pool.to_come is None else pool.to_come - 1)
        assert (after.busy, after.spent, after.left) == (pool.busy, pool.spent, pool.left)

    def test_a_dropped_learner_keeps_its_observations_and_its_reason(self) -> None:
        pool = Pool(to_come=1).with_newcomer(3).observed(3, Observation(500, 0.8))
        after = pool.dropped(3, "failed twice")
        assert pool.dropped(3, "worst", "ruled out").curves[3].cause == "ruled out"
        assert after.curves[3] == LearningCurve(3, (Observation(500, 0.8),), "failed twice")
        assert pool.curves[3].dropped == ""

    def test_a_rule_is_asked_once_of_each_pool(self) -> None:
        asked: list[int] = []

        def learners(pool: Pool, more: int) -> int:
            asked.append(len(pool.curves))
            return len(pool.curves) + more

        pool = Pool(to_come=2)
        later = pool.with_newcomer(0)
        assert [pool.once(learners, 1), pool.once(learners, 1), later.once(learners, 1)] == [
            1,
            1,
            2,
        ]
        assert pool.once(learners, 5) == 5
        assert asked == [0, 1, 0]
        assert pool == Pool(to_come=2)  # what was asked is no part of a value


@given(a=costs, b=costs)
def test_costs_add_up(a: Cost, b: Cost) -> None:
    assert a + b == Cost(a.examples + b.examples, a.seconds + b.seconds) == b + a
    assert a + Cost() == a
