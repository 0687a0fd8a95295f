"""The pruners: each names an allocation policy and asks it whether a run goes on."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Literal
from typing import TypeVar

import optuna
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from optuna_daub.core.bounds import clopper_pearson
from optuna_daub.core.bounds import hoeffding
from optuna_daub.core.bounds import massart
from optuna_daub.core.bounds.confidence import check_probe
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.policies.schedulers import round_robin
from optuna_daub.core.policies.schedulers import ucb
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
        full_size = self.policy.sizes[-1]
        if (trial.last_step or 0) > full_size:
            raise ValueError(
                f"The step of `trial.report` is the training size, at most {full_size:,} examples "
                f"here, but trial {trial.number} reported {trial.last_step:,}."
            )
        if run.learner is not None and is_done(ledger.curves[run.learner], full_size):
            return False  # nothing is left to be spared
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


class ABCPruner(AllocationPruner):
    """Allocate training data by confidence intervals (ABC), with a promise on the loss.

    With `DataAllocationSampler`, learners are trained on growing samples; one whose upper end is
    within `epsilon` of the largest lower end is dropped for good, and `scheduler` says which of
    the undecided ones goes on. The learner left is within `epsilon` of the best with probability
    1 - `delta`, where

    * the score is a mean over examples of values in [0, 1], larger is better, such as accuracy;
    * training and validation data come from one distribution;
    * a learner fits its own training sample at least as well as if trained on other data (the
      fitness condition), and more data do not hurt it.

    With n learners each interval fails with probability at most `delta` / n^2. Below some 10^5
    examples the intervals are too wide to save anything, and a learner that memorises its
    training data cannot be dropped before all others are pinned down: prefer `DAUBPruner` there.
    Every report needs `training_score` and `n_validation`, as `TrainingSizeObjective` gives them.

    The interval construction of ABC is claimed in US patent 12,223,407.

    Args:
        min_resource: smallest training size, in examples. Default from the paper.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1; 2 suits training times that
            grow linearly (`optuna_daub.core.step_for_growth`).
        epsilon: how far below the best the answer may be, in (0, 1). Default from the paper.
        delta: how often it may be farther, in (0, 1). The paper names no default.
        scheduler: "gradient_ci" (the paper's), "ucb" or "round_robin".
        interval: the inequality, "hoeffding" (the paper's), "massart" or "clopper_pearson"
            (narrower; 0/1 outcomes only).
        n_validation: number of examples of the full held-out set. Then probes may be scored on
            samples of it, and `TrainingSizeObjective` does so: 2,000 examples first, twice the
            training size later. None: every probe is scored on the full held-out set.
        refit: train the answer on all the data; False ends when it is identified.

    Raises:
        ValueError: where an argument breaks its rule.

    Reference: S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine
    Learning Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250

    >>> ABCPruner(max_resource=7000, n_validation=3000).policy.sizes
    (1000, 2000, 4000, 7000)
    """

    def __init__(
        self,
        *,
        min_resource: int = 1000,
        max_resource: int,
        reduction_factor: float = 2.0,
        epsilon: float = 0.01,
        delta: float = 0.05,
        scheduler: Literal["gradient_ci", "ucb", "round_robin"] = "gradient_ci",
        interval: Literal["hoeffding", "massart", "clopper_pearson"] = "hoeffding",
        n_validation: int | None = None,
        refit: bool = True,
    ) -> None:
        policy = ABC(
            geometric_sizes(min_resource, max_resource, reduction_factor),
            n_validation,
            epsilon,
            delta,
            _named("interval", interval, HALF_WIDTHS),
            _named("scheduler", scheduler, SCHEDULERS),
            refit,
        )
        super().__init__(policy)
        self._n_validation = n_validation

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Raise where an observation is not what a confidence interval can be computed of.

        Raises:
            ValueError: where a score is outside [0, 1], or the training score or the number of
                validation examples is missing.
        """
        if trial.study.direction == StudyDirection.MINIMIZE:
            raise ValueError(
                "ABCPruner needs scores in [0, 1] that are larger for better learners: create "
                'the study with `direction="maximize"`, and report 1 - error for an error rate.'
            )
        if math.isfinite(seen.score):
            where = f"trial {trial.number} at {seen.size:,} training examples"
            check_probe(seen, where, self._n_validation)


HALF_WIDTHS = {
    "hoeffding": hoeffding.half_width,
    "massart": massart.half_width,
    "clopper_pearson": clopper_pearson.half_width,
}
SCHEDULERS = {"gradient_ci": gradient_ci, "ucb": ucb, "round_robin": round_robin}

_Choice = TypeVar("_Choice")


def _named(argument: str, name: str, choices: Mapping[str, _Choice]) -> _Choice:
    """Return the choice of a name, the strings of the public edge."""
    if name not in choices:
        raise ValueError(f"`{argument}` must be one of {sorted(choices)}, but got {name!r}.")
    return choices[name]


def is_done(curve: LearningCurve, full_size: int) -> bool:
    """Return whether a learner was trained on all the data, with a score to show for it."""
    return curve.size == full_size and curve.observations[-1].is_finite


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
