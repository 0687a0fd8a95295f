"""Costs if trainings go on from earlier models: then only new examples are paid for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optuna_daub.core.costs.cost_model import CostModel
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.space import Numbers


def go_on(curves: Curves) -> bool:
    """Return whether a training of any learner went on from an earlier model."""
    return bool(curves.columns(_goes_on).any())


def new_costs(pool: Pool, cost: CostModel, sizes: tuple[int, ...]) -> Seconds:
    """Return the costs of training all learners and candidates, shape (points, sizes).

    If a training of the pool went on from an earlier model, only the new examples are paid for, in
    proportion.
    """
    found = cost.seconds(pool, sizes)
    if not go_on(pool.curves):
        return found
    seen = np.zeros((len(found.log_mean), 1))
    seen[: len(pool.curves)] = pool.curves.columns(_size)
    new = np.maximum(np.array(sizes) - seen, 1.0) / np.array(sizes)
    return found._replace(log_mean=found.log_mean + np.log(new))


def rest_after(curves: Curves, at: Numbers, stops: ArrayLike, full: int) -> Numbers:
    """Return the cost from each stop to N, as a share of the cost from `at` to N.

    It is below 1 only if trainings of the pool go on from earlier models.

    Args:
        curves: curves of the pool.
        at: sizes trained on so far, below N.
        stops: later sizes; both arrays have shapes that broadcast.
        full: N.
    """
    share = (full - np.asarray(stops, np.float64)) / (full - at)
    return share if go_on(curves) else np.ones_like(share)


def _goes_on(curve: LearningCurve) -> tuple[float]:
    """Return whether a training of the learner went on from an earlier model."""
    return (float(any(Cost.of(seen).examples < seen.size for seen in curve.observations)),)


def _size(curve: LearningCurve) -> tuple[float]:
    return (float(curve.size),)
