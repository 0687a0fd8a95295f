"""Values of actions with a known cost and an uncertain outcome (Pandora's boxes).

An action has a cost and shows a score. Its *index* is the best score so far above which the action
is not worth its cost: Weitzman's reservation value [1], and for two stages Gittins' index [2]. Its
*price* answers the reverse question: the cost of a unit of effort at which the action just pays
[3]. Outcomes are normal distributions. All functions take arrays with one entry for each action,
and broadcast.

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
from scipy.special import erfcx
from scipy.special import ndtr

from optuna_daub.core.space import Numbers


N_POINTS = 7
"""Number of Gauss-Hermite points that stand for the score of a look. They are exact for
polynomials of degree 13. The error of an index with a look is 0.06 standard deviations
(`tests/core/test_boxes.py`)."""
OUTCOMES, WEIGHTS = np.polynomial.hermite_e.hermegauss(N_POINTS)
"""Possible results of a look, and their probabilities, both of shape (7,). Results are in standard
deviations from the mean."""
WEIGHTS = WEIGHTS / WEIGHTS.sum()
NEWTON_STEPS = 12
"""Newton steps for an index; five reach full precision, extreme values need more."""
HALVINGS = 40
"""Bisection steps for an index with a look: its interval shrinks to 1e-12 of its width."""


def improvement(mean: ArrayLike, sd: ArrayLike, over: ArrayLike) -> Numbers:
    """Return E[max(0, X - over)] of a normal X, at least 0.

    Args:
        mean: mean of X.
        sd: standard deviation of X, at least 0 and finite.
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
    """Return the index: the score v over which the expected improvement equals the cost.

    It solves E[max(0, X - v)] = cost for v.

    Args:
        mean: mean of the normal X.
        sd: standard deviation of X, at least 0 and finite.
        cost: cost in units of the score, at least 0. At 0 the index is infinite, unless `sd` is 0.

    >>> index([0.8, 0.9], [0.1, 0.0], [0.039894228, 0.1]).round(6)
    array([0.8, 0.8])
    """
    mean, sd, cost = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (mean, sd, cost)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_cost = np.log(cost) - np.log(sd)
        # The logarithm is concave, so Newton's steps stay to the right of the solution once they
        # are there. This start is near it for costs far below and far above `sd`.
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
    """Return the index of a look, after which the action may be given up.

    It solves E[max(0, E[max(0, X - v) | look] - later)] = now for v.

    Args:
        mean: mean of the normal X, the final outcome.
        shown: standard deviation of the change of that mean by the look, at least 0.
        kept: standard deviation of X after the look, at least 0.
        now: cost of the look in units of the score, above 0.
        later: cost of going on to the end in units of the score, at least 0.

    >>> index_with_look(0.8, 0.1, 0.0, [0.01, 0.02], [0.0, 0.01]).round(3)
    array([0.893, 0.846])
    """
    mean, shown, kept, now, later = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (mean, shown, kept, now, later))
    )
    points = mean[..., None] + shown[..., None] * OUTCOMES
    kept, later = kept[..., None], later[..., None]
    # Lower end: going on after every look is worth the mean less both costs.
    low = mean - now - later[..., 0]
    # Upper end: the index if the best outcome were certain. With w_7 <= 1,
    # E[max(0, ...)] <= EI of the best outcome - later, which must pay `now`.
    highest = index(points[..., -1], kept[..., 0], now + later[..., 0])
    high = low + np.maximum(0.0, highest - low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        ahead = improvement(points, kept, middle[..., None])
        is_worth = np.maximum(0.0, ahead - later) @ WEIGHTS > now
        low, high = np.where(is_worth, middle, low), np.where(is_worth, high, middle)
    return np.asarray(low)


def kept_after(sd: Numbers, shown: Numbers) -> Numbers:
    """Return the standard deviation that is left after a look, sqrt(sd^2 - shown^2).

    `shown` is at most `sd`.
    """
    # Both roots, since the squares of tiny scores are 0.
    return np.asarray(np.sqrt(sd - shown) * np.sqrt(sd + shown))


def after_look(mean: ArrayLike, shown: ArrayLike, kept: ArrayLike, over: ArrayLike) -> Numbers:
    """Return the expected improvement after each outcome of a look, shape (..., 7).

    Args:
        mean, shown, kept: as in `index_with_look`.
        over: the score to improve on.

    >>> after_look([0.8], [0.1], [0.0], 0.8).shape
    (1, 7)
    """
    mean, shown, kept, over = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (mean, shown, kept, over))
    )
    points = mean[..., None] + shown[..., None] * OUTCOMES
    return improvement(points, kept[..., None], over[..., None])


