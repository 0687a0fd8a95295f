"""Predicted costs of training: from a learner's own probes, from others', from its parameters.

Times are looked at on a logarithmic scale, and a learner's grow as n^alpha with its training size.
Before its first probe nothing is known of a learner but its parameters. What these cost is learnt
by ridge regression from the learners begun last: trees, leaves, rounds multiply times, so that
logarithms of times are nearly linear in the parameters and their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.pool import Curves


DISBELIEF = 10.0
"""A probe is not believed to be slower than this many times what the learner's probe before, or
the median learner, suggests: the first call of a library may take a minute."""
ENOUGH = 5
"""Learners whose times are known, from which on one is disbelieved. Among fewer a dear learner
cannot be told from a slow call, and to take it for cheap may cost all the time there is."""
SLOWEST = 0.1, 2.0
"""Range of growth exponents that measured times are believed to show."""
ALPHA_WEIGHT = 2.0
"""E-foldings of size that the prior of the pool's exponent, 1, counts as; a learner's own is drawn
to the pool's as by one."""
MOST_COMPARED = 100
"""Learners begun last, from whose parameters and times a newcomer's are predicted."""
RIDGE = 2.0
"""Learners that the prior belief counts as, by which a parameter has no effect on times."""
PRIOR_ERROR = 1.5
"""Of a prediction from parameters, before any was compared with the truth; a standard deviation of
logarithms, and counts as one learner."""


FARTHEST = 4.0
"""Standard deviations from the mean, beyond which a number is predicted as one there: where two
learners are nearly the same, a third may be a thousand times their difference away."""


class Costs(NamedTuple):
    """Predicted costs, exp(level + growth * ln n), arrays in the order of ids."""

    level: NDArray[np.float64]
    growth: NDArray[np.float64]

    def at(self, size: int) -> NDArray[np.float64]:
        """Return what training each learner on `size` examples costs."""
        return np.asarray(np.exp(self.level + self.growth * math.log(size)))


class Guess(NamedTuple):
    """The cost of a learner that was never trained."""

    log_cost: float
    """Its logarithm, predicted."""
    error: float
    """Standard deviation by which such predictions are off."""


def in_examples(curves: Curves) -> Costs:
    """Return training sizes themselves as costs."""
    return Costs(np.zeros(len(curves)), np.ones(len(curves)))


def in_seconds(curves: Curves) -> Costs:
    """Return the seconds of every learner; training sizes where no time was measured.

    A learner's seconds grow as n^alpha from its last probe on; alpha is drawn from 1 towards the
    pool's, and from there towards its own, as by so many e-foldings of size seen.

    >>> from optuna_daub.core import Observation
    >>> slow = LearningCurve(0, (Observation(500, 0.8, seconds=3.0),))
    >>> fast = LearningCurve(1, (Observation(500, 0.8, seconds=1.0),))
    >>> in_seconds(Curves([slow, fast])).at(1000)
    array([6., 2.])
    """
    seen = curves.columns(LearningCurve.log_times)
    timed = np.isfinite(seen[:, 1])
    if not timed.any():
        return in_examples(curves)
    first, first_cost, before, before_cost, last, last_cost = seen.T
    longer = np.where(timed, last - first, 0.0)
    slower = np.where(timed, last_cost - first_cost, 0.0)
    slower = np.clip(slower, SLOWEST[0] * longer, SLOWEST[1] * longer)
    alpha = (slower.sum() + ALPHA_WEIGHT) / (longer.sum() + ALPHA_WEIGHT)
    # What a learner would take for one example, if its seconds grew as the pool's do.
    level = last_cost - alpha * last
    # The lower of two in the middle: of two learners one slow call must not be half of it.
    typical = float(np.quantile(level[timed], 0.5, method="lower"))
    if timed.sum() >= ENOUGH:
        earlier = np.where(np.isfinite(before_cost), before_cost - alpha * before, typical)
        level = np.minimum(level, np.maximum(earlier, typical) + math.log(DISBELIEF))
    own = (slower + alpha) / (longer + 1.0)
    start = np.where(timed, level + (alpha - own) * last, typical)
    return Costs(start, np.where(timed, own, alpha))


def by_parameters(
    known: Sequence[Mapping[str, Any]], log_costs: NDArray[np.float64], new: Mapping[str, Any]
) -> Guess:
    """Return what a learner costs, predicted from others' parameters.

    Args:
        known: the parameters of other learners, at least one.
        log_costs: logarithms of their costs, as many.
        new: the learner's parameters; without any, it costs what others do.

    >>> trees = [{"n_estimators": n} for n in (10, 20, 40, 80, 160, 320)]
    >>> seconds = np.log([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    >>> guess = by_parameters(trees, seconds, {"n_estimators": 640})
    >>> 3.2 < math.exp(guess.log_cost) < 6.4, guess.error < 1.0
    (True, True)
    """
    features = _features([*known, new])
    X, x = features[:-1], features[-1]
    middle = X.mean(axis=0)
    X, x = X - middle, x - middle
    # Ridge regression (Hoerl and Kennard 1970): w = (X'X + k I)^-1 X'(y - mean y).
    y = log_costs - log_costs.mean()
    solved = np.linalg.solve(X.T @ X + RIDGE * np.eye(X.shape[1]), X.T)
    weights = solved @ y
    rest = y - X @ weights
    # Each learner's error had it been left out: e_i / (1 - h_ii), h the hat matrix.
    hat = np.einsum("ij,ji->i", X, solved) + 1.0 / len(y)
    left_out = rest / np.maximum(1.0 - hat, 1e-9) if len(y) > 1 else np.zeros(1)
    error = math.sqrt((float(left_out @ left_out) + PRIOR_ERROR**2) / (len(y) + 1))
    # The median: one slow call must not make others dear.
    level = float(log_costs.mean()) + float(np.quantile(rest, 0.5, method="lower"))
    return Guess(level + float(x @ weights), error)


def _features(points: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """Return a row for each point, the last of them the new one: numbers, their logarithms, words.

    Numbers are standardized; where a parameter is absent its mean stands in, and a column says so.
    """
    names = sorted({name for point in points[:-1] for name in point})
    is_there = np.array([[name in point for name in names] for point in points], float)
    columns = [is_there[:, ~is_there.all(axis=0)]] if names else [np.empty((len(points), 0))]
    numeric = [n for n in names if all(_is_number(p[n]) for p in points if n in p)]
    if numeric:
        numbers = np.array([[float(p.get(n, math.nan)) for n in numeric] for p in points])
        lowest, highest = np.nanmin(numbers[:-1], axis=0), np.nanmax(numbers[:-1], axis=0)
        positive = np.nanmin(numbers, axis=0) > 0.0
        # A line is not believed beyond what was seen, a power of the number is.
        kinds = np.hstack([np.clip(numbers, lowest, highest), np.log(numbers[:, positive])])
        spread = np.nanstd(kinds[:-1], axis=0)
        varied = spread > 0.0
        scaled = (kinds - np.nanmean(kinds[:-1], axis=0))[:, varied] / spread[varied]
        columns.append(np.clip(np.nan_to_num(scaled, nan=0.0), -FARTHEST, FARTHEST))
    for name in sorted({*names} - {*numeric}):
        words = [repr(point[name]) if name in point else None for point in points]
        for word in sorted({word for word in words[:-1] if word is not None}):
            columns.append(np.array([[word == other] for other in words], float))
    return np.hstack(columns)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)
