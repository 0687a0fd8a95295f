"""Slow transcriptions of the boosting papers' pseudo-code, one example at a time.

Written from the papers, not from the package, in plain Python.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from itertools import pairwise

import numpy as np


Row = Sequence[float]
Score = Callable[[float, float, float], float]
"""Function of gamma, c(h) and B - B_t; the hypothesis with the largest value wins."""


@dataclass(frozen=True)
class Interval:
    """Vote s where low < x_j <= high, else -s."""

    j: int
    low: float
    high: float
    s: int

    def __call__(self, x: Row) -> int:
        return self.s if self.low < x[self.j] <= self.high else -self.s


def thresholds(X: Sequence[Row]) -> list[Interval]:
    """Return the stumps x_j <= t, t halfway between neighbouring values."""
    found = []
    for j in range(len(X[0])):
        values = sorted({x[j] for x in X})
        for a, b in pairwise(values):
            found += [Interval(j, -math.inf, (a + b) / 2, s) for s in (1, -1)]
    return found


@dataclass(frozen=True)
class Step:
    """One round of AdaBoostBT."""

    h: Interval
    gamma: float
    alpha: float
    left: float
    """B_{t+1}."""


def adaboost_bt(
    X: Sequence[Row],
    y: Sequence[int],
    *,
    C: Sequence[float],
    B: float,
    T: int,
    score: Score = lambda gamma, cost, spent: gamma,
) -> list[Step]:
    """Return the rounds of AdaBoostBT(S, B, C) of Huang, Powers, Reyzin (2015)."""
    m = len(X)
    D = [1.0 / m] * m
    left = B
    paid: set[int] = set()
    steps = []
    H = thresholds(X)
    for _ in range(T):
        gammas = [sum(d * yi * h(x) for d, yi, x in zip(D, y, X, strict=True)) for h in H]
        scores = [
            score(gamma, C[h.j], B - left) if gamma > 0 else -math.inf
            for gamma, h in zip(gammas, H, strict=True)
        ]
        best = next(i for i, value in enumerate(scores) if value >= max(scores) - 1e-9)
        h, gamma = H[best], gammas[best]
        p = 0.0 if h.j in paid else C[h.j]
        if p > left:
            break
        left -= p
        paid.add(h.j)
        alpha = 0.5 * math.log((1 + gamma) / (1 - gamma))
        steps.append(Step(h, gamma, alpha, left))
        D = [d * math.exp(-alpha * yi * h(x)) for d, yi, x in zip(D, y, X, strict=True)]
        Z = sum(D)
        D = [d / Z for d in D]
    return steps


@dataclass(frozen=True)
class Drawn:
    """One round of boosting by adaptive sampling."""

    h: Interval
    n: int
    alpha: float


def hsm(
    X: Sequence[Row],
    y: Sequence[int],
    H: Sequence[Interval],
    w: Callable[[int], float],
    holds: Callable[[int, float], bool],
    rng: np.random.Generator,
    D0: Sequence[float],
    n_max: int,
) -> tuple[int, int, float]:
    """Return h, n and P_{h,S} of Algorithm HSM of Chen, Xu (2013), drawing one by one."""
    right = [0] * len(H)
    cumulative = list(accumulate(D0))
    n = 0
    while True:
        place, coin = rng.random(2)
        i = min(bisect_right(cumulative, place * cumulative[-1]), len(X) - 1)
        if coin >= w(i):
            continue
        n += 1
        for k, h in enumerate(H):
            right[k] += h(X[i]) == y[i]
        best = max(range(len(H)), key=lambda k: (right[k], -k))
        done = n > 30 and right[best] / n > 0.5 and holds(n, right[best] / n)
        if done or n == n_max:
            return best, n, right[best] / n


def boost_by_sampling(
    X: Sequence[Row],
    y: Sequence[int],
    H: Sequence[Interval],
    holds: Callable[[int, float], bool],
    seeds: Sequence[int],
    D0: Sequence[float],
    n_max: int,
) -> list[Drawn]:
    """Return the rounds of boosting by HSM with MadaBoost's weights."""
    rounds: list[Drawn] = []

    def w(i: int) -> float:
        product = 1.0
        for drawn in rounds:
            beta = math.exp(-drawn.alpha)
            product *= beta if drawn.h(X[i]) == y[i] else 1.0 / beta
        return min(1.0, product)

    for seed in seeds:
        best, n, P = hsm(X, y, H, w, holds, np.random.default_rng(seed), D0, n_max)
        if n == n_max >= len(X) and not holds(n, P):  # the whole table says more
            D = [d * w(i) for i, d in enumerate(D0)]
            right = [sum(d for d, x, yi in zip(D, X, y, strict=True) if h(x) == yi) for h in H]
            best = next(k for k, d in enumerate(right) if d >= max(right) - 1e-9)
            n, P = len(X), right[best] / sum(D)
        P = min(P, 1.0 - 0.5 / n)  # half an error is allowed for
        beta = math.sqrt((1.0 - P) / P)
        rounds.append(Drawn(H[best], n, math.log(1.0 / beta)))
    return rounds
