"""Cost models: rules that predict the costs of trainings from a pool.

Costs are seconds, as distributions, or training sizes, exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.special import stdtrit

from optuna_daub.core.costs.seconds import Fitted
from optuna_daub.core.costs.seconds import fit
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.pool import rows_of
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space
from optuna_daub.core.space import branches
from optuna_daub.core.space import deciding
from optuna_daub.core.space import keys_of


NEWEST, SLOWEST = 120, 40
"""Numbers of learners in the model: the newest ones that were timed, and the slowest of the
others, which would cost most if they were predicted too fast. `benchmarks/decision_cost.py` shows
the time that a decision takes with them."""
LARGEST = 600.0
"""Largest logarithm of expected seconds. Floats end at 709, and prices divide by small
probabilities."""
FREEDOM, QUARTILE = 5.0, 0.6745 / 0.7267
"""Degrees of freedom of the Student t distribution of logarithms, as of the noise's tail, and its
scale. With this scale its quartiles are those of a normal distribution.
`benchmarks/fit/seconds.py` shows densities of measured seconds."""
IN_TIME = 0.9
"""Smallest probability of ending in time with which a training starts: nothing stops it later.
`benchmarks/search.py --problems several --methods "ours, seconds known" --budget 4 --overrun`
shows what searches lose, and how late they end."""


class Seconds(NamedTuple):
    """Predicted seconds of one training of each learner, or its cost in examples."""

    log_mean: Numbers
    """Mean of the logarithm of the seconds; any shape, such as (learners,)."""
    log_sd: Numbers
    """Spread of the logarithm, same shape. Half of all values are within 0.67 spreads of the mean,
    as with a normal's standard deviation; the tails are a Student t's. 0 if the cost is
    certain."""

    def part(self, places: NDArray[np.int64]) -> Seconds:
        """Return the seconds at some places."""
        return Seconds(self.log_mean[places], self.log_sd[places])

    @property
    def median(self) -> Numbers:
        """Median of the seconds."""
        return np.asarray(np.exp(self.log_mean))

    def expected(self, left: float = math.inf) -> Numbers:
        """Return the mean of the seconds, counted up to the time left.

        It is that of a uniform distribution of the logarithm, with this spread as its standard
        deviation. A new kind of model may take a hundred times its median, but not a million
        times, since its parameters have ranges. Longer tails would dominate the mean, and no new
        kind would ever be tried.

        Args:
            left: seconds left; a longer training counts as this long. Infinite for no limit.

        >>> seconds = Seconds(np.zeros(2), np.array([0.0, 1.0]))
        >>> seconds.expected().round(2), seconds.expected(left=2.0).round(2)
        (array([1.  , 1.58]), array([1.  , 1.13]))
        """
        width = 2.0 * math.sqrt(3.0) * np.maximum(self.log_sd, 1e-9)
        low = self.log_mean - width / 2.0
        # The part of the distribution up to the time left.
        part = np.clip(math.log(max(left, 1e-300)) - low, 0.0, width)
        with np.errstate(divide="ignore"):
            # As one exponent: with many parameters the mean may be too large for a float.
            log_mean = low + part + np.log(-np.expm1(-part) / width)
        found = np.exp(np.minimum(log_mean, LARGEST))
        if math.isfinite(left):
            found += left * (1.0 - part / width)
        certain = np.exp(np.minimum(self.log_mean, LARGEST))
        return np.asarray(np.where(self.log_sd > 0.0, found, np.minimum(certain, left)))

    def within(self, left: ArrayLike) -> Numbers:
        """Return the probability that a training takes at most `left` seconds.

        >>> Seconds(np.zeros(2), np.array([0.0, 1.0])).within(np.e).round(2)
        array([1.  , 0.83])
        """
        left = np.asarray(left, np.float64)
        if np.isposinf(left).all():
            return np.ones(self.log_mean.shape)
        with np.errstate(divide="ignore"):
            spare = np.log(np.maximum(left, 0.0)) - self.log_mean
        is_certain = self.log_sd < 1e-9
        chance = stdtr(FREEDOM, spare / np.where(is_certain, 1.0, QUARTILE * self.log_sd))
        return np.asarray(np.where(is_certain, spare >= -1e-12, chance), np.float64)

    @property
    def latest(self) -> Numbers:
        """Seconds within which a training ends with a probability of `IN_TIME`.

        If fewer are left it must not start, since nothing stops it.

        >>> Seconds(np.zeros(2), np.array([0.0, 1.0])).latest.round(2)
        array([1.  , 3.93])
        """
        log_seconds = self.log_mean + QUARTILE * stdtrit(FREEDOM, IN_TIME) * self.log_sd
        return np.asarray(np.exp(np.minimum(log_seconds, LARGEST)))


class CostModel(Protocol):
    """A pure rule from a pool to the costs of trainings from scratch; a frozen value."""

    def seconds(self, pool: Pool, sizes: tuple[int, ...]) -> Seconds:
        """Return the costs of trainings on each size, shape (points, sizes).

        Points are the learners in the order of ids, then the pool's candidates.
        """

    def is_in_seconds(self, pool: Pool) -> bool:
        """Return whether costs are seconds, which can be compared with the time left."""


@dataclass(frozen=True)
class InExamples:
    """Training sizes as costs, in examples.

    >>> InExamples().seconds(Pool(Curves([LearningCurve(0)])), (500, 900)).expected().round(6)
    array([[500., 900.],
           [500., 900.]])
    """

    def seconds(self, pool: Pool, sizes: tuple[int, ...]) -> Seconds:
        """Return the examples that each learner and candidate would use."""
        count = len(pool.curves) + len(pool.once(candidates_of))
        return Seconds(np.tile(np.log(sizes), (count, 1)), np.zeros((count, len(sizes))))

    def is_in_seconds(self, pool: Pool) -> bool:
        """Return False, even if trainings were timed."""
        del pool
        return False


@dataclass(frozen=True)
class InSeconds:
    """Measured seconds as costs; training sizes if none were measured."""

    full: int
    """Number of all training examples, N."""

    def seconds(self, pool: Pool, sizes: tuple[int, ...]) -> Seconds:
        """Return the predicted seconds of every learner and candidate.

        >>> from optuna_daub.core import Observation
        >>> slow = LearningCurve(0, (Observation(500, 0.8, seconds=30.0),))
        >>> fast = LearningCurve(1, (Observation(500, 0.8, seconds=1.0),))
        >>> seconds = InSeconds(4000).seconds(Pool(Curves([slow, fast])), (1000,)).median[:, 0]
        >>> bool(20.0 < seconds[0] < 60.0), bool(0.7 < seconds[1] < 2.0)
        (True, True)
        """
        known = pool.curves.once(taking_part, self.full, pool.known_space)
        if known is None:
            return InExamples().seconds(pool, sizes)
        own = pool.curves.once(_own, self.full, pool.known_space, sizes)
        new = known.model.predict(pool.once(candidates_of), np.log(sizes))
        return Seconds(*(np.concatenate(pair) for pair in zip(own, new, strict=True)))

    def is_in_seconds(self, pool: Pool) -> bool:
        """Return whether any training was timed."""
        return pool.curves.once(is_timed)


@dataclass(frozen=True)
class TakingPart:
    """A fitted model of seconds with the learners of its pool."""

    model: Fitted
    """Model fitted on the learners that take part."""
    rows: Numbers
    """Points of the learners that are predicted one by one, shape (learners, parameters)."""
    places: NDArray[np.int64]
    """Places of these learners in the pool, increasing."""
    own: NDArray[np.int64]
    """Places of these learners among the fitted ones; -1 for those not fitted."""
    last: Numbers
    """Logarithms of size and seconds of every learner's last timed training. Shape (all learners,
    2); NaN if none was timed."""

    def seconds(self, sizes: tuple[int, ...]) -> Seconds:
        """Return the seconds of every learner of the pool, shape (learners, sizes)."""
        log_mean, log_sd = np.empty((2, len(self.last), len(sizes)))
        to, timed, new = np.log(sizes), self.own >= 0, self.own < 0
        if len(self.places) < len(self.last):
            log_mean, log_sd = self.model.onward(self.last[:, 0], self.last[:, 1], to)
        found = self.model.predict(self.rows[timed], to, self.own[timed])
        log_mean[self.places[timed]], log_sd[self.places[timed]] = found
        if new.any():
            found = self.model.predict(self.rows[new], to)
            log_mean[self.places[new]], log_sd[self.places[new]] = found
        return Seconds(log_mean, log_sd)


def _own(curves: Curves, full: int, space: Space, sizes: tuple[int, ...]) -> Seconds:
    """Return the learners' seconds without the candidates, which change more often; for
    `curves.once`."""
    known = curves.once(taking_part, full, space)
    assert known is not None
    return known.seconds(sizes)


def is_timed(curves: Curves) -> bool:
    """Return whether the seconds of any training were measured."""
    return bool(np.isfinite(curves.columns(LearningCurve.log_times)).any())


def taking_part(curves: Curves, full: int, space: Space | None = None) -> TakingPart | None:
    """Return the model of seconds of a pool's learners.

    None if no seconds were measured. The first, the last but one and the last timed training of
    each learner take part. Learners beyond `NEWEST` and `SLOWEST` are predicted from their last
    training and the growth of all, so a decision on 20,000 learners takes no longer than one on
    some hundred.

    Args:
        curves: curves of the learners.
        full: N, the number of all training examples.
        space: space of the parameters; None: the ranges of the learners that take part.
    """
    seen = curves.columns(LearningCurve.log_times)
    last = seen[:, 4:]
    timed = np.flatnonzero(np.isfinite(last[:, 1]))
    if not len(timed):
        return None
    earlier = timed[:-NEWEST]
    per_example = last[earlier, 1] - last[earlier, 0]
    slowest = earlier[np.argsort(per_example, kind="stable")[-SLOWEST:]]
    chosen = np.sort(np.concatenate([slowest, timed[-NEWEST:]]))
    untimed = np.flatnonzero(~np.isfinite(last[:, 1]))[-NEWEST:]
    places = np.sort(np.concatenate([chosen, untimed]))
    if space is None:
        space = Space.of(curves[i].parameters for i in curves.learners[places].tolist())
    rows = curves.once(rows_of, space)[places]
    own = np.where(np.isin(places, chosen), np.searchsorted(chosen, places), -1)
    times = seen[chosen].reshape(-1, 3, 2)
    # The first training may also be the last.
    is_one = np.isfinite(times[:, :, 1])
    is_one[:, 0] &= (times[:, 0, 0] != times[:, 1, 0]) & (times[:, 0, 0] != times[:, 2, 0])
    learner = np.nonzero(is_one)[0]
    log_size, log_seconds = times[is_one].T
    model = fit(rows[own >= 0], space, learner, log_size, log_seconds, full)
    return TakingPart(model, rows, places, own, last)


class Efforts(NamedTuple):
    """Logarithms of the seconds on all the data, less the median of their algorithm.

    Learners are of one algorithm if they have the same parameters and the same deciding words
    (`deciding`). Efforts are 0 for algorithms of which no learner was timed.
    """

    learners: Numbers
    """Efforts of the learners in the order of ids; 0 for those whose seconds are unknown."""
    model: Fitted | None
    """Model of seconds; None if nothing was timed."""
    medians: Mapping[bytes, float]
    """Median logarithm of the timed learners' seconds, by algorithm."""
    decides: NDArray[np.bool_]
    """True for parameters that are deciding words, shape (parameters,)."""
    full: int
    """Number of all training examples, N."""

    def of(self, rows: Rows) -> Numbers:
        """Return the efforts of new points, shape (points,)."""
        if self.model is None:
            return np.zeros(len(rows))
        logs = self.model.predict(rows, math.log(self.full))[0]
        return _less(logs, _algorithms(rows, self.decides), self.medians)


