"""DAUB's pruner: the default rule, value per second, and the paper's upper bounds."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Literal

from optuna_daub.core.checks import flag
from optuna_daub.core.checks import named
from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number
from optuna_daub.core.forecasts.audit import Audited
from optuna_daub.core.forecasts.calibrated import Calibrated
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.forecasts.projection import Projection
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.policy import Policy
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.core.steps import AdaptiveStep
from optuna_daub.core.steps import StepRule
from optuna_daub.core.steps import nearest
from optuna_daub.core.steps import next_of_grid
from optuna_daub.study.pruner import AllocationPruner


FIRST_SHARE = 1 / 48
"""Of all the data: the first of the two sizes that calibrated bounds start from. Chosen by
`benchmarks/replay.py`."""

STEPS: Mapping[str, StepRule] = {"adaptive": AdaptiveStep(), "geometric": next_of_grid}


class DAUBPruner(AllocationPruner):
    """Allocate training data to the learners that promise most.

    With `DataAllocationSampler`, every learner is first trained on a little data; the next seconds
    then go where they promise the largest improvement over the best full-data score: to a
    suspended learner, or to a new one. What learners gain with more data is learnt from every one
    that was trained on (`optuna_daub.core.ValuePerSecond`).

    With any other sampler, a trial is pruned for good when its upper bound is below a score that
    some other trial has already reached (DAUB's Remark 1): a drop-in replacement for
    `optuna.pruners.HyperbandPruner` where the step is the number of training examples.

    `DAUBPruner.paper(...)` is the algorithm of the DAUB paper, but that it ends only when the
    learner with the largest bound is fully trained; `stop="first"` ends as the paper does.

    Args:
        min_resource: smallest training size, in examples, at least 1. Default from the paper. The
            default rule starts at the size nearest to `max_resource / 16` in a closed pool, and
            to `max_resource / 64` in an open one.
        max_resource: number of examples of the whole training set (N).
        reduction_factor: ratio of consecutive sizes, greater than 1. Default from the paper.
        sizes: an explicit increasing list of at least three training sizes, the last of them the
            whole training set, in place of the three arguments above.
        use_training_score: with `bound`: use the training score too where one is reported. Default
            True; the default rule does without.
        cost: "seconds" (the default: time is what there is too little of) weighs what probes take;
            "examples", of the default rule only, weighs their sizes, and the same seeds then give
            the same study anywhere.
        bound: None for the default rule; "projection" (the paper's) or "calibrated" for DAUB's
            rule, by which the learner with the largest upper bound goes on. A calibrated bound
            adds to the last score what learners with such a curve gained on other data sets.
        step: with `bound`: "geometric" (the paper's) goes from size to size; "adaptive" goes on
            to N in nearly equal steps of time. Default: "geometric" with the projection.
        tolerance: with `bound`: bounds within it of the largest count as ties, and the learner
            with most data goes first; at least 0, in units of the score. Default 0.
        stop: with `bound`: "verified" (the default) ends when the learner with the largest bound
            is fully trained, "first" (the paper's rule) when any learner is.
        confidence: with a calibrated bound: how often it holds, in (0, 1). Default 0.95.
        price: with a calibrated bound: score that you would give up to save one training on all
            the data, at least 0. Default 0.03, chosen by `benchmarks/replay.py`.
        ceiling: with a calibrated bound: the best score there can be; where scores are minimized,
            minus the smallest one. Default: 1 for scores in [0, 1].
        first_sizes: with `bound`: the sizes on which every learner starts, some of the grid.
            Default: the first three with the projection; two from N / 48 on where calibrated.

    Raises:
        ValueError: where an argument breaks its rule or belongs to another one, or there are not
            three sizes: `max_resource` < `min_resource * reduction_factor**2`.

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
        use_training_score: bool | None = None,
        cost: Literal["seconds", "examples"] = "seconds",
        bound: Literal["calibrated", "projection"] | None = None,
        step: Literal["adaptive", "geometric"] | None = None,
        tolerance: float | None = None,
        stop: Literal["verified", "first"] | None = None,
        confidence: float | None = None,
        price: float | None = None,
        ceiling: float | None = None,
        first_sizes: Sequence[int] | None = None,
    ) -> None:
        if use_training_score is not None:
            use_training_score = flag("use_training_score", use_training_score)
        grid = training_grid(min_resource, max_resource, reduction_factor, sizes)
        named("cost", cost, {"seconds": True, "examples": True})
        of_bound = {"step": step, "tolerance": tolerance, "stop": stop, "first_sizes": first_sizes}
        of_calibrated = {"confidence": confidence, "price": price, "ceiling": ceiling}
        if bound is None:
            _check_absent(of_bound, '`bound="projection"` or "calibrated"')
            _check_absent(of_calibrated, '`bound="calibrated"`')
            if use_training_score:
                _check_absent({"use_training_score": True}, '`bound="projection"` or "calibrated"')
            policy: Policy = ValuePerSecond(grid, Joint(), cost)
        else:
            if cost == "examples":
                raise ValueError(
                    '`cost` must be "seconds" where `bound` is given, but got '
                    f'`cost="examples"` with `bound={bound!r}`: leave one of the two out. The '
                    "projection from size to size looks at no times, whatever the cost."
                )
            use_training_score = use_training_score is not False
            given = {"tolerance": tolerance, "stop": stop, "first_sizes": first_sizes}
            options: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
            forecaster: Forecaster = Projection(use_training_score)
            if named("bound", bound, {"calibrated": True, "projection": False}):
                level = 0.95 if confidence is None else number("confidence", confidence)
                limit = None if ceiling is None else number("ceiling", ceiling)
                forecaster = Audited(Calibrated(use_training_score, limit), level)
                options["confidence"] = level
                options["price"] = 0.03 if price is None else number("price", price)
                options.setdefault("first_sizes", sizes_near(grid, FIRST_SHARE))
            else:
                _check_absent(of_calibrated, '`bound="calibrated"`')
            default = "geometric" if bound == "projection" else "adaptive"
            steps = named("step", default if step is None else step, STEPS)
            policy = DAUB(grid, forecaster, steps, **options)
        super().__init__(policy)

    @classmethod
    def paper(
        cls,
        *,
        min_resource: int = 500,
        max_resource: int | None = None,
        reduction_factor: float = 1.5,
        sizes: Sequence[int] | None = None,
        use_training_score: bool = True,
        tolerance: float = 0.0,
        stop: Literal["verified", "first"] = "verified",
    ) -> DAUBPruner:
        """Return the pruner of the DAUB paper: the projected bound, from size to size.

        The bound is the smaller of the training score and the line through the last three
        validation scores, at N. It holds where returns diminish and the training score does not
        rise. Needs `n_learners` of the sampler.

        Args:
            min_resource: as for `DAUBPruner`, like all the others.
            max_resource: number of examples of the whole training set (N).
            reduction_factor: ratio of consecutive sizes.
            sizes: an explicit list of sizes in place of the three arguments above.
            use_training_score: False is the paper's "no f^T" variant.
            tolerance: bounds within it of the largest count as ties.
            stop: "first" is the paper's stopping rule.

        >>> DAUBPruner.paper(max_resource=5000).policy.stop
        'verified'
        """
        return cls(
            min_resource=min_resource,
            max_resource=max_resource,
            reduction_factor=reduction_factor,
            sizes=sizes,
            use_training_score=use_training_score,
            bound="projection",
            step="geometric",
            tolerance=tolerance,
            stop=stop,
        )


def training_grid(
    min_resource: int,
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
    return geometric_sizes(min_resource, max_resource, reduction_factor)


def sizes_near(sizes: tuple[int, ...], share: float, count: int = 2) -> tuple[int, ...]:
    """Return `count` consecutive sizes, the first of them the nearest to `share` of the last.

    >>> sizes_near((500, 750, 1125, 1688, 2532, 3798, 5697, 38500), 1 / 48)
    (750, 1125)
    """
    first = min(sizes.index(nearest(sizes, share * sizes[-1])), len(sizes) - count - 1)
    return sizes[first : first + count]


def _check_absent(given: Mapping[str, Any], where: str) -> None:
    """Raise where an argument was given to a rule that does not know it."""
    strangers = {name: value for name, value in given.items() if value is not None}
    if strangers:
        name, value = next(iter(strangers.items()))
        raise ValueError(
            f"`{name}` belongs to {where}, but got `{name}={value!r}` without it: leave it out, "
            "or ask for that bound."
        )
