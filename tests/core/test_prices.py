"""Prices of steps against a slow transcription of their formula, and what they must obey."""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq

from optuna_daub.core import Cost
from optuna_daub.core import Forecaster
from optuna_daub.core import Joint
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core.boxes import OUTCOMES
from optuna_daub.core.boxes import WEIGHTS
from optuna_daub.core.costs.cost_model import IN_TIME
from optuna_daub.core.costs.cost_model import InExamples
from optuna_daub.core.costs.cost_model import InSeconds
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.going_on import new_costs
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.prices import HASTE
from optuna_daub.core.prices import LOOK_RANK
from optuna_daub.core.prices import Prices
from optuna_daub.core.prices import Terms
from optuna_daub.core.prices import prices
from optuna_daub.core.prices import stops_of
from optuna_daub.core.proposals import Given
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from tests.core.scenario import all_changed


SIZES = (250, 1000, 4000, 16000)
FULL = SIZES[-1]
SPACE = Space((("rate", Range(0.0, 1.0)),))
ROWS = np.linspace(0.05, 0.95, 5)[:, None]  # fewer than those that are looked at exactly
TERMS = Terms(SIZES, Process(FULL), InExamples())


def pool_of(
    count: int = 12,
    full: int = 2,
    seed: int = 0,
    *,
    timed: bool = False,
    goes_on: bool = False,
) -> Pool:
    """Learners of which the first few were trained on all the data."""
    rng = np.random.default_rng(seed)
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    for learner in range(count):
        rate = float(rng.random())
        pool = pool.with_newcomer(learner, {"rate": rate})
        for size in SIZES if learner < full else SIZES[: rng.choice([1, 2])]:
            score = 0.9 - (rate - 0.6) ** 2 / 4.0 - 2.0 / size**0.5 + rng.normal(0.0, 0.005)
            seconds = (1.0 + rate) * size / 1000 if timed else None
            seen = Observation(size, score, seconds=seconds)
            pool = pool.observed(learner, seen.going_on_from(pool.curves[learner].size * goes_on))
    return pool


def expected_improvement(mean: float, sd: float, best: float) -> float:
    """By the trapezoidal rule."""
    z = np.linspace(-9.0, 9.0, 20_001)
    density = np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return float(np.trapezoid(np.maximum(mean + sd * z - best, 0.0) * density, z))


def best_score(pool: Pool) -> float:
    """The best score on all the data."""
    return max(c.score for c in pool.curves.values() if c.size == FULL)


