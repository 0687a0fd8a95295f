"""Forecasts from what others gained: the last score, and what learners gain from there on.

How much a score rises when the training set doubles differs between data sets by orders of
magnitude, and within one far less; so the gain of every doubling is learnt from all learners that
were trained across it. With d doublings from n to m, each learner's score at m is forecast as

    score(n) + sum of g_j,   variance  phi^2 * sum of ((B * gap)^2 + (C * g_j)^2)   over j = 1..d

where g_j is the mean gain of doubling j and gap is how far the learner is behind the best one,
by forecast. What is uncertain is thus measured in what the study itself has shown: nothing here
is a number of score units, and a positive affine change of all scores changes forecasts alike.
phi says how much more or less than that the gains of this study varied.

The constants were fitted by likelihood, and the rule judged, on every second of the data sets of
LCDB 1.1 [1] with at least 4,096 examples. Two findings shaped it. The gap to the leader says more
about how gains differ than the spread of all scores does (0.15 nats per learner): those close
together now stay closer together. And a learner's own earlier gains say half as much of its
later ones as their size suggests.

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025. https://arxiv.org/abs/2505.15657
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LARGEST_SCORE
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.forecasts.forecast import LOGISTIC
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import Logistic
from optuna_daub.core.forecasts.forecast import Numbers
from optuna_daub.core.forecasts.levels import gaussian_process
from optuna_daub.core.parameters import MOST_COMPARED
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool


FIRST_GAIN = 0.3
"""Mean gain of the first doubling, in spreads of the first scores, before any was seen: the
median of the data sets of [1] from N / 16 on."""
FADING = 0.78
"""Ratio of the gains of two successive doublings where the later one was not seen yet: power laws
n^-0.35, the median of LCDB's data sets between N / 64 and N."""
PRIOR_WEIGHT = 0.5
"""Weight of the gain expected from the doubling before, in learners seen."""
NEAR = 0.3
"""In spreads of the first scores: a learner that started so far behind the best counts half for
the mean gain. Learners that will be compared are those near the top."""
GAP_SHARE = 0.16
"""B: standard deviation of one doubling's gain, as a share of the gap to the leader."""
GAIN_SHARE = 0.95
"""C: standard deviation of the gain of one doubling, as a share of its mean."""
WIDEST_GAP = 0.5
"""In spreads of the first scores: a learner further behind varies no more than one so far."""
OWN_SHARE = 0.5
"""How much of its lead in earlier gains a learner is expected to show again."""
SPREAD_WEIGHT = 4.0
"""Weight of phi = 1, the prior, in learners trained further."""
OUTLIER = 3.0
"""Gains further off than so many standard deviations count as this far, for phi: one learner that
collapses must not make all others uncertain."""
MEAN_DEVIATION = 2.0 * math.log(2.0) * LOGISTIC
"""Mean absolute deviation of a logistic distribution whose standard deviation is 1."""
LARGEST = 50
"""Doublings from one example on that forecasts reach: 10^15 examples."""
RECENT = 30
"""Newcomers are forecast to be like so many learners begun last. Once there are so many, the upper
half of them says how far apart good ones are; of fewer the standard deviation is steadier."""
ROUNDING = 1e-9
"""Of the range of scores: what differs by less is the same."""
UPPER_TENTH = 1.2816
"""Standard deviations by which the best tenth of a normal distribution is above its median."""
FLOOR = 2.5
"""Standard deviations below the median, by the upper tenth, at which scores end for predictions
from parameters: how hopeless a learner is says little of good ones."""


