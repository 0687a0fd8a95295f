"""Step rules: functions for the next training size of a learner."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias

from optuna_daub.core.curve import LearningCurve


STOP_RATIO = 2.0
"""Smallest ratio of consecutive sizes to stop at: a shorter step shows little. Not tuned."""

StepRule: TypeAlias = Callable[[LearningCurve, tuple[int, ...]], int]
"""Function (unfinished curve, grid) -> a larger size of the grid."""


def next_of_grid(curve: LearningCurve, sizes: tuple[int, ...]) -> int:
    """Return the next size of the grid, as DAUB does.

    >>> next_of_grid(LearningCurve(0), (500, 750, 1125))
    500
    """
    return sizes[bisect_right(sizes, curve.size)]


def start_near(sizes: tuple[int, ...], share: float) -> int:
    """Return the size nearest to a share of N by its ratio. Two larger ones are left.

    >>> start_near((500, 1000, 2000, 4000, 8000, 16000), 1 / 16)
    1000
    """
    near = min(sizes, key=lambda size: abs(math.log(size / (share * sizes[-1]))))
    return min(near, sizes[-3])


def spaced(sizes: tuple[int, ...]) -> list[int]:
    """Return N and the sizes below it that are `STOP_RATIO` apart or more, from large to small.

    >>> spaced((500, 750, 1125, 1688, 2532, 3798, 5000))
    [5000, 1688, 750]
    """
    found = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if size * STOP_RATIO <= found[-1]:
            found.append(size)
    return found
