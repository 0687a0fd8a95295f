"""DAUB's upper bound: the score at N, projected from the last three scores.

[1] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.space import Numbers


N_SCORES = 3
"""Number of observations that the slope is fitted to ([1] UpdateBound)."""


def monotone(scores: Sequence[float]) -> list[float]:
    """Return validation scores with each pair that fell replaced by its mean, oldest first.

    A learning curve should not fall with more data. If the newest score is below the one before,
    both are replaced by their mean. This is done for each new score in turn, with the values
    replaced so far, so the result may still fall.

    >>> monotone([0.80, 0.76])
    [0.78, 0.78]
    """
    mended: list[float] = []
    for score in scores:
        mended.append(score)
        if len(mended) > 1 and (fall := mended[-1] - mended[-2]) < 0:
            mended[-2] += fall / 2  # [1] Alg. 1, TrainLearner: f[n/r] += delta/2
            mended[-1] -= fall / 2  # [1] Alg. 1, TrainLearner: f[n] -= delta/2
    return mended


def slope(sizes: Sequence[int], scores: Sequence[float]) -> float:
    """Return the ordinary least-squares slope of scores against sizes (score per example).

    >>> f"{slope((500, 750, 1125), (0.60, 0.65, 0.68)):.12f}"
    '0.000124210526'
    """
    mean_size = sum(sizes) / len(sizes)
    mean_score = sum(scores) / len(scores)
    covariance = sum(
        (x - mean_size) * (y - mean_score) for x, y in zip(sizes, scores, strict=True)
    )
    return covariance / sum((x - mean_size) ** 2 for x in sizes)  # [1] LinearRegrSlope


def projected_bound(
    curve: LearningCurve, full_size: int, *, use_training_score: bool = True
) -> float:
    """Return DAUB's upper bound on the score that a learner can reach at `full_size`.

    Args:
        curve: at least one observation. With fewer than three (after a failed start) the slope is
            fitted to those, and with one it is 0.
        full_size: N, the number of examples of the whole training set.
        use_training_score: bound by the training score at the last size too. It is an upper
            bound if training and validation data come from one distribution and the training
            score does not rise with more data.

    Returns:
        min(training score, last score + (N - n) * slope), with scores made `monotone` and a slope
        of at least 0; at n = N the observed score.

    >>> from optuna_daub.core.curve import Observation
    >>> scores = {500: 0.60, 750: 0.65, 1125: 0.68}
    >>> curve = LearningCurve(0, tuple(Observation(n, s, 0.95) for n, s in scores.items()))
    >>> projected_bound(curve, 5000)
    0.95
    >>> round(projected_bound(curve, 5000, use_training_score=False), 6)
    1.161316
    """
    last = curve.observations[-1]
    if last.size >= full_size:
        return last.score
    mended = monotone([seen.score for seen in curve.observations])
    rise = slope(curve.sizes[-N_SCORES:], mended[-N_SCORES:]) if len(mended) > 1 else 0.0
    bound = mended[-1] + (full_size - last.size) * max(0.0, rise)  # [1] Alg. 1, UpdateBound
    if use_training_score and last.training_score is not None:
        bound = min(last.training_score, bound)  # [1] Alg. 1, UpdateBound: min{f^T, ub}
    return bound


@dataclass(frozen=True)
class Projection(Forecaster):
    """DAUB's bound as a forecaster: each score on more data is forecast to equal its bound.

    [1] states no distribution, so the forecast of a learner with a score has no width. It bounds
    the score if returns diminish. A learner without any score has the mean and the standard
    deviation of the others' bounds.

    >>> from optuna_daub.core.curve import Observation
    >>> seen = (Observation(500, 0.60), Observation(1000, 0.65), Observation(1500, 0.70))
    >>> pool = Pool().put(LearningCurve(0, seen))
    >>> round(Projection().forecasts(pool, 2000)[0].mean, 6)
    0.75
    """

    min_points: ClassVar[int] = N_SCORES

    use_training_score: bool = True
    """Use the training score as a bound too. False is the "no f^T" variant of [1] Table 1."""

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return each learner's bound at `size`. Without a score it is that of a new learner."""
        learners = pool.curves.learners
        bounds = pool.curves.columns(_bound, size, self.use_training_score)[:, 0]
        is_known = np.isfinite(bounds)
        middle, spread = _moments(bounds)
        mean, scale = np.where(is_known, bounds, middle), np.where(is_known, 0.0, spread)
        return Forecasts(learners, Forecast(mean, scale))

    def candidates(self, pool: Pool, size: int) -> Forecast:
        """Return mean and spread of all bounds at `size`; infinitely wide before any bound."""
        bounds = pool.curves.columns(_bound, size, self.use_training_score)[:, 0]
        count = len(pool.once(candidates_of))
        mean, scale = (np.full(count, moment) for moment in _moments(bounds))
        return Forecast(mean, scale)


def _moments(bounds: Numbers) -> tuple[float, float]:
    """Return mean and standard deviation of the finite bounds."""
    known = bounds[np.isfinite(bounds)]
    return (float(known.mean()), float(known.std())) if len(known) else (0.0, math.inf)


def _bound(curve: LearningCurve, size: int, use_training_score: bool) -> tuple[float]:
    """Return the bound from all finite scores; NaN without any."""
    seen = curve.finite()
    if not seen:
        return (math.nan,)
    if len(seen) < len(curve.observations):
        curve = LearningCurve(curve.learner, seen)
    return (projected_bound(curve, size, use_training_score=use_training_score),)
