"""Texts that describe values in the same way in every process.

Two searches are the same if their descriptions are.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_selector
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.model_selection import BaseShuffleSplit


MAX_LETTERS = 4000
"""Characters of a description that are stored. Some databases hold 65,535 for all of them."""

_PLAIN = type(None), str, bytes, int, float, complex, range
"""Types whose `repr` has no address in it."""

_BY_ATTRIBUTES = _BaseScorer, BaseCrossValidator, BaseShuffleSplit, make_column_selector
"""Classes of scikit-learn without `get_params`, which are described by their attributes."""

NO_MATTER = frozenset({"n_jobs", "verbose"})
"""Parameters of estimators, and arguments of `fit`, that do not change what is learnt."""


def stable(value: Any, left_out: Set[tuple[int, str]] = frozenset()) -> str:
    """Return a description of a value, the same for equal values in all processes.

    Functions and classes are described by their names only, a lambda by the names in it, objects
    of an unknown kind by their class.

    >>> stable({"C": np.float64(0.5), "weights": np.ones(3), "by": np.log})
    "{'C': 0.5, 'by': numpy.log, 'weights': array((3,), '<f8', checksum 2024566689)}"

    Args:
        value: anything.
        left_out: parameters that are not compared, by the `id` of their estimator and their names;
            without names the whole estimator is left out.
    """
    each = partial(stable, left_out=left_out)
    value = _of_numpy(value)
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{each(k)}: {each(v)}" for k, v in value.items())) + "}"
    if isinstance(value, Set):
        return "{" + ", ".join(sorted(map(each, value))) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(each, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(each, value))}{',' * (len(value) == 1)})"
    if isinstance(value, np.ndarray):
        return f"array({value.shape}, '{value.dtype.str}', checksum {crc32(_content(value))})"
    if isinstance(value, partial):
        arguments = [*map(each, (value.func, *value.args)), *_named(value.keywords, each)]
        return f"functools.partial({', '.join(arguments)})"
    if isinstance(value, _BY_ATTRIBUTES):
        return f"{_name(type(value))}({', '.join(_named(vars(value), each))})"
    if hasattr(value, "get_params") and not isinstance(value, type):
        left = NO_MATTER | {name for owner, name in left_out if owner == id(value)}
        return _of_estimator(value, left, each)
    return _name(value) if hasattr(value, "__name__") else f"{_name(type(value))} object"


def _content(array: NDArray[Any]) -> bytes:
    """Return the content of an array."""
    if not array.dtype.hasobject:
        return array.tobytes()
    # Plain values have the same text in a list, but cell by cell it takes several times as long.
    is_plain = array.dtype == object and {*map(type, array.flat)} <= {*_PLAIN, bool}
    return (repr if is_plain else stable)(array.tolist()).encode()


def _of_numpy(value: Any) -> Any:
    """Return a NumPy scalar as a Python object, and a column or frame as an array."""
    if isinstance(value, np.generic):
        return value.item()
    if not hasattr(value, "__array__") or isinstance(value, type):
        return value
    try:
        return np.asarray(value)
    except Exception:  # a tensor on a GPU; its class is its description
        return value


def _named(arguments: Mapping[str, Any], each: Callable[[Any], str]) -> list[str]:
    """Return named arguments of a call, in the order of their names."""
    return [f"{name}={each(arguments[name])}" for name in sorted(arguments)]


def _of_estimator(estimator: Any, left_out: Set[str], each: Callable[[Any], str]) -> str:
    """Return an estimator's class with its parameters, except those left out. "" leaves out
    all."""
    if "" in left_out:
        return "..."
    params = estimator.get_params(deep=False)
    compared = {name: params[name] for name in params.keys() - left_out}
    return f"{_name(type(estimator))}({', '.join(_named(compared, each))})"


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


def of_arguments(arguments: Any) -> str:
    """Return a description of arguments of `fit`, a mapping or a function.

    >>> of_arguments({"epochs": 3, "model__verbose": True})
    "{'epochs': 3}"
    """
    if isinstance(arguments, Mapping):
        parts = [(name, str(name).rpartition("__")[2]) for name in arguments]
        arguments = {name: arguments[name] for name, last in parts if last not in NO_MATTER}
    return bounded(stable(arguments))


def bounded(text: str) -> str:
    """Return a text. If it is too long to be stored, return its start and a checksum."""
    if len(text) <= MAX_LETTERS:
        return text
    return f"{text[:MAX_LETTERS]}... checksum {crc32(text.encode())}"


def _name(value: Any) -> str:
    module = str(getattr(value, "__module__", None) or type(value).__module__)
    name = getattr(value, "__qualname__", value.__name__)
    if name.endswith("<lambda>") and hasattr(value, "__code__"):
        name = f"{name}({', '.join(value.__code__.co_names)})"
    # multiprocessing gives the script this name in a process that it has spawned.
    return f"{module.replace('__mp_main__', '__main__')}.{name}"
