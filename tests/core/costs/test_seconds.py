"""The model of seconds: scikit-learn's Gaussian process as an oracle, relations, slow calls."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from optuna_daub.core.costs.points import Points
from optuna_daub.core.costs.prior import PRIOR
from optuna_daub.core.costs.prior import Prior
from optuna_daub.core.costs.seconds import LEVEL_SD
from optuna_daub.core.costs.seconds import MOST_TUNED
from optuna_daub.core.costs.seconds import Fitted
from optuna_daub.core.costs.seconds import fit
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


Array = NDArray[np.float64]

FULL = 64_000
SIZES = np.log([1000.0, 4000.0, 16_000.0])
TREES = Range(1, 20, is_log=True, is_whole=True)
SPACE = Space((("a", Range(0.0, 1.0)), ("trees", TREES), ("word", Words((0, 1, 2)))))


def numbers(count: int) -> Space:
    """A space of numbers from 0 to 1."""
    return Space(tuple((f"x{i}", Range(0.0, 1.0)) for i in range(count)))


@dataclass(frozen=True)
class Made:
    """Learners whose seconds follow from their points, and what was measured of them."""

    rows: Array
    space: Space
    learner: NDArray[np.int64]
    log_size: Array
    log_seconds: Array

    def fitted(self) -> Fitted:
        """The model."""
        return fit(self.rows, self.space, self.learner, self.log_size, self.log_seconds, FULL)


def made(seed: int, count: int = 12, noise: float = 0.1) -> Made:
    """Two numbers and a word; every learner on the smallest size, some further."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.random((count, 2)), rng.integers(0, 3, count)])
    learner = np.repeat(np.arange(count), rng.integers(1, 4, count))
    place = np.concatenate([np.arange(n) for n in np.bincount(learner)])
    log_size = SIZES[place]
    level = 3.0 * rows[:, 0] + np.array([0.0, 1.0, -1.0])[rows[:, 2].astype(int)]
    log_seconds = level[learner] + 0.8 * (log_size - math.log(FULL))
    log_seconds += rng.normal(0.0, noise, len(learner))
    return Made(rows, SPACE, learner, log_size, log_seconds)


def drawn(seed: int, count: int = 7) -> Array:
    """Points of the same space."""
    rng = np.random.default_rng(1000 + seed)
    return np.column_stack([rng.random((count, 2)), rng.integers(0, 3, count)])


@pytest.mark.parametrize("seed", range(5))
def test_given_scales_and_weights_it_is_a_gaussian_process(seed: int) -> None:
    """Scikit-learn's, on observations whose covariance is written out term by term."""
    data = made(seed, count=10)
    model, new = data.fitted(), drawn(seed)
    everyone = np.concatenate([data.rows, new])
    n = len(data.learner)
    linear, smooth, own, own_growth, noise = model.variances
    columns, square = model.points.at(everyone).linear
    by_point = linear * columns @ columns.T + smooth * np.exp(
        -0.5
        * _square_distances(everyone)
        / (PRIOR.length**2 * np.mean(_square_distances(data.rows)) * 10 / 9)
    )
    assert np.diagonal(linear * columns @ columns.T) == pytest.approx(linear * square)
    # The observations, and every point on two sizes.
    ids = np.concatenate([data.learner, *[np.arange(len(everyone))] * 2])
    sizes = np.concatenate([data.log_size, np.repeat(np.log([16_000.0, 64_000.0]), len(everyone))])
    size = sizes - math.log(FULL)
    growth = size + PRIOR.pivot
    late = (np.exp(PRIOR.kappa * size) - np.exp(-PRIOR.kappa * PRIOR.pivot)) / PRIOR.kappa
    same, both = ids[:, None] == ids, np.outer(growth, growth)
    covariance = (
        LEVEL_SD**2
        + PRIOR.alpha_sd**2 * both
        + PRIOR.late_sd**2 * np.outer(late, late)
        + by_point[np.ix_(ids, ids)] * (1.0 + PRIOR.growth_by_point**2 * both)
        + same * (own + own_growth * (both + PRIOR.late_by_own**2 * np.outer(late, late)))
    )
    order = np.argsort(data.learner, kind="stable")
    trust = np.empty(n)
    trust[order] = model.trust
    expected = model.middle + PRIOR.alpha * growth + PRIOR.late * late
    trees = np.log1p(20.0 ** everyone[:, 1])
    expected += PRIOR.count_mean * (trees - trees[:10].mean())[ids]
    seconds = np.exp(data.log_seconds)
    known = noise / trust + (PRIOR.jitter * seconds.mean() / seconds) ** 2
    oracle = GaussianProcessRegressor(_Given(covariance), alpha=known, optimizer=None)
    places = np.arange(len(ids), dtype=float)[:, None]
    oracle.fit(places[:n], data.log_seconds - expected[:n])
    wanted, wanted_sd = oracle.predict(places[n:], return_std=True)
    own_ids = np.concatenate([np.arange(10), np.full(len(new), -1)])
    mean, sd = model.predict(everyone, np.log([16_000.0, 64_000.0]), own_ids)
    assert mean.T.ravel() == pytest.approx(wanted + expected[n:])
    widened = np.tile(np.where(own_ids < 0, model.calibration, 1.0), 2)
    assert sd.T.ravel() == pytest.approx(np.sqrt(widened * (wanted_sd**2 + noise)), rel=1e-4)


