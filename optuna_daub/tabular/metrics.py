"""Metrics by their names in scikit-learn, FLAML and AutoGluon."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import text_of
from optuna_daub.objective.scorer_names import OTHER_NAMES
from optuna_daub.objective.scorer_names import scorer_meant
from optuna_daub.spaces import Task
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import Target


@dataclass(frozen=True)
class Metric:
    """The metric that compares models."""

    name: str
    """Name in small letters, with underscores and without `neg_`."""
    scoring: str
    """Name of the scorer in scikit-learn; larger scores are better."""
    is_loss: bool
    """True for a loss, which is the scorer's score with the other sign."""

    @property
    def compares_labels(self) -> bool:
        """True if it compares the likeliest classes, and not their probabilities."""
        is_of_classes = self.scoring in OWN["classification"]
        return is_of_classes and not any(part in self.scoring for part in BY_PROBABILITIES)

    @property
    def counts_rows(self) -> bool:
        """True if each row has the same weight, however rare its class is."""
        return self.scoring in _BY_ROWS

    @property
    def compares_squares(self) -> bool:
        """True if it compares squared errors of amounts, which all models minimize."""
        return self.scoring in ("r2", "explained_variance") or "squared_error" in self.scoring

    def lowest(self, amounts: NDArray[np.float64]) -> float | None:
        """Return the lowest prediction that it can compare; None if all can be.

        For deviances, which compare ratios, it is a hundredth of the mean. Not tuned.

        >>> Metric("poisson", "neg_mean_poisson_deviance", True).lowest(np.array([0.0, 2.0]))
        0.01
        """
        if self.scoring in ("neg_mean_poisson_deviance", "neg_mean_gamma_deviance"):
            return float(amounts.mean()) / 100.0
        compares_logs = self.scoring.endswith("log_error")  # of 1 + amount
        return min(0.0, float(amounts.min())) if compares_logs else None

    def shown(self, score: float) -> float:
        """Return a scorer's score as the user's metric.

        >>> Metric("rmse", "neg_root_mean_squared_error", is_loss=True).shown(0.0)  # never -0.0
        0.0
        """
        return 0.0 - score if self.is_loss else score

    def said(self, shown: float) -> str:
        """Return the text of a metric's value, with a sensible number of digits.

        >>> metric = Metric("rmse", "neg_root_mean_squared_error", is_loss=True)
        >>> metric.said(0.87654), metric.said(11301.37842), metric.said(0.000034567)
        ('0.8765', '11,301', '3.457e-05')
        """
        size = abs(shown)
        if 0 < size < 0.001:
            return f"{shown:.4g}"
        return f"{shown:.4f}" if size < 10 else f"{shown:,.{2 if size < 1000 else 0}f}"

    def __str__(self) -> str:
        return f"{self.name} ({'smaller' if self.is_loss else 'larger'} is better)"


_SHARED = ("acc", "ap", "auc", "brier", "logloss", "mae", "mape", "mcc", "medae", "mse", "rmse",
           "rmsle")  # fmt: skip
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        **{name: OTHER_NAMES[name] for name in _SHARED},
        "nll": "neg_log_loss",
        "cross_entropy": "neg_log_loss",
        "roc_auc_weighted": "roc_auc_ovr_weighted",
        "roc_auc_ovr_macro": "roc_auc_ovr",
        "roc_auc_ovo_macro": "roc_auc_ovo",
        "macro_f1": "f1_macro",
        "micro_f1": "f1_micro",
        "weighted_f1": "f1_weighted",
    }
)
"""Scorers of scikit-learn by their names in FLAML, in AutoGluon and in everyday use. A name
without `neg_` needs no entry."""

OWN: Mapping[Task, tuple[str, ...]] = MappingProxyType(
    {
        "classification": (
            "accuracy", "balanced_accuracy", "neg_log_loss", "neg_brier_score",
            "roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted",
            "roc_auc_ovo_weighted", "average_precision", "f1", "f1_macro", "f1_micro",
            "f1_weighted", "precision", "precision_macro", "precision_micro",
            "precision_weighted", "recall", "recall_macro", "recall_micro",
            "recall_weighted", "matthews_corrcoef",
        ),
        "regression": (
            "r2", "explained_variance", "neg_root_mean_squared_error",
            "neg_mean_squared_error", "neg_mean_absolute_error",
            "neg_median_absolute_error", "neg_mean_absolute_percentage_error",
            "neg_root_mean_squared_log_error", "neg_mean_squared_log_error",
            "neg_mean_gamma_deviance", "neg_mean_poisson_deviance",
        ),
    }
)  # fmt: skip
"""Names of the scorers of scikit-learn that fit predictions of a table."""

OF_TWO_CLASSES = ("f1", "precision", "recall", "average_precision")
"""Metrics for two classes only."""

