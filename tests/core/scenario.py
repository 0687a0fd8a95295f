"""Pools as tables: what each learner has shown so far.

    pool("0: .70 .74 | 1: .72 busy | 2: .5 .6 .7 <.9 | 3: dropped | 2 to come", SIZES)

A cell names a learner, then its scores at the first of the sizes, and words: `busy`, `dropped` (it
failed), `out` (ruled out), and `<.9` for the training score at each of them. `any to come` makes
the pool an open one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optuna_daub.core import Curves
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import replay


def pool(table: str, sizes: tuple[int, ...]) -> Pool:
    """Return the pool of a table."""
    curves: list[LearningCurve] = []
    busy: set[int] = set()
    to_come: int | None = 0
    for cell in filter(None, table.split("|")):
        head, _, rest = cell.strip().partition(":")
        if head.endswith("to come"):
            to_come = None if head == "any to come" else int(head.split()[0])
            continue
        words = rest.split()
        trained_on = [float(word[1:]) for word in words if word.startswith("<")]
        scores = [float(word) for word in words if word[0] in "-.0123456789"]
        fitted = trained_on[0] if trained_on else None
        seen = (Observation(n, score, fitted) for n, score in zip(sizes, scores, strict=False))
        curve = LearningCurve(int(head), tuple(seen))
        if "dropped" in words or "out" in words:
            curve = curve.drop("for a test", "ruled out" if "out" in words else "failed")
        curves.append(curve)
        if "busy" in words:
            busy.add(curve.learner)
    return Pool(Curves(curves), frozenset(busy), to_come)


def said(decision: Decision) -> str:
    """Return a decision in short, without its reason."""
    match decision:
        case Extend(learner, size):
            return f"{learner} on {size}"
        case Propose(size):
            return f"a new one on {size}"
        case Drop(learner):
            return f"drops {learner}"
        case Finish(learner):
            return f"ends with {learner}"
    return "waits"


def events(policy: Policy, known: list[LearningCurve]) -> list[tuple[Any, ...]]:
    """Return the decisions about known curves as the transcriptions of `oracles` note them."""
    told: list[tuple[Any, ...]] = []
    for decision in replay(policy, known):
        match decision:
            case Extend(learner, size):
                told.append(("train", learner, size))
            case Drop(learner, reason):
                told.append(("fail" if "failed" in str(reason) else "drop", learner))
            case Finish(learner, _):
                told.append(("best", learner))
    return told


def changed(curve: LearningCurve, change: Callable[[Observation], Observation]) -> LearningCurve:
    """Return a curve with each of its observations changed."""
    return replace(curve, observations=tuple(map(change, curve.observations)))


def all_changed(pool: Pool, change: Callable[[Observation], Observation]) -> Pool:
    """Return a pool with each observation of its learners changed."""
    return replace(pool, curves=Curves(changed(curve, change) for curve in pool.curves.values()))
