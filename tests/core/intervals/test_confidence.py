"""ABC's intervals: formulas.md 2.9, exact error probabilities, and simulated coverage."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.stats import binom
from scipy.stats import hypergeom

from optuna_daub.core import Interval
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import clopper_pearson
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.core.intervals.confidence import HalfWidth
from optuna_daub.core.intervals.confidence import confidence_interval
from optuna_daub.core.intervals.confidence import lower_end
from optuna_daub.core.intervals.confidence import sample_above
from optuna_daub.core.intervals.confidence import upper_end
from tests.core.intervals import INEQUALITIES


every_inequality = pytest.mark.parametrize(
    "half_width", INEQUALITIES.values(), ids=INEQUALITIES.keys()
)


@pytest.mark.parametrize(
    ("n_learners", "upper", "lower"),
    [(5, 1.017813, 0.758444), (80, 1.039182, 0.744204), (1, 1.001489, 0.769632)],
)
def test_ends_of_the_paper(n_learners: int, upper: float, lower: float) -> None:
    failure = 0.05 / n_learners**2
    # The table has a training score of 0.95 and no cut at 1; Hoeffding's width is that at 0.85.
    end = upper_end(0.85, 1000, full_validation=100_000, failure=failure)
    assert round(float(end) + 0.10, 6) == upper
    assert upper_end(0.95, 1000, full_validation=100_000, failure=failure) == 1.0
    assert round(float(lower_end(0.80, 2000, failure=failure)), 6) == lower


def test_samples_for_a_term_of_five_in_a_thousand() -> None:
    tail = 0.002 / 4
    enough, fewer = hoeffding.half_width([152_019, 152_018], 0.5, tail)
    assert enough <= 0.005 < fewer


@every_inequality
@pytest.mark.parametrize("n", [1, 9, 50])
@pytest.mark.parametrize("tail", [0.2, 0.01])
@pytest.mark.parametrize("population", [math.inf, 1, 1.4, 3])
def test_no_end_fails_more_often_than_promised(
    half_width: HalfWidth, n: int, tail: float, population: float
) -> None:
    """Every step of the theorems, with exact probabilities; `population` in samples."""
    counts = np.arange(n + 1)
    means = counts / n
    width = half_width(n, means, tail)
    lower, upper = np.maximum(0, means - width), np.minimum(1, means + width)
    if math.isinf(population):
        expected = np.concatenate([np.linspace(0, 1, 101), upper + 1e-9, lower - 1e-9])
        expected = expected[(expected >= 0) & (expected <= 1)][:, np.newaxis]
        chance = binom.pmf(counts, n, expected)
    else:  # a sample drawn without replacement
        size = math.ceil(population * n)
        right = np.arange(size + 1)[:, np.newaxis]
        expected, chance = right / size, hypergeom.pmf(counts, size, right, n)
    above = sample_above(expected, n, tail, half_width)
    rounding = 1e-12
    for failed in (
        lower > expected + rounding,
        upper < expected - rounding,
        means > above + rounding,
    ):
        assert (chance * failed).sum(axis=1).max() <= tail * (1 + 1e-9)


@every_inequality
def test_a_better_score_never_lowers_an_end(half_width: HalfWidth) -> None:
    """The fitness condition replaces one training score by a larger one: the end must follow."""
    for size in (3, 40, 1000):
        scores = np.linspace(0, 1, 501)
        upper = upper_end(scores, size, full_validation=300, failure=0.1, half_width=half_width)
        lower = lower_end(scores, size, failure=0.1, half_width=half_width)
        assert np.diff(upper).min() >= -1e-12
        assert np.diff(lower).min() >= -1e-12


@given(mean=st.floats(0, 1), n=st.integers(1, 10**7), tail=st.floats(1e-9, 0.9))
def test_a_sample_under_hoeffding_is_as_far_as_the_expected_value(
    mean: float, n: int, tail: float
) -> None:
    end = mean + math.sqrt(math.log(1 / tail) / (2 * n))
    assert sample_above(mean, n, tail, hoeffding.half_width) == pytest.approx(min(1, end))


expectations = st.floats(1e-6, 1) | st.sampled_from([0.5, 1.0])


@given(mean=expectations, n=st.integers(1, 10**7), tail=st.floats(1e-9, 0.9))
def test_a_sample_under_chernoff_reaches_where_the_exponent_gives_the_tail(
    mean: float, n: int, tail: float
) -> None:
    end = float(sample_above(mean, n, tail, chernoff.half_width))
    assert mean <= end <= 1
    if end < 1:
        assert n * chernoff.exponent(end, mean) <= math.log(tail)
    below = end - 1e-9
    if below > mean:
        assert n * chernoff.exponent(below, mean) > math.log(tail)


@given(mean=expectations, n=st.integers(1, 10**7), tail=st.floats(1e-9, 0.9))
@settings(max_examples=20)
def test_a_sample_under_chernoff_is_never_above_where_widths_reach_back(
    mean: float, n: int, tail: float
) -> None:
    def copy(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
        return chernoff.half_width(n, mean, tail)

    end, by_widths = (
        float(sample_above(mean, n, tail, each)) for each in (chernoff.half_width, copy)
    )
    assert end <= by_widths + 1e-8
    if end > 0.5:  # widths are those of the side towards 1/2
        assert end == pytest.approx(by_widths, abs=1e-8)


@given(mean=st.floats(0, 1e-6), n=st.integers(1, 10**7), tail=st.floats(1e-9, 0.9))
def test_a_sample_under_chernoff_of_a_tiny_expected_value_is_between_its_neighbours(
    mean: float, n: int, tail: float
) -> None:
    end = float(sample_above(mean, n, tail, chernoff.half_width))
    assert mean <= end <= float(sample_above(2e-6, n, tail, chernoff.half_width))


@pytest.mark.parametrize("half_width", [massart.half_width, clopper_pearson.half_width])
def test_is_never_wider_than_hoeffding(half_width: HalfWidth) -> None:
    scores = np.linspace(0, 1, 201)
    failure = 0.05 / 40**2
    for size in (100, 1000, 10_000, 100_000):

        def ends(inequality: HalfWidth, size: int = size) -> tuple[NDArray[np.float64], ...]:
            upper = upper_end(
                scores, size, full_validation=10**5, failure=failure, half_width=inequality
            )
            return upper, lower_end(scores, 2 * size, failure=failure, half_width=inequality)

        (upper, lower), (widest, lowest) = ends(half_width), ends(hoeffding.half_width)
        assert (upper - widest).max() <= 1e-12
        assert (lowest - lower).max() <= 1e-12


CELLS = 42
"""Values of the one feature; a classifier is one of 41 thresholds and which side is positive."""

TRAIN_SIZES = (100, 500, 2000)
TEST_SIZES = (200, 1000, 2000)
"""Nested samples; the last of each are all the data."""


@dataclass
class Simulation:
    """Runs of exact empirical-risk minimisation over 82 threshold classifiers."""

    noise: float
    runs: int = 3000

    def __post_init__(self) -> None:
        rng = np.random.default_rng(round(100 * self.noise))
        positive = np.where(np.arange(CELLS) < CELLS / 2, self.noise, 1 - self.noise)
        chance = np.stack([1 - positive, positive], axis=1).ravel() / CELLS

        def nested(sizes: tuple[int, ...]) -> NDArray[np.int64]:
            blocks = np.diff(sizes, prepend=0)
            drawn = [rng.multinomial(block, chance, size=self.runs) for block in blocks]
            return np.cumsum(drawn, axis=0).reshape(len(sizes), self.runs, CELLS, 2)

        on_train, on_test = accuracies(nested(TRAIN_SIZES)), accuracies(nested(TEST_SIZES))
        best = on_train.argmax(axis=2)[..., np.newaxis]  # H_Str, by size and run
        self.training_scores = np.take_along_axis(on_train, best, 2)[..., 0]
        self.scores = np.take_along_axis(on_test, best, 2)[..., 0]  # on S_te of the same step
        self.scores_on_all = np.take_along_axis(on_test[-1:], best, 2)[..., 0]
        self.answer = self.scores_on_all[-1]  # A = acc(H_Dtr, D_te)

    def misses(self, step: int, failure: float, half_width: HalfWidth) -> tuple[int, int]:
        """Return how many runs have A above and below the interval of a probe."""
        upper = of_each(
            upper_end,
            self.training_scores[step],
            TRAIN_SIZES[step],
            full_validation=TEST_SIZES[-1],
            failure=failure,
            half_width=half_width,
        )
        lower = of_each(
            lower_end, self.scores[step], TEST_SIZES[step], failure=failure, half_width=half_width
        )
        return int((self.answer > upper).sum()), int((self.answer < lower).sum())


@cache
def simulation_of(noise: float) -> Simulation:
    """Return the runs at this noise, which several tests look at."""
    return Simulation(noise)


def of_each(
    rule: Callable[..., NDArray[np.float64]], scores: NDArray[np.float64], *args: Any, **named: Any
) -> NDArray[np.float64]:
    """Return the end of each score, by `upper_end` or `lower_end`; equal scores are computed once.

    Thousands of runs have some hundred different scores.
    """
    values, place = np.unique(scores, return_inverse=True)
    return rule(values, *args, **named)[place]


def accuracies(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the accuracy of the 82 classifiers on samples given as counts (..., cell, label)."""
    below = np.cumsum(counts, axis=-2)[..., :-1, :]
    total = counts.sum(axis=-2)[..., np.newaxis, :]
    right = below[..., 0] + (total - below)[..., 1]
    size = counts.sum(axis=(-2, -1))[..., np.newaxis]
    return np.asarray(np.concatenate([right, size - right], axis=-1) / size)