def efforts(curves: Curves, full: int, space: Space) -> Efforts:
    """Return the efforts of a pool's learners; call it by `curves.once`.

    >>> from optuna_daub.core import Observation
    >>> slow = LearningCurve(0, (Observation(4000, 0.8, seconds=40.0),))
    >>> fast = LearningCurve(1, (Observation(4000, 0.8, seconds=1.0),))
    >>> found = efforts(Curves([slow, fast]), 4000, Space()).learners
    >>> bool(1.0 < found[0] < 2.0), bool(abs(found[0] + found[1]) < 1e-9)
    (True, True)
    """
    known, rows = curves.once(taking_part, full, space), curves.once(rows_of, space)
    decides = deciding(space, rows)
    if known is None:
        return Efforts(np.zeros(len(curves)), None, {}, decides, full)
    logs, algorithms = known.seconds((full,)).log_mean[:, 0], _algorithms(rows, decides)
    timed = np.isfinite(known.last[:, 1])
    alike = defaultdict(list)
    for place in np.flatnonzero(timed):
        alike[algorithms[place]].append(float(logs[place]))
    medians = {which: median(found) for which, found in alike.items()}
    timed[known.places] = True  # those not timed are predicted by their parameters
    found = np.where(timed, _less(logs, algorithms, medians), 0.0)
    return Efforts(found, known.model, medians, decides, full)


