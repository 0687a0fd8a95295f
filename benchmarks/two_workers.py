"""The share of one worker's seconds in which two workers do as well.

    OMP_NUM_THREADS=1 python benchmarks/two_workers.py [--smoke] [--problems ranger-300 ...]
        [--seeds K] [--units U]

Workers ask and tell in the order of a clock that only training moves, so neither thinking nor a
loaded machine is measured. One worker does what `ours` does in search.py. A run is the curve "best
score of a model trained on all the data, against seconds". For the mean regret of one worker after
so many units, the table has the share of these after which that of two is no larger. A cell is a
problem and a seed. Rows go to results/two_workers.jsonl, the table to results/two_workers.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from itertools import product

import numpy as np
import optuna
from optuna.trial import TrialState

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import record
from benchmarks.rows import table
from benchmarks.search import mixed
from benchmarks.search_methods import quiet
from benchmarks.search_methods import suggest
from benchmarks.search_problems import MOST_TRAININGS
from benchmarks.search_problems import PERFECT
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import Problem
from benchmarks.search_problems import Race
from benchmarks.search_report import REFERENCE
from benchmarks.search_report import collect
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes


CHECKPOINTS = (3, 5, 10, 20, 30)
"""Units after which one worker's regret is taken."""
N_MOMENTS = 3000
"""Number of moments at which curves are compared."""
ROUNDING = 1e-9
"""Largest rounding error between sums of the same numbers, in percentage points."""
WORKERS = ("one worker", "two workers")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    surrogates = [name for name in PROBLEMS if name.startswith("ranger")]
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=["made", *surrogates])
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--units", type=float, default=30.0, help="length of a run")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.problems, options.seeds, options.units = ["made"], 1, 6.0
    asked = options.problems or surrogates
    names = [name for name in asked if is_there(name, PROBLEMS[name].path)] or ["made"]
    record("two_workers", _runs(names, options.seeds, options.units), options, _report)


def _runs(names: Sequence[str], seeds: int, units: float) -> Iterator[Run]:
    problems = {name: PROBLEMS[name].open(0) for name in names}
    known = {name: problem.reference() for name, problem in problems.items()}
    for name in names:
        yield Run({"problem": name, "method": REFERENCE}, partial(dict, known[name]))
    for seed, name in product(range(seeds), names):
        seconds = units * known[name]["unit"]
        for n, method in enumerate(WORKERS, start=1):
            key = {"problem": name, "method": method, "seed": seed, "budget": units}
            yield Run(key, partial(measured, problems[name], mixed(name, seed), n, seconds))


def measured(problem: Problem, seed: int, n_workers: int, seconds: float) -> Row:
    """Run so many workers on a problem; return the curve of the best model so far."""
    found, sizes = simulated(problem, seed, n_workers, seconds)
    best = accumulate((score for _, score in found), max)
    curve = [[when, score] for (when, _), score in zip(found, best, strict=True)]
    return {"curve": curve, "trainings": len(sizes)}


def simulated(
    problem: Problem, seed: int, n_workers: int, seconds: float
) -> tuple[list[tuple[float, float]], list[int]]:
    """Run a study for so many seconds of training by each worker.

    Returns seconds and score of each full-data model in the order of time, and all sizes.
    """
    study = optuna.create_study(
        study_name="two workers",
        direction="maximize",
        sampler=DataAllocationSampler(seed=seed),
        pruner=DAUBPruner(min_resource=problem.smallest, max_resource=problem.full),
    )
    workers = [_probes(study, problem) for _ in range(n_workers)]
    due = [(0.0, place) for place in range(n_workers)]
    curve: list[tuple[float, float]] = []
    sizes: list[int] = []
    while len(sizes) < MOST_TRAININGS and not any(score >= PERFECT for _, score in curve):
        now, place = heapq.heappop(due)
        if now >= seconds:
            break
        size, score, taken = next(workers[place])
        heapq.heappush(due, (now + taken, place))
        if now + taken <= seconds:
            sizes.append(size)
            if size == problem.full:
                curve.append((now + taken, score))
    return sorted(curve), sizes


def _probes(study: optuna.Study, problem: Problem) -> Iterator[tuple[int, float, float]]:
    """Work on a study: yield size, score and seconds of each probe as it starts.

    That it has ended is told, and what comes next is decided, when the next one is asked for.
    """
    while True:
        trial = study.ask()
        try:
            config = suggest(Race(problem, math.inf), trial)
            for size in training_sizes(trial):
                score, seconds = problem.train(config, size, math.inf)
                yield size, score, seconds
                report(trial, size, score, seconds=seconds)
            study.tell(trial, score)
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown, of cells that both have run."""
    for family, results in collect(rows, WORKERS).items():
        length = min(row["key"]["budget"] for row in rows if "budget" in row["key"])
        moments = np.linspace(0.0, length, N_MOMENTS + 1)
        one, two = np.transpose([results.regret(moment).mean(axis=0) for moment in moments])
        lines = []
        for units in sorted({length, *(point for point in CHECKPOINTS if point < length)}):
            place = np.searchsorted(moments, units)
            alike = moments[two <= one[place] + ROUNDING]
            lines.append([f"{units:g} units", f"{one[place]:.2f}", f"{two[place]:.2f}"])
            lines[-1].append(f"{alike[0] / units:.2f}" if len(alike) else "never")
        yield f"{family} units: {len(results.cells)} cells."
        yield table(["after", "regret of one", "of two", "share of its seconds"], lines)


if __name__ == "__main__":
    quiet()
    main()
