"""Ends of an objective, too early or by an error, and of a study after few trials."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import training_sizes
from optuna_daub.core import SuccessiveHalving
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import asking_itself
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import by_formula
from tests.study.table_study import final
from tests.study.table_study import is_over
from tests.study.table_study import one_number
from tests.study.table_study import optimize_some
from tests.study.table_study import pair
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import random_study
from tests.study.table_study import report_row
from tests.study.table_study import run_of
from tests.study.table_study import scores_of
from tests.study.table_study import table_study
from tests.study.table_study import trained


Ending = Callable[[float], Any]


def disk_full(score: float) -> float:
    raise ValueError("no disk for the model")


ENDINGS: dict[str, Ending] = {
    "nan": lambda score: math.nan,
    "text": lambda score: "good",
    "two values": lambda score: [score, score],
    "an error": disk_full,
}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_size_report_without_its_value_is_tried_once_more(
    ending: str, direction: str
) -> None:
    """Optuna has no COMPLETE trial then, so the study does not end with that learner yet."""
    sign = 1 if direction == "maximize" else -1
    study = table_study(direction=direction)
    spoilt: list[int] = []

    def objective(trial: optuna.Trial) -> Any:
        score = TableObjective(sign=sign)(trial)
        if not spoilt:
            spoilt.append(trial.number)
            return ENDINGS[ending](score)
        return score

    study.optimize(objective, n_trials=99, catch=(ValueError,))
    assert study.trials[spoilt[0]].state == TrialState.FAIL
    best = final(study)
    assert best.params == study.best_params == {"row": WINNER}
    assert best.score == study.best_value
    twice = study.trials[spoilt[0]].params["row"], SIZES[-1]
    assert sorted(probes(study)) == sorted([*MADE, twice])
    assert best.examples == sum(size for _, size in probes(study))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_learner_that_never_ends_well_is_dropped_with_the_reason(ending: str) -> None:
    study = table_study()

    def objective(trial: optuna.Trial) -> Any:
        score = TableObjective()(trial)
        return ENDINGS[ending](score) if trial.params["row"] == WINNER else score

    study.optimize(objective, n_trials=99, catch=(ValueError,))
    states = {curve.params["row"]: curve for curve in learning_curves(study)}
    assert states[WINNER].state == "dropped"
    assert "failed 2 times at 54 examples" in states[WINNER].reason
    cause = "ValueError: no disk for the model"
    if ending != "an error":
        given = ENDINGS[ending](RIVALS[WINNER].score)
        cause = f"the objective returned {given!r}, and no number"
    assert states[WINNER].reason.endswith(cause)
    assert final(study).params == study.best_params != {"row": WINNER}


def test_a_forgotten_return_ends_the_study_at_the_first_training_on_all_the_data(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = table_study()
    study.optimize(lambda t: TableObjective()(t) and None, n_trials=99)
    assert sum(size == SIZES[-1] for _, size in probes(study)) == 1
    assert caplog.text.count("The objective must return its last score, but trial") == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_study_of_nothing_else_ends_without_an_answer(ending: str) -> None:
    study = table_study(2)
    study.optimize(lambda t: ENDINGS[ending](TableObjective()(t)), n_trials=99, catch=ValueError)
    assert best_learner(study) is None
    assert [curve.state for curve in learning_curves(study)] == ["dropped"] * 2
    assert len(study.trials) < 20


def test_in_an_open_pool_the_search_goes_on_without_them() -> None:
    study = random_study()

    def objective(trial: optuna.Trial) -> float:
        score = one_number(trial)
        return math.nan if trial.params["x"] > 0.7 else score

    study.optimize(objective, n_trials=60)
    assert len(study.trials) == 60
    best = answer(study)
    assert best.params["x"] <= 0.7 or best.size < SIZES[-1]
    assert study.best_params["x"] <= 0.7


# A value before the sizes are at an end: the idiom for infeasible trials


@pytest.mark.parametrize("value", [-1e9, 1e9])
@pytest.mark.parametrize(
    ("n_scores", "asks"), [(0, False), (0, True), (1, True), (3, False), (4, True), (5, False)]
)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_value_returned_early_ends_that_learner_only_and_is_nobodys_best(
    direction: str, n_scores: int, asks: bool, value: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the objective asks for the next size, or as soon as it has asked."""
    sign = 1 if direction == "maximize" else -1
    study = table_study(direction=direction)

    def objective(trial: optuna.Trial) -> float:
        row = trial.suggest_int("row", 0, 4)
        if row != WINNER:
            return TableObjective(sign=sign)(trial)
        if (n_scores, asks) == (0, False):
            return value
        for size in training_sizes(trial):
            if asks and size == SIZES[n_scores]:
                return value
            report_row(trial, row, size, sign)
            if not asks and size == SIZES[n_scores - 1]:
                return value
        raise AssertionError

    study.optimize(objective)
    curves = {curve.params["row"]: curve for curve in learning_curves(study)}
    upto = SIZES[n_scores - 1] if n_scores else 0
    reason = f"the objective returned after {upto} of 54 examples"
    where = f"at {upto}" if n_scores else "before its first size"
    lost = curves.pop(WINNER)
    assert (lost.state, lost.reason) == ("dropped", f"dropped {where}: {reason}")
    assert f"Learner {lost.learner} ends: {reason}." in caplog.text
    assert "dropped" not in {curve.state for curve in curves.values()}
    best = final(study)
    assert best.params == study.best_params != {"row": WINNER}
    assert study.best_value == best.score
    ended = [t for t in study.trials if t.params == {"row": WINNER}][-1]
    assert ended.state != TrialState.COMPLETE or not math.isfinite(ended.value)


