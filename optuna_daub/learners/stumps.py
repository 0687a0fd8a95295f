"""Decision stumps: one-feature classifiers, and the search for the best one.

A stump votes one way inside an interval of its feature and the other way outside. With y in
{-1, +1} and weights D that sum to 1, its edge is sum_i D_i y_i h(x_i) in [-1, 1], and its weighted
error (1 - edge) / 2 [1]. Values are ranked once per fit. Then the edges of all stumps follow from
one weighted count per bin, without sorting again.

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
[2] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


TIE = 1e-10
"""Largest difference of edges that counts as equal. Then the first feature and lowest interval
win."""

BLOCK = 2**17
"""Values in one block: large enough for NumPy, small enough for the processor's cache."""

Features = Any
"""X of shape (n_samples, n_features): a float array or a SciPy sparse CSC matrix."""


@dataclass(frozen=True)
class Stump:
    """A stump, which votes `sign` if lower < x <= upper, else -sign.

    >>> Stump(feature=0, lower=-np.inf, upper=0.5, sign=-1).vote(np.array([[0.0], [1.0]]))
    array([-1.,  1.])
    """

    feature: int
    """Column of X."""
    lower: float
    upper: float
    sign: int
    """Vote inside the interval: +1 or -1."""

    @property
    def features(self) -> tuple[int, ...]:
        """The column that the vote depends on, as a tuple of one."""
        return (self.feature,)

    def vote(self, X: Features) -> NDArray[np.float64]:
        """Return -1 or +1 for each row of X, shape (n_samples,)."""
        x = column(X, self.feature).astype(np.float64)  # single precision would round the ends
        return np.where((x > self.lower) & (x <= self.upper), self.sign, -self.sign).astype(float)


