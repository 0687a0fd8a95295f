"""A calibrated upper bound: as much as learners like this one gained on other data sets.

The bound adds a quantile of the gain (`gains.py`) to the last score. So it

* is the score itself at n = N, and never falls with more data left;
* moves with the score: scores shifted by a constant have bounds shifted alike;
* is never above DAUB's projection where that is valid: where returns were seen to diminish;
* promises what it was measured to keep on data sets left out of the fit, and nothing on curves
  unlike those: it is no theorem.

[1] M. L. Weitzman, "Optimal Search for the Best Alternative", Econometrica 47(3), 1979.
    https://doi.org/10.2307/1910412
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from statistics import NormalDist

from optuna_daub.core.bounds.gains import POINTS
from optuna_daub.core.bounds.gains import GainTable
from optuna_daub.core.bounds.gains import describe
from optuna_daub.core.bounds.gains import projected_gain
from optuna_daub.core.bounds.gains import shipped
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.steps import exponent


@dataclass(frozen=True)
class CalibratedBound:
    """Upper bounds on the full-data score, from what learners gained on other data sets.

    >>> curve = LearningCurve(0, (Observation(500, 0.80, 0.99), Observation(1000, 0.84, 0.98)))
    >>> median, bound = CalibratedBound(0.5), CalibratedBound(0.95)
    >>> 0.84 < median.upper(curve, 8000) < bound.upper(curve, 8000) <= 1.0
    True
    """

    confidence: float = 0.95
    """How often `upper` should hold, in (0, 1)."""
    price: float = 0.03
    """Score that one would give up to save one training on all the data; at least 0. With 0,
    learners are ranked by `upper` alone. The default was chosen by `benchmarks/replay.py`."""
    ceiling: float | None = None
    """The best score there can be. None: 1 for a score in [0, 1], as accuracy, AUC, F1 and R2
    have it, and none for others."""
    use_training_score: bool = True
    """Use the training score where there is one."""
    inflation: float = 1.0
    """Factor on all gains, at least 1; the repair of `audit.inflation`."""
    with_training_score: GainTable | None = None
    without_training_score: GainTable | None = None
    """What the bounds rest on; None for the coefficients that come with the package."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"`confidence` must be in (0, 1), but got {self.confidence}.")
        if not 0 <= self.price < math.inf:
            raise ValueError(f"`price` must be at least 0, but got {self.price}.")
        if not 1 <= self.inflation < math.inf:
            raise ValueError(f"`inflation` must be at least 1, but got {self.inflation}.")
        if self.ceiling is not None and math.isnan(self.ceiling):
            raise ValueError("`ceiling` must be a number or None, but got nan.")

    @property
    def noun(self) -> str:
        """What sentences call the number that learners are ranked by."""
        return "prospect" if self.price else "bound"

    def inflated(self, factor: float) -> CalibratedBound:
        """Return the bound with all gains `factor` times as large."""
        return replace(self, inflation=self.inflation * factor)

    def upper(self, curve: LearningCurve, size: int) -> float:
        """Return what the score at `size` stays below with probability `confidence`.

        Below the smallest probability of the table gains fall linearly to 0, above the largest one
        its quantile stands. Infinity for a curve of fewer than two observations.
        """
        if len(curve.observations) < 2:
            return math.inf
        probabilities, gains = curve.once(self._gains, size)
        return curve.score + _between(probabilities, gains, self.confidence)

    def prospect(self, curve: LearningCurve, full_size: int, next_size: int) -> float:
        """Return the score above which training the learner on is not worth its price.

        The expected gain above it, E[max(0, score at N - prospect)], is the price of the next
        probe: `price` times the share of the time for N that it takes, (`next_size` / N)^alpha by
        the learner's own times. This is the reservation price of [1], by which the box to open
        next is the one with the largest: what is cheap to find out is found out more surely.
        """
        if not self.price or len(curve.observations) < 2:
            return self.upper(curve, full_size)
        probabilities, gains = curve.once(self._gains, full_size)
        excess = -self.price * (next_size / full_size) ** exponent(curve)
        mass = least = 0.0
        for weight, gain in zip(_weights(probabilities), reversed(gains), strict=True):
            excess += weight * gain
            mass += weight
            least = max(least, excess / mass)
        return curve.score + least

    def _gains(
        self, curve: LearningCurve, full_size: int
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return probabilities and the quantiles of the gain up to `full_size`."""
        last = curve.observations[-POINTS:]
        scored = self.use_training_score and all(x.training_score is not None for x in last[-2:])
        own = self.with_training_score if scored else self.without_training_score
        table = own or shipped()[scored]
        doublings = max(0.0, math.log2(full_size / curve.size))
        most = max(0.0, min(self._room(last[-1]), projected_gain(last, full_size)))
        gains = (self.inflation * gain for gain in table.gains(describe(last), doublings))
        if (n := last[-1].n_validation) is not None:
            allowed = zip(_deviates(table.probabilities), gains, strict=True)
            gains = (gain + z * math.sqrt(min(gain, 1.0) / n) for z, gain in allowed)
        return table.probabilities, tuple(min(gain, most) for gain in gains)

    def _room(self, last: Observation) -> float:
        """Return the most that can be gained, up to the ceiling."""
        if self.ceiling is not None:
            return self.ceiling - last.score
        return 1.0 - last.score if 0.0 <= last.score <= 1.0 else math.inf


def _between(at: Sequence[float], values: Sequence[float], x: float) -> float:
    """Return the value at `x`, linear between neighbours, from (0, 0) on, constant at the end."""
    right = bisect_left(at, x)
    if right == len(at):
        return values[-1]
    low, below = (at[right - 1], values[right - 1]) if right else (0.0, 0.0)
    return below + (values[right] - below) * (x - low) / (at[right] - low)


@cache
def _deviates(probabilities: tuple[float, ...]) -> list[float]:
    """Return the standard normal quantiles, at least 0: the allowance for validation noise.

    On the same n validation examples a share g gained means that at least as many predictions
    changed, whose mean has a standard error of sqrt(g / n) or more.
    """
    return [max(0.0, NormalDist().inv_cdf(p)) for p in probabilities]


@cache
def _weights(probabilities: tuple[float, ...]) -> list[float]:
    """Return the probability that each quantile stands for, by the trapezoidal rule, last first.

    From a gain of 0 at probability 0 on; above the last quantile, that one stands for all.
    """
    edges = [0.0, *probabilities, 2.0 - probabilities[-1]]
    return [(later - earlier) / 2.0 for earlier, later in zip(edges, edges[2:], strict=False)][
        ::-1
    ]
