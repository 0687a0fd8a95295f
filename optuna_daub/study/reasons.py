"""What is said of a run when it ends, in the direction of the user's scores."""

from __future__ import annotations

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Reason
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study.ledger import Ledger


def spoken(reason: Reason, sign: int) -> str:
    """Return a reason of the core in the direction of the user: `sign` is -1 for minimize."""
    return str(reason.mirrored() if sign < 0 else reason)


def verdict(ledger: Ledger, policy: Policy, learner: int, decision: Decision) -> str:
    """Return why a run of `learner` ends or goes on, given what the policy wants done next."""
    curve = ledger.curves[learner]
    at = f"at {curve.size:,}" if curve.observations else "before its first size"
    if curve.dropped:
        return f"dropped {at}: {curve.dropped}"
    match decision:
        case Finish(winner, reason) if winner == learner:
            return f"best: {spoken(reason, ledger.sign)}"
        case Extend(other, size, reason) if other == learner:
            return f"next is {size:,}: {spoken(reason, ledger.sign)}"
        case Extend(other) | Finish(int(other)) if 0 < curve.size < policy.sizes[-1]:
            rival_curve = ledger.curves.get(other, LearningCurve(other))  # maybe still to come
            rival = policy.outranked(curve, rival_curve, ledger.curves)
            return f"suspended {at}: {spoken(rival, ledger.sign)}"
    if curve.size == policy.sizes[-1]:
        return f"trained on all {curve.size:,} examples"
    return f"suspended {at}: {spoken(decision.reason, ledger.sign)}"
