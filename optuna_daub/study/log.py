"""The one door to Optuna's storage: typed reads, typed writes, under the keys of `records`.

No other file of the package names the storage or its ids.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import suppress
from typing import Any
from typing import TypeAlias

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import Observation
from optuna_daub.study import host
from optuna_daub.study import records
from optuna_daub.study.learner import Learner
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run


AnyTrial: TypeAlias = optuna.Trial | FrozenTrial
"""A trial as the objective has it, or as samplers and callbacks have it."""

# Reading


def check_study(study: object) -> None:
    """Raise if an argument `study` is none, or has several objectives, as `Trial.report` does."""
    if not isinstance(study, optuna.Study):
        raise ValueError(f"`study` must be a study of Optuna, but got {study!r}.")
    if len(study.directions) > 1:
        raise NotImplementedError(
            "Trial.report is not supported for multi-objective optimization."
        )


class Reader:
    """The trials of a study, read one by one as they come and change.

    A finished trial never changes, so it is read once. Unfinished ones are read at every look.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.sign = -1 if study.direction == StudyDirection.MINIMIZE else 1
        """-1 if smaller scores are better: the one place that turns them on the way in."""
        self.unfinished: dict[int, Facts] = {}
        """Running and waiting trials by number, as they were read last."""
        self.n_trials = 0
        """Number of trials read so far, which is the number of the next one."""
        self._storage, self._study_id = study._storage, study._study_id
        self.thread_local = study._thread_local
        """The study's `in_optimize_loop`: whether the calling thread is in its `optimize`."""
        self._trials: dict[int, FrozenTrial] = {}  # the unfinished ones, as Optuna has them

    def news(self) -> list[Facts]:
        """Read what has changed since the last call.

        A damaged record raises, each time: nothing counts as read before all is.
        """
        trials, n_trials = self._changeable()
        found = [(trial, self._read(trial)) for trial in trials]
        news = [facts for _, facts in found if not _is_same(facts, self.unfinished)]
        for trial, facts in found:
            if facts.is_finished:
                self.unfinished.pop(facts.number, None)
                self._trials.pop(facts.number, None)
            else:
                self.unfinished[facts.number], self._trials[facts.number] = facts, trial
        self.n_trials = n_trials
        return news

    def now(self, number: int) -> Facts:
        """Return what an unfinished trial says at this moment; nothing counts as read by that."""
        return records.read(self._storage.get_trial(self._trials[number]._trial_id), self.sign)

    def trial(self, number: int) -> FrozenTrial:
        """Return an unfinished trial as it was read last."""
        return self._trials[number]

    def _changeable(self) -> tuple[list[FrozenTrial], int]:
        """Return the trials that may have changed, and how many there are."""
        if not self.n_trials:
            # Read all at once: one by one takes ten times as long on a database.
            trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
            return trials, len(trials)
        found: list[FrozenTrial] = []
        is_queue_seen = False  # trials wait in order: behind one that waits, the others do too
        for _, known in sorted(self._trials.items()):
            if known.state == TrialState.WAITING and is_queue_seen:
                continue
            trial = self._storage.get_trial(known._trial_id)
            is_queue_seen = is_queue_seen or trial.state == TrialState.WAITING
            if trial is not known:  # some storages hand out the same object until it changes
                found.append(trial)
        find, number = self._storage.get_trial_id_from_study_id_trial_number, self.n_trials
        with suppress(KeyError):  # there is no such number yet
            while True:
                found.append(self._storage.get_trial(find(self._study_id, number)))
                number += 1
        return found, number

    def _read(self, trial: FrozenTrial) -> Facts:
        """Return what a trial says, read once more if one of its scores lacks its facts.

        A database may be read while it is written to, attributes before scores. Facts are written
        before their score, so that a second look sees those that the first one missed. Optuna's
        own `trial.report` stores no facts, and `write_seconds` adds them later.
        """
        facts, attrs = records.read(trial, self.sign), trial.system_attrs
        if facts.is_finished or facts.run is None:
            return facts
        if all(f"{records.OBSERVATION}{size}" in attrs for size in facts.observations):
            return facts
        return records.read(self._storage.get_trial(trial._trial_id), self.sign)


def _is_same(facts: Facts, known: Mapping[int, Facts]) -> bool:
    try:
        return bool(facts == known.get(facts.number))
    except Exception:  # what users note in memory may refuse to be compared, as arrays do
        return False


