"""Search spaces: points as rows of numbers.

A row has one entry per parameter. For a number it is the place of the value in its range, from 0
to 1 (0.5 if the range has one value only), on a logarithmic scale if the range has one. For a word
(a categorical value) it is the word's number 0, 1, 2, ... It is NaN if the point lacks the
parameter.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist


Numbers: TypeAlias = NDArray[np.float64]
"""Floats, of any shape."""
Rows: TypeAlias = Numbers
"""Points of a space, shape (points, parameters)."""

WIDE_RATIO = 30.0
"""Smallest ratio of two values at which a parameter counts as logarithmic. It holds for parameters
of unknown range, if all values are above 0. Not tuned."""


@dataclass(frozen=True)
class Range:
    """A parameter that is a number.

    >>> Range(1.0, 100.0, is_log=True).place(10.0), Range(0.0, 4.0).value(0.25)
    (0.5, 1.0)
    >>> Range(1, 9, step=2).value(0.5)
    5
    """

    low: float
    """Smallest value."""
    high: float
    """Largest value, at least `low`."""
    is_log: bool = False
    """True for a logarithmic scale; then `low` is above 0."""
    step: float | None = None
    """Distance of neighbouring values; None if any value in the range is possible."""
    is_whole: bool = False
    """True if values are whole numbers."""

    def place(self, value: float) -> float:
        """Return the place of a value: 0 at or below `low`, 1 at or above `high`."""
        low, high, value = (self._scaled(x) for x in (self.low, self.high, value))
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    def value(self, place: float) -> float | int:
        """Return the value at a place in [0, 1]."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        found = low + place * (high - low)
        found = math.exp(found) if self.is_log else found
        if self.step is not None:
            found = self.low + round((found - self.low) / self.step) * self.step
        found = min(max(found, self.low), self.high)
        return round(found) if self.is_whole else found

    def _scaled(self, value: float) -> float:
        return math.log(max(value, 1e-300)) if self.is_log else float(value)


@dataclass(frozen=True)
class Words:
    """A parameter that is one of several words.

    A word is any value. All have a distinct `repr`.

    >>> Words(("gbdt", "dart", None)).place("dart"), Words((True, False)).value(1.0)
    (1.0, False)
    """

    choices: tuple[Any, ...]
    """The values, in a fixed order."""

    def place(self, value: Any) -> float:
        """Return the number of a value; NaN if it is not one of the choices."""
        wanted = repr(value)
        numbers = (i for i, choice in enumerate(self.choices) if repr(choice) == wanted)
        return float(next(numbers, math.nan))

    def value(self, place: float) -> Any:
        """Return the value with this number."""
        return self.choices[int(place)]

    def __hash__(self) -> int:
        return hash(repr(self.choices))  # choices may be lists


Dimension: TypeAlias = Range | Words


@dataclass(frozen=True)
class Space:
    """The parameters that learners have, and their ranges.

    >>> space = Space.of([{"kind": "tree", "depth": 1}, {"kind": "line"}, {"depth": 5}])
    >>> space.rows([{"kind": "line"}, {"kind": "tree", "depth": 2}])
    array([[ nan, 0.  ],
           [0.25, 1.  ]])
    """

    dimensions: tuple[tuple[str, Dimension], ...] = ()
    """Names and ranges of the parameters, sorted by name."""

    @classmethod
    def of(cls, points: Iterable[Mapping[str, Any]]) -> Space:
        """Return the ranges of some points, if their distributions are unknown."""
        values: dict[str, list[Any]] = {}
        for point in points:
            for name, value in point.items():
                values.setdefault(name, []).append(value)
        return cls(tuple((name, _spanned(values[name])) for name in sorted(values)))

    def __hash__(self) -> int:
        return self._hash  # asked for by every question about a pool in this space

    @cached_property
    def _hash(self) -> int:
        return hash(self.dimensions)

    @cached_property
    def is_word(self) -> NDArray[np.bool_]:
        """True for parameters that are words, shape (parameters,); not to be written to."""
        return np.array([isinstance(one, Words) for _, one in self.dimensions], bool)

    @cached_property
    def is_whole(self) -> NDArray[np.bool_]:
        """True for whole numbers, shape (parameters,); not to be written to."""
        wholes = (isinstance(one, Range) and one.is_whole for _, one in self.dimensions)
        return np.array([*wholes], bool)

    def row(self, point: Mapping[str, Any]) -> tuple[float, ...]:
        """Return a point as numbers, one per parameter."""
        return tuple(
            one.place(point[name]) if name in point and _fits(one, point[name]) else math.nan
            for name, one in self.dimensions
        )

    def rows(self, points: Sequence[Mapping[str, Any]]) -> Rows:
        """Return points as rows."""
        return np.array([self.row(point) for point in points], np.float64).reshape(
            len(points), len(self.dimensions)
        )

    def snapped(self, rows: Rows) -> Rows:
        """Return rows of existing points: values with a step are rounded to the nearest one.

        >>> Space((("depth", Range(1, 5, is_whole=True)),)).snapped(np.array([[0.3], [0.9]]))
        array([[0.25],
               [1.  ]])
        """
        moved = rows.copy()
        for place, (_, one) in enumerate(self.dimensions):
            if not isinstance(one, Range):
                continue
            if one.low >= one.high:  # it has one value only, and learners are in the middle
                moved[~np.isnan(moved[:, place]), place] = 0.5
                continue
            step = one.step or (1.0 if one.is_whole else None)
            if step is None:
                continue
            low, high = (math.log(x) if one.is_log else x for x in (one.low, one.high))
            value = low + moved[:, place] * (high - low)
            value = np.exp(value) if one.is_log else value
            value = one.low + np.round((value - one.low) / step) * step
            value = np.clip(value, one.low, one.high)
            value = np.log(value) if one.is_log else value
            moved[:, place] = (value - low) / (high - low)
        return moved

    def log_counts(self, rows: Rows) -> NDArray[np.float64]:
        """Return the logarithms of whole numbers plus 1, shape (points, such parameters).

        A value below 0 counts as 0. NaN if the point lacks the parameter.

        >>> Space((("trees", Range(9, 99, is_log=True, is_whole=True)),)).log_counts(
        ...     np.array([[0.0], [1.0]])
        ... ).round(3)
        array([[2.303],
               [4.605]])
        """
        found = []
        for place, (_, one) in enumerate(self.dimensions):
            if isinstance(one, Range) and one.is_whole:
                low, high = (math.log(x) if one.is_log else float(x) for x in (one.low, one.high))
                value = low + rows[:, place] * (high - low)
                found.append(np.log1p(np.maximum(np.exp(value) if one.is_log else value, 0.0)))
        return np.array(found).reshape(len(found), len(rows)).T

    def point(self, row: NDArray[np.float64]) -> dict[str, Any]:
        """Return the parameters of a row, without those that it lacks."""
        return {
            name: one.value(float(place))
            for (name, one), place in zip(self.dimensions, row, strict=True)
            if not math.isnan(place)
        }


