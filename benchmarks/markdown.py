"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers.

    >>> print(table(["rule", "n"], [["Massart", "30"]]))
    | rule | n |
    |---|---:|
    | Massart | 30 |
    """
    rule = "|---|" + "---:|" * (len(header) - 1)
    return "\n".join([_line(header), rule, *map(_line, lines)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
