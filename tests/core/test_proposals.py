"""Candidates: points of the space, in branches that were seen, and new."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from optuna_daub.core import Cost
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.pool import Proposer
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import Given
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.core.proposals import propose
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from tests.core.stepping import search


SIZES = (250, 1000, 4000, 16000)
FULL = SIZES[-1]
TREES = Space(
    (
        ("C", Range(0.01, 100.0, is_log=True)),
        ("depth", Range(1, 12, is_whole=True)),
        ("kind", Words(("line", "tree", "net"))),
        ("loss", Words(("log", "hinge"))),
        ("rate", Range(0.0, 1.0, step=0.05)),
    )
)
"""`C` and `loss` come with lines, `depth` with trees; `rate` always; nobody tries nets."""
SQUARE = Space((("a", Range(0.0, 1.0)), ("b", Range(0.0, 1.0))))


def learner(rng: np.random.Generator) -> dict[str, Any]:
    rate = round(int(rng.integers(21)) * 0.05, 10)
    if rng.random() < 0.5:
        return {"kind": "line", "C": float(10 ** rng.uniform(-2, 2)), "loss": "log", "rate": rate}
    return {"kind": "tree", "depth": int(rng.integers(1, 13)), "rate": rate}


def pool_of(points: list[dict[str, Any]], space: Space, proposer: Proposer, best: int = 0) -> Pool:
    pool = Pool(to_come=None, space=space, proposer=proposer)
    for i, point in enumerate(points):
        pool = pool.with_newcomer(i, point)
        far = abs(i - best) / len(points)
        pool = pool.observed(i, Observation(250, 0.9 - 0.4 * far**2))
    return pool


def tried(count: int = 20) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [learner(rng) for _ in range(count)]


EVERY = pytest.mark.parametrize(
    "proposer", [AroundBest(FULL, 0), AroundBest(FULL, 1), LikeRecent()], ids=str
)


@EVERY
def test_candidates_are_points_of_the_space_in_branches_that_were_seen(proposer: Proposer) -> None:
    pool = pool_of(tried(), TREES, proposer)
    rows = pool.once(candidates_of)
    assert len(rows) >= 20
    branches = {frozenset(point) for point in tried()}
    kinds = {}
    for row in rows:
        point = TREES.point(row)
        kinds.setdefault(point["kind"], set()).add(frozenset(point))
        for name, value in point.items():
            one = dict(TREES.dimensions)[name]
            if isinstance(one, Words):
                assert value in one.choices
            else:
                assert one.low <= value <= one.high
        if point["kind"] != "net":
            assert frozenset(point) in branches
            assert ("depth" in point) == (point["kind"] == "tree")
    assert {"line", "tree"} <= kinds.keys()
    assert all(len(found) == 1 for found in kinds.values())


@pytest.mark.parametrize("seed", range(3))
def test_none_is_known_already_and_none_is_there_twice(seed: int) -> None:
    space = Space((("depth", Range(1, 12, is_whole=True)), ("kind", Words(("a", "b", "c")))))
    rng = np.random.default_rng(seed)
    points = [
        {"depth": int(rng.integers(1, 13)), "kind": "abc"[rng.integers(3)]} for _ in range(25)
    ]
    pool = pool_of(points, space, AroundBest(FULL, seed))
    known = {repr(sorted(point.items())) for point in points}
    new = [repr(sorted(space.point(row).items())) for row in pool.once(candidates_of)]
    assert not known & {*new}
    assert len({*new}) == len(new)
    # All that are left are found if there are few.
    assert len(new) == 36 - len(known)


def test_all_the_points_known_leave_none() -> None:
    space = Space((("depth", Range(1, 3, is_whole=True)), ("kind", Words(("a", "b")))))
    points = [{"depth": depth, "kind": kind} for depth in (1, 2, 3) for kind in "ab"]
    pool = pool_of(points, space, AroundBest(FULL, 0))
    assert pool.once(candidates_of).shape == (0, 2)
    known = ValuePerSecond(SIZES, cost="examples").prices(pool)
    assert known.candidates.shape[0] == 0
    assert known.candidate[0] == -np.inf


def test_a_point_with_gaps_is_one_candidate() -> None:
    space = Space(
        (
            ("depth", Range(1, 3, is_whole=True)),
            ("kind", Words(("line", "tree"))),
            ("width", Range(1, 3, is_whole=True)),
        )
    )
    points: list[dict[str, Any]] = [{"kind": "tree", "depth": 1}, {"kind": "line", "width": 3}]
    rows = pool_of(points, space, AroundBest(FULL, 0)).once(candidates_of)
    assert len(rows) == len({row.tobytes() for row in rows}) == 4


def test_the_same_seed_and_pool_give_the_same_candidates() -> None:
    first, again, other = (
        pool_of(tried(), TREES, AroundBest(FULL, seed)).once(candidates_of) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other, equal_nan=True)


def test_words_that_no_learner_had_get_candidates() -> None:
    rows = pool_of(tried(), TREES, AroundBest(FULL, 0)).once(candidates_of)
    points = [TREES.point(row) for row in rows]
    assert any(point["kind"] == "net" for point in points)
    assert sum(point.get("loss") == "hinge" for point in points) > 5
    # What else a net has is not known, except for what all have.
    assert {frozenset(p) for p in points if p["kind"] == "net"} <= {
        frozenset({"kind"}),
        frozenset({"kind", "rate"}),
    }


def test_many_candidates_are_near_the_best_learner() -> None:
    points = [{"x": i / 40, "y": 0.3} for i in range(41)]
    space = Space((("x", Range(0.0, 1.0)), ("y", Range(0.0, 1.0))))
    pool = pool_of(points, space, AroundBest(FULL, 0), best=28)
    rows = pool.once(candidates_of)
    near = np.abs(rows - [0.7, 0.3]).max(axis=1) < 0.1
    assert near.sum() > 0.04 * 2 * len(rows)  # twice as many as at random


def test_a_proposal_is_the_candidate_of_the_largest_price_or_a_better_one() -> None:
    pool = pool_of(tried(), TREES, AroundBest(FULL, 3))
    prices = ValuePerSecond(SIZES, cost="examples").prices
    point = propose(pool, prices, 3)
    assert point == propose(pool, prices, 3)
    row = TREES.rows([point])
    alone = prices(replace(pool, proposer=Given(row))).candidates.max()
    assert alone >= prices(pool).candidate[0] * (1.0 - 1e-9)
    assert repr(point) not in {repr(known) for known in tried()}


def test_like_recent_mixes_what_the_last_learners_had() -> None:
    points = tried(count=60)
    rows = pool_of(points, TREES, LikeRecent()).once(candidates_of)
    last = TREES.rows(points)[-30:]
    assert rows.shape == last.shape
    for column, known in zip(rows.T, last.T, strict=True):
        assert {*column[~np.isnan(column)]} <= {*known[~np.isnan(known)]}
    assert not LikeRecent().may_choose


def test_while_there_are_few_learners_random_points_stand_for_the_next_ones() -> None:
    known = TREES.rows(points := tried(count=12))
    rows = pool_of(points, TREES, LikeRecent()).once(candidates_of)
    assert len(rows) == 30
    numbers = ~TREES.is_word
    is_old = [np.isin(row, known[:, numbers]) | np.isnan(row) for row in rows[:, numbers]]
    assert np.all(is_old[:12])
    assert np.mean([row.all() for row in is_old[12:]]) < 0.5  # some branches have words alone


@EVERY
def test_before_any_learner_there_is_one_candidate_of_which_nothing_is_known(
    proposer: Proposer,
) -> None:
    rows = Pool(to_come=None, space=TREES, proposer=proposer).once(candidates_of)
    assert rows.shape == (1, 5)
    assert np.isnan(rows).all()


def test_a_parameter_with_one_value_changes_no_candidate() -> None:
    points = [{"x": i / 10} for i in range(11)]
    alone = Space((("x", Range(0.0, 1.0, step=0.1)),))
    fixed = Space((*alone.dimensions, ("seed", Range(7, 7, is_whole=True))))
    pools = [
        pool_of(known, space, AroundBest(FULL, 0))
        for space, known in ((alone, points[:9]), (fixed, [{**p, "seed": 7} for p in points[:9]]))
    ]
    tens, with_seed = (np.unique(pool.once(candidates_of), axis=0) for pool in pools)
    assert tens[:, 0].tolist() == with_seed[:, 0].tolist() == [0.9, 1.0]
    assert propose(pools[1], ValuePerSecond(SIZES).prices, 0)["seed"] == 7


def searched(kind: str, seed: int, is_lost: Callable[[Mapping[str, Any], int], bool]) -> Pool:
    """Return the pool of a search for 35 learners, of which some are lost."""
    policy, rng = ValuePerSecond(SIZES), np.random.default_rng(seed)

    def point(pool: Pool) -> dict[str, Any]:
        is_known = any(c.observations and not c.dropped for c in pool.curves.values())
        drawn = dict(zip("ab", rng.random(2), strict=True))
        return propose(pool, policy.prices, seed) if is_known else drawn

    def trained(pool: Pool, learner: int, n: int) -> Pool:
        here = pool.curves[learner].parameters
        lost = kind if is_lost(here, learner) else ""
        if lost == "raises":
            return pool.dropped(learner, "MemoryError", "failed")
        score = np.nan if lost == "collapses" else reached(here, n)
        pool = pool.observed(learner, Observation(n, score, seconds=0.02 + n / FULL))
        return pool.dropped(learner, "too large", "infeasible") if lost == "infeasible" else pool

    pool = Pool(to_come=None, space=SQUARE, proposer=AroundBest(FULL, seed))
    return next(
        step.pool for step in search(policy, pool, point, trained) if len(step.pool.curves) == 35
    )


def reached(point: Mapping[str, Any], n: int) -> float:
    a, b = point["a"], point["b"]
    return float(0.7 + 0.2 * a - 0.3 * (b - 0.4) ** 2 - 0.1 * (n / 1000) ** -0.4)


@pytest.mark.parametrize("kind", ["raises", "collapses", "infeasible"])
def test_a_search_leaves_the_region_where_learners_are_lost(kind: str) -> None:
    """Scores rise towards that region, where nothing is learnt about them."""
    pool = searched(kind, 1, lambda point, _: point["a"] > 0.6)
    # Without it 0.9 are lost, and most searches end without a model.
    assert np.mean([curve.cause != "" for curve in pool.curves.values()]) < 0.6
    best = max(c.score for c in pool.curves.values() if c.size == FULL and not c.dropped)
    assert best > reached({"a": 0.6, "b": 0.4}, FULL) - 0.05


def test_a_search_bears_failures_by_chance() -> None:
    """They fall where most learners are tried, near the best one."""
    missed = []
    for seed in range(5):
        pool = searched("raises", seed, lambda _, new: new % 5 == 4)
        best = max(c.score for c in pool.curves.values() if c.size == FULL)
        missed.append(reached({"a": 1.0, "b": 0.4}, FULL) - best)
    assert max(missed) < 0.005


def test_a_dropped_learner_is_not_looked_around() -> None:
    points = [{"x": i / 10} for i in range(11)]
    space = Space((("x", Range(0.0, 1.0)),))
    counts = np.zeros(2)
    for seed in range(10):
        alive = pool_of(points, space, AroundBest(FULL, seed), best=1)
        for place, pool in enumerate((alive, alive.dropped(1, "failed"))):
            counts[place] += (np.abs(pool.once(candidates_of) - 0.1) < 0.01).sum()
    assert counts[1] < 0.8 * counts[0]


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_a_search_finds_out_that_seconds_hardly_grow_with_the_data(share: float) -> None:
    """At first no training on all the data seems to be in time, but each takes a minute."""
    rng, limit = np.random.default_rng(0), 600.0

    def trained(pool: Pool, learner: int, n: int) -> Pool:
        seconds = 60.0 * (share + (1.0 - share) * n / FULL)
        score = reached(pool.curves[learner].parameters, n)
        pool = pool.observed(learner, Observation(n, score, seconds=seconds))
        return replace(pool, left=Cost(0, max(limit - pool.spent.seconds, 0.0)))

    pool = Pool(to_come=None, space=SQUARE, proposer=AroundBest(FULL, 0), left=Cost(0, limit))
    steps = search(
        ValuePerSecond(SIZES), pool, lambda _: dict(zip("ab", rng.random(2), strict=True)), trained
    )
    *_, last = islice(steps, 20)
    assert any(curve.size == FULL for curve in last.pool.curves.values())
