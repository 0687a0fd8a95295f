"""The process of `process` given a pool: its scores and what they say of each learner.

Scores are standardized by those of the study, so a positive affine change of all scores changes
forecasts in the same way. Hyperparameters are fitted to the first 1, 2, 3, ... trainings of the
study, each time 15 % more: workers that know the same agree on them.

Learners are *lost* if they failed, collapsed or violate a constraint. A learner that had an error
before its first score counts as lost too, although it may be tried again. In forecasts of new
points, a lost learner stands for a training on all the data with a low score: the lower, the more
of its neighbours are lost. Without this, regions where learners fail would look unexplored for
ever, and the search would propose nothing else. Scores of lost learners change no other learner's
forecast, and their own forecasts follow from their last scores alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.costs.cost_model import efforts
from optuna_daub.core.costs.seconds import CHECKS
from optuna_daub.core.curve import LOST
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.forecasts.forecast import winsorized
from optuna_daub.core.forecasts.hyperparameters import fit
from optuna_daub.core.forecasts.hyperparameters import milestone
from optuna_daub.core.forecasts.prior import Prior
from optuna_daub.core.forecasts.process import Conditioned
from optuna_daub.core.forecasts.process import Lines
from optuna_daub.core.forecasts.process import Seen
from optuna_daub.core.forecasts.process import condition
from optuna_daub.core.forecasts.process import lines_of
from optuna_daub.core.forecasts.process import variances_of
from optuna_daub.core.once import by_content
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import rows_of
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space


MOST_TAKING_PART = 160
"""Largest number of learners in the process: half of them the best ones, half those tried last. So
a decision costs the same in a study of 20,000 learners (`benchmarks/decision_cost.py`). In
addition there may be half as many lost ones, and as many busy ones."""
MOST_SCORES = 2 * MOST_TAKING_PART
"""Largest number of scores in the process; a fit costs their cube: with 2,240 it takes 47 seconds,
with 320 one. Learners of other policies have a dozen scores, those of the default rule about
one."""
NEARNESS = 8
"""Power of the kernel that weighs neighbours: they are within half a length scale. With it,
searches avoid a region in which learners fail, and tolerate failures by chance
(`tests/core/test_proposals.py`)."""


class PoolProcess(NamedTuple):
    """The process given a pool. Arrays of learners are in the order of ids."""

    process: Conditioned | None
    """The process; None before any score."""
    of_new: Conditioned | None
    """The process for points without a score: it knows of lost learners too."""
    lines: Lines
    """Level, gain and walk of each learner, standardized."""
    size: Numbers
    """Largest size of each learner with a finite score; 0 before any."""
    score: Numbers
    """Last finite score of each learner; NaN before any."""
    middle: float
    """Mean of the scores."""
    unit: float
    """Standard deviation of the scores."""
    widened: float
    """Factor of all standard deviations."""
    places: NDArray[np.int64]
    """Places of the learners in the process, in its order."""

    @property
    def noise(self) -> float:
        """Variance of the noise of one score, standardized."""
        return 1.0 if self.process is None else self.process.noise

    def errors(self, sd: Numbers, share: float, count: int, rng: np.random.Generator) -> Numbers:
        """Return draws of the errors of scores at the size of this phi.

        Shape (count, learners). Errors of learners in the process depend on each other; those of
        others are independent.

        Args:
            sd: standard deviation of each learner's score; 0 if it is known.
            share: phi of the size.
            count: number of draws.
            rng: generator of the draws.
        """
        drawn = sd * rng.standard_normal((count, len(sd)))
        if self.process is None:
            return drawn
        own = np.arange(len(self.places))
        covariance = self.process.covariance(self.process.seen.rows, own, share)
        covariance.flat[:: len(own) + 1] += self.noise
        values, vectors = np.linalg.eigh(covariance)  # it may be singular
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        together = rng.standard_normal((count, len(own))) @ root.T
        # Rising curves are surer, so scale these errors to their standard deviations.
        drawn[:, self.places] = together / np.sqrt(np.diag(covariance)) * sd[self.places]
        return drawn

    def in_scores(self, lines: Lines, share: float, noise: float = 0.0) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations of scores, with this noise, at this phi."""
        mean, variance = lines.scores(share)
        sd = self.widened * np.sqrt(variance + noise)
        return self.middle + self.unit * mean, self.unit * sd


