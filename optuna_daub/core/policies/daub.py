"""DAUB: data allocation using upper bounds.

Each learner is first trained on three sizes. Then the learner with the largest upper bound on its
full-data score gets its next size, until that learner is fully trained.

The bound is a quantile of a forecast, and a step rule chooses the next size. With `Projection`,
`next_of_grid` (the defaults) and `stop="first"` this is the algorithm of [1].

[1] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental
    Data Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import field
from typing import Literal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import named
from optuna_daub.core.checks import number
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Ranking
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.projection import Projection
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.policies.policy import Needs
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import size_list
from optuna_daub.core.steps import StepRule
from optuna_daub.core.steps import next_of_grid


@dataclass(frozen=True)
class DAUB(Policy):
    """DAUB: train the learner with the largest upper bound further ([1] Algorithm 1).

    Ties go to the learner with most data, then to the larger validation score, then to the lower
    id. They are common early on: all learners that memorise their training data have the bound 1.

    >>> from optuna_daub.core import Curves, Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((500, 750, 1125, 1688), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, s) for n, s in seen))
    >>> daub = DAUB(sizes=(500, 750, 1125, 1688))
    >>> pool = Pool(Curves([curve(0, 0.60, 0.65, 0.68), curve(1, 0.5, 0.5, 0.5)]))
    >>> decision = daub.decide(pool)
    >>> decision.learner, decision.size, str(decision.reason)
    (0, 1688, 'bound 0.750 is the largest; next is 0.500 of learner 1')
    """

    forecaster: Forecaster = field(default_factory=Projection)
    """Forecaster of the bounds; the default is the projection of [1]."""
    steps: StepRule = next_of_grid
    """Rule for a learner's next size; in [1] the next one of the grid."""
    first_sizes: tuple[int, ...] = ()
    """Sizes of every learner's first trainings; empty for the first three of [1]. The projection
    needs three at least."""
    tolerance: float = 0.0
    """Largest difference of tied bounds, at least 0, in units of the score."""
    stop: Literal["verified", "first"] = "verified"
    """"first" ends when any learner is fully trained ([1] Alg. 1, line 5). "verified" ends when
    that learner also has the largest bound, since the first one need not be the best."""
    confidence: float = 0.95
    """Probability that a bound should hold, in (0, 1); the projection ignores it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = self.sizes
        first_sizes = size_list("first_sizes", self.first_sizes)
        object.__setattr__(self, "first_sizes", first_sizes or sizes[:MIN_SIZES])
        if not number("tolerance", self.tolerance) >= 0:
            raise ValueError(f"`tolerance` must be at least 0, but got {self.tolerance}.")
        named("stop", self.stop, {"verified": True, "first": True})
        if self.first_sizes != tuple(size for size in sizes if size in self.first_sizes):
            raise ValueError(
                f"`first_sizes` must be some of the training sizes {sizes}, increasing, but got "
                f"{self.first_sizes}."
            )
        if len(self.first_sizes) < (least := self.forecaster.min_points):
            raise ValueError(
                f"`first_sizes` must be at least {least} sizes, since the bounds of "
                f"{type(self.forecaster).__name__} need as many scores, but got "
                f"{self.first_sizes}. Leave it out, or pass `forecaster=Joint()`."
            )
        if not 0 < number("confidence", self.confidence) < 1:
            raise ValueError(f"`confidence` must be in (0, 1), but got {self.confidence}.")

    @property
    def needs(self) -> Needs:
        """Requirements: a closed pool, since [1] starts with every learner. Training scores help
        if the forecaster uses them."""
        uses_them = self.forecaster.use_training_score
        return Needs("helpful" if uses_them else "unused", closed_pool=True)

    def decide(self, pool: Pool) -> Decision:
        """Return the next decision ([1] Alg. 1)."""
        table = pool.once(self._table)
        learners = pool.curves
        free = pool.is_free
        # [1] Alg. 1, lines 2-4: every learner gets its first sizes before any gets more.
        if (waiting := table.is_starting & free).any():
            return self._start(learners[int(table.learners[waiting.argmax()])])
        if pool.may_propose:
            return Propose(self.first_sizes[0], self._first())
        if not table.is_alive.any():
            return Finish(None, Reason("no learner is left"))
        ranked = table.is_alive & ~table.is_starting
        if not table.is_starting.any() and (winner := self._winner(table, ranked)) is not None:
            ranking = _ranking(table, ranked)
            reason = self._victory(table, ranking, winner)
            # With "first" it need not be the learner with the largest bound.
            told = None if self.stop == "first" else ranking
            return Finish(int(table.learners[winner]), reason, told)
        # [1] Alg. 1, line 6: the largest bound among learners that no worker trains.
        chosen = self._foremost(table, ranked & free)
        if chosen is None or table.size[chosen] >= self.sizes[-1]:
            return Wait(Reason("every learner that could still be the best is being trained"))
        ranking = _ranking(table, ranked)
        curve = learners[int(table.learners[chosen])]
        size = self.steps(curve, self.sizes)
        return Extend(curve.learner, size, ranking.merit(curve.learner), ranking)

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return the range up to the learner's bound; without ends before its first sizes."""
        table = pool.once(self._table)
        place = int(np.searchsorted(table.learners, learner))
        seen = len(pool.curves[learner].observations)
        if seen < len(self.first_sizes) and table.size[place] < self.sizes[-1]:
            return Interval()
        upper = float(table.bound[place])
        return Interval(upper=upper) if math.isfinite(upper) else Interval()

    def _table(self, pool: Pool) -> _Table:
        """Return the table of all learners."""
        full = self.sizes[-1]
        facts = pool.curves.columns(_facts)
        is_alive, size, score = facts[:, 0] == 0.0, facts[:, 1], facts[:, 2]
        forecast = self.forecaster.forecasts(pool, full).all
        bound = np.where(size >= full, score, forecast.quantile(self.confidence))
        is_starting = is_alive & (size < self.first_sizes[-1])
        return _Table(pool.curves.learners, is_alive, is_starting, size, score, bound)

    def _foremost(self, table: _Table, among: NDArray[np.bool_]) -> int | None:
        """Return the place of the learner that goes on: the best of those that tie."""
        if not among.any():
            return None
        tied = among & (table.bound >= table.bound[among].max() - self.tolerance)
        return _best(tied, table.size, table.score)

    def _winner(self, table: _Table, ranked: NDArray[np.bool_]) -> int | None:
        """Return the place of the fully trained learner that the stopping rule accepts."""
        is_full = ranked & (table.size >= self.sizes[-1])
        if self.stop == "first":
            return _best(is_full, table.score) if is_full.any() else None
        leader = self._foremost(table, ranked)
        return leader if leader is not None and is_full[leader] else None

    def _first(self) -> Reason:
        return Reason(f"every learner is first trained on {len(self.first_sizes)} sizes")

    def _start(self, curve: LearningCurve) -> Extend:
        size = next(size for size in self.first_sizes if size > curve.size)
        return Extend(curve.learner, size, self._first())

    def _victory(self, table: _Table, ranking: Ranking, winner: int) -> Reason:
        """Return the reason to end the study with the learner at a place."""
        score = float(table.score[winner])
        bound, other = ranking.rival(int(table.learners[winner]))
        text = f"trained on all {self.sizes[-1]:,} examples with score {{0}}"
        if not math.isfinite(bound):
            return Reason(text + "; no other learner is left", (score,))
        return Reason(f"{text}; the {{largest}} other bound is {{1}} of {other}", (score, bound))


class _Table(NamedTuple):
    """Data for decisions, arrays in the order of ids."""

    learners: NDArray[np.int64]
    is_alive: NDArray[np.bool_]
    is_starting: NDArray[np.bool_]
    """True for learners that are not dropped and lack some of their first sizes."""
    size: NDArray[np.float64]
    score: NDArray[np.float64]
    bound: NDArray[np.float64]
    """Upper bound of the score at N; the score itself for fully trained learners."""


def _ranking(table: _Table, ranked: NDArray[np.bool_]) -> Ranking:
    """Return the ranking by bound."""
    bounds = np.where(ranked, table.bound, -math.inf)
    return Ranking("bound", table.learners, bounds, excluded="it lacks some of its first sizes")


def _facts(curve: LearningCurve) -> tuple[float, float, float]:
    return float(bool(curve.dropped)), float(curve.size), curve.score


def _best(among: NDArray[np.bool_], *keys: NDArray[np.float64]) -> int:
    """Return the place with the largest keys, compared in order. Ties go to the lower id."""
    places = np.flatnonzero(among)
    for key in keys:
        values = key[places]
        places = places[values == values.max()]
    return int(places[0])
