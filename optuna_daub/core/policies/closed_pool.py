"""Closed pools: a fixed number of learners, of which the best is wanted at a price.

Every learner is first trained on a small share of the data. From there each next training is a
box (`core.boxes`): it costs seconds, and may lead to a better score on all the data, at once or
after a look at some size between. A learner's *index* is the score up to which its best next step
is worth its cost, at the price of a second. The learner with the largest index goes on, and the
study ends when no index is above the best score on all the data.

A second's price is a share of what the study is about, how far the best score known is above the
median one, for what training one learner on all the data costs in the mean:

    weight = price (best - median) / mean full training

so that neither the unit of scores nor the unit of costs matters.
"""

from __future__ import annotations

import math
from typing import Literal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.boxes import NORMAL
from optuna_daub.core.boxes import index_with_look
from optuna_daub.core.costs import in_examples
from optuna_daub.core.costs import in_seconds
from optuna_daub.core.costs import is_timed
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Numbers
from optuna_daub.core.forecasts.student import Student
from optuna_daub.core.forecasts.student import up_to
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.steps import nearest


FIRST_SHARE = 1 / 64
"""Of all the data: the size that every learner starts at, or above where there is none so small."""
SECOND_SHARE = 1 / 16
ALL_SECOND = True
STOP_RATIO = 2.0
"""Sizes to look at on the way to N are at least this ratio apart."""
OVERHEAD = 0.2
"""Cost of every training besides, in mean full trainings: without it learners climb in many steps,
each of which costs next to nothing."""
EVEN = 0.0
NORM = 0.0
LIMIT = 0.95
ODDS = 0.0
UPPER = Student(0.0, 1.0).quantile(0.75)


class Terms(NamedTuple):
    """What a study is run under."""

    sizes: tuple[int, ...]
    """Training sizes, at least three, increasing; the last is the full training set (N)."""
    forecaster: Forecaster
    """How good learners can be on more data."""
    cost: Literal["seconds", "examples"]
    """What is spent."""
    price: float
    """Least improvement that a mean full training must promise, as a share of how far the best
    score is above the median one; at least 0."""


class Boxes(NamedTuple):
    """What going on with each learner is worth, arrays in the order of ids."""

    values: Numbers
    """The score up to which going on pays; of a fully trained learner its score, and minus
    infinity of one that is dropped, has no score yet or would not be through in time."""
    size: NDArray[np.int64]
    """Where the learner goes next."""
    to_beat: float
    """The best full-data score, or what a learner being trained now is expected to reach."""


class _Table(NamedTuple):
    is_alive: NDArray[np.bool_]
    size: Numbers
    score: Numbers
    first: Numbers


def first_size(sizes: tuple[int, ...]) -> int:
    """Return the size that every learner of a closed pool starts at.

    >>> first_size((500, 1000, 2000, 4000, 8000, 16000))
    500
    """
    return min(nearest(sizes, FIRST_SHARE * sizes[-1]), sizes[-3])


def second_size(sizes):
    return min(nearest(sizes, SECOND_SHARE * sizes[-1]), sizes[-2])


def decide(pool: Pool, terms: Terms) -> Decision:
    """Return what to do next in a closed pool."""
    table, learners = pool.curves.once(_table), pool.curves.learners
    free, full = table.is_alive & pool.is_free, terms.sizes[-1]
    first = first_size(terms.sizes)
    if (waiting := free & (table.size == 0)).any():
        return Extend(int(learners[waiting.argmax()]), first, _first(first))
    if ALL_SECOND:
        second = second_size(terms.sizes)
        once = free & (table.size == first) & (first < second)
        if once.any():
            return Extend(int(learners[once.argmax()]), second, _first(second))
    if pool.to_come:
        return Propose(first, _first(first))
    if not table.is_alive.any():
        return Finish(None, Reason("no learner is left"))
    if not (table.is_alive & (table.size > 0)).any():
        return Wait(Reason("every learner left is being trained for the first time"))
    found = pool.once(boxes, terms)
    places = np.flatnonzero(free & (table.size < full))
    if len(places):
        chosen = int(places[found.values[places].argmax()])
        if found.values[chosen] > found.to_beat:
            values = float(found.values[chosen]), found.to_beat
            text = "going on pays up to a full-data score of {0}"
            if math.isfinite(found.to_beat):
                text += "; to beat is {1}"
            return Extend(int(learners[chosen]), int(found.size[chosen]), Reason(text, values))
    if (table.is_alive & ~free).any():
        return Wait(Reason("what the learners being trained reach decides which goes on"))
    return _end(pool, terms)


