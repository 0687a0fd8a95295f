"""The budget for features, in which each feature is paid once ([1] Alg. 1).

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import number


ROUNDING = 1e-12
"""Relative excess over the budget that counts as a rounding error of sums."""


@dataclass(frozen=True)
class Budget:
    """Costs of features, the limit on spending, and the features bought so far.

    >>> budget = Budget(np.array([2.0, 0.5]), limit=3.0).buy((0,))
    >>> budget.spent, budget.unpaid.tolist(), budget.affords([0.5, 1.5]).tolist()
    (2.0, [0.0, 0.5], [True, False])
    """

    costs: NDArray[np.float64]
    """Cost of each feature, at least 0, in the units of the limit. Shape (n_features,)."""
    limit: float
    """Largest sum that may be spent, at least 0, or infinity."""
    bought: tuple[int, ...] = ()
    """Columns of the features paid for, in the order of purchase."""

    @property
    def spent(self) -> float:
        """Sum of the costs of the bought features."""
        return float(self.costs[list(self.bought)].sum())

    @property
    def unpaid(self) -> NDArray[np.float64]:
        """Price of each feature now, shape (n_features,): 0 once it is bought."""
        costs = self.costs.copy()
        costs[list(self.bought)] = 0.0
        return costs

    def affords(self, costs: ArrayLike) -> NDArray[np.bool_]:
        """Return True for costs that can still be paid."""
        return np.asarray(self.spent + np.asarray(costs) <= self.limit * (1.0 + ROUNDING))

    def buy(self, features: Iterable[int]) -> Budget:
        """Return the budget after paying for those features not yet bought."""
        new = tuple(dict.fromkeys(one for one in features if one not in self.bought))
        return replace(self, bought=self.bought + new)


def checked_budget(
    costs: ArrayLike | Mapping[str, float] | None,
    budget: float | None,
    names: Sequence[str],
    *,
    named: bool,
) -> Budget:
    """Return a budget from the parameters of an estimator.

    Args:
        costs: one for each feature, by name or in the order of the columns; None for 1 each.
        budget: None for no limit.
        names: names of the features.
        named: True if X has these names, False if they only serve messages.

    Raises:
        ValueError: if costs are not finite numbers >= 0 with a finite sum, one for each feature;
            or the budget is negative, not a number, or below the cost of the cheapest feature.
    """
    n_features = len(names)
    ordered = np.ones(n_features) if costs is None else in_order(costs, names, named=named)
    try:
        values = np.asarray(ordered, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`feature_costs` must be a list of one number for each of the {n_features} features, "
            f"but got {brief(costs)}."
        ) from None
    if values.shape != (n_features,):
        raise ValueError(
            f"`feature_costs` must have one cost for each of the {n_features} features, but got "
            f"shape {values.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    if wrong.size:
        raise ValueError(
            "`feature_costs` must be finite and at least 0, but feature "
            f"{brief(names[wrong[0]])} costs {values[wrong[0]]}."
        )
    # What was spent and one more hypothesis are two sums of costs, whose sum must not overflow.
    if values.max() > np.finfo(np.float64).max / (2 * n_features):
        raise ValueError(
            f"`feature_costs` must have a finite sum, but the largest of {n_features} costs is "
            f"{values.max()}. Count them in larger units, and the budget too."
        )
    limit = np.inf if budget is None else number("budget", budget)
    if not limit >= 0.0:
        raise ValueError(f"`budget` must be at least 0 or None, but got {brief(budget)}.")
    checked = Budget(values, limit)
    if not checked.affords(values.min()):
        raise ValueError(f"{nothing_bought(checked, names)} Raise the budget.")
    return checked


def in_order(
    costs: ArrayLike | Mapping[str, float], names: Sequence[str], *, named: bool
) -> ArrayLike:
    """Return costs in the order of the columns.

    Costs of a mapping or a pandas Series have names of their own.

    >>> in_order({"age": 1.0, "blood": 9.0}, ["blood", "age"], named=True).tolist()
    [9.0, 1.0]

    Args:
        costs: costs with or without names.
        names: names of the features.
        named: True if X has these names.

    Raises:
        ValueError: if the names are not exactly the columns, or X has none to compare with.
    """
    keys: list[Any]
    values: ArrayLike
    if isinstance(costs, Mapping):
        keys, values = list(costs), list(costs.values())
    else:
        index = getattr(costs, "index", None)
        if index is None or callable(index):  # a list has a method of this name
            return costs
        keys, values = list(index), costs
        # Row numbers, also those of a filtered table, name no columns.
        if not any(isinstance(key, str) for key in keys):
            return costs
    if not named:
        raise ValueError(
            f"`feature_costs` must be a list of one number for each of the {len(names)} features "
            f"if texts do not name the columns of X, but got {brief(costs)}. Name the columns, or "
            "list the costs in their order."
        )
    counts, columns = Counter(keys), set(names)
    faults = {
        "lacks": [name for name in names if name not in counts],
        "has the unknown": [key for key in counts if key not in columns],
        "repeats": [key for key, count in counts.items() if count > 1],
    }
    if any(faults.values()):
        found = " and ".join(f"{verb} {brief(keys)}" for verb, keys in faults.items() if keys)
        raise ValueError(
            f"`feature_costs` must name each column of X once, but {found}. Correct the names, or "
            "list the costs in the order of the columns."
        )
    places = {key: place for place, key in enumerate(keys)}
    order = [places[name] for name in names]
    return np.asarray(np.asarray(values, dtype=object)[order])


def nothing_bought(budget: Budget, names: Sequence[str]) -> str:
    """Return the error message for a budget that buys nothing. It names the cheapest feature."""
    cheapest = int(np.argmin(budget.costs))
    return (
        f"`budget` must pay for the features of at least one hypothesis, but got {budget.limit}; "
        f"the cheapest feature is {brief(names[cheapest])} at {budget.costs[cheapest]}."
    )
