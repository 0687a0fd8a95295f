"""The rule of closed pools: laws that hold whatever the curves, and false beliefs mended."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import Cost
from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Joint
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core.costs.cost_model import InExamples
from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.policies.closed_pool import ClosedTerms
from optuna_daub.core.policies.closed_pool import _asked
from optuna_daub.core.policies.closed_pool import boxes
from optuna_daub.core.policies.closed_pool import costs_of
from optuna_daub.core.policies.closed_pool import decide
from optuna_daub.core.prices import leader_of
from optuna_daub.core.proposals import Given


SIZES = (500, 1000, 2000, 4000, 8000, 16000)
FIRST = 1000
IN_EXAMPLES, IN_SECONDS = InExamples(), InSeconds(SIZES[-1])


def terms(price=0.1, cost=IN_EXAMPLES):
    return ClosedTerms(SIZES, Joint(), cost, price)


def made(seed, count=12):
    """Return whole curves: power laws with limits and rates of their own."""
    rng = np.random.default_rng(seed)
    limit, lost, rate = rng.uniform([0.7, 0.1, 0.2], [0.9, 0.4, 0.6], (count, 3)).T
    n = np.array(SIZES) / SIZES[0]
    scores = limit[:, None] - lost[:, None] * n ** -rate[:, None]
    return {i: dict(zip(SIZES, row.tolist(), strict=True)) for i, row in enumerate(scores)}


def replayed(known, rule):
    """Return every decision, the last a `Finish`."""
    pool = Pool(Curves([LearningCurve(i) for i in known]), to_come=0)
    decisions = []
    while True:
        decision = decide(pool, rule)
        decisions.append(decision)
        if not isinstance(decision, Extend):
            return decisions
        seen = Observation(decision.size, known[decision.learner][decision.size])
        pool = pool.observed(decision.learner, seen)


def pool_of(scores, seconds=None):
    """Return a closed pool, given each learner's scores by size."""
    curves = []
    for i, own in enumerate(scores):
        seen = [
            Observation(n, score, seconds=seconds[i][k] if seconds else None)
            for k, (n, score) in enumerate(own.items())
        ]
        curves.append(LearningCurve(i, tuple(seen)))
    return Pool(Curves(curves), to_come=0)


@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=6)
def test_every_run_ends_with_the_best_that_was_trained_on_everything(seed):
    known = made(seed)
    decisions = replayed(known, terms())
    assert isinstance(decisions[-1], Finish)
    trained = {d.learner for d in decisions[:-1] if d.size == SIZES[-1]}
    assert decisions[-1].learner == max(trained, key=lambda i: known[i][SIZES[-1]])
    steps = [(d.learner, d.size) for d in decisions[:-1]]
    assert len({*steps}) == len(steps)
    assert steps[: len(known)] == [(i, FIRST) for i in known]


@pytest.mark.parametrize(
    ("factor", "shift"), [(1e-3, 5), (8.0, -5), (4.0**-450, 0), (4.0**-270, 0)]
)
@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=2)
def test_affine_changes_of_scores_change_no_decision(seed, factor, shift):
    known = made(seed)
    moved = {i: {n: shift + factor * s for n, s in own.items()} for i, own in known.items()}
    steps, others = (
        [(d.learner, getattr(d, "size", None)) for d in replayed(each, terms())]
        for each in (known, moved)
    )
    assert steps == others


def test_without_a_price_all_are_trained_on_everything():
    known = made(3)
    decisions = replayed(known, terms(price=0.0))
    assert {d.learner for d in decisions if getattr(d, "size", 0) == SIZES[-1]} == {*known}


@pytest.mark.parametrize("price", [0.0, 1.0])
def test_while_all_scores_are_equal_nobody_is_given_up(price):
    """One of them may leave the others behind on all the data."""
    known = {i: dict.fromkeys(SIZES, 0.95) for i in range(5)}
    known[4][SIZES[-1]] = 0.99
    decisions = replayed(known, terms(price=price))
    assert decisions[-1].learner == 4


