"""The fitting of an estimator, and the arguments of its `fit`."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextlib import contextmanager
from typing import Any
from typing import cast

from sklearn import config_context
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import Rows
from optuna_daub.objective.signatures import accepts
from optuna_daub.study.setup_errors import SetupError


FitParams = Mapping[str, Any] | Callable[..., Mapping[str, Any]]
"""Arguments of `fit`, or a function (training rows, validation rows[, estimator]) -> arguments."""

_OF_VALIDATION = re.compile(
    "eval_.*|{word}_{table}|{table}_{word}".format(
        word="(val|valid|validation)", table="(X|y|sample_weight|data|set)"
    ),
    re.IGNORECASE,
)
"""Names of `fit`'s arguments for validation rows, such as LightGBM's `eval_X` and `X_val`.
Others such as `val_weight` and `is_valid` may have a value for each row of `X`."""


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
    if callable(fit_params) and (accepts(fit_params, 2) or accepts(fit_params, 3)):
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

    Values of a mapping that have as many rows as `X` are cut to the rows trained on, except tables
    of rows to validate on, by their names: `eval_X`, `y_valid`, `val_X`, `sample_weight_val`.

    Raises:
        SetupError: if there is no value for some row, or a function returns no mapping or
            needs validation rows when none are left (`validation` is None).
    """
    if isinstance(fit_params, Mapping):
        return {
            name: _cut(name, value, training) if _is_by_row(name, value, n_rows) else value
            for name, value in fit_params.items()
        }
    wants_estimator = not accepts(fit_params, 2)
    held_out = None if validation is None else validation.copy()
    try:
        arguments = fit_params(training, held_out, *([estimator] if wants_estimator else []))
    except Exception as error:
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


def own_callbacks(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a fit with copies of its callbacks.

    Callbacks such as `lightgbm.early_stopping` keep the state of a fit, which threads would share.

    >>> class Stop:
    ...     best = None
    >>> stop, eval_set = Stop(), [1]
    >>> found = own_callbacks({"model__callbacks": [stop], "eval_set": eval_set})
    >>> found["model__callbacks"][0] is stop, found["eval_set"] is eval_set
    (False, True)
    """
    return {
        name: _copied(value) if name.rpartition("__")[2] in ("callback", "callbacks") else value
        for name, value in arguments.items()
    }


def fitted(fresh: Any, rows: Rows, arguments: Mapping[str, Any]) -> Any:
    """Return the estimator itself, fitted on the rows with any weights."""
    fresh.fit(rows.X, rows.y, **with_weights(fresh, rows, arguments))
    return fresh


def with_weights(estimator: Any, rows: Rows, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of `fit` or `partial_fit`, with the weights of the rows, if any.

    Raises:
        SetupError: if the arguments have weights already.
    """
    if rows.sample_weight is None:
        return arguments
    name = _weight_name(estimator)
    if name in arguments:
        raise SetupError(_weighed_twice(name))
    return {**arguments, name: rows.sample_weight}


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, which takes the weights, or the estimator itself.

    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> last_step(make_pipeline("passthrough", make_pipeline(DummyClassifier())))
    DummyClassifier()
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def learns_with_weights(estimator: Any, method: str) -> bool:
    """Return whether `fit` or `partial_fit` takes weights. In a pipeline its last step decides.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> learns_with_weights(GaussianNB(), "partial_fit")
    True
    >>> learns_with_weights(KNeighborsClassifier(), "fit")
    False
    """
    if get_config()["enable_metadata_routing"]:  # then the user says who takes them
        return True
    learn = getattr(last_step(estimator), method, None)
    return learn is None or accepts(learn, 2, "sample_weight")


def own_settings() -> dict[str, Any]:
    """Return this thread's settings of scikit-learn that a new thread does not have.

    >>> from sklearn import config_context
    >>> with config_context(transform_output="pandas"):
    ...     own_settings()
    {'transform_output': 'pandas'}
    """
    with ThreadPoolExecutor(1) as new_thread:
        defaults = new_thread.submit(get_config).result()
    return {name: value for name, value in get_config().items() if value != defaults[name]}


def applying(settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Apply settings of scikit-learn, except those that this thread has set itself.

    scikit-learn has a configuration for each thread, and a new one has the defaults.
    """
    context: AbstractContextManager[None] = config_context(**{**settings, **own_settings()})
    return context


@contextmanager
def named_in_errors(params: Mapping[str, Any], size: int) -> Iterator[None]:
    """Add to an error the learner's parameters and training size."""
    try:
        yield
    except Exception as error:
        if sys.version_info >= (3, 11):
            error.add_note(f"Learner {params} was being trained on {size:,} examples.")
        raise


def _is_by_row(name: str, value: Any, n_rows: int) -> bool:
    if _OF_VALIDATION.fullmatch(name.rpartition("__")[2]):
        return False
    if isinstance(value, list):
        return len(value) == n_rows
    shape: tuple[int, ...] = getattr(value, "shape", ())
    return len(shape) > 0 and shape[0] == n_rows


def _cut(name: str, value: Any, training: Rows) -> Any:
    if training.positions.max() >= _num_samples(value):
        raise SetupError(
            f"`fit_params` must have a value for each row trained on, but {brief(name)} has one "
            "for each row of `X` and none for `X_valid`. Refit without `include_validation`, or "
            "pass a function as `fit_params`."
        )
    return _safe_indexing(value, training.positions)


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # a callback may hold a file or a lock
        return [*map(_copied, value)] if isinstance(value, list | tuple) else value


def _weight_name(estimator: Any) -> str:
    """Return the argument of `fit` for the weights of a pipeline's last step.

    >>> from sklearn.dummy import DummyClassifier
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
