"""A loss by a forgotten argument is logged once; a value that cannot be meant is refused."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.metrics import accuracy_score
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics import hamming_loss
from sklearn.metrics import make_scorer
from sklearn.naive_bayes import GaussianNB

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.core.limits import Limits
from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import sequential_score
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.study.limits import limits_of
from optuna_daub.study.limits import read_limits
from optuna_daub.study.limits import write_limits
from tests.objective.studies import X_REG
from tests.objective.studies import Y_REG
from tests.objective.studies import X
from tests.objective.studies import Y
from tests.objective.studies import build
from tests.objective.studies import build_linear
from tests.objective.studies import created
from tests.objective.studies import study_of
from tests.study.table_study import by_formula


def _told(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    said = [each.getMessage() for each in caplog.records if each.name.startswith("optuna_daub")]
    return [each for each in said if words in each]


@pytest.mark.parametrize("name", ["RandomSampler", "TPESampler", "NSGAIISampler"])
def test_a_forgotten_sampler_is_said_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    study = created(sampler=getattr(optuna.samplers, name)(seed=0))
    study.optimize(TrainingSizeObjective(build, X, Y), n_trials=3)
    (said,) = _told(caplog, "no learner is resumed")
    assert name in said
    assert "sampler=DataAllocationSampler()" in said


def test_a_sampler_forgotten_in_a_begun_study_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Optuna stores no sampler. The objective is one that asks for the sizes itself."""
    objective = by_formula(lambda x, n: x - 10 / n)
    begun = created(sampler=DataAllocationSampler(seed=0, n_learners=3))
    begun.optimize(objective, n_trials=4)
    assert not _told(caplog, "resumed")
    named = {"study_name": begun.study_name, "storage": begun._storage}
    later = optuna.load_study(**named, pruner=begun.pruner)
    later.optimize(objective, n_trials=3)
    (said,) = _told(caplog, "no learner is resumed")
    assert "`optuna.load_study`" in said


@pytest.mark.parametrize("kwargs", [{}, {"cv": 3}, {"X_valid": X, "y_valid": Y}])
def test_rows_left_out_are_said_once(kwargs: Any, caplog: pytest.LogCaptureFixture) -> None:
    objective = TrainingSizeObjective(build, X, Y, **kwargs)
    study_of(objective, n_learners=3)
    (said,) = _told(caplog, "left out")
    assert said.startswith(f"{objective.n_train - 100} of {objective.n_train} rows")
    caplog.clear()
    study_of(TrainingSizeObjective(build, X, Y, **kwargs), (30, 60, objective.n_train))
    assert not _told(caplog, "left out")
    assert not _told(caplog, "resumed")


SHARE, LOSS = (0.0, 1.0), (-math.inf, 0.0)


@pytest.mark.parametrize(
    ("scoring", "limits"),
    [
        ("accuracy", SHARE),
        ("f1_macro", SHARE),
        ("roc_auc_ovr", SHARE),
        ("balanced_accuracy", SHARE),
        ("matthews_corrcoef", (-math.inf, 1.0)),
        ("neg_log_loss", LOSS),
        (make_scorer(accuracy_score), SHARE),
        (make_scorer(balanced_accuracy_score, adjusted=True), (-math.inf, 1.0)),
        (make_scorer(hamming_loss, greater_is_better=False), (-1.0, 0.0)),
        (sequential_score(epsilon=0.1, delta=0.1), SHARE),
        (None, SHARE),
        (lambda estimator, X, y: float(np.mean(estimator.predict(X) == y)), None),
        (make_scorer(lambda y, predicted: 3.0), None),
    ],
)
def test_a_study_stores_the_limits_of_scores(
    scoring: Any, limits: tuple[float, float] | None
) -> None:
    study = study_of(TrainingSizeObjective(build, X, Y, scoring=scoring))
    assert read_limits(study) == limits
    # Without known limits the scores show them: shares are from 0 to 1, and 3.0 is none.
    shown = UNLIMITED if study.best_value > 1.0 else SHARE
    assert limits_of(study) == (shown if limits is None else limits)
    if scoring is not None and not hasattr(scoring, "limits"):
        search = DataAllocationSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, cv=2)
        search.set_params(scoring=scoring, random_state=0)
        assert read_limits(search.fit(X, Y).study_) == limits


