"""Problems with known learning curves, by learner and size, and their costs.

============  =================================================================================
made          12 learners whose curves cross; cost = seconds in closed form; needs no file
parity        41 learners on Parity, N = 21,500; cost = measured seconds of fit and validation
covtype       41 learners on covtype, N = 38,500; cost as above
..., shaken   the same, the learners in another order, the times those of another day
lcdb          55 data sets of LCDB 1.1 with N >= 4,096 and 21-27 learners; cost = training examples
lcdb, small   39 data sets with 1,024 <= N < 4,096
lcdb, timed   76 data sets of LCDB 1.0 with N >= 4,096 and 10-20 learners; cost = measured seconds
============  =================================================================================

On the tables, decisions and the final verdict use the same held-out scores; training scores, which
were measured on all rows, are charged as on the 5,000 at most that our objective takes. On LCDB
decisions see validation scores only; the verdict is the test score.

`../shared/tables` has the files: parity.csv and covtype.csv were measured for this project with
`examples/pool.py`, lcdb11_part.npz has half of the data sets of LCDB 1.1 [1]. LCDB 1.0 [2] has
seconds of training; `pip install lcdb` brings its files.

[1] C. Yan, F. Mohr, T. Viering, "LCDB 1.1: A Database Illustrating Learning Curves Are More
    Ill-Behaved Than Previously Thought", NeurIPS 2025 (CC BY 4.0). https://arxiv.org/abs/2505.15657
[2] F. Mohr, T. J. Viering, M. Loog, J. N. van Rijn, "LCDB 1.0: An Extensive Learning Curves
    Database for Classification Tasks", ECML PKDD 2022 (MIT licence).
"""

from __future__ import annotations

import csv
import importlib.util
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import SHARED
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import geometric_sizes
from optuna_daub.objective.training import TRAINING_SCORED


TABLES = SHARED / "tables"
TABLE_VALIDATION = 10_000
"""Number of examples behind each score of the tables."""
TIME_NOISE = 0.25
"""Standard deviation of the logarithm of measured times between two days."""

LCDB_FULL_SIZES = 4096, 2**31
"""Range of N. Below it, data sets have too few sizes to save much."""
LCDB_SMALL_FULL_SIZES = 1024, 4096
"""Range of N of data sets for a check. No default was chosen by them."""
LCDB_FIRST = 128
"""Smallest training size. The shortest grid, to 4,096, then has 9 sizes; the paper's has 12."""
LCDB_STRIDE = 5
"""Step in LCDB's sizes. A factor of 2^(5/8) = 1.54 is the nearest to the paper's 1.5."""
BASELINES = ("DummyClassifier",)
"""Learners left out. Guessing the majority class is no model to choose."""
VALIDATION, TEST = 1, 2
"""Places in LCDB's axis (train, validation, test)."""

TIMED_LEARNERS, TIMED_SECONDS = 10, 20.0
"""Smallest number of learners of LCDB 1.0, and smallest sum of their seconds on all the data."""

MADE_LEARNERS = 12
MADE_VALIDATION = 4000
MADE_SIZES = geometric_sizes(100, 5000, 1.5)


@dataclass(frozen=True)
class Problem:
    """Learners whose scores and costs at every size are known."""

    name: str
    sizes: tuple[int, ...]
    """Training sizes, increasing; the last is the full training set (N)."""
    curves: tuple[LearningCurve, ...]
    """Learning curves that a method sees, one observation for each training that it pays for."""
    costs: Mapping[tuple[int, int], float]
    """Cost of training a learner on so many examples, in `unit`."""
    verdicts: Mapping[int, float]
    """Score on all the data by which a learner is judged. Only learners with such a score are in
    it."""
    unit: Literal["seconds", "examples"] = "examples"
    n_validation: int | None = None
    """Examples that each score was measured on; None if unknown."""
    scoring_costs: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Extra cost of the training score, for methods that need it. Empty if unknown."""

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

    def loss(self, learner: int) -> float:
        """Return the difference of the best verdict and this learner's."""
        return self.verdicts[self.best] - self.verdicts[learner]


# --- Made ---


