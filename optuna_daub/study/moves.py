"""Moves of the best learners' parameters from small samples to all the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution

from optuna_daub.core.space import Numbers


INTERVAL = 0.05, 0.95
"""Quantiles at the ends of all intervals."""
BEST_SHARE = 0.25
"""Share of the learners of a size whose parameters count as the best ones."""
MIN_LEARNERS = 10
"""Smallest number of learners with a parameter on a size for a move. A quarter are at least 2."""
MOST_DRAWN = 2_000_000
"""Largest number of learners drawn anew, over all draws: 16 MB, and 100 draws of 20,000."""


@dataclass(frozen=True)
class Move:
    """Change of the best learners' parameter from small samples to all the data.

    The best are a quarter of the learners that have the parameter, and were scored on a small
    size: the smallest one with ten of them. On all the data they are the best by scores and
    forecasts.
    """

    parameter: str
    small: float
    """Mean over the best on the small size, geometric for logarithmic ranges. Of a category, its
    share among them."""
    full: float
    """The same over the best on all the data."""
    distance: float
    """Distance from `small` to `full`, in [-1, 1]: in ranges of the parameter, or in shares."""
    lower: float
    """Lower end of the distance's 90 % interval; `upper` is the other end. The interval comes from
    redrawn learners (bootstrap), so it is wide if few of them, or noise, decide which are best."""
    upper: float
    category: str | None = None
    """Text of the category; None for a number."""

    @property
    def is_sure(self) -> bool:
        """True if the interval does not contain 0."""
        return self.lower > 0 or self.upper < 0

    def __str__(self) -> str:
        if self.category is None:
            ends = f"from {self.small:.4g} to {self.full:.4g} with all the data"
            return f"{self.parameter}: the best move {ends}"
        ends = f"{self.small:.0%} of the best, and {self.full:.0%} with all the data"
        return f"{self.parameter}={self.category}: {ends}"


def moves_of(
    distributions: dict[str, BaseDistribution],
    learners: Sequence[Mapping[str, Any]],
    scores: Numbers,
    drawn: Numbers,
    rng: np.random.Generator,
) -> tuple[Move, ...]:
    """Return the moves of all parameters that differ among learners, the farthest first.

    Args:
        distributions: the parameters, each with its latest range.
        learners: parameters of each learner.
        scores: scores on each small size, the smallest first, shape (sizes, learners). Larger is
            better; NaN if there is none.
        drawn: draws of their scores on all the data, shape (draws, learners).
        rng: generator of the draws of learners.
    """
    order = rng.permutation(len(learners))  # of equal scores no learner comes first
    found, cached = [], dict[tuple[int, bytes], _Best]()
    for name, distribution in distributions.items():
        has_it = np.array([name in params for params in learners], bool)
        known = ((i, order[(has_it & np.isfinite(row))[order]]) for i, row in enumerate(scores))
        at = next(((i, own) for i, own in known if len(own) >= MIN_LEARNERS), None)
        if at is None:
            continue
        i, own = at
        if (key := (i, own.tobytes())) not in cached:  # most parameters are in all learners
            cached[key] = _best_of(scores[i][own], drawn[:, own], rng)
        best = cached[key]
        for category, values in _places([learners[k][name] for k in own.tolist()], distribution):
            small, full = float(values[best.here].mean()), float(values[best.there].mean())
            moved = values[best.there_again].mean(axis=1) - values[best.here_again].mean(axis=1)
            lower, upper = (float(end) for end in np.quantile(moved, INTERVAL))
            start, end = (_value(place, distribution) for place in (small, full))
            found.append(Move(name, start, end, full - small, lower, upper, category))
    return tuple(sorted(found, key=lambda move: -abs(move.distance)))


class _Best(NamedTuple):
    """Places of the best learners: of all, and of learners drawn anew from these."""

    here: NDArray[np.int64]
    """On the small size, shape (1, best)."""
    there: NDArray[np.int64]
    """On all the data, in each draw of the scores, shape (draws, best)."""
    here_again: NDArray[np.int64]
    there_again: NDArray[np.int64]


def _best_of(here: Numbers, drawn: Numbers, rng: np.random.Generator) -> _Best:
    """Return the best learners; `rng` draws learners with replacement, as the bootstrap does."""

    def best(scores: Numbers) -> NDArray[np.int64]:
        n_best = max(1, round(BEST_SHARE * scores.shape[1]))
        return np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]

    n_again = min(len(drawn), max(1, MOST_DRAWN // len(here)))
    again = rng.integers(len(here), size=(n_again, len(here)))
    there = np.take_along_axis(drawn[:n_again], again, axis=1)
    return _Best(
        best(here[None]),
        best(drawn),
        np.take_along_axis(again, best(here[again]), axis=1),
        np.take_along_axis(again, best(there), axis=1),
    )


def _places(
    values: Sequence[Any], distribution: BaseDistribution
) -> Iterator[tuple[str | None, Numbers]]:
    """Yield the values' places in a range, from 0 to 1; for each category 1 or 0."""
    if isinstance(distribution, CategoricalDistribution):
        kinds = np.array([distribution.to_internal_repr(value) for value in values])
        for kind in np.unique(kinds) if len({*kinds}) > 1 else ():
            # None may be a category too, so categories are texts.
            yield str(distribution.choices[int(kind)]), (kinds == kind).astype(float)
    elif isinstance(distribution, FloatDistribution | IntDistribution):
        low, high = float(distribution.low), float(distribution.high)
        if low < high:
            numbers = np.array(values, float)
            if distribution.log:
                yield None, np.log(numbers / low) / math.log(high / low)
            else:
                yield None, (numbers - low) / (high - low)


def _value(place: float, distribution: BaseDistribution) -> float:
    """Return the number at a place of its range. A category's share is returned as it is."""
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return place
    low, high = float(distribution.low), float(distribution.high)
    return low * (high / low) ** place if distribution.log else low + place * (high - low)
