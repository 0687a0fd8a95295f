"""The default rule: closed forms against Monte Carlo, relations, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Logistic
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import Wait
from optuna_daub.core import replay
from optuna_daub.core.costs import in_seconds
from optuna_daub.core.forecasts.forecast import LOGISTIC
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.policies import value_per_second
from optuna_daub.core.policies.value_per_second import POINTS
from optuna_daub.core.policies.value_per_second import WEIGHTS
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.pool import Cost
from optuna_daub.core.sizes import geometric_sizes


SIZES = (500, 1000, 2000, 4000, 8000, 16000)
FULL = SIZES[-1]
FIRST = 1000  # a sixteenth


def curve(learner: int, *scores: float, seconds: Iterable[float] = ()) -> LearningCurve:
    times: list[float | None] = [*seconds] or [None] * len(scores)
    rows = zip(SIZES[1:], scores, times, strict=False)
    return LearningCurve(learner, tuple(Observation(n, y, seconds=t) for n, y, t in rows))


def known(seed: int, count: int = 12, spread: float = 0.05) -> list[LearningCurve]:
    """Power laws of random height and slope, with seconds."""
    rng = np.random.default_rng(seed)
    limit = rng.normal(0.8, spread, count)
    rise = rng.uniform(1.0, 4.0, count)
    speed = np.exp(rng.normal(0.0, 1.0, count))
    return [
        LearningCurve(
            i,
            tuple(
                Observation(n, limit[i] - rise[i] * n**-0.5, seconds=float(speed[i] * n / 1000))
                for n in SIZES
            ),
        )
        for i in range(count)
    ]


def changed(curves: list[LearningCurve], factor: float, shift: float) -> list[LearningCurve]:
    return [
        LearningCurve(
            c.learner,
            tuple(
                Observation(x.size, factor * x.score + shift, seconds=x.seconds)
                for x in c.observations
            ),
        )
        for c in curves
    ]


def steps(curves: list[LearningCurve], **options: object) -> list[tuple[int, int]]:
    policy = ValuePerSecond(SIZES, **options)  # type: ignore[arg-type]
    return [(d.learner, d.size) for d in replay(policy, curves) if isinstance(d, Extend)]


# The index.


def index(mean: float, shown: float, kept: float, now: float, later: float) -> float:
    least = float(
        Logistic(mean, LOGISTIC * math.hypot(shown, kept)).reservation_value(now + later)
    )
    numbers = (np.array([x]) for x in (mean, shown, kept, now, later, least))
    return float(value_per_second._two_stage_index(*numbers)[0])


@given(
    shown=st.floats(0.01, 0.1),
    kept=st.floats(0.005, 0.1),
    now=st.floats(1e-4, 0.01),
    later=st.floats(1e-4, 0.02),
)
def test_at_its_index_going_on_is_worth_its_price(
    shown: float, kept: float, now: float, later: float
) -> None:
    found = index(0.8, shown, kept, now, later)
    straight = Logistic(0.8, LOGISTIC * math.hypot(shown, kept)).reservation_value(now + later)
    if found > straight + 1e-6:
        at_points = Logistic(0.8 + shown * POINTS, LOGISTIC * kept).expected_improvement(found)
        worth = float(np.maximum(0.0, at_points - later) @ WEIGHTS)
        assert worth == pytest.approx(now, abs=1e-5)


def test_the_index_agrees_with_monte_carlo() -> None:
    mean, shown, kept, now, later = 0.8, 0.04, 0.02, 0.003, 0.006
    found = index(mean, shown, kept, now, later)
    moved = mean + shown * np.random.default_rng(0).normal(size=200_000)
    ahead = Logistic(moved, LOGISTIC * kept).expected_improvement(found)
    worth = float(np.maximum(0.0, ahead - later).mean())
    # Seven points cut the tails off: the index is a little low, never high.
    assert now < worth < 1.4 * now


def test_a_stop_that_shows_nothing_is_not_better_than_going_straight() -> None:
    straight = float(Logistic(0.8, LOGISTIC * 0.05).reservation_value(0.004))
    assert index(0.8, 0.0, 0.05, 0.001, 0.003) == pytest.approx(straight)


def test_points_stand_for_a_standard_normal() -> None:
    assert WEIGHTS.sum() == pytest.approx(1.0)
    assert pytest.approx(0.0, abs=1e-12) == WEIGHTS @ POINTS
    assert pytest.approx(0.83, abs=0.01) == WEIGHTS @ POINTS**2


@given(
    ahead=st.lists(st.floats(0.0, 0.1), min_size=len(POINTS), max_size=len(POINTS)),
    later=st.floats(0.1, 100.0),
    now=st.floats(0.01, 10.0),
)
def test_the_rate_of_newcomers_solves_its_equation(
    ahead: list[float], later: float, now: float
) -> None:
    gains = np.array(ahead)
    rate = value_per_second._rate(gains, later, now)
    left = float(WEIGHTS @ np.maximum(0.0, gains - rate * later))
    assert left == pytest.approx(rate * now, rel=1e-9, abs=1e-12)


# Relations.


@given(seed=st.integers(0, 200), factor=st.sampled_from([1e-3, 50.0]), shift=st.integers(-9, 9))
def test_affine_changes_of_scores_change_no_decision(seed: int, factor: float, shift: int) -> None:
    curves = known(seed)
    assert steps(curves) == steps(changed(curves, factor, shift))


@given(seed=st.integers(0, 200))
def test_the_order_of_learners_does_not_matter(seed: int) -> None:
    curves = known(seed)
    count = len(curves)
    turned = [LearningCurve(count - 1 - c.learner, c.observations) for c in curves]
    one, other = ([d for d in replay(ValuePerSecond(SIZES), x)][-1] for x in (curves, turned))
    assert isinstance(one, Finish)
    assert isinstance(other, Finish)
    assert one.learner == count - 1 - (other.learner or 0)


def test_examples_for_cost_ignore_seconds() -> None:
    curves = known(3)
    slower = [
        LearningCurve(
            c.learner,
            tuple(Observation(x.size, x.score, seconds=7.0 * c.learner) for x in c.observations),
        )
        for c in curves
    ]
    assert steps(curves, cost="examples") == steps(slower, cost="examples")


@given(seed=st.integers(0, 200))
def test_a_closed_pool_costs_less_than_training_everyone(seed: int) -> None:
    curves = known(seed, spread=0.05 * 10.0 ** -(seed % 6))
    spent = sum(size for _, size in steps(curves, cost="examples"))
    assert spent < len(curves) * FULL


@pytest.mark.parametrize("jitter", [0.0, 1e-6, 1e-3, 1e-2])
def test_near_ties_end(jitter: float) -> None:
    rng = np.random.default_rng(0)
    curves = [
        LearningCurve(
            i, tuple(Observation(n, 0.9 - 3 * n**-0.5 + jitter * rng.normal()) for n in SIZES)
        )
        for i in range(25)
    ]
    assert sum(size for _, size in steps(curves)) < 25 * FULL


@pytest.mark.parametrize("count", [5, 20, 60])
@pytest.mark.parametrize("spread", [0.0, 0.0005, 0.003])
@pytest.mark.parametrize("noise", [0.0, 0.0005, 0.002, 0.01])
def test_near_ties_never_cost_more_than_training_everyone(
    count: int, spread: float, noise: float
) -> None:
    """Candidates of one space, in examples; each probe is paid for in full."""
    rng = np.random.default_rng(count)
    curves = [
        LearningCurve(
            i, tuple(Observation(n, top - 2 * n**-0.5 + noise * rng.normal()) for n in SIZES)
        )
        for i, top in enumerate(0.8 + spread * rng.normal(size=count))
    ]
    assert sum(size for _, size in steps(curves)) <= count * FULL


@given(seed=st.integers(0, 100))
def test_asking_twice_gives_the_same(seed: int) -> None:
    policy, pool = ValuePerSecond(SIZES), Pool(Curves(c.before(4000) for c in known(seed)))
    assert policy.decide(pool) == policy.decide(pool)
    assert ValuePerSecond(SIZES).decide(Pool(Curves(pool.curves.values()))) == policy.decide(pool)


def test_a_higher_price_costs_no_more_on_average() -> None:
    def cost(price: float) -> int:
        return sum(n for seed in range(30) for _, n in steps(known(seed), price=price))

    assert cost(0.05) < cost(0.01) < cost(0.002)


def test_the_best_is_found_more_often_than_not() -> None:
    right = 0
    for seed in range(40):
        curves = known(seed)
        last = [*replay(ValuePerSecond(SIZES), curves)][-1]
        assert isinstance(last, Finish)
        right += last.learner == max(curves, key=lambda c: c.score).learner
    assert right >= 28, right


# Single decisions.


def test_one_learner_is_trained_on_everything() -> None:
    assert steps(known(0, count=1))[-1] == (0, FULL)


def test_equal_scores_end_after_one_full_training() -> None:
    curves = [LearningCurve(i, tuple(Observation(n, 0.7) for n in SIZES)) for i in range(5)]
    assert steps(curves) == [*((i, FIRST) for i in range(5)), (0, FULL)]


@pytest.mark.parametrize("above", [0.0, 1.2e-16, 1e-12])
@pytest.mark.parametrize("n_better", [0, 1, 2])
@pytest.mark.parametrize("n_tied", [3, 5, 8])
def test_where_half_tie_at_the_top_the_worst_is_not_trained_on_everything(
    n_tied: int, n_better: int, above: float
) -> None:
    """On few examples many learners know nothing but the largest class; they rise with more."""
    rise = (0.0, 0.0, 0.01, 0.02, 0.03)
    tied = [0.6, 0.7, *[0.9] * n_tied]
    tied[-1] += above
    curves = [
        LearningCurve(
            i,
            tuple(
                Observation(n, score + more * (i < len(tied) - n_better), seconds=n / 1000)
                for n, more in zip(SIZES[1:], rise, strict=True)
            ),
        )
        for i, score in enumerate(tied)
    ]
    made = steps(curves)
    promoted = [learner for learner, size in made if size > FIRST]
    assert promoted[0] >= 2
    assert not {0, 1} & {learner for learner, size in made if size == FULL}
    assert sum(size for _, size in made) < FULL * len(curves)


def test_where_scores_only_fall_the_worst_is_not_trained_on_everything() -> None:
    fallen = [curve(i, 0.9, last) for i, last in ((1, 0.7), (2, 0.8), (3, 0.75))]
    decision = ValuePerSecond(SIZES).decide(Pool(Curves([curve(0, 0.5), *fallen])))
    assert isinstance(decision, Extend)
    assert decision.learner > 0
    assert math.isfinite(decision.reason.scores[0])


def test_newcomers_of_a_closed_pool_come_first() -> None:
    decision = ValuePerSecond(SIZES).decide(Pool(Curves([curve(0, 0.7, 0.8)]), to_come=1))
    assert isinstance(decision, Propose)
    assert decision.size == FIRST


def test_a_learner_whose_first_probe_was_lost_starts_again() -> None:
    decision = ValuePerSecond(SIZES).decide(Pool(Curves([curve(0, 0.7), LearningCurve(1)])))
    assert isinstance(decision, Extend)
    assert (decision.learner, decision.size) == (1, FIRST)


def test_with_the_promising_learner_busy_a_hopeless_one_waits() -> None:
    scores = (0.95, 0.80, 0.79, 0.78, 0.20)
    curves = Curves([curve(i, score) for i, score in enumerate(scores)])
    decision = ValuePerSecond(SIZES).decide(Pool(curves, busy=frozenset({0, 1, 2, 3})))
    assert isinstance(decision, Wait)


def test_nobody_left() -> None:
    decision = ValuePerSecond(SIZES).decide(Pool(Curves([curve(0, 0.7).drop("failed")])))
    assert isinstance(decision, Finish)
    assert decision.learner is None


def test_one_slow_call_does_not_decide() -> None:
    """A first probe 40 s too long: the winner is the same, or as good."""
    for seed in range(10):
        curves = known(seed)
        best = max(curves, key=lambda c: c.score)
        slow = [
            LearningCurve(
                c.learner,
                tuple(
                    Observation(
                        x.size,
                        x.score,
                        seconds=(x.seconds or 0.0) + 40.0 * (x.size == FIRST and c is best),
                    )
                    for x in c.observations
                ),
            )
            for c in curves
        ]
        one, other = ([*replay(ValuePerSecond(SIZES), x)][-1] for x in (curves, slow))
        assert isinstance(one, Finish)
        assert isinstance(other, Finish)
        assert one.learner == other.learner


# Open pools.


def run_open(
    seed: int, mean_full: float, growth: float = 1.0
) -> tuple[list[tuple[str, int]], list[float]]:
    """Actions, and when there were full-data scores, for so many mean full trainings.

    Seconds grow with size to the power of `growth`.
    """
    everyone = [
        LearningCurve(
            c.learner,
            tuple(
                replace(x, seconds=(x.seconds or 0.0) * (x.size / FULL) ** (growth - 1.0))
                for x in c.observations
            ),
        )
        for c in known(seed, count=2000)
    ]
    unit = float(np.mean([c.observations[-1].seconds or 0.0 for c in everyone]))
    policy, pool, actions, full = ValuePerSecond(SIZES), Pool(to_come=None), [], []
    following = 0
    while pool.spent.seconds < mean_full * unit:
        decision = policy.decide(pool)
        if isinstance(decision, Propose):
            learner, following = following, following + 1
            pool = pool.with_newcomer(learner)
        else:
            assert isinstance(decision, Extend)
            learner = decision.learner
        actions.append((type(decision).__name__, decision.size))
        seen = everyone[learner].at(decision.size)
        assert seen is not None
        pool = pool.observed(learner, seen)
        if decision.size == FULL:
            full.append(pool.spent.seconds / unit)
    return actions, full


@pytest.mark.parametrize("seed", range(4))
def test_an_open_pool_has_a_full_model_early_and_goes_on(seed: int) -> None:
    actions, full = run_open(seed, 12.0)
    assert full[0] < 2.0
    assert len(full) >= 2
    kinds = {kind for kind, _ in actions}
    assert kinds == {"Propose", "Extend"}


@pytest.mark.parametrize("growth", [0.0, 0.3, 1.5])
def test_a_full_model_comes_early_however_time_grows_with_size(growth: float) -> None:
    """Were time taken to grow as size does, N would seem to cost 32 first probes."""
    first = []
    for seed in range(6):
        actions, full = run_open(seed, 12.0, growth)
        before = [size for _, size in actions].index(FULL)
        assert full[0] < 2.0 or before <= 4  # the first probes may have been the dear ones
        first.append(full[0])
    # Where every training costs the same, two newcomers, the probe and the model are four of them.
    assert np.median(first) < (2.5 if growth else 4.5)


def test_the_first_full_model_costs_no_more_than_twice_what_was_spent() -> None:
    """The best looking learner takes a hundred times as long as the others."""
    rows = [(500, 0.60, 1.0), (500, 0.61, 1.0), (1000, 0.70, 2.0), (500, 0.80, 100.0)]
    curves = Curves(
        LearningCurve(i, (Observation(n, score, seconds=t),))
        for i, (n, score, t) in enumerate(rows)
    )
    policy = ValuePerSecond(SIZES)
    for spent, expected in ((10.0, None), (104.0, {0, 1, 2}), (1e4, {3})):
        decision = policy.decide(Pool(curves, to_come=None, spent=Cost(0, spent)))
        if expected is None:
            assert isinstance(decision, Propose)
        else:
            assert isinstance(decision, Extend)
            assert (decision.learner in expected, decision.size) == (True, FULL)


def test_the_first_full_model_is_one_that_is_in_time_where_any_is() -> None:
    """The best looking learner is affordable, and would end long after the time is over."""
    rows = [(500, 0.60, 1.0), (500, 0.61, 1.0), (1000, 0.70, 2.0), (500, 0.80, 100.0)]
    curves = Curves(
        LearningCurve(i, (Observation(n, score, seconds=t),))
        for i, (n, score, t) in enumerate(rows)
    )
    for left, is_dear in ((1e5, True), (100.0, False)):
        pool = Pool(curves, to_come=None, spent=Cost(0, 1e4), left=Cost(0, left))
        decision = ValuePerSecond(SIZES).decide(pool)
        assert isinstance(decision, Extend)
        assert (decision.learner == 3, decision.size) == (is_dear, FULL)


def test_with_little_time_left_the_cheapest_learner_goes_to_all_the_data() -> None:
    curves = Curves(
        LearningCurve(i, (Observation(n, score, seconds=t),))
        for i, (n, score, t) in enumerate([(500, 0.6, 1.0), (500, 0.9, 2.0), (1000, 0.7, 4.0)])
    )
    policy, spent = ValuePerSecond(SIZES), Cost(0, 7.0)  # all the data cost 30 seconds and more

    def decided(left: float) -> object:
        return policy.decide(Pool(curves, to_come=None, spent=spent, left=Cost(10**9, left)))

    assert isinstance(decided(200.0), Propose)
    assert isinstance(decided(10.0), Propose), "it would not be through in time"
    decision = decided(50.0)
    assert isinstance(decision, Extend)
    assert (decision.learner, decision.size) == (0, FULL)


def test_an_open_pool_of_large_data_has_a_full_model_before_a_hundred_learners() -> None:
    sizes = geometric_sizes(500, 1_000_000, 1.5)
    policy, pool, rng = ValuePerSecond(sizes), Pool(to_come=None), np.random.default_rng(0)
    for _ in range(100):
        decision = policy.decide(pool)
        learner = decision.learner if isinstance(decision, Extend) else len(pool.curves)
        if isinstance(decision, Propose):
            pool = pool.with_newcomer(learner)
        assert isinstance(decision, Propose | Extend)
        score = 0.8 - 2.0 * decision.size**-0.5 + rng.normal(0.0, 0.02)
        pool = pool.observed(learner, Observation(decision.size, score, seconds=decision.size))
        if decision.size == sizes[-1]:
            return
    pytest.fail("no learner was trained on all the data")


def forests(spent: float, *, is_named: bool = True) -> Pool:
    """An open pool of ten forests whose seconds grow with their trees, 16 on all the data at 1.

    Their scores do not.
    """
    curves = [
        LearningCurve(
            i,
            tuple(
                Observation(n, score - n**-0.5, seconds=(i + 1) * n / 1e3)
                for n in (SIZES if i == 9 else SIZES[:1])
            ),
            parameters={"trees": i + 1} if is_named else {},
        )
        for i, score in enumerate(0.6 + 0.01 * (np.arange(2, 32, 3) % 10))
    ]
    return Pool(Curves(curves), to_come=None, spent=Cost(0, spent))


@pytest.mark.parametrize("spent", [3.0, 25.0, 250.0, 3e3, 3e4])
@pytest.mark.parametrize("trees", [1, 8, 1000])
def test_newcomers_start_where_they_are_affordable_were_they_dear(
    spent: float, trees: int
) -> None:
    policy = ValuePerSecond(SIZES)
    pool = forests(spent).with_newcomer(10, {"trees": trees})
    start = policy._first_step(pool, 10).size
    guess = policy._guess(pool.curves, 10)
    most = value_per_second.PROBE * spent
    seconds = math.exp(guess.log_cost + value_per_second.DEAR * guess.error) * start / FULL
    assert start == SIZES[0] or seconds <= most
    if spent == 3e4 and trees < 1000:
        assert start == FULL, "by now even the dear ones cost little"
    assert policy._first_step(forests(spent).with_newcomer(10, {"trees": 1}), 10).size >= start


@pytest.mark.parametrize("spent", [60.0, 250.0, 3e3])
def test_of_newcomers_that_cost_the_same_a_poor_one_starts_smaller(spent: float) -> None:
    curves = [
        LearningCurve(
            i,
            tuple(
                Observation(n, 0.6 + 0.02 * i - n**-0.5, seconds=n / 1e3)
                for n in (SIZES if i in (3, 6) else SIZES[:1])
            ),
            parameters={"quality": i + 1},
        )
        for i in range(10)
    ]
    pool = Pool(Curves(curves), to_come=None, spent=Cost(0, spent))
    poor, good = (
        ValuePerSecond(SIZES)._first_step(pool.with_newcomer(10, {"quality": quality}), 10).size
        for quality in (1, 10)
    )
    assert poor == SIZES[0] < good


def test_where_a_newcomer_starts_its_own_kind_says_what_little_data_would_cost() -> None:
    """Each kind takes 16 seconds on all the data: lines on any data, trees as its size."""
    power = {"line": 0.0, "tree": 1.0}
    curves = []
    for i, kind in enumerate(["line", "tree"] * 10):
        seconds = {n: 16.0 * (n / FULL) ** power[kind] for n in SIZES}
        seen = tuple(Observation(n, 0.7 - n**-0.5, seconds=s) for n, s in seconds.items())
        curves.append(LearningCurve(i, seen, parameters={"kind": kind}))
    pool, policy = Pool(Curves(curves), to_come=None, spent=Cost(0, 500.0)), ValuePerSecond(SIZES)
    costs = {}
    for kind in power:
        asked = pool.with_newcomer(20, {"kind": kind})
        starts = policy._starts(asked, policy._guess(asked.curves, 20), 20)
        costs[kind] = {x.size: x.now - policy._overhead(asked) for x in starts}
        assert [*costs[kind]][:: len(starts) - 1] == [FULL, SIZES[0]]
    for each in costs.values():
        assert each[FULL] == pytest.approx(16.0, rel=0.05)
    # In truth 16 and 0.5: what kinds say is drawn towards the mean of all.
    assert costs["line"][SIZES[0]] > 4.0 * costs["tree"][SIZES[0]]


@pytest.mark.parametrize("left", [1.0, 10.0, 100.0, 1e4, 1e6])
def test_newcomers_are_declined_that_would_be_late_were_they_cheaper_than_predicted(
    left: float,
) -> None:
    policy = ValuePerSecond(SIZES)
    pool = replace(forests(250.0), left=Cost(0, left))
    declined = {}
    for trees in (1, 8, 1000):
        asked = pool.with_newcomer(10, {"trees": trees})
        guess = policy._guess(asked.curves, 10)
        reason = policy._declines(asked, 10)
        least = math.exp(guess.log_cost - value_per_second.LATE * guess.error)
        assert (reason is not None) == (least > left)
        declined[trees] = reason is not None
        if reason is not None:
            cost = math.exp(guess.log_cost)
            shown = f"{cost:,.0f}" if cost >= 1000.0 else f"{cost:.3g}"
            assert f"take {shown} seconds" in str(reason)
            assert f"{left:.3g} are left" in str(reason)
    assert declined[1] <= declined[8] <= declined[1000]
    assert declined[1] == (left < 100.0)
    assert declined[1000] == (left < 1e4)


def test_none_is_declined_where_no_end_is_known_or_there_is_no_full_model_yet() -> None:
    policy = ValuePerSecond(SIZES)
    late = replace(forests(250.0), left=Cost(0, 1e-3)).with_newcomer(10, {"trees": 1000})
    assert policy._declines(late, 10) is not None
    assert policy._declines(replace(late, left=None), 10) is None
    assert policy._declines(replace(late, to_come=3), 10) is None
    assert replace(policy, cost="examples")._declines(late, 10) is None
    begun = [curve for curve in late.curves.values() if curve.size < FULL]
    assert policy._declines(replace(late, curves=Curves(begun)), 10) is None


@pytest.mark.parametrize("slow", [1.0, 30.0, 1e6])
@pytest.mark.parametrize("sizes", [(6, 9, 15, 24, 36, 54), (6, 9, 54), SIZES])
def test_an_open_pool_without_an_end_does_not_end(sizes: tuple[int, ...], slow: float) -> None:
    """However dear one of the first two learners is, a newcomer is proposed in the end."""
    policy, pool = ValuePerSecond(sizes), Pool(to_come=None)
    for learner, factor in enumerate((1.0, slow)):
        pool = pool.with_newcomer(learner, {"x": learner})
        for n in (sizes[0], sizes[-1]):
            pool = pool.observed(learner, Observation(n, 0.8 - 1 / n, seconds=factor * n))
    assert isinstance(policy.decide(pool), Propose)
    start = policy._first_step(pool.with_newcomer(2, {"x": 2}), 2)
    assert start.learner == 2
    assert start.size in sizes


@pytest.mark.parametrize(("left", "size"), [(1e-3, SIZES[0]), (1e3, FULL)])
def test_in_the_last_run_a_newcomer_goes_to_all_the_data_if_it_is_in_time(
    left: float, size: int
) -> None:
    pool = replace(forests(250.0), left=Cost(0, left), runs_left=0)
    assert ValuePerSecond(SIZES)._first_step(pool.with_newcomer(10, {"trees": 3}), 10).size == size


def test_in_the_last_run_a_learner_that_lost_its_worker_is_not_in_the_way() -> None:
    pool = replace(forests(250.0), runs_left=0)
    policy = ValuePerSecond(SIZES)
    assert policy.decide(pool.with_newcomer(10, {"trees": 3})) == policy.decide(pool)


def test_where_runs_are_scarce_newcomers_start_on_more() -> None:
    pool = forests(250.0)
    few = replace(pool, runs_left=9)
    policy = ValuePerSecond(SIZES)
    assert policy._newcomer(pool)[0] < policy._newcomer(few)[0]


def test_without_parameters_a_newcomer_starts_where_it_was_proposed_for() -> None:
    policy, starts = ValuePerSecond(SIZES), set[int]()
    for spent in (3.0, 250.0, 3e3, 3e4):
        pool = forests(spent, is_named=False)
        start, _ = policy._newcomer(pool)
        starts.add(start)
        assert policy._first_step(pool.with_newcomer(10), 10).size == start
    assert starts == {500, 1000, FULL}


def test_of_the_time_spent_and_the_time_left_the_shorter_counts() -> None:
    """As an action's overhead, which lowers the value per second of all of them."""
    curves = Curves([c.before(4000) for c in known(1)][:6]).put(known(1)[6])
    policy = ValuePerSecond(SIZES)

    def rate(spent: float, left: float | None) -> float:
        end = None if left is None else Cost(10**9, left)
        return policy._newcomer(Pool(curves, to_come=None, spent=Cost(0, spent), left=end))[1]

    assert rate(1e3, 1e5) == rate(1e5, 1e3) == rate(1e3, None)
    assert rate(1e5, 1e4) < rate(1e5, 1e3)
    assert rate(1e4, None) < rate(1e3, None)


