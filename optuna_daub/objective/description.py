"""Descriptions of values that are the same in each process.

Two searches are the same if their descriptions are.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.compose import make_column_selector
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.model_selection import BaseShuffleSplit


LONGEST = 4000
"""Characters of a description that are stored. Some databases hold 65,535 for all of them."""

_BY_ATTRIBUTES = _BaseScorer, BaseCrossValidator, BaseShuffleSplit, make_column_selector
"""Classes of scikit-learn without `get_params`, which are described by their attributes."""

_NO_MATTER = frozenset({"n_jobs", "verbose"})
"""Parameters of scikit-learn's estimators that do not change what is learnt."""


def stable(value: Any, left_out: Set[tuple[int, str]] = frozenset()) -> str:
    """Return a description of a value: no addresses in it, and the same for equal values.

    Functions and classes are described by their names only, objects of an unknown kind by their
    class.

    >>> stable({"C": np.float64(0.5), "weights": np.ones(3), "by": np.log})
    "{'C': 0.5, 'by': numpy.log, 'weights': array((3,), '<f8', checksum 2024566689)}"

    Args:
        value: anything.
        left_out: parameters of estimators, by the estimator's `id` and their names, that are not
            compared; without a name the whole estimator.
    """

    def of_parts(values: Iterable[Any]) -> list[str]:
        return [stable(part, left_out) for part in values]

    def call(function: str, places: Iterable[Any], names: Mapping[str, Any]) -> str:
        by_name = (f"{name}={stable(names[name], left_out)}" for name in sorted(names))
        return f"{function}({', '.join([*of_parts(places), *by_name])})"

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bytes | int | float | complex | range):
        return repr(value)
    if isinstance(value, Mapping):
        items = zip(of_parts(value), of_parts(value.values()), strict=True)
        return "{" + ", ".join(sorted(f"{key}: {part}" for key, part in items)) + "}"
    if isinstance(value, list):
        return f"[{', '.join(of_parts(value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(of_parts(value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Set):
        return "{" + ", ".join(sorted(of_parts(value))) + "}"
    if isinstance(value, np.ndarray):
        content = stable(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
        return f"array({value.shape}, {value.dtype.str!r}, checksum {crc32(content)})"
    if isinstance(value, partial):
        return call("functools.partial", (value.func, *value.args), value.keywords)
    if isinstance(value, _BY_ATTRIBUTES):
        return call(_name(type(value)), (), vars(value))
    if hasattr(value, "get_params") and not isinstance(value, type):
        if (id(value), "") in left_out:
            return "..."
        params = value.get_params(deep=False).items()
        left = _NO_MATTER | {name for owner, name in left_out if owner == id(value)}
        return call(_name(type(value)), (), {n: given for n, given in params if n not in left})
    return _name(value) if hasattr(value, "__name__") else f"{_name(type(value))} object"


def described(estimator: Any, searched: Iterable[str]) -> str:
    """Return a description of an estimator without the parameters that are searched.

    >>> from sklearn.preprocessing import Normalizer
    >>> described(Normalizer(), []), described(Normalizer(), ["copy", "norm"])
    ... # doctest: +NORMALIZE_WHITESPACE
    ("sklearn.preprocessing._data.Normalizer(copy=True, norm='l2')",
     'sklearn.preprocessing._data.Normalizer()')
    """
    parts = {"": estimator, **estimator.get_params(deep=True)}
    left_out = set()
    for name in searched:
        owner, _, of_owner = name.rpartition("__")
        left_out |= {(id(parts.get(owner)), of_owner), (id(parts.get(name)), "")}
    return stable(estimator, left_out)


def bounded(text: str) -> str:
    """Return a text; if it is too long to be stored, its first characters and a checksum."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}... checksum {crc32(text.encode())}"


def _name(value: Any) -> str:
    module = str(getattr(value, "__module__", None) or type(value).__module__)
    name = getattr(value, "__qualname__", value.__name__)
    # multiprocessing gives the script this name in a process that it has spawned.
    return f"{module.replace('__mp_main__', '__main__')}.{name}"
