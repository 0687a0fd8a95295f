"""`DataAllocationSearchCV` beside scikit-learn's searches: same space, folds and seconds.

    OMP_NUM_THREADS=1 python benchmarks/search_cv.py [--smoke] [--units U] [--seeds K]
        [--problems adult ...] [--time-limit SECONDS] [--results FOLDER]

A search is given the training rows of a data set, one space (boosted trees, extra trees, a linear
model), one division of the rows (80 % to train on) and so many seconds. What it has then chosen is
fitted on all training rows, which is not counted, and judged on test rows that no search has seen.
Every clock that a search looks at is made to show CPU seconds, since others use this machine. The
unit of time is the mean cost of training a random candidate on all rows of the division.

`RandomizedSearchCV` draws candidates until the time is up: the one being trained then is finished,
as the last one of `DataAllocationSearchCV` is. `HalvingRandomSearchCV` must know beforehand how
many candidates it starts with: as many as its rounds have time for, by what a few random
candidates cost on all rows and on one in 81. That is measured before, and not counted. If it
ends early it is run again with other candidates for the seconds that are left, and the better
result counts; if it ends late, its result counts as well. Its rounds keep one in three. As often
as there is time `BayesHalvingSearchCV` is run, if it is installed (0.1.1 of PyPI).

Each run is a row of search_cv.jsonl; search_cv.md follows from all rows.
"""

from __future__ import annotations

import argparse
import datetime
import math
import operator
import os
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch


os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per training
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from scipy.stats import loguniform
from scipy.stats import randint
from scipy.stats import uniform
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  it makes the next import
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import HalvingRandomSearchCV
from sklearn.model_selection import ParameterSampler
from sklearn.model_selection import RandomizedSearchCV
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import read_rows
from benchmarks.rows import record
from benchmarks.rows import results_of
from benchmarks.rows import shown
from benchmarks.rows import table
from benchmarks.search_problems import read
from optuna_daub.sklearn import DataAllocationSearchCV


PIPELINE = Pipeline([("scale", "passthrough"), ("model", LogisticRegression())])
SPACE = [
    {
        "model": [HistGradientBoostingClassifier(early_stopping=False, random_state=0)],
        "model__learning_rate": loguniform(0.01, 0.5),
        "model__max_iter": randint(10, 100),
        "model__max_leaf_nodes": randint(4, 32),
        "model__min_samples_leaf": randint(2, 100),
        "model__l2_regularization": loguniform(1e-3, 1e2),
    },
    {
        "model": [ExtraTreesClassifier(random_state=0)],
        "model__n_estimators": randint(5, 50),
        "model__max_features": uniform(0.1, 0.5),
        "model__min_samples_leaf": randint(2, 30),
    },
    {
        "scale": [StandardScaler()],
        "model": [LogisticRegression(max_iter=200)],
        "model__C": loguniform(1e-3, 1e2),
    },
]
VALIDATION_SHARE = 0.2
REDUCTION = 3
PILOTS = 4
"""Number of random candidates of each estimator that are measured first. Their mean cost is the
unit, and says how many candidates halving has time for."""
ZONES = (0.005, 0.01, 0.1, 1.0)
"""Shares of the rows on which BayesHalvingSearchCV trains: its defaults."""
LEAST_OF_CLASS = 10
"""Smallest mean number of rows of each class in a zone."""
FEW = 81
"""Divisor of the rows for a second training of the pilots. It shows the part of the cost that is
fixed."""
MOST_ROWS = 40_000
"""Largest number of training rows, of the larger data sets."""
PILOT = "mean cost"
"""Name in place of a method in the row on the pilots' cost."""

Part = tuple[NDArray[np.floating], NDArray[np.int64]]


@dataclass(frozen=True)
class Costs:
    """Costs of candidates, known before a search."""

    unit: float
    """Mean CPU seconds of a candidate on all rows."""
    fixed: float
    """Part of the mean cost that does not grow with the rows, in seconds."""


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    model: Any
    """Model fitted on all training rows."""
    score: float
    """Score on the validation rows."""
    seconds: float
    """Seconds of the search alone."""
    n_candidates: int
    n_full: int
    """Number of candidates trained on all rows of the division."""


