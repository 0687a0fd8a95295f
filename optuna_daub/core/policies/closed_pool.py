"""Closed pools: the best of a fixed number of learners.

Every learner is first trained on a small share of the data, unless the time left is then too
short for a training on all of it. From then on each training is a box
(`core.boxes`, [1]): it has a cost, and may lead to a better score on all the data, at once or
after a look at a size in between. A learner's *index* is the score up to which its best next step
is worth its cost. The learner with the largest index goes on, and the study ends when no index is
above the best score on all the data.

A training on all the data costs, in units of the score,

    price (best score so far - median first score) * odds of the share spent

A smaller training costs a share of that: its seconds, divided by those of the learner's own full
training. So neither the unit of scores nor that of costs matters. The price grows as more is
spent, so a pool of near ties ends too. Slow learners pay no more than others, since what one short
training says of the seconds of a long one is wrong by a factor of 2 or 3. It is wrong by more for
boosted trees, which look slow on little data: if they paid in full, the best learners of covtype
and adult would be left out.

[1] M. L. Weitzman, "Optimal Search for the Best Alternative", Econometrica 47(3), 1979.
    https://doi.org/10.2307/1910412
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.boxes import index
from optuna_daub.core.boxes import index_with_look
from optuna_daub.core.boxes import kept_after
from optuna_daub.core.costs.cost_model import CostModel
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.going_on import new_costs
from optuna_daub.core.costs.going_on import rest_after
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Ranking
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import winsorized
from optuna_daub.core.pool import Pool
from optuna_daub.core.prices import leader_of
from optuna_daub.core.prices import table_of
from optuna_daub.core.space import Numbers
from optuna_daub.core.steps import spaced
from optuna_daub.core.steps import start_near


FIRST_SHARE = 1 / 16
"""Share of all the data that every learner starts on. Successive halving that keeps a quarter at N
/ 16 and N / 4 starts there too. Starting at N / 64 loses learners of LCDB that improve late
(`python benchmarks/replay.py`)."""
PRICE = 0.1
"""Default price; `python -m benchmarks.fit.closed_pools` shows loss and cost with others."""

TIED = 0.01
"""Smallest gain (best score - median first score), as a share of the range of scores. Not
tuned."""


class ClosedTerms(NamedTuple):
    """Settings of a closed pool."""

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set (N)."""
    forecaster: Forecaster
    """Forecaster of the scores."""
    cost: CostModel
    """Model of costs."""
    price: float
    """Smallest improvement that is worth a full training, as in `ValuePerSecond`."""


class Boxes(NamedTuple):
    """Index and next size of each learner, arrays in the order of ids."""

    values: Numbers
    """Index of each learner, the score up to which going on pays. It is the score of a fully
    trained learner, and minus infinity for one that is dropped, has no score or would be late."""
    size: NDArray[np.int64]
    """Next size of each learner."""
    to_beat: float
    """Best full-data score, or a larger forecast of a learner in training."""


def decide(pool: Pool, terms: ClosedTerms) -> Decision:
    """Return the next decision in a closed pool."""
    table, learners = pool.once(table_of), pool.curves.learners
    free, full = table.is_alive & pool.is_free, terms.sizes[-1]
    waiting = np.flatnonzero(free & (table.size == 0))
    start = _first(pool, terms, waiting)
    if start is not None and not _is_last_chance(pool, terms, waiting):
        return start
    if not table.is_alive.any():
        return Finish(None, Reason("no learner is left"))
    if not table.is_scored.any():
        return Wait(Reason("every learner left is being trained for the first time"))
    found = pool.once(boxes, terms)
    places = np.flatnonzero(free & (table.size < full))
    if len(places):
        chosen = int(places[found.values[places].argmax()])
        # While all scores are equal, the price is 0 and every index is the best score, so a tie is
        # enough to go on. Without a score to beat both are minus infinity, which is no tie.
        value, has_rival = found.values[chosen], math.isfinite(found.to_beat)
        is_level = has_rival and value == found.to_beat and _asked(pool, terms) == 0.0
        if value > found.to_beat or is_level:
            learner, ranking = int(learners[chosen]), _ranking(pool, found)
            size = int(found.size[chosen])
            return Extend(learner, size, ranking.merit(learner), ranking)
    # The time kept for a training on all the data is left, as none is worth its cost.
    if start is not None and _has_time_for_two(pool, terms, waiting):
        return start
    if (table.is_alive & ~free).any():
        return Wait(Reason("the scores of the learners being trained decide which goes on"))
    return _end(pool, terms)


