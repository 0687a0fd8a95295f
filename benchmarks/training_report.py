"""The tables of `training.py`, from its rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from statistics import mean
from typing import Any

from benchmarks.contest import EVERYTHING
from benchmarks.contest import METHODS
from benchmarks.markdown import table
from benchmarks.rows import Row
from benchmarks.rows import provenance


POOL_ROW = "the pool"
"""Method in the key of the row that says which learners are trained."""
COLUMNS = (
    "method",
    "loss",
    "test loss",
    "CPU s",
    "% of all",
    "wall s",
    "examples",
    "fits",
    "peak MB",
    "runs",
    "chose",
)
FORMS = {
    "loss": "{:.2f}",
    "test": "{:.2f}",
    "cpu": "{:.1f}",
    "share": "{:.0f}",
    "wall": "{:.1f}",
    "examples": "{:.1f} N",
    "fits": "{:.0f}",
    "peak_mb": "{:,.0f}",
}
"""Of the means, in the order of the columns."""
LEGEND = (
    "Loss: by how many percentage points of accuracy the chosen learner, trained on all N rows, "
    "is below the best of the pool so trained; on the validation rows, which all methods choose "
    "by, and on test rows, which none sees (there the reference is the learner best on "
    "validation). % of all: CPU seconds beside training everything. Examples: training rows "
    "summed over fits, in multiples of N. Peak: of the process, with data and libraries. Means "
    "over runs, one per seed. The machine was shared: on average {load} processes wanted a core "
    "when a run ended. Wall seconds then say little, and CPU seconds are inflated unevenly."
)


def report(rows: list[Row]) -> str:
    """Return the tables in Markdown, one per data set, with what each rests on."""
    load = mean([row["load"] for row in rows if "load" in row] or [0.0])
    parts = [LEGEND.format(load=round(load)), provenance(rows), _libraries(rows)]
    for name, of_data in groupby(rows_in_order(rows), key=lambda row: row["key"]["data"]):
        of_data = list(of_data)
        pool = next((row for row in of_data if row["key"]["method"] == POOL_ROW), None)
        if pool is None or "learners" not in pool:
            continue
        parts += [f"### {name}", _about(pool), _table(of_data, pool["n_train"])]
    return "\n\n".join(parts) + "\n"


def rows_in_order(rows: list[Row]) -> list[Row]:
    """Return the rows with those of one data set together, data sets as they first came."""
    names = list(dict.fromkeys(row["key"]["data"] for row in rows))
    return sorted(rows, key=lambda row: names.index(row["key"]["data"]))


def figures(row: Row, everything: Row) -> dict[str, float]:
    """Return the numbers of one run beside the run that trained everything."""
    best = everything["scores"][everything["learner"]]
    own = row["scores"].get(row["learner"]) or everything["scores"][row["learner"]]
    return {
        "loss": 100 * (best[0] - own[0]),
        "test": 100 * (best[1] - own[1]),
        "share": 100 * row["cpu"] / everything["cpu"],
        **{name: row[name] for name in ("cpu", "wall", "examples", "fits", "peak_mb")},
    }


def _table(rows: list[Row], n_train: int) -> str:
    lines = []
    everything = {row["key"]["seed"]: row for row in _of(EVERYTHING, rows)}
    for method in METHODS:
        comparable = [row for row in _of(method, rows) if row["key"]["seed"] in everything]
        if comparable:
            lines.append(_line(method, comparable, everything, n_train))
    return table(COLUMNS, lines)


def _line(method: str, rows: list[Row], everything: Mapping[int, Row], n_train: int) -> list[str]:
    done = [row for row in rows if "learner" in row]
    ends = [f"{end} {row[end]}" for row in rows for end in ("stopped", "failed") if end in row]
    if not done:
        return [method, *"-" * 8, f"{len(rows)}", "; ".join(ends)]
    of_runs = [figures(row, everything[row["key"]["seed"]]) for row in done]
    means = {name: mean(one[name] for one in of_runs) for name in of_runs[0]}
    means["examples"] /= n_train
    chose = ", ".join([*sorted({row["learner"] for row in done}), *ends])
    cells = (form.format(means[name]) for name, form in FORMS.items())
    return [method, *cells, f"{len(done)}", chose]


def _of(method: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["key"]["method"] == method]


def _about(pool: Mapping[str, Any]) -> str:
    """Return what was trained, and what was left out at what cost."""
    sizes = f"N = {pool['n_train']:,}, {pool['features']} features"
    held_out = f"{pool['n_validation']:,} validation and {pool['n_test']:,} test rows"
    text = f"{sizes}, {held_out}; {len(pool['learners'])} learners."
    if not pool["left_out"]:
        return f"{text} None exceeds the cap of {pool['cap']:.0f} CPU s at N."
    costs = (
        f"{name} ({'failed' if seconds is None else format(seconds, ',.0f')})"
        for name, seconds in pool["left_out"].items()
    )
    return f"{text} Left out for all, with projected CPU s at N (cap {pool['cap']:.0f}): " + (
        ", ".join(costs) + "."
    )


def _libraries(rows: list[Row]) -> str:
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, release in row.get("libraries", {}).items():
            found.setdefault(name, set()).add(release)
    named = (f"{name} {', '.join(sorted(releases))}" for name, releases in found.items())
    return "Also " + ", ".join(named) + "."
