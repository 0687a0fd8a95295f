"""Sentences on errors and on states of learners, in the direction of the user's scores."""

from __future__ import annotations

from textwrap import shorten

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import why_not
from optuna_daub.core.limits import Limits
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool


TAKEN_FOR_DEAD = "its worker was taken for dead, and the learner is free for others"

MAX_TEXT = 120
"""Largest number of characters of an error message that are stored."""


def message_of(error: BaseException | None) -> str:
    """Return an error's type and its message's first line; empty without one.

    >>> message_of(ValueError("Input contains NaN.\\nSee the manual.")), message_of(MemoryError())
    ('ValueError: Input contains NaN.', 'MemoryError')
    """
    if error is None:
        return ""
    try:
        message = str(error).partition("\n")[0]
    except Exception:  # of a class whose `__str__` fails
        message = "(an error without a message)"
    return shorten(f"{type(error).__name__}: {message}".rstrip(": "), MAX_TEXT, placeholder="...")


def in_column(score: float) -> str:
    """Return a score or a loss for a table: in four decimals, or in four digits if these say more.

    >>> in_column(0.00125), in_column(2590103594.7), in_column(1.5e-7), in_column(0.0)
    ('0.0013', '2.59e+09', '1.5e-07', '0.0000')
    """
    has_decimals = not score or 1e-4 <= abs(score) < 1e4
    return f"{score:.4f}" if has_decimals else f"{score:.4g}"


def repetition(learner: int) -> str:
    """Return the reason for which a new learner with the parameters of `learner` ends."""
    return f"has the parameters of learner {learner}: the same parameters are one learner"


def status(
    policy: Policy,
    pool: Pool,
    sign: int,
    learner: int,
    decision: Decision,
    limits: Limits,
) -> str:
    """Return why a learner goes on or does not, given the policy's decision."""
    curve = pool.curves[learner]
    at = f"at {curve.size:,}" if curve.observations else "before its first size"
    if curve.dropped and curve.cause == "ruled out" and curve.size >= policy.sizes[-1]:
        return f"trained on all {curve.size:,} examples, and ruled out: {curve.dropped}"
    if curve.dropped:
        return f"dropped {at}: {curve.dropped}"
    if isinstance(decision, Finish) and decision.learner == learner:
        return f"best: {decision.reason.told(sign, limits)}"
    if isinstance(decision, Extend) and decision.learner == learner:
        return f"next is {decision.size:,}: {decision.reason.told(sign, limits)}"
    if curve.size >= policy.sizes[-1]:
        return f"trained on all {curve.size:,} examples"
    why = why_not(decision, learner) if curve.observations else decision.reason
    return f"suspended {at}: {why.told(sign, limits)}"
