"""Methods that choose a learner on known curves: this package's policies, and what else there is.

A method gets a `Problem` and a seed and returns what it chose and what that cost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks import pruners
from benchmarks.fit_calibrated import fold_of
from benchmarks.outcome import Method
from benchmarks.outcome import Outcome
from benchmarks.problems import Problem
from benchmarks.rows import RESULTS
from benchmarks.rungs import exhausting
from benchmarks.rungs import upwards
from optuna_daub.core import DAUB
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Policy
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import replay
from optuna_daub.core.bounds.calibrated import CalibratedBound
from optuna_daub.core.bounds.gains import parse_table
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.schedulers import Scheduler
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.policies.schedulers import round_robin
from optuna_daub.core.policies.schedulers import ucb
from optuna_daub.core.steps import AdaptiveStep
from optuna_daub.core.steps import StepRule
from optuna_daub.core.steps import one_size
from optuna_daub.core.steps import sizes_near
from optuna_daub.study.daub_pruner import COSTLY
from optuna_daub.study.daub_pruner import FIRST_SHARE


GAIN_TABLES = ("with_training_score", "without_training_score")
"""The coefficients of calibrated bounds that `fit_calibrated.py` writes."""

ADAPTIVE = AdaptiveStep()
KEPT = (2, 3, 4)
"""Synchronous halving keeps one learner in so many."""
TOLERANCE = 0.002
"""Difference of scores that a user of the tolerant variant does not care about."""


def full_training(problem: Problem, seed: int) -> Outcome:
    """Train every learner on all the data and choose by validation score."""
    finished = [curve for curve in problem.curves if curve.size == problem.full_size]
    best = max(finished, key=lambda curve: (curve.score, -curve.learner))
    return Outcome(best.learner, problem.full_cost, len(problem.curves))


def oracle(problem: Problem, seed: int) -> Outcome:
    """Train only the best learner."""
    return Outcome(problem.best, problem.oracle_cost, 1)


def floor(problem: Problem, seed: int) -> Outcome:
    """Train everyone on the first three sizes and, knowing the best, that one on all the data."""
    return Outcome(problem.best, problem.floor_cost, 3 * len(problem.curves) + 1)


def follow(
    policy_for: Callable[[Problem], Policy],
    problem: Problem,
    seed: int,
    *,
    use_training_score: bool = True,
) -> Outcome:
    """Follow a policy until it names its choice.

    Args:
        policy_for: makes the policy.
        problem: whose curves are shown.
        seed: of nothing: policies draw no lots.
        use_training_score: whether the policy needs training scores, at their cost.
    """
    cost, scoring_cost, probes = 0.0, 0.0, 0
    for decision in replay(policy_for(problem), problem.curves):
        match decision:
            case Extend(learner, size):
                cost += problem.costs[learner, size]
                if use_training_score:
                    scoring_cost += problem.scoring_costs.get((learner, size), 0.0)
                probes += 1
            case Finish(int(learner)):
                return Outcome(learner, cost, probes, scoring_cost)
    raise AssertionError(f"no learner of {problem.name} was chosen")


def _daub(**options: Any) -> Method:
    return _policy("DAUB", lambda problem: DAUB(problem.sizes, **options), **options)


def _policy(family: str, policy_for: Callable[[Problem], Policy], **options: Any) -> Method:
    used = options.get("use_training_score", True)
    return Method(partial(follow, policy_for, use_training_score=used), family)


def calibrated_daub(
    problem: Problem,
    *,
    price: float = CalibratedBound.price,
    use_training_score: bool = True,
    ceiling: float | None = None,
    first_three: bool = False,
    steps: StepRule = ADAPTIVE,
    costly: float = COSTLY,
) -> Policy:
    """Return DAUB with calibrated bounds, which were fitted without the problem's data set."""
    parts = _fold(problem.name)
    tables = [parse_table(parts[name]) for name in GAIN_TABLES] if parts else [None, None]
    return DAUB(
        problem.sizes,
        upper_bound=CalibratedBound(0.95, price, ceiling, use_training_score, 1.0, *tables),
        steps=steps,
        first_sizes=problem.sizes[:3] if first_three else sizes_near(problem.sizes, FIRST_SHARE),
        costly=costly,
    )


