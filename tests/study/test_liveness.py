"""Dead processes are known for this machine only, and never guessed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import optuna
import psutil
import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.storages import InMemoryStorage
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.known import Known
from optuna_daub.study.records import Run
from optuna_daub.study.turns import End
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of
from tests.study import releases
from tests.study.forked import in_new_process
from tests.study.forked import is_another
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import InOrder
from tests.study.table_study import Place
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import assert_sound
from tests.study.table_study import final
from tests.study.table_study import in_thread
from tests.study.table_study import once
from tests.study.table_study import probes
from tests.study.table_study import random_study
from tests.study.table_study import report_row
from tests.study.table_study import scores_of
from tests.study.table_study import sqlite
from tests.study.table_study import table_study
from tests.study.table_study import told
from tests.study.table_study import trained


pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

LADDER = (100, 200, 400, 800)
MACHINE, _, BEGAN = liveness.this_worker().split("|")
TICKS, BOOT = BEGAN.rpartition("/")[2], liveness._boot()
IN_CLEAR = liveness._machine_in_clear()
PARENT = os.getppid()
PARENT_BEGAN = liveness._start_time(PARENT)

WORKERS: dict[str, tuple[list[str], bool]] = {
    "this process lives": ([liveness.this_worker()], False),
    # In a container that is started again, the first process always has the number 1.
    "a process id that was given again is another process": (
        [f"{MACHINE}|{pid}|{BOOT}/1" for pid in (PARENT, os.getpid())], True
    ),
    "nothing is known of other machines": (
        ["", "elsewhere|1|1", "a|b", "a|b|c|d", "|||", "elsewhere|x|y"], False
    ),
    # It has the name, the id and the process namespace of this one, and was booted by itself.
    "nothing is known of a clone of this machine": (
        [f"{MACHINE}|{pid}|{boot}/{ticks}" for pid in (1, os.getpid(), 2**22 - 7)
         for boot in ("", "another boot", "7ad5e6b0-0000-4000-8000-000000000000")
         for ticks in (TICKS, 1)], False
    ),
    "studies begun before the id was hashed have it in clear": (
        [f"{IN_CLEAR}|{os.getpid()}|{BEGAN}"], False
    ),
    "and their dead are known": ([f"{IN_CLEAR}|{os.getpid()}|{BOOT}/1"], True),
}  # fmt: skip


@pytest.mark.parametrize(("workers", "is_dead"), WORKERS.values(), ids=WORKERS)
def test_who_is_dead(workers: list[str], is_dead: bool) -> None:
    assert [worker for worker in workers if liveness.is_dead(worker) != is_dead] == []


def test_a_process_lives_until_it_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    worker = f"{MACHINE}|{process.pid}|{liveness._start_time(process.pid)}"
    assert not liveness.is_dead(worker)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert liveness.is_dead(worker), "a zombie trains nothing"
    process.communicate()
    assert liveness.is_dead(worker)


def test_without_a_process_table_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "_start_time", lambda pid: "")
    assert not liveness.is_dead(f"{MACHINE}|{os.getpid()}|")
    assert not liveness.is_dead(f"{MACHINE}|{os.getpid()}|{BEGAN}")


def test_start_times_are_those_that_studies_had_before() -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert f"{boot}/{fields[19]}" == BEGAN


def test_a_clock_that_is_set_changes_no_start_time(monkeypatch: pytest.MonkeyPatch) -> None:
    boot_time = psutil._psplatform.boot_time
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot_time() + 86_400)
    assert liveness._start_time(PARENT) == PARENT_BEGAN


def test_without_ids_of_boots_the_time_of_day_tells_processes_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "_boot", lambda: "")
    began = liveness._start_time(PARENT)
    created = psutil.Process(PARENT).create_time()
    assert float(began.removeprefix("/")) == pytest.approx(created, abs=0.01)
    assert not liveness.is_dead(f"{MACHINE}|{PARENT}|{began}")
    assert liveness.is_dead(f"{MACHINE}|{PARENT}|/17.00")


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the processes of all users, as `hidepid=2` does those of others."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))


@pytest.mark.usefixtures("hidden")
@pytest.mark.parametrize("is_owned", [True, False])
def test_a_process_that_is_hidden_lives(is_owned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_owned:
        monkeypatch.setattr(os, "kill", Mock(side_effect=PermissionError))
    assert liveness._start_time(PARENT) == ""
    assert not liveness.is_dead(f"{MACHINE}|{PARENT}|{PARENT_BEGAN}")


@pytest.mark.usefixtures("hidden")
def test_a_process_that_is_gone_is_dead_where_processes_are_hidden() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    assert liveness.is_dead(f"{MACHINE}|{process.pid}|{liveness._boot()}/7")


def test_no_signal_is_sent_where_it_would_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows `os.kill` does, whatever the signal."""
    monkeypatch.setattr(liveness, "os", windows := Mock())
    windows.name = "nt"
    assert not liveness._is_gone(1)
    windows.kill.assert_not_called()


