"""Facts about a study that plots need in addition to its results."""

from __future__ import annotations

import optuna

from optuna_daub.core.pool import Pool
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of


def sign_of(study: optuna.Study) -> int:
    """Return 1 for a study that maximizes, -1 for one that minimizes."""
    return worker_of(study).sign


def pool_of(study: optuna.Study) -> Pool:
    """Return the pool of all learners, in which larger scores are better."""
    return looking(study).pool(policy_of(study), is_at_work=False)
