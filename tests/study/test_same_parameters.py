"""The same parameters twice are one learner: the second time costs nothing and says so."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler
from optuna.samplers import NSGAIISampler
from optuna.samplers import PartialFixedSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import TrialState
from optuna.trial import create_trial

from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import claims
from optuna_daub.study import records
from optuna_daub.study.learner import differing
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.study.table_study import MADE
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import Objective
from tests.study.table_study import TableObjective
from tests.study.table_study import alike
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import assert_sound
from tests.study.table_study import bits
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import one_number
from tests.study.table_study import open_study
from tests.study.table_study import pair
from tests.study.table_study import points
from tests.study.table_study import probes
from tests.study.table_study import random_study
from tests.study.table_study import repeats
from tests.study.table_study import run_of
from tests.study.table_study import runs
from tests.study.table_study import scored
from tests.study.table_study import table_study
from tests.study.table_study import trained


def six_points(trial: optuna.Trial) -> float:
    x, y = trial.suggest_int("x", 0, 2), trial.suggest_categorical("y", ["a", "b"])
    return trained(trial, 0.5 + x / 10 + (0.05 if y == "b" else 0.0))


def conditional(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["tree", "linear"]) == "tree":
        return trained(trial, 0.5 + trial.suggest_int("depth", 1, 3) / 10)
    return trained(trial, 0.5 if trial.suggest_categorical("scaled", [True, False, None]) else 0.4)


def floats(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.1, 0.4, step=0.1)  # 0.1 + 2 * 0.1 is not 0.3
    y = trial.suggest_float("y", 1e-3, 1e-3)
    return trained(trial, 0.4 + x + y)


def plain(trial: optuna.Trial) -> float:
    """Nothing of ours in it: found out after the first score."""
    x = trial.suggest_int("x", 0, 5)
    score = 0.0
    done = trial.study._storage.get_trial(trial._trial_id).intermediate_values
    for size in SIZES:
        score = 0.5 + x / 20 - 1 / size
        if size not in done:
            trial.report(score, size)
            if trial.should_prune():
                raise optuna.TrialPruned
    return score


SAMPLERS: dict[str, Callable[[], BaseSampler | None]] = {
    "default": lambda: None,
    "random": lambda: RandomSampler(seed=0),
    "tpe": lambda: TPESampler(seed=0, n_startup_trials=3),
    "nsga-ii": lambda: NSGAIISampler(seed=0, population_size=4),
}


def new_study(name: str, **options: Any) -> optuna.Study:
    seed = 0 if name == "default" else None
    return open_study(SAMPLERS[name](), seed=seed, **options)


def assert_each_is_one(study: optuna.Study) -> None:
    """Assert that no two learners have the same parameters, and that repeats cost nothing."""
    assert len({*points(study)}) == len(points(study))
    assert_nothing_twice(study)
    for number, learner in repeats(study).items():
        trial = study.trials[number]
        assert trial.state == TrialState.PRUNED
        assert trial.params == study.trials[learner].params
        assert trial.user_attrs["daub:reason"] == gives_way_to(learner)


@pytest.mark.parametrize("n_learners", [None, 50])
@pytest.mark.parametrize(
    ("name", "objective", "n_points"),
    [
        *((name, six_points, 6) for name in SAMPLERS),
        *((name, conditional, 6) for name in SAMPLERS),
        *((name, floats, 4) for name in SAMPLERS),
        ("default", bits, 2),
        ("default", alike, 8),
    ],
)
def test_a_space_of_a_few_points_ends_by_itself_with_all_of_them(
    name: str, objective: Objective, n_points: int, n_learners: int | None
) -> None:
    study = new_study(name, n_learners=n_learners)
    study.optimize(objective, n_trials=1000)
    assert_each_is_one(study)
    assert_sound(study)
    assert len(learning_curves(study)) == n_points
    assert final(study).size == SIZES[-1]
    assert not [trial for trial in repeats(study) if study.trials[trial].intermediate_values]
    assert len(idle(study)) <= 6


def test_a_study_that_has_tried_all_points_says_so_when_it_is_asked_for_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = random_study(n_learners=None)
    study.optimize(six_points, n_trials=1000)
    assert "come to its end" not in caplog.text
    n_trials = len(study.trials)
    study.optimize(lambda trial: trained(trial, trial.suggest_int("x", 0, 99) / 100), n_trials=5)
    assert len(study.trials) == n_trials + 1
    assert "other ranges in a new study with `DataAllocationSampler(earlier=" in caplog.text


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("n_learners", [None, 6])
def test_a_space_explored_with_fixed_values_is_searched_on_once_they_are_free(
    n_learners: int | None,
) -> None:
    study = open_study(PartialFixedSampler({"x": 0}, RandomSampler(seed=0)), n_learners=n_learners)
    study.optimize(six_points, n_trials=1000)
    fixed = {curve.params["x"] for curve in learning_curves(study)}
    study.sampler = random_study(n_learners=n_learners).sampler
    study.optimize(six_points, n_trials=1000)
    assert fixed == {0}
    assert len(learning_curves(study)) == 6


def shuffled(trial: optuna.Trial) -> float:
    """The same parameters in another order each time."""
    ranges = {"x": (0, 2), "y": (0, 1)}
    order = sorted(ranges, reverse=trial.number % 2 == 1)
    params = {name: trial.suggest_int(name, *ranges[name]) for name in order}
    return trained(trial, 0.5 + params["x"] / 10 + params["y"] / 20)


def growing(trial: optuna.Trial) -> float:
    return trained(trial, 0.5 + trial.suggest_int("x", 0, 2 + trial.number // 15) / 100)


def with_a_large_range(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["one", "many"])
    x = 0 if kind == "one" else trial.suggest_int("x", 0, 10**9)
    return trained(trial, 0.5 + x / 10**10)


@pytest.mark.parametrize("objective", [shuffled, growing, with_a_large_range])
@pytest.mark.parametrize("name", SAMPLERS)
def test_spaces_that_cannot_be_listed_do_no_harm(objective: Objective, name: str) -> None:
    study = new_study(name)
    study.optimize(objective, n_trials=35)
    assert_each_is_one(study)
    assert best_learner(study) is not None


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_workers_that_propose_the_same_at_once_train_it_once(n_jobs: int) -> None:
    study = random_study()
    study.optimize(six_points, n_trials=1000, n_jobs=n_jobs)
    assert_each_is_one(study)
    assert final(study).params == {"x": 2, "y": "b"}


def two_newcomers(n_processes: int) -> tuple[optuna.Study, list[optuna.Trial]]:
    """Return a study, and two trials that were asked for by one process or by two."""
    here = table_study(base=RandomSampler(seed=0))
    there = table_study(storage=here._storage, base=RandomSampler(seed=0))
    return here, [here.ask(), (there if n_processes > 1 else here).ask()]


def same_at_once(
    n_processes: int, *, is_higher_first: bool
) -> tuple[optuna.Study, list[optuna.Trial]]:
    """Return a study in which two newcomers have the same parameters, and their trials."""
    here, (lower, higher) = two_newcomers(n_processes)
    if is_higher_first:
        higher.suggest_int("row", 3, 3)
        assert next(training_sizes(higher)) == SIZES[0]
    lower.suggest_int("row", 3, 3)
    if not is_higher_first:
        higher.suggest_int("row", 3, 3)
    return here, [lower, higher]


def first_size(trial: optuna.Trial) -> int | str:
    """Return the size that a trial is to train on first, or why it is to train on none."""
    try:
        return next(training_sizes(trial))
    except optuna.TrialPruned as told:
        return str(told)


def gives_way_to(learner: int) -> str:
    return f"has the parameters of learner {learner}: the same parameters are one learner"


@pytest.mark.parametrize(
    ("n_processes", "is_higher_first", "patience"),
    [
        # Though its own number is lower: the other could not see its parameters when it looked.
        pytest.param(1, True, None, id="one that trains already goes on"),
        pytest.param(2, True, None, id="one that trains already in another process goes on"),
        # Ask and tell: nobody else could move the other one meanwhile.
        pytest.param(1, False, None, id="in one process the lower number goes on at once"),
        # So the parameters of the dead are not lost; one that comes back gives way.
        pytest.param(2, False, 0.05, id="it waits for the dead no longer than its patience"),
    ],
)
def test_of_two_newcomers_that_are_alike_one_gives_way(
    n_processes: int,
    is_higher_first: bool,
    patience: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study, (lower, higher) = same_at_once(n_processes, is_higher_first=is_higher_first)
    if patience:
        worker_of(study).patience = Patience(rival=patience)
    else:
        monkeypatch.setattr(claims.time, "sleep", lambda s: pytest.fail(f"slept for {s} s"))
    if is_higher_first:
        assert first_size(lower) == gives_way_to(1)
        report(higher, SIZES[0], 0.5, training_score=0.6)
        assert first_size(higher) == SIZES[1]
    else:
        assert first_size(lower) == SIZES[0]
        assert first_size(higher) == gives_way_to(0)
    assert repeats(study) == ({0: 1} if is_higher_first else {1: 0})


def test_across_processes_the_lower_number_waits_for_the_higher_to_step_back() -> None:
    study, (lower, higher) = same_at_once(2, is_higher_first=False)
    worker_of(study).patience = Patience(rival=60.0)  # on however busy a machine
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(first_size, lower)
        time.sleep(0.05)
        assert not waiting.done()
        assert first_size(higher) == gives_way_to(0)
        assert waiting.result() == SIZES[0]
    assert repeats(study) == {1: 0}


@pytest.mark.parametrize("n_processes", [1, 2])
def test_of_two_that_train_both_one_ends_with_its_first_score(n_processes: int) -> None:
    """Their parameters are suggested after the first size was asked for."""
    here, trials = two_newcomers(n_processes)
    sizes = [training_sizes(trial) for trial in trials]
    for trial, each in zip(trials, sizes, strict=True):
        assert next(each) == SIZES[0]
        trial.suggest_int("row", 3, 3)
        report(trial, SIZES[0], 0.5, training_score=0.6)
    assert next(sizes[0]) == SIZES[1]
    with pytest.raises(optuna.TrialPruned, match=gives_way_to(0)):
        next(sizes[1])
    here.tell(trials[1], state=TrialState.PRUNED)
    assert repeats(here) == {1: 0}


def test_a_newcomer_gives_way_to_one_whose_first_run_has_failed() -> None:
    study, (lower, higher) = same_at_once(1, is_higher_first=True)
    study.tell(higher, state=TrialState.FAIL)
    assert first_size(lower) == gives_way_to(1)
    assert repeats(study) == {0: 1}


def test_points_that_fail_before_they_ask_for_sizes_are_one_learner_each() -> None:
    def failing(trial: optuna.Trial) -> float:
        x = trial.suggest_int("x", 0, 3)
        if x < 3:
            raise ArithmeticError(f"no model for {x}")
        return trained(trial, 0.5)

    study = random_study(n_learners=4)
    study.enqueue_trial({"x": 3})
    study.optimize(failing, catch=ArithmeticError, n_trials=60)
    states = [(curve.params["x"], curve.state) for curve in learning_curves(study)]
    assert sorted(states) == [(0, "dropped"), (1, "dropped"), (2, "dropped"), (3, "best")]
    for number, learner in repeats(study).items():
        assert study.trials[number].user_attrs["daub:reason"] == gives_way_to(learner)


def test_a_program_that_fails_at_first_can_be_mended_and_goes_on() -> None:
    def broken(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["tree", "linear"])
        raise ImportError("no package")

    study = random_study()
    with pytest.raises(ValueError, match="The first 5 learners have all failed by one error"):
        study.optimize(broken, catch=ImportError, n_trials=60)
    study.optimize(conditional, n_trials=30)
    assert best_learner(study) is not None


def test_a_plain_objective_pays_one_probe_at_most() -> None:
    study = random_study()
    study.optimize(plain, n_trials=300)
    assert_each_is_one(study)
    assert len(learning_curves(study)) == 6
    assert repeats(study)
    for number in repeats(study):
        assert [*study.trials[number].intermediate_values] == [SIZES[0]]
    assert study.best_params == {"x": 5}


@pytest.mark.parametrize(
    "again",
    [
        *({"x": x, "y": "b"} for x in (2, 2.0, np.int64(2))),
        {"y": "b", "x": 2},
        {"x": 2, "y": "b", "never asked for": 1},
    ],
)
def test_enqueued_twice_is_one_learner(again: dict[str, Any]) -> None:
    study = random_study(n_learners=6)
    study.enqueue_trial({"x": 2, "y": "b"})
    study.enqueue_trial(again)
    study.optimize(six_points)
    assert_each_is_one(study)
    assert repeats(study)[1] == 0
    assert study.best_params == {"x": 2, "y": "b"}


def test_enqueued_after_the_end_it_is_known() -> None:
    study = random_study(n_learners=4)
    study.optimize(six_points)
    before = best_learner(study)
    study.enqueue_trial(study.best_params)
    study.optimize(six_points)
    assert best_learner(study) == before
    assert [*repeats(study)][-1] == study.trials[-1].number


def test_what_was_left_out_when_it_was_enqueued_is_told_apart() -> None:
    study = random_study(seed=3, n_learners=4)
    for _ in range(2):
        study.enqueue_trial({"x": 2})
    study.optimize(six_points)
    assert_each_is_one(study)


def test_decisions_are_those_of_a_study_without_repeats() -> None:
    study = table_study()
    for row in (0, 0, 1, 2, 1, 3, 0, 4):
        study.enqueue_trial({"row": row})
    study.optimize(TableObjective())
    assert probes(study) == MADE
    assert study.best_params == {"row": WINNER}


def test_params_that_are_no_parameters_make_no_two_learners_alike() -> None:
    """An objective that asks for nothing trains something else each time, for all we know."""
    study = random_study(n_learners=5)
    study.optimize(lambda trial: trained(trial, 0.5 + trial.number / 100))
    assert len(learning_curves(study)) == 5
    assert not repeats(study)


def test_a_list_that_is_enqueued_again_does_not_end_the_study() -> None:
    """A script that enqueues its favourites is started again on its stored study."""

    def hill(trial: optuna.Trial) -> float:
        return trained(trial, 0.9 - abs(trial.suggest_float("x", 0, 1) - 0.3))

    study = table_study(12, base=RandomSampler(seed=0))
    for n_learners in (12, 20, 20):
        study = table_study(n_learners, base=RandomSampler(seed=0), storage=study._storage)
        for i in range(12):
            study.enqueue_trial({"x": i / 12})
        study.optimize(hill)
        assert len(learning_curves(study)) == n_learners


def test_a_range_that_depends_on_another_parameter_is_explored_whole() -> None:
    def objective(trial: optuna.Trial) -> float:
        most = 5 if trial.suggest_categorical("a", ["y", "x"]) == "y" else 2
        return trained(trial, 0.5 + trial.suggest_int("k", 1, most) / 20)

    study = table_study(7, base=RandomSampler(seed=0))
    for a, k in [("y", 1), ("y", 2), ("x", 1), ("x", 2), ("x", 2)]:
        study.enqueue_trial({"a": a, "k": k})
    study.optimize(objective)
    assert len({*points(study)}) == 7


class Kind(str, Enum):
    """Two choices that a storage keeps as text."""

    A = "a"
    B = "b"


def test_a_resumed_learner_has_the_objectives_own_choices(tmp_path: Path) -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", [*Kind])
        step = trial.suggest_categorical("step", [*np.logspace(0, 2, 3)])
        assert isinstance(kind, Kind)
        skill = 0.5 + (kind is Kind.B) / 10 + step / 1000
        return scored(trial, lambda n: skill - step / 20 / n, training_score=lambda n: skill)

    storage = f"sqlite:///{tmp_path}/study.db"
    study = table_study(6, storage=storage, base=RandomSampler(seed=0))
    study.optimize(objective)
    assert len(runs(study)) > 6, "no learner was resumed"
    assert len({*points(study)}) == 6
    assert study.best_params == {"kind": "b", "step": 100.0}


@pytest.mark.parametrize(("before", "after"), [(None, 0.01), (0.1, None)])
def test_a_step_that_is_added_or_removed_keeps_the_learners(
    before: float | None, after: float | None
) -> None:
    step = before

    def stepped(trial: optuna.Trial) -> float:
        return trained(trial, trial.suggest_float("x", 0.1, 0.9, step=step))

    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=4)
    study.optimize(stepped, n_trials=4)
    step = after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values outside of the new grid
        study.optimize(stepped)
    assert best_learner(study) is not None
    assert_each_is_one(study)


@given(
    place=st.floats(0.0, 1.0),
    ranges=st.lists(st.sampled_from([1e-6, 1.0, 500.0, 1e6]), min_size=2, max_size=2),
    step=st.sampled_from([None, 0.1, 0.3]),
)
def test_a_value_is_the_same_whatever_its_range(
    place: float, ranges: list[float], step: float | None
) -> None:
    one, other = (FloatDistribution(-high, high) for high in ranges)
    value = -ranges[0] + round(place * 100) * step if step else (2 * place - 1) * ranges[0]
    assert records.word(value, one) == records.word(value, other)
    grid = FloatDistribution(-ranges[0], -ranges[0] + 200 * (step or 0.1), step=step or 0.1)
    texts = [{"x": records.word(x, space)} for x, space in ((value, one), (value, grid))]
    assert differing(*texts) is None
    near = {"x": records.word(value * (1 + 1e-9), one)}
    assert value == 0.0 or differing(texts[0], near) == "x"


@pytest.mark.parametrize("step", [None, 0.5])
def test_a_whole_number_in_a_range_of_floats_is_one_value(step: float | None) -> None:
    space = FloatDistribution(0.0, 2.0, step=step)
    assert records.word(1, space) == records.word(1.0, space)


def test_a_waiting_trial_that_was_added_with_parameters_is_a_learner_of_its_own() -> None:
    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=4)
    study.optimize(one_number, n_trials=4)
    space = {"x": FloatDistribution(0.0, 1.0)}
    study.add_trial(create_trial(state=TrialState.WAITING, params={"x": 0.5}, distributions=space))
    study.optimize(one_number)
    assert run_of(study, study.trials[4]).learner == 4
    assert study.trials[4].params == {"x": 0.5}
