"""Signs in numbers: what stands before decimals and what between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import filterfalse

from optuna_daub.tabular.table import BLANKS
from optuna_daub.tabular.table import GROUPING
from optuna_daub.tabular.table import MISSING_WORDS
from optuna_daub.tabular.table import MONEY
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import UNIT
from optuna_daub.tabular.table import Signs


NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*")
GROUPS_BY = {
    ".": re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+(,\d+)?\s*"),
    ",": re.compile(r"\s*[-+]?(\d{1,3}(,\d{3})+|\d{1,2}(,\d\d)+,\d{3})(\.\d+)?\s*"),
}
"""Patterns of numbers with a sign between thousands, by that sign. In India 12,34,567 is one."""
_BETWEEN = re.compile(rf"(?<=\d)[{GROUPING}](?=\d{{3}}(?!\d))")
"""Pattern of a blank or an apostrophe between thousands."""
_BELOW_1 = re.compile(r"[-+]?0")
_BELOW_1000 = re.compile(r"[-+]?\d{1,3}")
_UNITS = re.compile(rf"^[A-Z]{{3}}(?=[{BLANKS}]*[-+\d])|(?<=\d)[{BLANKS}]*{UNIT}$")
"""Pattern of a unit before a number or after it."""


def signs_of_numbers(columns: Sequence[Sequence[str]], separator: str, known: Signs) -> Signs:
    """Return the signs in the numbers of columns. Those known from another table are kept."""
    for sign, other in () if known.decimal else ((".", ","), (",", ".")):
        if (sign != separator) and _divides_thousands(columns, sign, is_clear=separator != ","):
            return Signs(other, sign)
    cells = [cell for column in columns for cell in column if cell]
    plain = [bare(cell) for cell in cells if not _UNITS.search(cell.strip(BLANKS))]
    cells = [*map(bare, cells)]
    # Words with units, such as 1.5 l in a name, count only if no plain number has a sign.
    are_told = any({*cell} & {*",."} and NUMBER.fullmatch(cell) for cell in plain)
    decimal = _decimal(plain if are_told else cells, separator, known.decimal)
    thousands = known.thousands if known.decimal == decimal else ""
    sign = "." if decimal == "," else ","
    if any(sign in cell and GROUPS_BY[sign].fullmatch(cell) for cell in cells):
        thousands = sign
    return Signs(decimal, thousands)


def _divides_thousands(columns: Sequence[Sequence[str]], sign: str, *, is_clear: bool) -> bool:
    """Return whether numbers have this sign between thousands, and none as decimal sign.

    Args:
        columns: cells of each column.
        sign: sign to check.
        is_clear: whether numbers with one sign are enough. Where commas separate columns, points
            are mostly decimal.
    """
    said = [_said_of(column, sign, is_clear=is_clear) for column in columns]
    return True in said and False not in said


def _said_of(column: Sequence[str], sign: str, *, is_clear: bool) -> bool | None:
    """Return whether the sign is between thousands in this column; None if it does not say.

    It is so if a number has it twice, or if three digits follow it in all numbers, and numbers
    without it are whole and below 1000.
    """
    cells = [bare(cell) for cell in column if cell and cell not in MISSING_WORDS]
    with_sign = [cell for cell in cells if sign in cell]
    grouped = [*filter(GROUPS_BY[sign].fullmatch, with_sign)]
    others = [x for x in with_sign if NUMBER.fullmatch(x) and not GROUPS_BY[sign].fullmatch(x)]
    rest = [cell for cell in cells if sign not in cell and NUMBER.fullmatch(cell)]
    if len(grouped) + len(others) + len(rest) < NEARLY_ALL * len(cells):
        return None  # of words, such as addresses and versions
    if others or any(map(_BELOW_1.match, grouped)):
        return False  # it is the decimal sign here
    are_small = is_clear and bool(rest) and all(map(_BELOW_1000.fullmatch, rest))
    is_told = any(cell.count(sign) > 1 for cell in grouped) or (bool(grouped) and are_small)
    return True if is_told else None


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