class _Given(Kernel):  # type: ignore[misc]
    """A kernel of places in a matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def is_stationary(self) -> bool:
        """Return whether it depends on distances alone."""
        return False

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Array:
        del eval_gradient
        first = X.astype(int).ravel()
        second = first if Y is None else Y.astype(int).ravel()
        return np.asarray(self.matrix[np.ix_(first, second)])

    def diag(self, X: Array) -> Array:
        """Return variances."""
        return np.asarray(np.diagonal(self.matrix)[X.astype(int).ravel()])


def _square_distances(rows: Array) -> Array:
    apart = rows[:, None] - rows
    return np.asarray((apart[..., :2] ** 2).sum(axis=-1) + (apart[..., 2] != 0))


@given(st.integers(0, 99), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_of_learners_and_observations_does_not_matter(seed: int, random: object) -> None:
    data, new = made(seed), drawn(seed)
    rng = np.random.default_rng(seed)
    learners, seen = rng.permutation(len(data.rows)), rng.permutation(len(data.learner))
    other = Made(
        data.rows[learners],
        data.space,
        np.argsort(learners)[data.learner][seen],
        data.log_size[seen],
        data.log_seconds[seen],
    )
    for one, two in zip(
        data.fitted().predict(new, SIZES), other.fitted().predict(new, SIZES), strict=True
    ):
        assert one == pytest.approx(two)
    one, _ = data.fitted().predict(data.rows, SIZES, np.arange(len(data.rows)))
    two, _ = other.fitted().predict(data.rows, SIZES, np.argsort(learners))
    assert one == pytest.approx(two)


@given(st.integers(0, 99), st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_another_unit_of_time_shifts_means(seed: int, unit: float) -> None:
    data, new = made(seed), drawn(seed)
    scaled = Made(
        data.rows, data.space, data.learner, data.log_size, data.log_seconds + math.log(unit)
    )
    mean, sd = data.fitted().predict(new, SIZES)
    other, other_sd = scaled.fitted().predict(new, SIZES)
    assert other == pytest.approx(mean + math.log(unit))
    assert other_sd == pytest.approx(sd)


@pytest.mark.parametrize("value", [0.0, 0.7, math.nan])
@pytest.mark.parametrize("is_word", [True, False])
def test_a_parameter_that_never_changes_changes_nothing(value: float, is_word: bool) -> None:
    data, new = made(0), drawn(0)
    value = round(value) if is_word and not math.isnan(value) else value

    def widened(rows: Array) -> Array:
        return np.column_stack([rows, np.full(len(rows), value)])

    wide = Made(
        widened(data.rows),
        Space((*data.space.dimensions, ("z", Words((0, 1)) if is_word else Range(0.0, 1.0)))),
        data.learner,
        data.log_size,
        data.log_seconds,
    )
    for one, two in zip(
        data.fitted().predict(new, SIZES),
        wide.fitted().predict(widened(new), SIZES),
        strict=True,
    ):
        assert one == pytest.approx(two)


@pytest.mark.parametrize("is_log", [True, False])
def test_many_trees_are_believed_to_take_longer_before_any_was_timed(is_log: bool) -> None:
    """Two learners of ten trees; another number as far from them says nothing of seconds."""
    trees = Range(10, 500, is_log=is_log, is_whole=True)
    space = Space((("rate", Range(0.01, 0.5, is_log=True)), ("trees", trees)))
    rows = np.array([[0.4, 0.0], [0.6, 0.0]])
    learner, log_size = np.array([0, 1]), np.full(2, SIZES[0])
    model = fit(rows, space, learner, log_size, np.log([1.0, 1.1]), FULL)
    new = np.array([[0.5, 0.0], [0.5, 1.0], [1.0, 0.0], [0.0, 0.0]])
    few, many, fast, slow = model.predict(new, SIZES[0])[0]
    assert many > few + 0.2 * math.log(50.0)
    assert abs(fast - few) < 0.3 > abs(slow - few)


def test_a_new_algorithm_is_not_slow_for_having_many_parameters() -> None:
    """Neighbours were timed; in the middle of its ranges, a forest takes as long as they do."""
    trees = [Range(10, 500, is_log=True, is_whole=True), Range(1, 100, is_whole=True)]
    ranges = [Words(("knn", "forest")), Range(0.0, 1.0), *trees]
    space = Space(tuple(zip("abcd", ranges, strict=True)))
    rows = np.array([[0.0, 0.2, np.nan, np.nan], [0.0, 0.9, np.nan, np.nan]])
    model = fit(rows, space, np.arange(2), np.full(2, SIZES[0]), np.log([1.0, 1.1]), FULL)
    new = np.array([[1.0, np.nan, 0.5, 0.5], [1.0, np.nan, np.nan, np.nan]])
    (middle, unknown), deviations = model.predict(new, SIZES[0])
    assert middle == pytest.approx(unknown, abs=1e-9)
    assert deviations[0] == pytest.approx(deviations[1], rel=0.1)


@given(rows=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6))
def test_one_learner_is_at_no_distance_from_itself(rows: list[float]) -> None:
    point = np.array([rows])
    points = Points.of(np.repeat(point, 3, axis=0), numbers(6), PRIOR.log_weight, PRIOR.count_sd)
    assert points.reach == 1.0
    assert points.smooth(points, PRIOR.length).min() == 1.0
    assert points.smooth(points.at(point), PRIOR.length).min() == 1.0


def test_a_word_never_seen_is_less_sure() -> None:
    data, new = made(0, count=30), drawn(0)
    unseen = new.copy()
    unseen[:, 2] = 7
    (_, sd), (_, wide) = (data.fitted().predict(x, SIZES[0]) for x in (new, unseen))
    assert np.all(wide > sd)


@pytest.mark.parametrize("place", [0.05, 0.5, 0.95])
def test_what_is_known_of_other_algorithms_parameters_says_nothing_of_a_new_one(
    place: float,
) -> None:
    """The known one's learners are near the best place; the new one lacks that parameter."""
    rng = np.random.default_rng(0)
    space = Space((("kind", Words(("a", "b"))), ("trees", Range(0.0, 1.0))))
    trees = np.clip(place + 0.05 * rng.standard_normal(30), 0.0, 1.0)
    log_seconds = 6.0 * (trees - place) + 0.1 * rng.standard_normal(30)
    rows = np.column_stack([np.zeros(30), trees])
    model = fit(rows, space, np.arange(30), np.full(30, SIZES[0]), log_seconds, FULL)
    mean, sd = model.predict(np.array([[1.0, np.nan]]), SIZES[0])
    alike, _ = model.predict(np.array([[0.0, place]]), SIZES[0])
    assert mean == pytest.approx(alike, abs=0.3)
    scale, unseen = model.variances[0], 1.0
    assert sd < math.sqrt(model.calibration * (scale * unseen + 2.0))


