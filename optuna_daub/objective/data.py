"""Tables of examples, and the checks that they are ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils import check_array
from sklearn.utils import indexable
from sklearn.utils.multiclass import type_of_target


Indices = NDArray[np.intp]
"""Row numbers, or class codes in 0 ... number of classes - 1; one dimension."""


@dataclass(frozen=True)
class Rows:
    """Examples with their targets and, where there are any, their weights.

    >>> table = checked_rows([[1.0], [2.0], [3.0]], ["a", "b", "a"])
    >>> table.take(np.array([2, 0])).y
    array(['a', 'a'], dtype='<U1')
    """

    X: Any
    """Features, one row per example: array, data frame, CSR matrix or list."""
    y: NDArray[Any]
    """Targets: shape (n,), or (n, number of outputs)."""
    sample_weight: NDArray[np.float64] | None = None
    """Weights, at least 0, shape (n,); None where all examples weigh the same."""

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Indices) -> Rows:
        """Return a copy of these rows only, by position."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return Rows(_safe_indexing(self.X, rows), self.y[rows], weight)


@dataclass(frozen=True)
class Classes:
    """The class labels of a table, encoded."""

    names: NDArray[Any]
    """The distinct labels, sorted; names[code] is the label of a code."""
    codes: Indices
    """The code of every row."""


def class_labels(y: NDArray[Any]) -> Classes | None:
    """Return the classes of a target, or None where it is not one label for every row.

    >>> class_labels(np.array(["no", "yes", "no"])).codes
    array([0, 1, 0])
    >>> class_labels(np.array([0.5, 1.2, 3.4])) is None
    True
    """
    if type_of_target(y) not in ("binary", "multiclass") or y.ndim > 1:
        return None
    encoder = LabelEncoder()
    codes = encoder.fit_transform(y)
    return Classes(encoder.classes_, codes)


def checked_rows(X: Any, y: Any, sample_weight: Any = None, *, suffix: str = "") -> Rows:
    """Return the arguments as a table; sparse features become CSR, anything else stays itself.

    Raises:
        ValueError: where the lengths differ, there are no rows, a target is missing, or a weight
            is negative or no number. `suffix` completes the arguments' names in the message.
    """
    (X,) = indexable(X)
    target = _checked_array(y, f"y{suffix}")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target.ravel()
    _check_length(X, f"X{suffix}", len(target))
    if sample_weight is None:
        return Rows(X, target)
    name = f"sample_weight{suffix}"
    weight = _checked_array(sample_weight, name, dtype=np.float64)
    _check_length(weight, name, len(target))
    if weight.ndim != 1 or weight.min() < 0:
        raise ValueError(
            f"`{name}` must be one weight of at least 0 for every row, but got shape "
            f"{weight.shape} and smallest weight {weight.min():g}."
        )
    return Rows(X, target, weight)


def checked_validation(X: Any, y: Any, sample_weight: Any, *, like: Rows) -> Rows | None:
    """Return a fixed validation set as a table, None where there is none.

    Raises:
        ValueError: as `checked_rows`, and where features or targets are missing or the features
            are not as many as those to train on.
    """
    if X is None and y is None and sample_weight is None:
        return None
    if X is None or y is None:
        given = {"X_valid": X, "y_valid": y, "sample_weight_valid": sample_weight}
        names = [name for name, value in given.items() if value is not None]
        raise ValueError(
            f"A validation set needs both `X_valid` and `y_valid`, but got only {names}. Pass "
            "both, or none for a held-out part of the rows."
        )
    rows = checked_rows(X, y, sample_weight, suffix="_valid")
    wanted, shape = (getattr(table.X, "shape", ())[1:] for table in (like, rows))
    if wanted != shape:
        raise ValueError(
            "`X_valid` must have as many features as `X`, but has rows of shape "
            f"{shape} while `X` has {wanted}."
        )
    return rows


def check_weights(*tables: Rows) -> None:
    """Raise a ValueError where rows that are to be scored with weights have none."""
    if any(table.sample_weight is None for table in tables):
        raise ValueError(
            "`weighted_score=True` needs the weights of all rows that are scored, but got none "
            "for some. Pass `sample_weight`, and with `X_valid` also `sample_weight_valid`."
        )


def joined(first: Rows, second: Rows) -> Rows:
    """Return the rows of two tables in one, the first table's first.

    Raises:
        ValueError: where only one of them has weights.
    """
    weights = [table.sample_weight for table in (first, second) if table.sample_weight is not None]
    if len(weights) == 1:
        raise ValueError(
            "Training and validation rows must both have weights or both have none, but only one "
            "of `sample_weight` and `sample_weight_valid` was given. Pass both."
        )
    weight = np.concatenate(weights) if weights else None
    return Rows(_stacked(first.X, second.X), np.concatenate([first.y, second.y]), weight)


def _checked_array(values: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    try:
        array = check_array(values, ensure_2d=False, dtype=dtype, input_name=name)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must have a value for each of at least one row. {error}"
        ) from error
    if array.dtype == object and any(value is None for value in array.flat):
        raise ValueError(f"`{name}` must have a value for each row, but got None. Drop such rows.")
    checked: NDArray[Any] = array
    return checked


def _check_length(values: Any, name: str, n_rows: int) -> None:
    given = values.shape[0] if hasattr(values, "shape") else len(values)
    if given != n_rows:
        raise ValueError(
            f"`{name}` must have as many rows as the target, but got {given} rows for {n_rows} "
            "targets."
        )


def _stacked(first: Any, second: Any) -> Any:
    if hasattr(first, "tocsr"):
        return scipy.sparse.vstack([first, second]).tocsr()
    if hasattr(first, "iloc"):
        import pandas as pd  # the caller has it: it passed a data frame

        return pd.concat([first, second])
    if isinstance(first, list):
        return [*first, *second]
    return np.concatenate([first, second])
