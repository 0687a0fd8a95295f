"""The forecaster that uses what others gained, against a slow transcription and relations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.forecasts import joint
from optuna_daub.core.forecasts.forecast import LOGISTIC
from optuna_daub.core.forecasts.joint import Joint


SIZES = (500, 750, 1125, 1688, 2532, 3798, 5697, 8000)
FULL = SIZES[-1]


def curve(learner: int, scores: dict[int, float]) -> LearningCurve:
    return LearningCurve(learner, tuple(Observation(n, y) for n, y in sorted(scores.items())))


@st.composite
def pools(draw: st.DrawFn, least: int = 1) -> Pool:
    """Pools of learners with some of the sizes; scores are whole thousandths."""
    curves = []
    for learner in range(draw(st.integers(least, 8))):
        sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=5, unique=True))
        scores = draw(st.lists(st.integers(0, 1000), min_size=len(sizes), max_size=len(sizes)))
        curves.append(curve(learner, {n: y / 1000 for n, y in zip(sizes, scores, strict=True)}))
    return Pool(Curves(curves))


def slow_forecasts(pool: Pool, size: int) -> list[tuple[float, float]]:
    """Mean and standard deviation of every learner's score, learner by learner."""
    curves = list(pool.curves.values())
    firsts = sorted(c.observations[0].score for c in curves)

    def quantile(p: float) -> float:
        place = p * (len(firsts) - 1)
        low = math.floor(place)
        high = min(low + 1, len(firsts) - 1)
        return firsts[low] + (firsts[high] - firsts[low]) * (place - low)

    unit = quantile(0.9) - quantile(0.5) or firsts[-1] - firsts[0]
    widest = joint.WIDEST_GAP * unit

    def part(a: float, b: float, j: int) -> float:
        return max(0.0, min(b, j + 1) - max(a, j))

    def weight(c: LearningCurve) -> float:
        behind = firsts[-1] - c.observations[0].score
        return 1.0 / (1.0 + (behind / (joint.NEAR * unit)) ** 2) if behind > 0 else 1.0

    log = math.log2
    lowest = math.floor(min(log(c.observations[0].size) for c in curves))
    gain: dict[int, float] = {}
    expected = joint.FIRST_GAIN * unit
    for j in range(lowest, joint.LARGEST):
        total, seen = joint.PRIOR_WEIGHT * expected, joint.PRIOR_WEIGHT
        for c in curves:
            for one, two in zip(c.observations, c.observations[1:], strict=False):
                shares = {
                    i: part(log(one.size), log(two.size), i) * joint.FADING**i
                    for i in range(lowest, joint.LARGEST)
                }
                total += weight(c) * (two.score - one.score) * shares[j] / sum(shares.values())
                seen += weight(c) * part(log(one.size), log(two.size), j)
        gain[j] = total / seen
        expected = joint.FADING * gain[j]

    def mean_gain(a: float, b: float) -> float:
        return sum(g * part(a, b, j) for j, g in gain.items())

    def variance(a: float, b: float, gap: float) -> float:
        squares = sum(g * g * part(a, b, j) for j, g in gain.items())
        return max(0.0, b - a) * (joint.GAP_SHARE * gap) ** 2 + joint.GAIN_SHARE**2 * squares

    ends = [(log(c.observations[0].size), log(c.size)) for c in curves]
    off = [
        c.score - c.observations[0].score - mean_gain(*end)
        for c, end in zip(curves, ends, strict=True)
    ]
    top, bottom, count = joint.SPREAD_WEIGHT, joint.SPREAD_WEIGHT, -1.0
    for c, end, lead in zip(curves, ends, off, strict=True):
        if len(c.observations) > 1:
            behind = firsts[-1] - c.observations[0].score
            deviation = math.sqrt(variance(*end, min(behind, widest)))
            times = abs(lead) / deviation if deviation else (math.inf if lead else 0.0)
            top += weight(c) * min(joint.OUTLIER, times) / joint.MEAN_DEVIATION
            count += weight(c)
    phi = top / (bottom + max(0.0, count))

    def mean(i: int, to: float) -> float:
        ahead, behind = mean_gain(ends[i][1], to), mean_gain(*ends[i])
        ratio = min(max(ahead / behind, 0.0), 1.0) if behind > 0 else 0.0
        lead = off[i] if len(curves[i].observations) > 1 else 0.0
        return curves[i].score + ahead + joint.OWN_SHARE * lead * ratio

    furthest = max(end for _, end in ends)
    best = max(mean(i, furthest) for i in range(len(curves)))
    answers = []
    for i in range(len(curves)):
        gap = min(best - mean(i, furthest), widest)
        deviation = phi * math.sqrt(variance(ends[i][1], log(size), gap))
        answers.append((mean(i, log(size)), deviation))
    return answers


