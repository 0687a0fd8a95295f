"""One Gaussian process over parameters, training size and seconds.

Learner i has parameters x_i. With d = log2(N / n) doublings of the training set left, its score is

    y_i(d) = A_i - phi(d) B_i + W_i(phi(d)) + noise,   phi(d) = (2^(c d) - 1) / (2^(3 c) - 1)
    A_i = m + e t_i + f(x_i) + u_i          the level: its score on all N examples
    B_i = b + g(x_i)                        the gain: what it still gains from N / 8 on
    W_i = V + its own walk                  the walk: the rest of its way to N

f and g are two processes over parameters with one Matern-5/2 kernel [3, eq. 4.17] and a length
scale for each parameter: learners with similar parameters have similar levels and gains. b is the
gain that all share; u_i is the learner's own effect. Walks are Wiener processes that are 0 at N.
All learners share V, of variance v^2 phi: if the curves of this table bend differently from phi,
all of them do. Then all forecasts err in the same direction, so the order of learners is more
certain than their scores. A learner's own walk has variance w^2 phi. So a score at N / 2 says more
of that at N than one at N / 64. t_i is the learner's *effort*, the logarithm of its seconds on N
examples, less the median of learners of its algorithm. Parameters that cost time are in a space
because they help: so the slope e is believed to be positive, and the scores decide by how much.

Earlier models of this kind are FABOLAS [1], for parameters and training size, and freeze-thaw [2],
for suspended curves.

A learner's scores at all larger sizes follow from three numbers: level, gain, and the walk at its
last size. Given all scores seen these are jointly normal, and a forecast at any size is a sum of
the three. At N the forecast is exact. At sizes in between it ignores what others say of V.

More data do not make a learner worse. So given the scores, falls from a learner's last size to N
are cut off, for each learner by itself (`Lines.rising`). Otherwise the model would believe that
the first good learner of a study falls back to the level of many bad ones.

==============  ===================================================================================
name here       meaning
==============  ===================================================================================
level, gain     A, B, in standard deviations of the scores
rows            points of learners: their parameters, then their effort, 0 if it is unknown
theta           logarithms of the hyperparameters: length scales, in ranges of their parameters,
                then the standard deviations of f, g, b, u, V, w and of the noise
apart           squared distances of learners by parameter, shape (parameters, learners, learners)
==============  ===================================================================================

[1] A. Klein et al., "Fast Bayesian Optimization of Machine Learning Hyperparameters on Large
    Datasets", AISTATS 2017. https://arxiv.org/abs/1605.07079
[2] K. Swersky, J. Snoek, R. P. Adams, "Freeze-Thaw Bayesian Optimization", 2014.
    https://arxiv.org/abs/1406.3896
[3] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006.
    https://gaussianprocess.org/gpml/
[4] N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions", vol. 1, Wiley
    1994, section 10.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri
from scipy.special import erfcx

from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.prior import Prior
from optuna_daub.core.once import by_content
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import distances
from optuna_daub.core.space import square_distances


MEAN_SD = 1.0
"""Standard deviation of m, in standard deviations of the scores: wide, since the scores decide."""
NO_CUT = -36.0
"""Cut of a standard normal, in standard deviations, below which it takes nothing away."""
JITTER = 1e-8
"""Smallest variance of noise: with two equal learners the matrix would be singular."""


class Seen(NamedTuple):
    """Scores that a process learns from."""

    rows: Rows
    """Points of the learners, shape (learners, parameters + 1)."""
    is_word: NDArray[np.bool_]
    """True for parameters that are words, shape (parameters,)."""
    learner: NDArray[np.int64]
    """Row of each score's learner, shape (scores,)."""
    doublings: Numbers
    """Doublings of the training set from each score's size to N. Shape (scores,); 0 at N."""
    score: Numbers
    """Standardized scores, shape (scores,)."""
    prior: Prior = PRIOR
    """Prior of the process."""
    doubt: Numbers | float = 0.0
    """Variance of each score beside the noise, shape (scores,); 0 for those that were measured."""

    @property
    def share(self) -> Numbers:
        """Share of the gain that is still to come at each score, shape (scores,)."""
        return self.prior.phi(self.doublings)

    @property
    def expected(self) -> Numbers:
        """Prior mean of each score, shape (scores,)."""
        effort = self.rows[self.learner, -1]
        return np.asarray(self.prior.effort_mean * effort - self.prior.mean_gain * self.share)

    @property
    def last(self) -> Numbers:
        """Share at each learner's largest size, shape (learners,); infinite without a score."""
        found = np.full(len(self.rows), math.inf)
        np.minimum.at(found, self.learner, self.share)
        return found

    @property
    def n_varying(self) -> float:
        """Mean number of parameters of a learner that differ among the learners.

        Parameters that a learner lacks do not count, so a choice among many algorithms does not
        make the points of each algorithm more alike.
        """
        points = self.rows[:, :-1]
        filled = np.where(np.isnan(points), -1.0, points)
        varies = (filled != filled[:1]).any(axis=0)
        return float((~np.isnan(points[:, varies])).sum(axis=1).mean())

    @property
    def apart(self) -> Numbers:
        """Squared distances by parameter, shape (parameters, learners, learners)."""
        return square_distances(self.rows[:, :-1], self.rows[:, :-1], self.is_word)

    def common(self, one: Rows, other: Rows) -> Numbers:
        """Return the covariance of levels by m and e, shape (points, other points)."""
        slope = self.prior.effort_sd**2
        return np.asarray(MEAN_SD**2 + slope * np.multiply.outer(one[:, -1], other[:, -1]))

    def kernel(self, lengths: Numbers, one: Rows, other: Rows, same: NDArray[np.bool_]) -> Numbers:
        """Return the kernel of points, shape (points, other points).

        Args:
            lengths: squared length scales; if there are none, learners are independent.
            one, other: points, shape (points, parameters + 1).
            same: True for pairs that are one learner, shape (points, other points).
        """
        if not len(lengths):
            return same.astype(float)
        return matern(distances(one[:, :-1], other[:, :-1], self.is_word, 1.0 / lengths))


