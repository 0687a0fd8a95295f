"""The data sets of the budgeted booster paper with binary features and two classes.

Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster", IJCAI 2015,
Table 1 (sizes, rounds, trials). https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.rows import SHARED


FOLDER = SHARED / "data"

Examples = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Features, shape (n_samples, n_features), and whether an example is of the second class."""


@dataclass(frozen=True)
class DataSet:
    """A line of the paper's Table 1, and where the data come from."""

    read: Callable[[], Examples]
    n_train: int
    n_test: int
    n_rounds: int
    paper_features: int
    paper_trials: int


def at_least(X: NDArray[Any]) -> NDArray[np.bool_]:
    """Return x > t for every t between neighbouring values of a column.

    >>> at_least(np.array([[1.0], [2.0], [5.0]])).astype(int).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    return np.hstack([x[:, np.newaxis] > np.unique(x)[:-1] for x in X.T])


def _table(name: str, positive: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    frame = pd.read_parquet(FOLDER / f"{name}.parquet")
    return frame.drop(columns="target").to_numpy(), frame["target"].to_numpy() == positive


def _thresholds(name: str, positive: int) -> Examples:
    X, y = _table(name, positive)
    return at_least(X), y


def _letters(name: str, positive: int) -> Examples:
    """Return one feature for each place and its four letters; ambiguous ones (N, D) have none."""
    X, y = _table(name, positive)
    frequent = [np.argsort(np.bincount(x))[:-5:-1] for x in X.T]  # codes differ between places
    return np.hstack([np.equal.outer(x, four) for x, four in zip(X.T, frequent, strict=True)]), y


def _digits(first: int, second: int) -> Examples:
    """Return which pixels are dark, for two digits; pixels that are dark in under 1 % are left."""
    with np.load(FOLDER / "mnist.npz") as mnist:
        chosen = np.isin(mnist["y"], (first, second))
        X, y = mnist["X"][chosen] > 127, mnist["y"][chosen] == second
    share = X.mean(axis=0)
    return X[:, (share > 0.01) & (share < 0.99)], y


def _made() -> Examples:
    rng = np.random.default_rng(0)
    X = rng.random((400, 60)) < 0.5
    return X, X[:, :20].sum(axis=1) + rng.normal(0, 2, 400) > 10


DATA = {
    "ocr17": DataSet(partial(_digits, 1, 7), 1000, 5000, 400, 403, 100),
    "ocr49": DataSet(partial(_digits, 4, 9), 1000, 5000, 200, 403, 100),
    "splice": DataSet(partial(_letters, "splice", 2), 1000, 2175, 75, 240, 100),
    "breast cancer": DataSet(partial(_thresholds, "breast_w", 1), 500, 199, 500, 82, 400),
    "ecoli": DataSet(partial(_thresholds, "ecoli", 0), 200, 127, 50, 356, 400),
    "sonar": DataSet(partial(_thresholds, "sonar", 1), 100, 108, 99, 11196, 400),
    "heart": DataSet(partial(_thresholds, "heart_statlog", 1), 100, 170, 15, 371, 400),
    "ionosphere": DataSet(partial(_thresholds, "ionosphere", 1), 300, 51, 400, 8114, 400),
    "made": DataSet(_made, 200, 200, 60, 60, 3),
}
"""Test sets are the paper's but for ecoli: 9 examples of its smallest classes are missing here."""
