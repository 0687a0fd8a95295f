"""Proposals: candidates in a search space, and the best of them.

Spaces are defined by running the objective, so it is not known in advance which parameters come
with which words. Candidates follow the *branches* seen: each has the parameters of some learner
and, of its words, those that decide which parameters there are. Everything else is drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.once import by_content
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.pool import rows_of
from optuna_daub.core.prices import Prices
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


N_RANDOM, N_BEST, N_NEAR, N_TOP, N_AROUND = 200, 5, 40, 6, 15
"""Candidates drawn at random; learners of the best forecasts and candidates near each; candidates
of the largest price and further ones around each. From the lab's first guess, not tuned."""
N_RECENT = 30
"""Learners tried last, which show what another sampler would propose next."""
MOVED_SHARE = 0.7
"""Share of the numbers of a point that are moved."""
WIDEST_MOVE = 0.15
"""Standard deviation of the largest moves around a point, in ranges; the smallest is a tenth."""


@dataclass(frozen=True)
class AroundBest:
    """Random points of the space, and points near the best learners."""

    full: int
    """N, the number of all training examples."""
    seed: int
    """Seed of the draws; the same pool and seed give the same candidates."""
    may_choose = True

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates, shape (candidates, parameters)."""
        space, curves = pool.known_space, pool.curves
        known = np.flatnonzero(curves.columns(_has_parameters)[:, 0])
        if not len(known):
            return np.full((1, len(space.dimensions)), np.nan)
        rows = curves.once(rows_of, space)[known]
        mean = np.asarray(Process(self.full).forecasts(pool, self.full).all.mean)[known]
        mean = np.where(curves.columns(_is_alive)[known, 0] > 0.0, mean, -math.inf)
        best = np.argsort(-mean, kind="stable")[:N_BEST]
        n_seen = int(curves.columns(_n_seen).sum())
        # Workers that look at the same scores differ in how many others are at work.
        return _around(space, rows, rows[best], (self.seed, len(rows), n_seen, len(pool.busy)))


@by_content
def _around(space: Space, rows: Rows, best: Rows, seed: tuple[int, ...]) -> Rows:
    """Return random points, and points near the best ones, that are no learner's."""
    rng = np.random.default_rng(seed)
    deciding = _deciding(space, rows)
    drawn = _random(space, rows, deciding, N_RANDOM, rng)
    near = [_near(space, deciding, row, N_NEAR, rng) for row in best]
    return _new(space, np.vstack([drawn, *near]), rows)


@dataclass(frozen=True)
class LikeRecent:
    """Points like those that a sampler proposed last: each parameter is one of theirs."""

    may_choose = False

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates, shape (candidates, parameters)."""
        space, curves = pool.known_space, pool.curves
        known = np.flatnonzero(curves.columns(_has_parameters)[:, 0])[-N_RECENT:]
        if not len(known):
            return np.full((1, len(space.dimensions)), np.nan)
        rows = curves.once(rows_of, space)[known]
        rng = np.random.default_rng(len(curves))
        kept = _deciding(space, rows)
        other = rows[rng.integers(len(rows), size=len(rows))]
        # A parameter that the other lacks, or that decides which others there are, stays.
        takes = ~np.isnan(rows) & ~np.isnan(other) & ~kept & (rng.random(rows.shape) < 0.5)
        return np.where(takes, other, rows)


@dataclass(frozen=True, eq=False)
class Given:
    """Candidates that are known."""

    rows: Rows
    """The candidates, shape (candidates, parameters)."""
    may_choose = True

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates."""
        del pool
        return self.rows


def propose(pool: Pool, prices: Callable[[Pool], Prices], seed: int) -> dict[str, Any]:
    """Return the parameters of the candidate with the largest price, after a closer look.

    There are none if every point of the space is a learner.

    Args:
        pool: with a proposer, and at least one score.
        prices: of the steps of a pool.
        seed: of the draws.
    """
    space, rows = pool.known_space, pool.once(candidates_of)
    if not len(rows):
        return {}
    values = prices(pool).candidates.max(axis=1)
    rng = np.random.default_rng([seed, len(pool.curves), 1])
    known = pool.curves.once(rows_of, space)
    top = np.argsort(-values, kind="stable")[:N_TOP]
    deciding = _deciding(space, known)
    near = np.vstack([_near(space, deciding, rows[i], N_AROUND, rng) for i in top])
    around = np.vstack([_new(space, near, known), rows[top[:1]]])
    more = prices(replace(pool, proposer=Given(around))).candidates.max(axis=1)
    best = around[more.argmax()] if more.max() > values.max() else rows[values.argmax()]
    return space.point(best)


