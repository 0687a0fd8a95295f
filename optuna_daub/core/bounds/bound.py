"""What every upper bound can be asked."""

from __future__ import annotations

from typing import Protocol

from optuna_daub.core.curve import LearningCurve


class Bound(Protocol):
    """An upper bound on the score that a learner can reach on more data."""

    @property
    def noun(self) -> str:
        """What sentences call the number that learners are ranked by."""

    @property
    def confidence(self) -> float | None:
        """How often `upper` is stated to hold; None where that is not stated."""

    def inflated(self, factor: float) -> Bound:
        """Return the bound with all gains `factor` times as large."""

    def upper(self, curve: LearningCurve, size: int) -> float:
        """Return the bound on the score at `size`, at least as large as the curve's last size.

        Infinity where too little was seen to bound anything.
        """

    def prospect(self, curve: LearningCurve, full_size: int, next_size: int) -> float:
        """Return what the learner is ranked by: its bound at `full_size`, or less.

        Args:
            curve: that ends below the full size.
            full_size: N, the number of examples of the whole training set.
            next_size: the size that the learner would be trained on next.
        """
