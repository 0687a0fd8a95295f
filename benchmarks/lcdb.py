"""The learning curves of LCDB 1.1, as arrays read in place.

LCDB 1.1: C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
Ill-Behaved Than Previously Thought", NeurIPS 2025 (CC BY 4.0). https://arxiv.org/abs/2505.15657
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import SHARED


TABLES = SHARED / "tables"

BASELINES = ("DummyClassifier",)
"""Learners left out: nobody chooses among models by guessing the majority class."""

VALIDATION, TEST = 1, 2
"""Of the axis (train, validation, test) of LCDB."""


@cache
def lcdb() -> dict[str, NDArray[Any]]:
    """Return the arrays of the LCDB part by name."""
    with np.load(TABLES / "lcdb11_part.npz") as file:
        return dict(file)


def lcdb_errors(seed: int | None = None) -> NDArray[np.float64]:
    """Return error rates, axes (data set, learner, size, split).

    Args:
        seed: of the noise, drawn independently for every error rate; None for no noise.
    """
    mean, standard_error = np.moveaxis(lcdb()["error_rate"].astype(float), 2, 0)
    if seed is not None:
        mean = np.random.default_rng(seed).normal(mean, standard_error)
    return np.asarray(np.clip(mean, 0.0, 1.0))


def full_rung(data_set: int) -> int:
    """Return the index of N: the largest size that at least half of the learners were trained on.

    Args:
        data_set: its index in the LCDB part.
    """
    known = np.isfinite(lcdb()["error_rate"][data_set, choosable(), 0]).all(axis=-1)
    return int(np.flatnonzero(2 * known.sum(axis=0) >= len(known)).max(initial=0))


def choosable() -> NDArray[np.bool_]:
    """Return which learners of LCDB are no baselines."""
    return np.asarray(~np.isin(lcdb()["learner"], BASELINES))
