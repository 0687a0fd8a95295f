"""Points of a search space: when two are the same, and which of a small space are still to come.

Samplers that learn, or draw at random, soon repeat themselves where there are a few points only,
and never come to some of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from typing import TypeAlias

from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution

from optuna_daub.study.records import word
from optuna_daub.study.spaces import distinct


MOST_VALUES = 100
"""Of one parameter: in larger spaces a repeat is chance, and to list all points takes long."""

Point: TypeAlias = Mapping[str, str]
"""The values of a learner's parameters by name, in the order in which they were suggested, each as
text; equal values have equal texts."""


def unexplored(
    name: str,
    spaces: Mapping[str, BaseDistribution],
    so_far: Point,
    known: Sequence[Point],
    seed: int,
) -> tuple[Any, ...]:
    """Return the value of a parameter that leads to a new point; empty if none is known.

    Args:
        name: of the parameter.
        spaces: the distribution of each parameter, this one among them.
        so_far: the parameters that were suggested before it.
        known: all points that there are.
        seed: decides between several values.

    >>> from optuna.distributions import IntDistribution
    >>> unexplored("x", {"x": IntDistribution(1, 3)}, {}, [{"x": "1"}, {"x": "3"}], seed=0)
    (2,)
    """
    values = [
        value
        for value in _values(spaces[name])
        if not is_explored(spaces, {**so_far, name: word(value, spaces[name])}, known)
    ]
    return (random.Random(seed).choice(values),) if values else ()


def is_explored(
    spaces: Mapping[str, BaseDistribution], so_far: Point, known: Sequence[Point]
) -> bool:
    """Return whether all points that begin with some parameters are known.

    What parameters there are is learnt from the known points: a branch into which none of them
    leads is unexplored, and one of infinitely many values stays so.

    Args:
        spaces: the distribution of each parameter of the known points, as far as it is known.
        so_far: where the branch begins.
        known: all points that there are.
    """
    inside = [other for other in known if so_far.items() <= other.items()]
    if not inside:
        return False
    longest = max(inside, key=len)
    following = next((name for name in longest if name not in so_far), None)
    if following is None:
        return True
    if following not in spaces:
        return False
    words = [word(value, spaces[following]) for value in _values(spaces[following])]
    return bool(words) and all(
        is_explored(spaces, {**so_far, following: word}, inside) for word in words
    )


def is_short(distribution: BaseDistribution) -> bool:
    """Return whether all values of a parameter can be listed."""
    return bool(_values(distribution))


def _values(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a parameter, none where there are too many."""
    if isinstance(distribution, CategoricalDistribution):
        return [*distinct(distribution.choices)]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    if distribution.single():
        return [distribution.low]
    if distribution.step is None:
        return []
    low, high, step = (
        Decimal(str(x)) for x in (distribution.low, distribution.high, distribution.step)
    )
    count = int((high - low) / step) + 1
    if count > MOST_VALUES:
        return []
    kind = type(distribution.low)
    return [kind(low + place * step) for place in range(count)]
