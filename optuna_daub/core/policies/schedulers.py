"""Schedulers: rules for the undecided learner of ABC that is trained next.

A scheduler is a pure function: the undecided learners in, their ids out, in the order of priority.
The caller takes the first one that is free.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from operator import attrgetter
from typing import TypeAlias

from optuna_daub.core.checks import number
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.intervals.interval import Interval


MIN_GROWTH = 0.01
"""Smallest growth exponent that `step_for_growth` takes; its step is 2^100."""


@dataclass(frozen=True)
class Candidate:
    """An undecided learner, with the cost and the effect of its last training."""

    learner: int
    n_probes: int
    """Number of trainings so far, at least 1."""
    interval: Interval
    """Interval of its full-data score from all trainings."""
    before: Interval
    """Interval without the last training; [0, 1] if that was the first."""
    extra_cost: float
    """Cost of the last training minus that of the one before, at least 0. The first has 0 before
    it. In seconds, or in training examples if seconds were not measured."""

    @property
    def cost_of_rise(self) -> float:
        """Cost per unit of rise of the lower end, dT/dl. Infinity if it did not rise."""
        return _slope(self.extra_cost, self.interval.lower - self.before.lower)

    @property
    def cost_of_fall(self) -> float:
        """Cost per unit of fall of the upper end, -dT/du. Infinity if it did not fall."""
        return _slope(self.extra_cost, self.before.upper - self.interval.upper)


Scheduler: TypeAlias = Callable[[Sequence[Candidate]], list[int]]
"""Function from the undecided learners to all their ids, in the order of priority."""


def gradient_ci(candidates: Sequence[Candidate]) -> list[int]:
    """Return the learners in the order of [1] Algorithm 2, SchedulerGradientCI.

    The learner with the largest upper end goes first as long as its lower end rises at less cost
    than the upper ends of all others together fall. Otherwise the second largest goes first. Equal
    upper ends, as of learners that memorise, are ordered by the lower end, then by id.

    Only the costs of each learner's last two trainings count, as in [1]. So if one training of the
    first learner does not raise its lower end, the others go first for as long as they can go on.
    That costs time but no accuracy; `ucb` and `round_robin` do not have this problem.

    >>> unknown = Interval(0.0, 1.0)
    >>> leader = Candidate(0, 1, Interval(0.8, 0.9), unknown, extra_cost=6.0)  # 7.5 per unit
    >>> rival = Candidate(1, 1, Interval(0.6, 0.8), unknown, extra_cost=1.0)  # 5 per unit
    >>> gradient_ci([leader, rival]), gradient_ci([leader, rival, replace(rival, learner=2)])
    ([1, 0], [0, 1, 2])
    """
    best, *others = sorted(candidates, key=_by_upper_end)  # [1] Alg. 2, line 2
    if others and best.cost_of_rise >= math.fsum(other.cost_of_fall for other in others):
        best, others[0] = others[0], best  # [1] Alg. 2, line 3; the condition of Eq. (9)
    return [candidate.learner for candidate in (best, *others)]


def ucb(candidates: Sequence[Candidate]) -> list[int]:
    """Return the learners by falling upper end ([1] Section "Experiments": UCB).

    >>> unknown = Interval(0.0, 1.0)
    >>> seen = Candidate(3, 1, Interval(0.5, 0.8), unknown, 1.0)
    >>> ucb([seen, replace(seen, learner=7, interval=Interval(0.4, 0.9))])
    [7, 3]
    """
    return [candidate.learner for candidate in sorted(candidates, key=_by_upper_end)]


def round_robin(candidates: Sequence[Candidate]) -> list[int]:
    """Return the learners with fewest trainings first, then by id ([1] Section "Experiments").

    >>> unknown = Interval(0.0, 1.0)
    >>> seen = [Candidate(i, n, unknown, unknown, 1.0) for i, n in ((3, 2), (5, 1), (9, 1))]
    >>> round_robin(seen)
    [5, 9, 3]
    """
    return [
        candidate.learner
        for candidate in sorted(candidates, key=lambda seen: (seen.n_probes, seen.learner))
    ]


def candidates(
    curves: Sequence[LearningCurve], interval: Callable[[LearningCurve], Interval]
) -> list[Candidate]:
    """Return the learners as candidates of a scheduler, each with at least one training.

    Costs are the measured seconds of the last two trainings. If one of these was not measured,
    training sizes replace the seconds of all learners.

    Args:
        curves: curves of the undecided learners.
        interval: function from a curve to the interval of the full-data score.

    >>> probes = Observation(500, 0.8, seconds=2.0), Observation(1000, 0.8, seconds=5.0)
    >>> known = LearningCurve(4, probes)
    >>> [seen.extra_cost for seen in candidates([known], lambda curve: Interval(0.7, 0.9))]
    [3.0]
    """
    probes = [seen for curve in curves for seen in curve.observations[-2:]]
    cost = attrgetter("seconds" if all(seen.seconds is not None for seen in probes) else "size")
    return [
        Candidate(
            curve.learner,
            len(curve.observations),
            interval(curve),
            interval(replace(curve, observations=curve.observations[:-1])),
            _extra(cost, curve),
        )
        for curve in curves
    ]


def step_for_growth(alpha: float) -> float:
    """Return the best ratio of training sizes for training times that grow as s^alpha.

    Then every training takes twice as long as the one before, and the total time is at most 4
    times that of a schedule that knows in advance when to stop ([1] Theorem 4).

    >>> [round(step_for_growth(alpha), 6) for alpha in (0.5, 1.0, 1.5, 2.0, 3.0)]
    [4.0, 2.0, 1.587401, 1.414214, 1.259921]

    Raises:
        ValueError: if `alpha` is not finite or is below 0.01.
    """
    if not MIN_GROWTH <= number("alpha", alpha) < math.inf:
        raise ValueError(
            f"`alpha` must be a finite number, at least {MIN_GROWTH}, but got {alpha}. If time "
            "hardly grows with the training size, train on all the data at once."
        )
    return float(2.0 ** (1.0 / alpha))  # [1] Appendix B: c^alpha = 2


def _extra(cost: Callable[[Observation], float], curve: LearningCurve) -> float:
    *_, earlier, last = 0.0, *map(cost, curve.observations[-2:])  # T = 0 before the first training
    return max(0.0, last - earlier)  # a negative difference is noise


def _slope(cost: float, change: float) -> float:
    return cost / change if change > 0.0 else math.inf


def _by_upper_end(candidate: Candidate) -> tuple[float, float, int]:
    return -candidate.interval.upper, -candidate.interval.lower, candidate.learner