@given(pool=pools(), size=st.sampled_from(SIZES))
def test_forecasts_are_those_of_the_slow_transcription(pool: Pool, size: int) -> None:
    forecasts = Joint().forecasts(pool, size)
    for i, (mean, deviation) in enumerate(slow_forecasts(pool, size)):
        assert float(forecasts[i].mean) == pytest.approx(mean, abs=1e-9)
        width = float(forecasts[i].quantile(0.9) - forecasts[i].quantile(0.5))
        scale = deviation * math.sqrt(3) / math.pi
        assert width == pytest.approx(scale * math.log(9), abs=1e-7)


@given(pool=pools())
def test_a_learner_trained_on_the_size_has_its_score(pool: Pool) -> None:
    forecasts = Joint().forecasts(pool, FULL)
    for learner, known in pool.curves.items():
        if known.size == FULL:
            assert float(forecasts[learner].mean) == known.score
            assert float(forecasts[learner].quantile(0.99)) == known.score


@given(pool=pools(), factor=st.sampled_from([0.001, 8.0, 1000.0]), shift=st.integers(-50, 50))
def test_affine_changes_of_scores_change_forecasts_alike(
    pool: Pool, factor: float, shift: int
) -> None:
    changed = Pool(
        Curves(
            LearningCurve(
                i, tuple(Observation(x.size, factor * x.score + shift) for x in c.observations)
            )
            for i, c in pool.curves.items()
        )
    )
    before, after = Joint().forecasts(pool, FULL).all, Joint().forecasts(changed, FULL).all
    for level in (0.05, 0.5, 0.95):
        expected = factor * before.quantile(level) + shift
        assert after.quantile(level) == pytest.approx(expected, rel=1e-6, abs=1e-6 * factor)


@given(pool=pools(), seed=st.integers(0, 99))
def test_the_order_of_learners_does_not_matter(pool: Pool, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(pool.curves))
    curves = [LearningCurve(int(order[i]), c.observations) for i, c in pool.curves.items()]
    other = Joint().forecasts(Pool(Curves(curves)), FULL)
    for i, forecast in Joint().forecasts(pool, FULL).items():
        same = other[int(order[i])]
        assert float(same.quantile(0.9)) == pytest.approx(float(forecast.quantile(0.9)), abs=1e-9)


def test_equal_scores_are_forecast_to_stay() -> None:
    pool = Pool(Curves([curve(i, {500: 0.7}) for i in range(4)]))
    forecast = Joint().forecasts(pool, FULL).all
    assert np.all(forecast.quantile(0.95) == 0.7)
    assert float(Joint().newcomer(pool, FULL).quantile(0.95)) == pytest.approx(0.7)


def test_gains_of_others_carry_over() -> None:
    """The one left behind is forecast to gain what the two promoted gained."""
    pool = Pool(
        Curves([*(curve(i, {500: 0.70, FULL: 0.80}) for i in range(20)), curve(20, {500: 0.70})])
    )
    assert float(Joint().forecasts(pool, FULL)[20].mean) == pytest.approx(0.80, abs=0.005)


def test_forecasts_widen_with_the_gap_and_with_what_is_ahead() -> None:
    scores = 0.800, 0.799, 0.796, 0.70, 0.69, 0.68, 0.67
    pool = Pool(Curves([curve(i, {500: score}) for i, score in enumerate(scores)]))

    def width(learner: int, size: int) -> float:
        forecast = Joint().forecasts(pool, size)[learner]
        return float(forecast.quantile(0.9) - forecast.quantile(0.5))

    assert width(1, FULL) < width(2, FULL)
    assert width(1, 1688) < width(1, FULL)


def test_without_scores_anything_may_come() -> None:
    pool = Pool(to_come=2).with_newcomer(0)
    assert math.isinf(float(Joint().newcomer(pool, FULL).quantile(0.9)))
    assert math.isinf(float(Joint().forecasts(pool, FULL)[0].quantile(0.9)))


def test_a_learner_without_scores_is_forecast_like_a_newcomer() -> None:
    pool = Pool(Curves([curve(0, {500: 0.7}), curve(1, {500: 0.8}), LearningCurve(2)]))
    forecast, newcomer = Joint().forecasts(pool, FULL)[2], Joint().newcomer(pool, FULL)
    assert float(forecast.quantile(0.8)) == pytest.approx(float(newcomer.quantile(0.8)))