def division(seed: int) -> StratifiedShuffleSplit:
    """Return the division of the rows that all methods use."""
    return StratifiedShuffleSplit(1, test_size=VALIDATION_SHARE, random_state=seed)


def allocation(training: Part, seed: int, seconds: float, costs: Costs) -> Found:
    """Run `DataAllocationSearchCV` with a time limit in seconds."""
    search = DataAllocationSearchCV(
        PIPELINE, SPACE, cv=division(seed), timeout=seconds, random_state=seed
    )
    begun = time.monotonic()
    search.fit(*training)
    n_full = int((search.cv_results_["n_resources"] == search.max_resources_).sum())
    return _found(search, begun, search.n_candidates_, n_full)


class UntilTheTimeIsUp(RandomizedSearchCV):
    """RandomizedSearchCV that draws candidates one by one until a point in time."""

    deadline = math.inf

    def _run_search(self, evaluate_candidates: Callable[[Any], Any]) -> None:
        drawn = iter(ParameterSampler(SPACE, 10**6, random_state=self.random_state))
        evaluate_candidates([next(drawn)])
        while time.monotonic() < self.deadline:
            evaluate_candidates([next(drawn)])


def random_search(training: Part, seed: int, seconds: float, costs: Costs) -> Found:
    """Run `RandomizedSearchCV` until the seconds are used up."""
    search = UntilTheTimeIsUp(PIPELINE, SPACE, cv=division(seed), random_state=seed)
    begun = time.monotonic()
    search.deadline = begun + seconds
    search.fit(*training)
    n = len(search.cv_results_["params"])
    return _found(search, begun, n, n)


def _best_of(search_for: Callable[[int, float], Any], training: Part, seconds: float) -> Found:
    """Run searches one after the other, and return the best by validation score.

    `search_for` gets the number of searches so far and the seconds left.
    """
    found: list[Found] = []
    while search := search_for(len(found), seconds - sum(one.seconds for one in found)):
        begun = time.monotonic()
        search.fit(*training)
        n_rows, tried = search.cv_results_["n_resources"], search.cv_results_["params"]
        n_full = np.sum(np.asarray(n_rows) == max(n_rows))
        found.append(_found(search, begun, len({str(point) for point in tried}), n_full))
    best = max(found, key=lambda one: one.score)
    names = ("seconds", "n_candidates", "n_full")
    return replace(best, **{name: sum(getattr(one, name) for one in found) for name in names})


def halving(training: Part, seed: int, seconds: float, costs: Costs) -> Found:
    """Run `HalvingRandomSearchCV` with as many candidates as there is time for."""

    def search_for(turn: int, left: float) -> Any:
        n = affordable(left / costs.unit, costs.fixed / costs.unit)
        return (n > 0 or turn == 0) and HalvingRandomSearchCV(
            PIPELINE,
            SPACE,
            n_candidates=max(n, REDUCTION),
            min_resources="exhaust",
            factor=REDUCTION,
            cv=division(seed),
            random_state=seed + 1000 * turn,
        )

    return _best_of(search_for, training, seconds)


def bayes_halving(training: Part, seed: int, seconds: float, costs: Costs) -> Found:
    """Run `BayesHalvingSearchCV` with one estimator after the other until the seconds are used up.

    https://pypi.org/project/BayesHalvingSearchCV (`param_grid`, `data_zones`): it takes lists of
    values, and no list of spaces. Divisions keep the shares of classes, and fail if one has a
    single row; so of its zones those with few rows of a class are left out.
    """
    from bayes_halving_search_cv import BayesHalvingSearchCV

    rarest = np.bincount(training[1]).min()
    zones = [zone for zone in ZONES if zone == 1.0 or zone * rarest >= LEAST_OF_CLASS]

    def search_for(turn: int, left: float) -> Any:
        grid = {name: values_of(given) for name, given in SPACE[turn % len(SPACE)].items()}
        return left > 0.0 and BayesHalvingSearchCV(
            PIPELINE, grid, cv=division(seed), data_zones=zones, random_state=seed + 1000 * turn
        )

    return _best_of(search_for, training, seconds)


def values_of(given: Any) -> list[Any]:
    """Return a list as it is, and ten even quantiles of a distribution.

    >>> values_of(randint(0, 20)), values_of([None])
    ([0, 2, 4, 6, 8, 10, 12, 14, 16, 18], [None])
    """
    if isinstance(given, list):
        return given
    kind = int if isinstance(given, type(randint(0, 1))) else float
    return [kind(value) for value in given.ppf((np.arange(10) + 0.5) / 10)]


