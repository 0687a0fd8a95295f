"""Boosting rounds that draw examples until the best hypothesis is known well enough.

Examples come from the distribution D of the round by rejection: drawn from the initial one and
accepted with probability w = min(1, exp(-margin)), so that a round looks at as many examples as
its stopping rule needs, however many there are. Draws are made in blocks, but decided one by
one.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
[2] C. Domingo, O. Watanabe, "MadaBoost: A Modification of AdaBoost", COLT 2000.
    https://dblp.org/search?q=MadaBoost+Modification+of+AdaBoost
[3] R. E. Schapire, Y. Singer, "Improved Boosting Algorithms Using Confidence-rated
    Predictions", Machine Learning 37, 1999. https://doi.org/10.1023/A:1007614523901
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optuna_daub.learners.base import TrainingSet
from optuna_daub.learners.boosting import Choice
from optuna_daub.learners.boosting import Round
from optuna_daub.learners.boosting import madaboost_weights
from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stopping import first_stop
from optuna_daub.learners.stumps import BLOCK
from optuna_daub.learners.stumps import Bins


WARM_UP = 30
"""Rules are asked only after more examples than this ([1] Algorithm HSM)."""

FIRST_BLOCK = 64
"""Draws in the first block of a round; each block is twice the one before, up to `8 * BLOCK`
comparisons of a hypothesis with an example, of one byte each."""

LEAST_ACCEPTANCE = 0.001
"""Share of candidates below which a round ends without a result: every example that the vote
gets wrong is accepted, so the vote's error on the training examples is smaller still."""

PATIENCE = 10_000
"""Candidates after which that share is looked at; 10 are expected to be accepted by then."""


@dataclass(frozen=True)
class Selection:
    """The hypothesis that a round settled on."""

    hypothesis: int
    sign: int
    """+1, or -1 if the opposite of the hypothesis was chosen."""
    accuracy: float
    """P_{h,S}, share of the examples drawn on which it is right, in [1/2, 1]."""
    n_samples: int
    """Number of examples drawn."""
    satisfied: bool
    """Whether the rule was; False if the round ended at its largest size."""


def select_hypothesis(
    blocks: Iterable[NDArray[np.int8]], rule: StoppingRule, max_samples: int
) -> Selection | None:
    """Draw examples until the rule holds for the hypothesis that leads ([1] Algorithm HSM).

    Args:
        blocks: outcomes, shape (n_hypotheses, n_drawn): +1 where a hypothesis is right on a
            drawn example, -1 where its opposite is. Blocks may be empty.
        rule: asked at every single number of examples above `WARM_UP`.
        max_samples: number of examples at which the round ends anyway, at least 1.

    Returns:
        The leader at the first example at which the rule holds, the first one of several; None
        if the blocks end before.

    >>> from optuna_daub.learners.stopping import SizeRule, advantage_size
    >>> outcomes = np.tile(np.array([[1, 1, 1, -1], [1, -1, 1, -1]], dtype=np.int8), 100)
    >>> rule = SizeRule(advantage_size, epsilon=0.5, delta=0.1)
    >>> selection = select_hypothesis([outcomes], rule, max_samples=1000)
    >>> selection.hypothesis, selection.n_samples, round(selection.accuracy, 6)
    (0, 179, 0.75419)
    """
    seen = 0
    balance = np.zeros(1, dtype=np.int64)  # right minus wrong, for each hypothesis
    for block in blocks:
        fresh = block[:, : max_samples - seen]
        if fresh.shape[1] == 0:
            continue
        balances = np.cumsum(fresh, axis=1, dtype=np.int64) + balance[:, np.newaxis]
        n = np.arange(seen + 1, seen + fresh.shape[1] + 1)
        lead = 0.5 + np.abs(balances).max(axis=0) / (2.0 * n)
        skipped = max(0, WARM_UP - seen)
        stop = first_stop(rule, n[skipped:], lead[skipped:])
        if stop is not None:
            return _leader(balances[:, skipped + stop], int(n[skipped + stop]), satisfied=True)
        seen, balance = int(n[-1]), balances[:, -1]
        if seen == max_samples:
            return _leader(balance, seen, satisfied=False)
    return None


def _leader(balance: NDArray[np.int64], n: int, *, satisfied: bool) -> Selection:
    best = int(np.argmax(np.abs(balance)))
    accuracy = 0.5 + abs(int(balance[best])) / (2.0 * n)
    return Selection(best, 1 if balance[best] > 0 else -1, accuracy, n, satisfied)


