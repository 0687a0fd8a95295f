"""Boxes: what an action with a known cost and an uncertain outcome is worth.

An action costs something and shows a score. Weitzman's reservation value [1], here the *index*, is
the score above which the action is not worth its cost; of an action in two stages it is Gittins'
index [2]. Read the other way round, the *price* is the cost of a unit of effort at which the
action is just worth it [3]. Outcomes are normal distributions. All functions take arrays, one
entry for each action, in one pass, and broadcast.

[1] M. L. Weitzman, "Optimal Search for the Best Alternative", Econometrica 47(3), 1979.
    https://doi.org/10.2307/1910412
[2] J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", Journal of the Royal
    Statistical Society B 41(2), 1979. https://doi.org/10.1111/j.2517-6161.1979.tb01068.x
[3] Q. Xie, R. Astudillo, P. I. Frazier, Z. Scully, A. Terenin, "Cost-aware Bayesian Optimization
    via the Pandora's Box Gittins Index", NeurIPS 2024. https://arxiv.org/abs/2406.20062
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import erfcx
from scipy.special import ndtr


Numbers = NDArray[np.float64]

N_POINTS = 7
"""Outcomes of a look that stand for all: Gauss-Hermite, exact for polynomials of degree 13. The
index with a look is off by 0.06 standard deviations (`tests/core/test_boxes.py`), and takes a
fraction of the time that a fine grid takes."""
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(N_POINTS)
"""Standard deviations from the mean, and probabilities; shape (7,) each."""
WEIGHTS = WEIGHTS / WEIGHTS.sum()
NEWTON_STEPS = 12
"""Of the reservation value's equation; five reach full precision, the rest is for extremes."""
HALVINGS = 40
"""Of the interval in which an index with a look lies: to 1e-12 of its width."""


def improvement(mean: ArrayLike, sd: ArrayLike, over: ArrayLike) -> Numbers:
    """Return E[max(0, X - over)] of a normal X, at least 0.

    Args:
        mean: of X.
        sd: its standard deviation, at least 0 and finite.
        over: the score to improve on.

    >>> improvement([0.8, 0.9], [0.1, 0.0], 0.8).round(6)
    array([0.039894, 0.1     ])
    """
    sd = np.asarray(sd, np.float64)
    ahead = np.asarray(mean, np.float64) - np.asarray(over, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        uncertain = sd * _excess(-ahead / sd)
    return np.asarray(np.where(sd > 0.0, uncertain, np.maximum(0.0, ahead)))


def index(mean: ArrayLike, sd: ArrayLike, cost: ArrayLike) -> Numbers:
    """Return the score over which the expected improvement is worth the cost, no more.

    It solves E[max(0, X - v)] = cost for v.

    Args:
        mean: of the normal X.
        sd: its standard deviation, at least 0 and finite.
        cost: in units of the score, at least 0. At 0 the index is infinite, unless `sd` is 0.

    >>> index([0.8, 0.9], [0.1, 0.0], [0.039894228, 0.1]).round(6)
    array([0.8, 0.8])
    """
    mean, sd, cost = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (mean, sd, cost)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_cost = np.log(cost) - np.log(sd)
        # Newton's steps for the logarithm, which is concave, stay right of the solution once
        # there. The start is near it, whether the cost is a tiny part of `sd` or many times it.
        deviate = np.sqrt(np.maximum(0.0, -2.0 * log_cost))
        deviate = np.where(log_cost > 0.0, -cost / sd, deviate)
        for _ in range(NEWTON_STEPS):
            excess = _excess(deviate)
            step = (np.log(excess) - log_cost) * excess / ndtr(-deviate)
            deviate = deviate + np.nan_to_num(step, posinf=0.0, neginf=0.0)
        uncertain = mean + sd * deviate
    value = np.where((sd > 0.0) & np.isfinite(uncertain), uncertain, mean - cost)
    return np.asarray(np.where((cost <= 0.0) & (sd > 0.0), math.inf, value))


def index_with_look(
    mean: ArrayLike, shown: ArrayLike, kept: ArrayLike, now: ArrayLike, later: ArrayLike
) -> Numbers:
    """Return the index of an action that shows something first, and may be given up then.

    It solves E[max(0, E[max(0, X - v) | what is shown] - later)] = now for v.

    Args:
        mean: of the normal X, the outcome in the end.
        shown: standard deviation of what the look changes of that mean, at least 0.
        kept: standard deviation of X that is left then, at least 0.
        now: cost of the look, above 0, in units of the score.
        later: cost of going on to the end, likewise, at least 0.

    >>> index_with_look(0.8, 0.1, 0.0, [0.01, 0.02], [0.0, 0.01]).round(3)
    array([0.893, 0.846])
    """
    mean, shown, kept, now, later = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (mean, shown, kept, now, later))
    )
    points = mean[..., None] + shown[..., None] * POINTS
    kept, later = kept[..., None], later[..., None]
    # Whatever is shown, going on is worth at least the mean less both costs.
    low = mean - now - later[..., 0]
    high = low + np.maximum(0.0, _highest(points, kept, later, now) - low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        ahead = improvement(points, kept, middle[..., None])
        is_worth = np.maximum(0.0, ahead - later) @ WEIGHTS > now
        low, high = np.where(is_worth, middle, low), np.where(is_worth, high, middle)
    return np.asarray(low)


def after_look(mean: ArrayLike, shown: ArrayLike, kept: ArrayLike, over: ArrayLike) -> Numbers:
    """Return the expected improvement after a look, for each of `POINTS`, on a further axis.

    Args:
        mean, shown, kept: as in `index_with_look`.
        over: the score to improve on.

    >>> after_look([0.8], [0.1], [0.0], 0.8).shape
    (1, 7)
    """
    mean, shown, kept, over = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (mean, shown, kept, over))
    )
    points = mean[..., None] + shown[..., None] * POINTS
    return improvement(points, kept[..., None], over[..., None])


