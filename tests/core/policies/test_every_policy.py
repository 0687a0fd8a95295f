"""Laws that every policy must satisfy: a new one is one line in the list."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import ABC
from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Forecaster
from optuna_daub.core import Joint
from optuna_daub.core import LearningCurve
from optuna_daub.core import Needs
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Process
from optuna_daub.core import Projection
from optuna_daub.core import Propose
from optuna_daub.core import Reason
from optuna_daub.core import StepRule
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import Wait
from optuna_daub.core import gradient_ci
from optuna_daub.core import next_of_grid
from optuna_daub.core import round_robin
from optuna_daub.core import ucb
from optuna_daub.core.decision import why_not
from optuna_daub.core.intervals import clopper_pearson
from optuna_daub.core.intervals import massart
from optuna_daub.core.policies.closed_pool import PRICE
from tests.core import forecasts
from tests.core.intervals import INEQUALITIES
from tests.core.stepping import Step
from tests.core.stepping import flat
from tests.core.stepping import steps
from tests.strategies import N_VALIDATION
from tests.strategies import known_curves


@dataclass(frozen=True)
class Case:
    """A policy, and what it may answer."""

    policy: Policy
    slack: float = 0.0
    """By how much the answer may miss the best score if nothing is uncertain."""


SIZES = (6, 9, 15, 24, 36)
MANY = (100_000, 1_000_000, 10_000_000, 100_000_000)


def straight_to_the_end(curve: LearningCurve, sizes: tuple[int, ...]) -> int:
    """Return the largest size: the other extreme of a step rule."""
    return sizes[-1]


FORECASTERS: dict[str, Forecaster] = {**forecasts.FORECASTERS}
FORECASTERS["process"] = Process(SIZES[-1])
UNTIMED = Process(SIZES[-1], is_timed=False)
STEPS: dict[str, StepRule] = {"next": next_of_grid, "straight": straight_to_the_end}
SCHEDULERS = {"gradient": gradient_ci, "ucb": ucb, "round robin": round_robin}

CASES = {
    "DAUB": Case(DAUB(SIZES)),
    "DAUB, straight": Case(DAUB(SIZES, steps=straight_to_the_end)),
    "DAUB, joint": Case(DAUB(SIZES, Joint(), first_sizes=(9, 15))),
    "DAUB, no training score": Case(DAUB(SIZES, Projection(use_training_score=False))),
    "DAUB, first": Case(DAUB(SIZES, stop="first")),
    "DAUB, tolerance": Case(DAUB(SIZES, tolerance=0.125), slack=0.125),
    "DAUB of three sizes": Case(DAUB((6, 9, 15))),
    "ABC": Case(ABC(SIZES, 10**9), slack=0.01),
    "ABC, ucb": Case(ABC(SIZES, 10**9, scheduler=ucb), slack=0.01),
    "ABC, round robin": Case(ABC(SIZES, 10**9, scheduler=round_robin), slack=0.01),
    "ABC, massart": Case(ABC(MANY, 10**9, 0.05, confidence=massart.half_width), slack=0.05),
    "ABC, exact": Case(ABC(MANY, 10**9, 0.05, confidence=clopper_pearson.half_width), slack=0.05),
    "halving": Case(SuccessiveHalving(SIZES)),
    "halving, a third": Case(SuccessiveHalving(SIZES, keep_one_in=3)),
    # An improvement below the price of a training does not pay.
    "value per second": Case(ValuePerSecond(SIZES), slack=PRICE),
    "value per example": Case(ValuePerSecond(SIZES, cost="examples"), slack=PRICE),
}

PAIRS: dict[str, Policy] = {
    **{
        f"DAUB, {forecaster}, {steps}": DAUB(SIZES, FORECASTERS[forecaster], STEPS[steps])
        for forecaster, steps in product(FORECASTERS, STEPS)
    },
    **{
        f"ABC, {scheduler}, {inequality}": ABC(
            MANY, 10**9, 0.05, 0.05, INEQUALITIES[inequality], SCHEDULERS[scheduler]
        )
        for scheduler, inequality in product(SCHEDULERS, INEQUALITIES)
    },
    **{
        f"value per second, {forecaster}": ValuePerSecond(SIZES, FORECASTERS[forecaster])
        for forecaster in FORECASTERS
    },
    **{
        f"value per example, {forecaster}": ValuePerSecond(SIZES, one, "examples")
        for forecaster, one in {**FORECASTERS, "process": UNTIMED}.items()
    },
}
"""Every part with every partner that it can have."""

OPEN = {name: case for name, case in CASES.items() if not case.policy.needs.closed_pool}
"""Those that need not know how many learners there will be."""

every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_open = pytest.mark.parametrize("case", OPEN.values(), ids=OPEN)

some = settings(
    max_examples=settings.default.max_examples // 5, suppress_health_check=[HealthCheck.too_slow]
)


def rebuilt(pool: Pool, curves: list[LearningCurve]) -> Pool:
    """Return an equal pool of which nothing was asked before, its curves handed over anew."""
    anew = [dataclasses.replace(c) for c in curves]
    return Pool(Curves(anew), frozenset([*pool.busy]), pool.to_come, pool.spent, pool.left)


def assert_sentence(reason: Reason | str) -> None:
    both = (reason,) if isinstance(reason, str) else (str(reason), str(reason.mirrored()))
    for text in both:
        assert text
        assert not set(text) & set("{}\n")
        assert "nan" not in text


# ---- Every single step -------------------------------------------------------------------------


def the_decision_can_be_carried_out(policy: Policy, step: Step) -> None:
    pool = step.pool
    alive = {learner for learner, curve in pool.curves.items() if not curve.dropped}
    match step.decision:
        case Extend(learner, size):
            assert size in policy.sizes
            assert size > pool.curves[learner].size
            assert learner in alive - pool.busy
        case Propose(size):
            assert size in policy.sizes
            assert pool.may_propose
        case Drop(learner):
            assert learner in alive
            assert len(alive) > 1, "the last learner is never dropped"
        case Wait():
            assert pool.busy & alive, "no learner is busy that could be waited for"
            assert not pool.may_propose, "a newcomer could have been trained"
        case Finish(learner):
            assert learner in alive or (learner is None and not alive)
            assert not pool.may_propose, "some learners never had a chance"


def the_order_and_the_history_of_the_pool_are_irrelevant(policy: Policy, step: Step) -> None:
    backwards = rebuilt(step.pool, [*step.pool.curves.values()][::-1])
    assert policy.decide(backwards) == step.decision


def asking_again_changes_nothing(policy: Policy, step: Step) -> None:
    twin = dataclasses.replace(policy)  # type: ignore[type-var]
    before = rebuilt(step.pool, [*step.pool.curves.values()])
    assert policy.decide(step.pool) == twin.decide(step.pool) == step.decision
    assert step.pool == before


def every_suspended_learner_is_told_why(policy: Policy, step: Step) -> None:
    assert_sentence(step.decision.reason)
    for curve in step.pool.curves.values():
        if not curve.dropped and curve.size < policy.sizes[-1]:
            assert_sentence(why_not(step.decision, curve.learner))


def the_leader_is_a_learner_that_was_seen(policy: Policy, step: Step) -> None:
    curves = step.pool.curves.values()
    seen = {c.learner for c in curves if c.observations and not c.dropped}
    leader = policy.leader(step.pool)
    assert leader in seen if seen else leader is None
    if isinstance(step.decision, Finish):
        assert leader == step.decision.learner


def every_learner_has_an_interval(policy: Policy, step: Step) -> None:
    for curve in step.pool.curves.values():
        interval = policy.interval(step.pool, curve.learner)
        assert interval.lower <= interval.upper


def a_promise_is_a_sentence(policy: Policy, step: Step) -> None:
    for curve in step.pool.curves.values():
        if curve.observations and not curve.dropped:
            promise = policy.promise(step.pool, curve.learner)
            if promise is not None:
                assert_sentence(promise)


def every_learner_has_a_worth(policy: Policy, step: Step) -> None:
    worth = policy.worth(step.pool)
    assert worth.shape == (len(step.pool.curves),)
    seen = [bool(curve.observations) for curve in step.pool.curves.values()]
    assert np.isfinite(worth[seen]).all()


def a_new_learner_starts_or_is_declined(policy: Policy, step: Step) -> None:
    if not step.pool.may_propose:
        return
    learner = max(step.pool.curves, default=0) + 1
    pool = step.pool.with_newcomer(learner, {"x": 0.5})
    match policy.start(pool, learner, policy.sizes[0]):
        case Extend(which, size):
            assert (which, size in policy.sizes) == (learner, True)
        case Drop(which):
            assert which == learner


CHECKS = (
    the_decision_can_be_carried_out,
    the_order_and_the_history_of_the_pool_are_irrelevant,
    asking_again_changes_nothing,
    every_suspended_learner_is_told_why,
    the_leader_is_a_learner_that_was_seen,
    every_learner_has_an_interval,
    a_promise_is_a_sentence,
    every_learner_has_a_worth,
    a_new_learner_starts_or_is_declined,
)


@every
@some
@given(data=st.data(), workers=st.integers(1, 4), failures=st.booleans())
def test_every_step_of_a_closed_pool(
    case: Case, data: st.DataObject, workers: int, failures: bool
) -> None:
    def done(busy: list[int]) -> int:
        return data.draw(st.sampled_from(busy))

    sizes = case.policy.sizes
    probes: list[tuple[int | None, int]] = []
    for step in steps(
        case.policy, data.draw(known_curves(sizes, failures=failures)), workers, done
    ):
        for check in CHECKS:
            check(case.policy, step)
        match step.decision:
            case Extend(learner, size):
                probes.append((learner, size))
            case Propose(size):
                probes.append((step.newcomer, size))
    assert len(set(probes)) == len(probes)
    assert isinstance(step.decision, Finish)
    if step.decision.learner is not None:
        assert step.pool.curves[step.decision.learner].size == sizes[-1]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[pytest.mark.slow] if "example" in name else [])
        for name, case in OPEN.items()
    ],
)
@some
@given(data=st.data(), workers=st.integers(1, 4), failures=st.booleans())
def test_every_step_of_an_open_pool(
    case: Case, data: st.DataObject, workers: int, failures: bool
) -> None:
    """It goes on for as long as it is asked, and never waits."""

    def done(busy: list[int]) -> int:
        return data.draw(st.sampled_from(busy))

    known = data.draw(known_curves(case.policy.sizes, failures=failures))
    for step in steps(case.policy, known, workers, done, probes=16):
        assert isinstance(step.decision, Extend | Propose | Drop), step.decision
        for check in CHECKS:
            check(case.policy, step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "is_open"),
    [
        pytest.param(policy, is_open, id=f"{name}, {'open' if is_open else 'closed'}")
        for name, policy in PAIRS.items()
        for is_open in (False, True)
        if not (is_open and policy.needs.closed_pool)
    ],
)
def test_every_part_goes_with_every_partner(policy: Policy, is_open: bool) -> None:
    """Without a warning, which is an error here; two of the learners fail on the way."""
    rng = np.random.default_rng(1)
    known = [
        LearningCurve(
            i,
            tuple(
                Observation(n, end - drop / n**0.5, end + 0.01, N_VALIDATION, seconds=n / 10)
                for n in policy.sizes[: len(policy.sizes) - (i % 4 == 3)]
            ),
            parameters={"end": end},
        )
        for i, (end, drop) in enumerate(rng.uniform((0.5, 0.0), (0.9, 0.1), (8, 2)))
    ]
    for step in steps(policy, known, workers=2, probes=30 if is_open else None):
        for check in CHECKS:
            check(policy, step)
    assert is_open or isinstance(step.decision, Finish)


# ---- Whole runs --------------------------------------------------------------------------------


def answer(step: Step) -> int:
    """Return the learner that a run ends with."""
    assert isinstance(step.decision, Finish)
    assert step.decision.learner is not None
    return step.decision.learner


@every
@given(score=st.integers(0, 85), learner=st.integers(0, 10_000))
@settings(max_examples=10)
def test_one_learner_alone_is_simply_trained(case: Case, score: int, learner: int) -> None:
    known = [flat(learner, case.policy.sizes, score * 3 / 256)]
    first, *training, last = steps(case.policy, known)
    assert isinstance(first.decision, Propose)
    assert all(isinstance(step.decision, Extend) for step in training)
    assert answer(last) == learner


@every
@given(ends=st.lists(st.integers(0, 85), min_size=1, max_size=6))
@some
def test_the_best_is_found_where_nothing_is_uncertain(case: Case, ends: list[int]) -> None:
    best = [end * 3 / 256 for end in ends]
    known = [flat(learner, case.policy.sizes, score) for learner, score in enumerate(best)]
    *_, last = steps(case.policy, known)
    assert best[answer(last)] >= max(best) - case.slack


@every
def test_learners_on_more_than_all_the_data_are_fully_trained(case: Case) -> None:
    full = case.policy.sizes[-1]
    seen = [Observation(n, i / 4, 0.9, 100) for i in (1, 2) for n in (full // 2, full + i)]
    curves = [LearningCurve(0, tuple(seen[:2])), LearningCurve(1, tuple(seen[2:]))]
    decision = case.policy.decide(Pool(Curves(curves), to_come=0))
    assert isinstance(decision, Finish)
    assert decision.learner == 1


@every
def test_no_learner_left_and_no_learner_at_all_are_answers(case: Case) -> None:
    *_, last = steps(case.policy, [LearningCurve(0), LearningCurve(1)])
    for decision in (last.decision, case.policy.decide(Pool())):
        assert isinstance(decision, Finish)
        assert decision.learner is None
    assert case.policy.leader(Pool()) is None


@every
def test_a_policy_is_a_value_that_says_what_it_needs(case: Case) -> None:
    policy = case.policy
    assert dataclasses.replace(policy) == policy  # type: ignore[type-var]
    assert hash(dataclasses.replace(policy)) == hash(policy)  # type: ignore[type-var]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        policy.sizes = ()  # type: ignore[misc]
    assert isinstance(policy.needs, Needs)
    with pytest.raises(ValueError, match="strictly increasing"):
        dataclasses.replace(policy, sizes=policy.sizes[::-1])  # type: ignore[type-var]


@pytest.mark.slow
@every_open
@pytest.mark.parametrize("workers", [1, 3])
def test_in_an_open_pool_a_full_model_exists_early_and_the_best_learner_follows(
    case: Case, workers: int
) -> None:
    """By the cost of two full trainings there is one. The best of all tried gets all the data."""
    sizes = (500, 1000, 2000, 4000, 8000, 16_000)
    policy = dataclasses.replace(case.policy, sizes=sizes)  # type: ignore[type-var]
    rng = np.random.default_rng(0)
    known = [
        LearningCurve(
            i,
            tuple(
                Observation(n, end - lost / n**0.5, 1.0, N_VALIDATION, seconds=n / 1000)
                for n in sizes
            ),
        )
        for i, (end, lost) in enumerate(rng.uniform((0.7, 0.5), (0.9, 4.0), (200, 2)))
    ]
    spent_at_full: list[int] = []
    for step in steps(policy, known, workers, probes=100):
        if step.decision.size == sizes[-1]:  # type: ignore[union-attr]
            spent_at_full.append(step.pool.spent.examples)
    assert spent_at_full[0] + sizes[-1] <= 2 * sizes[-1]
    tried = [known[i] for i, curve in step.pool.curves.items() if curve.observations]
    assert len(tried) > 100
    best = max(tried, key=lambda curve: curve.score)
    assert step.pool.curves[best.learner].size == sizes[-1]
