"""The only access to Optuna's storage: typed reads and writes, under the keys of `records`.

Other files get the storage by `storage_of` alone, and read and write no record in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from contextlib import suppress
from typing import Any
from typing import TypeAlias

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.checks import brief
from optuna_daub.core.curve import Observation
from optuna_daub.study import host
from optuna_daub.study import records
from optuna_daub.study.learner import Learner
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run


AnyTrial: TypeAlias = optuna.Trial | FrozenTrial
"""A trial as objectives see it, or as samplers and callbacks see it."""

# Reading


def check_study(study: object) -> None:
    """Raise an error unless `study` is a study with one objective.

    Raises:
        ValueError: if it is not a study.
        NotImplementedError: if it has several objectives.
    """
    if not isinstance(study, optuna.Study):
        raise ValueError(f"`study` must be a study of Optuna, but got {brief(study)}.")
    if len(study.directions) > 1:
        raise NotImplementedError(
            "optuna_daub allocates training data by one score, so a study must have one "
            f"direction, but got {[each.name.lower() for each in study.directions]}: pass "
            "`direction=` to `optuna.create_study`. For multi-objective optimization leave out "
            "sampler, pruner and `training_sizes` of optuna_daub, and train on all the data."
        )


class Reader:
    """The trials of a study: finished ones are read once, unfinished ones at every look."""

    def __init__(self, study: optuna.Study) -> None:
        self.sign = -1 if study.direction == StudyDirection.MINIMIZE else 1
        """-1 if smaller scores are better, else 1: multiplies all scores that are read."""
        self.unfinished: dict[int, Facts] = {}
        """Running and waiting trials by number, as of the last look."""
        self.n_trials = 0
        """Number of trials read so far, and so the next trial's number."""
        self._storage, self._study_id = study._storage, study._study_id
        self.thread_local = study._thread_local
        """The study's `in_optimize_loop`: True if the calling thread is in its `optimize`."""
        self._trials: dict[int, FrozenTrial] = {}  # the unfinished ones, as Optuna has them

    def news(self, own: Container[int] = ()) -> list[Facts]:
        """Return the trials that changed since the last call. Those in `own` are always read."""
        trials, n_trials = self._changeable(own)
        # Nothing counts as read before everything is: a damaged record is an error at every call.
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

    def trial(self, number: int) -> FrozenTrial:
        """Return an unfinished trial as of the last look."""
        return self._trials[number]

    def _changeable(self, own: Container[int]) -> tuple[list[FrozenTrial], int]:
        """Return the trials that may have changed, and the number of all trials."""
        if not self.n_trials:
            # Read all at once: one by one takes ten times as long on a database.
            trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
            # Optuna's cache has a trial that another thread creates meanwhile, and may lack those
            # that other processes created just before it. The next look reads all from there on.
            together = [trial for i, trial in enumerate(trials) if trial.number == i]
            return together, len(together)
        found: list[FrozenTrial] = []
        # Trials leave the queue in order: behind one that waits, all others wait and need no read.
        # But one that failed to start returns to it while later ones run: read our own always.
        is_queue_seen = False
        for number, known in sorted(self._trials.items()):
            if known.state == TrialState.WAITING and is_queue_seen and number not in own:
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
        """Return the facts of a trial. Read it again if a score lacks its facts."""
        # A database may be written while it is read, and attributes are read before scores. The
        # writer stores facts before their score, so a second read finds what the first one missed.
        # Optuna's own `trial.report` stores no facts; `write_seconds` adds them later.
        facts, attrs = records.read(trial, self.sign), trial.system_attrs
        if facts.is_finished or facts.run is None:
            return facts
        if all(f"{records.OBSERVATION}{size}" in attrs for size in facts.observations):
            return facts
        return records.read(self._storage.get_trial(trial._trial_id), self.sign)


def _is_same(facts: Facts, known: Mapping[int, Facts]) -> bool:
    try:
        return bool(facts == known.get(facts.number))
    except Exception:  # user attributes in memory may not be comparable, such as arrays
        return False


def as_stored(study: optuna.Study, trial: AnyTrial) -> FrozenTrial:
    """Return a trial as it is stored now."""
    return study._storage.get_trial(trial._trial_id)


