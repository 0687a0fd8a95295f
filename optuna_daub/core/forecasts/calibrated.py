"""Calibrated quantiles: as much as learners like this one gained on other data sets.

The forecast adds quantiles of the gain (`gains.py`) to the last score. So it

* is the score itself at n = N, and never falls with more data left;
* moves with the score, up to the ceiling: scores shifted by a constant have forecasts shifted
  alike;
* is never above the line of DAUB's projection where that is valid: where returns were seen to
  diminish;
* promises what it was measured to keep on data sets left out of the fit, and nothing on curves
  unlike those: it is no theorem.

It judges each learner alone; `joint.py` learns from the others of the study.

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
[2] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.forecasts.forecast import Certain
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import Quantiles
from optuna_daub.core.forecasts.gains import POINTS
from optuna_daub.core.forecasts.gains import GainTable
from optuna_daub.core.forecasts.gains import describe
from optuna_daub.core.forecasts.gains import projected_gain
from optuna_daub.core.forecasts.gains import shipped
from optuna_daub.core.pool import Pool


@dataclass(frozen=True)
class Calibrated:
    """Forecasts from what learners gained on other data sets.

    >>> curve = LearningCurve(0, (Observation(500, 0.80, 0.99), Observation(1000, 0.84, 0.98)))
    >>> forecast = Calibrated().forecasts(Pool().put(curve), 8000)[0]
    >>> bool(0.84 < forecast.quantile(0.5) < forecast.quantile(0.95) <= 1.0)
    True
    """

    use_training_score: bool = True
    """Use the training score where there is one."""
    ceiling: float | None = None
    """The best score there can be. None: 1 for a score in [0, 1], as accuracy, AUC, F1 and R2
    have it, and none for others."""
    with_training_score: GainTable | None = None
    without_training_score: GainTable | None = None
    """What the forecasts rest on; None for the coefficients that come with the package."""

    def __post_init__(self) -> None:
        if self.ceiling is not None and math.isnan(self.ceiling):
            raise ValueError("`ceiling` must be a number or None, but got nan.")
        scored, unscored = (len(table.probabilities) for table in self._tables)
        if scored != unscored:
            raise ValueError(
                "`with_training_score` and `without_training_score` must state equally many "
                f"quantiles, but got {scored} and {unscored}."
            )

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the quantiles of every learner's score; infinite ones before two observations."""
        rows = pool.curves.columns(_quantiles, self, size)
        # The two tables state quantiles at probabilities of their own.
        scored, unscored = (np.array(table.probabilities) for table in self._tables)
        probabilities = np.where(rows[:, :1] == 1.0, scored, unscored)
        return Forecasts(pool.curves.learners, Quantiles(probabilities, rows[:, 2:], rows[:, 1]))

    def newcomer(self, pool: Pool, size: int) -> Certain:
        """Return infinity: nothing bounds a learner before it was seen."""
        del pool, size
        return Certain(math.inf)

    @property
    def _tables(self) -> tuple[GainTable, GainTable]:
        """The table for learners with training scores, and the one for those without."""
        return (
            self.with_training_score or shipped()[True],
            self.without_training_score or shipped()[False],
        )


def _quantiles(curve: LearningCurve, rule: Calibrated, size: int) -> tuple[float, ...]:
    """Return 1 or 0 for the table used, the last score, and the quantiles of that at `size`."""
    last = curve.observations[-POINTS:]
    least = curve.score if last else math.inf  # of a learner without a score, nothing is known
    is_scored = all(seen.training_score is not None for seen in last[-2:])
    is_scored = rule.use_training_score and is_scored
    scored, unscored = rule._tables
    table = scored if is_scored else unscored
    probabilities = table.probabilities
    if len(last) < 2 and curve.size < size:
        return (float(is_scored), least, *[math.inf] * len(probabilities))
    if curve.size >= size:
        return (float(is_scored), curve.score, *[curve.score] * len(probabilities))
    doublings = math.log2(size / curve.size)
    # Where returns diminish the projection is valid, and nothing exceeds it ([2] Section 3).
    most = max(0.0, min(_room(last[-1], rule.ceiling), projected_gain(last, size)))
    gains = table.gains(describe(last), doublings)  # quantiles fitted on [1]
    if (n := last[-1].n_validation) is not None:
        # On the same n validation examples a share g gained means that at least as many
        # predictions changed; the mean of these changes has a standard error of sqrt(g / n).
        deviates = (max(0.0, NormalDist().inv_cdf(p)) for p in probabilities)
        gains = [
            gain + z * math.sqrt(min(gain, 1.0) / n)
            for z, gain in zip(deviates, gains, strict=True)
        ]
    quantiles = [curve.score + min(gain, most) for gain in gains]
    return (float(is_scored), curve.score, *quantiles)


def _room(last: Observation, ceiling: float | None) -> float:
    """Return the most that can be gained, up to the ceiling."""
    if ceiling is not None:
        return ceiling - last.score
    return 1.0 - last.score if 0.0 <= last.score <= 1.0 else math.inf
