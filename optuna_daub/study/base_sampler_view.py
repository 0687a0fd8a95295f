"""The study as a base sampler sees it: one row per learner."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.known import Known
from optuna_daub.study.worker import Worker


ENOUGH = 20
"""Learners that must have reached a size before the base sampler learns from that size on only.
Small samples prefer other parameters than all the data do: on the surrogates of `benchmarks`, the
ten best learners at N / 27 ranked 40th to 105th of 120 at N, and TPE that saw all rows went on
proposing their like. With 20, twice what TPE begins with, it was as good early and better late."""


class BaseSamplerStudy(optuna.Study):
    """A study in which all runs of a learner are one trial, and which a sampler cannot stop.

    The row of a learner is its first run, which is the one the base sampler proposed: COMPLETE
    as soon as anything was observed, with what the policy says it is worth (`Policy.worth`);
    RUNNING before. Once enough learners
    have reached a larger size, the others are shown as RUNNING again: their scores mislead, but a
    sampler should know where they are. Were they hidden, TPE and GP would propose the
    same corner of a space over and over, as they never see that it was tried. Members of a
    generation keep a value, the worst of all where they failed since, as samplers that breed go on
    comparing them. Idle trials are hidden, but for newcomers that the policy declined: RUNNING.
    """

    def __init__(self, study: optuna.Study, worker: Worker, policy: Policy) -> None:
        """Show `study`, as the worker sees it."""
        self.worker = worker
        """What this process knows; `worker.pool(policy)` is the pool that rows are forecast in."""
        self.policy = policy
        """The policy that the rows are forecast for."""
        self.is_stopped = False
        """Whether the sampler has nothing left to propose."""

        of, known = Pool(), dict[int, float]()

        def values() -> Mapping[int, float]:
            nonlocal of, known
            pool = worker.pool(policy)
            # Asked for each parameter; between two of them nothing changes but the time left.
            if pool.curves is not of.curves or pool.runs_left != of.runs_left:
                of = pool
                known = dict(zip(pool.curves, policy.worth(pool).tolist(), strict=True))
            return known

        storage = _RowStorage(log.storage_of(study), worker, values)
        super().__init__(study.study_name, storage, study.sampler, study.pruner)

    def space(self) -> dict[str, BaseDistribution]:
        """Return what each parameter is drawn from, of all learners together."""
        return {**self.worker.known.drawn}

    def stop(self) -> None:
        """Note that the sampler has nothing left to propose."""
        self.is_stopped = True


def _delegated(name: str) -> Any:
    """Return a method that asks the real storage."""

    def method(self: _RowStorage, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._inner, name)(*args, **kwargs)

    return method


class _RowStorage(BaseStorage):
    """The study's storage, whose trials are rows; some samplers read it past their study."""

    def __init__(
        self, inner: BaseStorage, worker: Worker, values: Callable[[], Mapping[int, float]]
    ) -> None:
        self._inner = inner
        self._worker = worker
        self._values = values

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return the rows."""
        trials = self._inner.get_all_trials(study_id, deepcopy=False)
        with self._worker.lock:  # values and learners of one moment
            values, known, sign = self._values(), self._worker.known, self._worker.sign
        rows = one_row_per_learner(trials, known, sign, values)
        size = _telling_size(known)
        found = [sign * row.values[0] for row in rows if row.values]
        # Where no other has a value, one is as bad as another.
        worst = sign * min(filter(math.isfinite, found), default=0.0)
        for row in rows:
            if row.number not in known.learners:
                continue
            curve = known.curves[row.number]
            if records.is_of_generation(row):
                # NSGA-II goes on comparing parents: none may lose its value.
                if row.values is None and curve.observations:
                    row.state, row.values = TrialState.COMPLETE, [worst]
            elif row.values is not None and curve.size < size:
                # GridSampler proposes points that are running anew before it stops.
                is_of_grid = records.GRID_POINT in row.system_attrs
                row.state = TrialState.FAIL if is_of_grid else TrialState.RUNNING
                row.values = None
        rows = [row for row in rows if states is None or row.state in states]
        return copy.deepcopy(rows) if deepcopy else rows

    def get_n_trials(
        self, study_id: int, state: tuple[TrialState, ...] | TrialState | None = None
    ) -> int:
        """Return the number of rows."""
        states = (state,) if isinstance(state, TrialState) else state
        return len(self.get_all_trials(study_id, deepcopy=False, states=states))

    create_new_study = _delegated("create_new_study")
    delete_study = _delegated("delete_study")
    set_study_user_attr = _delegated("set_study_user_attr")
    set_study_system_attr = _delegated("set_study_system_attr")
    get_study_id_from_name = _delegated("get_study_id_from_name")
    get_study_name_from_id = _delegated("get_study_name_from_id")
    get_study_directions = _delegated("get_study_directions")
    get_study_user_attrs = _delegated("get_study_user_attrs")
    get_study_system_attrs = _delegated("get_study_system_attrs")
    get_all_studies = _delegated("get_all_studies")
    create_new_trial = _delegated("create_new_trial")
    set_trial_param = _delegated("set_trial_param")
    get_trial_id_from_study_id_trial_number = _delegated("get_trial_id_from_study_id_trial_number")
    get_trial_number_from_id = _delegated("get_trial_number_from_id")
    get_trial_param = _delegated("get_trial_param")
    set_trial_state_values = _delegated("set_trial_state_values")
    set_trial_intermediate_value = _delegated("set_trial_intermediate_value")
    set_trial_user_attr = _delegated("set_trial_user_attr")
    set_trial_system_attr = _delegated("set_trial_system_attr")
    get_trial = _delegated("get_trial")


def _telling_size(known: Known) -> int:
    """Return the largest size that enough learners have reached; 0 where there is none."""
    sizes = sorted((curve.size for curve in known.curves.values()), reverse=True)
    return sizes[ENOUGH - 1] if len(sizes) >= ENOUGH else 0


def one_row_per_learner(
    trials: Iterable[FrozenTrial], known: Known, sign: int, values: Mapping[int, float]
) -> list[FrozenTrial]:
    """Return the trials with all runs of each learner merged into its first.

    Args:
        trials: of the study.
        known: of the study.
        sign: -1 where smaller scores are better.
        values: of learners with a score, larger is better.
    """
    rows: dict[int, FrozenTrial] = {}
    marks: dict[int, dict[str, Any]] = {}
    for trial in trials:
        run = records.read_run(trial)
        if trial.number in known.replaced:
            continue
        is_others = run is None or trial.state == TrialState.WAITING
        if run is None or is_others or known.is_copy(trial.number, run):
            rows[trial.number] = trial
        elif run.learner is not None and (run.learner == trial.number or run.learner not in rows):
            rows[run.learner] = trial  # a worker that waited may have resumed a later learner
        elif run.is_declined:
            row = rows[trial.number] = copy.copy(trial)
            row.state, row.values = TrialState.RUNNING, None
        else:
            # Else GridSampler, which marks what it proposes, would propose the same for ever. It
            # marks a later run where the worker of the first one died before it could.
            marked = run.repeats if run.learner is None else run.learner
            if marked is not None and not run.inherited:
                own = records.marks_of_others(trial)
                if run.learner is None and records.GRID_POINT in own:
                    # Another point of the grid, which differs in what the learner asks not for.
                    rows[trial.number] = copy.copy(trial)
                    rows[trial.number].state, rows[trial.number].values = TrialState.FAIL, None
                    continue
                marks.setdefault(marked, {}).update(own)
    busy = known.busy()
    # One that was begun a moment ago, after `trials` was read, has no row yet.
    for i in (i for i in known.curves if i in rows):
        row = rows[i] = _row_of(known, i, rows[i], sign, marks.get(i, {}))
        curve = known.curves[i]
        if curve.observations and not curve.has_failed:
            row.state, row.values = TrialState.COMPLETE, [sign * values[i]]
        else:
            row.state = TrialState.RUNNING if i in busy else TrialState.FAIL
            row.values = None
    return [row for row in rows.values() if not _is_empty(row)]


def _row_of(
    known: Known, number: int, first: FrozenTrial, sign: int, marks: Mapping[str, Any]
) -> FrozenTrial:
    """Return the first run of a learner with all that its runs have left, but for its value."""
    learner, row = known.learners[number], copy.copy(first)
    row.number = number
    row.params = {name: learner.params[name] for name in learner.distributions}
    row.distributions = {**learner.distributions}
    row.user_attrs = {**learner.user_attrs}
    row.intermediate_values = {seen.size: sign * seen.score for seen in learner.curve.observations}
    row.system_attrs = {**row.system_attrs, **marks, **learner.constraints}
    return row


def _is_empty(row: FrozenTrial) -> bool:
    """Return whether a run died before any sampler had its say.

    BruteForce would take such a row for the whole of its space.
    """
    is_lost = row.state == TrialState.FAIL and not row.params
    return is_lost and not records.marks_of_others(row)
