"""Exploring: proposals without the points of a small space that are learners already.

On a small space samplers soon propose the same points again, and never reach some of the others.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import BaseSampler
from optuna.samplers import GridSampler
from optuna.samplers import PartialFixedSampler
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from optuna_daub.study.known import Known
from optuna_daub.study.learner import Learner
from optuna_daub.study.records import point
from optuna_daub.study.records import word
from optuna_daub.study.spaces import distinct
from optuna_daub.study.spaces import stored


MOST_VALUES = 100
"""Largest number of values of a parameter that are listed. With more, some are drawn."""
N_DRAWN = 10
"""Number of values drawn of a parameter that has more. Not tuned."""


class Exploring(BaseSampler):
    """Propose another sampler's points, but replace values that lead only to known points."""

    def __init__(self, base: BaseSampler, known: Known) -> None:
        self._base = base
        self._known = known
        self._fixed = fixed_by(base)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the other sampler's space."""
        return self._base.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the other sampler's proposal for parameters on a continuous range."""
        proposed = self._base.sample_relative(study, trial, search_space)
        return {n: v for n, v in proposed.items() if not _is_discrete(search_space[n])}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value that leads to a new point. If there is none, or the other sampler fixes
        the parameter, return the other sampler's value."""
        if param_name in self._fixed:
            return self._base.sample_independent(study, trial, param_name, param_distribution)
        known = _points(self._known, frozenset({trial.number}))
        so_far = point(trial.params, trial.distributions)
        values = _values(param_distribution)
        if not values and _is_discrete(param_distribution):
            # A sampler that has converged would repeat its best point for ever.
            drawn = RandomSampler(seed=trial.number).sample_independent
            values = [drawn(study, trial, param_name, param_distribution) for _ in range(N_DRAWN)]
        ways = ((x, {**so_far, param_name: word(x, param_distribution)}) for x in values)
        news = [x for x, way in ways if not _is_explored(way, known, self._fixed)]
        if news:
            return random.Random(trial.number).choice(news)
        return self._base.sample_independent(study, trial, param_name, param_distribution)


def fixed_by(sampler: BaseSampler) -> Mapping[str, Any]:
    """Return the values that a sampler or an inner one fixes, by the parameter's name.

    An outer sampler's value counts, as in Optuna, which keeps both attributes private.
    """
    within = getattr(sampler, "_base_sampler", None)
    fixed = {} if within is None else {**fixed_by(within)}
    return fixed | sampler._fixed_params if isinstance(sampler, PartialFixedSampler) else fixed


def fixed_text(sampler: BaseSampler) -> str:
    """Return what a sampler fixes as text; empty if nothing.

    It has the fixed values, and the digest of a grid.
    """
    fixed = fixed_by(sampler)
    within: BaseSampler | None = sampler
    while not isinstance(within, GridSampler | None):
        within = getattr(within, "_base_sampler", None)
    grid = "" if within is None else f"{zlib.crc32(repr(within._search_space).encode()):x}"
    return (repr(sorted(fixed.items())) if fixed else "") + grid


def has_explored(known: Known, fixed: Mapping[str, Any]) -> bool:
    """Return whether there is a learner for every point of the search space.

    Only points with the fixed values count (see `fixed_by`).
    """
    # A learner before its first training may not have all its parameters yet.
    begun = frozenset(i for i in known.busy() if not known.curves[i].observations)
    return _is_explored({}, _points(known, begun), fixed)


def _points(known: Known, but_for: frozenset[int]) -> list[Learner]:
    return [known.learners[i] for i in sorted(known.curves, reverse=True) if i not in but_for]


def _is_explored(
    so_far: Mapping[str, str],
    known: Sequence[Learner],
    fixed: Mapping[str, Any],
) -> bool:
    """Return whether all points that start with the given parameters are known.

    The known points show which parameters there are. So a branch is unexplored if no known point
    is in it, or if one of its parameters has infinitely many values.

    Args:
        so_far: the first parameters of the branch, as text.
        known: all learners, the newest first.
        fixed: the only values of some parameters.
    """
    inside = [other for other in known if so_far.items() <= other.words.items()]
    if not inside:
        return False
    longest = max(inside, key=lambda other: len(other.words))
    following = next((name for name in longest.words if name not in so_far), None)
    if following is None:
        return True
    # A range may depend on the parameters before it: that of the newest learner inside counts.
    space = next(a.distributions[following] for a in inside if following in a.distributions)
    values = [stored(fixed[following], space)] if following in fixed else _values(space)
    return bool(values) and all(
        _is_explored({**so_far, following: word(value, space)}, inside, fixed) for value in values
    )


def _is_discrete(distribution: BaseDistribution) -> bool:
    """Return whether a parameter has finitely many values."""
    return not isinstance(distribution, FloatDistribution) or distribution.step is not None


def _values(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a parameter; none if there are too many."""
    if isinstance(distribution, CategoricalDistribution):
        return [*distinct(distribution.choices)]
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    if distribution.single():
        return [distribution.low]
    if distribution.step is None:
        return []
    ends = distribution.low, distribution.high, distribution.step
    low, high, step = (Decimal(str(end)) for end in ends)
    count = int((high - low) / step) + 1
    if count > MOST_VALUES:
        return []
    kind = type(distribution.low)
    return [kind(low + place * step) for place in range(count)]
