"""When a search trains its first learner on all the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.costs.cost_model import FREEDOM
from optuna_daub.core.costs.cost_model import QUARTILE
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.first_model import FIRST_MODEL
from optuna_daub.core.first_model import affordable
from optuna_daub.core.first_model import is_urgent


NOBODY = Seconds(np.empty((0, 2)), np.empty((0, 2)))


def seconds(look: float, full: float, spread: float, count: int = 1) -> Seconds:
    """Return the same log-normal seconds of several points; a look is certain."""
    return Seconds(np.log([[look, full]] * count), np.array([[0.0, spread]] * count))


@pytest.mark.parametrize("left", [10.0, 25.0, 100.0])
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_the_chance_after_a_look_is_that_of_simulated_looks(left: float, spread: float) -> None:
    """After a look the seconds of a candidate are as uncertain as those of the learner."""
    own, rng, known = seconds(1.0, 20.0, 0.3), np.random.default_rng(0), 0.3
    shown = math.sqrt(spread**2 - known**2) * rng.standard_normal(200_000)
    faster = np.minimum(math.log(20.0) + shown, math.log(20.0))
    error = QUARTILE * known * rng.standard_t(FREEDOM, len(shown))
    after = (faster + error < math.log(left - 1.0)).mean()
    now = float(own.within(left)[0, -1])
    # A look that takes longer than one second lowers the chance until both are equal.
    for look, expected in ((1.0, now > after + 0.01), (0.999 * left, True)):
        if abs(now - after) > 0.01 or look > 1.0:
            new = seconds(look, 20.0, spread)
            assert is_urgent(own, new, left, may_choose=True) == expected


def test_one_slow_learner_does_not_take_all_the_time() -> None:
    """It is probably in time; but a look takes little time, and may find a fast one."""
    own, unknown, slow = (seconds(27.0, 740.0, spread) for spread in (0.5, 1.5, 0.5))
    assert own.within(902.0)[0, -1] > 0.6
    assert not affordable(own, unknown, 27.0, 902.0, may_choose=True).any()
    assert affordable(own, slow, 27.0, 902.0, may_choose=True).all()


def test_if_the_next_point_is_random_the_mean_of_all_candidates_counts() -> None:
    own = seconds(1.0, 16.0, 0.5)
    new = Seconds(np.log([[1.0, 4.0]] + [[1.0, 400.0]] * 99), np.full((100, 2), 0.5))
    assert is_urgent(own, new, 20.0, may_choose=False)
    assert not is_urgent(own, new, 20.0, may_choose=True)


@given(st.floats(0.1, 1e4), st.floats(0.0, 3.0), st.floats(0.1, 1e4), st.booleans())
def test_without_a_limit_only_what_was_spent_counts(
    full: float, spread: float, spent: float, may_choose: bool
) -> None:
    own, new = seconds(0.1, full, spread, 3), seconds(0.1, full, 1.0, 3)
    found = affordable(own, new, spent, math.inf, may_choose=may_choose)
    assert found.tolist() == (own.expected()[:, -1] <= FIRST_MODEL * spent).tolist()


def test_without_candidates_the_cheapest_that_may_be_in_time_goes_on() -> None:
    own = Seconds(np.log([[1.0, 30.0], [1.0, 16.0]]), np.zeros((2, 2)))
    for left, expected in ((20.0, [False, True]), (15.0, [False, False])):
        assert affordable(own, NOBODY, 1.0, left, may_choose=True).tolist() == expected
    assert not len(affordable(NOBODY, own, 1.0, 20.0, may_choose=True))
