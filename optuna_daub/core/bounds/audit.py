"""Self-audit: how often bounds held, of learners that were then trained on more data.

Each later probe of a learner is taken as if it were the end: what did the bound say for that
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

from optuna_daub.core.bounds.bound import Bound
from optuna_daub.core.curve import LearningCurve


FIRST_AUDITED = 2
"""Probes of a learner before the first one that is audited: bounds need two."""

LARGEST = 8.0
"""The largest repair: bounds that fail by more than this cannot be mended by a factor."""


@dataclass(frozen=True)
class Audit:
    """What a bound allowed for a probe, and what came out."""

    learner: int
    size: int
    """Number of training examples of the probe."""
    allowed: float
    """The gain since the probe before that the bound allowed."""
    gain: float
    """The gain that came out."""

    @property
    def held(self) -> bool:
        """Whether the gain was at most what was allowed."""
        return self.gain <= self.allowed

    @property
    def ratio(self) -> float:
        """The factor by which the allowed gain would have had to be larger; at least 1."""
        if self.held:
            return 1.0
        return self.gain / self.allowed if self.allowed > 0.0 else math.inf


@dataclass(frozen=True)
class AuditSummary:
    """How often the bounds of a study held.

    >>> str(AuditSummary(held=39, audited=40, confidence=0.95, inflation=1.0))
    '39 of 40 bounds (98 %) held when more data came; 95 % are stated to'
    """

    held: int
    audited: int
    confidence: float | None
    """How often they are stated to hold; None where that is not stated."""
    inflation: float
    """The factor on all gains with which they would have held; 1 where there is no need."""

    def __str__(self) -> str:
        if not self.audited:
            return "no bound has been put to the test yet"
        share = f"{self.held:,} of {self.audited:,} bounds ({self.held / self.audited:.0%}) held"
        text = share.replace("%", " %") + " when more data came"
        if self.confidence is not None:
            text += f"; {100 * self.confidence:g} % are stated to"
        if self.inflation > 1.0:
            text += f", so gains are taken for {self.inflation:.2g} times as large"
        return text


def audits_of(curve: LearningCurve, bound: Bound) -> list[Audit]:
    """Return the audit of each probe of one learner after the first two.

    >>> from optuna_daub.core.bounds.projection import ProjectedBound
    >>> from optuna_daub.core.curve import Observation
    >>> scores = {500: 0.60, 1000: 0.65, 2000: 0.72}
    >>> curve = LearningCurve(0, tuple(Observation(n, s) for n, s in scores.items()))
    >>> [(audit.size, audit.held) for audit in audits_of(curve, ProjectedBound())]
    [(2000, True)]
    """
    found = []
    for probe in range(FIRST_AUDITED, len(curve.observations)):
        seen = curve.observations[probe]
        before = LearningCurve(curve.learner, curve.observations[:probe])
        allowed = bound.upper(before, seen.size) - before.score
        if seen.is_finite and math.isfinite(allowed):
            found.append(Audit(curve.learner, seen.size, allowed, seen.score - before.score))
    return found


def inflation(ratios: Sequence[float], confidence: float) -> float:
    """Return the factor on all gains with which the bounds would have held as stated.

    Args:
        ratios: of the audits, ascending. With too few of them for the confidence (fewer than 19
            for 0.95) there is nothing to repair.
        confidence: how often the bounds should hold, in (0, 1).

    Returns:
        The next larger power of the square root of 2, so that it changes seldom; from 1 to 8.

    >>> inflation([1.0] * 17 + [1.3, 2.7], 0.90)
    1.4142135623730951
    """
    rank = math.ceil((len(ratios) + 1) * confidence)  # [1] Section 2.2
    if rank > len(ratios) or ratios[rank - 1] <= 1.0:
        return 1.0
    least = min(ratios[rank - 1], LARGEST)
    return float(2.0 ** (math.ceil(2.0 * math.log2(least)) / 2.0))
