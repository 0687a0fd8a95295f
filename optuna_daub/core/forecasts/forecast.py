"""Forecasts, the distributions of scores that were not observed, and forecasters, their rules.

A forecast is about one learner or about many. Its numbers are floats, or arrays with one entry per
learner, and every answer has the same shape.
"""

from __future__ import annotations

import math
from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.pool import Pool
from optuna_daub.core.space import Numbers


WIDTH = 0.42
"""Factor of all scales (see `forecast_of`), by how often intervals of 90 % hold in open and closed
pools: `python -m benchmarks.fit.process` and `python -m benchmarks.fit.closed_pools`."""
WORST = 10.0
"""Largest distance of a score below the lower quartile, in interquartile ranges (see
`winsorized`). Searches on surrogates and closed pools of LCDB lose the same with and without it
(`benchmarks/search.py --problems ranger`, `benchmarks/replay.py`)."""


@dataclass(frozen=True)
class Forecast:
    """The distribution of a score, larger is better: a Student t with two degrees of freedom.

    Its density falls with the third power of the distance. So a learner far from its forecast is
    rare but possible, on a table unlike all others.

    >>> forecast = Forecast(0.80, 0.01)
    >>> [round(float(forecast.quantile(p)), 4) for p in (0.05, 0.5, 0.95)]
    [0.7708, 0.8, 0.8292]
    """

    mean: Numbers | float
    """Mean and median, in units of the score."""
    scale: Numbers | float
    """Scale, at least 0, in units of the score. Infinite if nothing is known."""

    def quantile(self, probability: float) -> Numbers:
        """Return the quantile of the score at `probability`, in (0, 1)."""
        deviate = (2.0 * probability - 1.0) / math.sqrt(2.0 * probability * (1.0 - probability))
        # An infinite scale times 0 would be NaN.
        return np.asarray(self.mean + self.scale * deviate if deviate else self.mean)

    def at(self, place: int) -> Forecast:
        """Return the forecast of one learner out of many."""
        mean, scale = np.broadcast_arrays(self.mean, self.scale)
        return Forecast(float(mean[place]), float(scale[place]))


def forecast_of(mean: Numbers | float, sd: Numbers | float, lead: float) -> Forecast:
    """Return forecasts from means and standard deviations of a model.

    A model is equally unsure of all learners, but good ones differ less than bad ones. So
    forecasts near the best are narrower: the scale is `WIDTH` times the geometric mean of two
    numbers, the standard deviation, and its sum with the distance to the best learner.

    Args:
        mean: means of the model, in units of the score.
        sd: its standard deviations, at least 0.
        lead: largest mean of learners, see `lead_of`.

    >>> forecast_of(np.array([0.9, 0.6]), 0.1, lead=0.9).scale.round(3)
    array([0.042, 0.084])
    """
    behind = np.maximum(lead - mean, 0.0)
    return Forecast(mean, WIDTH * np.sqrt(sd) * np.sqrt(sd + behind))


def lead_of(pool: Pool, mean: Numbers) -> float:
    """Return the largest of all learners' means, dropped ones left out.

    Minus infinity if no learner is left.
    """
    is_left = pool.curves.columns(_is_left)[:, 0] > 0.0
    return float(np.max(mean, where=is_left, initial=-math.inf))


def _is_left(curve: LearningCurve) -> tuple[float]:
    return (float(not curve.dropped),)


def widths(found: Forecast, sd: Numbers, count: int, rng: np.random.Generator) -> Numbers:
    """Return factors that make normal errors those of forecasts, shape (count, learners).

    One factor for all learners, so draws are a multivariate Student t with two degrees of freedom:
    half of a chi-square variable with two degrees of freedom is exponential.

    Args:
        found: the forecasts.
        sd: standard deviation of each learner's normal errors.
        count: number of draws.
        rng: generator of the draws.
    """
    ratio = np.divide(found.scale, sd, out=np.zeros_like(sd), where=sd > 0.0)
    return np.asarray(ratio / np.sqrt(rng.standard_exponential((count, 1))))


