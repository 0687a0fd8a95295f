"""Every method on learning curves that are already known, without training anything.

    python benchmarks/replay.py [--smoke] [--time-limit S] [--problems ...] [--methods ...]

Each run is one row of results/replay.jsonl; from all rows follow the tables of results/replay.md
and the picture results/replay.png. Rows that are there are not run again: delete the file of rows
to start over.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.markdown import table
from benchmarks.methods import METHODS
from benchmarks.methods import Method
from benchmarks.options import parser_of
from benchmarks.options import results_of
from benchmarks.problems import SOURCES
from benchmarks.problems import Problem
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import provenance
from benchmarks.rows import read_rows
from benchmarks.rows import run_all


SMOKE_SOURCE = "made"
SEEDS = {
    "parity": 20,
    "covtype": 20,
    "parity, shaken": 60,
    "covtype, shaken": 60,
    "lcdb": 5,
    "lcdb-se": 5,
    "lcdb, small": 5,
    "made": 2,
}
"""Orders of the learners for Optuna's studies, and draws of the noise."""

NEAR = 0.005
"""A loss that counts as near the best."""

FIGURES = {
    "mean": ("mean loss", "{:.2f}"),
    "p95": ("95 % loss", "{:.2f}"),
    "max": ("max loss", "{:.2f}"),
    "near": (f"within {100 * NEAR:g} pp", "{:.0f} %"),
    "share": ("cost, % of all", "{:.1f}"),
    "scored": ("with training scores", "{:.1f}"),
    "oracle": ("x oracle", "{:.1f}"),
    "floor": ("x floor", "{:.2f}"),
    "runs": ("runs", "{:.0f}"),
}
"""Columns of the tables by name in `summary`: heading and format."""
COLUMNS = ["method", *(heading for heading, _ in FIGURES.values())]
LEGEND = (
    "Losses in percentage points of the score, below the best learner. Costs beside training "
    "everyone on all the data, without and with training scores, for the methods that need them; "
    "beside the oracle, who trains the best learner only; and beside the floor, which is the "
    "first three sizes of everyone and the best learner on all the data. *Calibrated* is "
    '`DAUBPruner()`, *as in the paper* is `bound="projection", step="geometric"`. Halving starts '
    "at the smallest size or so that its last round is at N; Optuna's pruners with their factor, "
    "on the sizes at which they look unless every size is named. Problems: `problems.py`."
)

COLORS = {
    "bounds": "0.5",
    "DAUB": "C0",
    "calibrated": "C4",
    "ABC": "C2",
    "halving": "C1",
    "Optuna": "C3",
}
MARKERS = "osD^vP*X<>phd"
PANELS_PER_ROW = 4


def main() -> None:
    """Do what the command line asks for."""
    options = _options()
    if options.smoke:
        options.problems = [SMOKE_SOURCE]
    results = results_of(options)
    sources = [name for name in options.problems if _is_there(name)]
    methods = [name for name in METHODS if name in (options.methods or METHODS)]
    path = results / "replay.jsonl"
    run_all(runs(sources, methods), path, options.time_limit)
    rows = read_rows(path)
    if not rows:
        sys.exit("There is nothing to report: no problem could be run.")
    command = "python benchmarks/replay.py " + " ".join(sys.argv[1:])
    (results / "replay.md").write_text(report(rows, command.strip()), encoding="utf-8")
    draw(rows).savefig(results / "replay.png", dpi=70)
    print(f"{len(rows):,} rows: {results / 'replay.md'}, {results / 'replay.png'}")


def runs(sources: Iterable[str], methods: Collection[str]) -> Iterator[Run]:
    """Yield the product of problems, seeds and methods.

    What depends on no seed is run once.
    """
    for source in sources:
        for seed in range(SEEDS[source]):
            for problem in SOURCES[source].problems(seed):
                for name in methods:
                    method = METHODS[name]
                    varies = method.is_random or SOURCES[source].is_random
                    if method.can_run(problem) and (seed == 0 or varies):
                        key = {"source": source, "problem": problem.name}
                        yield Run(
                            {**key, "method": name, "seed": seed},
                            partial(measure, method, problem, seed),
                        )


def measure(method: Method, problem: Problem, seed: int) -> Mapping[str, Any]:
    """Run a method once and return its loss, and its cost beside those it is compared with."""
    outcome = method.choose(problem, seed)
    return {
        "learner": outcome.learner,
        "loss": problem.loss(outcome.learner),
        "probes": outcome.probes,
        "cost": outcome.cost,
        "scoring_cost": outcome.scoring_cost,
        "full_cost": problem.full_cost,
        "oracle_cost": problem.oracle_cost,
        "floor_cost": problem.floor_cost,
    }


