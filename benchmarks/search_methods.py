"""Methods of the search benchmark: peers through their own interfaces, and ours.

A method is a function of a problem and a seed that calls `problem.evaluate` until the clock has
run out. Each has its defaults, except TPE (see `_tpe`); where it can train on less than all the
data, the training size is its resource, and factors between sizes are its own. No method is told
the best score or the unit.

A peer that cannot live beside current numpy, or that weighs gigabytes, has an environment of its
own in the cache folder, made when it is first used. It is run there by this very file and asks
for evaluations through pipes:

    python -m benchmarks.search_methods
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from datetime import timezone
from functools import cache
from functools import partial
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal
from typing import TypeAlias
from unittest.mock import patch

from benchmarks.search_space import Config
from benchmarks.search_space import Evaluated
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Parameter
from benchmarks.search_space import Parts
from benchmarks.search_space import Remote
from benchmarks.search_space import active
from benchmarks.search_space import sizes


if TYPE_CHECKING:
    import optuna

    from benchmarks.search_problems import Race

    Sampler: TypeAlias = Callable[[int], optuna.samplers.BaseSampler]


MANY = 100_000
"""Number of evaluations for peers that ask for one. The clock ends runs long before."""


# --- Optuna ---


def suggest(problem: Evaluated, trial: optuna.Trial) -> Config:
    """Suggest a point of the problem's space, as Optuna's documentation does.

    https://optuna.readthedocs.io/en/stable/tutorial/10_key_features/002_configurations.html
    """
    config: dict[str, Any] = {}
    for one in problem.space:
        if not one.is_active(config):
            continue
        if one.choices:
            config[one.name] = trial.suggest_categorical(one.name, one.choices)
        elif one.is_int:
            low, high = int(one.low), int(one.high)
            config[one.name] = trial.suggest_int(one.name, low, high, log=one.is_log)
        else:
            config[one.name] = trial.suggest_float(one.name, one.low, one.high, log=one.is_log)
    return config


def _study(
    problem: Evaluated,
    seed: int,
    sampler: optuna.samplers.BaseSampler,
    pruner: optuna.pruners.BasePruner | None = None,
) -> optuna.Study:
    import optuna

    return optuna.create_study(
        direction="maximize",
        sampler=sampler,
        pruner=pruner or optuna.pruners.NopPruner(),
        study_name=f"{problem.name}-{seed}",  # Hyperband assigns trials to brackets by the name
    )


def _tpe(seed: int) -> optuna.samplers.BaseSampler:
    """Return TPE as its documentation recommends it for spaces with conditions.

    https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.TPESampler.html
    (`multivariate`, `group`).
    """
    import optuna

    return optuna.samplers.TPESampler(multivariate=True, group=True, seed=seed)


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """Return a sampler of Optuna with its defaults.

    https://optuna.readthedocs.io/en/stable/reference/samplers/index.html
    """
    import optuna

    made: optuna.samplers.BaseSampler = getattr(optuna.samplers, name)(seed=seed)
    return made


def on_all_data(sampler: Sampler, problem: Evaluated, seed: int) -> None:
    """Run a sampler of Optuna that trains every proposal on all the data."""

    def objective(trial: optuna.Trial) -> float:
        return problem.evaluate(suggest(problem, trial), problem.full)[0]

    _study(problem, seed, sampler(seed)).optimize(objective)


def _pruned(
    pruner: optuna.pruners.BasePruner, steps: dict[int, int], problem: Evaluated, seed: int
) -> None:
    """Run TPE with a pruner that is told the score after each size.

    https://optuna.readthedocs.io/en/stable/tutorial/10_key_features/003_efficient_optimization_algorithms.html
    """
    import optuna

    def objective(trial: optuna.Trial) -> float:
        config = suggest(problem, trial)
        for size, step in steps.items():
            score, _ = problem.evaluate(config, size)
            trial.report(score, step)
            if size < problem.full and trial.should_prune():
                raise optuna.TrialPruned
        return score

    _study(problem, seed, _tpe(seed), pruner).optimize(objective)


def successive_halving(problem: Evaluated, seed: int) -> None:
    """Run TPE with SuccessiveHalvingPruner, factor 4 (its default), from the smallest size.

    https://optuna.readthedocs.io/en/stable/reference/generated/optuna.pruners.SuccessiveHalvingPruner.html
    A trial is trained where the pruner looks, at 1, 4 and 16 times the smallest size, and on all.
    """
    import optuna

    grown = (problem.smallest * 4**k for k in range(30))
    found = [*takewhile(lambda size: size < problem.full, grown), problem.full]
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=problem.smallest)
    _pruned(pruner, {size: size for size in found}, problem, seed)


def hyperband(problem: Evaluated, seed: int) -> None:
    """Run TPE with HyperbandPruner, factor 3 (its default).

    https://optuna.readthedocs.io/en/stable/reference/generated/optuna.pruners.HyperbandPruner.html
    """
    import optuna

    parts = Parts.of(problem)
    steps = {size: 3**k for k, size in enumerate(sizes(problem, 3))}
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=parts.whole)
    _pruned(pruner, steps, problem, seed)


MOST_ON_SAMPLE = 1_800
"""Largest number of trainings on the sample; 200 on all rows are left (`MOST_TRAININGS`)."""


def one_sample(sampler: Sampler, share: float, problem: Evaluated, seed: int) -> None:
    """Tune on one sample for half the budget, then train the best on all.

    Users do so by hand, and arXiv 2307.15422 asks to compare every such method with it. `share` is
    that of the training rows. The best is trained on all first; the clock says how many are. As
    runs have a largest number of trainings, the sample has a largest number too.
    """
    size = max(problem.smallest, round(share * problem.full))
    spent, known = 0.0, dict[int, Config]()

    def objective(trial: optuna.Trial) -> float:
        nonlocal spent
        config = known[trial.number] = suggest(problem, trial)
        score, seconds = problem.evaluate(config, size)
        spent += seconds
        if spent >= problem.budget / 2 or len(known) == MOST_ON_SAMPLE:
            trial.study.stop()
        return score

    study = _study(problem, seed, sampler(seed))
    study.optimize(objective)
    for trial in sorted(study.trials, key=lambda trial: trial.values, reverse=True):
        problem.evaluate(known[trial.number], problem.full)


def floor(algorithm: str, problem: Evaluated, seed: int) -> None:
    """Train one classifier of real training on all the data, with its defaults."""
    problem.evaluate({"algorithm": algorithm}, problem.full)


# --- FLAML ---


def _domain(tune: Any, one: Parameter, beyond: int) -> Any:
    """Return a dimension in words that FLAML and Syne Tune share.

    `beyond` is 1 if the module excludes the upper end of integers, 0 if not.
    """
    if one.choices:
        return tune.choice([*one.choices])
    if one.is_int:
        draw = tune.lograndint if one.is_log else tune.randint
        return draw(int(one.low), int(one.high) + beyond)
    return (tune.loguniform if one.is_log else tune.uniform)(one.low, one.high)


def flaml_cfo(problem: Evaluated, seed: int) -> None:
    """Run CFO with the training size as resource and the clock as cost.

    https://microsoft.github.io/FLAML/docs/Use-Cases/Tune-User-Defined-Function ("Trial
    scheduling", `resource_attr`; with FLAML's own scheduler nothing is reported in between) and
    https://microsoft.github.io/FLAML/docs/FAQ ("About low_cost_partial_config in tune").
    The searcher is made beforehand, as tune.run documents, because only so it takes a seed.
    Conditions are left out: spaces with conditions are not documented (microsoft/FLAML#873), and
    fail with low-cost values inside (#717). Parameters that are not active have no effect.
    """
    import flaml

    def evaluate(config: dict[str, Any]) -> dict[str, float]:
        size = min(max(round(config["size"]), problem.smallest), problem.full)
        score, seconds = problem.evaluate(active(problem.space, config), size)
        return {"score": score, "seconds": seconds}

    cheap = {one.name: one.cheap for one in problem.space if one.cheap is not None}
    search = flaml.CFO(
        metric="score",
        mode="max",
        space={one.name: _domain(flaml.tune, one, 1) for one in problem.space},
        low_cost_partial_config=cheap,
        resource_attr="size",
        min_resource=problem.smallest,
        max_resource=problem.full,
        cost_attr="seconds",
        cost_budget=problem.budget,
        seed=seed,
    )
    flaml.tune.run(evaluate, search_alg=search, num_samples=-1, verbose=0)


def flaml_automl(problem: Race, seed: int) -> None:
    """Run FLAML's AutoML: its own learners, spaces, portfolio of starts and samples of rows.

    It is told the seconds, and sees the training and validation rows of the others. Its clock is
    made to show CPU seconds, since others use this machine; its thinking is on the clock, as the
    two can't be told apart.

    https://microsoft.github.io/FLAML/docs/Use-Cases/Task-Oriented-AutoML (`X_val`, "Optimization
    metric" for the function that scores, `retrain_full="budget"`, which trains the best on all
    rows before the time is up).
    """
    from flaml import AutoML

    from benchmarks.search_problems import accuracy

    training: Any = problem.problem
    data = training.data
    unseen = 0.0  # CPU seconds of scoring on test rows, which are not charged
    origin = time.process_time()

    def now() -> float:
        return time.process_time() - origin - unseen

    def note(model: Any, n_rows: int, score: float) -> None:
        nonlocal unseen
        training.model, seconds, begun = model, now() - problem.seconds, time.process_time()
        try:
            problem.note(score, min(n_rows, problem.full), seconds)
        except OutOfBudgetError:
            if now() >= problem.budget + problem.grace:
                raise
        finally:
            unseen += time.process_time() - begun
            problem.cpu = time.process_time() - origin

    def metric(X_val: Any, y_val: Any, model: Any, *given: Any, **_: Any) -> tuple[float, Any]:
        score = accuracy(model, X_val, y_val)
        note(model, len(given[2]), score)  # labels, X_train, y_train, ...
        return 1.0 - score, {}

    automl = AutoML()
    begun = time.time()
    with patch("time.time", lambda: begun + now()):
        automl.fit(
            data.X,
            data.y,
            X_val=data.X_valid,
            y_val=data.y_valid,
            task="classification",
            metric=metric,
            time_budget=problem.budget,
            retrain_full="budget",
            n_jobs=1,
            seed=seed,
            verbose=0,
        )
        if automl.model is not None:
            note(automl, problem.full, accuracy(automl, data.X_valid, data.y_valid))


# --- Syne Tune ---


def syne_tune(problem: Evaluated, seed: int) -> None:
    """Run ASHA with conformal quantile regression, training sizes as its resource, factor 3.

    https://syne-tune.readthedocs.io/en/latest/schedulers.html (`ASHACQR`), asked and told as its
    `Tuner` does with one worker. Spaces with conditions are not documented: it chooses all
    parameters, and those that are not active have no effect.
    """
    from syne_tune import config_space
    from syne_tune.backend.trial_status import Trial
    from syne_tune.optimizer.baselines import ASHACQR

    parts = Parts.of(problem)
    space = {one.name: _domain(config_space, one, 0) for one in problem.space}
    scheduler = ASHACQR(space, "score", "parts", parts.whole, do_minimize=False, random_seed=seed)
    for number in range(MANY):
        trial = Trial(number, scheduler.suggest().config, datetime.now(timezone.utc))
        scheduler.on_trial_add(trial)
        n_parts, decision = 1, "CONTINUE"
        while decision == "CONTINUE":  # it stops what has reached all parts
            config = active(problem.space, trial.config)
            score, _ = problem.evaluate(config, parts.size(n_parts))
            decision = scheduler.on_trial_result(trial, {"score": score, "parts": n_parts})
            n_parts *= 3
        scheduler.on_trial_remove(trial)


# --- SMAC ---


def _config_space(problem: Evaluated, seed: int) -> Any:
    """Return the space as ConfigSpace writes it.

    https://automl.github.io/ConfigSpace/latest/guide/
    """
    from ConfigSpace import Categorical
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace import Float
    from ConfigSpace import InCondition
    from ConfigSpace import Integer

    space = ConfigurationSpace(seed=seed)
    for one in problem.space:
        if one.choices:
            space.add(Categorical(one.name, [*one.choices]))
        elif one.is_int:
            space.add(Integer(one.name, (int(one.low), int(one.high)), log=one.is_log))
        else:
            space.add(Float(one.name, (one.low, one.high), log=one.is_log))
    for one in problem.space:
        if one.parent:
            space.add(InCondition(space[one.name], space[one.parent], [*one.values]))
    return space


def smac(problem: Evaluated, seed: int) -> None:
    """Run SMAC3's MultiFidelityFacade, training sizes as budgets.

    https://automl.github.io/SMAC3/latest/examples/2%20Multi-Fidelity%20and%20Multi-Instances/1_mlp_epochs/
    Its initial design of five configurations is that example's; what it may spend is left to the
    clock. Scores of a configuration do not depend on a seed.
    """
    from smac import MultiFidelityFacade
    from smac import Scenario

    def train(config: Any, seed: int = 0, budget: float = 0.0) -> float:
        config = active(problem.space, dict(config))
        return 1.0 - problem.evaluate(config, parts.size(budget))[0]

    parts = Parts.of(problem)

    with TemporaryDirectory() as folder:
        scenario = Scenario(
            _config_space(problem, seed),
            deterministic=True,
            n_trials=MANY,
            min_budget=1,
            max_budget=parts.whole,
            seed=seed,
            output_directory=Path(folder),
        )
        MultiFidelityFacade(
            scenario,
            train,
            initial_design=MultiFidelityFacade.get_initial_design(scenario, n_configs=5),
            logging_level=False,
            overwrite=True,
        ).optimize()


# --- Ours ---


def ours(
    sampler: Sampler | None,
    settings: Config,
    problem: Evaluated,
    seed: int,
    *,
    has_looks: bool = True,
    cost: Literal["seconds", "examples"] = "seconds",
) -> optuna.Study:
    """Run DataAllocationSampler and DAUBPruner as README.md does.

    Without a base sampler the model proposes. `seconds` among the settings is replaced by the
    budget. Without looks every training is on all the data; with "examples" as cost, the costs of
    parameters are ignored.
    """
    from optuna_daub import DataAllocationSampler
    from optuna_daub import DAUBPruner

    least, full = problem.smallest, problem.full
    where: dict[str, Any] = {"min_resource": least, "max_resource": full}
    if not has_looks:  # sizes as close to N as these are nothing to stop at
        where = {"sizes": (full - 2, full - 1, full)}
    pruner = DAUBPruner(**where, cost=cost)
    with ExitStack() as stack:
        given = dict(settings)
        if "seconds" in given:
            given["seconds"] = problem.budget
            stack.enter_context(_clock_of(problem))
        of_model = {"seed": seed} if sampler is None else {"base_sampler": sampler(seed)}
        pair = DataAllocationSampler(**of_model, **given)
        study = _study(problem, seed, pair, pruner)
        with suppress(OutOfBudgetError):
            study.optimize(_in_sizes(problem))
    return study


def _in_sizes(problem: Evaluated) -> Callable[[optuna.Trial], float]:
    """Return an objective that trains as README.md does."""
    from optuna_daub import report
    from optuna_daub import training_sizes

    def objective(trial: optuna.Trial) -> float:
        config = suggest(problem, trial)
        for size in training_sizes(trial):
            score, seconds = problem.evaluate(config, size)
            report(trial, size, score, seconds=seconds)
        return score

    return objective


EARLIER = 5
"""Number of earlier studies. Later tasks of the surrogate are judged."""


def after_earlier(problem: Race, seed: int) -> None:
    """Run ours after studies of the first tasks, each as long as this one and off its clock."""
    from benchmarks.search_problems import TASKS

    begun = time.process_time()
    tasks = [f"ranger-{task}" for task in TASKS[:EARLIER] if f"ranger-{task}" != problem.name]
    units = problem.budget / _unit(problem.name)
    names = ["made"] if problem.name == "made" else tasks
    before = [_earlier_study(name, 1000 + seed, units) for name in names]
    problem.cpu += time.process_time() - begun
    ours(None, {"earlier": before}, problem, seed)


@cache
def _unit(name: str) -> float:
    from benchmarks.search_problems import PROBLEMS

    return PROBLEMS[name].open(0).reference()["unit"]


@cache
def _earlier_study(name: str, seed: int, units: float) -> optuna.Study:
    from benchmarks.search_problems import PROBLEMS
    from benchmarks.search_problems import Race

    return ours(None, {}, Race(PROBLEMS[name].open(0), units * _unit(name)), seed)


@contextmanager
def _clock_of(problem: Evaluated) -> Iterator[None]:
    """Let the sampler's horizon be on the clock of the race."""
    race: Any = problem

    def seconds() -> float:
        return float(race.seconds)

    since = patch("optuna_daub.study.host.seconds_since_begin", lambda study: seconds())
    with patch("time.monotonic", seconds), since:
        yield


# --- All of them ---


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    run: Callable[[Any, int], object]
    """Function that runs the method on a problem, with a seed. The problem is a `Race`; in another
    environment it is a `Remote`."""
    home: str = ""
    """Name of the environment to run in; empty for the program's own."""
    is_for_rows_only: bool = False
    """True if it runs on real data only: it has learners of its own."""
    is_for_surrogates_only: bool = False
    """True if it searches other problems of the same space first."""


METHODS: dict[str, Method] = {
    "random": Method(partial(on_all_data, partial(_sampler, "RandomSampler"))),
    "TPE": Method(partial(on_all_data, _tpe)),
    "GP": Method(partial(on_all_data, partial(_sampler, "GPSampler")), home="gp"),
    "TPE + Hyperband": Method(hyperband),
    "TPE + halving": Method(successive_halving),
    "TPE, 1/10, then the best": Method(partial(one_sample, _tpe, 1 / 10)),
    "TPE, 1/16, then the best": Method(partial(one_sample, _tpe, 1 / 16)),
    "FLAML CFO": Method(flaml_cfo),
    "FLAML AutoML": Method(flaml_automl, is_for_rows_only=True),
    "FLAML zero-shot": Method(partial(floor, "zero-shot"), is_for_rows_only=True),
    "LightGBM's defaults": Method(partial(floor, "lightgbm"), is_for_rows_only=True),
    "SMAC": Method(smac, home="smac"),
    "Syne Tune ASHA, CQR": Method(syne_tune, home="syne-tune"),
    "ours": Method(partial(ours, None, {})),
    "ours, seconds known": Method(partial(ours, None, {"seconds": None})),
    "ours, earlier": Method(after_earlier, is_for_surrogates_only=True),
    "ours, TPE": Method(partial(ours, _tpe, {})),
    "ours, GP": Method(partial(ours, partial(_sampler, "GPSampler"), {}), home="gp"),
    "ours, no looks": Method(partial(ours, None, {}, has_looks=False)),
    "ours, no costs": Method(partial(ours, None, {}, cost="examples")),
}
"""All methods, in the order of the tables."""


def quiet() -> None:
    """Silence methods while they search."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def main() -> None:
    """Run the method that the first line on standard input asks for."""
    quiet()
    problem = Remote()
    try:
        METHODS[problem.method].run(problem, problem.seed)
    except OutOfBudgetError:
        sys.exit()
    except Exception as error:
        problem.finish(failed=f"{type(error).__name__}: {error}")
        raise
    problem.finish(end="")


if __name__ == "__main__":
    main()
