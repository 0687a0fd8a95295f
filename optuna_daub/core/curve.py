"""Learning curves: the scores of a learner at the training sizes it was trained on."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any
from typing import Literal
from typing import TypeAlias
from typing import get_args

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number
from optuna_daub.core.once import Remembers


LARGEST_SCORE = 1e100
"""Largest distance of a score from 0; beyond it a score counts as infinite. Such learners have
diverged, and the square of 1e155 overflows."""


SLOW = 3.0
"""Ratio of seconds above which a training counts as a slow call.

The seconds are compared with those of a later training on more examples. Times that jitter by a
third stay in. Not tuned."""


Cause: TypeAlias = Literal["", "failed", "collapsed", "infeasible", "ruled out"]
"""Kind of reason for which a learner gets no more data. "failed": its training failed, or its
parameters were rejected; "collapsed": its score is not finite; "infeasible": it violates a
constraint; "ruled out": the policy dropped it; "": it may still get data."""

CAUSES: tuple[str, ...] = get_args(Cause)
"""All kinds of reasons."""


LOST: frozenset[Cause] = frozenset(("failed", "collapsed", "infeasible"))
"""Causes for which a learner cannot be the best, whatever its scores are."""


def is_finite(score: float) -> bool:
    """Return whether a score is finite, so forecasts can use it.

    >>> is_finite(0.9), is_finite(math.nan), is_finite(1e200)
    (True, False, False)
    """
    return abs(float(score)) <= LARGEST_SCORE  # numpy's short floats would overflow


@dataclass(frozen=True)
class Observation:
    """The outcome of one training of a learner on `size` examples.

    >>> Observation(500, 0.81, training_score=0.97).size
    500
    """

    size: int
    """Number of training examples, at least 1."""
    score: float
    """Validation score, larger is better; NaN and infinities are kept as facts."""
    training_score: float | None = None
    """Score on the `size` examples trained on; None if it was not measured."""
    n_validation: int | None = None
    """Number of validation examples that `score` was measured on; None if unknown."""
    seconds: float | None = None
    """Time of training and scoring, in seconds; None if it was not measured."""
    examples: int | None = None
    """Number of examples that this training used: fewer than `size` if it went on from an earlier
    model, with the new ones only. None: all `size`."""
    order: int = field(default=0, compare=False)
    """Place in the order of the study's trainings, such as the trial's number; 0 if unknown.
    Length scales are refitted only now and then, from the first observations in this order."""

    @property
    def is_finite(self) -> bool:
        """True if all its scores are finite, so forecasts can use it."""
        return is_finite(self.score) and is_finite(self.training_score or 0.0)

    def going_on_from(self, size: int) -> Observation:
        """Return the outcome of a training that goes on from a model of `size` examples.

        It uses the new examples only, and its seconds are in proportion. A `size` of 0 means a
        training from scratch.

        >>> later = Observation(1000, 0.8, seconds=2.0, examples=400)
        >>> later.going_on_from(0).seconds, later.going_on_from(800).seconds
        (5.0, 1.0)
        """
        used = self.size if self.examples is None else self.examples
        seconds = self.seconds
        if seconds is not None and used > 0:
            seconds *= (self.size - size) / used
        return replace(self, seconds=seconds, examples=self.size - size if size else None)


@dataclass(frozen=True)
class LearningCurve(Remembers):
    """The observations of one learner, sizes strictly increasing.

    A validation or training score that is not finite, or beyond 1e100, drops the learner.

    >>> curve = LearningCurve(learner=7).extended(Observation(500, 0.81))
    >>> curve.size, curve.extended(Observation(750, 0.84)).score
    (500, 0.84)
    """

    learner: int
    """The learner's id; in ties the lower id goes first."""
    observations: tuple[Observation, ...] = ()
    """Outcomes of its trainings, sizes strictly increasing."""
    dropped: str = ""
    """Reason why the learner gets no more data; empty if it may."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of the learner, by name; empty if unknown. Scores and costs are predicted from
    them before the first training."""
    cause: Cause = ""
    """The kind of reason that `dropped` states: "failed" unless another is given."""
    errors: int = 0
    """Number of trainings that ended in an error, at least 0."""
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Training sizes observed, increasing."""
    size: int = field(init=False, repr=False, compare=False)
    """Largest training size observed; 0 before the first training."""
    score: float = field(init=False, repr=False, compare=False)
    """Validation score at the largest size; minus infinity before the first training."""
    _derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Remembered answers of rules on the curve (see `once`)."""

    def __post_init__(self) -> None:
        if type(self.learner) is not int:
            object.__setattr__(self, "learner", whole_number("learner", self.learner))
        if not isinstance(self.dropped, str) or not isinstance(self.parameters, Mapping):
            raise ValueError(
                "`dropped` must be a sentence, empty for a learner that is not dropped, and "
                f"`parameters` a mapping, but got {brief(self.dropped)} and "
                f"{brief(self.parameters)}."
            )
        if not isinstance(self.cause, str) or self.cause not in CAUSES:
            raise ValueError(f"`cause` must be one of {CAUSES}, but got {brief(self.cause)}.")
        if type(self.errors) is not int:
            object.__setattr__(self, "errors", whole_number("errors", self.errors))
        if self.errors < 0:
            raise ValueError(f"`errors` must be at least 0, but got {self.errors}.")
        sizes = _checked_sizes(self.learner, self.observations)
        last = self.observations[-1] if sizes else None
        if not self.dropped and (collapse := _collapse(self.observations)):
            object.__setattr__(self, "dropped", collapse)
            object.__setattr__(self, "cause", "collapsed")
        object.__setattr__(self, "cause", (self.cause or "failed") if self.dropped else "")
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "size", last.size if last else 0)
        object.__setattr__(self, "score", last.score if last else -math.inf)

    @property
    def has_failed(self) -> bool:
        """True if it was dropped for errors or a score that is not finite."""
        return self.cause in ("failed", "collapsed")

    def extended(self, *observations: Observation) -> LearningCurve:
        """Return the curve with more observations, at larger sizes than all before."""
        return replace(self, observations=(*self.observations, *observations))

    def finite(self) -> tuple[Observation, ...]:
        """Return the observations whose scores are finite."""
        return tuple([seen for seen in self.observations if seen.is_finite])

    def drop(self, reason: str, cause: Cause = "failed") -> LearningCurve:
        """Return the curve marked as getting no data ever again, for `reason`.

        >>> LearningCurve(7).drop("MemoryError").cause, LearningCurve(7).cause
        ('failed', '')
        """
        return replace(self, dropped=reason, cause=cause)

    def log_times(self) -> tuple[float, ...]:
        """Return logarithms of size and seconds of three timed trainings, NaN for missing ones.

        They are the first, the last but one and the last of those whose seconds are known. A
        training that took `SLOW` times as long as a later one on more examples is left out: it was
        a slow call, and otherwise more examples would seem to take far less time. Seconds are of
        all examples; if only new ones were used, they are in proportion.

        >>> LearningCurve(0, (Observation(1, 0.8, seconds=1.0),)).log_times()
        (0.0, 0.0, nan, nan, 0.0, 0.0)
        """
        timed: list[tuple[float, float]] = []
        fastest = math.inf
        for seen in reversed(self.observations):
            seconds = (seen.seconds or 0.0) * (seen.size / (seen.examples or seen.size))
            if 0.0 < seconds <= SLOW * fastest:
                fastest = min(fastest, seconds)
                timed.insert(0, (math.log(seen.size), math.log(seconds)))
        if not timed:
            return (math.nan,) * 6
        before = timed[-2] if len(timed) > 1 else (math.nan, math.nan)
        return *timed[0], *before, *timed[-1]

    def __contains__(self, size: int) -> bool:
        """Return whether the learner was trained on `size` examples."""
        return self.at(size) is not None

    def at(self, size: int) -> Observation | None:
        """Return the observation at `size`, or None if there is none."""
        return next((seen for seen in self.observations if seen.size == size), None)


