"""What a sampler and a pruner cost per trial, beside an objective that does nothing.

    python benchmarks/decision_cost.py [--smoke] [--time-limit S] [--storages memory sqlite]

All methods run the same objective in one process, a block of trials each in turn, so that what
else the machine does falls on all of them. A method that has used `--patience` seconds stops.
Figures are CPU milliseconds; on SQLite there is wall-clock as well, which includes the disk.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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
from optuna_daub import report
from optuna_daub import training_sizes


SIZES = (500, 750, 1125, 1688, 2532, 3798, 5000)
N_TRIALS = {"memory": 20_000, "sqlite": 2_000}
PARTS = 20
"""How many figures are kept of each method: means over so many consecutive parts of its trials."""

BLOCKS_PER_PART = 5
"""How often the methods take turns within a part."""

N_TRACED = 2_000
"""Trials whose memory is traced."""


def score(x: float, size: int) -> float:
    """Return a score whose bound falls with each size, so that the turn always changes hands."""
    return 0.9 + 0.01 * x - 0.05 * SIZES.index(size)


def plain(trial: optuna.Trial) -> float:
    """Report every size until the pruner ends it, as objectives of Optuna do."""
    x = trial.suggest_float("x", 0, 1)
    for n in SIZES:
        trial.report(score(x, n), n)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score(x, n)


def paired(trial: optuna.Trial) -> float:
    """Report the sizes that are handed out."""
    x = trial.suggest_float("x", 0, 1)
    for n in training_sizes(trial):
        value = score(x, n)
        report(trial, n, value, training_score=value)
    return value


@dataclass(frozen=True)
class Method:
    """A pruner, and what goes with it."""

    pruner: Callable[[], optuna.pruners.BasePruner]
    objective: Callable[[optuna.Trial], float] = plain
    runs_per_learner: int = 0
    """How often the pair comes back to a learner before all are done; 0 for others."""

    def study(self, storage: str | None, n_trials: int) -> optuna.Study:
        """Return an empty study that is not at its end after so many trials."""
        sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(seed=0)
        if self.runs_per_learner:
            n_learners = max(1, n_trials // self.runs_per_learner)
            sampler = DataAllocationSampler(sampler, n_learners=n_learners)
        return optuna.create_study(
            direction="maximize", storage=storage, sampler=sampler, pruner=self.pruner()
        )


PAPER = partial(DAUBPruner, sizes=SIZES, bound="projection", step="geometric")
METHODS = {
    "our pair": Method(partial(DAUBPruner, sizes=SIZES), paired, runs_per_learner=2),
    "our pair as in the paper": Method(PAPER, paired, runs_per_learner=4),
    "DAUBPruner alone": Method(partial(DAUBPruner, sizes=SIZES)),
    "DAUBPruner alone as in the paper": Method(PAPER),
    "NopPruner": Method(optuna.pruners.NopPruner),
    "MedianPruner": Method(optuna.pruners.MedianPruner),
    "SuccessiveHalvingPruner": Method(partial(optuna.pruners.SuccessiveHalvingPruner, 500)),
    "HyperbandPruner": Method(partial(optuna.pruners.HyperbandPruner, 500, 5000)),
}


class Meter:
    """Runs one method block by block and keeps what each block took."""

    def __init__(self, method: Method, storage: str | None, n_trials: int) -> None:
        self.method = method
        self.study = method.study(storage, n_trials)
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def run(self, n_trials: int) -> None:
        """Run a block of trials."""
        cpu, wall = time.process_time(), time.perf_counter()
        self.study.optimize(self.method.objective, n_trials=n_trials)
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)

    def figures(self, block: int) -> dict[str, Any]:
        """Return milliseconds per trial of each part, and reports per trial."""
        trials = self.study.get_trials(deepcopy=False)
        return {
            "trials": len(trials),
            "reports": _mean([float(len(_own_steps(trial))) for trial in trials]),
            "cpu": [1e3 * _mean(part) / block for part in _parts(self.cpu)],
            "wall": [1e3 * _mean(part) / block for part in _parts(self.wall)],
        }


def measure(kind: str, n_trials: int, patience: float, names: Sequence[str]) -> Mapping[str, Any]:
    """Run methods on one kind of storage, in turns."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    block = max(1, n_trials // (PARTS * BLOCKS_PER_PART))
    with tempfile.TemporaryDirectory() as folder:
        meters = {}
        for i, name in enumerate(names):
            storage = None if kind == "memory" else f"sqlite:///{folder}/{i}.db"
            meters[name] = Meter(METHODS[name], storage, n_trials)
        for _ in range(n_trials // block):
            for meter in meters.values():
                if sum(meter.wall) < patience:
                    gc.collect()
                    meter.run(block)
        methods = {name: meter.figures(block) for name, meter in meters.items()}
    return {"n_trials": n_trials, "block": block, "methods": methods}


def trace(n_trials: int, names: Sequence[str]) -> Mapping[str, Any]:
    """Return kilobytes per trial that each method keeps, with Optuna's in-memory storage."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    methods = {}
    for name in names:
        study = METHODS[name].study(None, n_trials)
        tracemalloc.start()
        study.optimize(METHODS[name].objective, n_trials=n_trials)
        gc.collect()
        methods[name] = tracemalloc.get_traced_memory()[0] / len(study.trials) / 1e3
        tracemalloc.stop()
    return {"n_trials": n_trials, "methods": methods}


def main() -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--patience", type=float, default=100.0, help="seconds for each method")
    parser.add_argument("--storages", nargs="+", choices=N_TRIALS, default=list(N_TRIALS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    if options.smoke:
        options.storages = ["memory"]
    results = results_of(options)
    path = results / "decision_cost.jsonl"
    rows = run_all(runs(options), path, options.time_limit)
    if not rows:
        sys.exit("There is nothing to report: the time limit left no run.")
    command = "python benchmarks/decision_cost.py " + " ".join(sys.argv[1:])
    text = "\n\n".join([f"`{command.strip()}`", provenance(rows), *map(table, rows)]) + "\n"
    (results / "decision_cost.md").write_text(text, encoding="utf-8")
    print(text)


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield the parts of the benchmark."""
    for kind in options.storages:
        n_trials = PARTS if options.smoke else N_TRIALS[kind]
        key = {"storage": kind, "trials": n_trials}
        yield Run(key, partial(measure, kind, n_trials, options.patience, options.methods))
    n_traced = PARTS if options.smoke else N_TRACED
    yield Run(
        {"storage": "traced memory", "trials": n_traced}, partial(trace, n_traced, options.methods)
    )


def table(row: Row) -> str:
    """Return the Markdown table of a row."""
    kind, methods = row["key"]["storage"], row["methods"]
    if kind == "traced memory":
        lines = ["| method | kB per trial |", "|---|---:|"]
        lines += [f"| {name} | {size:.2f} |" for name, size in methods.items()]
        return "\n".join([f"### Memory after {row['n_trials']:,} trials", "", *lines])
    clocks = ["cpu"] if kind == "memory" else ["wall", "cpu"]
    return "\n\n".join(_clock_table(row, clock) for clock in clocks)


def _clock_table(row: Row, clock: str) -> str:
    nop = row["methods"]["NopPruner"]
    part = row["n_trials"] // PARTS
    where = "in memory" if row["key"]["storage"] == "memory" else "on SQLite"
    what = "CPU" if clock == "cpu" else "wall-clock"
    lines = [
        f"### {what} milliseconds per trial, {where}, {row['n_trials']:,} trials",
        "",
        f"| method | first tenth | trials {part:,} to {2 * part:,} | last tenth | last / first "
        "| mean / NopPruner | reports per trial | per report | trials |",
        "|---|" + "---:|" * 8,
    ]
    for name, figures in row["methods"].items():
        ms = figures[clock]
        tenth = max(1, PARTS // 10)
        is_cut = figures["trials"] < row["n_trials"]
        first, last = _mean(ms[:tenth]), _mean(ms[-tenth:])
        ratio = _mean(ms) / _mean(nop[clock][: len(ms)])
        cells = [
            f"{first:.3f}",
            f"{_mean(ms[1:2]):.3f}",
            f"{last:.3f}",
            f"{last / first:.2f}",
            f"{ratio:.2f}",
            f"{figures['reports']:.2f}",
            f"{_mean(ms) / figures['reports']:.3f}",
            f"{figures['trials']:,}" + " (cut by time)" * is_cut,
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _own_steps(trial: optuna.trial.FrozenTrial) -> list[int]:
    """Return the steps that the trial itself reported, not those that it inherited."""
    run = trial.system_attrs.get("daub:run", {"inherited": 0})
    return [step for step in trial.intermediate_values if step > run["inherited"]]


def _parts(blocks: list[float]) -> list[list[float]]:
    return [blocks[i : i + BLOCKS_PER_PART] for i in range(0, len(blocks), BLOCKS_PER_PART)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