def boxes(pool: Pool, terms: ClosedTerms) -> Boxes:
    """Return every learner's index and next size, and the score to beat."""
    table, full = pool.once(table_of), terms.sizes[-1]
    begun = table.is_scored
    is_full = begun & (table.size >= full)
    mean, sd = (part[: len(pool.curves)] for part in terms.forecaster.beliefs(pool, full))
    cost = costs_of(pool, terms, (full,))
    to_full = cost.expected()[:, 0]
    later = terms.price * _asked(pool, terms)  # cost of a full training
    left = math.inf
    if pool.left is not None and terms.cost.is_in_seconds(pool):
        left = pool.left.seconds
    may_run = begun & pool.is_free & ~is_full & (to_full <= left)
    may_start = np.ones(len(may_run), bool)
    if is_full.any():  # before that a model is worth being late
        may_start = (cost.latest <= left)[:, 0]
    # Learners that another worker trains now count with their forecasts.
    away = begun & ~pool.is_free
    best = float(table.score[is_full].max(initial=-math.inf))
    to_beat = max(best, float(mean[away].max(initial=-math.inf)))
    # [1]: the reservation value of a learner that goes straight to all the data.
    values = np.where(is_full, table.score, -math.inf)
    straight = (may_run & may_start) | (away & ~is_full)
    values = np.where(straight, index(mean, sd, later), values)
    size = np.full(len(values), full)
    stops = [
        (stop, np.flatnonzero(may_run & (table.size < stop))) for stop in spaced(terms.sizes)[1:]
    ]
    stops = [(stop, some) for stop, some in stops if len(some)]
    if not stops:
        return Boxes(values, size, to_beat)
    who = np.concatenate([some for _, some in stops])
    at = np.concatenate([np.full(len(some), stop) for stop, some in stops])
    shown = np.concatenate(
        [terms.forecaster.look(pool, stop, full)[0][some] for stop, some in stops]
    )
    shown = np.minimum(shown, sd[who])
    kept = kept_after(sd[who], shown)
    costs = costs_of(pool, terms, tuple(stop for stop, _ in stops)).expected()
    way = np.concatenate([costs[some, i] for i, (_, some) in enumerate(stops)])
    now = later * way / to_full[who]
    rest = rest_after(pool.curves, table.size[who], at, full)
    found = index_with_look(mean[who], shown, kept, now, later * rest)
    found = np.where(way + rest * to_full[who] <= left, found, -math.inf)
    # Assign from the worst to the best, so the best of a learner's stops is kept.
    for place in np.argsort(found, kind="stable"):
        if found[place] > values[who[place]]:
            values[who[place]], size[who[place]] = found[place], at[place]
    return Boxes(values, size, to_beat)


def _is_last_chance(pool: Pool, terms: ClosedTerms, waiting: NDArray[np.int64]) -> bool:
    """Return whether after another first training one on all the data may end too late.

    The latter is that of the best forecast among learners expected to end in time. If there is
    none, all may still be tried.

    Args:
        pool: the pool.
        terms: its settings.
        waiting: places of the learners without a score that may be trained.
    """
    table, full = pool.once(table_of), terms.sizes[-1]
    begun = np.flatnonzero(table.is_scored & pool.is_free & (table.size < full))
    if pool.left is None or not terms.cost.is_in_seconds(pool) or not len(begun):
        return False
    left, cost = pool.left.seconds, costs_of(pool, terms, (full,)).part(begun)
    expected, latest = cost.expected()[:, 0], cost.latest[:, 0]
    mean = terms.forecaster.beliefs(pool, full)[0][begun]
    best = int(np.where(expected <= left, mean, -math.inf).argmax())
    following = _next_first(pool, terms, waiting)
    if following is None:
        return False  # every point of the space is a learner
    return bool(expected[best] <= left < latest[best] + following)


