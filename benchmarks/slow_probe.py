"""Whether one slow training changes the answer: the first call of a library may take a minute.

    python benchmarks/slow_probe.py [--smoke] [--time-limit S] [--problems parity covtype]

The default rule runs on curves that are known, in orders and with times drawn anew for each seed,
and once more with the first probe of one learner slower by `DELAY`. *Closed pool*: the best
learner's. *Open pool*: newcomers are drawn from the table with replacement, for `UNITS` mean full
trainings; the slow one is the first newcomer of all, or the first that is the best learner. The
delay is added to the time there is, so that both runs can train the same; what is counted is what
the rule makes of it. "Spent, but not counted": the delay is left out of what the study has spent,
which shows what comes of predicted costs alone. Rows go to results/slow_probe.jsonl, the table to
results/slow_probe.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.replay_problems import TABLES
from benchmarks.replay_problems import TIME_NOISE
from benchmarks.replay_problems import Problem
from benchmarks.replay_problems import made_problem
from benchmarks.replay_problems import shaken
from benchmarks.replay_problems import table_problem
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub.core import Cost
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import replay


DELAY = 40.0
"""Seconds by which the slow probe is slower."""
SEEDS = 40
UNITS = 10
"""Time for an open pool, in mean full trainings."""
MOST = 2000
"""Newcomers of an open pool, more than ever are begun."""
NO_MODEL = 0.5
"""The loss of a run that has no model of all the data."""
CASES = {
    "closed, the best learner's": ("closed", "best", True),
    "open, the first newcomer's": ("open", "first", True),
    "the same, spent, but not counted": ("open", "first", False),
    "open, the best learner's": ("open", "best", True),
    "the same, spent, but not counted ": ("open", "best", False),
}
"""The pool, the learner that is slow, and whether the delay counts as spent."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is left to do and write the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", choices=("made", "parity", "covtype"))
    options = parser.parse_args(arguments)
    asked = ["made"] if options.smoke else options.problems or ["parity", "covtype"]
    there = [n for n in asked if n == "made" or is_there(n, TABLES / f"{n}.csv")] or ["made"]
    runs = (
        Run({"problem": name, "case": case, "seed": seed}, partial(measured, name, case, seed))
        for name, case, seed in product(there, CASES, range(2 if options.smoke else SEEDS))
    )
    results = results_of(options)
    rows = run_all(runs, results / "slow_probe.jsonl", options.time_limit)
    write_report(results / "slow_probe.md", rows, _report)


def measured(name: str, case: str, seed: int) -> Mapping[str, Any]:
    """Return what is lost without and with the delay, and whether another learner won."""
    kind, slow, is_counted = CASES[case]
    problem = made_problem(0) if name == "made" else table_problem(name)
    if kind == "closed":
        problem = shaken(problem, seed)
        winners = [winner_of_closed(problem), winner_of_closed(problem, delay=DELAY)]
    else:
        winners = [
            winner_of_open(problem, seed, slow, delay, is_counted=is_counted)
            for delay in (0.0, DELAY)
        ]
    losses = [NO_MODEL if each is None else problem.loss(each) for each in winners]
    return {"without": losses[0], "with": losses[1], "is_other": winners[0] != winners[1]}


def winner_of_closed(problem: Problem, delay: float = 0.0) -> int | None:
    """Return whom the rule chooses if the best learner's first probe is slower by `delay`."""
    policy = ValuePerSecond(problem.sizes)
    first = next(iter(replay(policy, problem.curves)))
    assert isinstance(first, Extend)
    curves = [
        replace(
            curve,
            observations=tuple(
                replace(x, seconds=(x.seconds or 0.0) + delay * (x.size == first.size))
                for x in curve.observations
            ),
        )
        if curve.learner == problem.best
        else curve
        for curve in problem.curves
    ]
    last = [*replay(policy, curves)][-1]
    return last.learner if isinstance(last, Finish) else None


def winner_of_open(
    problem: Problem, seed: int, slow: str, delay: float, *, is_counted: bool
) -> int | None:
    """Return which learner of the table is best on all the data when the time is over."""
    policy = ValuePerSecond(problem.sizes)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(problem.curves), MOST)
    noise = rng.lognormal(0.0, TIME_NOISE, (MOST, len(problem.sizes)))
    ids = [problem.curves[i].learner for i in drawn]
    slow_one = ids.index(problem.best) if slow == "best" else 0
    left = UNITS * problem.full_cost / len(problem.curves)
    pool = Pool(to_come=None)
    while left > 0.0 and len(pool.curves) < MOST:
        pool = replace(pool, left=Cost(0, left))
        decision = policy.decide(pool)
        if isinstance(decision, Propose):
            newcomer = len(pool.curves)
            pool = pool.with_newcomer(newcomer)
            decision = policy.start(pool, newcomer, decision.size)
        if not isinstance(decision, Extend):
            break
        learner, size = decision.learner, decision.size
        seen = problem.curves[drawn[learner]].at(size)
        if seen is None:
            pool = pool.dropped(learner, "failed")
            continue
        seconds = (seen.seconds or 0.0) * float(noise[learner, problem.sizes.index(size)])
        left -= seconds
        late = delay if learner == slow_one and not pool.curves[learner].observations else 0.0
        pool = pool.observed(learner, replace(seen, seconds=seconds + late))
        if not is_counted:
            pool = replace(pool, spent=Cost(pool.spent.examples, pool.spent.seconds - late))
    leader = policy.leader(pool)
    if leader is None or pool.curves[leader].size < problem.full_size:
        return None
    return ids[leader]


def _report(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown."""
    yield (
        f"One probe slower by {DELAY:.0f} s. Losses in percentage points below the best learner, "
        f"means; worse: runs that lost over 0.1 points more than without."
    )
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["key"]["problem"], row["key"]["case"]), []).append(row)
    yield table(
        ["problem; pool, slow probe", "runs", "another winner", "worse", "better", "loss without",
         "loss with"],
        (
            [
                f"{problem}; {case.strip()}",
                str(len(own)),
                str(sum(row["is_other"] for row in own)),
                str(sum(row["with"] > row["without"] + 0.001 for row in own)),
                str(sum(row["without"] > row["with"] + 0.001 for row in own)),
                f"{100 * np.mean([row['without'] for row in own]):.2f}",
                f"{100 * np.mean([row['with'] for row in own]):.2f}",
            ]
            for (problem, case), own in groups.items()
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