def affordable(units: float, fixed: float) -> int:
    """Return the largest number of candidates of halving that fits into the time.

    The time is in full trainings. The last round, of the candidates that are left, is on all rows.

    >>> affordable(1.9, 0.0), affordable(2.0, 0.0), affordable(4.1, 0.0), affordable(4.1, 0.2)
    (0, 3, 27, 4)
    """
    fits = (n for n in range(REDUCTION, 2000) if _cost(n, fixed) <= units)
    return max(fits, default=0)


def _cost(n: int, fixed: float) -> float:
    """Return the cost of halving n candidates, in full trainings.

    `fixed` is the share of a full training that does not grow with the rows.

    >>> _cost(3, 0.0), _cost(9, 0.0), _cost(9, 1.0)
    (2.0, 3.0, 13.0)
    """
    n_rounds = 1 + math.floor(math.log(n, REDUCTION) + 1e-9)
    counts = [math.ceil(n / REDUCTION**i) for i in range(n_rounds)]
    shares = [REDUCTION ** (i + 1 - n_rounds) for i in range(n_rounds)]
    per_candidate = [fixed + (1.0 - fixed) * share for share in shares]
    return sum(map(operator.mul, counts, per_candidate))


BAYES = "BayesHalvingSearchCV"
METHODS: dict[str, Callable[[Part, int, float, Costs], Found]] = {
    "DataAllocationSearchCV": allocation,
    "HalvingRandomSearchCV": halving,
    BAYES: bayes_halving,
    "RandomizedSearchCV": random_search,
}


def _found(search: Any, begun: float, n_candidates: int, n_full: int) -> Found:
    seconds = time.monotonic() - begun - search.refit_time_
    return Found(
        search.best_estimator_, float(search.best_score_), seconds, int(n_candidates), int(n_full)
    )


