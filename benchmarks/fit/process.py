"""Fit the prior of the process, and show how often intervals of open searches hold.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.process [--smoke] [--write] [--units U ...]
        [--problems P ...] [--tables T ...] [--number NAME --values V ...]

A search on each surrogate is stopped after some units of time. Then every suspended learner's
score on all the data, and those of 100 random points, are compared with their forecasts: the
surrogate knows them. *Contenders* are within 2 points of the best full-data score. *Rankings* are
the rank correlations that `sample_agreement` shows, one for each training size.

With `--write` the prior is chosen on the searches of the first half of the problems: for a larger
mean logarithm of the forecasts' densities at these scores, near the prior of before. It goes into
`optuna_daub/core/forecasts/process.json`. The second half is judged on.

The length scale is not chosen so, as what searches have tried says little about it: with long ones
they try few kinds of points. `--values` shows what searches lose with each value of a number, such
as `--number bend --values 0.3 0.5`.

The surrogates are forests. With `--tables`, files of `../shared/data`, boosted trees are judged:
random points trained on four sizes, in the states of studies. `--values` then shows densities.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from benchmarks.fit import NEAR
from benchmarks.fit import STATED
from benchmarks.fit import space_of
from benchmarks.rows import SHARED
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import table
from benchmarks.search_problems import ALGORITHM
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import TASKS
from benchmarks.search_problems import Problem
from benchmarks.search_problems import Race
from benchmarks.search_problems import Source
from benchmarks.search_problems import Training
from benchmarks.search_problems import read
from benchmarks.search_space import Config
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import active
from benchmarks.search_space import draw
from optuna_daub import core
from optuna_daub.core.forecasts import process
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.prior import Prior
from optuna_daub.core.forecasts.prior import Scales
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import Given
from optuna_daub.core.proposals import propose
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.study.agreement import MIN_LEARNERS
from optuna_daub.study.agreement import rank_correlations


N_NEW = 100
"""Number of random points whose forecasts are compared."""
UNITS = (3.0, 10.0, 30.0, 100.0)
"""Times after which losses of searches are compared, in full trainings."""
N_BOOSTERS, MOST_ROWS = 40, 60_000
"""Number of boosted trees on each table, and its largest number of rows to train on."""
N_KNOWN, N_STATES = (6, 12, 20), 4
"""Numbers of learners in the states of studies with them, and states of each."""


class Searched(NamedTuple):
    """A search that was stopped, and the truth that the surrogate knows."""

    full: int
    """Number of all training examples, N."""
    pool: core.Pool
    """Pool of the search at that moment."""
    suspended: NDArray[np.intp]
    """Places of the suspended learners in the pool."""
    truth: Numbers
    """The suspended learners' scores on all the data, shape (suspended,)."""
    points: Rows
    """Random points, shape (points, parameters)."""
    truth_of_points: Numbers
    """The points' scores on all the data, shape (points,)."""
    best: float
    """Best full-data score of the search. If it had none, the best score of the points."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of held against stated; with `--write`, choose the prior first."""
    parser = parser_of(__doc__, writes=False, continues=False)
    parser.add_argument("--units", nargs="+", type=float, default=[5.0, 20.0], help="of time")
    parser.add_argument("--problems", nargs="+", default=[f"ranger-{task}" for task in TASKS])
    parser.add_argument("--write", action="store_true", help="choose the prior and store it")
    parser.add_argument("--tables", nargs="+", default=[], help="judge boosted trees on these")
    parser.add_argument("--number", default="length", help="of the prior, for --values")
    parser.add_argument("--values", nargs="+", type=float, default=[], help="to compare")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="of searches")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.units, options.problems, options.seeds = [5.0], ["made"], [0]
    there = [name for name in options.problems if is_there(name, PROBLEMS[name].path)]
    priors = {value: _with(PRIOR, options.number, value) for value in options.values}
    for name in options.tables:
        states = boosters(SHARED / "data" / name)
        for value, prior in (priors or {"as it is": PRIOR}).items():
            found = density(prior, states)
            print(f"{name}, {options.number} {value}: mean log density {found:.3f}", flush=True)
    if options.tables:
        return
    if priors:
        print(losses(priors, options.number, there, options.seeds))
        return
    searches = [
        [searched(PROBLEMS[name], units, place) for units in options.units]
        for place, name in enumerate(there)
    ]
    half = len(there) // 2
    chosen_on = [one for each in searches[:half] for one in each]
    judged_on = [one for each in searches[half:] for one in each]
    prior = PRIOR
    if options.write:
        prior = fitted(prior, chosen_on)
        store(prior)
    lines = [
        [name, kind, str(len(rows)), *(f"{100 * share:.0f}" for share in rows.mean(axis=0))]
        for name, part in (("chosen on", chosen_on), ("judged on", judged_on))
        for kind, rows in kinds_held(prior, part).items()
        if len(rows)
    ]
    print(table(["surrogates", "learners", "number", *(f"{s:.0%}" for s in STATED)], lines))