def slowly(
    pool: Pool,
    terms: Terms,
    row: int,
    stop: int,
    overhead: float,
    left: float,
    best: float,
    gap: float | None = None,
    effort: float = 0.0,
    new: tuple[int, ...] = (),
    typical: float = 0.0,
) -> float:
    """The price of one step of one learner or, behind them, candidate: L of the formula."""
    known = [*pool.curves.values()]
    if row < len(known) and (known[row].dropped or row in pool.busy):
        return -math.inf
    if row < len(known) and SIZES[stop] <= known[row].size:
        return -math.inf  # a learner goes on to larger sizes only
    means, sds = (part.tolist() for part in terms.forecaster.beliefs(pool, FULL))
    means = [typical if i in new else mean for i, mean in enumerate(means)]
    mean, sd = means[row], sds[row] if gap is None else gap
    goes_on = any(o.examples for c in known for o in c.observations)
    cost = new_costs(pool, terms.cost, SIZES)
    is_look = stop < len(SIZES) - 1
    expected = cost.expected(left)
    spent, share = float(expected[row, stop]) if is_look else 0.0, 1.0
    if is_look and goes_on:  # from the look on, only its later examples are to be trained on
        share = (FULL - SIZES[stop]) / (FULL - (known[row].size if row < len(known) else 0))
    rest = share * float(expected[row, -1])
    chance = float(cost.within((left - spent) / share)[row, -1])
    if math.isinf(left):
        so_far = pool.spent.seconds if terms.cost.is_in_seconds(pool) else pool.spent.examples
        ahead = spent + rest if pool.runs_left is None else 0.0
        chance = so_far / (so_far + ahead)
    elif chance <= 0.5 or cost.within(left)[row, stop] < IN_TIME:
        return -math.inf  # it would end too late
    now = float(expected[row, stop]) + overhead
    later = rest / chance + effort + overhead

    def promised(seconds: float) -> float:
        """The best of all other trainings on all the data that end in time, over this one."""
        if math.isinf(seconds):
            return 0.0  # no step makes any of them too late
        over, is_in_time = best_score(pool), cost.within(seconds)[:, -1] >= IN_TIME
        done = {
            i
            for i, curve in enumerate(pool.curves.values())
            if curve.size == FULL or curve.dropped or curve.learner in pool.busy
        }
        others = {*np.flatnonzero(is_in_time).tolist()} - done - {row}
        own = 0.0 if is_look else expected_improvement(mean, sd, over)
        most = max((expected_improvement(means[i], sds[i], over) for i in others), default=0.0)
        return max(most - own, 0.0)

    lost = promised(left) - promised(left - float(expected[row, stop]))
    if not is_look:
        return (expected_improvement(mean, sd, best) - lost) / later
    shown = float(np.concatenate(terms.forecaster.look(pool, SIZES[stop], FULL))[row])
    kept = math.sqrt(max(sd**2 - shown**2, 0.0))
    after = np.array([expected_improvement(mean + shown * z, kept, best) for z in OUTCOMES])

    def balance(value: float) -> float:
        return float(np.maximum(after - value * later, 0.0) @ WEIGHTS) - lost - value * now

    ends = -lost / now - 1e-9, after.max() / now + 1e-9
    return float(brentq(balance, *ends, xtol=1e-18, rtol=1e-12))


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("unit", ["examples", "seconds"])
@pytest.mark.parametrize("left", [math.inf, 60.0, 5.0])
def test_prices_agree_with_the_slow_transcription(unit: str, left: float, goes_on: bool) -> None:
    """Nothing is in time in 5 seconds: all the data take 16 to 32."""
    pool = pool_of(timed=unit == "seconds", goes_on=goes_on)
    pool = replace(pool.dropped(5, "failed"), busy=frozenset({7}))
    terms = TERMS if unit == "examples" else replace(TERMS, cost=InSeconds(FULL))
    spent = pool.spent.seconds if unit == "seconds" else float(pool.spent.examples)
    left = left if unit == "seconds" else math.inf
    if math.isfinite(left):
        pool = replace(pool, left=Cost(0, left))
    overhead = HASTE * min(spent, left)
    found = prices(pool, terms)
    assert len(ROWS) <= LOOK_RANK
    both = np.vstack([found.learners, found.candidates])
    assert both.shape == (len(pool.curves) + len(ROWS), len(SIZES))
    for row, stop in np.ndindex(both.shape):
        expected = slowly(pool, terms, row, stop, overhead, left, best_score(pool))
        assert both[row, stop] == pytest.approx(expected, rel=1e-4, abs=1e-12)
    assert np.isfinite(both).sum() > 20 or left == 5.0


@pytest.mark.parametrize("full", [0, 2])
@pytest.mark.parametrize("left", [0.0, 1e-300, 1e-12])
def test_nothing_is_divided_by_the_time_left_once_it_is_over(full: int, left: float) -> None:
    pool = replace(pool_of(full=full, timed=True), left=Cost(0, left))
    found = prices(pool, Terms(SIZES, Process(FULL), InSeconds(FULL)))
    for each in (found.learners, found.candidates):
        assert not np.isnan(each).any()
        assert np.isneginf(each).all() or not full


@pytest.mark.parametrize("kind", ["learners", "candidates"])
def test_a_look_needs_time_for_the_training_on_all_the_data_after_it(kind: str) -> None:
    pool = pool_of(timed=True)
    cost = InSeconds(FULL)
    known = cost.seconds(pool, SIZES)
    n_learners, terms = len(pool.curves), Terms(SIZES, Process(FULL), cost)
    mine = slice(n_learners) if kind == "learners" else slice(n_learners, None)
    barred = allowed = 0
    for seconds in np.linspace(15.0, 60.0, 10).tolist():
        found = getattr(prices(replace(pool, left=Cost(0, seconds)), terms), kind)
        for stop in range(len(SIZES) - 1):
            after = known.within(seconds - known.expected(seconds)[:, [stop]])
            is_late = after[mine, -1] <= 0.5
            assert (found[is_late, stop] == -math.inf).all()
            barred += int((is_late & (known.within(seconds)[mine, -1] > 0.5)).sum())
            allowed += int(np.isfinite(found[:, stop]).sum())
    assert barred, "some are in time at once, but not after a look"
    assert allowed


