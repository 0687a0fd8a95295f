"""Random configurations of five learners: what the figures of the ABC paper compare.

    python benchmarks/paper_tables.py abc [--smoke] [--time-limit S] [--data NAME ...]

For 5 to 80 configurations: ABC with each of its three schedulers, successive halving with and
without a resource limit, and training everything. A learner is trained on real data when a method
first asks for it, at most once per size and data set (results/abc_probes.jsonl), and all methods
are replayed on these probes: they differ by their decisions only. Rows of methods go to
results/abc.jsonl, tables to results/abc.md.

What is smaller than in the paper: one core, 1.4 million rows at most, covtype at 100,000 rows; on
flightlate 40 configurations are trained on all the data, the other 40 only where a method asks.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from benchmarks.from_examples import build_one_of_five
from benchmarks.from_examples import features_and_classes
from benchmarks.from_examples import parcels
from benchmarks.from_examples import read
from benchmarks.options import parser_of
from benchmarks.options import results_of
from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import read_rows
from benchmarks.rows import run_all
from benchmarks.tables.abc_report import report
from benchmarks.tables.probes import Bench
from benchmarks.tables.probes import Split
from benchmarks.tables.probes import Trace
from benchmarks.tables.probes import known_probes
from benchmarks.tables.probes import trained
from optuna_daub.core import ABC
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import geometric_sizes
from optuna_daub.core import gradient_ci
from optuna_daub.core import round_robin
from optuna_daub.core import ucb


COUNTS = (5, 10, 20, 40, 80)
"""Numbers of configurations ([1] Section 5)."""
SEED = 10
"""Of the configurations, drawn at random; the first 20 are those of results/issue3.md."""
FIRST = 1000
"""Smallest training sample ([1] Section 5)."""
VALIDATION_FACTOR = 2
"""Validation examples per training example of a probe, for all methods ([1] Section 5)."""


@dataclass(frozen=True)
class Data:
    """A table and how much of it is used."""

    table: Callable[[], Any]
    target: str = "target"
    codes: str = ""
    """Columns of numbers that are categories, by name."""
    n_rows: int | None = None
    """Rows drawn at random; None for all. 70 % are trained on, the others held out."""
    n_measured: int = 80
    """Configurations that are all trained on all the data; those beyond, where a method asks."""


DATA = {
    "covtype": Data(partial(read, str(SHARED / "data/covtype.parquet")), n_rows=100_000),
    "flightlate": Data(
        partial(read, str(SHARED / "data/flightlate.parquet")),
        codes="carrier,origin,dest",
        n_measured=40,
    ),
    "made": Data(partial(parcels, 6_000), "late"),
}
SMOKE_DATA = "made"


def main(arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "paper_tables.py abc")
    default = [name for name in DATA if name != SMOKE_DATA]
    parser.add_argument("--data", nargs="+", choices=DATA, default=default)
    parser.add_argument("--counts", nargs="+", type=int, choices=COUNTS, default=COUNTS)
    parser.add_argument("--groups", type=int, default=1, help="of each count, at most")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.data, options.counts, options.groups = [SMOKE_DATA], COUNTS[:1], 1
    results = results_of(options)
    benches = {name: bench(name, results) for name in options.data}
    planned = _runs(benches, options.counts, options.groups)
    path = results / "abc.jsonl"
    run_all(planned, path, options.time_limit)
    text = report(read_rows(path))
    (results / "abc.md").write_text(text, encoding="utf-8")
    print(text)


def bench(name: str, results: Path) -> Bench:
    """Return the configurations on a data set of the table, split at random."""
    data = DATA[name]
    X, y = features_and_classes(data.table(), data.target, data.codes)
    rows = np.random.default_rng(0).permutation(len(y))[: data.n_rows]
    training, held_out = np.split(rows, [round(0.7 * len(rows))])
    split = Split(X.iloc[training], y[training], X.iloc[held_out], y[held_out])
    measure = partial(trained, split, _configuration, VALIDATION_FACTOR)
    path = results / "abc_probes.jsonl"
    return Bench(name, len(training), len(held_out), measure, path, known_probes(path, name))


def full_run(bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Train the configurations on all the data, or the first of them where all are too dear."""
    trained_on_all = [i for i in learners if i < DATA[bench.data].n_measured]
    scores = [bench.score(i) for i in trained_on_all]
    probes = [(i, bench.full_size) for i in trained_on_all]
    return {
        "learner": learners[int(np.argmax(scores))],
        "score": max(scores),
        "identifying_seconds": bench.seconds(probes),
        "seconds": bench.seconds(probes),
        "probes": len(probes),
        "examples": len(probes) * bench.full_size,
        "full_size": bench.full_size,
    }


