"""How much sooner several workers finish: wall-clock, duplicate probes and idle time.

    python benchmarks/workers.py [--smoke] [--time-limit S] [--storages sqlite postgresql]

Each worker is a process that opens the study by its storage; the clock runs from when all of them
have, until the last has ended by itself. PostgreSQL is the server at OPTUNA_DAUB_POSTGRESQL.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import optuna

from benchmarks.options import parser_of
from benchmarks.options import results_of
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import provenance
from benchmarks.rows import run_all
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import report
from optuna_daub import training_sizes


SIZES = (500, 750, 1125, 1688, 2532, 3798, 5000)
N_LEARNERS = 40
WORKERS = (1, 2, 4)
SPAWN = multiprocessing.get_context("spawn")


def sleep(seconds: float, size: int, scale: float) -> None:
    """Take as long at every size."""
    time.sleep(seconds * scale)


def sleep_by_size(size: int, scale: float) -> None:
    """Take longer at larger sizes, as training does."""
    time.sleep(2e-4 * size * scale)


def compute(size: int, scale: float) -> None:
    """Keep a core busy for a fixed amount of work, about 0.2 s of an idle one."""
    sum(i * i for i in range(int(3e6 * scale)))


PROBES = {
    "sleeps 0.2 s": partial(sleep, 0.2),
    "sleeps 1 s": partial(sleep, 1.0),
    "sleeps 0.2 ms per example": sleep_by_size,
    "computes 0.2 s": compute,
}


class Scattered(optuna.samplers.RandomSampler):
    """Proposes the same learners whoever asks: x is a function of the trial's number."""

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: optuna.distributions.BaseDistribution,
    ) -> float:
        return trial.number * 0.618034 % 1.0


@dataclass(frozen=True)
class Case:
    """What the workers of one run agree on."""

    storage: str
    name: str
    log: Path
    probe: str
    scale: float
    n_learners: int

    def study(self) -> optuna.Study:
        return optuna.create_study(
            study_name=self.name,
            storage=self.storage,
            load_if_exists=True,
            direction="maximize",
            sampler=DataAllocationSampler(Scattered(), n_learners=self.n_learners),
            pruner=DAUBPruner(sizes=SIZES),
        )

    def objective(self, trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for n in training_sizes(trial):
            begun = time.monotonic()
            PROBES[self.probe](n, self.scale)
            with self.log.open("a") as log:
                log.write(f"{x} {n} {time.monotonic() - begun}\n")
            value = 0.5 + 0.4 * x - (0.3 + x) / n**0.5
            report(trial, n, value, training_score=min(1.0, value + 2 / n**0.5))
        return value

    def work(self, together: Barrier) -> None:
        """Work on the study until it ends, from when all workers have opened it."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = self.study()
        together.wait()
        study.optimize(self.objective)


def measure(kind: str, probe: str, n_workers: int, scale: float) -> Mapping[str, Any]:
    """Run one study with so many workers."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        server = os.environ.get("OPTUNA_DAUB_POSTGRESQL", "")
        storage = server if kind == "postgresql" else f"sqlite:///{folder}/study.db"
        name = f"workers-{time.time_ns()}"
        n_learners = max(4, int(N_LEARNERS * scale))
        case = Case(storage, name, Path(folder) / "probes", probe, scale, n_learners)
        study = case.study()
        together = SPAWN.Barrier(n_workers + 1)
        crew = [SPAWN.Process(target=case.work, args=[together]) for _ in range(n_workers)]
        for worker in crew:
            worker.start()
        together.wait()
        begun = time.monotonic()
        for worker in crew:
            worker.join()
        wall = time.monotonic() - begun
        probes = [line.split() for line in case.log.read_text().splitlines()]
        best = best_learner(study)
        n_idle = sum(not trial.intermediate_values for trial in study.trials)
        optuna.delete_study(study_name=name, storage=storage)
    assert best is not None
    return {
        "wall": wall,
        "probes": len(probes),
        "duplicates": len(probes) - len({(x, n) for x, n, _ in probes}),
        "busy": sum(float(seconds) for *_, seconds in probes),
        "idle_trials": n_idle,
        "winner": best.params["x"],
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    has_server = "OPTUNA_DAUB_POSTGRESQL" in os.environ
    kinds = ["sqlite", "postgresql"] if has_server else ["sqlite"]
    parser.add_argument("--storages", nargs="+", choices=kinds, default=kinds)
    options = parser.parse_args()
    if options.smoke:
        options.storages = ["sqlite"]
    results = results_of(options)
    rows = run_all(runs(options), results / "workers.jsonl", options.time_limit)
    if not rows:
        sys.exit("There is nothing to report: the time limit left no run.")
    command = "python benchmarks/workers.py " + " ".join(sys.argv[1:])
    text = "\n\n".join([f"`{command.strip()}`", provenance(rows), table(rows)]) + "\n"
    (results / "workers.md").write_text(text, encoding="utf-8")
    print(text)


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield the product of storages, objectives and numbers of workers."""
    scale = 0.1 if options.smoke else 1.0
    probes = [*PROBES][:1] if options.smoke else PROBES
    for kind in options.storages:
        for probe in probes:
            for n_workers in WORKERS[:2] if options.smoke else WORKERS:
                key: dict[str, str | int] = {"storage": kind, "objective": probe}
                run = partial(measure, kind, probe, n_workers, scale)
                yield Run({**key, "workers": n_workers}, run)


def table(rows: list[Row]) -> str:
    """Return the Markdown table of all rows."""
    lines = [
        f"{N_LEARNERS} learners, {len(SIZES)} sizes, {os.cpu_count()} cores.",
        "",
        "| storage | objective | workers | seconds | of one worker | probes | duplicates "
        "| idle time | idle trials | best x | load |",
        "|---|---|" + "---:|" * 9,
    ]
    alone: dict[tuple[str, str], float] = {}
    for row in rows:
        kind, probe, n_workers = (row["key"][part] for part in ("storage", "objective", "workers"))
        if n_workers == 1:
            alone[kind, probe] = row["wall"]
        share = row["wall"] / alone.get((kind, probe), float("nan"))
        idle = 1 - row["busy"] / (n_workers * row["wall"])
        counts = f"{row['probes']} | {row['duplicates']} | {100 * idle:.0f} %"
        lines.append(
            f"| {kind} | {probe} | {n_workers} | {row['wall']:.1f} | {share:.2f} | {counts} "
            f"| {row['idle_trials']} | {row['winner']:.3f} | {row['load']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
