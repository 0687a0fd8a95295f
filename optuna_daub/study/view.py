"""The study as a base sampler sees it: one row per learner."""

from __future__ import annotations

import copy
from collections.abc import Container
from collections.abc import Iterable
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study import keys


class OneRowPerLearner(optuna.Study):
    """A study in which all runs of a learner are one trial, and which a sampler cannot stop.

    The row of a learner is its first run, which is the one the base sampler proposed, with the
    scores and the state of all its runs. Idle trials are hidden.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.__dict__.update(study.__dict__)
        self._storage = _RowStorage(study._storage)  # type: ignore[assignment]
        self.is_stopped = False
        self._rows: list[FrozenTrial] | None = None

    def stop(self) -> None:
        """Note that the sampler has nothing left to propose."""
        self.is_stopped = True

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        if self._rows is None or not use_cache:
            self._rows = self._storage.get_all_trials(self._study_id, deepcopy=False)
        rows = [row for row in self._rows if states is None or row.state in states]
        return copy.deepcopy(rows) if deepcopy else rows


class _RowStorage:
    """The study's storage for samplers that read trials past their study (Grid, BruteForce)."""

    def __init__(self, storage: BaseStorage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        trials = self._storage.get_all_trials(study_id, deepcopy=False)
        rows = one_row_per_learner(trials)
        rows = [row for row in rows if states is None or row.state in states]
        return copy.deepcopy(rows) if deepcopy else rows


def one_row_per_learner(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials with all runs of each learner merged into its first."""
    rows: dict[int, FrozenTrial] = {}
    for trial in trials:
        run = keys.read_run(trial.system_attrs)
        if run is None or trial.state == TrialState.WAITING:
            rows[trial.number] = trial
        elif run.learner is not None:
            first = rows.get(run.learner)
            rows[run.learner] = trial if first is None else _merged(first, trial)
    return [row for row in rows.values() if not _is_empty(row)]


def _is_empty(row: FrozenTrial) -> bool:
    """Return whether a run died before any sampler had its say.

    BruteForce would take such a row for the whole of its space.
    """
    is_lost = row.state == TrialState.FAIL and not row.params
    return is_lost and not keys.is_marked_by_others(row)


def _merged(row: FrozenTrial, run: FrozenTrial) -> FrozenTrial:
    """Return the row of a learner with what a later run of it brought."""
    merged = copy.copy(run if _is_empty(row) else row)
    merged.number, merged._trial_id = row.number, row._trial_id
    if not run.params.keys() <= row.params.keys():  # the first run died before it suggested all
        merged.params = {**row.params, **run.params}
        merged.distributions = {**row.distributions, **run.distributions}
    merged.intermediate_values = {**row.intermediate_values, **run.intermediate_values}
    if run.state in (TrialState.COMPLETE, TrialState.PRUNED) and run.values is not None:
        merged.state = run.state
        merged.values = run.values
        merged.datetime_complete = run.datetime_complete
    return merged