class Lines(NamedTuple):
    """Joint normal distribution of level, gain and walk of each of many learners.

    The walk is that at the learner's last size; it is 0 if there is none.
    """

    mean: Numbers
    """Means, shape (3, learners)."""
    covariance: Numbers
    """Covariances, shape (3, 3, learners)."""
    last: Numbers
    """Phi at the last size, shape (learners,); infinite without a score."""
    walk: Numbers
    """Variance that walks gain from N to N / 8, shape (learners,)."""

    def scores(self, share: float) -> tuple[Numbers, Numbers]:
        """Return means and variances, without noise, of scores with phi `share`.

        They hold for a learner's last size and all larger ones.
        """
        parts, rest = self._parts(share)
        return (parts * self.mean).sum(axis=0), self._variance(parts, rest)

    def rising(self) -> Lines:
        """Return the distribution if no learner gets worse from its last size to N.

        The rise of a new learner is its gain from N / 8 on. Rises become truncated normals, here
        with the moments of these [4]. Levels, gains and walks follow by regression.
        """
        is_part = np.isfinite(self.last) & (self.last > 0.0)
        # The rise is phi B - W at the last size.
        of_gain, of_walk = np.where(is_part, self.last, 1.0), np.where(is_part, -1.0, 0.0)
        rise = of_gain * self.mean[1] + of_walk * self.mean[2]
        told = of_gain * self.covariance[1] + of_walk * self.covariance[2]
        sd = np.sqrt(np.maximum(of_gain * told[1] + of_walk * told[2], JITTER))
        # If the cut takes nothing away, the hazard is 0, and its formula would overflow.
        told, cut = told / sd, np.maximum(-rise / sd, NO_CUT)
        # The hazard of a standard normal, its density at the cut over the mass above.
        hazard = 1.0 / (math.sqrt(math.pi / 2.0) * erfcx(cut / math.sqrt(2.0)))
        mean = self.mean + told * hazard
        return self._replace(
            mean=mean,
            covariance=self.covariance - told[:, None] * told * hazard * (hazard - cut),
        )

    def look(self, share: float, noise: float) -> Numbers:
        """Return the standard deviation of each level's change by a score at a size.

        Args:
            share: phi of that size.
            noise: variance of the noise of one score.
        """
        parts, rest = self._parts(share)
        covariance = (self.covariance[0] * parts).sum(axis=0)
        return np.asarray(np.abs(covariance) / np.sqrt(self._variance(parts, rest) + noise))

    def _variance(self, parts: Numbers, rest: Numbers) -> Numbers:
        variance = np.einsum("in,ijn,jn->n", parts, self.covariance, parts) + rest
        return np.asarray(np.maximum(variance, 0.0))

    def _parts(self, share: float) -> tuple[Numbers, Numbers]:
        """Return the weights of level, gain and walk in a score, and the variance left over.

        Between two known points a Wiener process is on the line through them, plus a bridge.
        """
        way = np.zeros_like(self.last)
        np.divide(share, self.last, out=way, where=self.last > 0.0)
        way = np.minimum(way, 1.0)
        parts = np.stack([np.ones_like(way), np.full_like(way, -share), way])
        return parts, self.walk * share * (1.0 - way)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The process given scores, at one set of hyperparameters."""

    seen: Seen
    """The scores."""
    theta: Numbers
    """Logarithms of the hyperparameters."""
    root: Numbers
    """Cholesky factor of the covariance of the scores, lower, shape (scores, scores)."""
    weights: Numbers
    """Inverse covariance times (scores - prior mean), shape (scores,)."""

    @property
    def noise(self) -> float:
        """Variance of the noise of one score."""
        return math.exp(2.0 * float(self.theta[-1])) + JITTER

    def lines(self, rows: Rows, own: NDArray[np.int64] | None = None) -> Lines:
        """Return the distribution of level, gain and walk of learners [3, eqs. 2.23 to 2.24].

        Args:
            rows: points of the learners, shape (learners, parameters + 1).
            own: row of each learner among those seen, -1 for a new one; None: all are new.
        """
        seen, count = self.seen, len(rows)
        lengths, (f, g, b, u, v, w, _) = variances_of(self.theta)
        own = np.full(count, -1) if own is None else own
        same = own[:, None] == np.arange(len(seen.rows))
        near = seen.kernel(lengths, rows, seen.rows, same)
        last = np.where(own < 0, math.inf, seen.last[own])
        is_seen = np.isfinite(last)
        # Covariances with the scores: one row for each level, each gain, and each walk if there is
        # any. BLAS needs no copy of the transpose.
        n_kinds, n_scores = 3 if is_seen.any() else 2, len(seen.learner)
        across = np.empty((n_kinds, count, n_scores))
        of_level = seen.common(rows, seen.rows) + f * near + u * same
        np.take(of_level, seen.learner, axis=1, out=across[0])
        np.multiply((b + g * near)[:, seen.learner], -seen.share, out=across[1])
        if n_kinds == 3:
            shared = np.where(is_seen[:, None], np.minimum(last[:, None], seen.share), 0.0)
            np.multiply(shared, v + w * (own[:, None] == seen.learner), out=across[2])
        flat = across.reshape(n_kinds * count, n_scores)
        mean, covariance = np.zeros((3, count)), np.zeros((3, 3, count))
        mean[:n_kinds] = (flat @ self.weights).reshape(n_kinds, count)
        mean[0] += seen.prior.effort_mean * rows[:, -1]
        mean[1] += seen.prior.mean_gain
        half = dtrsm(1.0, self.root, flat.T, lower=1, overwrite_b=1).T.reshape(across.shape)
        for i, j in combinations_with_replacement(range(n_kinds), 2):
            covariance[i, j] = covariance[j, i] = -np.einsum("ns,ns->n", half[i], half[j])
        of_effort = (seen.prior.effort_sd * rows[:, -1]) ** 2
        before = MEAN_SD**2 + of_effort + f + u, b + g, np.where(is_seen, (v + w) * last, 0.0)
        for i, variance in enumerate(before):
            covariance[i, i] = np.maximum(covariance[i, i] + variance, JITTER)
        return Lines(mean, covariance, last, np.full(count, v + w))

    def covariance(self, rows: Rows, own: NDArray[np.int64], share: float) -> Numbers:
        """Return the covariance of the scores of learners at one size, without noise.

        Args:
            rows: points of the learners, shape (learners, parameters + 1).
            own: row of each learner among those seen, -1 for a new one.
            share: phi of that size; 0 at N.
        """
        seen = self.seen
        lengths, (f, g, b, u, v, w, _) = variances_of(self.theta)
        with_gain = share * seen.share[:, None]
        same = np.arange(len(seen.rows))[:, None] == own
        near = seen.kernel(lengths, seen.rows, rows, same)[seen.learner]
        same = same[seen.learner]
        cross = seen.common(seen.rows, rows)[seen.learner] + f * near + with_gain * (b + g * near)
        cross += same * u + (v + w * same) * np.minimum(share, seen.share[:, None])
        half = dtrsm(1.0, self.root, cross, lower=1)
        alike = np.eye(len(rows), dtype=bool)
        near = seen.kernel(lengths, rows, rows, alike)
        before = seen.common(rows, rows) + f * near + share**2 * (b + g * near)
        before += v * share + (u + w * share) * alike
        return np.asarray(before - half.T @ half)

    def surprises(self) -> Numbers:
        """Return the error of each score's prediction from all others, shape (scores,).

        It is in standard deviations of that prediction, in closed form [3, eqs. 5.10 to 5.12].
        """
        half = dtrtri(self.root, lower=1)[0]
        return np.asarray(self.weights / np.sqrt(np.einsum("ij,ij->j", half, half)))


@by_content
def condition(theta: Numbers, seen: Seen) -> Conditioned:
    """Return the process given scores."""
    lengths, _ = variances_of(theta)
    alike = np.eye(len(seen.rows), dtype=bool)
    kernel = seen.kernel(lengths, seen.rows, seen.rows, alike)
    common = seen.common(seen.rows, seen.rows)
    known = covariance_of(theta, kernel, common, seen.learner, *pairs_of(seen.share))
    known.flat[:: len(known) + 1] += seen.doubt
    root = cholesky(known, lower=True, check_finite=False)
    off = seen.score - seen.expected
    return Conditioned(seen, theta, root, cho_solve((root, True), off, check_finite=False))


@by_content
def lines_of(process: Conditioned, rows: Rows, own: NDArray[np.int64] | None = None) -> Lines:
    """Return the lines of learners, with rising curves; the last results are cached."""
    return process.lines(rows, own).rising()


def covariance_of(
    theta: Numbers,
    kernel: Numbers,
    common: Numbers,
    learner: NDArray[np.int64],
    shares: Numbers,
    walks: Numbers,
) -> Numbers:
    """Return the covariance of scores.

    Args:
        theta: logarithms of the hyperparameters.
        kernel: kernel of the learners.
        common: covariance of their levels by m and e.
        learner: learner of each score.
        shares, walks: both results of `pairs_of`.
    """
    _, (f, g, b, u, v, w, noise) = variances_of(theta)
    of_level, of_gain = common + f * kernel, b + g * kernel
    of_level.flat[:: len(kernel) + 1] += u
    # While each learner has one score, in order, its rows need not be gathered.
    if len(learner) != len(kernel) or (learner[1:] <= learner[:-1]).any():
        of_level, of_gain = (
            each.take(learner, axis=0).take(learner, axis=1) for each in (of_level, of_gain)
        )
    covariance = of_gain * shares
    covariance += of_level
    covariance += (v + w * (learner[:, None] == learner)) * walks
    covariance.flat[:: len(learner) + 1] += noise + JITTER
    return np.asarray(covariance)


def pairs_of(share: Numbers) -> tuple[Numbers, Numbers]:
    """Return the product of phi for each pair of scores, and the smaller phi.

    The latter is the covariance of a unit walk.
    """
    return share[:, None] * share, np.minimum(share[:, None], share)


def variances_of(theta: Numbers) -> tuple[Numbers, Numbers]:
    """Return squared length scales, and the seven variances."""
    squares = np.exp(2.0 * theta)
    return squares[:-7], squares[-7:]


def matern(square: Numbers) -> Numbers:
    """Return the kernel of squared distances [3, eq. 4.17]."""
    root = np.sqrt(5.0 * square)
    decay = np.exp(-root)
    root += 1.0
    root += 5.0 / 3.0 * square
    root *= decay
    return np.asarray(root)
