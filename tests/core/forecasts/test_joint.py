"""The forecaster that uses what others gained, against a dense regression and relations."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

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
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.joint import DOUBLINGS
from optuna_daub.core.forecasts.joint import PRIOR
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.proposals import Given
from optuna_daub.core.proposals import LikeRecent
from tests.core.scenario import all_changed


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


def newcomer(pool: Pool) -> Forecast:
    """Return the forecast of a candidate; without parameters all are alike."""
    return Joint().candidates(replace(pool, proposer=Given(np.empty((1, 0)))), FULL).at(0)


def way(since: float, to: float, first: float, fading: float) -> float:
    """Return A, written down once more."""
    return ((first / since) ** fading - (first / to) ** fading) / (1.0 - 16.0**-fading)


@pytest.mark.parametrize("own", [1e-9, PRIOR.own])
def test_forecasts_are_the_answer_of_a_dense_regression(own: float) -> None:
    # If the variances do not depend on what is learnt, one system of equations says it all.
    prior = replace(PRIOR, of_gain=0.0, own=own, spread_weight=1e12)
    rng = np.random.default_rng(0)
    curves = [
        curve(i, {n: float(rng.normal(k, 0.3)) for k, n in enumerate((500, 900, 8000)[:length])})
        for i, length in enumerate([3, 2, 2, 1, 2, 3, 1, 2])
    ]
    pool, c = Pool(Curves(curves)), prior.fading
    first = np.array([x.observations[0].score for x in curves])
    unit = float(np.mean((first.max() - first) ** 0.25) ** 4)
    best: dict[int, float] = {}
    for n in (500, 900, 8000):
        here = [s.score for x in curves for s in x.observations if s.size <= n]
        best[n] = max(here)

    def row(since: int, to: int, score: float) -> tuple[np.ndarray, float]:
        ends = [500 * 2.0**k for k in range(DOUBLINGS)] + [math.inf]
        parts = [
            way(max(since, low), min(to, high), 500, c) if max(since, low) < min(to, high) else 0.0
            for low, high in pairwise(ends)
        ]
        q = unit * ((best[since] - score) / unit) ** prior.power
        walk = (prior.spread * (q + prior.least * unit)) ** 2 * sum(parts)
        return np.array([*parts, sum(parts) * q]), walk

    rows, walks, gains = [], [], []
    for place, known in enumerate(curves):
        for one, two in pairwise(known.observations):
            parts, walk = row(one.size, two.size, one.score)
            rows.append(np.append(parts, parts[:-1].sum() * np.eye(len(curves))[place]))
            walks.append(walk)
            gains.append(two.score - one.score)
    X, y = np.array(rows), np.array(gains)
    # Coefficients: a in each doubling, b, and the effect of each learner.
    mean = np.array([prior.gain * unit] * DOUBLINGS + [prior.closing] + [0.0] * len(curves))
    steps = np.arange(DOUBLINGS)
    before = np.diag([0.0] * DOUBLINGS + [prior.closing_sd**2] + [(own * unit) ** 2] * len(curves))
    drift = (prior.drift * unit) ** 2 * np.minimum.outer(steps, steps)
    before[:DOUBLINGS, :DOUBLINGS] = (prior.gain_sd * unit) ** 2 + drift
    gram = X @ before @ X.T + np.diag(walks)
    after = before - before @ X.T @ np.linalg.solve(gram, X @ before)
    mean = mean + before @ X.T @ np.linalg.solve(gram, y - X @ mean)
    found, sd = Joint(prior).beliefs(pool, FULL)
    for i in (1, 3, 6):
        last = curves[i].observations[-1]
        parts, walk = row(last.size, FULL, last.score)
        parts = np.append(parts, parts[:-1].sum() * np.eye(len(curves))[i])
        assert found[i] == pytest.approx(last.score + parts @ mean, rel=1e-3)
        if own < 1e-6:  # else the covariance of shared and own effects is left out
            variance = walk + parts @ after @ parts
            assert sd[i] ** 2 == pytest.approx(variance, rel=5e-3)


def test_one_learner_without_a_gain_leaves_the_others_their_own() -> None:
    prior = replace(PRIOR, spread=1e-9, spread_weight=1e12)
    flat = curve(0, dict.fromkeys(SIZES, 0.8))
    others = [curve(i, {500: 0.8 - i / 50}) for i in range(1, 9)]
    _, sd = Joint(prior).beliefs(Pool(Curves([flat, *others])), FULL)
    unit = float(np.mean((np.arange(9) / 50) ** 0.25) ** 4)
    least = prior.own * unit * way(500, FULL, 500, prior.fading)
    assert (sd[1:] >= least * (1 - 1e-9)).all()


@pytest.mark.parametrize("at", [900, 3798])
def test_a_look_shows_what_the_forecast_would_change_by(at: int) -> None:
    # Forecasts at N after one more score: their spread over that score is what the look says.
    scores = [0.80, 0.78, 0.75, 0.70, 0.69, 0.66, 0.60, 0.55]
    pool = Pool(Curves([curve(i, {500: y, 600: y + 0.01}) for i, y in enumerate(scores)]))
    # Nearly all else is known, so one more score changes nothing but this forecast.
    prior = replace(PRIOR, gain_sd=1e-6, drift=1e-6, closing_sd=1e-6, spread_weight=1e12)
    middle, sd = (float(part[2]) for part in Joint(prior).beliefs(pool, at))

    def mean_after(score: float) -> float:
        more = pool.put(pool.curves[2].extended(Observation(at, score)))
        return float(Joint(prior).forecasts(more, FULL)[2].mean)

    step = 1e-3 * sd
    slope = (mean_after(middle + step) - mean_after(middle - step)) / (2 * step)
    shown = Joint(prior).look(pool, at, FULL)[0][2]
    assert 0.0 < shown <= Joint(prior).beliefs(pool, FULL)[1][2]
    assert shown == pytest.approx(abs(slope) * sd, rel=0.25)


@given(pool=pools(), factor=st.sampled_from([0.001, 8.0, 1000.0]), shift=st.integers(-50, 50))
def test_affine_changes_of_scores_change_forecasts_alike(
    pool: Pool, factor: float, shift: int
) -> None:
    changed = all_changed(pool, lambda x: replace(x, score=factor * x.score + shift))
    before, after = Joint().forecasts(pool, FULL).all, Joint().forecasts(changed, FULL).all
    for level in (0.05, 0.5, 0.95):
        expected = factor * before.quantile(level) + shift
        assert after.quantile(level) == pytest.approx(expected, rel=1e-6, abs=1e-6 * factor)


@pytest.mark.parametrize("factor", [4.0**-450, 4.0**-270, 4.0**150])
@given(pool=pools())
def test_powers_of_four_change_no_digit_of_a_forecast(factor: float, pool: Pool) -> None:
    """The squares of scores below 1e-162 are 0."""
    changed = all_changed(pool, lambda x: replace(x, score=factor * x.score))
    before, after = Joint().forecasts(pool, FULL).all, Joint().forecasts(changed, FULL).all
    assert np.all(after.quantile(0.95) == factor * before.quantile(0.95))
    new, other = (newcomer(each) for each in (pool, changed))
    assert float(other.quantile(0.95)) == factor * float(new.quantile(0.95))
    shown, seen = (Joint().look(each, 1125, FULL)[0] for each in (pool, changed))
    assert np.all(seen == factor * shown)


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
    assert float(newcomer(pool).quantile(0.95)) == pytest.approx(0.7)


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
    assert math.isinf(float(newcomer(pool).quantile(0.9)))
    assert math.isinf(float(Joint().forecasts(pool, FULL)[0].quantile(0.9)))


def test_a_learner_without_scores_is_forecast_like_a_newcomer() -> None:
    pool = Pool(Curves([curve(0, {500: 0.7}), curve(1, {500: 0.8}), LearningCurve(2)]))
    forecast, new = Joint().forecasts(pool, FULL)[2], newcomer(pool)
    assert float(forecast.quantile(0.8)) == pytest.approx(float(new.quantile(0.8)))


@given(pool=pools(least=2), size=st.sampled_from([1125, FULL]))
def test_candidates_are_like_learners_after_one_training(pool: Pool, size: int) -> None:
    """With one score of each, all that is known of learners is known of candidates too."""
    curves = [curve(i, {c.size: c.score}) for i, c in pool.curves.items()]
    both = Pool(Curves(curves), proposer=Given(np.empty((1, 0))))
    mean, sd = (part[: len(curves)] for part in Joint().beliefs(both, size))
    middle, wide = (part[-1] for part in Joint().beliefs(both, size))
    assert middle == pytest.approx(mean.mean())
    assert wide**2 == pytest.approx(mean.var() + (sd**2).mean(), abs=1e-12)


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


@pytest.mark.parametrize("near", [0.0, 1e-155, 1e-70, 1e-30])
@pytest.mark.parametrize("far", [{500: -1e99}, {500: 0.0, 750: 0.1}, {500: 0.0, 750: -1e99}])
def test_forecasts_are_numbers_whatever_scores_range_over(
    near: float, far: dict[int, float]
) -> None:
    """Squares of the differences of these scores, or their inverses, are no floats."""
    own = [{500: near * i, 750: near * (i + 2)} for i in range(8)]
    pool = Pool(Curves(curve(i, scores) for i, scores in enumerate([*own, far])))
    assert np.isfinite(Joint().forecasts(pool, FULL).all.quantile(0.9)).all()
    assert math.isfinite(float(newcomer(pool).quantile(0.9)))


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
    means = 0.05 * 0.78 ** doublings[:-1] * steps
    gains = rng.normal(means, 0.95 * means / np.sqrt(steps), (300, len(steps)))
    scores = 0.6 + 0.01 * rng.normal(size=(300, 1)) + np.cumsum(gains, axis=1)
    curves = [
        curve(i, dict(zip(SIZES[1:], row, strict=True)) if i < 150 else {SIZES[1]: row[0]})
        for i, row in enumerate(scores)
    ]
    forecast = Joint().forecasts(Pool(Curves(curves)), FULL).all
    rest = slice(150, None)
    inside = (forecast.quantile(0.05)[rest] < scores[rest, -1]) & (
        scores[rest, -1] < forecast.quantile(0.95)[rest]
    )
    assert 0.80 < inside.mean() <= 1.0, inside.mean()


@pytest.mark.parametrize("count", [joint.N_RECENT - 1, joint.N_RECENT, joint.N_RECENT + 7])
def test_hopeless_learners_make_no_newcomer_promising_once_there_are_many(count: int) -> None:
    """At the size that all were trained on, a newcomer is like the recent ones: closed form."""
    scores = 0.8 + 0.001 * np.random.default_rng(0).permutation(count)
    hopeless = scores.copy()
    hopeless[np.argsort(scores)[:8]] -= 0.6

    def spread(of: np.ndarray) -> tuple[float, float]:
        curves = Curves([curve(i, {500: score}) for i, score in enumerate(of.tolist())])
        mean, sd = Joint().beliefs(Pool(curves, to_come=None, proposer=LikeRecent()), 500)
        return float(mean[-1]), float(sd[-1])

    recent, recent_hopeless = scores[-joint.N_RECENT :], hopeless[-joint.N_RECENT :]
    if count < joint.N_RECENT:
        assert spread(hopeless) == pytest.approx((recent_hopeless.mean(), recent_hopeless.std()))
    else:
        high, middle = np.quantile(recent, [0.9, 0.5])
        expected = middle, min(float(recent.std()), (high - middle) / 1.2816)
        assert spread(scores) == pytest.approx(expected)
        assert spread(hopeless) == pytest.approx((middle, (high - middle) / 1.2816))
