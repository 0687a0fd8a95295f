"""Proposals: candidates in a search space, and the best of them.

The objective defines the space while it runs, so it is unknown in advance which words (categories)
bring which parameters. Candidates follow the *branches* seen: each has the parameters of some
learner, and the same words that decide on parameters. Everything else is drawn at random.
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
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.once import by_content
from optuna_daub.core.pool import NoProposer
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.pool import rows_of
from optuna_daub.core.prices import Prices
from optuna_daub.core.prices import table_of
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from optuna_daub.core.space import branches
from optuna_daub.core.space import deciding
from optuna_daub.core.space import keys_of


N_RANDOM, N_BEST, N_NEAR, N_TOP, N_AROUND = 200, 5, 40, 6, 15
"""Numbers of candidates that a proposal draws and improves. They are random candidates, learners
with the best forecasts, candidates near each of them, candidates with the largest prices, and
candidates around each of those. First guesses, not tuned; `benchmarks/search.py` shows what others
lose."""
N_PROPOSED = 30
"""Number of learners tried last, which stand for another sampler's next proposals. Not tuned."""
MOVED_SHARE, CHANGED_SHARE = 0.7, 0.2
"""Shares of a point's numbers that are moved, and of its words that are drawn anew. Not tuned."""
WIDEST_MOVE = 0.15
"""Standard deviation of the largest moves, in ranges; the smallest have a tenth. Not tuned."""


@dataclass(frozen=True)
class AroundBest:
    """Proposer of random points and of points near the best learners."""

    full: int
    """Number of all training examples, N."""
    seed: int
    """Seed of the draws; the same pool and seed give the same candidates."""
    forecaster: Forecaster | None = None
    """Forecaster that ranks the learners; None: `Process`."""
    may_choose = True

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates, shape (candidates, parameters)."""
        space, curves = pool.known_space, pool.curves
        known = np.flatnonzero(curves.columns(_has_parameters)[:, 0])
        if not len(known):
            return NoProposer().candidates(pool)
        rows = curves.once(rows_of, space)[known]
        forecaster = self.forecaster or Process(self.full)
        mean = np.asarray(forecaster.forecasts(pool, self.full).all.mean)[known]
        mean = np.where(pool.once(table_of).is_scored[known], mean, -math.inf)
        best = np.argsort(-mean, kind="stable")[:N_BEST]
        n_seen = int(curves.columns(_n_seen).sum())
        # The number of busy learners changes the seed, so workers with equal scores differ.
        return _around(space, rows, rows[best], (self.seed, len(rows), n_seen, len(pool.busy)))


@by_content
def _around(space: Space, rows: Rows, best: Rows, seed: tuple[int, ...]) -> Rows:
    """Return random points, and points near the best ones, without those of learners."""
    rng = np.random.default_rng(seed)
    decides = deciding(space, rows)
    drawn = _random(space, rows, decides, N_RANDOM, rng)
    near = [_near(space, decides, row, N_NEAR, rng) for row in best]
    return _new(space, np.vstack([drawn, *near]), rows)


@dataclass(frozen=True)
class LikeRecent:
    """Proposer of points with values taken from another sampler's latest proposals.

    While these are fewer than `N_PROPOSED`, random points stand for the others.
    """

    may_choose = False

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates, shape (candidates, parameters)."""
        space, curves = pool.known_space, pool.curves
        known = np.flatnonzero(curves.columns(_has_parameters)[:, 0])[-N_PROPOSED:]
        if not len(known):
            return NoProposer().candidates(pool)
        rows = curves.once(rows_of, space)[known]
        rng = np.random.default_rng(len(curves))
        decides = deciding(space, rows)
        other = rows[rng.integers(len(rows), size=len(rows))]
        # Keep parameters that the other point lacks, and words that decide on parameters.
        takes = ~np.isnan(rows) & ~np.isnan(other) & ~decides & (rng.random(rows.shape) < 1 / 2)
        # With one learner known, all candidates would be copies of it.
        unlike = _random(space, rows, decides, N_PROPOSED - len(rows), rng)
        return np.vstack([np.where(takes, other, rows), unlike])


