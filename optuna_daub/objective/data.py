"""Tables of examples, and the checks of what is passed as one."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from typing import Any
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils import check_array
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from optuna_daub.core.checks import brief
from optuna_daub.objective.matching import check_names_differ
from optuna_daub.objective.matching import is_arrow
from optuna_daub.objective.matching import matched
from optuna_daub.objective.matching import stacked


Indices = NDArray[np.intp]
"""Row numbers, or class codes in 0 ... number of classes - 1; one dimension."""

Task = Literal["classification", "regression"]
"""Kind of the targets: class labels or numbers."""

FEW_VALUES = 20
"""Largest number of different whole numbers that count as labels. It applies if nothing else
tells."""


@dataclass(frozen=True)
class Rows:
    """Examples with their targets and, if given, their weights.

    >>> table = checked_rows([[1.0], [2.0], [3.0]], ["a", "b", "a"])
    >>> table.take(np.array([2, 0])).y
    array(['a', 'a'], dtype='<U1')
    """

    X: Any
    """Features, one row per example: array, data frame, CSR matrix or list."""
    y: NDArray[Any]
    """Targets: shape (n,), or (n, number of outputs)."""
    positions: Indices
    """Row numbers in `X`, from 0, shape (n,). A fixed validation set has the numbers after it."""
    sample_weight: NDArray[np.float64] | None = None
    """Weights, at least 0, shape (n,); None if all examples weigh the same."""

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Indices) -> Rows:
        """Return a copy of these rows only, by position in this table."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Rows(_safe_indexing(self.X, rows), self.y[rows], self.positions[rows], weight)

    def copy(self) -> Rows:
        """Return a copy of arrays and frames, which others may change in place."""
        return self.take(np.arange(len(self)))


@dataclass(frozen=True)
class Classes:
    """The class labels of a table, encoded."""

    names: NDArray[Any]
    """The distinct labels, sorted; names[code] is the label of a code."""
    codes: Indices
    """The code of every row."""


def class_labels(y: NDArray[Any]) -> Classes | None:
    """Return the classes of a target.

    None unless the target is one label for every row. Labels are strings, booleans and whole
    numbers, also those stored as floats.

    >>> class_labels(np.array(["no", "yes", "no"])).codes
    array([0, 1, 0])
    >>> class_labels(np.array([0.5, 1.2, 3.4])) is None
    True
    """
    is_fractional = y.dtype.kind == "f" and not np.array_equal(y, np.rint(y))
    if y.ndim > 1 or y.dtype.kind not in "biufOUS" or is_fractional:
        return None
    names, codes = np.unique(y, return_inverse=True)
    return Classes(names, codes)


def classes_to_keep(
    y: NDArray[Any],
    stratify: bool | Literal["auto"],
    task: Task | None,
    *,
    is_categorical: bool = False,
) -> Classes | None:
    """Return the classes whose shares all subsets keep; None if there are none.

    With "auto" these are the labels of a classification. If the task is not known, strings,
    booleans and categories are labels, and so are whole numbers of at most `FEW_VALUES` values.

    >>> ages = np.arange(18, 65)
    >>> classes_to_keep(ages, "auto", None) is None, classes_to_keep(ages, True, None) is None
    (True, False)
    """
    if not stratify or (stratify == "auto" and task == "regression"):
        return None
    classes = class_labels(y)
    if stratify != "auto" or task == "classification" or classes is None or is_categorical:
        return classes
    return None if y.dtype.kind in "iuf" and len(classes.names) > FEW_VALUES else classes


def is_categorical(y: Any) -> bool:
    """Return whether a target is a categorical column of pandas."""
    dtypes = np.atleast_1d(np.asarray(getattr(y, "dtypes", ()), dtype=object))
    return bool(len(dtypes)) and all(str(dtype) == "category" for dtype in dtypes)


