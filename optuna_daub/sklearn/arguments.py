"""Arguments of `fit` and of the search: checked, and the fingerprint of its study."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.base import is_regressor
from sklearn.metrics import get_scorer_names
from sklearn.utils.validation import _num_samples

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import check_features
from optuna_daub.objective.data import check_no_objects_of_time
from optuna_daub.objective.data import check_no_text
from optuna_daub.objective.data import check_none_missing
from optuna_daub.objective.description import bounded
from optuna_daub.objective.description import described
from optuna_daub.objective.description import of_arguments
from optuna_daub.objective.description import stable
from optuna_daub.objective.division import check_varies
from optuna_daub.objective.fingerprint import of_folds
from optuna_daub.objective.fingerprint import of_table
from optuna_daub.objective.score_checks import check_all_scored
from optuna_daub.objective.scorer_names import metric_instead
from optuna_daub.objective.scorer_names import unknown_scorer
from optuna_daub.sklearn.folds import Folds
from optuna_daub.sklearn.folds import deciding
from optuna_daub.sklearn.space import Space


if TYPE_CHECKING:
    from optuna_daub.sklearn.search_cv import DataAllocationSearchCV


MIN_CANDIDATES, MAX_CANDIDATES = 10, 100
"""Smallest and largest number of candidates, if neither number nor time is given."""

NAMES_OF_OTHERS = {
    "n_trials": "n_candidates",
    "param_grid": "param_distributions",
    "search_spaces": "param_distributions",
    "max_iter": "max_resources",
    "seed": "random_state",
}
"""Names of arguments here, by their names in other libraries' searches."""


def check_names(given: Mapping[str, Any]) -> None:
    """Raise a TypeError for an argument of another library's search."""
    for name in NAMES_OF_OTHERS.keys() & given:
        raise TypeError(
            f"`{name}` is called `{NAMES_OF_OTHERS[name]}` here, as it is not quite the same: see "
            "the docstring."
        )


def arguments_of(method: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a method without `self`."""
    return inspect.Signature([*inspect.signature(method).parameters.values()][1:])


def check_scorer_names(scoring: Any) -> None:
    """Raise a ValueError if a scorer is an unknown name or a metric.

    It suggests the name that may be meant.
    """
    asked = [scoring] if isinstance(scoring, str) else scoring
    asked = asked.values() if isinstance(asked, Mapping) else asked
    for name in asked if isinstance(asked, Iterable) else ():
        if isinstance(name, str) and name not in get_scorer_names():
            raise ValueError(unknown_scorer(name))
    values = scoring.values() if isinstance(scoring, Mapping) else [scoring]
    for each in values:
        if inspect.isfunction(each) and each.__module__.startswith("sklearn.metrics."):
            raise ValueError(metric_instead(each))


def checked_table(X: Any, y: Any, estimator: Any, params: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return features and targets; decimals and fractions among targets as floats.

    Raises:
        ValueError: if either is a text, features are a single column, two columns have one name,
            the estimator cannot learn from the targets, or there is not one weight for each row.
    """
    check_no_text(X, "X")
    check_no_text(y, "y")
    check_features(X)
    if _may_hold_objects(y):
        check_no_objects_of_time(np.asarray(y, dtype=object))
    y = _as_numbers(y)
    _check_targets(estimator, y)
    for name, value in params.items():
        is_weight = name.rpartition("__")[2] == "sample_weight" and value is not None
        if is_weight and (isinstance(value, str) or np.shape(value)[:1] != (_num_samples(X),)):
            raise ValueError(
                f"`{name}` must have one weight for each of the {_num_samples(X):,} rows, but got "
                f"{brief(value)}."
            )
    return X, y


def _check_targets(estimator: Any, y: Any) -> None:
    """Raise a ValueError if there is nothing that a classifier or regressor could learn."""
    if not (is_classifier(estimator) or is_regressor(estimator)):
        return
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"`y` must hold a target for each example to fit {name}, but got None.")
    targets = np.asarray(y)
    if targets.ndim != 1 or targets.dtype.kind not in "biufOUS" or len(targets) == 0:
        return
    if targets.dtype.kind == "O":
        check_none_missing(targets, "y")
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        odd = targets[~np.isfinite(targets)][0]
        raise ValueError(
            f"`y` must have a finite value for each row, but got {odd}. Drop such rows."
        )
    if is_classifier(estimator) and targets.dtype.kind == "f":
        parts = targets[targets != np.rint(targets)]
        if len(parts):
            raise ValueError(
                f"`y` must hold classes for {name}, a classifier, but is continuous, with numbers "
                f"such as {parts[0]:.6g}. Take a regressor to predict amounts."
            )
    check_varies(targets)