def _less(logs: Numbers, algorithms: list[bytes], medians: Mapping[bytes, float]) -> Numbers:
    """Return logarithms of seconds less the medians; 0 for algorithms that have none."""
    pairs = zip(algorithms, logs.tolist(), strict=True)
    return np.array([log - medians.get(which, log) for which, log in pairs])


def _algorithms(rows: Rows, decides: NDArray[np.bool_]) -> list[bytes]:
    """Return the algorithm of each point: its deciding words, and which parameters it has."""
    return keys_of(branches(rows, decides))


def typical_seconds(curves: Curves, size: int, full: int) -> dict[int, float]:
    """Return the typical seconds of a training on `size` examples, by learner.

    A learner that was timed there has that time. The other trained ones have the median of their
    distribution; the mean also counts unlikely long times, so its sum would overstate what a
    search has saved. Learners without a training are left out. If trainings continue earlier
    models, the seconds of new examples are scaled up to all examples. Empty if nothing was timed.

    Args:
        curves: curves of the learners.
        size: number of training examples.
        full: N, the number of all training examples.

    >>> from optuna_daub.core import Observation
    >>> curves = Curves([LearningCurve(0, (Observation(4000, 0.8, seconds=8.0),))])
    >>> typical_seconds(curves, 4000, full=4000)
    {0: 8.0}
    """
    known = curves.once(taking_part, full)
    if known is None:
        return {}
    typical = known.seconds((size,)).median[:, 0].tolist()
    found = {}
    for (learner, curve), seconds in zip(curves.items(), typical, strict=True):
        there = curve.at(size)
        whole = None if there is None else there.going_on_from(0).seconds
        if whole:
            found[learner] = whole
        elif curve.observations:
            found[learner] = seconds
    return found
