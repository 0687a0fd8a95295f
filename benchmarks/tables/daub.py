"""Tables 1 and 2 of the DAUB paper: what choosing among 41 learners costs and loses.

    python -m benchmarks.tables.daub [--smoke] [--time-limit S] [--data NAME ...]

Parity is exactly that of the paper: 5-bit parity with 11 distractors, 21,500 examples to train on
and as many held out, b = 500, r = 1.5. Of the other data sets 70 %, at most 38,500 rows, are
trained on, and 30 %, at most 10,000, held out. The learners are those of examples/pool.py, the
paper's are WEKA's. Training scores are of all rows trained on. `recorded` sets are learning curves
of ../shared/tables, with training scores of at most 5,000 rows: nothing is trained. The other
files are in ../shared/data, whose SOURCES.md says where each comes from.

A learner is trained when a method first asks for it, at most once per size and data set
(results/daub_probes.jsonl), and all methods are replayed on these probes. Rows of methods go to
results/daub.jsonl, tables to results/daub.md.

[1] A. Sabharwal, H. Samulowitz, G. Tesauro, "Selecting Near-Optimal Learners via Incremental Data
    Allocation", AAAI 2016. https://arxiv.org/abs/1601.00024
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from typing import Literal

from benchmarks.from_examples import POOL
from benchmarks.from_examples import learner_of_pool
from benchmarks.from_examples import parity
from benchmarks.from_examples import read_table
from benchmarks.replay_problems import TABLE_VALIDATION
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
from benchmarks.tables.probes import known_probes
from benchmarks.tables.probes import trained
from optuna_daub import DAUBPruner


SMALLEST, RATIO = 500, 1.5
"""b and r ([1] Section "Experiments")."""
N_FIRST = 3
"""Sizes that every learner is trained on first ([1] Algorithm 1)."""
CLEARLY_WORSE = 0.01
"""Delta: examples for learners so far below the best are the regret ([1] Definition 3)."""

RECORDED = {name: SHARED / "tables" / f"{name.split()[0]}.csv" for name in (
    "parity recorded", "covtype recorded")}  # fmt: skip
"""Files of learning curves."""
FILES = {name: SHARED / "data" / f"{name}.parquet" for name in ("higgs", "magic", "letter")}
"""Tables that learners are trained on, besides Parity, which is made."""
SMOKE_DATA = "made"


@dataclass(frozen=True)
class Rule:
    """A variant of DAUB."""

    use_training_score: bool
    stop: Literal["first", "verified"]
    """"first" is the paper's, "verified" the plugin's."""


RULES = {
    "DAUB without f^T": Rule(False, "first"),
    "DAUB": Rule(True, "first"),
    "DAUB without f^T, verified": Rule(False, "verified"),
    "DAUB, verified": Rule(True, "verified"),
}


FULL, PLAIN, PAPER = "full training", "DAUB without f^T", "DAUB"
"""The lines of the paper's Table 1; its Table 2 is of DAUB."""


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables."""

    iterations: int
    allocation: str
    """Examples, as printed."""
    seconds: int


PUBLISHED = {
    ("parity", FULL): Published(41, "860k", 5_939),
    ("parity", PLAIN): Published(26, "171k", 617),
    ("parity", PAPER): Published(19, "156k", 397),
    ("higgs", FULL): Published(41, "1,578k", 49_905),
    ("higgs", PLAIN): Published(105, "590k", 17_186),
    ("higgs", PAPER): Published(56, "372k", 2_001),
    ("covtype", FULL): Published(41, "1,578k", 43_578),
    ("covtype", PAPER): Published(13, "160k", 3_848),
}
"""[1] Tables 1 and 2, by the first word of a data set's name; 860k is 40 x 21,500."""
PUBLISHED_LOSS = {"higgs": 0.0, "covtype": 1.1}
"""[1] Table 2, in per cent."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.tables.daub")
    names = [*RECORDED, "parity", *FILES]
    parser.add_argument("--data", nargs="+", choices=names, default=names, metavar="NAME")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.data = [SMOKE_DATA]
    results = results_of(options)
    path = results / "daub.jsonl"
    there = [name for name in options.data if is_there(name, {**RECORDED, **FILES}.get(name))]
    run_all(_runs(there, results), path, options.time_limit)
    write_report(results / "daub.md", read_rows(path), _report)


def bench(name: str, results: Path) -> Bench:
    """Return the learners on a data set."""
    path = results / "daub_probes.jsonl"
    if name in RECORDED:
        rows = _recorded(RECORDED[name])
        full_size = max(size for _, size in rows)
        return Bench(name, full_size, TABLE_VALIDATION, _never, path, rows)
    if name in FILES:
        split = Split(*read_table(str(FILES[name]), "target"))
    else:
        split = Split(*(parity(1_500, 500) if name == SMOKE_DATA else parity()))
    measure = partial(trained, split, _learner, None)
    n_train, n_validation = len(split.y), len(split.y_valid)
    return Bench(name, n_train, n_validation, measure, path, known_probes(path, name))


def full_training(bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Train every learner on all the data."""
    probes = [(i, bench.full_size) for i in learners]
    return {
        "learner": list(POOL)[max(learners, key=bench.score)],
        "loss": 0.0,
        "regret": _regret(bench, learners, probes),
        "iterations": len(probes),
        "allocation": len(probes) * bench.full_size,
        "examples": len(probes) * bench.full_size,
        "seconds": bench.seconds(probes),
        "full_size": bench.full_size,
        "n_validation": bench.n_validation,
    }


