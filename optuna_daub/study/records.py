"""Records: what a trial says, and the keys of Optuna's trials and studies under which it says so.

Only facts are stored (which learner, which size, which score), as JSON in system attributes;
scores themselves are Optuna's intermediate values, with the training size as step. Unknown fields
of a record are ignored and missing ones refused, so that workers of two versions can share a
study. `log` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import MISSING
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
from typing import Any
from typing import Literal
from typing import TypeVar

from optuna.trial import FrozenTrial

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.study.setup_errors import SetupError


PREFIX = "daub:"
RUN = PREFIX + "run"
OBSERVATION = PREFIX + "observation:"
FAILED = PREFIX + "failed"
EXHAUSTED = PREFIX + "exhausted"
SETTINGS = PREFIX + "settings"
REPLACES = PREFIX + "replaces"
GIVEN_UP = PREFIX + "given_up"

FIXED = "fixed_params"
"""Optuna's own: what `study.enqueue_trial` was given."""

CONSTRAINTS = "constraints"
"""Optuna's own: the values of a trial's constraints that its sampler has measured; with a colon
and a name, one that the objective has (`trial.set_constraint`)."""

GRID_POINT = "grid_id"
"""Attribute of a trial: the point of its grid, as GridSampler keeps it."""

GENERATION = "generation"
"""Attribute of a trial: the end of the name under which samplers keep its generation."""

METRIC_NAMES = "study:metric_names"
"""Optuna's own: what a study's scores are called."""

UNKNOWN = -1
"""The number of the trial, in a record that does not say."""

LONGEST = 1e9
"""Seconds that a training may take: some thirty years."""


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
    """Number of learners that the sampler was asked for; None for an open pool."""
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
    """For a new learner: whether it goes on as the only one with its parameters. Written if
    another process may come to the same ones."""

    def is_copy_in(self, number: int) -> bool:
        """Return whether it was written for another trial than `number`, which bears it.

        `study.add_trials` and Optuna's retries copy all that a trial bears.
        """
        return self.trial not in (number, UNKNOWN)


