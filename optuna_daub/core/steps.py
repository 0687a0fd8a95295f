"""Step rules: the size that a learner is trained on next."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeAlias

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.sizes import next_size


StepRule: TypeAlias = Callable[[LearningCurve, tuple[int, ...]], int]
"""A learner's curve, not yet at the last size, and the grid in; one of its larger sizes out."""


def next_of_grid(curve: LearningCurve, sizes: tuple[int, ...]) -> int:
    """Return the next of the sizes: DAUB's rule.

    >>> next_of_grid(LearningCurve(0), (500, 750, 1125))
    500
    """
    size = next_size(sizes, curve.size)
    assert size is not None
    return size


def nearest(sizes: Sequence[int], goal: float) -> int:
    """Return the size whose ratio to `goal` is nearest to 1, the smaller of two as near.

    >>> nearest((500, 750, 1125), 620)
    750
    """
    return min(sizes, key=lambda size: abs(math.log(size / goal)))
