"""A worker may die after it has taken a trial and before the trial was dealt a learner."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import optuna
import pytest
from optuna.samplers import BruteForceSampler
from optuna.trial import TrialState
from optuna_daub.study.ledger import forget_ledger_of
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.view import one_row_per_learner

from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import Wait
from optuna_daub.study import dealing
from optuna_daub.study import keys
from optuna_daub.study import workers
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_sound
from tests.study.table_study import sqlite
from tests.study.table_study import table_study


def test_an_enqueued_learner_whose_worker_died_at_once_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "UNDEALT_SECONDS", 0.0)
    study = table_study()
    study.enqueue_trial({"row": 4})
    lost = study._pop_waiting_trial_id()  # and its worker is gone
    assert lost is not None
    study.optimize(TableObjective(RIVALS))
    assert study.trials[0].state == TrialState.FAIL
    curves = learning_curves(study)
    assert len(curves) == 5
    assert curves[0].params == {"row": 4}
    assert [seen.size for seen in curves[0].observations[:3]] == [*SIZES[:3]]
    assert [trial.number for trial in study.trials if keys.wishes(trial)] == [0]
    assert one_row_per_learner(study.trials)[0].params == {"row": 4}


@pytest.mark.parametrize("zone", [-timedelta(hours=11), timedelta(0), timedelta(hours=5.75)])
@pytest.mark.parametrize(
    ("seconds", "state"),
    [(0, TrialState.RUNNING), (-20, TrialState.RUNNING), (100, TrialState.FAIL)],
)
def test_a_trial_begun_a_moment_ago_is_left_alone(
    zone: timedelta, seconds: int, state: TrialState
) -> None:
    """Also by a worker in another time zone, or whose clock is some seconds ahead."""
    study = table_study()
    begun = study._storage.create_new_trial(study._study_id)
    stored = study._storage._get_trial(begun)  # type: ignore[attr-defined]
    stored.datetime_start += zone - timedelta(seconds=seconds)
    study.optimize(TableObjective(RIVALS), n_trials=2)
    assert study.trials[0].state == state


@pytest.mark.parametrize("is_taken", [False, True])
def test_nobody_begins_a_learner_in_place_of_an_enqueued_one(is_taken: bool) -> None:
    """Not even a trial of a lower number, begun before the other was enqueued."""
    study = table_study(2)
    study.ask()
    idle = study._storage.create_new_trial(study._study_id)
    keys.write_run(study, idle, keys.Run(None, n_learners=2, full_size=54))
    study.enqueue_trial({"row": 4})
    if is_taken:
        study._pop_waiting_trial_id()
    decision = synced_ledger_of(study).decide(study.pruner.policy, 1)
    assert isinstance(decision, Wait)


def test_a_worker_that_waits_turns_to_what_is_enqueued() -> None:
    study = table_study(1)
    held = study.ask()
    asked: list[optuna.Trial] = []
    worker = threading.Thread(target=lambda: asked.append(study.ask()), daemon=True)
    worker.start()
    deadline = time.monotonic() + 30
    while len(study.trials) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    study.enqueue_trial({"row": 3})
    worker.join(30)
    (idle,) = asked
    run = keys.read_run(study.trials[idle.number].system_attrs)
    assert run is not None
    assert run.learner is None
    assert run.reason == "enqueued learners come first"
    study.tell(idle, state=TrialState.PRUNED)
    assert study.ask().suggest_int("row", 0, 4) == 3
    assert held.suggest_int("row", 0, 4) == 0


def test_the_end_waits_for_what_is_enqueued() -> None:
    """An idle worker sees that the only learner is done, and another one in the queue."""
    study = table_study(1)
    objective = TableObjective(RIVALS)
    first = study.ask()
    study.tell(first, objective(first))
    idle = study._storage.create_new_trial(study._study_id)
    keys.write_run(study, idle, keys.Run(None, n_learners=1, full_size=54))
    study.enqueue_trial({"row": 4})
    assert isinstance(synced_ledger_of(study).decide(study.pruner.policy, 1), Wait)
    study.tell(1, state=TrialState.PRUNED)
    study.optimize(objective, n_trials=1)
    assert [curve.params for curve in learning_curves(study)] == [{"row": 0}, {"row": 4}]


def test_workers_asked_for_other_numbers_of_learners_keep_to_their_own() -> None:
    """The run of a dead worker, given up by the way, tells its own sampler's number."""
    study = table_study(1)
    lost = study.ask()
    name_as_dead(study, lost)
    table_study(3, storage=study._storage).optimize(TableObjective(RIVALS))
    assert len(learning_curves(study)) == 3


def test_a_retried_trial_is_not_taken_for_its_dead_worker(tmp_path: Path) -> None:
    """Optuna's callback copies what the dead worker was dealt, with its name."""
    study = table_study(3, storage=sqlite(tmp_path))
    lost = study.ask()
    name_as_dead(study, lost)
    study.tell(lost, state=TrialState.FAIL)
    dead = study.trials[0].system_attrs
    retry = optuna.create_trial(state=TrialState.WAITING, system_attrs=dict(dead))
    study._storage.create_new_trial(study._study_id, template_trial=retry)
    study._storage.create_new_trial(study._study_id)  # of a second worker, begun just now
    assert study.ask().number == 1
    assert study.trials[1].state == TrialState.RUNNING


