"""Divisions of the rows into training and validation rows, and their nested subsets.

Everything here is about row numbers, counted from 0 in the order of `X`.
"""

from __future__ import annotations

import heapq
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import chain
from itertools import starmap
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold
from sklearn.model_selection import GroupShuffleSplit
from sklearn.model_selection import KFold
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection import check_cv
from sklearn.model_selection import train_test_split

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import Classes
from optuna_daub.objective.data import Indices


@dataclass(frozen=True)
class Layout:
    """Properties of a table's rows that decide how they are divided."""

    n_rows: int
    """Number of rows, at least 1."""
    seed: int = 0
    """Seed of all permutations, at least 0."""
    classes: Classes | None = None
    """Classes that every division keeps in proportion; None for a plain permutation."""
    groups: NDArray[Any] | None = None
    """The group of each row, shape (n_rows,); None if rows are independent."""
    shuffle: bool = True
    """True if rows may be permuted; False if they are in time order."""

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups.shape != (self.n_rows,):
            raise ValueError(
                f"`groups` must name one group for each of the {self.n_rows} rows, but got shape "
                f"{self.groups.shape}."
            )


@dataclass(frozen=True)
class Fold:
    """One division of the rows into rows to train on and rows to score.

    >>> Fold(np.array([4, 0, 2, 3]), np.array([1, 5])).subset(2)
    array([4, 0])
    >>> Fold(np.array([0, 1, 2, 3]), np.array([4, 5]), recent=True).subset(2)
    array([2, 3])
    """

    training: Indices
    """Rows to train on, in the order of the subsets or of time."""
    validation: Indices
    """Rows to score, none of them in `training`; empty with a separate validation set."""
    recent: bool = False
    """True if rows are in time order: then a subset is the most recent rows."""
    full: int | None = None
    """Number of training rows of the largest fold, in which sizes are counted. None: the fold's
    own."""

    def subset(self, size: int) -> Indices:
        """Return the `size` rows to train on; every subset contains all smaller ones.

        A fold with fewer rows than the largest one takes the same share of its own.

        >>> Fold(np.arange(4), np.array([9]), full=8).subset(6)
        array([0, 1, 2])
        """
        if self.full is not None:
            size = -(-size * len(self.training) // self.full)
        return self.training[-size:] if self.recent else self.training[:size]


def nested_order(n_rows: int, seed: int, codes: Indices | None = None) -> Indices:
    """Return one seeded permutation of the rows, whose prefixes are the nested subsets.

    With class codes the prefixes are stratified. The first rows are one of each class. From then
    on a class has n times its share of all rows in a prefix of n rows, to within two rows (half a
    row for two classes, one row for three). In short prefixes one row may be more than the share
    of a rare class; then the other classes have fewer, in proportion.

    >>> nested_order(6, seed=0, codes=np.array([0, 0, 0, 0, 1, 1]))
    array([3, 5, 2, 0, 4, 1])
    """
    shuffled = np.random.default_rng(seed).permutation(n_rows)
    if codes is None:
        return shuffled
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    order = _interleaved(np.split(by_class, np.cumsum(counts)[:-1]))
    first = np.sort(np.unique(codes[order], return_index=True)[1])
    return np.concatenate([order[first], np.delete(order, first)])


def _interleaved(classes: Sequence[Indices]) -> Indices:
    """Merge the rows of all classes, spread evenly among each other.

    The two smallest groups are merged first, as in Huffman's code. Each merge rounds by half a
    row, and a group's share of the merged groups falls at least like 1/Fibonacci. So all roundings
    add up to less than two rows for any number of classes."""
    groups = [(len(rows), code, rows) for code, rows in enumerate(classes) if len(rows)]
    heapq.heapify(groups)
    while len(groups) > 1:
        n_fewest, _, fewest = heapq.heappop(groups)
        n_fewer, code, fewer = groups[0]
        heapq.heapreplace(groups, (n_fewest + n_fewer, code, _merged(fewest, fewer)))
    return groups[0][2]


def _merged(one: Indices, other: Indices) -> Indices:
    """Merge two groups of rows: the k-th of n rows stands at the fraction (k + 1/2) / n."""
    place = np.concatenate([(np.arange(len(rows)) + 0.5) / len(rows) for rows in (one, other)])
    return np.concatenate([one, other])[np.argsort(place, kind="stable")]


def undivided(layout: Layout) -> Fold:
    """Return the fold that trains on all rows and scores none.

    >>> undivided(Layout(4, shuffle=False)).subset(3)
    array([1, 2, 3])
    """
    return fold_of(layout, np.arange(layout.n_rows), np.arange(0))


def held_out_fold(layout: Layout, test_size: float, *, every_class: bool = False) -> Fold:
    """Return the fold that holds out `test_size` rows, a share or a number.

    The held-out rows are a stratified sample. With `every_class` they have a row of each class of
    two rows or more. With groups they are whole groups, and `test_size` counts groups. In time
    order they are the last rows.

    >>> held_out_fold(Layout(10, shuffle=False), 0.3).validation
    array([7, 8, 9])

    Raises:
        ValueError: if a class has a single row, or `test_size` leaves no room for rows or
            classes on one side.
    """
    _check_groups_can_be_kept(layout)
    classes = layout.classes if layout.groups is None and layout.shuffle else None
    room, way_out = "rows" if layout.groups is None else "whole `groups`", ""
    if classes is not None:
        _check_every_class_divides(classes)
        room = f"a row of each of the {len(classes.names)} classes"
        way_out = ', for amounts pass `scoring="r2"`, or pass `stratify=False`'
    options = {"test_size": test_size, "random_state": layout.seed}
    rows = np.arange(layout.n_rows)
    try:
        if layout.groups is not None:
            by_group = GroupShuffleSplit(1, **options)
            training, validation = next(by_group.split(rows, groups=layout.groups))
        else:
            codes = None if classes is None else classes.codes
            training, validation = train_test_split(
                rows, shuffle=layout.shuffle, stratify=codes, **options
            )
        if every_class and classes is not None:
            training, validation = _with_every_class(training, validation, classes.codes)
        return fold_of(layout, training, validation)
    except ValueError as error:
        said = str(error).rstrip(".")
        raise ValueError(
            f"Both parts must have room for {room}, but got `test_size={brief(test_size)}` for "
            f"{layout.n_rows} rows: {said:.300}. Take another `test_size`{way_out}."
        ) from error


def _with_every_class(
    training: Indices, validation: Indices, codes: Indices
) -> tuple[Indices, Indices]:
    """Return the parts, with a row of each class held out: it replaces one of the largest class.

    >>> codes = np.array([0, 0, 0, 0, 1, 1])
    >>> _with_every_class(np.array([0, 4, 2, 5]), np.array([1, 3]), codes)
    (array([0, 1, 2, 5]), array([4, 3]))
    """
    training, validation = training.copy(), validation.copy()
    for code in np.setdiff1d(codes[training], codes[validation]):
        place = np.flatnonzero(codes[training] == code)
        held_out = np.bincount(codes[validation])
        if len(place) > 1 and held_out.max() > 1:
            other = np.flatnonzero(codes[validation] == held_out.argmax())[0]
            training[place[0]], validation[other] = validation[other], training[place[0]]
    return training, validation


def checked_test_size(test_size: Any) -> float:
    """Return the fraction or number of rows to hold out.

    >>> checked_test_size(np.int64(20)), checked_test_size(np.float32(0.25))
    (20, 0.25)

    Raises:
        ValueError: if it is neither a fraction in (0, 1) nor an int of at least 1.
    """
    if isinstance(test_size, numbers.Integral):
        if not isinstance(test_size, bool | np.timedelta64) and int(test_size) >= 1:
            return int(test_size)
    elif isinstance(test_size, numbers.Real) and 0 < float(test_size) < 1:
        return float(test_size)
    raise ValueError(
        "`test_size` must be a fraction between 0 and 1, or a number of rows of at least 1, but "
        f"got {brief(test_size)}."
    )


def cross_validation_folds(layout: Layout, cv: Any, X: Any, y: NDArray[Any]) -> tuple[Fold, ...]:
    """Return the folds of `cv`, fixed once and for all.

    `cv` is an int or a scikit-learn splitter. An int means k folds: stratified if there are
    classes, of whole groups if there are groups, a `TimeSeriesSplit` in time order. They are drawn
    with the layout's seed. Nothing is drawn for groups without classes (`GroupKFold`) and in time
    order.

    >>> rows = np.arange(6)
    >>> [
    ...     fold.validation
    ...     for fold in cross_validation_folds(Layout(6, shuffle=False), 2, rows, rows)
    ... ]
    [array([2, 3]), array([4, 5])]

    Raises:
        ValueError: if the rows cannot be divided so, or the splitter gives other folds when
            asked again, or puts a row or a group on both sides of a fold.
    """
    _check_number_of_folds(layout, cv)
    rows = np.arange(layout.n_rows)
    try:
        splitter = _splitter(layout, cv)
        splits, again = (
            [(rows[train], rows[test]) for train, test in splitter.split(X, y, layout.groups)]
            for _ in range(2)
        )
        n_rows = [(len(training), len(validation)) for training, validation in splits]
    except Exception as error:  # a splitter may raise any
        lacks = layout.groups is None and "Group" in type(cv).__name__
        raise ValueError(
            "`cv` must divide the rows into folds: a number of folds, a splitter of scikit-learn, "
            f"or pairs (training rows, validation rows), but got {brief(cv)} for "
            f"{layout.n_rows} rows: {error!s:.300}{' Pass `groups=` to it.' if lacks else ''}"
        ) from error
    if not n_rows or np.min(n_rows) == 0:
        raise ValueError(
            "`cv` must give at least one fold, and each must have rows to train on and rows to "
            f"score, but got {brief(cv)}."
        )
    name = type(splitter).__name__
    sides = zip_longest(chain.from_iterable(splits), chain.from_iterable(again))
    if not all(starmap(np.array_equal, sides)):
        raise ValueError(
            f"`cv` must give the same folds each time it is asked, but {name} does not: no two "
            "workers would train on the same rows. Pass it an int as `random_state`."
        )
    for number, (training, validation) in enumerate(splits, start=1):
        _check_disjoint(layout, training, validation, f"fold {number} of {name}")
    if isinstance(splitter, TimeSeriesSplit):
        layout = replace(layout, shuffle=False)
    most = max(len(training) for training, _ in splits)
    return tuple(fold_of(layout, training, validation, most) for training, validation in splits)


def complete_from(folds: Sequence[Fold], classes: Classes | None) -> tuple[int, Any]:
    """Return the smallest size with every class in every subset, and the last class.

    Raises:
        ValueError: if a class is missing from all the training rows of a fold.
    """
    if classes is None:
        return 1, None
    latest = np.max([_arrivals_of_all(fold, classes) for fold in folds], axis=0)
    return int(latest.max()), classes.names[latest.argmax()]


def arrivals(fold: Fold, classes: Classes) -> tuple[Indices, Indices]:
    """Return the codes of a fold's training classes, and each one's smallest size.

    That is the smallest size whose subset holds the class.
    """
    taken = classes.codes[fold.training[::-1] if fold.recent else fold.training]
    present, first = np.unique(taken, return_index=True)
    return present, first * (fold.full or len(taken)) // len(taken) + 1


def _arrivals_of_all(fold: Fold, classes: Classes) -> Indices:
    """Return the smallest size whose subset holds a class, for every class."""
    present, first = arrivals(fold, classes)
    if len(present) == len(classes.names):
        return first
    code = np.setdiff1d(classes.codes, present)[0]
    count = np.count_nonzero(classes.codes == code)
    raise ValueError(
        "Every class must be among the rows that a fold trains on, but class "
        f"{classes.names[code]}, with {count} examples in all, is not. Add examples, leave the "
        'class out, divide the rows otherwise, for amounts pass `scoring="r2"`, or pass '
        "`stratify=False`."
    )


def fold_of(
    layout: Layout, training: Indices, validation: Indices, full: int | None = None
) -> Fold:
    """Return the fold of these rows.

    Its training rows are in the order of the subsets; `full` as in `Fold`.

    >>> layout = Layout(6, classes=Classes(np.array(["a", "b"]), np.array([0, 0, 0, 0, 1, 1])))
    >>> fold_of(layout, np.array([0, 1, 2, 4]), np.array([3, 5])).subset(2)
    array([2, 4])
    """
    if not layout.shuffle:
        return Fold(np.sort(training), np.sort(validation), recent=True, full=full)
    codes = None if layout.classes is None else layout.classes.codes[training]
    order = nested_order(len(training), layout.seed, codes)
    return Fold(training[order], np.sort(validation), full=full)


def _splitter(layout: Layout, cv: Any) -> Any:
    if not isinstance(cv, numbers.Integral):
        return check_cv(cv)
    cv = int(cv)
    if not layout.shuffle:
        return TimeSeriesSplit(cv)
    if layout.groups is None:
        kind = KFold if layout.classes is None else StratifiedKFold
        return kind(cv, shuffle=True, random_state=layout.seed)
    if layout.classes is None:
        return GroupKFold(cv)
    return StratifiedGroupKFold(cv, shuffle=True, random_state=layout.seed)


def _check_number_of_folds(layout: Layout, cv: Any) -> None:
    if not isinstance(cv, numbers.Integral):
        return
    _check_groups_can_be_kept(layout)
    kind = "rows" if layout.groups is None else "groups"
    most = layout.n_rows if layout.groups is None else len(np.unique(layout.groups))
    if not layout.shuffle:
        most -= 1  # the first rows in time order are only trained on
    if isinstance(cv, bool | np.timedelta64) or not 2 <= int(cv) <= most:
        raise ValueError(
            f"`cv` must be a number of folds from 2 to {most}, for the {kind} there are, or a "
            f"splitter, but got {brief(cv)}."
        )


def _check_groups_can_be_kept(layout: Layout) -> None:
    if layout.groups is not None and not layout.shuffle:
        raise ValueError(
            "`groups` go with `shuffle=True`, but got `shuffle=False`: rows that are divided at a "
            "point in time can have a group on both sides. Pass a splitter that respects both as "
            "`cv`."
        )


def _check_every_class_divides(classes: Classes) -> None:
    counts = np.bincount(classes.codes)
    if counts.min() < 2:
        raise ValueError(
            "Every class needs at least 2 examples, one to train on and one to hold out, but "
            f"class {classes.names[counts.argmin()]} has 1. To predict amounts, pass a metric for "
            'them, such as `scoring="r2"`. Or add examples, leave the class out, or pass '
            "`stratify=False`."
        )


def _check_disjoint(layout: Layout, training: Indices, validation: Indices, name: str) -> None:
    kind = "row" if layout.groups is None else "group"
    units = np.arange(layout.n_rows) if layout.groups is None else layout.groups
    shared = np.intersect1d(units[training], units[validation])
    if shared.size:
        raise ValueError(
            f"With `cv` a {kind} must be either trained on or scored, but {kind} {shared[0]} is "
            f"on both sides of {name}. Take a splitter that keeps every {kind} on one side."
        )
