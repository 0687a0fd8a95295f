"""ABC's confidence interval of a learner's full-data accuracy, from trainings on samples.

The upper end depends only on the training score, the lower end only on the validation score.
Conditions:

* The full data are split at random into training and validation data, and every training uses
  random samples of the two; both may be nested, drawn without replacement ([2] Section 6).
* The score is a mean over examples of values in [0, 1], such as accuracy. The exact binomial tails
  of `clopper_pearson` need 0/1 values; an F1 score or an area under a curve is not such a mean.
* For the upper end, the fitness condition: on the examples that it was trained on, a learner
  scores at least as well as if it had been trained on any others.
* For the lower end, more data do not hurt: trained on all examples, a learner scores at least as
  well as on a sample. Otherwise keep the model that was trained on the sample.

[1] S. Huang, C. Wang, B. Ding, S. Chaudhuri, "ABC: Efficient Selection of Machine Learning
    Configuration on Large Dataset", AAAI 2019. https://arxiv.org/abs/1811.03250
[2] W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 58, 1963.
    https://doi.org/10.1080/01621459.1963.10500830
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals.interval import Interval


HalfWidth: TypeAlias = Callable[[ArrayLike, ArrayLike, float], NDArray[np.float64]]
"""Function (n, mean, tail) -> half width of an inequality: with probability at most `tail` the
expected value exceeds the mean of `n` values in [0, 1] by more, and likewise below. It is
`half_width` of `hoeffding`, `massart`, `chernoff`, `clopper_pearson` or `empirical_bernstein`."""

HALVINGS = 40
"""Bisection steps of `sample_above`, which rounds upwards by at most 2^-40."""

LEAST_MEAN = 1e-9
"""Smallest expected value for which `sample_above` asks Chernoff's exponent."""

CACHED_PROBES = 2**14
"""Number of trainings whose ends are cached: a thousand learners on every size of a long grid."""


def upper_end(
    training_score: ArrayLike,
    size: ArrayLike,
    *,
    full_validation: int,
    failure: float,
    half_width: HalfWidth = hoeffding.half_width,
) -> NDArray[np.float64]:
    """Return the upper end: the full-data score exceeds it with probability <= `failure` / 2.

    At most 1. The first step leads from the training score to the score on all data, the second to
    the score on the validation part of them. With Hoeffding's inequality both steps are
    ``sqrt(ln(4 / failure) / (2 n))``.

    Args:
        training_score: acc(H_Str, S_tr), in [0, 1]; broadcast against `size`.
        size: abs(S_tr), the number of training examples, at least 1.
        full_validation: abs(D_te), the number of all validation examples, at least 1.
        failure: d_c, the failure probability of the whole interval, in (0, 1); each step takes a
            quarter of it.
        half_width: the inequality.

    >>> end = upper_end(0.85, 1000, full_validation=100_000, failure=0.002)
    >>> round(float(end), 6)
    0.917813
    """
    tail = failure / 4.0
    on_sample = np.asarray(training_score, dtype=np.float64)
    on_all = np.minimum(1.0, on_sample + half_width(size, on_sample, tail))  # [1] Eq. (5), (6)
    return sample_above(on_all, full_validation, tail, half_width)  # [1] Eq. (4): Theorem 1


def lower_end(
    score: ArrayLike,
    n_validation: ArrayLike,
    *,
    failure: float,
    half_width: HalfWidth = hoeffding.half_width,
) -> NDArray[np.float64]:
    """Return the lower end: the full-data score is below it with probability <= `failure` / 2.

    It is at least 0.

    Args:
        score: acc(H_Str, S_te), in [0, 1]; broadcast against `n_validation`.
        n_validation: abs(S_te), the number of validation examples scored on, at least 1.
        failure: d_c, the failure probability of the whole interval, in (0, 1).
        half_width: the inequality; Hoeffding's is ``sqrt(ln(2 / failure) / (2 n))``.

    >>> round(float(lower_end(0.80, 2000, failure=0.002)), 6)
    0.758444
    """
    width = half_width(n_validation, score, failure / 2.0)
    return np.maximum(0.0, np.asarray(score, dtype=np.float64) - width)  # [1] Theorem 2


