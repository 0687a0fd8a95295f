"""The empirical Bernstein inequality, for the mean of n independent values in [0, 1].

Its width follows the sample variance: it is narrower than Hoeffding's if values lie close
together, and wider in small samples, since the variance is estimated too. The mean of 0/1 outcomes
already gives their variance, and for them Chernoff's inequality is narrower.

[1] A. Maurer, M. Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", COLT 2009.
    https://arxiv.org/abs/0907.3740
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


def half_width(
    n: ArrayLike, mean: ArrayLike, tail: float, variance: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided, and by symmetry the same below. For a two-sided interval of confidence
    1 - delta pass ``tail=delta / 2``. The ends are not cut to [0, 1]. Infinite for one value,
    which has no sample variance.

    Args:
        n: number of values, at least 1.
        mean: their mean, in [0, 1]; broadcast against `n`.
        tail: probability of one tail, in (0, 1).
        variance: V_n, their sample variance with n - 1 in the denominator, from 0 to
            n / (n - 1) / 4; broadcast against `n`. Default: the largest that values in [0, 1]
            with this mean can have, which is that of 0/1 outcomes.

    >>> round(float(half_width(2000, 0.95, tail=0.05 / 2)), 6)
    0.019546
    >>> round(float(half_width(2000, 0.95, tail=0.05 / 2, variance=0.001)), 6)
    0.007208
    """
    size, center = np.broadcast_arrays(np.asarray(n, dtype=np.float64), mean)
    freedom = np.where(size > 1.0, size - 1.0, 1.0)
    # Squares of values in [0, 1] sum up to no more than the values do.
    spread = size / freedom * center * (1.0 - center) if variance is None else variance
    log_tail = np.log(2.0 / tail)
    of_mean = np.sqrt(2.0 * np.asarray(spread) * log_tail / size)
    of_variance = 7.0 * log_tail / (3.0 * freedom)
    return np.where(size > 1.0, of_mean + of_variance, np.inf)  # [1] Theorem 4