def test_with_no_run_left_only_all_the_data_have_a_price() -> None:
    found = prices(replace(pool_of(), runs_left=0), TERMS)
    both = np.vstack([found.learners, found.candidates])
    assert np.isneginf(both[:, :-1]).all()
    assert np.isfinite(both[:, -1]).any()


@pytest.mark.parametrize(("runs_left", "factor"), [(20, 1.0), (3, 3.0), (1, 6.0)])
def test_the_fewer_runs_are_left_the_more_each_costs(runs_left: int, factor: float) -> None:
    """The overhead is that of one run, times the learners tried for each run to come."""
    pool = replace(pool_of(12), runs_left=runs_left)
    found, overhead = prices(pool, TERMS).candidates, HASTE * pool.spent.examples * factor
    for row, stop in np.argwhere(np.isfinite(found)).tolist():
        place, best = len(pool.curves) + row, best_score(pool)
        expected = slowly(pool, TERMS, place, stop, overhead, math.inf, best)
        assert found[row, stop] == pytest.approx(expected, rel=1e-4, abs=1e-12)


def test_the_first_training_on_all_the_data_waits_for_half_of_its_cost_to_be_spent() -> None:
    pool = pool_of(3, full=0)
    early = prices(replace(pool, spent=Cost(7999, 0.0)), TERMS)
    assert not early.has_model
    assert np.isneginf(early.learners).all()
    assert np.isfinite(early.candidates[:, 0]).all()
    assert np.isneginf(early.candidates[:, 1:]).all()
    late = prices(replace(pool, spent=Cost(8001, 0.0)), TERMS)
    assert np.isfinite(late.learners[:, -1]).all()
    assert np.isneginf(late.learners[:, :-1]).all()
    assert np.isneginf(late.candidates).all()


def test_before_a_full_model_candidates_are_to_beat_the_learner_with_the_best_forecast() -> None:
    pool = pool_of(count=6, full=0)
    found = prices(pool, TERMS)
    mean = TERMS.forecaster.beliefs(pool, FULL)[0][: len(pool.curves)]
    best, leader = float(mean.max()), int(mean.argmax())
    overhead = HASTE * pool.spent.examples
    gaps = TERMS.forecaster.gaps(pool, FULL, leader)
    for row, value in enumerate(found.candidates[:, 0]):
        place, gap = len(pool.curves) + row, float(gaps[row])
        expected = slowly(pool, TERMS, place, 0, overhead, math.inf, best, gap)
        assert value == pytest.approx(expected, rel=1e-4, abs=1e-12)


TREES = Space((("depth", Range(0.0, 1.0)), ("kind", Words(("line", "net", "tree")))))
TREES_ROWS = np.array([[0.2, 2.0], [0.4, 2.0], [0.9, 2.0], [math.nan, 0.0], [math.nan, 1.0]])


class AtRandom(Given):
    """Candidates of which the next one is drawn at random."""

    may_choose = False  # type: ignore[assignment]


def trees_and_lines() -> Pool:
    """A pool of timed trees and lines; of nets there is a candidate only, the last one."""
    pool = Pool(to_come=None, space=TREES, proposer=Given(TREES_ROWS))
    rng = np.random.default_rng(0)
    for learner in range(12):
        depth = float(rng.random())
        kind = {"kind": "line"} if learner < 2 else {"kind": "tree", "depth": depth}
        pool = pool.with_newcomer(learner, kind)
        for size in SIZES if learner in (0, 3) else SIZES[:1]:
            score = 0.9 - (depth - 0.6) ** 2 - 2.0 / size**0.5
            pool = pool.observed(learner, Observation(size, score, seconds=size / 1000))
    return pool