def losses(
    priors: Mapping[float, Prior], number: str, problems: Sequence[str], seeds: Sequence[int]
) -> str:
    """Return a table of what searches lose, by the value of a number of the prior."""
    half, lines = len(problems) // 2, []
    known = {name: PROBLEMS[name].open(0).reference() for name in problems}
    for value, prior in priors.items():
        for name, part in (("first", problems[:half]), ("second", problems[half:])):
            lost = [regrets(each, known[each], prior, seed) for each in part for seed in seeds]
            if lost:
                means = np.mean(lost, axis=0)
                lines.append([f"{value:g}", name, str(len(lost)), *(f"{x:.3f}" for x in means)])
                print(" ".join(lines[-1]), flush=True)
    return table([number, "half", "searches", *(f"{u:g} units" for u in UNITS)], lines)


def regrets(name: str, known: Mapping[str, float], prior: Prior, seed: int) -> list[float]:
    """Return the points that a search of the default rule misses after each of `UNITS`."""
    unit, best = known["unit"], known["best"]
    _, race = searching(PROBLEMS[name].open(seed), UNITS[-1] * unit, seed, prior)
    ends = [[point[1] for point in race.curve if point[0] <= units * unit] for units in UNITS]
    return [100.0 * (best - (end[-1] if end else 0.0)) for end in ends]


def fitted(prior: Prior, searches: Sequence[Searched]) -> Prior:
    """Return a prior of larger mean log density, near a given one.

    Two sweeps over its numbers, of which each may move by one step. More would make it a prior of
    the learners searched for here; spreads stay wide for the same reason.
    """
    best = density(prior, searches)
    for step in (2.0, 1.4):
        for change in CHANGES:
            for by in (step, 1.0 / step):
                found = change(prior, by)
                if (value := density(found, searches)) > best + LEAST_GAIN:
                    best, prior = value, found
                    print(f"{value:.3f} {prior}", flush=True)
                    break
    return prior


def _scaled(name: str) -> Callable[[Prior, float], Prior]:
    def change(prior: Prior, by: float) -> Prior:
        now = getattr(prior if name in Prior._fields else prior.median, name)
        return _with(prior, name, round(now * by, 3))

    return change


def _with(prior: Prior, name: str, value: float) -> Prior:
    if name in Prior._fields:
        return prior._replace(**{name: value})
    return prior._replace(median=prior.median._replace(**{name: value}))


CHANGES = [_scaled(name) for name in (*Prior._fields[:4], *Scales._fields) if name != "length"]
"""Numbers of the prior that are chosen."""
LEAST_GAIN = 0.02
"""Smallest gain in mean log density for which a value is changed. A mean gain of 1.6 gained 0.01,
and searches lost more (`--values` shows what they lose)."""


def store(prior: Prior) -> None:
    """Write the prior into the data file of the process."""
    values = {"source": "python -m benchmarks.fit.process"} | prior._asdict()
    values |= {"median": prior.median._asdict(), "spread": prior.spread._asdict()}
    path = Path(process.__file__).with_name("process.json")
    path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def density(prior: Prior, searches: Sequence[Searched]) -> float:
    """Return the mean log density of forecasts at the true scores.

    Both kinds count alike in each search, in units of the distance of its best from the median
    truth. Less than -5 counts as -5: one does not decide.
    """
    found = []
    for one in searches:
        unit = one.best - float(np.median(one.truth_of_points))
        for forecast, truth in forecasts(prior, one):
            if len(truth):
                value = t.logpdf(truth, 2, forecast.mean, forecast.scale)
                value += math.log(max(unit, 1e-6))
                found.append(float(np.maximum(value, -5.0).mean()))
    return float(np.mean(found))


def forecasts(prior: Prior, one: Searched) -> list[tuple[Forecast, Numbers]]:
    """Return forecasts and truths, of suspended learners and of new ones."""
    forecaster = Process(one.full, prior)
    known = forecaster.forecasts(one.pool, one.full).all
    new = forecaster.candidates(replace(one.pool, proposer=Given(one.points)), one.full)
    suspended = Forecast(*(np.asarray(part)[one.suspended] for part in (known.mean, known.scale)))
    return [(suspended, one.truth), (new, one.truth_of_points)]


def kinds_held(prior: Prior, searches: Sequence[Searched]) -> dict[str, NDArray[np.bool_]]:
    """Return True for intervals that hold, by kind of learner, one column per `STATED`."""
    found = defaultdict(list)
    for one in searches:
        kinds = zip(("suspended", "new"), forecasts(prior, one), strict=True)
        for kind, (forecast, truth) in kinds:
            found[kind].append(held(forecast, truth))
            found[f"{kind}, contenders"].append(found[kind][-1][truth > one.best - NEAR])
        found["rankings"].append(rankings_held(prior, one))
    return {kind: np.concatenate(rows) for kind, rows in found.items()}


