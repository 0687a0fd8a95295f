"""Facts stored about a trial, and their keys in Optuna's trials and studies.

Only facts are stored (learner, size, score, seconds), as JSON in system attributes. Scores are
Optuna's intermediate values, with the training size as step. Unknown fields of a record are
ignored and missing ones have their defaults, so workers of two versions can share a study. Only a
record without its learner or size is refused. `log` writes the records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
from datetime import datetime
from numbers import Integral
from types import NoneType
from typing import Any
from typing import Literal
from typing import TypeVar

from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial

from optuna_daub.core.checks import brief
from optuna_daub.core.curve import Observation


PREFIX = "daub:"
RUN = PREFIX + "run"
OBSERVATION = PREFIX + "observation:"
FAILED = PREFIX + "failed"
EXHAUSTED = PREFIX + "exhausted"
REPLACES = PREFIX + "replaces"
GIVEN_UP = PREFIX + "given_up"
NO_SIZES = PREFIX + "no_sizes"

FIXED = "fixed_params"
"""Optuna's key of the parameters given to `study.enqueue_trial`."""

CONSTRAINTS = "constraints"
"""Optuna's key of a trial's constraints that the sampler has measured. With a colon and a name it
is the key of one that the objective set (`trial.set_constraint`)."""

GRID_POINT = "grid_id"
"""GridSampler's key of the point of its grid that a trial has."""

GENERATION = "generation"
"""End of the keys under which samplers keep the generation of a trial."""

METRIC_NAMES = "study:metric_names"
"""Optuna's key of the names of a study's scores."""

UNKNOWN = -1
"""Trial number in a record without one."""

CHANGED = (
    "It was changed by hand or is of another version of optuna_daub: update it, or start a study "
    "with another name."
)

LONGEST = 1e9
"""Largest plausible seconds of a training, some thirty years."""


@dataclass(frozen=True)
class Run:
    """The learner that the sampler assigned to a trial; stored before it is trained."""

    learner: int | None
    """Id of the learner; None for an idle trial, which trains nothing."""
    size: int = 0
    """First size to train on, in examples."""
    inherited: int = 0
    """Largest size observed by earlier runs of the learner; 0 for its first run."""
    n_learners: int | None = 0
    """Number of learners that the sampler was asked for; None for an open pool."""
    full_size: int = 0
    """Number of all training examples."""
    reason: str = ""
    """Reason for this run."""
    worker: str = ""
    """Id of the process that runs it (see `liveness`)."""
    trial: int = UNKNOWN
    """Number of the trial that the record was written for. Optuna copies records to other
    trials."""
    study: str = ""
    """Name of the study that the record was written for. `optuna.copy_study` copies running trials
    too, whose workers do not know the copy. One of the same name, in another storage, is not
    noticed."""
    repeats: int | None = None
    """In an idle trial: the learner whose parameters were proposed again; else None."""
    is_declined: bool = False
    """In an idle trial: True if the policy declined its parameters."""
    is_settled: bool = False
    """In a new learner: True if it is settled, which means the only one with its parameters.
    Written if another process may propose the same ones."""
    fixed: str = ""
    """Text of what its sampler fixes (see `exploring.fixed_text`); empty if nothing."""

    def is_copy_in(self, number: int) -> bool:
        """Return whether the record was copied to trial `number` from another one.

        `study.add_trials` and Optuna's retries copy all records of a trial.
        """
        return self.trial not in (number, UNKNOWN)