# One newcomer in ten.

DRAWN = (5, 15, 25, 35)
"""The places of forty that are trained on all the data whatever they promise."""


def checked_pool(count: int, spent: float, left: float | None = None) -> Pool:
    """Learner 0 on all the data, which take 16 s, and others on little, the drawn ones worst."""
    rows = [curve(0, 0.80, 0.81, 0.82, 0.83, 0.84, seconds=[1.0, 2.0, 4.0, 8.0, 16.0])]
    for i in range(1, count):
        rows.append(curve(i, 0.3 if i in DRAWN else 0.79 - 0.001 * i, seconds=[1.0]))
    left_over = None if left is None else Cost(0, left)
    return Pool(Curves(rows), to_come=None, spent=Cost(0, spent), left=left_over)


def checked(pool: Pool) -> int | None:
    """Return the learner that goes on to check forecasts."""
    decision = ValuePerSecond(SIZES).decide(pool)
    if not isinstance(decision, Extend) or decision.reason != value_per_second.CHECK:
        return None
    assert decision.size == FULL
    return decision.learner


@pytest.mark.parametrize("left", [None, 1000.0])
def test_one_newcomer_in_ten_is_trained_on_all_the_data_whatever_it_promises(
    left: float | None,
) -> None:
    pool, seen = checked_pool(40, 1000.0, left), []
    while (learner := checked(pool)) is not None:
        seen.append(learner)
        pool = pool.observed(learner, Observation(FULL, 0.31, seconds=16.0))
    assert tuple(seen) == DRAWN


