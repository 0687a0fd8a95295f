"""Replaying a policy over known curves."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from dataclasses import field

import pytest
from hypothesis import given

from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Interval
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Reason
from optuna_daub.core import Wait
from optuna_daub.core import replay
from tests.core.policy_suite import steps
from tests.strategies import LADDER
from tests.strategies import known_curves


WHY = Reason("as the script says")


@dataclass
class Scripted:
    """A policy that reads its answers from a list and keeps what it was shown."""

    script: list[Decision]
    sizes: tuple[int, ...] = (1, 2, 3)
    shown: list[dict[int, LearningCurve]] = field(default_factory=list)

    def decide(self, curves: Curves, busy: Collection[int] = frozenset()) -> Decision:
        assert not busy
        self.shown.append(dict(curves))
        return self.script[len(self.shown) - 1]

    def interval(self, curve: LearningCurve, curves: Curves) -> Interval:
        return Interval()

    def outranked(self, curve: LearningCurve, by: LearningCurve, curves: Curves) -> Reason:
        return WHY


def known(*learners: int) -> list[LearningCurve]:
    probes = tuple(Observation(size, size / 10) for size in (1, 2, 3))
    return [LearningCurve(learner, probes) for learner in learners]


def test_a_policy_sees_an_observation_only_once_it_has_asked_for_it() -> None:
    policy = Scripted([Extend(4, 1, WHY), Extend(7, 2, WHY), Extend(4, 3, WHY), Finish(4, WHY)])
    assert list(replay(policy, known(4, 7))) == policy.script
    assert [{i: curve.sizes for i, curve in shown.items()} for shown in policy.shown] == [
        {4: (), 7: ()},
        {4: (1,), 7: ()},
        {4: (1,), 7: (2,)},
        {4: (1, 3), 7: (2,)},
    ]


def test_a_drop_is_carried_out() -> None:
    policy = Scripted([Drop(7, WHY), Finish(4, WHY)])
    assert list(replay(policy, known(4, 7))) == policy.script
    assert policy.shown[-1][7].dropped == "as the script says"
    assert not policy.shown[-1][4].dropped


def test_a_learner_that_lacks_the_size_is_dropped() -> None:
    policy = Scripted([Extend(0, 1000, WHY), Finish(None, WHY)], sizes=(1000, 2000, 3000))
    told = list(replay(policy, [LearningCurve(0)]))
    assert told == [policy.script[0], Drop(0, Reason("failed at 1,000")), policy.script[1]]
    assert policy.shown[-1][0].dropped == "failed at 1,000"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_finite_number_drops_the_learner(score: float) -> None:
    policy = Scripted([Extend(0, 1, WHY), Finish(None, WHY)])
    _, dropped, _ = replay(policy, [LearningCurve(0, (Observation(1, score),))])
    assert isinstance(dropped, Drop)
    assert str(dropped.reason) == f"score {score} at 1 examples"


def test_waiting_for_nobody_is_an_error() -> None:
    with pytest.raises(AssertionError, match="waits although no learner is busy"):
        list(replay(Scripted([Wait(WHY)]), known(0)))


def test_training_twice_at_a_size_is_an_error() -> None:
    policy = Scripted([Extend(0, 1, WHY), Extend(0, 1, WHY)])
    with pytest.raises(ValueError, match="strictly increasing"):
        list(replay(policy, known(0)))


def test_nobody_is_trained_before_the_decision_is_read() -> None:
    policy = Scripted([Extend(0, 1, WHY), Finish(0, WHY)])
    decisions = replay(policy, known(0))
    assert policy.shown == []
    next(decisions)
    assert len(policy.shown) == 1


@given(curves=known_curves())
def test_makes_the_decisions_of_one_worker(curves: list[LearningCurve]) -> None:
    policy = DAUB(LADDER)
    expected = [step.decision for step in steps(policy, curves)]
    assert list(replay(policy, curves)) == expected
