"""LightGBM's parameters: their other names, and the checks of those that are given."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number


ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "n_estimators": (
            "num_boost_round", "num_iterations", "num_iteration", "n_iter", "num_trees",
            "num_tree", "num_round", "num_rounds", "nrounds", "max_iter"),
        "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
        "learning_rate": ("shrinkage_rate", "eta"),
        "min_child_samples": (
            "min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"),
        "subsample": ("bagging_fraction", "sub_row", "bagging"),
        "subsample_freq": ("bagging_freq",),
        "colsample_bytree": ("feature_fraction", "sub_feature"),
        "reg_alpha": ("lambda_l1", "l1_regularization"),
        "reg_lambda": ("lambda_l2", "lambda", "l2_regularization"),
        "random_state": ("seed", "random_seed"),
        "n_jobs": ("num_threads", "num_thread", "nthread", "nthreads"),
    }
)  # fmt: skip
"""LightGBM's other names for the parameters that the space sets, from its documentation."""

ROUNDS = ("n_estimators", *ALIASES["n_estimators"])
"""All names of the number of rounds."""


def checked_params(package: Any, params: Any) -> dict[str, Any]:
    """Return parameters, without blanks around words: LightGBM takes ` auc` for no metric.

    Raises:
        ValueError: if they are not a dict, LightGBM has no such parameter, a value is a set, or
            the number of rounds is not a whole number above 0.
    """
    if not isinstance(params, Mapping):
        raise ValueError(f"`params` must be a dict of parameters, but got {brief(params)}.")
    kept = {_bare(name): _bare(value) for name, value in params.items()}
    known = _known_names(package)
    for name, value in kept.items():
        if isinstance(value, set | frozenset) and len(value) > 1:
            raise ValueError(
                f"`{name}` in `params` must have an order, since the first metric is the score, "
                f"but got the set {brief(value)}. Pass a list."
            )
        if known and name not in known:
            alike = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
            hint = f" Did you mean {brief(alike[0])}?" if alike else ""
            raise ValueError(
                f"`params` must have parameters of LightGBM, but got {brief(name)}.{hint}"
            )
    for name in ROUNDS:
        if name in kept and whole_number(name, kept[name]) < 1:
            raise ValueError(f"`{name}` in `params` must be at least 1, but got {kept[name]}.")
    return kept


def _known_names(package: Any) -> set[str]:
    """Return the names of all parameters; without LightGBM's private table of them, none."""
    try:
        table = package.basic._ConfigAliases._get_all_param_aliases()
        names = {*table, *(other for others in table.values() for other in others)}
    except Exception:  # the table may go away or look otherwise
        return set()
    return names if names >= {*ALIASES} else set()


def _bare(value: Any) -> Any:
    """Return a text, or the texts of a list, without blanks at their ends."""
    if isinstance(value, list | tuple):
        return [*map(_bare, value)]
    return value.strip() if isinstance(value, str) else value
