"""Pruner and starting points of searches with a time limit."""

from __future__ import annotations

from collections.abc import Iterable

import optuna
from optuna.trial import FrozenTrial

from optuna_daub.core.prices import LEAST_SHARE
from optuna_daub.spaces import Point
from optuna_daub.study import DAUBPruner


FIRST_ROWS = 300
"""Smallest number of rows of a first training. A quarter of all rows is enough if that is less."""
ROWS_OF_A_BAG = 10
"""Number of rows of which a tenth, the smallest bag of a booster, is a row. LightGBM needs one."""


def pruner(n_rows: int, smallest: int = 1) -> DAUBPruner:
    """Return the default pruner for `n_rows` rows to train on.

    Args:
        n_rows: number of rows, at least 4.
        smallest: smallest size that can be trained on, such as one that holds every class.

    Raises:
        ValueError: if there are no three sizes between `smallest` and `n_rows`.

    >>> pruner(100_000).policy.sizes[0], pruner(800).policy.sizes[0]
    (1562, 200)
    >>> pruner(12, smallest=9).policy.sizes
    (10, 11, 12)
    """
    few = max(n_rows // 4, min(ROWS_OF_A_BAG, n_rows - 2))
    least = max(smallest, int(n_rows * LEAST_SHARE), min(FIRST_ROWS, few), 2)
    try:
        return DAUBPruner(min_resource=least, max_resource=n_rows)
    except ValueError:  # the smallest size is so large that a ratio of 1.5 gives under 3 sizes
        if least + 2 > n_rows:
            raise
        return DAUBPruner(sizes=[least, (least + n_rows) // 2, n_rows])


class StartingPoints:
    """A callback of a study that enqueues points, one after every two runs.

    Optuna runs enqueued trials first. If all points were enqueued at once, there might be no model
    for a long time: good points take long, even on few rows.
    """

    def __init__(self, points: Iterable[Point]) -> None:
        self._points = iter(points)

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        if trial.number % 2 and (point := next(self._points, None)) is not None:
            study.enqueue_trial(point)
