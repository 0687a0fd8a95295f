"""Ranges of parameters by number of rows, and suggestions of values in them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import TypeVar

from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_seed
from optuna_daub.core.checks import whole_number


Task = Literal["classification", "regression"]

Range = TypeVar("Range", bound=BaseDistribution)

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

    A boosted tree has at most n_rows / 4 leaves, a forest's tree at most n_rows; 8 are allowed in
    any case.
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
        if whole_number("jobs", jobs) == 0:
            raise ValueError("`jobs` must be at least 1, or -1 for all cores, but got 0.")
        self._common = {"random_state": checked_seed(seed), "n_jobs": jobs}
        self._trial, self._known, self.most = trial, trial.distributions, limits(n_rows)
        self.has_classes = task == "classification"

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number, suggested on a log scale."""
        range_ = self._range(name, IntDistribution(low, high, log=True))
        return self._trial.suggest_int(name, range_.low, range_.high, log=True)

    def real(self, name: str, low: float, high: float) -> float:
        """Return a number, suggested on a log scale."""
        range_ = self._range(name, FloatDistribution(low, high, log=True))
        return self._trial.suggest_float(name, range_.low, range_.high, log=True)

    def word(self, name: str, words: Sequence[str], others: Iterable[str] = ()) -> str:
        """Return one of some words; `others` are possible with other numbers of rows.

        A fixed trial may have any of them: it was chosen with fewer rows than it is fitted on.
        """
        if isinstance(self._trial, FixedTrial):
            words = [*words, *(other for other in others if other not in words)]
        space = CategoricalDistribution([*words])
        range_ = self._range(name, space)
        if not {*words, *others}.issuperset(range_.choices):
            raise _taken(name, range_, space)
        return str(self._trial.suggest_categorical(name, range_.choices))

    def _range(self, name: str, space: Range) -> Range:
        """Return the trial's own range of a parameter, or the space's if it has none yet."""
        known = self._known.get(name, space)
        if type(known) is not type(space) or getattr(known, "log", 0) != getattr(space, "log", 0):
            raise _taken(name, known, space)
        return known

    def boosted(self, leaves: str) -> dict[str, Any]:
        """Return the parameters that LightGBM and XGBoost share; `leaves` is the name of one."""
        return self._common | {
            "n_estimators": self.whole("trees", 4, self.most["trees"]),
            "learning_rate": self.real("rate", 2**-10, 1.0),
            "subsample": self.real("rows", 0.1, 1.0),
            "colsample_bytree": self.real("columns", 0.1, 1.0),
            "reg_alpha": self.real("l1", 2**-10, 2**10),
            "reg_lambda": self.real("l2", 2**-10, 2**10),
            leaves: self.whole("leaves", 4, self.most["leaves"]),
        }

    def forest(self) -> dict[str, Any]:
        """Return the parameters that both kinds of forests share."""
        return self._common | {
            "n_estimators": self.whole("forest_trees", 4, self.most["forest_trees"]),
            "max_leaf_nodes": self.whole("forest_leaves", 4, self.most["forest_leaves"]),
            "max_features": self.real("features", 0.1, 1.0),
        }


def _taken(name: str, known: BaseDistribution, space: BaseDistribution) -> ValueError:
    """Return the error for a parameter whose range in the trial is of another kind."""
    return ValueError(
        f"`trial` has the parameter {brief(name)} of another kind already: {known}, where the "
        f"space has {space}. Give your parameter another name."
    )
