"""Kinds of values that a target may have: text, truth values, numbers, dates or durations."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np

from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import real_words


FEW_VALUES = 20
"""Largest number of different whole numbers that count as classes, as in
`TrainingSizeObjective`."""

_LONG = re.compile(r"\s*-?\d{1,5} days?(?: [-+]?\d\d:\d\d:\d\d(?:\.\d+)?)?\s*")
"""Text of a duration with its days, as pandas writes all of a column."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
"""Text of an ISO date, which means the same day everywhere."""


def kind_of(known: Any, name: str, pandas: Any, few: int = FEW_VALUES) -> tuple[str, Any]:
    """Return the kind of values and the converted values.

    Kinds are "text", "yes or no", "numbers", "dates" (without a time zone) and "durations".

    Args:
        known: values, none of them missing.
        name: name of the column.
        pandas: the package.
        few: largest number of different dates or durations as text that count as text.

    Raises:
        TableError: if they are none of these.
    """
    types = pandas.api.types
    if isinstance(known.dtype, pandas.CategoricalDtype):
        return "text", known.astype(known.cat.categories.dtype)
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
        return _kind_of_objects(known, name, pandas, few)
    if types.is_string_dtype(known.dtype):
        return _kind_of_text(known, name, pandas, few)
    raise TableError(
        f"`target` must be classes or amounts, but `{name}` has values of type {known.dtype}."
    )


def _kind_of_objects(known: Any, name: str, pandas: Any, few: int) -> tuple[str, Any]:
    """Return the kind of values that are stored as objects, and the converted values."""
    found = {_word(value) for value in known}
    if found == {"bool"}:
        return "yes or no", known.astype(bool)
    if found <= {"number", "bool"}:
        return "numbers", as_numbers(known)
    if found == {"date"}:
        return "dates", _dates(known, name, pandas)
    if found == {"duration"}:
        return "durations", pandas.to_timedelta(known)
    if "text" in found and found <= {"text", "number", "bool"}:
        return _kind_of_text(known, name, pandas, few)
    raise TableError(
        f"`target` must be classes or amounts, but `{name}` has values of "
        f"{' and '.join(sorted({type(value).__name__ for value in known}))}."
    )


def _kind_of_text(known: Any, name: str, pandas: Any, few: int) -> tuple[str, Any]:
    """Return text, or dates if there are many and all are written year first, or durations.

    Words for a missing cell among dates and durations become missing.
    """
    text = pandas.Series([*map(str, known)], index=known.index, dtype=object)
    real = real_words(text)
    if real.nunique() > few and all(map(_ISO_DATE.fullmatch, real)):
        return "dates", _dates(real, name, pandas).reindex(text.index)
    if real.nunique() > few and all(map(_LONG.fullmatch, real)):
        return "durations", pandas.to_timedelta(real).reindex(text.index)
    return "text", text


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
