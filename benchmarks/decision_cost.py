"""Cost of a decision: of the rules alone, and of sampler and pruner per trial.

    python benchmarks/decision_cost.py [--smoke] [--time-limit S] [--storages memory sqlite]

*Alone*: a policy decides on a pool of many learners after each more observation. *Per trial*: all
methods run an objective that does nothing in one process, a block of trials each in turn, so
what else the machine does falls on all of them; one that has used `--patience` seconds stops.
Figures are CPU milliseconds; on SQLite there is wall-clock as well, which includes the disk. Rows
go to results/decision_cost.jsonl, tables to results/decision_cost.md.
"""

from __future__ import annotations

import argparse
import gc
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

import numpy as np
import optuna

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving


SIZES = (500, 750, 1125, 1688, 2532, 3798, 5000)
N_TRIALS = {"memory": 20_000, "sqlite": 2_000}
PARTS = 20
"""Number of figures kept of each method: means over consecutive parts of its trials."""

BLOCKS_PER_PART = 5
"""Number of times that the methods take turns within a part."""

N_TRACED = 2_000
"""Trials whose memory is traced."""
POOLS = (20, 1_000, 20_000)
"""Numbers of learners in the pools on which policies decide."""
N_DECISIONS = 200
"""Number of decisions that are timed on each pool."""


def score(x: float, size: int) -> float:
    """Return a score whose bound falls with each size, so the turn always changes hands."""
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
    """Report the sizes that the policy asks for."""
    x = trial.suggest_float("x", 0, 1)
    for n in training_sizes(trial):
        value = score(x, n)
        report(trial, n, value, training_score=value)
    return value


