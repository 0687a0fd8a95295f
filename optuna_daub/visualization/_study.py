"""Facts about a study that plots need in addition to its results."""

from __future__ import annotations

from typing import NamedTuple

import optuna
from optuna.study import StudyDirection

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study.log import check_study
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


class Rules(NamedTuple):
    """The rule of a study, and the direction of its scores."""

    policy: Policy
    sign: int
    """1 if larger scores are better, else -1. A user's score is the core's score times this."""

    @property
    def full_size(self) -> int:
        """The size of the whole training set, in examples."""
        return self.policy.sizes[-1]


def rules_of(study: optuna.Study) -> Rules:
    """Return the rule of a study that has one."""
    return Rules(policy_of(study), sign_of(study))


def sign_of(study: optuna.Study) -> int:
    """Return 1 for a study that maximizes, -1 for one that minimizes."""
    check_study(study)
    return -1 if study.direction == StudyDirection.MINIMIZE else 1


def pool_of(study: optuna.Study) -> Pool:
    """Return the pool of all learners, in which larger scores are better."""
    return looking(study).pool(rules_of(study).policy, is_at_work=False)
