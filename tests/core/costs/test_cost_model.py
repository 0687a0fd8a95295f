"""Cost models: what pools of learners will cost, as distributions; bills."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.costs.cost_model import NEWEST
from optuna_daub.core.costs.cost_model import SLOWEST
from optuna_daub.core.costs.cost_model import InExamples
from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.cost_model import efforts
from optuna_daub.core.costs.cost_model import taking_part
from optuna_daub.core.costs.cost_model import typical_seconds
from optuna_daub.core.costs.going_on import new_costs
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


FULL = 16_000
SIZES = tuple(1000 * 2**step for step in range(5))


def timed(*seconds: dict[int, float], **parameters: Any) -> Curves:
    """A learner for each of these, with its seconds by size."""
    return Curves(
        LearningCurve(
            i,
            tuple(Observation(n, 0.5, seconds=s) for n, s in own.items()),
            parameters=dict(parameters),
        )
        for i, own in enumerate(seconds)
    )


@given(
    st.floats(-5.0, 5.0),
    st.floats(0.0, 3.0),
    st.lists(st.floats(0.0, 1e6), min_size=2, max_size=9),
)
@settings(deadline=None)
def test_the_chance_to_be_in_time_grows_with_the_time(
    log_mean: float, log_sd: float, left: list[float]
) -> None:
    seconds = Seconds(np.array([log_mean]), np.array([log_sd]))
    chances = [float(seconds.within(x)[0]) for x in sorted(left)]
    assert chances == sorted(chances)
    assert 0.0 <= chances[0] <= chances[-1] <= 1.0
    assert seconds.within(0.0) == pytest.approx(0.0)
    assert seconds.within(math.inf) == pytest.approx(1.0)


@pytest.mark.parametrize("log_sd", [0.1, 0.5, 1.0, 2.0])
def test_chances_are_of_a_students_t_and_means_of_a_uniform_distribution(log_sd: float) -> None:
    """Quartiles are a normal's. Far out ten times as many are slower, but not without bound."""
    rng = np.random.default_rng(0)
    half = math.sqrt(3.0) * log_sd
    draws = np.exp(rng.uniform(1.0 - half, 1.0 + half, 4_000_000))
    seconds = Seconds(np.array(1.0), np.array(log_sd))
    assert seconds.expected() == pytest.approx(draws.mean(), rel=0.005)
    for left in (0.1, 2.0, 40.0):
        cut = np.minimum(draws, left)
        assert seconds.expected(left) == pytest.approx(cut.mean(), rel=0.005)
    assert seconds.median == pytest.approx(np.median(draws), rel=0.02)
    draws = np.exp(rng.normal(1.0, log_sd, 4_000_000))
    assert seconds.within(np.quantile(draws, [0.25, 0.5, 0.75])) == pytest.approx(
        [0.25, 0.5, 0.75], abs=0.01
    )
    slow = math.exp(1.0 + 3.09 * log_sd)
    assert 0.005 < 1.0 - seconds.within(slow) < 0.02
    assert (draws > slow).mean() < 0.002


@pytest.mark.parametrize("left", [math.inf, 300.0, 0.0])
@pytest.mark.parametrize("log_sd", [0.0, 5.0, 60.0])
def test_the_mean_is_finite_however_little_is_known(log_sd: float, left: float) -> None:
    mean = Seconds(np.array([-3.0, 3.0]), np.full(2, log_sd)).expected(left)
    assert np.isfinite(mean).all()
    assert (mean >= 0.0).all()
    assert (mean <= left).all()
    assert mean[0] <= mean[1]


@pytest.mark.parametrize("curves", [Curves(), timed({}), timed({500: 0.0})])
def test_training_sizes_are_costs_where_nothing_was_timed(curves: Curves) -> None:
    pool = Pool(curves)
    for model in (InExamples(), InSeconds(FULL)):
        seconds = model.seconds(pool, (700, 900))
        count = len(curves) + 1  # and one candidate of which nothing is known
        assert seconds.expected().shape == (count, 2)
        assert seconds.expected()[:, 0] == pytest.approx([700] * count)
        assert seconds.expected()[:, 1] == pytest.approx([900] * count)
        assert seconds.within(700)[:, 0] == pytest.approx([1.0] * count)
        assert seconds.within(899)[:, 1] == pytest.approx([0.0] * count)
        assert not model.is_in_seconds(pool)


def test_a_slow_call_does_not_make_more_examples_cost_less() -> None:
    """Timed again on more examples, a learner was faster than in its first call."""
    seconds = {1000: 0.1, 4000: 0.4}
    usual, slow = (
        InSeconds(FULL).seconds(Pool(timed(first, *[{1000: 0.1}] * 15)), (FULL,))
        for first in (seconds, {**seconds, 1000: 2.0})
    )
    assert slow.median[:16, 0] == pytest.approx(usual.median[:16, 0], rel=0.5)
    assert (slow.latest[:16, 0] > 1.6).all()


