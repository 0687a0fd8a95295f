"""scikit-learn's own conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from optuna_daub.learners import AdaBoostRSClassifier
from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import SpeedBoostClassifier


def expected_failures(estimator: Any) -> dict[str, str]:
    """Name the checks that shuffle the rows and then expect the same random draws.

    What they ask for does hold for rows in the same order: test_adaptive.py, and scikit-learn
    lists its own bagging and boosting among the exceptions too.
    """
    if not isinstance(estimator, AdaptiveSamplingBoostClassifier):
        return {}
    reason = "draws belong to places in the order of the rows"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [
        BudgetedAdaBoostClassifier(n_estimators=15),
        AdaBoostRSClassifier(n_estimators=15),
        SpeedBoostClassifier(n_estimators=15),
        AdaptiveSamplingBoostClassifier(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
