"""The one boosting loop, and the weighted vote that it builds.

Several classes are boosted one against the rest: each class has its own weights and its own
hypothesis in every round; two classes are a single such problem. Symbols: D the weights of the
examples, gamma the edge sum_i D_i y_i h(x_i), alpha = atanh(gamma) the weight of a vote.

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
[2] C. Domingo, O. Watanabe, "MadaBoost: A Modification of AdaBoost", COLT 2000.
    https://dblp.org/search?q=MadaBoost+Modification+of+AdaBoost
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optuna_daub.learners.stumps import TIE
from optuna_daub.learners.stumps import Features


MAX_EDGE = 1.0 - 1e-10
"""Edges are cut here: a faultless hypothesis would have an infinite vote."""


class Hypothesis(Protocol):
    """A classifier into {-1, +1} that knows which features it needs."""

    @property
    def features(self) -> tuple[int, ...]:
        """Columns of X that have to be known to vote."""

    def vote(self, X: Features) -> NDArray[np.float64]:
        """Return -1 or +1 for each row of X, shape (n_samples,)."""


@dataclass(frozen=True)
class Choice:
    """A hypothesis chosen for one problem."""

    hypothesis: Hypothesis
    edge: float
    """gamma in [-1, 1], on the weights of its round; 0 for a problem that needs no more votes."""


@dataclass(frozen=True)
class Round:
    """One hypothesis for each one-against-rest problem."""

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    """alpha of each vote, at least 0."""


class Source(Protocol):
    """Where the hypotheses of a round come from; holds the state of one fit."""

    def propose(self) -> Sequence[Choice] | None:
        """Return one choice for each problem, or None to end without a warning.

        Called once a round.
        """

    def learn(self, accepted: Round) -> None:
        """Take notice of the round that was added. Called after each accepted proposal."""


def boost(source: Source, n_rounds: int) -> Iterator[Round]:
    """Yield at most `n_rounds` rounds of boosting ([1] Algorithm 1).

    Ends early when the source ends and when no hypothesis is better than guessing (with a
    warning, unless it is the first round).

    Args:
        source: proposes hypotheses and keeps the weights of the examples.
        n_rounds: at least 1.
    """
    for number in range(n_rounds):
        choices = source.propose()
        if choices is None:
            return
        if all(choice.edge <= TIE for choice in choices):
            if number:
                warnings.warn(
                    f"Boosting stopped after {number} of {n_rounds} rounds: no hypothesis is "
                    "right on more than half of the weight.",
                    stacklevel=5,
                )
            return
        accepted = Round(
            tuple(choice.hypothesis for choice in choices),
            tuple(vote_weight(choice.edge) for choice in choices),
        )
        source.learn(accepted)
        yield accepted


def vote_weight(edge: float) -> float:
    """Return alpha = 1/2 ln((1 + gamma) / (1 - gamma)), at least 0.

    >>> round(vote_weight(0.3), 6)
    0.30952
    """
    return float(np.arctanh(np.clip(edge, 0.0, MAX_EDGE)))  # [1] Alg. 1, alpha_t


def exponential_weights(
    margins: NDArray[np.float64], initial: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return AdaBoost's D, proportional to D_1 exp(-margin).

    Args:
        margins: y_i sum_t alpha_t h_t(x_i), shape (n_problems, n_samples).
        initial: D_1, positive, shape (n_samples,).

    Returns:
        Weights that sum to 1 for each problem, same shape as `margins`.

    >>> exponential_weights(np.array([[0.0, np.log(3.0)]]), np.ones(2)).round(6)
    array([[0.75, 0.25]])
    """
    lowest = margins.min(axis=1, keepdims=True)  # its weight is the largest: no overflow
    weights = initial * np.exp(lowest - margins)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))  # [1] Alg. 1, D_{t+1}


def madaboost_weights(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return MadaBoost's weights, which serve as probabilities: they never exceed 1.

    They need no other examples' weights, so an example can be weighed when it is drawn.

    Args:
        margins: y_i sum_t alpha_t h_t(x_i), any shape.

    >>> madaboost_weights(np.array([-1.0, 0.0, np.log(2.0)]))
    array([1. , 1. , 0.5])
    """
    return np.asarray(np.exp(-np.maximum(margins, 0.0)))  # [2] w = min{1, prod beta^cons}


@dataclass(frozen=True)
class Ensemble:
    """A weighted vote: F_k(x) = sum_t weights[t, k] h_tk(x) for problem k."""

    hypotheses: tuple[tuple[Hypothesis, ...], ...]
    """Shape (n_rounds, n_problems)."""
    weights: NDArray[np.float64]
    """Shape (n_rounds, n_problems), at least 0; hypotheses of weight 0 are not evaluated."""

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Ensemble:
        """Return the vote of the given rounds, at least one."""
        return cls(
            tuple(round_.hypotheses for round_ in rounds),
            np.array([round_.weights for round_ in rounds]),
        )

    def stages(self, X: Features) -> Iterator[NDArray[np.float64]]:
        """Yield F after each round, shape (n_samples, n_problems); one array, updated."""
        total = np.zeros((X.shape[0], self.weights.shape[1]))
        for hypotheses, weights in zip(self.hypotheses, self.weights, strict=True):
            for problem, (hypothesis, weight) in enumerate(zip(hypotheses, weights, strict=True)):
                if weight > 0.0:
                    total[:, problem] += weight * hypothesis.vote(X)
            yield total
