"""Records: what trials say of learners, as frozen values that know nothing of Optuna."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import Literal

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite


UNKNOWN = -1
"""The number of the trial, in a record that does not say."""

CONSTRAINTS = "constraints"
"""Optuna's own: the values of a trial's constraints that its sampler has measured; with a colon
and a name, one that the objective has (`trial.set_constraint`)."""


@dataclass(frozen=True)
class Run:
    """The learner that the sampler has assigned to a trial; written before it is trained."""

    learner: int | None
    """The learner that this trial runs, None for an idle trial, which runs none."""
    size: int = 0
    """The first size to train on."""
    inherited: int = 0
    """The largest size observed by earlier runs of the learner; 0 for its first run."""
    n_learners: int | None = 0
    """How many learners the sampler was asked for; None for an open pool."""
    full_size: int = 0
    """The size of the whole training set."""
    reason: str = ""
    """Why the learner was given this run."""
    worker: str = ""
    """The process that runs it (see `liveness`)."""
    trial: int = UNKNOWN
    """The number of the trial that it was written for; Optuna copies records to other trials."""
    repeats: int | None = None
    """For an idle trial: the learner whose parameters were proposed once more."""
    is_declined: bool = False
    """For an idle trial: whether the policy declined its parameters."""
    is_settled: bool = False
    """For a new learner: whether it goes on as the only one with its parameters. Written where
    another process may come to the same ones."""


@dataclass(frozen=True)
class Failure:
    """How a run ended by an error of its own."""

    size: int
    """The number of examples that it was training on."""
    error: str = ""
    """The type of the error and the first line of its message; empty where unknown."""
    worker: str = ""
    """The process in which it failed; empty where unknown."""
    is_final: bool = False
    """Whether the learner is not to be tried again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that one trial says, as it was read."""

    number: int
    """The trial's number."""
    state: Literal["waiting", "running", "complete", "pruned", "fail"] = "running"
    """Optuna's states; the last three are final."""
    run: Run | None = None
    """What it was assigned, None if nothing yet."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """What it has suggested so far."""
    distributions: Mapping[str, Any] = field(default_factory=dict)
    """What these were drawn from."""
    observations: Mapping[int, Observation] = field(default_factory=dict)
    """What it observed itself, by size, increasing; larger scores are better."""
    value: float | None = None
    """Its finite value, larger is better; None without one."""
    failure: Failure | None = None
    """How it ended by an error of its own, None if it did not."""
    is_given_up: bool = False
    """Whether others have taken its learner from it, while its worker may still be alive."""
    too_late: frozenset[str] = frozenset()
    """The parameters that it suggested after that, which may not be the learner's."""
    enqueued: Mapping[str, Any] | None = None
    """What the user enqueued it with, None for a trial that nobody has enqueued."""
    is_exhausted: bool = False
    """Whether the base sampler had nothing left to propose after it."""
    replaces: int | None = None
    """The number of the abandoned trial in whose place it was enqueued."""
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    """What the user has noted on it."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """What Optuna stores of its constraints, by attribute; empty where none were measured."""

    words: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """What it has suggested as text, by which two points are compared (`point`)."""
    is_finished: bool = field(init=False, repr=False, compare=False)
    """Whether it never changes again."""
    is_queued: bool = field(init=False, repr=False, compare=False)
    """Whether the user asked for it, and it was assigned nothing yet."""
    is_foreign: bool = field(init=False, repr=False, compare=False)
    """Whether its record was written for another trial than the one that bears it.

    `study.add_trials` and Optuna's retries copy all that a trial bears."""
    is_lost: bool = field(init=False, repr=False, compare=False)
    """Whether it reported the full size and did not end COMPLETE.

    Then no trial holds the full-data result, and the learner has to be trained once more; not if
    its score was no number, for which it was dropped."""
    examples: int = field(init=False, repr=False, compare=False)
    """Examples that it was trained on, each training counted in full; where the result is lost,
    they were paid for all the same."""
    seconds: float = field(init=False, repr=False, compare=False)
    """What that took, as far as it was measured."""

    def __post_init__(self) -> None:
        # Worked out once: all of it is asked of each trial that is read.
        run, is_finished = self.run, self.state not in ("running", "waiting")
        full_size = 0 if run is None else run.full_size
        seen = [x for n, x in self.observations.items() if n <= full_size]
        last = seen[-1] if seen and seen[-1].size == full_size else None
        is_over = (is_finished or self.is_given_up) and self.state != "complete"
        is_foreign = run is not None and run.trial not in (self.number, UNKNOWN)
        for name, value in (
            ("words", point(self.params, self.distributions)),
            ("is_finished", is_finished),
            ("is_queued", self.enqueued is not None and run is None),
            ("is_foreign", is_foreign),
            ("is_lost", is_over and last is not None and is_finite(last.score)),
            ("examples", sum([x.size for x in seen])),
            ("seconds", math.fsum([x.seconds or 0.0 for x in seen])),
        ):
            object.__setattr__(self, name, value)


def point(params: Mapping[str, Any], distributions: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of parameters by name, in the order in which they were suggested, as text.

    Equal values have equal texts: 0.1 + 2 * 0.1 and 0.3 are one point of a grid.

    >>> from optuna.distributions import FloatDistribution
    >>> point({"x": 0.1 + 0.2}, {"x": FloatDistribution(0.1, 0.9, step=0.1)})
    {'x': '0.3'}
    """
    return {name: word(params[name], space) for name, space in distributions.items()}


def word(value: Any, distribution: Any) -> str:
    """Return the value of a parameter as text."""
    if isinstance(value, float) and getattr(distribution, "step", None) is not None:
        return f"{value:.12g}"
    return repr(value)


def violation(constraints: Mapping[str, Any]) -> str:
    """Return which constraint is violated, by Optuna's rule; empty where none is.

    >>> violation({"constraints": [-1.0, 0.5]}), violation({"constraints:seconds": 0.0})
    ('infeasible: constraint 1 is 0.5, above 0', '')
    """
    for name, stored in constraints.items():
        values = {name.partition(":")[2]: stored}
        if name == CONSTRAINTS:
            values = {str(place): value for place, value in enumerate(stored or ())}
        for which, value in values.items():
            if value > 0:
                return f"infeasible: constraint {which} is {value:.6g}, above 0"
    return ""