@pytest.mark.parametrize("step", [1, 2, 3, 4, 10])
def test_whatever_ids_newcomers_have_one_in_ten_is_drawn(step: int) -> None:
    rows = [curve(i * step, 0.5, seconds=[1.0]) for i in range(400)]
    full = curve(400 * step, 0.80, 0.81, 0.82, 0.83, 0.84, seconds=[1.0, 2.0, 4.0, 8.0, 16.0])
    pool = Pool(Curves([*rows, full]), to_come=None, spent=Cost(0, 1e6))
    policy = ValuePerSecond(SIZES)
    table = policy._table(pool.curves)
    assert 35 <= policy._checked(pool, table, np.ones(401, bool)).sum() <= 45


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 15),
        ({"to_come": 0}, None),
        ({"busy": frozenset({5})}, 15),
        ({"busy": frozenset({5, 15})}, None),
        ({"spent": Cost(0, 20.0)}, None),
        ({"left": Cost(0, 30.0)}, None),
        ({"runs_left": 5}, None),
    ],
    ids=[
        "one is paid",
        "closed",
        "one in flight",
        "two in flight",
        "begun",
        "nearly over",
        "runs",
    ],
)
def test_what_is_checked_costs_half_of_the_time_at_most(
    changes: dict[str, object], expected: int | None
) -> None:
    """Two trainings of 16 s, of 70 spent."""
    pool = checked_pool(40, 54.0)
    if "busy" not in changes:
        pool = pool.observed(5, Observation(FULL, 0.31, seconds=16.0))
    changed_pool = replace(pool, **({"spent": Cost(0, 70.0)} | changes))  # type: ignore[arg-type]
    assert checked(changed_pool) == expected