def test_an_objective_that_returns_no_number_at_all_ends_the_study_without_an_answer() -> None:
    study = table_study(3)
    study.optimize(lambda trial: -math.inf - trial.suggest_int("row", 0, 4), n_trials=50)
    assert best_learner(study) is None
    assert len(study.trials) == 3


def test_parameters_that_the_objective_rejects_are_not_tried_again() -> None:
    asked: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.0, 1.0)
        asked.append(skill)
        if skill > 0.5:
            raise optuna.TrialPruned("too dear to train")
        return trained(trial, skill)

    study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0), n_learners=8)
    study.optimize(objective)
    rejected = [skill for skill in asked if skill > 0.5]
    assert len(rejected) == len(set(rejected)) > 2
    curves = learning_curves(study)
    reasons = {curve.reason for curve in curves if curve.params["skill"] > 0.5}
    assert len(reasons) == 1
    assert "TrialPruned: too dear to train" in reasons.pop()
    best = answer(study)
    assert best.params["skill"] == max(skill for skill in asked if skill <= 0.5)


@pytest.mark.parametrize("size", [SIZES[0], SIZES[-1]])
def test_a_learner_that_the_objective_rejects_after_a_score_is_trained_no_more(size: int) -> None:
    """TrialPruned ends its parameters for good in Optuna, unless the pruner has asked for it."""
    reject = raising(optuna.TrialPruned("too slow to deploy"), (WINNER, size))
    study = table_study()
    study.optimize(TableObjective(after=reject), n_trials=99)
    (lost,) = [curve for curve in learning_curves(study) if curve.params["row"] == WINNER]
    assert lost.state == "dropped"
    assert lost.reason.endswith("TrialPruned: too slow to deploy")
    assert_nothing_twice(study)
    assert max(at for row, at in probes(study) if row == WINNER) == size
    assert answer(study).params == study.best_params != {"row": WINNER}


def test_an_objective_that_asks_the_pruner_suspends_and_rejects_nothing() -> None:
    study = table_study()
    study.optimize(asking_itself, n_trials=99)
    assert "dropped" not in {curve.state for curve in learning_curves(study)}
    assert study.best_params == {"row": WINNER}


@pytest.mark.parametrize("asks", [False, True])
def test_who_rejects_while_others_train_rejects_for_good(*, asks: bool) -> None:
    """Only a trial that the pruner has told to end is suspended, whatever others do meanwhile."""
    study = table_study()
    held = study.ask()  # another worker's run, in flight all along
    held.suggest_int("row", 0, len(RIVALS) - 1)
    assert next(training_sizes(held)) == SIZES[0]
    was_told: dict[int, bool] = {}

    def rejecting(trial: optuna.Trial) -> float:
        row = trial.suggest_int("row", 0, len(RIVALS) - 1)
        is_over = False
        for size in SIZES[:-1]:
            trial.report(scores_of(row, size)[0], size)
            is_over = is_over or (asks and trial.should_prune())
        was_told[trial.number] = is_over
        raise optuna.TrialPruned("too slow to deploy")

    optimize_some(study, rejecting, 4)
    states = {curve.learner: curve.state for curve in learning_curves(study)}
    assert any(was_told.values()) == asks
    assert {*was_told} <= {*states}
    for number, told in was_told.items():
        assert states[number] == ("suspended" if told else "dropped")


# Few trials in a closed pool


RULES = [
    DAUBPruner(sizes=SIZES, cost="examples"),
    DAUBPruner.paper(sizes=SIZES),
    AllocationPruner(SuccessiveHalving(SIZES)),
]


@pytest.mark.parametrize(("n_trials", "n_jobs"), [(2, 1), (2, 2), (5, 2)])
@pytest.mark.parametrize("rule", RULES)
def test_fewer_trials_than_learners_end_with_a_model_of_all_the_data(
    rule: AllocationPruner, n_trials: int, n_jobs: int
) -> None:
    study = random_study(rule, n_learners=20)

    def score(x: float, n: int) -> float:
        time.sleep(0.01)  # Optuna counts a trial some moments after its thread has started
        return x - 1 / n

    objective = by_formula(score, training_score=lambda x, n: x + 1 / n)
    study.optimize(objective, n_trials=n_trials, n_jobs=n_jobs)
    assert len(study.trials) == n_trials
    assert study.best_trial.last_step == SIZES[-1]
    best = answer(study)
    assert (best.size, best.score) == (SIZES[-1], study.best_value)


def test_a_single_trial_is_one_of_a_loop() -> None:
    study, looped = random_study(n_learners=3), random_study(n_learners=3)
    study.optimize(TableObjective())
    while not is_over(looped):
        looped.optimize(TableObjective(), n_trials=1)
    seen, again = ([t.intermediate_values for t in each.trials] for each in (study, looped))
    assert seen == again


@pytest.mark.parametrize("n_learners", [20, 4, 3])
def test_the_last_of_few_trials_goes_to_the_leader(n_learners: int) -> None:
    study = random_study(n_learners=n_learners)
    study.optimize(TableObjective(), n_trials=4)
    first = {curve.params["row"]: curve.observations[0].score for curve in learning_curves(study)}
    assert study.best_params["row"] == max(first, key=first.__getitem__)


def test_where_a_model_exists_the_last_trial_is_as_the_rule_says() -> None:
    study = random_study(n_learners=20)
    for _ in range(2):
        study.optimize(TableObjective(), n_trials=3)
    full = [trial.number for trial in study.trials if trial.last_step == SIZES[-1]]
    assert full[0] == 2
    last = "the last run of `n_trials` is on all the data"
    assert run_of(study, study.trials[2]).reason == last
    assert run_of(study, study.trials[5]).reason != last
