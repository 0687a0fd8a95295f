"""Moves of the best learners' parameters from small samples to all the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution


Numbers = NDArray[np.float64]

INTERVAL = 0.05, 0.95
"""Quantiles at the ends of all intervals."""
BEST_SHARE = 0.25
"""Share of the learners of a size whose parameters count as the best ones."""
MIN_LEARNERS = 10
"""Smallest number of learners with a parameter on a size for a move. A quarter are at least 2."""


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
    """Lower end of the distance's 90 % interval; `upper` is the other end. It is one for learners
    drawn anew from these, so it is wide if few of them, or noise, decide which are the best."""
    upper: float
    category: Any = None
    """The category; None for a number."""

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
    found = []
    for name, distribution in distributions.items():
        has_it = np.array([name in params for params in learners], bool)
        known = (np.flatnonzero(has_it & np.isfinite(on_size)) for on_size in scores)
        at = next(((i, own) for i, own in enumerate(known) if len(own) >= MIN_LEARNERS), None)
        if at is None:
            continue
        i, own = at
        here, there = scores[i][own], drawn[:, own]
        # The bootstrap: in each draw, learners are drawn from these with replacement.
        again = rng.integers(len(own), size=there.shape)
        best_here, best_there = _best(here[None]), _best(there)
        other_here = np.take_along_axis(again, _best(here[again]), axis=1)
        other_there = np.take_along_axis(again, _best(np.take_along_axis(there, again, 1)), axis=1)
        for category, values in _places([learners[k][name] for k in own.tolist()], distribution):
            small, full = float(values[best_here].mean()), float(values[best_there].mean())
            moved = values[other_there].mean(axis=1) - values[other_here].mean(axis=1)
            lower, upper = (float(end) for end in np.quantile(moved, INTERVAL))
            start, end = (_value(place, distribution) for place in (small, full))
            found.append(Move(name, start, end, full - small, lower, upper, category))
    return tuple(sorted(found, key=lambda move: -abs(move.distance)))


def _best(scores: Numbers) -> NDArray[np.int64]:
    """Return the places of the best quarter of each row."""
    n_best = max(1, round(BEST_SHARE * scores.shape[1]))
    return np.argsort(-scores, axis=1, kind="stable")[:, :n_best]


def _places(
    values: Sequence[Any], distribution: BaseDistribution
) -> Iterator[tuple[Any, Numbers]]:
    """Yield places of values in a range, from 0 to 1, or of each category which values are it."""
    if isinstance(distribution, CategoricalDistribution):
        kinds = np.array([distribution.to_internal_repr(value) for value in values])
        for kind in np.unique(kinds) if len({*kinds}) > 1 else ():
            yield distribution.choices[int(kind)], (kinds == kind).astype(float)
    elif isinstance(distribution, FloatDistribution | IntDistribution):
        low, high = float(distribution.low), float(distribution.high)
        if low < high:
            numbers = np.array(values, float)
            if distribution.log:
                yield None, np.log(numbers / low) / math.log(high / low)
            else:
                yield None, (numbers - low) / (high - low)


def _value(place: float, distribution: BaseDistribution) -> float:
    """Return the number at a place of its range; of a category the share that it is."""
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        return place
    low, high = float(distribution.low), float(distribution.high)
    return low * (high / low) ** place if distribution.log else low + place * (high - low)
