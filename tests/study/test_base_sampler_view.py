"""The study as a base sampler sees it: all runs of a learner are one row."""

from __future__ import annotations

import math

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import ValuePerSecond
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.study import AllocationPruner
from optuna_daub.study.base_sampler_view import BaseSamplerStudy
from optuna_daub.study.worker import looking
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import InOrder
from tests.study.table_study import TableObjective
from tests.study.table_study import idle
from tests.study.table_study import pair
from tests.study.table_study import raising
from tests.study.table_study import runs
from tests.study.table_study import scored
from tests.study.table_study import stop_at
from tests.study.table_study import table_study


def finished() -> optuna.Study:
    study = table_study()
    study.optimize(TableObjective())
    study.optimize(TableObjective())  # leaves an idle trial
    assert idle(study)
    return study


def seen_by_base_sampler(study: optuna.Study) -> BaseSamplerStudy:
    assert isinstance(study.pruner, DAUBPruner)
    return BaseSamplerStudy(study, looking(study), study.pruner.policy)


@pytest.mark.parametrize("pruner", [DAUBPruner.paper(sizes=SIZES), DAUBPruner(sizes=SIZES)])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_learner_with_a_score_is_complete_with_what_it_is_worth(
    direction: str, pruner: DAUBPruner
) -> None:
    """The default rule shows forecasts at N, the paper's mode the last scores."""
    sign = 1 if direction == "maximize" else -1
    study = table_study(direction=direction, pruner=pruner)
    study.optimize(TableObjective(sign=sign))
    worker = looking(study)
    pool = worker.pool(pruner.policy)
    worth = {curve.learner: curve.score for curve in pool.curves.values()}
    if isinstance(pruner.policy, ValuePerSecond):
        forecasts = Joint().forecasts(pool, SIZES[-1])
        worth = {learner: float(forecasts[learner].mean) for learner in forecasts}
    rows = seen_by_base_sampler(study).get_trials()
    assert {row.state for row in rows} == {TrialState.COMPLETE}
    for row in rows:
        own = [trial for trial, run in runs(study) if run.learner == row.number]
        assert sorted(row.intermediate_values) == [*pool.curves[row.number].sizes]
        assert row.intermediate_values == own[-1].intermediate_values
        assert row.value == pytest.approx(sign * worth[row.number])
        if own[-1].state == TrialState.COMPLETE:
            assert row.value == own[-1].value
        assert row.distributions == own[0].distributions
        assert row.params == own[0].params
    assert max(sign * row.value for row in rows) > 0  # type: ignore[operator]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_in_an_open_pool_costs_are_taken_off(direction: str) -> None:
    """Two kinds of learners score alike, and one takes thirty times as long."""
    sign = 1 if direction == "maximize" else -1

    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.6, 0.9)
        slow = trial.suggest_categorical("slow", [1, 30])
        # Scores vary, or nothing more is expected of anyone and costs count no more.
        return scored(
            trial,
            lambda n: sign * (skill - 1 / n + 0.05 * math.sin(1e5 * skill + n)),
            seconds=lambda n: slow * n,
        )

    study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0), direction=direction)
    study.optimize(objective, callbacks=[stop_at(25)])
    policy, rows = study.pruner.policy, seen_by_base_sampler(study).get_trials()  # type: ignore[attr-defined]
    net = policy.worth(looking(study).pool(policy)).tolist()
    assert [row.value for row in rows if row.value is not None] == [
        sign * x for x, row in zip(net, rows, strict=True) if row.value is not None
    ]
    pool = looking(study).pool(policy)
    mean = policy.forecasts(pool, SIZES[-1]).all.mean
    lost: dict[int, list[float]] = {1: [], 30: []}
    for i, there, without in zip(pool.curves, net, mean, strict=True):
        lost[pool.curves[i].parameters["slow"]].append(without - there)
    assert len(lost[1]) > 1
    assert len(lost[30]) > 1
    assert 0.0 < max(lost[1]) < min(lost[30])


def test_no_trial_is_changed_by_merging() -> None:
    study = finished()
    before = study.trials
    seen_by_base_sampler(study).get_trials(deepcopy=False)
    assert study.trials == before


def test_rows_are_chosen_by_their_merged_state() -> None:
    study = finished()
    view = seen_by_base_sampler(study)
    complete = view.get_trials(states=(TrialState.COMPLETE,))
    assert [row.number for row in complete] == [*range(len(RIVALS))]
    assert view.get_trials(states=(TrialState.PRUNED, TrialState.RUNNING)) == []
    assert view._storage.get_n_trials(view._study_id) == len(RIVALS)
    assert view._storage.get_n_trials(view._study_id, TrialState.COMPLETE) == len(RIVALS)
    assert (view.direction, view.study_name) == (study.direction, study.study_name)
    assert view._get_trials(deepcopy=False, use_cache=True) == view.get_trials()