def report(rows: list[Row], command: str) -> str:
    """Return the tables in Markdown, one per source of problems, with where they come from."""
    parts = [f"`{command}`", LEGEND, provenance(rows)]
    for source, of_source in _grouped(rows, "source").items():
        problems = len(_grouped(of_source, "problem"))
        unit = SOURCES[source].cost
        parts.append(f"### {source}: {problems} problem{'s' * (problems > 1)}, cost in {unit}")
        parts.append(_table(of_source))
    return "\n\n".join(parts) + "\n"


def summary(rows: list[Row]) -> dict[str, float]:
    """Return the figures of one line of a table; costs are means of the runs' ratios."""
    losses = np.array([row["loss"] for row in rows])
    costs = np.array([row["cost"] for row in rows])

    def times(yardstick: str, costs: NDArray[np.float64] = costs) -> float:
        return float(np.mean(costs / [row[yardstick] for row in rows]))

    return {
        "mean": 100 * float(losses.mean()),
        "p95": 100 * float(np.quantile(losses, 0.95)),
        "max": 100 * float(losses.max()),
        "near": 100 * float(np.mean(losses <= NEAR)),
        "share": 100 * times("full_cost"),
        "scored": 100 * times("full_cost", costs + [row["scoring_cost"] for row in rows]),
        "oracle": times("oracle_cost"),
        "floor": times("floor_cost"),
        "runs": len(rows),
    }


def draw(rows: list[Row]) -> Figure:
    """Return the picture: mean loss against cost, one panel per source of problems.

    The line joins the methods than which none is both cheaper and better.
    """
    sources = _grouped(rows, "source")
    columns = min(len(sources), PANELS_PER_ROW)
    rows_of_panels = -(-len(sources) // columns)
    size = 5.2 * columns, 4.2 * rows_of_panels + 2.2
    figure = Figure(figsize=size, layout="constrained")
    for i, (source, of_source) in enumerate(sources.items(), start=1):
        axes = figure.add_subplot(rows_of_panels, columns, i)
        points = {
            name: (figures["share"], figures["mean"])
            for name, of_method in _by_method(of_source)
            if name not in ("oracle", "floor")
            for figures in [summary(of_method)]
        }
        for name, (share, loss) in points.items():
            axes.plot(share, loss, _marker(name), color=_color(name), label=name, ls="none")
        axes.plot(*np.transpose(_frontier(points.values())), color="0.7", zorder=0)
        axes.set(title=source, xlabel="cost, % of training everything", xscale="log")
        if i % columns == 1 % columns:
            axes.set_ylabel("mean loss, percentage points")
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylim(bottom=-0.02)
        axes.grid(alpha=0.3)
    handles = {name: handle for axes in figure.axes for handle, name in _legend(axes)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    default = [name for name in SOURCES if name != SMOKE_SOURCE]
    parser.add_argument("--problems", nargs="+", choices=SOURCES, default=default)
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD")
    return parser.parse_args()


def _is_there(source: str) -> bool:
    path = SOURCES[source].path
    if path is None or path.exists():
        return True
    print(f"{source} is left out: {path} is not there; it is read in place, never copied")
    return False


def _table(rows: list[Row]) -> str:
    return table(COLUMNS, (_cells(name, summary(of)) for name, of in _by_method(rows)))


def _cells(name: str, figures: Mapping[str, float]) -> list[str]:
    return [name, *(form.format(figures[key]) for key, (_, form) in FIGURES.items())]


def _grouped(rows: list[Row], part: str) -> dict[str, list[Row]]:
    """Return the rows by a part of their key, in the order in which they come."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["key"][part], []).append(row)
    return groups


def _by_method(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    groups = _grouped(rows, "method")
    return [(name, groups[name]) for name in METHODS if name in groups]


def _frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    best: list[tuple[float, float]] = []
    for share, loss in sorted(points):
        if not best or loss < best[-1][1]:
            best.append((share, loss))
    return best


def _color(name: str) -> str:
    return COLORS[METHODS[name].family]


def _marker(name: str) -> str:
    family = [other for other in METHODS if METHODS[other].family == METHODS[name].family]
    return MARKERS[family.index(name)]


def _legend(axes: Any) -> Iterable[tuple[Any, str]]:
    return zip(*axes.get_legend_handles_labels(), strict=True)


if __name__ == "__main__":
    main()
