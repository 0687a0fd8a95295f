"""Run a policy over learning curves that are already known, without training anything."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Drop
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Reason
from optuna_daub.core.policies.decision import Wait
from optuna_daub.core.policies.protocol import Policy


def replay(policy: Policy, known: Iterable[LearningCurve]) -> Iterator[Decision]:
    """Yield the decisions of `policy`, in order, each with its reason; the last is a `Finish`.

    Args:
        policy: the rule to run; it sees an observation only once it has asked for it.
        known: one curve per learner. Where a curve lacks a size that the policy asks for, or its
            score there is no finite number, the learner counts as failed and is dropped.

    >>> from optuna_daub.core import DAUB, LearningCurve, Observation
    >>> sizes = (500, 750, 1125, 1688)
    >>> def curve(learner, full_score):
    ...     seen = tuple(Observation(n, full_score - 10 / n) for n in sizes)
    ...     return LearningCurve(learner, seen)
    >>> decisions = list(replay(DAUB(sizes), [curve(0, 0.8), curve(1, 0.9)]))
    >>> [(step.learner, step.size) for step in decisions[-2:-1]], decisions[-1].learner
    ([(1, 1688)], 1)
    """
    table = {curve.learner: curve for curve in known}
    curves = Curves(LearningCurve(learner) for learner in table)
    while True:
        decision = policy.decide(curves)
        yield decision
        match decision:
            case Extend(learner, size):
                seen = table[learner].at(size)
                before = curves[learner]
                after = before.extended(seen) if seen else before.drop(f"failed at {size:,}")
                curves.put(after)
                if after.dropped:
                    yield Drop(learner, Reason(after.dropped))
            case Drop(learner, reason):
                curves.put(curves[learner].drop(str(reason)))
            case Finish():
                return
            case Wait():
                raise AssertionError(f"{policy} waits although no learner is busy")
