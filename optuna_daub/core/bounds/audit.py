"""Self-audit: how often the bounds of learners held that were then trained on more data.

Each later probe of a learner is taken as if it were the end: what did the bound promise for that
size, from the probes before it, and what came out? Where promises fail more often than stated,
all gains are multiplied by the least factor with which they would have held, as in split
conformal prediction [1]: the k-th smallest ratio of gain to promised gain, with
k = ceil((audits + 1) * confidence). The probes of one learner are not exchangeable with those of
another, so that the factor is a repair and no guarantee.

[1] V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", Springer 2005.
    https://doi.org/10.1007/b106715
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace

from optuna_daub.core.bounds.calibrated import CalibratedBound
from optuna_daub.core.curve import LearningCurve


FIRST_AUDITED = 2
"""Probes that a bound needs before it promises anything."""


@dataclass(frozen=True)
class Audit:
    """What was promised for a probe, and what came out."""

    learner: int
    size: int
    """Number of training examples of the probe."""
    promised: float
    """The gain since the probe before that was stated with `confidence`, at least 0."""
    gain: float
    """The gain that came out."""

    @property
    def held(self) -> bool:
        """Whether the gain was at most what was promised."""
        return self.gain <= self.promised

    @property
    def ratio(self) -> float:
        """The factor by which the promise would have had to be larger."""
        if self.held:
            return 1.0
        return self.gain / self.promised if self.promised > 0.0 else math.inf


def audits(
    curves: Iterable[LearningCurve], bound: CalibratedBound, confidence: float
) -> list[Audit]:
    """Return the audit of every probe that came after a learner's first two."""
    return [
        _audit(curve, probe, bound, confidence)
        for curve in curves
        for probe in range(FIRST_AUDITED, len(curve.observations))
        if not curve.dropped
    ]


def inflation(results: Iterable[Audit], confidence: float) -> float:
    """Return the factor on all gains with which the bounds would have held as stated; at least 1.

    With too few audits for the confidence (fewer than 19 for 0.95) there is nothing to repair.

    >>> results = [Audit(i, 1000, promised=0.01, gain=0.001 * i) for i in range(30)]
    >>> round(inflation(results, 0.9), 6)
    2.7
    """
    ratios = sorted(result.ratio for result in results)
    rank = math.ceil((len(ratios) + 1) * confidence)  # [1] Section 2.2
    finite = [ratio for ratio in ratios[:rank] if ratio < math.inf]
    return finite[-1] if rank <= len(ratios) and finite else 1.0


def _audit(curve: LearningCurve, probe: int, bound: CalibratedBound, confidence: float) -> Audit:
    before = replace(curve, observations=curve.observations[:probe])
    seen = curve.observations[probe]
    promised = bound.quantile(before, seen.size, confidence) - before.score
    return Audit(curve.learner, seen.size, promised, seen.score - before.score)