@dataclass(frozen=True)
class Joint(Forecaster):
    """Each learner's last score plus what all learners of the study gain from there.

    >>> from optuna_daub.core import Curves, Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((1000, 2000), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, score) for n, score in seen))
    >>> pool = Pool(Curves([curve(0, 0.70, 0.74), curve(1, 0.69), curve(2, 0.60)]))
    >>> [round(float(Joint().forecasts(pool, 2000)[i].mean), 3) for i in range(3)]
    [0.74, 0.717, 0.627]
    """

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`.

        A learner trained on as many examples has its last score; one without a score is forecast
        like a newcomer with its parameters.
        """
        table, group = pool.curves.once(_table), pool.curves.once(_group)
        mean, variance = group.ahead(math.log2(size))
        mean = table.score + mean
        scale = LOGISTIC * np.sqrt(variance)
        if not table.is_begun.all():
            middle, own, gained = pool.curves.once(_newcomers, size)
            shift, left = pool.curves.once(_levels)
            differ = np.where(np.isfinite(left), left, own)
            mean = np.where(table.is_begun, mean, middle + shift)
            scale = np.where(table.is_begun, scale, LOGISTIC * np.sqrt(differ + gained))
        return Forecasts(pool.curves.learners, Logistic(mean, scale))

    def newcomer(self, pool: Pool, size: int) -> Logistic:
        """Return a forecast like those of recent learners after their first probes.

        Before any learner has a score, it may be anything.
        """
        middle, own, gained = pool.curves.once(_newcomers, size)
        return Logistic(middle, LOGISTIC * math.sqrt(own + gained))


class _Table(NamedTuple):
    """What forecasts need to know of each learner, arrays in the order of ids."""

    start: Numbers
    """Doublings from one example to the first size: its binary logarithm."""
    first: Numbers
    """The first score."""
    at: Numbers
    """Doublings from one example to the largest size."""
    score: Numbers
    """The score there."""
    is_begun: NDArray[np.bool_]
    """Whether there is a score that is a number."""
    is_alive: NDArray[np.bool_]
    """Begun and not dropped."""


class _Group(NamedTuple):
    """What the study has shown of gains."""

    sums: Numbers
    """Mean gains summed up to each whole number of doublings from one example on: only their
    differences mean anything, in units of the score."""
    squares: Numbers
    """The squares of mean gains, summed likewise."""
    phi: float
    """How many times as far as expected gains lie from their means, above 0."""
    widest_gap: float
    """The largest gap that counts, in units of the score."""
    at: Numbers
    """Doublings to each learner's largest size."""
    gain_at: Numbers
    """`sums` there."""
    square_at: Numbers
    """`squares` there."""
    gap: Numbers
    """How far each learner is behind the best, by forecast, at most `widest_gap`."""
    lead: Numbers
    """What each learner gained so far more than the others did, in the share that lasts."""
    passed: Numbers
    """What the group gained between each learner's first and largest size."""

    def ahead(self, to: float) -> tuple[Numbers, Numbers]:
        """Return mean and variance of what each learner gains up to `to` doublings.

        Its own lead goes on in proportion to what the group still gains, and never more than it
        was.
        """
        gain = np.where(self.at < to, _up_to(self.sums, to) - self.gain_at, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.passed > 0.0, np.clip(gain / self.passed, 0.0, 1.0), 0.0)
        square = np.maximum(0.0, _up_to(self.squares, to) - self.square_at)
        variance = self.variance(np.maximum(0.0, to - self.at), square, self.gap)
        return gain + self.lead * ratio, variance

    def variance(self, doublings: Numbers, square: Numbers, gap: Numbers | float) -> Numbers:
        """Return the variance of a gain over some doublings with this sum of squared means."""
        of_gap = doublings * np.square(GAP_SHARE * np.asarray(gap))
        return np.asarray(self.phi**2 * (of_gap + GAIN_SHARE**2 * square))


def spread_of(scores: Numbers) -> float:
    """Return how far the best tenth of scores is above the median; above 0 where any differ.

    >>> round(spread_of(np.array([0.5, 0.6, 0.7, 0.8, 0.9])), 3)
    0.16
    """
    if not len(scores):
        return 0.0
    high, middle = np.quantile(scores, [0.9, 0.5])
    reach = float(np.ptp(scores))
    return float(high - middle) if high - middle > ROUNDING * reach else reach


def _table(curves: Curves) -> _Table:
    facts = curves.columns(_facts)
    start, first, at, score, is_begun, is_alive = facts.T
    return _Table(start, first, at, score, is_begun > 0.0, is_alive > 0.0)


def _group(curves: Curves) -> _Group:
    """Return what gains the study has shown."""
    table = curves.once(_table)
    begun = np.flatnonzero(table.is_begun)
    nothing = np.zeros(len(table.score))
    if not len(begun):
        none = np.zeros(LARGEST + 1)
        return _Group(none, none, 1.0, 0.0, *[nothing] * 6)
    unit = spread_of(table.first[begun])
    widest = WIDEST_GAP * unit
    lowest, end = math.floor(table.start[begun].min()), math.ceil(table.at[begun].max())
    # The gain of each doubling, and how much of it was gone through, of every promoted learner.
    # Those that started near the best count for more.
    promoted = np.flatnonzero(table.is_begun & (table.at > table.start))
    behind = table.first[begun].max() - table.first[promoted]
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(behind > 0.0, 1.0 / (1.0 + (behind / (NEAR * unit)) ** 2), 1.0)
    start, at = table.start[promoted], table.at[promoted]
    seen = near @ _passed(start[:, None], at[:, None], lowest, end)
    gained = near @ curves.columns(_gains, lowest, end)[promoted]
    gains = np.zeros(LARGEST)
    expected = FIRST_GAIN * unit
    for j in range(lowest, LARGEST):
        if j < end:
            total = gained[j - lowest] + PRIOR_WEIGHT * expected
            gains[j] = total / (seen[j - lowest] + PRIOR_WEIGHT)
        else:
            gains[j] = expected
        expected = FADING * gains[j]
    sums, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (gains, gains**2))
    gain_at = _up_to(sums, table.at)
    square_at = _up_to(squares, table.at)
    passed = np.where(table.is_begun, gain_at - _up_to(sums, table.start), 0.0)
    group = _Group(
        sums, squares, 1.0, widest, table.at, gain_at, square_at, nothing, nothing, passed
    )
    # How far each promoted learner's whole gain is off the group's, in standard deviations.
    off = (table.score - table.first)[promoted] - passed[promoted]
    square = square_at[promoted] - _up_to(squares, start)
    deviation = np.sqrt(group.variance(at - start, square, np.minimum(behind, widest)))
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.minimum(OUTLIER, np.nan_to_num(np.abs(off) / deviation))
    # The mean was fitted to these gains, so they vary less around it by one learner's worth.
    count = max(0.0, near.sum() - 1.0)
    phi = (SPREAD_WEIGHT + near @ times / MEAN_DEVIATION) / (SPREAD_WEIGHT + count)
    lead = nothing.copy()
    lead[promoted] = OWN_SHARE * off
    group = group._replace(phi=float(phi), lead=lead)
    # Learners are compared where the one trained furthest is.
    mean = table.score + group.ahead(float(table.at[begun].max()))[0]
    best = mean[table.is_alive].max(initial=-math.inf)
    return group._replace(gap=np.clip(np.nan_to_num(best - mean), 0.0, widest))


def _newcomers(curves: Curves, size: int) -> tuple[float, float, float]:
    """Return a newcomer's expected score at `size`, and how much learners' scores and gains vary.

    Both are variances. Before any learner has a score, it may be anything.
    """
    table, group = curves.once(_table), curves.once(_group)
    recent = np.flatnonzero(table.is_begun)[-RECENT:]
    if not len(recent):
        return 0.0, math.inf, 0.0
    to = math.log2(size)
    gain = _between(group.sums, table.start[recent], to)
    square = _between(group.squares, table.start[recent], to)
    doublings = np.maximum(0.0, to - table.start[recent])
    gained = float(group.variance(doublings, square, group.widest_gap).mean())
    means = table.first[recent] + gain
    if len(recent) < RECENT:
        return float(means.mean()), float(means.var()), gained
    # Scores have a ceiling and no floor: hopeless learners make none look promising.
    spread = spread_of(means) / UPPER_TENTH
    return float(np.median(means)), min(float(means.var()), spread**2), gained


def _levels(curves: Curves) -> tuple[Numbers, Numbers]:
    """Return what parameters say of learners without a score, in the order of ids.

    The first is how far they are expected above a newcomer of which nothing is known, the second
    the variance of that; infinite where nothing is known.
    """
    table, group = curves.once(_table), curves.once(_group)
    shift, left = np.zeros(len(table.score)), np.full(len(table.score), np.inf)
    known = np.flatnonzero(table.is_alive)[-MOST_COMPARED:]
    points = [curves[i].parameters for i in curves.learners[known].tolist()]
    # Learners that were dropped have no more forecasts that count.
    new = np.flatnonzero(~table.is_begun & curves.columns(_is_waiting)[:, 0].astype(bool))
    if len(known) < 2 or not any(points) or not len(new):
        return shift, left
    to = float(table.at[known].max())
    gain, variance = (part[known] for part in group.ahead(to))
    scores = table.score[known] + gain
    scores = np.maximum(scores, np.median(scores) - FLOOR * spread_of(scores) / UPPER_TENTH)
    unit = float(np.ptp(scores))  # squares of tiny scores would be 0
    if unit > 0.0:
        asked = [curves[i].parameters for i in curves.learners[new].tolist()]
        variance = (np.sqrt(variance) / unit) ** 2
        mean, left[new] = gaussian_process(points, scores / unit, variance, asked)
        left[new] *= unit**2
        shift[new] = mean * unit - curves.once(_newcomers, round(2.0**to))[0]
    return shift, left


def _is_waiting(curve: LearningCurve) -> tuple[float]:
    return (float(not curve.dropped and bool(curve.parameters)),)


def _finite(curve: LearningCurve) -> list[Observation]:
    """Return the observations from whose scores anything can be projected."""
    return [x for x in curve.observations if abs(x.score) <= LARGEST_SCORE]


def _facts(curve: LearningCurve) -> tuple[float, ...]:
    seen = _finite(curve)
    if not seen:
        return 0.0, math.nan, 0.0, math.nan, 0.0, 0.0
    first, last = seen[0], seen[-1]
    is_alive = float(not curve.dropped)
    return math.log2(first.size), first.score, math.log2(last.size), last.score, 1.0, is_alive


def _gains(curve: LearningCurve, lowest: int, end: int) -> tuple[float, ...]:
    """Return the gain of each doubling from `lowest` on; a longer step fades over them."""
    gains = np.zeros(end - lowest)
    seen = _finite(curve)
    for one, two in pairwise(seen):
        share = _passed(math.log2(one.size), math.log2(two.size), lowest, end)
        share = share * FADING ** np.arange(end - lowest)
        gains += (two.score - one.score) * share / share.sum()
    return tuple(gains.tolist())


def _passed(since: Numbers | float, to: Numbers | float, lowest: int, end: int) -> Numbers:
    """Return how much of each doubling from `lowest` to `end` lies between, from 0 to 1."""
    lower = np.arange(lowest, end)
    return np.asarray(np.clip(to - lower, 0.0, 1.0) - np.clip(since - lower, 0.0, 1.0))


def _between(sums: Numbers, since: Numbers, to: float) -> Numbers:
    return np.asarray(np.where(since < to, _up_to(sums, to) - _up_to(sums, since), 0.0))


def _up_to(sums: Numbers, doublings: Numbers | float) -> Numbers:
    """Return the sum up to a number of doublings, linear within each."""
    whole = np.minimum(np.asarray(doublings).astype(int), len(sums) - 2)
    return np.asarray(sums[whole] + (sums[whole + 1] - sums[whole]) * (doublings - whole))