def test_what_was_checked_and_dropped_is_paid_for() -> None:
    pool = checked_pool(40, 70.0)
    rows = [*pool.curves.values()]
    for i in DRAWN[:2]:
        seen = Observation(FULL, 0.31, seconds=16.0)
        rows[i] = rows[i].extended(seen).drop("violates a constraint")
    assert checked(replace(pool, curves=Curves(rows))) is None
    rows[5] = checked_pool(40, 70.0).curves[5].drop("failed before")
    assert checked(replace(pool, curves=Curves(rows))) == 25


def test_who_waits_for_a_check_is_told_of_whom() -> None:
    said = str(ValuePerSecond(SIZES).explain(checked_pool(8, 1000.0), 1))
    assert said == (
        "learner 5 goes first: one newcomer in 10 is trained on all the data, whatever it promises"
    )


def test_learners_that_are_behind_on_little_data_only_are_found_early() -> None:
    """Every fourth learner loses far more of its score on few examples than the others."""

    def score(learner: int, n: int) -> float:
        share, height = math.sqrt(SIZES[0] / n), 0.001 * (learner % 7)
        return 0.9 + height - 0.4 * share if learner % 4 == 1 else 0.75 + height - 0.03 * share

    def found() -> float:
        """Return after how many full trainings the first of these was trained on all the data."""
        policy, pool = ValuePerSecond(SIZES), Pool(to_come=None)
        while not any(c.size == FULL and c.score > 0.8 for c in pool.curves.values()):
            decision = policy.decide(pool)
            if isinstance(decision, Propose):
                learner = len(pool.curves)
                pool = pool.with_newcomer(learner)
            else:
                assert isinstance(decision, Extend)
                learner = decision.learner
            n = decision.size
            pool = pool.observed(learner, Observation(n, score(learner, n), seconds=n / FULL))
        return pool.spent.seconds

    early = found()
    with patch.object(value_per_second, "CHECKED", 1_000_000):
        assert 3.0 * early < found()


