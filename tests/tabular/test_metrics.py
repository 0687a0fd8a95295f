"""Metrics: every name means a scorer of scikit-learn, in the direction that users know."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.metrics import get_scorer
from sklearn.metrics import get_scorer_names

from optuna_daub.spaces import Task
from optuna_daub.tabular.metrics import ALIASES
from optuna_daub.tabular.metrics import OWN
from optuna_daub.tabular.metrics import check_measures
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.metrics import said_class
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import Target


TASKS: tuple[Task, ...] = ("classification", "regression")


@pytest.mark.parametrize("task", TASKS)
def test_every_name_is_a_scorer(task: Task) -> None:
    assert {*OWN[task]} <= {*get_scorer_names()}
    aliases = [name for name, meant in ALIASES.items() if meant in OWN[task]]
    for name in (*aliases, *OWN[task]):
        metric = checked_metric(name, task, 2)
        assert metric.scoring in OWN[task]
        assert metric.is_loss == metric.scoring.startswith("neg_")
        assert metric.shown(-3.0) == (3.0 if metric.is_loss else -3.0)


@pytest.mark.parametrize(
    "name", ["RMSE", "rmse", "root_mean_squared_error", "Root Mean-Squared Error"]
)
def test_spelling_is_forgiven(name: str) -> None:
    assert checked_metric(name, "regression", 0).scoring == "neg_root_mean_squared_error"


@pytest.mark.parametrize("task", TASKS)
def test_a_loss_may_be_called_as_the_function_of_scikit_learn(task: Task) -> None:
    losses = [name for name in OWN[task] if name.startswith("neg_")]
    for name in losses:
        assert checked_metric(name.removeprefix("neg_"), task, 2).scoring == name
        other = TASKS[task == "classification"]
        with pytest.raises(TableError, match=rf"is one of {task}: give `task=\"{task}\"`"):
            checked_metric(name.removeprefix("neg_"), other, 2)


def test_defaults() -> None:
    assert checked_metric(None, "classification", 2).scoring == "accuracy"
    assert checked_metric(None, "regression", 0).scoring == "r2"


@pytest.mark.parametrize(
    ("name", "task", "n_classes", "match"),
    [
        ("rmse", "classification", 2, 'is one of regression: give `task="regression"`'),
        ("auc", "regression", 0, "is one of classification"),
        ("acuracy", "classification", 2, "did you mean 'accuracy'"),
        ("f1-score", "classification", 3, "did you mean 'f1'"),
        ("auc_roc", "classification", 2, "did you mean 'roc_auc'"),
        ("r2_score", "regression", 0, "did you mean 'r2'"),
        ("zzz", "regression", 0, "such as r2, rmse, mae"),
        ("f1", "classification", 3, 'compares two classes, but the target has 3: take "f1_macro"'),
        ("ap", "classification", 3, "compares two classes"),
    ],
)
def test_a_metric_that_does_not_fit_is_named_with_the_way_out(
    name: str, task: Task, n_classes: int, match: str
) -> None:
    with pytest.raises(TableError, match=match):
        checked_metric(name, task, n_classes)


@pytest.mark.parametrize("name", OWN["regression"])
def test_amounts_are_refused_that_scikit_learn_cannot_score(name: str) -> None:
    """Whatever is predicted."""
    for least in (-1.5, -1.0, -0.5, 0.0, 0.5):
        amounts = np.linspace(least, 9.0, 50)
        target = Target("y", "regression", amounts, np.array([]), np.ones(50, bool), ())
        model = DummyRegressor(strategy="constant", constant=1.0).fit(amounts, amounts)
        metric = checked_metric(name, "regression", 0)
        try:
            score = get_scorer(name)(model, amounts, amounts)
        except ValueError:
            score = -np.inf
        if score < -1e9:  # a relative error of 0 is infinite, or nearly so
            such = rf"such as ({least:g}|0): take \"r2\""
            said = rf"needs amounts .* but \d+ of 50 of `y` are not, {such}"
            with pytest.raises(TableError, match=said):
                check_measures(metric, target)
        else:
            check_measures(metric, target)


def test_metrics_of_one_class_say_which() -> None:
    codes, classes = np.arange(40) % 2, np.array(["Churned", "Stayed"], object)
    target = Target("y", "classification", codes, classes, np.ones(40, bool), ())
    for name in ("f1", "ap", "recall"):
        said = said_class(checked_metric(name, "classification", 2), target)
        assert said.startswith(f"`{name}` is that of 'Stayed', the last class in order.")
    assert said_class(checked_metric("auc", "classification", 2), target) == ""
