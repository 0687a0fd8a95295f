"""Prices: the value per second of every possible step of a search.

A step trains a learner, or a candidate that could become one, on m examples; N is all of them. Its
*price* is the score per second at which the step just pays, L with

    E[ max(0, EI - L (c(N) + o)) ] = L (c(m) + o)           if m = N:  EI = L (c(N) + o)

EI is the expected improvement on the best full-data score once the score at m is known, c(n) the
mean seconds of a training on n examples, and o an overhead of every step: a share of the
seconds spent so far (or left, if these are fewer). The overhead grows because small samples
distinguish the best learners less and less, so a look in between pays less and less. This is
Gittins' index [1], solved for the cost at a given score instead of the score at a given cost
[2, 3].

A new algorithm has parameters that nobody has tuned. Its first learner counts as a typical
candidate of the known algorithms, as uncertain as the forecast says, and has to beat a typical
candidate instead of the best learner. In return c(N) includes all seconds spent so far. We assume
that as much tuning would improve the new algorithm as much as it has improved the known ones. Only
its training shows its seconds. So it starts small, even if a training on all the data would
probably end too late.

With a time limit, a step uses up time that another training may need. Take the best other training
on all the data that would still end in time: now, and after the step. The difference of their EI
is subtracted from the EI of the step, or from the left side. So a search looks for better points
until it is time to train the best one known.

[1] J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", Journal of the Royal
    Statistical Society B 41(2), 1979. https://doi.org/10.1111/j.2517-6161.1979.tb01068.x
[2] Q. Xie, R. Astudillo, P. I. Frazier, Z. Scully, A. Terenin, "Cost-aware Bayesian Optimization
    via the Pandora's Box Gittins Index", NeurIPS 2024. https://arxiv.org/abs/2406.20062
[3] Q. Xie et al., "Cost-aware Stopping for Bayesian Optimization", 2025.
    https://arxiv.org/abs/2507.12453
[4] J. R. Gott, "Implications of the Copernican principle for our future prospects", Nature 363,
    1993. https://doi.org/10.1038/363315a0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.boxes import after_look
from optuna_daub.core.boxes import best_of_others
from optuna_daub.core.boxes import improvement
from optuna_daub.core.boxes import kept_after
from optuna_daub.core.boxes import price
from optuna_daub.core.costs.cost_model import CostModel
from optuna_daub.core.costs.cost_model import Seconds
from optuna_daub.core.costs.going_on import new_costs
from optuna_daub.core.costs.going_on import rest_after
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.first_model import affordable
from optuna_daub.core.first_model import is_likelier
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import candidates_of
from optuna_daub.core.pool import rows_of
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import deciding
from optuna_daub.core.steps import spaced
from optuna_daub.core.steps import start_near


HASTE = 0.03
"""Overhead of every step, as a share of the seconds spent so far or left. It was chosen by what
searches on surrogates lose with 0.01, 0.03 and 0.1 (`benchmarks/search.py --problems ranger`)."""
LEAST_SHARE = 1 / 64
"""Smallest share of all the data that learners start on. Not tuned."""
LIKELY = 0.5
"""Probability of being in time that is enough for a training after a look, since the look will say
more, and for the first look at a new algorithm. Not tuned; all else needs `IN_TIME`."""
LOOK_RANK = 6
"""Rank of a candidate's price without a look. Only looks of candidates whose price could be larger
than that are computed. Not tuned."""
MOST_LOOKED_AT = 160
"""Largest number of learners whose looks are computed (`benchmarks/decision_cost.py` says why)."""


@dataclass(frozen=True)
class Terms:
    """Sizes and models of a search."""

    stops: tuple[int, ...]
    """Sizes to stop at, increasing; the last is N."""
    forecaster: Forecaster
    """Forecaster of the scores."""
    cost: CostModel
    """Model of costs, in seconds or examples."""


class Prices(NamedTuple):
    """Price of every step; minus infinity if a step is not allowed."""

    learners: Numbers
    """Prices of learners in the order of ids, shape (learners, stops)."""
    candidates: Numbers
    """Prices of candidates, shape (candidates, stops)."""
    may_choose: bool
    """True if the best candidate becomes the next learner; False if a random one does."""
    has_model: bool
    """True if some learner was trained on all the data."""

    @property
    def learner(self) -> tuple[float, int, int]:
        """Largest price of a learner, its place, and the place of the size."""
        return _largest(self.learners)

    @property
    def candidate(self) -> tuple[float, int, int]:
        """Largest price of a candidate, its place, and the place of the size.

        If the next point is proposed at random, this is its mean price at the best size.
        """
        if self.may_choose or not len(self.candidates):
            return _largest(self.candidates)
        return _largest(np.maximum(self.candidates, 0.0).mean(axis=0, keepdims=True))

    @property
    def value(self) -> float:
        """Largest price of all steps."""
        return max(self.learner[0], self.candidate[0])


class Table(NamedTuple):
    """Facts about the learners, arrays in the order of ids."""

    size: Numbers
    """Largest size trained on; 0 before any score."""
    score: Numbers
    """Score at the largest size; minus infinity before any."""
    is_alive: NDArray[np.bool_]
    """True for learners that are not dropped."""

    @property
    def is_scored(self) -> NDArray[np.bool_]:
        """True for learners with a score that are not dropped."""
        return self.is_alive & (self.size > 0)


def table_of(pool: Pool) -> Table:
    """Return the facts about a pool's learners; call it by `pool.once`, which caches them."""
    size, score, is_alive = pool.curves.columns(_facts).T
    return Table(size, score, is_alive > 0.0)


