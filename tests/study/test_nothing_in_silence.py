"""Values that the user returned, reported and asked for are stored, or a sentence says why not."""

from __future__ import annotations

import copy
import math
import os
import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from optuna_daub import AllocationPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import Observation
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study.messages import message_of
from optuna_daub.study.records import Run
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.study.table_study import SIZES
from tests.study.table_study import Objective
from tests.study.table_study import Place
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import by_formula
from tests.study.table_study import final
from tests.study.table_study import one_number
from tests.study.table_study import random_study
from tests.study.table_study import reporting
from tests.study.table_study import table_study
from tests.study.table_study import trained


def at_each_size(act: Callable[[optuna.Trial, int, float], None]) -> Objective:
    """Return an objective that does this at each size, with the size and its parameter x."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for n in training_sizes(trial):
            act(trial, n, x)
        return x

    return objective


# An objective that never asks for a size


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("n_learners", [None, 4])
def test_what_an_objective_returns_that_asks_for_no_size_is_its_score_at_n(
    direction: str, n_learners: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    returned: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        returned.append(0.9 - (trial.suggest_float("x", 0, 1) - 0.3) ** 2)
        return returned[-1]

    study = random_study(direction=direction, n_learners=n_learners)
    study.optimize(objective, n_trials=4)
    assert [trial.value for trial in study.trials] == returned
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}
    best = answer(study)
    assert (best.params, best.score, best.size) == (study.best_params, study.best_value, SIZES[-1])
    assert caplog.text.count("asks for no training sizes") == 1


def test_a_value_returned_while_another_trial_has_asked_for_a_size_is_no_score() -> None:
    study = random_study()
    first, second = study.ask(), study.ask()
    for trial in (first, second):
        trial.suggest_float("x", 0, 1)
    next(iter(training_sizes(first)))
    study.tell(second, 0.9)
    assert study.trials[1].intermediate_values == {}
    assert study.trials[1].value == -math.inf


def test_a_value_returned_before_any_size_is_no_score_where_others_are_trained_on_less() -> None:
    """Optuna's idiom for a point that cannot be trained."""

    def objective(trial: optuna.Trial) -> float:
        if trial.number == 1:
            trial.suggest_int("row", 1, 1)
            return 7.0
        return TableObjective()(trial)

    study = table_study()
    study.optimize(objective)
    assert study.trials[1].value == float("-inf")
    assert study.best_value < 1.0


@pytest.mark.parametrize("n_learners", [None, 4])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    "step", [1, SIZES[0] - 1, SIZES[0] + 1, SIZES[-2], SIZES[-1], SIZES[-1] + 1]
)
def test_steps_beside_the_sizes_are_refused_and_count_for_nothing(
    step: int, is_first: bool, n_learners: int | None
) -> None:
    """Epochs reported beside the pair, and sizes for which the trial was not asked."""

    def both(trial: optuna.Trial, n: int, x: float) -> None:
        if is_first:
            trial.report(5.0, step)
        report(trial, n, x - 1 / n)
        if not is_first:
            trial.report(5.0, step)

    study = random_study(n_learners=n_learners)
    with pytest.raises(ValueError, match=f"one of .* trial 0 reported step {step:,}"):
        study.optimize(at_each_size(both), n_trials=3, catch=(Exception,))
    study.optimize(one_number, n_trials=8)
    seen = [o.score for curve in learning_curves(study) for o in curve.observations]
    assert seen
    assert max(seen) <= 1.0, "the score of a step that is no size is no learner's"


def test_steps_beside_the_sizes_are_refused_with_another_sampler_too() -> None:
    def both(trial: optuna.Trial, n: int, x: float) -> None:
        trial.report(5.0, 1)
        report(trial, n, x)

    study = random_study()
    study.sampler = RandomSampler(seed=0)
    with pytest.raises(ValueError, match="trial 0 reported step 1"):
        study.optimize(at_each_size(both), n_trials=1)


