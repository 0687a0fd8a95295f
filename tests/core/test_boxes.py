"""Indices and prices against brute force: integrals on fine grids, roots by bisection."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from optuna_daub.core.boxes import OUTCOMES
from optuna_daub.core.boxes import WEIGHTS
from optuna_daub.core.boxes import after_look
from optuna_daub.core.boxes import best_of_others
from optuna_daub.core.boxes import improvement
from optuna_daub.core.boxes import index
from optuna_daub.core.boxes import index_with_look
from optuna_daub.core.boxes import price


GRID = np.linspace(-8.0, 8.0, 801)
"""Standard deviations from the mean, close together."""
SHARES = norm.pdf(GRID) / norm.pdf(GRID).sum()


def drawn(seed, count=40):
    """Return mean, shown, kept, now and later of actions of many scales."""
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal([0.0, -0.3, -3.0, -2.0], [0.7, 1.0, 1.5, 1.5], (count, 4)))
    return rng.normal(0.0, 2.0, count), *scales.T


def worth_with_look(mean, shown, kept, now, later, over, points=GRID, shares=SHARES):
    """Return what a look and perhaps going on are worth, less their costs."""
    ahead = kept * norm.pdf((mean + shown * points - over) / kept)
    ahead += (mean + shown * points - over) * norm.cdf((mean + shown * points - over) / kept)
    return float(np.maximum(0.0, ahead - later) @ shares) - now


@pytest.mark.parametrize("over", [-40.0, -5.0, 0.0, 0.7, 5.0, 20.0])
def test_the_improvement_is_the_integral(over):
    def tail(x):
        return x * math.exp(-0.5 * (x + over) ** 2) / math.sqrt(2.0 * math.pi)

    top = max(0.0, -over)
    expected = quad(tail, 0.0, top + 12.0, points=[top], epsabs=0.0, epsrel=1e-10)[0]
    assert improvement(3.0, 2.0, 3.0 + 2.0 * over) == pytest.approx(2.0 * expected, rel=1e-8)


@pytest.mark.parametrize("cost", [1e-300, 1e-100, 1e-9, 1e-3, 0.1, 0.4, 1.0, 5.0, 1e3, 1e9])
def test_at_the_index_the_improvement_is_the_cost(cost):
    found = index([0.0, 10.0], [1.0, 0.5], [cost, cost / 2.0])
    assert improvement([0.0, 10.0], [1.0, 0.5], found) == pytest.approx(
        np.array([cost, cost / 2.0]), rel=1e-6
    )


def test_what_is_certain_is_worth_its_score_less_the_cost():
    assert index([1.0, 1.0], [0.0, 1e-300], [0.25, 0.25]).tolist() == [0.75, 0.75]


def test_what_is_free_is_worth_any_chance():
    assert index([1.0, 1.0], [0.0, 0.1], 0.0).tolist() == [1.0, math.inf]


@pytest.mark.parametrize("seed", range(3))
def test_the_index_with_a_look_is_the_root_by_bisection(seed):
    actions = drawn(seed)
    found = index_with_look(*actions)
    for own, value in zip(zip(*actions, strict=True), found.tolist(), strict=True):
        mean, shown, kept, now, later = own

        def worth(over, own=own):
            return worth_with_look(*own, over, OUTCOMES, WEIGHTS)

        reach = 50.0 * (shown + kept)
        root = brentq(worth, mean - now - later - 1e-9, mean + reach, xtol=1e-12)
        assert value == pytest.approx(root, abs=1e-9 * reach)


def test_seven_points_are_near_all():
    # The rule compares indices and what is worth it: both are near those of a fine grid.
    actions = drawn(7, count=200)
    found = index_with_look(*actions)
    off, exact, scaled = [], [], []
    for i, own in enumerate(zip(*actions, strict=True)):
        mean, shown, kept, now, later = own
        root = brentq(
            lambda over, own=own: worth_with_look(*own, over),
            mean - now - later - 1e-6,
            mean + 50.0 * (shown + kept),
        )
        off.append((found[i] - root) / math.hypot(shown, kept))
        over = mean + shown
        exact.append(worth_with_look(mean, shown, kept, 0.0, later, over))
        by_seven = worth_with_look(mean, shown, kept, 0.0, later, over, OUTCOMES, WEIGHTS)
        scaled.append(by_seven - exact[-1])
    assert np.sqrt(np.mean(np.square(off))) < 0.07
    assert np.abs(scaled).sum() < 0.05 * np.sum(exact)


def test_a_look_that_shows_nothing_only_costs():
    mean, _, kept, now, later = drawn(1)
    assert index_with_look(mean, 0.0, kept, now, later) == pytest.approx(
        index(mean, kept, now + later), abs=1e-9
    )


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_indices_move_with_scores(scale):
    mean, shown, kept, now, later = drawn(3)
    costs = now * scale, later * scale
    moved = index_with_look(3.0 + scale * mean, scale * shown, scale * kept, *costs)
    assert moved == pytest.approx(
        3.0 + scale * index_with_look(mean, shown, kept, now, later), rel=1e-9
    )


def test_at_the_price_the_look_is_just_worth_it():
    mean, shown, kept, now, later = drawn(4)
    ahead = after_look(mean, shown, kept, 0.5)
    found = price(ahead, now, later)
    left = np.maximum(0.0, ahead - found[:, None] * later[:, None]) @ WEIGHTS
    assert left == pytest.approx(found * now, rel=1e-9)
    assert (found > 0.0).all()


def test_without_a_look_the_price_is_improvement_per_effort():
    ahead = np.repeat([[0.3], [0.0]], len(OUTCOMES), axis=1)
    assert price(ahead, np.array([2.0, 2.0]), 0.0) == pytest.approx([0.15, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_the_others_by_comparing_all(seed):
    rng = np.random.default_rng(seed)
    values, takes = rng.integers(0, 6, (2, 9)).astype(float)  # many are equal
    left = rng.integers(-1, 7, (4, 9))
    found = best_of_others(values, takes, left)
    for place, i in np.ndindex(left.shape):
        fit = [values[j] for j in range(9) if j != i and takes[j] <= left[place, i]]
        assert found[place, i] == max(fit, default=0.0)
