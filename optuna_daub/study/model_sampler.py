"""The default base sampler: proposals by the model that also allocates the training data."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.core.prices import table_of
from optuna_daub.core.proposals import propose


class ModelSampler(BaseSampler):
    """Propose the point whose training promises most per second.

    Parameters that the model does not know are drawn at random: all of them before the first
    score, and those of a branch in which no learner was yet.
    """

    def __init__(
        self,
        random: BaseSampler,
        pool: Pool,
        policy: Policy,
        space: dict[str, BaseDistribution],
        seed: int,
    ) -> None:
        """Propose for one trial.

        Args:
            random: sampler that draws at random.
            pool: the pool as the trial's worker sees it.
            policy: the study's rule.
            space: distributions of the parameters of all learners.
            seed: seed of the candidates.
        """
        self._random = random
        self._pool = pool
        self._policy = policy
        self._space = space
        self._seed = seed

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the distributions of all parameters that any learner has."""
        del study, trial
        return {name: one for name, one in self._space.items() if not one.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of the best candidate; nothing before the first score."""
        del study, trial
        if not search_space or not self._pool.once(table_of).is_scored.any():
            return {}
        found = propose(self._pool, self._policy.prices, self._seed)
        return {name: value for name, value in found.items() if name in search_space}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a value drawn at random."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)