def test_times_that_jitter_stay_in() -> None:
    """If only slow ones on few examples were left out, growth would be overestimated."""
    curve = timed({1000: 1.2, 2000: 1.1, 4000: 1.0})[0]
    sizes_and_seconds = np.exp(np.array(curve.log_times()).reshape(3, 2))
    assert sizes_and_seconds[:, 1] == pytest.approx([1.2, 1.1, 1.0])


@pytest.mark.parametrize("factor", [1.0, 1e-3, 50.0])
def test_efforts_do_not_depend_on_the_machine_nor_on_other_algorithms(factor: float) -> None:
    """Three lines and three trees; each algorithm's typical learner has an effort of 0."""
    points: list[dict[str, Any]] = [{"kind": "line", "c": x} for x in (1.0, 2.0, 3.0)]
    points += [{"kind": "tree", "depth": x} for x in (1, 2, 3)]
    seconds = [1.0, 2.0, 4.0, 30.0, 60.0, 120.0]
    curves = Curves(
        LearningCurve(i, (Observation(FULL, 0.8, seconds=factor * time),), parameters=point)
        for i, (point, time) in enumerate(zip(points, seconds, strict=True))
    )
    space = Space.of(points)
    found = efforts(curves, FULL, space)
    assert found.learners[[1, 4]] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert found.learners == pytest.approx(np.tile(np.log([0.5, 1.0, 2.0]), 2), abs=0.1)
    of_points = found.of(space.rows([*points, {"kind": "net"}]))
    assert (np.diff(of_points.reshape(-1)[:3]) > 0.0).all()
    assert of_points[-1] == 0.0, "nothing is known of a new algorithm's other points"


@pytest.mark.parametrize("seconds", [1e-3, 1.0])
def test_a_new_algorithm_is_not_compared_with_one_that_has_no_parameters(seconds: float) -> None:
    points: list[dict[str, Any]] = [{"kind": "mean"}, *({"kind": "tree", "d": x} for x in (1, 2))]
    times = [seconds, 1.0, 2.0]
    curves = Curves(
        LearningCurve(i, (Observation(FULL, 0.8, seconds=time),), parameters=point)
        for i, (point, time) in enumerate(zip(points, times, strict=True))
    )
    space = Space((("kind", Words(("mean", "tree", "boost"))), ("d", Range(0, 3))))
    assert efforts(curves, FULL, space).of(space.rows([{"kind": "boost"}])).tolist() == [0.0]


def test_efforts_are_known_of_timed_learners_and_of_the_latest_others() -> None:
    """Nothing is known of the earlier ones that were not timed."""
    rng = np.random.default_rng(0)
    count = 2 * NEWEST
    curves = []
    for i in range(2 * count):
        x, seconds = float(rng.random()), None
        if i >= count:
            seconds = math.exp(3.0 * x)
        seen = Observation(FULL, 0.8, seconds=seconds)
        curves.append(LearningCurve(i, (seen,), parameters={"x": x}))
    found = efforts(Curves(curves), FULL, Space((("x", Range(0.0, 1.0)),))).learners
    assert (found[: count - NEWEST] == 0.0).all()
    assert (found[count - NEWEST : count] != 0.0).all()
    assert np.median(found[count:]) == pytest.approx(0.0, abs=1e-9)


def test_learners_whose_trainings_go_on_pay_for_new_examples_only() -> None:
    anew = [LearningCurve(0, (Observation(500, 0.8), Observation(700, 0.8))), LearningCurve(1)]
    on = LearningCurve(2, (Observation(500, 0.8), Observation(700, 0.8, examples=200)))
    for curves, costs in (
        (anew, [[700, 900], [700, 900], [700, 900]]),
        ([*anew, on], [[1, 200], [700, 900], [1, 200], [700, 900]]),
    ):
        pool = Pool(Curves(curves))
        cost = new_costs(pool, InExamples(), (700, 900))
        assert cost.expected() == pytest.approx(np.array(costs))


def test_seconds_of_models_that_go_on_are_those_of_the_new_examples() -> None:
    """Trained anew, the same learners take the same seconds for each example."""
    rates, last = [0.001, 0.002, 0.005], SIZES[1]
    anew = timed(*({n: rate * n for n in SIZES[:2]} for rate in rates))
    used = {SIZES[0]: SIZES[0], last: last - SIZES[0]}
    on = Curves(
        LearningCurve(
            i, tuple(Observation(n, 0.5, seconds=rate * k, examples=k) for n, k in used.items())
        )
        for i, rate in enumerate(rates)
    )
    later = SIZES[2:]
    of_all, of_new = (new_costs(pool, InSeconds(FULL), later) for pool in (Pool(anew), Pool(on)))
    share = np.array([1.0 - last / n for n in later])
    assert of_new.median[:3] == pytest.approx(share * of_all.median[:3])
    assert of_new.median[3:] == pytest.approx(of_all.median[3:]), "new ones start from nothing"