def boxes(pool: Pool, terms: Terms) -> Boxes:
    """Return every learner's index, where it would go next, and what is to beat."""
    table, full = pool.curves.once(_table), terms.sizes[-1]
    begun = table.is_alive & (table.size > 0)
    is_full = begun & (table.size >= full)
    forecast = terms.forecaster.forecasts(pool, full).all
    mean = np.asarray(forecast.quantile(0.5))
    scale = (np.asarray(forecast.quantile(0.75)) - mean) / UPPER
    to_full = expected_cost(pool, terms.cost, full)
    unit = float(to_full[begun].mean())
    seen = np.stack([table.first[begun], table.score[begun]])
    gained = max(0.0, float(seen[1].max() - np.median(seen[0])))
    gained = max(gained, 0.01 * float(np.ptp(seen)))
    weight = terms.price * gained / unit
    if ODDS:
        reached = expected_cost(pool, terms.cost, np.maximum(table.size, 1.0))
        share = float(reached[begun].sum() / to_full[begun].sum())
        weight *= (share / max(1 - share, 1e-9) * 9) ** ODDS
    factor = (unit / to_full) ** EVEN
    later, overhead = weight * factor * to_full, weight * OVERHEAD * unit
    left = math.inf if pool.left is None or not _is_in_seconds(pool, terms) else pool.left.seconds
    runs = begun & pool.is_free & ~is_full & (to_full <= left)
    reach = np.asarray(forecast.quantile(LIMIT))[begun]
    family = up_to(float(reach.max())) if not NORM else NORMAL
    scale = scale * (NORM or 1.0)
    best = float(table.score[is_full].max(initial=-math.inf))
    away = begun & ~pool.is_free
    to_beat = max(best, float(mean[away].max(initial=-math.inf)))
    values = np.where(is_full, table.score, -math.inf)
    values[runs | away] = family.index(mean, scale, later + overhead)[runs | away]
    size = np.full(len(values), full)
    # Only those are looked at more closely that could win if the look were free and showed all.
    floor = max(to_beat, float(values[runs].max(initial=-math.inf)))
    closer = runs & (family.index(mean, scale, np.full(len(mean), overhead)) > floor) & (scale > 0.0)
    stops = [(stop, np.flatnonzero(closer & (table.size < stop))) for stop in _stops(terms.sizes)]
    stops = [(stop, some) for stop, some in stops if len(some)]
    if not stops:
        return Boxes(values, size, to_beat)
    who = np.concatenate([some for _, some in stops])
    at = np.repeat([stop for stop, _ in stops], [len(some) for _, some in stops])
    shown = np.concatenate([terms.forecaster.look(pool, stop, full)[some] for stop, some in stops])
    shown = np.minimum(shown * (NORM or 1.0), scale[who])
    way = [expected_cost(pool, terms.cost, stop)[some] for stop, some in stops]
    now = weight * factor[who] * np.concatenate(way) + overhead
    kept = np.sqrt(scale[who] ** 2 - shown**2)
    found = index_with_look(
        mean[who], shown, kept, now, later[who] + overhead * 0, family=family
    )
    in_time = np.concatenate(way) + to_full[who] <= left
    for place, stop, value, fits in zip(who.tolist(), at.tolist(), found.tolist(), in_time.tolist(), strict=True):
        if fits and value > values[place]:
            values[place], size[place] = value, stop
    return Boxes(values, size, to_beat)


def expected_cost(pool: Pool, cost: Literal["seconds", "examples"], size: int | Numbers) -> Numbers:
    """Return what training each learner on so many examples costs in the mean, in order of ids.

    Args:
        pool: what is known.
        cost: the unit.
        size: one for all, or one for each.
    """
    costs = pool.curves.once(in_seconds if cost == "seconds" else in_examples)
    # The mean of a logarithmic normal distribution: those that grow fastest are most of the bill.
    known = np.maximum(pool.curves.once(_table).size, 1.0)
    doubt = costs.error * np.log(np.maximum(1.0, np.asarray(size) / known))
    return np.asarray(costs.at(size) * np.exp(doubt**2 / 2.0))


def _is_in_seconds(pool: Pool, terms: Terms) -> bool:
    return terms.cost == "seconds" and pool.curves.once(is_timed)


def _table(curves: Curves) -> _Table:
    facts = curves.columns(_facts)
    return _Table(facts[:, 0] == 0.0, facts[:, 1], facts[:, 2], facts[:, 3])


def _facts(curve: LearningCurve) -> tuple[float, float, float, float]:
    first = curve.observations[0].score if curve.observations else math.nan
    return float(bool(curve.dropped)), float(curve.size), curve.score, first


def _stops(sizes: tuple[int, ...]) -> list[int]:
    """Return the sizes to look at, from large to small.

    >>> _stops((500, 750, 1125, 1688, 2532, 3798, 5000))
    [1688, 750]
    """
    stops, last = [], sizes[-1]
    for size in reversed(sizes[:-1]):
        if size * STOP_RATIO <= last:
            stops.append(size)
            last = size
    return stops


def _first(size: int) -> Reason:
    return Reason(f"every learner is first trained on {size:,}")


def leader(pool: Pool, terms: Terms) -> int | None:
    """Return the learner with the best full-data score; before any, with the best forecast."""
    table = pool.curves.once(_table)
    begun = table.is_alive & (table.size > 0)
    if not begun.any():
        return None
    is_full = begun & (table.size >= terms.sizes[-1])
    mean = terms.forecaster.forecasts(pool, terms.sizes[-1]).all.mean
    scores = np.where(is_full, table.score, -np.inf) if is_full.any() else np.where(begun, mean, -np.inf)
    return int(pool.curves.learners[scores.argmax()])


def _end(pool: Pool, terms: Terms) -> Finish:
    """Return with which learner the study ends, and why."""
    table, found = pool.curves.once(_table), pool.once(boxes, terms)
    winner = leader(pool, terms)
    assert winner is not None
    score = pool.curves[winner].score
    rest = np.flatnonzero(table.is_alive & (table.size < terms.sizes[-1]))
    if not len(rest):
        return Finish(winner, Reason("best of all on all the data with {0}", (score,)))
    if not (table.is_alive & (table.size >= terms.sizes[-1])).any():
        text = "best forecast, with score {0} so far; no time is left to train any on all"
        return Finish(winner, Reason(text, (score,)))
    other = int(rest[found.values[rest].argmax()])
    if not math.isfinite(found.values[other]):
        text = "full-data score {0}; the time left is too short for another training on all"
        return Finish(winner, Reason(text, (score,)))
    text = (
        f"full-data score {{0}}; going on with learner {int(pool.curves.learners[other])} pays up "
        "to {1} only"
    )
    return Finish(winner, Reason(text, (score, float(found.values[other]))))
