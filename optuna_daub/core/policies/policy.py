"""`Policy`, the base class of all rules of allocation, and `Needs`, their requirements."""

from __future__ import annotations

from abc import ABC
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Reason
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.pool import Pool
from optuna_daub.core.prices import Prices
from optuna_daub.core.prices import Terms
from optuna_daub.core.prices import prices
from optuna_daub.core.prices import stops_of
from optuna_daub.core.prices import table_of
from optuna_daub.core.sizes import checked_sizes


@dataclass(frozen=True)
class Needs:
    """Requirements of a policy on reports and on the pool.

    >>> needs = Needs(n_validation=100_000, validation_factor=2)
    >>> needs.validation_size(1000), needs.validation_size(500_000)
    (2000, 100000)
    """

    training_scores: Literal["unused", "helpful", "required"] = "helpful"
    """Use of training scores, the scores on the examples trained on."""
    mean_of_examples: bool = False
    """True if scores must be means of values in [0, 1], larger is better. Validation scores are
    means over one validation set, training scores over all examples trained on."""
    n_validation: int | None = None
    """Number of examples of the full validation set. None if every training is scored on all."""
    validation_factor: int | None = None
    """Number of validation examples per training example; None for all of them."""
    closed_pool: bool = False
    """True if the number of learners must be known from the start."""

    def validation_size(self, training_size: int) -> int | None:
        """Return the number of validation examples to score a training on; None for all."""
        if self.n_validation is None or self.validation_factor is None:
            return None
        return min(self.validation_factor * training_size, self.n_validation)


@dataclass(frozen=True)
class Policy(ABC):
    """A rule that allocates training data: a pool in, a decision with its ranking out.

    A policy is a frozen value. Its answers depend only on the pool, so all workers decide alike.
    Only `decide` must be written; the other methods have defaults that suit most rules. Fields of
    a subclass follow `sizes`:

    >>> @dataclass(frozen=True)
    ... class Everything(Policy):
    ...     def decide(self, pool: Pool) -> Decision:
    ...         if pool.may_propose:
    ...             return Propose(self.sizes[-1], Reason("all are trained on everything"))
    ...         return Finish(self.leader(pool), Reason("all are trained"))
    >>> from optuna_daub.core import Finish, Propose
    >>> policy = Everything(sizes=(500, 1000, 2000))
    >>> policy.decide(Pool(to_come=1)).size, policy.leader(Pool()), policy.needs.closed_pool
    (2000, None, False)

    Raises:
        ValueError: if `sizes` are not at least three increasing whole numbers.
    """

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set (N)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes(self.sizes))

    @property
    def needs(self) -> Needs:
        """Requirements of the policy; by default training scores help and pools may be open."""
        return Needs()

    @abstractmethod
    def decide(self, pool: Pool) -> Decision:
        """Return the next decision; a free worker asks before each training.

        That worker carries out an `Extend`, or a `Propose`, whose new learner is then in the pool.
        A `Drop` is put into the pool before the next question.
        """

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        """Return the first training of a new learner; asked once its parameters are known.

        A `Drop` declines the learner: it costs nothing, and the next proposal replaces it. By
        default nothing is declined, and the size is that of the `Propose`.

        Args:
            pool: the pool with the new learner, which has no observation yet.
            learner: id of the new learner.
            size: size of the `Propose`.
        """
        del pool
        return Extend(learner, size, Reason(f"a new learner starts with {size:,}"))

    def forecasts(self, pool: Pool, size: int) -> Forecasts | None:
        """Return the forecast of every learner's score at `size`, which plots show.

        None, the default, if the rule has none.
        """
        del pool, size
        return None

    def worth(self, pool: Pool) -> NDArray[np.float64]:
        """Return each learner's value for the base sampler, in the order of ids.

        It is in units of the score, and the base sampler maximizes it. By default it is the mean
        forecast on all the data. Without forecasts it is the last score, minus infinity before
        the first.
        """
        forecasts = self.forecasts(pool, self.sizes[-1])
        if forecasts is None:
            return pool.once(table_of).score
        return np.asarray(forecasts.all.mean)

    @property
    def terms(self) -> Terms:
        """Sizes and models of `prices`; by default `Process` and measured seconds."""
        full = self.sizes[-1]
        return Terms(stops_of(self.sizes), Process(full), InSeconds(full))

    def prices(self, pool: Pool) -> Prices:
        """Return the price of every step of an open search (see `core.prices`).

        The default base sampler proposes the candidate of the largest price.

        Raises:
            ValueError: before any learner has a score.
        """
        return pool.once(prices, self.terms)

    def leader(self, pool: Pool) -> int | None:
        """Return the best learner so far; None before any score.

        By default it is the one with the best score at the largest size that any has reached,
        dropped ones left out.
        """
        begun = [c for c in pool.curves.values() if c.observations and not c.dropped]
        if not begun:
            return None
        return max(begun, key=lambda curve: (curve.size, curve.score, -curve.learner)).learner

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return the interval of the learner's score on all the data.

        By default it has no ends. Plots and records show it.
        """
        del pool, learner
        return Interval()

    def promise(self, pool: Pool, learner: int) -> str | None:
        """Return the promise for a learner as a sentence. By default there is none."""
        del pool, learner
        return None


def nothing_left(best: int, what: str, score: float) -> Reason:
    """Return the reason to end without an answer, if learners were ruled out.

    Args:
        best: best learner of those ruled out, which stay so.
        what: in what it is best, with `{0}` for the score.
        score: that score.
    """
    text = (
        "no learner is left: those not ruled out have failed or are infeasible; of those ruled "
        f"out, learner {best} has the {{largest}} {what}"
    )
    return Reason(text, (score,))
