"""Stopping rules of adaptive sampling: the number of examples that a mean needs.

A rule compares the number n of outcomes (right or wrong) seen so far with the number that their
mean needs. The error can be absolute, relative, or relative to the advantage over guessing. Each
kind of error works with each inequality.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
[2] C. Domingo, O. Watanabe, "MadaBoost: A Modification of AdaBoost", COLT 2000.
    https://dblp.org/search?q=MadaBoost+Modification+of+AdaBoost
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import number
from optuna_daub.core.intervals import massart


Exponent = Callable[[ArrayLike, ArrayLike], NDArray[np.float64]]
"""Exponent U(mean, probability) of an inequality, such as `massart.exponent`."""

StoppingRule = Callable[[NDArray[np.int64], NDArray[np.float64]], NDArray[np.bool_]]
"""Function (sizes n, means of n outcomes) -> True for sizes that are enough. Each mean is over the
first n outcomes."""


class SampleSize(Protocol):
    """Function from a mean to the number of outcomes that it needs."""

    def __call__(
        self,
        mean: ArrayLike,
        epsilon: ArrayLike,
        delta: float,
        *,
        exponent: Exponent = ...,
        two_sided: bool = ...,
    ) -> NDArray[np.float64]:
        """Return the smallest number of outcomes that is enough; infinity if none is."""


def absolute_error_size(
    mean: ArrayLike,
    epsilon: ArrayLike,
    delta: float,
    *,
    exponent: Exponent = massart.exponent,
    two_sided: bool = True,
) -> NDArray[np.float64]:
    """Return the n from which a mean is within `epsilon` of its expectation.

    With Massart's exponent this is rule (1) of the paper. For eps < 1/2, and whenever
    min(mean, 1 - mean) + eps < 1, it equals the closed form
    n >= 2 ln(2/delta) / eps^2 * (1/4 - (|mean - 1/2| - 2/3 eps)^2).

    Args:
        mean: mean of the outcomes so far, in [0, 1].
        epsilon: absolute error, positive; with 0 the result is infinity, except at a mean of 0 or
            1, for which Massart's and Chernoff's exponents are infinite too.
        delta: probability of a larger error, in (0, 1).
        exponent: exponent of the inequality, such as ``chernoff.exponent``.
        two_sided: count errors in both directions, ln(2/delta); else ln(1/delta).

    >>> round(float(absolute_error_size(0.9, 0.1, 0.1)), 6)
    83.214785
    """
    inner = 0.5 - np.abs(0.5 - np.asarray(mean))  # W of [1] Eq. (1): the mean or its mirror
    return _size(exponent(inner, inner + np.asarray(epsilon)), delta, two_sided)  # [1] Eq. (1)


def relative_error_size(
    mean: ArrayLike,
    epsilon: ArrayLike,
    delta: float,
    *,
    exponent: Exponent = massart.exponent,
    two_sided: bool = True,
) -> NDArray[np.float64]:
    """Return the n from which a mean is within `epsilon` times its expectation.

    This is rule (2) of [1]. The learners here use the other two.

    Args:
        mean: mean of the outcomes so far, in [0, 1]; with 0 the result is infinity.
        epsilon: relative error, positive.
        delta: probability of a larger error, in (0, 1).
        exponent: exponent of the inequality, such as ``chernoff.exponent``.
        two_sided: count errors in both directions, ln(2/delta); else ln(1/delta).

    >>> round(float(relative_error_size(0.5, 0.1, 0.1)), 6)
    722.304337
    """
    mean = np.asarray(mean)
    size = _size(exponent(mean, mean / (1.0 + np.asarray(epsilon))), delta, two_sided)
    return np.where(mean > 0.0, size, np.inf)  # [1] Eq. (2)


def advantage_size(
    mean: ArrayLike,
    epsilon: ArrayLike,
    delta: float,
    *,
    exponent: Exponent = massart.exponent,
    two_sided: bool = True,
) -> NDArray[np.float64]:
    """Return the n at which |mean - 1/2| is known within `epsilon` times itself.

    This is the rule of boosting: the advantage over guessing is to be known, not the mean.

    Args:
        mean: mean of the outcomes so far, in [0, 1]; with 1/2 the result is infinity.
        epsilon: relative error of the advantage, positive.
        delta: probability of a larger error, in (0, 1).
        exponent: exponent of the inequality, such as ``chernoff.exponent``.
        two_sided: count errors in both directions, ln(2/delta); else ln(1/delta).

    >>> round(float(advantage_size(0.75, 0.5, 0.1)), 6)
    183.072528
    """
    epsilon = np.asarray(epsilon)
    absolute = epsilon * np.abs(np.asarray(mean) - 0.5) / (1.0 + epsilon)  # [1] eps' of Eq. (4)
    return absolute_error_size(  # [1] Eq. (4)
        mean, absolute, delta, exponent=exponent, two_sided=two_sided
    )


def madaboost_advantage(n: ArrayLike, epsilon: float, delta: float) -> NDArray[np.float64]:
    """Return alpha_n, the smallest advantage mean - 1/2 for which n outcomes suffice.

    Args:
        n: number of outcomes, at least 1.
        epsilon: relative error of the advantage, positive.
        delta: probability of a larger error at any n, in (0, 1).

    >>> round(float(madaboost_advantage(100, 0.5, 0.1)), 6)
    0.72009
    """
    size = np.asarray(n, dtype=np.float64)  # 32-bit n (n + 1) overflows at 46,341
    union = np.log(size * (size + 1.0) / delta)  # sum over n of 1 / (n (n + 1)) is 1
    return np.asarray((1.0 + 1.0 / epsilon) * np.sqrt(union / (2.0 * size)))  # [1] Eq. (7); [2]


@dataclass(frozen=True)
class SizeRule:
    """Rule that stops at the first n that is enough for its mean.

    >>> rule = SizeRule(absolute_error_size, epsilon=0.1, delta=0.1)
    >>> n = np.arange(1, 200)
    >>> first_stop(rule, n, np.ceil(n / 2) / n)  # outcomes 1, 0, 1, 0, ...: stops at n = 148
    147
    """

    size: SampleSize
    """Function for the kind of error, such as `absolute_error_size`."""
    epsilon: float
    """Largest error, in (0, 1): absolute, relative or of the advantage; `size` decides."""
    delta: float
    """Probability of a larger error, in (0, 1)."""
    exponent: Exponent = massart.exponent
    """Exponent of the inequality; by default Massart's, as in [1]."""
    two_sided: bool = True
    """Count errors in both directions, as printed in [1]; False reproduces its Table III."""

    def __post_init__(self) -> None:
        check_error_and_risk(self.epsilon, self.delta)

    def __call__(self, n: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether each n suffices for its mean."""
        return n >= self.size(
            mean, self.epsilon, self.delta, exponent=self.exponent, two_sided=self.two_sided
        )


@dataclass(frozen=True)
class MadaBoostRule:
    """Rule that stops at the first n whose advantage mean - 1/2 reaches alpha_n.

    >>> MadaBoostRule(epsilon=0.5, delta=0.1)(np.array([1185, 1186]), np.array([0.75, 0.75]))
    array([False,  True])
    """

    epsilon: float
    """Largest relative error of the advantage, in (0, 1)."""
    delta: float
    """Probability of a larger error, in (0, 1)."""

    def __post_init__(self) -> None:
        check_error_and_risk(self.epsilon, self.delta)

    def __call__(self, n: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether each n suffices for its mean."""
        return mean - 0.5 >= madaboost_advantage(n, self.epsilon, self.delta)


def first_stop(rule: StoppingRule, n: NDArray[np.int64], mean: NDArray[np.float64]) -> int | None:
    """Return the index of the first sample size at which the rule stops.

    None if the rule never stops.

    Args:
        rule: the stopping rule.
        n: increasing sample sizes, shape (n_sizes,).
        mean: mean of the first n outcomes, in [0, 1], same shape.

    >>> first_stop(MadaBoostRule(0.5, 0.1), np.array([10, 20]), np.array([0.75, 0.75])) is None
    True
    """
    stops = rule(n, mean)
    return int(np.argmax(stops)) if stops.any() else None


def check_error_and_risk(epsilon: float, delta: float) -> None:
    """Check the two numbers that every rule takes.

    Raises:
        ValueError: if `epsilon` or `delta` is not in (0, 1).
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0.0 < number(name, value) < 1.0:
            raise ValueError(f"`{name}` must be in (0, 1), but got {brief(value)}.")


def _size(exponents: NDArray[np.float64], delta: float, two_sided: bool) -> NDArray[np.float64]:
    """Return the n with exp(n U) <= delta. If `two_sided`, delta / 2 bounds each tail."""
    with np.errstate(divide="ignore"):  # U = 0: no number of outcomes suffices
        return np.asarray(np.log((2.0 if two_sided else 1.0) / delta) / np.abs(exponents))
