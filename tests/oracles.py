"""Slow transcriptions of the papers' pseudo-code, written from the papers, not from the package.

Numbers may be floats or, for exact ties, fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from fractions import Fraction
from typing import Any
from typing import Literal

from optuna_daub.core import LearningCurve


Scores = Mapping[int, tuple[Any, Any]]
"""Validation and training score of one learner by size; a size it fails at is missing."""


def exact(curves: Sequence[LearningCurve]) -> dict[int, Scores]:
    """Return curves as tables of fractions, scores read as the decimals they print as."""
    return {
        curve.learner: {
            o.size: (
                Fraction(str(o.score)),
                None if o.training_score is None else Fraction(str(o.training_score)),
            )
            for o in curve.observations
        }
        for curve in curves
    }


@dataclass
class Daub:
    """Algorithm 1 of Sabharwal, Samulowitz, Tesauro (2016), with places in a list for the n/r."""

    sizes: Sequence[int]
    table: Mapping[int, Scores]
    tie: Literal["most data", "lowest index"] = "most data"
    stop: Literal["verified", "first"] = "verified"
    use_training_score: bool = True
    tolerance: Any = 0

    S: list[tuple[int, int]] = field(default_factory=list)
    """Allocations (i, n) in order."""
    U: list[Any] = field(default_factory=list)
    """u_i after each allocation; None if it was not computed."""
    failed: list[int] = field(default_factory=list)
    winner: int | None = None

    def __post_init__(self) -> None:
        N = self.sizes[-1]
        C = sorted(self.table)
        self.fV: dict[int, list[Any]] = {i: [] for i in C}  # mended validation scores, by place
        self.raw: dict[int, list[Any]] = {i: [] for i in C}
        self.fT: dict[int, list[Any]] = {i: [] for i in C}
        self.k = dict.fromkeys(C, -1)  # place reached
        u: dict[int, Any] = {}

        # line 1: bootstrap, in the order in which the learners are proposed
        for i in self.table:
            for place in range(3):
                if not self.train_learner(i, place):
                    break
            else:
                u[i] = self.U[-1] = self.update_bound(i)
        # line 2: while no learner is fully trained (verified: nor the one with the largest u)
        while u and not self.is_over(u, N):
            # line 2.1
            j = self.argmax(u)
            # line 2.2
            if not self.train_learner(j, self.k[j] + 1):
                del u[j]
                continue
            # line 2.3
            u[j] = self.U[-1] = self.update_bound(j)
        # line 3
        full = [i for i in u if self.n(i) == N]
        if self.stop == "verified" and u:
            self.winner = self.argmax(u)
        elif full:
            self.winner = min(full, key=lambda i: (-self.raw[i][-1], i))
        self.u = u

    def n(self, i: int) -> int:
        return self.sizes[self.k[i]]

    def is_over(self, u: dict[int, Any], N: int) -> bool:
        if self.stop == "first":
            return max(self.n(i) for i in u) == N
        return self.n(self.argmax(u)) == N

    def argmax(self, u: dict[int, Any]) -> int:
        largest = max(u.values())
        tied = [i for i in sorted(u) if u[i] >= largest - self.tolerance]
        if self.tie == "lowest index":
            return tied[0]
        most = max(self.n(i) for i in tied)
        tied = [i for i in tied if self.n(i) == most]
        highest = max(self.raw[i][-1] for i in tied)
        tied = [i for i in tied if self.raw[i][-1] == highest]
        return tied[0]

    def train_learner(self, i: int, place: int) -> bool:
        self.S.append((i, self.sizes[place]))
        self.U.append(None)
        if self.sizes[place] not in self.table[i]:
            self.failed.append(i)
            return False
        validation, training = self.table[i][self.sizes[place]]
        self.k[i] = place
        self.raw[i].append(validation)
        self.fT[i].append(training)
        f = self.fV[i]
        f.append(validation)
        if place > 0:
            delta = f[place] - f[place - 1]
            if delta < 0:
                f[place - 1] = f[place - 1] + delta / 2
                f[place] = f[place] - delta / 2
        return True

    def update_bound(self, i: int) -> Any:
        N, k = self.sizes[-1], self.k[i]
        if self.sizes[k] == N:
            return self.raw[i][k]  # formulas.md 0a: at n = N the observed score
        x1, x2, x3 = self.sizes[k - 2 : k + 1]
        y1, y2, y3 = self.fV[i][k - 2 : k + 1]
        # Least squares through three points, with the sums written out.
        Sx, Sy = x1 + x2 + x3, y1 + y2 + y3
        Sxx, Sxy = x1 * x1 + x2 * x2 + x3 * x3, x1 * y1 + x2 * y2 + x3 * y3
        beta = (3 * Sxy - Sx * Sy) / (3 * Sxx - Sx * Sx)
        if beta < 0:
            beta = 0  # formulas.md 0a
        ub = y3 + (N - x3) * beta
        if self.use_training_score and self.fT[i][k] is not None:
            return min(self.fT[i][k], ub)
        return ub


@dataclass
class Halving:
    """Successive halving: train all that are left, keep the better ceil(M / eta^round)."""

    sizes: Sequence[int]
    table: Mapping[int, Scores]
    eta: int = 2

    events: list[tuple[Any, ...]] = field(default_factory=list)
    """("train", i, n), ("fail", i) and ("drop", i) in order."""
    winner: int | None = None

    def __post_init__(self) -> None:
        left = [*self.table]  # the first round goes by the order of proposal, later ones by id
        M, N = len(left), self.sizes[-1]
        scores: dict[int, Any] = {}
        for k, size in enumerate(self.sizes):
            for i in list(left):
                n = N if len(left) == 1 and k else size  # newcomers start on the smallest
                if N in (at for _, j, at in self.trained() if j == i):
                    continue
                self.events.append(("train", i, n))
                if n in self.table[i]:
                    scores[i] = self.table[i][n][0]
                else:
                    self.events.append(("fail", i))
                    left.remove(i)
            left.sort()
            if size == N:
                break
            while len(left) > -(-M // self.eta ** (k + 1)):
                worst = max(left, key=lambda i: (-scores[i], i))
                self.events.append(("drop", worst))
                left.remove(worst)
        if left:
            self.winner = min(left, key=lambda i: (-scores[i], i))

    def trained(self) -> list[tuple[Any, ...]]:
        return [event for event in self.events if event[0] == "train"]


@dataclass
class Abc:
    """Algorithms 1 and 2 of Huang, Wang, Ding, Chaudhuri (2019), read as in formulas.md."""

    sizes: Sequence[int]
    table: Sequence[LearningCurve]
    D_te: int
    epsilon: float
    delta: float
    scheduler: str
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.table)
        self.d_c = self.delta / n**2
        self.k = [-1] * n
        self.l, self.u, self.T = ([[start] for _ in range(n)] for start in (0.0, 1.0, 0.0))
        C_r = list(range(n))
        for i in C_r:
            self.probe(i)
        while True:
            best = min(C_r, key=lambda j: (-self.l[j][-1], j))
            out = [
                j for j in C_r if j != best and self.u[j][-1] - self.l[best][-1] <= self.epsilon
            ]
            for j in out:
                C_r.remove(j)
                self.events.append(("drop", j))
            if len(C_r) == 1 or all(self.k[i] == len(self.sizes) - 1 for i in C_r):
                break
            self.probe(self.schedule(C_r))
        self.winner = min(C_r, key=lambda j: (-self.l[j][-1], j))

    def probe(self, i: int) -> None:
        self.k[i] += 1
        seen = self.table[i].observations[self.k[i]]
        self.events.append(("train", i, seen.size))
        N = self.sizes[-1]
        assert seen.training_score is not None
        assert seen.n_validation is not None
        l_new = seen.score - math.sqrt(math.log(2 / self.d_c) / (2 * seen.n_validation))
        u_new = (
            seen.training_score
            + math.sqrt(math.log(4 / self.d_c) / (2 * seen.size))
            + math.sqrt(math.log(4 / self.d_c) / (2 * self.D_te))
        )
        lower, upper = max(self.l[i][-1], l_new), min(self.u[i][-1], u_new)
        if seen.n_validation == self.D_te:
            lower = max(lower, seen.score)
            if seen.size == N:
                lower = upper = seen.score
        self.l[i].append(lower)
        self.u[i].append(max(lower, upper))
        self.T[i].append(seen.seconds or 0.0)

    def schedule(self, C_r: list[int]) -> int:
        by_u = sorted(C_r, key=lambda i: (-self.u[i][-1], -self.l[i][-1], i))
        full = len(self.sizes) - 1
        if self.scheduler == "round_robin":
            by_u = sorted(C_r, key=lambda i: (self.k[i], i))
        if self.scheduler == "gradient_ci" and len(by_u) > 1:
            first = by_u[0]
            slope = self.slope(self.T[first], self.l[first], +1)
            if not slope < sum(self.slope(self.T[i], self.u[i], -1) for i in by_u[1:]):
                by_u[0], by_u[1] = by_u[1], by_u[0]
        return next(i for i in by_u if self.k[i] < full)

    @staticmethod
    def slope(T: list[float], end: list[float], sign: int) -> float:
        moved = sign * (end[-1] - end[-2])
        return max(0.0, T[-1] - T[-2]) / moved if moved > 0 else math.inf
