"""When a search trains its first learner on all the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Cost
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import geometric_sizes
from optuna_daub.core.costs.cost_model import FREEDOM
from optuna_daub.core.costs.cost_model import QUARTILE
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.first_model import FIRST_MODEL
from optuna_daub.core.first_model import affordable
from optuna_daub.core.first_model import is_likelier
from optuna_daub.core.first_model import is_urgent
from optuna_daub.core.pool import Proposer
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space


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
    # A look that takes nearly all the time leaves no chance.
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


@pytest.mark.parametrize("proposer", [AroundBest(16_000, 0), LikeRecent()], ids=str)
def test_a_search_looks_at_a_second_point_before_a_slow_first_one_takes_its_time(
    proposer: Proposer,
) -> None:
    policy = ValuePerSecond(sizes=geometric_sizes(250, 16_000, 2.0))
    space = Space((("trees", Range(1, 1000, is_log=True)), ("depth", Range(1.0, 20.0))))
    pool = Pool(to_come=None, space=space, proposer=proposer, left=Cost(0, 85.0))
    pool = pool.with_newcomer(0, {"trees": 900, "depth": 15.0})
    pool = pool.observed(0, Observation(250, 0.7, seconds=1.0))
    assert isinstance(policy.decide(pool), Propose)


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


def test_a_look_and_the_full_training_both_have_to_be_in_time() -> None:
    """Their seconds are in proportion: with both of 16 seconds, 32 are needed."""
    own, new = seconds(16.0, 16.0, 0.0), seconds(0.0001, 31.0, 0.0)
    for left, expected in ((31.5, False), (32.5, True)):
        assert is_likelier(own, new, left, may_choose=True).item() == expected
    assert is_likelier(own, NOBODY, 1.0, may_choose=True).all()


def test_a_learner_that_is_too_slow_leaves_the_time_to_new_points() -> None:
    """A 64th of the data took a quarter of the time."""
    policy = ValuePerSecond(sizes=geometric_sizes(250, 16_000, 2.0))
    space = Space((("x", Range(0.0, 1.0)), ("y", Range(0.0, 1.0))))
    for proposer in (AroundBest(16_000, 0), LikeRecent()):
        pool = Pool(to_come=None, space=space, proposer=proposer, left=Cost(0, 75.0))
        pool = pool.with_newcomer(0, {"x": 0.9, "y": 0.9})
        pool = pool.observed(0, Observation(250, 0.7, seconds=25.0))
        assert isinstance(policy.decide(pool), Propose)
