"""The lowest and the highest score that there can be."""

from __future__ import annotations

import math
from typing import NamedTuple


class Limits(NamedTuple):
    """Range of a score, such as 0 to 1 for an accuracy. No number is shown beyond it.

    >>> Limits(0.0, 1.0).cut(1.02), Limits(highest=1.0).cut(-3.0)
    (1.0, -3.0)
    """

    lowest: float = -math.inf
    """Lowest possible score; minus infinity if there is none, or none is known."""
    highest: float = math.inf
    """Highest possible score; infinity if there is none, or none is known."""

    def cut(self, score: float) -> float:
        """Return a score, or the limit if the score is beyond one. Never -0.0."""
        return min(max(score, self.lowest), self.highest) + 0.0

    def signed(self, sign: int) -> Limits:
        """Return the limits of scores times `sign`, 1 or -1.

        >>> Limits(lowest=0.0).signed(-1)
        Limits(lowest=-inf, highest=-0.0)
        """
        return self if sign > 0 else Limits(-self.highest, -self.lowest)


UNLIMITED = Limits()
