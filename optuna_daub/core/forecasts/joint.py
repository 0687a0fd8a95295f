"""Forecasts for learners without parameters: a gain that all share, and each learner's own.

The *way* from n to m examples is a part of the learning curve. With the smallest size n_1 of the
study it is

    A = ((n_1 / n)^c - (n_1 / m)^c) / (1 - 16^-c),

which is 1 for the first four doublings and fades as power laws do. The gap of learner i is the
best score on as many examples or fewer, minus its own. The study's unit is
U = mean(gap^(1/4))^4 over first scores. Bad learners hardly change it, so it matters little
whether scores are errors or squared errors. With q_i = U (gap_i / U)^p, gains are linear in normal
effects,

    gain = sum of A_k a_k over doublings k + A (b q_i + e_i) + walk,
    e_i ~ N(0, (o U)^2),   walk ~ N(0, A (s (f |a + b q_i| + q_i + least U))^2)

and the variances of both are multiplied by a factor of the study. a and b belong to the study. a
drifts from doubling to doubling, so gains on small samples say less of large ones. e_i belongs to
the learner, and stays. It does not shrink with the gain that all share: if the first learner gains
nothing, others still may. The factor has an inverse gamma prior: the spread between learners is
learnt from all of them, and one gain changes it little. Each observed gain, from a size to the
next, is one row of a linear regression with a posterior in closed form. A row contains the gap at
its start. So the gains of leaders are not applied to learners far behind them, and it does not
matter which learners were trained further.

`joint.json` has the numbers of the prior. `benchmarks/fit/joint.py` says which of them it fits, on
every second data set of LCDB 1.1 [1], and which are chosen by replays.

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LARGEST_SCORE
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import forecast_of
from optuna_daub.core.forecasts.forecast import lead_of
from optuna_daub.core.forecasts.forecast import widths
from optuna_daub.core.forecasts.forecast import winsorized
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.space import Numbers


MAX_SEEN = 12
"""Number of a learner's last observations that count; more cost time."""
DOUBLINGS = 12
"""Number of doublings from the smallest size with an a of their own. The last one includes all
beyond. Not tuned."""
PASSES = 12
"""Passes of the regression. Each takes the variances of the passes before, and half a step. Not
tuned."""
OUTLIER = 3.0
"""Largest distance of a gain that counts for the spread, in standard deviations. One learner that
collapses must not make all others uncertain. Not tuned."""
N_RECENT = 30
"""Number of learners started last on which forecasts of new learners are based. With so many, the
upper half gives the spread of good ones; with fewer, the standard deviation is steadier."""
UPPER_TENTH = 1.2816  # the 90 % quantile of a standard normal distribution


@dataclass(frozen=True)
class Prior:
    """Numbers of the prior of gains; U is the unit of the study."""

    fading: float
    """c: exponent of the training size in the power law."""
    power: float
    """p: exponent of the gap in a learner's gain."""
    gain: float
    """Mean of a, in U."""
    gain_sd: float
    """Standard deviation of a, in U."""
    drift: float
    """Standard deviation of the change of a between neighbouring doublings, in U."""
    closing: float
    """Mean of b."""
    closing_sd: float
    """Standard deviation of b."""
    spread: float
    """s: spread between learners, as a share of their gain and of q."""
    spread_weight: float
    """Weight of the prior of s, as a number of observed gains."""
    of_gain: float
    """f: share of the expected gain in the spread between learners, beside q."""
    least: float
    """Share of U in the spread between learners."""
    own: float
    """o: standard deviation of a learner's own effect, in U."""


PRIOR = Prior(**json.loads(Path(__file__).with_name("joint.json").read_text(encoding="utf-8")))
"""Prior in the data file. `benchmarks/fit/joint.py` says how it was chosen."""