@dataclass(frozen=True)
class Method:
    """A pruner, and what goes with it."""

    pruner: Callable[[], optuna.pruners.BasePruner]
    is_pair: bool = False
    """True if the sampler is ours too."""
    runs_per_learner: int | None = None
    """In a closed pool, how often the pair comes back to a learner before all are done."""

    @property
    def objective(self) -> Callable[[optuna.Trial], float]:
        """The objective of the method."""
        return paired if self.is_pair else plain

    def study(self, storage: str | None, n_trials: int) -> optuna.Study:
        """Return an empty study that is not at its end after so many trials."""
        sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(seed=0)
        if self.is_pair:
            runs = self.runs_per_learner
            n_learners = None if runs is None else max(1, n_trials // runs)
            sampler = DataAllocationSampler(sampler, n_learners=n_learners)
        return optuna.create_study(
            direction="maximize", storage=storage, sampler=sampler, pruner=self.pruner()
        )


DEFAULT = partial(DAUBPruner, sizes=SIZES)
PAPER = partial(DAUBPruner.paper, sizes=SIZES)
METHODS = {
    "our pair": Method(DEFAULT, is_pair=True),
    "our pair, as in the paper": Method(PAPER, is_pair=True, runs_per_learner=4),
    "DAUBPruner alone": Method(DEFAULT),
    "DAUBPruner alone, as in the paper": Method(PAPER),
    "NopPruner": Method(optuna.pruners.NopPruner),
    "MedianPruner": Method(optuna.pruners.MedianPruner),
    "SuccessiveHalvingPruner": Method(partial(optuna.pruners.SuccessiveHalvingPruner, 500)),
    "HyperbandPruner": Method(partial(optuna.pruners.HyperbandPruner, 500, 5000)),
}
POLICIES: Mapping[str, Policy] = {
    "value per second (the default)": DEFAULT().policy,
    "DAUB, as in the paper": PAPER().policy,
    "halving by 1/4": SuccessiveHalving(SIZES, 4),
}


def decide(policy: Policy, n_learners: int, n_decisions: int) -> Mapping[str, Any]:
    """Return what decisions take on a closed pool, each after one more observation."""
    rng = np.random.default_rng(0)
    curves = []
    for learner in range(n_learners):
        known, x = int(rng.integers(3, len(SIZES))), float(rng.random())
        seen = tuple(_observation(x, size) for size in SIZES[:known])
        curves.append(LearningCurve(learner, seen))
    pool = Pool(Curves(curves))
    policy.decide(pool)
    taken = []
    for _ in range(n_decisions):
        # An observation of anyone is as good as of the learner that the policy would train.
        learner = int(rng.integers(n_learners))
        left = [size for size in SIZES if size > pool.curves[learner].size]
        if left:
            pool = pool.observed(learner, _observation(float(rng.random()), left[0]))
            begun = time.process_time()
            policy.decide(pool)
            taken.append(time.process_time() - begun)
    ms = 1e3 * np.array(taken)
    return {
        "mean": float(ms.mean()),
        "p95": float(np.quantile(ms, 0.95)),
    }


def _observation(x: float, size: int) -> Observation:
    return Observation(size, 0.5 + 0.4 * x - 5 / size**0.5, 0.99, seconds=1e-3 * size)


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
        n_reports = sum(len(trial.intermediate_values) for trial in trials)
        if self.method.is_pair:
            n_reports = len(allocations(self.study))  # a run inherits the scores of earlier ones
        return {
            "trials": len(trials),
            "reports": n_reports / len(trials),
            "cpu": [1e3 * _mean(part) / block for part in _parts(self.cpu)],
            "wall": [1e3 * _mean(part) / block for part in _parts(self.wall)],
        }


def measure(kind: str, n_trials: int, patience: float, names: Sequence[str]) -> Mapping[str, Any]:
    """Run methods on one kind of storage, in turns."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    block = max(1, n_trials // (PARTS * BLOCKS_PER_PART))
    gc.freeze()  # what was there before is no garbage of the runs
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
    gc.unfreeze()
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--patience", type=float, default=100.0, help="seconds for each method")
    parser.add_argument("--storages", nargs="*", choices=N_TRIALS, default=list(N_TRIALS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args(arguments)
    if options.smoke:
        options.storages = ["memory"]
    results = results_of(options)
    rows = run_all(runs(options), results / "decision_cost.jsonl", options.time_limit)
    write_report(results / "decision_cost.md", rows, _report)


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield the parts of the benchmark."""
    pools, n_decisions = (POOLS[:1], 10) if options.smoke else (POOLS, N_DECISIONS)
    for name, policy in POLICIES.items():
        for n in pools:
            yield Run(
                {"storage": "none", "policy": name, "learners": n},
                partial(decide, policy, n, n_decisions),
            )
    for kind in options.storages:
        n_trials = PARTS if options.smoke else N_TRIALS[kind]
        yield Run(
            {"storage": kind, "trials": n_trials},
            partial(measure, kind, n_trials, options.patience, options.methods),
        )
    n_traced = PARTS if options.smoke else N_TRACED
    yield Run(
        {"storage": "traced memory", "trials": n_traced}, partial(trace, n_traced, options.methods)
    )


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the tables in Markdown."""
    decisions = {tuple(row["key"].values())[1:]: row for row in rows if "p95" in row}
    pools = sorted({n for _, n in decisions})
    if decisions:
        yield "### CPU milliseconds of a decision after one more observation: mean (95 %)"
        yield table(
            ["policy", *(f"{n:,} learners" for n in pools)],
            (
                [name, *(_decision(decisions.get((name, n))) for n in pools)]
                for name in dict.fromkeys(name for name, _ in decisions)
            ),
        )
    for row in rows:
        kind = row["key"]["storage"]
        if kind == "traced memory":
            yield f"### Memory after {row['n_trials']:,} trials"
            lines = ([name, f"{size:.2f}"] for name, size in row["methods"].items())
            yield table(["method", "kB per trial"], lines)
        elif kind != "none":
            for clock in ["cpu"] if kind == "memory" else ["wall", "cpu"]:
                yield from _clock_table(row, clock)


def _decision(row: Row | None) -> str:
    return "" if row is None else f"{row['mean']:.2f} ({row['p95']:.2f})"


def _clock_table(row: Row, clock: str) -> Iterator[str]:
    nop = row["methods"].get("NopPruner")
    where = "in memory" if row["key"]["storage"] == "memory" else "on SQLite"
    what = "CPU" if clock == "cpu" else "wall-clock"
    yield f"### {what} milliseconds per trial, {where}, {row['n_trials']:,} trials"
    lines = []
    tenth = PARTS // 10
    for name, figures in row["methods"].items():
        ms = figures[clock]
        first, last = _mean(ms[:tenth]), _mean(ms[-tenth:])
        is_cut = figures["trials"] < row["n_trials"]
        lines.append(
            [
                name,
                f"{first:.3f}",
                f"{last:.3f}",
                f"{last / first:.2f}",
                f"{_mean(ms) / _mean(nop[clock][: len(ms)]):.2f}" if nop else "",
                f"{figures['reports']:.2f}",
                f"{_mean(ms) / figures['reports']:.3f}",
                f"{figures['trials']:,}" + " (cut by time)" * is_cut,
            ]
        )
    yield table(
        [
            "method",
            "first tenth",
            "last tenth",
            "last / first",
            "mean / NopPruner",
            "reports per trial",
            "per report",
            "trials",
        ],
        lines,
    )


def _parts(blocks: list[float]) -> list[list[float]]:
    return [blocks[i : i + BLOCKS_PER_PART] for i in range(0, len(blocks), BLOCKS_PER_PART)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
