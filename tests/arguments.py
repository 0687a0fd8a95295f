"""Cases of public callables: their arguments are taken for what they mean, or refused.

A refusal is a sentence that names the argument, its rule and the value; no input takes long.
"""

from __future__ import annotations

import math
import reprlib
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from numbers import Real
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.naive_bayes import GaussianNB

import optuna_daub as daub
from optuna_daub import core
from optuna_daub.core.checks import brief


Rule = Callable[[Any], bool]


LONGEST = 1.5
"""Seconds of CPU that any input may take."""


LONGEST_REFUSAL = 1000
"""Characters of any refusal."""


BELOW_INFINITY = sys.float_info.max


class Hostile:
    """Neither a text nor a number, and no `repr` either: each attempt raises its own error."""

    def __repr__(self) -> str:
        raise RuntimeError("hostile")

    __str__ = __repr__
    __index__ = __float__ = __repr__  # type: ignore[assignment]


NAMES = ("seconds", "examples", "auto",
         "verified", "first", "gradient_ci", "ucb", "hoeffding", "massart", "accuracy", "r2",
         "smoothed", "madaboost")  # fmt: skip


ODD = (
    None, True, False, np.True_, 0, 1, 2, 3, 5, -1, 100, 1001, 10**9, 2**32, 10**400, -(10**400),
    0.5, 1.5, 2.0, -0.25, 0.0, 1e-320, 1.0000001, 1e15, 1e300, -1e300, math.nan, math.inf,
    -math.inf, np.int64(3), np.float32(0.5), np.float64(0.5), np.array(3), np.array([0.5]),
    np.array([2, 4, 8]),
    np.timedelta64(3, "s"), Hostile(), [*range(10**5)], "x" * 10**5,
    Decimal("0.5"), Fraction(1, 3), 1j, "", "yes", "0.5", "5", b"5", [], [3], [1, 2, 3],
    [100, 200, 400, 800], (150, 100), [[1, 2], [3]], [math.nan], ["a"], range(1, 10**6), {},
    {"a": 1}, {1, 2, 3}, frozenset({1}), int, object(), len, math, optuna.samplers.RandomSampler,
    optuna.samplers.RandomSampler(), optuna.pruners.NopPruner(), GaussianNB, GaussianNB(),
    daub.DAUBPruner(max_resource=4000), core.SuccessiveHalving((500, 1000, 2000)), *NAMES,
)  # fmt: skip
"""Values that people and programs pass, by mistake or not."""


NO_NUMBERS = bool | np.bool_ | np.timedelta64
"""Kinds that Python or NumPy calls numbers."""


def whole(least: int = 1, most: float = math.inf) -> Rule:
    """Whole numbers of a range; arrays of one, without a dimension, can be used as one."""

    def is_met(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            value = value[()] if value.ndim == 0 else None
        is_one = isinstance(value, Integral) and not isinstance(value, NO_NUMBERS)
        return is_one and least <= value <= most

    return is_met


def real(least: float = -math.inf, most: float = math.inf, *, is_open: bool = False) -> Rule:
    """Numbers of a range; with `is_open` both ends are out of it."""

    def is_met(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, NO_NUMBERS):
            return False
        if isinstance(value, float | np.floating):
            value = float(value)
        return least < value < most if is_open else least <= value <= most

    return is_met


def cast(value: Any) -> bool:
    """Return whether a value can be made a float, as scores can."""
    try:
        return not getattr(value, "shape", ()) and isinstance(float(value), float)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return False


def flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def one_of(*names: str) -> Rule:
    return lambda value: isinstance(value, str) and value in names


def none_or(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def a_list(rule: Rule, least: int = 0) -> Rule:
    """Lists and the like, of so many at least."""
    kinds = list | tuple | set | frozenset | np.ndarray

    def is_met(value: Any) -> bool:
        if not isinstance(value, kinds) or (isinstance(value, np.ndarray) and value.ndim != 1):
            return False
        return len(value) >= least and all(map(rule, value))

    return is_met


def a(*kinds: type) -> Rule:
    return lambda value: isinstance(value, kinds)


def anything(value: Any) -> bool:
    return True


@dataclass(frozen=True)
class Case:
    """A public callable, arguments that it takes, and what each of them may be."""

    call: Callable[..., object]
    valid: Mapping[str, Any]
    rules: Mapping[str, Rule]
    tables: frozenset[str] = frozenset()
    """Those whose values need not be shown, since they may be large."""
    counts: frozenset[str] = frozenset()
    """Those that say how much is to be done: more than 100 may take its time, and is not tried."""


def check(name: str, given: Mapping[str, Any], case: Case) -> None:
    """Assert that the callable takes what is given for what it means, or says why not."""
    if any(case.rules[some](given[some]) and given[some] > 100 for some in case.counts & {*given}):
        return
    begun = time.thread_time()
    refusal: str | None = None
    try:
        case.call(**{**case.valid, **given})
    except (ValueError, TypeError) as error:
        refusal = str(error)
    spent = time.thread_time() - begun
    assert spent < LONGEST, f"{name} took {spent:.1f} s for {given}"
    if refusal is None:
        wrong = {argument: v for argument, v in given.items() if not case.rules[argument](v)}
        assert not wrong, f"{name} takes {wrong}"
        return
    assert len(refusal) <= LONGEST_REFUSAL, f"{name} says {len(refusal):,} characters"
    assert "\n" not in refusal, f"{name} says more than one line: {refusal}"
    told = [argument for argument in given if f"`{argument}" in refusal]
    assert told, f"{name} names no argument of {given}: {refusal}"
    if case.tables & {*told}:
        return
    shown = (form in refusal for v in given.values() for form in forms(v) if form)
    assert any(shown), f"{name} does not show {given}: {refusal}"


def forms(value: Any) -> Iterator[str]:
    """Yield how a message may show a value, the usual forms first: some take long to write."""
    yield brief(value)
    yield reprlib.repr(value)  # which sort keys, and shorten
    if isinstance(value, Hostile):
        return
    yield repr(value)
    yield str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        yield f"{value:,}"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(
        value, list | tuple | set | frozenset | bytes | dict
    ):  # or the one that is wrong
        yield from (repr([*value]), repr((*value,)), *map(repr, value))
    if isinstance(value, range):
        # all but a known one; the first
        yield from (reprlib.repr([*value][1:]), repr(value[0]))
    if isinstance(value, Fraction):
        yield str(float(value))


def up_to(owner: object, name: str, call: Callable[..., object], **given: Any) -> None:
    """Call something up to the first call of a function, which takes its place and ends it."""

    class Ready(Exception):
        """The arguments were taken."""

    def ready(*_: Any, **__: Any) -> None:
        raise Ready

    with pytest.MonkeyPatch.context() as patch, suppress(Ready):
        patch.setattr(owner, name, ready)
        call(**given)
