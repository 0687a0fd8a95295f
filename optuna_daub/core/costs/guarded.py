"""Predicted costs of training: from a learner's own probes, from others', from its parameters.

Times are looked at on a logarithmic scale, and a learner's grow as (f + n)^alpha with its training
size n. Every training takes some time besides, as much as f examples take, which is why small
trainings are dearer than large ones promise: boosted trees and forests on adult, letter, magic and
flights take 1.2 to 2 times as long on N / 16 as on N / 64, and 2 to 4 times as long on N as on
N / 4. What takes the time differs between learners, and so does alpha.

Before its first probe nothing is known of a learner but its parameters. What these cost is learnt
by ridge regression from the learners begun last: trees, leaves, rounds multiply times, so that
logarithms of times are nearly linear in the parameters and their logarithms. How times grow is
learnt likewise until a second probe shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.parameters import MOST_COMPARED
from optuna_daub.core.parameters import Features
from optuna_daub.core.pool import Curves


DISBELIEF = 10.0
"""A probe is not believed to be slower than this many times what the learner's probe before, the
other learners, or its parameters suggest: the first call of a library may take a minute."""
DEAREST = 0.2
"""If more learners than this share are dear, they are no slow calls: what the quickest of this
share takes, the 0.8 quantile and not the median, is what others suggest. Cheap starts and dear
proposals may be a hundredfold apart, and were the median to decide, a dear forest would be begun
on all the data as if it took a tenth of its time."""
ENOUGH = 5
"""Learners whose times are known, from which on one is disbelieved. Among fewer a dear learner
cannot be told from a slow call, and to take it for cheap may cost all the time there is."""
LEAST_GROWTH, MOST_GROWTH = 0.1, 2.0
"""Range of growth exponents believed from one probe to the next, for a learner's own costs and for
the pool's exponent: it ends below `steps.SLOWEST`, since one slow call would move all."""
FIXED = np.array([0.0, *2.0 ** np.arange(-2, 8)])
"""What every training takes besides, to choose from: multiples of the smallest size seen."""
STEEPEST = 1.1
"""The largest exponent of the pool beside such a part: 1, and a little for chance."""
ALPHA_WEIGHT = 2.0
"""Weight of the prior of the pool's exponent, 1, in e-foldings of size seen; of the pool's
exponent as the prior of a learner's own, likewise; and of the pool's against what parameters say,
in learners that were trained on several sizes."""
RIDGE = 2.0
"""Weight, in learners, of the belief that a parameter has no effect on times. From 1 to 5
predictions are alike on random forests with 9 parameters, with 5 learners as with 100."""
PRIOR_ERROR = 1.5
"""Standard deviation of the logarithm of a predicted cost before any prediction was checked;
counts as one learner. As much as others' median is off where parameters are drawn on logarithmic
scales."""
GROWTH_ERROR = 0.17
"""Standard deviation of the logarithm of a cost, predicted for e times the size, before any is
known; counts as `ALPHA_WEIGHT` e-foldings of size. Boosted trees, forests, linear models and
neighbours on adult, letter and magic: 0.14 to 0.32, 0.17 in the middle."""
SPREAD = 0.3
"""Standard deviation of the growth exponents of learners whose own times tell nothing: 0.31 and
0.34 on two measured tables of 41 learners, 0.15 to 0.23 of boosted trees and forests."""
FARTHEST = 10.0
"""E-foldings by which a prediction may be above the dearest cost known, or below the cheapest."""


class Costs(NamedTuple):
    """Predicted costs, exp(level + growth * ln(fixed + n)), arrays in the order of ids."""

    level: NDArray[np.float64]
    """Logarithm of what the size 1 would cost, without the fixed part."""
    growth: NDArray[np.float64]
    """Alpha."""
    fixed: float
    """What every training takes besides, in examples."""
    error: float
    """Standard deviation of the logarithm of a cost, predicted for e times the size."""

    def at(self, size: ArrayLike) -> NDArray[np.float64]:
        """Return what training each learner on `size` examples costs; one size, or one each."""
        return np.asarray(np.exp(self.level + self.growth * np.log(self.fixed + np.asarray(size))))


