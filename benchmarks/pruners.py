"""Optuna's own pruners on known curves, driven through a real study that looks scores up.

The learners come in random order, a trial that is not pruned ends on all the data, and the best of
those is the answer. Unless every size is asked for, trials train only on the rungs where the
pruner looks, as a user who knows it would.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import optuna
from optuna.pruners import BasePruner
from optuna.pruners import HyperbandPruner
from optuna.pruners import MedianPruner
from optuna.pruners import SuccessiveHalvingPruner

from benchmarks.outcome import Method
from benchmarks.outcome import Outcome
from benchmarks.problems import Problem
from benchmarks.rungs import Rungs
from benchmarks.rungs import upwards
from optuna_daub.core import LearningCurve


def halving(factor: int, *, every_size: bool = False, **start: bool) -> Method:
    """Return the SuccessiveHalvingPruner; `start` is where `upwards` begins."""
    rungs = partial(upwards, factor, **start)

    def pruner(problem: Problem) -> BasePruner:
        return SuccessiveHalvingPruner(min_resource=rungs(problem)[0], reduction_factor=factor)

    return _method(pruner, None if every_size else rungs)


def hyperband(factor: int, *, every_size: bool = False, **start: bool) -> Method:
    """Return the HyperbandPruner; `start` is where `upwards` begins."""
    rungs = partial(upwards, factor, **start)

    def pruner(problem: Problem) -> BasePruner:
        first, full = rungs(problem)[0], problem.full_size
        return HyperbandPruner(min_resource=first, max_resource=full, reduction_factor=factor)

    return _method(pruner, None if every_size else rungs)


def median() -> Method:
    """Return the MedianPruner, at every size."""
    return _method(lambda problem: MedianPruner())


def _method(pruner_for: Callable[[Problem], BasePruner], rungs: Rungs | None = None) -> Method:
    return Method(partial(_study, pruner_for, rungs=rungs), "Optuna", is_random=True)


def _study(
    pruner_for: Callable[[Problem], BasePruner],
    problem: Problem,
    seed: int,
    *,
    rungs: Rungs | None = None,
) -> Outcome:
    """Run an Optuna study over the learners, in random order, under a pruner.

    Args:
        pruner_for: makes the pruner.
        problem: whose scores are looked up.
        seed: of the order.
        rungs: the sizes where the pruner looks, and no other is trained on; None for every size.
    """
    sizes = problem.sizes if rungs is None else rungs(problem)
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
