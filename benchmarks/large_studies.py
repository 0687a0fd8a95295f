"""Time and memory of a trial in a study of 20,000 learners and 50,000 trials.

    OMP_NUM_THREADS=1 python benchmarks/large_studies.py [--smoke] [--time-limit S]
        [--storages memory sqlite journal] [--learners 0 2000 20000]

A study is filled with learners of two to three runs each, two and a half on average, as a search
leaves them; then trials go on, as in a search that is resumed. The objective does nothing, so
all that is left is Optuna, its storage, sampler and pruner. Per trial: CPU milliseconds of a first
block, in which the study is read, and of the last one, and by how much the process grows from the
third block on. Each study is in a process of its own. Rows go to results/large_studies.jsonl, the
table to results/large_studies.md.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import psutil
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage
from optuna.storages import InMemoryStorage
from optuna.storages import JournalStorage
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial
from optuna.trial import TrialState
from optuna.trial import create_trial

from benchmarks.meter import apart
from benchmarks.rows import Row
from benchmarks.rows import Run as Part
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import bulk
from optuna_daub.study import records
from optuna_daub.study.records import Run


SIZES = (500, 1000, 2000, 4000, 8000)
LEARNERS = (0, 2_000, 20_000)
RUNS_PER_LEARNER = 2.5
"""Trials of a filled study for each of its learners."""
BLOCK, N_BLOCKS = 50, 5
"""Trials that are timed together, and how many times."""
MEGABYTE = 2**20
STORAGES: Mapping[str, Callable[[str], BaseStorage]] = {
    "memory": lambda folder: InMemoryStorage(),
    "sqlite": lambda folder: RDBStorage(f"sqlite:///{folder}/study.db"),
    "journal": lambda folder: JournalStorage(JournalFileBackend(f"{folder}/study.journal")),
}


def score(x: float, size: int) -> float:
    """Return the score of a learner, which is a formula."""
    return 0.5 + 0.4 * x - 5.0 / size**0.5


def objective(trial: optuna.Trial) -> float:
    """Train nothing, and report what comes of it."""
    x, value = trial.suggest_float("x", 0, 1), 0.0
    for size in training_sizes(trial):
        value = score(x, size)
        report(trial, size, value, seconds=1e-3 * size)
    return value


def trials(n_learners: int) -> Iterator[FrozenTrial]:
    """Yield the finished trials of a study: first runs, then second and third ones."""
    for number in range(round(RUNS_PER_LEARNER * n_learners)):
        learner, place = number % n_learners, number // n_learners
        x, seen = (0.618034 * learner) % 1, SIZES[: place + 1]
        inherited = seen[-2] if place else 0
        run = Run(learner, seen[-1], inherited, None, SIZES[-1], "", "filled|1|1", number)
        facts = {"training_score": None, "n_validation": None, "seconds": 1e-3 * seen[-1]}
        yield create_trial(
            state=TrialState.PRUNED,
            params={"x": x},
            distributions={"x": FloatDistribution(0, 1)},
            intermediate_values={size: score(x, size) for size in seen},
            system_attrs={records.RUN: {**vars(run)}, f"{records.OBSERVATION}{seen[-1]}": facts},
        )


def measure(kind: str, n_learners: int, block: int, n_blocks: int) -> Mapping[str, Any]:
    """Return what trials take in a study of so many learners."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        storage = optuna.storages.get_storage(STORAGES[kind](folder))
        study = optuna.create_study(
            storage=storage,
            direction="maximize",
            sampler=DataAllocationSampler(optuna.samplers.RandomSampler(seed=0)),
            pruner=DAUBPruner(sizes=SIZES),
        )
        begun = time.perf_counter()
        if kind == "sqlite":  # one by one it takes ten minutes
            bulk.replace_trials(storage, study._study_id, [*trials(n_learners)])
        else:
            for trial in trials(n_learners):
                storage.create_new_trial(study._study_id, trial)
        filled = time.perf_counter() - begun
        gc.collect()
        before = process.memory_info().rss
        cpu, wall, sizes = [], [], []
        for _ in range(n_blocks):
            spent, since = time.process_time(), time.perf_counter()
            study.optimize(objective, n_trials=block)
            cpu.append(1e3 * (time.process_time() - spent) / block)
            wall.append(1e3 * (time.perf_counter() - since) / block)
            gc.collect()
            sizes.append(process.memory_info().rss)
        # Memory that the first decisions took and gave back is used again from the third block on.
        settled = sizes[min(1, n_blocks - 1)]
        files = [path.stat().st_size for path in Path(folder).iterdir()]
        return {
            "trials": len(study.get_trials(deepcopy=False)),
            "learners": len(learning_curves(study)),
            "filled": filled,
            "cpu": cpu,
            "wall": wall,
            "read_mb": (sizes[0] - before) / MEGABYTE,
            "rss_mb": sizes[-1] / MEGABYTE,
            "grown_kb": (sizes[-1] - settled) / 1024 / (block * max(1, n_blocks - 2)),
            "file_mb": sum(files) / MEGABYTE,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--storages", nargs="*", choices=STORAGES, default=list(STORAGES))
    parser.add_argument("--learners", nargs="*", type=int, default=list(LEARNERS))
    options = parser.parse_args(arguments)
    if options.smoke:
        options.storages, options.learners = ["memory", "journal"], [0, 20]
    results = results_of(options)
    rows = run_all(parts(options), results / "large_studies.jsonl", options.time_limit)
    write_report(results / "large_studies.md", rows, _report)


def parts(options: argparse.Namespace) -> Iterator[Part]:
    """Yield the studies."""
    block, n_blocks = (4, 2) if options.smoke else (BLOCK, N_BLOCKS)
    for kind in options.storages:
        for n_learners in options.learners:
            run = partial(partial, measure, kind, n_learners, block, n_blocks)
            yield Part({"storage": kind, "learners": n_learners}, partial(apart, run))


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown."""
    yield table(
        ["storage", "learners", "trials", "CPU ms per trial, first block", "last block",
         "wall-clock ms, last block", "MB to read it", "MB in all", "kB per further trial",
         "MB of the file"],
        (
            [
                row["key"]["storage"],
                f"{row['learners']:,}",
                f"{row['trials']:,}",
                f"{row['cpu'][0]:.1f}",
                f"{row['cpu'][-1]:.1f}",
                f"{row['wall'][-1]:.1f}",
                f"{row['read_mb']:.0f}",
                f"{row['rss_mb']:.0f}",
                f"{row['grown_kb']:.1f}",
                f"{row['file_mb']:.1f}",
            ]
            for row in rows
            if "cpu" in row
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
