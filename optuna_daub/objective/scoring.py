"""How an estimator is fitted and scored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline

from optuna_daub.objective.data import Rows


Scorer = Callable[..., float]
"""scorer(estimator, X, y) -> score, as scikit-learn's `make_scorer` returns."""


def checked_scorer(scoring: Any) -> Scorer:
    """Return the scorer that `scoring` names or is.

    >>> checked_scorer("accuracy")
    make_scorer(accuracy_score, response_method='predict')

    Raises:
        ValueError: where it is an unknown name, several scorers, or a metric function of
            scikit-learn instead of a scorer.
    """
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(
            "`scoring` must be one scorer, by name or as a function (estimator, X, y) -> float, "
            f"but got {scoring!r}."
        )
    # Only its `fit` method is looked at: scikit-learn's check of a scorer asks for an estimator.
    scorer: Scorer = check_scoring(DummyClassifier(), scoring=scoring)
    return scorer


def fitted(estimator: Any, rows: Rows) -> Any:
    """Return a fresh copy of the estimator fitted on the rows, with their weights if any."""
    fresh = clone(estimator)
    weight = {} if rows.sample_weight is None else {_weight_name(fresh): rows.sample_weight}
    fresh.fit(rows.X, rows.y, **weight)
    return fresh


def scored(scorer: Scorer, estimator: Any, rows: Rows, *, weighted: bool = False) -> float:
    """Return the score of a fitted estimator on the rows."""
    if weighted:
        return float(scorer(estimator, rows.X, rows.y, sample_weight=rows.sample_weight))
    return float(scorer(estimator, rows.X, rows.y))


def _weight_name(estimator: Any) -> str:
    """Return the argument of `fit` by which weights reach the last step of a pipeline.

    >>> from sklearn.pipeline import make_pipeline
    >>> _weight_name(make_pipeline("passthrough", DummyClassifier()))
    'dummyclassifier__sample_weight'
    """
    routed = get_config()["enable_metadata_routing"]
    if routed or not isinstance(estimator, Pipeline):
        return "sample_weight"
    name, last = estimator.steps[-1]
    return f"{name}__{_weight_name(last)}"


@contextmanager
def named_in_errors(params: Mapping[str, Any], size: int) -> Iterator[None]:
    """Add to an error the learner's parameters and the size on which it was being trained."""
    try:
        yield
    except Exception as error:
        if sys.version_info >= (3, 11):
            error.add_note(f"Learner {params} was being trained on {size:,} examples.")
        raise