def trees(i: int, *, size: int = 500) -> LearningCurve:
    """Of more trees more is known to come; every fifth learner failed before its first score."""
    if i % 5 == 4:
        return LearningCurve(i, parameters={"trees": i + 1}).drop("it raised")
    return LearningCurve(i, (Observation(size, 0.6 + 0.01 * i),), parameters={"trees": i + 1})


def test_newcomers_are_forecast_by_their_parameters() -> None:
    begun = [trees(i) for i in range(12)]
    few, many, unknown = (
        LearningCurve(12 + i, parameters=point)
        for i, point in enumerate(({"trees": 1}, {"trees": 12}, {}))
    )
    pool = Pool(Curves([*begun, few, many, unknown]))
    low, high, any_ = (Joint().forecasts(pool, FULL)[i] for i in (12, 13, 14))
    newcomer = Joint().newcomer(pool, FULL)
    assert float(any_.mean) == pytest.approx(float(newcomer.mean))
    assert float(low.quantile(0.9)) < float(newcomer.mean) < float(high.quantile(0.1))
    # Of those that were dropped without a score nothing is asked.
    dropped = Joint().forecasts(pool, FULL)[4]
    assert float(dropped.mean) == pytest.approx(float(newcomer.mean))


def test_where_first_scores_tie_an_affine_change_changes_nothing() -> None:
    """Means of equal numbers differ from them by rounding, now and then."""
    for shift in (0.0, 0.1, 0.7, 1 / 3, 1e3):
        tied = [
            LearningCurve(i, (Observation(500, 0.6 + shift),), parameters={"trees": i})
            for i in range(6)
        ]
        pool = Pool(Curves([*tied, LearningCurve(6, parameters={"trees": 9})]))
        forecast = Joint().forecasts(pool, FULL)[6]
        assert float(forecast.mean) == pytest.approx(0.6 + shift)


def test_scores_that_are_no_numbers_do_not_spread() -> None:
    seen = curve(0, {500: 0.7}).extended(Observation(750, math.nan))
    pool = Pool(Curves([seen, curve(1, {500: 0.8, 750: 0.82})]))
    assert np.isfinite(Joint().forecasts(pool, FULL).all.quantile(0.9)).all()


@settings(deadline=None)
@given(seed=st.integers(0, 9))
def test_intervals_hold_where_the_model_does(seed: int) -> None:
    """Learners whose gains vary as assumed stay inside their 90 % interval about as often."""
    rng = np.random.default_rng(seed)
    doublings = np.log2(np.array(SIZES) / SIZES[0])
    steps = np.diff(doublings)
    means = 0.05 * joint.FADING ** doublings[:-1] * steps
    gains = rng.normal(means, joint.GAIN_SHARE * means / np.sqrt(steps), (300, len(steps)))
    scores = 0.6 + 0.01 * rng.normal(size=(300, 1)) + np.cumsum(gains, axis=1)
    firsts = scores[:, 0]
    curves = [
        curve(i, dict(zip(SIZES[1:], row, strict=True)) if i < 150 else {SIZES[1]: row[0]})
        for i, row in enumerate(scores)
    ]
    forecast = Joint().forecasts(Pool(Curves(curves)), FULL).all
    rest = slice(150, None)
    inside = (forecast.quantile(0.05)[rest] < scores[rest, -1]) & (
        scores[rest, -1] < forecast.quantile(0.95)[rest]
    )
    assert firsts.std() > 0
    assert 0.80 < inside.mean() <= 1.0, inside.mean()


@pytest.mark.parametrize("count", [joint.RECENT - 1, joint.RECENT, joint.RECENT + 7])
def test_hopeless_learners_make_no_newcomer_promising_once_there_are_many(count: int) -> None:
    """At the size that all were trained on, a newcomer is like the recent ones: closed form."""
    scores = 0.8 + 0.001 * np.random.default_rng(0).permutation(count)
    hopeless = scores.copy()
    hopeless[np.argsort(scores)[:8]] -= 0.6

    def spread(of: np.ndarray) -> tuple[float, float]:
        newcomer = Joint().newcomer(
            Pool(Curves([curve(i, {500: score}) for i, score in enumerate(of.tolist())])), 500
        )
        return float(newcomer.mean), float(newcomer.scale / LOGISTIC)

    recent, recent_hopeless = scores[-joint.RECENT :], hopeless[-joint.RECENT :]
    if count < joint.RECENT:
        assert spread(hopeless) == pytest.approx((recent_hopeless.mean(), recent_hopeless.std()))
    else:
        high, middle = np.quantile(recent, [0.9, 0.5])
        expected = middle, min(float(recent.std()), (high - middle) / 1.2816)
        assert spread(scores) == pytest.approx(expected)
        assert spread(hopeless) == pytest.approx((middle, (high - middle) / 1.2816))