def price(ahead: ArrayLike, now: ArrayLike, later: ArrayLike, lost: ArrayLike = 0.0) -> Numbers:
    """Return the price L at which each action just pays.

    It solves sum_j w_j max(0, ahead_j - L later) - lost = L now with the `WEIGHTS` w_j. The sum is
    the largest of the sums over the k last outcomes, so L is the largest of their solutions. It is
    below 0 only if more is lost than gained.

    Args:
        ahead: expected improvement after each outcome of the look, from `after_look`, at least 0
            and increasing; shape (..., 7). Without a look all seven are equal.
        now: effort until the look, above 0; shape (...).
        later: effort from the look to the end, at least 0; shape (...).
        lost: what the look makes impossible, in units of the score, at least 0; shape (...).

    >>> price([[0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1], [0.2] * 7], [1.0, 2.0], [0.0, 2.0]).round(3)
    array([0.073, 0.05 ])
    """
    now, later, lost = (np.asarray(x, np.float64)[..., None] for x in (now, later, lost))
    sums = np.cumsum((np.asarray(ahead) * WEIGHTS)[..., ::-1], axis=-1) - lost
    return np.asarray((sums / (now + later * np.cumsum(WEIGHTS[::-1]))).max(axis=-1))


def best_of_others(values: Numbers, takes: Numbers, left: ArrayLike) -> Numbers:
    """Return the largest value of the other actions that fit into what is left.

    It is 0 if no action fits.

    Args:
        values: value of each action, at least 0; shape (actions,).
        takes: what each action takes; shape (actions,).
        left: what is left, in the view of each action; shape (..., actions), or one number.

    >>> best_of_others(np.array([5.0, 3.0, 1.0]), np.array([9.0, 4.0, 2.0]), 9.0)
    array([3., 5., 5.])
    >>> best_of_others(np.array([5.0, 3.0, 1.0]), np.array([9.0, 4.0, 2.0]), [4.0, 4.0, 3.0])
    array([3., 1., 0.])
    """
    order, left = np.argsort(takes, kind="stable"), np.asarray(left, np.float64)
    # The largest and the second largest value among the k actions that take least.
    most, second = np.zeros((2, len(order) + 1))
    most[1:] = np.maximum.accumulate(values[order])
    second[1:] = np.maximum.accumulate(np.minimum(values[order], most[:-1]))
    fit = np.searchsorted(takes[order], left, side="right")
    is_own = (values == most[fit]) & (takes <= left)
    return np.asarray(np.where(is_own, second[fit], most[fit]))


def _excess(deviate: Numbers) -> Numbers:
    """Return E[max(0, Z - deviate)] of a standard normal Z, to full relative precision."""
    far = np.abs(deviate)
    density = np.exp(-0.5 * far * far) / math.sqrt(2.0 * math.pi)
    mills = math.sqrt(math.pi / 2.0) * erfcx(far / math.sqrt(2.0))
    # Far out, 1 / deviate replaces Mills' ratio: the difference would be a rounding error.
    left = np.where(far < 1e4, 1.0 - far * mills, 0.0)
    return np.asarray(density * left + np.maximum(0.0, -deviate))
