"""Metrics: every name means a scorer of scikit-learn, in the direction that users know."""

from __future__ import annotations

import pytest
from sklearn.metrics import get_scorer_names

from optuna_daub.spaces import Task
from optuna_daub.tabular.metrics import ALIASES
from optuna_daub.tabular.metrics import OWN
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.table import TableError


TASKS: tuple[Task, ...] = ("classification", "regression")


@pytest.mark.parametrize("task", TASKS)
def test_every_name_is_a_scorer(task: Task) -> None:
    assert {*OWN[task]} <= {*get_scorer_names()}
    assert {*ALIASES[task].values()} <= {*OWN[task]}
    for name in (*ALIASES[task], *OWN[task]):
        metric = checked_metric(name, task, 2)
        assert metric.scoring in OWN[task]
        assert metric.is_loss == metric.scoring.startswith("neg_")
        assert metric.shown(-3.0) == (3.0 if metric.is_loss else -3.0)


@pytest.mark.parametrize(
    "name", ["RMSE", "rmse", "root_mean_squared_error", "Root Mean-Squared Error"]
)
def test_spelling_is_forgiven(name: str) -> None:
    assert checked_metric(name, "regression", 0).scoring == "neg_root_mean_squared_error"


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