def is_over(study: optuna.Study, trial: AnyTrial) -> bool:
    """Return whether the storage has a trial as finished, by any worker."""
    return as_stored(study, trial).state.is_finished()


@contextmanager
def unless_over(study: optuna.Study, trial: AnyTrial) -> Iterator[None]:
    """End a block of writes to a trial early if others have finished it."""
    try:
        yield
    except host.FinishedTrialError:
        if not is_over(study, trial):  # in Optuna 4.0 other errors are of this class too
            raise


def read_mark(of: optuna.Study | FrozenTrial, name: str) -> Any:
    """Return a value that `write_mark` has stored. None without one."""
    attrs = of.system_attrs if isinstance(of, FrozenTrial) else study_attrs(of)
    return attrs.get(f"{records.PREFIX}{name}")


# Writing


def _set(study: optuna.Study, trial: AnyTrial, name: str, value: Any) -> None:
    study._storage.set_trial_system_attr(trial._trial_id, name, value)


def write_mark(of: optuna.Study | optuna.Trial, name: str, value: Any) -> None:
    """Store another layer's value in a study or a trial, under the package's prefix."""
    if isinstance(of, optuna.Trial):
        _set(of.study, of, f"{records.PREFIX}{name}", value)
    else:
        of._storage.set_study_system_attr(of._study_id, f"{records.PREFIX}{name}", value)


def _stored(run: Run) -> dict[str, Any]:
    """Return a run's record, without what its sampler fixes if that is nothing."""
    return {name: value for name, value in vars(run).items() if value or name != "fixed"}


def write_run(study: optuna.Study, trial: AnyTrial, run: Run) -> None:
    """Store the run of a trial in place of its earlier one."""
    _set(study, trial, records.RUN, _stored(run))


def write_observation(study: optuna.Study, trial: AnyTrial, seen: Observation) -> None:
    """Store the facts that `trial.report` cannot hold, if possible before it stores the score.

    In this order a worker killed in between leaves no score without its training score.
    """
    facts = {n: getattr(seen, n) for n in ("training_score", "n_validation", "seconds")}
    if seen.examples is not None:
        facts["examples"] = seen.examples
    _set(study, trial, f"{records.OBSERVATION}{seen.size}", facts)


def write_score(study: optuna.Study, trial: AnyTrial, seen: Observation) -> None:
    """Store a score that the objective returned but did not report, with its facts."""
    write_observation(study, trial, seen)
    study._storage.set_trial_intermediate_value(trial._trial_id, seen.size, seen.score)


def write_seconds(study: optuna.Study, trial: AnyTrial, size: int, since: float) -> None:
    """Store the seconds of a training that has a score, but no facts.

    Its score was stored by Optuna's own `trial.report`. `since` is the time at which the size was
    given (`time.perf_counter`).
    """
    now = as_stored(study, trial)
    if size not in now.intermediate_values or f"{records.OBSERVATION}{size}" in now.system_attrs:
        return
    timed = Observation(size, math.nan, seconds=time.perf_counter() - since)
    with unless_over(study, trial):
        write_observation(study, trial, timed)


def write_given_up(study: optuna.Study, trial: FrozenTrial) -> None:
    """Store that other workers have taken over a run's learner, and its parameters so far.

    The run's own worker may be alive, and ends the trial if it returns. Parameters that it
    suggests until then are not the learner's.
    """
    _set(study, trial, records.GIVEN_UP, [*trial.params])


def write_no_sizes(study: optuna.Study, trial: AnyTrial, steps: Iterable[int]) -> None:
    """Store the steps of a trial that are not training sizes: their scores do not count."""
    _set(study, trial, records.NO_SIZES, sorted(steps))


def write_failure(study: optuna.Study, trial: AnyTrial, failure: Failure) -> None:
    """Store the error by which a run ended."""
    _set(study, trial, records.FAILED, {**vars(failure)})


def write_exhaustion(study: optuna.Study, trial: AnyTrial) -> None:
    """Store that the base sampler has nothing left to propose after this trial."""
    _set(study, trial, records.EXHAUSTED, True)