@pytest.mark.parametrize("n_parameters", [0, 2])
def test_what_was_measured_is_predicted_and_the_more_the_surer(n_parameters: int) -> None:
    """Seconds that grow as n^1: near the end they are foreseen within a tenth."""
    rng = np.random.default_rng(0)
    rows = rng.random((20, n_parameters))
    level = rng.normal(0.0, 2.0, 20)
    sizes = np.log(FULL / 2.0 ** np.arange(7)[::-1])
    off, sure = [], []
    for count in (1, 2, 4, 6):
        learner = np.repeat(np.arange(20), count)
        log_size = np.tile(sizes[:count], 20)
        log_seconds = level[learner] + log_size
        model = fit(rows, numbers(n_parameters), learner, log_size, log_seconds, FULL)
        mean, sd = model.predict(rows, sizes[-1], np.arange(20))
        off.append(float(np.abs(mean - level - sizes[-1]).max()))
        sure.append(float(sd.mean()))
    assert sure == sorted(sure, reverse=True)
    assert off[-1] < 0.1


def test_learners_without_parameters_are_independent_but_for_growth() -> None:
    """The seconds of one say nothing about another's level; their growth says something."""
    rows, learner = np.zeros((8, 0)), np.array([*range(7), 0, 1, 2, 3])
    log_size = SIZES[np.array([0] * 7 + [2] * 4)]

    def at_full(exponent: float) -> Array:
        level = np.linspace(-3.0, 3.0, 7)[learner]
        model = fit(rows, Space(), learner, log_size, level + exponent * log_size, FULL)
        mean, _ = model.predict(rows, math.log(FULL), np.arange(8))
        return mean - exponent * math.log(FULL)

    slow, fast = at_full(0.3), at_full(1.3)
    assert slow[6] - slow[5] == pytest.approx(1.0, abs=0.2)
    # Taken back to one exponent they differ by less than if the prior's had been believed.
    assert np.abs(slow[4:7] - fast[4:7]).max() < 0.8 * math.log(64.0)


