"""Preparation of tables as matrices of numbers, by skrub."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import TransformerMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from optuna_daub.core.checks import brief
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import listed_words
from optuna_daub.tabular.table import numbers_among
from optuna_daub.tabular.table import real_words
from optuna_daub.tabular.table import said_lost
from optuna_daub.tabular.table import said_names
from optuna_daub.tabular.table import unit_of
from optuna_daub.tabular.times import ISO
from optuna_daub.tabular.times import Forms
from optuna_daub.tabular.times import are_durations
from optuna_daub.tabular.times import as_dates
from optuna_daub.tabular.times import as_durations
from optuna_daub.tabular.times import date_forms


class Preparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer from a table of any columns to a matrix of numbers.

    It uses skrub's `TableVectorizer`. Columns of few words become codes, other text 30 numbers,
    dates their parts, durations seconds. Missing values, infinities, and rare words among numbers,
    dates or durations become NaN. Large numbers that 32 bits would make equal are counted from
    their median. The target is not used.

    Args:
        columns: names of the columns to use; a table to transform must have them, in any order.
        units: units of numbers that were in text, by column, such as "%" or "€"; None for those
            in the table of `fit`. A number of another unit later becomes NaN.

    Attributes:
        categories_: positions of the columns of the matrix that hold codes.
        n_infinite_: number of infinities in the table of `fit`, numbers beyond 3e38 included.
        notes_: notes for the user on words among dates and durations, one sentence each.
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

    def __init__(self, columns: Sequence[str], units: Mapping[str, str] | None = None) -> None:
        self.columns = columns
        self.units = units

    def fit(self, X: Any, y: Any = None) -> Preparation:
        """Learn the kinds and values of the columns."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray[np.float32]:
        """Learn the columns, and return them as numbers."""
        del y, params
        used = self._used(X)
        self.kinds_ = {name: _kind(used[name]) for name in self.columns}
        self.units_ = self._units(used)
        self.forms_: dict[str, Forms] = {}
        self.notes_: list[str] = []
        for name in [n for n, kind in self.kinds_.items() if kind == "words"]:
            if is_text(used[name]) and (forms := date_forms(used[name])):
                self.kinds_[name], self.forms_[name] = "dates", forms
                self.notes_ += [f"`{name}` {forms.note}."] if forms.note else []
        # skrub takes some 10 ms for each column, so columns of numbers bypass it.
        is_plain = {n: kind in ("numbers", "durations") for n, kind in self.kinds_.items()}
        self.plain_ = [n for n in self.columns if is_plain[n]]
        self.other_ = [n for n in self.columns if not is_plain[n]]
        self.text_ = tuple(n for n, kind in self.kinds_.items() if _is_of_text(used[n], kind))
        self.n_infinite_ = 0
        self.centres_: list[float] = []
        plain = self._plain(used, learn=True)
        self.categories_: tuple[int, ...] = ()
        if not self.other_:
            return plain
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.float32
        )
        skrub = imported("skrub")
        self.vectorizer_ = skrub.TableVectorizer(
            low_cardinality=codes,
            high_cardinality=skrub.StringEncoder(random_state=0),  # else numpy's global state
            # Seconds since 1970 in 32 bits are 128 apart.
            datetime=skrub.DatetimeEncoder(resolution="second"),
        ).set_output(transform="pandas")  # whatever the user's setting
        others = self._others(used)
        for name in self.forms_:
            self._note_lost(used[name], others[name].isna().to_numpy(dtype=bool))
        prepared = self.vectorizer_.fit_transform(others)
        of_words = {*self.vectorizer_.kind_to_columns_.get("low_cardinality", ())}
        source = self.vectorizer_.output_to_input_
        self.categories_ = tuple(
            at
            for at, name in enumerate(prepared.columns, start=len(self.plain_))
            if source[name] in of_words
        )
        return np.hstack([plain, _as_matrix(prepared)])

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the columns of a table as numbers.

        Words that `fit` has not seen become the code -1. Words among numbers, dates or durations
        become NaN. A UserWarning names such words, and columns in which nearly all words are new.
        """
        check_is_fitted(self)
        used = self._used(X)
        plain = self._plain(used)
        if not self.other_:
            return plain
        prepared = self.vectorizer_.transform(self._others(used))
        outputs = self.vectorizer_.input_to_outputs_
        kinds = self.vectorizer_.kind_to_columns_
        for name in kinds.get("datetime", ()):
            lost = prepared[outputs[name]].isna().all(axis=1)
            kind = f"dates such as {self.forms_.get(name, ISO).example}"
            _warn_of_lost(used[name], lost.to_numpy(dtype=bool), kind)
        for name in kinds.get("low_cardinality", ()):
            new = (prepared[outputs[name]] == -1).all(axis=1)
            _warn_of_new(used[name], new.to_numpy(dtype=bool))
        return np.hstack([plain, _as_matrix(prepared)])

    def _units(self, used: Any) -> dict[str, str]:
        """Return the units of the columns of numbers."""
        numbers = [name for name, kind in self.kinds_.items() if kind == "numbers"]
        given = self.units or {}
        return {name: given[name] if name in given else unit_of(used[name]) for name in numbers}

    def _plain(self, used: Any, *, learn: bool = False) -> NDArray[np.float32]:
        """Return the columns of numbers, less their centres. One after the other, to save memory.

        Args:
            used: the table.
            learn: True to learn the centres, and count infinities; False to warn of lost cells.
        """
        matrix = np.empty((len(used), len(self.plain_)), np.float32)
        for at, name in enumerate(self.plain_):
            values = self._read(used[name], learn=learn).to_numpy(np.float64)
            if learn:
                self.n_infinite_ += int(np.isinf(_rounded(values)).sum())
                self.centres_.append(_centre(values))
                if self.kinds_[name] == "durations":
                    self._note_lost(used[name], np.isnan(values))
            else:
                unit = self.units_.get(name)
                kind = self.kinds_[name] + (f" in {unit}" if unit else "")
                _warn_of_lost(used[name], np.isnan(values), kind)
            matrix[:, at] = _rounded(values - self.centres_[at])
        matrix[np.isinf(matrix)] = np.nan
        return matrix

    def _read(self, column: Any, *, learn: bool) -> Any:
        """Return a column of numbers or durations as floats."""
        if self.kinds_[column.name] == "durations":
            return as_durations(column)
        return as_numbers(column, None if learn else self.units_[column.name])

    def _others(self, used: Any) -> Any:
        """Return the columns for skrub."""
        others = used[self.other_].copy(deep=False)
        for name in self.other_:
            forms = self.forms_.get(name)
            read = as_dates(used[name], forms) if forms else _READ[self.kinds_[name]](used[name])
            others[name] = read
        return others

    def _note_lost(self, column: Any, is_lost: NDArray[np.bool_]) -> None:
        """Note the words of a column that became missing."""
        lost = real_words(column[is_lost & column.notna().to_numpy(dtype=bool)])
        kind = self.kinds_[column.name]
        if len(lost):
            self.notes_.append(f"`{column.name}` {said_lost(lost, len(column), kind)}.")

    def _used(self, X: Any) -> Any:
        if missing := [name for name in self.columns if name not in X.columns]:
            are = "is" if len(missing) == 1 else "are"
            raise TableError(
                "A table must have the columns that the model learnt from, but "
                f"{listed_words(missing)} {are} missing.{said_names(missing[0], X.columns)} "
                "`header` says if a file's first line holds names."
            )
        used = X[[*self.columns]].copy(deep=False)
        for name in [n for n, kind in used.dtypes.items() if str(kind).startswith("Sparse")]:
            used[name] = used[name].sparse.to_dense()
        return used


def _kind(column: Any) -> str:
    """Return how a column is read: "numbers", "durations" or a key of `_READ`."""
    pandas = imported("pandas")
    types = pandas.api.types
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return "categories"
    if types.is_timedelta64_dtype(column.dtype):
        return "durations"
    if isinstance(column.dtype, pandas.PeriodDtype) or types.is_datetime64_any_dtype(column.dtype):
        return "dates"
    if types.is_numeric_dtype(column.dtype) or numbers_among(column):
        return "numbers"
    if is_text(column):
        return "durations" if are_durations(column) else "words"
    if any(isinstance(cell, str) for cell in column):
        return "words"
    inferred = types.infer_dtype(column, skipna=True)
    spans = {"timedelta": "durations", "time": "durations", "period": "dates"}
    spans |= {"date": "dates", "datetime": "dates"}  # the latter in several time zones
    return spans.get(inferred, "words")


def _is_of_text(column: Any, kind: str) -> bool:
    """Return whether a column of this kind is text in a file, even if it looks otherwise."""
    if kind == "categories":
        return is_text(column.cat.categories.to_series())
    return kind == "words" or (kind in ("dates", "durations") and is_text(column))


def _as_words(column: Any) -> Any:
    """Return a column as words, without blanks at their ends.

    A whole number is the same word with a point and without.
    """
    pandas = imported("pandas")
    if isinstance(column.dtype, pandas.CategoricalDtype):
        column = column.astype(object)
    if pandas.api.types.infer_dtype(column, skipna=True).startswith("date"):
        return column  # skrub knows dates from their text
    if is_text(column):
        return column.str.strip().str.replace(r"^(-?\d+)\.0$", r"\1", regex=True)
    if pandas.api.types.is_object_dtype(column.dtype):  # equal ones may be of several types
        return column.map(_word, na_action="ignore").astype("string")
    places, values = pandas.factorize(column)
    words = pandas.array([*map(_word, values), None], dtype="string")
    return pandas.Series(words.take(places), column.index, name=column.name)


def _word(value: Any) -> str:
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(value).strip())


def _as_dates(column: Any) -> Any:
    """Return a column as dates, even if most words are not dates."""
    read = as_dates(column)
    return as_dates(read, ISO) if is_text(read) else read


_READ: dict[str, Callable[[Any], Any]] = {
    "dates": _as_dates,
    "categories": lambda column: _as_words(column).astype("category"),
    "words": _as_words,
}
"""Functions that read a column for skrub, by what it was in `fit`."""


def _warn_of_lost(column: Any, is_lost: NDArray[np.bool_], kind: str) -> None:
    """Warn of cells that became missing."""
    lost = column[is_lost & column.notna().to_numpy(dtype=bool)]
    if len(lost) and len(lost := real_words(lost)):
        warnings.warn(
            f"`{column.name}` was a column of {kind} in `fit`, but now {len(lost):,} of "
            f"{len(column):,} cells are none, such as {brief(lost.tolist()[0])}: taken for "
            "missing.",
            UserWarning,
            stacklevel=3,
        )


def _warn_of_new(column: Any, is_new: NDArray[np.bool_]) -> None:
    """Warn if nearly all words of several rows are new."""
    new = real_words(column[is_new & column.notna().to_numpy(dtype=bool)])
    n_known = int(column.notna().sum())
    if len(new) > 1 and len(new) >= NEARLY_ALL * n_known:
        warnings.warn(
            f"`{column.name}` should have the words of `fit`, but {len(new):,} of {n_known:,} are "
            f"new, such as {brief(new.tolist()[0])}: taken for unknown. Write them as in `fit`.",
            UserWarning,
            stacklevel=3,
        )


def _centre(values: NDArray[np.float64]) -> float:
    """Return the number to subtract, so 32 bits keep different values of a column apart.

    It is the median if numbers are far from 0 but close to each other, and would become equal;
    else 0.
    """
    known = values[np.isfinite(_rounded(values))]
    if not len(known) or (_rounded(known) == known).all():
        return 0.0
    half = len(known) // 2
    median = np.partition(known, half)[half]  # a value of the column, so whole if they are
    if np.median(np.abs(known)) <= 2 * np.median(np.abs(known - median)):
        return 0.0
    known.sort()
    is_lossy = (np.diff(known) > 0) & (np.diff(_rounded(known)) == 0)
    return float(median) if is_lossy.any() else 0.0


def _as_matrix(prepared: Any) -> NDArray[np.float32]:
    matrix = prepared.to_numpy(dtype=np.float32, na_value=np.nan, copy=True)
    matrix[np.isinf(matrix)] = np.nan
    return np.asarray(matrix)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # numbers beyond 3e38 become infinite
        return values.astype(np.float32)