class CpuDatetime(datetime.datetime):
    """A clock that shows CPU seconds."""

    @classmethod
    def now(cls, tz: Any = None) -> CpuDatetime:
        """Return the CPU seconds as a date."""
        return cls.fromtimestamp(time.process_time(), tz)


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Make the clocks of scikit-learn, Optuna and optuna_daub show CPU seconds."""
    of_optuna = SimpleNamespace(datetime=CpuDatetime, timedelta=datetime.timedelta)
    with ExitStack() as stack:
        for name in ("time", "monotonic", "perf_counter"):
            stack.enter_context(patch.object(time, name, time.process_time))
        stack.enter_context(patch("optuna.study._optimize.datetime", of_optuna))
        stack.enter_context(patch("optuna_daub.study.host.datetime", CpuDatetime))
        yield


# --- Data ---


PROBLEMS: Mapping[str, Path] = {
    name: SHARED / "data" / f"{name}.parquet"
    for name in ("adult", "bank", "higgs", "flightlate", "letter", "covtype")
}


# --- Runs ---


def runs(names: Sequence[str], seeds: int, units: float, path: Path) -> Iterator[Run]:
    """Yield, for each seed and problem, the pilots and then every method that is installed."""
    methods = [name for name in METHODS if name != BAYES or find_spec("bayes_halving_search_cv")]
    for seed in range(seeds):
        for name in names:
            key = {"problem": name, "method": PILOT}
            yield Run(key, partial(pilot, name))
            for method in methods:
                key = {"problem": name, "method": method, "seed": seed, "units": units}
                yield Run(key, partial(measure, name, method, seed, units, path))


def opened(name: str, seed: int) -> tuple[Part, Part]:
    """Return training and test rows of a problem; generated ones for smoke runs."""
    if name in PROBLEMS:
        data = read(PROBLEMS[name], "target", MOST_ROWS, seed)
        test = (
            np.concatenate([data.X_valid, data.X_test]),
            np.concatenate([data.y_valid, data.y_test]),
        )
        return (data.X, data.y), test
    X, y = make_classification(900, 8, n_informative=5, flip_y=0.1, random_state=seed)
    return (X[270:], y[270:]), (X[:270], y[:270])


def pilot(name: str) -> Row:
    """Return the mean seconds of random candidates, and their fixed part."""
    (X, y), _ = opened(name, 0)
    means = []
    for n_rows in (len(y), len(y) // FEW):
        labels, counts = np.unique(y[:n_rows], return_counts=True)
        kept = np.isin(y[:n_rows], labels[counts > 1])  # what is there once cannot be divided
        begun = time.process_time()
        for space in SPACE:
            search = RandomizedSearchCV(
                PIPELINE, space, n_iter=PILOTS, cv=division(0), refit=False, random_state=12345
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search.fit(X[:n_rows][kept], y[:n_rows][kept])
        means.append((time.process_time() - begun) / (PILOTS * len(SPACE)))
    # unit = fixed + slope, and on so few rows it is fixed + slope / FEW.
    fixed = max(0.0, means[1] - (means[0] - means[1]) / (FEW - 1))
    return {"unit": means[0], "fixed": fixed, "load": os.getloadavg()[0]}


def measure(name: str, method: str, seed: int, units: float, path: Path) -> Row:
    """Run a method once."""
    key = {"problem": name, "method": PILOT}
    of_pilot = next(row for row in read_rows(path) if row["key"] == key)
    costs = Costs(of_pilot["unit"], of_pilot["fixed"])
    training, (X, y) = opened(name, seed)
    with warnings.catch_warnings(), cpu_clock():
        warnings.simplefilter("ignore")  # of linear models that do not converge
        found = METHODS[method](training, seed, units * costs.unit, costs)
    row = {
        "test": float(found.model.score(X, y)),
        "score": found.score,
        "seconds": found.seconds,
        "units": found.seconds / costs.unit,
        "candidates": found.n_candidates,
        "full": found.n_full,
        "model": type(found.model["model"]).__name__,
        "n_train": len(training[1]),
        "n_test": len(y),
        "load": os.getloadavg()[0],
    }
    print(name, method, seed, row, flush=True)
    return row


# --- Report ---


def report(rows: list[Row]) -> Iterable[str]:
    """Yield the test scores with their standard errors, and facts about the searches."""
    units = {r["key"]["problem"]: r["unit"] for r in rows if r["key"]["method"] == PILOT}
    rows = [row for row in rows if row["key"]["method"] != PILOT]
    yield "Accuracy on the test rows in %, mean and standard error over the seeds."
    for budget, of_budget in grouped(rows, "units").items():
        methods = [name for name in METHODS if name in grouped(of_budget, "method")]
        lines, wins = [], 0
        for problem, some in grouped(of_budget, "problem").items():
            of = grouped(some, "method")
            seeds = set.intersection(*({r["key"]["seed"] for r in of.get(m, [])} for m in methods))
            if not seeds:
                continue
            tests = [
                [100 * r["test"] for r in of[m] if r["key"]["seed"] in seeds] for m in methods
            ]
            wins += mean(tests[0]) == max(map(mean, tests))
            head = [f"{problem} ({some[0]['n_train']:,} rows)", f"{units[problem]:.2f}"]
            lines.append([*head, str(len(seeds)), *(shown(each, 2) for each in tests)])
        yield f"{budget:g} units of time:"
        yield table(["data", "unit, s", "seeds", *methods], lines)
        yield f"{methods[0]} has the largest mean on {wins} of {len(lines)}."
        lines = [
            [
                method,
                f"{mean(r['units'] for r in some):.1f}",
                f"{mean(r['candidates'] for r in some):.0f}",
                f"{mean(r['full'] for r in some):.1f}",
                f"{100 * mean(r['score'] for r in some):.2f}",
                f"{100 * mean(r['test'] for r in some):.2f}",
            ]
            for method, some in grouped(of_budget, "method").items()
        ]
        head = ["mean of all runs", "units", "candidates", "on all rows", "score", "test score"]
        yield table(head, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser: argparse.ArgumentParser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*PROBLEMS])
    parser.add_argument("--units", type=float, default=6.0, help="of time for each search")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    path = results_of(options) / "search_cv.jsonl"
    if options.smoke:
        options.problems, options.seeds, options.units = ["made"], 1, 8.0
    names = [name for name in options.problems if is_there(name, PROBLEMS.get(name))]
    record("search_cv", runs(names, options.seeds, options.units, path), options, report)


if __name__ == "__main__":
    main()
