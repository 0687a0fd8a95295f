"""Dates and durations in text, if nearly all words of a column have such forms."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import numpy as np

from optuna_daub.tabular.process import quiet
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import real_words


GUESSED, CHECKED = 20, 10_000
"""Number of words that formats are guessed from, and of words that they are tried on. Among so
many dates one has a day after the 12th, which tells days from months."""

LONGEST = 40
"""Number of letters of the longest date, with names of day and month, time and zone."""

_SHORT_YEAR = re.compile(r"^(\d{1,2}([-/. ])(?:\d{1,2}|[A-Za-z]{3,9})\2)(\d\d)(?![\d:])")
_HALF_OF_DAY = re.compile(r"\s*\b[AaPp][Mm]$|(?<=\d)[AaPp][Mm]$")
_CLOCK = r"(?:\d+ days?,? )?[-+]?\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:\s*[AaPp][Mm])?"
_PARTS = "".join(
    rf"(?:\d{{1,7}}(?:\.\d+)? ?(?:{unit})(?![A-Za-z])(?:,? and |,? ?))?"
    for unit in ("w|weeks?", "d|days?", "h|hrs?|hours?", "m|mins?|minutes?", "s|secs?|seconds?")
)
"""Pattern of a duration in words, with units in falling order."""
_ISO_PARTS = r"P(?=T?\d)(?:\d{1,5}D)?(?:T(?:\d{1,7}H)?(?:\d{1,7}M)?(?:\d{1,7}(?:\.\d+)?S)?)?"
_DURATION = rf"\s*[-+]?(?:{_CLOCK}|(?=\d)(?i:{_PARTS})|{_ISO_PARTS})\s*"
WITH_UNIT = (
    r"(?i)(\d) ?([wdhms])(?:eeks?|ays?|ours?|rs?|inutes?|ins?|econds?|ecs?)?(?:T|,? and)?(?![a-z])"
)
"""Pattern of a digit and a unit of time, with the T or "and" after it."""
_ONE_UNIT = r"(?i)\s*[-+]?[\d.]+ ?(?!day)[a-z]+\s*"
"""Pattern of a duration that is an amount with a unit other than days."""
_YEAR = r"((?:1[6-9]|2[01])\d\d)"
_QUARTER = re.compile(rf"^(?:{_YEAR}[- ]?Q([1-4])|Q([1-4])[-/ ]{_YEAR})$")
"""Pattern of quarters such as 2015Q1 and Q1/2015, but not of part numbers such as 4500Q2."""
_SPANS = (str, datetime.time, datetime.timedelta, np.timedelta64)
"""Types of cells that may hold a duration."""


class Forms(NamedTuple):
    """The forms of a column's dates in text."""

    formats: tuple[str, ...]
    """Formats. The first one reads most words, the next most of the others, and so on."""
    first_year: int = 1969
    """First of the hundred years that years of two digits mean."""
    note: str = ""
    """Note on the meaning that was chosen; "" if there is only one."""

    @property
    def example(self) -> str:
        """A date in the form of most words.

        >>> Forms(("%d.%m.%y %H:%M",)).example
        '31.12.24 20:15'
        """
        moment = datetime.datetime(2024, 12, 31, 20, 15, tzinfo=datetime.timezone.utc)
        return moment.strftime(self.formats[0])


ISO = Forms(("%Y-%m-%d",))
"""The form of dates that needs no other cells to be understood."""
_ISO_DATE = r"\d{4}-\d\d-\d\d(?!\d)"
"""Pattern of the first part of a date that means the same day everywhere."""


