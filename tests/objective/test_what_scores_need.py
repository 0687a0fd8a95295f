"""Classes that a score needs, targets that are numbers, columns that no estimator takes."""

from __future__ import annotations

import traceback
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from optuna_daub import DAUBPruner
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.data import odd_columns
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.sklearn.folds import said_in
from tests.objective.studies import build
from tests.objective.studies import study_of


N = 240
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.array(["a", "b", "c"])[np.where(np.arange(N) % 3 == 2, 2, (X[:, 0] > 0).astype(int))]
RARE = np.where(Y == "c", "b", Y)
RARE[:2] = "c"
PROBABILITIES = ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"]
SPACE = {"var_smoothing": [1e-9, 1e-3, 0.1]}


@pytest.mark.parametrize("scoring", PROBABILITIES)
@pytest.mark.parametrize(
    ("y", "kwargs", "where"),
    [
        (RARE, {"shuffle": False}, "among the 72 rows to score"),
        (RARE, {"stratify": False, "cv": 5}, "to score of fold [12345]"),
        (RARE, {"X_valid": X[2:], "y_valid": RARE[2:]}, "among the 238 rows to score"),
        (RARE, {"shuffle": False, "cv": 3}, "to score of fold 1"),
    ],
    ids=["time order", "folds", "fixed", "time order in folds"],
)
def test_probabilities_are_scored_on_all_classes_or_the_constructor_names_one(
    scoring: str, y: Any, kwargs: Any, where: str
) -> None:
    with pytest.raises(ValueError, match=f"class 'c', with 2 examples in all, .*{where}"):
        TrainingSizeObjective(build, X, y, scoring=scoring, **kwargs)
    assert TrainingSizeObjective(build, X, Y, scoring=scoring).smallest_size == 3


def test_predictions_may_be_scored_without_some_class() -> None:
    valid = {"X_valid": X[2:], "y_valid": RARE[2:]}
    assert TrainingSizeObjective(build, X, RARE, scoring="accuracy", **valid).n_validation == 238


@pytest.mark.parametrize("scoring", PROBABILITIES)
def test_every_subset_holds_the_classes_that_probabilities_need(scoring: str) -> None:
    many = np.arange(N) % 12
    objective = TrainingSizeObjective(build, X, many, scoring=scoring, stratify=False)
    assert objective.smallest_size > 12
    with pytest.raises(ValueError, match=f"`min_resource={objective.smallest_size}` or more"):
        study_of(objective, (12, 60, 100))
    sizes = (objective.smallest_size, objective.n_train - 1, objective.n_train)
    assert np.isfinite(study_of(objective, sizes).best_value)


def test_training_scores_of_probabilities_hold_all_classes_in_time_order() -> None:
    # The class that is rare among recent rows is not among the last 5,000 that would be scored.
    n = 16_000
    rng = np.random.default_rng(0)
    late = rng.normal(size=(n, 2))
    y = (late[:, 0] > 0).astype(int)
    y[2_000:11_000:3_000] = 2
    y[-100:-50] = 2
    objective = TrainingSizeObjective(build, late, y, scoring="neg_log_loss", shuffle=False)
    assert objective.smallest_size > 0
    sizes = (max(objective.smallest_size, 6_000), 9_000, objective.n_train)
    assert np.isfinite(study_of(objective, sizes).best_value)


@pytest.mark.parametrize("scoring", PROBABILITIES)
def test_a_search_names_the_class_that_is_missing(scoring: str) -> None:
    search = DataAllocationSearchCV(GaussianNB(), SPACE, cv=3, scoring=scoring)
    with (
        pytest.warns(UserWarning, match="The least populated class"),
        pytest.raises(ValueError, match="class 'c', with 2 examples in all"),
    ):
        search.fit(X, RARE)


NUMBERS = [round(value, 2) for value in X[:, 0].tolist()]
DECIMALS = [Decimal(str(value)) for value in NUMBERS]
KINDS: dict[str, Any] = {
    "decimals": DECIMALS,
    "fractions": [Fraction(str(value)) for value in NUMBERS],
    "a series": pd.Series(DECIMALS),
    "an array": np.array(DECIMALS),
    "decimals of Arrow": pd.Series(DECIMALS).astype(pd.ArrowDtype(pa.decimal128(10, 2))),
}


