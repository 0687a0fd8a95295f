"""Value per second: the default rule, for closed and open pools.

The next seconds go where they promise most: to a learner suspended earlier, which goes to a larger
size or straight to all the data, or to a newcomer. Every such action is a box that costs something
to open, and boxes are compared by Weitzman's reservation value [1], which is Gittins' index [2] of
a learner that is looked at twice. At a cost weight L (score per second), the index of a learner
with forecast X at N is the score v that makes going on worth nothing more:

    straight to N:      E[max(0, X - v)] = L c(N)
    to size m, then N:  E[max(0, E[max(0, X - v) | score at m] - L c(N))] = L c(m)

and the largest of these over m counts. The learner with the largest index goes on, while its index
is above the best full-data score. No such score is needed to compare learners before there is one.

What a second is worth, the cost weight, is where the two kinds of pool differ:

* closed pool: a small share of what the study has gained so far, per mean full training, and the
  more the longer it has run, so that a pool of near ties ends as well. The study ends when no
  index is above the best full-data score.
* open pool: the rate at which newcomers improve on the best full-data score, the largest L at
  which a newcomer is worth its first probe: the marginal value of search; or half of what the best
  suspended learner promises per second, if that is more. A newcomer is proposed when no index is
  above the best full-data score at that weight. One newcomer in ten goes to N whatever its index.
  Only where the time that is left is known, and there is a full-data score, does it end by itself:
  when no training on all the data would be through. Where the runs that are left are known, the
  first full-data model is begun by half of them, the last run is on all the data, and in between
  seconds count the less the fewer runs are left.

[1] M. L. Weitzman, "Optimal Search for the Best Alternative", Econometrica 47(3), 1979.
    https://doi.org/10.2307/1910412
[2] J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", Journal of the Royal
    Statistical Society B 41(2), 1979. https://doi.org/10.1111/j.2517-6161.1979.tb01068.x
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import field
from typing import Literal
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core.checks import named
from optuna_daub.core.checks import number
from optuna_daub.core.costs import Costs
from optuna_daub.core.costs import Guess
from optuna_daub.core.costs import by_parameters
from optuna_daub.core.costs import in_examples
from optuna_daub.core.costs import in_seconds
from optuna_daub.core.costs import is_timed
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.forecasts.forecast import LOGISTIC
from optuna_daub.core.forecasts.forecast import Forecast
from optuna_daub.core.forecasts.forecast import Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts
from optuna_daub.core.forecasts.forecast import Logistic
from optuna_daub.core.forecasts.forecast import Numbers
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.intervals.interval import Interval
from optuna_daub.core.parameters import MOST_COMPARED
from optuna_daub.core.policies.policy import Needs
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.steps import nearest


FIRST_SHARE = 1 / 16
"""Of all the data: the size that every learner of a closed pool starts at. Halving by 1/4 that
ends at N starts there too; from N / 32 on, Parity's learners are all still at chance level."""
LEAST_SHARE = 1 / 64
"""Of all the data: the size that the first learners of an open pool start at, or above where there
is none so small. On less, forecasts rest on nothing (`forecasts.joint` was fitted from there on),
and hundreds of learners could be begun before any is affordable on everything."""
STOP_RATIO = 2.0
"""Sizes to stop at on the way to N are at least this ratio apart: a shorter step shows little."""
OVERHEAD = 0.2
"""Closed pool: what every action costs besides, in mean full trainings. Without it a probe that
costs next to nothing is always worth it, and learners climb in too many steps."""
HASTE = 0.5
"""Open pool: what every action costs besides, as a share of the seconds spent so far, or of those
left where these are fewer. Without it cheap learners win for ever, and small samples decide among
the best, which they cannot tell apart: after 30 full trainings 0.1 is behind 0.3 and 1 on the
surrogates of `benchmarks`, which are level."""
PROBE = 0.5
"""Open pool: what is trained for what it shows, not for its score, costs no more than this share
of the seconds spent so far: a second size, to see how time grows with size, the sample that checks
forecasts, and a newcomer's first size where one is so cheap."""
DEAR = 1.28
"""Open pool: a newcomer starts where it would cost no more than `PROBE` of the seconds spent so
far, were it dearer than predicted by so many standard deviations: nine in ten are not. Where
parameters are drawn on logarithmic scales the dearest cost a hundred times the median: straight on
all the data one of them would take all the time there is."""
FIRST_MODEL = 0.5
"""Open pool: the first learner that goes to N costs no more than the seconds spent so far divided
by this, so that there is a full-data model early."""
EVENNESS = 0.1
"""Closed pool: costs of learners count to this power, relative to the mean. From one short probe
the cost of all the data is known to a factor of 2 or 3 only, and boosted trees look slow on little
data: where costs count in full (1) the best learner of covtype is left out in two of three runs,
from 0.2 on sometimes; where they do not count (0), Parity costs a little more."""
A_TENTH = 0.1 / 0.9
"""Closed pool: odds of the share spent at which `price` is asked."""
CHECKED = 10
"""Open pool: of so many newcomers one is trained on all the data, whatever it promises. Only those
that look good go on otherwise, and where simple models lead on little data, the study never sees
what the others gain. One in ten costs the surrogates of `benchmarks` some 0.03 points after 20 and
30 full trainings and nothing after 100, one in five 0.2 points."""
LATE = 0.5
"""Open pool: standard deviations by which a last training may take longer than predicted and
still be in time. On the surrogates of `benchmarks`, with time for 10 and 30 mean full trainings,
45 and 40 % of the searches end in one that is late; without a margin 53 and 70 %, with 1 40 and
30 %. Models are about as good."""
RECENT = 30
"""Newcomers are expected to cost as much as so many learners begun last."""
MOST = 128
"""Learners looked at more closely: those that could rise highest."""
POINTS = np.array([-2.56, -1.28, -0.56, 0.0, 0.56, 1.28, 2.56])
"""Standard deviations from the mean, where what a score at m reveals is looked at. With their
weights a normal distribution whose tails are cut off (its variance is 0.83): exact quadrature is
no better on the tables, and dearer."""
WEIGHTS = np.array([0.02, 0.13, 0.22, 0.26, 0.22, 0.13, 0.02])
"""Their probabilities."""
HALVINGS = 16
"""Of the interval in which an index lies, by bisection."""
CHECK = Reason(f"one newcomer in {CHECKED} is trained on all the data, whatever it promises")
"""Why a learner goes on that was drawn for a check of forecasts."""