def process_of(
    curves: Curves,
    full: int,
    prior: Prior,
    space: Space,
    busy: frozenset[int],
    is_timed: bool,
) -> PoolProcess:
    """Return the process given a pool, with results for its learners.

    Args:
        curves: curves of the pool.
        full: N.
        prior: prior of the process.
        space: space of the parameters.
        busy: ids of learners in training. For all others they count as trained on N examples with
            their forecast as score (the "kriging believer"), so workers choose differently.
        is_timed: True if measured seconds inform forecasts.
    """
    facts = curves.columns(_facts)
    size, score, first, last, count, is_lost = facts.T
    is_seen, is_lost = size > 0, is_lost > 0.0
    is_well = is_seen & ~is_lost
    if not is_well.any():
        nobody = np.empty(0, np.int64)
        return PoolProcess(None, None, unseen(len(size)), size, score, 0.0, 1.0, 1.0, nobody)
    # Hyperparameters use only the first trainings, with the scores of that time.
    first, last = np.where(is_well, (first, last), math.inf)
    until = _until(curves, last, int(count[is_well].sum()))
    taught = _take_part(_scores_then(curves, score, first, last, until))
    points = curves.once(rows_of, space)
    bare = with_efforts(points, 0.0)
    theta = fit(_seen(curves, taught, bare, space.is_word, full, until, prior)[0])
    places = _take_part(np.where(is_well, score, np.nan))
    # Learners without a score are points like candidates, but a busy one counts as scored.
    waiting = np.flatnonzero(~is_seen & (curves.columns(_is_waiting)[:, 0] > 0.0))
    # At most as many busy ones as take part else; those trained on N have no further score.
    is_busy = np.isin(curves.learners, [*busy]) if busy else np.zeros(len(size), bool)
    at_work = np.flatnonzero((size < full) & is_busy & ~is_lost)[-MOST_TAKING_PART:]
    places = np.union1d(places, at_work)
    # The efforts change with each training, so hyperparameters are fitted without them.
    rows = bare
    if is_timed:
        rows = with_efforts(points, curves.once(efforts, full, space).learners)
    seen, middle, unit = _seen(curves, places, rows, space.is_word, full, math.inf, prior)
    process, widened = condition(theta, seen), _widening(theta, seen)
    away = np.searchsorted(places, at_work)
    of_busy = process.lines(seen.rows[away], away)
    if len(at_work):
        process = condition(
            theta,
            seen._replace(
                learner=np.append(seen.learner, away),
                doublings=np.append(seen.doublings, np.zeros(len(away))),
                score=np.append(seen.score, of_busy.mean[0]),  # as expected, so it moves nothing
            ),
        )
    of_new = process
    # A learner that failed before it had parameters is no point of the space.
    is_point = ~np.isnan(points).all(axis=1)
    if (lost := np.flatnonzero(is_lost & is_point)[-MOST_TAKING_PART // 2 :]).size:
        of_new = _with_lost(process, rows[lost])
    new = np.setdiff1d(waiting, places)
    lines = unseen(len(size))
    if len(places) + len(new) < len(size):
        lines = _alone(process, (score - middle) / unit, np.log2(full / np.maximum(size, 1.0)))
    _put(lines, places, lines_of(process, seen.rows, np.arange(len(places))))
    _put(lines, at_work, of_busy.rising())  # each is as unsure as before
    if len(new):
        _put(lines, new, lines_of(of_new, rows[new]))
    return PoolProcess(process, of_new, lines, size, score, middle, unit, widened, places)


def _facts(curve: LearningCurve) -> tuple[float, ...]:
    """Return last size and score, order of the first and last training, their number.

    The last number is 1 for a learner that is lost.
    """
    seen, is_lost = curve.once(_trainings), curve.cause in LOST
    if not len(seen):
        # A learner that had an error may be tried again, but new points beside it may fail too.
        return 0.0, math.nan, math.inf, math.inf, 0.0, is_lost or curve.errors > 0
    return seen[-1, 0], seen[-1, 1], seen[0, 2], seen[-1, 2], len(seen), is_lost


def _trainings(curve: LearningCurve) -> Numbers:
    """Return size, score and order of each training with a finite score."""
    seen = [(x.size, x.score, x.order) for x in curve.observations if is_finite(x.score)]
    return np.array(seen, np.float64).reshape(-1, 3)


def _until(curves: Curves, last: Numbers, count: int) -> float:
    """Return the order of the last training that hyperparameters are fitted to.

    Args:
        curves: curves of the pool.
        last: order of each learner's last training.
        count: number of trainings.
    """
    n_later = count - milestone(count)
    # The `n_later` last trainings belong to at most the `n_later` learners trained last.
    is_well = np.isfinite(last)
    latest = np.argsort(np.where(is_well, -last, math.inf), kind="stable")[: n_later + 1]
    latest = latest[is_well[latest]]
    orders = np.concatenate([curves[i].once(_trainings) for i in curves.learners[latest].tolist()])
    return float(np.sort(orders[:, 2])[-1 - n_later])


def _scores_then(
    curves: Curves, score: Numbers, first: Numbers, last: Numbers, until: float
) -> Numbers:
    """Return each learner's last score up to some training; NaN if it had none."""
    then = np.where(first <= until, score, np.nan)
    for place in np.flatnonzero((first <= until) & (last > until)):
        seen = curves[int(curves.learners[place])].once(_trainings)
        then[place] = seen[seen[:, 2] <= until, 1][-1]
    return then


def _is_waiting(curve: LearningCurve) -> tuple[float]:
    return (float(not curve.dropped and bool(curve.parameters)),)


def with_efforts(rows: Rows, found: Numbers | float) -> Rows:
    """Return points of the process: parameters, then efforts."""
    return np.column_stack([rows, np.broadcast_to(found, len(rows))])


def _take_part(score: Numbers) -> NDArray[np.int64]:
    """Return the places of the learners in the process: the best ones, and those tried last."""
    known = np.flatnonzero(np.isfinite(score))
    if len(known) <= MOST_TAKING_PART:
        return known
    best = known[np.argsort(-score[known], kind="stable")[: MOST_TAKING_PART // 2]]
    rest = np.setdiff1d(known, best)[-(MOST_TAKING_PART - len(best)) :]
    return np.union1d(best, rest)


def _seen(
    curves: Curves,
    places: NDArray[np.int64],
    rows: Rows,
    is_word: NDArray[np.bool_],
    full: int,
    until: float,
    prior: Prior,
) -> tuple[Seen, float, float]:
    """Return scores of some learners up to some training, their mean and standard deviation."""
    parts = [curves[i].once(_trainings) for i in curves.learners[places].tolist()]
    parts = _thinned([part[part[:, 2] <= until] for part in parts])
    learner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    size, score, _ = np.concatenate(parts).T
    doublings, score = np.log2(np.maximum(full / size, 1.0)), winsorized(score)
    mean, reach = float(score.mean()), float(np.ptp(score)) or 1.0
    unit = reach * float(((score - mean) / reach).std())  # squares of tiny scores would be 0
    unit = unit if unit > 1e-12 * abs(mean) else 1.0
    seen = Seen(rows[places], is_word, learner, doublings, (score - mean) / unit, prior)
    return seen, mean, unit


def _thinned(parts: list[Numbers]) -> list[Numbers]:
    """Return at most `MOST_SCORES` trainings, if there are not more learners than that.

    Learners with the most trainings lose some of them, but never the last one.
    """
    counts = np.array([len(part) for part in parts])
    if counts.sum() <= MOST_SCORES:
        return parts
    most = int(counts.max())
    while most > 1 and np.minimum(counts, most).sum() > MOST_SCORES:
        most -= 1
    places = [np.linspace(len(part) - 1, 0, min(len(part), most)).round() for part in parts]
    return [part[of.astype(int)[::-1]] for part, of in zip(parts, places, strict=True)]


def _with_lost(process: Conditioned, rows: Rows) -> Conditioned:
    """Return the process that knows of lost learners at these points, too.

    Each counts as trained on all the data, with the mean score of a learner at its point: the
    lowest of all scores if lost, the expected one if not. The share of lost ones there has a beta
    distribution, since a learner may also fail by chance. The share counts the neighbours, and one
    more that is lost as often as all learners are.
    """
    seen, count, n_well = process.seen, len(rows), len(process.seen.rows)
    both = np.vstack([seen.rows, rows])
    itself = np.arange(len(both)) == n_well + np.arange(count)[:, None]
    # Failures have other length scales than scores, so take those of the prior.
    medians, _ = seen.prior.theta(rows.shape[1] - 1, seen.n_varying)
    kernel = seen.kernel(variances_of(medians)[0], rows, both, itself)
    near = np.where(itself, 0.0, kernel) ** NEARNESS
    weight = near.sum(axis=1) + 1.0
    share = (near[:, n_well:].sum(axis=1) + count / len(both)) / weight
    level = process.lines(rows).mean[0]
    # If all scores are equal, lost ones are a standard deviation below them.
    fall = np.minimum(min(float(seen.score.min()), -1.0) - level, 0.0)
    return condition(
        process.theta,
        seen._replace(
            rows=both,
            learner=np.append(seen.learner, n_well + np.arange(count)),
            doublings=np.append(seen.doublings, np.zeros(count)),
            score=np.append(seen.score, level + fall * share),
            doubt=np.append(
                np.zeros(len(seen.score)), fall**2 * share * (1.0 - share) / (weight + 1.0)
            ),
        ),
    )


@by_content
def _widening(theta: Numbers, seen: Seen) -> float:
    """Return the factor by which forecasts are widened, at least 1.

    Each learner's last score is predicted from all other scores. The errors of these predictions
    give the factor.
    """
    learner = seen.learner
    is_last = np.append(learner[1:] != learner[:-1], True)
    off = condition(theta, seen).surprises()[is_last]
    return max(1.0, math.sqrt((CHECKS + float(off @ off)) / (CHECKS + len(off))))


def unseen(count: int) -> Lines:
    """Return the lines of unknown learners before any score."""
    covariance = np.zeros((3, 3, count))
    covariance[0, 0] = math.inf
    return Lines(np.zeros((3, count)), covariance, np.full(count, math.inf), np.zeros(count))


def _alone(process: Conditioned, score: Numbers, doublings: Numbers) -> Lines:
    """Return the lines of learners outside the process, from their last scores alone.

    Args:
        process: the process, for the prior of an average learner.
        score, doublings: standardized score and doublings of each learner's last training; NaN
            without any.
    """
    rows = process.seen.rows
    # Parameters that are equal in all learners are equal here too.
    nobody = np.where((rows == rows[:1]).all(axis=0), rows[:1], np.nan)
    nobody[:, -1] = 0.0
    new, known = process.lines(nobody), np.isfinite(score)
    share = np.where(known, process.seen.prior.phi(doublings), 0.0)
    covariance = np.repeat(new.covariance, len(score), axis=2)
    covariance[2, 2] = new.walk * share
    parts = np.stack([np.ones_like(share), -share, np.ones_like(share)])
    across = np.einsum("ijn,jn->in", covariance, parts)
    variance = (across * parts).sum(axis=0) + process.noise
    off = np.where(known, score - (parts * new.mean).sum(axis=0), 0.0) / np.sqrt(variance)
    told = across / np.sqrt(variance) * known
    mean, covariance = new.mean + told * off, covariance - told[:, None] * told
    last = np.where(known, share, math.inf)
    return Lines(mean, covariance, last, np.repeat(new.walk, len(score))).rising()


def _put(lines: Lines, places: NDArray[np.int64], found: Lines) -> None:
    for part, new in zip(lines, found, strict=True):
        part[..., places] = new
