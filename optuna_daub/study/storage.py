"""Keys and records of a study's storage, each writer beside its reader.

Only facts are stored (which learner, which size, which score), as JSON in the trials' system
attributes; scores themselves are Optuna's intermediate values, with the training size as step.
Unknown fields of a record are ignored and missing ones refused, so that workers of two versions
can share a study.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import MISSING
from dataclasses import dataclass
from dataclasses import fields
from itertools import takewhile
from typing import Any
from typing import TypeVar

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.study import host


_PREFIX = "daub:"
_RUN = _PREFIX + "run"
_OBSERVATION = _PREFIX + "observation:"
_FOLDS = _PREFIX + "folds:"
_FAILED = _PREFIX + "failed"
_EXHAUSTED = _PREFIX + "exhausted"
_SETTINGS = _PREFIX + "settings"
_SEARCH = _PREFIX + "search"
_DRAWN = _PREFIX + "drawing"
_LEARNERS_OF = _PREFIX + "learners_of"
_REPLACES = _PREFIX + "replaces"
_GIVEN_UP = _PREFIX + "given_up"
_FIXED = "fixed_params"
"""Optuna's own: what `study.enqueue_trial` was given."""


_CONSTRAINTS = "constraints"
"""Optuna's own: the values of a trial's constraints that its sampler has measured; with a colon
and a name, one that the objective has (`trial.set_constraint`)."""

GRID_POINT = "grid_id"
"""Of a trial: where GridSampler keeps which point of its grid it is."""

GENERATION = "generation"
"""Of a trial: how the name ends under which samplers keep which generation it belongs to."""

METRIC_NAMES = "study:metric_names"
"""Optuna's own: what a study's scores are called."""


UNKNOWN = -1
"""The number of the trial, in a record that does not say."""

_UNSAID = "settings that do not say it"
"""What a study was begun with, in a record that does not say."""


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
    """For a newcomer: whether it goes on as the only one with its parameters. Written where
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


_Record = TypeVar("_Record", Run, Failure)


_KNOWN = {kind: frozenset(field.name for field in fields(kind)) for kind in (Run, Failure)}
_REQUIRED = {
    kind: [field.name for field in fields(kind) if field.default is MISSING]
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


def write_run(study: optuna.Study, trial_id: int, run: Run) -> None:
    """Store what a trial was assigned, in place of what it was assigned before."""
    study._storage.set_trial_system_attr(trial_id, _RUN, {**vars(run)})


def create_idle(study: optuna.Study, run: Run, like: optuna.Trial | FrozenTrial) -> int:
    """Create a running trial that was assigned nothing, in one step, and return its id.

    It has the parameters of another, which callbacks may ask for.
    """
    template = optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=like.params,
        distributions=like.distributions,
        system_attrs={_RUN: {**vars(run)}},
    )
    return study._storage.create_new_trial(study._study_id, template_trial=template)


def read_run(attrs: Mapping[str, Any]) -> Run | None:
    """Return what a trial with these system attributes was assigned, None if nothing yet."""
    stored = attrs.get(_RUN)
    return None if stored is None else _record(Run, stored)


def is_enqueued(trial: FrozenTrial) -> bool:
    """Return whether the user asked for the trial, and it is no retry of one assigned before."""
    return _FIXED in trial.system_attrs and _RUN not in trial.system_attrs


def enqueued_params(trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters that the user enqueued the trial with, empty if it was not."""
    return {**trial.system_attrs.get(_FIXED, {})}


def enqueue_anew(study: optuna.Study, trial: FrozenTrial) -> None:
    """Enqueue the parameters of a trial that was taken from the queue and left, in one step."""
    attrs = {_FIXED: enqueued_params(trial), _REPLACES: trial.number}
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.WAITING, system_attrs=attrs, user_attrs=trial.user_attrs
        )
    )


def marks_of_others(trial: FrozenTrial) -> dict[str, Any]:
    """Return the attributes that another sampler has left on the trial, as Grid does."""
    attrs = trial.system_attrs.items()
    return {name: value for name, value in attrs if not name.startswith((_PREFIX, _FIXED))}


def is_of_generation(trial: FrozenTrial) -> bool:
    """Return whether a sampler counts the trial in a generation, as NSGA-II and CMA-ES do."""
    return any(name.endswith(GENERATION) for name in trial.system_attrs)


