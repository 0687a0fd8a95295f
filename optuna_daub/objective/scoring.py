"""Scorers, and their properties that are known before anything is scored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.base import is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score
from sklearn.metrics import average_precision_score
from sklearn.metrics import check_scoring
from sklearn.metrics import get_scorer_names
from sklearn.metrics import make_scorer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection._search import BaseSearchCV

from optuna_daub.core.checks import brief
from optuna_daub.core.limits import Limits
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import Task
from optuna_daub.objective.fitting import last_step
from optuna_daub.objective.scorer_names import metric_instead
from optuna_daub.objective.scorer_names import unknown_scorer
from optuna_daub.objective.signatures import accepts
from optuna_daub.study.setup_errors import SetupError


Scorer = Callable[..., float]
"""scorer(estimator, X, y) -> score, as scikit-learn's `make_scorer` returns."""

_UNBOUNDED = ("dcg_score", "mutual_info_score", "positive_likelihood_ratio")
"""Metrics of scikit-learn without a largest score."""

_FROM_ZERO = ("accuracy_score", "average_precision_score", "balanced_accuracy_score",
              "completeness_score", "f1_score", "fbeta_score", "fowlkes_mallows_score",
              "homogeneity_score", "jaccard_score", "mutual_info_score", "ndcg_score",
              "normalized_mutual_info_score", "positive_likelihood_ratio", "precision_score",
              "rand_score", "recall_score", "roc_auc_score", "top_k_accuracy_score",
              "v_measure_score")  # fmt: skip
"""Metrics of scikit-learn that are never below 0."""

_SHARES_LOST = ("hamming_loss", "zero_one_loss")
"""Losses of scikit-learn that are never above 1."""

_MADE_BY_SCIKIT_LEARN = type(make_scorer(accuracy_score))


@dataclass(frozen=True)
class Scoring:
    """A scorer and its properties that are known before anything is scored."""

    scorer: Scorer
    """The function itself."""
    given: Any
    """The user's argument `scoring`, as messages show it."""
    task: Task | None
    """Kind of targets that it scores; None if it does not tell."""
    larger_is_better: bool | None
    """True if better learners have larger scores; None if that is not known."""
    needs_all_classes: bool = False
    """True if it scores probabilities or decision values: then models must know each class."""
    limits: Limits | None = None
    """Lowest and highest possible score; None if they are not known."""

    def __call__(self, estimator: Any, rows: Rows, *, weighted: bool) -> float:
        """Return the score of a fitted estimator on the rows."""
        weight = {"sample_weight": rows.sample_weight} if weighted else {}
        score = self.scorer(estimator, rows.X, rows.y, **weight)
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            raise SetupError(
                f"`scoring` must return one number, but {brief(self.given)} returned "
                f"{brief(score)}."
            ) from error


def checked_scoring(scoring: Any) -> Scoring:
    """Return the scorer that `scoring` names or is, with its properties.

    Scorers of scikit-learn are larger for better learners, since its losses are negated. Any other
    function may tell by an attribute `greater_is_better`.

    >>> checked_scoring("r2").task, checked_scoring("r2").larger_is_better
    ('regression', True)

    Raises:
        ValueError: if it is an unknown name, several scorers, or a metric function of
            scikit-learn instead of a scorer.
    """
    if scoring is None:
        return Scoring(own_score, None, None, True)
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(
            "`scoring` must be one scorer, by name or as a function (estimator, X, y) -> float, "
            f"or None for the estimator's own `score`, but got {brief(scoring)}."
        )
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise ValueError(unknown_scorer(scoring))
    try:
        # `check_scoring` only asks the estimator for a `fit`.
        scorer = check_scoring(DummyClassifier(), scoring=scoring)
    except ValueError as error:
        raise ValueError(metric_instead(scoring)) from error
    limits = limits_of(scorer)
    if isinstance(scorer, _MADE_BY_SCIKIT_LEARN):
        return Scoring(scorer, scoring, _task(scorer), True, needs_all_classes(scorer), limits)
    told = getattr(scorer, "greater_is_better", None)
    return Scoring(scorer, scoring, None, None if told is None else bool(told), limits=limits)


def own_score(estimator: Any, X: Any, y: Any, **weight: Any) -> float:
    """Return the estimator's own score: accuracy of classifiers, R^2 of regressors."""
    return float(estimator.score(X, y, **weight))


def needs_all_classes(scorer: Any) -> bool:
    """Return whether a scorer of scikit-learn asks for probabilities or decision values.

    >>> from sklearn.metrics import get_scorer
    >>> needs_all_classes(get_scorer("neg_log_loss")), needs_all_classes(get_scorer("accuracy"))
    (True, False)
    """
    return bool({"predict_proba", "decision_function"} & responses(scorer))


