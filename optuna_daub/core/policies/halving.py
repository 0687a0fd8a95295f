"""Synchronous successive halving: the baseline that drops the worse part at every size.

[1] K. Jamieson, A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization", AISTATS 2016. https://arxiv.org/abs/1502.07943
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from optuna_daub.core.bounds.interval import Interval
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Drop
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Reason
from optuna_daub.core.policies.decision import Wait
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import next_size
from optuna_daub.core.sizes import whole_number


@dataclass(frozen=True)
class SuccessiveHalving:
    """Train all that are left on one size, keep one in `keep_one_in`, go on to the next size.

    The last one left is trained on the full size at once.

    >>> from optuna_daub.core.curve import Observation
    >>> halving = SuccessiveHalving(sizes=(500, 1000, 2000), keep_one_in=2)
    >>> scores = {0: 0.6, 1: 0.7}
    >>> seen = [LearningCurve(i, (Observation(500, score),)) for i, score in scores.items()]
    >>> halving.decide(Curves(seen)).learner
    0
    """

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set."""
    keep_one_in: int = 2
    """At least 2; 2 keeps the better half (rounded up), 3 the best third ([1] uses 2)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes(self.sizes))
        if whole_number("keep_one_in", self.keep_one_in) < 2:
            raise ValueError(f"`keep_one_in` must be at least 2, but got {self.keep_one_in}.")

    def decide(self, curves: Curves, busy: Collection[int] = frozenset()) -> Decision:
        """Return what to do next ([1] Algorithm 1: one pass of its loop is one training size)."""
        alive = [curve for curve in curves.values() if not curve.dropped]
        if not alive:
            return Finish(None, Reason("no learner is left"))
        smallest = min(curve.size for curve in alive)
        if smallest == self.sizes[-1]:
            best = max(alive, key=self._order)
            return Finish(best.learner, Reason("best of the last round with {0}", (best.score,)))
        if smallest and (loser := self._loser(alive, len(curves), smallest)):
            best = max(alive, key=self._order)
            text = f"score {{0}} at {smallest:,} is the worst left; {{1}} of {best.learner} leads"
            return Drop(loser.learner, Reason(text, (loser.score, best.score)))
        behind = [c for c in alive if c.size == smallest and c.learner not in busy]
        if not behind:
            return Wait(Reason("the last learners of this round are being trained"))
        chosen = min(behind, key=lambda curve: curve.learner)
        size = self.sizes[-1] if len(alive) == 1 else next_size(self.sizes, smallest)
        assert size is not None
        return Extend(chosen.learner, size, Reason(f"one of {len(alive)} left for this size"))

    def validation_size(self, training_size: int) -> None:
        """Return None: every probe is scored on all validation examples."""

    def interval(self, curve: LearningCurve, curves: Curves) -> Interval:
        """Return all numbers: halving bounds nothing."""
        return Interval()

    def outranked(self, curve: LearningCurve, by: LearningCurve, curves: Curves) -> Reason:
        """Return why the turn passes from the learner of `curve` to that of `by`."""
        return Reason(f"learner {by.learner} has not been trained on {curve.size:,} yet")

    def _loser(self, alive: list[LearningCurve], total: int, size: int) -> LearningCurve | None:
        """Return the worst learner where more are left than this round may keep."""
        if any(curve.size > size for curve in alive):
            return None  # the next round has begun, so this one was cut
        kept = -(-total // self.keep_one_in ** (self.sizes.index(size) + 1))  # rounded up
        return min(alive, key=self._order) if len(alive) > kept else None

    def _order(self, curve: LearningCurve) -> tuple[float, int]:
        return curve.score, -curve.learner