def abc(scheduler: Any, bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Follow ABC; its probes need training scores, the last training too."""
    return _measured(bench, _abc_trace(scheduler, bench, learners), with_training_score=True)


def halving(bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Halve from the smallest sample on, twice the sample for half of the configurations."""
    return _measured(bench, bench.follow(SuccessiveHalving(_sizes(bench)), learners))


def limited_halving(bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Halve from the largest sample on with which no more is used than by ABC, in examples."""
    limit = _examples(_abc_trace(gradient_ci, bench, learners))
    ladder, start = _sizes(bench), 0
    while (
        len(ladder[start + 1 :]) > 2
        and _halving_examples(ladder[start + 1 :], len(learners)) <= limit
    ):
        start += 1
    trace = bench.follow(SuccessiveHalving(ladder[start:]), learners)
    return {**_measured(bench, trace), "first_size": ladder[start]}


METHODS: dict[str, Callable[[Bench, Sequence[int]], Mapping[str, Any]]] = {
    "full run": full_run,
    "ABC, gradient_ci": partial(abc, gradient_ci),
    "ABC, ucb": partial(abc, ucb),
    "ABC, round_robin": partial(abc, round_robin),
    "halving, no limit": halving,
    "halving, as many examples as ABC": limited_halving,
}


def _runs(benches: Mapping[str, Bench], counts: Sequence[int], most: int) -> Iterator[Run]:
    """Yield the product of data, groups of configurations and methods; one of each count first.

    Groups of one count share no configuration; all are among those that are measured.
    """
    groups = [
        (group > 0, n, group, data)
        for data in benches
        for n in counts
        for group in range(max(1, min(most, DATA[data].n_measured // n)))
    ]
    for _, n, group, data in sorted(groups):
        learners = range(group * n, (group + 1) * n)
        for name, method in METHODS.items():
            key = {"data": data, "configurations": n, "group": group, "method": name}
            yield Run(key, partial(method, benches[data], learners))


def _measured(bench: Bench, trace: Trace, *, with_training_score: bool = False) -> Row:
    identifying = trace.probes[: trace.n_identifying]
    cost = partial(bench.seconds, with_training_score=with_training_score)
    others = [size for learner, size in trace.probes if learner != trace.learner]
    return {
        "learner": trace.learner,
        "score": bench.score(trace.learner),
        "identifying_seconds": cost(identifying),
        "seconds": cost(trace.probes),
        "probes": len(trace.probes),
        "examples": _examples(trace),
        "largest_of_others": max(others),
    }


def _abc_trace(scheduler: Any, bench: Bench, learners: Sequence[int]) -> Trace:
    policy = ABC(_sizes(bench), bench.n_validation, scheduler=scheduler)
    return bench.follow(policy, learners)


def _sizes(bench: Bench) -> tuple[int, ...]:
    return geometric_sizes(FIRST, bench.full_size, 2.0)


def _examples(trace: Trace) -> int:
    """Return the training examples of identification."""
    return sum(size for _, size in trace.probes[: trace.n_identifying])


def _halving_examples(sizes: Sequence[int], n: int) -> int:
    """Return the training examples until one of n configurations is left."""
    total = 0
    for size in sizes:
        if n == 1:
            break
        total, n = total + n * size, -(-n // 2)
    return total


def _configuration(number: int) -> Any:
    return _configurations()[number]


@cache
def _configurations() -> list[Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=SEED))
    return [build_one_of_five(study.ask()) for _ in range(max(COUNTS))]
