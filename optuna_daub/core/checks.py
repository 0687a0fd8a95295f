"""Checks of arguments: each returns the converted value, or raises a ValueError that names it.

A wrong type is a ValueError too.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from collections.abc import Sequence
from numbers import Real
from typing import TypeVar

import numpy as np


_Choice = TypeVar("_Choice")


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int.

    >>> whole_number("n_learners", 5)
    5

    Raises:
        ValueError: if it is not a whole number; True and 5.0 are not.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"`{name}` must be a whole number, but got {value!r}.") from None


def number(name: str, value: object) -> float:
    """Return `value` as a float.

    >>> number("tolerance", 0)
    0.0

    Raises:
        ValueError: if it is not a number; True and "5" are not.
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"`{name}` must be below 1e308, but got {value!r}.") from None
    raise ValueError(f"`{name}` must be a number, but got {value!r}.")


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
    meant = [f"{name}={value!r}" for name, value in zip(names[-len(given) :], given, strict=False)]
    raise TypeError(
        f"`{what}` takes its arguments by name: {what}({', '.join(meant)}), but got "
        f"{what}({', '.join(map(repr, given))})."
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
        raise ValueError(f"`{name}` must be True or False{others}, but got {value!r}.")
    return bool(value)


def named(name: str, value: object, choices: Mapping[str, _Choice]) -> _Choice:
    """Return the choice that `value` names.

    >>> named("stop", "first", {"verified": 1, "first": 2})
    2

    Raises:
        ValueError: if no choice has that name.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"`{name}` must be one of {sorted(choices)}, but got {value!r}.")
    return choices[value]
