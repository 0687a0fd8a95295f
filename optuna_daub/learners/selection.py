"""The choice of a hypothesis by examples drawn until it is certain enough.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stumps import Bins


WARM_UP = 30
"""Number of examples after which the stopping rule is first asked ([1] Algorithm HSM)."""

CHUNK = 128
"""Number of draws that are handled together. It sets the speed only: results do not depend on
it."""


@dataclass(frozen=True)
class Selection:
    """The hypothesis that a round has chosen."""

    hypothesis: int
    sign: int
    """Sign of the vote: +1, or -1 if the opposite of the hypothesis was chosen."""
    accuracy: float
    """Share P_{h,S} of the drawn examples on which it is right, in [1/2, 1]."""
    n_samples: int
    """Number of examples drawn, or of all examples if the whole table was weighed."""
    satisfied: bool
    """True if the rule held or the whole table was weighed. False if the round ended at its
    largest size."""


@dataclass(frozen=True)
class Hypotheses:
    """Stumps of one problem, each of which votes +1 inside its bin.

    >>> from optuna_daub.learners.stumps import interval_bins
    >>> bins = interval_bins(np.array([[0.0], [1.0], [1.0]]), 2, np.array([False]))
    >>> hypotheses = Hypotheses(bins, np.array([0, 1]), labels=np.array([-1.0, 1.0, -1.0]))
    >>> hypotheses.outcomes(np.array([0, 2]), np.array([1])).tolist()
    [[1, -1]]
    >>> hypotheses.balances(np.array([0, 1, 1])).tolist()
    [[-3, 3]]
    """

    bins: Bins
    stumps: NDArray[np.int64]
    """Bin of each hypothesis, shape (n_hypotheses,)."""
    labels: NDArray[np.floating[Any]]
    """Labels in {-1, +1}, shape (n_rows,)."""

    def outcomes(self, rows: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return +1 for hypotheses right on a row, else -1. Shape (n_some, n_rows)."""
        stumps = self.stumps[some, np.newaxis]
        features = self.bins.feature_of(stumps)
        labels = self.labels[rows].astype(np.int64)
        return np.where(self.bins.codes[features, rows] == stumps, labels, -labels)

    def balances(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return right minus wrong in each `CHUNK` of rows, shape (n_chunks, n_hypotheses)."""
        n_bins = len(self.bins.upper)
        group = np.arange(len(rows)) // CHUNK * 2 + (self.labels[rows] > 0.0)
        n_chunks = int(group[-1]) // 2 + 1
        counts = np.bincount(
            (self.bins.codes.take(rows, axis=1) + group * n_bins).ravel(),
            minlength=2 * n_chunks * n_bins,
        ).reshape(n_chunks, 2, n_bins)
        signed = counts[:, 1] - counts[:, 0]
        every = signed[:, : self.bins.offsets[1]].sum(axis=1, keepdims=True)
        return np.asarray(2 * signed[:, self.stumps] - every)


class NeededBalances:
    """Smallest balances, right minus wrong, with which a stopping rule holds.

    >>> from optuna_daub.learners.stopping import SizeRule, advantage_size
    >>> NeededBalances(SizeRule(advantage_size, 0.5, 0.1)).up_to(1000)[[178, 999]].tolist()
    [91, 229]
    """

    def __init__(self, rule: StoppingRule) -> None:
        """Take a rule that, once true for a mean, is true for all means further from 1/2."""
        self._rule = rule
        self._known = np.zeros(0, dtype=np.int64)

    def up_to(self, n: int) -> NDArray[np.int64]:
        """Return the balances after 1, ..., n examples. More than n if no balance is enough."""
        n_known = len(self._known)
        if n > n_known:
            fresh = np.arange(n_known + 1, max(n, 2 * n_known) + 1)
            self._known = np.concatenate([self._known, self._balances(fresh)])
        return self._known[:n]

    def _balances(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = np.zeros_like(sizes), sizes + 1  # the answer is from low to high: bisect
        while (low < high).any():
            middle = (low + high) // 2
            holds = self._rule(sizes, np.minimum(0.5 + middle / (2.0 * sizes), 1.0))
            low, high = np.where(holds, low, middle + 1), np.where(holds, middle, high)
        return np.where(sizes > WARM_UP, high, sizes + 1)


def select_hypothesis(
    blocks: Iterable[NDArray[np.int64]],
    hypotheses: Hypotheses,
    needed: NeededBalances,
    max_samples: int,
) -> Selection | None:
    """Draw examples until the rule holds for the best hypothesis ([1] Algorithm HSM).

    A balance, right minus wrong, changes by one with each example. So its values at both ends of
    a chunk bound it in between. Only chunks and hypotheses for which the rule could hold are
    counted example by example.

    Args:
        blocks: drawn rows. Blocks may be empty.
        hypotheses: the hypotheses to choose from.
        needed: balances with which the stopping rule holds.
        max_samples: number of examples after which the round ends in any case, at least 1.

    Returns:
        The best hypothesis when the rule first holds, or at `max_samples`; the first one if
        several are equal. None if the blocks end before.

    >>> from optuna_daub.learners.stopping import SizeRule, advantage_size
    >>> from optuna_daub.learners.stumps import interval_bins
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])  # x0 = 0 is right on 3 of 4
    >>> bins = interval_bins(X, 2, np.array([False, False]))
    >>> hypotheses = Hypotheses(bins, np.arange(4), labels=np.ones(4))
    >>> rule = SizeRule(advantage_size, epsilon=0.5, delta=0.1)
    >>> selection = select_hypothesis([np.arange(400) % 4], hypotheses, NeededBalances(rule), 1000)
    >>> selection.hypothesis, selection.n_samples, round(selection.accuracy, 6)
    (0, 179, 0.75419)
    """
    seen = 0
    balance = np.zeros(len(hypotheses.stumps), dtype=np.int64)
    for block in blocks:
        rows = block[: max_samples - seen]
        if len(rows) == 0:
            continue
        need = needed.up_to(seen + len(rows))[seen:]
        ends = balance + np.cumsum(hypotheses.balances(rows), axis=0)
        starts = np.vstack([balance, ends[:-1]])
        edges = np.arange(0, len(rows), CHUNK)
        least = np.minimum.reduceat(need, edges)[:, np.newaxis]
        able = np.abs(starts) + np.abs(ends) + CHUNK >= 2 * least  # each draw changes it by one
        chunks = np.flatnonzero(able.any(axis=1))
        if len(chunks):
            # A chunk at whose end the rule holds is the last one to look at.
            final = need[np.minimum(edges + CHUNK, len(rows)) - 1]
            sure = np.flatnonzero(np.abs(ends).max(axis=1) >= final)
            first, last = chunks[0], min([chunks[-1], *sure[:1]])
            some = np.flatnonzero(able[first : last + 1].any(axis=0))
            part = slice(first * CHUNK, (last + 1) * CHUNK)
            changes = np.cumsum(hypotheses.outcomes(rows[part], some), axis=1)
            reached = np.abs(starts[first, some, np.newaxis] + changes).max(axis=0) >= need[part]
            if reached.any():
                stop = int(part.start + reached.argmax()) + 1
                total = balance + hypotheses.balances(rows[:stop]).sum(axis=0)
                return _leader(total, seen + stop, satisfied=True)
        seen, balance = seen + len(rows), ends[-1]
        if seen == max_samples:
            return _leader(balance, seen, satisfied=False)
    return None


def _leader(balance: NDArray[np.int64], n: int, *, satisfied: bool) -> Selection:
    best = int(np.argmax(np.abs(balance)))
    accuracy = 0.5 + abs(int(balance[best])) / (2.0 * n)
    return Selection(best, 1 if balance[best] > 0 else -1, accuracy, n, satisfied)
