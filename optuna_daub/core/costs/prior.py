"""Prior of the model of seconds in `seconds`: its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Prior(NamedTuple):
    """Prior of the model: the numbers in `seconds.json`."""

    alpha: float
    """Mean of the shared exponent of growth."""
    alpha_sd: float
    """Standard deviation of the shared exponent of growth."""
    late: float
    """Mean of the shared weight c of late growth q(L)."""
    late_sd: float
    """Standard deviation of the shared weight of late growth."""
    kappa: float
    """Exponent of q, above 0: larger values mean later growth."""
    pivot: float
    """Size, as -ln(n / N), at which level and growth are independent."""
    length: float
    """Length scale of the smooth part, in root mean square distances of the learners."""
    log_weight: float
    """Weight of a number's logarithm in the linear part; the number's own is 1."""
    growth_by_point: float
    """Standard deviation of g divided by that of f."""
    count_mean: float
    """Mean exponent of seconds in a whole number, such as a number of trees."""
    count_sd: float
    """Standard deviation of that exponent, divided by `linear`."""
    late_by_own: float
    """Standard deviation of r_i divided by that of s_i."""
    linear: float
    """Standard deviation of a parameter's linear effect, divided by that of the parameter."""
    smooth: float
    """Standard deviation of the smooth part."""
    own: float
    """Standard deviation of u_i, the learners' own levels."""
    own_growth: float
    """Standard deviation of s_i, the learners' own exponents."""
    noise: float
    """Standard deviation of one measurement."""
    jitter: float
    """Standard deviation of an error in seconds, as a share of the mean seconds.

    It is the same for long and short trainings. With 0, searches on surrogates lose 0.02 points
    more after the time of 100 trainings (200 searches, `benchmarks/search.py --problems
    ranger`)."""
    freedom: float
    """Degrees of freedom of the priors of the five scales from `linear` to `noise`."""
    tail: float
    """Degrees of freedom of the noise's upper tail."""


PRIOR = Prior(**json.loads(Path(__file__).with_name("seconds.json").read_text("utf-8")))