def date_forms(column: Any) -> Forms | None:
    """Return the forms of the dates in a column of text; None for other text.

    All formats together read nearly all words. If days and months cannot be told apart, days come
    first between dots, else months. Years of two digits are in the hundred years around the
    shortest span that holds them all and is not wholly in the future.

    >>> import pandas as pd
    >>> date_forms(pd.Series(["31.12.2020 08:15", "1.2.2021 23:59", None])).formats
    ('%d.%m.%Y %H:%M',)
    >>> date_forms(pd.Series(["31.12.45", "1.2.80", "30.4.03"])).note
    'has years of two digits: taken for 1924 to 2023'
    >>> date_forms(pd.Series(["red", "2020-12-31"]))
    """
    words = real_words(_first_days(column.dropna()))
    words = words.sample(min(len(words), CHECKED), random_state=0)
    found: list[str] = []
    notes: list[str] = []
    left = words
    while len(left):
        with quiet(hidden=UserWarning):  # pandas warns of each guess
            formats = {form for word in left.head(GUESSED) for form in _guesses(word)}
        # Of equal ones the first is taken: %m comes before %d, but not between dots.
        # A column has one order of day and month: formats with the other order are not tried.
        formats -= {_swapped(form) for form in found}
        unread = {form: left[_read(left, form).isna()] for form in sorted(formats, reverse=True)}
        best = min(unread, key=lambda form: (len(unread[form]), "%m.%d." in form), default="")
        if not best or len(unread[best]) > NEARLY_ALL * len(left):
            break
        found.append(best)
        swapped = unread.get(_swapped(best)) if _swapped(best) != best else None
        if swapped is not None and len(swapped) == len(unread[best]):
            first = "days" if best.startswith("%d") else "months"
            read = left.drop(unread[best].index).iloc[0]
            notes.append(f"has dates such as {read}: {first} are taken to come first")
        left = unread[best]
    if not found or len(words) - len(left) < NEARLY_ALL * len(words):
        return None
    return _with_century(Forms((*found,), note=" and ".join(notes)), words)


def _with_century(forms: Forms, words: Any) -> Forms:
    """Return forms with the hundred years of a column's years of two digits.

    The longest time without a date is cut in the middle. So the years of birth 45 to 03, and the
    years of payment 24 to 55, stay together.
    """
    if not any("%y" in form for form in forms.formats):
        return forms
    short = Forms(tuple(form for form in forms.formats if "%y" in form))
    years = np.unique(read_dates(words, short).dt.year.dropna().to_numpy(np.int64) % 100)
    gaps = np.diff(years, append=years[0] + 100)
    now = datetime.date.today().year  # of equal gaps, the one that begins next in the future
    longest = max(range(len(gaps)), key=lambda at: (gaps[at], -((years[at] - now) % 100)))
    first = years[(longest + 1) % len(years)]
    year = int(now - (now - first) % 100)
    begin = year - int(gaps[longest]) // 2
    said = f"has years of two digits: taken for {begin} to {begin + 99}"
    note = " and ".join(filter(None, (forms.note, said)))
    return forms._replace(first_year=begin, note=note)


def _guesses(word: str) -> Iterator[str]:
    """Yield the formats that a word may have as a date, months before days first."""
    if len(word) > LONGEST:
        return
    guess = imported("pandas.tseries.api").guess_datetime_format
    plain = _HALF_OF_DAY.sub("", word)
    full = _SHORT_YEAR.sub(r"\g<1>20\3", plain)
    for day_first in (False, True):
        form = guess(full, dayfirst=day_first)
        if not isinstance(form, str) or "%Y" not in form or re.search("%Y.%d", form):
            continue
        if full != plain:
            form = form.replace("%Y", "%y")
        if plain != word:
            form = form.replace("%H", "%I") + (" %p" if " " in word[len(plain) :] else "%p")
        yield form


def _swapped(form: str) -> str:
    return form.translate(str.maketrans("dm", "md"))


def read_dates(column: Any, forms: Forms) -> Any:
    """Return text as dates without a time zone, those with one in UTC. Other words are missing.

    Dates such as 2020-12-31 are read with any forms.
    """
    words = column.str.strip()
    found = _read(words.where(words.str.match(_ISO_DATE, na=False).astype(bool)), "ISO8601")
    for form in forms.formats:
        left = found.isna() & words.notna()
        rest = _read(words[left], form, forms.first_year)
        found = found.where(~left, rest.reindex(words.index))
    return found.dt.tz_convert(None)


def _read(words: Any, form: str, first_year: int = 1969) -> Any:
    pandas = imported("pandas")
    read = pandas.to_datetime(words, format=form, errors="coerce", utc=True).dt.as_unit("us")
    if "%y" in form:
        years = read.dt.year
        centuries = (first_year + (years - first_year) % 100 - years) // 100
        for n in centuries.dropna().unique():
            moved = read + pandas.DateOffset(years=int(100 * n))
            read = read.where(centuries != n, moved)
    return read