def ridge(trial: optuna.Trial) -> Any:
    return Ridge(trial.suggest_float("alpha", 0.1, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_exact_numbers_are_numbers(kind: str) -> None:
    objective = TrainingSizeObjective(ridge, X, KINDS[kind], scoring="r2")
    plain = TrainingSizeObjective(ridge, X, np.array(NUMBERS), scoring="r2")
    assert study_of(objective).best_value == study_of(plain).best_value
    search = DataAllocationSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}, cv=2, n_candidates=2)
    search.set_params(cost="examples", random_state=0)
    scores = [search.fit(X, y).best_score_ for y in (KINDS[kind], np.array(NUMBERS))]
    assert scores[0] == scores[1]


ODD: dict[str, Any] = {
    "list": [["x"]] * N,
    "dict": [{"x": 1}] * N,
    "period[D]": pd.period_range("2020", periods=N),
    "interval[int64, right]": pd.interval_range(0, N),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_column_that_no_estimator_takes_is_named_once(kind: str) -> None:
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(odd=ODD[kind])
    assert odd_columns(frame) == {"odd": kind}
    objective = TrainingSizeObjective(build, frame, Y)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        study_of(objective, n_learners=3, catch=(Exception,))
    named = [each for each in seen if "'odd'" in str(each.message) and kind in str(each.message)]
    assert len(named) == 1
    search = DataAllocationSearchCV(GaussianNB(), SPACE, cv=2, random_state=0)
    with pytest.raises(ValueError, match="Column 'odd' of `X` has values of kind"):
        search.fit(frame, Y)


def test_columns_that_estimators_take_are_not_named() -> None:
    frame = pd.DataFrame({"s": ["a", None, "b"], "o": [1, "a", None]})
    frame["t"] = pd.date_range("2020", periods=3)
    assert odd_columns(frame.astype({"s": object})) == {}
    assert odd_columns(X) == {}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("too large for this table. Columns seen:\n- a\n- b", "ValueError: too large for this "),
        ("\nAll fits failed.\nBelow are the errors:\nx", "ValueError: All fits failed."),
        ("one line", "ValueError: one line"),
        ("", "ValueError"),
    ],
)
def test_the_reason_is_the_sentence_that_says_what_is_wrong(message: str, said: str) -> None:
    def fails() -> None:
        raise ValueError(message)

    try:
        fails()
    except ValueError:
        text = traceback.format_exc()
    assert said_in(text).startswith(said)


def test_a_search_ends_after_some_candidates_if_none_can_be_fitted() -> None:
    search = DataAllocationSearchCV(GaussianNB(), {"var_smoothing": [*range(-60, 0)]}, cv=2)
    with pytest.raises(ValueError, match="candidates failed"):
        search.set_params(n_candidates=60).fit(X, Y)
    assert len(search.study_.trials) <= 24


@pytest.mark.parametrize("front", ["objective", "search"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("rmse", "neg_root_mean_squared_error"),
        ("RMSE", "neg_root_mean_squared_error"),
        ("f1-score", "f1"),
        ("log_loss", "neg_log_loss"),
        ("logloss", "neg_log_loss"),
        ("AUC", "roc_auc"),
        ("acuracy", "accuracy"),
        ("R^2", "r2"),
        ("mse", "neg_mean_squared_error"),
    ],
)
def test_other_names_of_metrics_are_understood(front: str, name: str, meant: str) -> None:
    def ask() -> None:
        if front == "objective":
            TrainingSizeObjective(build, X, Y, scoring=name)
        else:
            DataAllocationSearchCV(GaussianNB(), SPACE, scoring=name).fit(X, Y)

    with pytest.raises(ValueError, match=f"Did you mean '{meant}'"):
        ask()


def test_one_of_several_metrics_is_understood_too() -> None:
    for scoring in (["accuracy", "auc"], {"a": "auc"}, ("auc",)):
        with pytest.raises(ValueError, match="Did you mean 'roc_auc'"):
            DataAllocationSearchCV(GaussianNB(), SPACE, scoring=scoring, refit=False).fit(X, Y)


def test_the_default_sizes_of_a_search_have_room_for_all_classes() -> None:
    many = np.arange(N) % 30
    search = DataAllocationSearchCV(GaussianNB(), SPACE, cv=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, many)
    assert search.min_resources_ >= 30
    assert DAUBPruner(min_resource=30, max_resource=120).policy.sizes[0] == 30
