"""How often the intervals of open searches hold what they state.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.process [--smoke] [--units U ...] [--problems P ...]

A search on each surrogate is stopped after some units of time. Then every suspended learner's
score on all the data, and those of 100 random points, are compared with their forecasts: the
surrogate knows them. *Contenders* are within 2 points of the best full-data score. The prior in
`optuna_daub/core/forecasts/process.json` and the width of forecasts were chosen by hand on runs of
all twenty, so neither half of the table is held out yet.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.rows import parser_of
from benchmarks.rows import table
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import TASKS
from benchmarks.search_problems import Problem
from benchmarks.search_problems import Race
from benchmarks.search_space import Config
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Parameter
from benchmarks.search_space import active
from benchmarks.search_space import draw
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import geometric_sizes
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import Given
from optuna_daub.core.proposals import propose
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


STATED = (0.5, 0.8, 0.9, 0.95)
N_NEW = 100
"""Random points whose forecasts are compared."""
CONTENDERS = 0.02
"""Of the score: a learner so close to the best is a contender."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of held against stated."""
    parser = parser_of(__doc__)
    parser.add_argument("--units", nargs="+", type=float, default=[5.0, 20.0], help="of time")
    parser.add_argument("--problems", nargs="+", default=[f"ranger-{task}" for task in TASKS])
    options = parser.parse_args(arguments)
    if options.smoke:
        options.units, options.problems = [5.0], ["made"]
    held: Mapping[tuple[str, str], list[list[bool]]] = defaultdict(list)
    for place, name in enumerate(options.problems):
        if not PROBLEMS[name].is_there:
            print(f"{name} is left out: {PROBLEMS[name].path} is not there; it is never copied")
            continue
        half = "chosen on" if place < len(options.problems) / 2 else "judged on"
        for units in options.units:
            for kind, rows in compared(PROBLEMS[name].open(0), units, seed=place).items():
                held[half, kind] += rows
    lines = [
        [half, kind, str(len(rows)), *(f"{100 * share:.0f}" for share in np.mean(rows, axis=0))]
        for (half, kind), rows in held.items()
        if rows
    ]
    print(table(["surrogates", "learners", "number", *(f"{s:.0%}" for s in STATED)], lines))


def compared(problem: Problem, units: float, seed: int) -> Mapping[str, list[list[bool]]]:
    """Return which intervals held, by kind of learner, a row each with one entry per `STATED`."""
    full, rng = problem.full, random.Random(seed)
    pool = searched(problem, units * problem.reference()["unit"], seed)
    points: list[Config] = [draw(problem.space, rng) for _ in range(N_NEW)]
    rows = pool.known_space.rows([dict(point) for point in points])
    begun = [curve for curve in pool.curves.values() if curve.observations]
    if len(begun) < 5:
        return {}
    ends = [curve.score for curve in begun if curve.size == full]
    suspended = [curve for curve in begun if curve.size < full]
    process = Process(full)
    found = {}
    known = process.forecasts(pool, full)
    for kind, forecasts, tried in (
        (
            "suspended",
            [known[curve.learner] for curve in suspended],
            [dict(curve.parameters) for curve in suspended],
        ),
        ("new", _each(process, pool, Given(rows), full), points),
    ):
        truths = [problem.train(point, full, np.inf)[0] for point in tried]
        best = max(ends, default=max(truths, default=0.0))
        held = [_held(one, truth) for one, truth in zip(forecasts, truths, strict=True)]
        found[kind] = held
        close = [truth > best - CONTENDERS for truth in truths]
        found[f"{kind}, contenders"] = [h for h, is_one in zip(held, close, strict=True) if is_one]
    return found


def searched(problem: Problem, budget: float, seed: int) -> Pool:
    """Return what the default rule knows after a search, without any study."""
    race, rng = Race(problem, budget), random.Random(seed)
    policy = ValuePerSecond(geometric_sizes(problem.smallest, problem.full, 1.5))
    space = Space(
        tuple(
            sorted((p.name, Words(p.choices) if p.choices else _range(p)) for p in problem.space)
        )
    )
    pool = Pool(to_come=None, space=space, proposer=AroundBest(problem.full, seed))
    try:
        while not isinstance(decision := policy.decide(pool), Finish):
            if isinstance(decision, Propose):
                point = {one.name: one.draw(rng) for one in problem.space}
                if len(pool.curves):
                    point |= propose(pool, policy.prices, seed)
                learner = len(pool.curves)
                pool = pool.with_newcomer(learner, active(problem.space, point))
                decision = policy.start(pool, learner, decision.size)
            assert isinstance(decision, Extend)
            curve = pool.curves[decision.learner]
            score, seconds = race.evaluate(curve.parameters, decision.size)
            seen = Observation(decision.size, score, seconds=max(seconds, 1e-3))
            pool = pool.observed(decision.learner, seen)
    except OutOfBudgetError:
        pass
    return pool


def _range(one: Parameter) -> Range:
    return Range(one.low, one.high, one.is_log, None, one.is_int)


def _each(process: Process, pool: Pool, given: Given, full: int) -> list[Forecast]:
    forecast = process.candidates(replace(pool, proposer=given), full)
    return [forecast.at(place) for place in range(len(given.rows))]


def _held(forecast: Forecast, truth: float) -> list[bool]:
    ends = [(forecast.quantile(0.5 - s / 2), forecast.quantile(0.5 + s / 2)) for s in STATED]
    return [bool(low <= truth <= high) for low, high in ends]


if __name__ == "__main__":
    main()
