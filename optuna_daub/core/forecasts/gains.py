"""Gains: quantiles of how much learners gained from here to the end on other data sets.

What a learner gains from n to N examples is described by five quantities of its curve so far, each
at least 0 and in units of the score, and three functions of L = log2(N / n), the doublings left:

=============  ==================================  =======================
quantity                                           growth
=================================================  =======================
gap            training score - score              L
rise           mean of the last two gains          1 - 2^-L
acceleration   last gain - gain before             1 - 2^-4L
fall           last loss of the training score
drop           last loss of the score
=================================================  =======================

Gains and losses are per doubling of n; where negative, they count as 0. A quantile of the gain is
a sum of all products of a quantity and a growth, with coefficients >= 0 that were fitted on the
learning curves of LCDB 1.1 [1] (`benchmarks/fit/calibrated.py`).

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
[2] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from operator import mul
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

from optuna_daub.core.curve import Observation
from optuna_daub.core.forecasts.projection import slope


POINTS = 3
"""Number of observations, the last ones, that a curve is described by; two suffice."""

WITHOUT_TRAINING_SCORE = ("rise", "acceleration", "drop")
"""The quantities that need no training score."""

COEFFICIENTS = "calibrated.json"
"""The file beside this module that the fit wrote."""

Rows: TypeAlias = tuple[tuple[float, ...], ...]


class Quantities(NamedTuple):
    """What a curve is described by, all at least 0; per doubling where they are changes."""

    gap: float
    rise: float
    acceleration: float
    fall: float
    drop: float


@dataclass(frozen=True)
class GainTable:
    """Quantiles of the gain that is left, as coefficients of products of quantity and growth."""

    probabilities: tuple[float, ...]
    """How often the gain is below each quantile, increasing, in (0, 1)."""
    coefficients: Rows
    """One row per probability, quantity by quantity, growth by growth; all at least 0."""
    quantities: tuple[str, ...] = Quantities._fields

    def __post_init__(self) -> None:
        if any(value < 0 for row in self.coefficients for value in row):
            raise ValueError("The coefficients of a gain must be at least 0.")

    def gains(self, seen: Quantities, doublings: float) -> list[float]:
        """Return the quantiles of the gain with `doublings` left, one per probability, increasing.

        >>> table = GainTable((0.5, 0.9), ((0.0, 0.5, 0.0), (0.0, 1.0, 0.0)), ("rise",))
        >>> table.gains(Quantities(gap=0, rise=0.2, acceleration=0, fall=0, drop=0), doublings=1)
        [0.05, 0.1]
        """
        terms = products([getattr(seen, name) for name in self.quantities], doublings)
        return [*accumulate((sum(map(mul, row, terms)) for row in self.coefficients), max)]


def describe(last: Sequence[Observation]) -> Quantities:
    """Return the quantities of a curve, from its last two or three observations."""
    *before, a, b = last
    gained = math.log2(b.size / a.size)
    rise = earlier = (b.score - a.score) / gained
    if before:
        first = before[0]
        earlier = (a.score - first.score) / math.log2(a.size / first.size)
    gap = fall = 0.0
    if a.training_score is not None and b.training_score is not None:
        gap = b.training_score - b.score
        fall = (a.training_score - b.training_score) / gained
    return Quantities(
        gap=max(0.0, gap),
        rise=max(0.0, (earlier + rise) / 2.0),
        acceleration=max(0.0, rise - earlier),
        fall=max(0.0, fall),
        drop=max(0.0, -rise),
    )


def growth(doublings: float) -> tuple[float, float, float]:
    """Return L, 1 - 2^-L and 1 - 2^-4L: 0 at L = 0, and increasing."""
    return doublings, 1.0 - 2.0**-doublings, 1.0 - 2.0 ** (-4.0 * doublings)


def products(quantities: Sequence[float], doublings: float) -> list[float]:
    """Return all products of a quantity and a growth.

    >>> products([2.0], doublings=1)
    [2.0, 1.0, 1.875]
    """
    return [quantity * grown for quantity in quantities for grown in growth(doublings)]


def projected_gain(last: Sequence[Observation], full_size: int) -> float:
    """Return what DAUB's projection allows where it is valid, infinity elsewhere.

    The projection is an upper bound where returns diminish ([2] Section 3): it is taken for valid
    where the last three scores rose, and the last time by no more per example than before.

    Args:
        last: the last observations of a curve; three are needed.
        full_size: N, or any size at least as large as the last.
    """
    if len(last) < POINTS:
        return math.inf
    first, second, third = last
    before = (second.score - first.score) / (second.size - first.size)
    now = (third.score - second.score) / (third.size - second.size)
    if not 0.0 < now <= before:
        return math.inf
    rise = slope([seen.size for seen in last], [seen.score for seen in last])
    return rise * (full_size - third.size)  # [2] Alg. 1, UpdateBound


@cache
def shipped() -> Mapping[bool, GainTable]:
    """Return the package's tables, by whether they use training scores."""
    parts = json.loads(files(__package__).joinpath(COEFFICIENTS).read_text(encoding="utf-8"))
    return {
        True: parse_table(parts["with_training_score"]),
        False: parse_table(parts["without_training_score"]),
    }


def parse_table(part: Mapping[str, Any]) -> GainTable:
    """Return a table from its JSON form."""
    rows = tuple(tuple(row) for row in part["coefficients"])
    return GainTable(tuple(part["probabilities"]), rows, tuple(part["quantities"]))
