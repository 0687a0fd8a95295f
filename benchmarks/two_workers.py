"""Two workers on one study: in which share of one worker's seconds do they reach what it reaches?

    OMP_NUM_THREADS=1 python benchmarks/two_workers.py [--smoke] [--problems ranger-300 ...]
        [--seeds K] [--units U] [--ways simulated threads sqlite] [--seconds S]

One worker is compared with two in three ways:

* simulated: ask and tell, in the order of a clock that only training moves, so neither
  thinking nor a loaded machine is measured. One worker does what `ours` does in search.py;
* threads: `n_jobs=2`, whose objectives sleep the seconds that training takes, scaled such that
  the run takes `--seconds`;
* sqlite: two processes on one SQLite file, with such objectives.

A run is the curve "best score of a model trained on all the data, against seconds". For the mean
regret of one worker after so many units, the table has the share of these after which that of two
is no larger, with what 95 % of samples of as many cells show; a cell is a problem and a seed. The
median is that of the cells' own shares. Rows go to results/two_workers.jsonl, the table to
results/two_workers.md.
"""

from __future__ import annotations

import heapq
import math
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cache
from functools import partial
from itertools import product
from typing import Any
from typing import NamedTuple
from zlib import crc32

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import TrialState

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
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
from optuna_daub import allocations
from optuna_daub import report
from optuna_daub import training_sizes


WAYS = ("simulated", "threads", "sqlite")
CHECKPOINTS = (3, 5, 10, 20, 30)
"""Units after which one worker is looked at."""
NAME = "two workers"
"""Name of the study."""
IMPORT_SECONDS = 120.0
"""For which a process waits for the other."""
N_RESAMPLES, N_MOMENTS = 2000, 3000
"""Numbers of resamples of the cells, and of moments at which curves are compared."""
ROUNDING = 1e-9
"""Percentage points by which sums of the same numbers may differ."""
PERCENT = 100.0


