"""Objectives that raise, stop early, or report nonsense: nothing is lost, nothing loops."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.study import liveness
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.core.scenario import changed
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_sound
from tests.study.table_study import by_formula
from tests.study.table_study import in_threads
from tests.study.table_study import optimize_some
from tests.study.table_study import pair
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import replayed
from tests.study.table_study import run_of
from tests.study.table_study import scored
from tests.study.table_study import table_study
from tests.study.table_study import without


class BrokenError(Exception):
    """The error that these objectives raise."""


def breaking(
    *at: tuple[int, int], times: int = 99, error: type[BaseException] = BrokenError
) -> TableObjective:
    return TableObjective(before=raising(error, *at, times=times))


@pytest.mark.parametrize("at", MADE[::2])
def test_a_run_that_raises_once_is_retried_and_nothing_changes(at: tuple[int, int]) -> None:
    study = table_study()
    study.optimize(breaking(at, times=1), catch=BrokenError)
    assert [trial.state for trial in study.trials].count(TrialState.FAIL) == 1
    assert probes(study) == MADE
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


@pytest.mark.parametrize("n_learners", [None, 4])
@pytest.mark.parametrize("what", ["score", "training_score"])
def test_a_learner_with_a_score_that_is_no_number_on_all_the_data_is_dropped_once(
    what: str, n_learners: int | None
) -> None:
    right = {"score": lambda x, n: x - 10 / n, "training_score": lambda x, n: x}
    wrong = {what: lambda x, n: math.nan if n == 800 and x > 0.7 else right[what](x, n)}
    objective = by_formula(low=0.5, high=0.9, **{**right, **wrong})
    study = pair(DAUBPruner(max_resource=800), RandomSampler(seed=0), n_learners=n_learners)
    study.optimize(objective, n_trials=20)
    whole = Counter(made.learner for made in allocations(study) if made.observation.size == 800)
    curves = {curve.learner: curve for curve in learning_curves(study)}
    assert any(curves[learner].state == "dropped" for learner in whole)
    assert max(whole.values()) == 1


def test_a_resumed_run_that_obeys_at_a_size_of_an_earlier_one_is_suspended() -> None:
    """Optuna's usual loop starts over; meanwhile another worker finishes a better learner."""
    sizes, is_seen = (500, 1000, 2000, 4000), False

    def usual(trial: optuna.Trial) -> float:
        nonlocal is_seen
        x = trial.suggest_float("x", 0.0, 1.0)
        for size in sizes:
            trial.report(score := x - 10 / size, size)
            if learning_curves(study)[0].size and trial.number > 2 and not is_seen:
                is_seen = True
                study.enqueue_trial({"x": 1.0})
                other = optuna.load_study(
                    study_name=study.study_name,
                    storage=study._storage,
                    sampler=study.sampler,
                    pruner=study.pruner,
                )
                other.optimize(usual, n_trials=1)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    study = pair(DAUBPruner(sizes=sizes, cost="examples"), RandomSampler(seed=0), n_learners=3)
    study.optimize(usual)
    assert is_seen
    assert "dropped" not in {curve.state for curve in learning_curves(study)}


def test_an_asked_trial_that_obeys_at_a_size_of_an_earlier_run_is_no_failure() -> None:
    sizes = (500, 1000, 2000, 4000)
    study = pair(DAUBPruner(sizes=sizes, cost="examples"), RandomSampler(seed=0), n_learners=4)

    def usual(trial: optuna.Trial) -> None:
        x = trial.suggest_float("x", 0.0, 1.0)
        for size in sizes:
            trial.report(x - 10 / size, size)
            if trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                return
        study.tell(trial, x - 10 / sizes[-1])

    while not run_of(study, held := study.ask()).inherited:
        usual(held)
    study.enqueue_trial({"x": 1.0})
    usual(study.ask())  # a better learner, so the resumed one is told to end at once
    usual(held)
    assert [*study.trials[held.number].intermediate_values] == [500]
    learner = worker_of(study).look().learners[run_of(study, held).learner or 0]
    assert not learner.failures