def test_machines_of_one_name_are_told_apart() -> None:
    """The first process namespace has one number on every Linux machine, and names repeat."""
    namespace = os.readlink("/proc/self/ns/pid")
    assert MACHINE.endswith(namespace)
    if Path("/etc/machine-id").exists():
        machine_id = Path("/etc/machine-id").read_text().strip()
        assert machine_id not in MACHINE  # it is a secret
        assert len(MACHINE.split("/")[1]) == 16


def test_each_process_is_a_worker_of_its_own() -> None:
    assert in_new_process(is_another, liveness.this_worker()) == 0


# A worker that was taken for dead and is not


AT_ONCE = Patience(checked=0.0)
"""Patience of a worker that checks at every step, not once a second, that its run is its own."""


class Stall:
    """Holds a worker up, once, at a place of its run, until it is told to go on."""

    def __init__(self, *at: object) -> None:
        self.at = at
        self.is_there = threading.Event()
        self.goes_on = threading.Event()

    def __call__(self, *at: object) -> None:
        if at == self.at and not self.is_there.is_set():
            self.is_there.set()
            assert self.goes_on.wait(60)


class Stalling(InOrder):
    """A base sampler that thinks for long."""

    def __init__(self, stall: Callable[..., None]) -> None:
        self.stall = stall

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.stall("before_trial", trial.number)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        self.stall("infer", trial.number)
        return super().infer_relative_search_space(study, trial)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, *ended: Any) -> None:
        self.stall("after_trial", trial.number)

    def sample_independent(self, *args: Any) -> Any:
        self.stall("sample", args[1].number)
        return super().sample_independent(*args)


IN_THE_BASE_SAMPLER = (
    ("before_trial", 0), ("before_trial", 1), ("infer", 0), ("sample", 0), ("sample", 3),
    ("after_trial", 0), ("after_trial", 2),
)  # fmt: skip
LAST = WINNER, SIZES[-1]
PLACES: list[tuple[object, ...]] = [
    *IN_THE_BASE_SAMPLER,
    *(("before", *probe) for probe in (MADE[0], MADE[4], LAST)),
    *(("after", *probe) for probe in (MADE[1], LAST)),
]


def stalled(place: tuple[object, ...], storage: BaseStorage) -> tuple[Any, ...]:
    """Return a worker in a thread that is stalled at a place, and what its end will raise."""
    stall = Stall(*place)
    study = table_study(storage=storage, base=Stalling(stall), patience=AT_ONCE)
    objective = TableObjective(
        RIVALS, before=lambda *at: stall("before", *at), after=lambda *at: stall("after", *at)
    )
    raised: list[BaseException] = []

    def work() -> None:
        try:
            study.optimize(objective)
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert stall.is_there.wait(60)
    return stall, worker, raised


def come_back(stall: Stall, worker: threading.Thread, raised: list[BaseException]) -> None:
    """Let a stalled worker go on to its end, which raises nothing."""
    stall.goes_on.set()
    worker.join(60)
    assert raised == []