def daub(rule: Rule, bench: Bench, learners: Sequence[int]) -> Mapping[str, Any]:
    """Follow DAUB; the paper counts iterations and allocation after the first three sizes."""
    policy = DAUBPruner.paper(
        min_resource=SMALLEST,
        max_resource=bench.full_size,
        reduction_factor=RATIO,
        use_training_score=rule.use_training_score,
        stop=rule.stop,
    ).policy
    trace = bench.follow(policy, learners)
    later = [probe for probe in trace.probes if probe[1] not in policy.sizes[:N_FIRST]]
    seconds = partial(bench.seconds, with_training_score=rule.use_training_score)
    return {
        "learner": list(POOL)[trace.learner],
        "loss": max(map(bench.score, learners)) - bench.score(trace.learner),
        "regret": _regret(bench, learners, trace.probes),
        "iterations": len(later),
        "allocation": sum(size for _, size in later),
        "examples": sum(size for _, size in trace.probes),
        "seconds": seconds(trace.probes),
    }


def _runs(names: Sequence[str], results: Path) -> Iterator[Run]:
    """Yield all methods on one data set after the other; training everything gives the losses."""
    methods = {"full training": full_training}
    methods |= {name: partial(daub, rule) for name, rule in RULES.items()}
    for name in names:
        on = bench(name, results)
        learners = range(12 if name == SMOKE_DATA else len(POOL))
        for method, measure in methods.items():
            yield Run({"data": name, "method": method}, partial(measure, on, learners))


def _regret(bench: Bench, learners: Sequence[int], probes: Sequence[tuple[int, int]]) -> int:
    """Return the examples that learners clearly worse than the best were trained on."""
    enough = max(map(bench.score, learners)) - CLEARLY_WORSE
    return sum(size for learner, size in probes if bench.score(learner) <= enough)


def _learner(number: int) -> Any:
    return learner_of_pool(list(POOL)[number])


