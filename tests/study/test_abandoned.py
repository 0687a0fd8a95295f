"""A worker may die after it has taken a trial and before the trial was dealt a learner."""

from __future__ import annotations

import threading

import optuna
import pytest
from optuna.trial import TrialState

from optuna_daub import learning_curves
from optuna_daub.core import Wait
from optuna_daub.study import keys
from optuna_daub.study import ledger
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.view import one_row_per_learner
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import table_study


def test_an_enqueued_learner_whose_worker_died_at_once_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "UNDEALT_SECONDS", 0.0)
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


def test_a_trial_begun_a_moment_ago_is_left_alone() -> None:
    study = table_study()
    study._storage.create_new_trial(study._study_id)
    study.optimize(TableObjective(RIVALS), n_trials=2)
    assert study.trials[0].state == TrialState.RUNNING


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
    while len(study.trials) < 2:
        pass
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
    study.tell(1, state=TrialState.PRUNED)
    study.optimize(objective, n_trials=1)
    assert [curve.params for curve in learning_curves(study)] == [{"row": 0}, {"row": 4}]
