"""Problems with known learning curves: who scores what on how many examples, at what cost.

===========  ==================================================================================
parity       41 learners on Parity, N = 21,500; cost = measured seconds of fit and validation
covtype      41 learners on covtype, N = 38,500; cost as above
..., shaken  the same, the learners in another order, the times those of another day
lcdb         55 data sets of LCDB 1.1 with N >= 4,096 and 21-27 learners; cost = training examples
lcdb-se      the same, every error rate drawn anew around its mean with its standard error
lcdb, small  39 data sets with 1,024 <= N < 4,096
made         12 learners whose curves are drawn power laws; cost = training examples; smoke runs
===========  ==================================================================================

On the tables, decisions and the final verdict use the same held-out scores; training scores, which
were measured on all rows, are charged as on the 5,000 at most that our objective takes. On LCDB
decisions see validation scores only; the verdict is the test score, always without noise.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.lcdb import TABLES
from benchmarks.lcdb import TEST
from benchmarks.lcdb import VALIDATION
from benchmarks.lcdb import choosable
from benchmarks.lcdb import full_rung
from benchmarks.lcdb import lcdb
from benchmarks.lcdb import lcdb_errors
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import geometric_sizes
from optuna_daub.objective.training_size import TRAINING_SCORED


TABLE_VALIDATION = 10_000
"""Examples that the scores of the tables were measured on."""

LCDB_FULL_SIZES = 4096, 2**31
"""Data sets with fewer training examples have too short a ladder to save much on."""
LCDB_SMALL_FULL_SIZES = 1024, 4096
"""Those are a check: no default was chosen by them."""
LCDB_FIRST = 128
"""Smallest training size: the shortest ladder, to 4,096, then has 9 sizes; the paper's has 12."""
LCDB_STRIDE = 5
"""Every fifth size of LCDB's grid, a factor of 2^(5/8) = 1.54: the nearest to the paper's 1.5."""
TIME_NOISE = 0.25
"""Standard deviation of the logarithm of measured times, from one day to another."""

MADE_LEARNERS = 12
MADE_VALIDATION = 4000
MADE_RANGES = (0.6, 0.5, 0.3), (0.95, 2.0, 0.7)
"""Least and largest limit, rise and rate of a made learning curve."""


@dataclass(frozen=True)
class Problem:
    """Learners whose scores and costs at every size are known."""

    name: str
    sizes: tuple[int, ...]
    """Training sizes, increasing; the last is the full training set (N)."""
    curves: tuple[LearningCurve, ...]
    """What a method sees of a learner at each size once it has paid for it."""
    costs: Mapping[tuple[int, int], float]
    """What training a learner on so many examples costs: seconds, or training examples."""
    verdicts: Mapping[int, float]
    """The score that a learner is judged by, trained on all the data; only of those that can."""
    n_validation: int | None = None
    """Examples that each score was measured on; None where unknown."""
    scoring_costs: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """What the training score costs besides, for methods that need it; empty where unknown."""

    @property
    def full_size(self) -> int:
        """N, the number of examples of the whole training set."""
        return self.sizes[-1]

    @property
    def best(self) -> int:
        """The learner with the best verdict."""
        return max(self.verdicts, key=lambda learner: (self.verdicts[learner], -learner))

    @property
    def full_cost(self) -> float:
        """The cost of training every learner on all the data."""
        return sum(self.costs[curve.learner, self.full_size] for curve in self.curves)

    @property
    def oracle_cost(self) -> float:
        """The cost of training only the best learner, on all the data."""
        return self.costs[self.best, self.full_size]

    @property
    def floor_cost(self) -> float:
        """The cost of the first three sizes of every learner, and of the best one on all data."""
        first = (self.costs[c.learner, n] for c in self.curves for n in self.sizes[:3])
        return sum(first) + self.oracle_cost

    def loss(self, learner: int) -> float:
        """Return by how much the verdict of a learner is below the best one."""
        return self.verdicts[self.best] - self.verdicts[learner]


Problems: TypeAlias = Callable[[int], "Iterator[Problem]"]
"""The problems of one name, for a seed."""


@dataclass(frozen=True)
class Source:
    """Where the problems of one name come from."""

    problems: Problems
    """For a seed, one problem or one per data set."""
    path: Path | None
    """The file that must be there; None where nothing is read."""
    cost: str
    """Unit of the costs."""
    is_random: bool = False
    """Whether another seed gives other scores."""