def test_a_retried_trial_with_a_lost_score_on_all_the_data_is_no_endless_claim() -> None:
    """Optuna's callback for dead workers may copy the scores of a trial."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        score = scored(trial, lambda n: x - 10 / n)
        if not any(made.is_lost for made in allocations(study)):
            raise BrokenError
        return score

    study = pair(DAUBPruner(max_resource=800), RandomSampler(seed=0), n_learners=3)
    with pytest.raises(BrokenError):
        study.optimize(objective)
    (lost,) = [made for made in allocations(study) if made.is_lost]
    dead = study.trials[lost.trial]
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.WAITING,
            params=dead.params,
            distributions=dead.distributions,
            system_attrs={"fixed_params": dead.params, **dead.system_attrs},
            intermediate_values=dead.intermediate_values,
        )
    )
    study.optimize(objective, timeout=20)
    whole = {made.learner for made in allocations(study) if made.observation.size == 800}
    assert study.best_trial.last_step == 800
    assert lost.learner in whole


@pytest.mark.parametrize("at", MADE[1::2])
def test_a_learner_that_raises_twice_at_a_size_is_dropped_with_the_reason(
    at: tuple[int, int],
) -> None:
    row, size = at
    study = table_study()
    study.optimize(breaking(at, times=2), catch=BrokenError)
    assert probes(study) == replayed(study.pruner.policy, without(row, size))[0]
    curve = next(c for c in learning_curves(study) if c.params["row"] == row)
    assert curve.state == "dropped"
    why = f"failed 2 times at {size:,} examples, only one worker tried: BrokenError"
    assert why in curve.reason
    assert_sound(study)


def test_failures_at_different_sizes_do_not_add_up() -> None:
    study = table_study()
    everywhere = [(WINNER, size) for size in SIZES]
    study.optimize(breaking(*everywhere, times=1), catch=BrokenError)
    assert probes(study) == MADE
    assert study.best_trial.params["row"] == WINNER


def test_an_error_that_is_not_caught_ends_optimize_and_a_rerun_goes_on() -> None:
    study = table_study()
    objective = breaking((WINNER, SIZES[4]), times=1)
    with pytest.raises(BrokenError):
        study.optimize(objective)
    study.optimize(objective)
    assert probes(study) == MADE
    assert_sound(study)


def test_when_all_learners_fail_the_study_ends_without_a_best() -> None:
    study = table_study()
    study.optimize(breaking(), catch=BrokenError, n_trials=99)
    assert [trial.state for trial in study.trials].count(TrialState.FAIL) == 2 * len(RIVALS)
    assert best_learner(study) is None
    assert {curve.state for curve in learning_curves(study)} == {"dropped"}


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2], SIZES[4]])
@pytest.mark.parametrize("error", [BrokenError, optuna.TrialPruned])
def test_an_objective_that_always_breaks_does_not_loop(error: type[Exception], size: int) -> None:
    study = table_study()
    everywhere = [(row, size) for row in range(len(RIVALS))]
    study.optimize(breaking(*everywhere, error=error), catch=BrokenError, n_trials=200)
    assert len(study.trials) < 200


def test_a_run_that_prunes_itself_before_any_report_counts_as_a_failure() -> None:
    study = table_study()
    study.optimize(breaking((WINNER, SIZES[0]), error=optuna.TrialPruned), n_trials=200)
    assert probes(study) == replayed(study.pruner.policy, without(WINNER, SIZES[0]))[0]


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2], SIZES[4], SIZES[-1]])
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_scores_that_are_no_numbers_drop_the_learner(
    direction: str, score: float, size: int
) -> None:
    sign = 1 if direction == "maximize" else -1
    spoilt = [*RIVALS]
    spoilt[WINNER] = changed(
        RIVALS[WINNER], lambda o: replace(o, score=sign * score) if o.size == size else o
    )
    study = table_study(direction=direction)
    study.optimize(TableObjective(spoilt, sign))
    made = replayed(study.pruner.policy, without(WINNER, size))[0]
    assert [probe for probe in probes(study) if probe != (WINNER, size)] == made
    curve = next(c for c in learning_curves(study) if c.params["row"] == WINNER)
    assert curve.state == "dropped"
    assert f"at {size:,} examples" in curve.reason
    assert study.best_trial.params["row"] != WINNER
    for trial in study.trials:
        assert all(
            math.isfinite(value) for value in trial.user_attrs.values() if value != str(value)
        )


def test_a_dropped_learner_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    spoilt = [*RIVALS[:4], LearningCurve(4, (Observation(SIZES[0], math.nan),))]
    table_study().optimize(TableObjective(spoilt))
    assert any("nan" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("error", "catch"),
    [(BrokenError, ()), (BrokenError, (BrokenError,)), (KeyboardInterrupt, ())],
)
def test_an_error_after_the_last_report_does_not_lose_the_winner(
    error: type[BaseException], catch: tuple[type[Exception], ...]
) -> None:
    """Say, the model cannot be saved: scores are all there, but its trial is FAIL."""
    objective = TableObjective(after=raising(error, (WINNER, SIZES[-1]), times=1))
    study = table_study()
    with nullcontext() if catch else pytest.raises(error):
        study.optimize(objective, catch=catch)
    study.optimize(objective, n_trials=99)
    assert study.best_trial.params["row"] == WINNER
    assert study.best_trial.last_step == SIZES[-1]
    assert [*dict.fromkeys(probes(study))] == MADE  # the last may have been made again


def test_reopening_with_other_sizes_says_what_differs_and_loses_nothing() -> None:
    study = table_study()
    study.optimize(TableObjective(), n_trials=7)
    other = table_study(storage=study._storage, sizes=[6, 9, 15, 24])
    with pytest.raises(ValueError, match=r"sizes .*\[6, 9, 15, 24, 36, 54\].*\[6, 9, 15, 24\]"):
        other.optimize(TableObjective())
    study.optimize(TableObjective())
    assert probes(study) == MADE
    assert_sound(study)


# A worker at which everything fails


@pytest.mark.parametrize("n_learners", [20, None])
def test_one_sick_worker_of_two_drops_no_learner(
    n_learners: int | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker may have a broken library, and go on by `catch`."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        time.sleep(0 if n_learners else 0.001)

        def score(n: int) -> float:
            if threading.current_thread().name == "sick":
                raise BrokenError
            time.sleep(0.001)
            return 0.5 + 0.4 * x - (0.3 + x) / n

        return scored(trial, score, training_score=lambda n: 0.5 + 0.4 * x + 2 / n)

    def work(trials: int | None) -> None:
        base = optuna.samplers.RandomSampler()
        own = table_study(n_learners, storage=storage, base=base, pruner=pruner)
        own.optimize(objective, catch=(BrokenError,), n_trials=trials)

    monkeypatch.setattr(liveness, "this_worker", lambda: f"{threading.current_thread().name}|1|1")
    storage = optuna.storages.InMemoryStorage()
    pruner = None if n_learners else DAUBPruner(sizes=SIZES)
    calls = [partial(work, None if n_learners else trials) for trials in (20, 40)]
    in_threads(*calls, names=("sick", "well"))
    study = table_study(n_learners, storage=storage, pruner=pruner)
    curves = learning_curves(study)
    for curve in curves:
        assert "failed" not in curve.reason
    assert caplog.text.count("trained have all failed") == 1
    if n_learners:
        assert len(curves) == n_learners
        assert study.best_params["x"] == max(curve.params["x"] for curve in curves)


def test_a_learner_that_fails_at_two_workers_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = optuna.storages.InMemoryStorage()
    for worker in ("one|1|1", "two|1|1"):
        monkeypatch.setattr(liveness, "this_worker", lambda name=worker: name)
        study = table_study(storage=storage)
        optimize_some(study, breaking(MADE[0]), 1, catch=BrokenError)
    (curve,) = learning_curves(study)
    assert curve.state == "dropped"
    assert "failed 2 times at 6 examples: BrokenError" in curve.reason


def test_what_failed_here_is_tried_here_again_where_nobody_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other worker has not been heard of for a minute."""
    monkeypatch.setattr(liveness, "this_worker", lambda: "elsewhere|1|1")
    study = table_study(patience=Patience(recent=0.0))
    optimize_some(study, TableObjective(), 1)
    monkeypatch.undo()
    study.optimize(breaking(*MADE, times=1), catch=BrokenError, n_trials=99)
    assert probes(study) == MADE
    assert study.best_trial.params["row"] == WINNER
