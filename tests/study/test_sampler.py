"""The sampler: what it refuses, whom it proposes, and what users do with a study around it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from tests.strategies import power_law
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import InOrder
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import assert_sound
from tests.study.table_study import conditional
from tests.study.table_study import expected
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import in_thread
from tests.study.table_study import is_over
from tests.study.table_study import optimize_some
from tests.study.table_study import probes
from tests.study.table_study import runs
from tests.study.table_study import sqlite
from tests.study.table_study import table_study
from tests.study.table_study import told
from tests.study.table_study import trained


try:
    from optuna.testing import pytest_samplers as testing
except ImportError:  # before Optuna 4.8
    testing = None  # type: ignore[assignment]

WIDE = [
    power_law(i, SIZES, end=0.5 + i / 1000, drop=1.0 + (i * 7 % 40) / 100, power=0.5)
    for i in range(400)
]
"""So many learners that two seeds have none in common."""


NO_TIMES, POSITIVE = (0, -1.0, float("nan"), float("inf")), "must be greater than 0 and finite"
NO_SAMPLERS = ("tpe", RandomSampler, optuna.pruners.NopPruner(), 7)


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("n_learners", (0, -1, 2.5, "3", True), "must be .*{}"),
        ("seconds", NO_TIMES, POSITIVE + ".*{}"),
        ("stale_after", NO_TIMES, POSITIVE + ".*{}"),
        ("base_sampler", NO_SAMPLERS, "must be a sampler of Optuna.*but got"),
    ],
)
def test_arguments_that_are_refused(name: str, values: tuple[Any, ...], rule: str) -> None:
    for value in values:
        given: dict[str, Any] = {"n_learners": 1, name: value}
        with pytest.raises(ValueError, match=f"`{name}` {rule.format(value)}"):
            DataAllocationSampler(**given)


def test_numpy_numbers_of_learners_are_stored(tmp_path: Path) -> None:
    study = table_study(np.int64(len(RIVALS)), storage=sqlite(tmp_path))  # type: ignore[arg-type]
    study.optimize(TableObjective())
    assert probes(study) == MADE


def test_a_foreign_pruner_is_refused_by_training_sizes() -> None:
    study = optuna.create_study(
        sampler=DataAllocationSampler(n_learners=3), pruner=optuna.pruners.HyperbandPruner()
    )
    with pytest.raises(ValueError, match=r"must be one of optuna_daub, but got HyperbandPruner"):
        study.optimize(TableObjective())


def test_with_a_foreign_pruner_it_is_its_base_sampler() -> None:
    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1)

    params = []
    for sampler in (
        RandomSampler(seed=7),
        DataAllocationSampler(RandomSampler(seed=7), n_learners=2),
    ):
        study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.NopPruner())
        study.optimize(objective, n_trials=5)
        params.append([trial.params for trial in study.trials])
    assert params[0] == params[1]


# Who is proposed


@pytest.mark.parametrize("seed", range(3))
def test_exactly_n_learners_are_proposed_and_all_runs_of_one_share_its_parameters(
    seed: int,
) -> None:
    study = table_study(12, base=RandomSampler(seed=seed))
    study.optimize(conditional)
    assigned = runs(study)
    assert len(assigned) > 12
    assert len({run.learner for _, run in assigned}) == 12
    for trial, run in assigned:
        assert run.learner is not None
        first = study.trials[run.learner]
        assert trial.params == first.params
        assert trial.distributions == first.distributions


def test_more_enqueued_trials_than_learners_are_all_tried() -> None:
    study = table_study(1, base=RandomSampler(seed=0))
    for depth in (3, 9, 1):
        study.enqueue_trial({"kind": "tree", "depth": depth})
    study.optimize(conditional)
    assert {trial.params["depth"] for trial, _ in runs(study)} == {3, 9, 1}
    assert study.best_params["depth"] == 9


@pytest.mark.parametrize("n_trials", [1, 5, None])
def test_a_finished_study_that_is_asked_for_more_says_so_once(
    n_trials: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Optuna starts a trial before it asks its sampler: one is forced."""
    study = table_study()
    study.optimize(TableObjective())
    n_before, best = len(study.trials), best_learner(study)
    assert not caplog.records
    study.optimize(TableObjective(), n_trials=n_trials)
    assert len(study.trials) == n_before + 1
    assert [trial.number for trial in idle(study)] == [n_before]
    assert idle(study)[0].user_attrs["daub:reason"].startswith("finished: trained on all 54")
    assert best_learner(study) == best
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert said[0].startswith(f"Study 'table' has come to its end, so trial {n_before} is empty")


