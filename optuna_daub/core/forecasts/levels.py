"""A newcomer's score, predicted from its parameters: Gaussian process regression.

Learners with like parameters score alike. How much parameters say differs between spaces, and
is itself learnt: a share r of the variance v of scores is explained by them,

    covariance of two learners' scores  =  r v k(x, x') + [same learner] ((1 - r) v + its own)

and every r counts by the likelihood of the scores seen [1, Chapter 5]. k is the mean of a linear
kernel, which is right early, and a squared exponential one, which knows that the best is seldom
at an end. So nothing is claimed where parameters say nothing.

[1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006.
    https://gaussianprocess.org/gpml/
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.parameters import Features


SHARES = 0.0, 0.25, 0.5, 0.75, 0.9, 0.97
"""r, each as likely as the other before any score is seen."""
FLOOR = 2.5
"""Standard deviations below the median, by the upper tenth, where a score counts as this low:
scores have a ceiling and no floor, and how hopeless a learner is says little of good ones."""
UPPER_TENTH = 1.2816
"""Standard deviations by which the best tenth of a normal distribution is above its median."""
CERTAINTY = 4.0
"""How many learners the variance of scores, taken from themselves, counts as: the fewer are known,
the wider are the tails."""


def spread_of(scores: NDArray[np.float64]) -> float:
    """Return how far the best tenth of scores is above the median; above 0 where any differ.

    >>> round(spread_of(np.array([0.5, 0.6, 0.7, 0.8, 0.9])), 3)
    0.16
    """
    if not len(scores):
        return 0.0
    high, middle = np.quantile(scores, [0.9, 0.5])
    return float(high - middle) or float(np.ptp(scores))


def by_parameters(
    known: Sequence[Mapping[str, Any]],
    scores: NDArray[np.float64],
    variances: NDArray[np.float64],
    new: Sequence[Mapping[str, Any]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of new learners' scores.

    Args:
        known: the parameters of other learners, at least two.
        scores: theirs, as many, or forecasts of them.
        variances: of these forecasts; 0 where the score is known.
        new: the parameters of learners without a score.

    >>> depths = [{"depth": depth} for depth in (1, 2, 4, 8, 16, 32)]
    >>> scores = np.array([0.50, 0.58, 0.66, 0.74, 0.82, 0.90])
    >>> mean, variance = by_parameters(depths, scores, np.zeros(6), [{"depth": 5}])
    >>> 0.68 < float(mean[0]) < 0.72, float(variance[0]) < 0.05**2
    (True, True)
    """
    n = len(known)
    seen = Features.of(known, new)
    middle_point = seen.known.mean(axis=0)
    X = np.vstack([seen.known, np.where(seen.is_unknown, middle_point, seen.new)]) - middle_point
    inner = X @ X.T
    norms = np.diag(inner)
    apart = np.maximum(0.0, norms[:, None] + norms - 2.0 * inner)
    # Both kernels have variance 1 on average over the learners known; their mean distance is the
    # scale of the second.
    linear = inner / (norms[:n].mean() or 1.0)
    near = np.exp(-apart / (apart[:n, :n].sum() / (n * (n - 1)) or 1.0))
    kernel = (linear + near) / 2.0

    scores = np.maximum(scores, np.median(scores) - FLOOR * spread_of(scores) / UPPER_TENTH)
    mean, v = scores.mean(), scores.var()
    if not np.ptp(scores) > 0.0:
        return np.full(len(new), mean), np.zeros(len(new))
    off = scores - mean
    found = []
    for r in SHARES:
        own = np.diag((1.0 - r) * v + variances)
        root = np.linalg.cholesky(r * v * kernel[:n, :n] + own)
        # [1] Algorithm 2.1, with the scale of all variances integrated out [1, Section 9.9].
        beta, cross = np.linalg.solve(root, off), np.linalg.solve(root, r * v * kernel[:n, n:])
        scale = CERTAINTY + beta @ beta
        weight = -np.log(np.diag(root)).sum() - (n + CERTAINTY) / 2.0 * math.log(scale)
        left = r * v * np.diag(kernel)[n:] - (cross**2).sum(axis=0) + (1.0 - r) * v
        found.append((weight, beta @ cross, left * scale / (n + CERTAINTY)))
    weights, means, variances = (np.array(column) for column in zip(*found, strict=True))
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    expected = weights @ means
    return mean + expected, np.maximum(0.0, weights @ (variances + means**2) - expected**2)
