"""A set-up that can never work is found before anything is trained, and ends the study."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import training_sizes
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.study.setup_errors import SetupError
from tests.objective.studies import SIZES
from tests.objective.studies import Witness
from tests.objective.studies import created
from tests.objective.studies import objective_of
from tests.objective.studies import witness


def _suggests_something_else(trial: optuna.Trial, n: int) -> Any:
    trial.suggest_float(f"x at {n}", 0, 1)
    return Witness()


of_witness = partial(objective_of, build=witness)

CASES: dict[str, tuple[Callable[[], TrainingSizeObjective], dict[str, Any], str]] = {
    "direction": (of_witness, {"direction": "minimize"}, 'Pass `direction="maximize"` to'),
    "sizes above the rows": (of_witness, {"pruner": DAUBPruner(sizes=(30, 60, 5000))},
                             "Pass `max_resource=objective.n_train`"),
    "sizes below the classes": (of_witness, {"pruner": DAUBPruner(sizes=(1, 60, 100))},
                                "`min_resource=3` or more"),
    "another pruner": (of_witness, {"pruner": optuna.pruners.MedianPruner()},
                       "pass `pruner=DAUBPruner"),
    "no estimator": (lambda: objective_of(build=lambda trial: trial.suggest_float("x", 0, 1)), {},
                     "`build` must return an unfitted estimator"),
    "other parameters at another size": (lambda: objective_of(build=_suggests_something_else), {},
                                         "must suggest the same parameters"),
    "no partial_fit": (lambda: of_witness(incremental=True), {},
                       "`incremental=True` needs estimators with `partial_fit`, but Witness"),
    "fit_params": (lambda: of_witness(fit_params=lambda training, validation: None), {},
                   "`fit_params` must return a mapping from arg.* values, but returned None"),
}  # fmt: skip


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_it_ends_the_study_whatever_is_caught(case: str, n_jobs: int) -> None:
    objective, settings, way_out = CASES[case]
    study = created(n_learners=4, **settings)
    with pytest.raises(SetupError, match=way_out):
        study.optimize(objective(), timeout=20, n_jobs=n_jobs, catch=(Exception,))
    assert len(study.trials) <= n_jobs
    assert all(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials)
    assert not Witness.fits
    assert not any(trial.intermediate_values for trial in study.trials)


@pytest.mark.parametrize("case", ["direction", "sizes above the rows", "no estimator"])
def test_with_another_sampler_the_study_ends_and_the_log_has_the_whole_sentence(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    objective, settings, way_out = CASES[case]
    study = created(**settings, sampler=optuna.samplers.RandomSampler(seed=0))
    with caplog.at_level(logging.ERROR, "optuna_daub"):
        study.optimize(objective(), n_trials=50, catch=(Exception,))
    assert len(study.trials) == 1
    (record,) = [each for each in caplog.records if each.name.startswith("optuna_daub")]
    assert way_out in record.getMessage()


@pytest.mark.parametrize("score", [None, "good", [0.5, 0.6]])
def test_a_scorer_that_returns_no_number_ends_the_study(score: object) -> None:
    study = created(n_learners=4)
    objective = objective_of(scoring=lambda estimator, X, y: score)
    with pytest.raises(SetupError, match="`scoring` must return one number"):
        study.optimize(objective, timeout=20, catch=(Exception,))
    assert len(study.trials) == 1


def test_an_objective_of_ones_own_in_a_study_of_another_pruner_ends_it_too() -> None:
    def objective(trial: optuna.Trial) -> float:
        return float(trial.suggest_float("x", 0, 1) + sum(training_sizes(trial)))

    study = created(pruner=optuna.pruners.NopPruner())
    with pytest.raises(SetupError, match="must be one of optuna_daub"):
        study.optimize(objective, n_trials=50, catch=(Exception,))
    assert len(study.trials) == 1


def test_a_study_goes_on_once_its_set_up_is_mended() -> None:
    study = created((30, 60, 5000))
    with pytest.raises(SetupError, match="max_resource"):
        study.optimize(objective_of(), catch=(Exception,))
    study.pruner = DAUBPruner(sizes=SIZES)
    study.optimize(objective_of())
    assert study.best_trial.last_step == SIZES[-1]


@pytest.mark.parametrize("in_pipeline", [True, False])
def test_a_learner_that_takes_no_weights_fails_alone(in_pipeline: bool) -> None:
    def build(trial: optuna.Trial) -> Any:
        model = Witness() if trial.suggest_categorical("witness", [True, False]) else GaussianNB()
        return make_pipeline("passthrough", make_pipeline(model)) if in_pipeline else model

    grid = optuna.samplers.GridSampler({"witness": [True, False]}, seed=0)
    study = created(sampler=DataAllocationSampler(grid, n_learners=2))
    objective = objective_of(build=build, sample_weight=np.ones(200))
    study.optimize(objective, catch=(TypeError,))
    assert study.best_params == {"witness": False}
    assert not Witness.fits
    failed = [each.state.name for each in study.trials if each.params["witness"]]
    assert failed == ["FAIL", "FAIL"]  # it is tried again once, as after any error
    with pytest.raises(TypeError, match=r"whose `fit` takes .* Witness does not\. .* `among=`"):
        objective(optuna.trial.FixedTrial({"witness": True}))


def test_errors_of_one_learner_are_caught_as_before() -> None:
    def some_fail(trial: optuna.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        return Witness(ValueError if x < 0.6 else None)

    study = created(n_learners=4)
    study.optimize(objective_of(build=some_fail), catch=(ValueError,))
    assert {trial.state.name for trial in study.trials} >= {"FAIL", "COMPLETE"}