def _has_parameters(curve: LearningCurve) -> tuple[float]:
    return (float(bool(curve.parameters)),)


def _n_seen(curve: LearningCurve) -> tuple[float]:
    return (float(len(curve.observations)),)


def _is_alive(curve: LearningCurve) -> tuple[float]:
    return (float(not curve.dropped and bool(curve.observations)),)


def _deciding(space: Space, rows: Rows) -> NDArray[np.bool_]:
    """Return which parameters are words that decide which others there are."""
    is_there = ~np.isnan(rows)
    found = np.zeros(rows.shape[1], bool)
    varies = np.flatnonzero(is_there.any(axis=0) & ~is_there.all(axis=0))
    for place in np.flatnonzero(space.is_word):
        with_it = is_there[:, place]
        for word in np.unique(rows[with_it, place]):
            mine = with_it & (rows[:, place] == word)
            # Some parameter comes with this word always, and with another one never.
            always = is_there[mine][:, varies].all(axis=0)
            never = ~is_there[with_it & ~mine][:, varies].any(axis=0)
            if (always & never).any() and (with_it & ~mine).any():
                found[place] = True
    return found


def _random(
    space: Space,
    rows: Rows,
    deciding: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> Rows:
    """Return points drawn at random, each in the branch of some learner; branches are as likely.

    A branch is the deciding words, and which parameters there are: a number may decide that too.

    A word that decides on others and that no learner has yet gets points too: what else they
    have is not known.
    """
    of = np.where(deciding, np.nan_to_num(rows, nan=-1.0), 0.0)
    _, first = np.unique(np.hstack([of, np.isnan(rows)]), axis=0, return_index=True)
    drawn: Rows = rows[rng.choice(first, size=count)].copy()
    for place, (_, one) in enumerate(space.dimensions):
        is_there = ~np.isnan(drawn[:, place])
        if isinstance(one, Words):
            words = rng.integers(len(one.choices), size=count).astype(float)
            if deciding[place]:
                new = ~np.isin(words, rows[:, place]) & is_there
                drawn[new] = np.where(
                    space.is_word & ~np.isnan(rows).any(axis=0), drawn[new], np.nan
                )
                drawn[new, place] = words[new]
                continue
            drawn[is_there, place] = words[is_there]
        else:
            drawn[is_there, place] = rng.random(int(is_there.sum()))
    return drawn


def _new(space: Space, rows: Rows, known: Rows) -> Rows:
    """Return the points, as values have them, that are not known: a point twice is one learner."""
    rows = np.unique(space.snapped(rows).round(12), axis=0)
    taken = {row.tobytes() for row in space.snapped(known).round(12)}
    is_new = np.array([row.tobytes() not in taken for row in rows], bool)
    found: Rows = rows[is_new]
    return found


def _near(
    space: Space,
    deciding: NDArray[np.bool_],
    row: NDArray[np.float64],
    count: int,
    rng: np.random.Generator,
) -> Rows:
    """Return points near one, in its branch: numbers moved, now and then another word."""
    near = np.tile(row, (count, 1))
    width = WIDEST_MOVE * 10.0 ** -rng.random((count, 1))
    moved = near + width * rng.standard_normal(near.shape)
    moves = rng.random(near.shape) < MOVED_SHARE
    is_number = ~space.is_word & ~np.isnan(row)
    near[:, is_number] = np.clip(np.where(moves, moved, near), 0.0, 1.0)[:, is_number]
    for place in np.flatnonzero(space.is_word & ~np.isnan(row) & ~deciding):
        one = space.dimensions[place][1]
        assert isinstance(one, Words)
        other = rng.random(count) < 0.2
        near[other, place] = rng.integers(len(one.choices), size=int(other.sum()))
    return near
