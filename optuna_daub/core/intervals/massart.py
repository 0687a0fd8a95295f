"""Massart's inequality for the mean of n independent values in [0, 1].

It is narrower than Hoeffding's for means near 0 and 1, wider than Chernoff's, and in closed form.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
[2] P. Massart, "The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality", Annals of
    Probability 18, 1990. https://doi.org/10.1214/aop/1176990746
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


def exponent(mean: ArrayLike, probability: ArrayLike) -> NDArray[np.float64]:
    """Return U_M(z, mu), at most 0: a tail of the mean of n values is at most exp(n U_M).

    One-sided: P(mean <= z) <= exp(n U_M(z, mu)) for z < mu, P(mean >= z) likewise for z > mu.

    Args:
        mean: z, the observed mean, in [0, 1].
        probability: mu, the expected value; outside (0, 1) the result is minus infinity.
            Broadcast against `mean`.

    >>> [round(float(exponent(z, mu)), 6) for z, mu in ((0.3, 0.4), (0.6, 0.5), (0.0, 0.1))]
    [-0.021531, -0.020089, -0.080357]
    """
    z, mu = np.broadcast_arrays(mean, probability)
    possible = (mu > 0.0) & (mu < 1.0)
    mu = np.where(possible, mu, 0.5)
    ahead = z + 2.0 * mu
    value = 9.0 * (z - mu) ** 2 / (2.0 * ahead * (ahead - 3.0))  # [1] Lemma 1; [2]
    return np.where(possible, value, -np.inf)


def half_width(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided. It is computed for the side towards 1/2, the wider one, so it holds on
    the other side too. For a two-sided interval of confidence 1 - delta pass ``tail=delta / 2``.
    The ends are not cut to [0, 1].

    Args:
        n: number of values, at least 1.
        mean: their mean, in [0, 1]; broadcast against `n`.
        tail: probability of one tail, in (0, 1).

    >>> round(float(half_width(148, 0.5, tail=0.1 / 2)), 6)
    0.099709
    >>> round(float(half_width(2000, 0.95, tail=0.05 / 2)), 6)
    0.014377
    """
    k = -2.0 * np.log(tail)
    distance = np.abs(np.asarray(mean, dtype=np.float64) - 0.5)
    # [1] Eq. (1) with equality is quadratic in eps: a eps^2 - b eps - c = 0.
    a = np.asarray(n, dtype=np.float64) + 4.0 / 9.0 * k
    b = 4.0 / 3.0 * k * distance
    c = k * (0.25 - distance**2)
    return np.asarray((b + np.sqrt(b**2 + 4.0 * a * c)) / (2.0 * a))
