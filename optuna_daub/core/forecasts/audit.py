"""Self-audit: forecasts put to the test by learners that were then trained on more data.

Each later probe of a learner is taken as if it were the end: what did the forecast say for that
size, from the probes before it, and what came out? Where bounds fail more often than stated, all
gains are multiplied by the least factor with which they would have held, as in split conformal
prediction [1]: the k-th smallest ratio of gain to stated gain, k = ceil((audits + 1) confidence).
The probes of one learner are not exchangeable with those of another, so that the factor is a
repair and no guarantee.

[1] V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", Springer 2005.
    https://doi.org/10.1007/b106715
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import Numbers
from optuna_daub.core.pool import Pool


FIRST_AUDITED = 2
"""Probes of a learner before the first one that is audited: bounds need two."""

LARGEST = 8.0
"""The largest repair: bounds that fail by more than this cannot be mended by a factor."""


@dataclass(frozen=True)
class Audit:
    """How often the bounds of a study held.

    >>> str(Audit(held=39, audited=40, confidence=0.95, inflation=1.0))
    '39 of 40 bounds (98 %) held when more data came; 95 % are stated to'
    """

    held: int
    """Number of bounds that no later score exceeded."""
    audited: int
    """Number of bounds that later scores could be compared with."""
    confidence: float
    """How often they are stated to hold."""
    inflation: float
    """The factor on all gains with which they would have held; 1 where there is no need."""

    def __str__(self) -> str:
        if not self.audited:
            return "no bound has been put to the test yet"
        share = f"{self.held:,} of {self.audited:,} bounds ({self.held / self.audited:.0%}) held"
        text = share.replace("%", " %") + " when more data came"
        text += f"; {100 * self.confidence:g} % are stated to"
        if self.inflation > 1.0:
            text += f", so gains are taken for {self.inflation:.2g} times as large"
        return text


@dataclass(frozen=True)
class Audited:
    """A forecaster whose gains are inflated until its bounds would have held as stated.

    Wraps any forecaster that judges each learner from its own curve.

    >>> from optuna_daub.core.forecasts.calibrated import Calibrated
    >>> Audited(Calibrated()).audit(Pool()).audited
    0
    """

    forecaster: Forecaster
    confidence: float = 0.95
    """How often the upper bound should hold, in (0, 1)."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"`confidence` must be in (0, 1), but got {self.confidence}.")

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecasts with all gains multiplied by the factor of the audit."""
        stated = self.forecaster.forecasts(pool, size)
        factor = pool.once(self.audit).inflation
        if factor == 1.0:
            return stated
        scores = pool.curves.columns(_last_score).reshape(-1)
        return Forecasts(stated.learners, Widened(stated.all, scores, factor))

    def newcomer(self, pool: Pool, size: int) -> Forecast:
        """Return the forecast of a newcomer as it is."""
        return self.forecaster.newcomer(pool, size)

    def audit(self, pool: Pool) -> Audit:
        """Return how often the bounds held."""
        ratios = sorted(
            ratio
            for curve in pool.curves.values()
            for ratio in curve.once(_ratios, self.forecaster, self.confidence)
        )
        held = sum(ratio <= 1.0 for ratio in ratios)
        factor = inflation(ratios, self.confidence)
        return Audit(held, len(ratios), self.confidence, factor)


@dataclass(frozen=True)
class Widened:
    """A forecast whose every distance from the last score is multiplied by a factor.

    >>> from optuna_daub.core.forecasts.forecast import Certain
    >>> wide = Widened(Certain(0.75), last_score=0.70, factor=2.0)
    >>> float(wide.mean.round(6)), float(wide.expected_improvement(0.72).round(6))
    (0.8, 0.08)
    """

    stated: Forecast
    last_score: ArrayLike
    """Finite; any number for a learner of which the forecast says nothing."""
    factor: float
    """Above 0; 1 leaves the forecast as it is."""

    @property
    def mean(self) -> Numbers:
        """The expected score."""
        return self._moved(self.stated.mean)

    def quantile(self, probability: float) -> Numbers:
        """Return what the score stays below with `probability`."""
        return self._moved(self.stated.quantile(probability))

    def expected_improvement(self, over: ArrayLike) -> Numbers:
        """Return E[max(0, score - over)]: the factor times what is stated over a score nearer."""
        last = np.asarray(self.last_score)
        stated = last + (np.asarray(over) - last) / self.factor
        return np.asarray(self.factor * self.stated.expected_improvement(stated))

    def reservation_value(self, cost: ArrayLike) -> Numbers:
        """Return the score over which the expected improvement is worth `cost`, no more."""
        return self._moved(self.stated.reservation_value(np.asarray(cost) / self.factor))

    def at(self, place: int) -> Widened:
        """Return the forecast of one learner out of many."""
        return Widened(self.stated.at(place), np.asarray(self.last_score)[place], self.factor)

    def _moved(self, values: Numbers) -> Numbers:
        last = np.asarray(self.last_score)
        return np.asarray(last + self.factor * (values - last))


def inflation(ratios: Sequence[float], confidence: float) -> float:
    """Return the factor on all gains with which the bounds would have held as stated.

    Args:
        ratios: of gain to stated gain, ascending; those that held count as 1. With too few of
            them for the confidence (fewer than 19 for 0.95) there is nothing to repair.
        confidence: how often the bounds should hold, in (0, 1).

    Returns:
        From 1 to 8.

    >>> inflation([1.0] * 17 + [1.3, 2.7], 0.90)
    1.3
    """
    rank = math.ceil((len(ratios) + 1) * confidence)  # [1] Section 2.2
    if rank > len(ratios):
        return 1.0
    return min(max(ratios[rank - 1], 1.0), LARGEST)


def _last_score(curve: LearningCurve) -> tuple[float]:
    return (curve.score if is_finite(curve.score) else 0.0,)


def _ratios(curve: LearningCurve, forecaster: Forecaster, confidence: float) -> tuple[float, ...]:
    """Return gain over stated gain of each probe after the first two; 1 where the bound held."""
    ratios = []
    for seen in curve.observations[FIRST_AUDITED:]:
        before = curve.before(seen.size)
        alone = Pool().put(before)
        bound = float(forecaster.forecasts(alone, seen.size)[curve.learner].quantile(confidence))
        allowed, gain = bound - before.score, seen.score - before.score
        if not seen.is_finite or not math.isfinite(allowed):
            continue
        if gain <= allowed:
            ratios.append(1.0)
        else:
            ratios.append(gain / allowed if allowed > 0.0 else math.inf)
    return tuple(ratios)