def made_problem(seed: int) -> Problem:
    """Return a problem whose curves are power laws that cross.

    A score is limit - rise / n^rate. The simple half of the learners leads on little data, the
    other half on all of it.
    """
    rng = np.random.default_rng(seed)
    first, full = MADE_SIZES[0], MADE_SIZES[-1]
    curves, costs = [], {}
    for learner in range(MADE_LEARNERS):
        is_simple = learner % 2 == 0
        limit = rng.uniform(0.70, 0.78) if is_simple else rng.uniform(0.82, 0.95)
        lost = rng.uniform(0.02, 0.08) if is_simple else limit - rng.uniform(0.45, 0.60)
        rate = rng.uniform(0.5, 0.8)
        alpha = rng.uniform(0.8, 1.6)  # seconds grow as n^alpha
        seen = []
        for n in MADE_SIZES:
            gap = lost * (n / first) ** -rate
            costs[learner, n] = 10.0 * (n / full) ** alpha
            scores = limit - gap, min(1.0, limit + gap)
            seen.append(Observation(n, *scores, MADE_VALIDATION, costs[learner, n]))
        curves.append(LearningCurve(learner, tuple(seen)))
    verdicts = {curve.learner: curve.score for curve in curves}
    return Problem(
        f"made {seed}", MADE_SIZES, tuple(curves), costs, verdicts, "seconds", MADE_VALIDATION
    )


# --- Measured tables ---


def table_problem(name: str, folder: Path = TABLES) -> Problem:
    """Return the problem of a measured table, `parity` or `covtype`."""
    seen: dict[int, list[Observation]] = defaultdict(list)
    costs, scoring_costs = {}, {}
    names: dict[str, int] = {}
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            learner = names.setdefault(row["learner"], len(names))
            size = int(row["size"])
            parts = row["fit_seconds"], row["validation_seconds"]
            seconds = sum(float(part or 0.0) for part in parts)  # "" where it failed
            costs[learner, size] = seconds
            scoring = float(row["training_score_seconds"] or 0.0)
            scoring_costs[learner, size] = min(1.0, TRAINING_SCORED / size) * scoring
            if not row["error"]:
                scores = float(row["validation_score"]), float(row["training_score"])
                seen[learner].append(Observation(size, *scores, TABLE_VALIDATION, seconds))
    curves = tuple(LearningCurve(i, tuple(seen[i])) for i in names.values())
    sizes = tuple(sorted({size for _, size in costs}))
    verdicts = {c.learner: c.score for c in curves if c.size == sizes[-1]}
    return Problem(
        name, sizes, curves, costs, verdicts, "seconds", TABLE_VALIDATION, scoring_costs
    )


def shaken(problem: Problem, seed: int) -> Problem:
    """Return the problem with its learners in another order and other times.

    The times are those of another day. A method whose answer hangs on either is lucky on the
    problem as it is.
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


# --- LCDB ---


@dataclass(frozen=True, eq=False)
class Lcdb:
    """Learning curves in the form of LCDB 1.1."""

    error_rate: NDArray[np.floating]
    """Error rates; NaN where not measured. Axes: data set, learner, (mean, standard error), size,
    (train, validation, test)."""
    openml_id: NDArray[np.int64]
    learner: NDArray[np.str_]
    size: NDArray[np.int64]

    def errors(self) -> NDArray[np.float64]:
        """Return error rates, axes (data set, learner, size, split)."""
        return np.asarray(np.clip(self.error_rate[:, :, 0].astype(float), 0.0, 1.0))

    def full(self, data_set: int) -> int:
        """Return the place of N, the largest size with most of the learners.

        At least half of the learners were measured on it.
        """
        known = np.isfinite(self.error_rate[data_set, self.is_choosable, 0]).all(axis=-1)
        return int(np.flatnonzero(2 * known.sum(axis=0) >= len(known)).max(initial=0))

    @property
    def is_choosable(self) -> NDArray[np.bool_]:
        """True for learners that are no baselines."""
        return np.asarray(~np.isin(self.learner, BASELINES))


LCDB_FILE = TABLES / "lcdb11_part.npz"


@cache
def lcdb() -> Lcdb:
    """Return the part of LCDB beside the project."""
    with np.load(LCDB_FILE) as file:
        return Lcdb(
            **{name: file[name] for name in ("error_rate", "openml_id", "learner", "size")}
        )


def lcdb_problems(known: Lcdb, full_sizes: tuple[int, int] = LCDB_FULL_SIZES) -> Iterator[Problem]:
    """Yield a problem for each data set of LCDB with enough examples.

    They are in the order of the file. The learners are those measured at every size of the grid.
    `full_sizes` are the smallest N, and the N from which on data sets are left out.
    """
    error = known.errors()
    for row, data_set in enumerate(known.openml_id.tolist()):
        full = known.full(row)
        if not full_sizes[0] <= known.size[full] < full_sizes[1]:
            continue
        first = int(np.searchsorted(known.size, LCDB_FIRST))
        places = [*range(first, full, LCDB_STRIDE), full]  # the last step may be a shorter one
        sizes = tuple(known.size[places].tolist())
        measured = np.isfinite(known.error_rate[row, :, 0][:, places]).all(axis=(-1, -2))
        learners = np.flatnonzero(measured & known.is_choosable).tolist()
        curves = []
        for learner in learners:
            rates = zip(sizes, error[row, learner, places].tolist(), strict=True)
            seen = [Observation(n, 1 - r[VALIDATION], training_score=1 - r[0]) for n, r in rates]
            curves.append(LearningCurve(learner, tuple(seen)))
        test = known.error_rate[row, :, 0, full, TEST].astype(float)
        yield Problem(
            name=f"openml {data_set}",
            sizes=sizes,
            curves=tuple(curves),
            costs={(i, size): float(size) for i in learners for size in sizes},
            verdicts={i: 1.0 - float(test[i]) for i in learners},
        )


def timed_file() -> Path:
    """Return the file of LCDB 1.0's accuracies, which may be absent."""
    found = importlib.util.find_spec("lcdb")  # not imported: it needs more packages
    folders = (found and found.submodule_search_locations) or ["lcdb"]
    return Path(folders[0], "database-accuracy.csv")


