"""ABC in studies: the decisions of replay, what is promised, and what is refused."""

from __future__ import annotations

import copy
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from optuna.samplers import BaseSampler
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.dummy import DummyClassifier

from optuna_daub import ABCPruner
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import ABC
from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import replay
from optuna_daub.learners import sequential_score
from optuna_daub.study import worker as workers
from optuna_daub.study.abc_pruner import HALF_WIDTHS
from optuna_daub.study.abc_pruner import SCHEDULERS
from optuna_daub.study.worker import looking
from tests.core.scenario import changed
from tests.strategies import FOUR
from tests.strategies import FOUR_SHAPES
from tests.strategies import FOUR_SIZES
from tests.strategies import noisy_learners
from tests.study.table_study import Formula
from tests.study.table_study import InOrder
from tests.study.table_study import Objective
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import by_formula
from tests.study.table_study import final
from tests.study.table_study import is_over
from tests.study.table_study import pair
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import reporting
from tests.study.table_study import runs


Event = tuple[str, int, Any]


def abc_study(
    n_learners: int = len(FOUR),
    storage: str | optuna.storages.BaseStorage | None = None,
    direction: str = "maximize",
    base: BaseSampler | None = None,
    **rule: Any,
) -> optuna.Study:
    """Return a study of ABC with a sampler and a pruner of its own; opened if it is there."""
    pruner = ABCPruner(**{"max_resource": 1_000_000, "n_validation": 100_000, **rule})
    given: dict[str, Any] = {"storage": storage, "name": "abc", "n_learners": n_learners}
    return pair(pruner, base or InOrder(), direction=direction, **given)


class Diary(TableObjective):
    """Writes down who was trained and who was dropped when."""

    def __init__(self, rows: list[LearningCurve]) -> None:
        super().__init__(rows)
        self.events: list[Event] = []

    def __call__(self, trial: optuna.Trial) -> float:
        self.after = lambda row, size: self.write_down(trial.study, row, size)
        return super().__call__(trial)

    def write_down(self, study: optuna.Study, row: int, size: int) -> None:
        self.events.append(("train", row, size))
        known = {learner for what, learner, _ in self.events if what == "drop"}
        sizes = {curve.learner: curve.size for curve in learning_curves(study)}
        for learner, reason in looking(study).known.drops.items():
            if learner not in known:
                self.events.append(("drop", learner, f"at {sizes[learner]:,}: {reason}"))


def replayed(policy: ABC, known: list[LearningCurve]) -> list[Event]:
    """Return what a study of the same learners is to write down."""
    curves = {curve.learner: 0 for curve in known}
    events: list[Event] = []
    for decision in replay(policy, known):
        match decision:
            case Extend(learner, size):
                curves[learner] = size
                events.append(("train", learner, size))
            case Drop(learner, reason):
                events.append(("drop", learner, f"at {curves[learner]:,}: {reason}"))
    return events


def in_turns(events: list[Event]) -> list[list[Event]]:
    """Return each training with the drops it brings; those at once come in no order."""
    turns: list[list[Event]] = [[]]
    for event in events:
        if event[0] == "train":
            turns.append([])
        turns[-1].append(event)
    return [sorted(turn) for turn in turns]


def assert_replayed(study: optuna.Study, objective: Diary) -> None:
    assert in_turns(objective.events) == in_turns(replayed(study.pruner.policy, objective.rows))


def assert_answered(study: optuna.Study, known: list[LearningCurve]) -> None:
    """Assert that the answer is that of replay; of the fully trained, the one with best score."""
    *_, last = replay(study.pruner.policy, known)
    assert isinstance(last, Finish)
    assert last.learner is not None
    best = final(study)
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    if best.size == study.pruner.policy.sizes[-1]:
        assert best.score == max(t.value for t in complete)
        assert best.score >= known[last.learner].score
    if best.learner == last.learner:
        assert best.reason == f"best: {last.reason}"
    else:
        assert study.pruner.policy.refit
        assert best.score > known[last.learner].score


# ---- The same decisions as replay --------------------------------------------------------------


@pytest.fixture(scope="module")
def undisturbed() -> optuna.Study:
    """A study of the four learners that has come to its end, to look at only."""
    study = abc_study()
    study.optimize(TableObjective(FOUR))
    return study


