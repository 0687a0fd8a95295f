"""Methods that choose a learner on known curves, ours and others.

A method gets a `Problem` and a seed and returns what it chose and what that cost.

Optuna's pruners are driven through a real study that looks scores up. The learners come in random
order, a trial that is not pruned ends on all the data, and the best of those is the answer. Trials
train only on the sizes at which the pruner looks, as a user who knows it would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import optuna
from optuna.pruners import BasePruner
from optuna.pruners import HyperbandPruner
from optuna.pruners import SuccessiveHalvingPruner

from benchmarks.replay_problems import Problem
from optuna_daub import DAUBPruner
from optuna_daub import core
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.policies.value_per_second import ValuePerSecond


FIRST = 1 / 48
"""First size of Optuna's pruners, as a share of N."""


@dataclass(frozen=True)
class Outcome:
    """The choice of a method, and its cost."""

    learner: int
    cost: float
    """In the problem's unit: seconds, or training examples."""
    scoring_cost: float = 0.0
    """Extra cost of training scores."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    choose: Callable[[Problem, int], Outcome]
    """Function that runs the method on a problem, for a seed."""
    is_random: bool = False
    """True if another seed may give another answer."""
    needs_n_validation: bool = False
    """True if it needs the number of validation examples."""

    def can_run(self, problem: Problem) -> bool:
        """Return whether the problem has what the method needs."""
        return not self.needs_n_validation or problem.n_validation is not None


def upwards(factor: int, problem: Problem) -> tuple[int, ...]:
    """Return sizes that grow by a factor from about N / 48, and N.

    Sizes are rounded up to known ones.
    """
    sizes, goal = problem.sizes, FIRST * problem.full_size
    due = min(sizes[:-2], key=lambda n: abs(math.log(n / goal)))
    chosen = []
    for size in sizes[:-1]:
        if size >= due:
            chosen.append(size)
            due *= factor
    return (*chosen, sizes[-1])


def exhausting(factor: int, problem: Problem) -> tuple[int, ...]:
    """Return N divided by powers of a factor, so the last round is at N.

    Few learners are left for it. So scikit-learn's `min_resources="exhaust"`.
    """
    n_rounds = max(3, 1 + math.floor(math.log(len(problem.curves), factor)))
    due = [problem.full_size / factor**i for i in reversed(range(n_rounds))]
    return tuple(sorted({min(n for n in problem.sizes if n >= size) for size in due}))


def training_everything(problem: Problem, seed: int) -> Outcome:
    """Train every learner on all the data and choose by validation score."""
    finished = [curve for curve in problem.curves if curve.size == problem.full_size]
    best = max(finished, key=lambda curve: (curve.score, -curve.learner))
    return Outcome(best.learner, problem.full_cost)


def oracle(problem: Problem, seed: int) -> Outcome:
    """Train only the best learner."""
    return Outcome(problem.best, problem.oracle_cost)


def follow(policy_for: Callable[[Problem], core.Policy], problem: Problem, seed: int) -> Outcome:
    """Follow a policy until it names its choice. Training scores cost if it uses them."""
    cost, scoring_cost = 0.0, 0.0
    policy = policy_for(problem)
    is_scored = policy.needs.training_scores != "unused"
    for decision in core.replay(policy, problem.curves):
        match decision:
            case core.Extend(learner, size):
                cost += problem.costs[learner, size]
                if is_scored:
                    scoring_cost += problem.scoring_costs.get((learner, size), 0.0)
            case core.Finish(int(learner)):
                return Outcome(learner, cost, scoring_cost)
    raise AssertionError(f"no learner of {problem.name} was chosen")


def value_per_second(problem: Problem) -> core.Policy:
    """Return the default rule. If seconds are unknown, its costs are examples."""
    return ValuePerSecond(problem.sizes, Joint(), cost=problem.unit)


def pruned_study(
    pruner_for: Callable[[int, int, int], BasePruner], factor: int, problem: Problem, seed: int
) -> Outcome:
    """Run an Optuna study over the learners in random order, with a pruner.

    The pruner is made from the first size, N and the factor. No size is trained on but those at
    which it looks.
    """
    sizes = upwards(factor, problem)
    curves = {curve.learner: curve for curve in problem.curves}
    cost = 0.0

    def objective(trial: optuna.Trial) -> float:
        nonlocal cost
        learner = trial.suggest_categorical("learner", list(curves))
        for size in sizes:
            cost += problem.costs[learner, size]
            seen = curves[learner].at(size)
            if seen is None:
                raise LookupError(f"learner {learner} cannot be trained on {size:,} examples")
            score = seen.score
            trial.report(score, size)
            if size < problem.full_size and trial.should_prune():
                raise optuna.TrialPruned
        return score

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"learner": list(curves)}, seed=seed),
        pruner=pruner_for(sizes[0], sizes[-1], factor),
        study_name=f"replay-{seed}",  # Hyperband assigns trials to brackets by the study's name
    )
    study.optimize(objective, n_trials=len(curves), catch=LookupError)
    return Outcome(study.best_params["learner"], cost)


def _halving(keep_one_in: int, problem: Problem) -> core.Policy:
    return core.SuccessiveHalving(exhausting(keep_one_in, problem), keep_one_in=keep_one_in)


METHODS: Mapping[str, Method] = {
    "training everything": Method(training_everything),
    "oracle": Method(oracle),
    "value per second (the default)": Method(partial(follow, value_per_second)),
    "DAUB, as in the paper": Method(
        partial(follow, lambda problem: DAUBPruner.paper(sizes=problem.sizes).policy)
    ),
    "ABC": Method(
        partial(follow, lambda problem: core.ABC(problem.sizes, problem.n_validation)),
        needs_n_validation=True,
    ),
    **{f"halving by 1/{k} to N": Method(partial(follow, partial(_halving, k))) for k in (2, 3, 4)},
    "Optuna SuccessiveHalvingPruner, from N / 48": Method(
        partial(pruned_study, lambda first, _, k: SuccessiveHalvingPruner(first, k), 4),
        is_random=True,
    ),
    "Optuna HyperbandPruner, from N / 48": Method(
        partial(pruned_study, HyperbandPruner, 3), is_random=True
    ),
}
"""The table of methods. Optuna's pruners have their default factors, 4 and 3."""