# -- slow calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [5.0, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_slow_first_call_loses_its_weight_when_the_learner_goes_on(
    seed: int, factor: float
) -> None:
    """The forecast of the cost on all the data moves by a third at most."""
    data = made(seed)
    several = np.flatnonzero(np.bincount(data.learner) == 3)[0]
    first = np.flatnonzero(data.learner == several)[0]
    slow = data.log_seconds.copy()
    slow[first] += math.log(factor)
    late = Made(data.rows, data.space, data.learner, data.log_size, slow)
    (mean, _), (other, _) = (
        x.fitted().predict(data.rows, math.log(FULL), np.arange(12)) for x in (data, late)
    )
    assert abs(other[several] - mean[several]) < 0.3 * math.log(factor)
    others = np.delete(np.arange(12), several)
    assert np.abs(other - mean)[others].max() < 0.3 * math.log(factor)


@pytest.mark.parametrize("n_dear", [1, 3, 6])
def test_a_costly_kind_is_not_taken_for_slow_calls(n_dear: int) -> None:
    """A hundred times as slow as the others, on every size."""
    rows, space = np.zeros((20, 0)), Space()
    learner = np.repeat(np.arange(20), 2)
    log_size = np.tile(SIZES[:2], 20)
    level = np.where(np.arange(20) < n_dear, math.log(100.0), 0.0)
    log_seconds = level[learner] + log_size
    model = fit(rows, space, learner, log_size, log_seconds, FULL)
    mean, _ = model.predict(rows, SIZES[1], np.arange(20))
    assert mean == pytest.approx(level + SIZES[1], abs=0.5)


@pytest.mark.parametrize("n_dear", [1, 3])
def test_a_training_is_believed_to_be_dear_if_its_parameters_say_so(n_dear: int) -> None:
    """One learner, or several, far from all others keeps its own cost."""
    places = np.concatenate([np.linspace(0.0, 0.4, 20), np.full(n_dear, 1.0)])
    rows, space = places[:, None], numbers(1)
    learner = np.arange(len(rows))
    log_size = np.full(len(rows), SIZES[0])
    log_seconds = 9.0 * places
    model = fit(rows, space, learner, log_size, log_seconds, FULL)
    mean, _ = model.predict(rows, SIZES[0], learner)
    # Below that, a clock says little.
    is_long = log_seconds > math.log(0.003 * np.exp(log_seconds).mean())
    assert mean[is_long] == pytest.approx(log_seconds[is_long], abs=1.0)
    assert np.exp(mean[~is_long]).max(initial=0.0) < 0.01 * np.exp(log_seconds).mean()


def test_the_shortest_trainings_say_little_of_long_ones() -> None:
    """Their seconds are mostly the error of a clock."""
    rng = np.random.default_rng(0)
    places = rng.random(30)
    rows, space, learner = places[:, None], numbers(1), np.arange(30)
    log_size = np.full(30, math.log(FULL))
    usual = 2.0 * places
    short = np.where(places < 0.3, rng.uniform(-9.0, -5.0, 30), usual)
    is_long = places >= 0.3

    def off(prior: Prior) -> float:
        model = fit(rows, space, learner, log_size, short, FULL, prior)
        mean, _ = model.predict(np.array([[0.5], [0.7], [0.95]]), math.log(FULL))
        return float(np.abs(mean - [1.0, 1.4, 1.9]).max())

    assert is_long.sum() > 15
    assert off(PRIOR) < 0.3 < off(PRIOR._replace(jitter=0.0))


def test_beyond_what_is_tuned_on_slow_calls_are_found_too() -> None:
    count = MOST_TUNED
    rows = np.random.default_rng(0).random((count, 1))
    learner = np.repeat(np.arange(count), 2)
    log_size = np.tile(SIZES[:2], count)
    log_seconds = 2.0 * rows[learner, 0] + 0.8 * log_size
    usual = fit(rows, numbers(1), learner, log_size, log_seconds, FULL)
    log_seconds = log_seconds + np.where(np.arange(2 * count) == 10, math.log(10.0), 0.0)
    model = fit(rows, numbers(1), learner, log_size, log_seconds, FULL)
    assert model.trust[10] < 0.3
    assert np.delete(model.trust, 10).min() > 0.3
    both = [m.predict(rows, math.log(FULL), np.arange(count))[0] for m in (usual, model)]
    assert np.abs(both[1] - both[0]).max() < 1.0
