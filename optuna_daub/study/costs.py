"""Seconds of training at sizes at which it was not timed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping

from optuna_daub.core.curve import Observation
from optuna_daub.core.steps import FASTEST
from optuna_daub.core.steps import SLOWEST


SPREAD = 0.3
"""Standard deviation of the exponents of learners whose own times tell nothing: 0.31 and 0.34 on
two measured tables, from N / 16 to N."""

DOUBLINGS = 4.0
"""Doublings of n that an exponent of 1 counts as, against those over which a learner was timed:
times of milliseconds are noisy, and fixed overheads hide the growth on little data."""


def seconds_at(size: int, known: Mapping[int, Iterable[Observation]]) -> dict[int, float]:
    """Return what training on `size` examples takes each learner that was trained, in seconds.

    Where it was timed there, that time; else what is expected of its time at the nearest size if
    seconds grow as n^alpha: alpha is the learner's own as far as its times tell, drawn towards 1.
    What is left in doubt counts: the few learners that grow fastest are most of the seconds, so
    that the time for the mean alpha is too low. A learner without times counts as the mean of the
    others; none has a time where nothing was timed.

    Args:
        size: number of training examples.
        known: the observations of each learner.

    >>> def timed(*seconds):
    ...     return [Observation(500 * 2**i, 0.8, seconds=s) for i, s in enumerate(seconds)]
    >>> seconds = seconds_at(4000, {0: timed(1.0, 1.0, 1.0, 1.0), 1: timed(2.0, 4.0)})
    >>> seconds[0], round(seconds[1], 2)
    (1.0, 17.15)
    """
    times = {
        learner: {seen.size: seen.seconds for seen in observations if seen.seconds}
        for learner, observations in known.items()
    }
    seconds = {}
    for learner, own in times.items():
        if not own:
            continue
        first, last = min(own), max(own)
        larger = math.log2(last / first)
        alpha = (math.log2(own[last] / own[first]) + DOUBLINGS) / (larger + DOUBLINGS)
        alpha = min(max(alpha, FASTEST), SLOWEST)
        doubt = SPREAD**2 * DOUBLINGS / (larger + DOUBLINGS)  # the variance of alpha
        nearest = min(own, key=lambda n: (abs(math.log(n / size)), -n))
        way = math.log(size / nearest)
        seconds[learner] = own[nearest] * math.exp(alpha * way + doubt * way**2 / 2)
    if seconds:
        mean = math.fsum(seconds.values()) / len(seconds)
        seconds |= {i: mean for i, own in times.items() if not own and [*known[i]]}
    return seconds