class Guess(NamedTuple):
    """The cost of a learner that was never trained."""

    log_cost: float
    """Its logarithm, predicted."""
    error: float
    """Standard deviation by which such predictions are off."""


def in_examples(curves: Curves) -> Costs:
    """Return training sizes themselves as costs."""
    return Costs(np.zeros(len(curves)), np.ones(len(curves)), 0.0, 0.0)


def is_timed(curves: Curves) -> bool:
    """Return whether the seconds of any probe were measured."""
    return bool(np.isfinite(curves.columns(LearningCurve.log_times)).any())


def in_seconds(curves: Curves) -> Costs:
    """Return the seconds of every learner; training sizes where no time was measured.

    A learner's seconds grow as (f + n)^alpha from its last probe on. The pool has one f; alpha is
    drawn from 1 towards the pool's, and from there towards its own, the more, the more e-foldings
    of size were seen, or, of a learner with one probe or none, towards what its parameters say.

    >>> from optuna_daub.core import Observation
    >>> slow = LearningCurve(0, (Observation(500, 0.8, seconds=3.0),))
    >>> fast = LearningCurve(1, (Observation(500, 0.8, seconds=1.0),))
    >>> in_seconds(Curves([slow, fast])).at(1000)
    array([6., 2.])
    """
    if not is_timed(curves):
        return in_examples(curves)
    seen = curves.columns(LearningCurve.log_times)
    timed = np.isfinite(seen[:, 1])
    # Logarithms of sizes, and of seconds: of the first probe, the last but one and the last.
    sizes, costs = seen[:, ::2], seen[:, 1::2]
    steps = _folds(sizes, 0.0)
    rises = np.clip(np.nan_to_num(np.diff(costs)), LEAST_GROWTH * steps, MOST_GROWTH * steps)
    promoted = np.asarray(steps.any(axis=1))
    fixed = _fixed(sizes[promoted], rises[promoted])
    before, last = np.log(fixed + np.exp(sizes[:, 1:])).T
    before_cost, last_cost = costs[:, 1:].T
    slower, longer = rises.sum(axis=1), _folds(sizes, fixed).sum(axis=1)
    alpha = (slower.sum() + ALPHA_WEIGHT) / (longer.sum() + ALPHA_WEIGHT)
    # What a learner would take for one example, if its seconds grew as the pool's do.
    level = last_cost - alpha * last
    # The lower of two in the middle: of two learners one slow call must not be half of it.
    typical = float(np.quantile(level[timed], 0.5, method="lower"))
    if timed.sum() >= ENOUGH:
        dear = float(np.quantile(level[timed], 1.0 - DEAREST, method="lower"))
        earlier = np.where(np.isfinite(before_cost), before_cost - alpha * before, dear)
        suggested = np.maximum(earlier, dear)
        slow = np.flatnonzero(timed & (level > suggested + math.log(DISBELIEF)))
        if len(slow):
            # Parameters say which learners are dear, however few of them there are.
            others = np.setdiff1d(np.flatnonzero(timed), slow)[-MOST_COMPARED:]
            likely, _ = _predicted(_points(curves, others), level[others], _points(curves, slow))
            suggested[slow] = np.maximum(suggested[slow], likely)
        level = np.minimum(level, suggested + math.log(DISBELIEF))
    own = (slower + ALPHA_WEIGHT * alpha) / (longer + ALPHA_WEIGHT)
    recent = np.flatnonzero(timed)[-MOST_COMPARED:]
    again = recent[promoted[recent]]
    once = np.concatenate([recent[~promoted[recent]], np.flatnonzero(~timed)])
    if len(once) and any(known := _points(curves, again)):
        # Trees of many leaves are dear on few examples already, and so grow less with more.
        likely, _ = _predicted(known, own[again], _points(curves, once))
        likely = np.clip(likely, LEAST_GROWTH, MOST_GROWTH)
        own[once] = (len(again) * likely + ALPHA_WEIGHT * alpha) / (len(again) + ALPHA_WEIGHT)
    # Those without a probe take as long as others where these were trained last.
    level, last = np.where(timed, (level, last), [[typical], [float(np.median(last[timed]))]])
    # Each e-folding of size that was seen says as much of how learners differ.
    square, larger = ALPHA_WEIGHT * GROWTH_ERROR**2, steps.sum(axis=1)
    square += float(np.sum((slower - alpha * longer) ** 2 / np.where(promoted, larger, 1.0)))
    error = math.sqrt(square / (ALPHA_WEIGHT + float(larger.sum())))
    return Costs(level + (alpha - own) * last, own, fixed, error)


