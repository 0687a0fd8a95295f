"""Methods of the search benchmark: peers through their own interfaces, and ours.

A method is a function of a problem and a seed that calls `problem.evaluate` until the clock has
run out. Each has its defaults; where it can train on less than all the data, the training size is
its resource, and factors between sizes are its own. No method is told the best score or the unit.

A peer that cannot live beside current numpy, or that weighs gigabytes, has an environment of its
own in the cache folder, made when it is first used. It is run there by this very file and asks
for evaluations through pipes:

    python -m benchmarks.search_methods
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import venv
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from benchmarks.search_space import Config
from benchmarks.search_space import Evaluated
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Remote
from benchmarks.search_space import sizes


if TYPE_CHECKING:
    import optuna


CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optuna_daub_benchmarks"
"""Environments of peers that need their own."""


# --- Optuna ---


def suggest(problem: Evaluated, trial: optuna.Trial) -> Config:
    """Let a trial choose a point of the problem's space, as its documentation writes spaces.

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
        study_name=f"{problem.name}-{seed}",  # Hyperband deals trials to brackets by the name
    )


def _tpe(seed: int) -> optuna.samplers.BaseSampler:
    """Return TPE as its documentation recommends it for spaces with conditions.

    https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.TPESampler.html
    (`multivariate`, `group`).
    """
    import optuna

    return optuna.samplers.TPESampler(multivariate=True, group=True, seed=seed)


def _default_tpe(seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    return optuna.samplers.TPESampler(seed=seed)


def _gp(seed: int) -> optuna.samplers.BaseSampler:
    # https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.GPSampler.html
    import optuna

    return optuna.samplers.GPSampler(seed=seed)


def _cma_es(seed: int) -> optuna.samplers.BaseSampler:
    # Categories and conditional parameters are drawn at random, as documented:
    # https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.CmaEsSampler.html
    import optuna

    return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)


def _random(seed: int) -> optuna.samplers.BaseSampler:
    # https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.RandomSampler.html
    import optuna

    return optuna.samplers.RandomSampler(seed=seed)


def on_all_data(
    sampler: Callable[[int], optuna.samplers.BaseSampler], problem: Evaluated, seed: int
) -> None:
    """Run a sampler of Optuna that trains every proposal on all the data."""

    def objective(trial: optuna.Trial) -> float:
        return problem.evaluate(suggest(problem, trial), problem.full)[0]

    _study(problem, seed, sampler(seed)).optimize(objective)


def _pruned(
    pruner: optuna.pruners.BasePruner,
    steps: dict[int, int],
    is_average: bool,
    problem: Evaluated,
    seed: int,
) -> None:
    """Run TPE with a pruner that is told the score after each size.

    https://optuna.readthedocs.io/en/stable/tutorial/10_key_features/003_efficient_optimization_algorithms.html

    Args:
        pruner: one of Optuna's.
        steps: by training size, what the pruner counts in.
        is_average: whether a pruned trial ends with what it has reached instead of as pruned.
        problem: what to train.
        seed: of the sampler.
    """
    import optuna

    def objective(trial: optuna.Trial) -> float:
        config = suggest(problem, trial)
        for size, step in steps.items():
            score, _ = problem.evaluate(config, size)
            trial.report(score, step)
            if size < problem.full and trial.should_prune():
                if is_average:
                    break
                raise optuna.TrialPruned
        return score

    _study(problem, seed, _tpe(seed), pruner).optimize(objective)


def successive_halving(problem: Evaluated, seed: int) -> None:
    """Run TPE with SuccessiveHalvingPruner, factor 4 (its default), from the smallest size.

    https://optuna.readthedocs.io/en/stable/reference/generated/optuna.pruners.SuccessiveHalvingPruner.html
    A trial is trained where the pruner looks, at 1, 4 and 16 times the smallest size, and on all.
    """
    import optuna

    rungs = (problem.smallest * 4**k for k in range(30))
    found = [*takewhile(lambda size: size < problem.full, rungs), problem.full]
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=problem.smallest)
    _pruned(pruner, {size: size for size in found}, False, problem, seed)


def hyperband(problem: Evaluated, seed: int) -> None:
    """Run TPE with HyperbandPruner, factor 3 (its default).

    https://optuna.readthedocs.io/en/stable/reference/generated/optuna.pruners.HyperbandPruner.html
    Steps are counted in parts of N, so that N is a power of 3 of them and its brackets are whole.
    """
    import optuna

    steps = {size: 3**k for k, size in enumerate(sizes(problem, 3))}
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=steps[problem.full])
    _pruned(pruner, steps, False, problem, seed)