def write_inheritance(
    study: optuna.Study, trial: FrozenTrial, learner: Learner, sign: int
) -> None:
    """Copy scores, user attributes and constraints of earlier runs to a resumed learner's trial.

    So the trial's plot is whole, the objective reads the attributes that it has set in an earlier
    run, and the study's best trial has the learner's constraints. The objective sets its own
    constraints again.
    """
    storage, trial_id, constraints = study._storage, trial._trial_id, learner.constraints
    for seen in learner.curve.observations:
        if seen.size not in trial.intermediate_values:
            storage.set_trial_intermediate_value(trial_id, seen.size, sign * seen.score)
    for name, value in learner.user_attrs.items():
        if name not in trial.user_attrs:
            storage.set_trial_user_attr(trial_id, name, value)
            trial.user_attrs[name] = value  # Optuna's running trial reads this copy
    if records.CONSTRAINTS in constraints:
        write_constraints(study, trial, {records.CONSTRAINTS: constraints[records.CONSTRAINTS]})


def write_constraints(
    study: optuna.Study, trial: FrozenTrial, constraints: Mapping[str, Any]
) -> None:
    """Copy a learner's constraints to a run, except those measured by the run."""
    for name, value in constraints.items():
        if name not in trial.system_attrs:
            _set(study, trial, name, value)


def write_summary(study: optuna.Study, trial: AnyTrial, summary: Mapping[str, Any]) -> None:
    """Store a run's summary for users, in user attributes with the prefix."""
    for name, value in records.prefixed(summary).items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)


def enqueue_anew(study: optuna.Study, trial: FrozenTrial) -> None:
    """Enqueue the parameters of an abandoned trial again."""
    attrs = {records.FIXED: records.enqueued_params(trial), records.REPLACES: trial.number}
    template = optuna.trial.create_trial(
        state=TrialState.WAITING, system_attrs=attrs, user_attrs=trial.user_attrs
    )
    study.add_trial(template)


def stand_in(study: optuna.Study, trial: AnyTrial, run: Run) -> FrozenTrial:
    """Create a running trial with this run in place of another one.

    It is made in one step. `trial` becomes it, so Optuna stores the end there. It keeps the
    parameters, since callbacks may ask for them.
    """
    template = optuna.trial.create_trial(
        state=TrialState.RUNNING,
        params=trial.params,
        distributions=trial.distributions,
        system_attrs={records.RUN: _stored(run)},
    )
    storage = study._storage
    trial._trial_id = storage.create_new_trial(study._study_id, template_trial=template)
    created = storage.get_trial(trial._trial_id)
    if isinstance(trial, optuna.Trial):
        trial._cached_frozen_trial = created
    return created


def end(study: optuna.Study, trial: AnyTrial, state: TrialState = TrialState.FAIL) -> None:
    """Store the state of a trial that ends, or goes back to the queue."""
    study._storage.set_trial_state_values(trial._trial_id, state)


# The storage itself


def storage_of(study: optuna.Study) -> BaseStorage:
    """Return the storage, for code that passes it on or writes in bulk."""
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
    """Return whether the storage has heartbeats, so other workers may fail this one's trial."""
    return optuna.storages._heartbeat.is_heartbeat_enabled(study._storage)


def is_failed(study: optuna.Study, trial: AnyTrial) -> bool:
    """Return whether other workers took this one for dead and failed its trial."""
    return has_heartbeat(study) and is_over(study, trial)


def record_heartbeat(study: optuna.Study, trial: FrozenTrial) -> None:
    """Store a trial's first heartbeat, if the storage has heartbeats.

    A trial of ask-and-tell has none, as in Optuna: nothing would keep it going until it is told.
    """
    # Optuna stores it only when the objective starts, and a worker that died before that would
    # hold its learner for ever.
    if has_heartbeat(study) and host.is_optimizing(study):
        study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]


def beating(
    study: optuna.Study, trial: FrozenTrial
) -> optuna.storages._heartbeat.BaseHeartbeatThread:
    """Return a context that keeps a trial's heartbeat going. A base sampler may take minutes."""
    if not host.is_optimizing(study):
        return optuna.storages._heartbeat.NullHeartbeatThread()
    return optuna.storages._heartbeat.get_heartbeat_thread(trial._trial_id, study._storage)
