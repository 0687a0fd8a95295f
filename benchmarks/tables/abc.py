"""Random configurations of five learners: what the figures of the ABC paper compare.

    python -m benchmarks.tables.abc [--smoke] [--time-limit S] [--data NAME ...]

For 5 to 80 configurations: ABC with each of its three schedulers, successive halving with and
without a resource limit, and training everything. A learner is trained on real data when a method
first asks for it, at most once per size and data set (results/abc_probes.jsonl), and all methods
are replayed on these probes: they differ by their decisions only. Rows of methods go to
results/abc.jsonl, tables to results/abc.md.

What is smaller than in the paper: one core, 1.4 million rows at most, covtype at 100,000 rows; on
flightlate 40 configurations are trained on all the data, the other 40 only if a method asks.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
"""

from __future__ import annotations

from collections import defaultdict
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
from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import read_rows
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
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
"""Seed of the random configurations."""
FIRST = 1000
"""Smallest training sample ([1] Section 5)."""
VALIDATION_FACTOR = 2
"""Validation examples per training example of a probe, for all methods ([1] Section 5)."""


@dataclass(frozen=True)
class Data:
    """A table and how much of it is used."""

    path: Path | None
    """A file; None for made rows."""
    target: str = "target"
    codes: str = ""
    """Columns of numbers that are categories, by name."""
    n_rows: int | None = None
    """Rows drawn at random; None for all. 70 % are trained on, the others held out."""
    n_measured: int = 80
    """Configurations that are all trained on all the data; those beyond, if a method asks."""


DATA = {
    "covtype": Data(SHARED / "data/covtype.parquet", n_rows=100_000),
    "flightlate": Data(
        SHARED / "data/flightlate.parquet", codes="carrier,origin,dest", n_measured=40
    ),
    "made": Data(None, "late"),
}
"""Where the files come from: SOURCES.md beside them."""
SMOKE_DATA = "made"
MADE_ROWS = 6_000


FULL = "full run"
EPSILON = 0.01
"""Largest distance of ABC's answer from the best."""

PUBLISHED = (
    "The paper (25 experiments on 1.4 to 10.6 million rows, 8 cores): ABC identifies 190 times "
    "sooner than the full run, with the last training included 60 times; ucb 128 times, "
    "round_robin in a few cases below 5. ABC's loss is at most 0.68 points; that of halving, "
    "relative to the best score, is 2 % in the mean and 8 % at most, with ABC's below 1 %. The "
    "text at hand has no figure by figure numbers, so none are quoted beside the cells."
)

Experiment = Mapping[str, Row]
"""Rows of one group of configurations by method."""
Experiments = Mapping[int, "list[Experiment]"]
"""Those of one data set by number of configurations."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.tables.abc")
    default = [name for name in DATA if name != SMOKE_DATA]
    parser.add_argument("--data", nargs="+", choices=DATA, default=default)
    parser.add_argument("--counts", nargs="+", type=int, choices=COUNTS, default=COUNTS)
    parser.add_argument("--groups", type=int, default=1, help="of each count, at most")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.data, options.counts, options.groups = [SMOKE_DATA], COUNTS[:1], 1
    results = results_of(options)
    there = [name for name in options.data if is_there(name, DATA[name].path)]
    benches = {name: bench(name, results) for name in there}
    planned = _runs(benches, options.counts, options.groups)
    path = results / "abc.jsonl"
    run_all(planned, path, options.time_limit)
    write_report(results / "abc.md", read_rows(path), _report)


def bench(name: str, results: Path) -> Bench:
    """Return the configurations on a data set of the table, split at random."""
    data = DATA[name]
    examples = parcels(MADE_ROWS) if data.path is None else read(str(data.path))
    X, y = features_and_classes(examples, data.target, data.codes)
    rows = np.random.default_rng(0).permutation(len(y))[: data.n_rows]
    training, held_out = np.split(rows, [round(0.7 * len(rows))])
    split = Split(X.iloc[training], y[training], X.iloc[held_out], y[held_out])
    measure = partial(trained, split, _configuration, VALIDATION_FACTOR)
    path = results / "abc_probes.jsonl"
    return Bench(name, len(training), len(held_out), measure, path, known_probes(path, name))


def full_run(bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Train the configurations on all the data, or the first of them if all are too expensive."""
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
    grid, start = _sizes(bench), 0
    while (
        len(grid[start + 1 :]) > 2 and _halving_examples(grid[start + 1 :], len(learners)) <= limit
    ):
        start += 1
    trace = bench.follow(SuccessiveHalving(grid[start:]), learners)
    return {**_measured(bench, trace), "first_size": grid[start]}