@pytest.mark.parametrize("seed", range(5))
def test_a_higher_price_costs_no_more(seed):
    known = made(seed, count=20)
    costs = [
        sum(d.size for d in replayed(known, terms(price))[:-1]) for price in (0.0, 0.1, 1.0, 100.0)
    ]
    assert costs[0] > costs[-1]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize(("other", "price"), [(0.7, 1.0), (0.7, 0.0), (0.8, 1.0)])
def test_nobody_starts_who_would_be_late(other, price):
    pool = pool_of([{FIRST: 0.8}, {FIRST: other}], [[1.0], [1.0]])
    rule = terms(cost=IN_SECONDS, price=price)
    assert isinstance(decide(pool, rule), Extend)
    late = dataclasses.replace(pool, left=Cost(seconds=2.0))
    end = decide(late, rule)
    assert isinstance(end, Finish)
    assert end.learner == leader_of(late, rule.forecaster, SIZES[-1]) == 0


@pytest.mark.parametrize("has_model", [False, True])
def test_once_there_is_a_model_no_training_starts_that_may_be_late(has_model):
    """It is in time on average, but not in nine of ten cases. Nothing stops it."""
    first = {FIRST: 0.8, 16000: 0.81} if has_model else {FIRST: 0.8}
    pool = pool_of([first, {FIRST: 0.79}], [[1.0, 16.0], [1.0]])
    rule = terms(cost=IN_SECONDS)
    seconds = InSeconds(16000).seconds(pool, (16000,)).part(np.array([1]))
    left = 1.05 * float(seconds.expected()[0, 0])
    assert seconds.latest.min() > left
    found = boxes(dataclasses.replace(pool, left=Cost(seconds=left)), rule)
    assert bool(np.isfinite(found.values[1])) != has_model


def test_one_gain_does_not_tell_what_all_gain():
    # Five are level at N / 4, the first of them gained nearly nothing up to N: the others may.
    near = {FIRST: 0.86, 4000: 0.874}
    rest = [{FIRST: 0.5 + i / 50} for i in range(10)]
    before = pool_of([near] * 5 + rest)
    after = before.observed(0, Observation(16000, 0.880))
    sd_after = float(Joint().beliefs(after, 16000)[1][1])
    assert sd_after > 2 / 3 * (0.880 - 0.874)
    assert float(Joint().forecasts(after, 16000)[1].mean) > 0.877
    assert decide(after, terms(price=0.009)).learner in {1, 2, 3, 4}


def test_one_learner_that_collapses_does_not_make_all_others_uncertain():
    rows = [{FIRST: 0.7 + i / 100, 4000: 0.75 + i / 100} for i in range(10)]
    calm, upset = pool_of(rows), pool_of([{FIRST: 0.7, 4000: 0.1}, *rows[1:]])
    widths = [float(Joint().forecasts(pool, 16000)[9].scale) for pool in (calm, upset)]
    assert widths[1] < 3.0 * widths[0]


@pytest.mark.parametrize("seed", range(5))
def test_one_diverged_learner_changes_neither_winner_nor_cost_by_much(seed):
    calm = made(seed, count=20)
    upset = calm | {3: dict.fromkeys(SIZES, -1000.0)}
    (*steps, end), (*others, other_end) = (replayed(each, terms()) for each in (calm, upset))
    assert calm[other_end.learner][SIZES[-1]] > calm[end.learner][SIZES[-1]] - 0.005
    assert sum(d.size for d in others) < 1.5 * sum(d.size for d in steps)


def test_the_expected_cost_is_above_the_median_where_less_is_known():
    pool = pool_of([{FIRST: 0.8}, {FIRST: 0.7, 4000: 0.8}], [[1.0], [1.0, 4.0]])
    median = [16.0, 16.0]
    found = costs_of(pool, terms(cost=IN_SECONDS), (16000,)).expected()[:, 0]
    assert found[0] > found[1] > 0.95 * median[1]