def violation(constraints: Mapping[str, Any]) -> str:
    """Return which constraint is violated, by Optuna's rule; empty where none is.

    >>> violation({"constraints": [-1.0, 0.5]}), violation({"constraints:seconds": 0.0})
    ('infeasible: constraint 1 is 0.5, above 0', '')
    """
    for name, stored in constraints.items():
        values = {name.partition(":")[2]: stored}
        if name == _CONSTRAINTS:
            values = {str(place): value for place, value in enumerate(stored or ())}
        for which, value in values.items():
            if value > 0:
                return f"infeasible: constraint {which} is {value:.6g}, above 0"
    return ""


def write_observation(study: optuna.Study, trial_id: int, seen: Observation) -> None:
    """Store what `trial.report` cannot hold; to be called before the score is reported if it can.

    In this order a worker killed in between leaves no score that lacks its training score.
    """
    facts = {
        "training_score": seen.training_score,
        "n_validation": seen.n_validation,
        "seconds": seen.seconds,
    }
    study._storage.set_trial_system_attr(trial_id, f"{_OBSERVATION}{seen.size}", facts)


def write_seconds(study: optuna.Study, trial: FrozenTrial, size: int, since: float) -> None:
    """Store how long a size took, where Optuna's own `trial.report` has stored its score.

    Nothing is stored where `report` has done so, or there is no score.

    Args:
        study: the study.
        trial: the trial as it is stored.
        size: the training size that was handed out.
        since: when it was (`time.perf_counter`).
    """
    if size not in trial.intermediate_values or f"{_OBSERVATION}{size}" in trial.system_attrs:
        return
    timed = Observation(size, math.nan, seconds=time.perf_counter() - since)
    try:
        write_observation(study, trial._trial_id, timed)
    except host.FinishedTrialError:  # of a run that others have taken over
        if not study._storage.get_trial(trial._trial_id).state.is_finished():
            raise


def read_observation(trial: FrozenTrial, size: int) -> Observation:
    """Return what the trial observed at `size`."""
    facts = trial.system_attrs.get(f"{_OBSERVATION}{size}", {})
    return Observation(
        size,
        trial.intermediate_values[size],
        training_score=facts.get("training_score"),
        n_validation=facts.get("n_validation"),
        seconds=facts.get("seconds"),
    )


def write_folds(
    study: optuna.Study, trial_id: int, size: int, folds: Mapping[str, Sequence[Any]]
) -> None:
    """Store what was measured at `size` in each fold, by name; before the score is reported.

    A value is a number, or a mapping from the names of scores to numbers.
    """
    study._storage.set_trial_system_attr(trial_id, f"{_FOLDS}{size}", {**folds})


def read_folds(trial: FrozenTrial, size: int) -> Mapping[str, Sequence[Any]] | None:
    """Return what the trial measured at `size` in each fold, None where it was not stored."""
    folds: Mapping[str, Sequence[Any]] | None = trial.system_attrs.get(f"{_FOLDS}{size}")
    return folds


@dataclass(frozen=True)
class Facts:
    """All that a trial says of its learner."""

    run: Run | None
    """What it was assigned, None if nothing yet."""
    observations: Mapping[int, Observation]
    """What it observed itself, by size, increasing, as the user reported it."""
    is_lost: bool
    """Whether it reported the full size and did not end COMPLETE: then no trial holds the
    full-data result, and the learner has to be trained once more; not if its score was no number,
    for which it was dropped."""
    failure: Failure | None
    """How it ended by an error of its own, None if it did not."""
    is_given_up: bool
    """Whether others have taken its learner from it, while its worker may still be alive."""
    too_late: frozenset[str]
    """The parameters that it suggested after that, which may not be the learner's."""
    is_enqueued: bool
    """Whether the user asked for it and it was not assigned yet."""
    is_exhausted: bool
    """Whether the base sampler had nothing left to propose after it."""
    replaces: int | None
    """The number of the abandoned trial in whose place it was enqueued."""
    user_attrs: Mapping[str, Any]
    """What the user has noted on it."""
    constraints: Mapping[str, Any]
    """What Optuna stores of its constraints, by attribute; empty where none were measured."""