_BY_ROWS = ("accuracy", "neg_log_loss", "neg_brier_score", "f1_micro", "precision_micro",
            "recall_micro", "f1_weighted", "precision_weighted", "recall_weighted")  # fmt: skip

LEAST: Mapping[str, tuple[str, Callable[[NDArray[Any]], NDArray[np.bool_]]]] = MappingProxyType(
    {
        "percentage_error": ("other than 0", lambda amounts: amounts != 0),
        "log_error": ("above -1", lambda amounts: amounts > -1),
        "gamma_deviance": ("above 0", lambda amounts: amounts > 0),
        "poisson_deviance": ("of at least 0", lambda amounts: amounts >= 0),
    }
)
"""Amounts that scikit-learn's metrics can compare, by the ends of their names."""

BY_PROBABILITIES = ("log_loss", "brier_score", "roc_auc", "average_precision")
"""Parts of the names of metrics that compare probabilities of classes."""


def checked_metric(name: Any, task: Task, n_classes: int) -> Metric:
    """Return the metric of that name.

    None is accuracy for classes and r2 for amounts.

    Args:
        name: name in scikit-learn, FLAML or AutoGluon, in any case of letters.
        task: kind of targets.
        n_classes: number of classes, 0 for amounts.

    Raises:
        TableError: if there is no such metric, it belongs to the other task, or it is for two
            classes and there are more.

    >>> checked_metric("RMSE", "regression", 0).scoring
    'neg_root_mean_squared_error'
    >>> checked_metric("auc", "classification", 3).scoring
    'roc_auc_ovr'
    """
    if name is None:
        name = "accuracy" if task == "classification" else "r2"
    key = text_of(name).strip().lower().replace("-", "_").replace(" ", "_")
    scoring = _scorer(key, task)
    if not scoring:
        other: Task = "regression" if task == "classification" else "classification"
        if _scorer(key, other):
            raise TableError(
                f"`metric` must be one of {task}, but {brief(name)} is one of {other}: give "
                f'`task="{other}"`, or one of {", ".join(_SHORT[task])}.'
            )
        meant = scorer_meant(key, OWN[task])
        hint = f"did you mean {brief(meant)}" if meant else f"such as {', '.join(_SHORT[task])}"
        raise TableError(f"`metric` must be a metric of {task}, but got {brief(name)}: {hint}?")
    if n_classes > 2 and scoring == "roc_auc":
        scoring = "roc_auc_ovr"
    if n_classes > 2 and scoring in OF_TWO_CLASSES:
        rest = "log_loss" if scoring == "average_precision" else f"{scoring}_macro"
        raise TableError(
            f"`metric={brief(name)}` compares two classes, but the target has {n_classes}: take "
            f'"{rest}".'
        )
    is_loss = scoring.startswith("neg_")
    return Metric(key.removeprefix("neg_"), scoring, is_loss)


def _scorer(key: str, task: Task) -> str:
    """Return the scorer that a name means, "" if there is none."""
    meant = (ALIASES.get(key, key), f"neg_{key}")
    return next((name for name in meant if name in OWN[task]), "")


def said_class(metric: Metric, target: Target) -> str:
    """Return a note on the class that a metric is of; "" if it is of all classes."""
    if metric.scoring not in OF_TWO_CLASSES or len(target.classes) != 2:
        return ""
    first, last = (brief(each) for each in target.classes.tolist())
    return (
        f"`{metric.name}` is that of {last}, the last class in order. If you mean {first}, write "
        f"1 for it and 0 for {last}."
    )


def check_measures(metric: Metric, target: Target) -> None:
    """Raise a TableError if a metric cannot compare the amounts of a target.

    This is so if it compares ratios and the target has dates, which have none, or amounts that it
    cannot compare, as a relative error has none for 0.
    """
    times = target.times
    if times is not None and times.first is not None and metric.scoring.endswith((*LEAST,)):
        raise TableError(
            f"`metric={brief(metric.name)}` compares ratios, but the target has dates, which have "
            'none: take "r2", or "mae" or "rmse" in days.'
        )
    for end in [end for end in LEAST if metric.scoring.endswith(end)]:
        rule, is_allowed = LEAST[end]
        wrong = target.values[~is_allowed(target.values)]
        if len(wrong):
            raise TableError(
                f"`metric={brief(metric.name)}` needs amounts {rule}, but {len(wrong):,} of "
                f"{len(target.values):,} of `{target.name}` are not, such as {wrong[0]:.4g}: take "
                '"r2", "rmse" or "mae", or take these rows out of the table.'
            )


_SHORT: Mapping[Task, tuple[str, ...]] = MappingProxyType(
    {
        "classification": ("accuracy", "log_loss", "auc", "f1_macro"),
        "regression": ("r2", "rmse", "mae"),
    }
)
