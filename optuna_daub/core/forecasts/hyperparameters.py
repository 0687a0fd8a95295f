"""Hyperparameters of the process: those of largest posterior density.

The gradient is in closed form. Equations are those of [1].

[1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006.
    https://gaussianprocess.org/gpml/
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from optuna_daub.core.forecasts.process import Seen
from optuna_daub.core.forecasts.process import covariance_of
from optuna_daub.core.forecasts.process import matern
from optuna_daub.core.forecasts.process import pairs_of
from optuna_daub.core.forecasts.process import variances_of
from optuna_daub.core.once import by_content
from optuna_daub.core.space import Numbers


GROWTH = 1.15
"""Ratio of the numbers of trainings at which hyperparameters are fitted again. A smaller one costs
time (`benchmarks/decision_cost.py`)."""
FARTHEST = 4.0
"""Largest distance of a hyperparameter from its prior median, in prior standard deviations. Not
tuned."""
ITERATIONS = 50
"""Largest number of iterations of the search for the largest density. Not tuned."""


def milestone(count: int) -> int:
    """Return the largest number of the sequence 1, 2, 3, ... (each 15 % more) up to `count`.

    >>> milestone(20), milestone(100)
    (20, 94)
    """
    found = 1
    while (following := max(found + 1, math.floor(found * GROWTH))) <= count:
        found = following
    return found


@by_content
def fit(seen: Seen) -> Numbers:
    """Return the hyperparameters of largest posterior density, as logarithms."""
    apart = seen.apart
    medians, spreads = seen.prior.theta(len(apart), seen.n_varying)
    off = seen.score - seen.expected  # its prior mean is 0
    order = np.argsort(seen.learner, kind="stable")
    theta, varies = medians.copy(), np.asarray(apart.any(axis=(1, 2)), bool)
    # A parameter that is equal in all learners says nothing about its length scale. If all are
    # equal keep all: without length scales learners would count as independent.
    kept = np.asarray(varies | (not varies.any()), bool)
    reach = FARTHEST * spreads
    free = np.append(kept, np.ones(len(medians) - len(kept), bool))
    found = minimize(
        negative_log_posterior,
        medians[free],
        (
            apart[kept],
            seen.common(seen.rows, seen.rows),
            seen.learner[order],
            *pairs_of(seen.share[order]),
            off[order],
            medians[free],
            spreads[free],
        ),
        "L-BFGS-B",
        jac=True,
        bounds=[*zip((medians - reach)[free], (medians + reach)[free], strict=True)],
        options={"maxiter": ITERATIONS},
    )
    theta[free] = found.x
    return theta


def negative_log_posterior(
    theta: Numbers,
    apart: Numbers,
    common: Numbers,
    learner: NDArray[np.int64],
    shares: Numbers,
    walks: Numbers,
    off: Numbers,
    medians: Numbers,
    spreads: Numbers,
) -> tuple[float, Numbers]:
    """Return -ln p(theta | scores) up to a constant, and its gradient [1, eqs. 5.8 and 5.9].

    Args:
        theta: logarithms of the hyperparameters.
        apart: squared distances of learners by parameter.
        common: covariance of their levels by m and e.
        learner, off: learner and difference to the prior mean of each score, in the order of
            learners, all of which have scores.
        shares, walks: both results of `pairs_of`.
        medians, spreads: medians and standard deviations of the prior of theta (`Prior.theta`).
    """
    lengths, (f, g, b, u, v, w, noise) = variances_of(theta)
    flat = apart.reshape(len(apart), apart.shape[1] ** 2)
    square = ((1.0 / lengths) @ flat).reshape(apart.shape[1:])
    kernel = matern(square) if len(lengths) else np.eye(apart.shape[1])
    # The transpose has the memory order of LAPACK, so it is not copied.
    covariance = covariance_of(theta, kernel, common, learner, shares, walks)
    root, failed = dpotrf(covariance.T, lower=1, overwrite_a=1)
    if failed:
        return 1e10, np.zeros_like(theta)  # the line search steps back
    half, _ = dpotri(root, lower=1)
    inverse = half + half.T
    inverse.flat[:: len(off) + 1] /= 2.0
    weights = inverse @ off
    # Twice the derivative of the value by the covariance, summed over each pair of learners.
    change = inverse - weights[:, None] * weights
    bent, walked = change * shares, change * walks
    starts = np.flatnonzero(np.append(True, learner[1:] != learner[:-1]))
    by_level, by_gain = _by_learner(change, starts), _by_learner(bent, starts)
    common = (f * by_level + g * by_gain) * _slope(square)
    gradient = np.concatenate(
        [
            -(flat @ common.ravel()) / lengths,
            [
                f * float(np.vdot(by_level, kernel)),
                g * float(np.vdot(by_gain, kernel)),
                b * float(bent.sum()),
                u * float(np.trace(by_level)),
                v * float(walked.sum()),
                w * float(np.trace(_by_learner(walked, starts))),
                noise * float(np.trace(change)),
            ],
        ]
    )
    beside = (theta - medians) / spreads
    value = off @ weights / 2.0 + np.log(np.diag(root)).sum() + beside @ beside / 2.0
    return float(value), gradient + beside / spreads


def _by_learner(pairs: Numbers, starts: NDArray[np.int64]) -> Numbers:
    """Return sums over the pairs of scores of each pair of learners.

    Args:
        pairs: one number for each pair of scores, symmetric.
        starts: place of each learner's first score; its others follow.
    """
    if len(starts) == len(pairs):
        return pairs  # each learner has one score
    # Sum twice along the first axis, which is much faster.
    return np.asarray(np.add.reduceat(np.add.reduceat(pairs, starts).T, starts))


def _slope(square: Numbers) -> Numbers:
    """Return the derivative of the kernel by the squared distance."""
    root = np.sqrt(5.0 * square)
    return np.asarray(-5.0 / 6.0 * (1.0 + root) * np.exp(-root))