class Found(NamedTuple):
    """The result of a study."""

    curve: list[tuple[float, float]]
    """Seconds and score of each full-data model, in the order of time."""
    sizes: list[int]
    """Sizes of all trainings."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    surrogates = [name for name in PROBLEMS if name.startswith("ranger")]
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=["made", *surrogates])
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--units", type=float, default=30.0, help="length of a run")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["simulated"])
    parser.add_argument("--seconds", type=float, default=60.0, help="of a run that sleeps")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.problems, options.seeds, options.units = ["made"], 1, 6.0
        options.ways, options.seconds = WAYS, 2.0
    asked = options.problems or surrogates
    names = [name for name in asked if is_there(name, PROBLEMS[name].path)] or ["made"]
    results = results_of(options)
    rows = run_all(_runs(options, names), results / "two_workers.jsonl", options.time_limit)
    write_report(results / "two_workers.md", rows, _report)


def _runs(options: Any, names: Sequence[str]) -> Iterator[Run]:
    """Yield for each seed, problem and way the run of one worker and that of two."""
    for seed, name, way, n in product(range(options.seeds), names, options.ways, (1, 2)):
        key = {"problem": name, "seed": seed, "way": way, "workers": n, "units": options.units}
        seconds = 0.0 if way == "simulated" else options.seconds
        key |= {"seconds": seconds}
        yield Run(key, partial(measured, name, seed, way, n, options.units, seconds))


def measured(name: str, seed: int, way: str, n_workers: int, units: float, seconds: float) -> Row:
    """Run so many workers on a problem; return the curve, in units and percentage points."""
    problem, reference = PROBLEMS[name].open(0), _reference(name)
    unit, best = reference["unit"], reference["best"]
    mixed = crc32(f"{name}, {seed}".encode()) % 2**31  # as in search.py
    if way == "simulated":
        found, scale = simulated(problem, mixed, n_workers, units * unit), 1.0
    else:
        scale = seconds / (units * unit)
        found = asleep(name, mixed, way, n_workers, scale, seconds)
    curve = [[when / scale / unit, PERCENT * (best - score)] for when, score in found.curve]
    trainings, full_trainings = len(found.sizes), found.sizes.count(problem.full)
    best_regret = min([regret for _, regret in curve], default=None)
    print(name, seed, way, n_workers, best_regret, trainings, full_trainings, flush=True)
    return {
        "curve": curve,
        "none": PERCENT * best,
        "trainings": trainings,
        "full_trainings": full_trainings,
    }


@cache
def _reference(name: str) -> dict[str, float]:
    return PROBLEMS[name].open(0).reference()


def opened(problem: Problem, seed: int, storage: Any = None) -> optuna.Study:
    """Return the study of a problem, as search.py makes it for `ours`."""
    base = optuna.samplers.TPESampler(multivariate=True, group=True, seed=seed)
    return optuna.create_study(
        study_name=NAME,
        storage=storage,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(base),
        pruner=DAUBPruner(min_resource=problem.smallest, max_resource=problem.full),
    )


# --- On a clock that only training moves ---


def simulated(problem: Problem, seed: int, n_workers: int, seconds: float) -> Found:
    """Run a study for so many seconds of training by each worker."""
    study = opened(problem, seed)
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
    return Found(sorted(curve), sizes)


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


# --- Asleep, on the clock on the wall ---


def asleep(name: str, seed: int, way: str, n_workers: int, scale: float, seconds: float) -> Found:
    """Run a study whose objectives sleep.

    Args:
        name: of the problem.
        seed: of the base sampler.
        way: threads, or processes on an SQLite file.
        n_workers: how many.
        scale: seconds of sleep for a second of training.
        seconds: length of the run.
    """
    problem = PROBLEMS[name].open(0)
    if way == "threads":
        study = opened(problem, seed)
        _work(study, problem, n_workers, scale, seconds)
        return _found(study)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        study = opened(problem, seed, url)
        fresh = multiprocessing.get_context("spawn")
        barrier = fresh.Barrier(n_workers)
        processes = [
            fresh.Process(target=_process, args=(name, seed + k, url, barrier, scale, seconds))
            for k in range(n_workers)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if codes := [process.exitcode for process in processes if process.exitcode]:
            raise ChildProcessError(f"A worker ended with {codes[0]}.")
        return _found(study)


def _process(name: str, seed: int, url: str, barrier: Any, scale: float, seconds: float) -> None:
    """Be one of the processes, all of which start at the same moment."""
    quiet()
    problem = PROBLEMS[name].open(0)
    study = opened(problem, seed, url)
    barrier.wait(IMPORT_SECONDS)
    _work(study, problem, 1, scale, seconds)


def _work(
    study: optuna.Study, problem: Problem, n_jobs: int, scale: float, seconds: float
) -> None:
    """Work on a study until the time is over, which the sampler is not told."""
    end = time.monotonic() + seconds

    def objective(trial: optuna.Trial) -> float:
        config = suggest(Race(problem, math.inf), trial)
        for size in training_sizes(trial):
            score, taken = problem.train(config, size, math.inf)
            time.sleep(max(0.0, min(scale * taken, end - time.monotonic())))
            if time.monotonic() >= end:
                study.stop()
                raise optuna.TrialPruned
            report(trial, size, score, seconds=taken)
        return score

    study.optimize(objective, n_jobs=n_jobs)


def _found(study: optuna.Study) -> Found:
    trials = study.get_trials(deepcopy=False)
    begun = min(trial.datetime_start for trial in trials if trial.datetime_start)
    curve = [
        ((trial.datetime_complete - begun).total_seconds(), trial.values[0])
        for trial in trials
        if trial.state == TrialState.COMPLETE and trial.datetime_complete
    ]
    return Found(sorted(curve), [one.observation.size for one in allocations(study)])


# --- The table ---


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield what runs were like and the table in Markdown, of cells that both have run."""
    lines = []
    for way, of_way in grouped(rows, "way").items():
        cells: dict[tuple[str, int], dict[int, Row]] = {}
        for row in of_way:
            cell = cells.setdefault((row["key"]["problem"], row["key"]["seed"]), {})
            cell[row["key"]["workers"]] = row
        pairs = [(cell[1], cell[2]) for cell in cells.values() if len(cell) == 2]
        if not pairs:
            continue
        for n_workers, of_these in enumerate(zip(*pairs, strict=True), start=1):
            made, full = (
                np.mean([row[name] for row in of_these])
                for name in ("trainings", "full_trainings")
            )
            text = f"{made:.0f} trainings, {full:.0f} of them on all the data"
            yield f"{way}, {n_workers} at work: {text}."
        length = min(row["key"]["units"] for row in of_way)
        moments = np.linspace(0.0, length, N_MOMENTS + 1)
        one, two = (
            np.array([regrets(row, moments) for row in of]) for of in zip(*pairs, strict=True)
        )
        n = len(pairs)
        drawn = np.random.default_rng(0).multinomial(n, [1 / n] * n, N_RESAMPLES) / n
        for units in sorted({length, *(point for point in CHECKPOINTS if point < length)}):
            goal = one[:, np.searchsorted(moments, units)]
            share = reached(two.mean(axis=0), goal.mean(), moments) / units
            ends = np.quantile(
                reached(drawn @ two, drawn @ goal, moments) / units,
                (0.025, 0.975),
                method="nearest",
            )
            median = np.quantile(reached(two, goal, moments) / units, 0.5, method="higher")
            low, high, middle, text = (
                f"{x:.2f}" if math.isfinite(x) else f"> {length / units:.2f}"
                for x in (*ends, median, float(share))
            )
            lines.append(
                [
                    f"{way}, {units:g} units",
                    f"{n}",
                    f"{goal.mean():.2f}",
                    f"{two[:, np.searchsorted(moments, units)].mean():.2f}",
                    f"{text} ({low} to {high})",
                    middle,
                ]
            )
    header = ("cells", "regret of one", "of two", "share of its seconds (95 %)", "median")
    yield table(["after", *header], lines)


def regrets(row: Row, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the regret of a run at some moments; without a model the score counts as 0.

    >>> row = {"none": 90.0, "curve": [[1.0, 4.0], [3.0, 2.0], [4.0, 5.0]]}
    >>> regrets(row, np.array([0.5, 1.0, 2.0, 9.0])).tolist()
    [90.0, 4.0, 4.0, 2.0]
    """
    when = [moment for moment, _ in row["curve"]]
    best = np.minimum.accumulate([row["none"], *(regret for _, regret in row["curve"])])
    return np.asarray(best[np.searchsorted(when, moments, side="right")])


def reached(
    regret: NDArray[np.float64], goal: NDArray[np.float64], moments: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when each curve, the last axis, first is at its goal; infinite if it never is.

    >>> reached(np.array([[9.0, 4.0, 4.0], [9.0, 9.0, 5.0]]), np.array([4.0, 4.0]), np.arange(3.0))
    array([ 1., inf])
    """
    is_there = regret <= np.asarray(goal)[..., None] + ROUNDING
    return np.where(is_there.any(axis=-1), moments[is_there.argmax(axis=-1)], np.inf)


if __name__ == "__main__":
    quiet()
    main()