@dataclass(frozen=True, eq=False)
class Given:
    """Proposer of given candidates."""

    rows: Rows
    """The candidates, shape (candidates, parameters)."""
    may_choose = True

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates."""
        del pool
        return self.rows


def propose(pool: Pool, prices: Callable[[Pool], Prices], seed: int) -> dict[str, Any]:
    """Return the parameters of the candidate with the largest price, after a local search.

    Empty if every point of the space is a learner.

    Args:
        pool: pool with a proposer and at least one score.
        prices: function from a pool to the prices of its steps.
        seed: seed of the draws.
    """
    space, rows = pool.known_space, pool.once(candidates_of)
    if not len(rows):
        return {}
    values = prices(pool).candidates.max(axis=1)
    rng = np.random.default_rng([seed, len(pool.curves), 1])
    known = pool.curves.once(rows_of, space)
    top = np.argsort(-values, kind="stable")[:N_TOP]
    decides = deciding(space, known)
    near = np.vstack([_near(space, decides, rows[i], N_AROUND, rng) for i in top])
    around = np.vstack([_new(space, near, known), rows[top[:1]]])
    more = prices(replace(pool, proposer=Given(around))).candidates.max(axis=1)
    best = around[more.argmax()] if more.max() > values.max() else rows[values.argmax()]
    return space.point(best)


def _has_parameters(curve: LearningCurve) -> tuple[float]:
    return (float(bool(curve.parameters)),)


def _n_seen(curve: LearningCurve) -> tuple[float]:
    return (float(len(curve.observations)),)


def _random(
    space: Space,
    rows: Rows,
    decides: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> Rows:
    """Return random points, each in the branch of some learner.

    All branches (`branches`) are equally likely. Deciding words that no learner has yet
    get points as well, with unknown parameters.
    """
    _, first = np.unique(branches(rows, decides), axis=0, return_index=True)
    drawn: Rows = rows[rng.choice(first, size=count)]
    for place, (_, one) in enumerate(space.dimensions):
        is_there = ~np.isnan(drawn[:, place])
        if isinstance(one, Words):
            words = rng.integers(len(one.choices), size=count).astype(float)
            if decides[place]:
                is_there &= ~np.isin(words, rows[:, place])
                drawn[is_there] = np.where(
                    space.is_word & ~np.isnan(rows).any(axis=0), drawn[is_there], np.nan
                )
            drawn[is_there, place] = words[is_there]
        else:
            drawn[is_there, place] = rng.random(int(is_there.sum()))
    return drawn


def _new(space: Space, rows: Rows, known: Rows) -> Rows:
    """Return the points, rounded to possible values, without known and repeated ones."""
    rows = space.snapped(rows).round(12)
    # NaN is unequal to itself, so points with gaps would stay repeated.
    _, first = np.unique(np.nan_to_num(rows, nan=-1.0), axis=0, return_index=True)
    rows = rows[first]
    taken = {*keys_of(space.snapped(known).round(12))}
    found: Rows = rows[[key not in taken for key in keys_of(rows)]]
    return found


def _near(
    space: Space,
    decides: NDArray[np.bool_],
    row: NDArray[np.float64],
    count: int,
    rng: np.random.Generator,
) -> Rows:
    """Return points near one, in its branch: numbers are moved, words sometimes changed."""
    near = np.tile(row, (count, 1))
    width = WIDEST_MOVE * 10.0 ** -rng.random((count, 1))
    moved = near + width * rng.standard_normal(near.shape)
    moves = rng.random(near.shape) < MOVED_SHARE
    is_number = ~space.is_word & ~np.isnan(row)
    near[:, is_number] = np.clip(np.where(moves, moved, near), 0.0, 1.0)[:, is_number]
    for place in np.flatnonzero(space.is_word & ~np.isnan(row) & ~decides):
        one = space.dimensions[place][1]
        assert isinstance(one, Words)
        other = rng.random(count) < CHANGED_SHARE
        near[other, place] = rng.integers(len(one.choices), size=int(other.sum()))
    return near
