"""Fit the prior of the model of seconds, and measure how often its predictions hold.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.seconds [--smoke] [--measure S] [--write]

Seconds come from three sources: two tables of named models, the surrogate of random forests, and
`--measure` CPU seconds of real training on little data, whose rows go to results/seconds.jsonl.
From each problem studies are made: some learners, each timed on some sizes, most on the smallest
only. Constants are those whose predictions of the sizes not timed and of learners not started have
the largest log score; half of the problems are fitted on, the other half is judged, and the other
way round. There are few kinds of problems, so constants are drawn towards `FIRST`, and how
all learners' seconds grow (`GIVEN`) is not fitted: forests of a surrogate would decide it alone.

Writes results/seconds.md: log scores and how often intervals held, of problems not fitted on.
With `--write` the constants fitted on all problems go to the file that the package ships. In smoke
mode problems are made ones, and nothing is written but to a temporary folder.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.fit import space_of
from benchmarks.replay_problems import table_problem
from benchmarks.rows import ROOT
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import stamp
from benchmarks.rows import table
from benchmarks.search_problems import CONDITIONAL
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import RANGER_FILE
from benchmarks.search_problems import TASKS
from benchmarks.search_problems import Ranger
from benchmarks.search_space import draw
from optuna_daub.core.costs.cost_model import FREEDOM
from optuna_daub.core.costs.cost_model import QUARTILE
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.seconds import Prior
from optuna_daub.core.costs.seconds import fit
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space


Array = NDArray[np.float64]

FILE = ROOT / "optuna_daub" / "core" / "costs" / "seconds.json"
FIRST = Prior(
    alpha=0.45, alpha_sd=0.3, late=0.5, late_sd=0.4, kappa=0.5, pivot=2.5, reach=0.7, bend=0.4,
    growth_by_point=0.13, count_mean=0.6, count_sd=0.4, late_by_own=1.0,
    linear=1.2, smooth=0.6, own=0.4, own_growth=0.25,
    noise=0.1, trust=4.0, tail=5.0,
)  # fmt: skip
"""Belief before the fit. The exponent rises from a half on little data to 0.95 at N."""
GIVEN = ("alpha", "alpha_sd", "late", "late_sd", "kappa", "pivot")
"""Parameters of the growth of seconds that all learners share."""
BELIEF = 0.03
"""Log score per observation that a constant must earn to leave `FIRST`. It is the price of a
factor of e."""
MEASURED = {"real-adult": 16_384, "real-letter": 8_192, "real-magic": 8_192}
"""N of the problems for real training, which use a part of their rows."""
COUNTS = (10, 35)
"""Numbers of learners in the made studies."""
STATED = (0.5, 0.8, 0.9, 0.95)
"""Probabilities of central intervals."""


@dataclass(frozen=True)
class Problem:
    """Seconds of learners on several sizes."""

    name: str
    kind: str
    weight: float
    """Weight of each of its studies."""
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
    """Fit on halves, judge on the others, write."""
    parser = parser_of(__doc__)
    parser.add_argument("--measure", type=float, default=0.0, help="CPU seconds of training")
    parser.add_argument("--write", action="store_true", help="the constants that are shipped")
    options = parser.parse_args(arguments)
    results = results_of(options)
    path = results / "seconds.jsonl"
    if options.smoke:
        problems, steps = [_made("one"), _made("other")], 1
    else:
        measure(path, options.measure)
        problems, steps = [*_tables(), *_forests(), *_measured(path)], 8
    halves = problems[::2], problems[1::2]
    lines = []
    for fitted, judged in (halves, halves[::-1]):
        prior = fitted_on(fitted, steps)
        for name, constants in (("first", FIRST), ("fitted on the others", prior)):
            lines += [(name, kind, *line) for kind, line in held(judged, constants)]
    prior = fitted_on(problems, steps)
    if options.write and not options.smoke:
        text = json.dumps({"prior": prior._asdict(), "by": stamp()}, indent=1)
        FILE.write_text(text + "\n", encoding="utf-8")
    report = table(["constants", "kind", "times", "log score", *map(str, STATED)], sorted(lines))
    (results / "seconds.md").write_text(report + "\n", encoding="utf-8")
    print(report)
    print(prior)


def fitted_on(problems: Sequence[Problem], steps: int) -> Prior:
    """Return the constants with the largest log score. Their distance from `FIRST` costs
    something."""
    studies = [x for problem in problems for x in studied(problem, COUNTS)]
    free = [i for i, name in enumerate(Prior._fields) if name not in GIVEN]
    start = np.log([FIRST[i] for i in free])

    def loss(point: Array) -> float:
        values = dict(zip((Prior._fields[i] for i in free), np.exp(point).tolist(), strict=True))
        prior = FIRST._replace(**values)
        score = sum(x.problem.weight * score_of(x, prior) for x in studies)
        off = float(np.sum((point - start) ** 2))
        return BELIEF * off - score / sum(x.problem.weight for x in studies)

    options = {"maxiter": steps, "eps": 0.03, "maxfun": 400}
    found = minimize(loss, start, method="L-BFGS-B", options=options)
    values = [float(f"{x:.3g}") for x in np.exp(found.x).tolist()]
    return FIRST._replace(**{Prior._fields[i]: x for i, x in zip(free, values, strict=True)})


def studied(problem: Problem, counts: Sequence[int]) -> Iterator[Study]:
    """Yield studies of a problem. Half of the learners were timed on the smallest size only, few
    on N."""
    for count in counts:
        for seed in range(1 if problem.kind == "forests" else 3):
            rng = np.random.default_rng([seed, count])
            order = rng.permutation(len(problem.rows))
            n_new = 25 if problem.rows.shape[1] else 0
            count = min(count, len(order) - n_new)
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


def score_of(study: Study, prior: Prior) -> float:
    """Return the mean log density of the seconds under a Student t. Resumed and new learners count
    alike."""
    found = [_log_density(*x).mean() for _, *x in foreseen(study, prior) if len(x[0])]
    return float(np.mean(found))


def _log_density(truth: Array, mean: Array, sd: Array) -> Array:
    scale = QUARTILE * sd
    height = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2)
    height -= 0.5 * math.log(FREEDOM * math.pi)
    tail = np.log1p(((truth - mean) / scale) ** 2 / FREEDOM)
    return np.asarray(height - np.log(scale) - (FREEDOM + 1) / 2 * tail)


def held(problems: Sequence[Problem], prior: Prior) -> Iterator[tuple[str, list[str]]]:
    """Yield number of times, log score and coverage, by kind of problem and learner."""
    found: dict[str, list[Any]] = {}
    for problem in problems:
        for study in studied(problem, COUNTS):
            for name, *three in foreseen(study, prior):
                found.setdefault(f"{problem.kind}, {name}", []).append(three)
    for kind, parts in found.items():
        truth, mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(truth):
            below = Seconds(mean, sd).within(np.exp(truth))
            shares = [float(np.mean(np.abs(below - 0.5) <= p / 2)) for p in STATED]
            score = float(_log_density(truth, mean, sd).mean())
            yield kind, [str(len(truth)), f"{score:.3f}", *(f"{x:.3f}" for x in shares)]


# --- If seconds come from ---


def measure(path: Path, seconds: float) -> None:
    """Train random points of the conditional space on little data. It ends after so many CPU
    seconds."""
    begun, rng = time.process_time(), random.Random(1)
    problems = {name: PROBLEMS[name].open(0) for name in MEASURED} if seconds else {}
    while time.process_time() - begun < seconds:
        for name, problem in problems.items():
            config = draw(problem.space, rng)
            sizes = [MEASURED[name] // share for share in (64, 16, 4, 1)]
            taken = {n: problem.train(config, n, 25.0)[1] for n in sizes}
            row = {"data": name, "config": config, "seconds": taken}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def _measured(path: Path) -> Iterator[Problem]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    space = space_of(CONDITIONAL)
    for name, full in MEASURED.items():
        of_data = [row for row in rows if row["data"] == name]
        sizes = tuple(full // share for share in (64, 16, 4, 1))
        taken = np.array([[row["seconds"].get(str(n), np.nan) for n in sizes] for row in of_data])
        points = space.rows([row["config"] for row in of_data])
        taken[np.isinf(taken)] = np.nan
        yield Problem(name, "trained", 2.0, points, space, sizes, taken)


def _tables() -> Iterator[Problem]:
    for name in ("parity", "covtype"):
        problem = table_problem(name)
        sizes = tuple(problem.sizes)
        seen = [[curve.at(n) for n in sizes] for curve in problem.curves]
        taken = np.array([[np.nan if x is None else x.seconds for x in row] for row in seen])
        taken = np.maximum(taken, 1e-4)
        nothing = np.empty((len(taken), 0))
        yield Problem(name, "named", 3.0, nothing, Space(), sizes, taken)


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
        yield Problem(problem.name, "forests", 0.5, rows, space, sizes, taken)


def _made(name: str) -> Problem:
    """Return seconds in closed form, with a part for the call and a part per row."""
    rng = np.random.default_rng(len(name))
    rows, sizes = rng.random((40, 2)), (500, 2000, 8000)
    taken = np.exp(2.0 * rows[:, :1]) * (500 + np.array(sizes)) * rng.lognormal(0, 0.1, (40, 3))
    space = Space((("a", Range(0.0, 1.0)), ("b", Range(0.0, 1.0))))
    return Problem(name, "made", 1.0, rows, space, sizes, taken)


if __name__ == "__main__":
    main()
