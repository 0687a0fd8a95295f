"""What a method of the replay is: a choice on known curves, at a cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.problems import Problem


@dataclass(frozen=True)
class Outcome:
    """What a method chose and what that cost."""

    learner: int
    cost: float
    """In the problem's unit: seconds, or training examples."""
    probes: int
    """How many times a learner was trained."""
    scoring_cost: float = 0.0
    """What training scores cost besides."""


Choice: TypeAlias = Callable[[Problem, int], Outcome]
"""A method at work on a problem, for a seed."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    choose: Choice
    family: str
    """Methods of one family share a colour in the picture."""
    is_random: bool = False
    """Whether another seed may give another answer."""
    needs_n_validation: bool = False
    """Whether it cannot run where the number of validation examples is unknown."""

    def can_run(self, problem: Problem) -> bool:
        """Return whether the problem has what the method needs."""
        return not self.needs_n_validation or problem.n_validation is not None