def wilcoxon(problem: Evaluated, seed: int) -> None:
    """Run TPE with WilcoxonPruner, training sizes as its problem instances.

    https://optuna.readthedocs.io/en/stable/reference/generated/optuna.pruners.WilcoxonPruner.html
    It compares two trials instance by instance and was made for folds or inputs; with one split,
    sizes are the only instances there are. A step of 1.5 gives it enough of them for its test to
    reject anything. As documented, a trial that it stops returns an estimate, here its last
    score, and is not pruned.
    """
    import optuna

    steps = {size: k for k, size in enumerate(sizes(problem, 1.5))}
    _pruned(optuna.pruners.WilcoxonPruner(), steps, True, problem, seed)


# --- Ours ---


def ours(
    sampler: Callable[[int], optuna.samplers.BaseSampler],
    settings: Config,
    problem: Evaluated,
    seed: int,
) -> None:
    """Run DataAllocationSampler and DAUBPruner as README.md does.

    Args:
        sampler: the base sampler.
        settings: of DataAllocationSampler; `seconds` is replaced by the budget.
        problem: what to train.
        seed: of the base sampler.
    """
    from optuna_daub import DataAllocationSampler
    from optuna_daub import DAUBPruner
    from optuna_daub import report
    from optuna_daub import training_sizes

    def objective(trial: optuna.Trial) -> float:
        config = suggest(problem, trial)
        for size in training_sizes(trial):
            score, seconds = problem.evaluate(config, size)
            report(trial, size, score, seconds=seconds)
        return score

    given = {k: problem.budget if k == "seconds" else v for k, v in settings.items()}
    pair = DataAllocationSampler(sampler(seed), **given)
    pruner = DAUBPruner(min_resource=problem.smallest, max_resource=problem.full)
    _study(problem, seed, pair, pruner).optimize(objective)


def pruner_alone(problem: Evaluated, seed: int) -> None:
    """Run DAUBPruner with TPE, as one would HyperbandPruner."""
    from optuna_daub import DAUBPruner
    from optuna_daub import report
    from optuna_daub import training_sizes

    def objective(trial: optuna.Trial) -> float:
        config = suggest(problem, trial)
        for size in training_sizes(trial):
            score, seconds = problem.evaluate(config, size)
            report(trial, size, score, seconds=seconds)
        return score

    pruner = DAUBPruner(min_resource=problem.smallest, max_resource=problem.full)
    _study(problem, seed, _tpe(seed), pruner).optimize(objective)


# --- All of them ---


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    run: Callable[[Evaluated, int], None]
    family: str
    """Methods of one family share a colour in the picture."""
    home: str = ""
    """The environment it is run in; empty for the one that the program runs in."""
    needs: tuple[str, ...] = ()
    """Modules that have to be importable."""
    is_for_rows_only: bool = False
    """Whether it trains by itself, so that it can run on real data only."""


HOMES: dict[str, tuple[str, ...]] = {
    "gp": ("torch==2.13.*", "optuna", "cmaes", "scikit-learn", "scipy"),
}
"""What pip is asked for, by environment: torch weighs a gigabyte."""

METHODS: dict[str, Method] = {
    "random": Method(partial(on_all_data, _random), "all data"),
    "TPE": Method(partial(on_all_data, _tpe), "all data"),
    "TPE, its defaults": Method(partial(on_all_data, _default_tpe), "all data"),
    "GP": Method(partial(on_all_data, _gp), "all data", home="gp"),
    "CMA-ES": Method(partial(on_all_data, _cma_es), "all data", needs=("cmaes",)),
    "TPE + Hyperband": Method(hyperband, "pruners"),
    "TPE + halving": Method(successive_halving, "pruners"),
    "TPE + Wilcoxon": Method(wilcoxon, "pruners"),
    "ours, 20 learners": Method(partial(ours, _tpe, {"n_learners": 20}), "ours, closed"),
    "ours, 60 learners": Method(partial(ours, _tpe, {"n_learners": 60}), "ours, closed"),
    "ours, pruner alone": Method(pruner_alone, "ours, closed"),
    "ours": Method(partial(ours, _tpe, {}), "ours"),
    "ours, seconds known": Method(partial(ours, _tpe, {"seconds": None}), "ours"),
    "ours, TPE's defaults": Method(partial(ours, _default_tpe, {}), "ours"),
    "ours, GP": Method(partial(ours, _gp, {}), "ours", home="gp"),
}
"""In the order of the tables."""


def environment(home: str) -> Path:
    """Return the Python of a peer's environment, which is made where it is not there yet."""
    folder = CACHE / home
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed"
    wanted = "\n".join(HOMES[home])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"Making {folder} for {', '.join(HOMES[home])}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *HOMES[home]], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python


def quiet() -> None:
    """Keep methods from talking while they search."""
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
