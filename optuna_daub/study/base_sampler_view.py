"""The study as a base sampler sees it: one row per learner."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.known import Known
from optuna_daub.study.learner import Learner
from optuna_daub.study.records import Run
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


MIN_LEARNERS = 20
"""Number of learners that must reach a size before scores on smaller sizes are hidden. Small
samples prefer other parameters than all the data do: on the surrogates of `benchmarks`, the ten
best learners at N / 27 ranked 40th to 105th of 120 at N, and TPE kept proposing points like them.
With 20, twice TPE's number of startup trials, it was as good early and better late."""


class BaseSamplerStudy(optuna.Study):
    """A study with one row per learner, which the base sampler cannot stop.

    The row is the learner's first run, the one that the base sampler proposed. It is RUNNING until
    the first observation, then COMPLETE with the value that the policy gives it (`Policy.worth`).
    Once enough learners have reached a larger size, the others are shown as RUNNING again. Their
    scores would mislead, but the sampler must see their points: without them TPE and GP would
    propose the same corner of a space again and again. Members of a generation always keep a
    value, the worst of all if they failed later, since evolutionary samplers go on comparing
    them. Idle trials are hidden. New learners that the policy declined are RUNNING.
    """

    def __init__(self, study: optuna.Study, worker: Worker, policy: Policy) -> None:
        """Create the view of `study` as the worker sees it."""
        self.policy = policy
        """Policy that gives the rows their values."""
        self.is_stopped = False
        """True if the sampler has nothing left to propose."""

        last, worths = Pool(), dict[int, float]()

        def values() -> Mapping[int, float]:
            nonlocal last, worths
            pool = worker.pool(policy)
            # Samplers ask for each parameter in turn. Between two of them only the time left
            # changes.
            if pool.curves is not last.curves or pool.runs_left != last.runs_left:
                last = pool
                worths = dict(zip(pool.curves, policy.worth(pool).tolist(), strict=True))
            return worths

        storage = _RowStorage(log.storage_of(study), worker, values)
        super().__init__(study.study_name, storage, study.sampler, study.pruner)

    def stop(self) -> None:
        """Record that the sampler has nothing left to propose."""
        self.is_stopped = True


_VIEWS: weakref.WeakKeyDictionary[optuna.Study, BaseSamplerStudy] = weakref.WeakKeyDictionary()
"""The studies as their base samplers see them, by study object: ids are not unique."""


def view_of(study: optuna.Study, policy: Policy) -> BaseSamplerStudy:
    """Return the study as its base sampler sees it. The object stays the same if possible."""
    view = _VIEWS.get(study)
    # The study may have been given another pruner, or another sampler.
    if view is None or view.policy is not policy or view.sampler is not study.sampler:
        view = _VIEWS[study] = BaseSamplerStudy(study, worker_of(study), policy)
    return view


def _delegated(name: str) -> Any:
    """Return a method that calls the real storage."""

    def method(self: _RowStorage, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._inner, name)(*args, **kwargs)

    return method


class _RowStorage(BaseStorage):
    """The study's storage with rows as trials, for samplers that read the storage directly."""

    def __init__(
        self, inner: BaseStorage, worker: Worker, values: Callable[[], Mapping[int, float]]
    ) -> None:
        self._inner = inner
        self._worker = worker
        self._values = values
        # Runs of finished trials, which no longer change, each with its trial.
        self._runs: dict[int, tuple[FrozenTrial, Run | None]] = {}

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Return the rows."""
        trials = self._inner.get_all_trials(study_id, deepcopy=False)
        with self._worker.lock:  # values and learners must be of the same moment
            values, known, sign = self._values(), self._worker.known, self._worker.sign
        rows = one_row_per_learner(trials, known, sign, values, self._run_of)
        size = _telling_size(known)
        found = [sign * row.values[0] for row in rows if row.values]
        # If no row has a value, any value will do.
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
                # GridSampler proposes RUNNING points again before it stops.
                is_of_grid = records.GRID_POINT in row.system_attrs
                row.state = TrialState.FAIL if is_of_grid else TrialState.RUNNING
                row.values = None
        rows = [row for row in rows if states is None or row.state in states]
        return copy.deepcopy(rows) if deepcopy else rows

    def _run_of(self, trial: FrozenTrial) -> Run | None:
        """Return the run in a trial's record, read once per finished trial."""
        seen, run = self._runs.get(trial.number, (None, None))
        if seen is not trial:
            run = records.read_run(trial)
            if trial.state.is_finished():
                self._runs[trial.number] = trial, run
        return run

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
    set_trial_state_values = _delegated("set_trial_state_values")
    set_trial_intermediate_value = _delegated("set_trial_intermediate_value")
    set_trial_user_attr = _delegated("set_trial_user_attr")
    set_trial_system_attr = _delegated("set_trial_system_attr")
    get_trial = _delegated("get_trial")


