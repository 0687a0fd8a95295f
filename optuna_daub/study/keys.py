"""Keys, and what a trial says under them.

Only facts are stored (which learner, which size, which score), as JSON in the trials' system
attributes; scores themselves are Optuna's intermediate values, with the training size as step.
Unknown fields of a record are ignored and missing ones refused, so that workers of two versions
can share a study. `log` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING
from dataclasses import fields
from dataclasses import replace
from typing import Any
from typing import TypeVar

from optuna.trial import FrozenTrial

from optuna_daub.core.curve import Observation
from optuna_daub.study.records import CONSTRAINTS
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run


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

GRID_POINT = "grid_id"
"""Of a trial: where GridSampler keeps which point of its grid it is."""

GENERATION = "generation"
"""Of a trial: how the name ends under which samplers keep which generation it belongs to."""

METRIC_NAMES = "study:metric_names"
"""Optuna's own: what a study's scores are called."""

_Record = TypeVar("_Record", Run, Failure)

LONGEST = 1e9
"""Seconds that a training may take: some thirty years."""

_KNOWN = {kind: frozenset(field.name for field in fields(kind)) for kind in (Run, Failure)}
_REQUIRED = {
    kind: [field.name for field in fields(kind) if field.default is MISSING]
    for kind in (Run, Failure)
}


def read(trial: FrozenTrial, sign: int = 1) -> Facts:
    """Return what a trial says; `sign` is -1 where smaller scores are better."""
    attrs, run = trial.system_attrs, read_run(trial)
    sizes = own_sizes(trial, 0 if run is None else run.inherited)
    failed, replaces = attrs.get(FAILED), attrs.get(REPLACES)
    values = [sign * value for value in trial.values or () if math.isfinite(value)]
    return Facts(
        number=trial.number,
        state=trial.state.name.lower(),  # type: ignore[arg-type]
        run=run,
        # Copies: an `optuna.Trial` in memory changes the very object that was read.
        params={**trial.params},
        distributions={**trial.distributions},
        observations={size: _observation(trial, size, sign) for size in sizes},
        value=values[0] if values else None,
        failure=None if failed is None else _record(Failure, failed),
        is_given_up=GIVEN_UP in attrs,
        too_late=frozenset(trial.params).difference(attrs[GIVEN_UP])
        if GIVEN_UP in attrs
        else frozenset(),
        enqueued=attrs.get(FIXED),
        is_exhausted=bool(attrs.get(EXHAUSTED, False)),
        replaces=None if replaces is None else int(replaces),
        user_attrs=noted(trial) if trial.user_attrs else {},
        constraints={n: v for n, v in attrs.items() if n.partition(":")[0] == CONSTRAINTS},
    )


def read_run(trial: FrozenTrial) -> Run | None:
    """Return what a trial was assigned, None if nothing yet."""
    stored = trial.system_attrs.get(RUN)
    return None if stored is None else _record(Run, stored)


def own_sizes(trial: FrozenTrial, inherited: int = 0) -> list[int]:
    """Return the sizes that the trial observed itself, increasing."""
    return sorted(size for size in trial.intermediate_values if size > inherited)


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


def _observation(trial: FrozenTrial, size: int, sign: int) -> Observation:
    facts, score = trial.system_attrs.get(f"{OBSERVATION}{size}"), trial.intermediate_values[size]
    if facts is None:
        return Observation(size, sign * score)
    seconds = facts.get("seconds")
    if seconds is not None and not is_duration(seconds):
        seconds = None  # changed by hand, or by another program: unknown, as if it were not there
    seen = Observation(
        size, score, facts.get("training_score"), facts.get("n_validation"), seconds
    )
    return signed(seen, sign)


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


def is_of_generation(trial: FrozenTrial) -> bool:
    """Return whether a sampler counts the trial in a generation, as NSGA-II and CMA-ES do."""
    return any(name.endswith(GENERATION) for name in trial.system_attrs)


def noted(trial: FrozenTrial) -> dict[str, Any]:
    """Return the user attributes that are the user's own."""
    return {n: v for n, v in trial.user_attrs.items() if not n.startswith(PREFIX)}


def read_summary(trial: FrozenTrial, name: str) -> Any:
    """Return what users see of a run under `name`, None where it was not stored."""
    return trial.user_attrs.get(f"{PREFIX}{name}")


def prefixed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what users should see by the names of user attributes."""
    return {f"{PREFIX}{name}": value for name, value in summary.items()}