@pytest.mark.parametrize("is_after_the_end", [True, False])
def test_a_trial_enqueued_later_is_one_more_learner(is_after_the_end: bool) -> None:
    study = table_study(2)

    def enqueue(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if trial.number == 1:
            study.enqueue_trial({"row": WINNER})

    study.optimize(TableObjective(), callbacks=[] if is_after_the_end else [enqueue])
    if is_after_the_end:
        study.enqueue_trial({"row": WINNER})
        study.optimize(TableObjective())
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_trials_enqueued_without_parameters_are_more_learners_too() -> None:
    study = table_study(2)
    for _ in range(4):
        study.enqueue_trial({})
    assert in_thread(lambda: study.optimize(TableObjective())) == []
    assert [run.learner for _, run in runs(study)][:4] == [0, 1, 2, 3]
    assert_sound(study)


@pytest.mark.filterwarnings("ignore:Fixed parameter:UserWarning")
def test_an_enqueued_value_out_of_range_stays_with_its_learner() -> None:
    """Optuna takes such a value, with a warning; a resumed run must not draw another."""
    study = table_study(3, base=RandomSampler(seed=0))
    study.enqueue_trial({"kind": "tree", "depth": 30})
    study.optimize(conditional)
    assert {trial.params["depth"] for trial, run in runs(study) if run.learner == 0} == {30}
    assert len(runs(study)) > 3


def test_an_enqueued_value_of_another_kind_fails_with_the_words_of_optuna() -> None:
    study = table_study(1, base=RandomSampler(seed=0))
    study.enqueue_trial({"penalty": "strong", "kind": "linear", "scaled": True})
    study.optimize(conditional, catch=(Exception,))
    (curve,) = learning_curves(study)
    assert curve.state == "dropped"
    assert "'strong' is not a valid type. float-castable value is expected." in curve.reason


def test_a_learner_from_outside_a_narrowed_range_goes_on_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    highest = 1.0

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, highest)
        return trained(trial, x)

    study = table_study(n_learners=5, base=RandomSampler(seed=0))
    study.optimize(objective, n_trials=5)
    began_with = {curve.learner: curve.params for curve in learning_curves(study)}
    best = answer(study)
    assert not best.is_final
    assert "keeps its parameters" not in caplog.text
    highest = best.params["x"] / 2
    study.optimize(objective)
    said = f"Learner {best.learner} goes on with x = {best.params['x']}, which is not in the Float"
    assert said in caplog.text
    assert {curve.learner: curve.params for curve in learning_curves(study)} == began_with
    assert study.best_params == best.params


def test_a_trial_enqueued_while_another_worker_asks_hides_no_report() -> None:
    """Between a worker's look into the queue and its new trial, somebody enqueues."""
    study = table_study()
    pop = study._pop_waiting_trial_id

    def pop_and_be_overtaken(*args: Any) -> int | None:
        popped = pop(*args)
        if popped is None and len(study.trials) == 2:
            study.enqueue_trial({"row": 2})  # its number, as all others
        return popped

    study._pop_waiting_trial_id = pop_and_be_overtaken  # type: ignore[method-assign]
    study.optimize(TableObjective())
    assert_sound(study)


def test_a_study_stopped_by_a_callback_can_be_asked_for_more() -> None:
    study = table_study()
    study.optimize(TableObjective(), callbacks=[lambda study, trial: study.stop()])
    assert len(study.trials) == 1
    trial = study.ask()
    assert [run.learner for _, run in runs(study)] == [0, trial.number]


# Ask and tell


@pytest.mark.parametrize("by_number", [False, True])
def test_ask_and_tell_is_the_same_study(by_number: bool) -> None:
    study = table_study()
    while not is_over(study):
        told(study, study.ask(), TableObjective(), by_number=by_number)
    assert probes(study) == MADE
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_several_trials_asked_for_at_once_have_different_learners() -> None:
    study = table_study()
    asked = [study.ask() for _ in RIVALS]
    for trial in asked:
        told(study, trial, TableObjective())
    assert [run.learner for _, run in runs(study)] == [trial.number for trial in asked]
    study.optimize(TableObjective())
    assert study.best_trial.params["row"] == WINNER


@pytest.mark.filterwarnings("ignore:The number of the values 2 did not match:UserWarning")
@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"state": TrialState.PRUNED}, TrialState.PRUNED),
        ({"state": TrialState.FAIL}, TrialState.FAIL),
        ({"values": [1.0, 2.0]}, TrialState.FAIL),
    ],
)
def test_a_report_after_the_trial_was_told_leaves_no_other_trial(
    given: dict[str, Any], state: TrialState
) -> None:
    study = table_study()
    trial = study.ask()
    trial.suggest_int("row", 0, 4)
    size = next(training_sizes(trial))
    study.tell(trial, **given)
    for late in (lambda: report(trial, size, 0.5), lambda: next(training_sizes(trial))):
        with pytest.raises(optuna.TrialPruned, match="trial 0 was told before"):
            late()
    assert [each.state for each in study.trials] == [state]


