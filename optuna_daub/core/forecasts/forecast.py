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
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.special import ndtri

from optuna_daub.core.boxes import improvement
from optuna_daub.core.boxes import index
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of


Numbers = NDArray[np.float64]


LEVELS = 100
"""Number of quantiles between which draws are interpolated."""
WORST = 10.0
"""Largest distance of a score below the lower quartile, in interquartile ranges (see
`winsorized`). Searches on surrogates and closed pools of LCDB lose the same with and without it
(`benchmarks/search.py --problems ranger`, `benchmarks/replay.py`)."""


class Forecast(Protocol):
    """The distribution of a score, larger is better."""

    @property
    def mean(self) -> Numbers:
        """Expected score."""

    def quantile(self, probability: float) -> Numbers:
        """Return the quantile of the score at `probability`, in (0, 1)."""

    def expected_improvement(self, over: ArrayLike) -> Numbers:
        """Return E[max(0, score - over)], at least 0."""

    def reservation_value(self, cost: ArrayLike) -> Numbers:
        """Return the score over which the expected improvement equals `cost`.

        Args:
            cost: cost in units of the score, at least 0. At 0 it is the largest possible score.
        """

    def at(self, place: int) -> Forecast:
        """Return the forecast of one learner out of many."""


class Forecasts(Mapping[int, Forecast]):
    """The forecasts of many learners, a mapping by learner that is stored as arrays.

    >>> import numpy as np
    >>> both = Forecasts(np.array([3, 8]), Logistic(np.array([0.7, 0.9]), 0.0))
    >>> float(both[8].mean), both.all.expected_improvement(0.8).round(6)
    (0.9, array([0. , 0.1]))
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
        levels = np.linspace(0.005, 0.995, LEVELS)
        quantiles = np.array([np.atleast_1d(self.all.quantile(p)) for p in levels])
        uniform = rng.uniform(levels[0], levels[-1], size=(count, len(self.learners)))
        drawn = [np.interp(uniform[:, i], levels, quantiles[:, i]) for i in range(len(self))]
        return np.array(drawn).reshape(len(self), count).T

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

    @abstractmethod
    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`.

        A learner trained on `size` examples or more has its last score as a certain forecast. One
        without any score has the forecast of a new learner, or an infinitely wide one.
        """

    @abstractmethod
    def newcomer(self, pool: Pool, size: int) -> Forecast:
        """Return the forecast of a new learner, as floats."""

    def candidates(self, pool: Pool, size: int) -> Forecast:
        """Return the forecasts of the pool's candidates, shape (candidates,).

        By default all are those of `newcomer`.
        """
        count = len(pool.once(candidates_of))
        new = self.newcomer(pool, size)
        mean, sd = moments(new)
        return Normal(np.full(count, mean), np.full(count, sd))

    def beliefs(self, pool: Pool, size: int) -> tuple[Numbers, Numbers]:
        """Return means and standard deviations that a policy compares steps by.

        Learners come in the order of ids, then candidates. By default they are those of the
        forecasts.
        """
        known, new = self.forecasts(pool, size).all, self.candidates(pool, size)
        mean, sd = (
            np.concatenate(pair) for pair in zip(moments(known), moments(new), strict=True)
        )
        return mean, sd

    def gaps(self, pool: Pool, size: int, leader: int) -> Numbers:
        """Return the standard deviation of each candidate's score minus that of one learner.

        `leader` is that learner's place in the order of ids. By default its score counts as
        certain.
        """
        del leader
        return moments(self.candidates(pool, size))[1]

    def look(self, pool: Pool, at: int, size: int) -> tuple[Numbers, Numbers]:
        """Return the expected change of each forecast at `size` by a score at `at`.

        It is a standard deviation, in one array for learners and one for candidates. By default it
        is that of the forecasts at `at`.
        """
        ends = [
            [moments(each)[1] for each in (self.forecasts(pool, n).all, self.candidates(pool, n))]
            for n in (at, size)
        ]
        return np.minimum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])


def winsorized(scores: Numbers) -> Numbers:
    """Return the scores of a study, where those far below all others are raised to a limit.

    So one learner that diverged does not set the scale. NaN stays NaN.

    >>> winsorized(np.array([0.5, 0.6, 0.7, 0.8, 0.9, -1e6])).round(3).tolist()
    [0.5, 0.6, 0.7, 0.8, 0.9, -1.975]
    """
    low, high = np.nanquantile(scores, (0.25, 0.75))
    return np.maximum(scores, low - WORST * (high - low)) if high > low else scores


def moments(forecast: Forecast) -> tuple[Numbers, Numbers]:
    """Return median and standard deviation of a forecast taken as normal. Both have its shape."""
    one = float(ndtr(1.0))
    middle = forecast.quantile(0.5)
    with np.errstate(invalid="ignore"):
        return middle, np.asarray(forecast.quantile(one) - middle)


