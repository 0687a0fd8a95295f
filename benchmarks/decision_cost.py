"""Time and memory of decisions: of the default rule alone, and per trial of a study.

    OMP_NUM_THREADS=1 python benchmarks/decision_cost.py [--smoke] [--time-limit S]
        [--storages memory sqlite journal] [--learners 0 2000 20000]

*Alone*: the rule decides on an open pool of many learners after each more observation. *Per
trial*: a study is filled with learners of two to three runs each, as a search leaves them; then
trials of an objective that does nothing go on, so only Optuna, its storage, sampler and pruner
take time. CPU milliseconds are those of a first block of trials, in which the study is read, and
of the last one; memory is that by which the process grows from the third block on. Empty studies
are measured without a pruner too. Each study is in a process of its own. Rows go to
results/decision_cost.jsonl, tables to results/decision_cost.md.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial

import numpy as np
import optuna
import psutil
from optuna import storages
from optuna.distributions import FloatDistribution

from benchmarks.rows import Row
from benchmarks.rows import Run as Part
from benchmarks.rows import parser_of
from benchmarks.rows import record
from benchmarks.rows import table
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import core
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.study import records
from optuna_daub.study import starting
from optuna_daub.study.records import Run


SIZES = (500, 1000, 2000, 4000, 8000)
LEARNERS = (0, 2_000, 20_000)
RUNS_PER_LEARNER = 2.5
"""Trials of a filled study for each of its learners."""
BLOCK, N_BLOCKS = 50, 5
"""Trials that are timed together, and how many times."""
N_DECISIONS = 30
"""Decisions that are timed on each pool."""
STORAGES: Mapping[str, Callable[[str], storages.BaseStorage]] = {
    "memory": lambda folder: storages.InMemoryStorage(),
    "sqlite": lambda folder: storages.RDBStorage(f"sqlite:///{folder}/study.db"),
    "journal": lambda folder: storages.JournalStorage(
        storages.journal.JournalFileBackend(f"{folder}/study.journal")
    ),
}
POOLS = (200, 20_000)
"""Numbers of learners in the pools on which the rule decides."""
SPACE = Space((("x", Range(0.0, 1.0)), ("y", Range(0.0, 1.0))))


def score(x: float, size: int) -> float:
    """Return the score of a learner, which is a formula."""
    return 0.5 + 0.4 * x - 5.0 / size**0.5


def objective(trial: optuna.Trial) -> float:
    """Train nothing, and report scores of a formula."""
    x, value = trial.suggest_float("x", 0, 1), 0.0
    for size in training_sizes(trial):
        value = score(x, size)
        report(trial, size, value, seconds=1e-3 * size)
    return value


def plain(trial: optuna.Trial) -> float:
    """Report every size, as objectives of Optuna do."""
    x = trial.suggest_float("x", 0, 1)
    for size in SIZES:
        trial.report(score(x, size), size)
    return score(x, size)


def decide(n_learners: int, n_decisions: int) -> Row:
    """Return the time of decisions of the default rule on an open pool.

    Learners have two parameters. Each decision follows one more observation.
    """
    rng, policy = np.random.default_rng(0), DAUBPruner(sizes=SIZES).policy
    curves = []
    for learner in range(n_learners):
        point = dict(zip("xy", rng.random(2).tolist(), strict=True))
        seen = tuple(_observation(point["x"], n) for n in SIZES[: int(rng.integers(1, 4))])
        curves.append(core.LearningCurve(learner, seen, parameters=point))
    proposer = AroundBest(SIZES[-1], 0)
    pool = core.Pool(core.Curves(curves), to_come=None, space=SPACE, proposer=proposer)
    policy.decide(pool)
    taken: list[float] = []
    while len(taken) < n_decisions:
        # An observation of anyone is as good as of the learner that the policy would train.
        curve = pool.curves[int(rng.integers(n_learners))]
        left = [size for size in SIZES if size > curve.size]
        if left:
            pool = pool.observed(curve.learner, _observation(curve.parameters["x"], left[0]))
            begun = time.process_time()
            policy.decide(pool)
            taken.append(1e3 * (time.process_time() - begun))
    return {"median": float(np.median(taken)), "p95": float(np.quantile(taken, 0.95))}


def _observation(x: float, size: int) -> core.Observation:
    return core.Observation(size, score(x, size), 0.99, seconds=1e-3 * size)


def trials(n_learners: int) -> Iterator[optuna.trial.FrozenTrial]:
    """Yield the finished trials of a study: first runs, then second and third ones."""
    for number in range(round(RUNS_PER_LEARNER * n_learners)):
        learner, place = number % n_learners, number // n_learners
        x, seen = (0.618034 * learner) % 1, SIZES[: place + 1]
        inherited = seen[-2] if place else 0
        run = Run(learner, seen[-1], inherited, None, SIZES[-1], "", "filled|1|1", number)
        facts = {"training_score": None, "n_validation": None, "seconds": 1e-3 * seen[-1]}
        yield optuna.trial.create_trial(
            state=optuna.trial.TrialState.PRUNED,
            params={"x": x},
            distributions={"x": FloatDistribution(0, 1)},
            intermediate_values={size: score(x, size) for size in seen},
            system_attrs={records.RUN: {**vars(run)}, f"{records.OBSERVATION}{seen[-1]}": facts},
        )


def measure(kind: str, n_learners: int, is_ours: bool, block: int, n_blocks: int) -> Row:
    """Return the time of trials in a study with that many learners."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        storage = storages.get_storage(STORAGES[kind](folder))
        sampler, pruner = optuna.samplers.RandomSampler(seed=0), optuna.pruners.NopPruner()
        if is_ours:
            sampler, pruner = DataAllocationSampler(seed=0), DAUBPruner(sizes=SIZES)
        study = optuna.create_study(
            storage=storage, direction="maximize", sampler=sampler, pruner=pruner
        )
        study.add_trials(trials(n_learners))
        if is_ours:  # as if it had made them itself
            starting.check_settings(study, SIZES, is_begun=False)
        gc.collect()
        cpu, sizes = [], []
        for _ in range(n_blocks):
            spent = time.process_time()
            study.optimize(objective if is_ours else plain, n_trials=block)
            cpu.append(1e3 * (time.process_time() - spent) / block)
            gc.collect()
            sizes.append(process.memory_info().rss)
        # Memory that the first decisions took and gave back is used again from the third block on.
        settled = sizes[min(1, n_blocks - 1)]
        return {
            "trials": len(study.get_trials(deepcopy=False)),
            "learners": len(learning_curves(study)) if is_ours else 0,
            "cpu": cpu,
            "rss_mb": sizes[-1] / 2**20,
            "grown_kb": (sizes[-1] - settled) / 1024 / (block * max(1, n_blocks - 2)),
        }


