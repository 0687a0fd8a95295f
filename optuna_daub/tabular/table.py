"""Tables as read, and the facts that a model keeps to read others in the same way."""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from decimal import Decimal
from functools import partial
from typing import Any
from typing import Literal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core import optional
from optuna_daub.core.checks import brief


Header = Literal["auto", "yes", "no"]


class TableError(ValueError):
    """The error for a table from which nothing can be learnt. One sentence says why."""


class Signs(NamedTuple):
    """The signs in a text file's numbers; "" for an unused sign."""

    decimal: str
    thousands: str


NO_SIGNS = Signs("", "")
PLAIN = Signs(".", ",")
"""Signs of a program's numbers."""

MONEY = "$€£¥₹₽₩₺₴₫₪฿"
"""Signs of money. Like codes such as EUR, they may stand before or after a number. A sign of per
cent, or a unit such as kg, stands after."""

BLANKS = " \t\u00a0\u202f"
"""Blanks around numbers."""

GROUPING = BLANKS + "'\u2019"
"""Blanks and apostrophes, which may stand between thousands."""

MINUS = "\u2212"
"""Minus sign of typesetters."""

UNIT = r"[A-Za-zµμΩ°]+(?:/[A-Za-z]+)?[²³]?"
"""Pattern of a unit after a number."""

DAYS = r"\s*[-+]?\d{1,5} ?days?\s*"
"""Pattern of a duration in days. Clocks that count nanoseconds end at 106751 days."""

_BEFORE = rf"(?:[{MONEY}]|[A-Z]{{3}})"
_PREFIX = rf"(?:[-+{MINUS}]?[{BLANKS}]*{_BEFORE}?|{_BEFORE}[{BLANKS}]*[-+{MINUS}])"
_OPEN = rf"(?:\(?{_PREFIX}|{_BEFORE}[{BLANKS}]*\()"
_AFTER = rf"(?:[{MONEY}%]|{UNIT})?"
_CLOSE = rf"(?:\)[{BLANKS}]*{_AFTER}|(?<=\d)[-{MINUS}][{BLANKS}]*{_AFTER}|{_AFTER}\)?)"
"""Pattern of what follows a number. After 349,- there are no cents, and no minus."""
_TELEPHONE = rf"\s*\d{{3}}(?:[{BLANKS}]\d{{3}}){{2,}}\s*"

NEARLY_ALL = 0.9
"""Smallest share of numbers among the words of a column of numbers. The other words count as
missing. If they are more frequent, they may have a meaning of their own."""

