"""Every method on known learning curves, without training anything.

    python benchmarks/replay.py [--smoke] [--time-limit S] [--problems ...] [--methods ...]

Each run is one row of results/replay.jsonl; the tables of results/replay.md follow from them.
Rows that are there are not run again: delete the file of rows to start over. Without ../shared
there are made curves.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.replay_methods import METHODS
from benchmarks.replay_methods import Method
from benchmarks.replay_problems import SOURCES
from benchmarks.replay_problems import Problem
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import record
from benchmarks.rows import table


MADE = "made"
LEGEND = (
    "Losses in percentage points of the score, below the best learner. Costs beside training all "
    "learners on all the data; the oracle trains the best one only. Halving to N: synchronous, "
    "its last round is on all the data. Problems: `replay_problems.py`, methods: "
    "`replay_methods.py`."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=SOURCES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD", default=METHODS)
    options = parser.parse_args(arguments)
    if options.smoke:
        options.problems = [MADE]
    asked = options.problems or [name for name in SOURCES if name != MADE]
    sources = [name for name in asked if is_there(name, SOURCES[name].path)] or [MADE]
    methods = [name for name in METHODS if name in options.methods]
    record("replay", runs(sources, methods, 2 if options.smoke else None), options, report)


def runs(
    sources: Iterable[str], methods: Collection[str], most: int | None = None
) -> Iterator[Run]:
    """Yield runs of all methods on all problems, with at most so many seeds.

    What depends on no seed is run once.
    """
    for source in sources:
        for seed in range(most or SOURCES[source].seeds):
            for problem in SOURCES[source].problems(seed):
                for name in methods:
                    method = METHODS[name]
                    varies = method.is_random or SOURCES[source].is_random
                    if method.can_run(problem) and (seed == 0 or varies):
                        key = {"source": source, "problem": problem.name}
                        yield Run(
                            {**key, "method": name, "seed": seed},
                            partial(measure, method, problem, seed),
                        )


def measure(method: Method, problem: Problem, seed: int) -> Mapping[str, Any]:
    """Run a method once, and return its loss and its cost.

    The costs that it is compared with are in the result too.
    """
    outcome = method.choose(problem, seed)
    return {
        **vars(outcome),
        "loss": problem.loss(outcome.learner),
        "full_cost": problem.full_cost,
        "oracle_cost": problem.oracle_cost,
        "unit": problem.unit,
    }


def summary(rows: list[Row]) -> dict[str, float]:
    """Return the figures of one method on one source. Costs are means of the runs' ratios."""
    losses = np.array([row["loss"] for row in rows])
    cost, scoring, full, oracle = (
        np.array([row[name] for row in rows])
        for name in ("cost", "scoring_cost", "full_cost", "oracle_cost")
    )
    return {
        "mean": 100 * float(losses.mean()),
        "p95": 100 * float(np.quantile(losses, 0.95)),
        "max": 100 * float(losses.max()),
        "share": 100 * float(np.mean(cost / full)),
        "scored": 100 * float(np.mean((cost + scoring) / full)),
        "oracle": float(np.mean(cost / oracle)),
        "runs": len(rows),
    }


def report(rows: list[Row]) -> Iterator[str]:
    """Yield the table of all problems, and one for each, in Markdown."""
    yield LEGEND
    sources = {
        source: {name: summary(own) for name, own in grouped(of_source, "method").items()}
        for source, of_source in grouped(rows, "source").items()
    }
    methods = [name for name in METHODS if any(name in figures for figures in sources.values())]
    yield "Mean loss (95 %, largest) @ cost in % of training everything, training scores included:"
    yield table(
        ["method", *sources],
        ([name, *(_cell(sources[source].get(name)) for source in sources)] for name in methods),
    )


def _cell(figures: Mapping[str, float] | None) -> str:
    if figures is None:
        return "-"
    loss = "{mean:.2f} ({p95:.2f}, {max:.1f})" if figures["max"] >= 0.005 else "0"
    return f"{loss} @ {{scored:.1f}} %".format(**figures)


if __name__ == "__main__":
    main()
