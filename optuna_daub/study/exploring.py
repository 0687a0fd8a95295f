"""Exploring: proposals that leave out the points of a small space that are learners already.

Samplers that learn, or draw at random, soon repeat themselves there, and never come to some of
them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from typing import TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from optuna_daub.study.known import Known
from optuna_daub.study.records import point
from optuna_daub.study.records import word
from optuna_daub.study.spaces import distinct


MOST_VALUES = 100
"""Values of one parameter: in larger spaces a repeat is chance, and a list of them long."""

Point: TypeAlias = Mapping[str, str]
"""The values of a learner's parameters by name, in the order in which they were suggested, each as
text; equal values have equal texts."""


class Exploring(BaseSampler):
    """Propose what another sampler proposes, unless a parameter leads to a known point only."""

    def __init__(self, base: BaseSampler, known: Known) -> None:
        self._base = base
        self._known = known

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the other sampler's space."""
        return self._base.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the other sampler's proposal, except for parameters of a few values."""
        proposed = self._base.sample_relative(study, trial, search_space)
        return {n: v for n, v in proposed.items() if not _values(search_space[n])}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value that leads to a new point, or else the other sampler's."""
        spaces, known = _points(self._known, frozenset({trial.number}))
        spaces[param_name] = param_distribution
        so_far = point(trial.params, trial.distributions)
        news = [
            value
            for value in _values(param_distribution)
            if not _is_explored(
                spaces, {**so_far, param_name: word(value, param_distribution)}, known
            )
        ]
        if news:
            return random.Random(trial.number).choice(news)
        return self._base.sample_independent(study, trial, param_name, param_distribution)


def has_explored(known: Known) -> bool:
    """Return whether there is a learner for every point of the search space."""
    # One that is about to be trained may not have been given all its parameters.
    begun = frozenset(i for i in known.busy() if not known.curves[i].observations)
    spaces, points = _points(known, begun)
    return _is_explored(spaces, {}, points)


def _points(
    known: Known, but_for: frozenset[int]
) -> tuple[dict[str, BaseDistribution], list[Point]]:
    others = [known.learners[i] for i in known.curves if i not in but_for]
    spaces = {name: space for other in others for name, space in other.distributions.items()}
    return spaces, [other.words for other in others]


def _is_explored(
    spaces: Mapping[str, BaseDistribution], so_far: Point, known: Sequence[Point]
) -> bool:
    """Return whether all points that start with some parameters are known.

    The known points tell what parameters there are: a branch into which none of them leads is
    unexplored, and one of infinitely many values stays so.
    """
    inside = [other for other in known if so_far.items() <= other.items()]
    if not inside:
        return False
    following = next((name for name in max(inside, key=len) if name not in so_far), None)
    if following is None:
        return True
    values = _values(spaces[following])
    return bool(values) and all(
        _is_explored(spaces, {**so_far, following: word(value, spaces[following])}, inside)
        for value in values
    )


def _values(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a parameter, none if there are too many."""
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
