"""What an upper bound that takes the place of the projection can be asked."""

from __future__ import annotations

from typing import Protocol

from optuna_daub.core.curve import LearningCurve


class Bound(Protocol):
    """An upper bound on the score that a learner can reach on all the data."""

    def __call__(self, curve: LearningCurve, full_size: int, next_size: int) -> float:
        """Return the bound of a curve that ends below the full size.

        Args:
            curve: with as many observations as the policy starts every learner on.
            full_size: N, the number of examples of the whole training set.
            next_size: the size that the learner would be trained on next.
        """