# What base samplers maximise.


def open_pool(curves: list[LearningCurve], spent: float = 500.0) -> Pool:
    """A pool in which all but the first two learners still have to go to all the data."""
    begun = [*curves[:2], *(c.before(4000) for c in curves[2:])]
    return Pool(Curves(begun), to_come=None, spent=Cost(0, spent))


def forecast_means(pool: Pool) -> list[float]:
    return [float(x) for x in Joint().forecasts(pool, FULL).all.mean]


def test_worth_are_forecasts_less_what_training_costs_at_the_rate_of_newcomers() -> None:
    curves = known(1)
    pool, policy = open_pool(curves), ValuePerSecond(SIZES)
    _, rate = policy._newcomer(pool)
    assert rate > 0.0
    taken_off = np.array(forecast_means(pool)) - policy.worth(pool)
    # Times are known on all the data of two learners, and of the others grow as size does.
    seconds = np.array([c.observations[-1].seconds or 0.0 for c in curves])
    assert taken_off == pytest.approx(rate * seconds)


@pytest.mark.parametrize("are_best_begun_on", [False, True])
def test_a_second_is_worth_at_least_half_of_what_the_best_suspended_learner_promises(
    *, are_best_begun_on: bool
) -> None:
    curves = known(1)
    if are_best_begun_on:  # then newcomers promise more than what is suspended
        ordered = sorted(curves, key=lambda curve: -curve.score)
        curves = [replace(curve, learner=i) for i, curve in enumerate(ordered)]
    pool, policy = open_pool(curves), ValuePerSecond(SIZES)
    _, rate = policy._newcomer(pool)
    best = max(curve.score for curve in pool.curves.values() if curve.size == FULL)
    forecasts = Joint().forecasts(pool, FULL)
    overhead = value_per_second.HASTE * pool.spent.seconds
    half = 0.5 * max(
        float(forecasts[i].expected_improvement(best))
        / ((curves[i].observations[-1].seconds or 0.0) + overhead)
        for i, curve in pool.curves.items()
        if curve.size < FULL
    )
    assert (half < rate) == are_best_begun_on
    assert policy._weight(pool) == pytest.approx(max(rate, half))
    values = policy._boxes(pool).values
    assert (values > best).any() or are_best_begun_on, "the best is worth going on with"