def are_durations(column: Any) -> bool:
    """Return whether nearly all words of a column are durations.

    These are words such as 8:15 or 2 h 15 min. Return False if there are both 59:30 and 1:00:30,
    since the first may be minutes and seconds, or amounts in one unit only: 5 m may be a length.

    >>> import pandas as pd
    >>> are_durations(pd.Series(["8:15", "11:30 PM", None])), are_durations(pd.Series(["3:x"]))
    (True, False)
    """
    words = real_words(column.dropna())
    n_words = len(words)
    words = words[words.str.fullmatch(_DURATION)]
    of_day = words.str.contains("[AaPp][Mm]")
    are_alike = words[~of_day & words.str.contains(":")].str.count(":").nunique() < 2
    are_amounts = words.str.fullmatch(_ONE_UNIT).all()
    return are_alike and not are_amounts and len(words) >= NEARLY_ALL * n_words


def as_durations(column: Any) -> Any:
    """Return a column as seconds. Times count from 0:00; numbers without a unit are missing.

    >>> import pandas as pd
    >>> as_durations(pd.Series(["0:15", "11:30 PM", "1 days 00:00:01.5", "soon"])).to_list()
    [900.0, 84600.0, 86401.5, nan]
    """
    pandas = imported("pandas")
    if not pandas.api.types.is_timedelta64_dtype(column.dtype):
        read = [_said(cell) if isinstance(cell, _SPANS) else None for cell in column]
        words = pandas.Series(read, column.index, dtype="string").str.strip()
        are_told = words.str.fullmatch(_DURATION, na=False).astype(bool)
        words = words.where(as_numbers(column).isna() | are_told)
        words = words.str.replace(
            r"((?:^|\s)[-+]?\d+:\d\d)(?=\s*[AaPp][Mm]$|$)", r"\1:00", regex=True
        )
        words = words.str.replace(r"^([-+]?)PT?", r"\1", regex=True)
        words = words.str.replace(WITH_UNIT, _short, regex=True)
        column = pandas.to_timedelta(words.astype(object), errors="coerce")
        halves = words.str.replace(r"\s*([AaPp][Mm])$", r" \1", regex=True)
        clock = pandas.to_datetime(halves, format="%I:%M:%S %p", errors="coerce")
        column = column.fillna(clock - pandas.Timestamp("1900-01-01"))
    return column.dt.total_seconds()


def _short(part: re.Match[str]) -> str:
    unit = part[2].lower()
    return part[1] + (unit.upper() if unit in "wd" else unit)  # as pandas writes them


def _said(cell: Any) -> str:
    return str(cell.replace(tzinfo=None) if isinstance(cell, datetime.time) else cell)


def as_dates(column: Any, forms: Forms | None = None) -> Any:
    """Return a column as dates, or as text if its format is unknown.

    Periods become their first days, as in their text. Dates with a time zone are in UTC, so the
    same moment is the same in any zone, and in text.

    Args:
        column: cells of any type.
        forms: forms of the dates in text; None to find them, with a UserWarning if they have
            several meanings.
    """
    pandas = imported("pandas")
    types = pandas.api.types
    if isinstance(column.dtype, pandas.CategoricalDtype):
        column = column.astype(object)
    if types.infer_dtype(column, skipna=True) == "period":
        return pandas.Series(pandas.PeriodIndex(column), column.index).dt.to_timestamp()
    if types.infer_dtype(column, skipna=True).startswith("date"):
        return pandas.to_datetime(column, utc=True, errors="coerce").dt.tz_convert(None)
    if types.is_numeric_dtype(column.dtype) and column.notna().any():
        years = as_numbers(column)
        is_whole = (years % 1 == 0) & (years.abs() < 1e15)
        column = years.where(is_whole).astype("Int64").astype("string")
    if is_text(column):
        column = _first_days(column)
        if not forms and (forms := date_forms(column)) and forms.note:
            warnings.warn(f"`{column.name}` {forms.note}.", UserWarning, stacklevel=2)
        if forms:
            return read_dates(column, forms)
    return column


def _first_days(words: Any) -> Any:
    """Return words with weeks (2020-12-28/2021-01-03) and quarters replaced by first days."""
    words = words.str.strip()
    words = words.str.replace(r"^(\d{4}-\d\d-\d\d)/\d{4}-\d\d-\d\d$", r"\1", regex=True)
    return words.str.replace(_QUARTER, _first_day, regex=True)


def _first_day(quarter: re.Match[str]) -> str:
    year, number = quarter[1] or quarter[4], quarter[2] or quarter[3]
    return f"{year}-{3 * int(number) - 2:02}-01"