# A thousand failures instead of one error


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "fail",
    [lambda _: undefined, lambda _: int("3x")],  # type: ignore[name-defined]  # noqa: F821
    ids=["name", "value"],
)
def test_an_error_of_all_learners_ends_an_open_study_that_catches_it(
    fail: Any, n_jobs: int
) -> None:
    def objective(trial: optuna.Trial) -> Any:
        trial.suggest_float("x", 0, 1)
        return fail(trial)

    study = random_study()
    with pytest.raises(ValueError, match="first 5 learners have all failed by one error, and"):
        study.optimize(objective, n_trials=60, n_jobs=n_jobs, catch=(Exception,))
    assert len(study.trials) <= 20


def test_an_objective_that_returns_nothing_ends_an_open_study(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = random_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) and None, n_trials=60)
    assert len(study.trials) <= 20
    assert "none was trained: the objective returned None" in caplog.text


def refuse(words: object) -> float:
    raise ValueError(words)


SKILLS: dict[str, Callable[[int, float], float]] = {
    "a penalty": lambda number, x: -math.inf if number < 8 else 0.5,
    "the first diverge": lambda number, x: math.nan if number < 8 else 0.5,
    "errors that differ": lambda number, x: refuse(x),
    "an error that comes later": lambda number, x: 0.5 if number == 0 else refuse(""),
}
"""Skill by trial and x: no one error of the first learners."""


@pytest.mark.parametrize("name", SKILLS)
def test_other_failures_end_no_open_study_that_catches_them(name: str) -> None:
    study = random_study()
    study.optimize(
        lambda t: trained(t, SKILLS[name](t.number, t.suggest_float("x", 0, 1))),
        n_trials=30,
        catch=(Exception,) if "error" in name else (),
    )
    assert len(study.trials) == 30
    if "error" not in name:
        assert study.best_value > 0.4


# Two scores at one size


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_value_that_is_not_the_score_reported_is_said_once_and_both_name_one_learner(
    direction: str, caplog: pytest.LogCaptureFixture
) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trained(trial, x)
        return -x  # of a test set, say

    study = random_study(direction=direction, n_learners=4)
    study.optimize(objective)
    best = answer(study)
    assert (study.best_params, study.best_value) == (best.params, best.score)
    assert caplog.text.count("The objective returned") == 1


