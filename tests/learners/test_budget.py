from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.learners.budget import Budget


COSTS = np.array([2.0, 0.5, 0.0, 1.0])


@given(purchases=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=6))
def test_a_feature_is_paid_once(purchases: list[list[int]]) -> None:
    budget = Budget(COSTS, limit=10.0)
    for features in purchases:
        budget = budget.buy(features)
    owned = {feature for features in purchases for feature in features}
    assert set(budget.bought) == owned
    assert len(budget.bought) == len(owned)
    assert budget.spent == sum(COSTS[j] for j in owned)
    assert budget.unpaid.tolist() == [0.0 if j in owned else COSTS[j] for j in range(4)]


def test_buying_leaves_the_old_budget_as_it_was() -> None:
    budget = Budget(COSTS, limit=3.0)
    budget.buy((0, 1))
    assert (budget.spent, budget.bought) == (0.0, ())


def test_what_is_left_can_be_spent_to_the_last_penny() -> None:
    budget = Budget(COSTS, limit=3.0).buy((0,))
    assert budget.affords([0.0, 0.5, 1.0, 1.0 + 1e-9]).tolist() == [True, True, True, False]
