"""Step rules: the size that a learner is trained on next.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from optuna_daub.core.checks import number
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.sizes import next_size


FASTEST, SLOWEST = 0.1, 3.0
"""Range of growth exponents that measured times are believed to show."""


class StepRule(Protocol):
    """A pure rule for the next size of a learner that is not yet fully trained."""

    def __call__(self, curve: LearningCurve, sizes: tuple[int, ...], to_beat: float) -> int:
        """Return one of `sizes` above the curve's last size.

        Args:
            curve: of the learner.
            sizes: the grid.
            to_beat: the score that no other learner is believed to exceed.
        """


def next_of_grid(curve: LearningCurve, sizes: tuple[int, ...], to_beat: float) -> int:
    """Return the next of the sizes: DAUB's rule.

    >>> next_of_grid(LearningCurve(0), (500, 750, 1125), 0.9)
    500
    """
    del to_beat
    size = next_size(sizes, curve.size)
    assert size is not None
    return size


@dataclass(frozen=True)
class AdaptiveStep:
    """Go on to all the data in nearly equal steps, each some `cost_factor` times as long.

    A learner whose time grows as n^alpha steps by cost_factor^(1 / alpha) ([1] Theorem 4, where
    the factor is 2). How many such steps it is to all the data is rounded, so that none ends just
    short of it, and the goal to the nearest of the sizes. Boosted trees, whose time hardly grows,
    so jump where others climb. A learner that has reached already what no other is believed to
    exceed goes straight to all the data.

    >>> from optuna_daub.core.curve import Observation
    >>> timed = (Observation(500, 0.8, seconds=1.0), Observation(1000, 0.8, seconds=2.0))
    >>> AdaptiveStep()(LearningCurve(0, timed), (500, 1000, 2000, 4000, 8000, 16000), 0.9)
    4000
    """

    cost_factor: float = 3.5
    """Above 1. The default was chosen by `benchmarks/replay.py`: with it a climb to N costs at
    most three fifths more than N alone, with the 2 of [1] about as much again."""

    def __post_init__(self) -> None:
        if not 1 < number("cost_factor", self.cost_factor) < math.inf:
            raise ValueError(
                f"`cost_factor` must be greater than 1 and finite, but got {self.cost_factor}."
            )

    def __call__(self, curve: LearningCurve, sizes: tuple[int, ...], to_beat: float) -> int:
        """Return the next size; before two probes, the next of the sizes."""
        if curve.score >= to_beat:
            return sizes[-1]
        following = sizes[bisect_right(sizes, curve.size) :]
        if len(curve.observations) < 2:
            return following[0]
        left = math.log(sizes[-1] / curve.size)
        steps = max(1, round(left * growth_exponent(curve) / math.log(self.cost_factor)))
        return nearest(following, curve.size * math.exp(left / steps))


def growth_exponent(curve: LearningCurve) -> float:
    """Return alpha of seconds ~ n^alpha, drawn towards 1 as by one doubling seen with alpha = 1.

    It is from 0.1 to 3. The curve must have an observation. Where times were not measured, 1:
    every example costs the same.

    >>> from optuna_daub.core.curve import Observation
    >>> timed = (Observation(500, 0.8, seconds=1.0), Observation(4000, 0.8, seconds=2.0))
    >>> growth_exponent(LearningCurve(0, timed))  # one doubling of time in three, and one in one
    0.5
    """
    first, last = curve.observations[0], curve.observations[-1]
    if not first.seconds or not last.seconds:
        return 1.0
    slower = math.log2(last.seconds / first.seconds)
    larger = math.log2(last.size / first.size)
    return min(max((slower + 1.0) / (larger + 1.0), FASTEST), SLOWEST)


def nearest(sizes: Sequence[int], goal: float) -> int:
    """Return the size whose ratio to `goal` is nearest to 1, the smaller of two as near.

    >>> nearest((500, 750, 1125), 620)
    750
    """
    return min(sizes, key=lambda size: abs(math.log(size / goal)))