@pytest.mark.parametrize("left", [math.inf, 60.0])
def test_a_new_algorithm_is_a_typical_candidate_that_is_to_beat_one(
    left: float,
) -> None:
    """Trees and lines are known, nets are new: what was spent is added to the full training.

    A net starts small, whatever training has the largest price.
    """
    pool = replace(trees_and_lines(), left=None if math.isinf(left) else Cost(0, left))
    terms = replace(TERMS, cost=InSeconds(FULL))
    found = prices(pool, terms).candidates
    mean = terms.forecaster.beliefs(pool, FULL)[0][12:]
    spent, overhead = pool.spent.seconds, HASTE * min(pool.spent.seconds, left)
    for row, is_new in enumerate([False] * 4 + [True]):
        typical = float(mean[:4].mean())
        over, effort = (typical, spent) if is_new else (best_score(pool), 0.0)
        wanted = [
            slowly(
                pool, terms, 12 + row, stop, overhead, left, over,
                effort=effort, new=(16,), typical=typical,
            )
            for stop in range(len(SIZES))
        ]  # fmt: skip
        if is_new:
            wanted = [max(wanted), *[-math.inf] * (len(SIZES) - 1)]
        some = np.isfinite(found[row])
        assert found[row, some] == pytest.approx(np.array(wanted)[some], rel=1e-4, abs=1e-12)
    assert np.isfinite(found[4]).tolist() == [True, False, False, False]
    # A sampler that proposes at random cannot be asked for a new algorithm.
    at_random = replace(pool, proposer=AtRandom(TREES_ROWS))
    assert prices(at_random, terms).candidates[4].max() != pytest.approx(found[4].max())


def test_with_too_little_time_for_known_algorithms_a_new_one_may_start() -> None:
    """Nobody knows its seconds: it may be in time, and there is nothing else to do."""
    terms = replace(TERMS, cost=InSeconds(FULL))
    found = prices(replace(trees_and_lines(), left=Cost(0, FULL / 1000 / 2)), terms)
    assert found.learner[0] == -math.inf
    assert found.candidates[:4].max() == -math.inf
    assert found.candidate == (0.0, 4, 0)


@dataclass(frozen=True, eq=False)
class Believed:
    """Seconds of learners and, behind them, candidates: a millisecond for an example, times the
    factors of some, with a spread of 0.1 unless another is given."""

    factors: dict[int, float] = field(default_factory=dict)
    spreads: dict[int, float] = field(default_factory=dict)

    def seconds(self, pool: Pool, sizes: tuple[int, ...]) -> Seconds:
        count = len(pool.curves) + len(pool.once(candidates_of))
        factors = np.array([self.factors.get(i, 1.0) for i in range(count)])
        spreads = np.array([self.spreads.get(i, 0.1) for i in range(count)])
        log_mean = np.log(factors)[:, None] + np.log(sizes) - math.log(1000.0)
        return Seconds(log_mean, np.broadcast_to(spreads[:, None], log_mean.shape))

    def is_in_seconds(self, pool: Pool) -> bool:
        return True


def vague(learner: int, spread: float) -> Believed:
    """Return seconds of which hardly anything is known for a learner: some 128 on all the data."""
    return Believed({learner: 8.0}, {learner: spread})


def branched(*kinds: str, full: tuple[int, ...] = (0,), last: str, **facts: Any) -> Pool:
    """Return a pool of learners of these kinds, some trained on all the data, and a new one."""
    pool = Pool(to_come=None, space=TREES, proposer=Given(TREES_ROWS), **facts)
    for learner, kind in enumerate(kinds):
        depth = {"depth": learner / len(kinds)} if kind == "tree" else {}
        pool = pool.with_newcomer(learner, {"kind": kind, **depth})
        for size in SIZES if learner in full else SIZES[:1]:
            score = 0.8 + learner / 100 - 2.0 / size**0.5
            pool = pool.observed(learner, Observation(size, score, seconds=size / 1000))
    depth = {"depth": 0.5} if last == "tree" else {}
    return pool.with_newcomer(len(kinds), {"kind": last, **depth})