def test_ask_after_the_end_gives_an_idle_trial() -> None:
    study = table_study()
    study.optimize(TableObjective())
    trial = study.ask()
    assert trial.number in [spare.number for spare in idle(study)]
    with pytest.raises(optuna.TrialPruned, match="finished"):
        next(iter(training_sizes(trial)))
    study.tell(trial, state=TrialState.PRUNED)
    assert_sound(study)


def test_a_value_told_early_ends_the_learner_and_is_not_the_best() -> None:
    study = table_study()
    trial = study.ask()
    trial.suggest_int("row", 0, 4)
    assert next(training_sizes(trial)) == SIZES[0], "else it was trained on everything"
    study.tell(trial, 1e9)
    study.optimize(TableObjective())
    assert study.best_trial.params["row"] == WINNER
    first = learning_curves(study)[0]
    assert (first.state, first.size) == ("dropped", 0)
    assert first.reason == (
        "dropped before its first size: the objective returned after 0 of 54 examples"
    )


def test_a_value_that_another_program_tells_early_ends_no_search() -> None:
    """As `optuna tell` does, which knows no sampler: only scores on all the data are compared."""
    study = table_study()
    trial = study.ask()
    trial.suggest_int("row", 0, 4)
    size = next(training_sizes(trial))
    report(trial, size, 0.5, training_score=1.0)
    optuna.load_study(study_name=study.study_name, storage=study._storage).tell(trial.number, 1e9)
    study.optimize(TableObjective())
    best = final(study)
    assert (best.params["row"], best.size) == (WINNER, SIZES[-1])
    named = [curve.learner for curve in learning_curves(study) if curve.state == "best"]
    assert named == [best.learner]


# What users do with studies


def test_two_studies_in_one_storage_do_not_mix() -> None:
    storage = InMemoryStorage()
    one, other = (table_study(storage=storage, name=name) for name in ("one", "other"))
    for _ in range(99):
        optimize_some(one, TableObjective(), 1)
        optimize_some(other, TableObjective(), 1)
        if is_over(one) and is_over(other):
            break
    assert probes(one) == probes(other) == MADE


@pytest.mark.slow
def test_a_study_deleted_and_begun_again_starts_from_nothing(tmp_path: Path) -> None:
    """SQLite gives the new study the id of the old one, and its trials theirs."""
    first = table_study(2, storage=sqlite(tmp_path))
    made, _ = expected(2)
    ids = []
    for n_trials in (None, 3, 3):
        optuna.delete_study(study_name="table", storage=first._storage)
        study = optuna.create_study(
            study_name="table",
            storage=first._storage,
            direction="maximize",
            sampler=first.sampler,
            pruner=first.pruner,
        )
        ids.append(study._study_id)
        assert best_learner(study) is None
        optimize_some(study, TableObjective(), n_trials)
        assert probes(study) == made[: len(probes(study))]
        study.optimize(TableObjective())
        assert probes(study) == made
        assert best_learner(study) is not None
    assert len({*ids}) == 1


def test_one_sampler_serves_studies_whose_trials_have_the_same_ids() -> None:
    """Two storages in memory both start with trial id 0; one trial is asked for and left."""
    sampler = DataAllocationSampler(InOrder(), n_learners=len(RIVALS))
    pruner = DAUBPruner.paper(sizes=SIZES)
    one, other = (
        optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner) for _ in "ab"
    )

    def leave(trial: optuna.Trial) -> float:
        raise SystemExit

    with pytest.raises(SystemExit):
        one.optimize(leave)
    other.optimize(TableObjective())
    assert probes(other) == MADE
    assert not [t for t in other.trials if t.state == TrialState.FAIL]
    one.optimize(TableObjective())
    assert best_learner(one) is not None
    assert one.best_trial.params["row"] == WINNER


def copied(study: optuna.Study) -> optuna.Study:
    storage = study._storage
    optuna.copy_study(
        from_study_name="table", from_storage=storage, to_storage=storage, to_study_name="copy"
    )
    return table_study(storage=storage, name="copy")


def pickled(study: optuna.Study) -> optuna.Study:
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.pruner = pickle.loads(pickle.dumps(study.pruner))
    return study


@pytest.mark.parametrize("n_trials", [0, 3, 8, None])
@pytest.mark.parametrize("moved", [copied, pickled])
def test_a_study_that_is_copied_or_pickled_at_any_time_goes_on_like_the_original(
    moved: Callable[[optuna.Study], optuna.Study], n_trials: int | None
) -> None:
    study = table_study()
    optimize_some(study, TableObjective(), n_trials)
    study = moved(study)
    study.optimize(TableObjective())
    assert probes(study) == MADE
    assert_sound(study)