def test_of_two_learners_forecast_alike_the_cheaper_is_worth_more() -> None:
    rows = [(0.70, 16.0), (0.80, 1.0), (0.80, 9.0)]
    full = LearningCurve(3, tuple(Observation(n, 0.75, seconds=n / 1000) for n in SIZES))
    cheap = (LearningCurve(i, (Observation(1000, y, seconds=t),)) for i, (y, t) in enumerate(rows))
    pool = Pool(Curves([*cheap, full]), to_come=None, spent=Cost(0, 50.0))
    means, net = forecast_means(pool), ValuePerSecond(SIZES).worth(pool)
    assert means[1] == pytest.approx(means[2])
    assert net[1] > net[2]


def test_as_time_goes_by_costs_count_for_less() -> None:
    curves = known(1)
    taken_off = []
    for spent in (1e2, 1e3, 1e4):
        pool = open_pool(curves, spent)
        taken_off.append(forecast_means(pool)[2] - ValuePerSecond(SIZES).worth(pool)[2])
    assert taken_off[0] > taken_off[1] > taken_off[2] > 0.0


@pytest.mark.parametrize("name", ["closed", "no full model", "one learner", "nothing"])
def test_without_a_rate_worth_are_the_forecasts(name: str) -> None:
    curves = known(1)
    pool = {
        "closed": replace(open_pool(curves), to_come=0),
        "no full model": Pool(Curves([c.before(4000) for c in curves]), to_come=None),
        "one learner": Pool(Curves(curves[:1]), to_come=None),
        "nothing": Pool(to_come=None),
    }[name]
    assert ValuePerSecond(SIZES).worth(pool).tolist() == forecast_means(pool)


@given(seed=st.integers(0, 200), factor=st.sampled_from([1e-3, 50.0]), shift=st.integers(-9, 9))
def test_affine_changes_of_scores_change_worth_alike(seed: int, factor: float, shift: int) -> None:
    policy, curves = ValuePerSecond(SIZES), known(seed)
    net = policy.worth(open_pool(curves))
    other = policy.worth(open_pool(changed(curves, factor, shift)))
    assert other == pytest.approx(factor * net + shift, rel=1e-6, abs=1e-6 * factor)


