"""The default rule where small samples mislead: learning curves of a table's own models.

    OMP_NUM_THREADS=1 python benchmarks/small_samples.py [--smoke] [--time-limit S]
        [--problems real-flightlate-400k ...] [--learners 120]

Learners are drawn from the space `spaces.tabular`, its first points first, and trained on
four sizes, N / 64 to N; one that takes longer than `LONGEST` is left out. On the curves so known
an open pool is replayed with newcomers in random orders, each once, and beside it plain training
on all the data in the same order. What is lost is how far the best model on all the data is below
the best of the table after so many units, mean trainings on all the data. Where trees of many
leaves need many rows, the best learners are among the worst on small samples: the share of pairs
of learners that N / 64 puts in another order says how much samples mislead. A line below says how
far off predicted seconds are on all the data, once one, two or three sizes are known.

Curves go to results/small_samples.jsonl, the table to results/small_samples.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from functools import partial
from itertools import combinations
from itertools import product
from statistics import mean
from typing import Any
from typing import TypeAlias

import numpy as np
import optuna
from optuna.samplers import RandomSampler
from sklearn.base import clone
from sklearn.datasets import make_classification

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import Data
from benchmarks.search_problems import Training
from optuna_daub import spaces
from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core.costs import in_seconds


SHARES = 64, 16, 4, 1
"""N divided by each is a size."""
LONGEST = 60.0
"""Seconds that a training may take."""
ORDERS = 40
UNITS = 1, 3, 5, 10, 20, 30
"""Mean trainings on all the data, after which is looked."""
POOL = 30
"""Learners in a pool whose seconds are predicted."""
REACHED = 0.6, 0.15, 0.1, 0.15
"""Shares of them that were trained on one size, two, three, and all."""
REAL = tuple(name for name in PROBLEMS if name.startswith("real-"))

Found: TypeAlias = list[tuple[float, float]]
"""Seconds, and the score on all the data that was known then."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=REAL, default=["real-flightlate-400k"])
    parser.add_argument("--learners", type=int, default=120, help="how many are drawn")
    options = parser.parse_args(arguments)
    names = [name for name in options.problems if is_there(name, PROBLEMS[name].path)]
    count = options.learners
    if options.smoke:
        names, count = ["made"], 8
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    runs = (
        Run({"problem": name, "learner": learner}, partial(measured, name, learner))
        for learner, name in product(range(count), names)
    )
    results = results_of(options)
    rows = run_all(runs, results / "small_samples.jsonl", options.time_limit)
    write_report(results / "small_samples.md", rows, _report)


@cache
def opened(name: str) -> Training:
    """Return a problem, of which only the training and validation rows are used."""
    if name != "made":
        problem = PROBLEMS[name].open(0)
        assert isinstance(problem, Training)
        return problem
    X, y = make_classification(1500, 8, n_informative=5, flip_y=0.1, random_state=0)
    parts = [(X[part].astype(np.float32), y[part]) for part in np.split(range(1500), [1000, 1250])]
    return Training(name, Data(*(array for part in parts for array in part)))


def measured(name: str, learner: int) -> Mapping[str, Any]:
    """Return a learner's parameters and its curve: sizes, scores, CPU seconds."""
    problem = opened(name)
    study = optuna.create_study(sampler=RandomSampler(seed=learner))
    points = spaces.first_points("tabular", problem.full)
    if learner < len(points):
        study.enqueue_trial(points[learner])
    trial = study.ask()
    model = spaces.tabular(trial, problem.full)
    curve: list[tuple[int, float, float]] = []
    for share in SHARES:
        size = problem.full // share
        score, seconds = problem.train_model(clone(model), size, LONGEST)
        if not math.isfinite(seconds):
            break
        curve.append((size, score, seconds))
    print(name, learner, trial.params, curve, flush=True)
    return {"parameters": trial.params, "curve": curve}


def open_pool(learners: list[Row], n_left_out: int = 0) -> Found:
    """Follow the default rule, its newcomers as they come.

    Args:
        learners: rows with whole curves.
        n_left_out: how many of the smallest sizes are not trained on.
    """
    learners = [{**row, "curve": row["curve"][n_left_out:]} for row in learners]
    sizes = tuple(size for size, _, _ in learners[0]["curve"])
    policy, pool, found = ValuePerSecond(sizes), Pool(to_come=None), Found()
    while True:
        if len(pool.curves) == len(learners):
            pool = replace(pool, to_come=0)  # as where a base sampler has nothing left to propose
        decision = policy.decide(pool)
        if isinstance(decision, Propose):
            newcomer = len(pool.curves)
            pool = pool.with_newcomer(newcomer, learners[newcomer]["parameters"])
            decision = policy.start(pool, newcomer, decision.size)
        if not isinstance(decision, Extend):
            return found
        size, score, seconds = learners[decision.learner]["curve"][sizes.index(decision.size)]
        pool = pool.observed(decision.learner, Observation(size, score, seconds=seconds))
        if size == sizes[-1]:
            found.append((pool.spent.seconds, score))


