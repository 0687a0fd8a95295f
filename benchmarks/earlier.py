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
from contextlib import suppress
from functools import cache
from functools import partial
from zlib import crc32

import numpy as np
import optuna

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
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


EARLIER = tuple(f"ranger-{task}" for task in TASKS[:5])
JUDGED = tuple(f"ranger-{task}" for task in TASKS[5:13])
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
        before, judged, options.budget = ("made",), ("made",), 10.0
    runs = (
        Run(
            {"problem": name, "method": method, "seed": seed, "budget": options.budget},
            partial(measure, name, seed, options.budget, before * (method == "earlier")),
        )
        for seed in range(options.seeds)
        for name in judged
        for method in METHODS
        if is_there(name, PROBLEMS[name].path)
    )
    results = results_of(options)
    rows = run_all(runs, results / "earlier.jsonl", options.time_limit)
    write_report(results / "earlier.md", rows, _report)


def measure(name: str, seed: int, budget: float, before: tuple[str, ...]) -> Row:
    """Search a problem after others, and return regret after some units of time."""
    one = searched(name, seed, budget, before)[0]
    unit, best = _reference(name)
    curve = [(at / unit, score) for at, score, *_ in one.curve]
    found = [max([s for at, s in curve if at <= m], default=0.0) for m in MOMENTS if m <= budget]
    return {"regret": [100 * (best - score) for score in found]}


@cache
def searched(
    name: str, seed: int, budget: float, before: tuple[str, ...] = ()
) -> tuple[Race, optuna.Study]:
    """Search a problem for so many units, after others; return the race and the study."""
    earlier = [searched(other, 1000 + seed, budget)[1] for other in before]
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
    with suppress(OutOfBudgetError):
        study.optimize(objective)
    return one, study


@cache
def _reference(name: str) -> tuple[float, float]:
    found = PROBLEMS[name].open(0).reference()
    return found["unit"], found["best"]


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown: means, and the mean gain with its standard error."""
    by = grouped(rows, "method")
    regrets = [np.array([row["regret"] for row in by[method]]) for method in METHODS]
    gain = regrets[0] - regrets[1]
    errors = gain.std(axis=0) / math.sqrt(max(len(gain) - 1, 1))
    lines = [
        [m, *(f"{x:.2f}" for x in r.mean(axis=0))] for m, r in zip(METHODS, regrets, strict=True)
    ]
    pairs = zip(gain.mean(axis=0), errors, strict=True)
    yield f"### Regret in points after units of time, means of {len(gain)} searches"
    yield table(
        ["", *map(str, MOMENTS[: len(errors)])],
        [*lines, ["gain", *(f"{x:.2f} +- {error:.2f}" for x, error in pairs)]],
    )


if __name__ == "__main__":
    main()
