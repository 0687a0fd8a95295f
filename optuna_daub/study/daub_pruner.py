"""`DAUBPruner`: the default rule, value per second, and the DAUB paper's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from typing import NoReturn

from optuna_daub.core.checks import flag
from optuna_daub.core.checks import unnamed
from optuna_daub.core.checks import whole_number
from optuna_daub.core.forecasts.projection import Projection
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import default_min_resource
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.study.pruner import AllocationPruner


ORDER = "min_resource", "max_resource"
"""Keyword names of the first two arguments, for the error on positional ones."""


class DAUBPruner(AllocationPruner):
    """Train next the learner with the largest expected improvement for its cost.

    With `DataAllocationSampler`, the first learners are trained on a little data. From then on the
    expected improvement over the best full-data score, and the seconds that it costs, decide what
    is next: a suspended learner or a new one, and on how much data. Forecasts of scores use all
    learning curves of the study (`optuna_daub.core.ValuePerSecond`).

    With any other sampler, a trial is pruned for good when its upper bound is below a score that
    another trial has already reached (DAUB's Remark 1). This replaces
    `optuna.pruners.HyperbandPruner` if steps are numbers of training examples.

    `DAUBPruner.paper(...)` is the algorithm of the DAUB paper.

    Args:
        values: must be empty: pass all arguments by name.
        min_resource: smallest training size, in examples, at least 1. None (the default) is the
            paper's 500, or `max_resource / 8` if that is less, but at least 10 if three sizes
            still fit. The default rule starts at the size nearest to `max_resource / 16` in a
            closed pool, and to `max_resource / 64` in an open one; it uses no smaller one.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1. Default from the paper.
        sizes: an increasing list of at least three training sizes that ends with the whole
            training set, in place of the three arguments above.
        cost: "seconds" (the default) counts measured time; "examples" counts training sizes. With
            one worker, no `timeout` and the same versions of the libraries, the same seeds then
            give the same study on every machine.

    Raises:
        ValueError: if an argument breaks its rule, or there are not three sizes: `max_resource` <
            `min_resource * reduction_factor**2`, or `max_resource` < 3.

    Reference: A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via
    Incremental Data Allocation", AAAI 2016, Algorithm 1. https://arxiv.org/abs/1601.00024

    >>> DAUBPruner(max_resource=5000).policy.sizes
    (500, 750, 1125, 1688, 2532, 3798, 5000)
    >>> DAUBPruner(max_resource=300).policy.sizes
    (37, 56, 84, 126, 189, 284, 300)
    """

    def __init__(
        self,
        *values: NoReturn,
        min_resource: int | None = None,
        max_resource: int | None = None,
        reduction_factor: float = 1.5,
        sizes: Sequence[int] | None = None,
        cost: Literal["seconds", "examples"] = "seconds",
    ) -> None:
        unnamed("DAUBPruner", values, ORDER)
        grid = training_grid(min_resource, max_resource, reduction_factor, sizes)
        super().__init__(ValuePerSecond(grid, cost=cost))

    @classmethod
    def paper(
        cls,
        *values: NoReturn,
        min_resource: int = 500,
        max_resource: int | None = None,
        reduction_factor: float = 1.5,
        sizes: Sequence[int] | None = None,
        use_training_score: bool = True,
        tolerance: float = 0.0,
        stop: Literal["verified", "first"] = "verified",
    ) -> DAUBPruner:
        """Return the pruner of the DAUB paper.

        The learner with the largest bound is trained next. The bound is the smaller of two values:
        the training score, and the line through the last three validation scores, continued to N.
        It holds if returns diminish and the training score does not rise. The sampler needs
        `n_learners`. The study ends when the learner with the largest bound is fully trained;
        `stop="first"` ends it as the paper does, with the first learner that is fully trained.

        Args:
            values: must be empty: pass all arguments by name.
            min_resource: smallest training size, in examples; the paper's.
            max_resource: number of examples of the whole training set (N).
            reduction_factor: ratio of consecutive sizes. Default from the paper.
            sizes: a list of sizes in place of the three arguments above.
            use_training_score: False is the paper's "no f^T" variant.
            tolerance: distance from the largest bound up to which bounds count as ties.
            stop: "verified", or "first", the paper's stopping rule.

        >>> DAUBPruner.paper(max_resource=5000).policy.stop
        'verified'
        """
        unnamed("DAUBPruner.paper", values, ORDER)
        smallest = whole_number("min_resource", min_resource)  # only the default rule accepts None
        grid = training_grid(smallest, max_resource, reduction_factor, sizes)
        forecaster = Projection(flag("use_training_score", use_training_score))
        pruner = cls.__new__(cls)  # only the policy differs from the default
        AllocationPruner.__init__(pruner, DAUB(grid, forecaster, tolerance=tolerance, stop=stop))
        return pruner


def training_grid(
    min_resource: int | None,
    max_resource: int | None,
    reduction_factor: float,
    sizes: Sequence[int] | None,
) -> tuple[int, ...]:
    """Return the training sizes that the arguments of a pruner describe."""
    if sizes is not None:
        grid = checked_sizes(sizes)
        if max_resource is not None and grid[-1] != whole_number("max_resource", max_resource):
            raise ValueError(
                f"The last of `sizes` must be `max_resource`, but got {grid[-1]} and "
                f"{max_resource}. Give one of the two."
            )
        return grid
    if max_resource is None:
        raise ValueError(
            "`max_resource` (the number of training examples) or `sizes` must be given, but both "
            "are None."
        )
    if min_resource is None:
        min_resource = default_min_resource(max_resource, reduction_factor)
    return geometric_sizes(min_resource, max_resource, reduction_factor)