class Forecasts(Mapping[int, Forecast]):
    """The forecasts of many learners, a mapping by learner that is stored as arrays.

    >>> import numpy as np
    >>> both = Forecasts(np.array([3, 8]), Forecast(np.array([0.7, 0.9]), 0.01))
    >>> both[8].mean, both.all.quantile(0.95).round(4)
    (0.9, array([0.7292, 0.9292]))
    """

    def __init__(
        self,
        learners: NDArray[np.int64],
        forecasts: Forecast,
        together: Callable[[int, np.random.Generator], Numbers] | None = None,
    ) -> None:
        self.learners = learners
        """Ids of the learners, increasing."""
        self.all = forecasts
        """Forecasts of all learners at once, in the order of `learners`."""
        self._together = together

    def draws(self, count: int, rng: np.random.Generator) -> Numbers:
        """Return draws of the scores of all learners, shape (count, learners).

        If the forecaster has not said how the errors of learners depend on each other, they are
        independent.
        """
        if self._together is not None:
            return self._together(count, rng)
        shape = count, len(self.learners)
        return np.asarray(self.all.mean + self.all.scale * rng.standard_t(2.0, shape))

    def __getitem__(self, learner: int) -> Forecast:
        place = int(np.searchsorted(self.learners, learner))
        if place == len(self.learners) or self.learners[place] != learner:
            raise KeyError(learner)
        return self.all.at(place)

    def __iter__(self) -> Iterator[int]:
        return map(int, self.learners)

    def __len__(self) -> int:
        return len(self.learners)


class Forecaster(ABC):
    """A pure rule from a pool to forecasts; a frozen value.

    It takes the whole pool, so one learner's gain can change the forecasts of others.
    """

    min_points: ClassVar[int] = 1
    """Smallest number of a learner's scores that its forecast needs."""

    @property
    def use_training_score(self) -> bool:
        """True if training scores change the forecasts; by default False."""
        return False

    @abstractmethod
    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`.

        A learner trained on `size` examples or more has its last score as a certain forecast. One
        without any score has the forecast of a new learner, or an infinitely wide one.
        """

    @abstractmethod
    def candidates(self, pool: Pool, size: int) -> Forecast:
        """Return the forecasts of the pool's candidates, which could become learners."""

    def beliefs(self, pool: Pool, size: int) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations that a policy compares steps by.

        Learners come in the order of ids, then candidates. Policies take beliefs as normal. By
        default the standard deviations are the scales of the forecasts.
        """
        known, new = self.forecasts(pool, size).all, self.candidates(pool, size)
        mean = np.concatenate([known.mean, new.mean])
        return mean, np.concatenate([known.scale, new.scale])

    def gaps(self, pool: Pool, size: int, leader: int) -> Numbers:
        """Return the standard deviation of each candidate's score minus that of one learner.

        `leader` is that learner's place in the order of ids. By default its score counts as
        certain.
        """
        del leader
        return self.beliefs(pool, size)[1][len(pool.curves) :]

    def look(self, pool: Pool, at: int, size: int) -> tuple[Numbers, Numbers]:
        """Return how much a score at `at` would change each forecast's mean at `size`.

        The numbers are standard deviations, in one array for learners and one for candidates. By
        default they are the smaller ones of the beliefs at the two sizes.
        """
        count = len(pool.curves)
        scale = np.minimum(self.beliefs(pool, at)[1], self.beliefs(pool, size)[1])
        return scale[:count], scale[count:]


def winsorized(scores: Numbers) -> Numbers:
    """Return a study's scores, with those far below all others raised to a limit.

    So one learner that diverged does not set the scale. The limit is `WORST` times the distance of
    the quartiles below the lower one. If they are equal, as on few rows of mostly one class, it is
    the distance to the best score; if that is equal too, to the next score below. NaN stays NaN.

    >>> winsorized(np.array([0.5, 0.6, 0.7, 0.8, 0.9, -1e6])).round(3).tolist()
    [0.5, 0.6, 0.7, 0.8, 0.9, -1.975]
    >>> winsorized(np.array([0.5, 0.5, 0.5, 0.5, 0.6, -1e6])).round(3).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.6, -0.5]
    """
    low, high = np.nanquantile(scores, (0.25, 0.75))
    worse = np.max(scores, where=scores < low, initial=-math.inf)
    best = np.nanmax(scores)
    rounding = 1e-14 * max(abs(low), abs(best))  # by which equal scores may differ
    apart = (high - low, best - low, low - worse)
    reach = next((gap for gap in apart if gap > rounding), 0.0)
    return np.asarray(np.maximum(scores, low - WORST * reach))
