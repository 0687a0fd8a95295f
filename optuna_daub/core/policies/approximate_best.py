"""ABC: approximate best configuration, by progressive sampling with confidence intervals.

Each learner is trained on growing samples, its score measured on growing samples too, until the
intervals tell a learner that is within epsilon of the best with probability 1 - delta.

The interval construction is claimed in US patent 12,223,407; DAUB is the default.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

import math
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from optuna_daub.core.bounds import hoeffding
from optuna_daub.core.bounds.confidence import HalfWidth
from optuna_daub.core.bounds.confidence import confidence_interval
from optuna_daub.core.bounds.interval import Interval
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Drop
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Reason
from optuna_daub.core.policies.decision import Wait
from optuna_daub.core.policies.schedulers import Scheduler
from optuna_daub.core.policies.schedulers import candidates
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import next_size
from optuna_daub.core.sizes import whole_number


VALIDATION_FACTOR = 2
"""Validation examples per training example of a probe: 2,000 for 1,000 ([1] Section 5)."""


@dataclass(frozen=True)
class BestGuess:
    """The answer at any time, and what is guaranteed of it ([1] Appendix D.2).

    >>> str(BestGuess(3, 0.0342, 0.95))
    'learner 3 is within 0.035 of the best with probability 0.95'
    """

    learner: int
    gap: float
    """How far its full-data score may be below the best one, in [0, 1]."""
    probability: float
    """1 - delta: how sure that is."""

    def __str__(self) -> str:
        gap = math.ceil(self.gap * 1000) / 1000  # upwards, so that the sentence stays true
        within = f"within {gap:.3f} of the best with probability {self.probability:g}"
        return f"learner {self.learner} is {within}"


@dataclass(frozen=True)
class ABC:
    """Train the learners that may still be the best, drop those that hardly can ([1] Algorithm 1).

    Every learner is first trained once on the smallest size. Then a learner is dropped when its
    upper end is within `epsilon` of the largest lower end, and the scheduler says which of the
    others goes on to its next size. The last one left is the answer; with `refit` it is trained
    on all examples at once.

    Before that, nobody but a learner that is undecided even after the largest size below the
    full one is trained on all examples: only there its interval becomes exact. Where learners
    differ by less than the intervals can resolve, that comes to training them fully; it takes some
    10^5 examples before ABC saves any. A learner that memorises has an upper end of 1, and is
    dropped only when all others are pinned down.

    >>> from optuna_daub.core.curve import Observation
    >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
    >>> def curve(learner, score, training_score):
    ...     seen = Observation(10_000, score, training_score, n_validation=20_000)
    ...     return LearningCurve(learner, (seen,))
    >>> decision = abc.decide(Curves([curve(0, 0.90, 0.91), curve(1, 0.84, 0.85)]))
    >>> decision.learner, str(decision.reason)
    (1, 'upper end 0.872 is within 0.01 of the largest lower end 0.889 of learner 0')
    """

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set (N)."""
    n_validation: int | None = None
    """Number of examples of the full held-out set, at least 1 (abs(D_te)); None where every
    probe is scored on all of them."""
    epsilon: float = 0.01
    """How far below the best the answer may be; in (0, 1), in units of the score. The default is
    the accuracy loss that [1] Section 5 reports."""
    delta: float = 0.05
    """How often it may be farther; in (0, 1). [1] names no default; it enters under a logarithm,
    so that the cost hardly depends on it."""
    confidence: HalfWidth = hoeffding.half_width
    """The inequality that the intervals rest on; Hoeffding's is that of [1]."""
    scheduler: Scheduler = gradient_ci
    """Which undecided learner goes on; gradient_ci is that of [1]."""
    refit: bool = True
    """Train the answer on all examples; False ends as soon as it is identified."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes(self.sizes))
        if self.n_validation is not None and whole_number("n_validation", self.n_validation) < 1:
            raise ValueError(f"`n_validation` must be at least 1, but got {self.n_validation}.")
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not 0.0 < value < 1.0:
                raise ValueError(f"`{name}` must be between 0 and 1, but got {value}.")

    def validation_size(self, training_size: int) -> int | None:
        """Return on how many validation examples a probe of `training_size` is to be scored.

        None stands for all of them, however many there are.

        >>> abc = ABC(sizes=(1000, 2000, 500_000), n_validation=100_000)
        >>> abc.validation_size(1000), abc.validation_size(500_000)
        (2000, 100000)
        """
        if self.n_validation is None:
            return None
        return min(VALIDATION_FACTOR * training_size, self.n_validation)

    def decide(self, curves: Curves, busy: Collection[int] = frozenset()) -> Decision:
        """Return what to do next ([1] Algorithm 1).

        Raises:
            ValueError: as `interval`.
        """
        alive = sorted(
            (curve for curve in curves.values() if not curve.dropped),
            key=lambda curve: curve.learner,
        )
        if not alive:
            return Finish(None, Reason("no learner is left"))
        started = [curve for curve in alive if curve.observations]
        fresh = [c for c in alive if not c.observations and c.learner not in busy]
        if fresh:
            first = Reason("every learner is first trained on the smallest size")
            return Extend(fresh[0].learner, self.sizes[0], first)
        intervals = {curve.learner: self.interval(curve, curves) for curve in alive}
        # While others begin, more learners may come, and each makes all intervals wider.
        if len(started) == len(alive):
            if loser := self._loser(intervals):
                return loser
            if len(alive) == 1:
                return self._answer(alive[0], busy)
            if all(self._is_full(curve) for curve in alive):
                return self._undecided(intervals)
        return self._extension(started, curves, busy)

    def interval(self, curve: LearningCurve, curves: Curves) -> Interval:
        """Return where the learner's score on all examples lies, within [0, 1].

        Raises:
            ValueError: where a probe lacks its training score or its number of validation
                examples, or has a score outside [0, 1].
        """
        return confidence_interval(
            curve,
            self.sizes[-1],
            full_validation=self.n_validation or _all_scored(curve),
            failure=self.failure(curves),
            half_width=self.confidence,
        )

    def outranked(self, curve: LearningCurve, by: LearningCurve, curves: Curves) -> Reason:
        """Return why the turn passes from the learner of `curve` to that of `by`."""
        if not by.observations:
            return Reason(f"learner {by.learner} has not had its first size yet")
        own, other = self.interval(curve, curves), self.interval(by, curves)
        return Reason(
            f"undecided between {{0}} and {{1}}; the turn goes to learner {by.learner} between "
            "{2} and {3}",
            (own.lower, own.upper, other.lower, other.upper),
        )

    def best_guess(self, curves: Curves) -> BestGuess | None:
        """Return the best answer to be had now; None where no learner is left.

        Of the learners with the largest lower end and with the largest upper end, the one that
        the others can exceed by less ([1] Appendix D.2). A learner dropped for its upper end was
        within `epsilon` of the largest lower end, and still is; of one that was dropped because
        it failed, nothing is claimed.

        >>> from optuna_daub.core.curve import Observation
        >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
        >>> seen = Observation(10_000, 0.90, 0.91, n_validation=20_000)
        >>> str(abc.best_guess(Curves([LearningCurve(0, (seen,)), LearningCurve(1, (seen,))])))
        'learner 0 is within 0.044 of the best with probability 0.95'
        """
        intervals = {learner: self.interval(curve, curves) for learner, curve in curves.items()}
        alive = {i: ends for i, ends in intervals.items() if not curves[i].dropped}
        if not alive:
            return None
        safest, highest = _leader(alive), min(alive, key=lambda i: (-alive[i].upper, i))
        guesses = [self.guess(learner, curves) for learner in (safest, highest)]
        return min(guesses, key=lambda guess: guess.gap)  # [1] Appendix D.2

    def guess(self, learner: int, curves: Curves) -> BestGuess:
        """Return what is guaranteed of one learner that is not dropped."""
        intervals = {i: self.interval(curve, curves) for i, curve in curves.items()}
        alive = {i: ends for i, ends in intervals.items() if not curves[i].dropped}
        # No learner was dropped for an upper end above this.
        limit = max(ends.lower for ends in alive.values()) + self.epsilon
        others = [
            ends.upper if i in alive else min(ends.upper, limit)
            for i, ends in intervals.items()
            if i != learner
        ]
        gap = max(0.0, max(others, default=0.0) - intervals[learner].lower)
        return BestGuess(learner, gap, 1.0 - self.delta)

    def failure(self, curves: Curves) -> float:
        """Return d_c, the failure probability of one interval: delta / n^2 for n learners.

        The paper counts n intervals in each of at most n - 1 rounds, as many as learners are
        dropped. Counting every probe instead, delta / n^2 covers as many sizes as learners.
        """
        return self.delta / len(curves) ** 2  # [1] Theorem 3

    def _is_full(self, curve: LearningCurve) -> bool:
        return curve.size >= self.sizes[-1]

    def _loser(self, intervals: Mapping[int, Interval]) -> Drop | None:
        leader = _leader(intervals)
        largest = intervals[leader].lower  # [1] Alg. 1, line 7
        for learner, ends in intervals.items():
            if learner != leader and ends.upper - largest <= self.epsilon:  # [1] Alg. 1, line 8
                text = (
                    f"upper end {{0}} is within {self.epsilon:g} of the {{largest}} lower end "
                    f"{{1}} of learner {leader}"
                )
                return Drop(learner, Reason(text, (ends.upper, largest)))
        return None

    def _answer(self, winner: LearningCurve, busy: Collection[int]) -> Extend | Finish | Wait:
        """Return how to end with the only learner left."""
        promise = f"within {self.epsilon:g} of the best with probability {1 - self.delta:g}"
        if self._is_full(winner):
            text = f"{promise}; trained on all {winner.size:,} examples with score {{0}}"
            return Finish(winner.learner, Reason(text, (winner.score,)))
        if not self.refit:
            text = f"{promise}; identified at {winner.size:,} examples, not trained on all"
            return Finish(winner.learner, Reason(text))
        if winner.learner in busy:
            return Wait(Reason("the identified learner is being trained"))
        return Extend(winner.learner, self.sizes[-1], Reason(f"identified as {promise}"))

    def _undecided(self, intervals: Mapping[int, Interval]) -> Finish:
        """Return the end where all left are fully trained, but scored on a sample only."""
        leader = _leader(intervals)
        text = f"of {len(intervals)} fully trained learners it has the {{largest}} lower end {{0}}"
        return Finish(leader, Reason(text, (intervals[leader].lower,)))

    def _extension(
        self, started: Sequence[LearningCurve], curves: Curves, busy: Collection[int]
    ) -> Extend | Wait:
        """Return the next size of the learner that the scheduler likes best of those free."""
        free = {c.learner: c for c in started if c.learner not in busy and not self._is_full(c)}
        if not free:
            return Wait(Reason("every undecided learner is being trained, or is fully trained"))
        order = self.scheduler(candidates(started, lambda curve: self.interval(curve, curves)))
        chosen = free[next(learner for learner in order if learner in free)]
        size = next_size(self.sizes, chosen.size)
        assert size is not None
        ends = self.interval(chosen, curves)
        text = f"undecided between {{0}} and {{1}}, one of {len(started)} left"
        return Extend(chosen.learner, size, Reason(text, (ends.lower, ends.upper)))


def _all_scored(curve: LearningCurve) -> int:
    """Return on how many validation examples the probes of a curve were scored, all on as many."""
    counts = {seen.n_validation for seen in curve.observations if seen.n_validation}
    if len(counts) > 1:
        raise ValueError(
            "Without `n_validation`, every probe is to be scored on the full held-out set, but "
            f"learner {curve.learner} was scored on {min(counts):,} to {max(counts):,} examples. "
            "Give `n_validation`, the size of the full held-out set."
        )
    return max(counts, default=1)


def _leader(intervals: Mapping[int, Interval]) -> int:
    """Return the learner with the largest lower end, then upper end, then the lower id.

    Lower ends are equal where two scores are so low that 0 is all that can be said.
    """
    return min(
        intervals,
        key=lambda learner: (-intervals[learner].lower, -intervals[learner].upper, learner),
    )
