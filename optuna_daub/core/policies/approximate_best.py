"""ABC: approximate best configuration, by progressive sampling with confidence intervals.

Learners are trained and scored on growing samples, until the intervals show one that is within
epsilon of the best with probability 1 - delta.

The interval construction is claimed in US patent 12,223,407; DAUB is the default.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optuna_daub.core.checks import flag
from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import LOST
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Ranking
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals.confidence import HalfWidth
from optuna_daub.core.intervals.confidence import confidence_interval
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.policies.policy import Needs
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.policies.policy import nothing_left
from optuna_daub.core.policies.schedulers import Scheduler
from optuna_daub.core.policies.schedulers import candidates
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.core.steps import next_of_grid


VALIDATION_FACTOR = 2
"""Number of validation examples per training example: 2,000 for 1,000 ([1] Section 5)."""

ASSUMPTIONS = (
    "scores are means over examples of values in [0, 1]",
    "training and validation data come from one distribution",
    "a learner fits its own training sample at least as well as if trained on other data",
    "more data do not hurt",
)
"""Conditions of the promise; `optuna_daub.core.intervals.confidence` says which end needs
which."""


@dataclass(frozen=True)
class BestGuess:
    """A learner with a probable bound on its distance from the best one.

    See [1] Appendix D.2.

    >>> str(BestGuess(3, 0.0342, 0.95))
    'learner 3 is within 0.035 of the best with probability 0.95'
    """

    learner: int
    """Id of the learner."""
    gap: float
    """Largest distance of its full-data score below the best one, in [0, 1]."""
    probability: float
    """Probability that the distance is at most `gap`: 1 - delta."""

    def __str__(self) -> str:
        within = f"within {self.gap_shown} of the best with probability {self.probability:.15g}"
        return f"learner {self.learner} is {within}"

    @property
    def gap_shown(self) -> str:
        """The gap, rounded up to three decimals, so sentences stay true."""
        return f"{math.ceil(self.gap * 1000) / 1000:g}"


@dataclass(frozen=True)
class ABC(Policy):
    """ABC: drop learners whose intervals are too low, train the others further ([1] Algorithm 1).

    Every learner is first trained once on the smallest size. Then a learner is dropped if its
    upper end is at most the largest lower end plus `epsilon`, and the scheduler chooses which of
    the others goes on to its next size. The last one left is the answer; with `refit` it is then
    trained on all examples.

    Before that, only a learner that is undecided after the largest size below N is trained on all
    examples. Its interval becomes exact there if `n_validation` is None or at most 2 N; else it is
    scored on a sample. If learners differ by less than the intervals can resolve, all of them are
    trained fully, so ABC needs some 10^5 examples to save any time. A learner that memorises its
    training data has an upper end of 1, and is dropped last. If the last one left fails, there is
    no answer: those that were ruled out get no more data.

    >>> from optuna_daub.core import Curves, Observation
    >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
    >>> def curve(learner, score, training_score):
    ...     seen = Observation(10_000, score, training_score, n_validation=20_000)
    ...     return LearningCurve(learner, (seen,))
    >>> decision = abc.decide(Pool(Curves([curve(0, 0.90, 0.91), curve(1, 0.84, 0.85)])))
    >>> decision.learner, str(decision.reason)
    (1, 'upper end 0.872 is within 0.01 of the largest lower end 0.889 of learner 0')
    """

    n_validation: int | None = None
    """Number of examples of the full held-out set, abs(D_te), at least 1. None if every training
    is scored on all of them."""
    epsilon: float = 0.01
    """Largest loss against the best learner, in (0, 1), in units of the score. The default is the
    accuracy loss that [1] Section 5 reports."""
    delta: float = 0.05
    """Probability of a larger loss, in (0, 1). The default is not from [1]. It enters under a
    logarithm, so the cost hardly depends on it."""
    confidence: HalfWidth = hoeffding.half_width
    """Inequality of the intervals; Hoeffding's is that of [1]."""
    scheduler: Scheduler = gradient_ci
    """Rule for the undecided learner that goes on; gradient_ci is that of [1]."""
    refit: bool = True
    """Train the answer on all examples; False ends as soon as it is known."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_validation is not None and whole_number("n_validation", self.n_validation) < 1:
            raise ValueError(f"`n_validation` must be at least 1, but got {self.n_validation}.")
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not 0.0 < number(name, value) < 1.0:
                raise ValueError(f"`{name}` must be between 0 and 1, but got {value}.")
        flag("refit", self.refit)

    @property
    def needs(self) -> Needs:
        """Requirements: training scores, means over examples, and a closed pool."""
        return Needs(
            training_scores="required",
            mean_of_examples=True,
            n_validation=self.n_validation,
            validation_factor=VALIDATION_FACTOR,
            closed_pool=True,
        )

    def decide(self, pool: Pool) -> Decision:
        """Return the next decision ([1] Algorithm 1).

        Raises:
            ValueError: if a training lacks its training score or its number of validation
                examples, or has a score outside [0, 1].
        """
        first = Reason("every learner is first trained on the smallest size")
        alive = [curve for curve in pool.curves.values() if not curve.dropped]
        for curve in alive:
            if not curve.observations and curve.learner not in pool.busy:
                return Extend(curve.learner, self.sizes[0], first)
        if pool.may_propose:
            return Propose(self.sizes[0], first)
        if not alive:
            return Finish(None, self._nothing_left(pool))
        # Drop nothing until all learners have a score: a missing one may be the best.
        if all(curve.observations for curve in alive):
            ends = self._alive(pool)
            leader = _leader(ends)
            largest = ends[leader].lower  # [1] Alg. 1, line 7
            for learner, end in ends.items():
                if learner != leader and end.upper - largest <= self.epsilon:  # Alg. 1, line 8
                    text = (
                        f"upper end {{0}} is within {self.epsilon:g} of the {{largest}} lower "
                        f"end {{1}} of learner {leader}"
                    )
                    return Drop(learner, Reason(text, (end.upper, largest)))
            if len(alive) == 1:
                return self._answer(pool, alive[0])
            if all(map(self._is_full, alive)):
                # All learners left are fully trained, but were scored on a sample only.
                text = (
                    f"of {len(ends)} fully trained learners it has the {{largest}} lower end {{0}}"
                )
                return Finish(leader, Reason(text, (largest,)))
        return self._extension(pool, alive)

    def promise(self, pool: Pool, learner: int) -> str:
        """Return the promise for a learner: its distance to the best, probability and conditions.

        >>> from optuna_daub.core import Curves, Observation
        >>> def curve(learner, score, training_score):
        ...     seen = Observation(10_000, score, training_score, n_validation=20_000, seconds=1.5)
        ...     return LearningCurve(learner, (seen,))
        >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
        >>> pool = Pool(Curves([curve(0, 0.90, 0.91), curve(1, 0.84, 0.85)]))
        >>> abc.promise(pool, 0)[:74]
        'Learner 0 is within 0 of the best of 2 learners with probability 0.95. See'
        """
        guess = self.guess(pool, learner)
        probes = [seen for curve in pool.curves.values() for seen in curve.observations]
        rule = self.confidence.__module__.rpartition(".")[2].replace("_", "-").title()
        lost = sum(curve.cause in LOST for curve in pool.curves.values())
        left_out = f" ({lost} failed or infeasible, of which nothing is claimed)" if lost else ""
        return (
            f"Learner {learner} is within {guess.gap_shown} of the best of {self._n(pool)} "
            f"learners{left_out} with probability {guess.probability:.15g}. "
            f"Seen: {self._extent(probes)}. "
            f"Rests on the {rule} inequality, delta / n^2 = {self.failure(pool):.2g} per "
            f"interval, and on these conditions: {'; '.join(ASSUMPTIONS)}."
        )

    def leader(self, pool: Pool) -> int | None:
        """Return the answer if it is known, else the best guess."""
        decision = pool.once(self.decide)
        if isinstance(decision, Finish):
            return decision.learner
        guess = self.best_guess(pool)
        return None if guess is None else guess.learner

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return the interval of the learner's score on all examples, within [0, 1].

        Raises:
            ValueError: as `decide`.
        """
        return pool.once(self._intervals)[learner]

    def best_guess(self, pool: Pool) -> BestGuess | None:
        """Return the best answer so far.

        None if no learner with a score is left. It is the learner with the largest lower end or
        with the largest upper end: the one that the others can exceed by less ([1] Appendix D.2).
        Learners dropped for their upper ends count with these. One that failed cannot be the
        answer, and counts as at most `epsilon` above the largest lower end.

        >>> from optuna_daub.core import Curves, Observation
        >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
        >>> seen = Observation(10_000, 0.90, 0.91, n_validation=20_000)
        >>> both = Pool(Curves([LearningCurve(0, (seen,)), LearningCurve(1, (seen,))]))
        >>> str(abc.best_guess(both))
        'learner 0 is within 0.044 of the best with probability 0.95'
        """
        alive = self._alive(pool)
        if not alive:
            return None
        safest, highest = _leader(alive), min(alive, key=lambda i: (-alive[i].upper, i))
        guesses = [self.guess(pool, learner) for learner in (safest, highest)]
        return min(guesses, key=lambda guess: guess.gap)  # [1] Appendix D.2

    def guess(self, pool: Pool, learner: int) -> BestGuess:
        """Return the promise for one learner that is not dropped."""
        alive, intervals = self._alive(pool), pool.once(self._intervals)
        limit = max(ends.lower for ends in alive.values()) + self.epsilon
        # A dropped learner's upper end was within `epsilon` of the largest lower end. If the
        # learner with that end has failed since, `limit` need not hold for the dropped one.
        others = [
            min(ends.upper, limit) if pool.curves[i].cause in LOST else ends.upper
            for i, ends in intervals.items()
            if i != learner
        ]
        if pool.may_propose:
            others.append(1.0)  # a learner still to come may have any score
        gap = max(0.0, max(others, default=0.0) - intervals[learner].lower)
        return BestGuess(learner, gap, 1.0 - self.delta)

    def failure(self, pool: Pool) -> float:
        """Return d_c, the failure probability of one interval: delta / n^2 for n learners.

        The paper counts n intervals in each of at most n - 1 rounds, one for each dropped learner.
        If every training is counted instead, delta / n^2 covers as many sizes as learners.
        """
        return self.delta / self._n(pool) ** 2  # [1] Theorem 3

    def _n(self, pool: Pool) -> int:
        """Return n, the number of learners, including those still to come."""
        return len(pool.curves) + (pool.to_come or 0)

    def _intervals(self, pool: Pool) -> Mapping[int, Interval]:
        if not pool.curves:
            return {}
        failure = self.failure(pool)
        return {i: curve.once(_interval, self, failure) for i, curve in pool.curves.items()}

    def _alive(self, pool: Pool) -> Mapping[int, Interval]:
        """Return the intervals of all learners with a score that are not dropped."""
        curves = pool.curves
        return {
            i: ends
            for i, ends in pool.once(self._intervals).items()
            if curves[i].observations and not curves[i].dropped
        }

    def _is_full(self, curve: LearningCurve) -> bool:
        return curve.size >= self.sizes[-1]

    def _answer(self, pool: Pool, winner: LearningCurve) -> Extend | Finish | Wait:
        """Return the last decisions for the only learner left."""
        guess = self.guess(pool, winner.learner)
        # The gap is larger if a learner that failed had ruled others out, or if the winner's own
        # lower end has fallen since.
        gap = f"{self.epsilon:g}" if guess.gap <= self.epsilon else guess.gap_shown
        promise = f"within {gap} of the best with probability {guess.probability:.15g}"
        if self._is_full(winner):
            text = f"{promise}; trained on all {winner.size:,} examples with score {{0}}"
            return Finish(winner.learner, Reason(text, (winner.score,)))
        if not self.refit:
            text = f"{promise}; identified at {winner.size:,} examples, not trained on all"
            return Finish(winner.learner, Reason(text))
        if winner.learner in pool.busy:
            return Wait(Reason("the identified learner is being trained"))
        return Extend(winner.learner, self.sizes[-1], Reason(f"identified as {promise}"))

    def _nothing_left(self, pool: Pool) -> Reason:
        """Return the reason to end without an answer. A learner that is ruled out stays so."""
        intervals = pool.once(self._intervals)
        ends = {i: intervals[i] for i, c in pool.curves.items() if c.cause == "ruled out"}
        if not ends:
            return Reason("no learner is left")
        best = _leader(ends)
        return nothing_left(best, "lower end {0}", ends[best].lower)

    def _extension(self, pool: Pool, alive: Sequence[LearningCurve]) -> Extend | Wait:
        """Return the next size of the first free learner in the scheduler's order."""
        started = [curve for curve in alive if curve.observations]
        free = {
            c.learner: c for c in started if c.learner not in pool.busy and not self._is_full(c)
        }
        if not free:
            return Wait(Reason("every undecided learner is being trained, or is fully trained"))
        failure = self.failure(pool)
        order = self.scheduler(candidates(started, lambda c: c.once(_interval, self, failure)))
        chosen = free[next(learner for learner in order if learner in free)]
        size = next_of_grid(chosen, self.sizes)
        ends = self.interval(pool, chosen.learner)
        text = f"undecided between {{0}} and {{1}}, one of {len(started)} left"
        reason = Reason(text, (ends.lower, ends.upper))
        return Extend(chosen.learner, size, reason, self._ranking(pool))

    def _ranking(self, pool: Pool) -> Ranking:
        """Return the ranking by upper end, from which schedulers may deviate."""
        alive, learners = self._alive(pool), pool.curves.learners
        upper = [alive[i].upper if i in alive else -math.inf for i in learners.tolist()]
        return Ranking("upper end", learners, np.array(upper), excluded="it has no score yet")

    def _extent(self, probes: Sequence[Observation]) -> str:
        """Return the sentence on the trainings behind a promise."""
        sizes = [seen.size for seen in probes]
        scored = [seen.n_validation for seen in probes if seen.n_validation is not None]
        spent = sum(map(Cost.of, probes), Cost())
        all_scored = self.n_validation or max(scored, default=0)
        return (
            f"{spent.examples:,} training examples in {len(probes)} trainings of {_range(sizes)} "
            f"(all: {self.sizes[-1]:,}), scored on {_range(scored)} (all: {all_scored:,}), "
            f"in {spent.seconds:,.1f} s"
        )


def _interval(curve: LearningCurve, rule: ABC, failure: float) -> Interval:
    """Return the interval of a score on all examples, which fails with probability `failure`."""
    return confidence_interval(
        curve,
        rule.sizes[-1],
        full_validation=rule.n_validation or _all_scored(curve),
        failure=failure,
        half_width=rule.confidence,
    )


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _all_scored(curve: LearningCurve) -> int:
    """Return the number of validation examples of all trainings of a curve."""
    counts = {seen.n_validation for seen in curve.observations if seen.n_validation}
    if len(counts) > 1:
        raise ValueError(
            "Without `n_validation`, every training must be scored on the full held-out set, but "
            f"learner {curve.learner} was scored on {min(counts):,} to {max(counts):,} examples. "
            "Give `n_validation`, the size of the full held-out set."
        )
    return max(counts, default=1)


def _leader(intervals: Mapping[int, Interval]) -> int:
    """Return the learner with the largest lower end.

    Ties go to the larger upper end, then to the lower id. Lower ends are equal if two scores are
    so low that both are 0.
    """
    return min(
        intervals,
        key=lambda learner: (-intervals[learner].lower, -intervals[learner].upper, learner),
    )
