"""DAUB's pruner: allocation by upper bounds."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Literal

import optuna
from optuna.trial import FrozenTrial

from optuna_daub.core.bounds.bound import Bound
from optuna_daub.core.bounds.calibrated import CalibratedBound
from optuna_daub.core.bounds.projection import ProjectedBound
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.core.steps import AdaptiveStep
from optuna_daub.core.steps import StepRule
from optuna_daub.core.steps import one_size
from optuna_daub.core.steps import sizes_near
from optuna_daub.study import keys
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.pruners import AllocationPruner
from optuna_daub.study.pruners import named


_logger = logging.getLogger(__name__)


FIRST_SHARE = 1 / 48
"""Of all the data: the first of the two sizes that calibrated bounds start from. Chosen by
`benchmarks/replay.py`."""

COSTLY = 6.0
"""With adaptive steps: times the median of first probes from which on a learner leaps at once.
Chosen by `benchmarks/replay.py`."""
BOUNDS = {"calibrated": CalibratedBound, "projection": ProjectedBound}
STEPS: Mapping[str, StepRule] = {"adaptive": AdaptiveStep(), "geometric": one_size}


class DAUBPruner(AllocationPruner):
    """Allocate training data by upper bounds on the full-data score (DAUB).

    With `DataAllocationSampler`, every learner is first trained on a few small sizes; then the
    learner that promises most gets its next size, and the others are suspended until it
    disappoints. The study ends when the leader is trained on all the data.

    With any other sampler, a trial is pruned for good when its upper bound is below a score that
    some other trial has already reached (Remark 1 of the paper): a drop-in replacement for
    `optuna.pruners.HyperbandPruner` where the step is the number of training examples.

    `bound="calibrated", step="adaptive"` is the default, which `benchmarks/README.md` gives the
    evidence for; `bound="projection", step="geometric"` is exactly the paper's algorithm:

    * The projection is the smaller of the training score and the line through the last three
      validation scores, at N. It bounds the score at N where returns diminish and the training
      score does not rise; nothing is promised elsewhere.
    * The calibrated bound adds to the last score what learners with such a curve gained on other
      data sets, so that it holds with probability `confidence` on curves like those it was
      measured on. Learners that are trained on audit their own earlier bounds; where these fail
      more often than stated, all bounds are widened.

    Args:
        min_resource: smallest training size, in examples, at least 1. Default from the paper.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1. Default from the paper.
        sizes: an explicit increasing list of at least three training sizes, the last of them the
            whole training set, in place of the three arguments above.
        use_training_score: use the training score too, where `optuna_daub.report` gave one ("no
            f^T" of the paper if False).
        tolerance: learners whose bound is within it of the largest count as ties, and the one
            with most data goes first; at least 0, in units of the score.
        stop: "verified" ends when the learner with the largest bound is fully trained, "first"
            (the paper's rule) when any learner is.
        bound: "calibrated" or "projection" (the paper's).
        step: "geometric" (the paper's) goes from size to size. "adaptive" goes on to N in
            nearly equal steps, each some 3.5 times as long by the learner's own measured times,
            and straight to N once its score is above what any other promises. A learner whose
            first probe took 6 times the median of all leaps from there.
        confidence: how often a calibrated bound holds, in (0, 1).
        price: score that you would give up to save one training on all the data, at least 0. A
            calibrated learner is ranked by its prospect: the score above which its next step is
            not worth its share of that price, in predicted seconds; 0 ranks by the bound itself.
            Default 0.03, chosen by `benchmarks/replay.py`; less is dearer and safer.
        ceiling: the best score there can be, for calibrated bounds; where scores are minimized,
            minus the smallest one, such as 0 for an error. Without it 1 for scores in [0, 1].
        first_sizes: the training sizes on which every learner starts, some of the ladder. Default:
            the first three with the projection; with calibrated bounds the two from the one
            nearest to a 48th of N on.

    Raises:
        ValueError: where an argument breaks its rule, among them `min_resource` *
            `reduction_factor`^2 > `max_resource`, or `price` or `ceiling` without a calibrated
            bound.

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
        bound: Literal["calibrated", "projection"] = "calibrated",
        step: Literal["adaptive", "geometric"] = "adaptive",
        confidence: float = 0.95,
        price: float | None = None,
        ceiling: float | None = None,
        first_sizes: Sequence[int] = (),
    ) -> None:
        ladder = training_ladder(min_resource, max_resource, reduction_factor, sizes)
        first = ladder[:MIN_SIZES]
        upper_bound: Bound = ProjectedBound(use_training_score)
        if named("bound", bound, BOUNDS) is CalibratedBound:
            price = CalibratedBound.price if price is None else price
            upper_bound = CalibratedBound(confidence, price, ceiling, use_training_score)
            first = sizes_near(ladder, FIRST_SHARE)
        elif price is not None or ceiling is not None:
            raise ValueError(
                "`price` and `ceiling` belong to calibrated bounds, but `bound` is "
                f'{bound!r}: leave them out, or take `bound="calibrated"`.'
            )
        first = tuple(first_sizes) or first
        steps = named("step", step, STEPS)
        costly = COSTLY if isinstance(steps, AdaptiveStep) else math.inf
        super().__init__(
            DAUB(ladder, use_training_score, tolerance, stop, upper_bound, steps, first, costly)
        )
        self._first_sizes = first
        self._needs_training_score = use_training_score

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Say once that training scores are missing; the bound does without them."""
        if self._needs_training_score and seen.training_score is None:
            self._needs_training_score = False
            _logger.warning(
                "No training score was reported, so bounds rest on validation scores alone: pass "
                "`training_score=` to `report`, or `use_training_score=False` to DAUBPruner."
            )

    def _prune_alone(self, ledger: Ledger, trial: FrozenTrial) -> bool:
        seen = [keys.read_observation(trial, size) for size in keys.own_sizes(trial)]
        curve = LearningCurve(trial.number).extended(*map(ledger.signed, seen))
        rival = ledger.best_score_but_for(trial.number)
        if len(curve.observations) < len(self._first_sizes) or curve.dropped or rival is None:
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
