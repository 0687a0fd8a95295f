"""A worker may die after it has taken a trial and before the trial was assigned a learner."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import optuna
import pytest
from optuna.samplers import BruteForceSampler
from optuna.samplers import GridSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.study import claims
from optuna_daub.study import log
from optuna_daub.study import worker as workers
from optuna_daub.study.base_sampler_view import view_of
from optuna_daub.study.claims import Asking
from optuna_daub.study.records import Run
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import looking
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_sound
from tests.study.table_study import final
from tests.study.table_study import in_thread
from tests.study.table_study import name_as_dead
from tests.study.table_study import raising
from tests.study.table_study import run_of
from tests.study.table_study import sqlite
from tests.study.table_study import table_study
from tests.study.table_study import told
from tests.study.table_study import trained
from tests.study.table_study import until


pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

FIXED = "fixed_params"
"""Optuna's own attribute of enqueued trials."""


def test_an_enqueued_learner_whose_worker_died_at_once_comes_again() -> None:
    study = table_study(4, patience=Patience(abandoned=0.0))
    study.enqueue_trial({"row": 4})
    lost = study._pop_waiting_trial_id()  # and its worker is gone
    assert lost is not None
    study.optimize(TableObjective())
    assert study.trials[0].state == TrialState.RUNNING, "its worker may be alive, and of others"
    assert len(learning_curves(study)) == 4
    (curve,) = [curve for curve in learning_curves(study) if curve.params == {"row": 4}]
    assert [seen.size for seen in curve.observations[:3]] == [*SIZES[:3]]
    assert curve.learner != 0
    assert sum(FIXED in trial.system_attrs for trial in study.trials) == 2
    rows = view_of(study, study.pruner.policy).trials
    assert sorted(row.params["row"] for row in rows) == [0, 2, 3, 4]


def test_an_enqueued_learner_taken_twice_is_trained_once() -> None:
    """The worker that was taken for dead comes back to the trial that it took."""
    study = table_study(4, patience=Patience(abandoned=0.0))
    study.enqueue_trial({"row": 4})
    slow = table_study(4, storage=study._storage)
    assert slow._pop_waiting_trial_id() is not None
    study.optimize(TableObjective(), n_trials=3)
    back = optuna.Trial(slow, 0)
    with pytest.raises(optuna.TrialPruned, match="has the parameters of learner 2"):
        TableObjective()(back)
    slow.tell(0, state=TrialState.PRUNED)
    study.optimize(TableObjective())
    assert len(learning_curves(study)) == 4


@pytest.mark.parametrize("zone", [-timedelta(hours=11), timedelta(0), timedelta(hours=5.75)])
@pytest.mark.parametrize("seconds", [0, -300, 300, 86400])
def test_a_trial_that_is_not_ours_is_never_touched(zone: timedelta, seconds: int) -> None:
    """Another sampler's, or of a worker that reads a large study first; whatever clocks say."""
    study = table_study(stale_after=1e-6)
    begun = study._storage.create_new_trial(study._study_id)
    known = study._storage._get_trial(begun)  # type: ignore[attr-defined]
    known.datetime_start += zone - timedelta(seconds=seconds)
    study.optimize(TableObjective([RIVALS[0], *RIVALS]))
    assert study.trials[0].state == TrialState.RUNNING
    assert study.trials[0].system_attrs == {}


@pytest.mark.parametrize("is_taken", [False, True])
def test_nobody_begins_a_learner_in_place_of_an_enqueued_one(is_taken: bool) -> None:
    """Not even a trial of a lower number, started before the other was enqueued."""
    study = table_study(2)
    study.ask()
    assert_leaves_the_place_to_an_enqueued_one(study, is_taken)


def assert_leaves_the_place_to_an_enqueued_one(study: optuna.Study, is_taken: bool) -> None:
    """Assert that an idle trial makes room, or waits if another worker took the enqueued one."""
    idle = study._storage.create_new_trial(study._study_id)
    worker = looking(study)
    wanted = worker.known.n_learners
    nothing = Run(None, n_learners=wanted, full_size=54)
    log.write_run(study, study._storage.get_trial(idle), nothing)
    study.enqueue_trial({"row": 4})
    if is_taken:
        study._pop_waiting_trial_id()
    trial, worker = study._storage.get_trial(idle), looking(study)
    asking = Asking(study, worker, trial, study.pruner.policy, wanted, None)
    run = claims._offer(asking, may_be_late=True, is_over=False)
    assert (run is None) == is_taken
    if run:
        assert (run.learner, run.reason) == (None, "enqueued learners come first")