def _fold(name: str) -> Mapping[str, Any] | None:
    """Return the coefficients fitted without a data set of LCDB; None for other problems."""
    if not name.startswith("openml "):
        return None
    text = (RESULTS / "calibrated_folds.json").read_text(encoding="utf-8")
    folds: list[Mapping[str, Any]] = json.loads(text)
    return folds[int(fold_of(int(name.split()[1])))]


def _calibrated(**options: Any) -> Method:
    return _policy("calibrated", partial(calibrated_daub, **options), **options)


def _abc(scheduler: Scheduler) -> Method:
    def policy(problem: Problem) -> Policy:
        assert problem.n_validation is not None
        return ABC(problem.sizes, problem.n_validation, scheduler=scheduler)

    return Method(partial(follow, policy), "ABC", needs_n_validation=True)


def _halving(keep_one_in: int, rungs: Callable[[int, Problem], tuple[int, ...]]) -> Method:
    def policy(problem: Problem) -> Policy:
        return SuccessiveHalving(rungs(keep_one_in, problem), keep_one_in=keep_one_in)

    return _policy("halving", policy, use_training_score=False)


METHODS: Mapping[str, Method] = {
    "full training": Method(full_training, "bounds"),
    "oracle": Method(oracle, "bounds"),
    "floor": Method(floor, "bounds"),
    "DAUB, as in the paper, first to arrive": _daub(stop="first"),
    "DAUB, as in the paper": _daub(),
    "DAUB, as in the paper, tolerance 0.002": _daub(tolerance=TOLERANCE),
    "DAUB, as in the paper, without training scores": _daub(use_training_score=False),
    "DAUB, as in the paper, without training scores, tolerance 0.002": _daub(
        use_training_score=False, tolerance=TOLERANCE
    ),
    "DAUB, as in the paper, adaptive steps": _daub(steps=AdaptiveStep()),
    "DAUB, calibrated": _calibrated(),
    "DAUB, calibrated, price 0.003": _calibrated(price=0.003),
    "DAUB, calibrated, price 0.01": _calibrated(price=0.01),
    "DAUB, calibrated, price 0.02": _calibrated(price=0.02),
    "DAUB, calibrated, price 0.05": _calibrated(price=0.05),
    "DAUB, calibrated, no price": _calibrated(price=0.0),
    "DAUB, calibrated, cost factor 2": _calibrated(steps=AdaptiveStep(2.0)),
    "DAUB, calibrated, one size at a time": _calibrated(steps=one_size),
    "DAUB, calibrated, costly learners start like all": _calibrated(costly=math.inf),
    "DAUB, calibrated, the first three sizes first": _calibrated(first_three=True),
    "DAUB, calibrated, without training scores": _calibrated(use_training_score=False),
    "DAUB, calibrated, without ceiling": _calibrated(ceiling=math.inf),
    "ABC, gradient": _abc(gradient_ci),
    "ABC, ucb": _abc(ucb),
    "ABC, round robin": _abc(round_robin),
    **{f"halving, keep 1/{k}, smallest size first": _halving(k, upwards) for k in KEPT},
    **{f"halving, keep 1/{k}, last round at N": _halving(k, exhausting) for k in KEPT},
    "Optuna halving 2": pruners.halving(2),
    "Optuna halving 4": pruners.halving(4),
    "Optuna halving 4, our first size": pruners.halving(4, is_from_ours=True),
    "Optuna halving 4, every size": pruners.halving(4, every_size=True),
    "Optuna Hyperband 3": pruners.hyperband(3),
    "Optuna Hyperband 3, our first size": pruners.hyperband(3, is_from_ours=True),
    "Optuna Hyperband 3, every size": pruners.hyperband(3, every_size=True),
    "Optuna median, every size": pruners.median(),
}
"""The table of methods; numbers after Optuna's pruners are reduction factors, 4 and 3 theirs."""
