"""Interval: the range of a score."""

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
    """Lower end of the score; minus infinity without a bound."""
    upper: float = math.inf
    """Upper end of the score; infinity without a bound."""

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError(
                f"The lower end of an interval must not exceed the upper one, but got "
                f"[{self.lower}, {self.upper}]."
            )
