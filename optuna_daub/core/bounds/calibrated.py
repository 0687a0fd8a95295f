"""A calibrated upper bound: how much learners gained from here to the end on other data sets.

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
learning curves of LCDB 1.1 [1] (`benchmarks/fit_calibrated.py`). So a bound

* is the score itself at n = N, and never falls with more data left;
* moves with the score: scores shifted or scaled have bounds shifted or scaled alike;
* promises what it was measured to keep on data sets left out of the fit, and nothing on curves
  unlike those: it is no theorem.

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
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

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation


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


@dataclass(frozen=True)
class CalibratedBound:
    """Upper bounds on the full-data score, from what learners gained on other data sets.

    >>> curve = LearningCurve(0, (Observation(500, 0.80, 0.99), Observation(1000, 0.84, 0.98)))
    >>> bound = CalibratedBound(ceiling=1.0)
    >>> bound.quantile(curve, 8000, 0.5) < bound.quantile(curve, 8000, 0.95) <= 1.0
    True
    """

    price: float = 0.02
    """Score that one would give up to save one training on all the data; at least 0. The default
    was chosen by `benchmarks/replay.py`."""
    ceiling: float = math.inf
    """The best score there can be, such as 1 for an accuracy."""
    use_training_score: bool = True
    """Use the training score where there is one."""
    with_training_score: GainTable | None = None
    without_training_score: GainTable | None = None
    """What the bounds rest on; None for the coefficients that come with the package."""

    def __call__(self, curve: LearningCurve, full_size: int, next_size: int) -> float:
        """Return the bound below which training the learner on is not worth its price.

        The expected gain above it, E[max(0, score at N - bound)], is the price of the next probe:
        `price` times `next_size` / N. What is cheap to find out is found out more surely.
        """
        probabilities, gains = self._gains(curve, full_size)
        weights = _weights(probabilities)
        excess = np.cumsum((weights * gains)[::-1]) - self.price * next_size / full_size
        least = float(np.max(excess / np.cumsum(weights[::-1])))
        return curve.score + max(0.0, least)

    def quantile(self, curve: LearningCurve, full_size: int, probability: float) -> float:
        """Return what the score at `full_size` stays below with a probability.

        Below the smallest probability of the table gains fall linearly to 0, above the largest one
        its quantile stands.
        """
        probabilities, gains = self._gains(curve, full_size)
        gain = np.interp(probability, (0.0, *probabilities), (0.0, *gains))
        return curve.score + float(gain)

    def _gains(
        self, curve: LearningCurve, full_size: int
    ) -> tuple[tuple[float, ...], NDArray[np.float64]]:
        """Return probabilities and the quantiles of the gain, at most up to the ceiling."""
        last = curve.observations[-POINTS:]
        scored = self.use_training_score and all(x.training_score is not None for x in last[-2:])
        chosen = self.with_training_score if scored else self.without_training_score
        table = chosen or _shipped()[scored]
        doublings = [max(0.0, math.log2(full_size / curve.size))]
        gains = table.gains(_described(last), doublings)[0]
        return table.probabilities, np.minimum(gains, max(0.0, self.ceiling - curve.score))


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


def _described(last: tuple[Observation, ...]) -> NDArray[np.float64]:
    if len(last) < 2:
        raise ValueError(f"A calibrated bound needs two observations, but got {len(last)}.")
    missing = [math.nan] * (POINTS - len(last))
    training = (math.nan if x.training_score is None else x.training_score for x in last)
    return describe(
        np.array([[*missing, *(float(x.size) for x in last)]]),
        np.array([[*missing, *(x.score for x in last)]]),
        np.array([[*missing, *training]]),
    )


def _weights(probabilities: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the probability that each quantile stands for (trapezoids, 1 above the last)."""
    edges = np.array([probabilities[0], *probabilities, 2.0 - probabilities[-1]])
    return np.asarray((edges[2:] - edges[:-2]) / 2.0)


@cache
def _shipped() -> dict[bool, GainTable]:
    """Return the package's tables, by whether they use training scores."""
    text = files(__package__).joinpath(COEFFICIENTS).read_text(encoding="utf-8")
    return {scored: read_table(text, scored) for scored in (False, True)}


def read_table(text: str, scored: bool) -> GainTable:
    """Return a table from the text that the fit wrote, with or without training scores."""
    parts = json.loads(text)
    return parse_table(parts["with_training_score" if scored else "without_training_score"])


def parse_table(part: Mapping[str, Any]) -> GainTable:
    """Return a table from its JSON form."""
    rows = tuple(tuple(row) for row in part["coefficients"])
    return GainTable(tuple(part["probabilities"]), rows, tuple(part["quantities"]))
