from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.learners.purse import Purse


COSTS = np.array([2.0, 0.5, 0.0, 1.0])


@given(purchases=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=6))
def test_a_feature_is_paid_once(purchases: list[list[int]]) -> None:
    purse = Purse(COSTS, budget=10.0)
    for features in purchases:
        purse = purse.buy(features)
    owned = {feature for features in purchases for feature in features}
    assert set(purse.bought) == owned
    assert len(purse.bought) == len(owned)
    assert purse.spent == sum(COSTS[j] for j in owned)
    assert purse.unpaid.tolist() == [0.0 if j in owned else COSTS[j] for j in range(4)]


def test_buying_leaves_the_old_purse_as_it_was() -> None:
    purse = Purse(COSTS, budget=3.0)
    purse.buy((0, 1))
    assert (purse.spent, purse.bought) == (0.0, ())


def test_what_is_left_can_be_spent_to_the_last_penny() -> None:
    purse = Purse(COSTS, budget=3.0).buy((0,))
    assert purse.affords([0.0, 0.5, 1.0, 1.0 + 1e-9]).tolist() == [True, True, True, False]