def _collapse(observations: tuple[Observation, ...]) -> str:
    """Return the first score that is not finite and its size, in words; empty if all are.

    No sign is shown, since the core turns losses around.
    """
    for seen in observations:
        for what, score in (("score", seen.score), ("training score", seen.training_score)):
            if score is not None and not is_finite(score):
                huge = f"beyond {LARGEST_SCORE:g}" if math.isfinite(score) else "infinite"
                found = "nan" if math.isnan(score) else huge
                return f"{what} {found} at {seen.size:,} examples"
    return ""


def _checked_sizes(learner: int, observations: tuple[Observation, ...]) -> tuple[int, ...]:
    """Return the sizes of a learner's observations.

    Raises:
        ValueError: if these are not observations, or sizes do not increase.
    """
    try:
        if not isinstance(observations, Sequence):
            raise TypeError
        sizes = tuple([operator.index(seen.size) for seen in observations])
        for seen in observations:  # most are floats, and a check of the type is fast
            if type(seen.score) is not float and not isinstance(seen.score, Real):
                raise TypeError
            if seen.seconds is not None and not seen.seconds >= 0.0:
                raise TypeError
    except (AttributeError, TypeError):
        raise ValueError(
            "The observations of a learning curve must be a tuple of `Observation`, each with "
            "a whole number as size, a number as score, and seconds of at least 0 or None, but "
            f"learner {brief(learner)} has {brief(observations)}."
        ) from None
    if sizes and sizes[0] < 1:
        raise ValueError(f"A training size must be at least 1, but got {sizes[0]}.")
    if any(later <= earlier for earlier, later in pairwise(sizes)):
        raise ValueError(
            f"The sizes of a learning curve must be strictly increasing, but learner {learner} "
            f"has {[*sizes]}."
        )
    return sizes
