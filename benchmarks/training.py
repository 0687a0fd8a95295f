"""Every method on real training: what it loses and what it costs, each run in its own process.

    OMP_NUM_THREADS=1 python benchmarks/training.py [--smoke] [--time-limit S]
        [--sources parity covtype ...] [--methods ...] [--seeds K]
    OMP_NUM_THREADS=1 python benchmarks/training.py --data table.csv --target label [--cap 30]

Each run is one row of results/training.jsonl; the tables of results/training.md follow from all
rows there are. Rows that are there are not run again: delete the file of rows to start over.
Which learners are trained at all is decided once per data set, before any method is run, and is
a row too. Reading the data, imports and scoring on the test rows are not timed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any


os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per fit

import optuna

from benchmarks.contest import EVERYTHING
from benchmarks.contest import METHODS
from benchmarks.contest import OURS
from benchmarks.contest import OURS_PAPER
from benchmarks.meter import Meter
from benchmarks.meter import apart
from benchmarks.meter import cpu_seconds
from benchmarks.options import parser_of
from benchmarks.options import results_of
from benchmarks.pools import SOURCES
from benchmarks.pools import Source
from benchmarks.pools import affordable
from benchmarks.pools import fit_classes
from benchmarks.pools import of_file
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import read_rows
from benchmarks.rows import run_all
from benchmarks.rows import versions
from benchmarks.task import Task
from benchmarks.training_report import POOL_ROW
from benchmarks.training_report import report


SMOKE_SOURCE = "made"
PATIENCE = 2.0
"""Times the CPU seconds of training everything after which a run is stopped."""
GRACE = 20.0
"""CPU seconds that a run may take in any case."""
LIBRARIES = ("scipy", "FLAML", "lccv")


def main() -> None:
    """Do what the command line asks for."""
    options = _options()
    results = results_of(options)
    path = results / "training.jsonl"
    if not options.report:
        sources = dict(_sources(options))
        known = {name: options.seeds or source.seeds for name, source in sources.items()}
        planned = runs(sources, known, _methods(options), path)
        run_all(planned, path, options.time_limit)
    rows = read_rows(path)
    if not rows:
        sys.exit("There is nothing to report: no row is there.")
    (results / "training.md").write_text(report(rows), encoding="utf-8")
    print(f"{len(rows):,} rows: {results / 'training.md'}")


def runs(
    sources: Mapping[str, Source], seeds: Mapping[str, int], methods: list[str], path: Path
) -> Iterator[Run]:
    """Yield, for each data set, the choice of learners and then every method for every seed."""
    for name, source in sources.items():
        yield Run({"data": name, "method": POOL_ROW, "seed": 0}, partial(measure_pool, source))
        for seed in range(seeds[name]):
            for method in methods:
                key = {"data": name, "method": method, "seed": seed}
                yield Run(key, partial(measure, key, source, path))


def measure_pool(source: Source) -> Row:
    """Find out which learners one core can afford to train on all rows."""
    return dict(apart(partial(_prepare_pool, source))) | {"libraries": versions(LIBRARIES)}


def measure(key: Mapping[str, Any], source: Source, path: Path) -> Row:
    """Run a method once, in its own process; the earlier rows say what it may train and take."""
    rows = {_place(row["key"]): row for row in read_rows(path)}
    data, method, seed = _place(key)
    learners = tuple(rows[data, POOL_ROW, 0]["learners"])
    everything = rows.get((data, EVERYTHING, seed))
    limit = None if everything is None else PATIENCE * everything["cpu"] + GRACE
    seconds = None
    if METHODS[method].has_seconds:
        taken = (rows.get((data, name, seed), {}).get("cpu") for name in (OURS, OURS_PAPER))
        seconds = next(filter(None, taken), None)
        if seconds is None:
            sys.exit(f"{method} is given the seconds of '{OURS}': run that on {data} first.")
    result = dict(apart(partial(_prepare, source, method, learners, seed, seconds), limit))
    print(data, method, seed, {k: v for k, v in result.items() if k != "scores"}, flush=True)
    given = {} if seconds is None else {"given_seconds": seconds}
    return result | given | {"libraries": versions(LIBRARIES), "load": os.getloadavg()[0]}


def _prepare_pool(source: Source) -> Callable[[], Row]:
    return lambda: dict(affordable(source, cpu_seconds))


def _prepare(
    source: Source, method: str, learners: tuple[str, ...], seed: int, seconds: float | None
) -> Callable[[], Row]:
    """Read the data, in the run's own process, and return the run."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if package := METHODS[method].package:
        import_module(package)
    meter = Meter()
    meter.watch(fit_classes())
    task = Task(source.load(seed), learners, seed, meter, seconds)

    def run() -> Row:
        with meter.running():
            answer = METHODS[method].choose(task)
        return {"learner": answer.learner, "scores": dict(answer.scores), **meter.readings()}

    return run


def _place(key: Mapping[str, Any]) -> tuple[str, str, int]:
    return key["data"], key["method"], key["seed"]


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, Source]]:
    if options.data:
        rows = "" if options.train_rows is None else f", {options.train_rows:,} rows"
        name = f"{options.data.name}, {options.target}{rows}, cap {options.cap:g}"
        yield name, of_file(options.data, options.target, options.train_rows, options.cap)
        return
    for name in [SMOKE_SOURCE] if options.smoke else options.sources:
        path = SOURCES[name].path
        if path is None or path.exists():
            yield name, SOURCES[name]
        else:
            print(f"{name} is left out: {path} is not there; it is read in place, never copied")


def _methods(options: argparse.Namespace) -> list[str]:
    chosen = {name: method for name, method in METHODS.items() if name in options.methods}
    for name, method in chosen.items():
        if method.missing:
            print(f"{name} is left out; it needs: {method.missing}")
    return [name for name, method in chosen.items() if not method.missing]


def _options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    default = [name for name in SOURCES if name != SMOKE_SOURCE]
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=default)
    parser.add_argument("--data", type=Path, help="CSV or Parquet file of yours, instead")
    parser.add_argument("--target", default="target", help="column of --data to predict")
    parser.add_argument("--train-rows", type=int, help="of --data; default at most 38,500")
    parser.add_argument("--cap", type=float, default=30.0, help="CPU seconds per learner, --data")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="how many; the default depends on the data")
    parser.add_argument("--report", action="store_true", help="only the tables, of known rows")
    return parser.parse_args()


if __name__ == "__main__":
    main()