def read(storage: BaseStorage, trial: FrozenTrial) -> tuple[FrozenTrial, Facts]:
    """Return a trial and its facts, read once more where one of its scores lacks its own.

    A database may be read while it is written to, attributes before scores. Facts are written
    before their score, so that a second look sees those that the first one missed. The seconds of
    a score that Optuna's own `trial.report` has stored come later (`State._fold_run`).
    """
    run = read_run(trial.system_attrs)
    inherited, full_size = (0, 0) if run is None else (run.inherited, run.full_size)
    own = own_sizes(trial, inherited)
    is_over = trial.state.is_finished()
    is_torn = any(f"{_OBSERVATION}{size}" not in trial.system_attrs for size in own)
    if is_torn and run is not None and not is_over:
        trial = storage.get_trial(trial._trial_id)
        own, is_over = own_sizes(trial, inherited), trial.state.is_finished()
    attrs = trial.system_attrs
    seen = {size: read_observation(trial, size) for size in own}
    failed, replaces = attrs.get(_FAILED), attrs.get(_REPLACES)
    last = seen.get(full_size)
    is_given_up = _GIVEN_UP in attrs
    is_lost = (is_over or is_given_up) and trial.state != TrialState.COMPLETE
    return trial, Facts(
        run=run,
        observations=seen,
        is_lost=is_lost and last is not None and is_finite(last.score),
        failure=None if failed is None else _record(Failure, failed),
        is_given_up=is_given_up,
        too_late=frozenset(trial.params).difference(attrs.get(_GIVEN_UP, trial.params)),
        is_enqueued=_FIXED in attrs and run is None,
        is_exhausted=bool(attrs.get(_EXHAUSTED, False)),
        replaces=None if replaces is None else int(replaces),
        user_attrs=noted(trial),
        constraints={n: v for n, v in attrs.items() if n.partition(":")[0] == _CONSTRAINTS},
    )


def own_sizes(trial: FrozenTrial, inherited: int = 0) -> list[int]:
    """Return the sizes that the trial observed itself, increasing."""
    return sorted(size for size in trial.intermediate_values if size > inherited)


def write_given_up(study: optuna.Study, trial: FrozenTrial) -> None:
    """Store that a run has lost its learner to others, while its worker may still be alive.

    The trial goes on as it is: a worker that comes back ends it itself. What it suggests until it
    notices is no parameter of the learner, so that those known by now are named.
    """
    study._storage.set_trial_system_attr(trial._trial_id, _GIVEN_UP, [*trial.params])


def is_given_up(trial: FrozenTrial) -> bool:
    """Return whether the run of the trial has lost its learner to others."""
    return _GIVEN_UP in trial.system_attrs


def write_failure(study: optuna.Study, trial_id: int, failure: Failure) -> None:
    """Store that the run ended by an error of its own."""
    study._storage.set_trial_system_attr(trial_id, _FAILED, {**vars(failure)})


def write_exhaustion(study: optuna.Study, trial_id: int) -> None:
    """Store that the base sampler has no learner left to propose after this trial."""
    study._storage.set_trial_system_attr(trial_id, _EXHAUSTED, True)


def check_settings(study: optuna.Study, sizes: Sequence[int], *, is_begun: bool) -> None:
    """Store what a study is begun with, or compare with what it was begun with.

    As long as nothing was observed (`is_begun` is False) the settings may still be mended.

    Raises:
        ValueError: where the training sizes or the direction differ.
    """
    settings: dict[str, Any] = {"sizes": [*sizes], "direction": study.direction.name.lower()}
    begun = study._storage.get_study_system_attrs(study._study_id).get(_SETTINGS)
    if begun is None or not is_begun:
        study._storage.set_study_system_attr(study._study_id, _SETTINGS, settings)
        return
    for name, value in settings.items():
        if (before := begun.get(name, _UNSAID)) != value:
            raise ValueError(
                f"A study must go on with the {name} it was begun with: study "
                f"'{study.study_name}' was begun with {before}, but now has {value}. Use "
                "the earlier settings, or begin a study of another name."
            )


