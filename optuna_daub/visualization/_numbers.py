"""Numbers in texts, with as many digits as tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence


def digits_of(scores: Sequence[float]) -> int:
    """Return the number of digits that show a thousandth of the scores' range.

    It is at least 4.

    >>> digits_of([0.5, 0.9]), digits_of([1_234_560.0, 1_234_569.0])
    (4, 9)
    """
    span, size = max(scores) - min(scores), max(map(abs, scores))
    if not (span and math.isfinite(span)):
        return 4
    return min(max(4, 3 + _place(size) - _place(span)), 15)


def said(score: float, *others: float) -> str:
    """Return a score with digits that tell it from the others, at least four.

    >>> said(0.875), said(0.9999, 0.9995), said(1_234_561.25, 1_234_560.75)
    ('0.8750', '0.999900', '1,234,561.250')
    >>> said(1.25e-7), said(112_347_964_414.3), said(-0.0)
    ('1.25e-07', '112,347,964,414', '0')
    """
    digits = digits_of([score, *others])
    if not 1e-4 <= abs(score) < 1e15:
        return f"{score + 0.0:.{digits}g}"  # never -0
    return f"{score:,.{max(0, digits - 1 - _place(score))}f}"


def _place(value: float) -> int:
    """Return the place of the first digit: 0 for units, -1 for tenths."""
    return math.floor(math.log10(abs(value)))


def amount(value: float) -> str:
    """Return an amount, such as of seconds, without decimals unless it is small.

    >>> amount(12_345.6), amount(8.0), amount(0.0256)
    ('12,346', '8', '0.026')
    """
    return f"{value:.2g}" if value < 10 and not value.is_integer() else f"{value:,.0f}"