def let_hearts_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a storage in memory pass for one with heartbeats."""
    monkeypatch.setattr(log, "has_heartbeat", lambda study: True)
    monkeypatch.setattr(log, "record_heartbeat", lambda study, trial: None)


def running(study: optuna.Study) -> FrozenTrial:
    """Return the only trial that runs."""
    (trial,) = [trial for trial in study.trials if trial.state == TrialState.RUNNING]
    return trial


def set_failed(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> None:
    """Fail a running trial, as Optuna does if a heartbeat stops."""
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)


def given_up(study: optuna.Study) -> list[FrozenTrial]:
    return [trial for trial in study.trials if records.GIVEN_UP in trial.system_attrs]


def assert_ended_well(study: optuna.Study, n_lost: int) -> None:
    """Assert that the answer is what it would have been, and that nothing was stored twice."""
    assert study.best_trial.params["row"] == WINNER
    trials = study.trials
    assert all(trial.state.is_finished() for trial in trials)
    failed = [trial for trial in trials if trial.state == TrialState.FAIL]
    lost = {trial.number for trial in (*given_up(study), *failed)}
    assert len(lost) == n_lost
    theirs = [allocation.trial in lost for allocation in allocations(study)]
    made = [probe for probe, is_lost in zip(probes(study), theirs, strict=True) if not is_lost]
    assert len(made) == len(set(made))
    assert {*made} <= {*MADE}


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_that_was_silent_too_long_comes_back_and_ends(
    place: tuple[object, ...], skip: Callable[[float], None]
) -> None:
    storage = InMemoryStorage()
    late = stalled(place, storage)
    is_known = place == ("after", WINNER, SIZES[-1])  # its score is: nobody waits for its end
    # If it were waited for, it would be given up after ten seconds, however slow this machine is.
    study = table_study(storage=storage, stale_after=10 if is_known else 0.1)
    if not is_known:  # it has been silent for long enough from the first trial on
        looking(study)
        skip(0.2)
    study.optimize(TableObjective())
    lost = given_up(study)
    assert [trial.state for trial in lost] == [TrialState.RUNNING] * (not is_known)
    come_back(*late)
    assert all(study.trials[trial.number].state == TrialState.PRUNED for trial in lost)
    assert_ended_well(study, n_lost=len(lost))


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_whose_trial_was_failed_comes_back_and_ends(
    place: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optuna raises afterwards, whatever the worker tells."""
    let_hearts_beat(monkeypatch)
    storage = InMemoryStorage()
    late = stalled(place, storage)
    study = table_study(storage=storage)
    set_failed(study, running(study))
    study.optimize(TableObjective())
    come_back(*late)
    assert_ended_well(study, n_lost=1)