@pytest.fixture(scope="module")
def explored() -> optuna.Study:
    """The same without a training of its answer on all the data."""
    study = abc_study(refit=False)
    study.optimize(TableObjective(FOUR))
    return study


GRID = (1000, 2000, 4000, 8000, 12_000)
SMALL: dict[str, Any] = {"max_resource": GRID[-1], "n_validation": 10_000}


@pytest.mark.parametrize("interval", HALF_WIDTHS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=10)
@given(
    known=noisy_learners(GRID, (10_000,)),
    epsilon=st.sampled_from([0.01, 0.05, 0.2]),
    delta=st.sampled_from([0.01, 0.5]),
    refit=st.booleans(),
)
def test_a_study_decides_as_replay_does(
    scheduler: str, interval: str, known: list[LearningCurve], **rule: Any
) -> None:
    study = abc_study(len(known), **SMALL, scheduler=scheduler, interval=interval, **rule)
    objective = Diary(known)
    study.optimize(objective)
    assert_replayed(study, objective)
    assert_sound(study)
    if rule["refit"]:
        assert_answered(study, known)


def assert_sound(study: optuna.Study) -> None:
    """Assert what holds of every finished study: nothing twice, who is dropped stays dropped."""
    assert_nothing_twice(study)
    assert not [t for t in study.trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]
    for trial, run in runs(study):
        if trial.state == TrialState.COMPLETE:
            assert trial.last_step == study.pruner.policy.sizes[-1]
        last = max(t.number for t, other in runs(study) if other.learner == run.learner)
        is_over = trial.user_attrs["daub:reason"].startswith(("dropped", "trained on all"))
        assert trial.number == last or not is_over, "was resumed"
    assert [curve.state for curve in learning_curves(study)].count("best") == 1


# ---- Two ways to end ---------------------------------------------------------------------------


def test_refit_trains_the_answer_on_all_the_data(undisturbed: optuna.Study) -> None:
    study = undisturbed
    assert study.best_trial.last_step == 1_000_000
    assert study.best_value == FOUR[0].score
    assert [t.state for t in study.trials].count(TrialState.COMPLETE) == 1
    full = [probe.learner for probe in allocations(study) if probe.observation.size == 10**6]
    assert full == [0] == [allocations(study)[-1].learner]
    best = answer(study)
    assert (best.size, best.score, best.bound) == (1_000_000, 0.859, 0.859)
    assert best.reason == (
        "best: within 0.01 of the best with probability 0.95; trained on all 1,000,000 examples "
        "with score 0.859"
    )
    assert round(best.seconds, 6) == 2021.7


def test_exploration_ends_without_training_on_all_the_data(explored: optuna.Study) -> None:
    assert {trial.state for trial in explored.trials} == {TrialState.PRUNED}
    best = answer(explored)
    assert (best.learner, best.size, best.is_final) == (0, 128_000, True)
    by_learner = {curve.learner: curve for curve in learning_curves(explored)}
    assert [by_learner[i].state for i in range(4)] == ["best", "dropped", "dropped", "dropped"]
    bounds = [by_learner[i].bound for i in range(4)]  # formulas.md 2.9
    assert bounds == pytest.approx([0.874063, 0.866858, 0.866162, 0.781603], abs=5e-7)
    assert best.reason == (
        "best: within 0.01 of the best with probability 0.95; identified at 128,000 examples, "
        "not trained on all"
    )


def of_scores(
    *rows: list[tuple[float, float]], seconds: Formula = lambda row, n: n / 1000
) -> list[LearningCurve]:
    """Return learners with these scores at each size, each with its training score."""
    return [
        LearningCurve(
            row,
            tuple(
                Observation(n, score, fitted, min(2 * n, 10_000), seconds(row, n))
                for n, (score, fitted) in zip(GRID, scores, strict=True)
            ),
        )
        for row, scores in enumerate(rows)
    ]


def test_the_answer_of_an_exploration_is_the_one_identified() -> None:
    """Also if a learner that was dropped later had been trained on all the data."""
    known = of_scores(  # 1 is the answer at 8,000 examples, 0 is dropped only on all the data
        [(0.68, 0.76), (0.69, 0.77), (0.70, 0.75), (0.709, 0.745), (0.706, 0.742)],
        [(0.66, 0.84), (0.70, 0.81), (0.71, 0.79), (0.719, 0.776), (0.73, 0.776)],
        seconds=lambda row, n: 0.001 * 4**row,
    )
    study = abc_study(2, **SMALL, delta=0.01, refit=False)
    study.optimize(TableObjective(known))
    assert [t.params["row"] for t in study.trials if t.state == TrialState.COMPLETE] == [0]
    assert_answered(study, known)
    assert [curve.state for curve in learning_curves(study)] == ["dropped", "best"]