@dataclass(frozen=True)
class Failure:
    """The failure of a run by an error of its own."""

    size: int
    """Number of examples that it was training on."""
    error: str = ""
    """Type of the error and first line of its message; empty if unknown."""
    worker: str = ""
    """Id of the process in which it failed; empty if unknown."""
    is_final: bool = False
    """True if the learner is not to be tried again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of one trial, as they were read."""

    number: int
    """Number of the trial."""
    state: Literal["waiting", "running", "complete", "pruned", "fail"] = "running"
    """Optuna's states; the last three are final."""
    run: Run | None = None
    """The run in its record; None without a record."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters suggested so far, by name."""
    distributions: Mapping[str, Any] = field(default_factory=dict)
    """Distributions of `params`."""
    observations: Mapping[int, Observation] = field(default_factory=dict)
    """Observations of this trial alone, by size, increasing; larger scores are better."""
    value: float | None = None
    """The finite value, larger is better; None without one."""
    failure: Failure | None = None
    """Failure by an error of its own; None without one."""
    is_given_up: bool = False
    """True if other workers have taken over its learner. Its own worker may still be alive."""
    enqueued: Mapping[str, Any] | None = None
    """Parameters that it was enqueued with; None if it was not enqueued."""
    is_exhausted: bool = False
    """True if the base sampler had nothing left to propose after it."""
    replaces: int | None = None
    """Number of the abandoned trial that it replaces in the queue, or None."""
    start: datetime | None = None
    """Time at which it started, by the clock of its machine; None while it waits."""
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    """User attributes, without those of this package."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """Constraints by key, as Optuna stores them; empty if none were measured."""

    # Computed once, since all of it is needed for each trial that is read.
    words: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Parameters as text, to compare points (see `point`)."""
    is_finished: bool = field(init=False, repr=False, compare=False)
    """True if it never changes again."""
    assigned: Run | None = field(init=False, repr=False, compare=False)
    """Run of this trial itself. None if it waits in the queue, or if the record is a copy."""
    learner: int | None = field(init=False, repr=False, compare=False)
    """Id of its learner; None without one."""
    counted: Mapping[int, Observation] = field(init=False, repr=False, compare=False)
    """Observations that belong to the learning curve, by size.

    Sizes beyond N do not count. Neither does a score on all the data if the trial did not end
    COMPLETE: no trial holds that result, so the learner must be trained again. But NaN or infinity
    there counts, and drops the learner.
    """
    examples: int = field(init=False, repr=False, compare=False)
    """Examples trained on, summed over all trainings, including those whose result is lost."""
    seconds: float = field(init=False, repr=False, compare=False)
    """Seconds of these trainings; those not measured count as 0."""

    def __post_init__(self) -> None:
        run, is_finished = self.run, self.state not in ("running", "waiting")
        is_own = run is not None and self.state != "waiting" and not run.is_copy_in(self.number)
        full_size = 0 if run is None else run.full_size
        paid = {n: x for n, x in self.observations.items() if n <= full_size}
        is_lost = (is_finished or self.is_given_up) and self.state != "complete"
        counted = {
            n: x for n, x in paid.items() if n < full_size or not is_lost or not x.is_finite
        }
        assigned = run if is_own else None
        for name, value in (
            ("words", point(self.params, self.distributions)),
            ("is_finished", is_finished),
            ("assigned", assigned),
            ("learner", None if assigned is None else assigned.learner),
            ("counted", counted),
            ("examples", sum([x.examples or x.size for x in paid.values()])),  # as `Cost.of`
            ("seconds", math.fsum([x.seconds or 0.0 for x in paid.values()])),
        ):
            object.__setattr__(self, name, value)


