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
from typing import Any
from typing import TypeAlias

import optuna
from optuna.pruners import BasePruner
from optuna.pruners import HyperbandPruner
from optuna.pruners import SuccessiveHalvingPruner

from benchmarks.replay_problems import Problem
from optuna_daub import DAUBPruner
from optuna_daub.core import ABC
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Policy
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import replay
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.policies.value_per_second import ValuePerSecond


LATER_FIRST = 1 / 48
"""First size of Optuna's pruners in the variants that start later, as a share of N."""


@dataclass(frozen=True)
class Outcome:
    """The choice of a method, and its cost."""

    learner: int
    cost: float
    """In the problem's unit: seconds, or training examples."""
    probes: int
    """Number of trainings."""
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


Sizes: TypeAlias = Callable[[Problem], tuple[int, ...]]
"""Function from a problem to the sizes that a method trains on. The last is N."""


def upwards(factor: int, problem: Problem, *, from_share: float = 0.0) -> tuple[int, ...]:
    """Return the first size times powers of a factor, and N.

    Sizes are rounded up to known ones.

    Args:
        factor: above 1.
        problem: problem with the known sizes.
        from_share: first size as a share of N; the known size with the nearest ratio is taken.
    """
    sizes = problem.sizes
    goal = max(from_share * problem.full_size, 1.0)
    due = min(sizes[:-2], key=lambda n: abs(math.log(n / goal))) if from_share else sizes[0]
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
    return Outcome(best.learner, problem.full_cost, len(problem.curves))


def oracle(problem: Problem, seed: int) -> Outcome:
    """Train only the best learner."""
    return Outcome(problem.best, problem.oracle_cost, 1)


def follow(
    policy_for: Callable[[Problem], Policy],
    problem: Problem,
    seed: int,
    *,
    use_training_score: bool = True,
) -> Outcome:
    """Follow a policy until it names its choice.

    Args:
        policy_for: function from a problem to the policy.
        problem: problem with the curves.
        seed: ignored, since policies are not random.
        use_training_score: True if the policy uses training scores, at their cost.
    """
    cost, scoring_cost, probes = 0.0, 0.0, 0
    policy = policy_for(problem)
    is_scored = use_training_score and policy.needs.training_scores != "unused"
    for decision in replay(policy, problem.curves):
        match decision:
            case Extend(learner, size):
                cost += problem.costs[learner, size]
                if is_scored:
                    scoring_cost += problem.scoring_costs.get((learner, size), 0.0)
                probes += 1
            case Finish(int(learner)):
                return Outcome(learner, cost, probes, scoring_cost)
    raise AssertionError(f"no learner of {problem.name} was chosen")


def value_per_second(problem: Problem) -> Policy:
    """Return the default rule. If seconds are unknown, its costs are examples."""
    return ValuePerSecond(problem.sizes, Joint(), cost=problem.unit)


def pruned_study(
    pruner_for: Callable[[Problem, tuple[int, ...]], BasePruner],
    sizes_of: Sizes,
    problem: Problem,
    seed: int,
) -> Outcome:
    """Run an Optuna study over the learners in random order, with a pruner.

    Args:
        pruner_for: function from a problem and the sizes to the pruner.
        sizes_of: the sizes where the pruner looks; no other is trained on.
        problem: problem with the scores.
        seed: seed of the order.
    """
    sizes = sizes_of(problem)
    curves = {curve.learner: curve for curve in problem.curves}
    paid: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        learner = trial.suggest_categorical("learner", list(curves))
        for size in sizes:
            paid.append(problem.costs[learner, size])
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
        pruner=pruner_for(problem, sizes),
        study_name=f"replay-{seed}",  # Hyperband assigns trials to brackets by the study's name
    )
    study.optimize(objective, n_trials=len(curves), catch=LookupError)
    return Outcome(study.best_params["learner"], sum(paid), len(paid))


def _policy(policy_for: Callable[..., Policy], **options: Any) -> Method:
    """Return a method of ours. `options` are passed to `policy_for`."""
    used = options.get("use_training_score", True)
    return Method(partial(follow, partial(policy_for, **options), use_training_score=used))


def _daub(problem: Problem, **options: Any) -> Policy:
    return DAUBPruner.paper(sizes=problem.sizes, **options).policy


def _abc(problem: Problem) -> Policy:
    return ABC(problem.sizes, problem.n_validation)


def _halving(keep_one_in: int) -> Method:
    def policy(problem: Problem) -> Policy:
        return SuccessiveHalving(exhausting(keep_one_in, problem), keep_one_in=keep_one_in)

    return _policy(policy)


def _successive_halving(factor: int, from_share: float = 0.0) -> Method:
    def pruner(problem: Problem, sizes: tuple[int, ...]) -> BasePruner:
        return SuccessiveHalvingPruner(min_resource=sizes[0], reduction_factor=factor)

    return Method(
        partial(pruned_study, pruner, partial(upwards, factor, from_share=from_share)), True
    )


def _hyperband(factor: int, from_share: float = 0.0) -> Method:
    def pruner(problem: Problem, sizes: tuple[int, ...]) -> BasePruner:
        return HyperbandPruner(sizes[0], problem.full_size, factor)

    return Method(
        partial(pruned_study, pruner, partial(upwards, factor, from_share=from_share)), True
    )


DEFAULT = "value per second (the default)"

METHODS: Mapping[str, Method] = {
    "training everything": Method(training_everything),
    "oracle": Method(oracle),
    DEFAULT: _policy(value_per_second),
    "DAUB, as in the paper": _policy(_daub),
    "DAUB, as in the paper, first to arrive": _policy(_daub, stop="first"),
    "DAUB, as in the paper, no training scores": _policy(_daub, use_training_score=False),
    "ABC": Method(partial(follow, _abc), needs_n_validation=True),
    **{f"halving by 1/{k} to N": _halving(k) for k in (2, 3, 4)},
    "Optuna SuccessiveHalvingPruner": _successive_halving(4),
    "Optuna SuccessiveHalvingPruner, from N / 48": _successive_halving(4, from_share=LATER_FIRST),
    "Optuna HyperbandPruner": _hyperband(3),
    "Optuna HyperbandPruner, from N / 48": _hyperband(3, from_share=LATER_FIRST),
}
"""The table of methods. Optuna's pruners have their default factors, 4 and 3."""
