"""Tables of the search benchmark, from its rows alone."""

from __future__ import annotations

import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.rows import Row
from benchmarks.rows import grouped
from benchmarks.rows import provenance
from benchmarks.rows import shown
from benchmarks.rows import table
from benchmarks.search_methods import METHODS


REFERENCE = "the reference"
"""Method in the key of the row on a problem's unit."""
TIMES = (1, 3, 10, 30, 100)
"""Units after which methods are compared."""
PERCENT = 100.0
LEGEND = (
    "Seconds are those of training and scoring; a unit is the mean of them for one full training "
    "of a random point. *Regret*: percentage points by which the best model trained on all the "
    "data is below the best score known (of a large random sample, where that costs nothing, and "
    "of all runs); without a model the score is 0. *Rank* among the methods of the table, mean "
    "over problems; ± its standard error over problems, over seeds if there is one problem. "
    "*None*: share of runs without any model. *Thinking*: CPU seconds of the method itself."
)


@dataclass(frozen=True)
class Results:
    """The runs of some methods on some problems, of cells that all have run.

    Arrays are indexed by cell (a problem and a seed) and by method.
    """

    methods: tuple[str, ...]
    cells: tuple[tuple[str, int], ...]
    rows: tuple[tuple[Row, ...], ...]
    units: Mapping[str, float]
    """Seconds of a unit, by problem."""
    best: Mapping[str, float]
    """Best score known, by problem."""

    def scores(self, units: float) -> NDArray[np.float64]:
        """Return the best full-data score after so many units; NaN if there is no model."""
        found = [
            [reached(row, units * self.units[name]) for row in of_cell]
            for (name, _), of_cell in zip(self.cells, self.rows, strict=True)
        ]
        return np.array(found, dtype=np.float64)

    def regret(self, units: float) -> NDArray[np.float64]:
        """Return the percentage points missing to the best score after so many units."""
        best = np.array([self.best[name] for name, _ in self.cells])
        return PERCENT * (best[:, None] - np.nan_to_num(self.scores(units)))

    def by_problem(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means over seeds, one line per problem. With one problem, return all its
        seeds."""
        names = np.array([name for name, _ in self.cells])
        if len(set(names)) == 1:
            return values
        return np.array([values[names == name].mean(axis=0) for name in dict.fromkeys(names)])


def reached(row: Row, seconds: float) -> float | None:
    """Return the best full-data score of a run after some seconds; None if there is none."""
    scores = [score for when, score, *_ in row["curve"] if when <= seconds]
    return scores[-1] if scores else None


def collect(rows: Iterable[Row], methods: Collection[str] = tuple(METHODS)) -> dict[str, Results]:
    """Return the results by family and budget, of cells that every method has.

    The best score known is that of all rows, also of methods that are not asked for.
    """
    rows = list(rows)
    references = {r["key"]["problem"]: r for r in rows if r["key"]["method"] == REFERENCE}
    groups: dict[str, dict[tuple[str, int], dict[str, Row]]] = {}
    best = {name: row.get("best", -math.inf) for name, row in references.items()}
    for row in rows:
        name, method = row["key"]["problem"], row["key"]["method"]
        if method == REFERENCE or name not in references:
            continue
        best[name] = max([best[name], *(score for _, score, *_ in row["curve"])])
        if method in methods:
            cells = groups.setdefault(f"{name.split('-')[0]}, {row['key']['budget']:g}", {})
            cells.setdefault((name, row["key"]["seed"]), {})[method] = row
    units = {name: row["unit"] for name, row in references.items()}
    return {group: _complete(cells, methods, units, best) for group, cells in groups.items()}


def _complete(
    cells: Mapping[tuple[str, int], Mapping[str, Row]],
    methods: Collection[str],
    units: Mapping[str, float],
    best: Mapping[str, float],
) -> Results:
    there = {method for of_cell in cells.values() for method in of_cell}
    methods = tuple(method for method in methods if method in there)
    kept = sorted(cell for cell, of_cell in cells.items() if {*methods} <= {*of_cell})
    rows = tuple(tuple(cells[cell][method] for method in methods) for cell in kept)
    return Results(methods, tuple(kept), rows, units, best)


def report(rows: list[Row], methods: Collection[str] = tuple(METHODS)) -> str:
    """Return all tables in Markdown."""
    parts = [LEGEND, provenance(rows)] if rows else ["No rows."]
    for group, results in collect(rows, methods).items():
        parts.append(f"## {group}")
        n_problems = len({name for name, _ in results.cells})
        n_seeds = len({seed for _, seed in results.cells})
        parts.append(
            f"{n_problems} problems, {n_seeds} seeds, {len(results.cells)} cells with all methods."
        )
        if results.cells:
            parts += _tables(results)
    # A surrogate has no test rows; its runs stand in the same file.
    tested = {r["key"]["problem"] for r in rows for point in r.get("curve", ()) if len(point) > 2}
    if tested:
        real = [row for row in rows if row["key"]["problem"] in tested]
        parts += ["## Test scores", _table_of_test_scores(real, methods)]
    return "\n\n".join(parts) + "\n"


def _tables(results: Results) -> list[str]:
    """Return tables of regrets, ranks, leads, and facts about the runs."""
    longest = min(
        row["budget_seconds"] / results.units[name]
        for (name, _), of_cell in zip(results.cells, results.rows, strict=True)
        for row in of_cell
    )
    times = [t for t in TIMES if t <= longest * 1.001]
    if not times or times[-1] < longest * 0.999:
        times.append(longest)
    header = [f"{units:.3g}" for units in times]
    regrets, ranks, nones, leads = [], [], [], []
    for units in times:
        regret = results.regret(units)
        means, medians = results.by_problem(regret).mean(axis=0), np.median(regret, axis=0)
        regrets.append([f"{a:.2f} ({b:.2f})" for a, b in zip(means, medians, strict=True)])
        # Rounded, so rank does not hang on the last digit of a sum.
        ranked = results.by_problem(np.array([rankdata(line) for line in regret.round(6)]))
        ranks.append([shown(column, 1) for column in ranked.T])
        nones.append(
            [f"{PERCENT * x:.0f} %" for x in np.isnan(results.scores(units)).mean(axis=0)]
        )
        if "ours" in results.methods:
            ours = regret[:, results.methods.index("ours")]
            lead = results.by_problem(regret - ours[:, None])
            leads.append([shown(column, 2) for column in lead.T])
    named = {"mean regret (median) after units": regrets, "rank": ranks, "none": nones}
    if leads:
        named["regret less that of ours"] = leads
    return [
        *(
            table([title, *header], zip(results.methods, *columns, strict=True))
            for title, columns in named.items()
        ),
        _table_of_runs(results),
    ]


def _table_of_runs(results: Results) -> str:
    """Return the mean facts about runs of each method."""
    lines = []
    for i, method in enumerate(results.methods):
        rows = [of_cell[i] for of_cell in results.rows]
        used = np.mean([row["seconds"] / row["budget_seconds"] for row in rows])
        firsts = [
            row["curve"][0][0] / results.units[name] if row["curve"] else math.inf
            for (name, _), row in zip(results.cells, rows, strict=True)
        ]
        failures = sum("failed" in row for row in rows)
        lines.append(
            [
                method,
                f"{np.median(firsts):.2f}",
                f"{np.mean([row['trainings'] for row in rows]):.0f}",
                f"{np.mean([row['full_trainings'] for row in rows]):.0f}",
                f"{PERCENT * used:.0f} %",
                f"{np.mean([row['thinking'] for row in rows]):.1f}",
                f"{failures}",
            ]
        )
    header = ("method", "first model, units", "trainings", "on all data", "budget used")
    return table((*header, "thinking, s", "broke down"), lines)


def _table_of_test_scores(rows: Iterable[Row], methods: Collection[str]) -> str:
    """Return the test scores of the best models, in %, by method and problem.

    Mean and standard error over the runs that end with a model, and the number of others. *Rank*
    is by the means of the problems, where a run without a model counts as score 0; only methods
    that were run on all problems have one. *Overrun*: seconds past the budget at which a method
    would have ended, had nobody cut its last training, if that was watched.
    """
    runs = [row for row in rows if row["key"]["method"] in methods and "curve" in row]
    by_method = grouped(runs, "method")
    scores = {
        method: {
            problem: [PERCENT * row["curve"][-1][2] if row["curve"] else None for row in found]
            for problem, found in grouped(of_method, "problem").items()
        }
        for method, of_method in by_method.items()
    }
    problems = list(grouped(runs, "problem"))
    everywhere = [m for m, by_problem in scores.items() if len(by_problem) == len(problems)]
    means = [[np.mean([s or 0.0 for s in scores[m][p]]) for p in problems] for m in everywhere]
    ranked = rankdata(-np.array(means), axis=0).mean(axis=1) if everywhere else ()
    ranks = dict(zip(everywhere, ranked, strict=True))
    lines = []
    for method, by_problem in scores.items():
        cells = []
        for problem in problems:
            of_runs = by_problem.get(problem, [])
            found = [score for score in of_runs if score is not None]
            cell = shown(found, 1) if found else "none" if of_runs else ""
            if 0 < len(found) < len(of_runs):
                cell += f", none in {len(of_runs) - len(found)}"
            cells.append(cell)
        rank = f"{ranks[method]:.1f}" if method in ranks else ""
        lines.append([method, *cells, rank, f"{max(map(len, by_problem.values()))}"])
        late = [row["overrun"] for row in by_method[method] if "overrun" in row]
        lines[-1].append(f"{max(late):.0f}" if late else "")
    return table(["test score, %", *problems, "rank", "seeds", "largest overrun, s"], lines)
