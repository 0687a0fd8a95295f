"""What opening a large study costs, beside `study.get_trials()`.

    python benchmarks/opening.py [--smoke] [--trials 25000] [--repeats 5] [--postgresql URL]

A study is made in memory and written to the storage again and again, under other parameters,
until it has so many trials. Then it is opened in turns, each time by a storage of its own with an
empty cache: by `study.get_trials()`, and by `best_learner(study)`, which reads the trials as a
pool and decides, as a worker does before its first trial. Figures are medians, in seconds of this
process and of the wall clock. Rows go to results/opening.jsonl, tables to results/opening.md.
"""

from __future__ import annotations

import copy
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from functools import partial
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import bulk


SIZES = (500, 1000, 2000, 4000, 8000)
BLOCK = 500
"""Trials of the study in memory, which the large one repeats."""


def main(arguments: list[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    parser = parser_of(__doc__)
    parser.add_argument("--trials", type=int, default=25_000, help="of the study")
    parser.add_argument("--repeats", type=int, default=5, help="how often it is opened each way")
    parser.add_argument(
        "--postgresql", default="", help="URL of an empty database, in place of SQLite"
    )
    options = parser.parse_args(arguments)
    if options.smoke:
        options.trials, options.repeats = 60, 2
    with tempfile.TemporaryDirectory() as folder:
        url = options.postgresql or f"sqlite:///{folder}/study.db"
        run = Run(
            {"storage": url.partition(":")[0].partition("+")[0], "trials": options.trials},
            partial(opened, url, options.trials, options.repeats),
        )
        results = results_of(options)
        rows = run_all([run], results / "opening.jsonl", options.time_limit)
    write_report(results / "opening.md", rows, _report)


def opened(url: str, n_trials: int, repeats: int) -> Row:
    """Make a study of so many trials, and return how long it took to open it each way."""
    storage = optuna.storages.RDBStorage(url)
    study = pair(storage)
    bulk.replace_trials(storage, study._study_id, made(n_trials))
    seconds: dict[str, list[tuple[float, float]]] = {}
    ways: dict[str, Callable[[optuna.Study], Any]] = {
        "get_trials": lambda study: study.get_trials(),
        "best_learner": best_learner,
    }
    for _ in range(repeats):
        for name, way in ways.items():
            gc.collect()
            cpu, wall = time.process_time(), time.perf_counter()
            way(pair(optuna.storages.RDBStorage(url), study.study_name))
            spent = time.process_time() - cpu, time.perf_counter() - wall
            seconds.setdefault(name, []).append(spent)
    return {
        f"{name}_{clock}": statistics.median(column)
        for name, times in seconds.items()
        for clock, column in zip(("cpu", "wall"), zip(*times, strict=True), strict=True)
    }


def pair(storage: Any, name: str | None = None) -> optuna.Study:
    """Return a study with the pair, made or loaded."""
    return optuna.create_study(
        study_name=name,
        storage=storage,
        direction="maximize",
        load_if_exists=True,
        sampler=DataAllocationSampler(optuna.samplers.RandomSampler(seed=0)),
        pruner=DAUBPruner(sizes=SIZES, cost="examples"),
    )


def objective(trial: optuna.Trial) -> float:
    """Return the full-data score of a formula."""
    x = trial.suggest_float("x", 0, 1)
    trial.suggest_int("depth", 1, 20)
    trial.suggest_categorical("kind", ["a", "b", "c"])
    score = 0.0
    for n in training_sizes(trial):
        score = 0.5 + 0.4 * x - (0.3 + x) / n**0.5
        report(trial, n, score, training_score=1.0)
    return score


def made(n_trials: int) -> list[FrozenTrial]:
    """Return the trials of a long study: those of a short one, with other numbers each time."""
    study = pair(optuna.storages.InMemoryStorage())
    study.optimize(objective, n_trials=min(BLOCK, n_trials))
    block = study.get_trials()
    trials = []
    for number in range(n_trials):
        trial = copy.deepcopy(block[number % len(block)])
        trial.number, moved = number, number - number % len(block)
        trial.params["x"] = trial.params.get("x", 0.0) / (1 + moved)
        for record in trial.system_attrs.values():
            for name in ("learner", "trial") if isinstance(record, dict) else ():
                if record.get(name) is not None:
                    record[name] += moved
        trials.append(trial)
    return trials


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown."""
    yield "### Seconds to open a study: of CPU, of the wall clock"
    yield table(
        ["storage", "trials", "get_trials", "best_learner", "ratio", "get_trials (wall)",
         "best_learner (wall)", "ratio (wall)"],
        (
            [
                row["key"]["storage"],
                f"{row['key']['trials']:,}",
                *(
                    text
                    for clock in ("cpu", "wall")
                    for text in (
                        f"{row[f'get_trials_{clock}']:.2f}",
                        f"{row[f'best_learner_{clock}']:.2f}",
                        f"{row[f'best_learner_{clock}'] / row[f'get_trials_{clock}']:.2f}",
                    )
                ),
            ]
            for row in rows
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