@pytest.mark.parametrize("place", ["turn", "is_done"])
def test_a_worker_failed_while_its_policy_thinks_ends_without_an_error(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last look at its run and what it tells Optuna there is as little as can be."""
    let_hearts_beat(monkeypatch)
    study = table_study()
    owner: Any = Worker if place == "turn" else Known
    as_it_is = getattr(owner, place)
    failed: list[int] = []

    def failing(*given: Any, **named: Any) -> Any:
        answer = as_it_is(*given, **named)
        running = [trial for trial in study.trials if trial.state == TrialState.RUNNING]
        if (isinstance(answer, End) or answer is True) and running and not failed:
            failed.append(running[0].number)
            set_failed(study, running[0])
        return answer

    monkeypatch.setattr(owner, place, failing)
    study.optimize(TableObjective())
    assert [study.trials[number].state for number in failed] == [TrialState.FAIL]
    assert_ended_well(study, n_lost=1)


def test_a_callback_finds_the_parameters_of_a_run_that_was_failed_as_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Optuna 4.0 hands it the trial that stands in for the failed one."""
    let_hearts_beat(monkeypatch)
    told: list[int] = []

    class Failing(InOrder):
        def after_trial(self, study: optuna.Study, trial: FrozenTrial, *_: Any) -> None:
            set_failed(study, trial)

    study = table_study(1, base=Failing())
    note = [lambda study, trial: told.append(trial.params["row"])]
    study.optimize(TableObjective(RIVALS[:1]), n_trials=1, callbacks=note)
    assert told == [0]
    assert [trial.params for trial in study.trials] == [{"row": 0}] * 2
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert len(learning_curves(study)) == 1
    assert not answer(study).is_final


def test_an_idle_worker_that_was_failed_ends_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_hearts_beat(monkeypatch)
    study = table_study()
    study.optimize(TableObjective())
    infer = study.sampler.infer_relative_search_space

    def failing(study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        set_failed(study, trial)
        return infer(study, trial)

    monkeypatch.setattr(study.sampler, "infer_relative_search_space", failing)
    study.optimize(TableObjective())
    assert [trial.state for trial in study.trials[-2:]] == [TrialState.FAIL, TrialState.PRUNED]
    assert_ended_well(study, n_lost=1)


@pytest.mark.parametrize("place", ["turn", "is_done"])
def test_a_worker_stopped_between_its_last_look_and_its_next_probe_begins_none(
    place: str, monkeypatch: pytest.MonkeyPatch, skip: Callable[[float], None]
) -> None:
    """It has seen its run just before, and has trained for no time since."""
    storage = InMemoryStorage()
    study = table_study(storage=storage)
    slow = table_study(storage=storage, patience=Patience(checked=0.05))
    known: list[dict[int, float]] = []

    def stopped(as_it_is: Callable[..., Any], *given: Any, **named: Any) -> Any:
        answer = as_it_is(*given, **named)
        known.append(running(study).intermediate_values)
        log.write_given_up(study, running(study))
        study.optimize(TableObjective())
        skip(0.1)
        return answer

    once(monkeypatch, worker_of(slow) if place == "turn" else Known, place, stopped)
    slow.optimize(TableObjective())
    (lost,) = given_up(study)
    assert [lost.intermediate_values] == known
    assert lost.state == TrialState.PRUNED
    assert_ended_well(study, n_lost=1)


@pytest.mark.parametrize("place", ["write_run", "twin", "forerunner"])
def test_a_worker_stopped_while_it_claims_takes_nothing_back_from_others(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have its learner by then, and trained it: it is theirs, and no other's."""
    storage = InMemoryStorage()
    study = table_study(storage=storage)
    slow = table_study(storage=storage)

    def stopped(as_it_is: Callable[..., Any], *given: Any) -> Any:
        answer = as_it_is(*given)
        log.write_given_up(study, running(study))
        study.optimize(TableObjective())
        return answer if place == "write_run" else 1

    once(monkeypatch, log if place == "write_run" else Known, place, stopped)
    slow.optimize(TableObjective())
    again = table_study(storage=storage)
    curves, made = learning_curves(again), allocations(again)
    assert {curve.params["row"] for curve in curves} == {*range(5)}
    assert final(again).params == {"row": WINNER}
    seen = {(curve.learner, each.size) for curve in curves for each in curve.observations}
    assert seen <= {(each.learner, each.observation.size) for each in made}
    assert curves[0].learner == 0
    assert_nothing_twice(again)


def test_what_a_worker_withdraws_after_it_was_given_up_stays() -> None:
    """It may be stopped in the very moment of writing that it steps back."""
    study = table_study()
    trial = study.ask()
    log.write_given_up(study, study.trials[0])
    study.optimize(TableObjective())
    before = learning_curves(study)
    log.write_run(study, trial, Run(None, n_learners=5, trial=0))
    assert learning_curves(study) == before
    assert learning_curves(table_study(storage=study._storage)) == before
    assert before[0].learner == 0
    assert before[0].observations


def test_other_threads_find_a_run_that_goes_on_whenever_they_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or else it would end as one that others have given up."""
    study = table_study()
    trial = study.ask()
    worker = looking(study)
    was_there: list[bool] = []

    def watch(owner: Any, name: str) -> None:
        as_it_is = getattr(owner, name)

        def watching(*given: Any) -> Any:
            was_there.append(trial.number in worker.known.runs)
            return as_it_is(*given)

        monkeypatch.setattr(owner, name, watching)

    watch(records, "read")
    watch(Known, "with_trials")
    trial.suggest_int("row", 0, 4)
    worker.look()
    assert was_there
    assert all(was_there)


@pytest.mark.parametrize("is_stock", [True, False])
def test_a_run_failed_between_its_objective_and_its_end_raises_as_in_any_study(
    is_stock: bool,
) -> None:
    """Optuna asks neither sampler nor pruner before it looks; what was stored is not lost."""
    storage = InMemoryStorage()
    ours = table_study(storage=storage)
    sampler = RandomSampler() if is_stock else ours.sampler
    study = optuna.load_study(study_name="table", storage=storage, sampler=sampler)
    study.pruner = optuna.pruners.NopPruner() if is_stock else ours.pruner
    objective = TableObjective()

    def failed_at_its_end(trial: optuna.Trial) -> float:
        try:
            return 0.0 if is_stock else objective(trial)
        finally:
            set_failed(study, trial)

    # If the objective returned a value, Optuna trips over its own error.
    either = "Cannot tell a FAIL trial|Should not reach"
    with pytest.raises((ValueError, AssertionError), match=either):
        study.optimize(failed_at_its_end)
    ours.optimize(objective)
    assert_ended_well(ours, n_lost=1)


@pytest.mark.parametrize("known", [0, 1])
def test_what_a_run_suggests_after_it_was_given_up_is_no_parameter_of_its_learner(
    known: int,
) -> None:
    """Others have trained the learner by then, with parameters of their own."""
    storage = InMemoryStorage()

    def study_of(seed: int) -> optuna.Study:
        given: dict[str, Any] = {"storage": storage, "name": "late", "n_learners": 3}
        return random_study(seed=seed, stale_after=0.05, **given)

    def objective(trial: optuna.Trial) -> float:
        return trained(trial, trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1))

    late = study_of(0)
    trial = late.ask()
    values = {"x": 0.125, "y": 0.875}
    space = optuna.distributions.FloatDistribution(0, 1)

    def suggest(names: list[str]) -> None:
        for name in names:
            storage.set_trial_param(trial._trial_id, name, values[name], space)

    suggest([*values][:known])
    study_of(1).optimize(objective)
    suggest([*values][known:])
    storage.set_trial_intermediate_value(trial._trial_id, SIZES[0], 0.5)

    curves = learning_curves(study_of(2))
    assert len(curves) == 3
    assert curves[0].learner == 0
    resumed = [t for t in late.trials if records.read_run(t).learner == 0][1:]
    assert resumed
    for curve in curves:
        scores = [sum(curve.params.values()) - 1 / seen.size for seen in curve.observations]
        assert [seen.score for seen in curve.observations] == pytest.approx(scores)
    assert curves[0].params == resumed[-1].params
    assert (curves[0].params["x"] == 0.125) == bool(known)


@pytest.mark.parametrize("moment", ["release_dead", "write_given_up"])
def test_a_worker_that_was_stopped_itself_takes_nobody_for_dead(
    moment: str, monkeypatch: pytest.MonkeyPatch, skip: Callable[[float], None]
) -> None:
    """The last look may be long ago, and others have gone on since."""
    storage = InMemoryStorage()
    other = table_study(storage=storage)
    trial = other.ask()
    study = table_study(storage=storage, stale_after=0.05)
    looking(study)
    if moment == "write_given_up":
        skip(0.1)  # silent indeed, until the worker looks and is stopped

    def stopped(as_it_is: Callable[..., Any], *given: Any, **options: Any) -> Any:
        answer = None if moment == "release_dead" else as_it_is(*given, **options)
        skip(0.1)
        report_row(trial, trial.suggest_int("row", 0, 4), SIZES[0])
        return as_it_is(*given, **options) if answer is None else answer

    where = (liveness, moment) if moment == "release_dead" else (Worker, "silence")
    once(monkeypatch, *where, stopped)
    study.ask()
    assert records.GIVEN_UP not in study.trials[trial.number].system_attrs
    curve = learning_curves(study)[trial.number]
    assert [seen.score for seen in curve.observations] == [scores_of(0, SIZES[0])[0]]


@pytest.mark.parametrize("size", SIZES[:2])
def test_a_plain_objective_that_was_silent_too_long_is_pruned(size: int) -> None:
    """It knows of `trial.report` and `trial.should_prune` only."""
    study = table_study(stale_after=0.01)
    slow = table_study(storage=study._storage)
    trial = slow.ask()
    row = trial.suggest_int("row", 0, 4)
    for n in SIZES[: SIZES.index(size)]:
        trial.report(scores_of(row, n)[0], n)
        assert not trial.should_prune()
    study.optimize(TableObjective())
    trial.report(scores_of(row, size)[0], size)
    assert trial.should_prune()
    slow.tell(trial, state=TrialState.PRUNED)
    assert study.best_trial.params["row"] == WINNER


def test_a_full_size_result_that_comes_back_late_is_told_all_the_same() -> None:
    """Between its last report and its end nobody asks whether it is still its turn."""
    study = table_study(2, stale_after=0.01)
    slow = table_study(2, storage=study._storage, patience=AT_ONCE)
    trial, score = slow.ask(), 0.0
    row = trial.suggest_int("row", 0, 4)
    for n in SIZES:
        score = report_row(trial, row, n)
    study.optimize(TableObjective())
    before = study.best_params
    slow.tell(trial, score)
    for again in (study, table_study(2, storage=study._storage)):
        assert final(again).params == again.best_params == before


def sizes_trained(trial: optuna.Trial, before: int = 10**9) -> list[int]:
    """Train the only learner, whose scores are its sizes, and return those before a size."""
    trial.suggest_int("row", 0, 0)
    trained: list[int] = []
    for n in training_sizes(trial):
        if n >= before:
            break
        report(trial, n, float(n), training_score=1.0)
        trained.append(n)
    return trained


@pytest.mark.parametrize("n_before", [0, 1, 2], ids="{} sizes of its own before".format)
def test_a_run_whose_learner_got_its_full_score_from_another_is_over(
    n_before: int, storage: Place
) -> None:
    """One taken for dead ends late, while its successor is about to train the learner."""
    study = table_study(1, storage=storage, sizes=LADDER, patience=AT_ONCE)
    late = table_study(1, storage=storage, sizes=LADDER)
    first, reached = late.ask(), LADDER[-1 - n_before :]
    sizes_trained(first, reached[0])
    log.write_given_up(study, study.trials[0])
    second, trained = study.ask(), list[int]()
    assert second.suggest_int("row", 0, 0) == 0

    def objective() -> float:
        for n in training_sizes(second):
            if n == LADDER[-1] or len(trained) == n_before:
                pytest.fail(f"{n} examples were trained on once more")
            score = float(n)
            report(second, n, score, training_score=1.0)
            trained.append(n)
            if len(trained) == n_before:
                come_back()
        return score

    def come_back() -> None:
        for n in reached:
            first.report(float(n), n)
        late.tell(first, float(LADDER[-1]))

    if not n_before:
        come_back()
    with pytest.raises(optuna.TrialPruned, match="another worker has trained it on all 800"):
        objective()
    study.tell(second, state=TrialState.PRUNED)
    assert trained == [*reached[:n_before]]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
    assert records.FAILED not in study.trials[1].system_attrs
    (curve,) = learning_curves(study)
    assert [seen.size for seen in curve.observations] == [*LADDER]
    assert (study.best_value, study.best_trial.number) == (800.0, 0)


def test_a_late_score_of_a_smaller_size_is_not_trained_again() -> None:
    study = table_study(1, sizes=LADDER, patience=AT_ONCE)
    late = table_study(1, storage=study._storage, sizes=LADDER)
    first = late.ask()
    first.suggest_int("row", 0, 0)
    log.write_given_up(study, study.trials[0])
    second = study.ask()
    second.suggest_int("row", 0, 0)
    first.report(100.0, LADDER[0])
    assert sizes_trained(second) == [*LADDER[1:]]
    assert [*training_sizes(second)] == [], "asked for once more"


# Heartbeats


@pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used")
def test_a_claim_bears_a_heartbeat_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies before Optuna's first heartbeat would hold its learner for ever."""
    storage = RDBStorage(sqlite(tmp_path), **releases.heartbeat(60, grace_period=120))
    study = table_study(storage=storage)
    write_run = log.write_run

    def heart_beats(study: optuna.Study, trial: FrozenTrial, run: Run) -> None:
        query = f"SELECT count(*) FROM trial_heartbeats WHERE trial_id = {trial._trial_id}"
        with storage.engine.begin() as connection:
            assert connection.exec_driver_sql(query).scalar() == 1
        write_run(study, trial, run)

    monkeypatch.setattr(log, "write_run", heart_beats)
    study.optimize(TableObjective(), n_trials=1)
    assert records.read_run(study.trials[0]) is not None


@pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed to be used")
def test_ask_and_tell_bears_no_heartbeat_that_would_stop(tmp_path: Path) -> None:
    storage = RDBStorage(sqlite(tmp_path), **releases.heartbeat(60, grace_period=120))
    study = table_study(storage=storage)
    trial = study.ask()
    told(study, trial, TableObjective())
    with storage.engine.begin() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM trial_heartbeats").scalar()
    assert study.trials[0].intermediate_values
    assert count == 0


@pytest.mark.parametrize("place", ["before_trial", "infer", "sample"])
def test_a_worker_that_dies_while_the_base_sampler_thinks_frees_its_learner(
    tmp_path: Path, place: str
) -> None:
    def die(*at: object) -> None:
        if at == (place, 0):
            raise SystemExit

    options = releases.heartbeat(60, grace_period=120)
    lost = table_study(1, storage=RDBStorage(sqlite(tmp_path), **options), base=Stalling(die))
    with pytest.raises(SystemExit):
        lost.optimize(TableObjective())
    if lost.trials[0].state == TrialState.FAIL:
        return  # where Optuna asks first, it is given up at once
    storage = RDBStorage(sqlite(tmp_path), **options)
    with storage.engine.begin() as connection:
        stop = "UPDATE trial_heartbeats SET heartbeat = datetime('now', '-1 hour')"
        assert connection.exec_driver_sql(stop).rowcount == 1
    study = table_study(1, storage=storage)
    study.optimize(TableObjective())
    assert study.trials[0].state == TrialState.FAIL
    assert_sound(study)


def test_the_heart_beats_while_the_base_sampler_learns_from_a_run(tmp_path: Path) -> None:
    """Optuna's own heartbeats end with the objective."""
    storage = RDBStorage(sqlite(tmp_path), **releases.heartbeat(1, grace_period=3600))
    n_beaten: list[int] = []

    class Learning(InOrder):
        def after_trial(self, study: optuna.Study, trial: FrozenTrial, *ended: Any) -> None:
            stopped = "UPDATE trial_heartbeats SET heartbeat = datetime('now', '-1 day')"
            fresh = "SELECT sum(heartbeat > datetime('now', '-1 hour')) FROM trial_heartbeats"
            with storage.engine.begin() as connection:
                connection.exec_driver_sql(stopped)
            deadline = time.monotonic() + 30
            while not (n_beaten and n_beaten[-1]) and time.monotonic() < deadline:
                time.sleep(0.1)
                with storage.engine.begin() as connection:
                    n_beaten.append(connection.exec_driver_sql(fresh).scalar_one())

    study = table_study(storage=storage, base=Learning())
    study.optimize(TableObjective(), n_trials=1)
    assert n_beaten[-1] == 1


def test_behind_a_proxy_silence_counts_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(optuna.storages, "GrpcStorageProxy", InMemoryStorage, raising=False)
    study = table_study(1, patience=Patience(proxied=0.2))
    assert in_thread(table_study(1, storage=study._storage).ask) == []
    caplog.clear()
    study.optimize(TableObjective())
    assert caplog.text.count("passes no heartbeat on") == 1
    assert records.GIVEN_UP in study.trials[0].system_attrs
    assert liveness.patience_with(study, 7.0) == 7.0
    monkeypatch.undo()
    assert liveness.patience_with(study, None) is None, "elsewhere nobody is silent too long"
    assert study.best_trial.last_step == SIZES[-1]


def test_a_run_that_ends_while_silent_ones_are_given_up_is_left_alone(
    tmp_path: Path, skip: Callable[[float], None]
) -> None:
    """Giving up the first one looks at the study again, and the second one has ended."""
    url = sqlite(tmp_path)
    other = table_study(5, storage=url)
    trials = [other.ask() for _ in range(2)]
    for trial in trials:
        trial.suggest_int("row", 0, 4)
        next(training_sizes(trial))
    study = table_study(5, storage=url, stale_after=0.2)
    worker = worker_of(study)
    worker.look()
    skip(0.3)
    worker.look()
    other.tell(trials[1], state=TrialState.PRUNED)
    assert liveness.release_dead(study, worker, 0.2, but_for=-1)
    assert [trial.state for trial in other.trials] == [TrialState.RUNNING, TrialState.PRUNED]
