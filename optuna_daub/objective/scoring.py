"""Scorers, and the fitting and scoring of an estimator."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from typing import cast

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.base import is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from sklearn.metrics import check_scoring
from sklearn.metrics import get_scorer_names
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from optuna_daub.core.checks import brief
from optuna_daub.core.limits import Limits
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import Task
from optuna_daub.objective.scorer_names import metric_instead
from optuna_daub.objective.scorer_names import unknown_scorer
from optuna_daub.study.setup_errors import SetupError


Scorer = Callable[..., float]
"""scorer(estimator, X, y) -> score, as scikit-learn's `make_scorer` returns."""

FitParams = Mapping[str, Any] | Callable[..., Mapping[str, Any]]
"""Arguments of `fit`, or a function (training rows, validation rows[, estimator]) -> arguments."""

_UNBOUNDED = ("dcg_score", "mutual_info_score", "positive_likelihood_ratio")
"""Metrics of scikit-learn without a largest score."""

_FROM_ZERO = (
    "accuracy_score",
    "average_precision_score",
    "balanced_accuracy_score",
    "completeness_score",
    "f1_score",
    "fbeta_score",
    "fowlkes_mallows_score",
    "homogeneity_score",
    "jaccard_score",
    "mutual_info_score",
    "ndcg_score",
    "normalized_mutual_info_score",
    "positive_likelihood_ratio",
    "precision_score",
    "rand_score",
    "recall_score",
    "roc_auc_score",
    "top_k_accuracy_score",
    "v_measure_score",
)
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
    """True if it scores probabilities: then each class must be among the rows to score."""
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
    if isinstance(scorer, _MADE_BY_SCIKIT_LEARN):
        return Scoring(
            scorer, scoring, _task(scorer), True, needs_all_classes(scorer), limits_of(scorer)
        )
    is_greater_better = getattr(scorer, "greater_is_better", None)
    if is_greater_better is not None:
        is_greater_better = bool(is_greater_better)
    return Scoring(scorer, scoring, None, is_greater_better, limits=limits_of(scorer))


def own_score(estimator: Any, X: Any, y: Any, **weight: Any) -> float:
    """Return the estimator's own score: accuracy of classifiers, R^2 of regressors."""
    return float(estimator.score(X, y, **weight))


def checked_fit_params(fit_params: Any, *, has_weights: bool) -> FitParams:
    """Return the arguments of `fit`, none for None.

    Raises:
        ValueError: if they are neither a mapping from names nor a function of two tables (and
            an estimator), or weigh rows that have weights.
    """
    if fit_params is None:
        return {}
    if isinstance(fit_params, Mapping):
        if wrong := [name for name in fit_params if not isinstance(name, str)]:
            raise ValueError(f"`fit_params` must have argument names as keys, but got {wrong}.")
        if has_weights and "sample_weight" in fit_params:
            raise ValueError(_weighed_twice("sample_weight"))
        return fit_params
    if callable(fit_params) and (_accepts(fit_params, 2) or _accepts(fit_params, 3)):
        return cast(FitParams, fit_params)
    raise ValueError(
        "`fit_params` must be a mapping from argument names of `fit` to values, or a function "
        "(training, validation) or (training, validation, estimator) that returns one, but got "
        f"{brief(fit_params)}."
    )


def fit_arguments(
    fit_params: FitParams, estimator: Any, training: Rows, validation: Rows | None, n_rows: int
) -> Mapping[str, Any]:
    """Return the arguments of `fit` for training on some rows of `X`.

    Values of a mapping that have as many rows as `X` are cut to the rows trained on, except those
    named `eval_...`, which are about rows to validate on.

    Raises:
        SetupError: if there is no value for some row, or a function returns no mapping or
            needs validation rows when none are left (`validation` is None).
    """
    if isinstance(fit_params, Mapping):
        return {
            name: _cut(name, value, training) if _is_by_row(name, value, n_rows) else value
            for name, value in fit_params.items()
        }
    wants_estimator = not _accepts(fit_params, 2)
    try:
        arguments = fit_params(training, validation, *([estimator] if wants_estimator else []))
    except (AttributeError, TypeError) as error:
        if validation is not None:
            raise
        raise SetupError(
            "`fit_params` must accept None as validation rows, but raised "
            f"{type(error).__name__}: {error}. With `cv` or `include_validation=True`, `refit` "
            "trains on all rows, so none are left. Return {} then, or pass the training rows if "
            "`fit` needs some (XGBoost with `early_stopping_rounds`)."
        ) from error
    if not isinstance(arguments, Mapping):
        raise SetupError(
            "`fit_params` must return a mapping from argument names of `fit` to values, but "
            f"returned {brief(arguments)}."
        )
    return arguments


def fitted(estimator: Any, rows: Rows, arguments: Mapping[str, Any]) -> Any:
    """Return a copy of the estimator fitted on the rows, with any weights."""
    return fitted_as_is(clone(estimator), rows, arguments)


def fitted_as_is(fresh: Any, rows: Rows, arguments: Mapping[str, Any]) -> Any:
    """Return the estimator itself, fitted on the rows with any weights."""
    if rows.sample_weight is not None:
        name = _weight_name(fresh)
        if name in arguments:
            raise SetupError(_weighed_twice(name))
        arguments = {**arguments, name: rows.sample_weight}
    fresh.fit(rows.X, rows.y, **arguments)
    return fresh