def checked_rows(
    X: Any, y: Any, sample_weight: Any = None, *, suffix: str = "", first: int = 0
) -> Rows:
    """Return the arguments as a table. Sparse features become CSR; others stay as they are.

    Args:
        X: features.
        y: targets.
        sample_weight: weights, or None.
        suffix: completes the arguments' names in messages.
        first: position of the first row.

    Raises:
        ValueError: if something is missing, the lengths differ, there are no rows, targets are
            of several kinds, or a weight is negative or not a number, or all weights to train
            with are 0.
    """
    for name, value in ((f"X{suffix}", X), (f"y{suffix}", y)):
        if value is None:
            raise ValueError(f"`{name}` must hold a row for each example, but got None.")
        check_no_text(value, name)
    check_features(X, f"X{suffix}")
    target = checked_column(y, f"y{suffix}")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target.ravel()
    check_no_objects_of_time(target, f"y{suffix}")
    try:
        (X,) = indexable(X)
        n_rows = _num_samples(X)
    except Exception as error:  # also of a table that raises its own
        raise ValueError(
            f"`X{suffix}` must be a table with a row for each example (array, data frame, sparse "
            f"matrix or list), but got {brief(X)}."
        ) from error
    _check_length(n_rows, f"X{suffix}", len(target), f"y{suffix}")
    positions = np.arange(first, first + len(target))
    if sample_weight is None:
        return Rows(X, target, positions)
    name = f"sample_weight{suffix}"
    weight = checked_column(sample_weight, name, dtype=np.float64)
    _check_length(len(weight), name, len(target), f"y{suffix}")
    if weight.ndim != 1 or weight.min() < 0:
        raise ValueError(
            f"`{name}` must be one weight of at least 0 for every row, but got shape "
            f"{weight.shape} and smallest weight {weight.min():g}."
        )
    is_trained_on = first == 0  # weights of validation rows count only in weighted scores
    if is_trained_on and not weight.any():
        raise ValueError(
            f"`{name}` must have a weight above 0, but all {len(weight):,} are 0: no row would "
            "count. Leave it out to weigh all rows alike."
        )
    return Rows(X, target, positions, weight)


def check_no_text(rows: Any, name: str) -> None:
    """Raise a ValueError if features or targets are a text, such as a column's name."""
    if isinstance(rows, str):
        raise ValueError(
            f"`{name}` must hold a row for each example, but got the text {brief(rows)}. Pass the "
            "values themselves, such as table['target'] or pandas.read_csv('table.csv')."
        )


def check_no_objects_of_time(y: NDArray[Any], name: str = "y") -> None:
    """Raise a ValueError if targets are dates, periods or durations stored as objects.

    No estimator of scikit-learn accepts them. Most regressors accept `datetime64`.
    """
    first = y.flat[0] if y.dtype == object and y.size else None
    if hasattr(first, "year") or hasattr(first, "total_seconds"):
        raise ValueError(
            f"`{name}` must have classes or amounts, but got objects of type "
            f"{type(first).__name__}, such as {first}. Turn them into numbers, such as days since "
            "the first date."
        )


def check_features(X: Any, name: str = "X") -> None:
    """Raise a ValueError if features are a single column, or two columns have one name.

    A single column of numbers was probably swapped with targets.
    """
    dtype = getattr(X, "dtype", None)
    is_column = len(getattr(X, "shape", (0, 0))) == 1
    if is_column and isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        raise ValueError(
            f"`{name}` must have a row of features for each example, but got numbers of shape "
            f"{X.shape}. Features come first, then targets; for one feature pass X[:, None], or "
            "a frame of one column."
        )
    check_names_differ(X, name)


def checked_validation(X: Any, y: Any, sample_weight: Any, *, like: Rows) -> Rows | None:
    """Return a fixed validation set as a table, None if there is none.

    Columns are matched by name (see `matched`).

    Raises:
        ValueError: as `checked_rows`, and if features or targets are missing, or have another
            number, other columns or other kinds of values than those to train on.
    """
    if X is None and y is None and sample_weight is None:
        return None
    if X is None or y is None:
        given = {"X_valid": X, "y_valid": y, "sample_weight_valid": sample_weight}
        names = " and ".join(f"`{name}`" for name, value in given.items() if value is not None)
        raise ValueError(
            f"A validation set needs both `X_valid` and `y_valid`, but got only {names}. Pass "
            "both, or none for a held-out part of the rows."
        )
    rows = checked_rows(X, y, sample_weight, suffix="_valid", first=len(like))
    if like.y.shape[1:] != rows.y.shape[1:]:
        raise ValueError(
            "`y_valid` must have as many outputs as `y`, but has rows of shape "
            f"{rows.y.shape[1:]} while `y` has {like.y.shape[1:]}."
        )
    return replace(rows, X=matched(rows.X, like.X))


def joined(first: Rows, second: Rows) -> Rows:
    """Return the rows of two tables in one, the first table's first.

    Raises:
        ValueError: if only one of them has weights.
    """
    weights = [table.sample_weight for table in (first, second) if table.sample_weight is not None]
    if len(weights) == 1:
        raise ValueError(
            "Training and validation rows must both have weights or both have none, but only one "
            "of `sample_weight` and `sample_weight_valid` was given. Pass both."
        )
    return Rows(
        stacked(first.X, second.X),
        np.concatenate([first.y, second.y]),
        np.concatenate([first.positions, second.positions]),
        np.concatenate(weights) if weights else None,
    )