def sample_above(
    mean: ArrayLike, n: int, tail: float, half_width: HalfWidth
) -> NDArray[np.float64]:
    """Return a bound that a sample's mean exceeds with probability <= `tail`.

    At most 1. It inverts the inequality: the bound is the largest sample mean whose interval still
    contains the expected value `mean`. Near 0 and 1 this is narrower than `half_width` at `mean`.
    Chernoff's inequality is inverted by its exponent, since its width is a bisection itself.

    Args:
        mean: the expected value, in [0, 1].
        n: number of values in the sample, at least 1.
        tail: probability of the tail, in (0, 1).
        half_width: the inequality.
    """
    expected = np.asarray(mean, dtype=np.float64)
    low, high = expected, np.ones(expected.shape)
    is_chernoff, least = half_width is chernoff.half_width, math.log(tail)
    # The exponent loses its digits below; with a larger expected value the bound is valid too.
    at_least = np.maximum(expected, LEAST_MEAN)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if is_chernoff:
            compatible = n * chernoff.exponent(middle, at_least) > least
        else:
            compatible = middle - half_width(n, middle, tail) <= expected
        low, high = np.where(compatible, middle, low), np.where(compatible, high, middle)
    return high


def confidence_interval(
    curve: LearningCurve,
    full_size: int,
    *,
    full_validation: int,
    failure: float,
    half_width: HalfWidth = hoeffding.half_width,
) -> Interval:
    """Return the interval of a learner's score at `full_size`, within [0, 1].

    Each end is the best one of all trainings, so it never expands ([1] Section "Algorithm").
    A training scored on all validation examples has its score as lower end. If it was also
    trained on all examples, both ends are its score. If the ends would cross, one of the
    conditions above does not hold, or an interval is wrong by chance; then the lower end, which
    needs fewer conditions, counts.
    Trainings with a score that is not finite count for nothing.

    Args:
        curve: the trainings so far; before the first, the interval is [0, 1].
        full_size: abs(D_tr) = N, the number of all training examples.
        full_validation: abs(D_te), the number of all validation examples.
        failure: d_c, the probability that one training's interval is wrong, in (0, 1).
        half_width: the inequality.

    Raises:
        ValueError: if a training lacks its training score or number of validation examples, has
            more of them than `full_validation`, or a score outside [0, 1].

    >>> curve = LearningCurve(0, (Observation(1000, 0.80, 0.85, n_validation=2000),))
    >>> interval = confidence_interval(curve, 10**6, full_validation=10**5, failure=0.002)
    >>> round(interval.lower, 6), round(interval.upper, 6)
    (0.758444, 0.917813)
    """
    lower, upper = 0.0, 1.0  # [1] Alg. 1: l_i <- 0, u_i <- 1
    for probe in curve.observations:
        if not probe.is_finite:
            continue  # bounds nothing; `LearningCurve.extended` drops its learner
        where = f"learner {curve.learner} at {probe.size:,} training examples"
        check_probe(probe, where, full_validation)
        if probe.size >= full_size and probe.n_validation == full_validation:
            return Interval(probe.score, probe.score)
        probe_lower, probe_upper = _ends(probe, full_validation, failure, half_width)
        lower, upper = max(lower, probe_lower), min(upper, probe_upper)
    return Interval(lower, max(lower, upper))


@lru_cache(CACHED_PROBES)
def _ends(
    probe: Observation, full_validation: int, failure: float, half_width: HalfWidth
) -> tuple[float, float]:
    """Return both ends of [1] Corollary 1 from one training alone."""
    assert probe.training_score is not None
    assert probe.n_validation is not None
    upper = upper_end(
        probe.training_score,
        probe.size,
        full_validation=full_validation,
        failure=failure,
        half_width=half_width,
    )
    if probe.n_validation == full_validation:
        return probe.score, float(upper)  # scored on all validation examples: no sampling error
    lower = lower_end(probe.score, probe.n_validation, failure=failure, half_width=half_width)
    return float(lower), float(upper)


def check_probe(probe: Observation, where: str, full_validation: int | None) -> None:
    """Raise a ValueError if no interval can be computed from an observation.

    Args:
        probe: the observation.
        where: its name in the message.
        full_validation: abs(D_te), the number of all validation examples, None if unknown.
    """
    if probe.training_score is None:
        raise ValueError(
            f"A confidence interval needs the training score of every training, but {where} has "
            "none. Report it as `training_score`, measured on the examples trained on."
        )
    if probe.n_validation is None:
        raise ValueError(
            f"A confidence interval needs the number of validation examples of every training, "
            f"but {where} has none. Report it as `n_validation`."
        )
    if not 1 <= probe.n_validation <= (full_validation or math.inf):
        raise ValueError(
            f"A training is scored on 1 to {full_validation or math.inf:,} validation examples, "
            f"the full held-out set, but {where} has {probe.n_validation:,}. Make the policy's "
            "`n_validation` the size of the full held-out set."
        )
    for name, score in (("score", probe.score), ("training score", probe.training_score)):
        if not 0.0 <= score <= 1.0:
            raise ValueError(
                f"A confidence interval needs scores in [0, 1], but the {name} of {where} is "
                f"{score}. Report a mean over examples, larger is better, such as accuracy."
            )