def accepted_rows(
    rng: np.random.Generator,
    cumulative: NDArray[np.float64],
    accept: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    largest_block: int,
) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers drawn from the distribution proportional to D_1 times `accept`.

    Each candidate takes two numbers from `rng`, one for the row and one for its acceptance, so
    that the rows do not depend on the size of the blocks. Ends when next to none is accepted.

    Args:
        rng: source of the draws.
        cumulative: running sum of D_1, shape (n_rows,).
        accept: gives the probabilities of acceptance of rows, in [0, 1].
        largest_block: most candidates drawn at a time.
    """
    size = min(FIRST_BLOCK, largest_block)
    drawn = accepted = 0
    while drawn < PATIENCE or accepted >= LEAST_ACCEPTANCE * drawn:
        place, coin = rng.random((size, 2)).T
        rows = np.searchsorted(cumulative, place * cumulative[-1], side="right")
        rows = np.minimum(rows, len(cumulative) - 1)  # the product may round up to the end
        kept = rows[coin < accept(rows)]
        drawn += size
        accepted += len(kept)
        yield kept
        size = min(2 * size, largest_block)


class SampleSource:
    """Rounds that draw their own examples and weigh only those."""

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
        """Whether they were cut off at `max_samples`."""
        self._data = data
        self._bins = bins
        self._rule = rule
        self._max_samples = max_samples
        self._rng = rng
        self._cumulative = np.cumsum(data.weights)
        self._stumps = np.flatnonzero(~bins.is_trivial(slice(None)))
        self._features = bins.feature_of_bin()[self._stumps]
        self._largest_block = max(FIRST_BLOCK, BLOCK * 8 // len(self._stumps))
        self._votes: list[list[tuple[int, int, float]]] = [[] for _ in data.labels]
        self._proposed: list[Selection | None] = []

    def propose(self) -> Sequence[Choice] | None:
        """Return the hypothesis that each problem's draws settled on.

        None when next to no example is accepted any more, for any problem.
        """
        problems = range(len(self._data.labels))
        self._proposed = [
            select_hypothesis(self._blocks(problem), self._rule, self._max_samples)
            for problem in problems
        ]
        if not any(self._proposed):
            return None
        return [self._choice(problem) for problem in problems]

    def learn(self, accepted: Round) -> None:
        """Keep the votes: the weights of later draws follow from them."""
        for votes, selection, weight in zip(
            self._votes, self._proposed, accepted.weights, strict=True
        ):
            if selection is not None:
                votes.append((int(self._stumps[selection.hypothesis]), selection.sign, weight))
        self.sizes.append([one.n_samples if one else 0 for one in self._proposed])
        self.capped.append([one is not None and not one.satisfied for one in self._proposed])

    def acceptance(self, problem: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows in the next round, in (0, 1]."""
        vote = np.zeros(len(rows))
        for bin_, sign, weight in self._votes[problem]:
            feature = int(np.searchsorted(self._bins.offsets, bin_, side="right")) - 1
            inside = self._bins.codes[feature, rows] == bin_
            vote += weight * np.where(inside, sign, -sign)
        return madaboost_weights(self._data.labels[problem, rows] * vote)

    def _blocks(self, problem: int) -> Iterator[NDArray[np.int8]]:
        # A seed of its own: a round's draws do not depend on how many the rounds before made.
        rng = np.random.default_rng(int(self._rng.integers(2**63)))
        labels = self._data.labels[problem]
        for rows in accepted_rows(
            rng,
            self._cumulative,
            lambda rows: self.acceptance(problem, rows),
            self._largest_block,
        ):
            inside = self._bins.codes[:, rows][self._features] == self._stumps[:, np.newaxis]
            label = labels[rows].astype(np.int8)
            yield np.where(inside, label, -label)

    def _choice(self, problem: int) -> Choice:
        selection = self._proposed[problem]
        if selection is None:  # solved: its last stump once more, without a vote
            bin_, sign, _ = self._votes[problem][-1]
            return Choice(self._bins.stump(bin_, sign), 0.0)
        edge = 2.0 * selection.accuracy - 1.0
        # Half an error is allowed for among the draws, so that a stump without any error in
        # them does not outvote all others: [3] Section 4.2.
        edge = min(edge, 1.0 - 1.0 / selection.n_samples)
        bin_ = int(self._stumps[selection.hypothesis])
        return Choice(self._bins.stump(bin_, selection.sign), edge)
