"""Hoeffding's inequality for the mean of n independent values in [0, 1].

[1] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 58, 1963.
    https://doi.org/10.1080/01621459.1963.10500830
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


def exponent(mean: ArrayLike, probability: ArrayLike) -> NDArray[np.float64]:
    """Return U(z, mu), at most 0: a tail of the mean of n values is at most exp(n U).

    One-sided: P(mean <= z) <= exp(n U(z, mu)) for z < mu, P(mean >= z) likewise for z > mu.

    Args:
        mean: z, the observed mean, in [0, 1].
        probability: mu, the expected value, any number; broadcast against `mean`.

    >>> round(float(exponent(0.5, 0.6)), 6)
    -0.02
    """
    z, mu = np.asarray(mean, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    return np.asarray(-2.0 * (z - mu) ** 2)  # [1] Eq. (2.3)


def half_width(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided, and by symmetry the same below. For a two-sided interval of confidence
    1 - delta pass ``tail=delta / 2``. The ends are not cut to [0, 1].

    Args:
        n: number of values, at least 1.
        mean: their mean, in [0, 1]; the width does not depend on it, only the result's shape does.
        tail: probability of one tail, in (0, 1).

    >>> round(float(half_width(150, 0.5, tail=0.1 / 2)), 6)
    0.099929
    """
    size, _ = np.broadcast_arrays(np.asarray(n, dtype=np.float64), mean)
    return np.asarray(np.sqrt(-np.log(tail) / (2.0 * size)))  # [1] Eq. (2.3), solved for t
