"""Checks that a scorer can score the targets, before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.dummy import DummyRegressor

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.scoring import Scoring
from optuna_daub.objective.scoring import accepts_weights
from optuna_daub.objective.scoring import is_metric_of_scikit_learn
from optuna_daub.objective.scoring import responses


def check_weighted(scoring: Scoring, rows: Rows, scored: Sequence[Rows]) -> None:
    """Raise a ValueError if scores cannot be weighted, by this scorer or on these rows.

    Args:
        scoring: the scorer.
        rows: all rows of `X`.
        scored: rows to score, by fold.
    """
    if any(table.sample_weight is None for table in (rows, *scored)):
        raise ValueError(
            "`weighted_score=True` needs the weights of all rows that are scored, but got none "
            "for some. Pass `sample_weight`, and with `X_valid` also `sample_weight_valid`."
        )
    for number, table in enumerate(scored, start=1):
        if not np.any(table.sample_weight):
            raise ValueError(
                "`weighted_score=True` needs a weight above 0 among the rows to score, but all "
                f"{len(table):,} weights of `sample_weight`{_of_fold(number, scored)} are 0. "
                "Score other rows, or leave out `weighted_score`."
            )
    if not accepts_weights(scoring.scorer):
        raise ValueError(
            "`weighted_score=True` passes the weights to the scorer as `sample_weight`, but "
            f"`scoring={brief(scoring.given)}` does not take them. Give the function this "
            "argument, pass another scorer, or leave out `weighted_score`."
        )


def check_scorable(
    scoring: Scoring, y: NDArray[Any], scored: Sequence[Rows], *, weighted: bool
) -> None:
    """Raise a ValueError if a metric of scikit-learn cannot score the rows to score.

    A model that learns nothing is scored. Other scorers are not checked: they may need methods or
    predictions of the user's own estimator.

    Args:
        scoring: the scorer.
        y: targets of all rows.
        scored: rows to score, by fold.
        weighted: True if scores are weighted.
    """
    dummy: Any = DummyRegressor()
    if scoring.task == "classification":
        dummy = DummyClassifier(strategy="uniform", random_state=0)
    can_answer = any(hasattr(dummy, name) for name in responses(scoring.scorer))
    if not (is_metric_of_scikit_learn(scoring.scorer) and can_answer):
        return
    try:
        scores = _scores_of(dummy, scoring, y, scored, weighted=weighted)
    except Exception as error:  # whatever a metric raises
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"`scoring={brief(scoring.given)}` must be able to score `y`, but with values such as "
            f"{brief(y[:1].tolist()[0])} it raises {type(error).__name__}: {said:.300}. "
            f"{_way_out(scoring, y)}"
        ) from error
    # NaN of a classification depends on what is predicted, as a likelihood ratio does.
    if scoring.task == "regression":
        _check_no_nan(scores, scoring, scored)


def _scores_of(
    dummy: Any, scoring: Scoring, y: NDArray[Any], scored: Sequence[Rows], *, weighted: bool
) -> list[float]:
    """Return the scores of a model that needs no features, by fold."""
    if isinstance(dummy, DummyRegressor) and y.dtype.kind in "mM":
        y = y.astype(np.float64)  # of dates there is no mean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dummy.fit(np.zeros((len(y), 1)), y)
        blank = (replace(rows, X=np.zeros((len(rows), 1))) for rows in scored)
        return [scoring(dummy, rows, weighted=weighted) for rows in blank]


def _check_no_nan(scores: Sequence[float], scoring: Scoring, scored: Sequence[Rows]) -> None:
    missing = np.isnan(scores)
    if missing.any():
        number = int(missing.argmax()) + 1
        n_rows = len(scored[number - 1])
        raise ValueError(
            f"`scoring={brief(scoring.given)}` must be a number, but is NaN for the "
            f"{n_rows:,} row{'s' * (n_rows > 1)} of `y` to score{_of_fold(number, scored)}, "
            "whatever is predicted. Score more rows, by fewer folds or a larger `test_size`, or "
            'take a mean of errors, as "neg_mean_absolute_error" is.'
        )


def _way_out(scoring: Scoring, y: NDArray[Any]) -> str:
    if y.ndim > 1:
        return (
            "With several outputs pass `scoring=None` for the estimator's own score, or a "
            "function (estimator, X, y) -> float."
        )
    if scoring.task == "regression":
        if y.dtype.kind not in "biuf":
            return 'To predict classes pass a scorer of them, as "accuracy" is.'
        return 'Pass another scorer of amounts, as "r2" or "neg_mean_absolute_error" is.'
    if class_labels(y) is None:
        return 'To predict amounts pass a scorer of them, as "r2" is.'
    return (
        'Pass a scorer for all labels, as "accuracy", "f1_macro" or "roc_auc_ovr" is, or call '
        "two classes 0 and 1."
    )


def _of_fold(number: int, scored: Sequence[Rows]) -> str:
    return f" of fold {number}" if len(scored) > 1 else ""
