"""Kinds of values that a target may have: text, truth values, numbers, dates or durations."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import numbers_among
from optuna_daub.tabular.table import real_words
from optuna_daub.tabular.table import said_lost
from optuna_daub.tabular.times import WITH_UNIT
from optuna_daub.tabular.times import are_durations
from optuna_daub.tabular.times import as_dates
from optuna_daub.tabular.times import as_durations
from optuna_daub.tabular.times import date_forms


_AS_WORDS = "Make words of them if they are classes, as `astype(str)` does."


def kind_of(known: Any, name: str, pandas: Any) -> tuple[str, Any]:
    """Return the kind of values and the converted values.

    Kinds are "text", "yes or no", "numbers", "dates" (without a time zone) and "durations".

    Args:
        known: values, none of them missing.
        name: name of the column.
        pandas: the package.

    Raises:
        TableError: if they are none of these.
    """
    types = pandas.api.types
    if isinstance(known.dtype, pandas.CategoricalDtype):
        values, found = known.astype(known.cat.categories.dtype), {*map(_word, known.unique())}
        # Words have no order among numbers, but classes are sorted.
        is_mixed = "text" in found and len(found) > 1
        return "text", _as_text(values, pandas) if is_mixed else values
    if types.is_bool_dtype(known.dtype):
        return "yes or no", known.astype(bool)
    if types.is_numeric_dtype(known.dtype) and not types.is_complex_dtype(known.dtype):
        return "numbers", pandas.Series(known.to_numpy(dtype=None), index=known.index)
    if isinstance(known.dtype, pandas.PeriodDtype):
        return "dates", known.dt.to_timestamp()
    if str(known.dtype).startswith(("datetime", "date", "timestamp")):
        return "dates", _dates(known, name, pandas)
    if types.is_timedelta64_dtype(known.dtype) or str(known.dtype).startswith("duration"):
        return "durations", pandas.to_timedelta(known)
    if types.is_object_dtype(known.dtype):
        return _kind_of_objects(known, name, pandas)
    if types.is_string_dtype(known.dtype):
        return "text", _as_text(known, pandas)
    raise TableError(
        f"`target` must be classes or amounts, but `{name}` has values of type {known.dtype}. "
        f"{_AS_WORDS}"
    )


def _kind_of_objects(known: Any, name: str, pandas: Any) -> tuple[str, Any]:
    """Return the kind of values that are stored as objects, and the converted values."""
    found = {_word(value) for value in known}
    if found == {"bool"}:
        return "yes or no", known.astype(bool)
    if found <= {"number", "bool"}:
        are_whole = all(isinstance(value, numbers.Integral) for value in known)
        exact = known.infer_objects() if are_whole and found == {"number"} else known
        return "numbers", exact if exact.dtype.kind in "iu" else as_numbers(known)
    if found == {"date"}:
        return "dates", _dates(known, name, pandas)
    if found == {"duration"}:
        return "durations", pandas.to_timedelta(known)
    if "text" in found and found <= {"text", "number", "bool"}:
        return "text", _as_text(known, pandas)
    raise TableError(
        f"`target` must be classes or amounts, but `{name}` has values of "
        f"{' and '.join(sorted({type(value).__name__ for value in known}))}. {_AS_WORDS}"
    )


def _as_text(known: Any, pandas: Any) -> Any:
    return pandas.Series([*map(str, known)], index=known.index, dtype=object)


def times_among(known: Any, name: str, few: int) -> tuple[str, Any, list[str]]:
    """Return the kind of text, its values, and notes on them.

    Text is dates or durations if more than a few different words are, and nearly all of them, as
    in a feature. The other words are missing then. Words such as 8:15 alone stay text, as they
    may be times of day.
    """
    real = real_words(known)
    said: list[str] = []
    if real.nunique() <= few or not is_text(real) or numbers_among(real):
        return "text", known, said
    if are_durations(real) and real.str.count(WITH_UNIT).any():
        kind, found = "durations", imported("pandas").to_timedelta(as_durations(real), unit="s")
    elif forms := date_forms(real):
        kind, found = "dates", as_dates(real, forms)
        said += [f"`{name}` {forms.note}."] if forms.note else []
    else:
        return "text", known, said
    lost = real[found.isna()]
    said += [f"`{name}` {said_lost(lost, len(known), kind)}."] if len(lost) else []
    return kind, found.reindex(known.index), said


def _dates(known: Any, name: str, pandas: Any) -> Any:
    """Return dates without a time zone. Dates with one are converted to UTC.

    Raises:
        TableError: if one of them is not a date, or is too far away for a clock that counts
            microseconds.
    """
    if pandas.api.types.is_object_dtype(known.dtype):
        known = known.map(lambda date: getattr(date, "start_time", date))  # of a period
    try:
        found = pandas.to_datetime(known, utc=True, format="ISO8601").dt.tz_convert(None)
        return found.astype("datetime64[us]")
    except (ValueError, TypeError, OverflowError) as error:
        raise TableError(
            f"`target` must be dates that a computer can count, but those of `{name}` are not: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _word(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "bool"
    if hasattr(value, "total_seconds") or isinstance(value, np.timedelta64):  # also a number
        return "duration"
    if isinstance(value, numbers.Number) or type(value).__name__ == "Decimal":
        return "other" if isinstance(value, complex) else "number"
    if isinstance(value, str):
        return "text"
    return "date" if hasattr(value, "year") else "other"
