"""The default rule in open searches: one price decides everything, within what was promised."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any
from typing import Literal

import numpy as np
import pytest

from optuna_daub.core import Cost
from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Process
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import Wait
from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.decision import why_not
from optuna_daub.core.pool import NoProposer
from optuna_daub.core.prices import stops_of
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import Given
from optuna_daub.core.proposals import propose
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from tests.core import stepping
from tests.core.stepping import Step


SIZES = (250, 1000, 4000, 16000)
FULL = SIZES[-1]
SPACE = Space((("kind", Words(("line", "tree"))), ("rate", Range(0.0, 1.0))))
ROWS = np.array([[kind, rate] for kind in (0.0, 1.0) for rate in (0.1, 0.3, 0.5, 0.7, 0.9)])
POLICY = ValuePerSecond(SIZES)


def truth(point: dict[str, Any], size: int) -> Observation:
    """The outcome of a training: trees gain more, and take three times as long."""
    gain, pace = (1.0, 1e-3) if point["kind"] == "line" else (2.5, 3e-3)
    score = 0.88 + 0.04 * (point["kind"] == "tree") - (point["rate"] - 0.6) ** 2 / 4.0
    return Observation(size, score - gain / size**0.5, seconds=pace * size)


def search(
    policy: ValuePerSecond = POLICY,
    trainings: int = 25,
    seed: int = 0,
    change: Callable[[Observation], Observation] = lambda seen: seen,
    **facts: Any,
) -> Iterator[Step]:
    """Yield the decisions of a search among lines and trees."""
    rng = np.random.default_rng(seed)

    def point(pool: Pool) -> dict[str, Any]:
        drawn = {"kind": "tree", "rate": float(rng.random())}
        is_known = any(curve.observations for curve in pool.curves.values())
        return propose(pool, policy.prices, seed) if is_known else drawn

    def trained(pool: Pool, learner: int, size: int) -> Pool:
        seen = change(truth(dict(pool.curves[learner].parameters), size))
        left = pool.left
        if left is not None:
            left = Cost(0, max(left.seconds - (seen.seconds or 0.0), 0.0))
        runs_left = pool.runs_left and pool.runs_left - 1
        return replace(pool.observed(learner, seen), left=left, runs_left=runs_left)

    proposer = AroundBest(FULL, seed, policy.terms.forecaster)
    pool = Pool(to_come=None, space=SPACE, proposer=proposer, **facts)
    return islice(stepping.search(policy, pool, point, trained), trainings)


@cache
def long_search() -> list[Step]:
    return [*search(trainings=80)]


def acts(steps: Iterable[Step]) -> list[tuple[str, int, int]]:
    decisions = [step.decision for step in steps]
    return [
        (type(d).__name__, getattr(d, "learner", None) or 0, getattr(d, "size", 0))
        for d in decisions
    ]


@cache
def usual(cost: Literal["seconds", "examples"]) -> list[tuple[str, int, int]]:
    return acts(search(ValuePerSecond(SIZES, cost=cost)))


def pool_of(count: int = 12, full: int = 2, seed: int = 1) -> Pool:
    """Learners of which the first few were trained on all the data."""
    rng = np.random.default_rng(seed)
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    for learner in range(count):
        point = {"kind": ("line", "tree")[rng.integers(2)], "rate": float(rng.random())}
        pool = pool.with_newcomer(learner, point)
        for size in SIZES if learner < full else SIZES[: rng.choice([1, 2])]:
            pool = pool.observed(learner, truth(point, size))
    return pool


def full_steps(steps: list[Step]) -> list[int]:
    return [i for i, step in enumerate(steps) if getattr(step.decision, "size", 0) == FULL]


def test_a_learner_without_parameters_takes_the_place_of_a_new_one() -> None:
    """While another worker holds it, a new one is proposed."""
    reasons = set()
    for count in range(3, 13):
        pool = pool_of(count)
        decision, blank = POLICY.decide(pool), pool.with_newcomer(count, {})
        if isinstance(decision, Propose):
            again = POLICY.decide(blank)
            assert isinstance(again, Extend)
            assert again.learner == count
            busy = POLICY.decide(replace(blank, busy=frozenset({count})))
            assert isinstance(busy, Propose)
            # One that had an error is not as good as a new one, so its own price decides.
            curves = blank.curves.put(replace(blank.curves[count], errors=1))
            failed = POLICY.decide(replace(blank, curves=curves))
            reasons.add("no parameters" in str(again.reason))
            assert "no parameters" not in str(failed.reason)
    assert True in reasons


# Decisions are pure.


def test_neither_order_nor_history_changes_a_decision_and_asking_twice_neither() -> None:
    for step in long_search()[:15:3]:
        curves = [
            LearningCurve(
                c.learner, c.observations, c.dropped, parameters=c.parameters, cause=c.cause
            )
            for c in reversed([*step.pool.curves.values()])
        ]
        anew = replace(step.pool, curves=Curves(curves))
        assert POLICY.decide(step.pool) == step.decision
        assert ValuePerSecond(SIZES).decide(anew) == step.decision


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "shift", "cost"), [(100.0, 0.0, "examples"), (0.25, -7.0, "seconds")]
)
def test_a_positive_affine_change_of_scores_changes_no_decision(
    factor: float, shift: float, cost: Literal["seconds", "examples"]
) -> None:
    policy = ValuePerSecond(SIZES, cost=cost)
    changed = search(policy, change=lambda x: replace(x, score=factor * x.score + shift))
    assert acts(changed) == usual(cost)


def test_examples_as_costs_do_not_look_at_seconds() -> None:
    policy = ValuePerSecond(SIZES, cost="examples")
    slower = search(policy, change=lambda x: replace(x, seconds=x.size % 7 + 0.5))
    assert acts(slower) == usual("examples")


# What is trained next.


def test_the_step_of_the_largest_price_is_taken() -> None:
    kinds = set()
    for step in long_search()[:30]:
        if any(c.observations for c in step.pool.curves.values()):
            known = POLICY.prices(step.pool)
            kinds.add(type(step.decision))
            (own, place, stop), (new, _, start) = known.learner, known.candidate
            if isinstance(step.decision, Extend):
                assert own >= new
                assert (step.decision.learner, step.decision.size) == (place, SIZES[stop])
            else:
                assert isinstance(step.decision, Propose)
                assert new >= own or not np.isfinite(own)
                assert step.decision.size == SIZES[start]
            assert "expected gain" in str(step.decision.reason)
    assert kinds == {Extend, Propose}


def test_the_search_finds_what_lines_hide_at_first() -> None:
    """On the first size every line is ahead of every tree; on all the data trees are."""
    four = 4.0 * (truth({"kind": "tree", "rate": 0.6}, FULL).seconds or 0.0)
    within = [step for step in long_search() if step.pool.spent.seconds <= four]
    assert within[-1].pool.spent.seconds > four / 2.0, "the time was used"
    last = within[-1]
    leader = POLICY.leader(last.pool)
    assert leader is not None
    curve = last.pool.curves[leader]
    assert curve.size == FULL
    assert curve.parameters["kind"] == "tree"
    assert abs(curve.parameters["rate"] - 0.6) < 0.15


# The first full-data model.


def test_with_few_runs_the_first_full_model_is_started_by_half_of_them() -> None:
    for runs in (4, 6, 12, 30):
        steps = [*search(trainings=runs, runs_left=runs - 1)]
        assert len(steps) == runs
        assert full_steps(steps)[0] <= runs // 2
        assert full_steps(steps)[-1] == runs - 1, "the last run is on all the data"


@pytest.mark.parametrize("count", [0, 1, 12])
def test_the_last_run_is_on_all_the_data(count: int) -> None:
    decision = POLICY.decide(replace(pool_of(count, full=0), runs_left=0))
    assert isinstance(decision, Extend | Propose)
    assert decision.size == FULL


# Time.


def test_nothing_is_started_that_would_more_probably_be_late() -> None:
    for left, expected in ((1e6, {Extend, Propose}), (30.0, {Extend, Propose}), (5.0, {Finish})):
        assert type(POLICY.decide(replace(pool_of(), left=Cost(0, left)))) in expected
    # 16 s of a line are in time, 48 s of a tree are not.
    for step in search(trainings=60, left=Cost(0, 200.0)):
        if getattr(step.decision, "size", 0) == FULL and len(full_steps([step])):
            left = step.pool.left
            assert left is not None
            models = any(c.size == FULL for c in step.pool.curves.values())
            assert not models or left.seconds >= 12.0
    assert isinstance(step.decision, Finish)
    assert "in time" in str(step.decision.reason)
    assert step.decision.learner == POLICY.leader(step.pool)


def test_before_the_first_full_model_even_what_would_be_late_is_started() -> None:
    """It costs twice what was spent; what costs more is not started so late."""
    pool = replace(pool_of(6, full=0), left=Cost(0, 5.0), spent=Cost(5500, 20.0))
    decision = POLICY.decide(pool)
    assert isinstance(decision, Extend)
    assert decision.size == FULL
    assert pool.curves[decision.learner].parameters["kind"] == "line", "the cheapest"
    later = POLICY.decide(replace(pool, spent=Cost(5500, 10.0)))
    assert isinstance(later, Extend | Propose)
    assert later.size < FULL


@pytest.mark.parametrize(
    ("left", "full", "runs_left", "is_declined"),
    [(5.0, 2, None, True), (None, 2, None, False), (5.0, 0, None, False), (5.0, 2, 0, False),
     (1e6, 2, None, False)],
)  # fmt: skip
def test_a_new_learner_is_declined_only_with_a_limit_and_a_model(
    left: float | None, full: int, runs_left: int | None, is_declined: bool
) -> None:
    pool = pool_of(full=full).with_newcomer(12, {"kind": "tree", "rate": 0.62})
    limit = None if left is None else Cost(0, left)
    pool = replace(pool, left=limit, runs_left=runs_left)
    begun = POLICY.start(pool, 12, SIZES[0])
    assert isinstance(begun, Drop) == is_declined
    assert begun.learner == 12
    if isinstance(begun, Drop):
        assert "too late" in str(begun.reason)
    else:
        assert begun.size in SIZES


def test_a_new_learner_is_declined_if_a_better_one_would_then_be_too_late() -> None:
    """Learner 10 promises most of those in time; any look leaves it too little."""
    pool = pool_of()
    latest = float(InSeconds(FULL).seconds(pool, (FULL,)).latest[10, 0])
    with_worse = pool.with_newcomer(12, {"kind": "line", "rate": 0.95})
    begun = POLICY.start(replace(with_worse, left=Cost(0, latest + 0.1)), 12, SIZES[0])
    assert isinstance(begun, Drop)
    assert str(begun.reason) == "a better one would end too late"
    now = POLICY.decide(replace(pool, left=Cost(0, latest + 0.1)))
    assert isinstance(now, Extend | Propose)
    assert now.size == FULL, "it is time to train the best point known"
    begun = POLICY.start(replace(with_worse, left=Cost(0, latest + 10.0)), 12, SIZES[0])
    assert isinstance(begun, Extend)


@pytest.mark.parametrize("left", [120.0, 200.0])
def test_the_step_taken_never_loses_more_than_it_gains(left: float) -> None:
    """The best training of those in time loses nothing, so some step gains."""
    compared = 0
    for step in search(trainings=60, left=Cost(0, left)):
        if any(curve.observations for curve in step.pool.curves.values()):
            value = POLICY.prices(step.pool).value
            assert value >= 0.0 or value == -math.inf
            compared += 1
    assert compared > 5


def test_only_the_first_learner_of_a_new_algorithm_is_never_declined() -> None:
    """Nets need 160 s on all the data, of which 60 are left; their first training tells."""
    pool = replace(pool_of(), left=Cost(0, 60.0), space=None)
    net = {"kind": "net", "rate": 0.6, "units": 900}
    first = POLICY.start(pool.with_newcomer(12, net), 12, SIZES[0])
    assert isinstance(first, Extend)
    seen = Observation(first.size, 0.5, seconds=0.01 * first.size)
    pool = pool.with_newcomer(12, net).observed(12, seen)
    second = POLICY.start(pool.with_newcomer(13, {**net, "units": 901}), 13, SIZES[0])
    assert isinstance(second, Drop)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45, 0.5, 0.6, 0.62])
def test_a_new_learner_starts_where_its_price_is_largest_or_small_if_another_has_a_larger_one(
    rate: float,
) -> None:
    """It may be an enqueued one. The largest price is that of a step beyond the smallest size."""
    pool = pool_of().with_newcomer(12, {"kind": "tree", "rate": rate})
    prices = POLICY.prices(pool).learners
    begun = POLICY.start(pool, 12, SIZES[0])
    assert isinstance(begun, Extend)
    is_best = prices[12].max() > prices[:12].max()
    assert is_best == (rate >= 0.5)
    assert begun.size == stops_of(SIZES)[int(prices[12].argmax()) if is_best else 0]
    assert prices[12].argmax() > 0


def test_the_first_learner_of_a_new_algorithm_starts_small_even_again() -> None:
    """A worker that died has left it without a score."""
    pool = replace(pool_of(), space=None, proposer=NoProposer())
    pool = pool.with_newcomer(12, {"kind": "net", "rate": 0.6, "units": 900})
    begun = POLICY.start(pool, 12, SIZES[1])
    assert isinstance(begun, Extend)
    assert begun.size == SIZES[0]
    assert np.isneginf(POLICY.prices(pool).learners[12, 1:]).all(), (
        "nor does it start again larger"
    )


def test_examples_as_costs_need_a_process_without_seconds() -> None:
    with pytest.raises(ValueError, match=r"must not depend on seconds.*`is_timed=False`"):
        ValuePerSecond(SIZES, Process(FULL), "examples")
    assert ValuePerSecond(SIZES, Process(FULL, is_timed=False), "examples").cost == "examples"


# Workers side by side.


def test_a_worker_waits_where_all_learners_are_busy() -> None:
    pool = pool_of()
    everyone = replace(pool, busy=frozenset(pool.curves), proposer=Given(ROWS[:0]))
    assert isinstance(POLICY.decide(everyone), Wait)


def test_two_workers_get_different_candidates() -> None:
    pool = replace(pool_of(), proposer=AroundBest(FULL, 0))
    first = propose(pool, POLICY.prices, 0)
    at_work = pool.with_newcomer(12, first)
    second = propose(replace(at_work, busy=frozenset({12})), POLICY.prices, 0)
    assert second != first
    apart = SPACE.rows([first, second])
    assert np.abs(apart[0] - apart[1]).max() > 1e-6


# What is shown.


def test_the_leader_is_the_best_on_all_the_data_and_before_that_the_best_forecast() -> None:
    pool = pool_of()
    assert POLICY.leader(pool) == max((0, 1), key=lambda i: pool.curves[i].score)
    early = pool_of(full=0)
    forecasts = POLICY.forecasts(early, FULL)
    assert POLICY.leader(early) == max(early.curves, key=lambda i: float(forecasts[i].mean))
    assert POLICY.leader(Pool(to_come=None)) is None


def test_intervals_hold_the_forecast_and_are_points_at_full_size() -> None:
    pool = pool_of().with_newcomer(12, {"kind": "line", "rate": 0.5})
    for learner, curve in pool.curves.items():
        found = POLICY.interval(pool, learner)
        mean = float(POLICY.forecasts(pool, FULL)[learner].mean)
        if not curve.observations:
            assert (found.lower, found.upper) == (-math.inf, math.inf)
        elif curve.size == FULL:
            assert found.lower == found.upper == curve.score
        else:
            assert found.lower < mean < found.upper


def test_worth_is_the_forecast_less_its_cost_at_the_price() -> None:
    pool = pool_of()
    mean = np.asarray(POLICY.forecasts(pool, FULL).all.mean)
    lost = mean - POLICY.worth(pool)
    trees = np.array([c.parameters["kind"] == "tree" for c in pool.curves.values()])
    assert (lost > 0.0).all()
    assert lost[trees].min() > lost[~trees].max(), "trees cost three times as much"
    early = pool_of(full=0)
    np.testing.assert_array_equal(POLICY.worth(early), POLICY.forecasts(early, FULL).all.mean)


def test_learners_that_are_late_or_wait_for_the_first_model_are_told_so() -> None:
    late = POLICY.decide(replace(pool_of(), left=Cost(0, 5.0)))
    assert "too late" in str(why_not(late, 11))
    early = pool_of(full=0)
    first = POLICY.decide(replace(early, left=Cost(0, 5.0)))
    texts = {str(why_not(first, learner)) for learner in early.curves}
    assert "another learner is planned as the first on all the data" in texts
