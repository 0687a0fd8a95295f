"""Checks of arguments: each returns the converted value, or raises a ValueError that names it.

A wrong type is a ValueError too.
"""

from __future__ import annotations

import math
import operator
import re
import reprlib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from numbers import Real
from typing import TypeVar

import numpy as np


_Choice = TypeVar("_Choice")


MOST_LEARNERS = 10**9
"""Largest number of learners in a closed pool; databases store trial numbers in 32 bits."""


class _Repr(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:  # Python writes no more than 4,300 digits
            return f"<int of {x.bit_length():,} bits>"


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 200  # characters


def brief(value: object) -> str:
    """Return a value as a message shows it: in one line, cut if it is long.

    A value whose `repr` fails is shown by its type.

    >>> brief("examples"), brief([*range(100_000)]), brief(np.eye(2))
    ("'examples'", '[0, 1, 2, 3, 4, 5, ...]', 'array([[1., 0.], [0., 1.]])')
    """
    return re.sub(r"\s*\n\s*", " ", _REPR.repr(value))


def text_of(value: object) -> str:
    """Return `str(value)`; if that fails, the value as `brief` shows it.

    >>> text_of("price"), text_of(2019)
    ('price', '2019')
    """
    try:
        return str(value)
    except Exception:
        return brief(value)


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int.

    >>> whole_number("n_learners", 5)
    5

    Raises:
        ValueError: if it is not a whole number of 64 bits; True and 5.0 are not.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        found = operator.index(value)  # type: ignore[arg-type]
    except Exception:  # also of a class whose `__index__` fails
        raise ValueError(f"`{name}` must be a whole number, but got {brief(value)}.") from None
    if abs(found) >= 2**63:  # of NumPy's and databases' integers
        raise ValueError(f"`{name}` must be between -2^63 and 2^63, but got {brief(found)}.")
    return found


def checked_seed(value: object) -> int:
    """Return a seed that the generators of NumPy and scikit-learn accept.

    Raises:
        ValueError: if it is not a whole number from 0 to 2**32 - 1.
    """
    try:
        seed = whole_number("seed", value)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be an int from 0 to 2**32 - 1, but got {brief(value)}.")
    return seed


def number(name: str, value: object) -> float:
    """Return `value` as a float.

    >>> number("tolerance", 0)
    0.0

    Raises:
        ValueError: if it is not a number; True and "5" are not.
    """
    if isinstance(value, Real) and not isinstance(value, bool | np.timedelta64):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"`{name}` must be below 1e308, but got {brief(value)}.") from None
    raise ValueError(f"`{name}` must be a number, but got {brief(value)}.")


def checked_n_learners(n_learners: object) -> int | None:
    """Return a number of learners; None for no limit.

    Raises:
        ValueError: if it is not a whole number from 1 to `MOST_LEARNERS`.
    """
    if n_learners is None:
        return None
    count = whole_number("n_learners", n_learners)
    if not 1 <= count <= MOST_LEARNERS:
        rule = "at least 1" if count < 1 else f"at most {MOST_LEARNERS:,}"
        raise ValueError(f"`n_learners` must be {rule}, but got {count}.")
    return count


def seconds_above_0(value: object) -> float:
    """Return the seconds of a search.

    >>> seconds_above_0(5)
    5.0

    Raises:
        ValueError: if it is not a number, not above 0, or infinite.
    """
    if not 0 < (seconds := number("seconds", value)) < math.inf:
        raise ValueError(f"`seconds` must be above 0 and finite, but got {brief(value)}.")
    return seconds


def seconds_between(value: object) -> float:
    """Return the seconds between two drawings, `every`.

    Raises:
        ValueError: if it is not a number, negative, or infinite.
    """
    if not 0 <= (seconds := number("every", value)) < math.inf:
        raise ValueError(f"`every` must be at least 0 seconds and finite, but got {value}.")
    return seconds


def listed(name: str, value: object, of: str) -> list[object]:
    """Return the items of a list, a tuple, a set or an array.

    >>> listed("ignore", ("id", "date"), "columns")
    ['id', 'date']

    Args:
        name: name of the argument.
        value: its value.
        of: the items in words, for the message.

    Raises:
        ValueError: if it is a text or a dict, or cannot be iterated over.
    """
    try:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise TypeError
        return [*value]
    except TypeError:  # also of an array without a dimension
        raise ValueError(f"`{name}` must be a list of {of}, but got {brief(value)}.") from None


def unnamed(what: str, given: Sequence[object], names: Sequence[str]) -> None:
    """Raise a TypeError if arguments that need their names were given by position.

    >>> unnamed("f", (), ("min_resource", "max_resource"))
    >>> unnamed("f", (500, 2800), ("min_resource", "max_resource"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    TypeError: `f` takes its arguments by name: f(min_resource=500, max_resource=2800), but got ...

    Args:
        what: name of the function.
        given: arguments passed by position.
        names: names that the message suggests for them; for a single argument the last one.

    Raises:
        TypeError: if `given` is not empty.
    """
    if not given:
        return
    pairs = zip(names[-len(given) :], given, strict=False)
    meant = [f"{name}={brief(value)}" for name, value in pairs]
    raise TypeError(
        f"`{what}` takes its arguments by name: {what}({', '.join(meant)}), but got "
        f"{what}({', '.join(map(brief, given))})."
    )


def flag(name: str, value: object, *, or_else: str = "") -> bool:
    """Return True or False; anything else, such as 1 or "no", is refused.

    >>> flag("refit", True)
    True

    Raises:
        ValueError: if it is neither; `or_else` names other values that are allowed.
    """
    if not isinstance(value, bool | np.bool_):
        others = f" or {or_else}" if or_else else ""
        raise ValueError(f"`{name}` must be True or False{others}, but got {brief(value)}.")
    return bool(value)


def named(name: str, value: object, choices: Mapping[str, _Choice]) -> _Choice:
    """Return the choice that `value` names.

    >>> named("stop", "first", {"verified": 1, "first": 2})
    2

    Raises:
        ValueError: if no choice has that name.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"`{name}` must be one of {sorted(choices)}, but got {brief(value)}.")
    return choices[value]
