"""Pictures of README and documentation, light and dark, readable on a phone.

    python -m benchmarks.pictures --search benchmarks/results/ranger    # from rows of search.py
    python -m benchmarks.pictures --curves    # the default rule on ../shared/tables/covtype.csv

`--search` draws the mean regret of methods against time, or on one real table (`--problem`) their
test scores, for `.github/images`. `--curves` draws a study of 41 learners whose scores and seconds
are looked up in the table, for `docs/_static`.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import optuna
from matplotlib import pyplot

from benchmarks.replay_problems import TABLES
from benchmarks.replay_problems import table_problem
from benchmarks.rows import ROOT
from benchmarks.rows import Row
from benchmarks.rows import read_rows
from benchmarks.search_report import collect
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core.limits import Limits
from optuna_daub.study.limits import write_limits
from optuna_daub.visualization import matplotlib as plots


if TYPE_CHECKING:
    from matplotlib.figure import Figure


SIZE = 4.6, 4.4
"""Width and height of a picture in inches; 4.6 are 390 pixels at 85 dots to the inch."""
DOTS = 170
"""Dots to the inch: twice those of a phone's page."""
COLOURS = ("#d9730d", "#3b82c4", "#8f5cc0", "#7f8c8d", "#3a9d5d", "#cf5273")
"""Colours of methods, with a contrast of at least 3 on white and on GitHub's dark pages."""


@contextmanager
def theme(name: str) -> Iterator[None]:
    """Draw on a page of this colour: "light" or "dark"."""
    style = "default" if name == "light" else "dark_background"
    with pyplot.style.context(style):
        mpl.rcParams.update({"figure.figsize": SIZE, "savefig.dpi": DOTS, "font.size": 10})
        if name == "dark":
            dark = dict.fromkeys(("figure.facecolor", "axes.facecolor"), "#131416")
            mpl.rcParams.update({**dark, "savefig.facecolor": "#131416"})
        yield


def race(rows: Sequence[Row], methods: Sequence[str]) -> Figure:
    """Return the picture of a race between methods.

    It is the mean regret against units, or the test score on a real table against seconds. Rows
    are of one family of problems, or of one table. The first method is drawn thicker.
    """
    ((family, results),) = collect(rows, methods).items()
    is_real = family.startswith("real")
    if is_real and len({name for name, _ in results.cells}) > 1:
        raise ValueError("Rows of one real table are drawn, so name it: `--problem`.")
    is_only_ours = sum(method.startswith("ours") for method in methods) == 1
    figure, axes = pyplot.subplots(figsize=(SIZE[0], 3.6), layout="constrained")
    if is_real:
        times = np.linspace(0.0, max(row["budget_seconds"] for row in results.rows[0]), 361)
        tested = [[[_tested(row, t) for row in cell] for cell in results.rows] for t in times]
        values = [np.mean(each, axis=0) for each in tested]
        axes.set(xlabel="seconds of training", ylabel="accuracy, %", ylim=(50.0, 100.0))
    else:
        times = np.geomspace(1.0, 100.0, 80)
        values = [results.by_problem(results.regret(t)).mean(axis=0) for t in times]
        axes.set(xscale="log", yscale="log", xlabel="time, in trainings on all rows")
        axes.set(ylabel="points of accuracy missing")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:g}")
    for place, method in enumerate(methods):
        means = np.array(values)[:, results.methods.index(method)]
        width = 3.0 if place == 0 else 1.6
        label = "optuna_daub" if method.startswith("ours") and is_only_ours else method
        axes.plot(times, means, label=label, color=COLOURS[place], linewidth=width)
    axes.grid(visible=True, alpha=0.25)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _tested(row: Row, seconds: float) -> float:
    """Return the test score after a time, in %; 0 without a model."""
    found = [point[2] for point in row["curve"] if point[0] <= seconds]
    return 100.0 * found[-1] if found else 0.0


def looked_up(name: str) -> optuna.Study:
    """Return a study of the default rule on the learners of a measured table."""
    problem = table_problem(name)
    with (TABLES / f"{name}.csv").open(encoding="utf-8") as file:
        names = dict.fromkeys(row["learner"] for row in csv.DictReader(file))
    curves = dict(zip(names, problem.curves, strict=True))

    def objective(trial: optuna.Trial) -> float:
        curve = curves[trial.suggest_categorical("learner", [*curves])]
        score = math.nan
        for size in training_sizes(trial):
            seen = curve.at(size)
            if seen is None:
                raise RuntimeError(f"The learner has no score at {size} examples.")
            score = seen.score
            also = ("training_score", "n_validation", "seconds")
            report(trial, size, score, **{name: getattr(seen, name) for name in also})
        return score

    base = optuna.samplers.GridSampler({"learner": [*curves]}, seed=0)
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(base, n_learners=len(curves)),
        pruner=DAUBPruner(sizes=problem.sizes),
    )
    study.set_metric_names(["accuracy"])
    write_limits(study, Limits(0.0, 1.0))
    study.optimize(objective, catch=(RuntimeError,))
    return study


def main() -> None:
    """Draw the pictures asked for."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", type=Path, help="folder with search.jsonl")
    parser.add_argument("--problem", help="the only problem of these rows to draw")
    parser.add_argument("--methods", nargs="+", default=["ours", "TPE", "TPE + Hyperband"])
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--results", type=Path, help="folder to write to, in place of the pages'")
    options = parser.parse_args()
    mpl.use("Agg")
    study = looked_up("covtype") if options.curves else None
    for name in ("light", "dark"):
        with theme(name):
            if options.search is not None:
                rows = read_rows(options.search / "search.jsonl")
                if options.problem:
                    rows = [row for row in rows if row["key"]["problem"] == options.problem]
                folder = options.results or ROOT / ".github/images"
                kind = "real" if any("real" in r["key"]["problem"] for r in rows) else "regret"
                race(rows, options.methods).savefig(folder / f"{kind}-{name}.png")
            if study is not None:
                folder = options.results or ROOT / "docs/_static"
                axes = plots.plot_learning_curves(study, top=8)
                axes.figure.savefig(folder / f"curves-{name}.png")
                axes = plots.plot_search_history(study)
                axes.figure.savefig(folder / f"history-{name}.png")
        pyplot.close("all")


if __name__ == "__main__":
    main()