def checked_column(values: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    """Return the values of all rows as an array.

    Numbers that came as objects become numbers.

    >>> checked_column([3, 1], "y"), checked_column(np.array([True, False], object), "y")
    (array([3, 1]), array([ True, False]))

    Raises:
        ValueError: if there are no rows, a value is missing, kinds of values are mixed, or their
            kind has no order.
    """
    given = getattr(values, "dtype", None)
    if given is not None and (not isinstance(given, np.dtype) or given.kind == "T"):
        # Nullable columns, categories, NumPy's StringDType: scikit-learn changes or refuses them.
        values = np.asarray(values, dtype=object)
        check_none_missing(values, name)
    try:
        array = check_array(values, ensure_2d=False, dtype=dtype, input_name=name)
    except Exception as error:  # also of values that raise their own
        said = " ".join(str(error).split())
        raise ValueError(
            f"`{name}` must have a value for each row, and at least one row. {said:.300}"
        ) from error
    if array.dtype.kind in "mM" and np.isnat(array).any():
        check_none_missing(np.array([None]), name)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        objects = np.array(values, dtype=object)  # NumPy made strings of all values
    elif array.dtype == object:
        objects = array
    else:
        return np.asarray(array)
    check_none_missing(objects, name)
    kinds = {_kind(value): value for value in objects.flat}
    if len(kinds) > 1:
        examples = " and ".join(map(brief, kinds.values()))
        raise ValueError(
            f"`{name}` must have values of one kind, but got {' and '.join(kinds)}, such as "
            f"{examples}. Convert them to one kind."
        )
    _check_ordered(objects.flat[0], name)
    if "number" not in kinds:
        return np.asarray(array)
    numbers_only = np.array(objects.tolist())
    # NumPy has no dtype for decimals, fractions and integers beyond 64 bits.
    return numbers_only.astype(np.float64) if numbers_only.dtype == object else numbers_only


def odd_columns(X: Any) -> dict[Any, str]:
    """Return columns that few estimators accept, with kinds of values.

    >>> import pandas as pd
    >>> odd_columns(pd.DataFrame({"a": [1, 2], "tags": [["x"], []]}))
    {'tags': 'list'}
    """
    odd = {}
    for place, name in enumerate(() if is_arrow(X) else getattr(X, "columns", ())):
        column = getattr(X, "iloc", X)[:, place]
        dtype = str(column.dtype)
        if dtype.startswith(("period", "interval", "List", "Struct", "Array", "Object")):
            odd[name] = dtype
        elif dtype == "object":
            values = (value for value in column if not isinstance(value, float))
            first = next((value for value in values if value is not None), None)
            if isinstance(first, list | tuple | dict | set | frozenset | np.ndarray):
                odd[name] = type(first).__name__
    return odd


def said_of(odd: Mapping[Any, str]) -> str:
    """Return a sentence on these columns; empty if there are none.

    >>> said_of({"tags": "list"})
    "Column 'tags' of `X` has values of kind list, which few estimators take: encode or drop it."
    """
    if not odd:
        return ""
    names = " and ".join(map(brief, odd))
    kinds = " and ".join(dict.fromkeys(odd.values()))
    s, have, them = ("", "has", "it") if len(odd) == 1 else ("s", "have", "them")
    return (
        f"Column{s} {names} of `X` {have} values of kind {kinds}, which few estimators take: "
        f"encode or drop {them}."
    )


def check_none_missing(objects: NDArray[Any], name: str) -> None:
    """Raise a ValueError if a value is missing: None, NaN or another package's."""
    for value in objects.flat:
        is_nan = isinstance(value, float) and math.isnan(value)
        if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
            raise ValueError(
                f"`{name}` must have a value for each row, but got {value}. Drop such rows."
            )


def _kind(value: Any) -> str:
    """Return the name of a value's kind; one column must not mix kinds."""
    if isinstance(value, str):
        return "string"
    is_number = isinstance(value, numbers.Number | np.bool_)
    return "number" if is_number else type(value).__name__


def _check_ordered(value: Any, name: str) -> None:
    """Raise a ValueError if values have no order, such as members of an enum.

    Classes and groups are sorted.
    """
    try:
        _ = value < value
    except Exception as error:
        raise ValueError(
            f"`{name}` must have values that can be sorted, such as text or numbers, but got "
            f"{brief(value)} of type {type(value).__name__}. Of an enum pass their names: "
            f"[each.name for each in {name}]."
        ) from error


def _check_length(given: int, name: str, n_rows: int, target: str) -> None:
    if given != n_rows:
        raise ValueError(
            f"`{name}` must have as many rows as `{target}`, but got {given} rows for {n_rows} "
            "targets."
        )
