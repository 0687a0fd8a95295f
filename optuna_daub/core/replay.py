"""Replay of a policy on known learning curves, without any training."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.decision import check_decision
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.core.space import Space


def replay(
    policy: Policy, known: Iterable[LearningCurve], space: Space | None = None
) -> Iterator[Decision]:
    """Yield the decisions of `policy` in order; the last one is a `Finish`.

    Args:
        policy: the rule to run; it sees an observation only after it has asked for it.
        known: one curve per learner, in the order in which new learners are proposed. If a curve
            lacks a size that the policy asks for, or its score there is not finite, the learner
            counts as failed and is dropped.
        space: space of the parameters; None: the ranges of the learners' parameters.

    Yields:
        Decisions with their reasons. In place of a `Propose` comes the `Extend` of the new
        learner, or its `Drop` if the policy declines it.

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
    newcomers = iter(table)
    pool = Pool(to_come=len(table), space=space)
    while True:
        decision = policy.decide(pool)
        check_decision(decision, pool, policy.sizes, type(policy).__name__)
        if isinstance(decision, Propose):
            newcomer = next(newcomers)
            pool = pool.with_newcomer(newcomer, table[newcomer].parameters)
            start = policy.start(pool, newcomer, decision.size)
            if isinstance(start, Extend) and start.size == decision.size:
                start = Extend(newcomer, decision.size, decision.reason)
            decision = start
        yield decision
        match decision:
            case Extend(learner, size):
                seen = table[learner].at(size)
                if seen is None:
                    pool = pool.dropped(learner, f"failed at {size:,}")
                else:
                    pool = pool.observed(learner, seen)
                if reason := pool.curves[learner].dropped:
                    yield Drop(learner, Reason(reason))
            case Drop(learner, reason):
                pool = pool.dropped(learner, str(reason), "ruled out")
            case Finish():
                return
            case Wait():
                raise ValueError(f"{type(policy).__name__} must not wait if no learner is busy.")
