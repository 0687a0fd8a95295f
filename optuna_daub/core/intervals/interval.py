"""Interval: the range in which a score is believed to lie."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """The range of a learner's score on the full training set, larger is better.

    >>> Interval(0.75, 0.93)
    Interval(lower=0.75, upper=0.93)
    """

    lower: float = -math.inf
    """Minus infinity where nothing bounds the score from below."""
    upper: float = math.inf
    """Infinity where nothing bounds the score from above."""

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(
                f"The lower end of an interval must not exceed the upper one, but got "
                f"[{self.lower}, {self.upper}]."
            )
