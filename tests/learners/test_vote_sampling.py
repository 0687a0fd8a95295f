from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from optuna_daub.learners import AdaBoostRSClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners.boosting import Ensemble
from optuna_daub.learners.budget import ROUNDING
from optuna_daub.learners.budget import Budget
from optuna_daub.learners.vote_sampling import sample_votes
from tests.learners.data import noisy


@dataclass(frozen=True)
class Fixed:
    """A hypothesis with one vote for everybody."""

    features: tuple[int, ...]
    value: float

    def vote(self, X: Any) -> NDArray[np.float64]:
        return np.full(len(X), self.value)


VOTES = np.array([0.9, 0.5, 0.4, 0.3, 0.2])
COSTS = np.array([2.0, 0.1, 1.0, 0.5, 0.3])
SIGNS = np.array([1.0, -1.0, -1.0, 1.0, -1.0])
WHOLE = Ensemble(tuple((Fixed((j,), sign),) for j, sign in enumerate(SIGNS)), VOTES[:, np.newaxis])
"""The example of formulas.md 4.8."""
NAMES = tuple(f"x{j}" for j in range(5))


def draw(budget: float, n_draws: int, seed: int, costs: NDArray[np.float64] = COSTS) -> Any:
    rng = np.random.RandomState(seed)
    return sample_votes(WHOLE, Budget(costs, budget), n_draws, rng, NAMES)


def test_sampled_vote_of_the_published_example_is_unbiased() -> None:
    exact = (VOTES @ SIGNS) / VOTES.sum()
    assert exact == pytest.approx(0.043478, abs=5e-7)
    samples = [draw(np.inf, 1, seed)[0].weights[:, 0] @ SIGNS for seed in range(4000)]
    error = np.std(samples) / np.sqrt(len(samples))
    assert abs(np.mean(samples) / VOTES.sum() - exact) < 4.0 * error / VOTES.sum()


def test_weight_of_a_draw_is_the_published_multiple_of_its_cost() -> None:
    weights = draw(np.inf, 1, seed=0)[0].weights[:, 0]
    drawn = int(np.flatnonzero(weights)[0])
    # There the votes are scaled to sum to 1.
    assert weights[drawn] / VOTES.sum() == pytest.approx(3.094203 * COSTS[drawn], abs=5e-6)


def test_equal_costs_draw_by_weight_and_vote_alike() -> None:
    counts = np.zeros(5)
    for seed in range(200):
        weights = draw(np.inf, 20, seed, costs=np.full(5, 0.7))[0].weights[:, 0]
        votes = weights / VOTES.sum() * 20  # whole numbers: how often each was drawn
        np.testing.assert_allclose(votes, votes.round(), atol=1e-9)
        counts += votes
    expected = VOTES / VOTES.sum() * counts.sum()
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 18.5  # 99.9 % of the chi-square distribution with 4 degrees


@settings(max_examples=50)
@given(budget=st.floats(0.1, 4.0), seed=st.integers(0, 1000))
def test_drawing_ends_where_the_budget_does(budget: float, seed: int) -> None:
    sampled, after = draw(budget, 100, seed)
    assert after.spent <= budget * (1.0 + ROUNDING)
    assert set(after.bought) == set(np.flatnonzero(sampled.weights[:, 0]).tolist())


def test_free_hypotheses_vote_whole() -> None:
    sampled, after = draw(0.0, 10, seed=0, costs=np.array([0.0, 1.0, 0.0, 1.0, 1.0]))
    assert sampled.weights[:, 0].tolist() == [0.9, 0.0, 0.4, 0.0, 0.0]
    assert after.bought == (0, 2)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_costs_may_be_of_any_size(scale: float) -> None:
    """Only ratios count, and next to nothing is next to free: it is always drawn first."""
    same = draw(3.0 * scale, 50, 0, costs=np.full(5, scale))[0].weights
    np.testing.assert_allclose(same, draw(3.0, 50, 0, costs=np.ones(5))[0].weights)
    tiny = np.array([5e-324, 1.0, 1.0, 1.0, 1.0])
    assert draw(1.0, 50, 0, costs=tiny)[0].weights[:, 0] == pytest.approx([0.9, 0, 0, 0, 0])


def test_a_budget_below_every_hypothesis_is_refused() -> None:
    with pytest.raises(ValueError, match=r"but got 0\.05; the cheapest one uses \['x1'\] at 0\.1"):
        draw(0.05, 10, seed=0)


def test_many_draws_without_limit_approach_adaboost() -> None:
    X, y = noisy(300, 4, seed=8)
    plain = BudgetedAdaBoostClassifier(trade_off="none", n_estimators=20).fit(X, y)
    model = AdaBoostRSClassifier(n_estimators=20, n_draws=200_000, random_state=0).fit(X, y)
    assert model.estimators_ == plain.estimators_
    np.testing.assert_allclose(model.estimator_weights_, plain.estimator_weights_, rtol=0.1)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=0.15)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes_that_were_not_bought_are_not_looked_at(n_classes: int) -> None:
    X, y = noisy(200, 8, seed=9, n_classes=n_classes)
    costs = np.random.default_rng(9).uniform(0.5, 2.0, 8)
    model = AdaBoostRSClassifier(costs, budget=3.0, random_state=1).fit(X, y)
    assert model.spent_ == pytest.approx(costs[model.features_bought_].sum())
    assert model.spent_ <= 3.0
    veiled = X.copy()
    veiled[:, np.setdiff1d(np.arange(8), model.features_bought_)] = -99.0
    np.testing.assert_array_equal(model.predict_proba(veiled), model.predict_proba(X))
    assert model.score(X, y) > 1.0 / n_classes


def test_draws_follow_the_seed() -> None:
    X, y = noisy(200, 8, seed=9)
    weights = [
        AdaBoostRSClassifier(budget=3.0, random_state=seed).fit(X, y).estimator_weights_.tolist()
        for seed in (0, 0, 1)
    ]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("n_draws", [0, 1.5])
def test_number_of_draws_is_checked(n_draws: Any) -> None:
    X, y = noisy(20, 2, seed=0)
    with pytest.raises(ValueError, match="`n_draws` must be an integer of at least 1, but got"):
        AdaBoostRSClassifier(n_draws=n_draws).fit(X, y)


def test_costs_of_any_size_give_finite_votes() -> None:
    X, y = noisy(200, 3, seed=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = AdaBoostRSClassifier([1e-100, 1.0, 1e300], random_state=0).fit(X, y)
    assert np.isfinite(model.estimator_weights_).all()
