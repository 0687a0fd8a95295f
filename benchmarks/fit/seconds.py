"""Judge the prior of the model of seconds: how often its predictions hold.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.seconds [--smoke] [--measure S]
        [--number NAME --values V ...]

Seconds come from three sources: two tables of named models, the surrogate of random forests, and
`--measure` seconds of real training, of random points of `spaces.tabular` on little data, whose
rows go to results/seconds.jsonl. From each problem studies are made: some learners, each timed on
some sizes, most on the smallest only; in half of the studies they are the cheap ones, which a
search tries first. The sizes not timed, and learners not started, are predicted.

Writes results/seconds.md: log scores, mean errors and how often intervals held; with `--values`
for each value of a number of the prior. In smoke mode problems are made ones.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FixedTrial

from benchmarks.automl import read
from benchmarks.fit import STATED
from benchmarks.fit import space_of
from benchmarks.replay_problems import table_problem
from benchmarks.rows import SHARED
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import table
from benchmarks.search_problems import RANGER_FILE
from benchmarks.search_problems import TASKS
from benchmarks.search_problems import CutOffError
from benchmarks.search_problems import Ranger
from benchmarks.search_problems import at_most
from benchmarks.search_space import draw
from optuna_daub import spaces
from optuna_daub.core.costs.cost_model import FREEDOM
from optuna_daub.core.costs.cost_model import QUARTILE
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.prior import PRIOR
from optuna_daub.core.costs.prior import Prior
from optuna_daub.core.costs.seconds import fit
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.study.spaces import widened
from optuna_daub.tabular.preparation import Preparation


Array = NDArray[np.float64]

MEASURED = "adult.parquet", "covtype.parquet", "flightlate.parquet", "letter.parquet", "mnist.npz"
"""Tables for real training."""
SIZES = (512, 2_048, 8_192)
"""Rows of each training on them."""
N_ROWS = 40_000
"""Number of rows that the ranges of `spaces.tabular` are for."""
LONGEST = 25.0
"""Largest number of seconds of a training. Longer ones are cut off, and not counted."""
COUNTS = (10, 35)
"""Numbers of learners in the made studies."""


@dataclass(frozen=True)
class Problem:
    """Seconds of learners on several sizes."""

    name: str
    kind: str
    rows: Array
    space: Space
    sizes: tuple[int, ...]
    """Training sizes; the last is N."""
    seconds: Array
    """Seconds of each training, shape (learners, sizes); NaN if unknown."""


@dataclass(frozen=True)
class Study:
    """Timed trainings of a study, and those to be predicted."""

    problem: Problem
    learners: NDArray[np.int64]
    """Learners of the problem that were started."""
    new: NDArray[np.int64]
    """Learners of the problem that were not started."""
    learner: NDArray[np.int64]
    """Place of each time's learner."""
    size: NDArray[np.int64]
    """Place of each time's size."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure if asked, judge, write."""
    parser = parser_of(__doc__, continues=False)
    parser.add_argument("--measure", type=float, default=0.0, help="seconds of training")
    parser.add_argument("--number", choices=Prior._fields, default="count_mean", help="to vary")
    parser.add_argument("--values", nargs="+", type=float, help="of that number, to compare")
    options = parser.parse_args(arguments)
    results = results_of(options)
    path = results / "seconds.jsonl"
    if options.smoke:
        problems = [_made("one"), _made("other")]
    else:
        measure(path, options.measure)
        problems = [*_tables(), *_forests(), *_measured(path)]
    lines = []
    for value in options.values or [getattr(PRIOR, options.number)]:
        prior = PRIOR._replace(**{options.number: value})
        lines += [(f"{options.number} {value}", *line) for line in held(problems, prior)]
    titles = ["prior", "kind", "times", "log score", "mean error", *map(str, STATED)]
    report = table(titles, sorted(lines, key=lambda line: line[1]))
    (results / "seconds.md").write_text(report + "\n", encoding="utf-8")
    print(report)