@dataclass(frozen=True)
class Failure:
    """An error of its own by which a run ended."""

    size: int
    """The number of examples that it was training on."""
    error: str = ""
    """The type of the error and the first line of its message; empty if unknown."""
    worker: str = ""
    """The process in which it failed; empty if unknown."""
    is_final: bool = False
    """True if the learner is not to be tried again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that one trial says, as it was read."""

    number: int
    """The trial's number."""
    state: Literal["waiting", "running", "complete", "pruned", "fail"] = "running"
    """Optuna's states; the last three are final."""
    run: Run | None = None
    """The record that it bears, None if there is none yet."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters suggested so far, by name."""
    distributions: Mapping[str, Any] = field(default_factory=dict)
    """Distributions that these were drawn from."""
    observations: Mapping[int, Observation] = field(default_factory=dict)
    """Observations of its own by size, increasing; larger scores are better."""
    value: float | None = None
    """The finite value, larger is better; None without one."""
    failure: Failure | None = None
    """The error of its own by which it ended, None if it did not."""
    is_given_up: bool = False
    """True if others have taken its learner from it; its worker may still be alive."""
    enqueued: Mapping[str, Any] | None = None
    """Parameters it was enqueued with, None for a trial that nobody has enqueued."""
    is_exhausted: bool = False
    """True if the base sampler had nothing left to propose after it."""
    replaces: int | None = None
    """The number of the abandoned trial in whose place it was enqueued."""
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    """The user's own attributes."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """Constraints by attribute, as Optuna stores them; empty if none were measured."""

    # Worked out once, since all of it is asked of each trial that is read.
    words: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Parameters as text, by which two points are compared (`point`)."""
    is_finished: bool = field(init=False, repr=False, compare=False)
    """True if it never changes again."""
    assigned: Run | None = field(init=False, repr=False, compare=False)
    """The run that it was assigned itself; None if it waits, or the record is a copy."""
    learner: int | None = field(init=False, repr=False, compare=False)
    """The learner that it runs, None if it runs none."""
    counted: Mapping[int, Observation] = field(init=False, repr=False, compare=False)
    """Those of its observations that belong to a learning curve.

    Not what lies beyond the full size, nor a full-data score of a trial that did not end COMPLETE:
    then no trial holds the result, and the learner has to be trained once more. A score there that
    is no number does count: for that the learner is dropped."""
    examples: int = field(init=False, repr=False, compare=False)
    """Examples that it was trained on, each training counted in full; a result that is lost was
    paid for all the same."""
    seconds: float = field(init=False, repr=False, compare=False)
    """Seconds of these trainings, as far as they were measured."""

    def __post_init__(self) -> None:
        run, is_finished = self.run, self.state not in ("running", "waiting")
        is_own = run is not None and self.state != "waiting" and not run.is_copy_in(self.number)
        full_size = 0 if run is None else run.full_size
        paid = {n: x for n, x in self.observations.items() if n <= full_size}
        is_lost = (is_finished or self.is_given_up) and self.state != "complete"
        counted = paid
        if is_lost and full_size in paid and is_finite(paid[full_size].score):
            counted = {n: x for n, x in paid.items() if n < full_size}
        for name, value in (
            ("words", point(self.params, self.distributions)),
            ("is_finished", is_finished),
            ("assigned", run if is_own else None),
            ("learner", run.learner if is_own and run is not None else None),
            ("counted", counted),
            ("examples", sum(paid)),
            ("seconds", math.fsum([x.seconds or 0.0 for x in paid.values()])),
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


# Reading


def read(trial: FrozenTrial, sign: int = 1) -> Facts:
    """Return what a trial says; `sign` is -1 if smaller scores are better."""
    attrs, run = trial.system_attrs, read_run(trial)
    sizes = own_sizes(trial, 0 if run is None else run.inherited)
    failed, replaces, given_up = attrs.get(FAILED), attrs.get(REPLACES), attrs.get(GIVEN_UP)
    values = [sign * value for value in trial.values or () if math.isfinite(value)]
    facts = Facts(
        number=trial.number,
        state=trial.state.name.lower(),  # type: ignore[arg-type]
        run=run,
        # Copies: an `optuna.Trial` in memory changes the very object that was read.
        params={**trial.params},
        distributions={**trial.distributions},
        observations={size: _observation(trial, size, sign) for size in sizes},
        value=values[0] if values else None,
        failure=None if failed is None else _record(Failure, failed),
        is_given_up=given_up is not None,
        enqueued=attrs.get(FIXED),
        is_exhausted=bool(attrs.get(EXHAUSTED, False)),
        replaces=None if replaces is None else int(replaces),
        user_attrs=noted(trial) if trial.user_attrs else {},
        constraints={n: v for n, v in attrs.items() if n.partition(":")[0] == CONSTRAINTS},
    )
    # What a first run suggested after others had taken its learner over is no parameter of that:
    # it trains another point of the space than they do, and nothing that it says is the learner's.
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
    """Return the record that a trial bears, None if there is none yet."""
    stored = trial.system_attrs.get(RUN)
    return None if stored is None else _record(Run, stored)


def own_sizes(trial: FrozenTrial, inherited: int = 0) -> list[int]:
    """Return the sizes that the trial observed itself, increasing."""
    return sorted(size for size in trial.intermediate_values if size > inherited)


def check_steps(sizes: Sequence[int], number: int, steps: Iterable[int]) -> None:
    """Raise a SetupError if a run that was handed out sizes has reported anything else."""
    others = [step for step in steps if step not in sizes]
    if others:
        listed = ", ".join(f"{size:,}" for size in sizes)
        raise SetupError(
            f"The step of `trial.report` is the training size, one of {listed}, but trial "
            f"{number} reported step {min(others):,}. Report the sizes of "
            "`training_sizes(trial)` only, and no epochs: leave out a callback that does, such as "
            "Optuna's pruning callbacks."
        )


def signed(seen: Observation, sign: int) -> Observation:
    """Return an observation with its scores turned so that larger is better, or back."""
    if sign > 0:
        return seen
    training_score = None if seen.training_score is None else -seen.training_score
    return replace(seen, score=-seen.score, training_score=training_score)


def is_duration(seconds: object) -> bool:
    """Return whether a training can have taken so long.

    >>> is_duration(0.5), is_duration(-1), is_duration(1e300), is_duration("5")
    (True, False, False, False)
    """
    return isinstance(seconds, int | float) and 0 <= seconds <= LONGEST


def is_given_up(trial: FrozenTrial) -> bool:
    """Return whether the run of the trial has lost its learner to others."""
    return GIVEN_UP in trial.system_attrs


def is_enqueued(trial: FrozenTrial) -> bool:
    """Return whether the user asked for the trial, and it is no retry of one assigned before."""
    return FIXED in trial.system_attrs and RUN not in trial.system_attrs


def enqueued_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters that the user enqueued the trial with, empty if it was not."""
    return {**trial.system_attrs.get(FIXED, {})}


def marks_of_others(trial: FrozenTrial) -> dict[str, Any]:
    """Return the attributes that another sampler has left on the trial, as Grid does."""
    attrs = trial.system_attrs.items()
    return {name: value for name, value in attrs if not name.startswith((PREFIX, FIXED))}


def is_chosen(trial: FrozenTrial) -> bool:
    """Return whether the user, or another sampler such as GridSampler, has chosen its point."""
    return bool(enqueued_params(trial) or marks_of_others(trial))


def is_of_generation(trial: FrozenTrial) -> bool:
    """Return whether a sampler counts the trial in a generation, as NSGA-II and CMA-ES do."""
    return any(name.endswith(GENERATION) for name in trial.system_attrs)


def noted(trial: FrozenTrial) -> dict[str, Any]:
    """Return the user attributes that are the user's own."""
    return {n: v for n, v in trial.user_attrs.items() if not n.startswith(PREFIX)}


def read_summary(trial: FrozenTrial, name: str) -> Any:
    """Return what users see of a run under `name`, None if it was not stored."""
    return trial.user_attrs.get(f"{PREFIX}{name}")


def prefixed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what users should see by the names of user attributes."""
    return {f"{PREFIX}{name}": value for name, value in summary.items()}


def _observation(trial: FrozenTrial, size: int, sign: int) -> Observation:
    facts, score = trial.system_attrs.get(f"{OBSERVATION}{size}", {}), trial.intermediate_values
    seconds = facts.get("seconds")
    if seconds is not None and not is_duration(seconds):
        seconds = None  # changed by hand, or by another program: unknown, as if it were not there
    training_score, n_validation = facts.get("training_score"), facts.get("n_validation")
    # Trials are numbered in the order of time, and the first training is number 1.
    seen = Observation(
        size, score[size], training_score, n_validation, seconds, order=trial.number + 1
    )
    return signed(seen, sign)


_Record = TypeVar("_Record", Run, Failure)

_KNOWN = {kind: frozenset(each.name for each in fields(kind)) for kind in (Run, Failure)}
_REQUIRED = {
    kind: [each.name for each in fields(kind) if each.default is MISSING]
    for kind in (Run, Failure)
}


def _record(kind: type[_Record], stored: Any) -> _Record:
    """Return a stored record, or raise a ValueError that says what it lacks."""
    if not isinstance(stored, Mapping):
        raise ValueError(
            f"A stored {kind.__name__.lower()} must be a mapping, but this study has {stored!r}. "
            "It was changed by hand or by another program: begin a study of another name."
        )
    if missing := [name for name in _REQUIRED[kind] if name not in stored]:
        raise ValueError(
            f"A stored {kind.__name__.lower()} must have {missing}, but this study has one of "
            f"{sorted(stored)}. It was changed by hand or is of another version of optuna_daub: "
            "update it, or begin a study of another name."
        )
    return kind(**{name: value for name, value in stored.items() if name in _KNOWN[kind]})
