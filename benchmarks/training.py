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
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import mean


os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per fit

import optuna

from benchmarks.meter import Meter
from benchmarks.meter import apart
from benchmarks.meter import cpu_seconds
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import read_rows
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import versions
from benchmarks.rows import write_report
from benchmarks.training_data import SOURCES
from benchmarks.training_data import Source
from benchmarks.training_data import affordable
from benchmarks.training_data import fit_classes
from benchmarks.training_data import of_file
from benchmarks.training_methods import EVERYTHING
from benchmarks.training_methods import METHODS
from benchmarks.training_methods import OURS
from benchmarks.training_methods import Task


SMOKE_SOURCE = "made"
PATIENCE = 2.0
"""Times the CPU seconds of training everything after which a run is stopped."""
GRACE = 20.0
"""CPU seconds that a run may take in any case."""
LIBRARIES = ("scipy", "FLAML", "lccv")
POOL_ROW = "the pool"
"""Method in the key of the row that says which learners are trained."""

FIGURES = {
    "loss": ("loss", "{:.2f}"),
    "test": ("test loss", "{:.2f}"),
    "cpu": ("CPU s", "{:.1f}"),
    "share": ("% of all", "{:.0f}"),
    "wall": ("wall s", "{:.1f}"),
    "examples": ("examples", "{:.1f} N"),
    "fits": ("fits", "{:.0f}"),
    "peak_mb": ("peak MB", "{:,.0f}"),
}
"""Columns of the tables of one data set, by name in `figures`: heading and format of the mean."""
LEGEND = (
    "Loss: by how many percentage points of accuracy the chosen learner, trained on all N rows, "
    "is below the best of the pool so trained; on the validation rows, which all methods choose "
    "by, and on test rows, which none sees (there the reference is the learner best on "
    "validation). % of all: CPU seconds beside training everything. Examples: training rows "
    "summed over fits, in multiples of N. Peak: of the process, with data and libraries. Means "
    "over runs, one per seed. On average {load} processes wanted a core when a run ended: where "
    "that is more than there are, wall seconds say little, and CPU seconds are inflated unevenly."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    options = _options(arguments)
    results = results_of(options)
    path = results / "training.jsonl"
    if not options.report:
        sources = _sources(options)
        known = {name: options.seeds or source.seeds for name, source in sources.items()}
        run_all(runs(sources, known, _there(options.methods), path), path, options.time_limit)
    write_report(results / "training.md", read_rows(path), report)


def runs(
    sources: Mapping[str, Source], seeds: Mapping[str, int], methods: list[str], path: Path
) -> Iterator[Run]:
    """Yield, for each data set, the choice of learners and then every method for every seed."""
    for name, source in sources.items():
        yield Run({"data": name, "method": POOL_ROW, "seed": 0}, partial(measure_pool, source))
        for seed in range(seeds[name]):
            for method in methods:
                run = partial(measure, name, method, seed, source, path)
                yield Run({"data": name, "method": method, "seed": seed}, run)


def measure_pool(source: Source) -> Row:
    """Find out which learners one core can afford to train on all rows."""
    return dict(apart(partial(_prepare_pool, source))) | {"libraries": versions(LIBRARIES)}


def measure(data: str, method: str, seed: int, source: Source, path: Path) -> Row:
    """Run a method once, in its own process; the earlier rows say what it may train and take."""
    rows = {tuple(row["key"].values()): row for row in read_rows(path)}
    learners = tuple(rows[data, POOL_ROW, 0]["learners"])
    everything = rows.get((data, EVERYTHING, seed))
    limit = None if everything is None else PATIENCE * everything["cpu"] + GRACE
    seconds = None
    if METHODS[method].has_seconds:
        seconds = rows.get((data, OURS, seed), {}).get("cpu")
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


def _sources(options: argparse.Namespace) -> dict[str, Source]:
    if options.data:
        rows = "" if options.train_rows is None else f", {options.train_rows:,} rows"
        name = f"{options.data.name}, {options.target}{rows}, cap {options.cap:g}"
        return {name: of_file(options.data, options.target, options.train_rows, options.cap)}
    names = [SMOKE_SOURCE] if options.smoke else options.sources
    return {name: SOURCES[name] for name in names if is_there(name, SOURCES[name].path)}


def _there(names: Sequence[str]) -> list[str]:
    """Return the methods whose packages are installed, in the order in which they are run."""
    chosen = [name for name in METHODS if name in names]
    for name in chosen:
        if METHODS[name].missing:
            print(f"{name} is left out; it needs: {METHODS[name].missing}")
    return [name for name in chosen if not METHODS[name].missing]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
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
    return parser.parse_args(arguments)


# --- The tables, from the rows alone ---


def figures(row: Row, everything: Row, n_train: int) -> dict[str, float]:
    """Return the numbers of one run beside the run that trained everything."""
    best = everything["scores"][everything["learner"]]
    own = row["scores"].get(row["learner"]) or everything["scores"][row["learner"]]
    return {
        "loss": 100 * (best[0] - own[0]),
        "test": 100 * (best[1] - own[1]),
        "share": 100 * row["cpu"] / everything["cpu"],
        "examples": row["examples"] / n_train,
        **{name: row[name] for name in ("cpu", "wall", "fits", "peak_mb")},
    }


def report(rows: list[Row]) -> Iterator[str]:
    """Yield in Markdown the table of all data sets, and one for each."""
    load = mean([row["load"] for row in rows if "load" in row] or [0.0])
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, release in row.get("libraries", {}).items():
            found.setdefault(name, set()).add(release)
    libraries = ", ".join(f"{name} {', '.join(sorted(known))}" for name, known in found.items())
    yield LEGEND.format(load=round(load))
    yield f"Also {libraries}."
    data: dict[str, dict[str, Mapping[str, str]]] = {}
    pools = {}
    for name, of_data in grouped(rows, "data").items():
        by_method = grouped(of_data, "method")
        (pool,) = by_method.get(POOL_ROW, [{}])
        if "learners" not in pool:
            continue  # it failed, and so nothing was run
        pools[name] = pool
        everything = {row["key"]["seed"]: row for row in by_method.get(EVERYTHING, [])}
        data[name] = {
            method: _cells(by_method[method], everything, pool["n_train"])
            for method in METHODS
            if any(row["key"]["seed"] in everything for row in by_method.get(method, []))
        }
    yield "Loss @ CPU seconds in % of training everything (runs, where they are several):"
    some = [name for name in METHODS if any(name in methods for methods in data.values())]
    lines = [
        [name, *(methods[name]["short"] if name in methods else "-" for methods in data.values())]
        for name in some
    ]
    yield table(["method", *data], lines)
    for name, methods in data.items():
        yield f"### {name}"
        yield _about(pools[name])
        columns = [*(heading for heading, _ in FIGURES.values()), "runs", "chose"]
        yield table(
            ["method", *columns],
            ([method, *(cells[one] for one in columns)] for method, cells in methods.items()),
        )


def _cells(rows: list[Row], everything: Mapping[int, Row], n_train: int) -> dict[str, str]:
    """Return the cells of a method on one data set by the heading of their column."""
    comparable = [row for row in rows if row["key"]["seed"] in everything]
    done = [row for row in comparable if "learner" in row]
    ends = {f"{end} {row[end]}" for row in rows for end in ("stopped", "failed") if end in row}
    chose = ", ".join([*sorted({row["learner"] for row in done}), *sorted(ends)])
    if not done:
        ways = {end.partition(" ")[0] for end in ends}
        blank = {heading: "-" for heading, _ in FIGURES.values()}
        return {**blank, "runs": f"{len(rows)}", "chose": chose, "short": ", ".join(ways)}
    of_runs = [figures(row, everything[row["key"]["seed"]], n_train) for row in done]
    means = {name: mean(one[name] for one in of_runs) for name in FIGURES}
    count = f" ({len(done)})" if len(done) > 1 else ""
    return {
        **{heading: form.format(means[name]) for name, (heading, form) in FIGURES.items()},
        "runs": f"{len(done)}",
        "chose": chose,
        "short": f"{means['loss']:.2f} @ {means['share']:.0f} %{count}",
    }


def _about(pool: Row) -> str:
    """Return what was trained, and what was left out at what cost."""
    text = (
        f"N = {pool['n_train']:,}, {pool['features']} features, {pool['n_validation']:,} "
        f"validation and {pool['n_test']:,} test rows; {len(pool['learners'])} learners. "
    )
    if not pool["left_out"]:
        return f"{text}None exceeds the cap of {pool['cap']:.0f} CPU s at N."
    costs = (
        f"{name} ({'failed' if seconds is None else format(seconds, ',.0f')})"
        for name, seconds in pool["left_out"].items()
    )
    text += f"Left out for all, with projected CPU s at N (cap {pool['cap']:.0f}): "
    return f"{text}{', '.join(costs)}."


if __name__ == "__main__":
    main()
