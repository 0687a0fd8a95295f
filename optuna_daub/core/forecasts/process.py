"""One Gaussian process over parameters and training size.

Learner i has parameters x_i. With d = log2(N / n) doublings of the training set left, its score is

    y_i(d) = A_i - phi(d) B_i + W_i(phi(d)) + noise,   phi(d) = (2^(c d) - 1) / (2^(3 c) - 1)
    A_i = m + f(x_i) + u_i                  the level: its score on all N examples
    B_i = b + g(x_i)                        the gain: what it still gains from N / 8 on
    W_i                                     the walk: its own way to N, a Wiener process

f and g are two processes over parameters with one Matern-5/2 kernel [3, eq. 4.17] and a length
scale for each parameter: learners with similar parameters have similar levels and gains. b is the
gain that all share; u_i is the learner's own effect. A walk is 0 at N, its variance w^2 phi. So
half of the data say more of the score at N than a sixtieth. Earlier models of this kind are
FABOLAS [1], for parameters and training size, and freeze-thaw [2], for suspended curves.

The walk from the last score to N depends on nothing else that was seen. So a learner's scores at
all larger sizes follow from three numbers: level, gain, and the walk at its last size. Given all
scores seen these are jointly normal, and a forecast at any size is a sum of the three.

==============  ===================================================================================
name here       meaning
==============  ===================================================================================
level, gain     A, B, in standard deviations of the scores
theta           logarithms of the hyperparameters: length scales, in ranges of their parameters,
                then the standard deviations of f, g, b, u, w and of the noise
apart           squared distances of learners by parameter, shape (parameters, learners, learners)
==============  ===================================================================================

[1] A. Klein et al., "Fast Bayesian Optimization of Machine Learning Hyperparameters on Large
    Datasets", AISTATS 2017. https://arxiv.org/abs/1605.07079
[2] K. Swersky, J. Snoek, R. P. Adams, "Freeze-Thaw Bayesian Optimization", 2014.
    https://arxiv.org/abs/1406.3896
[3] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006.
    https://gaussianprocess.org/gpml/
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri

from optuna_daub.core.once import by_content
from optuna_daub.core.space import Rows
from optuna_daub.core.space import distances
from optuna_daub.core.space import square_distances


Numbers = NDArray[np.float64]


class Scales(NamedTuple):
    """One number for each kind of hyperparameter."""

    length: float
    """Length scale of one parameter, in ranges divided by sqrt(D). D is the number of
    parameters."""
    f: float
    """Standard deviation of f, in standard deviations of the scores, as for all below."""
    g: float
    """Standard deviation of g."""
    b: float
    """Standard deviation of b."""
    u: float
    """Standard deviation of u."""
    w: float
    """Standard deviation of the walk at N / 8."""
    noise: float
    """Standard deviation of one score."""


class Prior(NamedTuple):
    """Prior of the process."""

    bend: float
    """c of phi: gains from one doubling to the next shrink by the factor 2^-c."""
    mean_gain: float
    """Mean of b, in standard deviations of the scores."""
    median: Scales
    """Medians of the hyperparameters, whose logarithms are normal."""
    spread: Scales
    """Standard deviations of these logarithms."""

    def phi(self, doublings: ArrayLike) -> Numbers:
        """Return the share of the gain that is still to come.

        It is 1 at N / 8.

        >>> PRIOR.phi([0.0, 3.0])
        array([0., 1.])
        """
        bend = self.bend * math.log(2.0)
        return np.asarray(np.expm1(bend * np.asarray(doublings, float)) / math.expm1(3.0 * bend))

    def theta(self, n_parameters: int, n_varying: float) -> tuple[Numbers, Numbers]:
        """Return the medians of theta, and standard deviations around them.

        Args:
            n_parameters: number of parameters of the space, each with a length scale.
            n_varying: mean number of parameters of a learner that differ among the learners.
        """
        length = self.median.length * math.sqrt(max(n_varying, 1))
        medians = np.log([*[length] * n_parameters, *self.median[1:]])
        return medians, np.array([*[self.spread.length] * n_parameters, *self.spread[1:]])


def _fitted() -> Prior:
    values = json.loads(Path(__file__).with_name("process.json").read_text("utf-8"))
    scales = Scales(**values["median"]), Scales(**values["spread"])
    return Prior(values["bend"], values["mean_gain"], *scales)


PRIOR = _fitted()
"""Fitted to searches on surrogates, and judged on others, by `benchmarks/fit/process.py`. The
length was chosen by what searches lose and intervals hold (`--lengths` there)."""
MEAN_SD = 1.0
"""Standard deviation of m, in standard deviations of the scores: wide, since the scores decide."""
JITTER = 1e-8
"""Smallest variance of noise: with two equal learners the matrix would be singular."""


class Seen(NamedTuple):
    """Scores that a process learns from."""

    rows: Rows
    """Points of the learners, shape (learners, parameters)."""
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

    @property
    def share(self) -> Numbers:
        """Share of the gain that is still to come at each score, shape (scores,)."""
        return self.prior.phi(self.doublings)

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
        filled = np.where(np.isnan(self.rows), -1.0, self.rows)
        varies = (filled != filled[:1]).any(axis=0)
        return float((~np.isnan(self.rows[:, varies])).sum(axis=1).mean())

    @property
    def apart(self) -> Numbers:
        """Squared distances by parameter, shape (parameters, learners, learners)."""
        return square_distances(self.rows, self.rows, self.is_word)

    def kernel(self, lengths: Numbers, one: Rows, other: Rows, same: NDArray[np.bool_]) -> Numbers:
        """Return the kernel of points, shape (points, other points).

        Args:
            lengths: squared length scales; if there are none, learners are independent.
            one, other: points, shape (points, parameters).
            same: True for pairs that are one learner, shape (points, other points).
        """
        if not len(lengths):
            return same.astype(float)
        return matern(distances(one, other, self.is_word, 1.0 / lengths))


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
    """Variance of the walk at N / 8, shape (learners,)."""

    @property
    def level(self) -> Numbers:
        """Mean of A, the score at N, shape (learners,)."""
        return np.asarray(self.mean[0])

    def scores(self, share: float) -> tuple[Numbers, Numbers]:
        """Return means and variances, without noise, of scores with phi `share`.

        A learner's are right for its last size and all larger ones.
        """
        parts, rest = self._parts(share)
        return (parts * self.mean).sum(axis=0), self._variance(parts, rest)

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
        """Return the weights of the three in a score, and the variance of the rest of the walk.

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
            rows: points of the learners, shape (learners, parameters).
            own: row of each learner among those seen, -1 for a new one; None: all are new.
        """
        seen, count = self.seen, len(rows)
        lengths, (f, g, b, u, w, _) = variances_of(self.theta)
        own = np.full(count, -1) if own is None else own
        same = own[:, None] == np.arange(len(seen.rows))
        near = seen.kernel(lengths, rows, seen.rows, same)
        last = np.where(own < 0, math.inf, seen.last[own])
        is_seen = np.isfinite(last)
        # Covariances with the scores: one row for each level, each gain, and each walk if there is
        # any. BLAS needs no copy of the transpose.
        n_kinds, n_scores = 3 if is_seen.any() else 2, len(seen.learner)
        across = np.empty((n_kinds, count, n_scores))
        np.take(MEAN_SD**2 + f * near + u * same, seen.learner, axis=1, out=across[0])
        np.multiply((b + g * near)[:, seen.learner], -seen.share, out=across[1])
        if n_kinds == 3:
            shared = np.minimum(last[:, None], seen.share)
            np.multiply(w * shared, own[:, None] == seen.learner, out=across[2])
        flat = across.reshape(n_kinds * count, n_scores)
        mean, covariance = np.zeros((3, count)), np.zeros((3, 3, count))
        mean[:n_kinds] = (flat @ self.weights).reshape(n_kinds, count)
        mean[1] += seen.prior.mean_gain
        half = dtrsm(1.0, self.root, flat.T, lower=1, overwrite_b=1).T.reshape(across.shape)
        for i, j in combinations_with_replacement(range(n_kinds), 2):
            covariance[i, j] = covariance[j, i] = -np.einsum("ns,ns->n", half[i], half[j])
        before = MEAN_SD**2 + f + u, b + g, np.where(is_seen, w * last, 0.0)
        for i, variance in enumerate(before):
            covariance[i, i] = np.maximum(covariance[i, i] + variance, JITTER)
        return Lines(mean, covariance, last, np.full(count, w))

    def covariance(self, rows: Rows, own: NDArray[np.int64], share: float) -> Numbers:
        """Return the covariance of the scores of learners at one size, without noise.

        Args:
            rows: points of the learners, shape (learners, parameters).
            own: row of each learner among those seen, -1 for a new one.
            share: phi of that size; 0 at N.
        """
        seen = self.seen
        lengths, (f, g, b, u, w, _) = variances_of(self.theta)
        with_gain = share * seen.share[:, None]
        same = np.arange(len(seen.rows))[:, None] == own
        near = seen.kernel(lengths, seen.rows, rows, same)[seen.learner]
        same = same[seen.learner]
        cross = MEAN_SD**2 + f * near + with_gain * (b + g * near)
        cross += same * (u + w * np.minimum(share, seen.share[:, None]))
        half = dtrsm(1.0, self.root, cross, lower=1)
        alike = np.eye(len(rows), dtype=bool)
        near = seen.kernel(lengths, rows, rows, alike)
        before = MEAN_SD**2 + f * near + share**2 * (b + g * near) + (u + w * share) * alike
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
    known = covariance_of(theta, kernel, seen.learner, *pairs_of(seen.learner, seen.share))
    root = cholesky(known, lower=True, check_finite=False)
    off = seen.score + seen.prior.mean_gain * seen.share
    return Conditioned(seen, theta, root, cho_solve((root, True), off, check_finite=False))


@by_content
def lines_of(process: Conditioned, rows: Rows, own: NDArray[np.int64] | None = None) -> Lines:
    """Return `process.lines(rows, own)`; the last results are cached."""
    return process.lines(rows, own)


def covariance_of(
    theta: Numbers,
    kernel: Numbers,
    learner: NDArray[np.int64],
    shares: Numbers,
    walks: Numbers,
) -> Numbers:
    """Return the covariance of scores.

    Args:
        theta: logarithms of the hyperparameters.
        kernel: kernel of the learners.
        learner: learner of each score.
        shares, walks: both results of `pairs_of`.
    """
    _, (f, g, b, u, w, noise) = variances_of(theta)
    of_level, of_gain = MEAN_SD**2 + f * kernel, b + g * kernel
    of_level.flat[:: len(kernel) + 1] += u
    # While each learner has one score, in order, its rows need not be gathered.
    if len(learner) != len(kernel) or (learner[1:] <= learner[:-1]).any():
        of_level, of_gain = (
            each.take(learner, axis=0).take(learner, axis=1) for each in (of_level, of_gain)
        )
    covariance = of_gain * shares
    covariance += of_level
    covariance += w * walks
    covariance.flat[:: len(learner) + 1] += noise + JITTER
    return np.asarray(covariance)


def pairs_of(learner: NDArray[np.int64], share: Numbers) -> tuple[Numbers, Numbers]:
    """Return the product of phi for each pair of scores, and the covariance of unit walks.

    The latter is the smaller phi of two scores of one learner, and 0 for others.
    """
    same = learner[:, None] == learner
    return share[:, None] * share, np.where(same, np.minimum(share[:, None], share), 0.0)


def variances_of(theta: Numbers) -> tuple[Numbers, Numbers]:
    """Return squared length scales, and the six variances."""
    squares = np.exp(2.0 * theta)
    return squares[:-6], squares[-6:]


def matern(square: Numbers) -> Numbers:
    """Return the kernel of squared distances [3, eq. 4.17]."""
    root = np.sqrt(5.0 * square)
    decay = np.exp(-root)
    root += 1.0
    root += 5.0 / 3.0 * square
    root *= decay
    return np.asarray(root)
