"""Learners' parameters as numbers: what costs and forecasts of newcomers are learnt from."""

from __future__ import annotations

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
        array([[0., 0., 0., 1., 0.]])
        """
        points, k = [*known, *new], len(known)
        columns: list[NDArray[np.float64]] = []
        is_unknown: list[NDArray[np.bool_]] = []
        beyond = np.zeros(len(new))
        for name in sorted({name for point in known for name in point}):
            is_there = np.array([name in point for point in points])
            own: list[NDArray[np.float64]] = []
            if all(_is_number(point[name]) for point in known if name in point):
                # What is no number, where all others are, says as little as nothing.
                is_there[k:] = [_is_number(point.get(name)) for point in new]
                pairs = zip(points, is_there, strict=True)
                numbers = np.array([float(p[name]) if there else np.nan for p, there in pairs])
                seen = numbers[:k][is_there[:k]]
                # A line is not believed beyond what was seen, a power of the number is.
                line = np.clip(numbers, seen.min(), seen.max())
                if (spread := float(seen.std())) > 0.0:
                    own.append((line - seen.mean()) / spread)
                if seen.min() > 0.0:
                    power = np.log(np.where(numbers > 0.0, numbers, seen.min()))
                    scale = max(float(np.log(seen).std()), LEAST_SPREAD)
                    own.append((power - np.log(seen).mean()) / scale)
                    # What was seen is believed as far again as it reaches.
                    low, high = np.log(seen.min()), np.log(seen.max())
                    off = np.maximum(low - power[k:], power[k:] - high) - (high - low)
                    off = np.where(is_there[k:], np.maximum(0.0, off), 0.0)
                    beyond = np.hypot(beyond, off)
                own = [np.where(is_there, column, 0.0) for column in own]
            else:
                words = [repr(point[name]) if name in point else "" for point in points]
                for word in sorted({*words[:k]} - {""}):
                    column = np.array([word == other for other in words], float)
                    own.append(np.where(is_there, column, column[:k][is_there[:k]].mean()))
            is_missing = is_there[:k].all() & ~is_there[k:]
            if not is_there[:k].all():
                own.append(is_there.astype(float))
            columns.extend(own)
            is_unknown.extend([is_missing] * len(own))
        table = np.array(columns).reshape(len(columns), len(points)).T
        unknown = np.array(is_unknown, bool).reshape(len(columns), len(new)).T
        return cls(table[:k], table[k:], unknown, beyond)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
