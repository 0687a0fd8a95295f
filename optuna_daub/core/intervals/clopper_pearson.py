"""Exact binomial tails of Clopper and Pearson.

They bound the mean of n outcomes that are 0 or 1. The interval is never wider than Chernoff's,
Massart's or Hoeffding's, which all bound these tails from above. It holds only for 0/1 outcomes,
such as right and wrong answers.

[1] C. J. Clopper, E. S. Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the
    Case of the Binomial", Biometrika 26, 1934. https://doi.org/10.1093/biomet/26.4.404
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import betaincinv


def half_width(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
    """Return an eps with P(expected value > mean + eps) <= `tail`.

    The bound is one-sided. It is computed for the side towards 1/2, the wider one, so it holds on
    the other side too. For a two-sided interval of confidence 1 - delta pass ``tail=delta / 2``.
    The end towards 1/2 is in [0, 1].

    Args:
        n: number of outcomes, at least 1.
        mean: their mean, in [0, 1]; broadcast against `n`. If n * mean is not a whole number, as
            in an average over folds, the limit is interpolated between whole numbers.
        tail: probability of one tail, in (0, 1).

    >>> round(float(half_width(100, 1.0, tail=0.05)), 6)  # 1 - 0.05 ** (1 / 100)
    0.029513
    """
    size, rarer = np.broadcast_arrays(
        np.asarray(n, dtype=np.float64), 0.5 - np.abs(np.asarray(mean, dtype=np.float64) - 0.5)
    )
    count = size * rarer  # outcomes of the rarer kind
    # The limit is the mu with P(X <= count | mu) = I_{1 - mu}(n - count, count + 1) = tail.
    limit = 1.0 - betaincinv(size - count, count + 1.0, tail)  # [1] p_2, the upper limit
    return np.asarray(limit - rarer)
