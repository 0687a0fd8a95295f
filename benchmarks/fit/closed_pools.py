"""Loss and cost of closed pools at each price, and the share of their intervals that hold.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.closed_pools [--smoke] [--prices 0.05 0.1 ...]
        [--prior joint.json] [--squared]

The closed-pool rule (`core/policies/closed_pool.py`) is run on known learning curves: LCDB 1.1 and
1.0, of which every second data set fitted no prior, and the tables. At every moment of a run, once
all learners have a score, the forecasts on all the data of those that are not there yet are
compared with where they end: the middle 50, 80, 90 and 95 % should hold as often. *Contenders* are
forecast within 2 points of the best. Moments of a run are alike, so each data set counts as one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fit import NEAR
from benchmarks.fit import STATED
from benchmarks.replay_problems import LCDB_FILE
from benchmarks.replay_problems import SOURCES
from benchmarks.replay_problems import Problem
from benchmarks.replay_problems import lcdb
from benchmarks.replay_problems import lcdb_problems
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import table
from optuna_daub import core
from optuna_daub.core.forecasts.joint import PRIOR
from optuna_daub.core.forecasts.joint import Prior
from optuna_daub.core.policies.closed_pool import ClosedTerms
from optuna_daub.core.policies.closed_pool import decide


PRICES = 0.03, 0.06, 0.1, 0.2, 0.4
SIZES = (1024, 4096), (4096, 2**31)
"""Ranges of N, in examples, for which LCDB is reported apart."""


class Outcome(NamedTuple):
    """The result of one run."""

    loss: float
    """Difference of the best learner's verdict and the chosen one's, at least 0."""
    cost: float
    """Cost as a share of training everything."""
    held: dict[str, list[float]]
    """Share of moments at which each interval of `STATED` held, for all learners and for
    contenders."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = parser_of(__doc__, writes=False, continues=False)
    parser.add_argument("--prices", type=float, nargs="+", default=PRICES)
    parser.add_argument("--prior", type=Path, help="file with another prior of forecasts")
    parser.add_argument("--squared", action="store_true", help="the rule sees squared errors")
    options = parser.parse_args(arguments)
    prior = PRIOR
    if options.prior:
        prior = Prior(**json.loads(options.prior.read_text(encoding="utf-8")))
    groups = dict(_groups(is_smoke=options.smoke))
    if options.squared:
        groups = {name: [squared(problem) for problem in each] for name, each in groups.items()}
    found = {
        price: {name: [run(p, price, prior) for p in each] for name, each in groups.items()}
        for price in options.prices
    }
    print("Mean loss in points (largest) @ cost in % of training everything:\n")
    lines = (
        [f"{price:g}", *(_loss(outcomes) for outcomes in of_price.values())]
        for price, of_price in found.items()
    )
    print(table(["price", *groups], lines))
    print(f"\nHeld at price {options.prices[len(options.prices) // 2]:g}, in %:\n")
    middle = found[options.prices[len(options.prices) // 2]]
    print(table(["data", "of", *(f"{100 * p:g} % stated" for p in STATED)], _held(middle)))


def _groups(*, is_smoke: bool) -> Iterator[tuple[str, list[Problem]]]:
    """Yield problems by name: seen and unseen data sets of LCDB by size, and the tables."""
    if is_smoke:
        yield "made", [*SOURCES["made"].problems(0)]
        return
    if is_there("lcdb", LCDB_FILE):
        known = lcdb()
        for least, most in SIZES:
            problems = [*lcdb_problems(known, full_sizes=(least, most))]
            name = f"LCDB, N >= {least:,}"
            yield name, problems[::2]
            yield f"{name}, others", problems[1::2]
    for name in ("lcdb, timed", "parity", "covtype"):
        if is_there(name, SOURCES[name].path):
            problems = [*SOURCES[name].problems(0)]
            yield name, problems[::2]
            if others := problems[1::2]:
                yield f"{name}, others", others


def squared(problem: Problem) -> Problem:
    """Return the problem with its errors squared; losses stay those of the scores."""

    def one(curve: core.LearningCurve) -> core.LearningCurve:
        seen = [replace(x, score=-((1.0 - x.score) ** 2)) for x in curve.observations]
        return core.LearningCurve(curve.learner, tuple(seen))

    return replace(problem, curves=tuple(map(one, problem.curves)))


def run(problem: Problem, price: float, prior: Prior) -> Outcome:
    """Run the rule on one problem."""
    forecaster = core.Joint(prior)
    unit = core.InExamples() if problem.unit == "examples" else core.InSeconds(problem.full_size)
    terms = ClosedTerms(problem.sizes, forecaster, unit, price)
    known = {curve.learner: curve for curve in problem.curves}
    finals = np.array([c.score if c.size == problem.full_size else np.nan for c in known.values()])
    pool = core.Pool(core.Curves([core.LearningCurve(i) for i in known]), to_come=0)
    cost, held = 0.0, defaultdict(list)
    while True:
        decision = decide(pool, terms)
        if isinstance(decision, core.Finish):
            assert decision.learner is not None
            shares = {who: np.mean(each, axis=0).tolist() for who, each in held.items()}
            return Outcome(problem.loss(decision.learner), cost / problem.full_cost, shares)
        assert isinstance(decision, core.Extend)
        seen = known[decision.learner].at(decision.size)
        cost += problem.costs[decision.learner, decision.size]
        if seen is None:
            pool = pool.dropped(decision.learner, "failed")
        else:
            pool = pool.observed(decision.learner, seen)
        curves = pool.curves.values()
        if all(curve.observations or curve.dropped for curve in curves):
            left = np.array([0 < c.size < problem.full_size and not c.dropped for c in curves])
            forecast = forecaster.forecasts(pool, problem.full_size).all
            near = left & (forecast.mean > forecast.mean[left | (finals == finals)].max() - NEAR)
            for who, some in (("all", left), ("contenders", near)):
                known_end = some & np.isfinite(finals)
                if known_end.any():
                    lies = [
                        (finals >= forecast.quantile((1 - p) / 2))
                        & (finals <= forecast.quantile((1 + p) / 2))
                        for p in STATED
                    ]
                    held[who].append([float(inside[known_end].mean()) for inside in lies])


def _loss(outcomes: list[Outcome]) -> str:
    losses, costs = np.array([(x.loss, x.cost) for x in outcomes]).T
    return f"{100 * losses.mean():.2f} ({100 * losses.max():.1f}) @ {100 * costs.mean():.1f} %"


def _held(found: dict[str, list[Outcome]]) -> Iterator[list[str]]:
    for name, outcomes in found.items():
        for who in ("all", "contenders"):
            each = [x.held[who] for x in outcomes if who in x.held]
            if each:
                yield [name, who, *(f"{100 * x:.0f}" for x in np.mean(each, axis=0))]


if __name__ == "__main__":
    main()
