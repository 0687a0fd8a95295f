"""The empirical Bernstein inequality, for the mean of n independent values in [0, 1].

The width depends on the sample variance, for which n / (n - 1) mean (1 - mean) is used. This is
the sample variance of zeros and ones, as accuracy has them. No other values in [0, 1] with this
mean have a larger one, so the bound holds for these too.
It is narrower than Hoeffding's in large samples with a mean near 0 or 1, and wider in small ones,
since the theorem estimates the variance. Chernoff's inequality is never wider.

[1] A. Maurer, M. Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", COLT 2009.
    https://arxiv.org/abs/0907.3740
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


def half_width(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided, and by symmetry the same below. For a two-sided interval of confidence
    1 - delta pass ``tail=delta / 2``. The ends are not cut to [0, 1]. Infinite for one value,
    which has no sample variance.

    Args:
        n: number of values, at least 1.
        mean: their mean, in [0, 1]; broadcast against `n`.
        tail: probability of one tail, in (0, 1).

    >>> round(float(half_width(2000, 0.95, tail=0.05 / 2)), 6)
    0.019546
    """
    size, center = np.broadcast_arrays(np.asarray(n, dtype=np.float64), mean)
    freedom = np.where(size > 1.0, size - 1.0, 1.0)
    # Squares of values in [0, 1] sum up to no more than the values do: at most this is V_n.
    variance = size / freedom * center * (1.0 - center)
    log_tail = np.log(2.0 / tail)
    of_mean = np.sqrt(2.0 * variance * log_tail / size)
    of_variance = 7.0 * log_tail / (3.0 * freedom)
    return np.where(size > 1.0, of_mean + of_variance, np.inf)  # [1] Theorem 4
