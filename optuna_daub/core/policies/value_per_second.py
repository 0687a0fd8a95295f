"""Value per second, the default rule: take the step that promises most per second.

A step trains a suspended learner, or a new candidate, on some or all of the data. `core.prices`
gives the price of each step, and the step with the largest price is taken. So one quantity decides
which learner goes on, on how much data, and when to try a new one. Four cases need more:

* New algorithms and time limits change the price: see `core.prices`.
* Before the first full-data model there is no score to improve on: see `core.first_model`.
* If runs are limited instead of seconds (`n_trials`), steps cost more as fewer runs are left. The
  first full-data model is started by half of them, and the last run is on all the data.
* A closed pool ends by itself, when no step is worth a small price: see `closed_pool`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import named
from optuna_daub.core.checks import number
from optuna_daub.core.costs.cost_model import InExamples
from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Ranking
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.policies import closed_pool
from optuna_daub.core.policies.policy import Needs
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import NoProposer
from optuna_daub.core.pool import Pool
from optuna_daub.core.prices import Prices
from optuna_daub.core.prices import Terms
from optuna_daub.core.prices import leader_of
from optuna_daub.core.prices import stops_of
from optuna_daub.core.prices import table_of


@dataclass(frozen=True)
class ValuePerSecond(Policy):
    """The default rule: take the step with the largest expected improvement per second.

    >>> from optuna_daub.core import Cost, Curves, LearningCurve, Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((1000, 16000), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, score) for n, score in seen))
    >>> policy = ValuePerSecond(sizes=(1000, 2000, 4000, 8000, 16000), cost="examples")
    >>> curves = Curves([curve(0, 0.70, 0.74), curve(1, 0.73), curve(2, 0.60)])
    >>> policy.decide(Pool(curves, to_come=None, spent=Cost(19000, 0.0))).learner
    1
    """

    forecaster: Forecaster | None = None
    """Forecaster of the scores; None: `Process` in open pools, `Joint` in closed ones."""
    cost: Literal["seconds", "examples"] = "seconds"
    """Unit of costs: measured seconds, or training examples for the same decisions on every
    machine. With "examples" a `Process` must have `is_timed=False`."""
    price: float = closed_pool.PRICE
    """Smallest improvement that is worth a full training in closed pools, when half of the cost of
    training everything was spent. Its unit is the best score minus the median of the first scores.
    At least 0; with 0 all are trained on all the data."""

    def __post_init__(self) -> None:
        super().__post_init__()
        named("cost", self.cost, {"seconds": True, "examples": True})
        is_timed = isinstance(self.forecaster, Process) and self.forecaster.is_timed
        if self.cost == "examples" and is_timed:
            raise ValueError(
                'With `cost="examples"` decisions must not depend on seconds, but `forecaster` is '
                "a `Process` that learns from them: give it `is_timed=False`."
            )
        if not 0 <= number("price", self.price) < math.inf:
            raise ValueError(f"`price` must be at least 0 and finite, but got {self.price}.")

    @property
    def needs(self) -> Needs:
        """Requirements: validation scores; pools may be open."""
        return Needs(training_scores="unused")

    def decide(self, pool: Pool) -> Decision:
        """Return the next decision."""
        if pool.to_come is not None:
            forecaster, cost = self._forecaster(pool), self.terms.cost
            terms = closed_pool.ClosedTerms(self.sizes, forecaster, cost, self.price)
            return closed_pool.decide(pool, terms)
        table, stops = pool.once(table_of), stops_of(self.sizes)
        if not table.is_scored.any():
            # Before the first score all learners start small.
            waiting = np.flatnonzero(table.is_alive & pool.is_free)
            size = stops[-1] if pool.runs_left == 0 else stops[0]
            first = Reason(f"before any score is known, learners start with {size:,}")
            if len(waiting):
                return Extend(int(pool.curves.learners[waiting[0]]), size, first)
            return Propose(size, first)
        known = self.prices(pool)
        value, place, stop = known.learner
        new, _, start = known.candidate
        ranking = self._ranking(pool, known)
        # A price of 0 means no expected improvement; minus infinity means not allowed.
        if value > new or (value == new and value > 0.0):
            learner = int(pool.curves.learners[place])
            return Extend(learner, stops[stop], ranking.merit(learner), ranking)
        # The next proposal of another sampler may be cheaper than its earlier ones.
        if new >= 0.0 or not known.may_choose:
            # A learner whose worker died before it had parameters is as good as a new one.
            is_blank = pool.curves.columns(_is_blank)[:, 0] > 0.0
            blank = pool.curves.learners[is_blank & table.is_alive & pool.is_free]
            if len(blank):
                reason = Reason("it has no parameters yet, and a new learner would be next")
                return Extend(int(blank[0]), stops[start], reason, ranking)
            return Propose(stops[start], ranking.merit(None), ranking)
        if (table.is_alive & ~pool.is_free).any():
            return Wait(Reason("the learners being trained decide which goes on"))
        text = "no further training on all the data would be in time"
        if not (table.is_alive & (table.size < stops[-1])).any() and not len(known.candidates):
            text = "all points of the space are learners, trained on all the data or dropped"
        return Finish(self.leader(pool), Reason(text), ranking)

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        """Return a new learner's first training.

        It starts at the size of its largest price if no other learner has a larger one. Otherwise
        it starts small: it may be an enqueued one, which was not chosen for its price.

        Once there is a full-data model and another learner can be proposed, it is declined if its
        training on all the data may end too late, except the first learner of a new
        algorithm. It is declined too if a better learner would then end too late.
        """
        proposed = Extend(learner, size, Reason(f"a new learner starts with {size:,}"))
        if pool.to_come is not None or not pool.once(table_of).is_scored.any():
            return proposed
        known = self.prices(replace(pool, proposer=NoProposer()))  # no candidates are needed
        own = known.learners[np.searchsorted(pool.curves.learners, learner)]
        if own.max() >= 0.0:
            is_best = own.max() == known.learner[0]
            place = int((own if is_best else own >= 0.0).argmax())
            text = f"expected gain {own[place]:.2g} per {self._unit(pool)} there"
            return Extend(learner, stops_of(self.sizes)[place], Reason(text))
        if known.has_model and pool.left is not None and pool.runs_left != 0:
            is_late = own.max() == -math.inf
            text = "with all the data it may end too late"
            return Drop(learner, Reason(text if is_late else "a better one would end too late"))
        return proposed

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`."""
        return self._forecaster(pool).forecasts(pool, size)

    def worth(self, pool: Pool) -> NDArray[np.float64]:
        """Return each learner's forecast at N minus the cost of a training there.

        The cost is converted at the largest price, so a base sampler that maximises this proposes
        points that are good for their cost. In a closed pool, before the first full-data model,
        or with costs in examples, it is the forecast alone.
        """
        mean = np.asarray(self.forecasts(pool, self.sizes[-1]).all.mean)
        if pool.to_come is not None or not pool.once(table_of).is_scored.any():
            return mean
        known, cost = self.prices(pool), self.terms.cost
        if not known.has_model or not cost.is_in_seconds(pool):
            return mean  # in examples, all points cost the same
        seconds = cost.seconds(pool, self.sizes[-1:]).expected()[: len(mean), 0]
        return np.asarray(mean - max(known.value, 0.0) * seconds)

    def leader(self, pool: Pool) -> int | None:
        """Return the learner with the best full-data score; before any, with the best forecast."""
        return leader_of(pool, self._forecaster(pool), self.sizes[-1])

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return the 5 % and 95 % quantiles of the forecast at N."""
        if not pool.curves[learner].observations:
            return Interval()
        place = np.searchsorted(pool.curves.learners, learner)
        lower, upper = pool.once(self._ends)[:, place].tolist()
        return Interval(lower, upper)

    @property
    def terms(self) -> Terms:
        """Sizes and models of an open search."""
        full, is_timed = self.sizes[-1], self.cost == "seconds"
        forecaster = self.forecaster or Process(full, is_timed=is_timed)
        return Terms(
            stops_of(self.sizes), forecaster, InSeconds(full) if is_timed else InExamples()
        )

    def _forecaster(self, pool: Pool) -> Forecaster:
        if pool.to_come is None:
            return self.terms.forecaster
        return self.forecaster or Joint()

    def _ranking(self, pool: Pool, known: Prices) -> Ranking:
        """Return the ranking by price, the expected gain per second."""
        excluded = "with all the data it may end too late"
        if not known.has_model:
            excluded = "another learner is planned as the first on all the data"
        return Ranking(
            "expected gain",
            pool.curves.learners,
            known.learners.max(axis=1, initial=-math.inf),
            max(known.candidate[0], -math.inf if known.may_choose else 0.0),
            f"per {self._unit(pool)}",
            excluded,
        )

    def _unit(self, pool: Pool) -> Literal["second", "example"]:
        """Return the unit of costs: examples if no training was timed."""
        return "second" if self.terms.cost.is_in_seconds(pool) else "example"

    def _ends(self, pool: Pool) -> NDArray[np.float64]:
        """Return both ends of every learner's interval, shape (2, learners)."""
        forecast = self.forecasts(pool, self.sizes[-1]).all
        return np.stack([forecast.quantile(p) for p in (0.05, 0.95)])


def _is_blank(curve: LearningCurve) -> tuple[float]:
    return (float(not (curve.parameters or curve.observations or curve.errors)),)
