"""Replaying a policy over known curves."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field

import pytest
from hypothesis import given

from optuna_daub.core import DAUB
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import Reason
from optuna_daub.core import Wait
from optuna_daub.core import replay
from tests.core.stepping import steps
from tests.strategies import GRID
from tests.strategies import known_curves


WHY = Reason("as the script says")


@dataclass(frozen=True, eq=False)
class Scripted(Policy):
    """A policy that reads its answers from a list and keeps what it was shown."""

    sizes: tuple[int, ...] = (1, 2, 3)
    script: list[Decision] = field(default_factory=list)
    shown: list[Pool] = field(default_factory=list)

    def decide(self, pool: Pool) -> Decision:
        assert not pool.busy
        self.shown.append(pool)
        return self.script[len(self.shown) - 1]


def known(*learners: int) -> list[LearningCurve]:
    probes = tuple(Observation(size, size / 10) for size in (1, 2, 3))
    return [LearningCurve(learner, probes) for learner in learners]


def test_a_policy_sees_an_observation_only_once_it_has_asked_for_it() -> None:
    script = [Propose(1, WHY), Propose(2, WHY), Extend(7, 3, WHY), Finish(7, WHY)]
    policy = Scripted(script=script)
    told = list(replay(policy, known(7, 4)))
    assert told == [Extend(7, 1, WHY), Extend(4, 2, WHY), *script[2:]]
    assert [{i: curve.sizes for i, curve in pool.curves.items()} for pool in policy.shown] == [
        {},
        {7: (1,)},
        {4: (2,), 7: (1,)},
        {4: (2,), 7: (1, 3)},
    ]
    assert [pool.to_come for pool in policy.shown] == [2, 1, 0, 0]
    assert [pool.spent.examples for pool in policy.shown] == [0, 1, 3, 6]


def test_a_drop_is_carried_out() -> None:
    policy = Scripted(script=[Propose(1, WHY), Propose(1, WHY), Drop(7, WHY), Finish(4, WHY)])
    assert list(replay(policy, known(4, 7)))[2:] == policy.script[2:]
    assert policy.shown[-1].curves[7].dropped == "as the script says"
    assert not policy.shown[-1].curves[4].dropped


def test_a_learner_that_lacks_the_size_is_dropped() -> None:
    policy = Scripted(script=[Propose(1000, WHY), Finish(None, WHY)], sizes=(1000, 2000, 3000))
    told = list(replay(policy, [LearningCurve(0)]))
    assert told == [Extend(0, 1000, WHY), Drop(0, Reason("failed at 1,000")), policy.script[1]]
    assert policy.shown[-1].curves[0].dropped == "failed at 1,000"


def test_waiting_for_no_learner_is_an_error() -> None:
    with pytest.raises(ValueError, match="Scripted must not wait if no learner is busy"):
        list(replay(Scripted(script=[Wait(WHY)]), known(0)))


def test_no_learner_is_trained_before_the_decision_is_read() -> None:
    policy = Scripted(script=[Propose(1, WHY), Finish(0, WHY)])
    decisions = replay(policy, known(0))
    assert policy.shown == []
    next(decisions)
    assert len(policy.shown) == 1


@given(curves=known_curves())
def test_makes_the_decisions_of_one_worker(curves: list[LearningCurve]) -> None:
    policy = DAUB(GRID)
    expected = [
        Extend(step.newcomer, step.decision.size, step.decision.reason)
        if isinstance(step.decision, Propose) and step.newcomer is not None
        else step.decision
        for step in steps(policy, curves)
    ]
    assert list(replay(policy, curves)) == expected
