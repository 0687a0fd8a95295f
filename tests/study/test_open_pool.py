"""An open pool: `optimize` ends when its user says so, and there is a model by then."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.pruners import BasePruner
from optuna.samplers import GridSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import SuccessiveHalving
from optuna_daub.study import AllocationPruner
from tests.strategies import PAPER
from tests.study.table_study import SIZES
from tests.study.table_study import idle
from tests.study.table_study import runs
from tests.study.table_study import sqlite


def open_study(
    storage: str | None = None, pruner: BasePruner | None = None, **options: Any
) -> optuna.Study:
    """Return a study of an open pool; opened if it is there already."""
    return optuna.create_study(
        study_name="open",
        storage=storage,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(RandomSampler(seed=0), **options),
        pruner=pruner or DAUBPruner(sizes=SIZES, cost="examples"),
    )


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0, 1)
    score = 0.0
    for size in training_sizes(trial):
        score = 0.5 + x / 3 - 1 / size
        report(trial, size, score, training_score=0.5 + x / 3 + 1 / size, seconds=size / 100)
    return score


def slow(seconds: float) -> Callable[[optuna.Trial], float]:
    def sleeping(trial: optuna.Trial) -> float:
        time.sleep(seconds)
        return objective(trial)

    return sleeping


def assert_usable(study: optuna.Study) -> None:
    """Assert what users of any study rely on, whenever it is looked at."""
    best = best_learner(study)
    assert best is not None
    assert not best.is_final
    assert best.reason
    assert study.best_trial.last_step == SIZES[-1]
    made = [(probe.learner, probe.observation.size) for probe in allocations(study)]
    assert len(made) == len(set(made))
    assert {t.state for t in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert not idle(study)


def test_n_trials_is_the_number_of_trials() -> None:
    study = open_study()
    study.optimize(objective, n_trials=30)
    assert len(study.trials) == 30
    assert_usable(study)
    assert len(learning_curves(study)) > 5


def test_a_second_optimize_goes_on(tmp_path: Path) -> None:
    whole = open_study()
    whole.optimize(objective, n_trials=30)
    study = open_study()
    for n_trials in (7, 1, 22):
        study.optimize(objective, n_trials=n_trials)
    assert len(study.trials) == 30
    assert [t.params for t in study.trials] == [t.params for t in whole.trials]
    assert learning_curves(study) == learning_curves(whole)


def test_a_study_that_is_loaded_goes_on(tmp_path: Path) -> None:
    open_study(sqlite(tmp_path)).optimize(objective, n_trials=12)
    study = open_study(sqlite(tmp_path))
    study.sampler = DataAllocationSampler(RandomSampler(seed=1))
    study.optimize(objective, n_trials=12)
    assert len(study.trials) == 24
    assert_usable(study)


def test_a_timeout_ends_it_between_trials() -> None:
    study = open_study()
    begun = time.monotonic()
    study.optimize(slow(0.02), timeout=1.0)
    assert 1.0 <= time.monotonic() - begun < 5.0
    assert_usable(study)


def test_with_seconds_it_ends_in_time_too() -> None:
    study = open_study(seconds=1.0)
    begun = time.monotonic()
    study.optimize(slow(0.02))
    assert 0.5 <= time.monotonic() - begun < 5.0
    assert study.best_trial.last_step == SIZES[-1]
    n_trials = len(study.trials)
    study.optimize(slow(0.02))  # so many seconds for each `optimize`
    assert len(study.trials) > n_trials + 5


def test_stop_ends_it_after_the_trial() -> None:
    study = open_study()

    def enough(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if len(study.trials) == 9:
            study.stop()

    study.optimize(objective, callbacks=[enough])
    assert len(study.trials) == 9
    study.optimize(objective, n_trials=20)
    assert len(study.trials) == 29
    assert_usable(study)


def test_stop_within_the_objective_ends_it_too() -> None:
    study = open_study()

    def stopping(trial: optuna.Trial) -> float:
        if trial.number == 11:
            trial.study.stop()
        return objective(trial)

    study.optimize(stopping)
    assert len(study.trials) == 12


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_end_with_n_trials_and_with_stop(n_jobs: int) -> None:
    study = open_study()
    study.optimize(objective, n_trials=40, n_jobs=n_jobs)
    assert len(study.trials) == 40
    assert_usable(study)

    def enough(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if len(study.trials) > 60:
            study.stop()

    study.optimize(objective, n_jobs=n_jobs, callbacks=[enough])
    assert len(study.trials) <= 61 + n_jobs
    assert all(trial.state.is_finished() for trial in study.trials)


@pytest.mark.parametrize("at", [1, 5, 12])
def test_ctrl_c_loses_no_more_than_the_probe_in_flight(at: int) -> None:
    study = open_study()

    def interrupted(trial: optuna.Trial) -> float:
        if trial.number == at and threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        return objective(trial)

    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=50)
    assert len(study.trials) == at + 1
    assert study.trials[at].state == TrialState.FAIL
    assert best_learner(study) is not None
    assert not [c for c in learning_curves(study) if c.state == "dropped"]
    study.optimize(objective, n_trials=30)
    assert not [c for c in learning_curves(study) if c.state == "dropped"]
    made = [(probe.learner, probe.observation.size) for probe in allocations(study)]
    assert len(made) == len(set(made))
    best = best_learner(study)
    assert best is not None
    assert study.best_trial.last_step == SIZES[-1]


def test_callbacks_see_every_trial_once() -> None:
    study = open_study()
    seen: list[int] = []
    study.optimize(
        objective, n_trials=15, callbacks=[lambda study, trial: seen.append(trial.number)]
    )
    assert seen == [*range(15)]


@pytest.mark.parametrize("limit", [{"n_trials": 12}, {"timeout": 1.0}])
def test_the_progress_bar_comes_to_its_end(
    limit: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    study = open_study()
    study.optimize(slow(0.05), show_progress_bar=True, **limit)
    drawn = capsys.readouterr().err
    assert "100%" in drawn
    if "n_trials" in limit:
        assert "12/12" in drawn
    # A score on all the data, as `best_value`: Optuna's bar shows no other.
    shown = re.findall(r"Best trial: (\d+)\. Best value: ([\d.]+)", drawn)
    assert shown
    assert int(shown[-1][0]) == study.best_trial.number


def test_best_values_are_those_of_full_data_only() -> None:
    study = open_study()
    values: list[float] = []

    def look(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
        if complete:
            assert study.best_trial.last_step == SIZES[-1]
            values.append(study.best_value)

    study.optimize(objective, n_trials=30, callbacks=[look])
    assert values == sorted(values)
    assert len(values) > 15


def test_enqueued_trials_come_first() -> None:
    study = open_study()
    study.optimize(objective, n_trials=8)
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.75})
    study.optimize(objective, n_trials=4)
    assert [study.trials[n].params["x"] for n in (8, 9)] == [0.25, 0.75]
    assert {8, 9} <= {run.learner for _, run in runs(study)}


def test_ask_and_tell_goes_on_as_long_as_it_is_asked() -> None:
    study = open_study()
    for _ in range(30):
        trial = study.ask()
        try:
            study.tell(trial, objective(trial))
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)
    assert len(study.trials) == 30
    assert_usable(study)


def test_several_trials_asked_for_at_once_are_several_newcomers() -> None:
    study = open_study()
    asked = [study.ask() for _ in range(3)]
    assert [run.learner for _, run in runs(study)] == [*range(3)]
    for trial in asked:
        try:
            study.tell(trial, objective(trial))
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)


def test_a_space_that_ends_ends_the_study() -> None:
    study = open_study()
    study.sampler = DataAllocationSampler(GridSampler({"x": [0.0, 0.25, 0.5, 1.0]}, seed=0))
    study.optimize(objective)
    best = best_learner(study)
    assert best is not None
    assert best.is_final
    assert best.params == study.best_params == {"x": 1.0}
    assert len(learning_curves(study)) == 4


def test_a_pool_can_be_opened_and_closed() -> None:
    """How many learners there are is the newest sampler's word."""
    study = open_study(n_learners=4)
    study.optimize(objective)
    assert len(learning_curves(study)) == 4
    study.sampler = DataAllocationSampler(RandomSampler(seed=1))
    study.optimize(objective, n_trials=12)
    n_open = len(learning_curves(study))
    assert n_open > 4
    study.sampler = DataAllocationSampler(RandomSampler(seed=2), n_learners=n_open)
    study.optimize(objective, n_trials=99)
    assert len(learning_curves(study)) == n_open
    best = best_learner(study)
    assert best is not None
    assert best.is_final