@pytest.mark.parametrize(
    "gain",
    [lambda study: study.tell(study.ask(), 1e9), lambda study: study.optimize(lambda trial: 1e9)],
    ids=["ask and tell", "optimize"],
)
def test_a_value_of_a_trial_without_a_learner_is_said_to_be_lost(
    gain: Callable[[optuna.Study], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing may train there, and the study has its answer."""
    study = table_study()
    study.optimize(TableObjective())
    best = study.best_value
    for _ in range(2):
        gain(study)
    assert study.best_value == best
    (said,) = [each for each in caplog.messages if "is not kept" in each]
    assert re.match(r"Trial \d+ has no learner \(finished: .*\), so its value, 1000000000", said)


def test_a_study_in_which_all_is_well_ends_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The score may be returned with another type, and the pool be as large as its space."""
    study = table_study()
    study.optimize(lambda trial: np.float64(TableObjective()(trial)))
    assert not caplog.records


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_second_report_at_a_size_is_refused_whichever_was_the_first(is_ours: bool) -> None:
    study = table_study()
    trial = study.ask()
    trial.suggest_int("row", 0, 4)
    size = next(training_sizes(trial))
    report(trial, size, 0.5) if is_ours else trial.report(0.5, size)
    with pytest.raises(ValueError, match=f"A size must be reported once, but {size} was"):
        report(trial, size, 0.7, training_score=0.8)
    assert [seen.score for seen in learning_curves(study)[0].observations] == [0.5]


# The direction


PAPER = DAUBPruner.paper(sizes=SIZES)


@pytest.mark.parametrize(
    ("direction", "slope", "n_learners", "rule"),
    [
        ("minimize", 1, 8, PAPER),
        ("minimize", -1, 8, PAPER),
        ("maximize", 1, 8, PAPER),
        # The default rule trains most learners of a small pool once only: few scores are enough.
        *(("minimize", 1, n_learners, None) for n_learners in (None, 5, 8)),
    ],
)
def test_scores_that_rise_in_a_study_that_minimizes_are_named_once(
    direction: str,
    slope: int,
    n_learners: int | None,
    rule: AllocationPruner | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = random_study(direction=direction, n_learners=n_learners)
    study.pruner = rule or study.pruner
    objective = by_formula(lambda x, n: x - slope / n, 0.5, 0.9)
    study.optimize(objective, n_trials=None if rule else 20)
    is_said = (direction, slope) == ("minimize", 1)
    assert caplog.text.count('create the study with `direction="maximize"`') == is_said


# One trial, two workers


@pytest.mark.parametrize("n_processes", [1, 2])
@pytest.mark.parametrize("moment", ["claimed", "has parameters", "has a score", "suspended"])
def test_a_trial_that_optuna_hands_out_twice_is_run_once(
    moment: str, n_processes: int, storage: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does on SQLite, if nothing is locked while a worker looks for a waiting trial."""
    study = table_study(4, storage=storage)
    study.enqueue_trial({"row": 4})
    first = study.ask()
    if moment != "claimed":
        first.suggest_int("row", 0, 4)
    if moment in ("has a score", "suspended"):
        report(first, next(iter(training_sizes(first))), 0.5, training_score=0.6)
    if moment == "suspended":
        study.tell(first, state=TrialState.PRUNED)
    before = study.trials[0]
    stale = copy.copy(before)
    stale.system_attrs = {"fixed_params": {"row": 4}}  # as it was when the second one read it
    other = table_study(4, storage=storage)
    if n_processes > 1:
        monkeypatch.setattr("optuna_daub.study.liveness.this_worker", lambda: "elsewhere|1|1")
    else:
        thread = threading.Thread()  # another one of this process
        worker_of(other).holders[0] = host.Holder(weakref.ref(thread), None, os.getpid())
    before_trial = other.sampler.before_trial
    ids = iter([first._trial_id])
    monkeypatch.setattr(other, "_pop_waiting_trial_id", lambda: next(ids, None))
    monkeypatch.setattr(
        other.sampler, "before_trial",
        lambda of, trial: before_trial(of, stale if trial.number == 0 else trial),
    )  # fmt: skip
    other.optimize(TableObjective(), n_trials=1)
    assert study.trials[0] == before, "the second worker has changed nothing of it"
    assert study.trials[1].state == TrialState.PRUNED
    curve = learning_curves(study)[0]
    has_score = moment in ("has a score", "suspended")
    assert [seen.score for seen in curve.observations] == [0.5] * has_score
    if moment != "suspended":
        study.tell(first, state=TrialState.PRUNED)


def claim_elsewhere(trial: optuna.Trial) -> None:
    """Write the claim of another worker over that of this one, as both had read the trial."""
    study = trial.study
    stored = study._storage.get_trial(trial._trial_id)
    theirs = replace(worker_of(study).known.runs[trial.number], worker="elsewhere|1|1")
    log.write_run(study, stored, theirs)


@pytest.mark.parametrize("moment", ["before its parameter", "before its size", "after a score"])
def test_of_two_that_have_written_their_claims_to_one_trial_the_last_one_has_it(
    moment: str, storage: Place
) -> None:
    """The second worker read the trial before the first one wrote its claim, and writes later."""
    study = table_study(4, storage=storage, patience=Patience(checked=0.0))
    if moment != "before its parameter":
        study.enqueue_trial({"row": 4})
    objective, told = TableObjective(), list[str]()

    def overtaken(trial: optuna.Trial) -> float:
        if trial.number:
            return objective(trial)
        sizes = None
        if moment != "before its parameter":
            trial.suggest_int("row", 0, 4)
        if moment == "after a score":
            sizes = training_sizes(trial)
            report(trial, next(sizes), 0.5, training_score=0.6)
        claim_elsewhere(trial)
        try:
            trial.suggest_int("row", 0, 4)
            next(sizes or training_sizes(trial))
        except optuna.TrialPruned as end:
            told.append(str(end))
            raise
        return 0.0

    study.optimize(overtaken, n_trials=3)
    assert len(told) == 1
    first, *others = study.trials
    assert (first.number, first.state) == (0, TrialState.RUNNING), "it is the other worker's"
    assert ("row" in first.params) == (moment != "before its parameter")
    assert first.system_attrs["daub:run"]["worker"] == "elsewhere|1|1"
    assert others
    assert all(trial.state.is_finished() for trial in others)
    assert 0 not in {curve.learner for curve in learning_curves(study) if curve.state == "dropped"}


def test_a_claim_of_a_dead_worker_counts_only_while_there_is_room() -> None:
    """If two claim the last place, the higher one steps back, unless it is killed before."""
    study = table_study(2)
    study.ask()
    for number in (1, 2):
        trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
        run = Run(number, 6, n_learners=2, full_size=SIZES[-1], trial=number)
        log.write_run(study, trial, run)
        log.end(study, trial)
    assert [curve.learner for curve in learning_curves(study)] == [0, 1]
    study.tell(0, state=TrialState.FAIL)
    study.optimize(TableObjective(), catch=(Exception,))
    assert len(learning_curves(study)) == 2


def test_a_dead_claim_is_taken_over_only_while_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One worker decides; another claims the last place and dies; a third one takes that over."""
    # A name of its own: trials of other tests' studies "table" may be held by this thread.
    study = table_study(1, name="room")
    slow, dead = (study._storage.create_new_trial(study._study_id) for _ in range(2))
    claim = Run(1, 6, n_learners=1, full_size=SIZES[-1], trial=1)
    log.write_run(study, study._storage.get_trial(dead), claim)
    log.end(study, study._storage.get_trial(dead))
    real, asked = log.write_run, list[int | None]()

    def claiming(study: optuna.Study, trial: Any, run: Run) -> None:
        if not asked:  # the first one comes in between, and trains
            first = study._storage.get_trial(slow)
            own = replace(claim, learner=0, trial=0, worker=liveness.this_worker())
            real(study, first, own)
            log.write_score(study, first, Observation(6, 0.5, 0.6))
        asked.append(run.learner)
        real(study, trial, run)

    monkeypatch.setattr(log, "write_run", claiming)
    study.optimize(TableObjective(), n_trials=1, timeout=0.5)
    assert asked[0] == 1
    assert [curve.learner for curve in learning_curves(study)] == [0]
    assert len(learning_curves(table_study(1, storage=study._storage, name="room"))) == 1


# Odd values


@pytest.mark.parametrize("seconds", [-1, 1e300, float("nan"), "soon", [1]])
def test_stored_seconds_that_are_none_are_unknown(seconds: object) -> None:
    study = random_study()
    trial = study.ask()  # of a new learner
    trial.suggest_int("row", 0, 4)
    key = f"daub:observation:{SIZES[0]}"
    study._storage.set_trial_system_attr(trial._trial_id, key, {"seconds": seconds})
    trial.report(0.5, SIZES[0])
    study.tell(trial, state=TrialState.PRUNED)
    assert learning_curves(study)[-1].observations[0].seconds is None
    study.optimize(TableObjective(), n_trials=4)


def test_an_error_whose_message_is_one_more_error_is_a_failure_like_others() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no message")

    assert message_of(UnreadableError()) == "UnreadableError: (an error without a message)"


def test_a_pruner_in_the_place_of_the_sampler_is_named() -> None:
    swapped: Any = {"sampler": DAUBPruner(sizes=SIZES), "pruner": DataAllocationSampler()}
    study = optuna.create_study(direction="maximize", **swapped)
    with pytest.raises(ValueError, match="must be a sampler, but got DAUBPruner, a pruner"):
        study.optimize(lambda trial: 0.0, n_trials=1)


# Mistakes of all learners


unreported = at_each_size(lambda trial, n, x: None)
EPOCHS, NO_SIZE = range(1, 5), r"is the training size, one of .* reported step 1"

MISTAKES: dict[str, tuple[Objective, str]] = {
    "epochs": (reporting(EPOCHS), NO_SIZE),
    "epochs, and nobody asks the pruner": (reporting(EPOCHS, asks=False), NO_SIZE),
    "beyond all": (reporting([10 * SIZES[-1]]), "is the training size, at most .* reported "),
    "unreported": (unreported, "Every training size must be reported"),
    "another size": (
        at_each_size(lambda trial, n, x: report(trial, n + 1, x)),
        "`size` must be the one that `training_sizes` yielded",
    ),
    "no score": (
        at_each_size(lambda trial, n, x: report(trial, n, [x])),  # type: ignore[arg-type]
        "`score` must be a number",
    ),
}


@pytest.mark.parametrize("catch", [(), (Exception,)], ids=["raised", "caught"])
@pytest.mark.parametrize("name", MISTAKES)
def test_an_objective_that_no_trial_can_run_ends_the_study_at_once(
    name: str, catch: tuple[type[Exception], ...]
) -> None:
    study, (mistake, complaint) = random_study(), MISTAKES[name]
    with pytest.raises(ValueError, match=complaint):
        study.optimize(mistake, n_trials=20, catch=catch)
    state = TrialState.COMPLETE if "nobody" in name else TrialState.FAIL
    assert [trial.state for trial in study.trials] == [state]


def test_a_mistake_of_one_learner_among_others_is_that_learners_failure() -> None:
    study = table_study()

    def objective(trial: optuna.Trial) -> float:
        row = trial.suggest_int("row", 0, 4)
        return unreported(trial) if row == 1 else TableObjective()(trial)

    study.enqueue_trial({"row": 0})
    study.optimize(objective, n_trials=60, catch=(ValueError,))
    (lost,) = [curve for curve in learning_curves(study) if curve.state == "dropped"]
    assert lost.params["row"] == 1
    assert "Every training size must be reported" in lost.reason
    final(study)


# Parameters that depend on the trial's number


@pytest.mark.parametrize("catch", [(), (Exception,)])
def test_a_learner_that_comes_back_with_other_parameters_ends_the_study(
    catch: tuple[type[Exception], ...],
) -> None:
    """Optuna asks no sampler for a range of one value. Under `catch` it went on without end."""
    low, high = 0.0, 1.0

    def objective(trial: optuna.Trial) -> float:
        far = abs(trial.suggest_float("x", low, high) - 0.5)
        return trained(trial, far + trial.suggest_int("y", 0, 9) / 100)

    study = random_study(n_learners=6)
    for _ in range(3):
        study.optimize(objective, n_trials=1)
    low = high = 0.5
    with pytest.raises(SetupError, match=r"must keep its parameters, but trial .* suggests x = "):
        study.optimize(objective, n_trials=30, catch=catch)
    low, high = 0.0, 1.0  # nothing is lost once the range is as before
    study.optimize(objective)
    assert not any(curve.state == "dropped" for curve in learning_curves(study))
    final(study)


@pytest.mark.parametrize("n_learners", [None, 20])
def test_a_search_that_ends_early_for_want_of_new_points_says_so_once(
    n_learners: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    def objective(trial: optuna.Trial) -> float:
        return trained(trial, trial.suggest_int("x", 0, 1 + trial.number // 5) / 10)

    study = random_study(n_learners=n_learners)
    study.optimize(objective, n_trials=200)
    assert len(study.trials) < 200
    said = [record.getMessage() for record in caplog.records]
    assert sum("points of the search space, as far as it was seen" in each for each in said) == 1
    assert any("`n_learners` is 20" in each for each in said) == (n_learners == 20)
