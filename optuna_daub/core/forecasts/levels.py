"""A newcomer's score, predicted from its parameters: Gaussian process regression.

Learners with like parameters score alike. How much parameters say differs between spaces, and
is itself learnt: a share r of the variance v of scores is explained by them,

    covariance of two learners' scores  =  r v k(x, x') + [same learner] ((1 - r) v + its own)

and every r counts by the likelihood of the scores seen [1, Chapter 5]. k is the mean of a linear
kernel, which is right early, and a squared exponential one, which knows that the best is seldom
at an end. Where parameters say nothing, a newcomer is like any learner.

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
CERTAINTY = 4.0
"""Weight of v, in learners: it is estimated from the scores themselves, so that forecasts are
wider the fewer there are."""


def gaussian_process(
    known: Sequence[Mapping[str, Any]],
    scores: NDArray[np.float64],
    variances: NDArray[np.float64],
    new: Sequence[Mapping[str, Any]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of new learners' scores.

    Args:
        known: the parameters of other learners, at least two.
        scores: theirs, as many, or forecasts of them; not all the same.
        variances: of these forecasts; 0 where the score is known.
        new: the parameters of learners without a score. One that lacks a parameter which all
            known ones have is like any learner.

    >>> depths = [{"depth": depth} for depth in (1, 2, 4, 8, 16, 32)]
    >>> scores = np.array([0.50, 0.58, 0.66, 0.74, 0.82, 0.90])
    >>> mean, variance = gaussian_process(depths, scores, np.zeros(6), [{"depth": 5}])
    >>> 0.68 < float(mean[0]) < 0.72, float(variance[0]) < float(scores.var()) / 3
    (True, True)
    """
    n = len(known)
    seen = Features.of(known, new)
    # Far from all that was seen nothing is believed to go on as it did.
    low, high = seen.known.min(axis=0), seen.known.max(axis=0)
    X = seen.known - seen.known.mean(axis=0)
    Z = np.clip(seen.new, 2.0 * low - high, 2.0 * high - low) - seen.known.mean(axis=0)
    square, square_new = (X**2).sum(axis=1), (Z**2).sum(axis=1)
    apart = np.maximum(0.0, square[:, None] + square - 2.0 * X @ X.T)
    apart_new = np.maximum(0.0, square[:, None] + square_new - 2.0 * X @ Z.T)
    # Both kernels have variance 1 on average over the learners known; their mean distance is the
    # scale of the second.
    size, scale = square.mean() or 1.0, apart.sum() / (n * (n - 1)) or 1.0
    among = (X @ X.T / size + np.exp(-apart / scale)) / 2.0
    across = (X @ Z.T / size + np.exp(-apart_new / scale)) / 2.0
    itself = (square_new / size + 1.0) / 2.0
    is_unknown = seen.is_unknown.any(axis=1)
    across[:, is_unknown], itself[is_unknown] = 0.0, 1.0

    mean, v = scores.mean(), scores.var(ddof=1)
    off, found = scores - mean, []
    for r in SHARES:
        root = np.linalg.cholesky(r * v * among + np.diag((1.0 - r) * v + variances))
        # [1] Algorithm 2.1, with the scale of all variances integrated out [1, Section 9.9].
        beta, cross = np.linalg.solve(root, off), np.linalg.solve(root, r * v * across)
        total = CERTAINTY + beta @ beta
        weight = -np.log(np.diag(root)).sum() - (n + CERTAINTY) / 2.0 * math.log(total)
        left = r * v * itself - (cross**2).sum(axis=0) + (1.0 - r) * v
        found.append((weight, beta @ cross, left * total / (n + CERTAINTY - 2.0)))
    weights, means, squares = (np.array(column) for column in zip(*found, strict=True))
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    expected = weights @ means
    variance = weights @ (squares + means**2) - expected**2
    # The mean of the known ones is itself uncertain.
    return mean + expected, np.maximum(0.0, variance) + (v + variances.mean()) / n
