"""Step rules: functions for the next training size of a learner."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeAlias

from optuna_daub.core.curve import LearningCurve


StepRule: TypeAlias = Callable[[LearningCurve, tuple[int, ...]], int]
"""Function (unfinished curve, grid) -> a larger size of the grid."""


def next_of_grid(curve: LearningCurve, sizes: tuple[int, ...]) -> int:
    """Return the next size of the grid, as DAUB does.

    >>> next_of_grid(LearningCurve(0), (500, 750, 1125))
    500
    """
    return sizes[bisect_right(sizes, curve.size)]


def nearest(sizes: Sequence[int], goal: float) -> int:
    """Return the size whose ratio to `goal` is nearest to 1.

    In a tie it is the smaller one.

    >>> nearest((500, 750, 1125), 620)
    750
    """
    return min(sizes, key=lambda size: abs(math.log(size / goal)))