def test_a_worker_that_waits_turns_to_what_is_enqueued() -> None:
    study = table_study(1)
    held = study.ask()
    asked: list[optuna.Trial] = []
    worker = threading.Thread(target=lambda: asked.append(study.ask()), daemon=True)
    worker.start()
    until(lambda: len(study.trials) == 2)
    study.enqueue_trial({"row": 3})
    worker.join(30)
    (idle,) = asked
    run = run_of(study, idle)
    assert run.learner is None
    assert run.reason == "enqueued learners come first"
    study.tell(idle, state=TrialState.PRUNED)
    assert study.ask().suggest_int("row", 0, 4) == 3
    assert held.suggest_int("row", 0, 4) == 0


def test_the_end_waits_for_what_is_enqueued() -> None:
    """An idle worker sees that the only learner is done, and another one in the queue."""
    study = table_study(1)
    told(study, study.ask(), TableObjective())
    assert_leaves_the_place_to_an_enqueued_one(study, is_taken=False)
    study.tell(1, state=TrialState.PRUNED)
    study.optimize(TableObjective(), n_trials=1)
    assert [curve.params for curve in learning_curves(study)] == [{"row": 0}, {"row": 4}]


def test_workers_asked_for_other_numbers_of_learners_keep_to_their_own() -> None:
    """The run of a dead worker, given up by the way, tells its own sampler's number."""
    study = table_study(1)
    lost = study.ask()
    name_as_dead(study, lost)
    table_study(3, storage=study._storage).optimize(TableObjective())
    assert len(learning_curves(study)) == 3


def test_a_retried_trial_is_not_taken_for_its_dead_worker(tmp_path: Path) -> None:
    """Optuna's callback copies what the dead worker was assigned, with its name."""
    study = table_study(3, storage=sqlite(tmp_path))
    lost = study.ask()
    name_as_dead(study, lost)
    study.tell(lost, state=TrialState.FAIL)
    dead = study.trials[0].system_attrs
    retry = optuna.create_trial(state=TrialState.WAITING, system_attrs=dict(dead))
    study._storage.create_new_trial(study._study_id, template_trial=retry)
    study._storage.create_new_trial(study._study_id)  # of a second worker, started just now
    assert study.ask().number == 1
    assert study.trials[1].state == TrialState.RUNNING


def test_an_error_while_assigning_puts_an_enqueued_trial_back(tmp_path: Path) -> None:
    study = table_study(3, storage=sqlite(tmp_path))
    study.optimize(TableObjective(), n_trials=1)
    study.enqueue_trial({"row": 4})
    other = table_study(3, storage=sqlite(tmp_path), sizes=(*SIZES, 99))
    with pytest.raises(ValueError, match="must go on with the sizes"):
        other.optimize(TableObjective())
    study.optimize(TableObjective())
    assert {"row": 4} in [curve.params for curve in learning_curves(study)]
    assert_sound(study)