def test_explanations_speak_of_both_learners() -> None:
    pool = Pool(Curves([curve(0, 0.80), curve(1, 0.79), curve(2, 0.60)]))
    policy = ValuePerSecond(SIZES)
    decision = policy.decide(pool)
    assert isinstance(decision, Extend)
    other = 2 if decision.learner != 2 else 0
    assert f"learner {decision.learner}" in str(policy.explain(pool, other))
    assert policy.leader(pool) == 0
    assert policy.interval(pool, 0).lower < 0.85


@pytest.mark.parametrize(
    "pool",
    [
        # One that was proposed, and lost its worker.
        Pool(Curves([curve(0, 0.80), curve(1, 0.79), LearningCurve(2)])),
        # A pool that was made larger after its first full training.
        Pool(Curves([curve(0, 0.80, 0.81, 0.82, 0.83, 0.84), curve(1, 0.79)]), to_come=1),
    ],
)
def test_where_a_newcomer_has_the_turn_no_indices_are_compared(pool: Pool) -> None:
    policy = ValuePerSecond(SIZES)
    assert policy.explain(pool, 1) == policy.decide(pool).reason


class TestRunsLeft:
    """Open pools whose runs are numbered."""

    def pool(self, runs_left: int | None, *, is_full: bool = True, seed: int = 0) -> Pool:
        begun = [c.before(2000) for c in known(seed)]
        full = known(seed)[5:6] if is_full else []
        spent = Cost(10_000, 20.0)
        return Pool(Curves([*begun, *full]), to_come=None, spent=spent, runs_left=runs_left)

    @pytest.mark.parametrize("is_full", [True, False])
    @pytest.mark.parametrize("seed", range(6))
    def test_the_last_run_is_on_all_the_data(self, seed: int, is_full: bool) -> None:
        pool = self.pool(0, is_full=is_full, seed=seed)
        decision = ValuePerSecond(SIZES).decide(pool)
        assert isinstance(decision, Extend | Propose)
        assert decision.size == FULL
        assert "last run" in str(decision.reason)

    def test_of_a_free_choice_the_best_forecast_goes_last(self) -> None:
        """All cost the same, and newcomers are like those before."""
        curves = Curves(curve(i, 0.6 + i / 100, seconds=(1.0,)) for i in range(20))
        pool = Pool(curves, to_come=None, spent=Cost(20_000, 20.0), runs_left=0)
        decision = ValuePerSecond(SIZES).decide(pool)
        assert isinstance(decision, Extend)
        assert (decision.learner, decision.size) == (19, FULL)
        busy = ValuePerSecond(SIZES).decide(replace(pool, busy=frozenset({19})))
        assert isinstance(busy, Extend)
        assert (busy.learner, busy.size) == (18, FULL)

    def test_the_only_run_is_on_all_the_data(self) -> None:
        decision = ValuePerSecond(SIZES).decide(Pool(to_come=None, runs_left=0))
        assert isinstance(decision, Propose)
        assert decision.size == FULL

    def test_what_would_not_be_through_in_time_is_not_begun_in_the_last_run_either(self) -> None:
        pool = replace(self.pool(0), left=Cost(10**9, 1e-6))
        assert isinstance(ValuePerSecond(SIZES).decide(pool), Finish)

    def test_halfway_without_a_full_model_one_is_begun(self) -> None:
        """Where all trainings cost the same, none is affordable for long."""
        curves = Curves(curve(i, 0.6 + i / 100, seconds=(1.0,)) for i in range(4))
        pool = Pool(curves, to_come=None, spent=Cost(4_000, 4.0))
        policy = ValuePerSecond(SIZES)
        for runs_left, size in ((None, FIRST), (100, FIRST), (4, FIRST), (3, FULL)):
            decision = policy.decide(replace(pool, runs_left=runs_left))
            assert isinstance(decision, Extend | Propose)
            assert (decision.size == FULL) == (size == FULL)

    @pytest.mark.parametrize("seed", range(6))
    def test_far_from_the_end_nothing_changes(self, seed: int) -> None:
        policy = ValuePerSecond(SIZES)
        assert policy.decide(self.pool(10**6, seed=seed)) == policy.decide(
            self.pool(None, seed=seed)
        )

    def test_closed_pools_do_not_look_at_it(self) -> None:
        pool = replace(self.pool(0), to_come=0)
        policy = ValuePerSecond(SIZES)
        assert policy.decide(pool) == policy.decide(replace(pool, runs_left=None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "money"}, "`cost` must be one of .*, but got 'money'"),
        ({"price": -1.0}, "`price` must be at least 0 and finite, but got -1.0"),
        ({"price": math.inf}, "`price` must be at least 0 and finite, but got inf"),
    ],
)
def test_arguments_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ValuePerSecond(SIZES, **options)  # type: ignore[arg-type]


