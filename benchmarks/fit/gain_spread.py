"""How much better learners become with all the data, and how alike those of one data set are.

    python -m benchmarks.fit.gain_spread [--smoke]

On LCDB, at a sixteenth and a quarter of N: the gains in score of the learners within 5 points of
the leader, as they are, less the median gain on their data set, and less the leader's. A bound on
a learner alone has to be as wide as the first; to compare learners it would do to know the others.
Also where the learner that is best at N ranks by then. In smoke mode the curves are made ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.replay_methods import exhausting
from benchmarks.replay_problems import LCDB_FILE
from benchmarks.replay_problems import Problem
from benchmarks.replay_problems import lcdb
from benchmarks.replay_problems import lcdb_problems
from benchmarks.replay_problems import made_lcdb
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import table


NEAR = 0.05
"""Difference to the leader's score up to which a learner counts."""
CENTRAL = 0.05, 0.95
"""Quantiles between which nine of ten gains are."""


@dataclass(frozen=True)
class Gains:
    """What scores still grow by on one data set, from one size to N."""

    of_rivals: NDArray[np.float64]
    """Of the learners near the leader, itself among them."""
    of_leader: float
    rank_of_best: int
    """Place, from 0, of the learner that is best at N."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = parser_of(__doc__, "python -m benchmarks.fit.gain_spread").parse_args(arguments)
    if not options.smoke and not is_there("the spread", LCDB_FILE):
        return
    problems = list(lcdb_problems(made_lcdb() if options.smoke else lcdb()))
    lines = []
    for part, place in (("N / 16", -3), ("N / 4", -2)):
        known = [gains(problem, exhausting(4, problem)[place]) for problem in problems]
        leads = sum(one.rank_of_best == 0 for one in known)
        follows = sum(one.rank_of_best < 6 for one in known)
        lines.append([part, *spreads(known), f"{leads}, {follows} of {len(known)}"])
    header = [
        "at",
        "alone",
        "less the median",
        "less the leader's",
        "best leads, is in the first 6",
    ]
    print("Points between the 5 % and 95 % quantiles of gains:\n")
    print(table(header, lines))


def gains(problem: Problem, size: int) -> Gains:
    """Return what the learners of a problem gain from a size on."""
    seen = {curve.learner: curve.at(size) for curve in problem.curves}
    early = {learner: at.score for learner, at in seen.items() if at is not None}
    final = {curve.learner: curve.score for curve in problem.curves}
    order = sorted(early, key=lambda learner: -early[learner])
    rivals = [learner for learner in order if early[learner] > early[order[0]] - NEAR]
    grown = np.array([final[learner] - early[learner] for learner in rivals])
    return Gains(grown, float(grown[0]), order.index(problem.best))


def spreads(known: Iterable[Gains]) -> list[str]:
    """Return how far apart nine of ten gains are: alone, beside their data set's, the leader's."""
    known = list(known)
    kinds = (
        [one.of_rivals for one in known],
        [one.of_rivals - np.median(one.of_rivals) for one in known],
        [one.of_rivals - one.of_leader for one in known],
    )
    ends = [np.quantile(np.concatenate(kind), CENTRAL) for kind in kinds]
    return [f"{100 * (upper - lower):.1f}" for lower, upper in ends]


if __name__ == "__main__":
    main()