@dataclass(frozen=True)
class ValuePerSecond(Policy):
    """Spend the next seconds where they promise the largest improvement.

    >>> from optuna_daub.core import Curves, Observation
    >>> def curve(learner, *scores):
    ...     seen = zip((1000, 2000, 16000), scores)
    ...     return LearningCurve(learner, tuple(Observation(n, score) for n, score in seen))
    >>> policy = ValuePerSecond(sizes=(1000, 2000, 4000, 8000, 16000), cost="examples")
    >>> pool = Pool(Curves([curve(0, 0.70, 0.74), curve(1, 0.72), curve(2, 0.60)]))
    >>> decision = policy.decide(pool)
    >>> decision.learner, decision.size
    (0, 4000)
    """

    forecaster: Forecaster = field(default_factory=Joint)
    """How good learners can be on more data."""
    cost: Literal["seconds", "examples"] = "seconds"
    """What is spent: measured seconds, or training examples (the same decisions everywhere)."""
    price: float = 0.008
    """Closed pool: least improvement that a mean full training must promise, once a tenth has been
    spent of what training all on all the data costs; as a share of how far the best score so
    far exceeds the median first one. At least 0; with 0 all are trained on all the data. What is
    asked grows with the odds of the share spent. The default is the largest that loses less than
    0.05 percentage points on half of LCDB's data sets; one learner more or less in one data set is
    0.08."""

    def __post_init__(self) -> None:
        super().__post_init__()
        named("cost", self.cost, {"seconds": True, "examples": True})
        if not 0 <= number("price", self.price) < math.inf:
            raise ValueError(f"`price` must be at least 0 and finite, but got {self.price}.")

    @property
    def needs(self) -> Needs:
        """Validation scores alone; pools may be open."""
        return Needs(training_scores="unused")

    def decide(self, pool: Pool) -> Decision:
        """Return what to do next."""
        table = pool.curves.once(self._table)
        free = table.is_alive & pool.is_free
        first = self._first_size(pool)
        is_open = pool.to_come is None
        is_last = is_open and pool.runs_left == 0
        # A newcomer that was proposed and then lost its worker, or failed, starts first.
        if (waiting := free & (table.size == 0)).any() and not is_last:
            return self._first_step(pool, int(table.learners[waiting.argmax()]))
        if pool.may_propose and not is_open:
            return Propose(first, Reason(f"every learner is first trained on {first:,}"))
        if is_open:
            decision = self._first_or_last(pool, table, free, first)
            if decision is not None:
                return decision
        if not table.is_alive.any():
            return Finish(None, Reason("no learner is left"))
        if not table.is_begun.any():
            return Wait(Reason("every learner left is being trained for the first time"))
        if is_open and (checked := self._checked(pool, table, free)).any():
            return Extend(int(table.learners[checked.argmax()]), self.sizes[-1], CHECK)
        boxes = pool.once(self._boxes)
        places = np.flatnonzero(free & ~table.is_full)
        if len(places):
            chosen = int(places[boxes.values[places].argmax()])
            if boxes.values[chosen] > boxes.to_beat:
                size = int(boxes.size[chosen])
                values = float(boxes.values[chosen]), boxes.to_beat
                text = "going on pays up to a full-data score of {0}"
                if math.isfinite(boxes.to_beat):
                    text += "; to beat is {1}"
                return Extend(int(table.learners[chosen]), size, Reason(text, values))
        start, rate = pool.once(self._newcomer) if is_open else (first, -1.0)
        if rate >= 0.0:
            # An improvement, not a score: it has no direction, and may be far below 0.001.
            text = f"a newcomer promises {rate:.2g} of improvement per {self._unit(pool)[:-1]}"
            return Propose(start, Reason(text + ", more than others"))
        if is_open and pool.runs_left != 0 and self._is_some_in_time(pool):
            # Those that would be late are declined, and cost nothing.
            return Propose(
                first, Reason("the time left is enough for a cheaper newcomer than most")
            )
        busy = table.is_alive & ~free
        if busy.any():
            return Wait(Reason("what the learners being trained reach decides which goes on"))
        return self._end(pool)

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        """Return where a newcomer starts, or that it would be too late with all the data."""
        del size
        if declined := self._declines(pool, learner):
            return Drop(learner, declined)
        return self._first_step(pool, learner)

    def _first_step(self, pool: Pool, newcomer: int) -> Extend:
        """Return where a newcomer starts, given what its parameters promise and cost.

        At the score per second that the search gains, L, it is worth the larger of these, which
        are 0 where its reservation value is the best full-data score [1]:

            straight to N:      E[max(0, X - best)] - L c(N)
            to size m, then N:  E[max(0, E[max(0, X - best) | score at m] - L c(N))] - L c(m)

        A learner that is predicted to be dear so starts smaller than a cheap one, and a poor one
        smaller than one that promises much.
        """
        table, first = pool.curves.once(self._table), self._first_size(pool)
        if pool.to_come is None and pool.runs_left == 0:
            is_known = table.is_begun.any()
            guess = pool.curves.once(self._guess, newcomer) if is_known else None
            if guess is None or math.exp(guess.log_cost) <= self._seconds_left(pool):
                text = "the last run: all the data at once"
                return Extend(newcomer, self.sizes[-1], Reason(text))
        if pool.to_come is not None or not table.is_compared:
            return Extend(newcomer, first, Reason(f"every learner is first trained on {first:,}"))
        guess = pool.curves.once(self._guess, newcomer)
        weight = pool.once(self._weight)
        size, worth = first, -math.inf
        for start in self._starts(pool, guess, newcomer):
            ahead = np.maximum(0.0, start.ahead - weight * start.later) @ WEIGHTS
            if ahead - weight * start.now > worth:
                size, worth = start.size, float(ahead - weight * start.now)
        cost = _readable(math.exp(guess.log_cost))
        text = f"a newcomer, predicted to take {cost} {self._unit(pool)} on all the data"
        return Extend(newcomer, size, Reason(text))

    def _declines(self, pool: Pool, newcomer: int) -> Reason | None:
        """Return why a newcomer would be too late with all the data; None where it may be in time.

        It would be late even were it cheaper than predicted by `LATE` standard deviations. Its
        first probe would be lost, and dear newcomers have long ones: with three minutes for the
        541,000 rows of covtype and the space of `examples/automl.py` these took a third of them.
        """
        table = pool.curves.once(self._table)
        if pool.to_come is not None or not table.is_compared:
            return None
        if pool.runs_left == 0:
            return None  # no other comes in its place
        left = self._seconds_left(pool)
        if not math.isfinite(left):
            return None
        guess = pool.curves.once(self._guess, newcomer)
        if guess.log_cost - LATE * guess.error <= math.log(max(left, 1e-9)):
            return None
        cost = _readable(math.exp(guess.log_cost))
        text = f"predicted to take {cost} seconds on all the data; {_readable(left)} are left"
        return Reason(text)

    def explain(self, pool: Pool, learner: int) -> Reason:
        """Return why the turn went from `learner` to another."""
        decision = pool.once(self.decide)
        table = pool.curves.once(self._table)
        place = int(np.searchsorted(table.learners, learner))
        if isinstance(decision, Extend) and (
            decision.learner == learner or not pool.curves[decision.learner].observations
        ):
            return decision.reason
        if isinstance(decision, Propose) and pool.to_come is not None:
            return decision.reason
        if isinstance(decision, Extend) and decision.reason == CHECK:
            return Reason(f"learner {decision.learner} goes first: {CHECK.sentence}")
        is_special = not table.is_full.any() or pool.runs_left == 0
        if table.size[place] == 0 or (pool.to_come is None and is_special):
            return decision.reason
        boxes = pool.once(self._boxes)
        own = float(boxes.values[place])
        if own == -math.inf:
            return Reason("the time left is too short to train it on all the data")
        if isinstance(decision, Extend):
            other = int(np.searchsorted(table.learners, decision.learner))
            text = f"going on pays up to {{0}}; with learner {decision.learner} up to {{1}}"
            return Reason(text, (own, float(boxes.values[other])))
        if not math.isfinite(boxes.to_beat):
            return decision.reason
        return Reason("going on pays up to {0} only; to beat is {1}", (own, boxes.to_beat))

    def leader(self, pool: Pool) -> int | None:
        """Return the learner with the best full-data score; before any, with the best forecast."""
        table = pool.curves.once(self._table)
        if table.is_full.any():
            return int(table.learners[table.leader])
        begun = np.flatnonzero(table.is_begun)
        if not len(begun):
            return None
        mean = pool.once(self._at_full).mean[begun]
        return int(table.learners[begun[mean.argmax()]])

    def interval(self, pool: Pool, learner: int) -> Interval:
        """Return the middle 90 % of the forecast at N."""
        if not pool.curves[learner].observations:
            return Interval()
        place = int(np.searchsorted(pool.curves.learners, learner))
        lower, upper = pool.once(self._ends)[:, place].tolist()
        return Interval(lower, max(lower, upper))

    def forecasts(self, pool: Pool, size: int) -> Forecasts:
        """Return the forecast of every learner's score at `size`."""
        return self.forecaster.forecasts(pool, size)

    def worth(self, pool: Pool) -> NDArray[np.float64]:
        """Return each learner's forecast at N less what training it there costs, for proposals.

        The cost in seconds counts times the rate of newcomers, which falls as the search goes on:
        what is proposed stands beside other proposals. In a closed pool, and before the first
        full-data score, it is the forecast alone.
        """
        table = pool.curves.once(self._table)
        mean = np.asarray(pool.once(self._at_full).mean)
        if pool.to_come is not None or not table.is_compared:
            return mean
        _, rate = pool.once(self._newcomer)
        return np.asarray(mean - max(rate, 0.0) * self._costs(pool).at(self.sizes[-1]))

    def _ends(self, pool: Pool) -> NDArray[np.float64]:
        """Return both ends of every learner's interval, a row each."""
        forecast = pool.once(self._at_full)
        return np.stack([np.atleast_1d(forecast.quantile(p)) for p in (0.05, 0.95)])

    def _at_full(self, pool: Pool) -> Forecast:
        """Return the forecast of every learner's score on all the data."""
        return self.forecaster.forecasts(pool, self.sizes[-1]).all

    def _table(self, curves: Curves) -> _Table:
        facts = curves.columns(_facts)
        is_alive = facts[:, 0] == 0.0
        size, score, first = facts[:, 1], facts[:, 2], facts[:, 3]
        is_full = is_alive & (size >= self.sizes[-1])
        return _Table(curves.learners, is_alive, size, score, first, is_full)

    def _first_size(self, pool: Pool) -> int:
        """Return the size that a newcomer starts at, where nothing else decides it."""
        if pool.to_come is None:
            return min(nearest(self.sizes, LEAST_SHARE * self.sizes[-1]), self.sizes[-3])
        return min(nearest(self.sizes, FIRST_SHARE * self.sizes[-1]), self.sizes[-3])

    def _first_or_last(
        self, pool: Pool, table: _Table, free: NDArray[np.bool_], first: int
    ) -> Decision | None:
        """Return what to do in an open pool before its first full-data score, or in its last run.

        None in between.
        """
        if pool.runs_left == 0:
            last = self._last_run(pool, table, free)
            if last is not None:
                return last
        if table.is_begun.sum() < 2:
            return Propose(first, Reason("two learners must be known to compare them"))
        if not table.is_full.any():
            return self._first_model(pool, table, free, first)
        return None

    def _first_model(
        self, pool: Pool, table: _Table, free: NDArray[np.bool_], first: int
    ) -> Decision:
        """Return what to do in an open pool without a full-data score."""
        costs, spent = self._costs(pool), self._spent(pool)
        cost = costs.at(self.sizes[-1])
        begun = table.is_begun
        affordable = begun & (FIRST_MODEL * cost <= spent)
        if pool.runs_left is not None and pool.runs_left < begun.sum():
            affordable |= begun  # or the runs might be over before one is affordable
        left = self._seconds_left(pool)
        if math.isfinite(left):
            # With so little time left, a cheaper learner would come too late; but what would not
            # be through in time is no help.
            affordable |= begun & (cost == cost[begun].min()) & (cost <= left) & (left < 2 * cost)
        if (in_time := affordable & (cost <= left)).any():
            affordable = in_time  # a late one only where none is in time (`_margin`)
        if not affordable.any():
            # Where time hardly grows with size, N would be taken to cost N / n first probes, and
            # no full model to be affordable for long. A second probe shows how it grows.
            far = (size for size in self.sizes if size >= STOP_RATIO * first)
            larger = min(far, default=self.sizes[-1])
            dear = np.where(begun & free, costs.at(larger), np.inf)
            cheapest = int(dear.argmin())
            if dear[cheapest] <= PROBE * spent and not (table.size > first).any():
                text = f"what {larger:,} examples cost says what all of them will"
                return Extend(int(table.learners[cheapest]), larger, Reason(text))
            text = "no learner is cheap enough yet to be trained on everything"
            return Propose(first, Reason(text))
        forecast = pool.once(self._at_full)
        ahead = forecast.expected_improvement(float(np.median(forecast.mean[begun])))
        best = int(np.where(affordable, ahead / (cost + spent), -np.inf).argmax())
        if not free[best]:
            return Propose(first, Reason("the first full model is being trained"))
        mean = float(np.asarray(forecast.mean)[best])
        text = "first full model: most promising per second, forecast {0}"
        return Extend(int(table.learners[best]), self.sizes[-1], Reason(text, (mean,)))

    def _checked(self, pool: Pool, table: _Table, free: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which learners go to N for what that shows of forecasts, whatever they promise.

        They are one in `CHECKED` of all, while these together cost no more than half of the time
        spent so far, or left; none where runs are scarce, and what they show would come too late.
        """
        if pool.runs_left is not None and pool.runs_left < table.is_begun.sum():
            return np.zeros(len(table.learners), bool)
        # By order, not by id: ids are numbers of trials, and other trials lie in between.
        is_drawn = np.arange(len(table.learners)) % CHECKED == CHECKED // 2
        cost = self._costs(pool).at(self.sizes[-1])
        paid = float(cost[is_drawn & ((table.size >= self.sizes[-1]) | ~pool.is_free)].sum())
        most = PROBE * min(self._spent(pool), self._seconds_left(pool))
        goes_on = is_drawn & table.is_begun & free & ~table.is_full
        return np.asarray(goes_on & (paid + cost <= most))

    def _last_run(self, pool: Pool, table: _Table, free: NDArray[np.bool_]) -> Decision | None:
        """Return what goes to N in the last run of an open pool; None where none is in time.

        What is suspended then is lost, so that nothing smaller than N is worth training.
        """
        full = self.sizes[-1]
        spent = self._spent(pool)
        left = self._seconds_left(pool)
        begun = table.is_begun
        if not begun.any():
            return Propose(full, Reason("the only run: all the data at once"))
        forecast, costs = pool.once(self._at_full), self._costs(pool).at(full)
        best = table.best
        if not table.is_full.any():
            best = float(np.median(forecast.mean[begun]))
        runs = begun & free & ~table.is_full & (costs <= left)
        worth = forecast.expected_improvement(best) / (costs + spent)
        chosen = int(np.where(runs, worth, -1.0).argmax())
        later = float(np.median(costs[np.flatnonzero(begun)[-RECENT:]]))
        newcomer = self.forecaster.newcomer(pool, full)
        new = float(newcomer.expected_improvement(best)) / (later + spent)
        if runs.any() and (worth[chosen] >= new or later > left):
            mean = float(np.asarray(forecast.mean)[chosen])
            text = "the last run: most promising on all the data, forecast {0}"
            return Extend(int(table.learners[chosen]), full, Reason(text, (mean,)))
        if later > left:
            return None
        return Propose(full, Reason("the last run: a newcomer promises most on all the data"))

    def _end(self, pool: Pool) -> Finish:
        """Return with which learner the study ends, and why."""
        table, boxes = pool.curves.once(self._table), pool.once(self._boxes)
        winner = self.leader(pool)
        assert winner is not None
        score = pool.curves[winner].score
        rest = np.flatnonzero(table.is_alive & ~table.is_full)
        if not len(rest):
            return Finish(winner, Reason("best of all on all the data with {0}", (score,)))
        if not table.is_full.any():
            text = "best forecast, with score {0} so far; no time is left to train any on all"
            return Finish(winner, Reason(text, (score,)))
        other = int(rest[boxes.values[rest].argmax()])
        if not math.isfinite(boxes.values[other]):
            text = "full-data score {0}; the time left is too short for another training on all"
            return Finish(winner, Reason(text, (score,)))
        text = (
            f"full-data score {{0}}; going on with learner {int(table.learners[other])} pays up "
            "to {1} only"
        )
        return Finish(winner, Reason(text, (score, float(boxes.values[other]))))

    def _boxes(self, pool: Pool) -> _Boxes:
        """Return every learner's index, where it would go next, and what is to beat."""
        table, costs = pool.curves.once(self._table), self._costs(pool)
        full = self.sizes[-1]
        forecast = pool.once(self._at_full)
        mean, width = forecast.quantile(0.5), _width(forecast)
        begun = table.is_begun
        best = table.best
        to_full = costs.at(full)
        unit = float(to_full[begun].mean())
        # How each learner's predicted cost counts, what every action costs besides, the weight.
        factor, overhead = np.ones(len(to_full)), OVERHEAD * unit
        # A learner that would not be through in time is not begun again: its last training is what
        # counts, and the time for it is kept in reserve.
        left = self._seconds_left(pool)
        in_time, runs = self._in_time(pool), begun & pool.is_free & ~table.is_full
        if pool.to_come is None:
            overhead, weight = self._overhead(pool), pool.once(self._weight)
        else:
            factor = (unit / to_full) ** (1.0 - EVENNESS)
            seen = np.stack([table.first[begun], table.score[begun]])
            gained = max(0.0, float(seen[1].max() - np.median(seen[0])))
            # Where half of them tie at the top, as on few examples of which most are of one class,
            # nothing is gained yet: seconds are worth next to nothing, but enough for an order.
            gained = max(gained, 0.01 * float(np.ptp(seen)))
            # Each learner's largest probe, as costs are believed: one slow call must not count.
            reached = costs.at(np.maximum(table.size, 1.0))
            share = float(reached[begun].sum() / to_full[begun].sum())
            # As odds, no weight is too low to end a pool of near ties before all are trained.
            odds = share / max(1.0 - share, 1e-9)
            weight = self.price * odds / A_TENTH * gained / unit
        later = weight * factor * to_full
        index = np.where(
            table.is_full, table.score, forecast.reservation_value(later + weight * overhead)
        )
        index[~table.is_full & ~in_time] = -math.inf
        size = np.full(len(index), full)
        # Those that another worker trains now are expected to reach their forecasts.
        away = begun & ~pool.is_free
        to_beat = max(best, float(mean[away].max(initial=-math.inf)))
        # Only those are looked at more closely that could win if the next stop cost nothing but
        # the overhead, and showed everything.
        hopes = forecast.reservation_value(np.full(len(index), weight * overhead))
        floor = max(to_beat, float(index[runs].max(initial=-math.inf)))
        closer = np.flatnonzero(runs & (hopes > floor) & (width > 0.0))
        if len(closer) > MOST:
            closer = np.sort(closer[np.argpartition(-hopes[closer], MOST)[:MOST]])
        for stop in _thinned(self.sizes)[1:]:
            some = closer[table.size[closer] < stop]
            if not len(some):
                continue
            # What is known at the stop was uncertain by so much, what is not stays uncertain.
            shown = _width(self.forecaster.forecasts(pool, stop).all)[some]
            shown = np.minimum(shown, width[some])
            kept = np.sqrt(width[some] ** 2 - shown**2)
            now = weight * (factor[some] * costs.at(stop)[some] + overhead)
            found = _two_stage_index(mean[some], shown, kept, now, later[some], index[some])
            arrival = costs.at(stop)[some] + to_full[some] * self._margin(pool, stop)
            better = (arrival <= left) & (found > index[some])
            index[some[better]], size[some[better]] = found[better], stop
        return _Boxes(index, size, to_beat)

    def _guess(self, curves: Curves, newcomer: int | None) -> Guess:
        """Return what training a newcomer on all the data costs; None is one not proposed yet."""
        if self.cost == "examples":
            return Guess(math.log(self.sizes[-1]), 0.0)
        recent, log_costs = curves.once(self._recent)
        known = [curves[i].parameters for i in recent.tolist()]
        if newcomer is not None:
            return by_parameters(known, log_costs, curves[newcomer].parameters)
        # It will have parameters when its start is decided, like the one before it.
        typical = float(np.median(log_costs[-RECENT:]))
        return Guess(typical, by_parameters(known, log_costs, known[-1]).error)

    def _recent(self, curves: Curves) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the learners begun last, and the logarithms of their predicted costs at N."""
        recent = np.flatnonzero(curves.once(self._table).is_begun)[-MOST_COMPARED:]
        costs = curves.once(in_seconds).at(self.sizes[-1])[recent]
        return curves.learners[recent], np.log(costs)

    def _forecast(self, pool: Pool, newcomer: int | None, size: int) -> Forecast:
        """Return the forecast of a newcomer; None is one not proposed yet."""
        if newcomer is not None:
            forecast = self.forecaster.forecasts(pool, size)[newcomer]
            if np.isfinite(_width(forecast)):
                return forecast
        return self.forecaster.newcomer(pool, size)

    def _starts(self, pool: Pool, guess: Guess, newcomer: int | None) -> list[_Start]:
        """Return the sizes that a newcomer which costs so much may start at, larger ones first.

        One that is proposed already is forecast by its parameters; None is one that is not.
        """
        table, costs = pool.curves.once(self._table), self._costs(pool)
        begun = table.is_begun
        full, left, spent = self.sizes[-1], self._seconds_left(pool), self._spent(pool)
        best = table.best
        most = PROBE * spent
        if pool.runs_left is not None and pool.runs_left < begun.sum():
            most = math.inf  # runs are scarce, not seconds
        growth = float(np.median(costs.growth[begun]))
        if newcomer is not None and pool.curves[newcomer].parameters:
            growth = float(costs.growth[np.searchsorted(table.learners, newcomer)])
        forecast = self._forecast(pool, newcomer, full)
        mean, width = float(forecast.mean), float(_width(forecast))
        later, dear = math.exp(guess.log_cost), math.exp(min(DEAR * guess.error, 100.0))
        overhead = self._overhead(pool)
        shares = ((costs.fixed + np.array(self.sizes)) / (costs.fixed + full)) ** growth
        seconds = dict(zip(self.sizes, (later * shares).tolist(), strict=True))
        affordable = [size for size in _thinned(self.sizes) if dear * seconds[size] <= most]
        found = []
        for size in affordable or [self._first_size(pool)]:
            now = seconds[size]
            if size == full:
                ahead = np.full(len(POINTS), float(forecast.expected_improvement(best)))
                # Its cost is a guess, which is off by its error one time in six.
                if later * math.exp(min(guess.error, 100.0)) <= left:
                    found.append(_Start(size, ahead, later + overhead, 0.0))
                continue
            shown = min(width, float(_width(self._forecast(pool, newcomer, size))))
            kept = LOGISTIC * math.sqrt(width**2 - shown**2)
            ahead = Logistic(mean + shown * POINTS, kept).expected_improvement(best)
            # What it shows of its cost comes before all the data: no margin is asked for.
            if now + later <= left:
                found.append(_Start(size, ahead, now + overhead, later))
        return found

    def _newcomer(self, pool: Pool) -> tuple[int, float]:
        """Return the size that a newcomer is best started at, and its value per second there.

        The value is -1 where a newcomer would not be through in the time left.
        """
        starts = self._starts(pool, pool.curves.once(self._guess, None), None)
        found = [(_rate(x.ahead, x.later, x.now), x.size) for x in starts]
        rate, size = max(found, default=(-1.0, self.sizes[-1]))
        return size, rate

    def _is_some_in_time(self, pool: Pool) -> bool:
        """Return whether one like those begun last would be through in the time left."""
        _, log_costs = pool.curves.once(self._recent)
        return bool((np.exp(log_costs) <= self._seconds_left(pool)).any())

    def _weight(self, pool: Pool) -> float:
        """Return what a second is worth in an open pool, L: the rate at which the search improves.

        It is the rate of newcomers, but at least half of that of the best suspended learner, whose
        index so is above the best full-data score. Were seconds worth next to nothing where
        newcomers are, or would not be in time, no cost would count, and the largest index would be
        that of the learner of which least is known.
        """
        table = pool.curves.once(self._table)
        _, rate = pool.once(self._newcomer)
        ahead = np.asarray(pool.once(self._at_full).expected_improvement(table.best))
        runs = table.is_begun & pool.is_free & ~table.is_full & self._in_time(pool)
        rates = ahead[runs] / (self._costs(pool).at(self.sizes[-1])[runs] + self._overhead(pool))
        return max(rate, float(rates.max(initial=0.0)) / 2.0)

    def _in_time(self, pool: Pool) -> NDArray[np.bool_]:
        """Return which learners would be through with all the data in the time left."""
        to_full = self._costs(pool).at(self.sizes[-1])
        size = np.maximum(pool.curves.once(self._table).size, 1.0)
        return np.asarray(to_full * self._margin(pool, size) <= self._seconds_left(pool))

    def _margin(self, pool: Pool, since: ArrayLike) -> NDArray[np.float64]:
        """Return how many times as long as predicted training on N may take and be in time.

        It is 1 but in an open pool that has a full-data model to fall back on: elsewhere, and in
        the last run, a training that may be late is better than none.

        Args:
            since: the size from which on it is predicted.
        """
        table = pool.curves.once(self._table)
        if pool.to_come is not None or pool.runs_left == 0 or not table.is_full.any():
            return np.ones(np.shape(since))
        error = LATE * self._costs(pool).error
        return np.asarray((self.sizes[-1] / np.asarray(since)) ** error)

    def _overhead(self, pool: Pool) -> float:
        """Return what every action of an open pool costs besides."""
        overhead = HASTE * min(self._spent(pool), self._seconds_left(pool))
        if pool.runs_left is not None:
            # Towards the end runs are scarce, not seconds: each costs as a growing share of what
            # the others took.
            table = pool.curves.once(self._table)
            begun = float(table.is_begun.sum())
            overhead *= max(1.0, begun / (pool.runs_left + 1))
        return overhead

    def _unit(self, pool: Pool) -> Literal["seconds", "examples"]:
        """Return what costs are counted in: examples also where no probe was timed."""
        return self.cost if pool.curves.once(is_timed) else "examples"

    def _spent(self, pool: Pool) -> float:
        """Return what was spent so far, in the unit of costs."""
        return pool.spent.seconds if self._unit(pool) == "seconds" else pool.spent.examples

    def _seconds_left(self, pool: Pool) -> float:
        """Return the seconds left; infinite where there is no end, or costs are in examples."""
        if pool.left is None or self._unit(pool) == "examples":
            return math.inf
        return pool.left.seconds

    def _costs(self, pool: Pool) -> Costs:
        """Return what training each learner is predicted to cost."""
        return pool.curves.once(in_seconds if self.cost == "seconds" else in_examples)


class _Table(NamedTuple):
    """What a decision needs to know of each learner, arrays in the order of ids."""

    learners: NDArray[np.int64]
    """Their ids."""
    is_alive: NDArray[np.bool_]
    """Not dropped."""
    size: Numbers
    """The largest size trained on; 0 before the first probe."""
    score: Numbers
    """The score there; minus infinity before the first probe."""
    first: Numbers
    """The first score."""
    is_full: NDArray[np.bool_]
    """Alive and trained on all the data."""

    @property
    def is_begun(self) -> NDArray[np.bool_]:
        """Alive, with a score."""
        return self.is_alive & (self.size > 0)

    @property
    def is_compared(self) -> bool:
        """Whether newcomers can be compared: two learners are begun, one has a full-data score."""
        return bool(self.is_begun.sum() >= 2 and self.is_full.any())

    @property
    def best(self) -> float:
        """The best full-data score; minus infinity where there is none."""
        return float(self.score[self.is_full].max(initial=-math.inf))

    @property
    def leader(self) -> int:
        """The place of the best full-data score; of two, the lower id."""
        return int(np.where(self.is_full, self.score, -np.inf).argmax())


class _Start(NamedTuple):
    """A size that a newcomer may start at."""

    size: int
    ahead: Numbers
    """Expected improvement once its score there is known, for each of `POINTS`."""
    now: float
    """What getting there costs."""
    later: float
    """What it costs to go on to N from there; 0 at N."""


class _Boxes(NamedTuple):
    """What going on with each learner is worth."""

    values: Numbers
    """The score up to which going on pays; of a fully trained learner its score."""
    size: NDArray[np.int64]
    """Where the learner goes next."""
    to_beat: float
    """The best full-data score, or what a learner being trained now is expected to reach."""


def _facts(curve: LearningCurve) -> tuple[float, float, float, float]:
    first = curve.observations[0].score if curve.observations else math.nan
    return float(bool(curve.dropped)), float(curve.size), curve.score, first


def _thinned(sizes: tuple[int, ...]) -> list[int]:
    """Return the largest size and others below, each at least `STOP_RATIO` below the next.

    >>> _thinned((500, 750, 1125, 1688, 2532, 3798, 5000))
    [5000, 1688, 750]
    """
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if size * STOP_RATIO <= kept[-1]:
            kept.append(size)
    return kept


def _readable(cost: float) -> str:
    """Return a cost as text, with three figures or more.

    >>> _readable(0.01234), _readable(12345.6)
    ('0.0123', '12,346')
    """
    return f"{cost:.3g}" if cost < 1000.0 else f"{cost:,.0f}"


def _width(forecast: Forecast) -> Numbers:
    """Return a standard deviation: of a logistic distribution the exact one."""
    one = 1.0 / (1.0 + math.exp(-1.0))  # one scale above the median
    return np.asarray((forecast.quantile(one) - forecast.quantile(0.5)) / LOGISTIC)


def _two_stage_index(
    mean: Numbers, shown: Numbers, kept: Numbers, now: Numbers, later: Numbers, least: Numbers
) -> Numbers:
    """Return v with E[max(0, E[max(0, X - v) | score at m] - later)] = now; or `least`, if above.

    Args:
        mean: of X, the score at N, one per learner like all that follows.
        shown: standard deviation of what the score at m will change of that mean.
        kept: standard deviation of X that is left then.
        now, later: weighed cost of getting to m, and from there to N, in units of the score.
        least: an index known already.
    """
    points = mean[:, None] + shown[:, None] * POINTS
    # Where the stop shows everything, a logistic distribution far narrower than before stands in.
    scale = LOGISTIC * np.maximum(kept, 1e-6 * shown)[:, None]

    def worth(index: Numbers) -> Numbers:
        ahead = scale * np.logaddexp(0.0, (points - index[:, None]) / scale)
        return np.asarray(np.maximum(0.0, ahead - later[:, None]) @ WEIGHTS - now)

    low, high = least.copy(), mean + 8.0 * np.hypot(shown, kept)
    higher = worth(low) > 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        up = worth(middle) > 0.0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return np.where(higher, low, least)


def _rate(ahead: Numbers, later: float, now: float) -> float:
    """Return L with sum of w_j max(0, ahead_j - L later) = L now, j over `POINTS`.

    The left side falls and is convex in L, so that Newton's steps from 0 rise to the solution;
    each fixes which j go on, and there is one for every j at most.
    """
    rate = 0.0
    for _ in range(len(POINTS) + 1):
        on = ahead > rate * later
        rate = float((WEIGHTS * ahead)[on].sum() / (now + later * WEIGHTS[on].sum()))
    return rate
