"""The budget for features, in which each feature is paid once ([1] Alg. 1).

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

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
    costs: ArrayLike | None, budget: float | None, n_features: int, names: Sequence[str]
) -> Budget:
    """Return a budget from the parameters of an estimator.

    Args:
        costs: one for each feature; None for 1 each.
        budget: None for no limit.
        n_features: number of columns of X.
        names: names of the features, for messages.

    Raises:
        ValueError: if costs are not finite numbers >= 0, one for each feature; or the budget is
            negative, not a number, or below the cost of the cheapest feature.
    """
    try:
        values = np.ones(n_features) if costs is None else np.asarray(costs, dtype=np.float64)
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
    limit = np.inf if budget is None else number("budget", budget)
    if not limit >= 0.0:
        raise ValueError(f"`budget` must be at least 0 or None, but got {brief(budget)}.")
    checked = Budget(values, limit)
    if not checked.affords(values.min()):
        raise ValueError(f"{nothing_bought(checked, names)} Raise the budget.")
    return checked


def nothing_bought(budget: Budget, names: Sequence[str]) -> str:
    """Return the error message for a budget that buys nothing. It names the cheapest feature."""
    cheapest = int(np.argmin(budget.costs))
    return (
        f"`budget` must pay for the features of at least one hypothesis, but got {budget.limit}; "
        f"the cheapest feature is {brief(names[cheapest])} at {budget.costs[cheapest]}."
    )
