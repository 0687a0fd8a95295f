"""The three schedulers: the optimality condition of formulas.md 2.5, Theorem 4, and noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Interval
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core.policies.schedulers import Candidate
from optuna_daub.core.policies.schedulers import Scheduler
from optuna_daub.core.policies.schedulers import candidates
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.policies.schedulers import round_robin
from optuna_daub.core.policies.schedulers import step_for_growth
from optuna_daub.core.policies.schedulers import ucb


UNKNOWN = Interval(0.0, 1.0)


class TestOptimalityCondition:
    """Three learners whose ends cost T_1(l) = 2 / (0.9 - l)^2 and T_i(u) = k_i / (u - a_i)^2.

    All upper ends are held at l_1 + epsilon, the second condition of Eq. (9). The first one,
    dT_1/dl_1 = - sum of dT_i/du_i, then has one solution l*: below it the leader is to go on,
    above it the next one.
    """

    epsilon = 0.01
    rivals = ((0.84, 1.0), (0.83, 3.0))

    def time(self, lower: float) -> float:
        return self.own(lower) + sum(
            cost / (lower + self.epsilon - end) ** 2 for end, cost in self.rivals
        )

    def own(self, lower: float) -> float:
        return 2 / (0.9 - lower) ** 2

    def slopes(self, lower: float) -> tuple[float, list[float]]:
        """Return dT_1/dl_1 and the -dT_i/du_i, differentiated by hand."""
        falls = [2 * cost / (lower + self.epsilon - end) ** 3 for end, cost in self.rivals]
        return 4 / (0.9 - lower) ** 3, falls

    def solve(self, excess: Callable[[float], float]) -> float:
        low, high = 0.835, 0.899
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if excess(middle) > 0 else (middle, high)
        return low

    def order(self, lower: float) -> list[int]:
        """Ask for the order if the last probes moved each end by a hair."""
        hair = 1e-7
        upper = lower + self.epsilon
        leader = Candidate(
            0,
            2,
            Interval(lower, 0.95),
            Interval(lower - hair, 0.96),
            self.own(lower) - self.own(lower - hair),
        )
        others = [
            Candidate(
                i,
                2,
                Interval(0.5, upper),
                Interval(0.4, upper + hair),
                cost / (upper - end) ** 2 - cost / (upper + hair - end) ** 2,
            )
            for i, (end, cost) in enumerate(self.rivals, start=1)
        ]
        return gradient_ci([*others, leader])

    def test_the_leader_goes_on_up_to_the_optimum(self) -> None:
        optimum = self.solve(lambda x: self.slopes(x)[0] - sum(self.slopes(x)[1]))
        assert self.time(optimum) < min(self.time(optimum - 1e-4), self.time(optimum + 1e-4))
        for short in (1e-2, 1e-3, 1e-5):
            assert self.order(optimum - short) == [0, 1, 2]
            assert self.order(optimum + short) == [1, 0, 2]

    def test_the_others_count_together(self) -> None:
        optimum = self.solve(lambda x: self.slopes(x)[0] - sum(self.slopes(x)[1]))
        against_each = self.solve(lambda x: self.slopes(x)[0] - max(self.slopes(x)[1]))
        between = (optimum + against_each) / 2
        assert self.slopes(between)[0] > max(self.slopes(between)[1])
        assert self.order(between) == [0, 1, 2]


@dataclass(frozen=True)
class Instance:
    """Noise-free learners whose ends close in on `end` as 1 / sqrt(size)."""

    end: tuple[float, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]
    pace: tuple[float, ...]
    """Time per example."""
    epsilon: float = 0.01
    first: int = 10

    def cheapest(self) -> float:
        """Return the least time that identifies the best (Eq. (9)), by golden section."""

        def time(lower: float) -> float:
            own = self.pace[0] * (self.below[0] / (self.end[0] - lower)) ** 2
            others = zip(self.pace[1:], self.above[1:], self.end[1:], strict=True)
            return own + sum(
                pace * (above / (lower + self.epsilon - end)) ** 2 for pace, above, end in others
            )

        low, high = max(self.end[1:]) - self.epsilon, self.end[0]
        for _ in range(100):
            left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, right) if time(left) < time(right) else (left, high)
        return time((low + high) / 2)

    def spent(self, scheduler: Scheduler) -> float:
        """Return the time of Algorithm 1 with sizes doubling; the ends are not cut to [0, 1]."""
        sizes = [0.0] * len(self.end)
        left, now, last = list(range(len(sizes))), list(sizes), list(sizes)
        total = 0.0

        def probe(i: int) -> None:
            nonlocal total
            last[i], now[i] = now[i], 2 * now[i] or self.first
            total += self.pace[i] * now[i]

        def interval(i: int, size: float) -> Interval:
            if not size:
                return Interval(-1e9, 1e9)
            root = math.sqrt(size)
            return Interval(self.end[i] - self.below[i] / root, self.end[i] + self.above[i] / root)

        for i in left:
            probe(i)
        while True:
            best = max(left, key=lambda i: interval(i, now[i]).lower)
            floor = interval(best, now[best]).lower + self.epsilon
            left = [i for i in left if i == best or interval(i, now[i]).upper > floor]
            if len(left) == 1:
                return total
            seen = [
                Candidate(
                    i,
                    round(math.log2(now[i] / self.first)) + 1,
                    interval(i, now[i]),
                    interval(i, last[i]),
                    self.pace[i] * (now[i] - last[i]),
                )
                for i in left
            ]
            probe(scheduler(seen)[0])


def instances(count: int) -> list[Instance]:
    rng = np.random.default_rng(0)
    found: list[Instance] = []
    while len(found) < count:
        n = int(rng.integers(2, 9))
        ends = np.sort(rng.uniform(0.5, 0.95, n))[::-1]
        below, above = rng.uniform(0.3, 3.0, (2, n))
        pace = np.exp(rng.uniform(-2, 2, n))
        drawn = Instance(tuple(ends), tuple(below), tuple(above), tuple(pace))
        if drawn.cheapest() > 4 * drawn.first * sum(drawn.pace):  # else the start decides alone
            found.append(drawn)
    return found


def test_gradient_ci_is_close_to_four_times_the_cheapest_schedule() -> None:
    """Theorem 4 proves 4 for derivatives; finite differences break it now and then."""
    ratios = {
        scheduler.__name__: np.array(
            [instance.spent(scheduler) / instance.cheapest() for instance in instances(150)]
        )
        for scheduler in (gradient_ci, ucb, round_robin)
    }
    for name, ratio in ratios.items():
        within = np.mean(ratio <= 4)
        print(f"{name}: mean {ratio.mean():.3f}, max {ratio.max():.3f}, {within:.1%} within 4")
    assert ratios["gradient_ci"].min() >= 1
    assert np.mean(ratios["gradient_ci"] <= 4) >= 0.98
    assert ratios["gradient_ci"].mean() < 3 < ratios["round_robin"].mean()
    assert ratios["ucb"].mean() > 2 * ratios["round_robin"].mean()


ends = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda pair: Interval(*sorted(pair)))
seen_candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(0, 99),
        n_probes=st.integers(1, 9),
        interval=st.one_of(ends, st.just(Interval(0.5, 1.0))),
        before=st.one_of(ends, st.just(UNKNOWN)),
        extra_cost=st.floats(0, 1e6),
    ),
    min_size=1,
    unique_by=lambda candidate: candidate.learner,
)


@pytest.mark.parametrize("scheduler", [gradient_ci, ucb, round_robin])
@given(seen=seen_candidates, data=st.data())
def test_every_learner_is_ranked_once_whatever_the_order(
    scheduler: Scheduler, seen: list[Candidate], data: st.DataObject
) -> None:
    ranked = scheduler(seen)
    assert sorted(ranked) == sorted(candidate.learner for candidate in seen)
    assert scheduler(data.draw(st.permutations(seen))) == ranked


@given(seen=seen_candidates)
def test_gradient_ci_moves_the_second_by_upper_end_to_the_front_at_most(
    seen: list[Candidate],
) -> None:
    by_upper = ucb(seen)
    assert gradient_ci(seen) in (by_upper, [*by_upper[1:2], by_upper[0], *by_upper[2:]])


class TestNoise:
    best = Candidate(0, 2, Interval(0.7, 0.95), Interval(0.6, 0.97), 1.0)
    rival = Candidate(1, 2, Interval(0.6, 0.90), Interval(0.5, 0.95), 1.0)

    def test_the_likely_best_is_the_cheaper_one(self) -> None:
        assert (self.best.cost_of_rise, self.rival.cost_of_fall) == pytest.approx((10, 20))
        assert gradient_ci([self.best, self.rival]) == [0, 1]

    def test_a_lower_end_that_did_not_rise_costs_too_much(self) -> None:
        stuck = replace(self.best, before=Interval(0.7, 0.97))
        assert stuck.cost_of_rise == math.inf
        assert gradient_ci([stuck, self.rival]) == [1, 0]

    def test_upper_ends_that_did_not_fall_cost_too_much(self) -> None:
        stuck = replace(self.rival, before=Interval(0.5, 0.90))
        dear = replace(self.best, extra_cost=1e9)
        assert gradient_ci([dear, self.rival]) == [1, 0]
        assert gradient_ci([dear, stuck]) == [0, 1]

    def test_where_nothing_moved_the_second_goes_on(self) -> None:
        stuck = [replace(seen, before=seen.interval) for seen in (self.best, self.rival)]
        assert gradient_ci(stuck) == [1, 0]

    def test_equal_upper_ends_are_ordered_by_the_lower_end_then_by_id(self) -> None:
        memorised = [
            replace(self.best, learner=i, interval=Interval(lower, 1.0))
            for i, lower in ((5, 0.7), (3, 0.7), (9, 0.8))
        ]
        assert ucb(memorised) == [9, 3, 5]


def test_round_robin_takes_the_fewest_probes_then_the_lower_id() -> None:
    seen = [Candidate(i, n, UNKNOWN, UNKNOWN, 0.0) for i, n in ((8, 1), (2, 3), (4, 1), (6, 2))]
    assert round_robin(seen) == [4, 8, 6, 2]


class TestCandidates:
    @staticmethod
    def curve(learner: int, *seconds: float | None) -> LearningCurve:
        timed = enumerate(seconds)
        return LearningCurve(
            learner, tuple(Observation(1000 * 2**k, 0.5, seconds=time) for k, time in timed)
        )

    @staticmethod
    def interval(curve: LearningCurve) -> Interval:
        return Interval(0.0, 1.0 / (1 + len(curve.observations)))

    def test_cost_is_what_the_last_probe_took_longer(self) -> None:
        seen = candidates([self.curve(0, 2.0), self.curve(4, 1.0, 3.0, 8.0)], self.interval)
        assert seen[0] == Candidate(0, 1, Interval(0, 1 / 2), Interval(0, 1), 2.0)
        assert seen[1] == Candidate(4, 3, Interval(0, 1 / 4), Interval(0, 1 / 3), 5.0)

    def test_a_faster_larger_probe_costs_nothing(self) -> None:
        (seen,) = candidates([self.curve(0, 3.0, 2.5)], self.interval)
        assert seen.extra_cost == 0
        assert seen.cost_of_fall == 0

    def test_sizes_stand_in_for_all_where_one_time_is_missing(self) -> None:
        timed, untimed = self.curve(0, 2.0, 5.0), self.curve(1, 2.0, None)
        costs = [seen.extra_cost for seen in candidates([timed, untimed], self.interval)]
        assert costs == [1000, 1000]
        long_ago = self.curve(1, None, 2.0, 5.0)
        costs = [seen.extra_cost for seen in candidates([timed, long_ago], self.interval)]
        assert costs == [3.0, 3.0]


class TestStep:
    @given(alpha=st.floats(0.3, 4))
    def test_the_step_minimises_the_worst_overshoot(self, alpha: float) -> None:
        """Stopping just after a size wastes c^(2 alpha) / (c^alpha - 1) of the time."""

        def waste(step: float) -> float:
            return float(step ** (2 * alpha) / (step**alpha - 1))

        step = step_for_growth(alpha)
        assert waste(step) == pytest.approx(4)
        assert min(waste(step * 0.99), waste(step * 1.01)) > 4