def number_of_candidates(
    search: DataAllocationSearchCV, space: Any, grid: tuple[int, ...]
) -> int | None:
    """Return the number of candidates to choose among, None for no limit."""
    if search.n_candidates is not None and search.n_iter is not None:
        raise ValueError(
            "`n_candidates` and `n_iter` are the same number by two names, but got "
            f"{search.n_candidates} and {search.n_iter}: give one of them."
        )
    wanted = search.n_iter if search.n_candidates is None else search.n_candidates
    n_points = space.n_points if isinstance(space, Space) else math.inf
    if n_points == 1:
        return 1
    if wanted is None and search.timeout is None:
        wanted = min(max(grid[-1] // grid[0], MIN_CANDIDATES), MAX_CANDIDATES)
    elif wanted is not None and wanted > n_points:
        warnings.warn(
            f"`param_distributions` has {n_points} points, fewer than the {wanted} candidates "
            "asked for: all of them are searched.",
            UserWarning,
            stacklevel=4,
        )
    return None if wanted is None else int(min(wanted, n_points))


def check_classes_scored(folds: Folds, scorer: Any, given: Any) -> None:
    """Raise a ValueError if probabilities are scored and a class is missing.

    `given` is the scorer as the user named it.
    """
    if (classes := folds.classes) is not None:
        scored = [classes.names[classes.codes[fold.validation]] for fold in folds.folds]
        check_all_scored(classes, scored, scorer, given)


def fingerprint(
    search: DataAllocationSearchCV,
    X: Any,
    y: Any,
    folds: Folds,
    space: Any,
    arguments: Mapping[str, Any],
) -> dict[str, str]:
    """Return the fingerprint that all searches of one study share, by name.

    Data and folds enter as checksums, `arguments` (of fits and scorers) as text. The estimator
    enters by its parameters that are not searched.
    """
    searched = []
    of_space = stable(search.param_distributions)
    if isinstance(space, Space):
        searched = [parameter.name for some in space.sets for parameter in some]
        of_space = space.description
    scoring, by = search.scoring, search.refit
    if scoring is None or isinstance(scoring, str):
        by = "the only one"
    elif not callable(scoring):
        if not isinstance(scoring, Mapping):
            scoring = {name: name for name in scoring}
        by = deciding(scoring, by)
    texts = {
        "data": of_table(X, y),
        "cv and random_state": of_folds(folds.folds),
        "param_distributions": of_space,
        # The estimator's description leaves out parameters that the space searches.
        "estimator": described(search.estimator, searched),
        "scoring": stable(scoring),
        "score searched by (`refit`)": by if isinstance(by, str) else "the first",
        "arguments of `fit`": of_arguments(arguments),
        "return_train_score": str(search.return_train_score),
    }
    return {name: bounded(text) for name, text in texts.items()}


def _as_numbers(y: Any) -> Any:
    """Return decimals and fractions as floats, all other targets unchanged.

    >>> from fractions import Fraction
    >>> _as_numbers([Fraction(1, 4), Fraction(1, 2)])
    array([0.25, 0.5 ])
    """
    if not _may_hold_objects(y):
        return y
    kinds = {type(value) for value in np.ravel(np.asarray(y, dtype=object))}
    is_number = bool(kinds) and all(issubclass(kind, Decimal | Fraction) for kind in kinds)
    return np.asarray(y, dtype=object).astype(np.float64) if is_number else y


def _may_hold_objects(y: Any) -> bool:
    """Return whether targets may be objects, such as decimals."""
    if y is None or isinstance(y, str):
        return False
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind == "O"
    is_extension = str(dtype).lower().startswith(("decimal", "period")) or hasattr(dtype, "tz")
    return isinstance(y, list | tuple) or is_extension