def test_a_learner_in_its_first_probe_is_running_and_then_complete() -> None:
    states: list[list[TrialState]] = []
    study = table_study()

    def look(row: int, size: int) -> None:
        states.append([row.state for row in seen_by_base_sampler(study).get_trials()])

    study.optimize(TableObjective(before=look), n_trials=3)
    complete, running = TrialState.COMPLETE, TrialState.RUNNING
    assert states[:5] == [[running], [complete], [complete], [complete, running], [complete] * 2]


def test_a_resumed_run_that_fails_leaves_the_row_as_it_was() -> None:
    study = table_study()
    study.optimize(TableObjective(), n_trials=len(RIVALS))
    rows = seen_by_base_sampler(study).get_trials()
    before = {row.number: (row.state, row.value) for row in rows}
    failing = TableObjective(before=raising(RuntimeError))
    study.optimize(failing, n_trials=1, catch=RuntimeError)
    assert study.trials[-1].state == TrialState.FAIL
    rows = seen_by_base_sampler(study).get_trials()
    assert {row.number: (row.state, row.value) for row in rows} == before


def test_a_first_run_that_fails_is_as_good_as_its_successor() -> None:
    study = table_study()
    objective = TableObjective(before=raising(RuntimeError, (0, SIZES[0]), times=1))
    study.optimize(objective, n_trials=1, catch=RuntimeError)
    (row,) = seen_by_base_sampler(study).get_trials()
    assert (row.number, row.state, row.params) == (0, TrialState.FAIL, {"row": 0})
    study.optimize(objective, n_trials=1)
    (row,) = seen_by_base_sampler(study).get_trials()
    assert (row.number, row.state, row.params) == (0, TrialState.COMPLETE, {"row": 0})
    assert sorted(row.intermediate_values) == [*SIZES[:3]]


def test_a_learner_dropped_for_its_failures_is_no_result() -> None:
    study = table_study()
    failing = TableObjective(before=raising(RuntimeError, (1, SIZES[1])))
    study.optimize(failing, n_trials=4, catch=RuntimeError)
    states = {row.number: row.state for row in seen_by_base_sampler(study).get_trials()}
    dropped = [c.learner for c in learning_curves(study) if c.state == "dropped"]
    assert dropped == [1]
    assert states[1] == TrialState.FAIL
    assert states[0] == TrialState.COMPLETE


def test_learners_that_the_policy_dropped_are_results_all_the_same() -> None:
    study = pair(AllocationPruner(SuccessiveHalving(SIZES)), InOrder(), n_learners=len(RIVALS))
    study.optimize(TableObjective())
    assert [c.state for c in learning_curves(study)].count("dropped") == len(RIVALS) - 1
    view = BaseSamplerStudy(study, looking(study), study.pruner.policy)
    assert {row.state for row in view.get_trials()} == {TrialState.COMPLETE}
    assert None not in [row.value for row in view.get_trials()]


def test_trials_of_others_and_waiting_ones_are_rows_too() -> None:
    study = table_study()
    study.add_trial(optuna.create_trial(value=0.5))
    study.enqueue_trial({"row": 1})
    states = [row.state for row in seen_by_base_sampler(study).get_trials()]
    assert states == [TrialState.COMPLETE, TrialState.WAITING]


def test_what_users_and_constraints_noted_is_in_the_row_whichever_run_noted_it() -> None:
    def noting(trial: optuna.Trial) -> float:
        trial.set_user_attr(f"run {trial.number}", True)
        return TableObjective()(trial)

    study = table_study(base=Constrained())
    study.optimize(noting)
    rows = {row.number: row for row in seen_by_base_sampler(study).get_trials()}
    resumed = 0
    for learner, row in rows.items():
        own = [trial for trial, run in runs(study) if run.learner == learner]
        resumed += len(own) - 1
        assert row.user_attrs == {f"run {trial.number}": True for trial in own}
        assert own[-1].user_attrs.keys() >= row.user_attrs.keys()
        for seen in (row, *own):
            assert seen.system_attrs["constraints"] == (learner - 2.5,)
    assert resumed > 0


class Constrained(InOrder):
    """Learners 0, 1 and 2 are feasible; measured once, after the first run, as by TPESampler."""

    def after_trial(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, *_: object
    ) -> None:
        constraints = (trial.number - 2.5,)
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", constraints)


def test_stop_is_noted_and_stops_nothing() -> None:
    study = table_study()
    view = seen_by_base_sampler(study)
    view.stop()
    assert view.is_stopped
    assert not study._stop_flag
