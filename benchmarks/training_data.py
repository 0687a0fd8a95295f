"""Data sets, split in three, and the learners that can be trained on them in time.

==============  ==================================================================================
parity          parity of 5 of 16 bits, N = 21,500, as examples/quickstart.py makes it
covtype         38,500 rows, the split of the quickstart
flightlate      1,400,000 rows; airports and carriers as numbers
covtype-400k    400,000 rows
higgs           10,000 rows
mnist           20,000 images
made            1,200 drawn rows and seven quick learners, for smoke runs
==============  ==================================================================================

Parity and the made rows need no file; the others are read from `../shared/data`, whose SOURCES.md
says where each comes from.

All rows a learner may be trained on stand in one order whose prefixes are stratified and hold
every class; every method that picks its own rows takes a prefix. Seeds shuffle before the split.

The learners are the 41 of examples/pool.py, without those that fail the cap: `affordable` fits
each at sizes that double up to a sixteenth of N or more, projects its CPU seconds of fit and
validation to N by its own exponent, and leaves out what exceeds the cap by more than a half. What
is left out is left out for every method, and its projection is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FixedTrial
from sklearn.datasets import make_classification
from sklearn.pipeline import Pipeline

from benchmarks.from_examples import LARGEST_TRAINING_SET
from benchmarks.from_examples import LARGEST_VALIDATION_SET
from benchmarks.from_examples import POOL
from benchmarks.from_examples import build_one_of_pool
from benchmarks.from_examples import parity
from benchmarks.rows import SHARED
from optuna_daub.objective.subsets import nested_order


CLEARLY = 1.5
"""Times the cap that a projection must exceed before a learner is left out: it is no exact one."""
HOPELESSLY = 30.0
"""Times the cap that a projection must exceed for larger probes not to be worth their time."""
FIRST_PROBE = 1000
FAR_PROBE = 16_000
"""Where small data end: below it boosted trees still grow more leaves with every row."""
STEEPEST = 3.0
"""Exponent above which a growth of seconds is taken for noise."""
SMOKE_LEARNERS = ("tree", "stump", "gaussian_nb", "logistic", "knn5", "svc_rbf", "rf_d10_5")

Array: TypeAlias = NDArray[Any]
Part: TypeAlias = tuple[Array, Array]
"""X and y."""


@dataclass(frozen=True)
class Data:
    """A data set in three parts: to train on, to choose by, and to judge the choice by."""

    training: Part
    validation: Part
    test: Part

    @property
    def n_train(self) -> int:
        """N, the number of all training rows."""
        return len(self.training[1])

    def first(self, size: int) -> Part:
        """Return the first so many training rows."""
        X, y = self.training
        return X[:size], y[:size]


@dataclass(frozen=True)
class Source:
    """A data set by name, and what one core can afford on it."""

    load: Callable[[int], Data]
    """For a seed."""
    cap: float
    """CPU seconds of fit and validation at N that a learner may take."""
    path: Path | None = None
    """The file that must be there; None if nothing is read."""
    learners: tuple[str, ...] = tuple(POOL)
    seeds: int = 1


def learner(name: str) -> Any:
    """Return an unfitted learner of the pool."""
    _, settings = POOL[name]
    fixed = {f"{name}.{key}": value for key, value in settings.items()}
    return build_one_of_pool(FixedTrial({"learner": name, **fixed}))


def fit_classes() -> set[type]:
    """Return the classes of all learners, of the last steps of pipelines too."""
    outer = [learner(name) for name in POOL]
    inner = [model[-1] for model in outer if isinstance(model, Pipeline)]
    return {type(model) for model in (*outer, *inner)}


def score(model: Any, part: Part) -> float:
    """Return the accuracy of a fitted model."""
    X, y = part
    return float(np.mean(np.asarray(model.predict(X)).ravel() == y))


def affordable(source: Source, clock: Callable[[], float]) -> Mapping[str, Any]:
    """Return which learners to train, and by how much the others fail the cap."""
    data = source.load(0)
    kept, left_out = [], {}
    for name in source.learners:
        projected = _projected(name, data, source.cap, clock)
        if projected is None or projected > CLEARLY * source.cap:
            left_out[name] = projected
        else:
            kept.append(name)
    return {
        "learners": kept,
        "left_out": left_out,
        "cap": source.cap,
        "n_train": data.n_train,
        "n_validation": len(data.validation[1]),
        "n_test": len(data.test[1]),
        "features": data.training[0].shape[1],
    }


def of_file(path: Path, target: str, n_train: int | None, cap: float) -> Source:
    """Return a data set that the user names."""
    return Source(partial(_read, path, target=target, n_train=n_train), cap, path)


def _projected(name: str, data: Data, cap: float, clock: Callable[[], float]) -> float | None:
    """Return a learner's CPU seconds at N by its own exponent; None without two fits.

    No training is started that would exceed the cap by itself, and none of a learner that is out
    of all proportion.
    """
    seen: list[tuple[int, float]] = []
    for size in _probe_sizes(data.n_train):
        if len(seen) > 1 and (
            extrapolated(seen, size) > CLEARLY * cap
            or extrapolated(seen, data.n_train) > HOPELESSLY * cap
        ):
            break
        try:
            seen.append((size, _seconds(name, data, size, clock)))
        except Exception as error:  # it may need more rows
            print(f"{name} cannot be trained on {size:,} rows: {error}")
    return extrapolated(seen, data.n_train) if len(seen) > 1 else None


def _probe_sizes(n_train: int) -> Iterator[int]:
    """Yield sizes that double up to a sixteenth of N, or a quarter if data are small."""
    last = max(n_train / 16, min(n_train / 4, FAR_PROBE))
    size = int(min(FIRST_PROBE, last / 2))
    while size <= last:
        yield size
        size *= 2


def _seconds(name: str, data: Data, size: int, clock: Callable[[], float]) -> float:
    """Return what a fit and its validation take; the first of all is done twice, to warm up."""
    for _ in range(2 if size <= FIRST_PROBE else 1):
        begun = clock()
        score(learner(name).fit(*data.first(size)), data.validation)
    return clock() - begun


def extrapolated(seen: list[tuple[int, float]], size: int) -> float:
    """Return the seconds at a size if they go on to grow by the power of the last two."""
    (n_before, before), (n_last, last) = seen[-2:]
    growth = math.log(max(last, 1e-3) / max(before, 1e-3)) / math.log(n_last / n_before)
    return float(last * (size / n_last) ** min(max(growth, 0.0), STEEPEST))


def _ordered(training: Part, validation: Part, test: Part, seed: int) -> Data:
    """Return the parts, the rows to train on in an order whose prefixes are stratified."""
    X, y = training
    order = nested_order(len(y), seed, y)
    return Data((np.ascontiguousarray(X[order]), y[order]), validation, test)


def _cut(X: Array, y: Array, n_train: int, n_valid: int, n_test: int, seed: int) -> Data:
    """Shuffle and split as the quickstart does; the test rows are from what that leaves over."""
    if n_train + n_valid >= len(y):
        raise ValueError(
            f"{n_train:,} rows to train on and {n_valid:,} to validate on leave none to test on, "
            f"of {len(y):,}: ask for fewer."
        )
    rows = np.random.default_rng(seed).permutation(len(y))
    parts = rows[:n_train], rows[-n_valid:], rows[n_train : len(y) - n_valid][:n_test]
    training, validation, test = ((X[part], y[part]) for part in parts)
    return _ordered(training, validation, test, seed)


def _parity(seed: int) -> Data:
    X, y, X_rest, y_rest = parity(seed=seed)
    half = len(y_rest) // 2
    return _ordered((X, y), (X_rest[:half], y_rest[:half]), (X_rest[half:], y_rest[half:]), seed)


def _read(
    path: Path,
    seed: int,
    *,
    target: str = "target",
    n_train: int | None = None,
    n_valid: int | None = None,
    n_test: int = LARGEST_VALIDATION_SET,
) -> Data:
    """Return a table as numbers, as `data.read_table` does, with test rows and any validation.

    As many rows are trained on and validated on as asked for; by default at most 55 and 30 %.
    """
    import pandas as pd

    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    y = pd.factorize(table.pop(target), sort=True)[0]
    table = pd.get_dummies(table, dtype=np.float32)
    X = table.fillna(table.median()).to_numpy(np.float32)
    n_valid = n_valid or min(LARGEST_VALIDATION_SET, round(0.3 * len(y)))
    n_train = n_train or min(LARGEST_TRAINING_SET, round(0.55 * len(y)))
    return _cut(X, y, n_train, n_valid, n_test, seed)


def _images(path: Path, seed: int) -> Data:
    with np.load(path) as file:
        X, y = file["X"].reshape(len(file["y"]), -1), file["y"].astype(np.int64)
    return _cut(X.astype(np.float32), y, 20_000, 10_000, 10_000, seed)


def _made(seed: int) -> Data:
    X, y = make_classification(3000, 12, n_informative=6, n_classes=3, random_state=seed)
    return _cut(X.astype(np.float32), y, 1200, 900, 900, seed)


def _table(name: str, cap: float, *, seeds: int = 1, **sizes: int) -> Source:
    path = SHARED / "data" / f"{name}.parquet"
    return Source(partial(_read, path, **sizes), cap, path, seeds=seeds)


MNIST = SHARED / "data" / "mnist.npz"

SOURCES: dict[str, Source] = {
    "parity": Source(_parity, 30.0, seeds=3),
    "covtype": _table("covtype", 25.0, seeds=3),
    "flightlate": _table("flightlate", 8.0, n_train=1_400_000, n_valid=100_000),
    "covtype-400k": _table("covtype", 30.0, n_train=400_000, n_valid=50_000),
    "higgs": _table("higgs", 30.0, n_train=10_000, seeds=3),
    "mnist": Source(partial(_images, MNIST), 20.0, MNIST),
    "made": Source(_made, 10.0, learners=SMOKE_LEARNERS),
}
"""In the order in which they are run."""
