"""Candidates of a boosting round: every stump, or classifiers fitted by scikit-learn.

The base learner of [1] returns one hypothesis, while its trade-offs choose from all. Both work on
candidates that state their edges and the costs of their features.

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import text_of
from optuna_daub.learners.boosting import Hypothesis
from optuna_daub.learners.stumps import Bins
from optuna_daub.learners.stumps import Features
from optuna_daub.learners.stumps import best_edges
from optuna_daub.learners.stumps import best_stump
from optuna_daub.learners.stumps import dense


class Candidates(Protocol):
    """Hypotheses for one problem, on the weights of one round."""

    edges: NDArray[np.float64]
    """Edge gamma of each candidate, shape (n_candidates,)."""

    def total_cost(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the total cost of each candidate's features, shape (n_candidates,)."""

    def hypothesis(self, candidate: int) -> Hypothesis:
        """Return the hypothesis of one candidate."""


FindCandidates = Callable[[NDArray[np.float64], NDArray[np.float64]], Candidates]
"""Function (weights, labels) -> candidates. Both have shape (n_samples,). Weights sum to 1, labels
are -1 or +1."""


class StumpCandidates:
    """The best stump of each feature, as one candidate per feature."""

    def __init__(
        self, bins: Bins, weights: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> None:
        self._bins = bins
        self._signed = weights * labels
        self.edges = best_edges(bins, self._signed)

    def total_cost(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost of each candidate's feature, shape (n_features,)."""
        return costs

    def hypothesis(self, candidate: int) -> Hypothesis:
        """Return the best stump of a feature."""
        return best_stump(self._bins, self._signed, candidate)


@dataclass(frozen=True)
class Fitted:
    """A classifier fitted on some columns. Its classes 0 and 1 are the votes -1 and +1."""

    estimator: Any
    columns: tuple[int, ...] | None
    """Columns that the classifier was fitted on; None for all."""
    features: tuple[int, ...]
    """Columns of X that the classifier uses."""

    def vote(self, X: Features) -> NDArray[np.float64]:
        """Return -1 or +1 for each row of X, shape (n_samples,)."""
        own = X if self.columns is None else X[:, self.columns]
        return np.where(np.ravel(self.estimator.predict(own)) > 0, 1.0, -1.0)


class FittedCandidates:
    """Fitted classifiers as candidates; each costs all the features that it uses."""

    def __init__(
        self,
        fitted: Sequence[Fitted],
        X: Features,
        weights: NDArray[np.float64],
        labels: NDArray[np.float64],
    ) -> None:
        self._fitted = fitted
        signed = weights * labels
        # A constant classifier uses no feature, costs nothing, and would always win. Its edge
        # counts as 0, like that of a constant stump.
        self.edges = np.array([signed @ one.vote(X) if one.features else 0.0 for one in fitted])

    def total_cost(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the total cost of each candidate's features, shape (n_candidates,)."""
        return np.array([costs[list(one.features)].sum() for one in self._fitted])

    def hypothesis(self, candidate: int) -> Hypothesis:
        """Return one of the classifiers."""
        return self._fitted[candidate]


def fit_candidates(
    estimator: Any, X: Features, *, alternatives: bool, random_state: np.random.RandomState
) -> FindCandidates:
    """Return a function that fits `estimator` to the weights of a round.

    Args:
        estimator: a scikit-learn classifier whose `fit` takes `sample_weight`.
        X: features, shape (n_samples, n_features).
        alternatives: also fit on each feature alone, for trade-offs to choose from; this takes
            n_features more fits in each round.
        random_state: source of the seed of each fit.
    """
    subsets: list[tuple[int, ...] | None] = [None]
    if alternatives:
        subsets += [(feature,) for feature in range(X.shape[1])]

    def find(weights: NDArray[np.float64], labels: NDArray[np.float64]) -> Candidates:
        fitted = [_fit(subset, weights, labels) for subset in subsets]
        return FittedCandidates(fitted, X, weights, labels)

    def _fit(
        columns: tuple[int, ...] | None, weights: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> Fitted:
        own = X if columns is None else X[:, columns]
        model = clone(estimator)
        for name in sorted(model.get_params()):  # those of its own estimators too
            if name == "random_state" or name.endswith("__random_state"):
                model.set_params(**{name: random_state.randint(np.iinfo(np.int32).max)})
        try:
            # Regularization is meant for weights of mean 1: with a sum of 1 it would rule.
            classes = (labels > 0.0).astype(int)
            model.fit(own, classes, sample_weight=len(weights) * weights)
        except ValueError as error:
            if columns is None:
                raise
            raise ValueError(
                f"`estimator` must fit each feature alone, to be compared by cost, but with one "
                f"{brief(estimator)} says: {text_of(error)}"
            ) from error
        used = used_features(model, own.shape[1])
        return Fitted(model, columns, used if columns is None else tuple(columns[i] for i in used))

    return find


def used_features(estimator: Any, n_features: int) -> tuple[int, ...]:
    """Return the columns that a fitted classifier uses.

    They are read from the splits of a tree or of all trees of an ensemble, else from non-zero
    coefficients or importances. A classifier without any of these is assumed to use all columns.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[5, 0], [5, 1]], [-1, 1])
    >>> used_features(tree, 2)
    (1,)
    """
    splits = _split_features(estimator, n_features)
    if splits is not None:
        return tuple(sorted(splits))
    for name in ("coef_", "feature_importances_"):
        if hasattr(estimator, name):
            found = np.atleast_2d(dense(getattr(estimator, name)))
            return tuple(np.flatnonzero(found.any(axis=0)).tolist())
    return tuple(range(n_features))


def _split_features(estimator: Any, n_features: int) -> set[int] | None:
    """Return the columns on which trees split. None for a classifier that is not only trees.

    A split that gains nothing by itself has no importance, but a later one may rest on it.
    """
    if hasattr(estimator, "tree_"):
        return {int(feature) for feature in estimator.tree_.feature if feature >= 0}
    # The last classifier of a stack may look at all columns.
    if not hasattr(estimator, "estimators_") or hasattr(estimator, "final_estimator_"):
        return None
    # Gradient boosting may start from another classifier, which may look at all columns.
    if not isinstance(getattr(estimator, "init_", "zero"), str | DummyClassifier):
        return set(range(n_features))
    found = estimator.estimators_
    # np.ravel of a list would take apart members that are ensembles themselves.
    members = found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)
    every = [range(n_features)] * len(members)
    used: set[int] = set()
    for member, columns in zip(
        members, getattr(estimator, "estimators_features_", every), strict=True
    ):
        own = _split_features(member, len(columns))
        if own is None:
            return None
        used |= {int(columns[feature]) for feature in own}
    return used
