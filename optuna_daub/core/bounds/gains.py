"""How much learners gained from here to the end on other data sets, as quantiles.

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
learning curves of LCDB 1.1 [1] (`benchmarks/fit_calibrated.py`).

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
[2] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


POINTS = 3
"""Number of observations, the last ones, that a curve is described by; two suffice."""

QUANTITIES = ("gap", "rise", "acceleration", "fall", "drop")
WITHOUT_TRAINING_SCORE = ("rise", "acceleration", "drop")
"""The quantities that need no training score."""

COEFFICIENTS = "calibrated.json"
"""The file beside this module that the fit wrote."""

Rows: TypeAlias = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class GainTable:
    """Quantiles of the gain that is left, as coefficients of products of quantity and growth."""

    probabilities: tuple[float, ...]
    """How often the gain is below each quantile, increasing, in (0, 1)."""
    coefficients: Rows
    """One row per probability, quantity by quantity, growth by growth; all at least 0."""
    quantities: tuple[str, ...] = QUANTITIES

    def __post_init__(self) -> None:
        if any(value < 0 for row in self.coefficients for value in row):
            raise ValueError("The coefficients of a gain must be at least 0.")

    def gains(self, quantities: NDArray[np.float64], doublings: ArrayLike) -> NDArray[np.float64]:
        """Return the quantiles of the gain, shape (n curves, n probabilities), increasing.

        Args:
            quantities: as `describe` returns them, shape (n curves, n quantities).
            doublings: log2(N / n), at least 0; shape (n curves,).
        """
        chosen = [QUANTITIES.index(name) for name in self.quantities]
        products = design(quantities[:, chosen], doublings)
        gains = products @ np.transpose(self.coefficients)  # fitted on the curves of [1]
        return np.asarray(np.maximum.accumulate(gains, axis=1))


def describe(
    sizes: NDArray[np.float64], scores: NDArray[np.float64], training_scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the quantities of curves, shape (n curves, 5).

    Args:
        sizes: the last three training sizes, shape (n curves, 3); NaN stands for none.
        scores: the validation scores there.
        training_scores: the training scores there; NaN where not measured.
    """
    steps = np.diff(np.log2(sizes), axis=1)
    before, last = (np.diff(scores, axis=1) / steps).T
    before = np.where(np.isnan(before), last, before)
    fall = -(np.diff(training_scores, axis=1) / steps)[:, 1]
    gap = training_scores[:, -1] - scores[:, -1]
    quantities = gap, (before + last) / 2.0, last - before, fall, -last
    return np.asarray(np.nan_to_num(np.maximum(0.0, np.stack(quantities, axis=1))))


def growth(doublings: ArrayLike) -> NDArray[np.float64]:
    """Return L, 1 - 2^-L and 1 - 2^-4L, shape (n curves, 3): 0 at L = 0, and increasing."""
    left = np.asarray(doublings, dtype=np.float64)
    return np.stack([left, 1.0 - 2.0**-left, 1.0 - 2.0 ** (-4.0 * left)], axis=-1)


def design(quantities: NDArray[np.float64], doublings: ArrayLike) -> NDArray[np.float64]:
    """Return all products of a quantity and a growth, one row per curve."""
    products = quantities[:, :, None] * growth(doublings)[:, None, :]
    return np.asarray(products.reshape(len(quantities), -1))


def projected_gains(
    sizes: NDArray[np.float64], scores: NDArray[np.float64], full_size: ArrayLike
) -> NDArray[np.float64]:
    """Return what DAUB's projection allows where it is valid, infinity elsewhere.

    The projection is an upper bound where returns diminish ([2] Section 3): it is taken for valid
    where the last three scores rose, and the last time by no more per example than before.

    Args:
        sizes: the last three training sizes, shape (n curves, 3); NaN stands for none.
        scores: the validation scores there.
        full_size: N; one number, or one per curve.
    """
    before, last = (np.diff(scores, axis=1) / np.diff(sizes, axis=1)).T
    centred = sizes - sizes.mean(axis=1, keepdims=True)
    slope = (centred * scores).sum(axis=1) / (centred**2).sum(axis=1)  # [2] LinearRegrSlope
    gain = slope * (np.asarray(full_size, dtype=np.float64) - sizes[:, -1])  # [2] UpdateBound
    return np.asarray(np.where((last > 0.0) & (last <= before), gain, math.inf))


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