def _recorded(path: Path) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Return the probes of a recorded table, whose learners are those of the pool."""
    numbers = {learner: number for number, learner in enumerate(POOL)}
    rows: dict[tuple[int, int], Mapping[str, Any]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seconds = {key: float(row[key] or 0.0) for key in row if key.endswith("_seconds")}
            rows[numbers[row["learner"]], int(row["size"])] = {
                "score": None if row["error"] else float(row["validation_score"]),
                "training_score": None if row["error"] else float(row["training_score"]),
                "n_validation": TABLE_VALIDATION,
                "error": row["error"],
                **seconds,
            }
    return rows


def _never(learner: int, size: int) -> Mapping[str, Any]:
    raise AssertionError(f"learner {learner} has no recorded probe on {size:,} examples")


# --- Tables: measured figures with the published ones in parentheses ---


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the tables in Markdown, with what one must know to read them."""
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(row["key"]["data"], {})[row["key"]["method"]] = row
    yield (
        "Measured (published). *Iterations* and *allocation* (training examples) leave out the "
        "first three sizes of every learner, as the paper's do; *examples* and *seconds* have "
        "them. *Regret* is the part of the examples that went to learners at least 0.01 below "
        "the best. Seconds are CPU seconds of fit and validation, of training scores where a rule "
        "uses them. *Loss* is in percentage points of accuracy on the held-out rows, below the "
        "best of training everything. The paper's learners are WEKA's and its higgs and covtype "
        "have 38,500 training examples: there, compare factors."
    )
    for data, own in groups.items():
        if FULL not in own:
            continue
        full = own[FULL]
        yield (
            f"### {data}: N = {full['full_size']:,}, {full['n_validation']:,} held out, "
            f"{full['iterations']} learners"
        )
        yield _table(data, own)
    yield "### Table 2 of the paper: DAUB on all data sets"
    yield _second_table(groups)


def _table(data: str, own: Mapping[str, Row]) -> str:
    header = ["method", "iterations", "allocation", "examples", "regret", "seconds", "x sooner"]
    lines = []
    for method, row in own.items():
        cell = PUBLISHED.get((data.split()[0], method))
        full = PUBLISHED.get((data.split()[0], FULL))
        sooner = full.seconds / cell.seconds if cell and full and method != FULL else None
        lines.append(
            [
                method,
                f"{row['iterations']}" + _beside(cell and f"{cell.iterations}"),
                _thousands(row["allocation"]) + _beside(cell and cell.allocation),
                _thousands(row["examples"]),
                f"{100 * row['regret'] / row['examples']:.0f} %",
                f"{row['seconds']:,.1f}" + _beside(cell and f"{cell.seconds:,}"),
                f"{own[FULL]['seconds'] / row['seconds']:.1f}"
                + _beside(sooner and f"{sooner:.1f}"),
                f"{100 * row['loss']:.2f}",
                row["learner"],
            ]
        )
    return table([*header, "loss, pp", "choice"], lines)


def _second_table(groups: Mapping[str, Mapping[str, Row]]) -> str:
    header = [
        "data",
        "iterations",
        "allocation",
        "seconds",
        "full training",
        "x sooner",
        "loss, pp",
    ]
    lines, factors, losses = [], [], []
    for data, own in groups.items():
        if PAPER not in own:
            continue
        row, full = own[PAPER], own[FULL]
        name = data.split()[0]
        published = PUBLISHED_LOSS.get(name)
        factors.append(full["seconds"] / row["seconds"])
        losses.append(100 * row["loss"])
        lines.append(
            [
                data,
                f"{row['iterations']}",
                _thousands(row["allocation"]),
                f"{row['seconds']:,.1f}",
                f"{full['seconds']:,.1f}",
                f"{factors[-1]:.1f}",
                f"{losses[-1]:.2f}" + _beside(None if published is None else f"{published} %"),
            ]
        )
    mean = [f"{sum(values) / len(values):.1f}" for values in (factors, losses)]
    lines.append(["mean", "", "", "", "", f"{mean[0]} (16)", f"{mean[1]} (0.4 %)"])
    return table(header, lines)


def _thousands(examples: int) -> str:
    return f"{examples / 1000:,.0f}k"


def _beside(published: object) -> str:
    return f" ({published})" if published else ""


if __name__ == "__main__":
    main()
