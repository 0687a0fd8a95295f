"""What every policy must satisfy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Interval
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Wait
from tests.strategies import N_VALIDATION
from tests.strategies import known_curves


# The suite is inherited, and its policies are frozen values: both warnings are beside the point.
of_suite = settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
)


@dataclasses.dataclass(frozen=True)
class Step:
    """What a policy was asked, and what it answered."""

    curves: Curves
    busy: frozenset[int]
    decision: Decision


def steps(
    policy: Policy,
    known: Iterable[LearningCurve],
    workers: int = 1,
    next_done: Callable[[list[int]], int] = min,
) -> Iterator[Step]:
    """Yield what happens when `workers` train in parallel and end in the order of `next_done`.

    The curves of a step are those the policy saw, until the next step is asked for.
    """
    table = {curve.learner: curve for curve in known}
    curves = Curves(LearningCurve(learner) for learner in table)
    running: dict[int, int] = {}
    # Each learner starts and ends once at each size, and is dropped once at most.
    for _ in range(len(table) * (2 * len(policy.sizes) + 1) + 1):
        step = Step(curves, frozenset(running), policy.decide(curves, frozenset(running)))
        yield step
        match step.decision:
            case Extend(learner, size):
                running[learner] = size
            case Drop(learner, reason):
                curves.put(curves[learner].drop(str(reason)))
            case Wait():
                assert running, f"{policy} waits although no learner is busy"
            case Finish():
                return
        if len(running) == workers or isinstance(step.decision, Wait):
            done = next_done(sorted(running))
            seen = table[done].at(running.pop(done))
            before = curves[done]
            curves.put(before.extended(seen) if seen else before.drop("failed"))
    raise AssertionError(f"{policy} does not finish")


def flat(learner: int, sizes: tuple[int, ...], score: float) -> LearningCurve:
    """Return a learner that is as good with little data as with all of them, and no better."""
    observations = (Observation(n, score, score, n_validation=N_VALIDATION) for n in sizes)
    return LearningCurve(learner, tuple(observations))


class PolicyTestCase:
    """Subclass it and override `policy`; four to six sizes keep it fast.

    >>> class TestHalving(PolicyTestCase):
    ...     @pytest.fixture
    ...     def policy(self):
    ...         return SuccessiveHalving(sizes=(500, 1000, 2000, 4000))
    """

    slack = 0.0
    """By how much the answer may miss the best score where nothing is uncertain."""

    @pytest.fixture
    def policy(self) -> Policy:
        raise NotImplementedError("a subclass says which policy is tested")

    @of_suite
    @given(data=st.data())
    def test_each_step_trains_one_learner_on_a_larger_size(
        self, policy: Policy, data: st.DataObject
    ) -> None:
        known = data.draw(known_curves(policy.sizes))
        for step in steps(policy, known):
            if isinstance(step.decision, Extend):
                assert step.decision.size in policy.sizes
                assert step.decision.size > step.curves[step.decision.learner].size

    @of_suite
    @given(data=st.data())
    def test_the_answer_was_trained_on_all_the_data(
        self, policy: Policy, data: st.DataObject
    ) -> None:
        *_, last = steps(policy, data.draw(known_curves(policy.sizes)))
        assert isinstance(last.decision, Finish)
        assert last.decision.learner is not None
        assert last.curves[last.decision.learner].size == policy.sizes[-1]
        assert not last.curves[last.decision.learner].dropped

    @of_suite
    @given(data=st.data())
    def test_the_order_and_the_history_of_the_curves_are_irrelevant(
        self, policy: Policy, data: st.DataObject
    ) -> None:
        for step in steps(policy, data.draw(known_curves(policy.sizes))):
            shuffled = data.draw(st.permutations(list(step.curves.values())))
            assert policy.decide(Curves(shuffled)) == step.decision

    @of_suite
    @given(data=st.data())
    def test_asking_again_changes_nothing(self, policy: Policy, data: st.DataObject) -> None:
        twin = dataclasses.replace(policy)  # type: ignore[type-var]
        for step in steps(policy, data.draw(known_curves(policy.sizes))):
            before = dict(step.curves)
            assert policy.decide(step.curves) == step.decision
            assert twin.decide(step.curves) == step.decision
            assert dict(step.curves) == before

    @of_suite
    @given(data=st.data())
    def test_one_learner_alone_is_simply_trained(
        self, policy: Policy, data: st.DataObject
    ) -> None:
        known = data.draw(known_curves(policy.sizes, max_learners=1))
        *training, last = [step.decision for step in steps(policy, known)]
        assert all(isinstance(decision, Extend) for decision in training)
        assert isinstance(last, Finish)
        assert last.learner == known[0].learner

    @of_suite
    @given(ends=st.lists(st.integers(0, 85), min_size=1, max_size=6))
    def test_the_best_is_found_where_nothing_is_uncertain(
        self, policy: Policy, ends: list[int]
    ) -> None:
        best = [end * 3 / 256 for end in ends]
        known = [flat(learner, policy.sizes, score) for learner, score in enumerate(best)]
        *_, last = steps(policy, known)
        assert isinstance(last.decision, Finish)
        assert last.decision.learner is not None
        assert best[last.decision.learner] >= max(best) - self.slack

    @of_suite
    @given(data=st.data(), workers=st.integers(2, 4))
    def test_busy_learners_are_left_alone(
        self, policy: Policy, data: st.DataObject, workers: int
    ) -> None:
        def done(busy: list[int]) -> int:
            return data.draw(st.sampled_from(busy))

        probes: list[tuple[int, int]] = []
        for step in steps(policy, data.draw(known_curves(policy.sizes)), workers, done):
            if isinstance(step.decision, Extend):
                assert step.decision.learner not in step.busy
                probes.append((step.decision.learner, step.decision.size))
            if isinstance(step.decision, Finish):
                assert step.decision.learner is not None
                assert step.curves[step.decision.learner].size == policy.sizes[-1]
        assert len(set(probes)) == len(probes)

    @of_suite
    @given(data=st.data())
    def test_dropped_learners_get_no_data(self, policy: Policy, data: st.DataObject) -> None:
        known = data.draw(known_curves(policy.sizes, failures=True))
        for step in steps(policy, known):
            alive = {learner for learner, curve in step.curves.items() if not curve.dropped}
            match step.decision:
                case Extend(learner, _):
                    assert learner in alive
                case Drop(learner, _):
                    assert learner in alive
                    assert len(alive) > 1, "the last learner is never dropped"
                case Finish(learner, _):
                    assert learner in alive or (learner is None and not alive)

    def test_no_learner_left_is_an_answer(self, policy: Policy) -> None:
        *_, last = steps(policy, [LearningCurve(0), LearningCurve(1)])
        assert isinstance(last.decision, Finish)
        assert last.decision.learner is None

    @of_suite
    @given(data=st.data())
    def test_reasons_are_sentences_in_both_directions(
        self, policy: Policy, data: st.DataObject
    ) -> None:
        turn: LearningCurve | None = None
        for step in steps(policy, data.draw(known_curves(policy.sizes))):
            reasons = [step.decision.reason]
            if isinstance(step.decision, Extend):
                now = step.curves[step.decision.learner]
                if turn and turn.learner != now.learner:
                    before = step.curves[turn.learner]
                    reasons.append(policy.outranked(before, now, step.curves))
                turn = now
            for reason in reasons:
                for text in (str(reason), str(reason.mirrored())):
                    assert text
                    assert not set(text) & set("{}\n")

    @of_suite
    @given(data=st.data())
    def test_every_learner_has_an_interval(self, policy: Policy, data: st.DataObject) -> None:
        for step in steps(policy, data.draw(known_curves(policy.sizes))):
            for curve in step.curves.values():
                assert isinstance(policy.interval(curve, step.curves), Interval)

    def test_a_policy_is_a_value(self, policy: Any) -> None:
        assert dataclasses.replace(policy) == policy
        assert hash(dataclasses.replace(policy)) == hash(policy)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
            policy.sizes = ()
