"""The pruners: each names an allocation policy and asks it whether a run goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.study import keys
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import synced_ledger_of


_logger = logging.getLogger(__name__)


class AllocationPruner(BasePruner):
    """Ends a run as soon as the policy gives the turn to another learner.

    Base class of the pruners here; with `DataAllocationSampler` it makes the pair.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def policy(self) -> Policy:
        """The rule that allocates the training data; a frozen value."""
        return self._policy

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether the turn passes to another learner; reads the storage, writes nothing."""
        ledger = synced_ledger_of(study)
        run = ledger.running.get(trial.number)
        if run is None:
            return self._prune_alone(ledger, trial)
        decision = ledger.decide(self.policy, trial.number)
        return not (isinstance(decision, Extend) and decision.learner == run.learner)

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Raise where an observation about to be stored lacks what the policy needs."""

    def _prune_alone(self, ledger: Ledger, trial: FrozenTrial) -> bool:
        raise ValueError(
            f"{type(self).__name__} needs DataAllocationSampler as the study's sampler: pass "
            "`sampler=DataAllocationSampler(n_learners=...)` to `optuna.create_study`."
        )


class DAUBPruner(AllocationPruner):
    """Allocate training data by upper bounds on the full-data score (DAUB).

    With `DataAllocationSampler`, every learner is first trained on three sizes; then the learner
    with the largest upper bound gets its next size, and the others are suspended until it
    disappoints. The study ends when the leader is trained on all the data.

    With any other sampler, a trial is pruned for good when its upper bound is below a score that
    some other trial has already reached (Remark 1 of the paper): a drop-in replacement for
    `optuna.pruners.HyperbandPruner` where the step is the number of training examples.

    The bound is the smaller of the training score (where `optuna_daub.report` gave one) and the
    projection of the last three validation scores to the full size.

    Args:
        min_resource: smallest training size, in examples, at least 1. Default from the paper.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1. Default from the paper.
        sizes: an explicit increasing list of at least three training sizes, the last of them the
            whole training set, in place of the three arguments above.
        use_training_score: bound by the training score too ("no f^T" of the paper if False).
        tolerance: learners whose bound is within it of the largest count as ties, and the one
            with most data goes first; at least 0, in units of the score.
        stop: "verified" ends when the learner with the largest bound is fully trained, "first"
            (the paper's rule) when any learner is.

    Raises:
        ValueError: where an argument breaks its rule, among them `min_resource` *
            `reduction_factor`^2 > `max_resource`.

    Reference: A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via
    Incremental Data Allocation", AAAI 2016, Algorithm 1. https://arxiv.org/abs/1601.00024

    >>> DAUBPruner(max_resource=5000).policy.sizes
    (500, 750, 1125, 1688, 2532, 3798, 5000)
    """

    def __init__(
        self,
        *,
        min_resource: int = 500,
        max_resource: int | None = None,
        reduction_factor: float = 1.5,
        sizes: Sequence[int] | None = None,
        use_training_score: bool = True,
        tolerance: float = 0.0,
        stop: Literal["verified", "first"] = "verified",
    ) -> None:
        ladder = training_ladder(min_resource, max_resource, reduction_factor, sizes)
        super().__init__(DAUB(ladder, use_training_score, tolerance, stop))
        self._needs_training_score = use_training_score

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Say once that training scores are missing; the bound does without them."""
        if self._needs_training_score and seen.training_score is None:
            self._needs_training_score = False
            _logger.warning(
                "No training score was reported, so bounds rest on the projection alone: pass "
                "`training_score=` to `report`, or `use_training_score=False` to DAUBPruner."
            )

    def _prune_alone(self, ledger: Ledger, trial: FrozenTrial) -> bool:
        seen = [keys.read_observation(trial, size) for size in keys.own_sizes(trial)]
        curve = LearningCurve(trial.number).extended(*map(ledger.signed, seen))
        rival = ledger.best_score_but_for(trial.number)
        if len(curve.observations) < MIN_SIZES or curve.dropped or rival is None:
            return False
        return self.policy.interval(curve, ledger.curves).upper < rival


def training_ladder(
    min_resource: int,
    max_resource: int | None,
    reduction_factor: float,
    sizes: Sequence[int] | None,
) -> tuple[int, ...]:
    """Return the training sizes that the arguments of a pruner describe."""
    if sizes is not None:
        ladder = checked_sizes(sizes)
        if max_resource is not None and ladder[-1] != max_resource:
            raise ValueError(
                f"The last of `sizes` must be `max_resource`, but got {ladder[-1]} and "
                f"{max_resource}. Give one of the two."
            )
        return ladder
    if max_resource is None:
        raise ValueError(
            "`max_resource` (the number of training examples) or `sizes` must be given."
        )
    return geometric_sizes(min_resource, max_resource, reduction_factor)
