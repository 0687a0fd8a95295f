"""A model of the seconds of trainings, as distributions.

The logarithm of the seconds of learner i on n of N examples, L = ln(n / N), is

    y_i(n) = level + alpha L + c q(L)  +  f(x_i) + g(x_i) L  +  u_i + s_i L + r_i q(L)  +  noise

================  =================================================================================
level             shared level at the pivot, a size below N, with a very wide prior. L and q(L)
                  are counted from there (`_basis`)
alpha             shared exponent of growth
q(L)              (exp(kappa L) - 1) / kappa: late growth. On little data the constant part of a
                  training's time hides the part that grows
f, g              processes over parameters x: linear and squared exponential kernels. The mean
                  of f rises with the logarithms of whole numbers, such as a number of trees
u_i, s_i, r_i     the learner's own effects, in level and in growth
noise             Gaussian below, with the tail of a Student t above: a call may be slow (the first
                  one loads its library), but none is faster than its work. The clock's error is
                  added to it, and counts in short trainings
================  =================================================================================

Given weights of the observations, the model is linear and Gaussian. The weights are found by
iterated reweighting [1]. The same iterations find the scales that differ between studies: those of
the parameters' effects, the learners' own effects and the noise. Each is a variance component with
a scaled inverse chi-squared prior, updated by the minorization-maximization step of [2]. All other
numbers are constants in `seconds.json`; `benchmarks/fit/seconds.py` shows what each is worth on
measured seconds.

[1] K. Lange, R. Little, J. Taylor, Robust statistical modeling using the t distribution,
    Journal of the American Statistical Association 84, 1989.
[2] H. Zhou, L. Hu, J. Zhou, K. Lange, MM algorithms for variance components models,
    Journal of Computational and Graphical Statistics 28, 2019. https://arxiv.org/abs/1509.07426
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.linalg.lapack import dpotri

from optuna_daub.core.costs.points import Points
from optuna_daub.core.costs.prior import PRIOR
from optuna_daub.core.costs.prior import Prior
from optuna_daub.core.once import by_content
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space


LEVEL_SD = 4.0
"""Standard deviation of the shared level around the median, e^4 or a factor of 55: the seconds
decide."""
ITERATIONS = 6
"""Iterations of weights and variances. Not tuned."""
CHECKS = 10.0
"""Weight of the stated variances beside observed errors, as a number of these, for seconds and for
scores. It changes how often the intervals of `benchmarks/fit/seconds.py` and `process.py` hold."""
OUTLIER = 3.0
"""Largest error that counts in `Fitted.calibration`, in standard deviations: no single learner
decides. Not tuned."""
MOST_TUNED = 100
"""Largest number of observations that the scales are fitted to: those of the newest learners. More
cost time (`benchmarks/decision_cost.py`)."""


def _basis(log_size: ArrayLike, log_full: float, prior: Prior) -> tuple[Numbers, Numbers]:
    """Return growth and late growth at these sizes, both 0 at the pivot."""
    size = np.asarray(log_size, np.float64) - log_full
    late = (np.exp(prior.kappa * size) - math.exp(-prior.kappa * prior.pivot)) / prior.kappa
    return size + prior.pivot, late


@dataclass(frozen=True, eq=False)
class Fitted:
    """The model given measured seconds."""

    prior: Prior
    """Prior of the model."""
    points: Points
    """Points of the measured learners."""
    seen: NDArray[np.int64]
    """Rows of the measured learners among those passed, increasing."""
    log_full: float
    """Logarithm of N."""
    middle: float
    """Difference of the median observation to the prior mean."""
    variances: Numbers
    """Squares of the fitted standard deviations: linear, smooth, own, own growth, noise."""
    told: Numbers
    """Products of inverse covariance, observations and basis, shape (3, 1 + learners). Column 0 is
    the sum over all learners; each other column is one learner."""
    sure: Numbers
    """Products of inverse covariance and two bases, summed in the same way. Two axes of 3, two of
    1 + learners."""
    trust: Numbers
    """Weight of each observation, in (0, 1], small for a slow call. In the order of learners."""
    calibration: float
    """Factor of the variances of new learners. It is above 1 if learners timed once are predicted
    worse than stated, without that time, and below 1 if they are predicted better."""

    def predict(
        self, rows: Rows, log_size: ArrayLike, learner: NDArray[np.int64] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations of logarithms of seconds.

        Args:
            rows: points, shape (points, parameters).
            log_size: logarithm of a training size; or of several, shape (sizes,).
            learner: place of each point among the fitted learners, -1 for a new one; None: all
                are new.

        Returns:
            Two arrays of the shape (points,), or (points, sizes).
        """
        moments = self.moments(rows, learner)
        growth, late = _basis(log_size, self.log_full, self.prior)
        basis = np.stack([np.ones_like(growth), growth, late]).reshape(3, -1)
        mean = moments.mean.T @ basis + self.prior.alpha * basis[1] + self.prior.late * basis[2]
        products = (basis[:, None] * basis).reshape(9, -1)
        variance = np.maximum(moments.covariance.reshape(9, len(rows)).T @ products, 0.0)
        factor = np.where(moments.is_seen, 1.0, self.calibration)[:, None]
        deviation = np.sqrt(factor * (variance + self.variances[4]))
        shape = (len(rows), *growth.shape)
        return mean.reshape(shape), deviation.reshape(shape)

    @by_content
    def moments(self, rows: Rows, learner: NDArray[np.int64] | None) -> Moments:
        """Return the distribution of each point's weights of the basis; the last are cached."""
        prior, count = self.prior, len(rows)
        linear, smooth, own, *_ = self.variances
        new = self.points.at(rows)
        columns, square = new.linear
        by_point = linear * (columns @ self.points.linear[0].T)
        by_point += smooth * new.smooth(self.points, prior.length)
        shared, own_share = self._shares()
        # Covariances with the fitted learners, at the pivot, by growth and by late growth: the
        # shared part, the part of the parameters, the learner's own part.
        ratio = prior.growth_by_point**2
        at_pivot = np.column_stack([np.full(count, shared[0]), by_point])
        by_growth = np.column_stack([np.full(count, shared[1]), ratio * by_point])
        place, is_seen = np.zeros(count, np.int64), np.zeros(count, bool)
        if learner is not None:
            place = np.minimum(np.searchsorted(self.seen, learner), len(self.seen) - 1)
            is_seen = self.seen[place] == learner
            known = np.flatnonzero(is_seen)
            at_pivot[known, 1 + place[known]] += own_share[0]
            by_growth[known, 1 + place[known]] += own_share[1]
        own_late = own_share[2] * is_seen
        told, sure = self.told, self.sure
        means = np.stack(
            [
                at_pivot @ told[0],
                by_growth @ told[1],
                shared[2] * told[2, 0] + own_late * told[2, 1 + place],
            ]
        )
        # Reductions of variance by the observations: quadratic forms, and their products.
        taken = np.empty((3, 3, count))
        taken[0, 0] = np.einsum("pl,pl->p", at_pivot @ sure[0, 0], at_pivot)
        taken[0, 1] = taken[1, 0] = np.einsum("pl,pl->p", at_pivot @ sure[0, 1], by_growth)
        taken[1, 1] = np.einsum("pl,pl->p", by_growth @ sure[1, 1], by_growth)
        # Late growth has a shared and an own part only: three entries replace a matrix.
        taken[2, 2] = (
            shared[2] ** 2 * sure[2, 2, 0, 0]
            + 2.0 * shared[2] * own_late * sure[2, 2, 0, 1 + place]
            + own_late**2 * sure[2, 2, 1 + place, 1 + place]
        )
        for i, side in enumerate((at_pivot, by_growth)):
            taken[i, 2] = taken[2, i] = shared[2] * (side @ sure[i, 2, :, 0])
            if is_seen.any():
                with_own = np.einsum("pl,lp->p", side, sure[i, 2][:, 1 + place])
                taken[i, 2] = taken[2, i] = taken[i, 2] + own_late * with_own
        of_point = linear * square + smooth
        before = np.zeros((3, 3, count))
        before[0, 0] = shared[0] + of_point + own
        before[1, 1] = shared[1] + ratio * of_point + own_share[1]
        before[2, 2] = shared[2] + own_share[2]
        means[0] += self.middle + prior.count_mean * new.counts()
        return Moments(means, before - taken, is_seen)

    def onward(
        self, log_size: Numbers, log_seconds: Numbers, to: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations for learners outside the fit, from their last
        times.

        Args:
            log_size: logarithm of the size of each one's last training, shape (learners,).
            log_seconds: logarithm of its seconds; NaN if it was not timed.
            to: logarithms of the sizes to predict, shape (sizes,).

        Returns:
            Two arrays of the shape (learners, sizes).
        """
        prior, (shared, own) = self.prior, self._shares()
        far, late_far = (
            there - here[:, None]
            for there, here in zip(
                _basis(to, self.log_full, prior),
                _basis(log_size, self.log_full, prior),
                strict=True,
            )
        )
        last, is_known = log_seconds[:, None], np.isfinite(log_seconds)[:, None]
        alpha = prior.alpha + shared[1] * self.told[1, 0]
        late_weight = prior.late + shared[2] * self.told[2, 0]
        nobody = np.full((1, len(self.points.space.dimensions)), np.nan)
        level, level_sd = self.predict(nobody, to)
        by_point = self.variances[1] + self.variances[0] * self.points.linear[1].mean()
        square = (own[1] + prior.growth_by_point**2 * by_point) * far**2 + own[2] * late_far**2
        mean = np.where(is_known, last + alpha * far + late_weight * late_far, level)
        square += 2.0 * self.variances[4]
        sd = np.sqrt(np.where(is_known, square, level_sd**2 + by_point))
        return mean, sd

    def _shares(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Return prior variances at the pivot, of growth, of late growth: shared, and own."""
        prior, own, own_growth = self.prior, float(self.variances[2]), float(self.variances[3])
        shared = (LEVEL_SD**2, prior.alpha_sd**2, prior.late_sd**2)
        return shared, (own, own_growth, prior.late_by_own**2 * own_growth)


class Moments(NamedTuple):
    """Normal distributions of weights of the basis: level, growth and late growth."""

    mean: Numbers
    """Means, shape (3, points)."""
    covariance: Numbers
    """Covariances, shape (3, 3, points)."""
    is_seen: NDArray[np.bool_]
    """True for fitted learners, shape (points,)."""


@by_content
def fit(
    rows: Rows,
    space: Space,
    learner: NDArray[np.int64],
    log_size: Numbers,
    log_seconds: Numbers,
    full: int,
    prior: Prior = PRIOR,
) -> Fitted:
    """Return the model, given measured seconds.

    Args:
        rows: the learners' points, shape (learners, parameters); those tried last come last.
        space: space of the parameters; the seconds grow with whole numbers.
        learner: row of each observation's learner, shape (observations,), at least one.
        log_size: logarithms of training sizes, shape (observations,).
        log_seconds: logarithms of seconds, shape (observations,).
        full: N, the number of all training examples.
        prior: prior of the model.

    >>> rows, space = np.zeros((2, 0)), Space()
    >>> learner, sizes = np.array([0, 0, 1]), np.log([500.0, 1000.0, 500.0])
    >>> model = fit(rows, space, learner, sizes, np.log([1.0, 1.8, 3.0]), 4000)
    >>> mean, deviation = model.predict(rows, math.log(1000), np.array([0, 1]))
    >>> bool(1.0 < np.exp(mean[0]) < 2.0 < np.exp(mean[1])), bool(deviation[0] < deviation[1])
    (True, True)
    """
    order = np.argsort(learner, kind="stable")
    seen, starts, which = np.unique(learner[order], return_index=True, return_inverse=True)
    points = Points.of(rows[seen], space, prior.log_weight, prior.count_sd)
    growth, late = _basis(log_size[order], math.log(full), prior)
    above = log_seconds[order] - prior.alpha * growth - prior.late * late
    above -= prior.count_mean * points.counts()[which]
    middle = float(np.median(above))
    above -= middle
    # Covariances of observations: a shared part, and four parts of unknown scale.
    columns, _ = points.linear
    by_growth, by_late = np.outer(growth, growth), np.outer(late, late)
    shared = LEVEL_SD**2 + prior.alpha_sd**2 * by_growth + prior.late_sd**2 * by_late
    # Without this error, the slopes of parameters would follow the shortest trainings, which cost
    # nothing.
    seconds = np.exp(log_seconds[order] - log_seconds.max())
    shared.flat[:: len(which) + 1] += (prior.jitter * seconds.mean() / seconds) ** 2
    of_point = 1.0 + prior.growth_by_point**2 * by_growth
    same = which[:, None] == which
    parts: Numbers = np.empty((4, len(which), len(which)))
    np.multiply((columns @ columns.T)[which][:, which], of_point, out=parts[0])
    np.multiply(points.smooth(points, prior.length)[which][:, which], of_point, out=parts[1])
    parts[2] = same
    np.multiply(same, by_growth + prior.late_by_own**2 * by_late, out=parts[3])
    believed = (
        np.array([prior.linear, prior.smooth, prior.own, prior.own_growth, prior.noise]) ** 2
    )
    variances, trust = believed, np.ones(len(which))
    last = np.s_[-MOST_TUNED:]
    # Of the last observations: the shared covariance, those of each part, outcomes and weights.
    few, some, rests, their = shared[last, last], parts[:, last, last], above[last], trust[last]
    some = some.reshape(len(some), -1)
    for _ in range(ITERATIONS):
        inverse = _inverse(few, some, variances, their)
        weights = inverse @ rests
        fits = [*(some @ np.outer(weights, weights).ravel()), weights**2 @ (1.0 / their)]
        traces = [*(some @ inverse.ravel()), np.diagonal(inverse) @ (1.0 / their)]
        raised = variances**2 * fits + prior.freedom * believed
        now, variances = variances, np.sqrt(raised / (traces + prior.freedom / variances))
        their = _trust(now[4] / their, inverse, weights, now[4], prior.tail)
    trust[last] = their
    parts = parts.reshape(len(parts), -1)
    inverse = _inverse(shared, parts, variances, trust)
    # Slow calls are few, so usually one iteration is enough.
    earlier = np.s_[:-MOST_TUNED]
    for _ in range(ITERATIONS):
        again = _trust(variances[4] / trust, inverse, inverse @ above, variances[4], prior.tail)
        if np.all(again[earlier] > trust[earlier] / 2.0):
            break
        trust[earlier] = again[earlier]
        inverse = _inverse(shared, parts, variances, trust)
    weights = inverse @ above
    # Errors, in standard deviations, of predicting learners timed once as if they were new.
    is_once = np.append(starts[1:], len(which)) == starts + 1
    once = starts[is_once]
    off = np.minimum(weights[once] ** 2 / np.diagonal(inverse)[once], OUTLIER**2)
    calibration = float((CHECKS + off.sum()) / (CHECKS + len(once)))
    basis = np.stack([np.ones_like(growth), growth, late])
    told = _by_learner((basis * weights).T, starts).T
    # Sum along the first axis, which is much faster; the inverse is symmetric.
    by_learner = [
        np.ascontiguousarray(_by_learner(row[:, None] * inverse, starts).T) for row in basis
    ]
    sure = np.empty((3, 3, 1 + len(seen), 1 + len(seen)))
    for i, j in combinations_with_replacement(range(3), 2):
        sure[i, j, 1:, 1:] = _by_learner(basis[i][:, None] * by_learner[j], starts)
        sure[j, i, 1:, 1:] = sure[i, j, 1:, 1:].T
    sure[:, :, 0, 1:] = sure[:, :, 1:, 1:].sum(axis=2)
    sure[:, :, :, 0] = sure[:, :, :, 1:].sum(axis=3)
    told = np.concatenate([told.sum(axis=1, keepdims=True), told], axis=1)
    return Fitted(
        prior, points, seen, math.log(full), middle, variances, told, sure, trust, calibration
    )


def _inverse(shared: Numbers, parts: Numbers, variances: Numbers, trust: Numbers) -> Numbers:
    """Return the inverse covariance of observations; each part is a row."""
    covariance = shared + (variances[:-1] @ parts).reshape(shared.shape)
    covariance.flat[:: len(trust) + 1] += variances[-1] / trust
    # LAPACK inverts one half of a symmetric matrix in a third of the time of `np.linalg.inv`.
    root, failed = dpotrf(covariance.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("The covariance of the seconds is singular.")
    half, _ = dpotri(root, lower=1, overwrite_c=1)
    inverse = half + half.T
    inverse.flat[:: len(trust) + 1] /= 2.0
    return np.asarray(inverse)


def _by_learner(values: Numbers, starts: NDArray[np.int64]) -> Numbers:
    """Return sums over the observations of each learner, along the first axis.

    Few learners have more than one, so this is faster than `np.add.reduceat`.
    """
    ends = np.append(starts[1:], len(values))
    found = values[starts]
    for later in range(1, int((ends - starts).max())):
        more = np.flatnonzero(starts + later < ends)
        found[more] += values[starts[more] + later]
    return found


def _trust(
    noise: Numbers, inverse: Numbers, weights: Numbers, usual: float, tail: float
) -> Numbers:
    """Return the weights of observations: 1, or less for those above their expectation."""
    rest = noise * weights
    square = rest**2 + noise - noise**2 * np.diagonal(inverse)
    slow = np.minimum((tail + 1.0) / (tail + square / usual), 1.0)
    return np.where(rest > 0.0, slow, 1.0)
