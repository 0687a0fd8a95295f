"""Forecasts of a pool by one Gaussian process over parameters and training size.

The model is in `process`. Scores are standardized by those of the study, so a positive affine
change of all scores changes forecasts in the same way. Hyperparameters are fitted to the first 1,
2, 3, ... trainings of the study, each time 15 % more: workers that know the same agree on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import winsorized
from optuna_daub.core.forecasts.hyperparameters import fit
from optuna_daub.core.forecasts.hyperparameters import milestone
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.prior import Prior
from optuna_daub.core.forecasts.process import Conditioned
from optuna_daub.core.forecasts.process import Lines
from optuna_daub.core.forecasts.process import Seen
from optuna_daub.core.forecasts.process import condition
from optuna_daub.core.forecasts.process import lines_of
from optuna_daub.core.forecasts.student import FREEDOM
from optuna_daub.core.forecasts.student import Student
from optuna_daub.core.once import by_content
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.pool import rows_of
from optuna_daub.core.space import Space


Numbers = NDArray[np.float64]

MOST_LEARNERS = 160
"""Largest number of learners in the process: half of them the best ones, half those tried last. So
a decision costs the same in a study of 20,000 learners (`benchmarks/decision_cost.py`)."""
WIDER = 1.4
"""Scale of a forecast, in standard deviations of the process. The forecast is a Student t with
four degrees of freedom. The process is too sure of suspended learners, whose intervals are shown.
By the first half of the surrogates of `benchmarks/fit/process.py`, judged by the second."""
CHECKS = 10.0
"""Weight of the belief in the stated precision, as a number of scores. It changes how often the
intervals of `benchmarks/fit/process.py` hold."""


@dataclass(frozen=True)
class Process(Forecaster):
    """Forecasts by parameters and training size.

    >>> from optuna_daub.core import Observation
    >>> def curve(learner, depth, *scores):
    ...     seen = (Observation(n, score) for n, score in zip((1000, 16000), scores))
    ...     return LearningCurve(learner, tuple(seen), parameters={"depth": depth})
    >>> tried = [curve(0, 1, 0.60, 0.64), curve(1, 4, 0.70, 0.74), curve(2, 5, 0.72)]
    >>> forecasts = Process(16000).forecasts(Pool(Curves(tried)), 16000)
    >>> bool(0.72 < forecasts[2].mean < 0.78), float(forecasts[1].mean)
    (True, 0.74)
    """

    full: int
    """Number of all training examples, N."""
    prior: Prior = PRIOR
    """Prior of the process."""

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`."""
        known, share = self._known(pool), self._share(size)
        mean, sd = known.in_scores(known.lines, share, known.noise)
        is_there = known.size >= size
        mean, sd = np.where(is_there, known.score, mean), np.where(is_there, 0.0, sd)

        def draws(count: int, rng: np.random.Generator) -> Numbers:
            # A forecast is wider than the process by this factor, one for all learners.
            wide = known.widened * WIDER * np.sqrt(FREEDOM / rng.chisquare(FREEDOM, (count, 1)))
            errors = np.minimum(wide, 1.0) * known.errors(sd / known.widened, share, count, rng)
            more = np.sqrt(np.maximum(wide**2 - 1.0, 0.0)) * rng.standard_normal((count, 1))
            return mean + errors + more * sd / known.widened

        return Forecasts(pool.curves.learners, Student(mean, WIDER * sd), draws)

    def newcomer(self, pool: Pool, size: int) -> Student:
        """Return the forecast of a candidate drawn at random."""
        known, share = self._known(pool), self._share(size)
        mean, sd = known.in_scores(pool.once(self._candidates), share, known.noise)
        return Student(float(mean.mean()), WIDER * math.sqrt(float((sd**2).mean() + mean.var())))

    def candidates(self, pool: Pool, size: int) -> Student:
        """Return the forecasts of the pool's candidates."""
        known, share = self._known(pool), self._share(size)
        mean, sd = known.in_scores(pool.once(self._candidates), share, known.noise)
        return Student(mean, WIDER * sd)

    def beliefs(self, pool: Pool, size: int) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations of the process itself, narrower than forecasts.

        The noise of a score is left out, since a lucky score is no better learner. If decisions
        used the wider forecasts, a search would try too many unknown points: on three surrogates
        it was 0.12 points behind after the time of 30 trainings.
        """
        known, share = self._known(pool), self._share(size)
        both = known.lines, pool.once(self._candidates)
        parts = [known.in_scores(lines, share) for lines in both]
        is_there = known.size >= size
        mean, sd = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        count = len(is_there)
        mean[:count] = np.where(is_there, known.score, mean[:count])
        sd[:count] = np.where(is_there, 0.0, sd[:count])
        return mean, sd

    def gaps(self, pool: Pool, size: int, leader: int) -> Numbers:
        """Return the standard deviation of each candidate's score minus that of one learner.

        What is unknown of the leader is unknown of its neighbours too, so their gap is small.
        """
        known, share, new = self._known(pool), self._share(size), pool.once(candidates_of)
        own = int(np.searchsorted(known.places, leader))
        if known.process is None or own == len(known.places) or known.places[own] != leader:
            return super().gaps(pool, size, leader) / WIDER  # the process's own width
        rows = np.vstack([known.process.seen.rows[[own]], new])
        places = np.append(own, np.full(len(new), -1))
        covariance = known.process.covariance(rows, places, share)
        square = np.diag(covariance)[1:] - 2.0 * covariance[0, 1:] + covariance[0, 0]
        return np.asarray(known.unit * known.widened * np.sqrt(np.maximum(square, 0.0)))

    def look(self, pool: Pool, at: int, size: int) -> tuple[Numbers, Numbers]:
        """Return the expected change of each forecast at N by a score at `at`.

        It is a standard deviation, as in `Forecaster.look`.

        Raises:
            ValueError: if `size` is not N.
        """
        if size != self.full:
            raise ValueError(f"`size` must be {self.full:,}, but got {size:,}.")
        known, share = self._known(pool), self._share(at)
        learners, candidates = (
            known.unit * known.widened * lines.look(share, known.noise)
            for lines in (known.lines, pool.once(self._candidates))
        )
        return learners, candidates

    def _share(self, size: int) -> float:
        return float(self.prior.phi(math.log2(self.full / size)))

    def _known(self, pool: Pool) -> _Known:
        return pool.curves.once(_known, self.full, self.prior, pool.known_space, pool.busy)

    def _candidates(self, pool: Pool) -> Lines:
        known, rows = self._known(pool), pool.once(candidates_of)
        return _unseen(len(rows)) if known.process is None else lines_of(known.process, rows)


class _Known(NamedTuple):
    """The process given a pool. Arrays of learners are in the order of ids."""

    process: Conditioned | None
    """The process; None before any score."""
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


def _known(curves: Curves, full: int, prior: Prior, space: Space, busy: frozenset[int]) -> _Known:
    """Return the process given a pool, with results for its learners.

    Args:
        curves: curves of the pool.
        full: N.
        prior: prior of the process.
        space: space of the parameters.
        busy: ids of learners in training. For all others they count as trained on N examples with
            the score forecast, so workers that see the same pool choose differently.
    """
    facts = curves.columns(_facts)
    size, score, first, last, count = facts.T
    is_seen = size > 0
    if not is_seen.any():
        nobody = np.empty(0, np.int64)
        return _Known(None, _unseen(len(size)), size, score, 0.0, 1.0, 1.0, nobody)
    # Hyperparameters use only the first trainings, with the scores of that time.
    until = _until(curves, last, int(count.sum()))
    taught = _take_part(_scores_then(curves, score, first, last, until))
    theta = fit(_seen(curves, taught, space, full, until, prior)[0])
    places = _take_part(score)
    # Learners without a score are points like candidates, but a busy one counts as scored.
    waiting = np.flatnonzero(~is_seen & (curves.columns(_is_waiting)[:, 0] > 0.0))
    # At most as many busy ones as take part else; those trained on N have no further score.
    is_busy = np.isin(curves.learners, [*busy]) if busy else np.zeros(len(size), bool)
    at_work = np.flatnonzero((size < full) & is_busy)[-MOST_LEARNERS:]
    places = np.union1d(places, at_work)
    seen, middle, unit = _seen(curves, places, space, full, math.inf, prior)
    process, widened = condition(theta, seen), _widening(theta, seen)
    own = np.arange(len(places))
    away = np.searchsorted(places, at_work)
    of_busy = process.lines(seen.rows[away], away)
    if len(at_work):
        process = condition(
            theta,
            seen._replace(
                learner=np.append(seen.learner, away),
                doublings=np.append(seen.doublings, np.zeros(len(away))),
                score=np.append(seen.score, of_busy.level),  # as expected, so it moves nothing
            ),
        )
    new = np.setdiff1d(waiting, places)
    lines = _unseen(len(size))
    if len(places) + len(new) < len(size):
        lines = _alone(process, (score - middle) / unit, np.log2(full / np.maximum(size, 1.0)))
    _put(lines, places, lines_of(process, seen.rows, own))
    _put(lines, at_work, of_busy.rising())  # each is as unsure as before
    if len(new):
        _put(lines, new, lines_of(process, curves.once(rows_of, space)[new]))
    return _Known(process, lines, size, score, middle, unit, widened, places)


def _facts(curve: LearningCurve) -> tuple[float, ...]:
    """Return last size and score, order of the first and last training, their number."""
    seen = curve.once(_trainings)
    if not len(seen):
        return 0.0, math.nan, math.inf, math.inf, 0.0
    return seen[-1, 0], seen[-1, 1], seen[0, 2], seen[-1, 2], len(seen)


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
    # The `left` last trainings belong to the `left` learners trained last, at most.
    latest = np.argsort(-np.where(np.isfinite(last), last, -1.0), kind="stable")[: n_later + 1]
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


def _take_part(score: Numbers) -> NDArray[np.int64]:
    """Return the places of the learners in the process: the best ones, and those tried last."""
    known = np.flatnonzero(np.isfinite(score))
    if len(known) <= MOST_LEARNERS:
        return known
    best = known[np.argsort(-score[known], kind="stable")[: MOST_LEARNERS // 2]]
    rest = np.setdiff1d(known, best)[-(MOST_LEARNERS - len(best)) :]
    return np.union1d(best, rest)


def _seen(
    curves: Curves,
    places: NDArray[np.int64],
    space: Space,
    full: int,
    until: float,
    prior: Prior,
) -> tuple[Seen, float, float]:
    """Return scores of some learners up to some training, their mean and standard deviation."""
    parts = [curves[i].once(_trainings) for i in curves.learners[places].tolist()]
    learner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    size, score, order = np.concatenate(parts).T
    kept = (order <= until) & (size <= full)
    learner, doublings, score = learner[kept], np.log2(full / size[kept]), winsorized(score[kept])
    mean, reach = float(score.mean()), float(np.ptp(score)) or 1.0
    unit = reach * float(((score - mean) / reach).std())  # squares of tiny scores would be 0
    unit = unit if unit > 1e-12 * abs(mean) else 1.0
    rows = curves.once(rows_of, space)[places]
    seen = Seen(rows, space.is_word, learner, doublings, (score - mean) / unit, prior)
    return seen, mean, unit


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


def _unseen(count: int) -> Lines:
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
