"""Preparation of tables as matrices of numbers, by skrub."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import TransformerMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from optuna_daub.core.checks import brief
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import imported


class Preparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer from a table of any columns to a matrix of numbers.

    It uses skrub's `TableVectorizer`. Columns of few words become codes, other text 30 numbers,
    dates their parts; missing values and infinities become NaN. The target is not used.

    Args:
        columns: names of the columns to use; a table to transform must have them, in any order.

    Attributes:
        categories_: positions of the columns of the matrix that hold codes.
        n_infinite_: number of infinities in the table of `fit`.
        text_: names of the columns of text.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.5, None, 2.5], "colour": ["red", "blue", "red"]})
    >>> preparation = Preparation(["size", "colour"])
    >>> preparation.fit_transform(table)
    array([[1.5, 1. ],
           [nan, 0. ],
           [2.5, 1. ]], dtype=float32)
    >>> preparation.categories_
    (1,)
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Preparation:
        """Learn the kinds and values of the columns."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray[np.float32]:
        """Learn the columns, and return them as numbers."""
        del y, params
        used = self._used(X)
        # skrub takes some 10 ms for each column, so columns of numbers bypass it.
        self.plain_ = [n for n, kind in used.dtypes.items() if _is_plain(kind)]
        self.other_ = [name for name in self.columns if name not in {*self.plain_}]
        is_text = imported("pandas").api.types.is_string_dtype
        self.text_ = tuple(name for name in self.other_ if is_text(used[name]))
        self.n_infinite_ = _n_infinite(used)
        self.categories_: tuple[int, ...] = ()
        if not self.other_:
            return _as_matrix(used)
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.float32
        )
        self.vectorizer_ = imported("skrub").TableVectorizer(low_cardinality=codes)
        prepared = self.vectorizer_.fit_transform(used[self.other_])
        of_words = {*self.vectorizer_.kind_to_columns_.get("low_cardinality", ())}
        source = self.vectorizer_.output_to_input_
        self.categories_ = tuple(
            at
            for at, name in enumerate(prepared.columns, start=len(self.plain_))
            if source[name] in of_words
        )
        return np.hstack([_as_matrix(used[self.plain_]), _as_matrix(prepared)])

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the columns of a table as numbers.

        Words that `fit` has not seen become the code -1. Words among numbers become NaN, with a
        UserWarning.
        """
        check_is_fitted(self)
        used = self._used(X)
        strange = [name for name in self.plain_ if not _is_plain(used[name].dtype)]
        changed = {name: _as_numbers(used[name]) for name in strange}
        changed |= {n: _as_words(used[n]) for n in self.text_ if _is_plain(used[n].dtype)}
        used = used.assign(**changed)
        if not self.other_:
            return _as_matrix(used)
        prepared = self.vectorizer_.transform(used[self.other_])
        return np.hstack([_as_matrix(used[self.plain_]), _as_matrix(prepared)])

    def _used(self, X: Any) -> Any:
        if missing := [name for name in self.columns if name not in X.columns]:
            raise TableError(
                f"A table must have the columns that the model learnt from, but {missing} "
                f"{'is' if len(missing) == 1 else 'are'} missing."
            )
        used = X[[*self.columns]]
        sparse = [n for n, kind in used.dtypes.items() if str(kind).startswith("Sparse")]
        return used.assign(**{name: used[name].sparse.to_dense() for name in sparse})


def _is_plain(kind: Any) -> bool:
    """Return whether a column has a number type of NumPy."""
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


def _as_numbers(column: Any) -> Any:
    numbers = imported("pandas").to_numeric(column, errors="coerce")
    lost = column[numbers.isna() & column.notna()]
    if len(lost):
        warnings.warn(
            f"`{column.name}` was a column of numbers in `fit`, but now {len(lost):,} of "
            f"{len(column):,} cells are none, such as {brief(lost.iloc[0])}: taken for missing.",
            UserWarning,
            stacklevel=2,
        )
    return numbers


def _as_words(column: Any) -> Any:
    """Return numbers as a file has them: whole ones without a point."""
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype("string")


def _as_matrix(columns: Any) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # numbers beyond 3e38 become infinite, then missing
        matrix = columns.to_numpy(dtype=np.float32, na_value=np.nan, copy=True)
    matrix[np.isinf(matrix)] = np.nan
    return np.ascontiguousarray(matrix)


def _n_infinite(frame: Any) -> int:
    floats = frame.select_dtypes("floating")
    return sum(
        int(np.isinf(floats[name].to_numpy(dtype=np.float64, na_value=np.nan)).sum())
        for name in floats
    )
