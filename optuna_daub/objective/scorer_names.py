"""Names of scorers that users may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from sklearn.metrics import get_scorer_names

from optuna_daub.core.checks import brief


OTHER_NAMES = {
    "acc": "accuracy",
    "ap": "average_precision",
    "auc": "roc_auc",
    "aucpr": "average_precision",
    "auroc": "roc_auc",
    "bacc": "balanced_accuracy",
    "binarylogloss": "neg_log_loss",
    "brier": "neg_brier_score",
    "crossentropy": "neg_log_loss",
    "f1macro": "f1_macro",
    "l1": "neg_mean_absolute_error",
    "l2": "neg_mean_squared_error",
    "logloss": "neg_log_loss",
    "mae": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    "mcc": "matthews_corrcoef",
    "medae": "neg_median_absolute_error",
    "mlogloss": "neg_log_loss",
    "mse": "neg_mean_squared_error",
    "msle": "neg_mean_squared_log_error",
    "prauc": "average_precision",
    "rmse": "neg_root_mean_squared_error",
    "rmsle": "neg_root_mean_squared_log_error",
    "rocauc": "roc_auc",
    "rsquared": "r2",
}
"""Scorers of scikit-learn by the names of other libraries. Names have small letters and digits
only."""


def unknown_scorer(name: str) -> str:
    """Return the error message for an unknown scorer.

    It suggests the scorer that may be meant.

    >>> unknown_scorer("rmse")
    ... # doctest: +NORMALIZE_WHITESPACE
    "`scoring` must be the name of a scorer of scikit-learn, but got 'rmse'. Did you mean
     'neg_root_mean_squared_error'? See `sklearn.metrics.get_scorer_names()`."
    """
    meant = scorer_meant(name, get_scorer_names())
    hint = f"Did you mean {brief(meant)}? " if meant else ""
    return (
        f"`scoring` must be the name of a scorer of scikit-learn, but got {brief(name)}. {hint}"
        "See `sklearn.metrics.get_scorer_names()`."
    )


def metric_instead(function: Any) -> str:
    """Return the error message for a metric function in place of a scorer."""
    return (
        "`scoring` must be a scorer, a function (estimator, X, y) -> float, and no metric "
        f"(y_true, y_pred) -> float, but got {brief(function)}. Pass `make_scorer(...)` of it: it "
        "also needs to know whether `greater_is_better`."
    )


def scorer_meant(name: str, among: Iterable[str]) -> str | None:
    """Return the scorer that a wrong name may mean, None if none is alike.

    >>> scorer_meant("f1-score", ["accuracy", "f1"]), scorer_meant("kappa", ["accuracy", "f1"])
    ('f1', None)
    """
    plain = {_plain(each): each for each in among}
    plain |= {other: each for other, each in OTHER_NAMES.items() if each in plain.values()}
    alike = difflib.get_close_matches(_plain(name), plain, n=1)
    return plain[alike[0]] if alike else None


def _plain(name: str) -> str:
    """Return the letters and digits of a metric's name, without words such as "score"."""
    letters = "".join(each for each in name.lower() if each.isalnum() or each == "²")
    return letters.replace("²", "2").removeprefix("neg").removesuffix("score")