def expected_seconds(curves: Curves, size: int) -> dict[int, float]:
    """Return what training on `size` examples takes each learner that was trained, in seconds.

    Where it was timed there, that time. Else the mean of what it may be, where `in_seconds` gives
    the median: the few learners that grow fastest are most of the seconds of all. Those that were
    trained further are the quicker ones, so that what they say of the growth of others counts
    half, and the rest is in proportion to size. A learner without times counts as the mean of the
    others; none has a time where nothing was timed.

    Args:
        curves: what is known of the learners.
        size: number of training examples.

    >>> from optuna_daub.core import Observation
    >>> def timed(learner, *seconds):
    ...     sizes = (500 * 2**i for i in range(len(seconds)))
    ...     known = (Observation(n, 0.8, seconds=s) for n, s in zip(sizes, seconds))
    ...     return LearningCurve(learner, tuple(known))
    >>> curves = Curves([timed(0, 1.0, 2.0, 4.0, 8.0), timed(1, 1.0), timed(2, 2.0, 4.0)])
    >>> {learner: round(seconds, 1) for learner, seconds in expected_seconds(curves, 4000).items()}
    {0: 8.0, 1: 9.7, 2: 17.1}
    """
    costs = curves.once(in_seconds)
    expected = {}
    for learner, level, growth in zip(curves.learners.tolist(), *costs[:2], strict=True):
        own = {seen.size: seen.seconds for seen in curves[learner].observations if seen.seconds}
        if not own:
            continue
        if size in own:
            expected[learner] = own[size]
            continue
        folds = math.log((costs.fixed + max(own)) / (costs.fixed + min(own)))
        doubt = ALPHA_WEIGHT / (ALPHA_WEIGHT + folds)  # the share that its own times leave
        alpha = growth + doubt * (1.0 - growth) / 2.0
        nearest = min(own, key=lambda n: (abs(math.log(n / size)), -n))
        log_time = math.log(own[nearest])
        if nearest == max(own):  # if that was a slow call, it is believed no more than elsewhere
            log_time = level + growth * math.log(costs.fixed + nearest)
        way = math.log((costs.fixed + size) / (costs.fixed + nearest))
        expected[learner] = math.exp(log_time + alpha * way + doubt * (SPREAD * way) ** 2 / 2.0)
    if expected:
        mean = math.fsum(expected.values()) / len(expected)
        begun = (learner for learner, curve in curves.items() if curve.observations)
        expected |= {learner: mean for learner in begun if learner not in expected}
    return expected