def table_problem(name: str) -> Problem:
    """Return the problem of a measured table, `parity` or `covtype`."""
    seen: dict[int, list[Observation]] = defaultdict(list)
    costs, scoring_costs = {}, {}
    names: dict[str, int] = {}
    with (TABLES / f"{name}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            learner = names.setdefault(row["learner"], len(names))
            size = int(row["size"])
            parts = row["fit_seconds"], row["validation_seconds"]
            costs[learner, size] = sum(float(part or 0.0) for part in parts)  # "" where it failed
            share_scored = min(1.0, TRAINING_SCORED / size)
            seconds = float(row["training_score_seconds"] or 0.0)
            scoring_costs[learner, size] = share_scored * seconds
            if not row["error"]:
                seen[learner].append(_measured(row, size, costs[learner, size]))
    curves = tuple(LearningCurve(i, tuple(seen[i])) for i in names.values())
    sizes = tuple(sorted({size for _, size in costs}))
    verdicts = {c.learner: c.score for c in curves if c.size == sizes[-1]}
    return Problem(name, sizes, curves, costs, verdicts, TABLE_VALIDATION, scoring_costs)


def shaken(problem: Problem, seed: int) -> Problem:
    """Return a problem whose learners come in another order and whose times another day took.

    A method whose answer hangs on either is lucky on the problem as it is.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(problem.curves))
    place = {curve.learner: int(i) for curve, i in zip(problem.curves, order, strict=True)}
    factor = {key: float(rng.lognormal(0.0, TIME_NOISE)) for key in problem.costs}

    def timed(learner: int, seen: Observation) -> Observation:
        return replace(seen, seconds=(seen.seconds or 0.0) * factor[learner, seen.size])

    def shaken_costs(costs: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
        return {(place[i], n): cost * factor[i, n] for (i, n), cost in costs.items()}

    curves = [
        LearningCurve(place[c.learner], tuple(timed(c.learner, seen) for seen in c.observations))
        for c in problem.curves
    ]
    return replace(
        problem,
        curves=tuple(sorted(curves, key=lambda curve: curve.learner)),
        costs=shaken_costs(problem.costs),
        scoring_costs=shaken_costs(problem.scoring_costs),
        verdicts={place[i]: verdict for i, verdict in problem.verdicts.items()},
    )


def lcdb_problems(
    seed: int | None = None, full_sizes: tuple[int, int] = LCDB_FULL_SIZES
) -> Iterator[Problem]:
    """Yield one problem per data set of LCDB with enough examples, in the order of the file.

    The learners are those measured at every size of the ladder.

    Args:
        seed: of the noise, drawn independently for every error rate; None for no noise.
        full_sizes: the smallest N, and the N from which on data sets are left out.
    """
    error, table = lcdb_errors(seed), lcdb()
    for row, name in enumerate(table["openml_id"]):
        full = full_rung(row)
        if full_sizes[0] <= table["size"][full] < full_sizes[1]:
            rungs = _rungs(table["size"], full)
            known = np.isfinite(table["error_rate"][row, :, 0]).all(axis=-1)[:, rungs]
            learners = np.flatnonzero(known.all(axis=-1) & choosable())
            test = table["error_rate"][row, :, 0, full, TEST]
            sizes = tuple(map(int, table["size"][rungs]))
            yield _lcdb_problem(str(name), sizes, learners, error[row][:, rungs], test)


def made_problem(seed: int) -> Problem:
    """Return a problem whose curves are power laws: score(n) = limit - rise * n^-rate."""
    sizes = geometric_sizes(100, 2000, 1.5)
    laws = np.random.default_rng(seed).uniform(*MADE_RANGES, (MADE_LEARNERS, 3)).tolist()
    curves = tuple(
        LearningCurve(learner, tuple(_made(n, limit, rise * n**-rate) for n in sizes))
        for learner, (limit, rise, rate) in enumerate(laws)
    )
    costs = {(curve.learner, n): float(n) for curve in curves for n in sizes}
    verdicts = {curve.learner: curve.score for curve in curves}
    return Problem(f"made {seed}", sizes, curves, costs, verdicts, MADE_VALIDATION)


def _table(name: str, *, is_shaken: bool = False) -> Source:
    def problems(seed: int) -> Iterator[Problem]:
        problem = table_problem(name)
        yield shaken(problem, seed) if is_shaken else problem

    return Source(problems, TABLES / f"{name}.csv", "seconds", is_random=is_shaken)


SOURCES: dict[str, Source] = {
    "parity": _table("parity"),
    "covtype": _table("covtype"),
    "parity, shaken": _table("parity", is_shaken=True),
    "covtype, shaken": _table("covtype", is_shaken=True),
    "lcdb": Source(lambda _: lcdb_problems(), TABLES / "lcdb11_part.npz", "rows"),
    "lcdb-se": Source(lcdb_problems, TABLES / "lcdb11_part.npz", "rows", is_random=True),
    "lcdb, small": Source(
        lambda _: lcdb_problems(full_sizes=LCDB_SMALL_FULL_SIZES),
        TABLES / "lcdb11_part.npz",
        "rows",
    ),
    "made": Source(lambda seed: iter([made_problem(seed)]), None, "rows", is_random=True),
}
"""The table of problems."""


def _made(size: int, limit: float, gap: float) -> Observation:
    return Observation(size, limit - gap, min(1.0, limit + gap), MADE_VALIDATION)


def _measured(row: Mapping[str, str], size: int, seconds: float) -> Observation:
    score, training_score = float(row["validation_score"]), float(row["training_score"])
    return Observation(size, score, training_score, TABLE_VALIDATION, seconds)


def _rungs(grid: NDArray[np.int64], full: int) -> NDArray[np.int64]:
    """Return the indices of the ladder's sizes; the last step may be a shorter one."""
    first = int(np.searchsorted(grid, LCDB_FIRST))
    return np.array([*range(first, full, LCDB_STRIDE), full])


def _lcdb_problem(
    name: str,
    sizes: tuple[int, ...],
    learners: NDArray[np.int64],
    error: NDArray[np.float64],
    test_error: NDArray[np.float64],
) -> Problem:
    curves = tuple(
        LearningCurve(
            int(learner),
            tuple(
                Observation(size, 1.0 - rates[VALIDATION], training_score=1.0 - rates[0])
                for size, rates in zip(sizes, error[learner].tolist(), strict=True)
            ),
        )
        for learner in learners
    )
    return Problem(
        name=f"openml {name}",
        sizes=sizes,
        curves=curves,
        costs={(int(i), size): float(size) for i in learners for size in sizes},
        verdicts={int(i): 1.0 - float(test_error[i]) for i in learners},
    )
