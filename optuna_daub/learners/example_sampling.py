"""Boosting rounds that draw examples until the best hypothesis is certain enough.

Examples of the round's distribution D are drawn by rejection: drawn from the initial distribution
and accepted with probability w = min(1, exp(-margin)). So a round needs only as many examples as
its stopping rule asks for. Draws are made in blocks, but the rule is asked after each one.

After as many draws, accepted or not, as the table has examples (at least 10,000), a round weighs
the whole table, which costs no more. It then draws from D directly. If even the largest sample
would not satisfy the rule, it takes the hypothesis that is best on the whole table.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
[2] C. Domingo, O. Watanabe, "MadaBoost: A Modification of AdaBoost", COLT 2000.
    https://dblp.org/search?q=MadaBoost+Modification+of+AdaBoost
[3] R. E. Schapire, Y. Singer, "Improved Boosting Algorithms Using Confidence-rated
    Predictions", Machine Learning 37, 1999. https://doi.org/10.1023/A:1007614523901
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optuna_daub.learners.base import TrainingSet
from optuna_daub.learners.boosting import Choice
from optuna_daub.learners.boosting import Round
from optuna_daub.learners.boosting import madaboost_weights
from optuna_daub.learners.selection import Hypotheses
from optuna_daub.learners.selection import NeededBalances
from optuna_daub.learners.selection import Selection
from optuna_daub.learners.selection import select_hypothesis
from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stumps import BLOCK
from optuna_daub.learners.stumps import Bins


FIRST_BLOCK = 64
"""Number of draws in a round's first block. Blocks double up to `8 * BLOCK` comparisons of a
hypothesis with an example, one byte each."""

GUIDE = 2**12
"""Number of equal parts of [0, 1] whose drawn rows are looked up in advance. In a small table most
parts lie within one row, and their draws need no search. It sets the speed only."""

LEAST_ACCEPTANCE = 0.001
"""Share of accepted candidates below which a round ends without a result: the vote is right on
nearly all examples. (Every example that it gets wrong is accepted, so its training error is even
smaller than this share.)"""

PATIENCE = 10_000
"""Number of candidates after which that share is checked. At the limit 10 accepted ones are
expected by then."""


def accepted_rows(
    rng: np.random.Generator,
    cumulative: NDArray[np.float64],
    accept: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None,
    largest_block: int,
    most: float = math.inf,
) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers drawn from the distribution proportional to D_1 times `accept`.

    Each candidate takes two numbers from `rng`, one for the row and one for its acceptance. So the
    rows do not depend on the size of the blocks. It ends after `most` candidates, or when next to
    none is accepted.

    Args:
        rng: source of the draws.
        cumulative: running sum of D_1, shape (n_rows,).
        accept: function from rows to their probabilities of acceptance, in [0, 1]; None accepts
            every candidate.
        largest_block: largest number of candidates drawn at a time.
        most: largest number of candidates in all.
    """
    size = min(FIRST_BLOCK, largest_block)
    drawn = accepted = 0
    guide = rows_at(cumulative, np.arange(GUIDE + 1) / GUIDE)
    while drawn < most and (drawn < PATIENCE or accepted >= LEAST_ACCEPTANCE * drawn):
        size = int(min(size, most - drawn))
        place, coin = rng.random((size, 2)).T
        part = (place * GUIDE).astype(np.int64)
        kept = guide[part]
        # A later place never has an earlier row: a part whose ends agree lies in one row.
        several = np.flatnonzero(kept < guide[part + 1])
        kept[several] = rows_at(cumulative, place[several])
        if accept is not None:
            kept = kept[coin < accept(kept)]
        drawn += size
        accepted += len(kept)
        yield kept
        size = min(2 * size, largest_block)


