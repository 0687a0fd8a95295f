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
from functools import cache
from functools import partial
from itertools import product
from zlib import crc32

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import TrialState

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from benchmarks.search_methods import quiet
from benchmarks.search_methods import suggest
from benchmarks.search_problems import MOST_TRAININGS
from benchmarks.search_problems import PERFECT
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import Problem
from benchmarks.search_problems import Race
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
PERCENT = 100.0


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
    runs = (
        Run(
            {"problem": name, "seed": seed, "workers": n, "units": options.units},
            partial(measured, name, seed, n, options.units),
        )
        for seed, name, n in product(range(options.seeds), names, (1, 2))
    )
    results = results_of(options)
    rows = run_all(runs, results / "two_workers.jsonl", options.time_limit)
    write_report(results / "two_workers.md", rows, _report)


def measured(name: str, seed: int, n_workers: int, units: float) -> Row:
    """Run so many workers on a problem; return the curve, in units and percentage points."""
    unit, best = _reference(name)
    mixed = crc32(f"{name}, {seed}".encode()) % 2**31  # as in search.py
    found, sizes = simulated(PROBLEMS[name].open(0), mixed, n_workers, units * unit)
    curve = [[when / unit, PERCENT * (best - score)] for when, score in found]
    return {"curve": curve, "none": PERCENT * best, "trainings": len(sizes)}


@cache
def _reference(name: str) -> tuple[float, float]:
    known = PROBLEMS[name].open(0).reference()
    return known["unit"], known["best"]


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
    cells: dict[tuple[str, int], dict[int, Row]] = {}
    for row in rows:
        cell = cells.setdefault((row["key"]["problem"], row["key"]["seed"]), {})
        cell[row["key"]["workers"]] = row
    pairs = [(cell[1], cell[2]) for cell in cells.values() if len(cell) == 2]
    if not pairs:
        return
    length = min(row["key"]["units"] for row in rows)
    moments = np.linspace(0.0, length, N_MOMENTS + 1)
    one, two = (
        np.mean([regrets(row, moments) for row in of], axis=0) for of in zip(*pairs, strict=True)
    )
    lines = []
    for units in sorted({length, *(point for point in CHECKPOINTS if point < length)}):
        place = np.searchsorted(moments, units)
        share = reached(two, one[place], moments) / units
        lines.append([f"{units:g} units", f"{one[place]:.2f}", f"{two[place]:.2f}"])
        lines[-1].append(f"{share:.2f}" if math.isfinite(share) else "never")
    yield f"{len(pairs)} cells."
    yield table(["after", "regret of one", "of two", "share of its seconds"], lines)


def regrets(row: Row, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the regret of a run at some moments; without a model the score counts as 0.

    >>> row = {"none": 90.0, "curve": [[1.0, 4.0], [3.0, 2.0], [4.0, 5.0]]}
    >>> regrets(row, np.array([0.5, 1.0, 2.0, 9.0])).tolist()
    [90.0, 4.0, 4.0, 2.0]
    """
    when = [moment for moment, _ in row["curve"]]
    best = np.minimum.accumulate([row["none"], *(regret for _, regret in row["curve"])])
    return np.asarray(best[np.searchsorted(when, moments, side="right")])


def reached(regret: NDArray[np.float64], goal: float, moments: NDArray[np.float64]) -> float:
    """Return the time at which a curve reaches its goal; infinite if it never does.

    >>> reached(np.array([9.0, 4.0, 4.0]), 4.0, np.arange(3.0))
    1.0
    """
    is_there = regret <= goal + ROUNDING
    return float(moments[is_there.argmax()]) if is_there.any() else math.inf


if __name__ == "__main__":
    quiet()
    main()