@pytest.mark.parametrize("noise", [0.1, 0.2, 0.3, 0.4, 0.5])
def test_covers_exact_empirical_risk_minimisers(noise: float) -> None:
    simulation, failure = simulation_of(noise), 0.2
    for name, half_width in INEQUALITIES.items():
        for step, size in enumerate(TRAIN_SIZES):
            above, below = simulation.misses(step, failure, half_width)
            print(f"noise {noise}, {size} examples, {name}: {above} above, {below} below")
            assert above <= simulation.runs * failure / 2
            assert above + below <= simulation.runs * failure


def test_the_simulation_can_tell_a_wrong_interval() -> None:
    def overconfident(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
        return hoeffding.half_width(n, mean, tail) / 8

    simulation = simulation_of(0.1)
    above, below = simulation.misses(0, 0.2, overconfident)
    assert above + below > simulation.runs * 0.2, f"{above} above, {below} below"


def test_an_exact_lower_end_rests_on_more_data_not_hurting() -> None:
    """Scored on all validation examples, nothing is left to sample: only learning can go wrong."""
    simulations = {noise: simulation_of(noise) for noise in (0.1, 0.2, 0.3, 0.4, 0.5)}
    worse = {
        noise: float(np.mean(found.answer < found.scores_on_all[1]))
        for noise, found in simulations.items()
    }
    print(f"trained on 2,000 a worse score than on 500: {worse}")
    assert max(worse[noise] for noise in (0.1, 0.2, 0.3, 0.4)) <= 0.2
    assert worse[0.5] > 0.2, "labels that are pure noise cannot be learned"


@every_inequality
def test_covers_a_learner_that_learns_nothing(half_width: HalfWidth) -> None:
    """One hypothesis only: the training score is unbiased, the tightest case of Theorem 1."""
    rng = np.random.default_rng(0)
    runs, failure, full = 10_000, 0.2, 500
    for truth in (0.5, 0.8, 0.97):
        training_score = rng.binomial(200, truth, runs) / 200
        on_sample = rng.binomial(400, truth, runs)
        answer = (on_sample + rng.binomial(full - 400, truth, runs)) / full
        upper = of_each(
            upper_end,
            training_score,
            200,
            full_validation=full,
            failure=failure,
            half_width=half_width,
        )
        lower = of_each(lower_end, on_sample / 400, 400, failure=failure, half_width=half_width)
        above, below = (answer > upper).sum(), (answer < lower).sum()
        print(f"{truth}: {above} above, {below} below of {runs}")
        assert above <= runs * failure / 2
        assert below <= runs * failure / 2


N, D_TE, FAILURE = 64_000, 20_000, 0.002

scores = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 0.9, 1.0]))