def price(ahead: ArrayLike, now: ArrayLike, later: ArrayLike) -> Numbers:
    """Return the price L at which each action just breaks even: 0 or above.

    It solves sum_j w_j max(0, ahead_j - L later) = L now, w_j being `WEIGHTS`. The left side is
    the largest of the sums over the last outcomes alone, so L is the largest of their solutions.

    Args:
        ahead: expected improvement after each outcome of the look, as `after_look` has it, at
            least 0 and increasing; shape (..., 7). Of an action without a look, all are the same.
        now: effort until the look, above 0; shape (...).
        later: effort from there to the end, at least 0; shape (...).

    >>> price([[0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1], [0.2] * 7], [1.0, 2.0], [0.0, 2.0]).round(3)
    array([0.073, 0.05 ])
    """
    now, later = (np.asarray(x, np.float64)[..., None] for x in (now, later))
    sums = np.cumsum((np.asarray(ahead) * WEIGHTS)[..., ::-1], axis=-1)
    return np.asarray((sums / (now + later * np.cumsum(WEIGHTS[::-1]))).max(axis=-1))


def _excess(deviate: Numbers) -> Numbers:
    """Return E[max(0, Z - deviate)] of a standard normal Z, to full relative precision."""
    far = np.abs(deviate)
    density = np.exp(-0.5 * far * far) / math.sqrt(2.0 * math.pi)
    mills = math.sqrt(math.pi / 2.0) * erfcx(far / math.sqrt(2.0))
    # Far out Mills' ratio is so close to 1 / deviate that the difference is rounding.
    left = np.where(far < 1e4, 1.0 - far * mills, 0.0)
    return np.asarray(density * left + np.maximum(0.0, -deviate))


def _highest(points: Numbers, kept: Numbers, later: Numbers, now: Numbers) -> Numbers:
    """Return a score that no index is above: that of the best outcome, were it certain."""
    best = points[..., -1]
    # With w_7 <= 1: E[max(0, ...)] <= EI of the best outcome - later, which must pay `now`.
    return index(best, kept[..., 0], now + later[..., 0])