def test_the_limit_of_a_study_that_minimizes_is_below() -> None:
    study = optuna.create_study(direction="minimize")
    write_limits(study, Limits(lowest=0.0))
    assert [limits_of(study).cut(score) for score in (-0.1, 0.1, 7.0)] == [0.0, 0.1, 7.0]


@pytest.mark.parametrize("scoring", ["r2", None])
def test_a_regression_may_be_worse_than_any_number(scoring: str | None) -> None:
    regression = TrainingSizeObjective(build_linear, X_REG, Y_REG, scoring=scoring)
    assert read_limits(study_of(regression)) == (-math.inf, 1.0)


@pytest.mark.parametrize("is_sure", [True, False])
def test_no_search_shows_an_accuracy_beyond_0_and_1(is_sure: bool) -> None:
    sure = np.column_stack([Y, X])
    wrong = make_scorer(lambda y, predicted: float(np.mean(y != predicted)))
    space = {"var_smoothing": [1e-9, 1e-3, 0.1, 1.0]}
    search = DataAllocationSearchCV(GaussianNB(), space, cv=2, random_state=0)
    search.set_params(scoring=None if is_sure else wrong)
    results = search.fit(sure, Y).cv_results_
    for name in ("forecast_test_score", "lower_test_score", "upper_test_score"):
        assert not ((results[name] > 1) | (results[name] < 0)).any()


@pytest.mark.parametrize("front", ["objective", "search"])
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ((X, "target"), "`y` must hold a row for each example, but got the text 'target'"),
        (("table.csv", Y), "`X` must hold a row for each example, but got the text 'table.csv'"),
        ((Y, X), "Features come first, then targets"),
        ((Y_REG, X_REG), "Features come first, then targets"),
    ],
)
def test_tables_that_cannot_be_meant_are_refused(front: str, table: Any, said: str) -> None:
    def ask() -> None:
        if front == "objective":
            TrainingSizeObjective(build, *table)
        else:
            DataAllocationSearchCV(GaussianNB(), {"var_smoothing": [0.1, 1]}).fit(*table)

    with pytest.raises(ValueError, match=said):
        ask()


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("n_trials", "n_candidates"),
        ("param_grid", "param_distributions"),
        ("seed", "random_state"),
    ],
)
def test_names_of_other_searches_are_understood(name: str, here: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` is called `{here}` here"):
        DataAllocationSearchCV(GaussianNB(), **{name: 3})


@pytest.mark.parametrize("features", [0.5, 0, [[0]], "a"])
def test_categorical_features_are_a_list(features: Any) -> None:
    model = AdaptiveSamplingBoostClassifier(categorical_features=features)
    with pytest.raises(ValueError, match="`categorical_features` must be a list of columns"):
        model.fit(X, Y)


@pytest.mark.parametrize("costs", [{}, {1, 2, 3}, "abc", ["a"] * 6])
def test_feature_costs_are_numbers(costs: Any) -> None:
    with pytest.raises(ValueError, match="`feature_costs` must be a list of one number"):
        BudgetedAdaBoostClassifier(feature_costs=costs).fit(X, Y)


@pytest.mark.parametrize("n_trials", [1, 4, None])
def test_a_study_that_was_loaded_plainly_can_be_refitted(n_trials: int | None) -> None:
    objective, storage = TrainingSizeObjective(build, X, Y), optuna.storages.InMemoryStorage()
    sizes = (30, 60, 100, objective.n_train)
    pruner = DAUBPruner(sizes=sizes, cost="examples")
    study = created(study_name="s", storage=storage, n_learners=3, pruner=pruner)
    study.optimize(objective, n_trials=n_trials)
    with warnings.catch_warnings():  # an unfinished study warns of that
        warnings.simplefilter("ignore")
        whole = objective.refit(study)
        plain = objective.refit(optuna.load_study(study_name="s", storage=storage))
    assert plain.var_smoothing == whole.var_smoothing
    np.testing.assert_array_equal(plain.predict(X), whole.predict(X))


@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_the_smallest_size_of_an_objective_is_one_that_its_study_takes(n_classes: int) -> None:
    objective = TrainingSizeObjective(build, X, np.arange(200) % n_classes)
    pruner = DAUBPruner(min_resource=objective.smallest_size, max_resource=objective.n_train)
    assert study_of(objective, pruner=pruner).best_trial.last_step == objective.n_train
