"""The study as a base sampler sees it: all runs of a learner are one row."""

from __future__ import annotations

import optuna
from optuna.trial import TrialState

from optuna_daub.study.view import OneRowPerLearner
from optuna_daub.study.view import one_row_per_learner
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import expected
from tests.study.table_study import idle
from tests.study.table_study import runs
from tests.study.table_study import table_study


MADE, WINNER = expected()


def finished() -> optuna.Study:
    study = table_study()
    study.optimize(TableObjective(RIVALS))
    study.optimize(TableObjective(RIVALS))  # leaves an idle trial
    assert idle(study)
    return study


def test_there_is_one_row_per_learner_in_order() -> None:
    rows = OneRowPerLearner(finished()).get_trials()
    assert [row.number for row in rows] == [*range(len(RIVALS))]
    assert [row.params["row"] for row in rows] == [*range(len(RIVALS))]


def test_a_row_has_the_scores_of_all_runs_and_the_end_of_the_last() -> None:
    study = finished()
    rows = OneRowPerLearner(study).get_trials()
    for row in rows:
        own = [trial for trial, run in runs(study) if run.learner == row.number]
        assert sorted(row.intermediate_values) == [s for r, s in MADE if r == row.number]
        assert row.state == own[-1].state
        assert row.value == own[-1].value
        assert row.system_attrs == own[0].system_attrs
        assert row.distributions == own[0].distributions


def test_no_trial_is_changed_by_merging() -> None:
    study = finished()
    before = study.trials
    OneRowPerLearner(study).get_trials(deepcopy=False)
    assert study.trials == before


def test_rows_are_chosen_by_their_merged_state() -> None:
    study = finished()
    view = OneRowPerLearner(study)
    complete = view.get_trials(states=(TrialState.COMPLETE,))
    pruned = view.get_trials(states=(TrialState.PRUNED,))
    assert WINNER in [row.number for row in complete]
    assert len(complete) + len(pruned) == len(RIVALS)


def test_a_resumed_run_that_fails_leaves_the_row_as_it_was() -> None:
    study = table_study()
    study.optimize(TableObjective(RIVALS), n_trials=len(RIVALS))
    before = {row.number: (row.state, row.value) for row in one_row_per_learner(study.trials)}

    def broken(row: int, size: int) -> None:
        raise RuntimeError

    study.optimize(TableObjective(RIVALS, before=broken), n_trials=1, catch=(RuntimeError,))
    assert study.trials[-1].state == TrialState.FAIL
    after = {row.number: (row.state, row.value) for row in one_row_per_learner(study.trials)}
    assert after == before


def test_a_first_run_that_fails_is_as_good_as_its_successor() -> None:
    study = table_study()
    calls: list[int] = []

    def broken(row: int, size: int) -> None:
        calls.append(row)
        if len(calls) == 1:
            raise RuntimeError

    study.optimize(TableObjective(RIVALS, before=broken), n_trials=2, catch=(RuntimeError,))
    (row,) = one_row_per_learner(study.trials)
    assert row.number == 0
    assert row.state == TrialState.PRUNED
    assert sorted(row.intermediate_values) == [*SIZES[:3]]


def test_trials_of_others_and_waiting_ones_are_rows_too() -> None:
    study = table_study()
    study.add_trial(optuna.create_trial(value=0.5))
    study.enqueue_trial({"row": 1})
    assert [row.state for row in one_row_per_learner(study.trials)] == [
        TrialState.COMPLETE,
        TrialState.WAITING,
    ]


def test_stop_is_noted_and_stops_nothing() -> None:
    study = table_study()
    view = OneRowPerLearner(study)
    view.stop()
    assert view.is_stopped
    assert not study._stop_flag


def test_the_view_is_asked_like_the_study() -> None:
    study = finished()
    view = OneRowPerLearner(study)
    assert view.direction == study.direction
    assert view.best_trial.params == study.best_trial.params
    assert view.study_name == study.study_name
    rows = view._get_trials(deepcopy=False, use_cache=True)
    assert [row.number for row in rows] == [row.number for row in view.get_trials()]