@pytest.mark.parametrize("is_assigned", [False, True])
def test_an_interrupt_while_assigning_loses_no_enqueued_learner(
    monkeypatch: pytest.MonkeyPatch, is_assigned: bool
) -> None:
    """Before its run was written the trial waits again, afterwards its learner is resumed."""
    study = table_study(1)
    study.optimize(TableObjective())
    study.enqueue_trial({"row": 4})  # one more than the sampler was asked for

    def interrupted(study: optuna.Study, trial: FrozenTrial, run: Run) -> None:
        if is_assigned:
            write_run(study, trial, run)
        raise KeyboardInterrupt

    write_run = log.write_run
    with monkeypatch.context() as patch:
        patch.setattr(log, "write_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.optimize(TableObjective())
    taken = [trial for trial in study.trials if FIXED in trial.system_attrs]
    expected = TrialState.FAIL if is_assigned else TrialState.WAITING
    assert [trial.state for trial in taken] == [expected]
    workers._WORKERS.clear()  # as a new process would start
    study.optimize(TableObjective())
    assert {"row": 4} in [curve.params for curve in learning_curves(study)]
    assert all(trial.state.is_finished() for trial in study.trials)


def test_a_silent_run_is_given_up_whatever_the_time_zone() -> None:
    """Optuna stores when a trial started in local time, which is another one elsewhere."""
    study = table_study(3)
    name_as_dead(study, study.ask())
    known = study._storage._get_trial(0)  # type: ignore[attr-defined]
    known.datetime_start += timedelta(hours=8)
    study.optimize(TableObjective())
    assert study.trials[0].state == TrialState.FAIL
    assert len(learning_curves(study)) == 3


@pytest.mark.parametrize("is_enqueued", [False, True])
def test_brute_force_does_not_see_who_died_at_once(is_enqueued: bool) -> None:
    study = table_study(base=BruteForceSampler(seed=0), patience=Patience(abandoned=0.0))
    if is_enqueued:
        study.enqueue_trial({"row": 4})
        study._pop_waiting_trial_id()
    else:
        study._storage.create_new_trial(study._study_id)
    study.optimize(TableObjective())
    assert sorted(curve.params["row"] for curve in learning_curves(study)) == [*range(5)]


@pytest.mark.parametrize("is_enqueued", [False, True])
def test_brute_force_completes_what_a_dead_worker_did_not_suggest(is_enqueued: bool) -> None:
    def objective(trial: optuna.Trial) -> float:
        return trained(trial, trial.suggest_int("a", 0, 3) + trial.suggest_int("b", 0, 3) / 4)

    study = table_study(4, base=BruteForceSampler(seed=0), patience=Patience(abandoned=0.0))
    study.optimize(objective, n_trials=1)
    if is_enqueued:
        study.enqueue_trial({"a": 3})
        study._pop_waiting_trial_id()
    else:
        name_as_dead(study, study.ask())
    study.optimize(objective)
    pairs = [(curve.params["a"], curve.params["b"]) for curve in learning_curves(study)]
    assert len(set(pairs)) == len(pairs) == 4
    assert 3 in dict(pairs) or not is_enqueued


class DyingGrid(GridSampler):
    """Gets so far with marking a trial, which takes two steps, as `lives` says one by one."""

    def __init__(self) -> None:
        super().__init__({"row": range(len(RIVALS))}, seed=0)
        self.lives: list[int] = []

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        n_steps = self.lives.pop(0) if self.lives else 2
        if n_steps == 1:
            mark = "search_space", self._search_space
            study._storage.set_trial_system_attr(trial._trial_id, *mark)
        if n_steps == 2:
            super().before_trial(study, trial)


@pytest.mark.parametrize("lives", [[0], [1], [2], [0, 1, 0], [1, 2]])
@pytest.mark.parametrize(
    ("is_open", "n_before"), [(False, 0), (False, 1), (False, 3), (True, 0), (True, 1)]
)
def test_a_grid_has_its_say_on_a_learner_whose_worker_died_before_it_could(
    lives: list[int], n_before: int, is_open: bool
) -> None:
    base = DyingGrid()
    study = table_study(base=base)
    if is_open:
        study.sampler = DataAllocationSampler(base)
        study.pruner = DAUBPruner(sizes=SIZES, cost="examples")
    if n_before:
        study.optimize(TableObjective(), n_trials=n_before)
    base.lives = [*lives]
    for _ in lives:
        lost = study.ask()
        assert run_of(study, lost).learner == n_before
        name_as_dead(study, lost)
    study.optimize(TableObjective())
    curves = learning_curves(study)
    assert sorted(curve.params["row"] for curve in curves) == [*range(len(RIVALS))]
    assert all(curve.observations for curve in curves)
    final(study)


def left_by(study: optuna.Study, *, asks: bool) -> optuna.Study:
    """Leave a trial of a study object running: asked for, or left by `SystemExit`."""
    with suppress(SystemExit):
        study.ask() if asks else study.optimize(TableObjective(before=raising(SystemExit)))
    assert study.trials[-1].state == TrialState.RUNNING
    return study


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["this thread", "ended thread"])
@pytest.mark.parametrize("is_kept", [False, True], ids=["collected", "living"])
def test_what_another_object_of_this_process_left_is_not_waited_for(
    is_kept: bool, is_elsewhere: bool
) -> None:
    """As a cell of a notebook that loads its study is run once more."""
    storage, kept = InMemoryStorage(), list[optuna.Study]()

    def leave() -> None:
        kept.append(left_by(table_study(1, storage), asks=False))

    in_thread(leave) if is_elsewhere else leave()
    if not is_kept:
        kept.clear()
        gc.collect()
    study = table_study(1, storage)
    study.optimize(TableObjective(), timeout=5)
    assert study.trials[0].state == TrialState.FAIL
    final(study)


