"""The boosting loop, and the weighted vote that it builds.

Several classes are boosted one against the rest: in every round each class has its own weights
and its own hypothesis. Two classes are one such problem. Symbols: D the weights of the examples,
gamma the edge sum_i D_i y_i h(x_i), alpha = atanh(gamma) the weight of a vote.

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
"""Largest edge that counts: with an edge of 1 a vote would be infinite."""


class Hypothesis(Protocol):
    """A classifier into {-1, +1} that states which features it uses."""

    @property
    def features(self) -> tuple[int, ...]:
        """Columns of X that the vote depends on."""

    def vote(self, X: Features) -> NDArray[np.float64]:
        """Return -1 or +1 for each row of X, shape (n_samples,)."""


@dataclass(frozen=True)
class Choice:
    """A hypothesis chosen for one problem."""

    hypothesis: Hypothesis
    edge: float
    """Edge gamma on the weights of its round, in [-1, 1]. 0 if the problem needs no more votes."""


@dataclass(frozen=True)
class Round:
    """One hypothesis for each one-against-rest problem."""

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    """Weight alpha of each vote, at least 0."""


class Source(Protocol):
    """Source of the hypotheses of each round; it holds the state of one fit."""

    def propose(self) -> Sequence[Choice] | None:
        """Return one choice for each problem, or None to end without a warning.

        Called once a round.
        """

    def learn(self, accepted: Round) -> None:
        """Update the state with an accepted round. Called after each accepted proposal."""


def boost(source: Source, n_rounds: int) -> Iterator[Round]:
    """Yield at most `n_rounds` rounds of boosting ([1] Algorithm 1).

    It ends early if the source ends, or if no hypothesis is better than guessing. The latter is a
    warning, except in the first round.

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
    lowest = margins.min(axis=1, keepdims=True)  # the largest weight becomes 1: no overflow
    weights = initial * np.exp(lowest - margins)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))  # [1] Alg. 1, D_{t+1}


def madaboost_weights(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return MadaBoost's weights, which serve as probabilities: they never exceed 1.

    A weight does not depend on other examples, so it can be computed when an example is drawn.

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
    """Hypotheses, shape (n_rounds, n_problems)."""
    weights: NDArray[np.float64]
    """Weights of the votes, at least 0, shape (n_rounds, n_problems). Hypotheses of weight 0 are
    not evaluated."""

    def stages(self, X: Features) -> Iterator[NDArray[np.float64]]:
        """Yield F after each round, shape (n_samples, n_problems): one array, updated in place."""
        total = np.zeros((X.shape[0], self.weights.shape[1]))
        for hypotheses, weights in zip(self.hypotheses, self.weights, strict=True):
            for problem, (hypothesis, weight) in enumerate(zip(hypotheses, weights, strict=True)):
                if weight > 0.0:
                    total[:, problem] += weight * hypothesis.vote(X)
            yield total