def test_a_learner_that_was_not_timed_is_predicted_by_its_parameters() -> None:
    known = [
        LearningCurve(i, (Observation(1000, 0.8, seconds=2.0**i),), parameters={"trees": i})
        for i in range(10)
    ]
    untimed = LearningCurve(10, (Observation(1000, 0.8),), parameters={"trees": 8})
    new = LearningCurve(11, parameters={"trees": 1})
    pool = Pool(Curves([*known, untimed, new]))
    seconds = InSeconds(FULL).seconds(pool, (1000,))
    assert 64.0 < seconds.median[10, 0] < 512.0
    assert seconds.median[11, 0] < 16.0
    # Of the first ones, in a hundredth of the mean seconds, a clock says little.
    assert np.all(seconds.log_sd[10:] > seconds.log_sd[2:10].max())
    assert InSeconds(FULL).is_in_seconds(pool)
    assert not InExamples().is_in_seconds(pool)


def test_among_many_learners_the_latest_and_the_slowest_take_part() -> None:
    """The others go on from their last time; none is far off."""
    rng = np.random.default_rng(0)
    count = 3 * NEWEST
    level = rng.normal(0.0, 0.5, count)
    level[7] = 5.0
    curves = timed(*({n: math.exp(x) * n / 1000 for n in SIZES[:2]} for x in level))
    known = taking_part(curves, FULL)
    assert known is not None
    assert len(known.places) == NEWEST + SLOWEST
    assert {7, *range(count - NEWEST, count)} <= set(known.places.tolist())
    seconds = known.seconds((4000,)).part(np.arange(count))
    seconds = Seconds(seconds.log_mean[:, 0], seconds.log_sd[:, 0])
    assert seconds.log_mean == pytest.approx(level + math.log(4.0), abs=0.4)
    assert np.all(np.abs(seconds.log_mean - level - math.log(4.0)) < 2.0 * seconds.log_sd)


def test_of_a_learner_timed_often_three_times_take_part() -> None:
    known = taking_part(timed({n: n / 1000 for n in SIZES}, {1000: 1.0}), FULL)
    assert known is not None
    assert len(known.model.trust) == 4


# -- bills ---------------------------------------------------------------------------------------


def made(seed: int, count: int, known_sizes: int) -> tuple[Curves, float]:
    """Return learners timed at the smallest sizes, and what all take at the largest."""
    rng = np.random.default_rng(seed)
    known, total = [], 0.0
    for _ in range(count):
        # What grows fastest takes most of the seconds, and every training takes some besides.
        first, alpha = rng.lognormal(0.0, 1.0), rng.normal(0.9, 0.2)
        seconds = [first * ((n + 500) / 1500) ** alpha for n in SIZES]
        known.append(dict(zip(SIZES[:known_sizes], seconds, strict=False)))
        total += seconds[-1]
    return timed(*known), total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known_sizes", [2, 3])
def test_the_bill_is_that_of_the_whole_training(seed: int, known_sizes: int) -> None:
    curves, truth = made(seed, 120, known_sizes)
    assert sum(typical_seconds(curves, FULL, FULL).values()) == pytest.approx(truth, rel=0.3)


@pytest.mark.parametrize("seed", range(6))
def test_a_bill_of_learners_timed_once_does_not_overstate(seed: int) -> None:
    curves, truth = made(seed, 13, 1)
    assert 0.5 * truth < sum(typical_seconds(curves, FULL, FULL).values()) < 1.3 * truth


def test_what_was_timed_is_not_predicted() -> None:
    curves, _ = made(0, 20, len(SIZES))
    for place, size in enumerate(SIZES):
        assert typical_seconds(curves, size, FULL) == {
            i: curve.observations[place].seconds for i, curve in curves.items()
        }


def test_a_learner_without_times_is_billed_and_one_without_training_is_not() -> None:
    untimed, untrained = LearningCurve(3, (Observation(1000, 0.5),)), LearningCurve(4)
    curves, _ = made(0, 3, 2)
    seconds = typical_seconds(curves.put(untimed).put(untrained), FULL, FULL)
    assert seconds[3] > 0.0
    assert 4 not in seconds
    assert typical_seconds(Curves([untimed]), FULL, FULL) == {}
    assert typical_seconds(Curves(), FULL, FULL) == {}


def test_models_that_go_on_are_billed_for_all_examples() -> None:
    on = [(500, 500), (1000, 500), (FULL, FULL - 1000)]
    seen = [Observation(n, 0.8, seconds=new / 100, examples=new) for n, new in on]
    curves = Curves([LearningCurve(0, tuple(seen)), LearningCurve(1, tuple(seen[:2]))])
    found = typical_seconds(curves, FULL, FULL)
    assert found[0] == pytest.approx(FULL / 100)
    assert found[1] == pytest.approx(FULL / 100, rel=0.3)