def check_search(study: optuna.Study, begun_with: Mapping[str, str]) -> None:
    """Store what a search is begun with, or compare with what its study was begun with.

    As long as nothing was observed it may still be mended.

    Args:
        study: new, or continued.
        begun_with: what searches of one study must have in common, by name, in words.

    Raises:
        ValueError: where something differs, or the study minimizes.
    """
    if study.direction != StudyDirection.MAXIMIZE:
        raise ValueError(
            f"A search maximizes its score, but study '{study.study_name}' minimizes. Take "
            "another `study_name`."
        )
    begun = study._storage.get_study_system_attrs(study._study_id).get(_SEARCH)
    trials = study.get_trials(deepcopy=False)
    if begun is None or not any(trial.intermediate_values for trial in trials):
        study._storage.set_study_system_attr(study._study_id, _SEARCH, {**begun_with})
        return
    for name, value in begun_with.items():
        before = begun.get(name, _UNSAID)
        if before != value:
            # Of long texts the part from which they differ, with what stands before it.
            pairs = zip(before, value, strict=False)
            start = max(len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) - 80, 0)
            lead = "..." if start else ""
            then, now = (
                text if len(text) <= 200 else f"{lead}{text[start : start + 200]}..."
                for text in (before, value)
            )
            raise ValueError(
                f"A search must go on with the {name} it was begun with: study "
                f"'{study.study_name}' was begun with {then}, but now has {now}. Use "
                "what it was begun with, or another `study_name`."
            )


@dataclass(frozen=True)
class Drawing:
    """The last drawing of a study's pictures."""

    mark: str
    """Tells it from all others."""
    pause: float
    """Seconds after which the next one is due."""


def write_drawing(study: optuna.Study, pause: float) -> Drawing:
    """Store that the study is being drawn, and for how long that is enough."""
    drawing = Drawing(uuid.uuid4().hex, pause)
    study._storage.set_study_system_attr(study._study_id, _DRAWN, {**vars(drawing)})
    return drawing


def read_drawing(study: optuna.Study) -> Drawing | None:
    """Return the last drawing of the study, None before the first."""
    stored = study._storage.get_study_system_attrs(study._study_id).get(_DRAWN)
    return None if stored is None else Drawing(str(stored["mark"]), float(stored["pause"]))


def companion_mark(study: optuna.Study) -> dict[str, str]:
    """Return the attribute by which the study of a study's learners is known as ours."""
    return {_LEARNERS_OF: study.study_name}


def write_inheritance(
    study: optuna.Study,
    trial: FrozenTrial,
    scores: Mapping[int, float],
    user_attrs: Mapping[str, Any],
    constraints: Mapping[str, Any],
) -> None:
    """Give a resumed learner's new trial what its earlier runs have left.

    So its plot is whole, and the study's best trial is as feasible as the learner. Constraints
    that the objective sets are left to it, which sets them anew (see `write_constraints`).
    """
    storage, trial_id = study._storage, trial._trial_id
    for size, score in scores.items():
        if size not in trial.intermediate_values:
            storage.set_trial_intermediate_value(trial_id, size, score)
    for name, value in user_attrs.items():
        if name not in trial.user_attrs:
            storage.set_trial_user_attr(trial_id, name, value)
    if _CONSTRAINTS in constraints:
        write_constraints(study, trial, {_CONSTRAINTS: constraints[_CONSTRAINTS]})


def write_constraints(
    study: optuna.Study, trial: FrozenTrial, constraints: Mapping[str, Any]
) -> None:
    """Give a run those of its learner's constraints that it has not measured itself."""
    for name, value in constraints.items():
        if name not in trial.system_attrs:
            study._storage.set_trial_system_attr(trial._trial_id, name, value)


def write_summary(study: optuna.Study, trial_id: int, summary: Mapping[str, Any]) -> None:
    """Store what users should see of a run, as user attributes that bear the package's prefix."""
    for name, value in prefixed(summary).items():
        study._storage.set_trial_user_attr(trial_id, name, value)


def prefixed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what users should see by the names of user attributes."""
    return {f"{_PREFIX}{name}": value for name, value in summary.items()}


def noted(trial: FrozenTrial) -> dict[str, Any]:
    """Return the user attributes that are the user's own."""
    return {n: v for n, v in trial.user_attrs.items() if not n.startswith(_PREFIX)}


def read_summary(trial: FrozenTrial, name: str) -> Any:
    """Return what users see of a run under `name`, None where it was not stored."""
    return trial.user_attrs.get(f"{_PREFIX}{name}")