def point(params: Mapping[str, Any], distributions: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters as text by name, in the order of their suggestion.

    Equal values have equal texts: 0.1 + 2 * 0.1 and 0.3 are one point of a grid, and 1 is 1.0.

    >>> from optuna.distributions import FloatDistribution
    >>> point({"x": 0.1 + 0.2}, {"x": FloatDistribution(0.1, 0.9, step=0.1)})
    {'x': '0.3'}
    """
    return {name: word(params[name], space) for name, space in distributions.items()}


def word(value: Any, distribution: Any) -> str:
    """Return the value of a parameter as text."""
    if isinstance(value, str | int | float) and type(value) not in (str, int, float, bool):
        value = json.loads(json.dumps(value))  # an enumeration's value, as storages return it
    if isinstance(value, int) and isinstance(distribution, FloatDistribution):
        value = float(value)  # enqueued as 1, stored as 1.0
    if isinstance(value, float) and getattr(distribution, "step", None) is not None:
        return f"{value:.12g}"
    return repr(value)


# Reading


def read(trial: FrozenTrial, sign: int = 1) -> Facts:
    """Return the facts of a trial. `sign` is -1 if smaller scores are better, else 1."""
    attrs, run = trial.system_attrs, read_run(trial)
    failed, given_up = attrs.get(FAILED), _typed(attrs, GIVEN_UP, list)
    sizes, others = own_sizes(trial, run.inherited if run else 0), _typed(attrs, NO_SIZES, list)
    sizes = [size for size in sizes if size not in (others or ())]
    values = [sign * value for value in trial.values or () if math.isfinite(value)]
    facts = Facts(
        number=trial.number,
        state=trial.state.name.lower(),  # type: ignore[arg-type]
        run=run,
        # Copies: an `optuna.Trial` in memory changes the same object later.
        params={**trial.params},
        distributions={**trial.distributions},
        observations={size: _observation(trial, size, sign) for size in sizes},
        value=values[0] if values else None,
        failure=None if failed is None else _record(Failure, failed),
        is_given_up=given_up is not None,
        enqueued=_typed(attrs, FIXED, dict, Mapping),
        is_exhausted=bool(attrs.get(EXHAUSTED, False)),
        replaces=_typed(attrs, REPLACES, Integral),
        start=trial.datetime_start,
        user_attrs=noted(trial) if trial.user_attrs else {},
        constraints={n: v for n, v in attrs.items() if n.partition(":")[0] == CONSTRAINTS},
    )
    # If a first run suggests more after others took over its learner, it trains another point of
    # the space than they do, so none of its facts are the learner's.
    if given_up is None or facts.learner != trial.number or {*trial.params} <= {*given_up}:
        return facts
    early = {name: kind for name, kind in facts.distributions.items() if name in given_up}
    nothing: dict[Any, Any] = {}
    return replace(
        facts,
        params={name: facts.params[name] for name in early},
        distributions=early,
        observations=nothing,
        failure=None,
        user_attrs=nothing,
        constraints=nothing,
    )


def read_run(trial: FrozenTrial) -> Run | None:
    """Return the run in a trial's record; None without a record."""
    stored = trial.system_attrs.get(RUN)
    return None if stored is None else _record(Run, stored)


def own_sizes(trial: FrozenTrial, inherited: int = 0) -> list[int]:
    """Return the sizes that the trial has observed itself, increasing."""
    return sorted(size for size in trial.intermediate_values if size > inherited)


def signed(seen: Observation, sign: int) -> Observation:
    """Return an observation with its scores multiplied by `sign`."""
    if sign > 0:
        return seen
    training_score = None if seen.training_score is None else -seen.training_score
    return replace(seen, score=-seen.score, training_score=training_score)


def is_duration(seconds: object) -> bool:
    """Return whether a value can be the seconds of a training.

    >>> is_duration(0.5), is_duration(-1), is_duration(1e300), is_duration("5")
    (True, False, False, False)
    """
    return isinstance(seconds, int | float) and 0 <= seconds <= LONGEST


def is_enqueued(trial: FrozenTrial) -> bool:
    """Return whether the user chose the parameters, and the trial has no run yet.

    They were enqueued, or are those of a waiting trial that was added.
    """
    return (FIXED in trial.system_attrs or bool(trial.params)) and RUN not in trial.system_attrs


def enqueued_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters that the trial was enqueued with. Empty if it was not enqueued."""
    return {**trial.system_attrs.get(FIXED, {})}


def marks_of_others(trial: FrozenTrial) -> dict[str, Any]:
    """Return the attributes that another sampler has set on the trial, as GridSampler does."""
    attrs = trial.system_attrs.items()
    return {name: value for name, value in attrs if not name.startswith((PREFIX, FIXED))}


def is_chosen(trial: FrozenTrial) -> bool:
    """Return whether the user, or another sampler such as GridSampler, has chosen its point."""
    return bool(trial.params or enqueued_params(trial) or marks_of_others(trial))


def is_of_generation(trial: FrozenTrial) -> bool:
    """Return whether a sampler counts the trial in a generation. NSGA-II and CMA-ES do so."""
    return any(name.endswith(GENERATION) for name in trial.system_attrs)


def noted(trial: FrozenTrial) -> dict[str, Any]:
    """Return the user attributes without those of this package."""
    return {n: v for n, v in trial.user_attrs.items() if not n.startswith(PREFIX)}


def read_summary(trial: FrozenTrial, name: str) -> Any:
    """Return a value of a run's summary, which users see. None without one."""
    return trial.user_attrs.get(f"{PREFIX}{name}")


def prefixed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary under the names of user attributes."""
    return {f"{PREFIX}{name}": value for name, value in summary.items()}


def _observation(trial: FrozenTrial, size: int, sign: int) -> Observation:
    facts = _typed(trial.system_attrs, f"{OBSERVATION}{size}", dict, Mapping) or {}
    # Impossible values were changed by hand or by another program: they count as unknown.
    seconds, examples = facts.get("seconds"), facts.get("examples")
    seen = Observation(
        size,
        trial.intermediate_values[size],
        _typed(facts, "training_score", float, NoneType, int),
        _typed(facts, "n_validation", int, NoneType, Integral),
        seconds if is_duration(seconds) else None,
        examples if type(examples) is int and 1 <= examples <= size else None,
        order=trial.number + 1,  # trials are numbered in the order of time; the first has 1
    )
    return signed(seen, sign)


_Record = TypeVar("_Record", Run, Failure)

_KINDS = (Run, Failure)
_ANY: dict[str, tuple[type, ...]] = {"int": (int, Integral), "str": (str,), "bool": (bool,)}
_ANY["int | None"] = (NoneType, *_ANY["int"])
_TYPES = {kind: {x.name: _ANY[str(x.type)] for x in fields(kind)} for kind in _KINDS}
_REQUIRED = {kind: [x.name for x in fields(kind) if x.default is MISSING] for kind in _KINDS}


def _record(kind: type[_Record], stored: Any) -> _Record:
    """Return a stored record; raise a ValueError that names what it lacks."""
    types, needed = _TYPES[kind], _REQUIRED[kind]
    if not isinstance(stored, Mapping) or any(name not in stored for name in needed):
        rule = f"A stored {kind.__name__.lower()} must be a mapping with {needed}"
        raise ValueError(f"{rule}, but this study has {brief(stored)}. {CHANGED}")
    return kind(**{n: _typed(stored, n, *types[n]) for n in stored if n in types})


def _typed(stored: Mapping[str, Any], name: str, *types: type) -> Any:
    """Return a stored value, None without one. Raise a ValueError if its type is wrong."""
    value = stored.get(name)
    if type(value) in types or name not in stored or isinstance(value, types):  # fast ones first
        return value
    rule = f"A stored `{name}` must have the type that optuna_daub writes"
    raise ValueError(f"{rule}, but this study has {brief(value)}. {CHANGED}")
