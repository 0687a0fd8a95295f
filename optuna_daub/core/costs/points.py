"""The points of measured learners, as the kernels of the seconds' model need them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.space import Range
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space


Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Points of the learners that a model is fitted to, as the kernels need them."""

    rows: Rows
    """Points of the learners, shape (learners, parameters)."""
    space: Space
    """Space of the parameters."""
    centre: Array
    """Means of the linear columns, so a parameter that never changed has no effect."""
    n_words: tuple[int, ...]
    """Number of columns for the words of each parameter."""
    reach: float
    """Mean squared distance between the learners; 1 if all are equal."""

    @classmethod
    def of(cls, rows: Rows, space: Space, bend: float, count: float) -> Points:
        """Return the points with centre, columns and reach of these learners."""
        words = _words(rows, space.is_word)
        n_words = tuple(int(number) + 2 for number in words.max(axis=0, initial=-1))
        bare = cls(rows, space, np.zeros(1), n_words, 1.0)
        distances = bare._distances(bare)
        centre = np.concatenate([part.mean(axis=0) for part in bare._columns(bend, count)])
        pairs = max(len(rows) * (len(rows) - 1), 1)
        return cls(rows, space, centre, n_words, float(distances.sum() / pairs) or 1.0)

    def at(self, rows: Rows) -> Points:
        """Return other points, with the centre, columns and reach of these."""
        return Points(rows, self.space, self.centre, self.n_words, self.reach)

    def linear(self, bend: float, count: float) -> tuple[Array, Array]:
        """Return the columns of the linear part, and each point's prior variance of it, shape
        (points,).

        Logarithms of numbers have the weight `bend` beside the numbers.
        """
        numbers, words = self._columns(bend, count)
        columns = np.concatenate([numbers, words], axis=1) - self.centre
        unseen = (_words(self.rows, self.space.is_word) + 2 > np.array(self.n_words)).sum(axis=1)
        return columns, np.asarray((columns**2).sum(axis=1) + unseen)

    def smooth(self, other: Points, scale: float) -> Array:
        """Return the squared exponential of distances, shape (points, other points).

        The length scale is `scale` times the learners' root mean square distance.
        """
        return np.asarray(np.exp(-0.5 / (scale**2 * self.reach) * self._distances(other)))

    def _columns(self, bend: float, count: float) -> tuple[Array, Array]:
        """Return numbers with their logarithms, and a column of 0 and 1 for each word."""
        numbers = self._numbers()[:, self._is_float()]
        counts = count * self.space.log_counts(self.rows)
        # Time may be proportional to a value or to its logarithm, whatever scale its range has.
        bent = bend * np.log(numbers + 0.02)
        words = _words(self.rows, self.space.is_word)
        is_it = [
            (words[:, [i]] == np.arange(-1, count - 1)) / math.sqrt(2.0)
            for i, count in enumerate(self.n_words)
        ]
        return (
            np.concatenate([counts, numbers, bent], axis=1),
            np.concatenate([np.empty((len(self.rows), 0)), *is_it], axis=1),
        )

    def _is_float(self) -> NDArray[np.bool_]:
        return np.array([not one.is_whole for _, one in self.space.dimensions if isinstance(one, Range)], bool)

    def counts(self, count):
        """sum of centred log counts"""
        logs = self.space.log_counts(self.rows)
        return (logs - self.centre[: logs.shape[1]] / count).sum(axis=1)

    def _numbers(self) -> Array:
        numbers = self.rows[:, ~self.space.is_word]
        return np.where(np.isnan(numbers), 0.5, numbers)

    def _distances(self, other: Points) -> Array:
        """Return squared distances as `space.square_distances` has them, over all parameters."""
        first, second = self._numbers(), other._numbers()
        square = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)
        square -= 2.0 * first @ second.T
        for one, two in zip(
            _words(self.rows, self.space.is_word).T, _words(other.rows, self.space.is_word).T, strict=True
        ):
            square += one[:, None] != two
        return np.asarray(np.maximum(square, 0.0))


def _words(rows: Rows, is_word: NDArray[np.bool_]) -> Array:
    """Return the numbers of words, -1 for one that is absent."""
    words = rows[:, is_word]
    return np.where(np.isnan(words), -1.0, words)
