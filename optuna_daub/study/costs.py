"""Seconds of training at sizes at which it was not timed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping

from optuna_daub.core.curve import Observation
from optuna_daub.core.steps import FASTEST
from optuna_daub.core.steps import SLOWEST


def seconds_at(size: int, known: Mapping[int, Iterable[Observation]]) -> dict[int, float]:
    """Return what training on `size` examples takes each learner that was trained, in seconds.

    Where it was timed there, that time; else its time at the nearest size, growing as n^alpha.
    Alpha is the learner's own as far as its times tell, drawn towards that of all learners as by
    one doubling of n; that of all is drawn towards 1 likewise. A learner without times counts as
    the mean of the others; nobody has one where nothing was timed.

    Args:
        size: number of training examples.
        known: the observations of each learner.

    >>> def timed(*seconds):
    ...     return [Observation(500 * 2**i, 0.8, seconds=s) for i, s in enumerate(seconds)]
    >>> seconds = seconds_at(4000, {0: timed(1.0, 1.0, 1.0, 1.0), 1: timed(2.0, 2.0)})
    >>> seconds[0], round(seconds[1], 2)
    (1.0, 2.3)
    """
    times = {
        learner: {seen.size: seen.seconds for seen in observations if seen.seconds}
        for learner, observations in known.items()
    }
    doublings = {
        learner: (math.log2(own[max(own)] / own[min(own)]), math.log2(max(own) / min(own)))
        for learner, own in times.items()
        if own
    }
    slower = math.fsum(of_time for of_time, _ in doublings.values())
    larger = math.fsum(of_size for _, of_size in doublings.values())
    common = (slower + 1.0) / (larger + 1.0)
    seconds = {}
    for learner, (of_time, of_size) in doublings.items():
        alpha = min(max((of_time + common) / (of_size + 1.0), FASTEST), SLOWEST)
        nearest = min(times[learner], key=lambda n: (abs(math.log(n / size)), -n))
        seconds[learner] = times[learner][nearest] * (size / nearest) ** alpha
    if seconds:
        mean = math.fsum(seconds.values()) / len(seconds)
        seconds |= {i: mean for i, own in times.items() if not own and [*known[i]]}
    return seconds