def as_stored(study: optuna.Study, trial: AnyTrial) -> FrozenTrial:
    """Return a trial as the storage has it at this moment."""
    return study._storage.get_trial(trial._trial_id)


def is_over(study: optuna.Study, trial: AnyTrial) -> bool:
    """Return whether the storage has a trial as finished, whoever has seen to it."""
    return as_stored(study, trial).state.is_finished()


@contextmanager
def unless_over(study: optuna.Study, trial: AnyTrial) -> Iterator[None]:
    """Break off what writes to a trial once others have finished it, as they fail one."""
    try:
        yield
    except host.FinishedTrialError:
        if not is_over(study, trial):  # in Optuna 4.0 other errors are of this class too
            raise


def read_mark(of: optuna.Study | FrozenTrial, name: str) -> Any:
    """Return what another layer has stored on a study or a trial, None if nothing."""
    if isinstance(of, FrozenTrial):
        return of.system_attrs.get(f"{records.PREFIX}{name}")
    return study_attrs(of).get(f"{records.PREFIX}{name}")


# Writing


def _set(study: optuna.Study, trial: AnyTrial, name: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, name, value)


def write_mark(of: optuna.Study | optuna.Trial, name: str, value: Any) -> None:
    """Store what another layer needs to know of a study or a trial, under the package's prefix."""
    if isinstance(of, optuna.Trial):
        _set(of.study, of, f"{records.PREFIX}{name}", value)
    else:
        of._storage.set_study_system_attr(of._study_id, f"{records.PREFIX}{name}", value)


def write_run(study: optuna.Study, trial: AnyTrial, run: Run) -> None:
    """Store what a trial was assigned, in place of what it was assigned before."""
    _set(study, trial, records.RUN, {**vars(run)})


def write_observation(study: optuna.Study, trial: AnyTrial, seen: Observation) -> None:
    """Store what `trial.report` cannot hold; to be called before the score is reported if it can.

    In this order a worker killed in between leaves no score that lacks its training score.
    """
    facts = {
        "training_score": seen.training_score,
        "n_validation": seen.n_validation,
        "seconds": seen.seconds,
    }
    _set(study, trial, f"{records.OBSERVATION}{seen.size}", facts)


def write_score(study: optuna.Study, trial: AnyTrial, seen: Observation) -> None:
    """Store a score that its objective has returned and not reported, with its facts."""
    write_observation(study, trial, seen)
    study._storage.set_trial_intermediate_value(trial._trial_id, seen.size, seen.score)


def write_seconds(study: optuna.Study, trial: AnyTrial, size: int, since: float) -> None:
    """Store how long a size took, if Optuna's own `trial.report` has stored its score.

    Nothing is stored if `report` has done so, or there is no score. The size was handed out at
    `since` (`time.perf_counter`).
    """
    now = as_stored(study, trial)
    if size not in now.intermediate_values or f"{records.OBSERVATION}{size}" in now.system_attrs:
        return
    timed = Observation(size, math.nan, seconds=time.perf_counter() - since)
    with unless_over(study, trial):
        write_observation(study, trial, timed)


def write_given_up(study: optuna.Study, trial: FrozenTrial) -> None:
    """Store that a run has lost its learner to others, while its worker may still be alive.

    The trial goes on as it is: a worker that comes back ends it itself. What it suggests until it
    notices is no parameter of the learner, so that those known by now are named.
    """
    _set(study, trial, records.GIVEN_UP, [*trial.params])


def write_failure(study: optuna.Study, trial: AnyTrial, failure: Failure) -> None:
    """Store that the run ended by an error of its own."""
    _set(study, trial, records.FAILED, {**vars(failure)})


def write_exhaustion(study: optuna.Study, trial: AnyTrial) -> None:
    """Store that the base sampler has no learner left to propose after this trial."""
    _set(study, trial, records.EXHAUSTED, True)


def write_inheritance(
    study: optuna.Study, trial: FrozenTrial, learner: Learner, sign: int
) -> None:
    """Give a resumed learner's new trial what its earlier runs have left.

    So its plot is whole, and the study's best trial is as feasible as the learner. Constraints
    that the objective sets are left to it, which sets them anew (see `write_constraints`).
    """
    storage, trial_id, constraints = study._storage, trial._trial_id, learner.constraints
    for seen in learner.curve.observations:
        if seen.size not in trial.intermediate_values:
            storage.set_trial_intermediate_value(trial_id, seen.size, sign * seen.score)
    for name, value in learner.user_attrs.items():
        if name not in trial.user_attrs:
            storage.set_trial_user_attr(trial_id, name, value)
    if records.CONSTRAINTS in constraints:
        write_constraints(study, trial, {records.CONSTRAINTS: constraints[records.CONSTRAINTS]})