def rankings_held(prior: Prior, one: Searched) -> NDArray[np.bool_]:
    """Return True for intervals that hold the real rank correlation, shape (sizes, STATED)."""
    curves = [*one.pool.curves.values()]
    real = np.array([curve.score for curve in curves])
    real[one.suspended] = one.truth
    drawn = Process(one.full, prior).forecasts(one.pool, one.full)
    draws = np.vstack([drawn.draws(400, np.random.default_rng(0)), real])
    rows = []
    for size in {seen.size for curve in curves for seen in curve.observations} - {one.full}:
        seen = {i: at.score for i, curve in enumerate(curves) if (at := curve.at(size))}
        if len(seen) >= MIN_LEARNERS:
            *found, truth = rank_correlations(np.array([*seen.values()]), draws[:, [*seen]])
            half = np.array(STATED) / 2
            ends = np.quantile(found, [0.5 - half, 0.5 + half])
            rows.append((ends[0] <= truth) & (truth <= ends[1]))
    return np.array(rows, bool).reshape(-1, len(STATED))


def held(forecast: Forecast, truth: Numbers) -> NDArray[np.bool_]:
    """Return True for intervals that hold the truth, shape (learners, len(STATED))."""
    ends = [(forecast.quantile(0.5 - s / 2), forecast.quantile(0.5 + s / 2)) for s in STATED]
    return np.stack([(low <= truth) & (truth <= high) for low, high in ends], axis=1)


def searched(which: Source, units: float, seed: int) -> Searched:
    """Return a search of the default rule, and the truth about it."""
    problem = which.open(seed)
    full, rng = problem.full, random.Random(seed)
    pool, _ = searching(problem, units * problem.reference()["unit"], seed)
    points: list[Config] = [draw(problem.space, rng) for _ in range(N_NEW)]
    curves = [*pool.curves.values()]
    suspended = [i for i, c in enumerate(curves) if c.observations and c.size < full]
    ends = [c.score for c in curves if c.size == full]

    def truth(tried: Iterable[Config]) -> Numbers:
        return np.array([problem.train(point, full, np.inf)[0] for point in tried])

    of_points = truth(points)
    return Searched(
        full,
        pool,
        np.array(suspended, int),
        truth(dict(curves[i].parameters) for i in suspended),
        pool.known_space.rows([dict(point) for point in points]),
        of_points,
        max(ends, default=float(of_points.max())),
    )


def boosters(path: Path) -> list[Searched]:
    """Return states of studies of random boosted trees on a table: as many learners as new points.

    All learners are trained on N / 64, half of them on N / 16, the fastest quarter on all rows.
    """
    problem, rng = Training(path.stem, read(path, "target", MOST_ROWS, 0)), random.Random(0)
    sizes = [problem.full // 4**k for k in (3, 2, 1, 0)]
    drawn = (draw(problem.space, rng) for _ in itertools.count())
    tried = (point for point in drawn if point[ALGORITHM] in ("lightgbm", "xgboost"))
    points = list(itertools.islice(tried, N_BOOSTERS))
    scores, seconds = np.moveaxis(
        [[problem.train(point, n, np.inf) for n in sizes] for point in points], -1, 0
    )
    rows, states = space_of(problem.space).rows(points), []
    for known in N_KNOWN:
        for _ in range(N_STATES):
            order = np.array(rng.sample(range(N_BOOSTERS), 2 * known))
            own, new = order[:known], order[known:]
            fast = {*own[np.argsort(seconds[own, -1])[: known // 4]].tolist()}
            pool = core.Pool(to_come=None, space=space_of(problem.space))
            for learner, i in enumerate(own.tolist()):
                pool = pool.with_newcomer(learner, points[i])
                for k in range(4 if i in fast else 2 if learner % 2 else 1):
                    seen = core.Observation(sizes[k], scores[i, k], seconds=seconds[i, k])
                    pool = pool.observed(learner, seen)
            left = np.array([learner for learner, i in enumerate(own) if i not in fast])
            truth, best = scores[own[left], -1], float(scores[:, -1].max())
            others = rows[new], scores[new, -1]
            states.append(Searched(sizes[-1], pool, left, truth, *others, best))
    return states


def searching(
    problem: Problem, budget: float, seed: int, prior: Prior = PRIOR
) -> tuple[core.Pool, Race]:
    """Return the pool of the default rule after a search without a study, and its race."""
    race, rng = Race(problem, budget), random.Random(seed)
    sizes = core.geometric_sizes(problem.smallest, problem.full, 1.5)
    policy = core.ValuePerSecond(sizes, Process(problem.full, prior))
    space, proposer = space_of(problem.space), AroundBest(problem.full, seed)
    pool = core.Pool(to_come=None, space=space, proposer=proposer)
    try:
        while not isinstance(decision := policy.decide(pool), core.Finish):
            if isinstance(decision, core.Propose):
                point = {one.name: one.draw(rng) for one in problem.space}
                if len(pool.curves):
                    point |= propose(pool, policy.prices, seed)
                learner = len(pool.curves)
                pool = pool.with_newcomer(learner, active(problem.space, point))
                decision = policy.start(pool, learner, decision.size)
            assert isinstance(decision, core.Extend)
            curve = pool.curves[decision.learner]
            score, seconds = race.evaluate(curve.parameters, decision.size)
            seen = core.Observation(decision.size, score, seconds=max(seconds, 1e-3))
            pool = pool.observed(decision.learner, seen)
    except OutOfBudgetError:
        pass
    return pool, race


if __name__ == "__main__":
    main()
