"""One row per learner: what it says, and that all that Optuna shows of a study says it too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import one_row_per_learner
from optuna_daub.study import one_row
from optuna_daub.study.worker import worker_of
from tests.study.table_study import in_thread
from tests.study.table_study import once
from tests.study.table_study import pair
from tests.study.table_study import scored
from tests.study.table_study import sqlite
from tests.visualization import studies


SIZES = (10_000, 20_000, 40_000, 80_000)


def objective(trial: optuna.Trial) -> float:
    """Return a score that one parameter decides, on a space with branches of its own."""
    live = trial.suggest_float("live", 0.0, 1.0)
    trial.suggest_float("dead", 0.0, 1.0)
    if trial.suggest_categorical("kind", ["tree", "net"]) == "tree":
        trial.suggest_int("depth", 1, 8)
    else:
        trial.suggest_float("rate", 1e-4, 1.0, log=True)
    if trial.params["dead"] > 0.9:
        raise ArithmeticError("no fit")
    sign = 1 if trial.study.direction == optuna.study.StudyDirection.MAXIMIZE else -1
    score = scored(
        trial,
        lambda n: sign * (0.4 + 0.4 * live - 100 / n),
        training_score=lambda n: sign * (0.5 + 0.4 * live - 100 / n),
        n_validation=lambda n: 50_000,
        seconds=lambda n: n / 100,
    )
    trial.set_user_attr("colour", "green")
    return score


def searched(
    pruner: Any = None, n_learners: int | None = 14, direction: str = "maximize", **kwargs: Any
) -> optuna.Study:
    base = RandomSampler(seed=1)
    pruner = pruner or DAUBPruner.paper(sizes=SIZES)
    study = pair(pruner, base, n_learners=n_learners, direction=direction)
    study.optimize(objective, catch=ArithmeticError, **kwargs)
    return study


MAKERS: dict[str, Callable[[], optuna.Study]] = {
    "paper": searched,
    "abc": lambda: searched(
        ABCPruner(min_resource=10_000, max_resource=80_000, n_validation=50_000)
    ),
    "open": lambda: searched(DAUBPruner(sizes=SIZES), n_learners=None, n_trials=30),
    "minimize": lambda: searched(direction="minimize"),
}


@pytest.fixture(scope="module", params=MAKERS)
def study(request: pytest.FixtureRequest) -> optuna.Study:
    return MAKERS[request.param]()


class TestRows:
    def test_each_learner_has_one_with_what_is_known_of_it(self, study: optuna.Study) -> None:
        curves, rows = learning_curves(study), one_row_per_learner(study).trials
        assert [row.user_attrs["daub:learner"] for row in rows] == [c.learner for c in curves]
        assert [row.number for row in rows] == list(range(len(curves)))
        for curve, row in zip(curves, rows, strict=True):
            assert row.params == curve.params
            assert set(row.distributions) == set(curve.params)
            assert row.intermediate_values == {
                seen.size: seen.score for seen in curve.observations
            }
            assert row.user_attrs["daub:state"] == curve.state
            assert row.user_attrs["daub:reason"] == curve.reason
            assert row.user_attrs["daub:training_size"] == curve.size
            examples = sum(seen.size for seen in curve.observations)
            assert row.user_attrs["daub:examples"] == examples
            assert row.user_attrs.get("daub:seconds", 0.0) == pytest.approx(examples / 100)

    def test_the_value_is_the_score_on_all_the_data_or_marked_as_a_forecast(
        self, study: optuna.Study
    ) -> None:
        rows = one_row_per_learner(study).trials
        known = [row for row in rows if row.user_attrs.get("daub:forecast") is False]
        assert known
        assert {row.user_attrs["daub:state"] for row in known} <= {"best", "complete", "dropped"}
        assert all(row.value == row.intermediate_values[80_000] for row in known)
        guessed = [row for row in rows if row.user_attrs.get("daub:forecast") is True]
        assert guessed
        assert all(80_000 not in row.intermediate_values for row in guessed)
        assert all(row.state == TrialState.COMPLETE for row in (*known, *guessed))

    def test_failed_learners_have_no_value(self, study: optuna.Study) -> None:
        failed = [row for row in one_row_per_learner(study).trials if row.state == TrialState.FAIL]
        assert failed
        assert all(row.values is None and "daub:forecast" not in row.user_attrs for row in failed)

    def test_the_duration_is_that_of_its_runs(self, study: optuna.Study) -> None:
        whole = sum((trial.duration for trial in study.trials if trial.duration), timedelta())
        rows = one_row_per_learner(study).trials
        assert sum((row.duration for row in rows if row.duration), timedelta()) == whole

    def test_a_note_on_the_rows_is_none_of_the_study(self, study: optuna.Study) -> None:
        one_row_per_learner(study).set_user_attr("note", "mine")
        assert study.user_attrs == {}

    def test_the_table_has_a_line_per_learner(self, study: optuna.Study) -> None:
        table = one_row_per_learner(study).trials_dataframe()
        assert len(table) == len(learning_curves(study))
        assert {"user_attrs_daub:state", "user_attrs_daub:forecast", "params_live"} <= {*table}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_no_forecast_is_better_than_the_bound_beside_it(direction: str) -> None:
    study = searched(DAUBPruner(sizes=SIZES), None, direction, n_trials=40)
    sign = 1 if direction == "maximize" else -1
    rows = one_row_per_learner(study).get_trials(states=[TrialState.COMPLETE])
    shown = [row for row in rows if row.user_attrs["daub:forecast"]]
    assert len(shown) > 3
    for row in shown:
        assert row.value is not None
        assert sign * row.value <= sign * row.user_attrs["daub:bound"] + 1e-12


def test_attributes_and_constraints_of_the_runs_are_kept() -> None:
    def measured(trial: optuna.Trial) -> float:
        if trial.number < 3 and hasattr(trial, "set_constraint"):
            trial.set_constraint("memory", -1.0)  # by first runs only
        trial.set_user_attr("number", trial.number)
        return objective(trial)

    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=3)
    study.set_user_attr("owner", "me")
    for live in (0.9, 0.8, 0.1):  # the first is suspended and comes back
        study.enqueue_trial({"live": live, "dead": 0.5})
    study.optimize(measured)
    rows = one_row_per_learner(study)
    assert rows.user_attrs == {"owner": "me"}
    assert rows.study_name == f"{study.study_name} (learners)"
    last_runs = {trial.user_attrs["number"] for trial in study.trials}
    assert {row.user_attrs["number"] for row in rows.trials} <= last_runs
    if hasattr(optuna.Trial, "set_constraint"):
        assert all(row.constraints == {"memory": -1.0} for row in rows.trials)
        later = [trial for trial in study.trials if trial.number >= 3]
        assert later
        assert all(trial.constraints == {"memory": -1.0} for trial in later), "they are inherited"


def test_a_running_learner_is_running() -> None:
    study = studies.begun()
    (row,) = one_row_per_learner(study).trials
    assert (row.state, row.values, row.datetime_complete) == (TrialState.RUNNING, None, None)
    suspended, running = one_row_per_learner(studies.running()).trials
    assert suspended.user_attrs["daub:state"] == "suspended"
    assert (running.user_attrs["daub:state"], running.value is not None) == ("running", True)


@pytest.mark.parametrize("writer", ["this process", "another"])
@pytest.mark.parametrize("moment", ["get_trials", "learning_curves"])
def test_what_is_trained_while_the_study_is_looked_at_is_a_learner_or_no_row(
    moment: str, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learner's first run may end between two looks, and is no trial that others have added."""
    study = searched(DAUBPruner(sizes=SIZES), n_learners=None, n_trials=3)
    worker = study
    if writer == "another":
        worker = optuna.load_study(
            study_name=study.study_name,
            storage=study._storage,
            sampler=DataAllocationSampler(RandomSampler(seed=2)),
            pruner=study.pruner,
        )
    place: Any = study if moment == "get_trials" else one_row
    n_known = len(learning_curves(study))

    def work(look: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        seen = look(*args, **kwargs)
        worker.optimize(objective, catch=ArithmeticError, n_trials=8)
        return seen

    once(monkeypatch, place, moment, work)
    rows = one_row_per_learner(study).trials
    assert len(learning_curves(study)) > n_known
    assert len(rows) >= n_known
    for row in rows:
        assert row.user_attrs.keys() >= {"daub:learner", "daub:state"}
        assert ("daub:forecast" in row.user_attrs) == bool(row.intermediate_values)


def test_no_other_thread_takes_trials_in_between_the_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = studies.finished()
    lock = worker_of(study).lock
    was_free: list[bool] = []

    def ask_for_the_lock() -> None:
        was_free.append(lock.acquire(blocking=False))
        if was_free[-1]:
            lock.release()

    def watched(look: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*args: Any, **kwargs: Any) -> Any:
            assert in_thread(ask_for_the_lock) == []
            return look(*args, **kwargs)

        return watch

    monkeypatch.setattr(study, "get_trials", watched(study.get_trials))
    monkeypatch.setattr(one_row, "learning_curves", watched(one_row.learning_curves))
    one_row_per_learner(study)
    assert len(was_free) >= 2
    assert not any(was_free)


def test_enqueued_and_idle_trials_are_no_rows_and_those_of_others_stay() -> None:
    study = studies.new_study()
    study.add_trial(optuna.create_trial(value=0.3))
    assert [row.value for row in one_row_per_learner(study).trials] == [0.3]
    studies.run(study, studies.Table(studies.RIVALS))
    study.optimize(studies.Table(studies.RIVALS))  # one idle trial
    assert len(one_row_per_learner(study).trials) == 1 + len(learning_curves(study))


def test_copied_trials_are_rows_that_say_nothing_of_learners() -> None:
    study = studies.run(studies.new_study(), studies.Table(studies.RIVALS), n_trials=2)
    alone = one_row_per_learner(study).trials
    other = studies.finished()
    study.add_trials(other.trials)
    rows = one_row_per_learner(study).trials
    assert len(rows) == len(alone) + len(other.trials)
    for row, before in zip(rows, alone, strict=False):
        assert (row.params, row.duration) == (before.params, before.duration)
        assert row.user_attrs == before.user_attrs
    for row, copied in zip(rows[len(alone) :], other.trials, strict=True):
        assert (row.state, row.values) == (copied.state, copied.values)
        assert row.user_attrs == {}


def test_what_was_enqueued_out_of_range_is_shown() -> None:
    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=1)
    study.enqueue_trial({"live": 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        study.optimize(objective)
    (row,) = one_row_per_learner(study).trials
    assert row.params["live"] == 2.0


def test_the_same_from_a_database(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    study = studies.new_study(storage=url)
    studies.run(study, studies.Table(studies.RIVALS))
    again = optuna.load_study(study_name="trees", storage=url, pruner=study.pruner)
    here, there = (one_row_per_learner(each).trials for each in (studies.finished(), again))
    for row, other in zip(here, there, strict=True):
        assert (row.params, row.values) == (other.params, other.values)
        assert row.intermediate_values == other.intermediate_values
        assert row.user_attrs == other.user_attrs


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_metric_keeps_its_name() -> None:
    study = studies.finished()
    study.set_metric_names(["accuracy"])
    assert one_row_per_learner(study).metric_names == ["accuracy"]


PLOTS = (
    "plot_contour", "plot_edf", "plot_intermediate_values", "plot_optimization_history",
    "plot_parallel_coordinate", "plot_param_importances", "plot_rank", "plot_slice",
    "plot_timeline", "plot_terminator_improvement",
)  # fmt: skip

OF_SEVERAL_OBJECTIVES = {"plot_pareto_front", "plot_hypervolume_history"}

EVALUATORS = {
    "fanova": lambda: optuna.importance.FanovaImportanceEvaluator(seed=0),
    "impurity": lambda: optuna.importance.MeanDecreaseImpurityImportanceEvaluator(seed=0),
    "ped_anova": lambda: optuna.importance.PedAnovaImportanceEvaluator(),
}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")  # the terminator leaves Optuna
class TestWhatOptunaShows:
    def test_every_function_of_one_objective_is_here(self) -> None:
        pytest.importorskip("plotly")
        shown = {name for name in dir(optuna.visualization) if name.startswith("plot_")}
        assert shown <= {*PLOTS} | OF_SEVERAL_OBJECTIVES

    @pytest.mark.parametrize("plot", PLOTS)
    def test_every_picture_is_drawn(self, plot: str, study: optuna.Study) -> None:
        pytest.importorskip("plotly")
        if not hasattr(optuna.visualization, plot):
            pytest.skip(f"this release of Optuna has no {plot}")
        if plot == "plot_terminator_improvement":
            pytest.importorskip("torch")
        # Optuna 4.0 has no line for a trial that lacks a parameter of another branch.
        shared = {"params": ["live", "dead", "kind"]} if "parallel" in plot else {}
        with warnings.catch_warnings():  # two parameters of different branches
            warnings.filterwarnings("ignore", "Contour plot will not be displayed", UserWarning)
            figure = getattr(optuna.visualization, plot)(one_row_per_learner(study), **shared)
        assert figure.data

    @pytest.mark.parametrize("evaluator", EVALUATORS)
    def test_every_evaluator_speaks_of_what_all_learners_have(
        self, evaluator: str, study: optuna.Study
    ) -> None:
        found = optuna.importance.get_param_importances(
            one_row_per_learner(study), evaluator=EVALUATORS[evaluator]()
        )
        assert {"live", "dead", "kind"} <= {*found}
        assert sum(found.values()) == pytest.approx(1.0)

    @pytest.mark.slow
    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_a_dead_parameter_weighs_under_a_tenth_of_a_live_one(self, direction: str) -> None:
        many = searched(n_learners=80, direction=direction)
        rows = one_row_per_learner(many)
        is_known = sum(trial.state == TrialState.COMPLETE for trial in many.trials) > 1
        for new in EVALUATORS.values():
            found = optuna.importance.get_param_importances(rows, evaluator=new())
            assert found["dead"] < 0.1 * found["live"]
            if is_known:
                alone = optuna.importance.get_param_importances(many, evaluator=new())
                assert alone["dead"] >= 0.1 * alone["live"], "the runs alone do not say so"

    def test_the_history_is_that_of_learners(self, study: optuna.Study) -> None:
        pytest.importorskip("plotly")
        rows = one_row_per_learner(study)
        figure = optuna.visualization.plot_optimization_history(rows)
        complete = rows.get_trials(states=[TrialState.COMPLETE])
        assert [*figure.data[0].y] == [row.value for row in complete]
        curves = optuna.visualization.plot_intermediate_values(rows).data
        assert len(curves) == sum(bool(curve.observations) for curve in learning_curves(study))
