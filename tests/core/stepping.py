"""A policy step by step: several workers, newcomers, probes that end in any order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from itertools import count
from typing import Any

from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import Wait
from tests.strategies import N_VALIDATION


@dataclasses.dataclass(frozen=True)
class Step:
    """A pool that a policy was shown, and its answer."""

    pool: Pool
    decision: Decision
    newcomer: int | None = None
    """The learner that a `Propose` brought."""


def steps(
    policy: Policy,
    known: Iterable[LearningCurve],
    workers: int = 1,
    next_done: Callable[[list[int]], int] = min,
    probes: int | None = None,
) -> Iterator[Step]:
    """Yield what happens when `workers` train in parallel and end in the order of `next_done`.

    Args:
        policy: the rule.
        known: one curve per learner, in the order in which newcomers are proposed.
        workers: how many probes may be in flight.
        next_done: which of those in flight ends next, of their sorted ids.
        probes: None for a closed pool, which ends by itself; else the pool is open, newcomers
            learn like the known ones, over and over, and it ends after so many probes.
    """
    table = {curve.learner: curve for curve in known}
    shapes, ids = list(table.values()), iter(table)
    pool = Pool(to_come=len(table) if probes is None else None)
    running: dict[int, int] = {}
    # In a closed pool each learner is proposed and dropped once at most, and starts and ends once
    # at each size.
    most = len(table) * (2 * len(policy.sizes) + 2) + 1 if probes is None else 2 * probes
    fresh = count(max(table) + 1)
    for _ in range(most):
        decision = policy.decide(pool)
        newcomer = None
        match decision:
            case Extend(learner, size):
                running[learner] = size
            case Propose(size):
                newcomer = next(ids, None)
                if newcomer is None:
                    assert probes is not None, f"{policy} proposes more than there are to come"
                    newcomer = next(fresh)
                    shape = shapes[newcomer % len(shapes)]
                    table[newcomer] = dataclasses.replace(shape, learner=newcomer)
                running[newcomer] = size
        yield Step(pool, decision, newcomer)
        match decision:
            case Propose():
                assert newcomer is not None
                pool = pool.with_newcomer(newcomer)
            case Drop(learner, reason):
                pool = pool.dropped(learner, str(reason), "ruled out")
            case Wait():
                assert running, f"{policy} waits although no learner is busy"
            case Finish():
                return
        if len(running) == workers or isinstance(decision, Wait):
            done = next_done(sorted(running))
            seen = table[done].at(running.pop(done))
            pool = pool.observed(done, seen) if seen else pool.dropped(done, "failed")
        pool = dataclasses.replace(pool, busy=frozenset(running))
    assert probes is not None, f"{policy} does not finish"


def search(
    policy: ValuePerSecond,
    pool: Pool,
    point: Callable[[Pool], Mapping[str, Any]],
    trained: Callable[[Pool, int, int], Pool],
) -> Iterator[Step]:
    """Yield the steps of an open search by one worker, as a study takes them.

    Args:
        policy: the rule.
        pool: the pool before the first step.
        point: the parameters of a pool's next newcomer.
        trained: the pool after a training, from that before it, the learner and the size.
    """
    while True:
        decision = policy.decide(pool)
        yield Step(pool, decision)
        if isinstance(decision, Propose):
            newcomer = len(pool.curves)
            pool = pool.with_newcomer(newcomer, point(pool))
            decision = policy.start(pool, newcomer, decision.size)
        match decision:
            case Extend(learner, size):
                pool = trained(pool, learner, size)
            case Drop(learner, reason):
                pool = pool.dropped(learner, str(reason), "ruled out")
            case _:
                return


def flat(learner: int, sizes: tuple[int, ...], score: float) -> LearningCurve:
    """Return a learner that is as good with little data as with all of them, and no better."""
    observations = (Observation(n, score, score, n_validation=N_VALIDATION) for n in sizes)
    return LearningCurve(learner, tuple(observations))
