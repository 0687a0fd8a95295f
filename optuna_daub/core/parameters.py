"""Learners' parameters as numbers: what costs and forecasts of newcomers are learnt from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import is_finite


MOST_COMPARED = 100
"""Learners begun last, from whose parameters a newcomer's cost and score are predicted."""
LEAST_SPREAD = 0.3
"""Least standard deviation by which logarithms of a parameter are divided: learners that differ by
less show little of its effect."""


class Features(NamedTuple):
    """Points of a search space as rows of numbers.

    Numbers are standardized, and so are their logarithms where all are above 0; each word has a
    column, 0 or 1. Where some learners lack a parameter, the mean of the others stands in, and a
    column says so.
    """

    known: NDArray[np.float64]
    """A row for each learner known."""
    new: NDArray[np.float64]
    """A row for each new one."""
    is_unknown: NDArray[np.bool_]
    """Of each new one, which columns are of a parameter that it lacks and all known have."""
    beyond: NDArray[np.float64]
    """How far, in e-foldings, each new one lies beyond what the numbers seen can tell."""

    @classmethod
    def of(cls, known: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Features:
        """Return the features of points of which at least one is known.

        >>> known = [{"kind": "tree", "depth": 1}, {"kind": "line"}, {"kind": "tree", "depth": 3}]
        >>> Features.of(known, [{"kind": "line"}]).new.round(2)
        array([[0., 0., 1., 0., 0.]])
        """
        points, k = [*known, *new], len(known)
        names = sorted({name for point in known for name in point})
        worded = [n for n in names if not all(_is_number(p[n]) for p in known if n in p)]
        numeric = [name for name in names if name not in worded]
        # What is no number, where all others are, says as little as nothing.
        values = [
            [p[n] if n in p and _is_number(p[n]) else math.nan for n in numeric] for p in points
        ]
        numbers = np.array(values, np.float64).reshape(len(points), len(numeric))
        has_words = np.array([[name in point for name in worded] for point in points], bool)
        is_there = np.hstack([np.isfinite(numbers), has_words])

        # A line is not believed beyond what was seen, a power of the number is.
        low, high = np.nanmin(numbers[:k], axis=0), np.nanmax(numbers[:k], axis=0)
        spread = np.where(low < high, np.nanstd(numbers[:k], axis=0), 0.0)
        with_line, with_power = np.flatnonzero(spread > 0.0), np.flatnonzero(low > 0.0)
        line = np.clip(numbers, low, high)[:, with_line]
        line = (line - np.nanmean(line[:k], axis=0)) / spread[with_line]
        power = np.log(np.where(numbers <= 0.0, low, numbers)[:, with_power])
        low, high = np.log(low[with_power]), np.log(high[with_power])
        # What was seen is believed as far again as it reaches.
        off = np.maximum(low - power[k:], power[k:] - high) - (high - low)
        beyond = np.sqrt(np.square(np.maximum(0.0, np.nan_to_num(off))).sum(axis=1))
        scale = np.maximum(np.nanstd(power[:k], axis=0), LEAST_SPREAD)
        power = (power - np.nanmean(power[:k], axis=0)) / scale

        columns = [*np.nan_to_num(line).T, *np.nan_to_num(power).T]
        # Which parameter each column is of: numbers first, then words.
        of = [*with_line, *with_power]
        for place, name in enumerate(worded, start=len(numeric)):
            own = np.array([repr(point.get(name)) for point in points])
            has_one = is_there[:, place]
            for word in np.unique(own[:k][has_one[:k]]):
                column = (own == word).astype(np.float64)
                columns.append(np.where(has_one, column, column[:k][has_one[:k]].mean()))
                of.append(place)
        is_shared = is_there[:k].all(axis=0)
        lacked = np.flatnonzero(~is_shared)
        columns.extend(is_there[:, lacked].T.astype(np.float64))
        of.extend(lacked)
        table = np.array(columns).reshape(len(columns), len(points)).T
        return cls(table[:k], table[k:], (is_shared & ~is_there[k:])[:, of], beyond)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