@st.composite
def curves(draw: st.DrawFn) -> LearningCurve:
    sizes = draw(st.sets(st.sampled_from([1000 * 2**k for k in range(7)])))
    probes = [
        Observation(size, draw(scores), draw(scores), min(2 * size, D_TE))
        for size in sorted(sizes)
    ]
    return LearningCurve(3, tuple(probes))


def interval(curve: LearningCurve, half_width: HalfWidth = hoeffding.half_width) -> Interval:
    return confidence_interval(
        curve, N, full_validation=D_TE, failure=FAILURE, half_width=half_width
    )


@every_inequality
@given(curve=curves())
def test_lies_in_the_unit_interval_and_never_expands(
    half_width: HalfWidth, curve: LearningCurve
) -> None:
    known = [
        interval(replace(curve, observations=curve.observations[:upto]), half_width)
        for upto in range(len(curve.observations) + 1)
    ]
    assert known[0] == Interval(0.0, 1.0)
    for earlier, later in pairwise(known):
        assert 0 <= later.lower <= later.upper <= 1
        assert later.upper - later.lower <= earlier.upper - earlier.lower
    on_samples = [seen for seen in known if seen.lower < seen.upper]  # the ends have not crossed
    for earlier, later in pairwise(on_samples):
        assert earlier.lower <= later.lower
        assert later.upper <= earlier.upper