def _fits(one: Dimension, value: Any) -> bool:
    return isinstance(one, Words) or _is_number(value)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    magnitude = abs(float(value) if isinstance(value, np.generic) else value)
    return bool(magnitude <= sys.float_info.max)  # a whole number may be larger


def _spanned(values: Sequence[Any]) -> Dimension:
    """Return the range of a parameter that had these values."""
    if not all(_is_number(value) for value in values):
        by_text = {repr(value): value for value in values}
        return Words(tuple(by_text[text] for text in sorted(by_text)))
    low, high = min(values), max(values)
    return Range(low, high, is_log=low > 0 and high / low >= WIDE_RATIO)


def deciding(space: Space, rows: Rows) -> NDArray[np.bool_]:
    """Return True for words that decide which other parameters there are, shape (parameters,).

    Args:
        space: the space.
        rows: points to learn it from, shape (points, parameters).

    >>> space = Space.of([{"kind": "tree", "depth": 1}, {"kind": "line"}])
    >>> deciding(space, space.rows([{"kind": "tree", "depth": 1}, {"kind": "line"}])).tolist()
    [False, True]
    """
    is_there = ~np.isnan(rows)
    found = np.zeros(rows.shape[1], bool)
    varies = np.flatnonzero(is_there.any(axis=0) & ~is_there.all(axis=0))
    for place in np.flatnonzero(space.is_word) if len(varies) else ():
        with_it = is_there[:, place]
        for word in np.unique(rows[with_it, place]):
            mine = with_it & (rows[:, place] == word)
            # Some parameter always comes with this word, and never with another one.
            always = is_there[mine][:, varies].all(axis=0)
            never = ~is_there[with_it & ~mine][:, varies].any(axis=0)
            if (always & never).any() and (with_it & ~mine).any():
                found[place] = True
    return found


def square_distances(known: Rows, new: Rows, is_word: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return squared distances by parameter, shape (parameters, known, new).

    Different words are at distance 1. A missing number counts as the middle of its range, a
    missing word as one more word. Points with different parameters also differ in the word that
    decides which parameters there are.

    >>> rows = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 1.0]])
    >>> square_distances(rows[:1], rows, np.array([False, True])).tolist()
    [[[0.0, 1.0, 0.25]], [[0.0, 1.0, 0.0]]]
    """
    first, second = (_filled(rows, is_word).T for rows in (known, new))
    apart = first[:, :, None] - second[:, None, :]
    apart *= apart
    apart[is_word] = apart[is_word] != 0.0
    return np.asarray(apart)


def distances(
    known: Rows, new: Rows, is_word: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return squared distances, shape (known, new): `square_distances` times weights, summed.

    >>> rows = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 1.0]])
    >>> distances(rows[:1], rows, np.array([False, True]), np.array([1.0, 3.0])).tolist()
    [[0.0, 4.0, 0.25]]
    """
    first, second = (_filled(rows, is_word) for rows in (known, new))
    scale = np.sqrt(weights[~is_word])
    found = cdist(first[:, ~is_word] * scale, second[:, ~is_word] * scale, "sqeuclidean")
    for place in np.flatnonzero(is_word):
        found += weights[place] * (first[:, [place]] != second[:, place])
    return np.asarray(found)


def _filled(rows: Rows, is_word: NDArray[np.bool_]) -> Rows:
    return np.where(np.isnan(rows), np.where(is_word, -1.0, 0.5), rows)


def branches(rows: Rows, decides: NDArray[np.bool_]) -> Rows:
    """Return the branch of the space that each point is in.

    A branch is a row of numbers. It is given by the deciding words and by which parameters there
    are, since a number may decide on parameters too.
    """
    words = np.where(decides, np.nan_to_num(rows, nan=-1.0), 0.0)
    return np.hstack([words, np.isnan(rows)])


def keys_of(rows: Rows) -> list[bytes]:
    """Return the bytes of each row, as keys: with 20,000 rows much faster than row by row."""
    data, width = rows.tobytes(), rows[:1].nbytes
    return [data[i * width : (i + 1) * width] for i in range(len(rows))]
