"""A problem as methods of the search benchmark see it.

It has a space, and a clock that runs out. Standard library only, because peers that need other
versions of numpy import it too.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any
from typing import Protocol
from typing import TypeAlias


Config: TypeAlias = Mapping[str, Any]
"""Names and values of one point of the space; parameters that are not active are absent."""


@dataclass(frozen=True)
class Parameter:
    """One dimension of a search space."""

    name: str
    low: float = 0.0
    high: float = 1.0
    """Largest value of a number. Both ends belong to the range."""
    is_int: bool = False
    is_log: bool = False
    choices: tuple[str, ...] = ()
    """Choices of a categorical parameter; empty for numbers."""
    parent: str = ""
    """Categorical parameter that decides whether this one is active. Empty if it always is."""
    values: tuple[str, ...] = ()
    """Values of the parent for which this parameter is active."""
    cheap: float | None = None
    """Value at which training costs little, for methods that ask where to start."""

    def is_active(self, config: Config) -> bool:
        """Return whether the parameter is active beside the values so far."""
        return not self.parent or config.get(self.parent) in self.values

    def draw(self, rng: random.Random) -> Any:
        """Return a value, uniform in the range or in its logarithm."""
        if self.choices:
            return rng.choice(self.choices)
        if self.is_int and not self.is_log:
            return rng.randint(int(self.low), int(self.high))
        if not self.is_log:
            return rng.uniform(self.low, self.high)
        # An integer has the same share of the logarithm's range that rounding gives it.
        half = 0.5 if self.is_int else 0.0
        value = math.exp(rng.uniform(math.log(self.low - half), math.log(self.high + half)))
        return min(max(round(value), int(self.low)), int(self.high)) if self.is_int else value


Space: TypeAlias = tuple[Parameter, ...]
"""A search space. Parents stand before their children."""


def draw(space: Space, rng: random.Random) -> Config:
    """Return a random point of a space."""
    config: dict[str, Any] = {}
    for parameter in space:
        if parameter.is_active(config):
            config[parameter.name] = parameter.draw(rng)
    return config


def active(space: Space, values: Config) -> Config:
    """Return the values of the active parameters as plain Python ones."""
    config: dict[str, Any] = {}
    for parameter in space:
        if parameter.is_active(config):
            value = values[parameter.name]
            kind = str if parameter.choices else int if parameter.is_int else float
            config[parameter.name] = kind(value)
    return config


class OutOfBudgetError(BaseException):
    """The end of a run, as the clock has run out.

    No `Exception`, since methods take those for trials that failed, and go on.
    """


class Searched(Protocol):
    """A search space, and the training sizes of its points."""

    @property
    def name(self) -> str:
        """Name of the problem."""

    @property
    def space(self) -> Space:
        """Space that is searched."""

    @property
    def smallest(self) -> int:
        """The smallest training size."""

    @property
    def full(self) -> int:
        """Number of all training rows, N. Only models trained on all of them count."""


class Evaluated(Searched, Protocol):
    """The argument of every method, which calls `evaluate` until `OutOfBudgetError`."""

    @property
    def budget(self) -> float:
        """Seconds after which the clock stops, for methods that ask for it."""

    def evaluate(self, config: Config, size: int) -> tuple[float, float]:
        """Train on so many rows. Return validation score, larger is better, and seconds."""


def sizes(problem: Evaluated, factor: float) -> list[int]:
    """Return the smallest size, and N divided by powers of a factor."""
    n_steps = round(math.log(problem.full / problem.smallest, factor))
    return [problem.smallest, *(round(problem.full / factor**k) for k in reversed(range(n_steps)))]


@dataclass(frozen=True)
class Parts:
    """Training sizes counted in parts of N, whose number is a power.

    So the brackets of methods that multiply by that factor end at N and lose none to rounding.
    """

    problem: Evaluated
    whole: int
    """Number of parts in N. One part is the smallest size."""

    @classmethod
    def of(cls, problem: Evaluated, factor: int = 3) -> Parts:
        """Return the parts for a factor: its power nearest to N over the smallest size."""
        return cls(problem, factor ** (len(sizes(problem, factor)) - 1))

    def size(self, parts: float) -> int:
        """Return the number of rows."""
        rows = round(self.problem.full * parts / self.whole)
        return min(max(rows, self.problem.smallest), self.problem.full)


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return lists, which JSON made of tuples, as tuples again."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}


class Remote:
    """The problem as a peer in another process sees it.

    Questions go through pipes.
    """

    def __init__(self) -> None:
        # What the peer prints must not mix with the questions.
        self._answers, self._questions = sys.stdin, os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        head = json.loads(self._answers.readline())
        self.space: Space = tuple(Parameter(**_with_tuples(one)) for one in head["space"])
        self.name, self.smallest, self.full = head["name"], head["smallest"], head["full"]
        self.budget, self.method, self.seed = head["budget"], head["method"], head["seed"]
        self._origin = time.process_time()

    def evaluate(self, config: Config, size: int) -> tuple[float, float]:
        """Ask the process that has the problem."""
        self._say({"config": active(self.space, config), "size": int(size)})
        answer = json.loads(self._answers.readline())
        if "end" in answer:
            raise OutOfBudgetError
        return answer["score"], answer["seconds"]

    def finish(self, **message: str) -> None:
        """Say that the method has ended by itself (`end`), or how it broke down (`failed`)."""
        self._say(message)

    def _say(self, message: Config) -> None:
        thinking = time.process_time() - self._origin
        print(json.dumps({**message, "thinking": thinking}), file=self._questions, flush=True)


def introduction(problem: Evaluated, method: str, seed: int) -> str:
    """Return the line that `Remote` reads first."""
    space: Sequence[Any] = [asdict(parameter) for parameter in problem.space]
    facts = {name: getattr(problem, name) for name in ("name", "smallest", "full", "budget")}
    return json.dumps({**facts, "space": space, "method": method, "seed": seed})