@dataclass(frozen=True)
class Bins:
    """Training values as bin numbers; each bin stands for a stump.

    Bins of all columns have consecutive numbers, those of column j from ``offsets[j]`` up to
    ``offsets[j + 1]``, by increasing value. Bin b stands for the stump on (lower[b], upper[b]].
    """

    codes: NDArray[np.unsignedinteger[Any]]
    """Bin of each value, shape (n_features, n_samples)."""
    offsets: NDArray[np.int64]
    """First bin of each column and the total, shape (n_features + 1,)."""
    lower: NDArray[np.floating[Any]]
    upper: NDArray[np.floating[Any]]
    nested: bool
    """True if a stump covers its bin and all lower ones (thresholds). False for its bin alone."""

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.offsets) - 1

    def is_trivial(self, bins: slice) -> NDArray[np.bool_]:
        """Return True for bins that cover all values. Their constant stumps are never chosen."""
        return np.isneginf(self.lower[bins]) & np.isposinf(self.upper[bins])

    def feature_of(self, bins: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Return the column of each bin, same shape as `bins`."""
        return np.asarray(np.searchsorted(self.offsets, bins, side="right") - 1)

    def stump(self, bin_: int, sign: int) -> Stump:
        """Return the stump of one bin, which votes `sign` inside."""
        feature = int(self.feature_of(bin_))
        return Stump(feature, float(self.lower[bin_]), float(self.upper[bin_]), sign)


def dense(X: Features) -> NDArray[np.floating[Any]]:
    """Return X as an array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def column(X: Features, feature: int) -> NDArray[np.floating[Any]]:
    """Return one column of a dense or sparse X, shape (n_samples,)."""
    return dense(X[:, [feature]]).ravel()


def threshold_bins(X: Features) -> Bins:
    """Return bins for the stumps on x <= t.

    Each t is between neighbouring values of a column. A column has as many bins as distinct
    values. Besides X the result takes at most one float and one 32-bit integer for each value of
    X.

    >>> bins = threshold_bins(np.array([[0.0], [1.0], [1.0], [3.0]]))
    >>> bins.codes, bins.upper
    (array([[0, 1, 1, 2]], dtype=uint16), array([0.5, 2. , inf]))
    """
    codes = np.empty(X.shape[::-1], dtype=np.uint32)
    # Allocate the largest possible number of bins: joining blocks, or growing, would hold them
    # twice. Pages that are never written take no memory.
    upper, total = np.empty(codes.size, dtype=X.dtype), 0
    counts = []
    for first, rows in _column_blocks(X):
        ranks, n_distinct, distinct = _rank_rows(rows)
        starts = np.cumsum(n_distinct) - n_distinct
        codes[first : first + len(rows)] = ranks + (total + starts)[:, np.newaxis]
        end = total + len(distinct)
        upper[total:end] = _midpoints(distinct, starts + n_distinct - 1)
        counts.append(n_distinct)
        total = end
    upper = upper[:total] if total > codes.size / 2 else upper[:total].copy()
    if len(upper) <= np.iinfo(np.uint16).max:
        codes = codes.astype(np.uint16)
    lower = np.broadcast_to(upper.dtype.type(-np.inf), upper.shape)  # a view without memory
    return Bins(codes, _offsets(np.concatenate(counts)), lower, upper, nested=True)


def interval_bins(X: Features, n_intervals: int, categorical: NDArray[np.bool_]) -> Bins:
    """Return bins for stumps on one interval of a column or one category.

    Numeric columns are cut into `n_intervals` of equal width; bins without examples are left
    out ([2] Section V).

    Args:
        X: features, shape (n_samples, n_features).
        n_intervals: number of intervals of a numeric column, at least 2.
        categorical: True for columns of category codes, shape (n_features,).

    >>> X = np.array([[0.0, 7.0], [5.9, 9.0], [6.0, 7.0]])
    >>> bins = interval_bins(X, 2, np.array([False, True]))
    >>> bins.lower.tolist()
    [-inf, 3.0, 6.999999999999999, 8.999999999999998]
    """
    codes = np.empty(X.shape[::-1], dtype=np.uint32)
    ends = [np.empty((0, 2))]
    total = 0
    for feature in range(X.shape[1]):
        x = column(X, feature).astype(np.float64)
        intervals = _categories(x) if categorical[feature] else _equal_widths(x, n_intervals)
        places = np.searchsorted(intervals[:, 1], x, side="left")
        occupied = np.bincount(places, minlength=len(intervals)) > 0
        codes[feature] = total + (np.cumsum(occupied) - 1)[places]
        total += int(occupied.sum())
        varies = occupied.sum() > 1
        ends.append(intervals[occupied] if varies else np.array([[-np.inf, np.inf]]))
    counts = np.array([len(end) for end in ends[1:]])
    lower, upper = np.concatenate(ends).T
    return Bins(codes, _offsets(counts), lower, upper, nested=False)


def require_stumps(bins: Bins) -> Bins:
    """Return the bins if any of their stumps separates examples.

    Raises:
        ValueError: if every feature is constant.
    """
    if len(bins.upper) == bins.n_features:
        raise ValueError(
            f"At least one feature must take two values, but all {bins.n_features} are constant."
        )
    return bins


def best_edges(bins: Bins, signed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each column's largest edge, with either sign of the vote.

    Args:
        bins: bins of the training values.
        signed: D_i y_i, the weights times the labels in {-1, +1}, shape (n_samples,).

    Returns:
        Edges in [0, 1], shape (n_features,); 0 for a constant column.
    """
    best = np.empty(bins.n_features)
    step = max(1, BLOCK // bins.codes.shape[1])
    for first in range(0, bins.n_features, step):
        last = min(first + step, bins.n_features)
        starts = bins.offsets[first:last] - bins.offsets[first]
        edges = np.abs(bin_edges(bins, signed, first, last))
        best[first:last] = np.maximum.reduceat(edges, starts)
    return best


def best_stump(bins: Bins, signed: NDArray[np.float64], feature: int) -> Stump:
    """Return the stump with the largest edge on one column."""
    edges = bin_edges(bins, signed, feature, feature + 1)
    sizes = np.abs(edges)
    place = int(np.argmax(sizes >= sizes.max() - TIE))
    return bins.stump(int(bins.offsets[feature]) + place, 1 if edges[place] > 0.0 else -1)


def bin_edges(
    bins: Bins, signed: NDArray[np.float64], first: int, last: int
) -> NDArray[np.float64]:
    """Return the edge of every stump that votes +1 inside. Columns are `first` to `last` - 1."""
    begin, end = bins.offsets[first], bins.offsets[last]
    codes = bins.codes[first:last].ravel() - bins.codes.dtype.type(begin)
    mass = np.bincount(codes, weights=np.tile(signed, last - first), minlength=int(end - begin))
    total = signed.sum()
    if bins.nested:
        # Every column sums to `total`. Subtracting it at the start of each column lets one
        # cumulative sum run through all columns.
        mass[bins.offsets[first + 1 : last] - begin] -= total
        mass = np.cumsum(mass)
    edges = 2.0 * mass - total  # [1] gamma = sum of D y inside minus sum of D y outside
    return np.where(bins.is_trivial(slice(begin, end)), 0.0, edges)


def _column_blocks(X: Features) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
    """Yield dense blocks of columns. Each has the number of its first column, and columns as
    rows."""
    step = max(1, BLOCK // X.shape[0])
    for first in range(0, X.shape[1], step):
        yield first, dense(X[:, first : first + step]).T


def _rank_rows(
    rows: NDArray[np.floating[Any]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.floating[Any]]]:
    """Return ranks within each row, distinct values per row, and all distinct values. Ties have
    equal ranks."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    is_new = np.ones(rows.shape, dtype=bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ranks = np.empty(rows.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.cumsum(is_new, axis=1) - 1, axis=1)
    return ranks, is_new.sum(axis=1), ordered[is_new]


def _midpoints(
    values: NDArray[np.floating[Any]], last: NDArray[np.int64]
) -> NDArray[np.floating[Any]]:
    """Return a number in [value, next value) for each value; infinity after `last`."""
    after = np.append(values[1:], values[-1])
    middle = values / 2 + after / 2
    upper = np.where((middle >= values) & (middle < after), middle, values)
    upper[last] = np.inf
    return upper


def _categories(x: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.unique(x)
    return np.column_stack([np.nextafter(values, -np.inf), values])


def _equal_widths(x: NDArray[np.float64], n_intervals: int) -> NDArray[np.float64]:
    # Without a difference of the ends, which may be infinite.
    share = np.arange(n_intervals + 1) / n_intervals
    cuts = (1.0 - share) * x.min() + share * x.max()
    cuts[0], cuts[-1] = -np.inf, np.inf
    return np.column_stack([cuts[:-1], cuts[1:]])


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])
