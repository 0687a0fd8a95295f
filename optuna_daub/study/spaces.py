"""Distributions of Optuna as the core's search spaces."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution

from optuna_daub.core.space import Dimension
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


def dimension_of(distribution: BaseDistribution) -> Dimension:
    """Return the core's form of a distribution.

    >>> dimension_of(IntDistribution(1, 64, log=True))
    Range(low=1, high=64, is_log=True, step=None, is_whole=True)
    """
    if isinstance(distribution, CategoricalDistribution):
        return Words(distinct(distribution.choices))
    if isinstance(distribution, IntDistribution):
        step = distribution.step if distribution.step > 1 else None
        return Range(distribution.low, distribution.high, distribution.log, step, is_whole=True)
    assert isinstance(distribution, FloatDistribution)
    return Range(distribution.low, distribution.high, distribution.log, distribution.step)


def distinct(choices: Sequence[Any]) -> tuple[Any, ...]:
    """Return the choices that Optuna tells apart; of equal ones it stores the first.

    >>> distinct([None, False, 0, 1, True, "1"])
    (None, False, 1, '1')
    """
    return tuple(one for place, one in enumerate(choices) if choices.index(one) == place)


def holds(distribution: BaseDistribution, value: Any) -> bool:
    """Return whether a parameter with this distribution can have a value.

    >>> holds(IntDistribution(1, 64), 65), holds(CategoricalDistribution(["a"]), "b")
    (False, False)
    """
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (TypeError, ValueError):
        return False


def widened(space: Space, given: Iterable[Mapping[str, BaseDistribution]]) -> Space:
    """Return a space that also contains these distributions.

    It is the same object if it already does. If the range of a parameter changes between trials,
    the space has the widest range. If its kind changes, the latest kind counts.
    """
    known = dict(space.dimensions)
    before = dict(known)
    for distributions in given:
        for name, distribution in distributions.items():
            new, old = dimension_of(distribution), known.get(name)
            known[name] = new if old is None or old == new else _united(old, new)
    if known == before:
        return space
    return Space(tuple(sorted(known.items())))


def _united(old: Dimension, new: Dimension) -> Dimension:
    if isinstance(old, Words) and isinstance(new, Words):
        return Words(distinct((*old.choices, *new.choices)))
    if isinstance(old, Range) and isinstance(new, Range):
        step = new.step if new.step == old.step and new.low == old.low else None
        is_whole = old.is_whole and new.is_whole
        low, high = min(old.low, new.low), max(old.high, new.high)
        return Range(low, high, old.is_log and new.is_log, step, is_whole)
    return new


def stored(value: Any, distribution: BaseDistribution) -> Any:
    """Return a fixed value as Optuna stores it: 2 is 2.0 for a float."""
    try:
        return distribution.to_external_repr(distribution.to_internal_repr(value))
    except ValueError:  # no such choice, so no learner has it
        return value
