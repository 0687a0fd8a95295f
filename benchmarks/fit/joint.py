"""Fit what is believed of gains before any was seen: the prior of `core/forecasts/joint.py`.

    OMP_NUM_THREADS=1 python -m benchmarks.fit.joint [--smoke] [--results FOLDER]

Every second data set of LCDB 1.1 with N of at least 1,024 is brought into the states that studies
are in: all learners on N / 16, or on N / 64 and N / 16; then the leader on N, or the best quarter
on N / 4, or on N, or a random quarter on N. The prior is the one under which the scores on all the
data of those that are not there are most likely, all of them and those within 2 points of the best
counting alike. The same is reported of the other data sets.

`joint.json` beside `core/forecasts/joint.py` is near this prior, and is not it. With the likeliest
one, what all gain is as good as known before any learner was on N, and replays
(`python -m benchmarks.fit.closed_pools --prior FILE`) lose ten points on a few data sets, where
gains are unlike all others. So the deviations of what all gain and of its drift are 1 there and
`of_gain` is 1, chosen by replays on all 55 data sets, and `own` by every second one of LCDB 1.0.
What is found is written to joint.json in the folder of --results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import t

from benchmarks.fit import NEAR
from benchmarks.replay_problems import LCDB_FILE
from benchmarks.replay_problems import VALIDATION
from benchmarks.replay_problems import Lcdb
from benchmarks.replay_problems import lcdb
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import table
from optuna_daub import core
from optuna_daub.core.forecasts import joint
from optuna_daub.core.forecasts.forecast import forecast_of
from optuna_daub.core.forecasts.joint import PRIOR
from optuna_daub.core.forecasts.joint import Prior


LEAST_FULL = 1024
"""Smallest N of a data set, in examples."""
LEAST_SIZE = 128
"""Smallest training size, in examples."""
HALVINGS = 6, 4, 2, 0
"""Sizes of a state, as numbers of halvings of N."""
STEPS = 14
"""Number of steps of the search for the prior; the last ones change the likelihood by less than
0.001."""


class State:
    """A study at one moment, and the final scores of learners that are not fully trained yet."""

    def __init__(
        self, scores: NDArray[np.float64], seen: NDArray[np.bool_], sizes: list[int]
    ) -> None:
        curves = []
        for i, row in enumerate(seen):
            known = [core.Observation(sizes[k], scores[i, k]) for k in np.flatnonzero(row)]
            curves.append(core.LearningCurve(i, tuple(known)))
        self.curves = core.Curves(curves)
        self.full = sizes[-1]
        self.is_left = ~seen[:, -1]
        self.final = scores[:, -1]
        last = seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
        score = scores[np.arange(len(seen)), last]
        kept = [k for k in range(len(HALVINGS)) if seen[:, k].any()]
        best = np.array([scores[seen[:, k], k].max() for k in kept])
        behind = best[np.searchsorted(kept, last)] - score
        self.is_near = self.is_left & (behind < NEAR)

    def likelihoods(self, prior: Prior) -> NDArray[np.float64]:
        """Return the log density at each final score. Scores already known are left out."""
        study = joint._study(self.curves, prior)
        mean, square = study.ahead(self.full)
        found = forecast_of(mean, np.sqrt(np.where(self.is_left, square, 1.0)), mean.max())
        return np.asarray(t.logpdf(self.final, 2, mean, found.scale))


def states(known: Lcdb, row: int, rng: np.random.Generator) -> Iterator[State]:
    """Yield the states of a data set, given its place."""
    full = known.full(row)
    if known.size[full] < LEAST_FULL:
        return
    places = [full - 8 * h for h in HALVINGS]
    # On small data sets the first sizes are nearer to N.
    least = int(np.searchsorted(known.size, LEAST_SIZE))
    has_less = places[0] >= least
    places = [max(place, least) for place in places]
    error = known.errors()[row][:, :, VALIDATION][:, places]
    chosen = known.is_choosable & np.isfinite(error[:, 1:]).all(axis=1)
    scores = 1.0 - error[chosen]
    order = np.argsort(-scores[:, 1], kind="stable")
    quarter = order[: max(2, len(order) // 4)]
    some = rng.permutation(len(order))[: len(quarter)]
    then = quarter[scores[quarter, 2].argmax()]
    nobody = order[:0]
    few = (nobody, nobody), (nobody, order[:1]), (quarter, nobody), (quarter, [then])
    for start in ([1], [0, 1])[: 1 + has_less]:  # then who goes to N / 4, and who to N
        for middle, last in (*few, (nobody, quarter), (nobody, some)):
            seen = np.zeros(scores.shape, bool)
            seen[:, start] = True
            seen[middle, 2] = True
            seen[last, 3] = True
            yield State(scores, seen, known.size[places].tolist())


def likelihood(prior: Prior, every: Sequence[State]) -> float:
    """Return the mean log density over states, and over all and near learners. Both kinds of
    learners count alike."""
    parts = []
    for state in every:
        each = state.likelihoods(prior)
        parts += [each[who].mean() for who in (state.is_left, state.is_near) if who.any()]
    return float(np.mean(parts))


def fit(start: Prior, every: Sequence[State], steps: int) -> Prior:
    """Return the prior under which the states are most likely."""
    first = np.log([*asdict(start).values()])

    def unpacked(point: NDArray[np.float64]) -> Prior:
        return Prior(*np.exp(point).tolist())

    def off(point: NDArray[np.float64]) -> float:
        return -likelihood(unpacked(point), every)

    options = {"maxiter": steps, "eps": 1e-3}
    return unpacked(minimize(off, first, method="L-BFGS-B", options=options).x)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, write the file, and print what was found."""
    options = parser_of(__doc__, continues=False).parse_args(arguments)
    if not is_there("the prior", LCDB_FILE):
        return
    known, rng = lcdb(), np.random.default_rng(0)
    rows = range(0, len(known.openml_id), 40 if options.smoke else 1)
    by_set = [each for row in rows if (each := list(states(known, row, rng)))]
    halves = [[state for each in by_set[k::2] for state in each] for k in (0, 1)]
    before = PRIOR
    prior = fit(before, halves[0], 1 if options.smoke else STEPS)
    rounded = Prior(**{name: float(f"{value:.3g}") for name, value in asdict(prior).items()})
    path = results_of(options) / "joint.json"
    path.write_text(json.dumps(asdict(rounded), indent=2) + "\n", encoding="utf-8")
    lines = [
        [name, *(f"{likelihood(each, half):.3f}" for half in halves)]
        for name, each in (("before", before), ("now", rounded))
    ]
    print(table(["mean log density, nats", "fitted on", "others"], lines))


if __name__ == "__main__":
    main()