def training_everything(learners: list[Row]) -> Found:
    """Train one after another on all the data."""
    curves = [row["curve"][-1] for row in learners]
    ends = np.cumsum([seconds for _, _, seconds in curves])
    return [(float(end), score) for end, (_, score, _) in zip(ends, curves, strict=True)]


WAYS: dict[str, Callable[[list[Row]], Found]] = {
    "the default rule": open_pool,
    f"... from N / {SHARES[1]} on": partial(open_pool, n_left_out=1),
    "training everything": training_everything,
}


def misled(learners: list[Row]) -> float:
    """Return the share of pairs that the smallest size puts in another order than N does."""
    pairs = list(combinations([(row["curve"][0][1], row["curve"][-1][1]) for row in learners], 2))
    return float(np.mean([(a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs]))


def misjudged(learners: list[Row]) -> list[float]:
    """Return by which factor seconds predicted for all the data are off, by sizes known.

    The root mean square of logarithms, over pools of `POOL` learners in `ORDERS` random orders, of
    which each was trained on one, two, three or all sizes, as `REACHED` says how often.
    """
    sizes = [size for size, _, _ in learners[0]["curve"]]
    squares: list[list[float]] = [[] for _ in sizes[:-1]]
    for order in range(ORDERS):
        rng = np.random.default_rng(order)
        some = [learners[i] for i in rng.permutation(len(learners))[:POOL]]
        known = rng.choice(len(sizes), len(some), p=REACHED).tolist()
        curves = []
        for i, (row, last) in enumerate(zip(some, known, strict=True)):
            seen = (Observation(n, score, seconds=t) for n, score, t in row["curve"][: last + 1])
            curves.append(LearningCurve(i, tuple(seen), parameters=row["parameters"]))
        predicted = in_seconds(Curves(curves)).at(sizes[-1]).tolist()
        for row, last, seconds in zip(some, known, predicted, strict=True):
            if last < len(sizes) - 1:
                squares[last].append(math.log(seconds / row["curve"][-1][2]) ** 2)
    return [math.exp(math.sqrt(mean(each))) if each else math.nan for each in squares]


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield a table for each problem, in Markdown."""
    for name, every in grouped(rows, "problem").items():
        known = [row for row in every if len(row["curve"]) == len(SHARES)]
        unit = mean(row["curve"][-1][2] for row in known)
        yield (
            f"{name}: {len(known)} learners of {len(every)}, a unit is {unit:.1f} s; of all pairs "
            f"{100 * misled(known):.0f} % are in another order at N / {SHARES[0]}. Lost after so "
            f"many units, in percentage points below the best, mean of {ORDERS} orders and its "
            "standard error (no model counts as the worst):"
        )
        lines = []
        for way, follow in WAYS.items():
            lost = np.array([_lost(follow, known, unit, order) for order in range(ORDERS)])
            errors = lost.std(axis=0, ddof=1) / math.sqrt(ORDERS)
            shown = zip(lost.mean(axis=0), errors, strict=True)
            lines.append([way, *(f"{100 * x:.2f} ± {100 * error:.2f}" for x, error in shown)])
        yield table(["", *map(str, UNITS)], lines)
        off = ", ".join(f"{factor:.2f}" for factor in misjudged(known))
        yield f"Seconds predicted for all the data are off by {off} after one, two, three sizes."


def _lost(
    follow: Callable[[list[Row]], Found], learners: list[Row], unit: float, seed: int
) -> list[float]:
    """Return what is lost after each of `UNITS`, with the learners in an order of their own."""
    order = np.random.default_rng(seed).permutation(len(learners))
    found = follow([learners[i] for i in order])
    scores = [row["curve"][-1][1] for row in learners]
    best = [
        max([score for end, score in found if end <= units * unit], default=min(scores))
        for units in UNITS
    ]
    return [max(scores) - each for each in best]


if __name__ == "__main__":
    main()