METHODS: dict[str, Callable[[Bench, Sequence[int]], Mapping[str, Any]]] = {
    FULL: full_run,
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


# --- Tables: one for each question, methods by numbers of configurations ---


def _experiments(rows: list[Row]) -> Mapping[str, Experiments]:
    """Return the experiments in which all methods ran, by data set and count."""
    found: dict[tuple[str, int, int], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        key = row["key"]
        found[key["data"], key["configurations"], key["group"]][key["method"]] = row
    most = max(map(len, found.values()))
    data: dict[str, dict[int, list[Experiment]]] = {}
    for (name, n, _), experiment in sorted(found.items()):
        if len(experiment) == most:
            data.setdefault(name, {}).setdefault(n, []).append(experiment)
    return data


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the tables in Markdown, with what one must know to read them."""
    yield (
        "Seconds are CPU seconds of one core: fit and validation, and for ABC training scores. "
        "*Full run*: all configurations trained on all the data. Halving scores on as many rows "
        "as ABC. Cells are over groups of configurations that share none: times of one method "
        "through those of another are of their sums, losses are the mean and, in parentheses, "
        "the largest. ~: only a part of the configurations was trained on all the data, the full "
        "run is as many times their mean, and the loss is below the best score known. CPU seconds "
        "are more on a machine that others use too."
    )
    yield PUBLISHED
    for name, experiments in _experiments(rows).items():
        full = next(iter(experiments.values()))[0][FULL]
        yield f"### {name}: {full['full_size']:,} rows to train on"
        questions: Mapping[str, Callable[[list[Experiment], str], str]] = {
            "Identification, times sooner than the full run": _sooner("identifying_seconds"),
            "With the last training, times sooner than the full run": _sooner("seconds"),
            "Loss of accuracy in percentage points": _loss,
            "CPU seconds with the last training": _seconds,
            "Largest size of the others than the answer, first group": _largest,
        }
        for question, cell in questions.items():
            yield f"{question}:"
            yield _table(experiments, cell)
        yield _verdict(experiments)


def _table(experiments: Experiments, cell: Callable[[list[Experiment], str], str]) -> str:
    header = ["configurations", *(f"{n}" for n in experiments)]
    groups = ["groups", *(f"{len(own)}" for own in experiments.values())]
    methods = list(next(iter(experiments.values()))[0])
    lines = [[method, *(cell(own, method) for own in experiments.values())] for method in methods]
    return table(header, [groups, *lines])


def _sooner(part: str) -> Callable[[list[Experiment], str], str]:
    def cell(experiments: list[Experiment], method: str) -> str:
        if method == FULL:
            return "1"
        mark = "" if all(map(_is_complete, experiments)) else "~"
        return f"{mark}{_speed_up(experiments, method, part):.1f}"

    return cell


def _speed_up(experiments: list[Experiment], method: str, part: str) -> float:
    full = sum(map(_full_seconds, experiments))
    return float(full / sum(experiment[method][part] for experiment in experiments))


def _full_seconds(experiment: Experiment) -> float:
    """Return the time of training everything, from the mean of those that were trained."""
    full = experiment[FULL]
    seconds: float = full["seconds"] / full["probes"] * full["key"]["configurations"]
    return seconds


def _is_complete(experiment: Experiment) -> bool:
    full = experiment[FULL]
    return bool(full["probes"] == full["key"]["configurations"])


def _losses(experiments: list[Experiment], method: str) -> list[float]:
    """Return how far the choice is below the best score known, per group."""
    best = [max(row["score"] for row in experiment.values()) for experiment in experiments]
    return [top - own[method]["score"] for top, own in zip(best, experiments, strict=True)]


def _loss(experiments: list[Experiment], method: str) -> str:
    losses = _losses(experiments, method)
    mean = f"{100 * sum(losses) / len(losses):.2f}"
    return mean if len(losses) == 1 else f"{mean} ({100 * max(losses):.2f})"


def _seconds(experiments: list[Experiment], method: str) -> str:
    if method == FULL:
        mark = "" if all(map(_is_complete, experiments)) else "~"
        return f"{mark}{sum(map(_full_seconds, experiments)) / len(experiments):,.0f}"
    return f"{sum(own[method]['seconds'] for own in experiments) / len(experiments):,.0f}"


def _largest(experiments: list[Experiment], method: str) -> str:
    first = experiments[0][method]
    return f"{first.get('largest_of_others', first.get('full_size', 0)):,}"


def _verdict(experiments: Experiments) -> str:
    """Return a sentence on what the paper claims: loss below epsilon, as many times sooner."""
    method = next(name for name in next(iter(experiments.values()))[0] if name != FULL)
    single = [own for groups in experiments.values() for own in groups]
    within = sum(_losses([own], method)[0] <= EPSILON for own in single)
    faster = [
        sum(_speed_up([own], method, part) >= own[FULL]["key"]["configurations"] for own in single)
        for part in ("identifying_seconds", "seconds")
    ]
    return (
        f"{method} was within {EPSILON:g} of the best in {within} of {len(single)} experiments. "
        f"Faster than one average full training: identification in {faster[0]} (paper: 23 of "
        f"25), in all {faster[1]} (paper: 22 of 25)."
    )


if __name__ == "__main__":
    main()