def _telling_size(known: Known) -> int:
    """Return the largest size that enough learners have reached; 0 if there is none."""
    sizes = sorted((curve.size for curve in known.curves.values()), reverse=True)
    return sizes[MIN_LEARNERS - 1] if len(sizes) >= MIN_LEARNERS else 0


def one_row_per_learner(
    trials: Iterable[FrozenTrial],
    known: Known,
    sign: int,
    values: Mapping[int, float],
    run_of: Callable[[FrozenTrial], Run | None] = records.read_run,
) -> list[FrozenTrial]:
    """Return the trials with all runs of each learner merged into its first.

    Args:
        trials: trials of the study.
        known: facts of the study.
        sign: -1 if smaller scores are better, else 1.
        values: values of learners with a score, by learner, larger is better.
        run_of: function that reads the run in a trial's record.
    """
    rows: dict[int, FrozenTrial] = {}
    marks: dict[int, dict[str, Any]] = {}
    for trial in trials:
        run = run_of(trial)
        if trial.number in known.replaced:
            continue
        if run is None or trial.state == TrialState.WAITING or known.is_copy(trial.number, run):
            rows[trial.number] = trial
        elif run.learner is None:
            row = _idle_row(trial, run)
            if row is not None:
                rows[trial.number] = row
            elif run.repeats is not None:
                marks.setdefault(run.repeats, {}).update(records.marks_of_others(trial))
        elif run.learner == trial.number or run.learner not in rows:
            # A trial that waited may have resumed a learner that started later.
            rows[run.learner] = trial
        elif not run.inherited:  # its first worker died early, so its mark is on this run
            marks.setdefault(run.learner, {}).update(records.marks_of_others(trial))
    busy = known.busy()
    # A learner that started after `trials` was read has no row yet.
    for i in known.curves.keys() & rows.keys():
        learner, is_busy = known.learners[i], i in busy
        rows[i] = _row_of(learner, rows[i], marks.get(i, {}), sign, values, is_busy=is_busy)
    return [row for row in rows.values() if not _is_empty(row)]


def _idle_row(trial: FrozenTrial, run: Run) -> FrozenTrial | None:
    """Return the row of an idle trial; None if it has none.

    GridSampler marks the points that it has proposed. Without the mark it would propose the same
    one for ever, so a trial with such a mark keeps a row. This happens if a grid has parameters
    that the learner never asked for.
    """
    if run.is_declined:
        return _without_value(trial, TrialState.RUNNING)
    if run.repeats is not None and records.GRID_POINT in records.marks_of_others(trial):
        return _without_value(trial, TrialState.FAIL)
    return None


def _without_value(trial: FrozenTrial, state: TrialState) -> FrozenTrial:
    """Return a copy of the trial in another state, without a value."""
    row = FrozenTrial.__new__(FrozenTrial)
    row.__dict__.update(trial.__dict__)  # as `copy.copy` does, in a fifth of the time
    row.state, row.values = state, None
    return row


def _row_of(
    learner: Learner,
    first: FrozenTrial,
    marks: Mapping[str, Any],
    sign: int,
    values: Mapping[int, float],
    *,
    is_busy: bool,
) -> FrozenTrial:
    """Return a learner's first run with the data of all its runs, and its value, if known."""
    curve = learner.curve
    row = _without_value(first, TrialState.RUNNING if is_busy else TrialState.FAIL)
    if curve.observations and not curve.has_failed:
        row.state, row.values = TrialState.COMPLETE, [sign * values[curve.learner]]
    row.number = curve.learner
    row.params = {name: learner.params[name] for name in learner.distributions}
    row.distributions = {**learner.distributions}
    row.intermediate_values = {seen.size: sign * seen.score for seen in curve.observations}
    row.user_attrs = {**learner.user_attrs}
    row.system_attrs = {**row.system_attrs, **marks, **learner.constraints}
    return row


def _is_empty(row: FrozenTrial) -> bool:
    """Return whether a run ended before any parameter was suggested.

    From such a row `BruteForceSampler` would conclude that the whole space is explored.
    """
    is_lost = row.state == TrialState.FAIL and not row.params
    return is_lost and not records.marks_of_others(row)
