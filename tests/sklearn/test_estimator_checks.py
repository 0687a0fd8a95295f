"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from optuna.distributions import FloatDistribution
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from optuna_daub.sklearn import DataAllocationSearchCV


SETTINGS = {"n_candidates": 2, "cv": 2, "cost": "examples", "random_state": 0}
quick = partial(DataAllocationSearchCV, **SETTINGS, error_score="raise")


def expected_failures(search: Any) -> dict[str, str]:
    """Name the checks that scikit-learn's own searches are excused from too."""
    if isinstance(search.estimator, LogisticRegression):
        return {}
    return {"check_supervised_y_2d": "Ridge takes targets of two dimensions, and tells by a tag"}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@parametrize_with_checks(
    [
        # Names of tests have it in words; those of SciPy's distributions differ from run to run.
        quick(LogisticRegression(), {"C": FloatDistribution(0.1, 10, log=True)}),
        quick(Ridge(), {"alpha": [0.1, 1.0]}),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