@dataclass(frozen=True)
class Joint(Forecaster):
    """Forecasts from last scores, the shared gain, and each learner's own gain.

    >>> from optuna_daub.core import Curves, Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((1000, 2000), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, score) for n, score in seen))
    >>> pool = Pool(Curves([curve(0, 0.70, 0.74), curve(1, 0.69), curve(2, 0.60)]))
    >>> means = [round(float(Joint().forecasts(pool, 2000)[i].mean), 2) for i in range(3)]
    >>> means[0], 0.69 <= means[1] < 0.74
    (0.74, True)
    """

    prior: Prior = PRIOR
    """Prior of the gains."""

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`."""
        study = pool.curves.once(_scaled, self.prior)
        mean, sd = study.of_all(size)
        mean *= study.unit
        found = forecast_of(mean, study.unit * sd, lead_of(pool, mean))

        def draws(count: int, rng: np.random.Generator) -> Numbers:
            wide = widths(found, sd, count, rng)
            return np.asarray(mean + wide * study.errors(sd**2, size, count, rng))

        return Forecasts(pool.curves.learners, found, draws)

    def candidates(self, pool: Pool, size: int) -> Forecast:
        """Return forecasts like those of recent learners after their first training.

        They are infinitely wide before any learner has a score.
        """
        (mean, sd), count = self.beliefs(pool, size), len(pool.curves)
        return forecast_of(mean[count:], sd[count:], lead_of(pool, mean[:count]))

    def beliefs(self, pool: Pool, size: int) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations of the model itself."""
        study = pool.curves.once(_scaled, self.prior)
        new = np.tile(study.newcomer(size), (len(pool.once(candidates_of)), 1)).T
        mean, sd = study.unit * np.hstack([study.of_all(size), new])
        return mean, sd

    def look(self, pool: Pool, at: int, size: int) -> tuple[Numbers, Numbers]:
        """Return how much a score at `at` would change each forecast's mean at `size`.

        The numbers are standard deviations, at most those of the beliefs. They are 0 for learners
        trained on `at` examples or more.

        >>> from optuna_daub.core import Observation
        >>> curves = [LearningCurve(i, (Observation(500, i / 10),)) for i in range(3)]
        >>> scale, _ = Joint().look(Pool(Curves(curves)), 1000, 4000)
        >>> bool((scale > 0.0).all()), Joint().look(Pool(Curves(curves)), 500, 4000)[0].tolist()
        (True, [0.0, 0.0, 0.0])
        """
        study = pool.curves.once(_scaled, self.prior)
        last = study.last
        (way, rows), (whole, all_rows) = study.rows(at, last), study.rows(size, last)
        both = np.einsum("ij,jk,ik->i", rows, study.of_shared, all_rows)
        both += last.own * way * whole + last.walk * np.minimum(way, whole)
        _, variance = study.ahead(at, last)
        with np.errstate(divide="ignore", invalid="ignore"):
            changed = np.where(variance > 0.0, both / np.sqrt(variance), 0.0)
        new, candidates = super().look(pool, at, size)
        return np.where(study.is_begun, study.unit * changed, new), candidates


class _Learners(NamedTuple):
    """Learners after some training of each. Arrays are in the order of ids."""

    size: Numbers
    """Size of the training."""
    score: Numbers
    """Score of the training."""
    q: Numbers
    """q there."""
    effect: Numbers
    """Mean of e."""
    own: Numbers
    """Variance of e."""
    walk: Numbers
    """Variance of `walk` (see the module) for A = 1."""


class _Study(NamedTuple):
    """Results of the regression on a study."""

    prior: Prior
    unit: float
    """Number by which all scores here are divided."""
    first_size: float
    """Smallest size of the study."""
    is_begun: NDArray[np.bool_]
    """True for learners with a finite score, shape (learners,)."""
    first: _Learners
    """Learners after the first training of each, without what later ones say of e."""
    last: _Learners
    """Learners after the last training of each."""
    shared: Numbers
    """Posterior mean of a in each doubling from the smallest size, and of b."""
    of_shared: Numbers
    """Posterior covariance of `shared`."""

    def rows(self, size: int, at: _Learners) -> tuple[Numbers, Numbers]:
        """Return A from each learner's size to `size`, and the rows of the regression."""
        ways = _ways(self.prior, self.first_size, at.size, np.maximum(at.size, float(size)))
        way = ways.sum(axis=1)
        return way, np.column_stack([ways, way * at.q])

    def ahead(self, size: int, at: _Learners) -> tuple[Numbers, Numbers]:
        """Return mean and variance of every learner's score at a size."""
        way, rows = self.rows(size, at)
        common = np.einsum("ij,jk,ik->i", rows, self.of_shared, rows)
        mean = at.score + rows @ self.shared + way * at.effect
        return mean, common + way * (way * at.own + at.walk)

    def of_all(self, size: int) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of every learner's score, also without any score."""
        (mean, variance), (middle, sd) = self.ahead(size, self.last), self.newcomer(size)
        mean = np.where(self.is_begun, mean, middle)
        return mean, np.where(self.is_begun, np.sqrt(variance), sd)

    def errors(
        self, variance: Numbers, size: int, count: int, rng: np.random.Generator
    ) -> Numbers:
        """Return draws of the errors of scores at a size, shape (count, learners).

        Those of the shared gains are the same for all learners; the rest is independent.
        """
        _, rows = self.rows(size, self.last)
        rows = np.where(self.is_begun[:, None], rows, 0.0)
        values, vectors = np.linalg.eigh(self.of_shared)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        shared = rng.standard_normal((count, len(root))) @ (rows @ root).T
        rest = variance - np.einsum("ij,jk,ik->i", rows, self.of_shared, rows)
        own = np.sqrt(np.maximum(rest, 0.0)) * rng.standard_normal((count, len(variance)))
        return np.asarray(shared + own)

    def newcomer(self, size: int) -> tuple[float, float]:
        """Return location and scale of a new learner's score."""
        recent = np.flatnonzero(self.is_begun)[-N_RECENT:]
        if not len(recent):
            return 0.0, math.inf
        mean, variance = (part[recent] for part in self.ahead(size, self.first))
        middle, spread = float(mean.mean()), float(mean.std())
        if len(recent) == N_RECENT:
            # Scores have a ceiling but no floor: very bad learners must not widen the upper end.
            high, middle = np.quantile(mean, [0.9, 0.5]).tolist()
            spread = min(spread, (high - middle) / UPPER_TENTH)
        return middle, math.sqrt(spread**2 + float(variance.mean()))


def _ways(prior: Prior, first: float, since: Numbers, to: Numbers) -> Numbers:
    """Return A within each doubling from the first size on. The last one includes all beyond."""
    c = prior.fading
    ends = first * 2.0 ** np.arange(1, DOUBLINGS + 1)
    ends[-1] = np.inf
    starts = first * 2.0 ** np.arange(DOUBLINGS)
    starts[0] = 0.0
    low, high = np.maximum(since[:, None], starts), np.minimum(to[:, None], ends)
    parts = np.where(low < high, (first / low) ** c - (first / high) ** c, 0.0)
    return np.asarray(parts / (1.0 - 16.0**-c))


def _seen(curve: LearningCurve) -> tuple[float, ...]:
    """Return a learner's sizes and finite scores, padded with NaN."""
    seen = [(x.size, x.score) for x in curve.observations if is_finite(x.score)]
    sizes, scores = np.full((2, MAX_SEEN), np.nan)
    if seen:
        last = np.array(seen[-MAX_SEEN:], float)
        sizes[: len(last)], scores[: len(last)] = last.T
    return (*sizes.tolist(), *scores.tolist())


def _gaps(sizes: Numbers, scores: Numbers) -> Numbers:
    """Return the difference of each score to the best on as much data."""
    flat = np.isfinite(sizes)
    known, place = np.unique(sizes[flat], return_inverse=True)
    best = np.full(len(known), -np.inf)
    np.maximum.at(best, place, scores[flat])
    gaps = np.full(sizes.shape, np.nan)
    gaps[flat] = np.maximum.accumulate(best)[place] - scores[flat]
    return gaps


def _scaled(curves: Curves, prior: Prior) -> _Study:
    """Return the results of the regression, in a unit that keeps squares above 0."""
    scores = curves.columns(_seen)[:, MAX_SEEN:]
    seen = scores[np.isfinite(scores)]
    # With the mean of both exponents, squares of diverged scores are not infinite either.
    both = (seen, winsorized(seen)) if len(seen) else ()
    exponent = sum(math.frexp(float(np.ptp(each)))[1] for each in both) // 4
    return _study(curves, prior, 4.0**exponent)  # which changes no digit of a score or its root


def _study(curves: Curves, prior: Prior, one: float) -> _Study:
    """Return the results of the regression in the module's docstring, in units of `one`."""
    sizes, scores = np.split(curves.columns(_seen) / np.repeat([1.0, one], MAX_SEEN), 2, axis=1)
    is_begun, n = np.isfinite(sizes[:, 0]), len(sizes)
    smallest, held, gaps, unit = 1.0, scores, scores, 0.0  # all scores are NaN before the first
    if is_begun.any():
        smallest, held = float(np.nanmin(sizes)), winsorized(scores)
        gaps = _gaps(sizes, held)
        unit = float(np.mean(gaps[is_begun, 0] ** 0.25) ** 4)
        if unit * LARGEST_SCORE < (reach := np.nanmax(held) - np.nanmin(held)):
            unit = float(reach)  # first scores tie: take later differences as the unit
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.nan_to_num(unit * (gaps / unit) ** prior.power)

    # One row for each observed gain: learner, start, way, gain.
    who, place = np.nonzero(np.isfinite(sizes[:, 1:]))
    since, of_gap = sizes[who, place], q[who, place]
    ways = _ways(prior, smallest, since, sizes[who, place + 1])
    way = ways.sum(axis=1)
    rows = np.column_stack([ways, way * of_gap])
    gain = held[who, place + 1] - held[who, place]
    # a is a random walk over doublings.
    steps = np.arange(DOUBLINGS)
    before = np.zeros((DOUBLINGS + 1, DOUBLINGS + 1))
    drifted = (prior.drift * unit) ** 2 * np.minimum.outer(steps, steps)
    before[:-1, :-1] = (prior.gain_sd * unit) ** 2 + drifted
    before[-1, -1] = prior.closing_sd**2
    mean = np.array([*[prior.gain * unit] * DOUBLINGS, prior.closing])
    shared, of_shared, square = mean, before, 1.0
    own = (prior.own * unit) ** 2
    last = np.maximum(0, np.isfinite(sizes).sum(axis=1) - 1)
    at, score, here = (part[np.arange(n), last] for part in (sizes, scores, q))

    def walked(since: Numbers, of_gap: Numbers) -> Numbers:
        """Return the variance of the walk, for A = 1."""
        doubling = np.clip(np.nan_to_num(np.log2(since / smallest)), 0, DOUBLINGS - 1).astype(int)
        typical = np.abs(shared[doubling] + shared[-1] * of_gap)
        walk = prior.spread * (prior.of_gain * typical + of_gap + prior.least * unit)
        return np.asarray(walk**2)

    nothing, whole = np.zeros(n), np.ones(n)
    effect, doubt = nothing, whole
    for _ in range(PASSES if len(who) and unit > 0.0 else 0):
        walk, of_own = way * walked(since, of_gap), own * square
        # Each learner's rows share its own effect, so invert their covariance by Woodbury.
        inverse = 1.0 / (walk * square)
        doubt = np.asarray(1.0 / (1.0 + of_own * np.bincount(who, inverse * way**2, n)))
        shrink = of_own * doubt
        cross = np.zeros((n, DOUBLINGS + 1))
        np.add.at(cross, who, (inverse * way)[:, None] * rows)
        information = (rows * inverse[:, None]).T @ rows - (cross * shrink[:, None]).T @ cross
        off = gain - rows @ mean
        seen = rows.T @ (inverse * off)
        seen -= cross.T @ (shrink * np.bincount(who, inverse * way * off, n))
        # Work in units of the prior's deviations, so no scale of scores is singular.
        root = np.sqrt(np.diag(before))
        inner = np.linalg.inv(before / np.outer(root, root))
        inner = np.linalg.inv(inner + information * np.outer(root, root))
        of_shared = inner * np.outer(root, root)
        # Shared gains and spreads depend on each other, so whole steps would oscillate.
        shared = (shared + mean + of_shared @ seen) / 2.0
        off = gain - rows @ shared
        effect = shrink * np.bincount(who, inverse * way * off, n)
        squares = off**2 / (walk + own * way**2)
        total = prior.spread_weight + float(np.minimum(squares, OUTLIER**2).sum())
        square = total / (prior.spread_weight + len(who))

    def after(since: Numbers, score: Numbers, q: Numbers, e: Numbers, of_e: Numbers) -> _Learners:
        """Return the learners after a training: e is the effect, of_e its share of the prior."""
        return _Learners(
            size=np.where(is_begun, since, 1.0),
            score=np.where(is_begun, score, 0.0),
            q=q,
            effect=e,
            own=square * own * of_e,
            walk=square * walked(since, q),
        )

    return _Study(
        prior=prior,
        unit=one,
        first_size=smallest,
        is_begun=is_begun,
        first=after(sizes[:, 0], scores[:, 0], q[:, 0], nothing, whole),
        last=after(at, score, here, effect, doubt),
        shared=shared,
        of_shared=of_shared,
    )
