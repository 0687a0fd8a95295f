"""Ranges of parameters by number of rows, and suggestions of values in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Literal

from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.trial import BaseTrial

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number


Task = Literal["classification", "regression"]

MAX_TREES = 2048
"""Largest number of boosted trees; FLAML (https://github.com/microsoft/FLAML) allows 32,768."""

MAX_LEAVES = 1024
"""Largest number of leaves of a boosted tree."""

MAX_LEAVES_OF_FORESTS = 32_768
"""Largest number of leaves of a forest's tree, as in FLAML."""

MAX_TREES_OF_FORESTS = 512
"""Largest number of trees of a forest: more change the score by less than its standard error."""

MAX_NEIGHBOURS = 100
"""Largest number of neighbours in a prediction."""


def check(n_rows: int, task: str) -> None:
    """Raise a ValueError if a number of rows or a task breaks its rule."""
    if not isinstance(task, str) or task not in ("classification", "regression"):
        raise ValueError(
            f'`task` must be "classification" or "regression", but got {brief(task)}.'
        )
    if whole_number("n_rows", n_rows) < 1:
        raise ValueError(f"`n_rows` must be at least 1, but got {brief(n_rows)}.")


def limits(n_rows: int) -> dict[str, int]:
    """Return the upper ends of the ranges that grow with the rows.

    A boosted tree has at most n_rows / 4 leaves, a forest's tree at most n_rows.
    """
    return {
        "trees": min(max(n_rows, 8), MAX_TREES),
        "leaves": min(max(n_rows // 4, 8), MAX_LEAVES),
        "forest_trees": min(max(n_rows, 8), MAX_TREES_OF_FORESTS),
        "forest_leaves": min(max(n_rows, 8), MAX_LEAVES_OF_FORESTS),
        "neighbours": min(max(n_rows // 100, 2), MAX_NEIGHBOURS),
    }


class Ask:
    """Suggestions of a trial by kind of range. A parameter that it has already keeps its range."""

    def __init__(self, trial: BaseTrial, n_rows: int, task: Task, jobs: int, seed: int) -> None:
        if not isinstance(trial, BaseTrial):
            raise ValueError(
                "`trial` must be the trial that Optuna gives to an objective, but got "
                f"{brief(trial)}."
            )
        check(n_rows, task)
        whole_number("jobs", jobs)
        whole_number("seed", seed)
        self._trial, self._known, self._n_rows = trial, trial.distributions, n_rows
        self.has_classes = task == "classification"

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number, suggested on a log scale."""
        match self._known.get(name):
            case IntDistribution() as range_:
                low, high = range_.low, range_.high
        return self._trial.suggest_int(name, low, high, log=True)

    def real(self, name: str, low: float, high: float) -> float:
        """Return a number, drawn by its logarithm."""
        match self._known.get(name):
            case FloatDistribution() as range_:
                low, high = range_.low, range_.high
        return self._trial.suggest_float(name, low, high, log=True)

    def word(self, name: str, words: Sequence[str]) -> str:
        """Return one of some words."""
        match self._known.get(name):
            case CategoricalDistribution() as range_:
                words = [str(choice) for choice in range_.choices]
        return str(self._trial.suggest_categorical(name, [*words]))

    def boosted(self, seed: int) -> dict[str, Any]:
        """Return the parameters that LightGBM and XGBoost share."""
        return {
            "n_estimators": self.whole("trees", 4, limits(self._n_rows)["trees"]),
            "learning_rate": self.real("rate", 2**-10, 1.0),
            "subsample": self.real("rows", 0.1, 1.0),
            "colsample_bytree": self.real("columns", 0.1, 1.0),
            "reg_alpha": self.real("l1", 2**-10, 2**10),
            "reg_lambda": self.real("l2", 2**-10, 2**10),
            "random_state": seed,
        }

    def forest(self, seed: int) -> dict[str, Any]:
        """Return the parameters that both kinds of forests share."""
        most = limits(self._n_rows)
        return {
            "n_estimators": self.whole("forest_trees", 4, most["forest_trees"]),
            "max_leaf_nodes": self.whole("forest_leaves", 4, most["forest_leaves"]),
            "max_features": self.real("features", 0.1, 1.0),
            "random_state": seed,
        }
