"""Which of a problem's sizes a method trains on, where it does not train on all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from benchmarks.problems import Problem
from optuna_daub.core.steps import sizes_near
from optuna_daub.study.daub_pruner import FIRST_SHARE


Rungs: TypeAlias = Callable[[Problem], tuple[int, ...]]
"""The sizes of a problem that a method trains on; the last is N."""


def upwards(factor: int, problem: Problem, *, is_from_ours: bool = False) -> tuple[int, ...]:
    """Return the first size times powers of a factor, rounded up to known sizes, and N."""
    sizes = problem.sizes
    due = sizes_near(sizes, FIRST_SHARE)[0] if is_from_ours else sizes[0]
    rungs = []
    for size in sizes[:-1]:
        if size >= due:
            rungs.append(size)
            due *= factor
    return (*rungs, sizes[-1])


def exhausting(factor: int, problem: Problem) -> tuple[int, ...]:
    """Return N divided by powers of a factor: its last round, of the few left, is at N.

    So scikit-learn's `min_resources="exhaust"`.
    """
    n_rounds = max(3, 1 + math.floor(math.log(len(problem.curves), factor)))
    due = [problem.full_size / factor**i for i in reversed(range(n_rounds))]
    return tuple(sorted({min(n for n in problem.sizes if n >= size) for size in due}))
