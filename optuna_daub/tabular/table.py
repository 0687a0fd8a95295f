"""Tables as they are read, and what a model keeps of them to read others alike."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any
from typing import Literal
from typing import NamedTuple

import numpy as np

from optuna_daub.core.checks import brief


Header = Literal["auto", "yes", "no"]


class TableError(ValueError):
    """The error for a table from which nothing can be learnt. One sentence says why."""


class Signs(NamedTuple):
    """The signs in a text file's numbers; "" for a sign that no number has."""

    decimal: str
    thousands: str


NO_SIGNS = Signs("", "")

MONEY = "$€£¥₹₽₩₺₴₫₪฿"
"""Signs of money, which may stand before a number or after it. A sign of per cent stands after."""

BLANKS = " \t\u00a0\u202f"
"""Blanks around numbers."""

GROUPING = BLANKS + "'\u2019"
"""Blanks and apostrophes, which may stand between thousands."""

MINUS = "\u2212"
"""Minus sign of typesetters."""

NEARLY_ALL = 0.9
"""Smallest share of numbers among the words of a column of numbers. The other words count as
missing. Where they are more frequent, they may mean something of their own."""

MISSING_WORDS = frozenset(
    ("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
     "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)  # fmt: skip
"""Words that pandas takes for missing cells of a file."""

SAID_WORDS = 3
"""Largest number of words that a note quotes."""


@dataclass(frozen=True)
class Table:
    """A table, with notes from reading it."""

    frame: Any
    """Data frame of pandas; column names are distinct strings."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    signs: Signs = NO_SIGNS


@dataclass(frozen=True)
class Learnt:
    """Facts from a model's table for reading others like it. One column is enough for these."""

    signs: Signs
    text: Collection[str]
    """Names of the columns of text. Their cells may all look like numbers in another table."""
    columns: Collection[str]
    """Names of the columns that the model uses."""


def check_names(names: Iterable[str], learnt: Learnt | None, way_out: str = "") -> None:
    """Raise a `TableError` if two columns have the same name. Those not learnt from may."""
    twice = (name for name, count in Counter(names).items() if count > 1)
    if found := next((name for name in twice if not learnt or name in learnt.columns), None):
        raise TableError(
            f"Columns must have different names, but {brief(found)} is there twice{way_out}."
        )


NO_NAMES = ' (header="no" if the first line is data)'
"""Way out of two equal cells in the first line of a file."""


def imported(package: str) -> Any:
    """Return a package of the extra `tabular`.

    Raises:
        ImportError: if it is not installed, with the line that installs it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError(
            f"Tables need {name}, which is not installed: pip install 'optuna-daub[tabular]'"
        ) from error


def is_text(column: Any) -> bool:
    """Return whether all known cells of a column are strings, and there is one."""
    known = column.dropna()
    return len(known) > 0 and bool(imported("pandas").api.types.is_string_dtype(known))


def plain_numbers(words: Any, signs: Signs) -> tuple[Any, Any]:
    """Return words with numbers as Python writes them, and which of them are numbers.

    Signs of money and per cent are left out of the numbers, and so are those between thousands.
    Words with another such sign than most numbers have are none. Numbers with per cent and those
    without are not mixed: the rarer ones are none.

    >>> import pandas as pd
    >>> plain_numbers(pd.Series(["1.234,5 €", "-", "7 000"]), Signs(",", "."))[0].to_list()
    ['1234.5', '-', '7000']
    """
    decimal, thousands = re.escape(signs.decimal or "."), re.escape(signs.thousands)
    groups = rf"[1-9]\d{{0,2}}(?:[{thousands}{GROUPING}]\d{{3}})+"
    digits = rf"(?:(?:{groups}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?"
    before = rf"(?:[-+{MINUS}]?[{BLANKS}]*[{MONEY}]?|[{MONEY}][{BLANKS}]*[-+{MINUS}])"
    number = rf"{before}[{BLANKS}]*{digits}[{BLANKS}]*[{MONEY}%]?"
    is_number = words.str.fullmatch(rf"[{BLANKS}]*{number}[{BLANKS}]*", na=False).astype(bool)
    has = {
        sign: is_number & words.str.contains(sign, regex=False, na=False) for sign in MONEY + "%"
    }
    most = max(has, key=lambda sign: has[sign].sum())
    for sign in {*has} - {most}:  # another currency, say: not the same amounts
        is_number &= ~has[sign]
    if (shares := is_number & has["%"]).any():  # 0.05 is not 0.05 %
        is_number = shares if 2 * shares.sum() > is_number.sum() else is_number & ~shares
    bare = words[is_number].str.replace(rf"[{thousands}{GROUPING}{MONEY}%]", "", regex=True)
    bare = bare.str.replace(MINUS, "-", regex=False)
    if signs.decimal not in ("", "."):
        bare = bare.str.replace(signs.decimal, ".", regex=False)
    plain = words.copy()
    plain[is_number] = bare
    return plain, is_number


def as_numbers(column: Any) -> Any:
    """Return a column of any type as floats. Cells that are no numbers become NaN.

    >>> import pandas as pd
    >>> as_numbers(pd.Series(["$1,250.50", "2", "unknown", None])).to_list()
    [1250.5, 2.0, nan, nan]
    """
    pandas = imported("pandas")
    types = pandas.api.types
    if isinstance(column.dtype, pandas.CategoricalDtype):
        of_categories = as_numbers(column.cat.categories.to_series())
        floats = np.append(of_categories, np.nan)[column.cat.codes]  # -1 if missing
    elif types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_text(column):
        places, words = pandas.factorize(column)
        plain, is_number = plain_numbers(pandas.Series(words), Signs(".", ","))
        known = np.where(is_number, plain.to_numpy(dtype=object), np.nan).astype(np.float64)
        floats = np.append(known, np.nan)[places]  # missing cells have the place -1
    else:
        floats = np.array([*map(_as_float, column)], np.float64)
        is_word = np.array([isinstance(cell, str) for cell in column], bool)
        if is_word.any():
            floats[is_word] = as_numbers(pandas.Series([*column[is_word]])).to_numpy()
    return pandas.Series(floats, column.index, name=column.name)


def _as_float(value: Any) -> float:
    is_duration = isinstance(value, np.timedelta64)  # to Python it is a number
    if is_duration or not isinstance(value, numbers.Real | Decimal | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def numbers_among(column: Any) -> tuple[Any, Any] | None:
    """Return a column of words as numbers, and its words that are none.

    Return None for a column of another type, if fewer than nearly all of the words are numbers,
    or if there are codes such as 007 among other words.
    """
    pandas = imported("pandas")
    if not (pandas.api.types.is_object_dtype(column.dtype) or is_text(column)):
        return None
    found = as_numbers(column)
    others = real_words(column[found.isna() & column.notna()])
    n_known = int(found.notna().sum())
    if not n_known or n_known < NEARLY_ALL * (n_known + len(others)):
        return None
    texts = column.dropna().map(str) if len(others) else others
    if len(others) and texts.str.match(r"\s*[-+]?0\d").any():
        return None
    return found, others


def real_words(column: Any) -> Any:
    """Return the cells of a column that are no words for a missing cell."""
    words = column if is_text(column) else column.astype(object).map(str)
    return column[~words.isin(MISSING_WORDS).to_numpy(dtype=bool)]


def listed_words(words: Iterable[Any]) -> str:
    """Return the first different words of a column, for a note."""
    some = [*dict.fromkeys(map(str, words))]
    return ", ".join(map(brief, some[:SAID_WORDS])) + (", ..." if len(some) > SAID_WORDS else "")


def said_lost(words: Any, n_rows: int, kind: str = "numbers") -> str:
    """Return what a note says of words in a column of numbers, or of another kind."""
    count = f"{len(words):,} of {n_rows:,} cells {'is' if len(words) == 1 else 'are'}"
    return f"has {kind}, but {count} none ({listed_words(words)}): taken for missing"
