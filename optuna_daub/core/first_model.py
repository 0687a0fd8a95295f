"""When a search trains its first learner on all the data.

The first training on all the data may cost twice what was spent so far. Until then a search looks
for cheap learners. With a time limit this may take too long. So the cheapest learner goes on at
once if one more look would make a model in time less likely. If no learner is likely to end in
time, a learner goes on only if its chance is at least that of a new one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.boxes import OUTCOMES
from optuna_daub.core.boxes import WEIGHTS
from optuna_daub.core.costs.cost_model import Seconds


FIRST_MODEL = 2.0
"""Largest cost of the first training on all the data, in costs spent so far. Not tuned: a promise
(`docs/promises.md`)."""


def affordable(
    own: Seconds, new: Seconds, spent: float, left: float, *, may_choose: bool
) -> NDArray[np.bool_]:
    """Return which learners may be the first ones on all the data, shape (learners,).

    Args:
        own: costs of learners with a score, shape (learners, stops); the last stop is N.
        new: costs of candidates that may start, shape (candidates, stops).
        spent, left: costs spent and left, in the same unit.
        may_choose: True if the best candidate is the next learner; False if a random one is.

    >>> own = Seconds(np.log([[1.0, 16.0]]), np.zeros((1, 2)))
    >>> [affordable(own, own, spent, math.inf, may_choose=True).item() for spent in (7.0, 8.0)]
    [False, True]
    """
    cost = own.expected()[:, -1]
    found = np.asarray(cost <= FIRST_MODEL * spent)
    if cost.min(initial=math.inf) <= left < math.inf:
        place = int(cost.argmin())
        found[place] |= is_urgent(own.part(np.array([place])), new, left, may_choose=may_choose)
    return found


def is_urgent(own: Seconds, new: Seconds, left: float, *, may_choose: bool) -> bool:
    """Return whether a learner is more likely in time on all the data now than after a look.

    A look is the training of a candidate on the smallest size. After it the candidate's seconds
    are as uncertain as the learner's, and the faster of the two goes on.

    Args:
        own: seconds of the learner, shape (1, stops).
        new: seconds of the candidates, shape (candidates, stops).
        left: seconds left, finite.
        may_choose: as in `affordable`.

    >>> own, slow, fast = (
    ...     Seconds(np.log([[1.0, seconds]]), np.ones((1, 2))) for seconds in (16.0, 16.0, 4.0)
    ... )
    >>> [is_urgent(own, new, 20.0, may_choose=True) for new in (slow, fast)]
    [True, False]
    """
    if not len(new.log_mean):
        return True
    sd, rest = own.log_sd[:, -1:], left - new.expected(left)[:, :1]
    shown = np.sqrt(np.maximum(new.log_sd[:, -1:] ** 2 - sd**2, 0.0))
    faster = np.minimum(new.log_mean[:, -1:] + shown * OUTCOMES, own.log_mean[:, -1:])
    then = Seconds(faster, np.full_like(faster, sd)).within(rest) @ WEIGHTS
    return bool(own.within(left)[0, -1] > (then.max() if may_choose else then.mean()))


def is_likelier(own: Seconds, new: Seconds, left: float, *, may_choose: bool) -> NDArray[np.bool_]:
    """Return which learners are at least as likely in time as a candidate, shape (learners,).

    Each has the time for one more look and the training on all the data. If one takes longer than
    believed, so does the other.

    Args:
        own, new: seconds of learners and of candidates, shape (points, stops).
        left: seconds left.
        may_choose: as in `affordable`.

    >>> own, new = (Seconds(np.log([[1.0, 64.0]]), np.full((1, 2), sd)) for sd in (0.5, 2.0))
    >>> [is_likelier(own, new, left, may_choose=True).item() for left in (20.0, 80.0)]
    [False, True]
    """
    chances = []
    for each in (own, new):
        look = np.exp(each.log_mean[:, 0] - each.log_mean[:, -1])  # in full trainings
        full = Seconds(each.log_mean[:, -1], each.log_sd[:, -1])
        chances.append(full.within(left / (1.0 + look)))
    mine, others = chances
    if not len(others):
        return np.ones(len(mine), bool)
    return np.asarray(mine >= (others.max() if may_choose else others.mean()))