def _fixed(sizes: NDArray[np.float64], rises: NDArray[np.float64]) -> float:
    """Return what every training takes besides, in examples: 0 where nothing is known.

    With it one exponent explains best how seconds grew from size to size: least squares, each as
    by so many e-foldings. The prior counts as one learner more, whose seconds grew in proportion
    to size: of few learners the first may all be quick ones.

    Args:
        sizes: logarithms of three sizes, a row for each learner that was trained on several.
        rises: by how much the logarithm of its seconds rose from each to the next.
    """
    if not len(sizes):
        return 0.0
    smallest, steps = float(sizes.min()), _folds(sizes, 0.0)
    prior = np.array([smallest, smallest + ALPHA_WEIGHT])
    known, least = steps > 0.0, (math.inf, 0.0)
    for fixed in (FIXED * math.exp(smallest)).tolist():
        longer, longer_by_prior = _folds(sizes, fixed)[known], float(_folds(prior, fixed)[0])
        alpha = (rises.sum() + ALPHA_WEIGHT) / (longer.sum() + ALPHA_WEIGHT)
        off = float(np.sum((rises[known] - alpha * longer) ** 2 / steps[known]))
        off += (ALPHA_WEIGHT - alpha * longer_by_prior) ** 2 / ALPHA_WEIGHT
        # It explains why seconds grow less than sizes do, not why some grow more.
        if fixed == 0.0 or alpha <= STEEPEST:
            least = min(least, (off, fixed))
    return least[1]


def _folds(sizes: NDArray[np.float64], fixed: float) -> NDArray[np.float64]:
    """Return by how many e-foldings fixed + n grows from each size to the next.

    Sizes are given as logarithms. It is 0 where there is none.
    """
    return np.nan_to_num(np.diff(np.log(fixed + np.exp(sizes))))


def _points(curves: Curves, places: NDArray[np.int64]) -> list[Mapping[str, Any]]:
    """Return the parameters of the learners at these places."""
    return [curves[i].parameters for i in curves.learners[places].tolist()]


def by_parameters(
    known: Sequence[Mapping[str, Any]], log_costs: NDArray[np.float64], new: Mapping[str, Any]
) -> Guess:
    """Return what a learner costs, predicted from others' parameters.

    Args:
        known: the parameters of other learners, at least one.
        log_costs: logarithms of their costs, as many.
        new: the learner's parameters. One that it lacks and all others have counts as not known
            yet: the mean stands in, and the error grows by what it could change.

    >>> trees = [{"n_estimators": n} for n in (10, 20, 40, 80, 160, 320)]
    >>> seconds = np.log([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    >>> guess = by_parameters(trees, seconds, {"n_estimators": 640})
    >>> 3.2 < math.exp(guess.log_cost) < 6.4, guess.error < 1.0
    (True, True)
    """
    log_cost, error = _predicted(known, log_costs, [new])
    return Guess(float(log_cost[0]), float(error[0]))


def _predicted(
    known: Sequence[Mapping[str, Any]],
    log_costs: NDArray[np.float64],
    new: Sequence[Mapping[str, Any]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what `by_parameters` does, of several new learners: logarithms, and their errors."""
    seen = Features.of(known, new)
    middle_point = seen.known.mean(axis=0)
    X, x = seen.known - middle_point, np.where(seen.is_unknown, 0.0, seen.new - middle_point)
    # Ridge regression (Hoerl and Kennard 1970) in its dual form: w = X'(XX' + k I)^-1 (y - mean).
    middle = float(log_costs.mean())
    gram = X @ X.T
    inverse = np.linalg.inv(gram + RIDGE * np.eye(len(X)))
    weights = X.T @ (inverse @ (log_costs - middle))
    rest = log_costs - middle - X @ weights
    # Each learner's error had it been left out: e_i / (1 - h_ii), h the hat matrix.
    hat = np.einsum("ij,ji->i", gram, inverse) + 1.0 / len(X)
    left_out = rest / np.maximum(1.0 - hat, 1e-9) if len(X) > 1 else np.zeros(1)
    square = (float(left_out @ left_out) + PRIOR_ERROR**2) / (len(X) + 1)
    unknown = np.mean((X @ (weights[:, None] * seen.is_unknown.T)) ** 2, axis=0)
    error = np.sqrt(square + unknown + seen.beyond**2)
    # The median: one slow call must not make others dear.
    level = middle + float(np.quantile(rest, 0.5, method="lower"))
    lowest, highest = float(log_costs.min()) - FARTHEST, float(log_costs.max()) + FARTHEST
    return np.clip(level + x @ weights, lowest, highest), error
