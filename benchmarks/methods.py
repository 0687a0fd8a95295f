"""Methods that choose a learner on known curves: this package's policies, and what else there is.

A method gets a `Problem` and a seed and returns what it chose and what that cost. Optuna's own
pruners are driven through a real study whose objective looks scores up instead of training: the
learners come in random order, a trial that is not pruned ends on all the data, and the best of
those is the answer.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from typing import TypeAlias

import optuna
from optuna.pruners import BasePruner
from optuna.pruners import HyperbandPruner
from optuna.pruners import MedianPruner
from optuna.pruners import SuccessiveHalvingPruner

from benchmarks.fit_calibrated import fold_of
from benchmarks.problems import Problem
from benchmarks.rows import RESULTS
from optuna_daub.core import DAUB
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
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
TOLERANCE = 0.002
"""Difference of scores that a user of the tolerant variant does not care about."""


@dataclass(frozen=True)
class Outcome:
    """What a method chose and what that cost."""

    learner: int
    cost: float
    """In the problem's unit: seconds, or training examples."""
    probes: int
    """How many times a learner was trained."""


Choice: TypeAlias = Callable[[Problem, int], Outcome]
"""A method at work on a problem, for a seed."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    choose: Choice
    family: str
    """Methods of one family share a colour in the picture."""
    is_random: bool = False
    """Whether another seed may give another answer."""
    needs_n_validation: bool = False
    """Whether it cannot run where the number of validation examples is unknown."""

    def can_run(self, problem: Problem) -> bool:
        """Return whether the problem has what the method needs."""
        return not self.needs_n_validation or problem.n_validation is not None


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


def follow(policy_for: Callable[[Problem], Policy], problem: Problem, seed: int) -> Outcome:
    """Follow a policy until it names its choice."""
    cost, probes = 0.0, 0
    for decision in replay(policy_for(problem), problem.curves):
        match decision:
            case Extend(learner, size):
                cost += problem.costs[learner, size]
                probes += 1
            case Finish(int(learner)):
                return Outcome(learner, cost, probes)
    raise AssertionError(f"no learner of {problem.name} was chosen")


def study(
    pruner_for: Callable[[Problem], BasePruner],
    problem: Problem,
    seed: int,
    *,
    rung_factor: int | None = None,
) -> Outcome:
    """Run an Optuna study over the learners, in random order, under a pruner.

    Args:
        pruner_for: makes the pruner.
        problem: whose scores are looked up.
        seed: of the order.
        rung_factor: train only on the sizes where the pruner looks, the first times powers of
            this (rounded up to a size known), and on all the data; None trains on every size.
    """
    sizes = problem.sizes if rung_factor is None else _rungs(problem.sizes, rung_factor)
    curves = {curve.learner: curve for curve in problem.curves}
    paid: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        learner = trial.suggest_categorical("learner", list(curves))
        for size in sizes:
            paid.append(problem.costs[learner, size])
            score = _score(curves[learner], size)
            trial.report(score, size)
            if size < problem.full_size and trial.should_prune():
                raise optuna.TrialPruned
        return score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        trials = _optimized(objective, pruner_for(problem), list(curves), seed)
    return Outcome(trials.best_params["learner"], sum(paid), len(paid))


def _optimized(
    objective: Callable[[optuna.Trial], float], pruner: BasePruner, learners: list[int], seed: int
) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.GridSampler({"learner": learners}, seed=seed)
    name = f"replay-{seed}"  # Hyperband deals trials to brackets by the study's name
    result = optuna.create_study(
        direction="maximize", sampler=sampler, pruner=pruner, study_name=name
    )
    result.optimize(objective, n_trials=len(learners), catch=LookupError)
    return result


def _score(curve: LearningCurve, size: int) -> float:
    seen = curve.at(size)
    if seen is None:
        raise LookupError(f"learner {curve.learner} cannot be trained on {size:,} examples")
    return seen.score


def _rungs(sizes: tuple[int, ...], factor: int) -> tuple[int, ...]:
    """Return the first size at or above each power of the factor, and the full size."""
    rungs, due = [], sizes[0]
    for size in sizes[:-1]:
        if size >= due:
            rungs.append(size)
            due *= factor
    return (*rungs, sizes[-1])


def _daub(**options: Any) -> Method:
    return Method(partial(follow, lambda problem: DAUB(problem.sizes, **options)), "DAUB")


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
    return Method(partial(follow, partial(calibrated_daub, **options)), "calibrated")


def _abc(scheduler: Scheduler) -> Method:
    def policy(problem: Problem) -> Policy:
        assert problem.n_validation is not None
        return ABC(problem.sizes, problem.n_validation, scheduler=scheduler)

    return Method(partial(follow, policy), "ABC", needs_n_validation=True)


def _halving(keep_one_in: int) -> Method:
    policy = partial(SuccessiveHalving, keep_one_in=keep_one_in)
    return Method(partial(follow, lambda problem: policy(problem.sizes)), "halving")


def _optuna(pruner_for: Callable[[Problem], BasePruner], rung_factor: int | None = None) -> Method:
    choose = partial(study, pruner_for, rung_factor=rung_factor)
    return Method(choose, "Optuna", is_random=True)


def _optuna_halving(factor: int) -> Callable[[Problem], BasePruner]:
    return lambda problem: SuccessiveHalvingPruner(
        min_resource=problem.sizes[0], reduction_factor=factor
    )


def _hyperband(factor: int) -> Callable[[Problem], BasePruner]:
    return lambda problem: HyperbandPruner(
        min_resource=problem.sizes[0], max_resource=problem.full_size, reduction_factor=factor
    )


METHODS: Mapping[str, Method] = {
    "full training": Method(full_training, "bounds"),
    "oracle": Method(oracle, "bounds"),
    "floor": Method(floor, "bounds"),
    "DAUB, first to arrive (paper)": _daub(stop="first"),
    "DAUB": _daub(),
    "DAUB, tolerance 0.002": _daub(tolerance=TOLERANCE),
    "DAUB without training scores": _daub(use_training_score=False),
    "DAUB without training scores, tolerance 0.002": _daub(
        use_training_score=False, tolerance=TOLERANCE
    ),
    "DAUB, adaptive steps": Method(
        partial(follow, lambda problem: DAUB(problem.sizes, steps=AdaptiveStep())), "calibrated"
    ),
    "calibrated": _calibrated(),
    "calibrated, price 0.003": _calibrated(price=0.003),
    "calibrated, price 0.01": _calibrated(price=0.01),
    "calibrated, price 0.02": _calibrated(price=0.02),
    "calibrated, price 0.05": _calibrated(price=0.05),
    "calibrated, no price": _calibrated(price=0.0),
    "calibrated, cost factor 2": _calibrated(steps=AdaptiveStep(2.0)),
    "calibrated, one size at a time": _calibrated(steps=one_size),
    "calibrated, costly learners start like all": _calibrated(costly=math.inf),
    "calibrated, the first three sizes first": _calibrated(first_three=True),
    "calibrated, without training scores": _calibrated(use_training_score=False),
    "calibrated, without ceiling": _calibrated(ceiling=math.inf),
    "ABC, gradient": _abc(gradient_ci),
    "ABC, ucb": _abc(ucb),
    "ABC, round robin": _abc(round_robin),
    "halving, keep 1/2": _halving(2),
    "halving, keep 1/3": _halving(3),
    "halving, keep 1/4": _halving(4),
    "Optuna halving 2, its rungs": _optuna(_optuna_halving(2), rung_factor=2),
    "Optuna halving 4, its rungs": _optuna(_optuna_halving(4), rung_factor=4),
    "Optuna halving 4, every size": _optuna(_optuna_halving(4)),
    "Optuna Hyperband 3, its rungs": _optuna(_hyperband(3), rung_factor=3),
    "Optuna Hyperband 3, every size": _optuna(_hyperband(3)),
    "Optuna median, every size": _optuna(lambda problem: MedianPruner()),
}
"""The table of methods; numbers after Optuna's pruners are reduction factors, 4 and 3 theirs."""
