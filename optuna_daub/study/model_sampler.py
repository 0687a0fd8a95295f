"""The default base sampler: proposals by the model that also allocates the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.core.prices import table_of
from optuna_daub.core.proposals import propose


@dataclass(eq=False)
class ModelSampler(BaseSampler):
    """Propose the point whose training promises most per second.

    Parameters that the model does not know are drawn at random: all of them before the first
    score, and those of a branch in which no learner was yet.
    """

    random: BaseSampler
    """Sampler that draws at random."""
    pool: Pool
    """The pool as the trial's worker sees it."""
    policy: Policy
    """The study's rule."""
    space: dict[str, BaseDistribution]
    """Distributions of the parameters of all learners."""
    seed: int
    """Seed of the candidates."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the distributions of all parameters that any learner has."""
        del study, trial
        return {name: one for name, one in self.space.items() if not one.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of the best candidate; nothing before the first score."""
        del study, trial
        if not search_space or not self.pool.once(table_of).is_scored.any():
            return {}
        found = propose(self.pool, self.policy.prices, self.seed)
        return {name: value for name, value in found.items() if name in search_space}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value drawn at random."""
        return self.random.sample_independent(study, trial, param_name, param_distribution)
