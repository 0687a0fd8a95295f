"""The learning curves of all learners, ranked so that a decision need not look at each of them."""

from __future__ import annotations

from bisect import bisect_left
from bisect import insort
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

from optuna_daub.core.curve import LearningCurve


Rank: TypeAlias = Callable[[LearningCurve], "tuple[Any, ...] | None"]
"""What a learner is ranked by: larger tuples first, None leaves the learner out."""


Values: TypeAlias = Callable[[LearningCurve], "Iterable[float]"]
"""Numbers that a learner contributes to a pool."""


class Curves(Mapping[int, LearningCurve]):
    """The learning curves by learner. `put` replaces one; rankings follow at O(log n) each.

    >>> curves = Curves([LearningCurve(0), LearningCurve(1, dropped="score nan at 500")])
    >>> def alive(curve):
    ...     return None if curve.dropped else ()
    >>> [curve.learner for curve in curves.ranking(alive)]
    [0]
    """

    def __init__(self, curves: Iterable[LearningCurve] = ()) -> None:
        self._curves: dict[int, LearningCurve] = {}
        self._rankings: dict[Rank, _Ranking] = {}
        self._pools: dict[Values, _Pool] = {}
        for curve in curves:
            self.put(curve)

    def put(self, curve: LearningCurve) -> None:
        """Take `curve` in place of what was known of its learner."""
        self._curves[curve.learner] = curve
        for ranking in self._rankings.values():
            ranking.put(curve)
        for pool in self._pools.values():
            pool.put(curve)

    def remove(self, learner: int) -> None:
        """Forget a learner."""
        del self._curves[learner]
        for ranking in self._rankings.values():
            ranking.remove(learner)
        for pool in self._pools.values():
            pool.remove(learner)

    def ranking(self, rank: Rank) -> Iterator[LearningCurve]:
        """Yield the curves with the largest rank first; ties go to the lower learner id.

        `rank` must be a function of the curve alone: it is asked once for each new curve.
        """
        if rank not in self._rankings:
            self._rankings[rank] = _Ranking(rank, self._curves.values())
        return (self._curves[learner] for learner in self._rankings[rank])

    def pooled(self, values: Values) -> Sequence[float]:
        """Return the numbers of all curves together, ascending.

        `values` must be a function of the curve alone: it is asked once for each new curve.
        """
        if values not in self._pools:
            self._pools[values] = _Pool(values, self._curves.values())
        return self._pools[values].sorted

    def __getitem__(self, learner: int) -> LearningCurve:
        return self._curves[learner]

    def __iter__(self) -> Iterator[int]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)


class _Ranking:
    """The learners in ascending order of (rank, -learner), read from the end."""

    def __init__(self, rank: Rank, curves: Iterable[LearningCurve]) -> None:
        self._rank = rank
        self._keys: dict[int, tuple[tuple[Any, ...], int]] = {}
        for curve in curves:
            if (value := rank(curve)) is not None:
                self._keys[curve.learner] = (value, -curve.learner)
        self._sorted = sorted(self._keys.values())

    def put(self, curve: LearningCurve) -> None:
        self.remove(curve.learner)
        if (value := self._rank(curve)) is not None:
            self._keys[curve.learner] = (value, -curve.learner)
            insort(self._sorted, (value, -curve.learner))

    def remove(self, learner: int) -> None:
        if (key := self._keys.pop(learner, None)) is not None:
            del self._sorted[bisect_left(self._sorted, key)]

    def __iter__(self) -> Iterator[int]:
        return (-negated for _, negated in reversed(self._sorted))


class _Pool:
    """The numbers that the learners contribute, ascending."""

    def __init__(self, values: Values, curves: Iterable[LearningCurve]) -> None:
        self._values = values
        self._own: dict[int, list[float]] = {}
        self.sorted: list[float] = []
        for curve in curves:
            self.put(curve)

    def put(self, curve: LearningCurve) -> None:
        self.remove(curve.learner)
        self._own[curve.learner] = [*self._values(curve)]
        for value in self._own[curve.learner]:
            insort(self.sorted, value)

    def remove(self, learner: int) -> None:
        for value in self._own.pop(learner, ()):
            del self.sorted[bisect_left(self.sorted, value)]
