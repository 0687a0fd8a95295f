"""Stopped or killed anywhere and started again, a study comes to the same answer."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import optuna
import pytest
import sqlalchemy
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import training_sizes
from optuna_daub.study import liveness
from optuna_daub.study import worker as workers
from optuna_daub.study.known import Known
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of
from tests.study import releases
from tests.study.forked import be_killed
from tests.study.forked import go_on
from tests.study.forked import in_new_process
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import InOrder
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_sound
from tests.study.table_study import by_formula
from tests.study.table_study import expected
from tests.study.table_study import final
from tests.study.table_study import one_number
from tests.study.table_study import optimize_some
from tests.study.table_study import pair
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import report_row
from tests.study.table_study import runs
from tests.study.table_study import sqlite
from tests.study.table_study import table_study


pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

TWO = MADE_OF_TWO, WINNER_OF_TWO = expected(2)
"""The same of two learners: enough where each look at a database takes its time."""


def assert_same_answer(
    study: optuna.Study, wanted: tuple[list[tuple[int, int]], int] = (MADE, WINNER)
) -> None:
    assert (probes(study), study.best_trial.params["row"]) == wanted
    assert_sound(study)


def test_stopped_after_every_number_of_trials() -> None:
    undisturbed = table_study()
    undisturbed.optimize(TableObjective())
    for n_trials in range(len(undisturbed.trials) + 1):  # after its end, nothing is trained
        study = table_study()
        optimize_some(study, TableObjective(), n_trials)
        workers._WORKERS.clear()  # all that a new process would not know
        again = table_study(storage=study._storage)
        again.optimize(TableObjective())
        assert_same_answer(again)
        assert len(again.trials) <= len(undisturbed.trials) + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "at"),
    [
        ("before", MADE_OF_TWO[1]),  # a probe ends
        ("before", (WINNER_OF_TWO, SIZES[-1])),
        ("after", MADE_OF_TWO[2]),  # its report
        ("after", (WINNER_OF_TWO, SIZES[-1])),
    ],
)
def test_killed_at_a_probe_it_goes_on(tmp_path: Path, when: str, at: tuple[int, int]) -> None:
    url = sqlite(tmp_path)
    assert in_new_process(be_killed, url, when, *at) == -signal.SIGKILL
    assert in_new_process(go_on, url) == 0
    study = table_study(2, storage=url)
    assert study.best_trial.params["row"] == WINNER_OF_TWO
    assert study.best_trial.last_step == SIZES[-1]
    assert [*dict.fromkeys(probes(study))] == MADE_OF_TWO  # that in flight may be repeated
    if when == "before":
        assert_same_answer(study, TWO)
        assert [trial.state for trial in study.trials].count(TrialState.FAIL) == 1


@pytest.mark.slow
def test_kills_do_not_add_up_to_a_drop(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    for _ in range(3):
        assert in_new_process(be_killed, url, "before", *MADE_OF_TWO[4]) == -signal.SIGKILL
    go_on(url)
    assert_same_answer(table_study(2, storage=url), TWO)


def test_a_learner_that_workers_die_of_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It may need more memory than there is, and end one worker after the other."""
    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=1)
    for count in range(4):
        said = "Learner 0 was broken off 3 times beyond 0 examples"
        assert (said in caplog.text) == (count > 2)
        monkeypatch.setattr(liveness, "this_worker", lambda: "another")
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        assert next(iter(training_sizes(trial))) == SIZES[0]
        monkeypatch.setattr(liveness, "is_dead", lambda worker: worker == "another")
        monkeypatch.setattr(liveness, "this_worker", lambda: "this")
        worker = worker_of(study)
        worker.look()
        worker.holders.clear()
        liveness.release_dead(study, worker, None, -1)
    study.optimize(one_number)
    assert final(study).learner == 0


@pytest.mark.parametrize(("at", "times"), [(MADE[0], 1), (MADE[0], 3), ((WINNER, SIZES[3]), 3)])
def test_ctrl_c_is_not_held_against_the_learner(at: tuple[int, int], times: int) -> None:
    study = table_study()
    for _ in range(times):
        with pytest.raises(KeyboardInterrupt):
            study.optimize(TableObjective(before=raising(KeyboardInterrupt, at)))
    study.optimize(TableObjective())
    assert_same_answer(study)


@pytest.mark.slow
@pytest.mark.parametrize("kth", [1, 2, 4, 6, 11, 34])
def test_ctrl_c_amid_a_write_to_sqlite_locks_nothing(kth: int, tmp_path: Path) -> None:
    """The file is locked for as long as the transaction that was broken off is open.

    The first ones store the study's sizes and its rule, a parameter, a score, what users read of
    the run, and a score that a later run has inherited.
    Those of Optuna's own, which start and end a trial, it leaves to the end of the process.
    """
    storage = RDBStorage(sqlite(tmp_path), engine_kwargs={"connect_args": {"timeout": 0.5}})
    study = table_study(2, storage=storage)
    writes: list[str] = []
    to_come = iter(range(kth))

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if not statement.startswith("SELECT"):
            writes.append(statement)

    def interrupt(_: sqlalchemy.Connection) -> None:
        is_ours = bool(writes) and "INSERT INTO trials" not in writes[0]
        writes.clear()
        if is_ours and next(to_come, None) == kth - 1:
            raise KeyboardInterrupt

    sqlalchemy.event.listen(storage.engine, "before_cursor_execute", note)
    sqlalchemy.event.listen(storage.engine, "commit", interrupt)
    # Optuna, interrupted as it tells, asks for a variable of its own that it has not set.
    with pytest.raises((KeyboardInterrupt, UnboundLocalError)):
        study.optimize(TableObjective())
    go_on(sqlite(tmp_path))
    assert_same_answer(table_study(2, storage=sqlite(tmp_path)), TWO)