def test_an_error_while_dealing_puts_an_enqueued_trial_back(tmp_path: Path) -> None:
    study = table_study(3, storage=sqlite(tmp_path))
    study.optimize(TableObjective(RIVALS), n_trials=1)
    study.enqueue_trial({"row": 4})
    other = table_study(3, storage=sqlite(tmp_path), sizes=(*SIZES, 99))
    with pytest.raises(ValueError, match="must go on with the sizes"):
        other.optimize(TableObjective(RIVALS))
    study.optimize(TableObjective(RIVALS))
    assert {"row": 4} in [curve.params for curve in learning_curves(study)]
    assert_sound(study)


@pytest.mark.parametrize("is_dealt", [False, True])
def test_an_interrupt_while_dealing_loses_no_enqueued_learner(
    monkeypatch: pytest.MonkeyPatch, is_dealt: bool
) -> None:
    """Before its run was written the trial waits again, afterwards its learner is resumed."""
    study = table_study(1)
    study.optimize(TableObjective(RIVALS))
    study.enqueue_trial({"row": 4})  # one more than the sampler was asked for

    def interrupted(study: optuna.Study, trial_id: int, run: keys.Run) -> None:
        if is_dealt:
            write_run(study, trial_id, run)
        raise KeyboardInterrupt

    write_run = keys.write_run
    with monkeypatch.context() as patch:
        patch.setattr(keys, "write_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.optimize(TableObjective(RIVALS))
    taken = [trial for trial in study.trials if keys.wishes(trial)]
    expected = TrialState.FAIL if is_dealt else TrialState.WAITING
    assert [trial.state for trial in taken] == [expected]
    forget_ledger_of(study)  # as a new process would begin
    study.optimize(TableObjective(RIVALS))
    assert {"row": 4} in [curve.params for curve in learning_curves(study)]
    assert all(trial.state.is_finished() for trial in study.trials)


def test_a_silent_run_is_given_up_whatever_the_time_zone() -> None:
    """Optuna stores when a trial began in local time, which is another one elsewhere."""
    study = table_study(3)
    name_as_dead(study, study.ask())
    stored = study._storage._get_trial(0)  # type: ignore[attr-defined]
    stored.datetime_start += timedelta(hours=8)
    study.optimize(TableObjective(RIVALS))
    assert study.trials[0].state == TrialState.FAIL
    assert len(learning_curves(study)) == 3


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("is_enqueued", [False, True])
def test_brute_force_does_not_see_who_died_at_once(
    monkeypatch: pytest.MonkeyPatch, is_enqueued: bool
) -> None:
    monkeypatch.setattr(workers, "UNDEALT_SECONDS", 0.0)
    study = table_study(base=BruteForceSampler(seed=0))
    if is_enqueued:
        study.enqueue_trial({"row": 4})
        study._pop_waiting_trial_id()
    else:
        study._storage.create_new_trial(study._study_id)
    study.optimize(TableObjective(RIVALS))
    assert sorted(curve.params["row"] for curve in learning_curves(study)) == [*range(5)]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("is_enqueued", [False, True])
def test_brute_force_completes_what_a_dead_worker_did_not_suggest(
    monkeypatch: pytest.MonkeyPatch, is_enqueued: bool
) -> None:
    def objective(trial: optuna.Trial) -> float:
        target = trial.suggest_int("a", 0, 3) + trial.suggest_int("b", 0, 3) / 4
        for n in training_sizes(trial):
            report(trial, n, target - 1 / n, training_score=target + 1 / n)
        return target

    monkeypatch.setattr(workers, "UNDEALT_SECONDS", 0.0)
    study = table_study(4, base=BruteForceSampler(seed=0))
    study.optimize(objective, n_trials=1)
    if is_enqueued:
        study.enqueue_trial({"a": 3})
        study._pop_waiting_trial_id()
    else:
        name_as_dead(study, study.ask())
    study.optimize(objective)
    pairs = [(curve.params["a"], curve.params["b"]) for curve in learning_curves(study)]
    assert len(set(pairs)) == len(pairs) == 4
    assert pairs[1][0] == 3 or not is_enqueued


def test_a_worker_taken_for_dead_gives_its_learner_up() -> None:
    study = table_study()
    slow = study.ask()
    run = keys.read_run(study.trials[0].system_attrs)
    assert run is not None
    study.tell(slow, state=TrialState.FAIL)
    others = synced_ledger_of(study)
    assert not dealing._stands(study, others, study.trials[0], run)


def name_as_dead(study: optuna.Study, trial: optuna.Trial) -> None:
    """Let a trial be that of a process of this machine that is gone."""
    run = keys.read_run(study.trials[trial.number].system_attrs)
    assert run is not None
    machine = run.worker.split("|")[0]
    keys.write_run(study, trial._trial_id, replace(run, worker=f"{machine}|999999999|gone"))
