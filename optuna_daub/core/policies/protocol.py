"""What every policy can be asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from optuna_daub.core.bounds.interval import Interval
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Reason


class Policy(Protocol):
    """A rule that allocates training data: learning curves in, a decision with a reason out.

    A policy is a frozen value. Its answers depend on nothing but the arguments: a study that is
    reopened and a worker on another machine decide alike.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The training sizes, increasing; the last is the full training set."""

    def validation_size(self, training_size: int) -> int | None:
        """Return on how many validation examples to score a probe; None stands for all."""

    def decide(self, curves: Curves, busy: Collection[int] = frozenset()) -> Decision:
        """Return what to do next.

        Called by whoever is free, before each probe. `busy` are the learners that others train
        at this moment; none of them is extended. A `Drop` is to be carried out, that is, put
        into `curves`, before the next call.
        """

    def interval(self, curve: LearningCurve, curves: Curves) -> Interval:
        """Return where the learner's score on the full training set is believed to lie."""

    def outranked(self, curve: LearningCurve, by: LearningCurve, curves: Curves) -> Reason:
        """Return why the turn passes from the learner of `curve` to that of `by`."""