def _first_and_half(first: float, half: float) -> tuple[Observation, ...]:
    sizes = (SIZES[0], 0.5, first), (FULL // 2, 8.0, half)
    return tuple(Observation(n, score, seconds=seconds) for n, seconds, score in sizes)


class TestTimeLeft:
    """Training on N takes 16 s, and a learner known to its first size would need all of them."""

    def pool(self, left: float | None) -> Pool:
        known = [
            curve(0, 0.70, 0.74, 0.77, 0.79, 0.80, seconds=(1, 2, 4, 8, 16)),
            curve(1, 0.79, seconds=(1,)),
            curve(2, 0.60, seconds=(1,)),
        ]
        end = None if left is None else Cost(0, left)
        return Pool(Curves(known), to_come=None, spent=Cost(34_000, 33.0), left=end)

    @pytest.mark.parametrize("left", [None, 1000.0, 40.0])
    def test_with_time_enough_the_search_goes_on(self, left: float | None) -> None:
        assert isinstance(ValuePerSecond(SIZES).decide(self.pool(left)), Extend | Propose)

    @pytest.mark.parametrize("left", [0.0, 5.0, 10.0])
    def test_what_would_not_be_through_in_time_is_not_begun(self, left: float) -> None:
        decision = ValuePerSecond(SIZES).decide(self.pool(left))
        assert isinstance(decision, Finish)
        assert decision.learner == 0
        assert "time left" in str(decision.reason)

    def test_what_is_begun_goes_on_to_the_end_where_it_would_surely_be_in_time(self) -> None:
        """16 s are predicted, or half a second more, to be sure; of a newcomer twice as many."""
        far, near = (0.795, 0.80), (0.60, 0.61)
        for left, chosen in ((17.0, 2), (16.2, None), (15.0, None)):
            curves = [
                curve(0, 0.70, 0.74, 0.77, 0.79, 0.80, seconds=(4, 8, 16, 32, 64)),
                LearningCurve(1, _first_and_half(*near)),
                LearningCurve(2, _first_and_half(*far)),
                curve(3, 0.80, seconds=(4,)),
            ]
            pool = replace(self.pool(left), curves=Curves(curves))
            decision = ValuePerSecond(SIZES).decide(pool)
            if chosen is None:  # one like the cheapest is predicted to take 16 s
                assert isinstance(decision, Propose if left > 16.0 else Finish)
                held = ValuePerSecond(SIZES).decide(replace(pool, busy=frozenset({3})))
                assert isinstance(held, Propose if left > 16.0 else Wait)
            else:
                # No newcomer like most is in time: of what is begun the best goes on, to the end.
                assert isinstance(decision, Extend)
                assert (decision.learner, decision.size) == (chosen, FULL)

    @pytest.mark.parametrize("left", [16.5, 20.0, 30.0])
    def test_before_a_full_model_one_that_may_be_late_is_better_than_none(
        self, left: float
    ) -> None:
        """In a closed pool as in the last run of an open one."""
        curves = Curves(curve(i, 0.6 + i / 100, seconds=(1.0,)) for i in range(3))
        closed = Pool(curves, to_come=0, spent=Cost(3_000, 3.0), left=Cost(10**9, left))
        decision = ValuePerSecond(SIZES).decide(closed)
        assert isinstance(decision, Extend)
        last = replace(closed, to_come=None, runs_left=0)
        decision = ValuePerSecond(SIZES).decide(last)
        assert isinstance(decision, Extend)
        assert (decision.learner, decision.size) == (2, FULL)
        newcomer = ValuePerSecond(SIZES)._first_step(last.with_newcomer(3, {"x": 1}), 3)
        assert newcomer.size == FULL

    def test_the_margin_grows_with_the_way_left(self) -> None:
        """Half a standard deviation of exponents, once there is a full model to fall back on."""
        policy, pool = ValuePerSecond(SIZES), self.pool(25.0)
        error = in_seconds(pool.curves).error
        assert 0.05 < error < 0.17, "one learner's exponent is known"
        expected = [(16000 / n) ** (error / 2) for n in SIZES]
        assert policy._margin(pool, np.array(SIZES)) == pytest.approx(expected)
        begun = Curves([c.before(16000) for c in pool.curves.values()])
        for other in (
            replace(pool, curves=begun),
            replace(pool, to_come=0),
            replace(pool, runs_left=0),
        ):
            assert policy._margin(other, np.array(SIZES)) == pytest.approx(np.ones(len(SIZES)))

    def test_what_would_be_too_late_keeps_nothing_else_from_going_on(self) -> None:
        """It promises a thousand times as much per second; newcomers would be too late as well."""
        curves = [
            curve(0, 0.70, 0.74, 0.77, 0.79, 0.80, seconds=(4, 8, 16, 32, 64)),
            LearningCurve(1, _first_and_half(0.77, 0.785)),
            curve(2, 0.99, seconds=(4,)),
            curve(3, 0.70, seconds=(4,)),
        ]
        pool = replace(self.pool(20.0), curves=Curves(curves))
        decision = ValuePerSecond(SIZES).decide(pool)
        assert isinstance(decision, Extend)
        assert (decision.learner, decision.size) == (1, FULL)

    def test_examples_know_no_seconds(self) -> None:
        policy = ValuePerSecond(SIZES, cost="examples")
        assert policy.decide(self.pool(5.0)) == policy.decide(self.pool(None))

    def test_a_learner_that_would_not_be_through_in_time_is_told_so(self) -> None:
        pool, policy = self.pool(5.0), ValuePerSecond(SIZES)
        behind = next(c.learner for c in pool.curves.values() if c.size < SIZES[-1])
        text = str(policy.explain(pool, behind))
        assert text == "the time left is too short to train it on all the data"


class TestNothingTimed:
    """Costs are in examples then, and no time left can be compared with them."""

    @pytest.mark.parametrize("to_come", [0, None])
    def test_the_search_goes_on_as_if_no_end_were_known(self, to_come: int | None) -> None:
        curves = Curves([curve(0, 0.70, 0.72, 0.73, 0.74, 0.75), curve(1, 0.745, 0.76)])
        pool = Pool(curves, to_come=to_come, spent=Cost(50_000, 0.0))
        policy = ValuePerSecond(SIZES)
        decision = policy.decide(pool)
        assert not isinstance(decision, Finish)
        assert policy.decide(replace(pool, left=Cost(0, 5.0))) == decision

    def test_sentences_name_the_unit_that_counts(self) -> None:
        curves = Curves([curve(i, 0.5, 0.5, 0.5, 0.5, 0.5) for i in range(3)])
        pool = Pool(curves, to_come=None, spent=Cost(10_000, 0.0))
        decision = ValuePerSecond(SIZES).decide(pool)
        assert isinstance(decision, Propose)
        assert "of improvement per example" in str(decision.reason)


@pytest.mark.parametrize("dropped", ["", "score nan at 1,000 examples"])
def test_without_time_for_a_full_training_the_best_forecast_is_the_answer(dropped: str) -> None:
    curves = [curve(i, score, seconds=(1.0,)) for i, score in enumerate((0.5, 0.9, 0.7))]
    curves[0] = replace(curves[0], dropped=dropped)
    pool = Pool(Curves(curves), to_come=0, spent=Cost(3_000, 3.0), left=Cost(0, 2.0))
    decision = ValuePerSecond(SIZES).decide(pool)
    assert isinstance(decision, Finish)
    assert decision.learner == 1
    assert "full-data score" not in str(decision.reason)
