"""Speed, memory and accuracy of boosted stumps beside scikit-learn's AdaBoostClassifier.

    python -m benchmarks.tables.stumps [--smoke] [--time-limit S] [--repetitions R]

Within one repetition the methods are fitted one after the other on the same data, in a process
that does nothing else; time is that of `fit`, memory the largest amount allocated during a second
fit of a few rounds, beyond the input, as a multiple of it. Rows go to results/stumps.jsonl, the
table to results/stumps.md.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier


BASE = "scikit-learn AdaBoost"
METHODS: dict[str, Callable[[int], Any]] = {
    BASE: lambda rounds: AdaBoostClassifier(n_estimators=rounds, random_state=0),
    "BudgetedAdaBoost, no trade-off": lambda rounds: BudgetedAdaBoostClassifier(
        trade_off="none", n_estimators=rounds
    ),
    "AdaptiveSamplingBoost, Massart": lambda rounds: AdaptiveSamplingBoostClassifier(
        n_estimators=rounds, random_state=0
    ),
}
"""Estimators by their number of rounds."""
MEMORY_ROUNDS = 3
"""Rounds of the fit whose memory is traced: later rounds need no more."""


@dataclass(frozen=True)
class Size:
    """The size of a table to fit."""

    n_samples: int
    n_features: int
    n_rounds: int
    methods: tuple[str, ...] = tuple(METHODS)
    dtype: str = "float64"


SIZES = {
    "100,000 x 50, 100 rounds": Size(100_000, 50, 100, tuple(METHODS)[:2]),
    "100,000 x 50, single precision, 10 rounds": Size(100_000, 50, 10, dtype="float32"),
    "1,000,000 x 20, 10 rounds": Size(1_000_000, 20, 10, tuple(METHODS)[1:]),
}
SMOKE_SIZES = {"2,000 x 10, 10 rounds": Size(2_000, 10, 10)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.tables.stumps")
    parser.add_argument("--repetitions", type=int, default=2, help="data sets of each size")
    options = parser.parse_args(arguments)
    results = results_of(options)
    sizes = SMOKE_SIZES if options.smoke else SIZES
    rows = run_all(_runs(sizes, options.repetitions), results / "stumps.jsonl", options.time_limit)
    write_report(results / "stumps.md", rows, _report)


def measure(size: Size, method: str, seed: int) -> Mapping[str, Any]:
    """Fit a method once for time and accuracy, and a few rounds more for memory."""
    X, y, X_test, y_test = _data(size.n_samples, size.n_features, size.dtype, seed)
    begin = time.perf_counter()
    model = METHODS[method](size.n_rounds).fit(X, y)
    seconds = time.perf_counter() - begin
    tracemalloc.start()
    METHODS[method](MEMORY_ROUNDS).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    drawn = getattr(model, "n_samples_per_round_", [len(X)])
    return {
        "seconds": seconds,
        "accuracy": float(model.score(X_test, y_test)),
        "memory": peak / X.nbytes,
        "samples_per_round": float(np.mean(drawn)),
    }


def _runs(sizes: Mapping[str, Size], repetitions: int) -> Iterator[Run]:
    for seed in range(repetitions):
        for name, size in sizes.items():
            for method in size.methods:
                key = {"size": name, "method": method, "seed": seed}
                yield Run(key, partial(measure, size, method, seed))


def _report(rows: list[Row]) -> Iterator[str]:
    header = ["method", "seconds", "x time", "memory, x input", "accuracy", "examples per round"]
    for size in dict.fromkeys(row["key"]["size"] for row in rows):
        by_method: dict[str, dict[int, Row]] = {}
        for row in rows:
            if row["key"]["size"] == size:
                by_method.setdefault(row["key"]["method"], {})[row["key"]["seed"]] = row
        seeds = set.intersection(*map(set, by_method.values()))  # an unfinished one is left out
        base = _means(by_method.get(BASE, {}), seeds)
        yield f"### {size}; data sets: {len(seeds)}"
        yield table(
            header,
            [_line(method, _means(own, seeds), base) for method, own in by_method.items()],
        )


def _line(method: str, mean: Mapping[str, float], base: Mapping[str, float]) -> list[str]:
    return [
        method,
        f"{mean['seconds']:.2f}",
        f"{mean['seconds'] / base['seconds']:.3f}" if base else "",
        f"{mean['memory']:.2f}",
        f"{mean['accuracy']:.4f}",
        f"{mean['samples_per_round']:,.0f}",
    ]


def _means(rows: Mapping[int, Row], seeds: Collection[int]) -> dict[str, float]:
    """Return means over data sets; nothing if there are no rows."""
    names = ("seconds", "memory", "accuracy", "samples_per_round") if rows else ()
    return {name: float(np.mean([rows[seed][name] for seed in seeds])) for name in names}


@cache
def _data(n_samples: int, n_features: int, dtype: str, seed: int) -> tuple[np.ndarray, ...]:
    n_test = n_samples // 5
    X, y = make_classification(
        n_samples + n_test, n_features, n_informative=n_features // 5, random_state=seed
    )
    X = X.astype(dtype)
    return X[:n_samples].copy(), y[:n_samples], X[n_samples:].copy(), y[n_samples:]


if __name__ == "__main__":
    main()
