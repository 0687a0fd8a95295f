"""Signs in numbers: what stands before decimals and what between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import filterfalse
from typing import Any

from optuna_daub.tabular.table import BLANKS
from optuna_daub.tabular.table import GROUPING
from optuna_daub.tabular.table import MISSING_WORDS
from optuna_daub.tabular.table import MONEY
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import UNIT
from optuna_daub.tabular.table import Signs
from optuna_daub.tabular.table import imported


NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*")
GROUPS_BY = {
    ".": re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+(,\d+)?\s*"),
    ",": re.compile(r"\s*[-+]?(\d{1,3}(,\d{3})+|\d{1,2}(,\d\d)+,\d{3})(\.\d+)?\s*"),
}
"""Patterns of numbers with a sign between thousands, by that sign. In India 12,34,567 is one."""
OTHER = {".": ",", ",": "."}
"""The two signs; if one is between thousands, the other is the decimal sign."""
_BETWEEN = re.compile(rf"(?<=\d)[{GROUPING}](?=\d{{3}}(?!\d))")
"""Pattern of a blank or an apostrophe between thousands."""
_BELOW_1 = re.compile(r"[-+]?0")
_BELOW_1000 = re.compile(r"[-+]?\d{1,3}")
_UNITS = re.compile(rf"^[A-Z]{{3}}(?=[{BLANKS}]*[-+\d])|(?<=\d)[{BLANKS}]*{UNIT}$")
"""Pattern of a unit before a number or after it."""


def signs_of_numbers(columns: Sequence[Sequence[str]], separator: str, known: Signs) -> Signs:
    """Return the signs in the numbers of columns. Those known from another table are kept."""
    if not known.decimal and (sign := _between_thousands(columns, separator)):
        return Signs(OTHER[sign], sign)
    cells = [cell for column in columns for cell in column if cell]
    plain = [bare(cell) for cell in cells if not _UNITS.search(cell.strip(BLANKS))]
    cells = [*map(bare, cells)]
    # Words with units, such as 1.5 l in a name, count only if no plain number has a sign.
    are_told = any({*cell} & {*OTHER} and NUMBER.fullmatch(cell) for cell in plain)
    decimal = _decimal(plain if are_told else cells, separator, known.decimal)
    thousands = known.thousands if known.decimal == decimal else ""
    sign = OTHER.get(decimal, ",")
    if any(sign in cell and GROUPS_BY[sign].fullmatch(cell) for cell in cells):
        thousands = sign
    return Signs(decimal, thousands)


def _between_thousands(columns: Sequence[Sequence[str]], separator: str) -> str:
    """Return the sign between thousands; "" if there is none. It is never a decimal sign."""
    for sign in [sign for sign in OTHER if sign != separator]:
        said = [_divides_thousands(column, sign, separator) for column in columns]
        if True in said and False not in said:
            return sign
    return ""


def _divides_thousands(column: Sequence[str], sign: str, separator: str) -> bool | None:
    """Return whether a sign divides thousands in a column; None if unknown.

    It is if a number has it twice, or if three digits follow it in all numbers that have it, and
    the other numbers are whole and below 1000. Where commas separate columns the second reason is
    not enough, since points are mostly decimal.
    """
    cells = [bare(cell) for cell in column if cell and cell not in MISSING_WORDS]
    grouped = [*filter(GROUPS_BY[sign].fullmatch, cells)]
    in_groups = {*grouped}
    others = [cell for cell in cells if NUMBER.fullmatch(cell) and cell not in in_groups]
    if len(grouped) + len(others) < NEARLY_ALL * len(cells):
        return None  # of words, such as addresses and versions
    if any(sign in cell for cell in others) or any(map(_BELOW_1.match, grouped)):
        return False  # it is the decimal sign here
    is_twice = any(cell.count(sign) > 1 for cell in grouped)
    are_small = bool(grouped and others) and all(map(_BELOW_1000.fullmatch, others))
    return True if is_twice or (are_small and separator != ",") else None


def with_thousands(words: Any, signs: Signs) -> Any | None:
    """Return a column of text as numbers; None if a cell is none.

    A number has digits, and these signs in their places. pandas would also take away a sign that
    divides no thousands, as in 4647.5.

    >>> import pandas as pd
    >>> with_thousands(pd.Series(["4.033,5", "99"]), Signs(",", ".")).to_list()
    [4033.5, 99.0]
    >>> with_thousands(pd.Series(["4.033,5", "4647.5"]), Signs(",", "."))
    """
    decimal, thousands = re.escape(signs.decimal), re.escape(signs.thousands)
    form = rf"[-+]?(?:0|[1-9]\d*|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+)(?:{decimal}\d*)?"
    if not words.dropna().str.fullmatch(form).all():
        return None
    plain = words.str.replace(signs.thousands, "", regex=False)
    return imported("pandas").to_numeric(plain.str.replace(signs.decimal, ".", regex=False))


def bare(cell: str) -> str:
    """Return a number without brackets, its unit, and blanks between thousands."""
    cell = _UNITS.sub("", cell.strip(BLANKS + MONEY + "%()"))
    return _BETWEEN.sub("", cell.strip(BLANKS + MONEY))


def _decimal(cells: Sequence[str], separator: str, known: str) -> str:
    """Return the decimal sign in the numbers among cells."""
    if known and (separator != "," or known == "."):
        return known
    has_points = any("." in cell and NUMBER.fullmatch(cell) for cell in cells)
    commas = [*filter(COMMA.fullmatch, cells)]
    if separator == "," and not known:  # a quoted 1,234 has thousands
        commas = [*filterfalse(GROUPS_BY[","].fullmatch, commas)]
    has_commas = bool(commas) and not has_points
    if has_commas or (separator != "," and any(map(_GROUPS.fullmatch, cells))):
        return ","
    return "." if has_points or separator == "," else ""