MISSING_WORDS = frozenset(
    ("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
     "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)  # fmt: skip
"""Words that pandas takes for missing cells of a file."""

MOST_NAMES = 20
"""Largest number of columns that an error lists."""

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
    written: Mapping[str, Any] = field(default_factory=dict)
    """Columns as written in the file, by name, if reading has changed them."""
    is_from_text: bool = False
    """True for a text file: its numbers are read already."""


@dataclass(frozen=True)
class Learnt:
    """Facts from a model's table for reading others like it. One column is enough for these."""

    signs: Signs
    text: Collection[str]
    """Names of the columns of text. Their cells may all look like numbers in another table."""
    columns: Collection[str]
    """Names of the columns that the model uses."""


def check_names(names: Iterable[str], learnt: Learnt | None, way_out: str = "") -> None:
    """Raise a `TableError` if two columns have one name. Those that a model ignores may."""
    twice = (name for name, count in Counter(names).items() if count > 1)
    if found := next((name for name in twice if not learnt or name in learnt.columns), None):
        raise TableError(
            f"Columns must have different names, but {brief(found)} is there twice{way_out}."
        )


NO_NAMES = ' (header="no" if the first line is data)'
"""Way out of two equal cells in the first line of a file."""


imported = partial(optional.imported, extra="tabular")
"""Function that returns a package of the extra `tabular`."""


def is_text(column: Any) -> bool:
    """Return whether all known cells of a column are strings, and there is one."""
    known = column.dropna()
    return len(known) > 0 and bool(imported("pandas").api.types.is_string_dtype(known))


def plain_numbers(words: Any, signs: Signs, *, are_known: bool = False) -> tuple[Any, Any]:
    """Return words with numbers as Python writes them, and which of them are numbers.

    Signs of money, per cent and units come last; those between thousands are left out. Amounts in
    brackets are negative, and so are those of money with a minus after them.

    Args:
        words: column of text.
        signs: signs in its numbers.
        are_known: whether the column is one of numbers. If not, a unit other than money and per
            cent must be that of nearly all numbers, with a blank if it is of capitals, and no
            days; some numbers must be without brackets, and some no telephone numbers such as
            555 123 456.

    >>> import pandas as pd
    >>> words = pd.Series(["1.234,5 €", "-", "(7 000)"])
    >>> plain_numbers(words, Signs(",", "."))[0].to_list()
    ['1234.5€', '-', '-7000']
    """
    words = words.astype(object) if hasattr(words, "cat") else words  # categories take no others
    decimal, thousands = re.escape(signs.decimal or "."), re.escape(signs.thousands)
    groups = rf"[1-9]\d{{0,2}}(?:[{thousands}{GROUPING}]\d{{3}})+"
    if signs.thousands == ",":  # as in India
        groups = rf"(?:{groups}|[1-9]\d?(?:,\d\d)+,\d{{3}})"
    digits = rf"(?:(?:{groups}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?"
    number = rf"(?P<before>{_OPEN})[{BLANKS}]*(?P<digits>{digits})[{BLANKS}]*(?P<after>{_CLOSE})"
    matches = re.sub(r"\(\?P<\w+>", "(?:", number)
    bare = words.str.strip(BLANKS)  # else many blanks before a word take minutes
    is_number = bare.str.fullmatch(matches, na=False).astype(bool)
    if not is_number.any():
        return words, is_number
    parts = bare[is_number].str.extract(f"^{number}$")
    sides = parts[["before", "after"]]
    no_unit = rf"[-+{MINUS}{BLANKS}()]"
    units = sides.apply(lambda side: side.str.replace(no_unit, "", regex=True))
    has_minus = sides.apply(lambda side: side.str.contains(f"[-{MINUS}]", regex=True))
    in_brackets = sides["before"].str.contains("(", regex=False)
    is_fine = in_brackets == sides["after"].str.contains(")", regex=False)
    is_fine &= (units == "").any(axis=1)
    unit = units["before"] + units["after"]
    # Without money 2- is a grade, and -2- or (2)- is no number.
    is_alone = unit.str.fullmatch(_BEFORE) & ~has_minus["before"] & ~in_brackets
    is_fine &= is_alone | ~has_minus["after"]
    if not are_known:
        has_unit = unit.str.contains("[^\\W\\d]", regex=True).astype(bool)
        # Capitals without a blank before or after the number, as in ABC100 or 5A, are codes.
        is_apart = words[is_number].str.contains(rf"[^{BLANKS}][{BLANKS}]+[^{BLANKS}]")
        is_code = unit.str.fullmatch("[A-Z]+") & ~is_apart
        # 3 days is a duration, as 3 days 12:00:00 is; 2.5 days are an amount.
        in_days = unit.isin(("day", "days"))
        are_durations = words[is_number][in_days].str.fullmatch(DAYS).all()
        is_fine &= ~is_code & ~(in_days & are_durations)
        counts = unit[is_fine].value_counts()
        is_fine &= ~has_unit | unit.isin(counts.index[counts >= NEARLY_ALL * counts.sum()])
        are_telephones = words[is_number].str.fullmatch(_TELEPHONE).all()
        is_fine &= not (in_brackets[is_fine].all() or are_telephones)
    is_number[is_number] = is_fine
    found = parts["digits"].str.replace(rf"[{thousands}{GROUPING}]", "", regex=True)
    if signs.decimal not in ("", "."):
        found = found.str.replace(signs.decimal, ".", regex=False)
    is_negative = in_brackets ^ has_minus.any(axis=1)
    minus = is_negative.map({True: "-", False: ""}).astype(found.dtype)
    plain = words.copy()
    blank = unit.str.fullmatch("[A-Z]+").map({True: " ", False: ""}).astype(found.dtype)
    plain[is_number] = (minus + found + blank + unit)[is_fine]
    return plain, is_number


def unit_of(column: Any) -> str:
    """Return the unit of most numbers in a column of text; "" without one.

    Numbers without a sign are of the same unit as those with a sign of money, but 0.05 is not
    0.05 %.

    >>> import pandas as pd
    >>> [
    ...     unit_of(pd.Series(words))
    ...     for words in (["€5", "$3", "€2", "7"], ["5 %"], ["0.05", "5 %"])
    ... ]
    ['€', '%', '']
    """
    pandas = imported("pandas")
    if not (pandas.api.types.is_object_dtype(column.dtype) or is_text(column)):
        return ""
    known = column.dropna()
    words = Counter(cell for cell in known if isinstance(cell, str))
    plain, is_number = plain_numbers(pandas.Series([*words], dtype=str), PLAIN)
    rows = np.array([*words.values()], np.int64)[is_number]
    return _commonest(_split(plain[is_number])[1], rows, len(known) - words.total())


def _commonest(units: Iterable[str], rows: Iterable[int], n_bare: int = 0) -> str:
    """Return the unit of most numbers.

    Args:
        units: unit of each number in text, "" without one.
        rows: number of rows that have each of them.
        n_bare: number of rows of other numbers, which have no unit.
    """
    counts: Counter[str] = Counter()
    for unit, n in zip(units, rows, strict=True):
        counts[unit] += n
    shares = counts.pop("%", 0)
    n_bare += counts.pop("", 0)
    unit, count = counts.most_common(1)[0] if counts else ("", 0)
    return "%" if shares > n_bare + count else unit


def _split(plain: Any) -> tuple[Any, Any]:
    """Return the digits and the units of plain numbers."""
    parts = plain.str.extract(r"^([-\d.]*(?:[eE][-+]?\d+)?)(.*)$")
    return parts[0], parts[1].str.strip()


def as_numbers(column: Any, unit: str | None = None) -> Any:
    """Return a column of any type as floats. Cells that are no numbers become NaN.

    Args:
        column: cells of any type.
        unit: unit of its numbers, None for that of most of them. Numbers of another unit become
            NaN. Numbers without a sign are of any unit except per cent.

    >>> import pandas as pd
    >>> as_numbers(pd.Series(["$1,250.50", "2", "unknown", None])).to_list()
    [1250.5, 2.0, nan, nan]
    >>> as_numbers(pd.Series(["$1", "€3"]), "€").to_list()
    [nan, 3.0]
    """
    pandas = imported("pandas")
    types = pandas.api.types
    if isinstance(column.dtype, pandas.CategoricalDtype):
        of_categories = as_numbers(column.cat.categories.to_series(), unit)
        floats = np.append(of_categories, np.nan)[column.cat.codes]  # -1 if missing
    elif types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        floats = np.full(len(column), np.nan) if unit == "%" else floats
    elif is_text(column):
        places, words = pandas.factorize(column)
        rows = np.bincount(places[places >= 0])
        amounts = _amounts(pandas.Series(words), rows, unit)
        floats = np.append(amounts, np.nan)[places]  # missing cells have the place -1
    else:
        unit = unit_of(column) if unit is None else unit
        is_word = np.array([isinstance(cell, str) for cell in column], bool)
        floats = np.array([*map(_as_float, column)], np.float64)
        if unit == "%":
            floats[:] = np.nan
        if is_word.any():
            floats[is_word] = as_numbers(pandas.Series([*column[is_word]]), unit).to_numpy()
    return pandas.Series(floats, column.index, name=column.name)


def _amounts(words: Any, rows: NDArray[np.int64], unit: str | None) -> NDArray[np.float64]:
    """Return different words, in so many rows each, as numbers of a unit. Others become NaN."""
    plain, is_number = plain_numbers(words, PLAIN, are_known=unit is not None)
    digits, units = _split(plain)
    # A column without a sign in `fit` may have any sign later, except per cent.
    allowed = unit or _commonest(units[is_number], rows[is_number])
    if unit == "" and allowed == "%":
        allowed = ""
    is_of_unit = (units == allowed) | ((units == "") & (allowed != "%"))
    digits = digits.to_numpy(dtype=object, na_value=None)
    return np.where(is_number & is_of_unit, digits, np.nan).astype(np.float64)


def _as_float(value: Any) -> float:
    is_duration = isinstance(value, np.timedelta64)  # to Python it is a number
    if is_duration or not isinstance(value, numbers.Real | Decimal | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def numbers_among(column: Any) -> tuple[Any, Any] | None:
    """Return a column's words as numbers in the commonest unit, and the other words.

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
    if len(others) and column.dropna().map(str).str.match(r"\s*[-+]?0\d").any():
        return None
    return found, others


def real_words(column: Any) -> Any:
    """Return the cells of a column that are not words for a missing cell."""
    words = column if is_text(column) else column.astype(object).map(str)
    return column[~words.isin(MISSING_WORDS).to_numpy(dtype=bool)]


def said_names(given: str, names: Iterable[str]) -> str:
    """Return the names of a table's columns in words, first the one closest to a wrong name.

    >>> said_names("Price", ["price", "size"])
    " Did you mean 'price'? There are: price, size."
    """
    names = [*names]
    lower = {name.lower().strip(): name for name in reversed(names)}
    close = difflib.get_close_matches(given.lower().strip(), lower, n=1)
    hint = f" Did you mean {brief(lower[close[0]])}?" if close else ""
    some = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return f"{hint} There are: {some}."


def listed_words(words: Iterable[Any]) -> str:
    """Return the first different words of a column, for a note."""
    some = [*dict.fromkeys(map(str, words))]
    return ", ".join(map(brief, some[:SAID_WORDS])) + (", ..." if len(some) > SAID_WORDS else "")


def said_lost(words: Any, n_rows: int, kind: str = "numbers") -> str:
    """Return the text of a note on words in a column of another kind."""
    count = f"{len(words):,} of {n_rows:,} cells {'is' if len(words) == 1 else 'are'}"
    return f"has {kind}, but {count} none ({listed_words(words)}): taken for missing"
