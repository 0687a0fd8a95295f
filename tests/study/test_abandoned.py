"""A worker may die after it has taken a trial and before the trial was dealt a learner."""

from __future__ import annotations

import pytest
from optuna.samplers import GridSampler
from optuna.trial import TrialState

from optuna_daub.study import ledger
from tests.study.table_study import TableObjective
from tests.study.table_study import table_study
from tests.study.test_sampler import RIVALS


def test_an_enqueued_learner_whose_worker_died_at_once_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "UNDEALT_SECONDS", 0.0)
    study = table_study(base=GridSampler({"row": range(5)}, seed=0))
    study.enqueue_trial({"row": 4})
    lost = study._pop_waiting_trial_id()  # and its worker is gone
    assert lost is not None
    study.optimize(TableObjective(RIVALS))
    assert study.trials[0].state == TrialState.FAIL
    assert {"row": 4} in [trial.params for trial in study.trials]


def test_a_trial_begun_a_moment_ago_is_left_alone() -> None:
    study = table_study()
    study._storage.create_new_trial(study._study_id)
    study.optimize(TableObjective(RIVALS), n_trials=2)
    assert study.trials[0].state == TrialState.RUNNING