def test_what_was_explored_can_be_trained_later() -> None:
    explored = abc_study(refit=False)
    explored.optimize(TableObjective(FOUR))
    study, objective = abc_study(storage=explored._storage), Diary(FOUR)
    study.optimize(objective)
    assert [e for e in objective.events if e[0] == "train"] == [("train", 0, 1_000_000)]
    assert study.best_trial.last_step == 1_000_000


# ---- At any time, anywhere, by anyone ----------------------------------------------------------


def test_the_answer_of_an_unfinished_study_is_the_best_guess() -> None:
    study = abc_study()
    assert best_learner(study) is None
    gaps = []
    for n_trials in range(1, 99):
        study.optimize(TableObjective(FOUR), n_trials=1)
        best = answer(study)
        if best.is_final:
            break
        if n_trials < len(FOUR):
            continue  # learners are still to come
        curves = learning_curves(study)
        seen = Pool(Curves(LearningCurve(curve.learner, curve.observations) for curve in curves))
        guess = study.pruner.policy.best_guess(seen)
        assert guess is not None
        assert best.learner == guess.learner
        assert best.promise.startswith(
            f"Learner {guess.learner} is within {guess.gap_shown} of the best of 4 learners with "
            "probability 0.95."
        )
        assert study.pruner.policy.best_guess(seen) == guess
        gaps.append(guess.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.1 > 0.02 > gaps[-1]
    assert best.learner == 0


def test_a_study_whose_first_probe_failed_has_no_answer_yet() -> None:
    study = abc_study()
    study.optimize(TableObjective(FOUR, before=raising(OSError)), n_trials=1, catch=OSError)
    assert best_learner(study) is None


def test_as_soon_as_there_is_a_score_there_is_an_answer() -> None:
    low = [
        LearningCurve(i, (Observation(1000, 0.1 + i / 10, 0.2 + i / 10, 2000),)) for i in range(4)
    ]
    study = abc_study()
    for n_trials in range(1, 4):
        study.optimize(TableObjective(low), n_trials=1)
        best = answer(study)
        assert best.learner == n_trials - 1
        assert "of the best of 4 learners" in best.promise, "those to come count too"
        guess = study.pruner.policy.best_guess(looking(study).pool(study.pruner.policy))
        assert guess is not None
        lower = learning_curves(study)[n_trials - 1].worst
        assert lower is not None
        assert guess.gap == pytest.approx(1 - lower)  # a learner to come may have any score


def level(*scores: float) -> list[LearningCurve]:
    """Return learners of one score at all sizes, on training rows as well."""
    return of_scores(*([(score, score)] * len(GRID) for score in scores))


@pytest.mark.parametrize("is_loaded_again", [True, False])
def test_an_end_without_an_answer_is_overcome_by_a_new_pruner(is_loaded_again: bool) -> None:
    """The best fails on all the data, after it has ruled all others out."""
    storage = InMemoryStorage()
    before = raising(MemoryError, (0, GRID[-1]))
    objective = TableObjective(level(0.95, 0.60, 0.65), before=before)
    study = abc_study(3, storage, **SMALL)
    study.optimize(objective, n_trials=20, catch=MemoryError)
    assert best_learner(study) is None
    curves = learning_curves(study)
    assert [curve.state for curve in curves] == ["dropped"] * 3
    assert "failed 2 times at 12,000 examples" in curves[0].reason
    assert [curve.score for curve in curves] == [0.95, 0.60, 0.65]
    assert not [t for t in study.trials if t.state == TrialState.COMPLETE]

    if is_loaded_again:
        study = abc_study(3, storage, **SMALL)
    else:
        study.pruner = ABCPruner(**SMALL)
    study.optimize(objective, n_trials=20, catch=MemoryError)
    best = answer(study)
    assert (best.learner, best.size, best.is_final) == (2, GRID[-1], True)
    assert study.best_params == {"row": 2}


def test_a_training_score_that_is_not_finite_drops_its_learner_alone() -> None:
    """It is no report to be refused."""
    steady = level(0.80, 0.799, 0.40)
    steady[1] = changed(steady[1], lambda x: replace(x, training_score=math.nan))
    study = abc_study(3, **SMALL)
    study.optimize(TableObjective(steady), n_trials=20)
    assert (final(study).learner, final(study).size) == (0, GRID[-1])
    assert "(1 failed or infeasible, of which nothing is claimed)" in final(study).promise
    (dropped,) = [curve for curve in learning_curves(study) if curve.learner == 1]
    assert dropped.reason == "dropped at 1,000: training score nan at 1,000 examples"


def test_goes_on_with_new_objects_after_each_trial(undisturbed: optuna.Study) -> None:
    study = abc_study()
    while not is_over(study):
        study.optimize(TableObjective(FOUR), n_trials=1)
        workers._WORKERS.clear()  # all that a new process would not know
        study = abc_study(storage=study._storage)
    assert probes(study) == probes(undisturbed)
    assert best_learner(study) == best_learner(undisturbed)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_two_workers_find_the_best(scheduler: str) -> None:
    def train(row: int, size: int) -> None:
        time.sleep(size * FOUR_SHAPES[row][2] / 4e7)

    study = abc_study(scheduler=scheduler)
    study.optimize(TableObjective(FOUR, before=train), n_jobs=2)
    best = answer(study)
    # Both may have begun with row 0: then the same parameters are one learner, of either id.
    assert (best.params, best.size, best.is_final) == ({"row": 0}, 1_000_000, True)
    assert study.best_trial.params == {"row": 0}
    assert_sound(study)


class TornStorage(optuna.storages.InMemoryStorage):
    """Reads attributes first and scores later, as an RDB storage does, once with a gap between.

    What another worker stores in that gap is seen in part: the score, not its training score.
    """

    has_torn = False

    def get_trial(self, trial_id: int) -> optuna.trial.FrozenTrial:
        trial = super().get_trial(trial_id)
        newest = [key for key in trial.system_attrs if ":observation:1000" in key]
        if trial.state.is_finished() or not trial.intermediate_values or self.has_torn:
            return trial
        self.has_torn = True
        trial = copy.deepcopy(trial)
        for key in newest:
            del trial.system_attrs[key]
        return trial


def test_a_score_is_not_taken_without_its_training_score() -> None:
    study = abc_study(storage=TornStorage())
    study.optimize(TableObjective(FOUR), n_trials=1)
    (curve,) = learning_curves(study)
    assert curve.observations == FOUR[0].observations[:1]


# ---- The certificate ---------------------------------------------------------------------------


def test_the_certificate_says_how_good_how_sure_on_what_and_why(explored: optuna.Study) -> None:
    said = answer(explored).promise
    assert said.startswith("Learner 0 is within 0.01 of the best of 4 learners with probab")
    assert "with probability 0.95." in said
    assert "514,000 training examples in 19 trainings of 1,000 to 128,000 (all: 1,000,000)" in said
    assert "scored on 2,000 to 100,000 (all: 100,000), in 1,021.7 s." in said
    assert "Rests on the Hoeffding inequality, delta / n^2 = 0.0031 per interval" in said
    for condition in (
        "scores are means over examples of values in [0, 1]",
        "training and validation data come from one distribution",
        "a learner fits its own training sample at least as well as if trained on other data",
        "more data do not hurt",
    ):
        assert condition in said


@pytest.mark.parametrize(
    ("interval", "name"), [("massart", "Massart"), ("clopper_pearson", "Clopper-Pearson")]
)
def test_the_certificate_names_the_inequality_and_delta(interval: str, name: str) -> None:
    study = abc_study(interval=interval, delta=0.2, refit=False)
    study.optimize(TableObjective(FOUR))
    best = answer(study)
    assert f"the {name} inequality, delta / n^2 = 0.013 per interval" in best.promise
    assert "with probability 0.8" in best.promise
    assert best.examples < 514_000  # narrower intervals take less


def test_a_smaller_sample_that_gave_a_better_score_is_named() -> None:
    *probes_, last = FOUR[0].observations
    worse = Observation(last.size, 0.8555, last.training_score, 100_000, 1000.0)
    for end, better in ((worse, 128_000), (last, None)):
        study = abc_study()
        study.optimize(TableObjective([LearningCurve(0, (*probes_, end)), *FOUR[1:]]))
        best = answer(study)
        assert (best.learner, best.size, best.better_size) == (0, 1_000_000, better)


# ---- Samples of the held-out set ---------------------------------------------------------------

N_TRAIN, N_VALID = 14_000, 6_000
ROWS = np.arange(N_TRAIN + N_VALID)[:, None]
CLASSES, AMOUNTS = ROWS[:, 0] % 2, ROWS[:, 0] / 3


class Threshold(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Right on a fixed part of the rows, whose numbers are the only feature; keeps a diary."""

    diary: list[tuple[str, float, NDArray[np.int64]]] = []  # noqa: RUF012

    def __init__(self, skill: float = 0.5) -> None:
        self.skill = skill

    def fit(
        self, X: NDArray[np.int64], y: NDArray[np.int64], sample_weight: Any = None
    ) -> Threshold:
        self.classes_ = np.unique(y)
        self.diary.append(("fit", self.skill, X[:, 0]))
        return self

    def predict(self, X: NDArray[np.int64]) -> NDArray[np.int64]:
        self.diary.append(("predict", self.skill, X[:, 0]))
        is_right = (X[:, 0] * 7919) % 1009 < 1009 * self.skill
        labels: NDArray[np.int64] = X[:, 0] % 2
        return np.where(is_right, labels, 1 - labels)


def table_objective(
    skills: tuple[float, ...] = (0.95, 0.75, 0.7), **options: Any
) -> TrainingSizeObjective:
    def build(trial: optuna.Trial) -> Threshold:
        return Threshold(skills[trial.suggest_int("row", 0, 2)])

    return TrainingSizeObjective(build, ROWS, CLASSES, **options)


def objective_study(objective: TrainingSizeObjective, **rule: Any) -> optuna.Study:
    sizes = {"max_resource": objective.n_train, "n_validation": objective.n_validation}
    return abc_study(3, **{"epsilon": 0.1, **sizes, **rule})


def searched(objective: TrainingSizeObjective, **rule: Any) -> optuna.Study:
    study = objective_study(objective, **rule)
    study.optimize(objective)
    return study


def test_probes_are_scored_on_growing_nested_samples_of_the_held_out_set() -> None:
    Threshold.diary.clear()
    objective = table_objective((0.95, 0.94, 0.7))  # two undecided to the end
    assert (objective.n_train, objective.n_validation) == (N_TRAIN, N_VALID)
    study = searched(objective, epsilon=0.01)
    scored = {
        (probe.observation.size, probe.observation.n_validation) for probe in allocations(study)
    }
    assert scored == {(1000, 2000), (2000, 4000), (4000, 6000), (8000, 6000), (N_TRAIN, N_VALID)}

    by_skill: dict[float, list[set[int]]] = {}
    held_out: set[int] = set()
    for (did, skill, rows), (then, _, scored_on), (again, _, trained_on) in zip(
        *(Threshold.diary[start::3] for start in range(3)), strict=True
    ):
        assert (did, then, again) == ("fit", "predict", "predict")
        assert np.array_equal(np.sort(rows), np.sort(trained_on))
        assert len(scored_on) == min(2 * len(rows), N_VALID) == len({*scored_on})
        assert abs((scored_on % 2).mean() - 0.5) < 1e-3  # every class in its share
        held_out |= {*scored_on.tolist()}
        by_skill.setdefault(skill, []).append({*scored_on.tolist()})
        assert not held_out & {*rows.tolist()}
    for samples in by_skill.values():
        assert all(less <= more for less, more in pairwise(samples))
    assert len(held_out) == N_VALID

    best = answer(study)
    assert best.params == {"row": 0}
    assert study.best_value == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_nothing_is_trained_on_all_the_data_before_the_answer_is_known(scheduler: str) -> None:
    Threshold.diary.clear()
    objective = table_objective()
    study = searched(objective, scheduler=scheduler)
    fits = [(skill, len(rows)) for did, skill, rows in Threshold.diary if did == "fit"]
    assert [fit for fit in fits if fit[1] == N_TRAIN] == [(0.95, N_TRAIN)] == [fits[-1]]
    assert objective.refit(study).skill == 0.95


def test_without_n_validation_every_probe_is_scored_on_the_whole_set() -> None:
    objective = table_objective()
    study = searched(objective, n_validation=None)
    assert {probe.observation.n_validation for probe in allocations(study)} == {N_VALID}
    assert study.best_trial.params == {"row": 0}


def test_an_answer_that_is_only_identified_is_refitted_with_a_warning() -> None:
    objective = table_objective()
    study = searched(objective, refit=False)
    with pytest.warns(UserWarning, match=r"its score on all of them is not known\.$"):
        assert objective.refit(study).skill == 0.95


# ---- Bad input ---------------------------------------------------------------------------------


IMPROPER = (-0.1, 0.0, 1.0, 2.0, math.nan, math.inf)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        *(({"epsilon": x}, f"`epsilon` .* between 0 and 1, but got {x}") for x in IMPROPER),
        *(({"delta": x}, f"`delta` must be between 0 and 1, but got {x}") for x in IMPROPER),
        ({"scheduler": "sha"}, r"`scheduler` .* \['gradient_ci', 'round_robin', 'ucb'\],.* 'sha'"),
        ({"interval": "wald"}, r"`interval` .* \['clopper_pearson', .*'massart'\],.* 'wald'"),
        ({"n_validation": 0}, "`n_validation` must be at least 1, but got 0"),
        ({"max_resource": 3000}, "max_resource"),
        ({"reduction_factor": 1.0}, "reduction_factor"),
    ],
)
def test_arguments_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ABCPruner(**{"max_resource": 10_000, **wrong})


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"training_score": None},
            "the training score .* 1,000 .* none. Report it as `training_s",
        ),
        ({"n_validation": None}, "the number of validation .* 1,000 .* none. Report it as `n_val"),
        ({"score": 80.5}, r"in \[0, 1\], but the score of trial 0 at 1,000 training .* is 80\.5"),
        ({"score": -0.3}, r"the score of trial 0 at 1,000 training examples is -0\.3"),
        ({"training_score": 1.5}, r"the training score of trial 0 at 1,000 training .* is 1\.5"),
        ({"n_validation": 0}, "`n_validation`, .* must be at least 1, but got 0"),
        ({"n_validation": 100_001}, "1 to 100,000 .* trial 0 at 1,000 .* has 100,001"),
    ],
)
def test_reports_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    right = {"score": 0.8, "training_score": 0.9, "n_validation": 2000}

    def objective(trial: optuna.Trial) -> float:
        for size in training_sizes(trial):
            report(trial, size, **{**right, **wrong})
        return 0.8

    study = abc_study()
    with pytest.raises(ValueError, match=complaint):
        study.optimize(objective)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]
    assert not study.trials[0].intermediate_values, "a refused score is stored nevertheless"


def plain(trial: optuna.Trial) -> float:
    for size in training_sizes(trial):
        trial.report(0.8, size)
    return 0.8


@pytest.mark.parametrize("objective", [plain, reporting(FOUR_SIZES)])
@pytest.mark.parametrize("n_learners", [1, 4])
def test_a_plain_report_lacks_the_training_score(objective: Objective, n_learners: int) -> None:
    study = abc_study(n_learners)
    complaint = (
        "needs the training score of every training, .* at 1,000 .* Report it as `training_s"
    )
    with pytest.raises(ValueError, match=complaint):
        study.optimize(objective)
    assert len(study.trials) == 1


def test_scores_to_minimize_are_refused_before_anything_is_trained() -> None:
    study = abc_study(direction="minimize")
    before = raising(AssertionError("it was trained"))
    with pytest.raises(ValueError, match=r'larger for better .* `direction="maximize"`'):
        study.optimize(TableObjective(FOUR, before=before))
    assert not study.trials[0].intermediate_values


A_SAMPLE = {"scoring": sequential_score(epsilon=0.1, delta=0.1)}
ALL_ROWS = (
    r"need a score on all validation rows(.|\n)*`scoring=SequentialScorer\((.|\n)*"
    'Pass `scoring="accuracy"`, or take `DAUBPruner`.'
)


@pytest.mark.parametrize(
    ("options", "n_validation", "complaint"),
    [
        *(({}, n, f"full held-out set, 6000, but got {n}") for n in (100, 5_999, 20_000)),
        ({"cv": 3}, N_VALID, r"one validation set .* but got `cv` with 3 folds"),
        *((A_SAMPLE, n, ALL_ROWS) for n in (N_VALID, None)),
    ],
)
def test_objectives_of_another_kind_are_refused_before_anything_is_trained(
    options: dict[str, Any], n_validation: int | None, complaint: str
) -> None:
    Threshold.diary.clear()
    objective = table_objective(**options)
    study = objective_study(objective, n_validation=n_validation)
    with pytest.raises(ValueError, match=complaint):
        study.optimize(objective, catch=ValueError)
    assert not Threshold.diary


class Untagged:
    """A classifier with its own accuracy that does not inherit from scikit-learn."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any) -> Untagged:
        return self

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(np.asarray(y) == 0))


class Unmixed(BaseEstimator, Untagged):  # type: ignore[misc]
    """The same with the tags of scikit-learn, which do not say what it predicts."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def of_kind(kind: Any, targets: Any, **options: Any) -> TrainingSizeObjective:
    return TrainingSizeObjective(lambda trial: kind(), ROWS, targets, **options)


def at_random() -> DummyClassifier:
    return DummyClassifier(strategy="uniform", random_state=0)


WEIGHTS = np.where(ROWS[:, 0] % 100 == 0, 1000.0, 1.0)
WEIGHTED: dict[str, Any] = {"sample_weight": WEIGHTS, "weighted_score": True}
NO_PROMISE = "the promise of epsilon and delta does not hold. Leave out `weighted_score`."

# A weighted mean of n values varies more than a mean of n values.
SCORES: dict[str, tuple[Callable[[], TrainingSizeObjective], str]] = {
    **{
        name: (partial(of_kind, at_random, CLASSES, scoring=name), f"`scoring` is {name!r}")
        for name in ("f1", "roc_auc")
    },
    **{
        f"{name} with weights": (
            partial(table_objective, scoring=name, **WEIGHTED),
            rf"`scoring` is {name!r} with `weighted_score=True`: (.|\n)*{NO_PROMISE}$",
        )
        for name in ("accuracy", None, "f1")
    },
    "weights that are not scored with": (partial(table_objective, sample_weight=WEIGHTS), ""),
    **{
        f"own score of {kind.__name__}, {what}": (
            partial(of_kind, kind, targets, scoring=None),
            complaint,
        )
        for kind in (Untagged, Unmixed)
        for what, targets, complaint in (("classes", CLASSES, ""), ("amounts", AMOUNTS, "mean"))
    },
}


@pytest.mark.parametrize(("new", "complaint"), SCORES.values(), ids=SCORES)
def test_a_score_that_is_no_mean_over_examples_is_warned_of_once(
    new: Callable[[], TrainingSizeObjective], complaint: str
) -> None:
    objective = new()
    if complaint:
        with pytest.warns(UserWarning, match="mean over examples") as caught:
            searched(objective, epsilon=0.2)
        (only,) = caught
        assert re.search(complaint, str(only.message))
    assert best_learner(searched(objective, epsilon=0.2)) is not None  # an error if it warned


def test_other_rules_take_a_score_of_a_sample() -> None:
    objective = table_objective(**A_SAMPLE)
    rule = DAUBPruner(max_resource=objective.n_train, cost="examples")
    study = pair(rule, InOrder(), n_learners=3)
    study.optimize(objective)
    assert study.best_params == {"row": 0}


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_learner_is_never_said_to_be_dropped(
    seed: int, refit: bool, epsilon: float
) -> None:
    """On few rows the rule's answer and the best score may be of two learners, or of equals."""

    def score(x: float, n: int) -> float:
        return round(280 * (0.84 + 0.03 * x - 0.5 / n + 0.01 * ((n * x) % 1))) / 280

    rule: dict[str, Any] = {"epsilon": epsilon, "refit": refit}
    rule |= {"min_resource": 35, "max_resource": 280}
    study = abc_study(6, base=RandomSampler(seed=seed), n_validation=None, **rule)
    also = {"training_score": lambda x, n: min(score(x, n) + 5 / n, 1.0)}
    study.optimize(by_formula(score, **also, n_validation=lambda x, n: 280))
    best, curves = final(study), learning_curves(study)
    (winner,) = [curve for curve in curves if curve.state == "best"]
    assert (best.learner, best.reason) == (winner.learner, winner.reason)
    assert best.reason.startswith("best: ")
    assert [curve.reason.startswith("best: ") for curve in curves].count(True) == 1
    if winner.size == 280:
        assert all(c.size < 280 or c.score <= winner.score for c in curves)
    for trial in study.trials:
        if trial.params == winner.params:
            assert "dropped" not in trial.user_attrs["daub:reason"]