def timed_problems(path: Path) -> Iterator[Problem]:
    """Yield a problem for each data set of LCDB 1.0 with enough examples, learners and seconds.

    The learners are those measured on all the data, at the sizes that all of them have. Scores are
    means of the splits, seconds their medians.
    """
    import pandas as pd

    rows = pd.read_csv(path)
    parts = rows[rows["size_train"] >= LCDB_FIRST].groupby(["openmlid", "learner", "size_train"])
    known = parts.agg({"score_valid": "mean", "score_test": "mean", "traintime": "median"})
    for data_set, own in known.groupby(level=0):
        valid, test, seconds = (own.loc[data_set][name].unstack() for name in known.columns)
        full = int(seconds.columns.max())
        finished = seconds[full].dropna()
        is_large = full >= LCDB_FULL_SIZES[0] and finished.sum() >= TIMED_SECONDS
        if not is_large or len(finished) < TIMED_LEARNERS:
            continue
        seconds = seconds.loc[finished.index].dropna(axis=1)
        sizes, names = tuple(map(int, seconds.columns)), list(enumerate(seconds.index))
        costs = {(i, n): float(seconds.at[name, n]) for i, name in names for n in sizes}
        curves = []
        for i, name in names:
            seen = [Observation(n, float(valid.at[name, n]), seconds=costs[i, n]) for n in sizes]
            curves.append(LearningCurve(i, tuple(seen)))
        verdicts = {i: float(test.at[name, full]) for i, name in names}
        yield Problem(f"openml {data_set}", sizes, tuple(curves), costs, verdicts, "seconds")


# --- All of them ---


@dataclass(frozen=True)
class Source:
    """A name for problems, and how to make them."""

    problems: Callable[[int], Iterator[Problem]]
    """Function from a seed to problems, one or one per data set."""
    path: Path | None
    """File that the problems need; None if nothing is read."""
    seeds: int
    """Number of orders of the learners for Optuna's studies."""
    is_random: bool = False
    """True if another seed gives other scores, orders or times."""


def _table(name: str, *, is_shaken: bool = False) -> Source:
    def problems(seed: int) -> Iterator[Problem]:
        problem = table_problem(name)
        yield shaken(problem, seed) if is_shaken else problem

    seeds = 60 if is_shaken else 20
    return Source(problems, TABLES / f"{name}.csv", seeds, is_random=is_shaken)


SOURCES: Mapping[str, Source] = {
    "made": Source(lambda seed: iter([made_problem(seed)]), None, 20, is_random=True),
    "parity": _table("parity"),
    "covtype": _table("covtype"),
    "parity, shaken": _table("parity", is_shaken=True),
    "covtype, shaken": _table("covtype", is_shaken=True),
    "lcdb": Source(lambda _: lcdb_problems(lcdb()), LCDB_FILE, 5),
    "lcdb, small": Source(
        lambda _: lcdb_problems(lcdb(), full_sizes=LCDB_SMALL_FULL_SIZES), LCDB_FILE, 5
    ),
    "lcdb, timed": Source(lambda _: timed_problems(timed_file()), timed_file(), 5),
}
"""The table of problems."""