def _has_time_for_two(pool: Pool, terms: ClosedTerms, waiting: NDArray[np.int64]) -> bool:
    """Return whether a first training and the shortest one on all the data fit into the time."""
    following = _next_first(pool, terms, waiting)
    if pool.left is None or following is None:
        return False
    begun = np.flatnonzero(pool.once(table_of).is_scored)
    shortest = costs_of(pool, terms, (terms.sizes[-1],)).expected()[begun, 0].min()
    return bool(following + shortest <= pool.left.seconds)


def _next_first(pool: Pool, terms: ClosedTerms, waiting: NDArray[np.int64]) -> float | None:
    """Return the seconds within which the next first training ends; None if there is none."""
    first = terms.cost.seconds(pool, (start_near(terms.sizes, FIRST_SHARE),)).latest[:, 0]
    following = first[waiting[:1]] if len(waiting) else first[len(pool.curves) :]
    return float(np.median(following)) if len(following) else None


def _asked(pool: Pool, terms: ClosedTerms) -> float:
    """Return the improvement that a full training must promise at a price of 1."""
    table = pool.once(table_of)
    begun, first = table.is_scored, pool.curves.columns(_first_score)[:, 0]
    seen = winsorized(np.stack([first[begun], table.score[begun]]))
    gained = max(0.0, float(seen[1].max() - np.median(seen[0])))
    # Best - median is 0 if half of the learners tie at the top, as on few examples of mostly one
    # class. Costs still give an order then.
    gained = max(gained, TIED * float(np.ptp(seen)))
    # Take predicted costs of each learner's largest training: one slow call must not count.
    reached, place = np.unique(table.size[begun].astype(int), return_inverse=True)
    sizes = (*reached.tolist(), terms.sizes[-1])
    costs = terms.cost.seconds(pool, sizes).part(np.flatnonzero(begun)).expected()
    share = float(costs[np.arange(len(costs)), place].sum() / costs[:, -1].sum())
    # With odds, any price ends a pool of near ties before all are trained.
    return gained * share / max(1.0 - share, 1e-9)


def costs_of(pool: Pool, terms: ClosedTerms, sizes: tuple[int, ...]) -> Seconds:
    """Return the cost of training each learner, shape (learners, sizes)."""
    return new_costs(pool, terms.cost, sizes).part(np.arange(len(pool.curves)))


def _first_score(curve: LearningCurve) -> tuple[float]:
    return (curve.observations[0].score if curve.observations else math.nan,)


def _first(pool: Pool, terms: ClosedTerms, waiting: NDArray[np.int64]) -> Extend | Propose | None:
    """Return the next first training of a learner; None if all learners were tried."""
    size = start_near(terms.sizes, FIRST_SHARE)
    reason = Reason(f"every learner is first trained on {size:,}")
    if len(waiting):
        return Extend(int(pool.curves.learners[waiting[0]]), size, reason)
    return Propose(size, reason) if pool.to_come else None


def _end(pool: Pool, terms: ClosedTerms) -> Finish:
    """Return the end of the study: the best learner and the reason."""
    table, found = pool.once(table_of), pool.once(boxes, terms)
    winner = leader_of(pool, terms.forecaster, terms.sizes[-1])
    assert winner is not None
    score = pool.curves[winner].score
    rest = np.flatnonzero(table.is_alive & (table.size < terms.sizes[-1]))
    if not len(rest) and not pool.to_come:
        return Finish(winner, Reason("best of all on all the data with {0}", (score,)))
    if not (table.is_alive & (table.size >= terms.sizes[-1])).any():
        text = "best forecast, with score {0} so far; no time is left to train any on all"
        return Finish(winner, Reason(text, (score,)))
    ranking, values = _ranking(pool, found), found.values[rest]
    if not np.isfinite(values).any():
        text = "full-data score {0}; the time left is too short for another training on all"
        return Finish(winner, Reason(text, (score,)), ranking)
    learner = int(pool.curves.learners[rest[values.argmax()]])
    text = (
        f"full-data score {{0}}; training learner {learner} further would pay only if the best "
        "score were {below} {1}"
    )
    return Finish(winner, Reason(text, (score, float(values.max()))), ranking)


def _ranking(pool: Pool, found: Boxes) -> Ranking:
    """Return the ranking by index. It is shown as the score attainable at a cost that pays."""
    return Ranking(
        "attainable score",
        pool.curves.learners,
        found.values,
        excluded="the time left is too short to train it on all the data",
    )
