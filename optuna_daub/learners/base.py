"""Base class of the boosting classifiers: checks of input, votes, probabilities.

[1] J. Friedman, T. Hastie, R. Tibshirani, "Additive Logistic Regression: A Statistical View of
    Boosting", Annals of Statistics 28, 2000. https://doi.org/10.1214/aos/1016218223
"""

from __future__ import annotations

from abc import ABCMeta
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import expit
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import validate_data

from optuna_daub.core.checks import brief
from optuna_daub.learners.boosting import Ensemble
from optuna_daub.learners.boosting import Source
from optuna_daub.learners.boosting import boost
from optuna_daub.learners.stumps import Features


if TYPE_CHECKING:
    from typing_extensions import Self


MAX_COUNT = 10_000_000
"""Largest number of rounds, draws, samples or intervals: longer arrays would fill the memory."""

DIGITS = 12
"""Decimals to which votes are rounded. The sum of a thousand votes of at most 12 has a rounding
error near 1e-12."""


@dataclass(frozen=True)
class TrainingSet:
    """The input of `fit` after all checks."""

    X: Features
    labels: NDArray[np.float64]
    """Labels -1 or +1, shape (n_problems, n_samples): one problem for two classes, else one for
    each class."""
    weights: NDArray[np.float64]
    """Weights of the examples, in [0, 1], the largest 1, shape (n_samples,)."""
    names: tuple[str, ...]
    """Names of the features; x0, x1, ... if the input has none."""


def check_count(name: str, value: object, least: int) -> None:
    """Raise a ValueError if a parameter is not an integer from `least` to `MAX_COUNT`.

    >>> check_count("n_draws", 1000, 1)
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)
    if not is_whole or value < least:  # type: ignore[operator]
        raise ValueError(
            f"`{name}` must be an integer of at least {least}, but got {brief(value)}."
        )
    if value > MAX_COUNT:  # type: ignore[operator]
        raise ValueError(f"`{name}` must be at most {MAX_COUNT:,}, but got {brief(value)}.")


def check_classifier(estimator: Any) -> None:
    """Raise a ValueError if `estimator` says that it is a regressor.

    A class of the user's own may not say what it is.
    """
    if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
        raise ValueError(
            f"`estimator` must be a classifier, but got {brief(estimator)}, a regressor."
        )


class BoostingClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A weighted vote of classifiers. With more than two classes, each class votes against the
    rest."""

    n_estimators: int
    ensemble_: Ensemble

    _logit_scale = 2.0
    """Log odds per unit of the decision function. The vote that minimises the exponential loss is
    half the log odds ([1] Lemma 1)."""

    @abstractmethod
    def _boost(self, data: TrainingSet) -> Ensemble:
        """Return the vote and set the attributes of the subclass."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Args:
            X: array, data frame or sparse matrix, shape (n_samples, n_features), finite. Stumps
                keep the bin of each cell, zeros included, in 2 or 4 bytes.
            y: class labels, shape (n_samples,), at least two classes.
            sample_weight: at least 0, shape (n_samples,); None for 1 each. Examples of weight 0
                are left out.

        Raises:
            ValueError: a parameter or the data break a rule that the message states.
        """
        check_count("n_estimators", self.n_estimators, 1)
        if hasattr(self, "ensemble_"):
            del self.ensemble_  # after an error the old vote would be read with the new classes
        self.ensemble_ = self._boost(self._checked(X, y, sample_weight))
        return self

    def _checked(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingSet:
        dtypes = [np.float64, np.float32]
        X, y = validate_data(self, X, y, accept_sparse="csc", dtype=dtypes)
        check_classification_targets(y)
        weights = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        if not weights.any():
            raise ValueError("`sample_weight` must be above 0 for some examples, but all are 0.")
        if not weights.all():
            kept = weights > 0.0
            X, y, weights = X[kept], np.asarray(y)[kept], weights[kept]
        weights = weights / weights.max()  # only ratios count, and sums of large ones overflow
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y must have at least two classes, but got only one class with positive weight: "
                f"{self.classes_.tolist()}."
            )
        ones = np.arange(1, 2) if len(self.classes_) == 2 else np.arange(len(self.classes_))
        labels = np.where(numbers == ones[:, np.newaxis], 1.0, -1.0)
        default = [f"x{column}" for column in range(X.shape[1])]
        names = tuple(map(str, getattr(self, "feature_names_in_", default)))
        return TrainingSet(X, labels, weights, names)

    @property
    def estimators_(self) -> list[Any]:
        """Hypotheses in order of the rounds. With more than two classes, one tuple a round."""
        rounds = self.ensemble_.hypotheses
        return [one[0] for one in rounds] if len(rounds[0]) == 1 else list(rounds)

    @property
    def estimator_weights_(self) -> NDArray[np.float64]:
        """Weights of the votes, shape (n_rounds,), or (n_rounds, n_classes) beyond two."""
        return self._per_round(self.ensemble_.weights)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the weighted vote, shape (n_samples,), or (n_samples, n_classes) beyond two.

        With two classes, positive values speak for ``classes_[1]``.
        """
        return self._per_round(self._votes(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest vote, shape (n_samples,)."""
        return self._classes_of(self._votes(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of the classes, shape (n_samples, n_classes).

        With two classes they are the logistic function of the log odds, beyond two the softmax of
        them. The class that `predict` returns has the largest.
        """
        return self._probabilities(self._votes(X))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield `decision_function` after each round."""
        for votes in self._staged_votes(X):
            yield self._per_round(votes)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield `predict` after each round."""
        for votes in self._staged_votes(X):
            yield self._classes_of(votes)

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield `predict_proba` after each round."""
        for votes in self._staged_votes(X):
            yield self._probabilities(votes)

    def staged_score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Iterator[float]:
        """Yield the accuracy after each round, as `score` returns it."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _votes(self, X: Any) -> NDArray[np.float64]:
        # Only the last stage: all of them together take as much memory as rounds.
        return deque(self._staged_votes(X), maxlen=1).pop()

    def _staged_votes(self, X: Any) -> Iterator[NDArray[np.float64]]:
        check_is_fitted(self, "ensemble_")
        dtypes = [np.float64, np.float32]
        X = validate_data(self, X, accept_sparse="csc", dtype=dtypes, reset=False)
        # Votes that differ by less are ties with rounding errors; their probabilities are equal.
        return (votes.round(DIGITS) for votes in self.ensemble_.stages(X))

    def _per_round(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Drop the axis of problems if there is one problem."""
        return values[:, 0] if values.shape[1] == 1 else values

    def _classes_of(self, votes: NDArray[np.float64]) -> NDArray[Any]:
        binary = votes.shape[1] == 1
        best = (votes[:, 0] > 0.0).astype(int) if binary else votes.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _probabilities(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = self._logit_scale * votes
        if votes.shape[1] == 1:
            return np.hstack([expit(-scaled), expit(scaled)])
        # Softmax of log odds: the logistic functions of several large votes would all be 1.
        return np.asarray(softmax(scaled, axis=1))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def run(source: Source, n_estimators: int) -> Ensemble:
    """Return the vote of all rounds of boosting.

    Raises:
        ValueError: if no hypothesis is better than guessing in the first round.
    """
    rounds = list(boost(source, n_estimators))
    if not rounds:
        raise ValueError(
            "Boosting needs a hypothesis that is right on more than half of the weight, but the "
            "first round found none. Decision stumps look at one feature at a time: add features "
            "that tell these classes apart by themselves, or pass another `estimator` if the "
            "class takes one."
        )
    weights = np.array([one.weights for one in rounds])
    return Ensemble(tuple(one.hypotheses for one in rounds), weights)