def takes_size(build: Any) -> bool:
    """Return whether `build` takes the training size after the trial.

    >>> takes_size(lambda trial: ...), takes_size(lambda trial, n: ...)
    (False, True)
    >>> takes_size(lambda trial, depth=3: ...)
    False

    Raises:
        ValueError: if it is not a function, or one that takes neither.
    """
    if not callable(build) or (isinstance(build, type) and hasattr(build, "fit")):
        raise ValueError(
            "`build` must be a function from a trial, or from a trial and a training size, to an "
            f"estimator, but got {brief(build)}. Wrap it: def build(trial): return ..."
        )
    if _accepts(build, 1):
        return False
    if _accepts(build, 2) or takes_previous(build):
        return True
    raise ValueError(
        "`build` must take a trial, or a trial and a training size, or these and `previous`, but "
        f"got a function of {inspect.signature(build)}. Give what else it takes a default."
    )


def takes_previous(build: Any) -> bool:
    """Return whether `build` also takes `previous`, the learner's last model.

    >>> takes_previous(lambda trial, n, previous: ...), takes_previous(lambda trial, X, y: ...)
    (True, False)
    """
    if _accepts(build, 1) or _accepts(build, 2) or not _accepts(build, 3):
        return False
    return [*inspect.signature(build).parameters][2:3] == ["previous"]


@contextmanager
def named_in_errors(params: Mapping[str, Any], size: int) -> Iterator[None]:
    """Add to an error the learner's parameters and training size."""
    try:
        yield
    except Exception as error:
        if sys.version_info >= (3, 11):
            error.add_note(f"Learner {params} was being trained on {size:,} examples.")
        raise


def needs_all_classes(scorer: Any) -> bool:
    """Return whether a scorer of scikit-learn asks for probabilities or decision values.

    >>> from sklearn.metrics import get_scorer
    >>> needs_all_classes(get_scorer("neg_log_loss")), needs_all_classes(get_scorer("accuracy"))
    (True, False)
    """
    asked = {*np.atleast_1d(getattr(scorer, "_response_method", ""))}
    return bool({"predict_proba", "decision_function"} & asked)


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
    function = scorer._score_func
    if not (getattr(function, "__module__", None) or "").startswith("sklearn.metrics."):
        return None
    name, is_plain = function.__name__, not {"adjusted", "normalize"} & {*scorer._kwargs}
    if scorer._sign < 0:
        return Limits(-1.0 if name in _SHARES_LOST and is_plain else -math.inf, 0.0)
    return Limits(
        0.0 if name in _FROM_ZERO and is_plain else -math.inf,
        math.inf if name in _UNBOUNDED else 1.0,
    )


def own_limits(estimator: Any) -> Limits | None:
    """Return the limits of an estimator's own `score`; None if they are not known.

    It is the accuracy of classifiers and the R^2 of regressors.
    """
    if is_classifier(estimator):
        return Limits(0.0, 1.0)
    return Limits(highest=1.0) if is_regressor(estimator) else None


def _task(scorer: Any) -> Task | None:
    """Return the kind of targets that a scorer of `make_scorer` compares, None if unknown."""
    if {"predict_proba", "decision_function"} & {*np.atleast_1d(scorer._response_method)}:
        return "classification"
    module = getattr(scorer._score_func, "__module__", None) or ""
    if not module.startswith("sklearn.metrics."):
        return None
    return "regression" if module.endswith("._regression") else "classification"


def _accepts(function: Any, n_arguments: int) -> bool:
    """Return whether a function can be called with so many arguments by position."""
    try:
        inspect.signature(function).bind(*range(n_arguments))
    except TypeError:
        return False
    except ValueError:  # some that are written in C have no signature
        return True
    return True


def _is_by_row(name: str, value: Any, n_rows: int) -> bool:
    if name.rpartition("__")[2].startswith("eval_"):
        return False
    if isinstance(value, list):
        return len(value) == n_rows
    shape: tuple[int, ...] = getattr(value, "shape", ())
    return len(shape) > 0 and shape[0] == n_rows


def _cut(name: str, value: Any, training: Rows) -> Any:
    n_rows = value.shape[0] if hasattr(value, "shape") else len(value)
    if training.positions.max() >= n_rows:
        raise SetupError(
            f"`fit_params` must have a value for each row trained on, but {brief(name)} has one "
            "for each row of `X` and none for `X_valid`. Refit without `include_validation`, or "
            "pass a function as `fit_params`."
        )
    return _safe_indexing(value, training.positions)


def _weight_name(estimator: Any) -> str:
    """Return the argument of `fit` for the weights of a pipeline's last step.

    >>> from sklearn.pipeline import make_pipeline
    >>> _weight_name(make_pipeline("passthrough", DummyClassifier()))
    'dummyclassifier__sample_weight'
    """
    routed = get_config()["enable_metadata_routing"]
    if routed or not isinstance(estimator, Pipeline):
        return "sample_weight"
    name, last = estimator.steps[-1]
    return f"{name}__{_weight_name(last)}"


def _weighed_twice(name: str) -> str:
    return (
        f"Rows must be weighed once, but got `sample_weight` and {brief(name)} of `fit_params`. "
        "Leave out one or the other."
    )