def test_a_copy_of_a_running_study_goes_on_without_its_runs() -> None:
    study = table_study()
    optimize_some(study, TableObjective(), 4)
    study.ask().suggest_int("row", 0, len(RIVALS) - 1)
    copy = copied(study)
    copy.optimize(TableObjective())
    assert copy.best_params["row"] == WINNER
    assert [t.state for t in study.trials].count(TrialState.RUNNING) == 1


def test_scores_of_another_study_are_not_taken_for_own_ones() -> None:
    """In a study without trials, those added have the numbers that they had before."""
    other = table_study(base=RandomSampler(seed=0))
    other.optimize(TableObjective())
    study = table_study(name="new", base=RandomSampler(seed=0))
    study.add_trials(other.trials)
    with pytest.raises(ValueError, match=r"added from another study.*earlier="):
        study.optimize(TableObjective())
    assert len([t for t in study.trials if t.intermediate_values]) == len(
        [t for t in other.trials if t.intermediate_values]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n_before", "first"), [(0, 3), (2, 0), (2, 3), (4, 0), (4, 3)])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_trials_of_another_study_added_by_hand_mix_with_nothing(
    n_before: int, first: int, direction: str
) -> None:
    """The ids of their learners mean nothing here, also where the numbers of trials agree."""
    sign = 1 if direction == "maximize" else -1
    other = table_study(9, base=RandomSampler(seed=0), direction=direction)
    other.optimize(TableObjective(WIDE, sign))
    study = table_study(6, base=RandomSampler(seed=1), direction=direction, name="new")
    study.optimize(TableObjective(WIDE, sign), n_trials=n_before)
    study.add_trials(other.trials[first:])
    study.optimize(TableObjective(WIDE, sign), n_trials=99)
    for curve in learning_curves(study):
        row = curve.params["row"]
        assert study.trials[curve.learner].params["row"] == row
        assert curve.observations, "a learner of which only the id is known"
        for seen in curve.observations:
            known = WIDE[row].at(seen.size)
            assert known is not None
            assert seen.score == sign * known.score
    assert_nothing_twice(study)
    best = final(study)
    assert best.score == sign * WIDE[best.params["row"]].score
    assert all(trial.state.is_finished() for trial in study.trials)


def test_a_trial_added_twice_is_no_second_run() -> None:
    study = table_study()
    study.optimize(TableObjective(), n_trials=6)
    before = learning_curves(study)
    study.add_trial(study.trials[5])
    assert learning_curves(study) == before


def test_a_study_begun_with_plain_trials_goes_on_with_the_pair() -> None:
    storage = InMemoryStorage()
    plain = optuna.create_study(study_name="table", storage=storage, direction="maximize")
    plain.optimize(lambda trial: trial.suggest_int("row", 0, 4) / 100, n_trials=3)
    study = table_study(storage=storage, base=RandomSampler(seed=0))
    study.optimize(TableObjective())
    assert len({run.learner for _, run in runs(study)}) == len(RIVALS)
    assert study.best_trial.last_step == SIZES[-1]


def test_sampler_and_study_can_be_copied_within_an_objective(tmp_path: Path) -> None:
    study = table_study(storage=sqlite(tmp_path))

    def copying(row: int, size: int) -> None:
        pickle.loads(pickle.dumps(study.sampler))
        copy.deepcopy(study)

    optimize_some(study, TableObjective(before=copying), 2)
    assert probes(study) == MADE[:6]


class BrokenSampler(InOrder):
    def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if trial.number == 1:
            raise RuntimeError


def test_a_sampler_forgets_trials_that_are_over() -> None:
    """Otherwise it grows with the study; an error in the base sampler is no exception."""
    study = table_study(base=BrokenSampler())
    new = len(pickle.dumps(study.sampler))
    with pytest.raises(RuntimeError):
        study.optimize(TableObjective())
    assert len(pickle.dumps(study.sampler)) == new


def test_the_progress_bar_timeout_and_garbage_collection_do_no_harm() -> None:
    study = table_study()
    optimize_some(study, TableObjective(), 2, gc_after_trial=True)
    study.optimize(TableObjective(), n_trials=50, timeout=60, show_progress_bar=True)
    assert probes(study) == MADE


# Optuna's own cases; the study has Optuna's default pruner there


Factory = Callable[[], BaseSampler]

if testing is not None:

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    class TestOnTPE(testing.RelativeSamplerTestCase):
        @pytest.fixture
        def sampler(self) -> Factory:
            return lambda: DataAllocationSampler(
                optuna.samplers.TPESampler(n_startup_trials=0, multivariate=True, seed=0),
                n_learners=1000,
            )

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    class TestOnCmaEs(testing.SingleOnlySamplerTestCase):
        @pytest.fixture
        def sampler(self) -> Factory:
            return lambda: DataAllocationSampler(optuna.samplers.CmaEsSampler(), n_learners=1000)
