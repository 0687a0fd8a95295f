"""A search that starts from earlier studies of other data, beside one that starts from nothing.

    OMP_NUM_THREADS=1 python benchmarks/earlier.py [--smoke] [--seeds 1] [--budget 30]

The earlier studies are searches on five tasks of the surrogate, as long as those that are judged,
on eight other tasks. Regret is the best score of many random points minus the best score of a
model trained on all the data, in points. Rows go to results/earlier.jsonl, the table to
results/earlier.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cache
from functools import partial
from statistics import mean
from statistics import stdev
from zlib import crc32

import optuna

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from benchmarks.search_methods import suggest
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import TASKS
from benchmarks.search_problems import Race
from benchmarks.search_space import OutOfBudgetError
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes


EARLIER = [f"ranger-{task}" for task in TASKS[:5]]
JUDGED = [f"ranger-{task}" for task in TASKS[5:13]]
MOMENTS = (1, 3, 10, 30)
"""Mean full trainings after which regret is looked at."""
METHODS = ("from nothing", "earlier")


def main(arguments: list[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--budget", type=float, default=30.0, help="in units")
    options = parser.parse_args(arguments)
    before, judged = EARLIER, JUDGED
    if options.smoke:
        before, judged, options.budget = ["made"], ["made"], 10.0
    judged = [name for name in judged if is_there(name, PROBLEMS[name].path)]
    runs = (
        Run(
            {"problem": name, "method": method, "seed": seed, "budget": options.budget},
            partial(measure, name, method, seed, options.budget, tuple(before)),
        )
        for seed in range(options.seeds)
        for name in judged
        for method in METHODS
    )
    results = results_of(options)
    rows = run_all(runs, results / "earlier.jsonl", options.time_limit)
    write_report(results / "earlier.md", rows, _report)


def measure(name: str, method: str, seed: int, budget: float, before: tuple[str, ...]) -> Row:
    """Search a problem, and return regret after some units of time."""
    earlier = _studies(before, seed, budget) if method == "earlier" else []
    one = searched(name, seed, budget, earlier)[0]
    unit, best = _reference(name)
    regret = [
        100 * (best - max([s for at, s, *_ in one.curve if at <= units * unit], default=0.0))
        for units in MOMENTS
        if units <= budget
    ]
    print(name, method, seed, [round(x, 2) for x in regret], flush=True)
    return {"regret": regret}


def searched(
    name: str, seed: int, budget: float, earlier: Sequence[optuna.Study]
) -> tuple[Race, optuna.Study]:
    """Search a problem for so many units; return the race and the study."""
    one = Race(PROBLEMS[name].open(seed), budget * _reference(name)[0])

    def objective(trial: optuna.Trial) -> float:
        config, score = suggest(one, trial), math.nan
        for size in training_sizes(trial):
            score, seconds = one.evaluate(config, size)
            report(trial, size, score, seconds=seconds)
        return score

    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(seed=crc32(f"{name}, {seed}".encode()), earlier=earlier),
        pruner=DAUBPruner(min_resource=one.smallest, max_resource=one.full),
    )
    try:
        study.optimize(objective)
    except OutOfBudgetError:
        pass
    return one, study


@cache
def _studies(names: tuple[str, ...], seed: int, budget: float) -> list[optuna.Study]:
    return [searched(name, 1000 + seed, budget, [])[1] for name in names]


@cache
def _reference(name: str) -> tuple[float, float]:
    found = PROBLEMS[name].open(0).reference()
    return found["unit"], found["best"]


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown: means, and the mean difference with its standard error."""
    by = {
        method: {(r["key"]["problem"], r["key"]["seed"]): r["regret"] for r in rows
                 if r["key"]["method"] == method}
        for method in METHODS
    }  # fmt: skip
    first, second = (by[method] for method in METHODS)
    pairs = [(first[key], second[key]) for key in first if key in second]
    gains = [[one - other for one, other in zip(*pair, strict=True)] for pair in pairs]
    lines = [[m, *(f"{mean(x):.2f}" for x in zip(*by[m].values(), strict=True))] for m in METHODS]
    spread = [
        stdev(x) / math.sqrt(len(x)) if len(x) > 1 else 0.0 for x in zip(*gains, strict=True)
    ]
    means = [mean(x) for x in zip(*gains, strict=True)]
    lines.append(["gain", *(f"{x:.2f} +- {s:.2f}" for x, s in zip(means, spread, strict=True))])
    yield f"### Regret in points, mean of {len(pairs)} pairs of searches, after units of time"
    yield table(["method", *map(str, MOMENTS[: len(means)])], lines)


if __name__ == "__main__":
    main()
