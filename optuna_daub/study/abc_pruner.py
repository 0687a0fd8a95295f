"""`ABCPruner`: allocation by confidence intervals."""

from __future__ import annotations

from typing import Literal
from typing import NoReturn

from optuna.trial import FrozenTrial

from optuna_daub.core.checks import named
from optuna_daub.core.checks import unnamed
from optuna_daub.core.intervals import clopper_pearson
from optuna_daub.core.intervals import empirical_bernstein
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.policies.schedulers import round_robin
from optuna_daub.core.policies.schedulers import ucb
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.worker import Worker


class ABCPruner(AllocationPruner):
    """Allocate training data by confidence intervals (ABC), with a promise on the loss.

    It works with `DataAllocationSampler`. Learners are trained on growing samples, and each has a
    confidence interval for its score on all the data. A learner is dropped for good if its
    interval's upper end is at most the largest lower end plus `epsilon`. `scheduler` chooses
    which other learner is trained next. The last learner left is within `epsilon` of the best with
    probability 1 - `delta` if

    * the score is a mean over examples of values in [0, 1], larger is better, such as accuracy
      without weights;
    * training and validation data come from one distribution;
    * a learner fits its own training sample at least as well as if trained on other data (the
      fitness condition), and more data do not hurt it.

    With n learners each interval fails with probability at most `delta` / n^2, as in the paper.
    This covers n trainings of each learner; with more sizes than learners divide `delta` by their
    ratio. Prefer `DAUBPruner`
    below some 10^5 examples, since there the intervals are too wide to save anything. A learner
    that memorises its training data is dropped last. Every report needs `training_score` and
    `n_validation`; `TrainingSizeObjective` gives both.

    The interval construction of ABC is claimed in US patent 12,223,407.

    Args:
        values: must be empty: pass all arguments by name.
        min_resource: smallest training size, in examples. Default from the paper.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1; 2 suits training times that
            grow linearly (`optuna_daub.core.step_for_growth`).
        epsilon: largest loss of score against the best learner, in (0, 1). Default from the paper.
        delta: probability of a larger loss, in (0, 1). The paper names no default.
        scheduler: "gradient_ci" (the paper's), "ucb" or "round_robin".
        interval: the inequality, "hoeffding" (the paper's), "massart", "clopper_pearson"
            (narrower; 0/1 outcomes only) or "empirical_bernstein" (narrower on large samples of
            scores near 0 or 1).
        n_validation: number of examples of the full held-out set, to score small trainings on a
            sample of it. `TrainingSizeObjective` does so: on twice as many as it trains on, at
            most on all. None: every training is scored on the full held-out set.
        refit: True trains the chosen learner on all the data; False ends the study when it is
            chosen.

    Raises:
        ValueError: if an argument breaks its rule.

    Reference: S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine
    Learning Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250

    >>> ABCPruner(max_resource=7000, n_validation=3000).policy.sizes
    (1000, 2000, 4000, 7000)
    """

    def __init__(
        self,
        *values: NoReturn,
        min_resource: int = 1000,
        max_resource: int | None = None,
        reduction_factor: float = 2.0,
        epsilon: float = 0.01,
        delta: float = 0.05,
        scheduler: Literal["gradient_ci", "ucb", "round_robin"] = "gradient_ci",
        interval: Literal[
            "hoeffding", "massart", "clopper_pearson", "empirical_bernstein"
        ] = "hoeffding",
        n_validation: int | None = None,
        refit: bool = True,
    ) -> None:
        unnamed("ABCPruner", values, ("min_resource", "max_resource"))
        if max_resource is None:
            raise ValueError(
                "`max_resource`, the number of training examples, must be given, but is None."
            )
        policy = ABC(
            geometric_sizes(min_resource, max_resource, reduction_factor),
            n_validation,
            epsilon,
            delta,
            named("interval", interval, HALF_WIDTHS),
            named("scheduler", scheduler, SCHEDULERS),
            refit,
        )
        super().__init__(policy)

    def _prune_alone(self, worker: Worker, trial: FrozenTrial) -> bool:
        """Raise a ValueError: without `DataAllocationSampler` there is no pool to compare in."""
        raise ValueError(
            f"{type(self).__name__} needs DataAllocationSampler as the study's sampler: pass "
            "`sampler=DataAllocationSampler(n_learners=...)` to `optuna.create_study`."
        )


HALF_WIDTHS = {
    "hoeffding": hoeffding.half_width,
    "massart": massart.half_width,
    "clopper_pearson": clopper_pearson.half_width,
    "empirical_bernstein": empirical_bernstein.half_width,
}
SCHEDULERS = {"gradient_ci": gradient_ci, "ucb": ucb, "round_robin": round_robin}
