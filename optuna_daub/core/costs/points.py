"""The points of measured learners, as the kernels of the seconds' model need them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property

import numpy as np

from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space
from optuna_daub.core.space import distances


SHIFT = 0.02
"""Distance of the logarithm's zero below the lower end of a parameter's range, as a share of the
range. Not tuned."""


@dataclass(frozen=True)
class Points:
    """Learners as points, in the form that the kernels need."""

    rows: Rows
    """Points of the learners, shape (learners, parameters)."""
    space: Space
    """Space of the parameters."""
    log_weight: float
    """Weight of a number's logarithm in the linear part; the number's own is 1."""
    count: float
    """Weight of a whole number's logarithm in the linear part. The number itself is not in it."""
    centre: Numbers
    """Means of the columns of the linear part, over the learners that have the parameter.

    If no learner has it, this is the middle of its range. So a parameter that never changed, or
    that a point lacks, adds nothing, and a new algorithm is not slow for having many
    parameters."""
    n_words: tuple[int, ...]
    """Number of columns for the words of each parameter."""
    reach: float
    """Mean squared distance between the learners; 1 if all are equal."""

    @classmethod
    def of(cls, rows: Rows, space: Space, log_weight: float, count: float) -> Points:
        """Return the points with centre, columns and reach of these learners."""
        bare = cls(rows, space, log_weight, count, np.zeros(1), (), 1.0)
        n_words = tuple(int(number) + 2 for number in bare.words.max(axis=0, initial=-1))
        bare = replace(bare, n_words=n_words)
        apart = bare._distances(bare)
        columns = bare._columns()
        n_with = (~np.isnan(columns)).sum(axis=0)
        middle = bare.at(np.full((1, rows.shape[1]), 0.5))._columns()[0]
        mean = np.nansum(columns, axis=0) / np.maximum(n_with, 1)
        centre = np.where(n_with > 0, mean, middle)
        pairs = max(len(rows) * (len(rows) - 1), 1)
        return replace(bare, centre=centre, reach=float(apart.sum() / pairs) or 1.0)

    def at(self, rows: Rows) -> Points:
        """Return other points, with the centre, columns and reach of these."""
        return replace(self, rows=rows)

    @cached_property
    def linear(self) -> tuple[Numbers, Numbers]:
        """Columns of the linear part, and its prior variance at each point, shape (points,)."""
        columns = np.nan_to_num(self._columns() - self.centre)
        unseen = (self.words + 2 > np.array(self.n_words)).sum(axis=1)
        # Twice the variance that a column of its own would add: with the half, searches lose more
        # (`benchmarks/search.py --problems ranger --seeds 3`, 0.04 points after 30 units).
        return columns, np.asarray((columns**2).sum(axis=1) + unseen)

    def counts(self) -> Numbers:
        """Return the sum of the whole numbers' logarithms above their means, shape (points,)."""
        logs = self.space.log_counts(self.rows)
        return np.asarray(np.nansum(logs - self.centre[: logs.shape[1]] / self.count, axis=1))

    def smooth(self, other: Points, scale: float) -> Numbers:
        """Return the squared exponential of distances, shape (points, other points).

        The length scale is `scale` times the learners' root mean square distance.
        """
        return np.asarray(np.exp(-0.5 / (scale**2 * self.reach) * self._distances(other)))

    def _columns(self) -> Numbers:
        """Return logarithms of whole numbers, other numbers, their logarithms, and words.

        Each word has a column: 1 / sqrt(2) if the point has it, else 0, so two words are at
        distance 1. NaN for numbers that a point lacks.
        """
        counts = self.count * self.space.log_counts(self.rows)
        numbers = self.rows[:, ~self.space.is_whole & ~self.space.is_word]
        # Time may be proportional to a value or to its logarithm, on any scale of its range.
        bent = self.log_weight * np.log(numbers + SHIFT)
        is_it = [
            (self.words[:, [i]] == np.arange(-1, count - 1)) / math.sqrt(2.0)
            for i, count in enumerate(self.n_words)
        ]
        return np.concatenate([counts, numbers, bent, *is_it], axis=1)

    @cached_property
    def words(self) -> Numbers:
        """Numbers of the words, -1 for one that is absent."""
        words = self.rows[:, self.space.is_word]
        return np.where(np.isnan(words), -1.0, words)

    def _distances(self, other: Points) -> Numbers:
        """Return squared distances over all parameters, exactly 0 between equal points."""
        space = self.space
        return distances(self.rows, other.rows, space.is_word, np.ones(len(space.dimensions)))
