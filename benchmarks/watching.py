"""What watching a study costs, and how true its projected seconds are.

    python benchmarks/watching.py [--smoke] [--learners 1000] [--probe-seconds 0.5]

*Share*: one study of a closed pool on SQLite with `DashboardCallback`; training sleeps in
proportion to the size, so long on the size of the first probes. Within this run the wall seconds
inside the callback are compared with all.

*Projection*: the recorded tables are replayed; after each quarter of the probes the projected
seconds of training all learners seen so far on everything are divided by the true ones.

Rows go to results/watching.jsonl, tables to results/watching.md.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from benchmarks.replay_problems import SOURCES
from benchmarks.replay_problems import Problem
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import DAUB
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import replay
from optuna_daub.core.costs.cost_model import expected_seconds
from optuna_daub.core.decision import Extend
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.pool import Curves
from optuna_daub.dashboard import DashboardCallback


SIZES = (2_500, 5_000, 10_000, 20_000, 40_000)
"""Of the made study; the first probes have a sixteenth of all the data."""
QUARTERS = (0.25, 0.5, 0.75, 1.0)
"""Shares of the probes of a replay after which seconds are projected."""


class TimedCallback:
    """The callback, and how long each of its calls took."""

    def __init__(self) -> None:
        self.callback = DashboardCallback()
        self.seconds: list[float] = []

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        begun = time.perf_counter()
        self.callback(study, trial)
        self.seconds.append(time.perf_counter() - begun)


def share(n_learners: int, probe_seconds: float) -> Mapping[str, Any]:
    """Run a study of so many learners; return what the callback took of it."""

    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.0, 1.0)
        trial.suggest_categorical("kind", ["tree", "net", "forest"])
        luck = random.Random(trial.suggest_int("seed", 0, 2**31))
        rise, score = luck.uniform(0.15, 0.25), 0.0
        for n in training_sizes(trial):
            time.sleep(probe_seconds * n / SIZES[0])
            score = 0.6 + 0.3 * skill - rise * (SIZES[0] / n) ** 0.5 + luck.gauss(0.0, 0.003)
            report(trial, n, score, training_score=min(1.0, score + 0.1))
        return score

    timed = TimedCallback()
    with tempfile.TemporaryDirectory() as folder:
        study = optuna.create_study(
            study_name="made",
            storage=f"sqlite:///{folder}/study.db",
            direction="maximize",
            sampler=DataAllocationSampler(
                optuna.samplers.RandomSampler(seed=0), n_learners=n_learners
            ),
            pruner=DAUBPruner(sizes=SIZES),
        )
        begun = time.perf_counter()
        study.optimize(objective, callbacks=[timed])
        seconds = time.perf_counter() - begun
        counts = {"learners": len(learning_curves(study)), "probes": len(allocations(study))}
    drawn = [call for call in timed.seconds if call > 0.01]
    return {
        **counts,
        "trials": len(timed.seconds),
        "seconds": seconds,
        "callback_seconds": math.fsum(timed.seconds),
        "drawings": len(drawn),
        "last_drawing": timed.seconds[-1],
        "call_between": float(np.median(timed.seconds)),
    }


def projection(problem: Problem, policy: Policy) -> Mapping[str, Any]:
    """Return projected by true seconds of training on everything, after each quarter."""
    known = {curve.learner: curve for curve in problem.curves}
    probes = [step for step in replay(policy, problem.curves) if isinstance(step, Extend)]
    seen: dict[int, list[Observation]] = {}
    ratios = []
    quarters = [math.ceil(part * len(probes)) for part in QUARTERS]
    for count, probe in enumerate(probes, 1):
        made = known[probe.learner].at(probe.size)
        if made is not None:
            seen.setdefault(probe.learner, []).append(made)
        if count in quarters:
            able = Curves(
                LearningCurve(i, (*own,)) for i, own in seen.items() if i in problem.verdicts
            )
            truth = math.fsum(problem.costs[i, problem.full_size] for i in able)
            projected = expected_seconds(able, problem.full_size, problem.full_size)
            ratios.append(math.fsum(projected.values()) / truth)
    return {"ratios": ratios}


POLICIES = {"value per second": ValuePerSecond, "DAUB, as in the paper": DAUB}


def main(arguments: list[str] | None = None) -> None:
    """Do what is left to do and write the tables."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    parser = parser_of(__doc__)
    parser.add_argument("--learners", type=int, default=1000, help="of the study")
    parser.add_argument("--probe-seconds", type=float, default=0.5, help="of each first probe")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.learners, options.probe_seconds = 6, 0.0
    results = results_of(options)
    rows = run_all(
        runs(options.learners, options.probe_seconds, is_smoke=options.smoke),
        results / "watching.jsonl",
        options.time_limit,
    )
    write_report(results / "watching.md", rows, _report)


def runs(n_learners: int, probe_seconds: float, *, is_smoke: bool) -> Iterator[Run]:
    """Yield the parts of the benchmark."""
    for name in ("made",) if is_smoke else ("parity, shaken", "covtype, shaken"):
        source = SOURCES[name]
        if is_there(name, source.path):
            for seed in range(2 if is_smoke else 12):
                (problem,) = source.problems(seed)
                for policy, make in POLICIES.items():
                    yield Run(
                        {"problem": name, "policy": policy, "seed": seed},
                        partial(projection, problem, make(problem.sizes)),
                    )
    yield Run(
        {"learners": n_learners, "probe_seconds": probe_seconds},
        partial(share, n_learners, probe_seconds),
    )


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the tables in Markdown."""
    yield "### Seconds of `DashboardCallback`, within one study on SQLite"
    yield table(
        ["learners", "trials", "seconds", "in the callback", "share", "drawings", "the last one"],
        (
            [
                f"{row['learners']:,}",
                f"{row['trials']:,}",
                f"{row['seconds']:,.0f}",
                f"{row['callback_seconds']:.1f}",
                f"{row['callback_seconds'] / row['seconds']:.2%}",
                f"{row['drawings']:,}",
                f"{row['last_drawing']:.1f}",
            ]
            for row in rows
            if "drawings" in row
        ),
    )
    yield "### Projected by true seconds, after each quarter of the probes: median (range)"
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        if "ratios" in row:
            key = row["key"]["problem"], row["key"]["policy"]
            groups.setdefault(key, []).append(row["ratios"])
    yield table(
        ["problem, policy", *(f"{part:.0%}" for part in QUARTERS)],
        (
            [", ".join(key), *(_spread(column) for column in zip(*ratios, strict=True))]
            for key, ratios in groups.items()
        ),
    )


def _spread(ratios: tuple[float, ...]) -> str:
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    main()
