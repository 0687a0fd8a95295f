"""Validation on only as many examples as a stopping rule needs.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import ClassVar
from typing import Literal
from typing import overload

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils import assert_all_finite
from sklearn.utils import column_or_1d
from sklearn.utils import indexable

from optuna_daub.core.checks import named
from optuna_daub.core.limits import Limits
from optuna_daub.learners.adaptive import EXPONENTS
from optuna_daub.learners.base import check_classifier
from optuna_daub.learners.stopping import SizeRule
from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stopping import absolute_error_size
from optuna_daub.learners.stopping import first_stop


HORIZON = 1000
"""Smallest number of examples for which the next possible stop is computed in advance."""

RuleName = Literal["massart", "chernoff", "hoeffding"]


@dataclass(frozen=True)
class SequentialAccuracy:
    """An estimated accuracy and the number of examples behind it."""

    accuracy: float
    """Share of the examples used that were classified correctly, in [0, 1]."""
    n_samples: int
    """Number of examples used, at least 1."""
    n_predicted: int
    """Number of examples predicted: `n_samples` and the rest of the last batch."""
    satisfied: bool
    """True if the rule stopped. False if all examples were used, and the accuracy is exact."""


@dataclass(frozen=True)
class SequentialScorer:
    """A scikit-learn scorer: accuracy within `epsilon` with probability 1 - `delta`.

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((10_000, 1)), np.arange(10_000) % 10 == 0
    >>> model = DummyClassifier().fit(X, y)
    >>> SequentialScorer(epsilon=0.1, delta=0.1).estimate(model, X, y).n_samples
    62
    """

    epsilon: float
    """Absolute error, in (0, 1)."""
    delta: float
    """Probability of a larger error, in (0, 1)."""
    rule: RuleName = "massart"
    """Name of the rule's inequality."""
    batch_size: int = 32
    """Smallest number of examples that are predicted at a time."""
    seed: int = 0
    """Seed of the order in which examples are taken, the same for all estimators."""

    greater_is_better: ClassVar[bool] = True
    """Direction of the score, as `TrainingSizeObjective` asks for it."""
    limits: ClassVar[Limits] = Limits(0.0, 1.0)
    """Lowest and highest possible score."""
    scores_a_sample: ClassVar[bool] = True
    """True: a score may be on some of the rows. Rules that count all of them refuse it."""

    def __post_init__(self) -> None:
        named("rule", self.rule, EXPONENTS)
        self._stopping_rule()

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """Return the estimated accuracy of a fitted classifier."""
        return self.estimate(estimator, X, y).accuracy

    def estimate(self, estimator: Any, X: Any, y: ArrayLike) -> SequentialAccuracy:
        """Return the accuracy of a fitted classifier and the number of examples it took.

        Args:
            estimator: fitted, with `predict`.
            X: validation examples, at least one; they are taken in a random order.
            y: their labels, shape (n_samples,) or (n_samples, 1).

        Raises:
            ValueError: if there is no example, a label is missing, labels and predictions are of
                different types, or the estimator is a regressor.
        """
        check_classifier(estimator)
        X, y = indexable(X, y)
        rule = self._stopping_rule()
        labels = column_or_1d(y)
        assert_all_finite(labels, input_name="y")
        if len(labels) == 0:
            raise ValueError("`X` must have at least one validation example, but has none.")
        order = np.random.default_rng(self.seed).permutation(len(labels))
        right = 0
        seen = 0
        while seen < len(order):
            size = max(self.batch_size, next_possible_stop(rule, seen, right, len(order)) - seen)
            batch = order[seen : seen + size]
            predicted = np.ravel(estimator.predict(_safe_indexing(X, batch)))
            if not seen:
                # Refuses labels that cannot be equal, such as text and numbers.
                accuracy_score([*labels[batch]], [*predicted])
            hits = predicted == labels[batch]
            n = np.arange(seen + 1, seen + len(batch) + 1)
            sums = right + np.cumsum(hits)
            stop = first_stop(rule, n, sums / n)
            if stop is not None:
                return SequentialAccuracy(
                    float(sums[stop] / n[stop]), int(n[stop]), int(n[-1]), satisfied=True
                )
            seen, right = int(n[-1]), int(sums[-1])
        return SequentialAccuracy(right / seen, seen, seen, satisfied=False)

    def _stopping_rule(self) -> StoppingRule:
        return SizeRule(absolute_error_size, self.epsilon, self.delta, EXPONENTS[self.rule])


def next_possible_stop(rule: StoppingRule, seen: int, right: int, most: int) -> int:
    """Return a number of examples before which the rule cannot stop, at most `most`.

    Further examples can move the mean anywhere between all wrong and all right. Rules for the
    absolute error need the fewest examples at an end of that range, or at 1/2 if it is inside
    (Massart's needs the most near 1/2, not at it). It looks no further than `HORIZON` examples, or
    twice the number seen if that is more.

    >>> next_possible_stop(SizeRule(absolute_error_size, 0.1, 0.1), seen=0, right=0, most=1000)
    38
    """
    horizon = min(most, max(HORIZON, 2 * seen))
    n = np.arange(seen + 1, horizon + 1)
    worst, best = right / n, (right + n - seen) / n
    means = (worst, best, np.clip(0.5, worst, best))
    stops = [first_stop(rule, n, mean) for mean in means]
    possible: list[NDArray[np.int64]] = [n[stop] for stop in stops if stop is not None]
    return int(min(possible, default=horizon))


@overload
def sequential_score(
    estimator: None = None,
    X: None = None,
    y: None = None,
    *,
    epsilon: float,
    delta: float,
    rule: RuleName = ...,
) -> SequentialScorer: ...


@overload
def sequential_score(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    rule: RuleName = ...,
) -> float: ...


def sequential_score(
    estimator: Any = None,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    epsilon: float,
    delta: float,
    rule: RuleName = "massart",
) -> float | SequentialScorer:
    """Return a classifier's accuracy, estimated on as few examples as the rule needs.

    It saves time if prediction is expensive, as with nearest neighbours or kernels. Without an
    estimator the result is a scorer, for ``TrainingSizeObjective(...,
    scoring=sequential_score(epsilon=0.02, delta=0.05))`` or any ``scoring=`` of scikit-learn.

    The validation examples are taken in one seeded random order and predicted in batches, but
    the rule is asked after every example. If it never stops, the result is the accuracy on all.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = np.random.default_rng(0).random((3000, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = KNeighborsClassifier().fit(X[:1000], y[:1000])
    >>> sequential_score(model, X[1000:], y[1000:], epsilon=0.05, delta=0.05) > 0.9
    True

    Args:
        estimator: fitted classifier; None for a scorer.
        X: validation examples, shape (n_samples, n_features).
        y: their labels, shape (n_samples,) or (n_samples, 1).
        epsilon: absolute error, in (0, 1).
        delta: probability of a larger error, in (0, 1).
        rule: "massart" ([1] Eq. 1), or the same with the inequality of "chernoff", which never
            needs more examples, or of "hoeffding", which needs the same number at any accuracy.

    Raises:
        ValueError: if a parameter is out of its range, `estimator` is a regressor, only some of
            `estimator`, X and y are given, or X has no rows.
    """
    scorer = SequentialScorer(epsilon, delta, rule)
    if estimator is None and X is None and y is None:
        return scorer
    if estimator is None or X is None or y is None:
        raise ValueError(
            "`estimator` must come with `X` and `y`; leave out all three for a scorer."
        )
    return scorer(estimator, X, y)