def scores_each_class(scorer: Any, classes: NDArray[Any]) -> bool:
    """Return whether the rows to score must hold each class.

    So it is with metrics of scikit-learn for probabilities. The exceptions are told all classes as
    their `labels`; but areas under curves are not defined without one.

    >>> from sklearn.metrics import get_scorer, log_loss
    >>> told = make_scorer(log_loss, response_method="predict_proba", labels=[0, 1])
    >>> scores_each_class(get_scorer("neg_log_loss"), np.array([0, 1]))
    True
    >>> scores_each_class(told, np.array([0, 1])), scores_each_class(told, np.array([0, 1, 2]))
    (False, True)
    """
    if not needs_all_classes(scorer) or not is_metric_of_scikit_learn(scorer):
        return False
    told = scorer._kwargs.get("labels")
    is_area = scorer._score_func in (roc_auc_score, average_precision_score)
    return bool(is_area or told is None or not np.isin(classes, told).all())


def responses(scorer: Any) -> set[str]:
    """Return the methods of estimators that a scorer of scikit-learn may call, by name."""
    return {str(name) for name in np.atleast_1d(getattr(scorer, "_response_method", []))}


def is_metric_of_scikit_learn(scorer: Any) -> bool:
    """Return whether a scorer is one of scikit-learn's own metrics, made by `make_scorer`.

    >>> is_metric_of_scikit_learn(make_scorer(accuracy_score)), is_metric_of_scikit_learn(max)
    (True, False)
    """
    if not isinstance(scorer, _MADE_BY_SCIKIT_LEARN):
        return False
    return (getattr(scorer._score_func, "__module__", None) or "").startswith("sklearn.metrics.")


def accepts_weights(scorer: Any) -> bool:
    """Return whether a scorer takes the weights of rows.

    >>> from sklearn.metrics import get_scorer
    >>> accepts_weights(get_scorer("accuracy")), accepts_weights(get_scorer("neg_max_error"))
    (True, False)
    """
    if isinstance(scorer, _MADE_BY_SCIKIT_LEARN):
        return accepts(scorer._score_func, 2, "sample_weight", *scorer._kwargs)
    return accepts(scorer, 3, "sample_weight")


def limits_of(scorer: Any) -> Limits | None:
    """Return the limits of scores: 0 and 1 for shares of scikit-learn, at most 0 for its losses.

    Other scorers may tell by an attribute `limits`. None if they are not known.

    >>> from sklearn.metrics import get_scorer
    >>> tuple(limits_of(get_scorer("f1"))), tuple(limits_of(get_scorer("r2")))
    ((0.0, 1.0), (-inf, 1.0))
    """
    if not isinstance(scorer, _MADE_BY_SCIKIT_LEARN):
        own = getattr(scorer, "limits", None)
        return own if isinstance(own, Limits) else None
    if not is_metric_of_scikit_learn(scorer):
        return None
    name, is_plain = scorer._score_func.__name__, not {"adjusted", "normalize"} & {*scorer._kwargs}
    if scorer._sign < 0:
        return Limits(-1.0 if name in _SHARES_LOST and is_plain else -math.inf, 0.0)
    return Limits(
        0.0 if name in _FROM_ZERO and is_plain else -math.inf,
        math.inf if name in _UNBOUNDED else 1.0,
    )


def own_limits(estimator: Any) -> Limits | None:
    """Return the limits of an estimator's own `score`; None if they are not known.

    It is the accuracy of classifiers and the R^2 of regressors, except those with a scorer.
    """
    task = None if has_scorer(estimator) else task_of(estimator)
    if task == "classification":
        return Limits(0.0, 1.0)
    return Limits(highest=1.0) if task == "regression" else None


def has_scorer(estimator: Any) -> bool:
    """Return whether an estimator scores itself by another scorer than usual.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> has_scorer(LogisticRegression()), has_scorer(LogisticRegressionCV(scoring="f1"))
    (False, True)
    >>> has_scorer(GridSearchCV(LogisticRegression(), {})), has_scorer(LogisticRegressionCV())
    (False, False)
    """
    last = last_step(estimator)
    if not isinstance(last, BaseSearchCV | RFECV | LogisticRegressionCV):
        return False
    if last.scoring is None or (isinstance(last.scoring, str) and last.scoring == "warn"):
        return has_scorer(getattr(last, "estimator", None))
    return not (isinstance(last.scoring, str) and last.scoring in ("accuracy", "r2"))


def task_of(estimator: Any) -> Task | None:
    """Return the kind of targets that an estimator predicts; None if it does not tell.

    >>> task_of(DummyClassifier()), task_of(object())
    ('classification', None)
    """
    try:
        if is_classifier(estimator):
            return "classification"
        return "regression" if is_regressor(estimator) else None
    except AttributeError:  # an estimator without the tags of scikit-learn
        return None


def _task(scorer: Any) -> Task | None:
    """Return the kind of targets that a scorer of `make_scorer` compares, None if unknown."""
    if needs_all_classes(scorer):
        return "classification"
    if not is_metric_of_scikit_learn(scorer):
        return None
    is_of_amounts = scorer._score_func.__module__.endswith("._regression")
    return "regression" if is_of_amounts else "classification"
