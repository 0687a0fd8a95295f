"""Small data sets for the tests of the learners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


ROWS = ("00101", "00111", "01010", "10011", "10110", "01100")
ROWS += ("10101", "00001", "11100", "11000", "00010", "10000")
TIE_FREE_X = np.array([[int(digit) for digit in row] for row in ROWS], dtype=float)
TIE_FREE_Y = np.array([1 if sign == "+" else -1 for sign in "++--++++----"])
TIE_FREE_COSTS = (0.2, 2.0, 1.5, 2.5, 0.3)
"""formulas.md 4.8: in every round the best score is at least 4 % ahead."""


def noisy(
    n_samples: int, n_features: int, seed: int, *, n_classes: int = 2, digits: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return features with ties and labels that depend on the first two of them and on luck."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)).round(digits)
    signal = X[:, 0] + 0.5 * X[:, 1 % n_features] + 0.3 * rng.standard_normal(n_samples)
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(cuts, signal)
