"""Policy: the questions that every rule of allocation answers, and what it needs to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from typing import Protocol
from typing import runtime_checkable

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Reason
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.pool import Pool


@dataclass(frozen=True)
class Needs:
    """What a policy must be told of every probe, and of the pool.

    >>> needs = Needs(n_validation=100_000, validation_factor=2)
    >>> needs.validation_size(1000), needs.validation_size(500_000)
    (2000, 100000)
    """

    training_scores: Literal["unused", "helpful", "required"] = "helpful"
    """Whether the score on the examples trained on is to be reported."""
    mean_of_examples: bool = False
    """Whether a score must be a mean over examples of values in [0, 1], larger is better, all
    measured on one validation set, and a training score one over all examples trained on."""
    n_validation: int | None = None
    """Number of examples of the full validation set; None where every probe is scored on all."""
    validation_factor: int | None = None
    """Validation examples per training example of a probe; None for all of them."""
    closed_pool: bool = False
    """Whether the number of learners must be known from the start."""

    def validation_size(self, training_size: int) -> int | None:
        """Return on how many validation examples to score a probe; None stands for all."""
        if self.n_validation is None or self.validation_factor is None:
            return None
        return min(self.validation_factor * training_size, self.n_validation)


class Policy(Protocol):
    """A rule that allocates training data: a pool in, a decision with its reason out.

    A policy is a frozen value. Its answers depend on nothing but the pool: a study that is
    reopened and a worker on another machine decide alike.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The training sizes, increasing; the last is the full training set."""

    @property
    def needs(self) -> Needs:
        """What the policy must be told."""

    def decide(self, pool: Pool) -> Decision:
        """Return what to do next; asked by a free worker before each probe.

        An `Extend` is carried out by that worker; so is a `Propose`, whose newcomer is then in
        the pool. A `Drop` is put into the pool before the next question.
        """

    def explain(self, pool: Pool, learner: int) -> Reason:
        """Return why a learner that is neither dropped nor fully trained gets no data now."""

    def promise(self, pool: Pool, learner: int) -> str | None:
        """Return what is guaranteed of a learner, or known of the forecasts; None for nothing."""

    def leader(self, pool: Pool) -> int | None:
        """Return the best learner as far as is known; None before any score."""

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return where the learner's score on the full training set is believed to lie."""


@runtime_checkable
class HasNetValues(Protocol):
    """A policy that also says what learners are worth to the search, their costs included."""

    def net_values(self, pool: Pool) -> NDArray[np.float64]:
        """Return each learner's forecast at N less what training it there costs.

        In units of the score, in the order of ids. A base sampler that maximises it proposes
        what is good for its cost.
        """


@runtime_checkable
class HasStart(Protocol):
    """A policy that decides where a newcomer starts once its parameters are known."""

    def start_of(self, pool: Pool, newcomer: int) -> Extend:
        """Return what a newcomer without any observation, and in the pool, is trained on first.

        The size for which it was proposed is for a learner of which nothing is known.
        """


@runtime_checkable
class MayDecline(Protocol):
    """A policy that may decline a newcomer once its parameters are known."""

    def declines(self, pool: Pool, newcomer: int) -> Reason | None:
        """Return why a newcomer without any observation is not to be trained; None where it is.

        Declined, it is no learner and costs nothing; the next proposal comes in its place.
        """
