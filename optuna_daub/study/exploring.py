"""Exploring: proposals that leave out the points of a small space that are learners already.

Samplers that learn, or draw at random, soon repeat themselves there, and never come to some of
them.
"""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from optuna_daub.study.known import Known
from optuna_daub.study.points import Point
from optuna_daub.study.points import is_explored
from optuna_daub.study.points import is_short
from optuna_daub.study.points import unexplored
from optuna_daub.study.records import point


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
        return {n: v for n, v in proposed.items() if not is_short(search_space[n])}

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
        for value in unexplored(param_name, spaces, so_far, known, trial.number):
            return value
        return self._base.sample_independent(study, trial, param_name, param_distribution)


def has_explored(known: Known) -> bool:
    """Return whether there is a learner for every point of the search space."""
    # One that is about to be trained may not have been given all its parameters.
    begun = frozenset(i for i in known.busy() if not known.curves[i].observations)
    spaces, points = _points(known, begun)
    return is_explored(spaces, {}, points)


def _points(
    known: Known, but_for: frozenset[int]
) -> tuple[dict[str, BaseDistribution], list[Point]]:
    others = [known.learners[i] for i in known.curves if i not in but_for]
    spaces = {name: space for other in others for name, space in other.distributions.items()}
    return spaces, [other.words for other in others]
