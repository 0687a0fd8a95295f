"""Checks that a scorer can score the targets, before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.dummy import DummyRegressor
from sklearn.metrics import explained_variance_score
from sklearn.metrics import r2_score

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import Classes
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.scoring import Scoring
from optuna_daub.objective.scoring import accepts_weights
from optuna_daub.objective.scoring import is_metric_of_scikit_learn
from optuna_daub.objective.scoring import responses
from optuna_daub.objective.scoring import scores_each_class


_MOST_ROWS = 1_000
_MOST_CLASSES = 20
"""Largest numbers of rows and of classes on which a metric is tried."""


def check_weighted(scoring: Scoring, rows: Rows, scored: Sequence[Rows]) -> None:
    """Raise a ValueError if this scorer or these rows allow no weighted scores.

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
            name = "sample_weight_valid" if table.positions[0] >= len(rows) else "sample_weight"
            raise ValueError(
                "`weighted_score=True` needs a weight above 0 among the rows to score, but all "
                f"{len(table):,} weights of `{name}`{_of_fold(number, scored)} are 0. "
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

    Models that learn nothing are scored on some rows of some folds. A scorer is refused if it can
    score none of these models. For amounts they predict the mean, or 1, since a metric may need
    predictions above 0. Some scorers are not checked, since only the user's own estimator may
    suit them: those of other metrics, of decision values, and with `labels` of their own.

    Args:
        scoring: the scorer.
        y: targets of all rows.
        scored: rows to score, by fold.
        weighted: True if scores are weighted.
    """
    dummies: list[Any] = [DummyClassifier(strategy="uniform", random_state=0)]
    if scoring.task != "classification":
        ones = np.ones(y.shape[1:])
        dummies = [DummyRegressor(), DummyRegressor(strategy="constant", constant=ones)]
    can_answer = any(hasattr(dummies[0], name) for name in responses(scoring.scorer))
    if not (is_metric_of_scikit_learn(scoring.scorer) and can_answer):
        return
    if getattr(scoring.scorer, "_kwargs", {}).get("labels") is not None:
        return
    errors: list[Exception] = []
    for dummy in dummies:
        try:
            scores = _scores_of(dummy, scoring, y, scored, weighted=weighted)
            break
        except Exception as error:  # a metric may raise any
            errors.append(error)
    else:
        said = " ".join(str(errors[0]).split()).rstrip(".")
        raise ValueError(
            f"`scoring={brief(scoring.given)}` must be able to score `y`, but with values such as "
            f"{brief(y[:1].tolist()[0])} it raises {type(errors[0]).__name__}: {said:.300}. "
            f"{_way_out(scoring, y)}"
        ) from errors[0]
    # NaN of a classification depends on what is predicted, as a likelihood ratio does.
    if scoring.task == "regression":
        _check_no_nan(scores, scoring, scored)
        _check_varied(scoring, scored)


def check_all_scored(
    classes: Classes, scored: Sequence[NDArray[Any]], scorer: Any, given: Any
) -> None:
    """Raise a ValueError if a fold lacks rows to score of some class.

    It does so only if the scorer needs all classes.

    Args:
        classes: classes of all rows.
        scored: targets to score, by fold.
        scorer: a scorer of probabilities.
        given: the same as the user named it.
    """
    if not scores_each_class(scorer, classes.names):
        return
    for number, targets in enumerate(scored, start=1):
        missing = ~np.isin(classes.names, targets)
        if missing.any():
            code = int(missing.argmax())
            count = np.count_nonzero(classes.codes == code)
            label = classes.names.tolist()[code]
            raise ValueError(
                f"`scoring={brief(given)}` scores probabilities, so each class must be among "
                f"the rows to score, but class {brief(label)}, with {count} examples in all, is "
                f"not among the {len(targets):,} rows to score{_of_fold(number, scored)}. Add "
                "examples of it, leave it out, score more rows, or take a scorer of predictions, "
                "as `accuracy` is, or `make_scorer(log_loss, ...)` with all classes as `labels`."
            )


def _scores_of(
    dummy: Any, scoring: Scoring, y: NDArray[Any], scored: Sequence[Rows], *, weighted: bool
) -> dict[int, float]:
    """Return the scores of a model without features, by place of the fold.

    Whether a metric raises depends on the kinds of values and not on their number, so the first,
    the smallest and the last fold are scored, on rows that hold all kinds.
    """
    smallest = min(range(len(scored)), key=lambda place: len(scored[place]))
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in sorted({0, smallest, len(scored) - 1}):
            targets, rows = y, replace(scored[place], X=np.zeros((len(scored[place]), 1)))
            if isinstance(dummy, DummyClassifier) and class_labels(y) is not None:
                some = _some_classes(y, rows.y)
                targets = y[np.isin(y, some)]
                rows = rows.take(np.flatnonzero(np.isin(rows.y, some)))
            elif isinstance(dummy, DummyRegressor) and y.dtype.kind in "mM":
                targets = y.astype(np.float64)  # dates have no mean
            dummy.fit(np.zeros((len(targets), 1)), targets)
            scores[place] = scoring(dummy, rows.take(_of_all_kinds(rows)), weighted=weighted)
    return scores


def _some_classes(y: NDArray[Any], scored: NDArray[Any]) -> NDArray[Any]:
    """Return all classes, or some of many: of those scored and of those that are not."""
    names, present = np.unique(y), np.unique(scored)
    if len(names) <= _MOST_CLASSES:
        return names
    absent = np.setdiff1d(names, present)
    return np.concatenate([_spread(each, _MOST_CLASSES // 2) for each in (present, absent)])


def _of_all_kinds(rows: Rows) -> NDArray[np.intp]:
    """Return places of at most about 1,000 rows: those of the largest weights, and of each class
    or, of many values, of some from the smallest to the largest."""
    weight = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    order = np.argsort(-weight, kind="stable")
    columns = rows.y[order].reshape(len(rows), -1).T
    most = max(2, _MOST_ROWS // 2 // len(columns))
    kinds = [_spread(np.unique(each, return_index=True)[1], most) for each in columns]
    return np.unique(np.concatenate([order[: _MOST_ROWS // 2], *(order[each] for each in kinds)]))


def _spread(values: NDArray[Any], most: int) -> NDArray[Any]:
    """Return at most `most` of the values, with the first and the last."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).astype(np.intp)]


def _check_no_nan(scores: Mapping[int, float], scoring: Scoring, scored: Sequence[Rows]) -> None:
    missing = [place for place, score in scores.items() if np.isnan(score)]
    if missing:
        number = missing[0] + 1
        n_rows = len(scored[missing[0]])
        raise ValueError(
            f"`scoring={brief(scoring.given)}` must be a number, but is NaN for the "
            f"{n_rows:,} row{'s' * (n_rows > 1)} of `y` to score{_of_fold(number, scored)}, "
            "whatever is predicted. Score more rows, by fewer folds or a larger `test_size`, or "
            'take a mean of errors, as "neg_mean_absolute_error" is.'
        )


def _check_varied(scoring: Scoring, scored: Sequence[Rows]) -> None:
    """Raise a ValueError if a fold scores equal values. R2 is then 1 or 0."""
    if getattr(scoring.scorer, "_score_func", None) not in (r2_score, explained_variance_score):
        return
    for number, rows in enumerate(scored, start=1):
        if rows.y.ndim == 1 and (rows.y == rows.y[:1]).all():
            raise ValueError(
                f"`scoring={brief(scoring.given)}` needs different values of `y` to score, but "
                f"all {len(rows):,}{_of_fold(number, scored)} are "
                f"{brief(rows.y[:1].tolist()[0])}, so it would be 1 or 0. Score more rows, or "
                'take a mean of errors, as "neg_mean_absolute_error" is.'
            )


def _way_out(scoring: Scoring, y: NDArray[Any]) -> str:
    if y.ndim > 1:
        # The own score of a tree refuses three classes in two columns, as "accuracy" does.
        share = ""
        if all(class_labels(column) is not None for column in y.T):
            share = ", such as `lambda model, X, y: (model.predict(X) == y).mean()` for classes"
        return (
            f"With several outputs pass a function (estimator, X, y) -> float{share}, or "
            "`scoring=None` for an estimator whose own score can."
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


def _of_fold(number: int, scored: Sequence[Any]) -> str:
    return f" of fold {number}" if len(scored) > 1 else ""