def test_indices_do_not_depend_on_who_came_first():
    known = made(1)
    pool = pool_of([{n: own[n] for n in (FIRST, 2000)} for own in known.values()])
    turned = pool_of([{n: own[n] for n in (FIRST, 2000)} for own in reversed(known.values())])
    one, two = (boxes(each, terms()) for each in (pool, turned))
    assert one.values == pytest.approx(two.values[::-1])
    assert one.size.tolist() == two.size[::-1].tolist()


def test_trainings_that_go_on_are_as_much_of_everything_as_those_from_scratch():
    """The share spent does not depend on the cost of a next training."""
    anew = pool_of([made(0)[i] for i in range(9)] + [{1000: 0.4}] * 3)
    on = []
    for curve in anew.curves.values():
        before = (0, *curve.sizes)
        seen = (o.going_on_from(k) for k, o in zip(before, curve.observations, strict=False))
        on.append(LearningCurve(curve.learner, tuple(seen)))
    spent, spent_on = (_asked(pool, terms()) for pool in (anew, Pool(Curves(on), to_come=0)))
    assert spent > 0.0
    assert spent_on == pytest.approx(spent)


def test_a_look_leaves_only_its_later_examples_to_be_trained_on():
    """Learners go on from models of 4,000 rows: 4 seconds to 8,000, and 8 more to all."""
    seen = [{500: 0.5 + i / 50, 4000: 0.7 + i / 50} for i in range(4)]
    pool = pool_of(seen, [[0.5, 3.5]] * 4)
    curves = []
    for curve in pool.curves.values():
        first, second = curve.observations
        second = dataclasses.replace(second, examples=3500)
        curves.append(LearningCurve(curve.learner, (first, second)))
    rule, pool = terms(cost=IN_SECONDS), Pool(Curves(curves), to_come=0)
    way, straight = costs_of(pool, rule, (8000, 16000)).expected()[0]
    left = straight + 0.5 * way
    found = boxes(dataclasses.replace(pool, left=Cost(0, left)), rule)
    assert 8000 in found.size[np.isfinite(found.values)]


@pytest.mark.parametrize("limit", [24.0, 40.0, 60.0])
def test_with_a_time_limit_a_model_is_made_though_not_all_learners_were_tried(limit):
    """A first training takes a second, one on all the data 16: 100 learners are too many."""
    known, rule = made(1, 100), terms(cost=IN_SECONDS)
    pool, spent = Pool(Curves([LearningCurve(i) for i in known]), to_come=0), 0.0
    while spent < limit:
        decision = decide(dataclasses.replace(pool, left=Cost(0, limit - spent)), rule)
        assert isinstance(decision, Extend)
        size = decision.size
        seen = Observation(size, known[decision.learner][size], seconds=size / 1000)
        pool, spent = pool.observed(decision.learner, seen), spent + size / 1000
    assert spent <= 1.1 * limit, "how seconds grow is not known exactly"
    assert any(curve.size == SIZES[-1] for curve in pool.curves.values())
    n_tried = sum(bool(curve.observations) for curve in pool.curves.values())
    assert n_tried >= (limit - 16.0) / 2.0


def test_time_kept_for_a_training_that_is_not_worth_it_is_for_untried_learners():
    """Learner 1 would take most of the time, but is far behind."""
    pool = pool_of([{1000: 0.8, 16000: 0.9}, {1000: 0.6}], [[6.0, 100.0], [6.0]])
    for left in (130.0, 200.0, 1000.0):
        limited = dataclasses.replace(pool, to_come=18, left=Cost(0, left))
        assert isinstance(decide(limited, terms(cost=IN_SECONDS)), Propose)


def test_a_space_without_further_points_is_no_reason_to_hurry():
    pool = pool_of([{1000: 0.7}, {1000: 0.6}], [[1.0], [1.0]])
    pool = dataclasses.replace(pool, to_come=1, proposer=Given(np.empty((0, 0))))
    for left in (0.5, 16.5, 100.0):
        limited = dataclasses.replace(pool, left=Cost(0, left))
        assert isinstance(decide(limited, terms(cost=IN_SECONDS)), Propose)
