"""Properties that scorers tell, and their use in the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
from sklearn.metrics import get_scorer
from sklearn.metrics import get_scorer_names
from sklearn.metrics import log_loss
from sklearn.metrics import make_scorer
from sklearn.metrics import mean_pinball_loss
from sklearn.metrics import mean_squared_error

from optuna_daub.learners import sequential_score
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.scoring import checked_scoring
from tests.objective.studies import REGRESSION
from tests.objective.studies import X_REG
from tests.objective.studies import Y_REG
from tests.objective.studies import Witness
from tests.objective.studies import build_linear
from tests.objective.studies import created
from tests.objective.studies import halves
from tests.objective.studies import numbered
from tests.objective.studies import observations
from tests.objective.studies import study_of
from tests.objective.studies import witness


def squared_error(estimator: Any, X: Any, y: Any) -> float:
    return float(np.mean((estimator.predict(X) - y) ** 2))


class Told:
    """A scorer of one's own that tells which direction it needs."""

    def __init__(self, greater_is_better: bool) -> None:
        self.greater_is_better = greater_is_better

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return float(np.mean(estimator.predict(X) == y))


# -- direction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_scorer_names())
def test_no_scorer_of_scikit_learn_is_minimized(name: str) -> None:
    features, y = numbered(200)
    y = y + 1  # some losses are for amounts above 0
    if name.endswith("_samples"):
        y = np.column_stack([y > 1, y > 0])
    for scoring in (name, get_scorer(name)):
        objective = TrainingSizeObjective(witness, features, y, scoring=scoring)
        with pytest.raises(ValueError, match="must not minimize a score that is larger"):
            study_of(objective, direction="minimize")
    assert not Witness.fits


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        make_scorer(accuracy_score),
        make_scorer(squared_error, greater_is_better=False),
        make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"),
        sequential_score(epsilon=0.1, delta=0.1),
        Told(True),
        Told(np.True_),  # type: ignore[arg-type]
    ],
)
def test_nor_is_any_other_that_is_larger_for_better_learners(scoring: Any) -> None:
    objective = TrainingSizeObjective(witness, *numbered(200), scoring=scoring)
    with pytest.raises(ValueError, match="it would pick the worst learner"):
        study_of(objective, direction="minimize")
    assert not Witness.fits


def test_a_study_without_a_direction_is_refused() -> None:
    study = created(direction=None)
    with pytest.raises(ValueError, match=r"but got `scoring='accuracy'` in such a study"):
        study.optimize(TrainingSizeObjective(witness, *numbered(200)))
    with pytest.raises(ValueError, match=r'`direction="maximize"` to .* such as "neg_log_loss"'):
        study.optimize(TrainingSizeObjective(witness, *numbered(200), scoring="roc_auc"))
    assert not Witness.fits


def test_a_scorer_that_is_smaller_for_better_learners_is_not_maximized() -> None:
    objective = TrainingSizeObjective(witness, *numbered(200), scoring=Told(False))
    with pytest.raises(ValueError, match=r"maximize .* smaller .*=\"minimize\"`"):
        study_of(objective)
    assert not Witness.fits
    study_of(objective, direction="minimize")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_plain_function_goes_with_both_directions(direction: str) -> None:
    objective = TrainingSizeObjective(build_linear, X_REG, Y_REG, scoring=squared_error)
    study = study_of(objective, direction=direction)
    assert study.best_value > 0


# -- what is scored ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", get_scorer_names())
def test_the_task_of_each_scorer_is_that_of_the_user_guide(name: str) -> None:
    expected = "regression" if name in REGRESSION else "classification"
    assert checked_scoring(name).task == checked_scoring(get_scorer(name)).task == expected


def test_the_table_of_the_user_guide_is_of_this_version() -> None:
    assert {*get_scorer_names()} >= REGRESSION


@pytest.mark.parametrize(
    ("scoring", "task"),
    [
        (make_scorer(mean_squared_error, greater_is_better=False), "regression"),
        (make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False), "regression"),
        (make_scorer(accuracy_score), "classification"),
        (make_scorer(max, response_method="predict_proba"), "classification"),
        (make_scorer(max, response_method=("decision_function", "predict")), "classification"),
        (make_scorer(max), None),
        (squared_error, None),
        (sequential_score(epsilon=0.1, delta=0.1), None),
        (None, None),
    ],
)
def test_the_task_of_other_scorers(scoring: Any, task: str | None) -> None:
    assert checked_scoring(scoring).task == task


def test_without_a_scorer_the_estimators_own_score_is_taken() -> None:
    weight = np.where(np.arange(200) % 3, 1.0, 0.1)
    given = halves(X_REG, Y_REG)
    given |= {"sample_weight": weight[:150], "sample_weight_valid": weight[150:], "scoring": None}
    model = LinearRegression().fit(X_REG[:150], Y_REG[:150], weight[:150])
    for weighted_score, weights in ((False, None), (True, weight[150:])):
        objective = TrainingSizeObjective(build_linear, weighted_score=weighted_score, **given)
        expected = model.score(X_REG[150:], Y_REG[150:], weights)
        (*_, last) = observations(study_of(objective, (30, 60, 150)))
        assert last.score == pytest.approx(expected)