@pytest.mark.parametrize("kind", ["net", "tree"])
@pytest.mark.parametrize("has_limit", [True, False])
def test_the_first_learner_of_a_new_algorithm_starts_whatever_its_seconds_may_be(
    kind: str, has_limit: bool
) -> None:
    """It would probably be late. So would a tree, which is declined."""
    pool = branched(
        *["line"] * 2,
        *["tree"] * 4,
        full=(0, 3),
        last=kind,
        left=Cost(0, 60.0) if has_limit else None,
    )
    cost = vague(6, 2.0)
    own = prices(pool, replace(TERMS, cost=cost)).learners[6]
    chance = cost.seconds(pool, SIZES).within(pool.left.seconds if pool.left else 0.0)[6]
    assert not has_limit or chance[0] > IN_TIME > chance[1]
    if kind == "net":
        assert own[0] >= 0.0
        assert np.isneginf(own[1:]).all(), "it starts small"
    else:
        assert (np.isneginf if has_limit else np.isfinite)(own).all()


@pytest.mark.parametrize("log_sd", [0.1, 1.5])
def test_a_training_that_may_be_late_does_not_start_but_a_look_does(log_sd: float) -> None:
    """Half of the time left is the median of its seconds. Nothing stops it once it has started."""
    pool = branched(*["tree"] * 6, last="tree", left=Cost(0, 2.0 * 8.0 * FULL / 1000))
    own = prices(pool, replace(TERMS, cost=vague(6, log_sd))).learners[6]
    assert np.isfinite(own[0])
    assert np.isfinite(own[-1]) == (log_sd == 0.1)


@pytest.mark.parametrize("forecaster", [Process(FULL), Joint(), Projection()])
@pytest.mark.parametrize("left", [None, Cost(0, 1e4)])
def test_with_every_forecaster_a_new_learner_may_start(
    forecaster: Forecaster, left: Cost | None
) -> None:
    pool = replace(pool_of(timed=True), left=left).with_newcomer(12, {"rate": 0.6})
    own = prices(pool, Terms(SIZES, forecaster, InSeconds(FULL))).learners[12]
    assert np.isfinite(own).all()
    assert own.max() >= 0.0


@pytest.mark.parametrize("left", [None, Cost(0, 60.0)])
def test_prices_are_numbers_however_little_is_known_of_seconds(left: Cost | None) -> None:
    pool = branched(*["tree"] * 3, last="tree", left=left)
    found = prices(pool, replace(TERMS, cost=vague(3, 1e4)))
    assert not np.isnan(found.learners).any()
    assert np.isfinite(found.candidates).any()


def test_the_last_run_is_on_all_the_data_even_of_a_new_algorithm() -> None:
    limits: dict[str, Any] = {"left": Cost(0, 1e3), "runs_left": 0}
    pool = branched("line", "tree", "tree", full=(0, 1, 2), last="net", **limits)
    own = prices(pool, replace(TERMS, cost=InSeconds(FULL))).learners[3]
    assert np.isfinite(own[-1])
    assert np.isneginf(own[:-1]).all()


@pytest.mark.parametrize(
    ("left", "is_cheaper", "is_first"),
    [(30.0, False, False), (30.0, True, False), (16.005, True, False), (16.005, False, True)],
)
def test_if_a_look_would_make_the_only_learner_late_it_is_first_unless_others_are_faster(
    left: float, is_cheaper: bool, is_first: bool
) -> None:
    """A learner needs 16 seconds, other points as much or half a second, and a look 8 ms."""
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS)).with_newcomer(0, {"rate": 0.9})
    pool = pool.observed(0, Observation(250, 0.7, seconds=0.25))
    factor = 1.0 / 32.0 if is_cheaper else 1.0
    certain = dict.fromkeys(range(6), 0.0)
    cost = Believed(dict.fromkeys(range(1, 6), factor), certain)
    found = prices(replace(pool, left=Cost(0, left)), replace(TERMS, cost=cost))
    assert np.isneginf(found.learners[0, :-1]).all()
    assert np.isfinite(found.learners[0, -1]) == is_first
    assert np.isfinite(found.candidates[:, 0]).all() == (not is_first)


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.0, 4.0), st.floats(0.1, 1e3))
@example(1.0, 1.0, 4.0, 100.0)  # candidates are likelier in time, but their looks are not
@example(0.7, 1.0, 4.0, 100.0)
def test_while_a_step_may_be_in_time_a_search_without_a_model_goes_on(
    own: float, others: float, spread: float, left: float
) -> None:
    """Candidates that may not start keep no learner from going on."""
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS), left=Cost(0, left))
    pool = pool.with_newcomer(0, {"rate": 0.9}).observed(0, Observation(250, 0.7, seconds=0.25))
    factors = {0: 10.0**own} | dict.fromkeys(range(1, 6), 10.0**others)
    cost = Believed(factors, dict.fromkeys(range(1, 6), spread))
    expected = cost.seconds(pool, SIZES).expected()
    found = prices(pool, replace(TERMS, cost=cost))
    may_go_on = expected[0, 1] <= left or expected[1:, 0].min() <= left
    assert max(found.learners.max(), found.candidates.max()) > -math.inf or not may_go_on


