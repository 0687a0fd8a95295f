"""Trade-offs between the edge of a hypothesis and the cost of its features.

Each function scores candidates, larger is better. Costs are those of all features that a candidate
uses, paid or not: if paid features were free, they would always win [1].

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
[2] A. Grubb, J. A. Bagnell, "SpeedBoost: Anytime Prediction with Uniform Near-Optimality",
    AISTATS 2012. https://proceedings.mlr.press/v22/grubb12.html
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


TradeOff = Callable[[NDArray[np.float64], NDArray[np.float64], float], NDArray[np.float64]]
"""Function (edges in [0, 1), costs >= 0, money spent) -> scores, shape (n_candidates,)."""

MIN_COST = 1e-100
"""Divisor for a cost of 0. It is so small that a free candidate with an edge beats every paid one;
free candidates compete by their edges."""


def plain(
    edge: NDArray[np.float64], cost: NDArray[np.float64], spent: float
) -> NDArray[np.float64]:
    """Return the edge and ignore costs, as AdaBoost does.

    >>> plain(np.array([0.3, 0.2]), np.array([0.5, 0.1]), 2.0)
    array([0.3, 0.2])
    """
    del cost, spent
    return edge


def greedy(
    edge: NDArray[np.float64], cost: NDArray[np.float64], spent: float
) -> NDArray[np.float64]:
    """Return the fall of the training-error bound per unit of cost.

    This is optimal if all later rounds have this edge and this cost.

    >>> np.exp(-greedy(np.array([0.3, 0.2]), np.array([0.5, 0.1]), 2.0)).round(6)
    array([0.8281  , 0.664833])
    """
    del spent
    return -np.log1p(-(edge**2)) / np.maximum(cost, MIN_COST)  # [1] Eq. (1), as a maximum


def smoothed(
    edge: NDArray[np.float64], cost: NDArray[np.float64], spent: float
) -> NDArray[np.float64]:
    """Return the training-error bound's fall per unit of a round's average cost.

    The average includes the rounds so far, so the cost counts less as more is spent.

    >>> np.exp(-smoothed(np.array([0.3, 0.2]), np.array([0.5, 0.1]), 2.0)).round(6)
    array([0.962978, 0.980749])
    """
    return -np.log1p(-(edge**2)) / np.maximum(spent + cost, MIN_COST)  # [1] Eq. (2), as a maximum


def speedboost(
    edge: NDArray[np.float64], cost: NDArray[np.float64], spent: float
) -> NDArray[np.float64]:
    """Return the exponential loss's fall per unit of cost, with the best vote weight.

    >>> speedboost(np.array([0.3, 0.2]), np.array([0.5, 0.1]), 2.0).round(6)
    array([0.092122, 0.202041])
    """
    del spent
    square = edge**2
    fall = square / (1.0 + np.sqrt(1.0 - square))  # 1 - sqrt(1 - gamma^2) without cancellation
    return fall / np.maximum(cost, MIN_COST)  # [1] Appendix A, Eq. (4); [2]
