"""Chernoff's inequality for the mean of n independent values in [0, 1].

The exponent is minus the Kullback-Leibler divergence of two coins with these means. It is the
narrowest of exponential form, exp(n U), but its width has no closed form. The exact tails of
`clopper_pearson`, which hold only for 0/1 outcomes, are never wider.

[1] H. Chernoff, "A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the Sum
    of Observations", Annals of Mathematical Statistics 23, 1952.
    https://doi.org/10.1214/aoms/1177729330
[2] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 58, 1963.
    https://doi.org/10.1080/01621459.1963.10500830
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


HALVINGS = 60
"""Bisection steps of `half_width`: 2^-60 is below the spacing of floats around 1/2."""


def exponent(mean: ArrayLike, probability: ArrayLike) -> NDArray[np.float64]:
    """Return U_C(z, mu), at most 0: a tail of the mean of n values is at most exp(n U_C).

    One-sided: P(mean <= z) <= exp(n U_C(z, mu)) for z < mu, P(mean >= z) likewise for z > mu.

    Args:
        mean: z, the observed mean, in [0, 1].
        probability: mu, the expected value; outside (0, 1) the result is minus infinity.
            Broadcast against `mean`.

    >>> [round(float(exponent(z, mu)), 6) for z, mu in ((0.3, 0.4), (0.6, 0.5), (0.0, 0.1))]
    [-0.021601, -0.020136, -0.105361]
    """
    z, mu = np.broadcast_arrays(mean, probability)
    possible = (mu > 0.0) & (mu < 1.0)
    mu = np.where(possible, mu, 0.5)
    step = mu - z  # log1p of the small ratio keeps its digits if mu is close to z
    value = _weighted_log(z, step) + _weighted_log(1.0 - z, -step)  # [2] Eq. (2.1)
    return np.where(possible, value, -np.inf)


def half_width(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided. It is computed for the side towards 1/2, the wider one, so it holds on
    the other side too. For a two-sided interval of confidence 1 - delta pass ``tail=delta / 2``.
    It is found by bisection; the ends are not cut to [0, 1].

    Args:
        n: number of values, at least 1.
        mean: their mean, in [0, 1]; broadcast against `n`.
        tail: probability of one tail, in (0, 1).

    >>> round(float(half_width(100, 1.0, tail=0.1 / 2)), 6)
    0.029513
    """
    size, inner = np.broadcast_arrays(n, 0.5 - np.abs(np.asarray(mean) - 0.5))
    outer, least = 1.0 - inner, np.log(tail)
    is_positive = inner >= np.finfo(np.float64).tiny  # as in `_weighted_log`
    weight, divisor = np.where(is_positive, inner, 0.0), np.where(is_positive, inner, 1.0)
    low, high = np.zeros(size.shape), outer
    with np.errstate(divide="ignore"):  # at probability 1 the exponent is minus infinity
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            # `exponent(inner, inner + middle)`, without what is the same in all iterations.
            step = (inner + middle) - inner
            value = weight * np.log1p(step / divisor) + outer * np.log1p(-step / outer)
            inside = size * value > least
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def _weighted_log(z: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z ln((z + step) / z), which is 0 at z = 0."""
    positive = z >= np.finfo(np.float64).tiny  # below, step / z may overflow
    ratio = np.where(positive, step / np.where(positive, z, 1.0), 0.0)
    return z * np.log1p(ratio)
