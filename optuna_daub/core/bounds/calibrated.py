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
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.bounds.gains import POINTS
from optuna_daub.core.bounds.gains import GainTable
from optuna_daub.core.bounds.gains import describe
from optuna_daub.core.bounds.gains import projected_gains
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
        if self.ceiling is not None and math.isnan(self.ceiling):
            raise ValueError("`ceiling` must be a number or None, but got nan.")

    @property
    def noun(self) -> str:
        """What sentences call the number that learners are ranked by."""
        return "prospect" if self.price else "bound"

    def upper(self, curve: LearningCurve, size: int) -> float:
        """Return what the score at `size` stays below with probability `confidence`.

        Below the smallest probability of the table gains fall linearly to 0, above the largest one
        its quantile stands. Infinity for a curve of fewer than two observations.
        """
        if len(curve.observations) < 2:
            return math.inf
        probabilities, gains = self._gains(curve, size)
        gain = np.interp(self.confidence, (0.0, *probabilities), (0.0, *gains))
        return curve.score + float(gain)

    def prospect(self, curve: LearningCurve, full_size: int, next_size: int) -> float:
        """Return the score above which training the learner on is not worth its price.

        The expected gain above it, E[max(0, score at N - prospect)], is the price of the next
        probe: `price` times the share of the time for N that it takes, (`next_size` / N)^alpha by
        the learner's own times. This is the reservation price of [1], by which the
        box to open next is the one with the largest: what is cheap to find out is found out more
        surely.
        """
        if not self.price or len(curve.observations) < 2:
            return self.upper(curve, full_size)
        probabilities, gains = self._gains(curve, full_size)
        weights = _weights(probabilities)
        share = (next_size / full_size) ** exponent(curve)
        excess = np.cumsum((weights * gains)[::-1]) - self.price * share
        least = float(np.max(excess / np.cumsum(weights[::-1])))
        return curve.score + max(0.0, least)

    def _gains(
        self, curve: LearningCurve, full_size: int
    ) -> tuple[tuple[float, ...], NDArray[np.float64]]:
        """Return probabilities and the quantiles of the gain up to `full_size`."""
        last = curve.observations[-POINTS:]
        scored = self.use_training_score and all(x.training_score is not None for x in last[-2:])
        chosen = self.with_training_score if scored else self.without_training_score
        table = chosen or shipped()[scored]
        sizes, scores, training_scores = _arrays(last)
        doublings = [max(0.0, math.log2(full_size / curve.size))]
        gains = table.gains(describe(sizes, scores, training_scores), doublings)[0]
        gains = self.inflation * gains
        gains = gains + _noise(gains, table.probabilities, last[-1].n_validation)
        most = min(self._room(last[-1]), float(projected_gains(sizes, scores, full_size)[0]))
        return table.probabilities, np.minimum(gains, max(0.0, most))

    def _room(self, last: Observation) -> float:
        """Return the most that can be gained, up to the ceiling."""
        if self.ceiling is not None:
            return self.ceiling - last.score
        return 1.0 - last.score if 0.0 <= last.score <= 1.0 else math.inf


def _noise(
    gains: NDArray[np.float64], probabilities: tuple[float, ...], n_validation: int | None
) -> NDArray[np.float64] | float:
    """Return the allowance for the sampling error of a gain that is a mean over examples.

    On the same validation examples a share g gained means that at least as many predictions
    changed, whose mean has a standard error of sqrt(g / n_validation) or more.
    """
    if n_validation is None:
        return 0.0
    return _deviates(probabilities) * np.sqrt(np.clip(gains, 0.0, 1.0) / n_validation)


@cache
def _deviates(probabilities: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the standard normal quantiles, at least 0."""
    return np.array([max(0.0, NormalDist().inv_cdf(p)) for p in probabilities])


@cache
def _weights(probabilities: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the probability that each quantile stands for, by the trapezoidal rule.

    From a gain of 0 at probability 0 on; above the last quantile, that one stands for all.
    """
    edges = np.array([0.0, *probabilities, 2.0 - probabilities[-1]])
    return np.asarray((edges[2:] - edges[:-2]) / 2.0)


def _arrays(last: tuple[Observation, ...]) -> tuple[NDArray[np.float64], ...]:
    """Return the last three sizes, scores and training scores, each of shape (1, 3)."""
    missing = [math.nan] * (POINTS - len(last))
    training = (math.nan if x.training_score is None else x.training_score for x in last)
    return (
        np.array([[*missing, *(float(x.size) for x in last)]]),
        np.array([[*missing, *(x.score for x in last)]]),
        np.array([[*missing, *training]]),
    )