@pytest.mark.parametrize("stale_after", [None, 0.1])
def test_what_another_object_runs_around_this_call_is_refused_not_taken(
    stale_after: float | None,
) -> None:
    storage = InMemoryStorage()
    study, other = table_study(1, storage), table_study(1, storage, stale_after=stale_after)

    def objective(trial: optuna.Trial) -> float:
        with pytest.raises(RuntimeError, match=r"asked for trials \[0\] without telling"):
            other.optimize(TableObjective(), timeout=2)
        return TableObjective()(trial)

    study.optimize(objective)
    assert study.trials[0].state == TrialState.COMPLETE


@pytest.mark.parametrize(
    ("asks", "is_kept"),
    [(False, True), (True, True), (True, False)],
    ids=["objective", "asked for", "asked for, collected"],
)
def test_what_may_still_be_told_is_waited_for(asks: bool, is_kept: bool) -> None:
    """It runs in another thread, or another request of a server may tell it by its number."""
    storage, go_on, kept = InMemoryStorage(), threading.Event(), list[optuna.Study]()

    def objective(trial: optuna.Trial) -> float:
        assert go_on.wait(30)
        return TableObjective()(trial)

    thread = threading.Thread(target=lambda: table_study(1, storage).optimize(objective))
    study = table_study(1, storage)
    if asks:
        assert in_thread(lambda: kept.append(left_by(table_study(1, storage), asks=True))) == []
        if not is_kept:
            kept.clear()
            gc.collect()
    else:
        thread.start()
        until(lambda: study.trials and study.trials[0].system_attrs)
    study.optimize(TableObjective(), timeout=0.5)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "PRUNED"]
    go_on.set()
    if asks:
        table_study(1, storage).tell(0, state=TrialState.PRUNED)
    else:
        thread.join(30)
        final(study)


@pytest.mark.parametrize("how", ["one object", "two objects", "collected"])
def test_what_this_very_thread_asked_for_is_refused_not_waited_for(how: str) -> None:
    storage = InMemoryStorage()
    kept = [left_by(table_study(1, storage), asks=True)]
    study = kept[0] if how == "one object" else table_study(1, storage)
    if how == "collected":
        kept.clear()
        gc.collect()
    with pytest.raises(
        RuntimeError,
        match=r"asked for trials \[0\] .* call `study\.tell`",
    ):
        study.optimize(TableObjective(), timeout=2)
    study.tell(0, state=TrialState.FAIL)
    study.optimize(TableObjective(), timeout=5)
    final(study)


def test_what_is_known_of_collected_objects_does_not_grow() -> None:
    storage, counts = InMemoryStorage(), list[int]()
    for _ in range(4):
        table_study(3, storage).optimize(TableObjective(), n_trials=1)
        gc.collect()
        counts.append(len([name for name, *_ in workers._COLLECTED if name == "table"]))
    assert counts[-1] == counts[0]


@pytest.mark.parametrize("asks", [False, True], ids=["another thread's", "this thread's"])
def test_a_fork_leaves_the_trials_of_its_parent_alone(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the memory of its parent, but none of the other threads, which go on there."""
    study = table_study(1)
    if asks:
        left_by(study, asks=True)
    else:
        assert in_thread(lambda: left_by(study, asks=False)) == []
    monkeypatch.setattr(os, "getpid", os.getppid)
    study.optimize(TableObjective(), timeout=0.3)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "PRUNED"]


def test_a_thread_is_not_taken_for_an_ended_one_whose_id_it_has() -> None:
    """As in a server with a thread for each request: a third one may still tell."""
    study = table_study(1)
    for work in (study.ask, lambda: study.optimize(TableObjective(), timeout=0.3)):
        assert in_thread(work) == []
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "PRUNED"]


def test_a_thread_that_waits_for_jobs_of_an_inner_study_goes_on_with_its_trial() -> None:
    def objective(trial: optuna.Trial) -> float:
        inner = optuna.create_study()
        inner.optimize(lambda _: time.sleep(0.2) or 0.0, n_trials=2, n_jobs=2)
        return TableObjective()(trial)

    study = table_study(1)
    study.optimize(objective, n_jobs=2)
    final(study)


def test_a_study_of_this_name_elsewhere_holds_nothing_here() -> None:
    """Both have a trial 0; the other one's is running in another thread."""
    elsewhere, study = table_study(1), table_study(1)
    assert in_thread(elsewhere.ask) == []
    left_by(table_study(1, study._storage), asks=False)
    study.optimize(TableObjective(), timeout=5)
    final(study)


def test_a_worker_taken_for_dead_gives_its_learner_up() -> None:
    study = table_study()
    slow = study.ask()
    run = run_of(study, slow)
    study.tell(slow, state=TrialState.FAIL)
    others = looking(study)
    assert not claims._is_only_claim(others, study.trials[0], run)
