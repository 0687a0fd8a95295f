"""Synchronous successive halving: a baseline that drops the worse part at every size.

[1] K. Jamieson, A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization", AISTATS 2016. https://arxiv.org/abs/1502.07943
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.policies.policy import Needs
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.policies.policy import nothing_left
from optuna_daub.core.pool import Pool
from optuna_daub.core.steps import next_of_grid


@dataclass(frozen=True)
class SuccessiveHalving(Policy):
    """Successive halving: train all on one size, keep the best part, go on to the next size.

    The last one left is trained on the full size at once. If it fails there, there is no answer:
    those that were ruled out get no more data.

    >>> from optuna_daub.core import Curves, Observation
    >>> halving = SuccessiveHalving(sizes=(500, 1000, 2000), keep_one_in=2)
    >>> scores = {0: 0.6, 1: 0.7}
    >>> seen = [LearningCurve(i, (Observation(500, score),)) for i, score in scores.items()]
    >>> halving.decide(Pool(Curves(seen))).learner
    0
    """

    keep_one_in: int = 2
    """Divisor of the number of learners, at least 2: 2 keeps the better half (rounded up), as in
    [1], 3 the best third."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole_number("keep_one_in", self.keep_one_in) < 2:
            raise ValueError(f"`keep_one_in` must be at least 2, but got {self.keep_one_in}.")

    @property
    def needs(self) -> Needs:
        """Requirements: a closed pool, since rounds depend on the number of learners."""
        return Needs(training_scores="unused", closed_pool=True)

    def decide(self, pool: Pool) -> Decision:
        """Return the next decision. A pass of the loop in [1] Algorithm 1 is one size here."""
        alive = [curve for curve in pool.curves.values() if not curve.dropped]
        smallest = min((curve.size for curve in alive), default=0)
        last = [curve for curve in alive if curve.size == smallest]
        following = next((c for c in last if c.learner not in pool.busy), None)  # in order of ids
        if pool.may_propose and (smallest or following is None):
            return Propose(self.sizes[0], Reason("every learner is trained on the smallest size"))
        if not alive:
            return Finish(None, _nothing_left(pool))
        best = max(alive, key=_order)
        if smallest >= self.sizes[-1]:
            return Finish(best.learner, Reason("best of the last round with {0}", (best.score,)))
        # Learners on larger sizes have won this round, and keep their places in it. So a process
        # that opens the study later, and remembers no drops, makes them again.
        if smallest and self._has_losers(pool, smallest):
            loser = min(last, key=_order)  # also a busy one, so all processes agree
            text = f"score {{0}} at {smallest:,} is the worst left; {{1}} of {best.learner} leads"
            return Drop(loser.learner, Reason(text, (loser.score, best.score)))
        if following is None:
            return Wait(Reason("the last learners of this round are being trained"))
        # The last one left skips sizes: nothing is compared with it any more.
        is_last = len(alive) == 1 and not pool.may_propose
        size = self.sizes[-1] if is_last else next_of_grid(following, self.sizes)
        text = f"learner {following.learner} is the next of {len(alive)} left, in the order of ids"
        return Extend(following.learner, size, Reason(text))

    def _has_losers(self, pool: Pool, size: int) -> bool:
        """Return whether the round at a size has more learners left than it may keep."""
        part = self.keep_one_in ** bisect_right(self.sizes, size)  # also off the grid
        kept: int = -(-len(pool.curves) // part)  # rounded up
        return sum(_has_passed(size, curve) for curve in pool.curves.values()) > kept


def _nothing_left(pool: Pool) -> Reason:
    """Return the reason to end without an answer. A learner that is ruled out stays so."""
    ruled_out = [curve for curve in pool.curves.values() if curve.cause == "ruled out"]
    if not ruled_out:
        return Reason("no learner is left")
    best = max(ruled_out, key=_order)
    return nothing_left(best.learner, f"score {{0}}, at {best.size:,}", best.score)


def _has_passed(size: int, curve: LearningCurve) -> bool:
    """Return whether a learner is left in the round at a size, or failed only after it."""
    if curve.cause == "failed":  # in a training on more examples than its last one
        return curve.size >= size
    return not curve.dropped or (curve.cause != "ruled out" and curve.size > size)


def _order(curve: LearningCurve) -> tuple[float, int]:
    return curve.score, -curve.learner
