"""What every method is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.meter import Meter
from benchmarks.pools import Data


MIN_RESOURCE = 500


@dataclass(frozen=True)
class Task:
    """What every method is given."""

    data: Data
    learners: tuple[str, ...]
    seed: int
    meter: Meter
    seconds: float | None = None
    """CPU seconds that ours took; only for methods that are given a time."""

    @property
    def smallest(self) -> int:
        """The smallest training size."""
        return min(MIN_RESOURCE, self.data.n_train // 8)


@dataclass(frozen=True)
class Answer:
    """What a method chose."""

    learner: str
    """Of the pool; or, of FLAML, its own."""
    scores: Mapping[str, tuple[float, float]]
    """Validation and test score at N: of every learner from full training, of FLAML's own."""


Choice: TypeAlias = Callable[[Task], Answer]
"""A method at work."""