def test_ends_are_exact_where_all_data_are_used() -> None:
    some = Observation(32_000, 0.80, 0.85, 10_000)
    tested_on_all = replace(some, n_validation=D_TE)
    trained_on_all = replace(some, size=N)
    on_all = replace(tested_on_all, size=N)
    assert interval(LearningCurve(0, (some,))).lower < 0.80
    assert interval(LearningCurve(0, (tested_on_all,))).lower == 0.80
    assert interval(LearningCurve(0, (tested_on_all,))).upper > 0.85
    assert interval(LearningCurve(0, (trained_on_all,))).lower < 0.80
    assert interval(LearningCurve(0, (trained_on_all,))).upper > 0.85
    assert interval(LearningCurve(0, (on_all,))) == Interval(0.80, 0.80)
    contradicted = Observation(1000, 0.99, 0.99, 2000), on_all
    assert interval(LearningCurve(0, contradicted)) == Interval(0.80, 0.80)


def test_the_lower_end_stands_where_they_cross() -> None:
    """A training score this far below the validation score breaks the fitness condition."""
    crossed = interval(LearningCurve(0, (Observation(32_000, 0.90, 0.60, D_TE),)))
    assert crossed == Interval(0.90, 0.90)


@pytest.mark.parametrize(
    "failed",
    [
        Observation(2000, math.nan),
        Observation(2000, 0.95, math.nan, 4000),
        Observation(2000, 0.95, -math.inf, 4000),
        Observation(2000, 1e200, 0.95, 4000),
        Observation(N, 0.95, math.nan, D_TE),
    ],
)
def test_a_failed_probe_says_nothing(failed: Observation) -> None:
    seen = LearningCurve(0, (Observation(1000, 0.80, 0.85, 2000),))
    dropped = seen.extended(failed)
    assert dropped.cause == "collapsed"
    assert interval(dropped) == interval(seen)


@pytest.mark.parametrize(
    ("probe", "complaint"),
    [
        (Observation(1000, 0.8, None, 2000), "training score of every training.*`training_score`"),
        (Observation(1000, 0.8, 0.9, None), "number of validation examples.*`n_validation`"),
        (Observation(1000, 0.8, 0.9, 20_001), "1 to 20,000 validation.* has 20,001"),
        (Observation(1000, 0.8, 0.9, 0), "1 to 20,000 validation.* has 0"),
        (Observation(1000, -0.2, 0.9, 2000), r"\[0, 1\], but the score of .* -0.2.*accuracy"),
        (Observation(1000, 87.0, 0.9, 2000), r"\[0, 1\], but the score of .* 87.0.*accuracy"),
        (Observation(1000, 0.8, 1.5, 2000), r"\[0, 1\], but the training score .* 1.5"),
    ],
)
def test_says_which_learner_and_size_lacks_what(probe: Observation, complaint: str) -> None:
    with pytest.raises(ValueError, match="learner 3 at 1,000 training examples") as raised:
        interval(LearningCurve(3, (probe,)))
    raised.match(complaint)
