from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from optuna_daub.learners.trade_offs import greedy
from optuna_daub.learners.trade_offs import plain
from optuna_daub.learners.trade_offs import smoothed
from optuna_daub.learners.trade_offs import speedboost


EDGES = np.array([0.3, 0.2, 0.5])
COSTS = np.array([0.5, 0.1, 2.0])


def test_scores_have_the_published_values() -> None:
    for scores, expected in (
        (np.exp(-greedy(EDGES, COSTS, 2.0)), [0.828100, 0.664833, 0.866025]),
        (np.exp(-smoothed(EDGES, COSTS, 2.0)), [0.962978, 0.980749, 0.930605]),
        (np.exp(-smoothed(EDGES, COSTS, 0.5 * 2.0)), [0.939062, 0.963569, 0.908560]),
        (speedboost(EDGES, COSTS, 2.0), [0.092122, 0.202041, 0.066987]),
    ):
        np.testing.assert_allclose(scores, expected, atol=5e-7)


def test_choices_are_the_published_ones() -> None:
    assert [rule(EDGES, COSTS, 2.0).argmax() for rule in (greedy, speedboost)] == [1, 1]
    assert [rule(EDGES, COSTS, 2.0).argmax() for rule in (smoothed, plain)] == [2, 2]


edges = st.lists(st.floats(0.0, 0.999), min_size=1, max_size=8).map(np.array)


@given(edges=edges, cost=st.floats(0.0, 10.0), spent=st.floats(0.0, 10.0))
def test_equal_costs_leave_the_edges_in_order(
    edges: np.ndarray, cost: float, spent: float
) -> None:
    costs = np.full(edges.shape, cost)
    for rule in (greedy, smoothed, speedboost):
        scores = rule(edges, costs, spent)
        assert np.isfinite(scores).all()
        assert np.all(np.diff(scores[np.argsort(edges)]) >= 0.0)


@given(edges=edges, seed=st.integers(0, 100))
def test_smoothed_is_greedy_at_first_and_plain_after_much(edges: np.ndarray, seed: int) -> None:
    costs = np.random.default_rng(seed).uniform(0.1, 2.0, edges.shape)
    np.testing.assert_array_equal(smoothed(edges, costs, 0.0), greedy(edges, costs, 5.0))
    much = 1e9
    np.testing.assert_allclose(
        smoothed(edges, costs, much) * much, -np.log1p(-(edges**2)), rtol=1e-8, atol=1e-300
    )


@given(seed=st.integers(0, 1000))
def test_speedboost_equals_brute_force_over_the_weight_of_the_vote(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 20)
    loss = np.exp(-y * rng.normal(size=20))  # of any vote so far
    votes = rng.choice([-1.0, 1.0], (8, 20))
    votes *= np.where(votes @ (loss * y) < 0.0, -1.0, 1.0)[:, np.newaxis]
    costs = rng.uniform(0.1, 2.0, 8)

    def least_loss(vote: np.ndarray) -> float:
        def after(alpha: float) -> float:
            return float(np.sum(loss * np.exp(-alpha * y * vote)))

        options: dict[str, Any] = {"method": "bounded", "options": {"xatol": 1e-9}}
        return float(minimize_scalar(after, bounds=(0.0, 10.0), **options).fun)

    brute = [
        (loss.sum() - least_loss(vote)) / cost for vote, cost in zip(votes, costs, strict=True)
    ]
    gammas = votes @ (loss * y) / loss.sum()
    closed = loss.sum() * speedboost(gammas, costs, 0.0)
    np.testing.assert_allclose(closed, brute, atol=1e-9)


@pytest.mark.parametrize(
    ("edge", "ratio"), [(0.05, 1.00063), (0.2, 1.0102), (0.4, 1.0442), (0.8, 1.277)]
)
def test_speedboost_and_greedy_agree_for_small_edges(edge: float, ratio: float) -> None:
    edges, cost = np.array([edge]), np.array([1.0])
    relation = greedy(edges, cost, 0.0) / 2.0 / speedboost(edges, cost, 0.0)
    assert relation[0] == pytest.approx(ratio, rel=1e-4 if edge < 0.5 else 1e-3)


def test_free_candidates_compete_by_their_edges() -> None:
    edges, costs = np.array([0.9, 0.1, 0.2]), np.array([0.001, 0.0, 0.0])
    for rule in (greedy, smoothed, speedboost):
        assert rule(edges, costs, 0.0).argmax() == 2
