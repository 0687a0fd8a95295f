"""Temporary stand-in: three newcomers, then the best of those not at N goes there, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field
from typing import Literal

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.policy import Needs
from optuna_daub.core.pool import Pool


@dataclass(frozen=True)
class ValuePerSecond:
    """Temporary."""

    sizes: tuple[int, ...]
    forecaster: Forecaster = field(default_factory=Joint)
    cost: Literal["seconds", "examples"] = "seconds"

    @property
    def needs(self) -> Needs:
        return Needs()

    def decide(self, pool: Pool) -> Decision:
        alive = [c for c in pool.curves.values() if not c.dropped]
        free = [c for c in alive if c.learner not in pool.busy]
        for c in free:
            if not c.observations:
                return Extend(c.learner, self.sizes[0], Reason("first"))
        full = [c for c in alive if c.size == self.sizes[-1]]
        if pool.may_propose and len(alive) < 3 * (len(full) + 1):
            return Propose(self.sizes[0], Reason("a newcomer"))
        rest = [c for c in free if c.size < self.sizes[-1]]
        if not rest:
            if not alive:
                return Finish(None, Reason("no learner is left"))
            if len(full) == len(alive):
                best = max(full, key=lambda c: (c.score, -c.learner))
                return Finish(best.learner, Reason("best of all"))
            return Wait(Reason("all are busy"))
        if (
            not pool.may_propose
            and full
            and max(c.score for c in full) >= max(c.score for c in rest)
        ):
            best = max(full, key=lambda c: (c.score, -c.learner))
            return Finish(best.learner, Reason("best with {0}", (best.score,)))
        best = max(rest, key=lambda c: (c.score, -c.learner))
        return Extend(best.learner, self.sizes[-1], Reason("best score {0}", (best.score,)))

    def explain(self, pool: Pool, learner: int) -> Reason:
        return Reason("another promises more")

    def promise(self, pool: Pool, learner: int) -> str | None:
        return None

    def leader(self, pool: Pool) -> int | None:
        seen = [c for c in pool.curves.values() if c.observations and not c.dropped]
        return max(seen, key=lambda c: (c.size, c.score, -c.learner)).learner if seen else None

    def interval(self, pool: Pool, learner: int) -> Interval:
        return Interval()