@dataclass(frozen=True)
class Normal:
    """A normal distribution.

    >>> forecast = Normal(0.80, 0.01)
    >>> float(forecast.quantile(0.95).round(6)), float(forecast.expected_improvement(0.8).round(6))
    (0.816449, 0.003989)
    """

    location: ArrayLike
    """Mean, in units of the score."""
    scale: ArrayLike
    """Standard deviation, at least 0, in units of the score."""

    @property
    def mean(self) -> Numbers:
        """Expected score."""
        return np.asarray(self.location, np.float64)

    def quantile(self, probability: float) -> Numbers:
        """Return the value that the score is below with `probability`."""
        deviate = float(ndtri(probability))
        with np.errstate(invalid="ignore"):  # an infinite scale times 0, replaced below
            off = np.where(deviate == 0.0, 0.0, np.asarray(self.scale, np.float64) * deviate)
        return np.asarray(self.location, np.float64) + off

    def expected_improvement(self, over: ArrayLike) -> Numbers:
        """Return E[max(0, score - over)], at least 0."""
        return improvement(self.location, self.scale, over)

    def reservation_value(self, cost: ArrayLike) -> Numbers:
        """Return the score over which the expected improvement is worth `cost`."""
        return index(self.location, self.scale, cost)

    def at(self, place: int) -> Normal:
        """Return the forecast of one learner out of many."""
        numbers = np.broadcast_arrays(self.location, self.scale)
        location, scale = (float(number[place]) for number in numbers)
        return Normal(location, scale)


LOGISTIC = math.sqrt(3.0) / math.pi
"""Scale of a logistic distribution whose standard deviation is 1."""


@dataclass(frozen=True)
class Logistic:
    """A logistic distribution, cut off at an upper limit.

    All answers have closed forms. Its tails fall exponentially, slower than those of a normal
    distribution, as observed gains do.

    >>> forecast = Logistic(0.80, 0.01)
    >>> (
    ...     round(float(forecast.quantile(0.95)), 6),
    ...     round(float(forecast.expected_improvement(0.8)), 6),
    ... )
    (0.829444, 0.006931)
    """

    location: ArrayLike
    """Median before the cut, in units of the score."""
    scale: ArrayLike
    """Scale, at least 0, in units of the score: the standard deviation is pi / sqrt(3) times it.
    Infinite if nothing is known."""
    limit: ArrayLike = np.inf
    """Largest possible score, at least the location."""

    @property
    def mean(self) -> Numbers:
        """Expected score: the location minus the effect of the cut."""
        cut = _mean_excess(self.location, self.scale, self.limit)
        return np.asarray(np.asarray(self.location, np.float64) - cut)

    def quantile(self, probability: float) -> Numbers:
        """Return the value that the score is below with `probability`."""
        deviate = np.log(probability / (1.0 - probability))
        with np.errstate(invalid="ignore"):  # an infinite scale times 0, replaced below
            off = np.where(deviate == 0.0, 0.0, np.asarray(self.scale) * deviate)
        return np.asarray(np.minimum(self.limit, np.asarray(self.location) + off))

    def expected_improvement(self, over: ArrayLike) -> Numbers:
        """Return s ln(1 + exp((mu - over) / s)). Its value over the limit is subtracted."""
        whole = _mean_excess(self.location, self.scale, over)
        cut = _mean_excess(self.location, self.scale, self.limit)
        return np.asarray(np.maximum(0.0, whole - cut))

    def reservation_value(self, cost: ArrayLike) -> Numbers:
        """Return mu - s ln(exp(c / s) - 1). The effect of the cut is added to c."""
        location, scale = np.asarray(self.location, float), np.asarray(self.scale, float)
        paid = np.asarray(cost) + _mean_excess(location, scale, self.limit)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = paid / scale
            # ln(e^x - 1) = x + ln(1 - e^-x), which neither overflows nor cancels.
            value = location - scale * (ratio + np.log(-np.expm1(-ratio)))
        value = np.where(scale > 0.0, value, location - paid)
        return np.asarray(np.minimum(self.limit, value))

    def at(self, place: int) -> Logistic:
        """Return the forecast of one learner out of many."""
        numbers = np.broadcast_arrays(self.location, self.scale, self.limit)
        location, scale, limit = (float(number[place]) for number in numbers)
        return Logistic(location, scale, limit)


def _mean_excess(location: ArrayLike, scale: ArrayLike, over: ArrayLike) -> Numbers:
    """Return E[max(0, X - over)] of a logistic X: the integral of its survival function."""
    location, scale = np.asarray(location, np.float64), np.asarray(scale, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ahead = location - np.asarray(over, np.float64)
        smooth = scale * np.logaddexp(0.0, ahead / scale)
    excess = np.where(scale > 0.0, smooth, np.maximum(0.0, ahead))
    return np.asarray(np.where(np.isneginf(ahead), 0.0, excess))