def studied(problem: Problem, counts: Sequence[int]) -> Iterator[Study]:
    """Yield studies of a problem. Half of the learners were timed on the smallest size only, few
    on N."""
    for count, seed in product(counts, range(2 if problem.kind == "forests" else 6)):
        rng = np.random.default_rng([seed, count])
        order = rng.permutation(len(problem.rows))
        n_new = len(order) // 3 if problem.rows.shape[1] else 0
        count = min(count, len(order) - n_new)
        if seed % 2:  # of some more learners the cheapest are started
            some = order[: 2 * count]
            order[: len(some)] = some[np.argsort(problem.seconds[some, 0], kind="stable")]
        n_sizes = len(problem.sizes)
        last = np.minimum((rng.geometric(0.4, count) - 1) * max(n_sizes // 5, 1), n_sizes - 1)
        is_timed = np.arange(n_sizes) <= last[:, None]
        is_timed &= (rng.random(is_timed.shape) < 0.7) | (np.arange(n_sizes) == last[:, None])
        is_timed &= np.isfinite(problem.seconds[order[:count]])
        if is_timed.any():
            begun, new = order[:count], order[count : count + n_new]
            yield Study(problem, begun, new, *np.nonzero(is_timed))


def foreseen(study: Study, prior: Prior) -> Iterator[tuple[str, Array, Array, Array]]:
    """Yield logarithms of seconds with their predicted means and spreads. Resumed and new learners
    come apart."""
    problem = study.problem
    log_sizes, times = np.log(problem.sizes), np.log(problem.seconds)
    rows = problem.rows[study.learners]
    known = times[study.learners[study.learner], study.size]
    sizes, full = log_sizes[study.size], problem.sizes[-1]
    model = fit(rows, problem.space, study.learner, sizes, known, full, prior)
    mean, sd = model.predict(rows, log_sizes, np.arange(len(rows)))
    last = np.full(len(rows), len(log_sizes))
    for place in np.unique(study.learner):
        last[place] = study.size[study.learner == place].max()
    is_later = np.arange(len(log_sizes)) > last[:, None]
    is_later &= np.isfinite(times[study.learners])
    yield "resumed", times[study.learners][is_later], mean[is_later], sd[is_later]
    mean, sd = model.predict(problem.rows[study.new], log_sizes)
    is_known = np.isfinite(times[study.new])
    yield "new", times[study.new][is_known], mean[is_known], sd[is_known]


def _log_density(truth: Array, mean: Array, sd: Array) -> Array:
    scale = QUARTILE * sd
    height = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2)
    height -= 0.5 * math.log(FREEDOM * math.pi)
    tail = np.log1p(((truth - mean) / scale) ** 2 / FREEDOM)
    return np.asarray(height - np.log(scale) - (FREEDOM + 1) / 2 * tail)


def held(problems: Sequence[Problem], prior: Prior) -> Iterator[list[str]]:
    """Yield kind, number of times, log score, mean error and coverage, by problem and learner."""
    found: dict[str, list[Any]] = {}
    for problem in problems:
        name = problem.kind if problem.kind == "forests" else problem.name
        for study in studied(problem, COUNTS):
            for kind, *three in foreseen(study, prior):
                found.setdefault(f"{name}, {kind}", []).append(three)
    for kind, parts in found.items():
        truth, mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(truth):
            below = Seconds(mean, sd).within(np.exp(truth))
            shares = [float(np.mean(np.abs(below - 0.5) <= p / 2)) for p in STATED]
            score, error = (
                float(_log_density(truth, mean, sd).mean()),
                float(np.mean(truth - mean)),
            )
            yield [kind, str(len(truth)), *(f"{x:.3f}" for x in (score, error, *shares))]


# --- Sources of seconds ---


def measure(path: Path, seconds: float) -> None:
    """Train random points of `spaces.tabular` on little data, for so many seconds."""
    ends, sampler = time.monotonic() + seconds, optuna.samplers.RandomSampler(seed=0)
    data = {name: _rows(SHARED / "data" / name) for name in MEASURED} if seconds else {}
    study = optuna.create_study(sampler=sampler)
    for name in cycle(data):
        if time.monotonic() > ends:
            break
        X, y = data[name]
        trial, taken = study.ask(), {}
        model = spaces.tabular(trial, N_ROWS)
        for n in SIZES:
            begun = time.perf_counter()
            try:
                with at_most(LONGEST):  # XGBoost needs the classes 0, 1, 2, ...
                    model.fit(X[:n], np.unique(y[:n], return_inverse=True)[1]).predict(X[:n])
            except CutOffError:
                break
            taken[n] = time.perf_counter() - begun
        row = {"data": name, "config": trial.params, "seconds": taken}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _rows(path: Path) -> tuple[Array, NDArray[np.int64]]:
    rows = read(path).sample(n=SIZES[-1], random_state=0)
    y = np.unique(rows.pop("target"), return_inverse=True)[1]
    return Preparation([n for n in rows if rows[n].nunique() > 1]).fit_transform(rows), y


def _measured(path: Path) -> Iterator[Problem]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row["trial"] = FixedTrial(row["config"])
        spaces.tabular(row["trial"], N_ROWS)
    space = widened(Space(), [row["trial"].distributions for row in rows])
    for name in MEASURED:
        own = [row for row in rows if row["data"] == name and row["seconds"]]
        taken = [[row["seconds"].get(str(n), np.nan) for n in SIZES] for row in own]
        points = space.rows([row["config"] for row in own])
        if own:
            yield Problem(name, "trained", points, space, SIZES, np.array(taken))


def _tables() -> Iterator[Problem]:
    for name in ("parity", "covtype"):
        problem = table_problem(name)
        sizes = tuple(problem.sizes)
        seen = [[curve.at(n) for n in sizes] for curve in problem.curves]
        taken = np.array([[np.nan if x is None else x.seconds for x in row] for row in seen])
        taken = np.maximum(taken, 1e-4)
        nothing = np.empty((len(taken), 0))
        yield Problem(name, "named", nothing, Space(), sizes, taken)


def _forests() -> Iterator[Problem]:
    if not RANGER_FILE.exists():
        return
    space, rng = space_of(Ranger.space), random.Random(0)
    sizes = (3_704, 6_250, 12_500, 25_000, 50_000, 100_000)
    for task in TASKS:
        problem = Ranger(task)
        configs = [draw(problem.space, rng) for _ in range(80)]
        taken = np.stack([problem.predict(configs, n)[1] for n in sizes], axis=1)
        rows = space.rows(configs)
        yield Problem(problem.name, "forests", rows, space, sizes, taken)


def _made(name: str) -> Problem:
    """Return seconds in closed form, with a part for the call and a part per row."""
    rng = np.random.default_rng(len(name))
    rows, sizes = rng.random((40, 2)), (500, 2000, 8000)
    taken = np.exp(2.0 * rows[:, :1]) * (500 + np.array(sizes)) * rng.lognormal(0, 0.1, (40, 3))
    space = Space((("a", Range(0.0, 1.0)), ("b", Range(0.0, 1.0))))
    return Problem(name, "made", rows, space, sizes, taken)


if __name__ == "__main__":
    main()