@pytest.mark.parametrize(
    "pruner",
    [
        DAUBPruner.paper(sizes=SIZES),
        DAUBPruner(sizes=SIZES, **PAPER),
        DAUBPruner(sizes=SIZES, bound="calibrated"),
        ABCPruner(max_resource=8000),
        AllocationPruner(SuccessiveHalving(SIZES)),
    ],
)
def test_a_rule_of_a_closed_pool_asks_for_n_learners_before_anything_is_trained(
    pruner: AllocationPruner,
) -> None:
    study = open_study(pruner=pruner)
    calls: list[int] = []

    def never(trial: optuna.Trial) -> float:
        calls.append(trial.number)
        return 0.0

    rule = f"{type(pruner).__name__} with {type(pruner.policy).__name__} compares a known number"
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{rule}.*n_learners.*is None: pass .n_learners="):
            study.optimize(never, n_trials=5)
        with pytest.raises(ValueError, match=rule):
            study.ask()
    assert not calls
    assert not [t for t in study.trials if not t.state.is_finished()]
    study.sampler = DataAllocationSampler(TPESampler(seed=0), n_learners=2)
    if not isinstance(pruner, ABCPruner):  # whose scores need more facts
        study.optimize(objective)
        assert study.best_trial.last_step == SIZES[-1]
