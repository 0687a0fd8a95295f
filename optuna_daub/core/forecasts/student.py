"""A Student t distribution with four degrees of freedom [1].

All answers have closed forms. Its tails fall with the fourth power, so a learner far from its
forecast is rare but possible. With z = (v - location) / scale and w = sqrt(z^2 + 4):

    P(X <= v) = 1/2 + z (z^2 + 6) / (2 w^3)
    E[max(0, X - v)] = scale (w - z)^2 / (4 w)

and with u = w - z the second is u^3 / (2 (4 + u^2)), a cubic equation for the reservation value.

[1] W. T. Shaw, "Sampling Student's T distribution: use of the inverse cumulative distribution
    function", Journal of Computational Finance 9(4), 2006. https://doi.org/10.21314/JCF.2006.150
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray


Numbers = NDArray[np.float64]

FREEDOM = 4.0
"""Degrees of freedom."""
NEWTON_STEPS = 10
"""Newton steps for the cubic equation; six reach full precision, extreme values need more."""


@dataclass(frozen=True)
class Student:
    """A Student t distribution with four degrees of freedom.

    It is that of one score or of many.

    >>> forecast = Student(0.80, 0.01)
    >>> (
    ...     round(float(forecast.quantile(0.95)), 6),
    ...     round(float(forecast.expected_improvement(0.8)), 6),
    ... )
    (0.821318, 0.005)
    """

    location: ArrayLike
    """Mean and median, in units of the score."""
    scale: ArrayLike
    """Scale, at least 0, in units of the score. Infinite if nothing is known."""

    @property
    def mean(self) -> Numbers:
        """Expected score."""
        return np.asarray(self.location, np.float64)

    def quantile(self, probability: float) -> Numbers:
        """Return the quantile of the score at `probability`, in (0, 1)."""
        deviate = 0.0
        if probability != 0.5:
            # [1]: the inverse of the distribution function for four degrees of freedom.
            root = math.sqrt(4.0 * probability * (1.0 - probability))
            far = 2.0 * math.sqrt(max(0.0, math.cos(math.acos(root) / 3.0) / root - 1.0))
            deviate = math.copysign(far, probability - 0.5)
        with np.errstate(invalid="ignore"):  # an infinite scale times 0, replaced below
            off = np.asarray(self.scale) * deviate if deviate else 0.0
        return np.asarray(self.mean + off)

    def expected_improvement(self, over: ArrayLike) -> Numbers:
        """Return E[max(0, score - over)], at least 0."""
        scale = np.asarray(self.scale, np.float64)
        ahead = self.mean - np.asarray(over, np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far = np.abs(ahead / scale)
            w = np.sqrt(far * far + 4.0)
            # (w - |z|)^2 / (4 w) without cancellation; X - v and v - X differ by their mean.
            tail = 4.0 / (w * (w + far) ** 2)
            value = np.maximum(0.0, ahead) + np.where(np.isfinite(far), scale * tail, 0.0)
        value = np.where(np.isposinf(scale) & np.isfinite(ahead), math.inf, value)
        return np.asarray(np.where(scale > 0.0, value, np.maximum(0.0, ahead)))

    def reservation_value(self, cost: ArrayLike) -> Numbers:
        """Return the score over which the expected improvement equals `cost`.

        Args:
            cost: cost in units of the score, at least 0. At 0 it is the largest possible score.
        """
        location, scale, cost = np.broadcast_arrays(
            *(np.asarray(x, np.float64) for x in (self.location, self.scale, cost))
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            c = cost / scale
            # u^3 - 2 c u^2 - 8 c = 0, from above: 2 c + 2 c^(1/3) is right of the only root.
            u = 2.0 * c + 2.0 * np.cbrt(c)
            for _ in range(NEWTON_STEPS):
                u = u - (u * u * (u - 2.0 * c) - 8.0 * c) / (u * (3.0 * u - 4.0 * c))
            uncertain = location + scale * (2.0 / u - u / 2.0)
        value = np.where((scale > 0.0) & np.isfinite(uncertain), uncertain, location - cost)
        is_free = (cost <= 0.0) & (scale > 0.0)
        return np.asarray(np.where(is_free | np.isposinf(scale), math.inf, value))

    def at(self, place: int) -> Student:
        """Return the forecast of one learner out of many."""
        location, scale = np.broadcast_arrays(self.location, self.scale)
        return Student(float(location[place]), float(scale[place]))