def apart(run: Callable[[], Row]) -> Row:
    """Run in a new process, whose memory is that of the run."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--storages", nargs="*", choices=STORAGES, default=list(STORAGES))
    parser.add_argument("--learners", nargs="*", type=int, default=list(LEARNERS))
    options = parser.parse_args(arguments)
    if options.smoke:
        options.storages, options.learners = ["memory", "journal"], [0, 20]
    record("decision_cost", parts(options), options, _report)


def parts(options: argparse.Namespace) -> Iterator[Part]:
    """Yield the parts of the benchmark: decisions, then studies."""
    for n in POOLS[:1] if options.smoke else POOLS:
        run = partial(decide, n, 3 if options.smoke else N_DECISIONS)
        yield Part({"storage": "none", "learners": n}, run)
    block, n_blocks = (4, 2) if options.smoke else (BLOCK, N_BLOCKS)
    for kind in options.storages:
        for n_learners in options.learners:
            for method in ("ours", "NopPruner")[: 1 if n_learners else 2]:
                run = partial(measure, kind, n_learners, method == "ours", block, n_blocks)
                key = {"storage": kind, "learners": n_learners, "method": method}
                yield Part(key, partial(apart, run))


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the tables in Markdown."""
    yield "CPU milliseconds of a decision of the default rule after one more observation:"
    lines = [
        [f"{row['key']['learners']:,}", f"{row['median']:.1f}", f"{row['p95']:.1f}"]
        for row in rows
        if "p95" in row
    ]
    yield table(["learners", "median", "95 %"], lines)
    yield "Trials of an objective that does nothing:"
    yield table(
        ["storage", "method", "learners", "trials", "CPU ms per trial, first block", "last block",
         "MB in all", "kB per further trial"],
        (
            [
                *(row["key"][name] for name in ("storage", "method")),
                *(f"{row[name]:,}" for name in ("learners", "trials")),
                *(f"{x:.1f}" for x in (row["cpu"][0], row["cpu"][-1])),
                f"{row['rss_mb']:.0f}",
                f"{row['grown_kb']:.1f}",
            ]
            for row in rows
            if "cpu" in row
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
