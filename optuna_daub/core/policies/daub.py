"""DAUB: data allocation using upper bounds.

Each learner is first trained on three sizes; from then on the learner with the largest upper
bound on its full-data score gets its next size, until the leader is fully trained.

[1] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from itertools import takewhile
from typing import Any
from typing import Literal

from optuna_daub.core.bounds.audit import AuditSummary
from optuna_daub.core.bounds.audit import audits_of
from optuna_daub.core.bounds.audit import inflation
from optuna_daub.core.bounds.bound import Bound
from optuna_daub.core.bounds.interval import Interval
from optuna_daub.core.bounds.projection import ProjectedBound
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.decision import Reason
from optuna_daub.core.policies.decision import Wait
from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import is_part
from optuna_daub.core.sizes import next_size
from optuna_daub.core.steps import AdaptiveStep
from optuna_daub.core.steps import StepRule
from optuna_daub.core.steps import first_seconds
from optuna_daub.core.steps import is_costly
from optuna_daub.core.steps import leap_of
from optuna_daub.core.steps import nearest
from optuna_daub.core.steps import one_size


@dataclass(frozen=True)
class DAUB:
    """Give data to the learner with the largest upper bound ([1] Algorithm 1).

    Ties of the bound go to the learner with most data, then to the larger validation score, then
    to the lower id: early on, every learner that memorises its training data ties at 1.

    >>> from optuna_daub.core.curve import Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((500, 750, 1125, 1688), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, s) for n, s in seen))
    >>> daub = DAUB(sizes=(500, 750, 1125, 1688))
    >>> decision = daub.decide(Curves([curve(0, 0.60, 0.65, 0.68), curve(1, 0.5, 0.5, 0.5)]))
    >>> decision.learner, decision.size, str(decision.reason)
    (0, 1688, 'bound 0.750 is the largest; next is 0.500 of learner 1')
    """

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set (N)."""
    use_training_score: bool = True
    """Bound by the training score too; False is the "no f^T" variant of [1] Table 1."""
    tolerance: float = 0.0
    """Bounds within it of the largest count as ties; at least 0, in units of the score."""
    stop: Literal["verified", "first"] = "verified"
    """"first" ends when any learner is fully trained ([1] Alg. 1, line 5), "verified" when
    that learner also has the largest bound: the first to arrive need not be the best."""
    upper_bound: Bound | None = None
    """What a learner can reach; None for the projection of [1], as `use_training_score` says."""
    steps: StepRule = one_size
    """Which size a learner is trained on next; that of [1] is the next one."""
    first_sizes: tuple[int, ...] = ()
    """The sizes that every learner is first trained on; empty for the first three, as in [1]."""
    costly: float = math.inf
    """A learner whose first probe took more than so many times the median of all goes on to a
    size about 3.5 times as large: what is fixed of its cost is not paid again for little news."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes(self.sizes))
        if not self.tolerance >= 0:
            raise ValueError(f"`tolerance` must be at least 0, but got {self.tolerance}.")
        if self.stop not in ("verified", "first"):
            raise ValueError(f'`stop` must be "verified" or "first", but got {self.stop!r}.')
        if self.first_sizes and not is_part(self.first_sizes, self.sizes):
            raise ValueError(
                f"`first_sizes` must be some of the training sizes {self.sizes}, increasing, but "
                f"got {self.first_sizes}."
            )

    def decide(self, curves: Curves, busy: Collection[int] = frozenset()) -> Decision:
        """Return what to do next ([1] Alg. 1, lines 5-11)."""
        return self._repaired(curves)._decide(curves, busy)

    def validation_size(self, training_size: int) -> None:
        """Return None: every probe is scored on all validation examples."""

    def interval(self, curve: LearningCurve, curves: Curves) -> Interval:
        """Return the range up to the learner's bound; all numbers where there is none."""
        if not curve.observations:
            return Interval()
        upper = self._repaired(curves)._upper(curve)
        return Interval(upper=upper) if math.isfinite(upper) else Interval()

    def bound(self, curve: LearningCurve) -> float:
        """Return what a curve with at least one observation is ranked by: its upper bound."""
        return curve.once(self._bound)

    def audit(self, curves: Curves) -> AuditSummary:
        """Return how often the bounds held, of learners that were then trained on more data."""
        ratios = curves.pooled(self._ratios)
        held = bisect_right(ratios, 1.0)
        return AuditSummary(held, len(ratios), self._bounds.confidence, self._factor(curves))

    def outranked(self, curve: LearningCurve, by: LearningCurve, curves: Curves) -> Reason:
        """Return why the turn passes from the learner of `curve` to that of `by`."""
        if self._is_starting(by):
            first = len(self._first_sizes)
            return Reason(f"learner {by.learner} has not had its first {first} sizes yet")
        rule = self._repaired(curves)
        bounds = rule.bound(curve), rule.bound(by)
        if bounds[0] < bounds[1] - self.tolerance:
            return Reason(f"{self._noun} {{0}} {{less}} {{1}} of learner {by.learner}", bounds)
        merit = (
            f"more data ({by.size:,})" if by.size > curve.size else "a better score or lower id"
        )
        text = f"{self._noun} {{0}} ties with {{1}} of learner {by.learner}, which has {merit}"
        return Reason(text, bounds)

    def _decide(self, curves: Curves, busy: Collection[int]) -> Decision:
        contenders = [*islice(curves.ranking(self._rank), 2)]
        if not contenders:
            return Finish(None, Reason("no learner is left"))
        if winner := self._winner(curves, contenders[0]):
            return Finish(winner.learner, self._victory(winner, curves))
        free = (curve for curve in curves.ranking(self._rank) if curve.learner not in busy)
        chosen = self._foremost(free)
        if chosen is None or self._is_full(chosen):
            return Wait(Reason("every learner that could still be the best is being trained"))
        return self._extend(chosen, curves)

    def _repaired(self, curves: Curves) -> DAUB:
        """Return the rule whose bounds would have held as often as they say."""
        factor = self._factor(curves)
        return self if factor == 1.0 else _inflated(self, factor)

    def _factor(self, curves: Curves) -> float:
        confidence = self._bounds.confidence
        return 1.0 if confidence is None else inflation(curves.pooled(self._ratios), confidence)

    def _ratios(self, curve: LearningCurve) -> list[float]:
        return [audit.ratio for audit in audits_of(curve, self._bounds)]

    @property
    def _bounds(self) -> Bound:
        return self.upper_bound or ProjectedBound(self.use_training_score)

    @property
    def _noun(self) -> str:
        return self._bounds.noun

    def _upper(self, curve: LearningCurve) -> float:
        full = self.sizes[-1]
        return curve.score if curve.size >= full else self._bounds.upper(curve, full)

    def _bound(self, curve: LearningCurve) -> float:
        full = self.sizes[-1]
        if curve.size >= full:
            return curve.score
        return self._bounds.prospect(curve, full, self.steps(curve, self.sizes, math.inf))

    def _rank(self, curve: LearningCurve) -> tuple[Any, ...] | None:
        if curve.dropped:
            return None
        if self._is_starting(curve):
            return (True,)  # before all others, the lower id first ([1] Alg. 1, lines 2-4)
        return (False, self.bound(curve), curve.size, curve.score)

    def _is_starting(self, curve: LearningCurve) -> bool:
        return curve.size < self._first_sizes[-1]

    @property
    def _first_sizes(self) -> tuple[int, ...]:
        return self.first_sizes or self.sizes[:MIN_SIZES]

    def _is_full(self, curve: LearningCurve) -> bool:
        return curve.size == self.sizes[-1]

    def _rank_full(self, curve: LearningCurve) -> tuple[Any, ...] | None:
        return (curve.score,) if self._is_full(curve) and not curve.dropped else None

    def _winner(self, curves: Curves, first: LearningCurve) -> LearningCurve | None:
        """Return the fully trained learner that the stopping rule accepts, if there is one."""
        if self._is_starting(first):
            return None
        if self.stop == "first":
            return next(curves.ranking(self._rank_full), None)
        leader = self._foremost(curves.ranking(self._rank))
        return leader if leader and self._is_full(leader) else None

    def _foremost(self, ranked: Iterable[LearningCurve]) -> LearningCurve | None:
        """Return who has the turn: the first of a ranking, or of those that tie with it."""
        ranked = iter(ranked)
        first = next(ranked, None)
        if first is None or not self.tolerance or self._is_starting(first):
            return first
        least = self.bound(first) - self.tolerance
        tied = takewhile(lambda curve: self.bound(curve) >= least, ranked)
        return max((first, *tied), key=lambda curve: (curve.size, curve.score, -curve.learner))

    def _extend(self, chosen: LearningCurve, curves: Curves) -> Extend:
        """Return the next size of the learner that has the turn, and why it has it."""
        if self._is_starting(chosen):
            return self._start(chosen, curves)
        rival = self._rival(chosen, curves)
        to_beat = self._to_beat(rival, curves)
        size = self.steps(chosen, self.sizes, to_beat)
        merit = self._merit(chosen, rival, curves)
        leap = "" if size == next_size(self.sizes, chosen.size) else leap_of(chosen, size, to_beat)
        return Extend(chosen.learner, size, Reason(merit.sentence + leap, merit.scores))

    def _to_beat(self, rival: LearningCurve | None, curves: Curves) -> float:
        """Return the score that no other learner is believed to exceed."""
        if self._is_starting(next(curves.ranking(self._rank))):
            return math.inf  # somebody is still being started elsewhere, and may exceed any
        return self.bound(rival) - self.tolerance if rival else -math.inf

    def _start(self, chosen: LearningCurve, curves: Curves) -> Extend:
        """Return the next of the first sizes, or a larger one for a learner that is costly."""
        size = next(size for size in self._first_sizes if size > chosen.size)
        text = f"every learner is first trained on {len(self._first_sizes)} sizes"
        is_second = len(chosen.observations) == 1 and self.costly < math.inf
        if is_second and is_costly(chosen, curves.pooled(first_seconds), self.costly):
            following = [later for later in self.sizes if later >= size]
            size = nearest(following, AdaptiveStep.cost_factor * chosen.size)
            text = f"its first probe took over {self.costly:g} times the median, so that it leaps"
        return Extend(chosen.learner, size, Reason(text))

    def _merit(self, chosen: LearningCurve, rival: LearningCurve | None, curves: Curves) -> Reason:
        noun = self._noun
        if rival is None:
            is_alone = sum(1 for _ in islice(curves.ranking(self._rank), 2)) == 1
            others = "is left" if is_alone else f"has a {noun} yet"
            return Reason(f"{noun} {{0}}; no other learner {others}", (self.bound(chosen),))
        bounds = self.bound(chosen), self.bound(rival)
        if bounds[0] > bounds[1]:
            text = f"{noun} {{0}} is the {{largest}}; next is {{1}} of learner {rival.learner}"
        else:
            text = f"{noun} {{0}} comes next; learner {rival.learner} has {{1}}"
        return Reason(text, bounds)

    def _victory(self, winner: LearningCurve, curves: Curves) -> Reason:
        text = f"trained on all {winner.size:,} examples with score {{0}}"
        rival = self._rival(winner, curves)
        if rival is None:
            return Reason(text + "; no other learner is left", (winner.score,))
        text += f"; the {{largest}} other {self._noun} is {{1}} of learner {rival.learner}"
        return Reason(text, (winner.score, self.bound(rival)))

    def _rival(self, curve: LearningCurve, curves: Curves) -> LearningCurve | None:
        """Return the foremost other learner that has a bound to compare with."""
        others: Iterator[LearningCurve] = curves.ranking(self._rank)
        return next(
            (
                other
                for other in others
                if other.learner != curve.learner and not self._is_starting(other)
            ),
            None,
        )


@lru_cache(maxsize=64)
def _inflated(policy: DAUB, factor: float) -> DAUB:
    """Return the policy with inflated bounds: one value for each factor, with one ranking."""
    return replace(policy, upper_bound=policy._bounds.inflated(factor))