def write_constraints(
    study: optuna.Study, trial: FrozenTrial, constraints: Mapping[str, Any]
) -> None:
    """Give a run those of its learner's constraints that it has not measured itself."""
    for name, value in constraints.items():
        if name not in trial.system_attrs:
            _set(study, trial, name, value)


def write_summary(study: optuna.Study, trial: AnyTrial, summary: Mapping[str, Any]) -> None:
    """Store what users should see of a run, as user attributes that bear the package's prefix."""
    for name, value in records.prefixed(summary).items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)


def enqueue_anew(study: optuna.Study, trial: FrozenTrial) -> None:
    """Enqueue the parameters of a trial that was taken from the queue and left, in one step."""
    attrs = {records.FIXED: records.enqueued_params(trial), records.REPLACES: trial.number}
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.WAITING, system_attrs=attrs, user_attrs=trial.user_attrs
        )
    )


def stand_in(study: optuna.Study, trial: AnyTrial, run: Run) -> FrozenTrial:
    """Let a trial go on as a new, running one that bears `run`, created in one step.

    It has the parameters of the other, which callbacks may ask for.
    """
    template = optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=trial.params,
        distributions=trial.distributions,
        system_attrs={records.RUN: {**vars(run)}},
    )
    storage = study._storage
    trial._trial_id = storage.create_new_trial(study._study_id, template_trial=template)
    created = storage.get_trial(trial._trial_id)
    if isinstance(trial, optuna.Trial):
        trial._cached_frozen_trial = created
    return created


def end(study: optuna.Study, trial: AnyTrial, state: TrialState = TrialState.FAIL) -> None:
    """Store the state of a trial that ends, or waits again."""
    study._storage.set_trial_state_values(trial._trial_id, state)


def check_settings(study: optuna.Study, sizes: Sequence[int], *, is_begun: bool) -> None:
    """Store what a study is started with, or compare with what it was started with.

    As long as nothing was observed (`is_begun` is False) the settings may still be mended.
    """
    settings: dict[str, Any] = {"sizes": [*sizes], "direction": study.direction.name.lower()}
    begun = study_attrs(study).get(records.SETTINGS)
    if begun is None or not is_begun:
        study._storage.set_study_system_attr(study._study_id, records.SETTINGS, settings)
        return
    for name, value in settings.items():
        if (before := begun.get(name, "settings that do not say it")) != value:
            raise ValueError(
                f"A study must go on with the {name} it was begun with: study "
                f"'{study.study_name}' was begun with {before}, but now has {value}. Use "
                "the earlier settings, or begin a study of another name."
            )


# The storage itself


def storage_of(study: optuna.Study) -> BaseStorage:
    """Return the storage, for those who show it to others or write to it in bulk."""
    return study._storage


def study_id(study: optuna.Study) -> int:
    """Return the id of a study in its storage."""
    return study._study_id


def trial_id(trial: AnyTrial) -> int:
    """Return the id of a trial in its storage."""
    return trial._trial_id


def study_attrs(study: optuna.Study) -> dict[str, Any]:
    """Return the system attributes of a study."""
    return study._storage.get_study_system_attrs(study._study_id)


def has_heartbeat(study: optuna.Study) -> bool:
    """Return whether others may fail a trial of a worker that is alive: only by heartbeat."""
    return optuna.storages._heartbeat.is_heartbeat_enabled(study._storage)


def is_failed(study: optuna.Study, trial: AnyTrial) -> bool:
    """Return whether others have failed the trial of this worker, which they took for dead."""
    return has_heartbeat(study) and is_over(study, trial)


def record_heartbeat(study: optuna.Study, trial: FrozenTrial) -> None:
    """Give a trial its first heartbeat, if the storage has any.

    Optuna gives it only once the objective runs: a worker that died before would hold its learner
    for ever.
    """
    if has_heartbeat(study):
        study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]


def beating(
    study: optuna.Study, trial: FrozenTrial
) -> optuna.storages._heartbeat.BaseHeartbeatThread:
    """Return a context in which a trial's heart beats: a base sampler may take minutes."""
    return optuna.storages._heartbeat.get_heartbeat_thread(trial._trial_id, study._storage)