def leader_of(pool: Pool, forecaster: Forecaster, full: int) -> int | None:
    """Return the learner with the best full-data score; before any, with the best forecast."""
    table = pool.once(table_of)
    if not table.is_scored.any():
        return None
    among, score = table.is_scored & (table.size >= full), table.score
    if not among.any():
        among, score = table.is_scored, np.asarray(forecaster.forecasts(pool, full).all.mean)
    return int(pool.curves.learners[np.where(among, score, -np.inf).argmax()])


def stops_of(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes to stop at on the way to N, the smallest first.

    >>> stops_of((500, 750, 1125, 1688, 2532, 3798, 5000))
    (500, 1688, 5000)
    """
    least = start_near(sizes, LEAST_SHARE)
    stops = [size for size in reversed(spaced(sizes)) if size >= least]
    return (least, *stops[1:]) if len(stops) > 1 else tuple(stops)


def prices(pool: Pool, terms: Terms) -> Prices:
    """Return the price of every step of every learner and candidate; call it by `pool.once`.

    The cost of a training on all the data is divided by the probability that it ends in the time
    left (after a look: in the time that the look leaves). If no end was given, this is the
    probability t / (t + c) that a search of t seconds goes on for c more [4]. With a time limit
    and a full-data model, a step is not allowed if a training on all the data would probably be
    late, or if the training that it starts may be. A step that loses more than it gains has a
    price below 0.

    Raises:
        ValueError: before any learner has a score.
    """
    stops, full = terms.stops, terms.stops[-1]
    table = pool.once(table_of)
    count, scored = len(table.size), table.is_scored
    if not scored.any():
        raise ValueError("No step has a price before any learner has a score.")
    is_full = scored & (table.size >= full)
    has_model = bool(is_full.any())
    content = pool.content
    mean, sd = content.once(_beliefs, terms.forecaster, full)
    if has_model:
        # A learner in training counts with its forecast.
        expected_soon = mean[:count][scored & ~pool.is_free]
        best = max(table.score[is_full].max(), expected_soon.max(initial=-math.inf))
        over = np.full(len(mean), best)
    else:
        # Before a full-data model, learners are to beat the median forecast, and candidates the
        # learner with the best one, whose score is as unknown as those of points near it.
        # Otherwise such points would be tried again and again.
        leader = int(np.where(scored, mean[:count], -math.inf).argmax())
        over = np.full(len(mean), np.median(mean[:count][scored]))
        over[count:] = mean[leader]
        sd = np.append(sd[:count], content.once(_gaps, terms.forecaster, full, leader))
    may_run = np.flatnonzero(table.is_alive & pool.is_free & ~is_full)
    rows = np.concatenate([may_run, np.arange(count, len(mean))])
    at = np.append(table.size, np.zeros(len(mean) - count))[rows]
    found = np.full((len(mean), len(stops)), -math.inf)
    mean, sd, best_known = mean[rows], sd[rows], over[rows]
    costs = content.once(new_costs, terms.cost, stops).part(rows)
    spent, left = float(pool.spent.examples), math.inf
    if terms.cost.is_in_seconds(pool):
        spent = pool.spent.seconds
        # No less than a moment, so no price is divided by 0 once the time is over.
        left = math.inf if pool.left is None else max(pool.left.seconds, 1e-9)
    # A new algorithm is a typical candidate and is to beat one, if as much is spent on it.
    over, effort = best_known.copy(), np.zeros(len(rows))
    untried, is_candidate = content.once(_is_untried)[rows], rows >= count
    new, others = is_candidate & untried, is_candidate & ~untried
    if has_model and pool.proposer.may_choose and others.any():
        mean[new], effort[new] = mean[others].mean(), spent
        over[new] = np.minimum(over[new], mean[new])
    expected = costs.expected(left)
    to_full = Seconds(costs.log_mean[:, -1], costs.log_sd[:, -1])

    # A number of runs says when a search ends, as a time limit does.
    lasted = max(spent, 1e-9) if pool.runs_left is None else math.inf

    def in_time(way: float | Numbers, rest: float | Numbers = 1.0) -> Numbers:
        """Return the probability that a full training ends in time.

        It is 0 if that is not `LIKELY`, once there is a model to lose.

        Args:
            way: seconds before it.
            rest: share of a training on all the data that is left after them.
        """
        if math.isinf(left):
            # What has lasted t goes on for c more with probability t / (t + c) [4].
            return 1.0 / (1.0 + (way + rest * expected[:, -1]) / lasted)
        chance = to_full.within((left - way) / rest)
        return np.where((chance > LIKELY) | (not has_model), chance, 0.0)

    # Before the first full-data model, a training may be late: there is nothing to lose.
    chance, may_start = in_time(0.0), (costs.latest <= left) | (not has_model)
    overhead = HASTE * min(spent, left)
    if pool.runs_left is not None:
        # A run costs more if fewer runs are left, this one included, than learners have scores.
        overhead *= max(1.0, float(scored.sum()) / (pool.runs_left + 1))
    later = expected[:, -1] / np.maximum(chance, 1e-9) + effort
    rest_of = rest_after(pool.curves, at[:, None], stops, full)
    ahead = improvement(mean, sd, over)
    promised = improvement(mean, sd, best_known)
    promised[is_candidate] *= pool.proposer.may_choose  # a random point promises nothing
    lost = _lost(promised, to_full.latest, expected, left) * has_model
    # Steps straight to N have no look, so one outcome stands for all.
    straight = (ahead - lost[:, -1]) / (later + overhead)
    found[rows, -1] = np.where((chance > 0.0) & may_start[:, -1], straight, -math.inf)
    # Looks are for the most promising learners, and for candidates that could win: a look's price
    # is at most what it would be if going on to N were free. All count if the next is drawn.
    has_hope = np.ones(len(rows), bool)
    has_hope[np.argsort(-ahead[: len(may_run)], kind="stable")[MOST_LOOKED_AT:]] = False
    floor = np.sort(found[rows, -1][is_candidate])[-LOOK_RANK:].min(initial=math.inf)
    is_rival = is_candidate & pool.proposer.may_choose
    for place, size in enumerate(stops[:-1]):
        if pool.runs_left == 0:
            break  # a learner suspended by the last run could not be resumed
        now = expected[:, place] + overhead
        # The look leaves less time for the training on all the data.
        chance = in_time(expected[:, place], rest_of[:, place])
        looks = has_hope & (at < size) & (chance > 0.0) & may_start[:, place]
        some = np.flatnonzero(looks & (~is_rival | (ahead / now > floor)))
        rest = expected[some, -1] * rest_of[some, place] / np.maximum(chance[some], 1e-9)
        rest += effort[some] + overhead
        shown = content.once(_look, terms.forecaster, size, full)[rows[some]]
        shown = np.minimum(shown, sd[some])
        after = after_look(mean[some], shown, kept_after(sd[some], shown), over[some])
        found[rows[some], place] = price(after, now[some], rest, lost[some, place])
    if has_model and pool.runs_left != 0:
        # Only a training shows the seconds of a new algorithm. So its first learner starts small,
        # and is not declined for the seconds with all the data.
        first, is_short = rows[untried], costs.within(left)[untried, 0] > LIKELY
        value = found[first].max(axis=1)
        found[first, 1:] = -math.inf
        found[first, 0] = np.where(is_short, np.maximum(value, 0.0), value)
    known = Prices(found[:count], found[count:], pool.proposer.may_choose, has_model)
    if has_model:
        return known
    return _before_a_model(pool, known, may_run, costs, spent, left)


def _lost(promised: Numbers, latest: Numbers, costs: Numbers, left: float) -> Numbers:
    """Return the improvement that each step makes impossible, shape (rows, stops).

    After it, too little time may be left for the best training on all the data. If the step is
    such a training itself, only what another one promises beyond it can be lost.

    Args:
        promised: expected improvement by a training of each row on all the data.
        latest: seconds within which that training ends, with a probability of `IN_TIME`.
        costs: mean seconds of the steps, shape (rows, stops).
        left: seconds left; infinite if nothing can be too late.
    """
    if math.isinf(left):
        return np.zeros(costs.shape)
    own = np.zeros(costs.shape)
    own[:, -1] = promised
    before = best_of_others(promised, latest, left)[:, None]
    after = best_of_others(promised, latest, left - costs.T).T
    return np.asarray(np.maximum(before - own, 0.0) - np.maximum(after - own, 0.0))


def _beliefs(pool: Pool, forecaster: Forecaster, size: int) -> tuple[Numbers, Numbers]:
    return forecaster.beliefs(pool, size)


def _gaps(pool: Pool, forecaster: Forecaster, size: int, leader: int) -> Numbers:
    return forecaster.gaps(pool, size, leader)


def _look(pool: Pool, forecaster: Forecaster, at: int, size: int) -> Numbers:
    return np.concatenate(forecaster.look(pool, at, size))


def _is_untried(pool: Pool) -> NDArray[np.bool_]:
    """Return True for learners and candidates of new algorithms, shape (learners + candidates,).

    A new algorithm is a deciding word that no scored learner has, and no learner at all if it is a
    candidate's: an algorithm that fails is not new.
    """
    new, known = pool.once(candidates_of), pool.curves.once(rows_of, pool.known_space)
    scored, both = known[pool.once(table_of).is_scored], np.vstack([known, new])
    found = np.zeros(len(both), bool)
    for place in np.flatnonzero(deciding(pool.known_space, known)):
        is_known = np.isin(both[:, place], scored[:, place])
        is_known[len(known) :] = np.isin(new[:, place], known[:, place])
        found |= ~np.isnan(both[:, place]) & ~is_known
    return found


def _before_a_model(
    pool: Pool,
    known: Prices,
    may_run: NDArray[np.int64],
    costs: Seconds,
    spent: float,
    left: float,
) -> Prices:
    """Return the prices of steps that are allowed before the first full model.

    Args:
        pool: the pool.
        known: prices of all steps.
        may_run: places of the learners that may be trained.
        costs: costs of these learners, then of candidates; shape (rows, stops).
        spent, left: costs spent and left, in the unit of costs.
    """
    scored, expected, count = pool.once(table_of).is_scored, costs.expected(), len(may_run)
    begun, new = np.flatnonzero(scored[may_run]), expected[count:]
    # Even if nothing promises to be better, a point may start: there is no model yet.
    may_start = (new[:, 0] <= left) & (pool.runs_left != 0)
    may_choose = known.may_choose
    others = costs.part(count + np.flatnonzero(may_start | (not may_choose)))
    may_be_first = affordable(costs.part(begun), others, spent, left, may_choose=may_choose)
    if pool.runs_left is not None and pool.runs_left < scored.sum():
        may_be_first[:] = True  # otherwise the runs may end before one is affordable
    is_allowed = np.zeros(len(known.learners), bool)
    is_allowed[may_run[begun]] = may_be_first
    learners = np.full_like(known.learners, -math.inf)
    candidates = np.full_like(known.candidates, -math.inf)
    learners[is_allowed, -1] = known.learners[is_allowed, -1]
    if not is_allowed.any() and not len(candidates):
        return known  # the space has no further point
    if not is_allowed.any():
        if expected[begun, -1].min(initial=math.inf) > left:
            # No training on all the data seems to be in time. Seconds may grow less with the data
            # than believed, and only a larger size shows it.
            own = costs.part(np.arange(count))
            is_next = scored[may_run] & is_likelier(own, others, left, may_choose=may_choose)
            is_look = (expected[:count, :-1] <= left) & is_next[:, None]
            learners[may_run, :-1] = np.where(is_look, known.learners[may_run, :-1], -math.inf)
        candidates[:, 0] = np.where(may_start, np.maximum(known.candidates[:, 0], 0.0), -math.inf)
    # New learners start small, and so do candidates until some learner is affordable.
    learners[~scored, 0] = known.learners[~scored, 0]
    return Prices(learners, candidates, may_choose, False)


def _facts(curve: LearningCurve) -> tuple[float, float, float]:
    return float(curve.size), curve.score, float(not curve.dropped)


def _largest(values: Numbers) -> tuple[float, int, int]:
    if not values.size:
        return -math.inf, 0, 0
    place, stop = divmod(int(values.argmax()), values.shape[1])
    return float(values[place, stop]), place, stop