def rows_at(cumulative: NDArray[np.float64], place: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows at places in [0, 1] of a running sum, shape of `place`.

    >>> rows_at(np.array([1.0, 3.0, 4.0]), np.array([0.0, 0.3, 0.8, 1.0])).tolist()
    [0, 1, 2, 2]
    """
    rows: NDArray[np.int64] = np.searchsorted(cumulative, place * cumulative[-1], side="right")
    return np.minimum(rows, len(cumulative) - 1)  # the product may round up to the end


class SampleSource:
    """Source of rounds that draw their own examples and weigh only those."""

    def __init__(
        self,
        data: TrainingSet,
        bins: Bins,
        rule: StoppingRule,
        max_samples: int,
        rng: np.random.Generator,
    ) -> None:
        self.sizes: list[list[int]] = []
        """Number of examples for each accepted round and problem."""
        self.capped: list[list[bool]] = []
        """True for draws that ended at `max_samples`, by accepted round and problem."""
        self._data = data
        self._bins = bins
        self._rule = rule
        self._needed = NeededBalances(rule)
        self._max_samples = max_samples
        self._rng = rng
        self._cumulative = np.cumsum(data.weights)
        self._stumps = np.flatnonzero(~bins.is_trivial(slice(None)))
        self._largest_block = max(FIRST_BLOCK, BLOCK * 8 // len(self._stumps))
        self._votes: list[list[tuple[int, int, float]]] = [[] for _ in data.labels]
        self._proposed: list[Selection | None] = []
        self._of_all: dict[int, tuple[int, NDArray[np.float64]]] = {}
        """For problems whose whole table was weighed: the number of votes summed so far, and their
        sum for each example."""

    def propose(self) -> Sequence[Choice] | None:
        """Return the hypothesis that each problem's draws have chosen.

        None if next to no example is accepted any more, for any problem.
        """
        problems = range(len(self._data.labels))
        self._proposed = [self._selection(problem) for problem in problems]
        if not any(self._proposed):
            return None
        return [self._choice(problem) for problem in problems]

    def learn(self, accepted: Round) -> None:
        """Keep the votes, which decide the weights of later draws."""
        for votes, selection, weight in zip(
            self._votes, self._proposed, accepted.weights, strict=True
        ):
            if selection is not None:
                votes.append((int(self._stumps[selection.hypothesis]), selection.sign, weight))
        self.sizes.append([one.n_samples if one else 0 for one in self._proposed])
        self.capped.append([one is not None and not one.satisfied for one in self._proposed])

    def acceptance(self, problem: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows in the next round, in (0, 1]."""
        labels = self._data.labels[problem, rows]
        return madaboost_weights(labels * self._vote(self._votes[problem], rows))

    def _vote(
        self, votes: Sequence[tuple[int, int, float]], rows: NDArray[np.int64] | slice
    ) -> NDArray[np.float64]:
        total = np.zeros(self._bins.codes[0, rows].shape)
        for bin_, sign, weight in votes:
            inside = self._bins.codes[int(self._bins.feature_of(bin_)), rows] == bin_
            total += weight * np.where(inside, sign, -sign)
        return total

    def _vote_of_all(self, problem: int) -> NDArray[np.float64]:
        """Return the up-to-date vote for each example of the table."""
        votes = self._votes[problem]
        n_known, total = self._of_all.get(problem, (0, np.zeros(len(self._cumulative))))
        if n_known < len(votes):
            total = total + self._vote(votes[n_known:], slice(None))
        self._of_all[problem] = len(votes), total
        return total

    def _selection(self, problem: int) -> Selection | None:
        """Return the hypothesis that a problem chooses. None if next to no weight is left."""
        # Each round has its own seed: its draws do not depend on the number of earlier draws.
        rng = np.random.default_rng(int(self._rng.integers(2**63)))
        exact: list[Selection] = []
        blocks = self._draws(problem, rng, exact)
        hypotheses = Hypotheses(self._bins, self._stumps, self._data.labels[problem])
        selection = select_hypothesis(blocks, hypotheses, self._needed, self._max_samples)
        if exact:
            return exact[0]
        if selection is None or selection.satisfied or len(self._cumulative) > self._max_samples:
            return selection
        # So many draws were not enough, and say less than the table does.
        return self._best_of_all(problem, self._weights_of_all(problem))

    def _draws(
        self, problem: int, rng: np.random.Generator, exact: list[Selection]
    ) -> Iterator[NDArray[np.int64]]:
        """Yield rows drawn from the distribution of the round.

        It ends with a selection in `exact` if the whole table says more than the largest sample.
        """
        n_rows = len(self._cumulative)
        if problem not in self._of_all:  # once the table was weighed, all weights cost little
            yield from accepted_rows(
                rng,
                self._cumulative,
                lambda rows: self.acceptance(problem, rows),
                self._largest_block,
                max(PATIENCE, n_rows),
            )
        weights = self._weights_of_all(problem)
        if weights.sum() < LEAST_ACCEPTANCE * self._cumulative[-1]:
            return
        best = self._best_of_all(problem, weights)
        size = np.array([self._max_samples])
        if n_rows <= size[0] and not self._rule(size, np.array([best.accuracy]))[0]:
            exact.append(best)
            return
        # Draws from D itself are never rejected.
        yield from accepted_rows(rng, np.cumsum(weights), None, self._largest_block)

    def _weights_of_all(self, problem: int) -> NDArray[np.float64]:
        """Return the up-to-date weight of each example of the table."""
        margins = self._data.labels[problem] * self._vote_of_all(problem)
        return self._data.weights * madaboost_weights(margins)

    def _best_of_all(self, problem: int, weights: NDArray[np.float64]) -> Selection:
        """Return the hypothesis with the largest advantage on the whole table.

        Args:
            problem: number of the problem.
            weights: weight of each example in the round, shape (n_rows,).
        """
        shares = weights / weights.sum()
        signed = shares * self._data.labels[problem]
        # `bin_edges` returns the same, but takes three times as long and 2.5 times X in memory.
        sums = np.zeros(len(self._bins.upper))
        for codes, (first, end) in zip(
            self._bins.codes, pairwise(self._bins.offsets), strict=True
        ):
            own = codes - codes.dtype.type(first)
            sums[first:end] = np.bincount(own, weights=signed, minlength=end - first)
        balance = 2.0 * sums[self._stumps] - signed.sum()  # right minus wrong
        best = int(np.argmax(np.abs(balance)))
        sign = 1 if balance[best] > 0 else -1
        accuracy = 0.5 + min(abs(float(balance[best])), 1.0) / 2.0
        return Selection(best, sign, accuracy, len(shares), satisfied=True)

    def _choice(self, problem: int) -> Choice:
        selection = self._proposed[problem]
        if selection is None:  # solved: its last stump once more, without a vote
            bin_, sign, _ = self._votes[problem][-1]
            return Choice(self._bins.stump(bin_, sign), 0.0)
        edge = 2.0 * selection.accuracy - 1.0
        # Count at least half an error. Otherwise a stump without any error among the draws would
        # outvote all others: [3] Section 4.2.
        edge = min(edge, 1.0 - 1.0 / selection.n_samples)
        bin_ = int(self._stumps[selection.hypothesis])
        return Choice(self._bins.stump(bin_, selection.sign), edge)
