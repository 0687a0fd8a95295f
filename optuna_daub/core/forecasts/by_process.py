"""Forecasts of a pool by one Gaussian process over parameters and training size.

The model is in `process`, and what it learns from a pool in `given_pool`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optuna_daub.core.costs.cost_model import efforts
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import forecast_of
from optuna_daub.core.forecasts.forecast import lead_of
from optuna_daub.core.forecasts.forecast import widths
from optuna_daub.core.forecasts.given_pool import PoolProcess
from optuna_daub.core.forecasts.given_pool import process_of
from optuna_daub.core.forecasts.given_pool import unseen
from optuna_daub.core.forecasts.given_pool import with_efforts
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.prior import Prior
from optuna_daub.core.forecasts.process import Lines
from optuna_daub.core.forecasts.process import lines_of
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.space import Numbers


@dataclass(frozen=True)
class Process(Forecaster):
    """Forecasts by parameters and training size.

    >>> from optuna_daub.core import Curves, LearningCurve, Observation
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
    is_timed: bool = True
    """True if measured seconds inform forecasts: what costs more is believed to be better."""

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`."""
        known, share = self._known(pool), self._share(size)
        mean, sd = known.in_scores(known.lines, share, known.noise)
        is_there = known.size >= size
        mean, sd = np.where(is_there, known.score, mean), np.where(is_there, 0.0, sd)

        found = forecast_of(mean, sd, lead_of(pool, mean))

        def draws(count: int, rng: np.random.Generator) -> Numbers:
            # Up to the process's own width, errors depend on each other as in the process. What
            # goes beyond is the same for all learners, as the factor of `widths` is.
            wide = known.widened * widths(found, sd, count, rng)
            errors = np.minimum(wide, 1.0) * known.errors(sd / known.widened, share, count, rng)
            more = np.sqrt(np.maximum(wide**2 - 1.0, 0.0)) * rng.standard_normal((count, 1))
            return mean + errors + more * sd / known.widened

        return Forecasts(pool.curves.learners, found, draws)

    def candidates(self, pool: Pool, size: int) -> Forecast:
        """Return the forecasts of the pool's candidates."""
        known, share = self._known(pool), self._share(size)
        mean, sd = known.in_scores(pool.once(self._candidates), share, known.noise)
        lead = lead_of(pool, np.asarray(self.forecasts(pool, size).all.mean))
        return forecast_of(mean, sd, lead)

    def beliefs(self, pool: Pool, size: int) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations of the process itself.

        The noise of a score is left out, since a lucky score is no better learner. If decisions
        used wider forecasts, a search would try too many unknown points: on three surrogates
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
        known, share = self._known(pool), self._share(size)
        own = int(np.searchsorted(known.places, leader))
        if known.of_new is None or own == len(known.places) or known.places[own] != leader:
            return super().gaps(pool, size, leader)
        rows = np.vstack([known.of_new.seen.rows[[own]], self._points(pool)])
        places = np.append(own, np.full(len(rows) - 1, -1))
        covariance = known.of_new.covariance(rows, places, share)
        square = np.diag(covariance)[1:] - 2.0 * covariance[0, 1:] + covariance[0, 0]
        return np.asarray(known.unit * known.widened * np.sqrt(np.maximum(square, 0.0)))

    def look(self, pool: Pool, at: int, size: int) -> tuple[Numbers, Numbers]:
        """Return how much a score at `at` would change each forecast's mean at N.

        The numbers are standard deviations, as in `Forecaster.look`.

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
        if size > self.full:
            raise ValueError(f"`size` must be at most N, {self.full:,}, but got {size:,}.")
        return float(self.prior.phi(math.log2(self.full / size)))

    def _known(self, pool: Pool) -> PoolProcess:
        return pool.curves.once(
            process_of, self.full, self.prior, pool.known_space, pool.busy, self.is_timed
        )

    def _candidates(self, pool: Pool) -> Lines:
        known, rows = self._known(pool), self._points(pool)
        return unseen(len(rows)) if known.of_new is None else lines_of(known.of_new, rows)

    def _points(self, pool: Pool) -> Numbers:
        """Return the candidates as points of the process."""
        rows = pool.once(candidates_of)
        if not self.is_timed:
            return with_efforts(rows, 0.0)
        return with_efforts(rows, pool.curves.once(efforts, self.full, pool.known_space).of(rows))