@pytest.mark.parametrize("left", [math.inf, 400.0, 60.0])
def test_the_less_is_known_of_a_candidates_seconds_the_less_it_is_worth(left: float) -> None:
    rows = np.full((4, 1), 0.6)
    pool = replace(pool_of(timed=True), proposer=Given(rows))
    pool = pool if math.isinf(left) else replace(pool, left=Cost(0, left))
    cost = Believed(spreads=dict(enumerate((0.1, 1.0, 2.0, 3.0), start=len(pool.curves))))
    worth = prices(pool, replace(TERMS, cost=cost)).candidates.max(axis=1)
    assert all(first > 1.1 * second for first, second in pairwise(worth))


def test_prices_have_the_unit_of_scores_per_unit_of_cost() -> None:
    pool = pool_of(timed=True)
    terms = Terms(SIZES, Process(FULL), InSeconds(FULL))
    before = prices(pool, terms)
    spent = Cost(pool.spent.examples, 8.0 * pool.spent.seconds)
    scaled = all_changed(
        pool, lambda x: replace(x, score=100.0 * x.score, seconds=8.0 * (x.seconds or 0.0))
    )
    after = prices(replace(scaled, spent=spent), terms)
    for old, new in ((before.learners, after.learners), (before.candidates, after.candidates)):
        np.testing.assert_allclose(new / 12.5, old, rtol=1e-3)


def test_no_price_before_any_score() -> None:
    with pytest.raises(ValueError, match="before any learner has a score"):
        prices(Pool(to_come=None).with_newcomer(0), TERMS)


def test_a_candidate_that_cannot_be_had_counts_as_the_mean() -> None:
    values: NDArray[np.float64] = np.array([[1.0, 4.0], [-math.inf, 2.0]])
    assert Prices(values[:0], values, True, True).candidate == (4.0, 0, 1)
    assert Prices(values[:0], values, False, True).candidate == (3.0, 0, 1)
    assert Prices(values[:1], values[:0], False, True).value == 4.0
    assert Prices(values[:0], values[:0], False, True).value == -math.inf


def test_stops_are_two_apart_and_start_at_a_sixty_fourth() -> None:
    assert stops_of(tuple(2**k for k in range(21))) == tuple(2**k for k in range(14, 21))
    assert stops_of((100, 120, 140)) == (140,)
    sizes = tuple(round(500 * 1.5**k) for k in range(12))
    stops = stops_of(sizes)
    assert stops[0] == min(sizes, key=lambda size: abs(math.log(64 * size / sizes[-1])))
    assert stops_of(sizes[:8])[0] == sizes[0]
    assert stops[-1] == sizes[-1]
    assert all(2 * a <= b for a, b in pairwise(stops))
    assert {*stops} <= {*sizes}


def test_a_random_next_point_is_worth_the_mean_of_all_candidates_looks_included() -> None:
    """The worst of them are as likely to come as the best."""
    rows = np.linspace(0.0, 1.0, 30)[:, None]
    pool = replace(pool_of(), proposer=AtRandom(rows))
    found = prices(pool, TERMS)
    assert np.isfinite(found.candidates).all()
    alone = [prices(replace(pool, proposer=AtRandom(row[None])), TERMS) for row in rows]
    each = np.vstack([one.candidates for one in alone])
    np.testing.assert_allclose(found.candidates, each, rtol=1e-9, atol=1e-15)
    assert found.candidate[0] == pytest.approx(np.maximum(each, 0.0).mean(axis=0).max())
