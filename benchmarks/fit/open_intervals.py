"""How often does the score on all the data lie in the interval that an open pool forecast?

    OMP_NUM_THREADS=1 python -m benchmarks.fit.open_intervals [--smoke] [--problems adult ...]
        [--candidates K] [--results FOLDER]

Random candidates of the space of search_cv.py (boosted trees, extra trees, a linear model) are
trained on every size, and each is scored on the same validation rows. Open pools of the default
rule then draw from them in many orders, which trains nothing. After so many trainings, what the
rule forecasts for each suspended learner is compared with what that learner reaches. Intervals are
the middle 90 % of forecasts, so that nine of ten scores should lie inside.

Each candidate is a row of open_intervals.jsonl; open_intervals.md follows from all rows.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cache
from functools import partial


os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per training

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from benchmarks.search_cv import PIPELINE
from benchmarks.search_cv import PROBLEMS
from benchmarks.search_cv import SPACE
from benchmarks.search_cv import division
from benchmarks.search_cv import opened
from optuna_daub.core import Extend
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core.sizes import geometric_sizes


SMALLEST = 500
"""Rows that candidates are first trained on."""
SMALLEST_MADE = 50
"""The same of the drawn rows of a smoke run."""
ORDERS = 40
"""In which an open pool meets the candidates."""
MOMENTS = 10, 30, 100
"""Trainings, after which forecasts are looked at."""
OTHERS = "model", "scale"
"""Parts of the pipeline that follow from the kind of model."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.fit.open_intervals")
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS], default=[*PROBLEMS][:4])
    parser.add_argument("--candidates", type=int, default=100)
    options = parser.parse_args(arguments)
    path = results_of(options) / "open_intervals.jsonl"
    names = [name for name in options.problems if is_there(name, PROBLEMS[name])]
    if options.smoke:
        names, options.candidates = ["made"], 12
    rows = run_all(runs(names, options.candidates), path, options.time_limit)
    write_report(path.with_suffix(".md"), rows, report)


def runs(names: Sequence[str], n_candidates: int) -> Iterator[Run]:
    """Yield every candidate of every problem."""
    for name in names:
        for i in range(n_candidates):
            yield Run({"problem": name, "candidate": i}, partial(measure, name, i, n_candidates))


def measure(name: str, i: int, n_candidates: int) -> Row:
    """Train a candidate on every size."""
    (X, y), _ = _training(name)
    train, validation = next(division(0).split(X, y))
    train = np.random.default_rng(0).permutation(train)
    smallest = SMALLEST if name in PROBLEMS else SMALLEST_MADE
    sizes = geometric_sizes(smallest, len(train), 1.5)
    point = [*ParameterSampler(SPACE, n_candidates, random_state=0)][i]
    scores, seconds = [], []
    for size in sizes:
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of linear models that do not converge
            model = clone(PIPELINE).set_params(**point).fit(X[train[:size]], y[train[:size]])
        scores.append(float(model.score(X[validation], y[validation])))
        seconds.append(time.process_time() - begun)
    kind = type(point["model"]).__name__
    numbers = {f"{kind}, {k}": float(v) for k, v in point.items() if k not in OTHERS}
    return {"point": {"kind": kind, **numbers}, "sizes": sizes, "scores": scores, "s": seconds}


@cache
def _training(name: str) -> tuple[tuple[np.ndarray, np.ndarray], object]:
    return opened(name, 0)


def report(rows: list[Row]) -> Iterable[str]:
    """Yield how often intervals hold, and what scores on the fewest rows tell."""
    yield (
        "Share of suspended learners whose score on all the data lies in the interval, above it; "
        "correlation of all candidates' scores on the fewest rows and on all:"
    )
    lines = []
    for name, known in grouped(rows, "problem").items():
        found = [held(known, seed) for seed in range(ORDERS)]
        cells = []
        for moment in MOMENTS:
            seen = [x for one in found for x in one.get(moment, [])]
            cells.append(
                f"{np.mean([a for a, _ in seen]):.2f}, {np.mean([b for _, b in seen]):.2f}"
                if seen
                else ""
            )
        scores = np.array([row["scores"] for row in known])
        lines.append([name, *cells, f"{np.corrcoef(scores[:, 0], scores[:, -1])[0, 1]:.2f}"])
    head = ["data", *(f"after {moment} trainings" for moment in MOMENTS), "correlation"]
    yield table(head, lines)


def held(known: Sequence[Row], seed: int) -> dict[int, list[tuple[bool, bool]]]:
    """Return, by trainings, whether each suspended learner ends in its interval, and above it.

    Args:
        known: candidates with their scores and seconds.
        seed: of the order in which an open pool meets them.
    """
    sizes = tuple(known[0]["sizes"])
    order = np.random.default_rng(seed).permutation(len(known)).tolist()
    policy, pool = ValuePerSecond(sizes), Pool(to_come=None)
    found: dict[int, list[tuple[bool, bool]]] = {}
    for moment in range(1, max(MOMENTS) + 1):
        decision = policy.decide(pool)
        if isinstance(decision, Propose):
            newcomer = len(pool.curves)
            if newcomer == len(order):
                break
            pool = pool.with_newcomer(newcomer, known[order[newcomer]]["point"])
            decision = policy.start(pool, newcomer, decision.size)
        if not isinstance(decision, Extend):
            break
        candidate, place = known[order[decision.learner]], sizes.index(decision.size)
        score, seconds = candidate["scores"][place], candidate["s"][place]
        pool = pool.observed(decision.learner, Observation(decision.size, score, seconds=seconds))
        if moment in MOMENTS:
            ends = [
                (policy.interval(pool, i), known[order[i]]["scores"][-1])
                for i in pool.curves
                if pool.curves[i].size < sizes[-1]
            ]
            found[moment] = [(e.lower <= x <= e.upper, x > e.upper) for e, x in ends]
    return found


if __name__ == "__main__":
    main()