@pytest.mark.slow
@pytest.mark.parametrize("kth", [1, 13, 23, 25])
def test_ctrl_c_amid_a_read_from_sqlite_locks_nothing(kth: int, tmp_path: Path) -> None:
    """A statement that was broken off locks the file too, until nothing refers to it."""
    storage = RDBStorage(sqlite(tmp_path), engine_kwargs={"connect_args": {"timeout": 0.5}})
    study = table_study(2, storage=storage)
    to_come = iter(range(kth))

    def interrupt(_: object, cursor: object, statement: str, *__: object) -> None:
        callers = [frame.f_globals["__name__"] for frame, _ in traceback.walk_stack(None)]
        is_ours = any(name.startswith("optuna_daub.") for name in callers)
        if is_ours and statement.startswith("SELECT") and next(to_come, None) == kth - 1:
            raise KeyboardInterrupt

    sqlalchemy.event.listen(storage.engine, "after_cursor_execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(TableObjective())
    assert study.trials[-1].state == TrialState.FAIL, "its end could be stored"
    study.optimize(TableObjective())
    assert_same_answer(table_study(2, storage=sqlite(tmp_path)), TWO)


def test_ctrl_c_amid_a_look_forgets_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    study = table_study()
    optimize_some(study, TableObjective(), 6)
    again = table_study(storage=study._storage)
    with monkeypatch.context() as patch:
        patch.setattr(Known, "with_trials", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            looking(again)
    assert looking(again).known.curves == looking(study).known.curves


def test_fewer_learners_on_reopening_keep_those_there_are() -> None:
    study = table_study()
    optimize_some(study, TableObjective(), 3)
    study = table_study(1, storage=study._storage)
    study.optimize(TableObjective())
    assert {row for row, _ in probes(study)} == {0, 1, 2}
    assert_sound(study)


# Workers that are dead without this machine knowing


def hung(study: optuna.Study, n_probes: int) -> optuna.Trial:
    """Return a running trial that nobody will ever finish, after some probes."""
    trial = study.ask()
    row = trial.suggest_int("row", 0, len(RIVALS) - 1)
    for size in SIZES[:n_probes]:
        report_row(trial, row, size)
    return trial


def heartbeat_storage(folder: Path, callback: releases.Callback | None) -> RDBStorage:
    return RDBStorage(sqlite(folder), **releases.heartbeat(1, grace_period=1, callback=callback))


@pytest.mark.slow
@pytest.mark.parametrize(("inherits", "n_probes"), [(None, 1), (False, 0), (True, 3)])
def test_a_trial_without_heartbeat_is_resumed(
    tmp_path: Path, inherits: bool | None, n_probes: int
) -> None:
    callback = None if inherits is None else releases.retry(inherit_intermediate_values=inherits)
    storage = heartbeat_storage(tmp_path, callback)
    trial = hung(table_study(2, storage=sqlite(tmp_path)), n_probes)
    storage.record_heartbeat(trial._trial_id)
    with storage.engine.begin() as connection:
        an_hour_ago = "datetime('now', '-1 hour')"
        connection.exec_driver_sql(f"UPDATE trial_heartbeats SET heartbeat = {an_hour_ago}")
    study = table_study(2, storage=storage)
    study.optimize(TableObjective())
    assert study.trials[0].state == TrialState.FAIL
    assert_same_answer(study, TWO)


@pytest.mark.parametrize("inherits", [False, True])
def test_a_retried_trial_whose_learner_needs_nothing_does_not_end_the_study(
    inherits: bool,
) -> None:
    """The callback's copy waits in the queue while the learner is resumed by another."""
    study = table_study()
    trial = hung(study, 1)
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
    for _ in range(2):
        releases.retry(inherit_intermediate_values=inherits)(study, study.trials[0])
    study.optimize(TableObjective())
    assert study.best_trial.params["row"] == WINNER
    assert {*probes(study)} == {*MADE}, "a copy was given data that the policy did not"
    assert_sound(study)


def test_parameters_that_a_failed_run_did_not_get_to_are_chosen_once() -> None:
    """All runs of a learner must share their parameters, or its curve is a mixture."""

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("row", 0, 4)
        if trial.number == WINNER:
            raise RuntimeError("no connection to the data")
        trial.suggest_float("chosen_later", 0, 1)
        return TableObjective()(trial)

    class Base(InOrder):
        rng = optuna.samplers.RandomSampler(seed=0)

        def sample_independent(self, *args: Any) -> Any:
            in_order = args[2] == "row"
            return (super() if in_order else self.rng).sample_independent(*args)

    study = table_study(base=Base())
    study.optimize(objective, catch=(RuntimeError,))
    key = "chosen_later"
    chosen = {(run.learner, t.params[key]) for t, run in runs(study) if key in t.params}
    assert sum(run.learner == WINNER for _, run in runs(study)) > 2, "not resumed often enough"
    assert len(chosen) == len({learner for learner, _ in chosen})


@pytest.mark.parametrize("n_learners", [12, None])
def test_a_cell_that_is_run_again_goes_on_with_new_learners(n_learners: int | None) -> None:
    """It makes a sampler with the same seed, which would propose the same learners again."""
    storage, counts = InMemoryStorage(), []
    objective = by_formula(lambda x, n: x - 10 / n)
    for more in (0, 8):
        study = pair(
            DAUBPruner(max_resource=800, cost="examples"),
            RandomSampler(seed=0),
            storage=storage,
            name="cell",
            n_learners=n_learners and n_learners + more,
        )
        study.optimize(objective, n_trials=None if n_learners else 25)
        counts.append(len(learning_curves(study)))
    if n_learners:
        assert counts == [12, 20]
    assert counts[1] > counts[0]
