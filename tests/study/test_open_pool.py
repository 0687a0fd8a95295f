"""An open pool: `optimize` ends when its user says so, and there is a model by then."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from unittest.mock import patch

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.samplers import GridSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import training_sizes
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import ValuePerSecond
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.study import AllocationPruner
from optuna_daub.study import host
from optuna_daub.study.base_sampler_view import BaseSamplerStudy
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.core.stepping import search
from tests.study.table_study import SIZES
from tests.study.table_study import Formula
from tests.study.table_study import InOrder
from tests.study.table_study import Objective
from tests.study.table_study import answer
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import assert_sound
from tests.study.table_study import by_formula
from tests.study.table_study import conditional
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import is_over
from tests.study.table_study import pair
from tests.study.table_study import random_study
from tests.study.table_study import runs
from tests.study.table_study import scored
from tests.study.table_study import sqlite
from tests.study.table_study import stop_at
from tests.study.table_study import told


def rising(
    skill: Callable[[float], float] = lambda x: 0.5 + x / 3,
    seconds: Formula = lambda x, n: n / 100,
) -> Objective:
    """Return an objective whose scores rise towards a skill that follows from x."""
    return by_formula(
        lambda x, n: skill(x) - 1 / n,
        training_score=lambda x, n: skill(x) + 1 / n,
        seconds=seconds,
    )


objective = rising()


def slow(seconds: float) -> Objective:
    def sleeping(trial: optuna.Trial) -> float:
        time.sleep(seconds)
        return objective(trial)

    return sleeping


def assert_usable(study: optuna.Study) -> None:
    """Assert what users of any study rely on, whenever it is looked at."""
    assert answer(study).reason
    assert not is_over(study)
    assert_sound(study)
    assert not idle(study)


def test_n_trials_is_the_number_of_trials_and_callbacks_see_each_once() -> None:
    """The best value is of a training on all the data, and never gets worse."""
    study, seen, values = random_study(), list[int](), list[float]()

    def look(study: optuna.Study, trial: FrozenTrial) -> None:
        seen.append(trial.number)
        if TrialState.COMPLETE in {t.state for t in study.trials}:
            assert study.best_trial.last_step == SIZES[-1]
            values.append(study.best_value)

    study.optimize(objective, n_trials=30, callbacks=[look])
    assert seen == [*range(30)] == [trial.number for trial in study.trials]
    assert values == sorted(values)
    assert len(values) > 15
    assert_usable(study)
    assert len(learning_curves(study)) > 5


def test_a_second_optimize_goes_on() -> None:
    whole = random_study()
    whole.optimize(objective, callbacks=[stop_at(30)])
    study = random_study()
    for _ in range(3):
        study.optimize(objective, callbacks=[stop_at(7, 8, 30)])
    assert len(study.trials) == 30
    assert [t.params for t in study.trials] == [t.params for t in whole.trials]
    assert learning_curves(study) == learning_curves(whole)


WIDE = tuple(500 * 2**k for k in range(7))


def wide_study() -> optuna.Study:
    return random_study(DAUBPruner(sizes=WIDE))


alike = rising(seconds=lambda x, n: 1.0)
"""Training takes as long on all the data as on a few."""


class TestRunsLeft:
    """`n_trials` is a budget: its last runs are not for small samples."""

    @pytest.mark.parametrize(
        ("train", "n_trials", "n_jobs"),
        [
            *((train, n, 1) for train in (objective, alike) for n in (2, 3, 10, 30)),
            *((alike, 10, n_jobs) for n_jobs in (2, 3)),
        ],
    )
    def test_it_ends_with_a_full_model(self, train: Objective, n_trials: int, n_jobs: int) -> None:
        study = wide_study()
        study.optimize(train, n_trials=n_trials, n_jobs=n_jobs)
        assert len(study.trials) == n_trials
        assert study.best_trial.last_step == WIDE[-1]
        if n_jobs == 1:
            assert study.trials[-1].state == TrialState.COMPLETE

    def test_the_last_runs_are_on_all_the_data(self) -> None:
        """As they would not be, were there more to come."""
        n_full = []
        for n_trials in (20, 200):
            study = wide_study()
            study.optimize(objective, n_trials=n_trials, callbacks=[stop_at(20)])
            n_full.append(sum(trial.state == TrialState.COMPLETE for trial in study.trials))
        assert n_full[0] > n_full[1]

    def test_enqueued_trials_alone_end_with_a_full_model(self) -> None:
        study = wide_study()
        for x in (0.2, 0.4, 0.8, 0.6):
            study.enqueue_trial({"x": x})
        study.optimize(alike, n_trials=4)
        assert study.best_trial.last_step == WIDE[-1]

    def test_optimize_in_a_loop_is_no_budget(self) -> None:
        """Were every run the last, each would be trained on all the data."""
        # Scores between those of `objective`, of which x says nothing.
        scattered = rising(lambda x: 0.5 + (1 + math.sin(1e4 * x)) / 6)
        study = wide_study()
        for _ in range(25):
            study.optimize(scattered, n_trials=1)
        first = {c.learner: c.observations[0].size for c in learning_curves(study)}
        assert len(first) > 5
        assert max([*first.values()][2:]) < WIDE[-1], "of two runs, one is no smaller part"

    def test_what_is_left_is_counted(self) -> None:
        left: list[int | None] = []

        def counting(trial: optuna.Trial) -> float:
            left.append(worker_of(trial.study).pool(policy, trial.number).runs_left)
            return objective(trial)

        study = random_study()
        assert isinstance(study.pruner, AllocationPruner)
        policy = study.pruner.policy
        study.optimize(counting, n_trials=4)
        assert left == [3, 2, 1, 0]
        study.optimize(counting, callbacks=[stop_at(5)])
        trial = study.ask()
        assert worker_of(study).pool(policy, trial.number).runs_left is None
        study.tell(trial, state=TrialState.FAIL)
        study.optimize(counting, n_trials=3)
        assert left[4:] == [None] * 4, "a smaller part of the study's trials"

    def test_the_time_left_is_looked_at_anew_once_a_hundredth_of_it_has_passed(self) -> None:
        study = random_study(seconds=1000.0)
        study.optimize(objective, n_trials=6)
        assert isinstance(study.pruner, AllocationPruner)
        policy, state = study.pruner.policy, worker_of(study)
        shown = state.pool(policy)
        assert shown.left is not None
        assert state.horizon is not None
        assert 950.0 < shown.left.seconds <= 1000.0
        state.horizon -= 5.0
        assert state.pool(policy) is shown, "nothing has happened"
        for moved, most in ((-15.0, 985.0), (40.0, 1025.0)):
            state.horizon += moved
            left = state.pool(policy).left
            assert left is not None
            assert most - 50.0 < left.seconds <= most
        shown = state.pool(policy)
        study.tell(study.ask(), state=TrialState.FAIL)
        assert state.pool(policy) is not shown


def test_a_study_that_is_loaded_goes_on(tmp_path: Path) -> None:
    for seed in (0, 1):
        study = random_study(seed=seed, storage=sqlite(tmp_path), name="open")
        study.optimize(objective, n_trials=12)
    assert len(study.trials) == 24
    assert_usable(study)


def test_a_timeout_ends_it_between_trials() -> None:
    study = random_study()
    begun = time.monotonic()
    study.optimize(slow(0.02), timeout=2.0)
    assert 2.0 <= time.monotonic() - begun < 8.0
    assert_usable(study)


@pytest.mark.slow
def test_with_seconds_it_ends_in_time_too() -> None:
    study = random_study(seconds=2.0)
    begun = time.monotonic()
    study.optimize(slow(0.02))
    assert 0.5 <= time.monotonic() - begun < 8.0
    assert study.best_trial.last_step == SIZES[-1]
    n_trials = len(study.trials)
    study.optimize(slow(0.02))  # so many seconds for each `optimize`
    assert len(study.trials) > n_trials + 1


def test_stop_within_the_objective_ends_it_too() -> None:
    study = random_study()

    def stopping(trial: optuna.Trial) -> float:
        if trial.number == 11:
            trial.study.stop()
        return objective(trial)

    study.optimize(stopping)
    assert len(study.trials) == 12


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_end_with_n_trials_and_with_stop(n_jobs: int) -> None:
    study = random_study()
    study.optimize(objective, n_trials=40, n_jobs=n_jobs)
    assert len(study.trials) == 40
    assert_usable(study)

    study.optimize(objective, n_jobs=n_jobs, callbacks=[stop_at(*range(61, 99))])
    assert len(study.trials) <= 61 + n_jobs
    assert all(trial.state.is_finished() for trial in study.trials)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 12])
def test_ctrl_c_loses_no_more_than_the_probe_in_flight(at: int) -> None:
    study = random_study()

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
    study.optimize(objective, n_trials=20)
    assert not [c for c in learning_curves(study) if c.state == "dropped"]
    assert_nothing_twice(study)
    assert study.best_trial.last_step == SIZES[-1]


@pytest.mark.parametrize("limit", [{"n_trials": 12}, {"timeout": 2.0}])
def test_the_progress_bar_comes_to_its_end(
    limit: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    study = random_study()
    study.optimize(slow(0.05), show_progress_bar=True, **limit)
    drawn = capsys.readouterr().err
    assert "100%" in drawn
    if "n_trials" in limit:
        assert "12/12" in drawn
    # A score on all the data, as `best_value`: Optuna's bar shows no other.
    shown = re.findall(r"Best trial: (\d+)\. Best value: ([\d.]+)", drawn)
    assert shown
    assert int(shown[-1][0]) == study.best_trial.number


def test_ask_and_tell_goes_on_as_long_as_it_is_asked() -> None:
    """Several trials asked for at once are several newcomers."""
    study = random_study()
    asked = [study.ask() for _ in range(3)]
    assert [run.learner for _, run in runs(study)] == [*range(3)]
    for trial in asked:
        told(study, trial, objective)
    for _ in range(27):
        told(study, study.ask(), objective)
    assert len(study.trials) == 30
    assert_usable(study)


def test_a_pool_can_be_opened_and_closed() -> None:
    """The newest sampler decides how many learners there are."""
    study = random_study(n_learners=4)
    study.optimize(objective)
    assert len(learning_curves(study)) == 4
    study.sampler = DataAllocationSampler(RandomSampler(seed=1))
    study.optimize(objective, n_trials=12)
    n_open = len(learning_curves(study))
    assert n_open > 4
    study.sampler = DataAllocationSampler(RandomSampler(seed=2), n_learners=n_open)
    study.optimize(objective, n_trials=99)
    assert len(learning_curves(study)) == n_open
    final(study)


@pytest.mark.parametrize(
    "pruner",
    [
        DAUBPruner.paper(sizes=SIZES),
        ABCPruner(max_resource=8000),
        AllocationPruner(SuccessiveHalving(SIZES)),
    ],
)
def test_a_rule_of_a_closed_pool_asks_for_n_learners_before_anything_is_trained(
    pruner: AllocationPruner,
) -> None:
    study = random_study(pruner)
    never = Mock()
    rule = f"{type(pruner).__name__} with {type(pruner.policy).__name__} compares a known number"
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{rule}.*n_learners.*is None: pass .n_learners="):
            study.optimize(never, n_trials=5)
        with pytest.raises(ValueError, match=rule):
            study.ask()
    never.assert_not_called()
    assert not [t for t in study.trials if not t.state.is_finished()]
    study.sampler = DataAllocationSampler(TPESampler(seed=0), n_learners=2)
    if not isinstance(pruner, ABCPruner):  # whose scores need more facts
        study.optimize(objective)
        assert study.best_trial.last_step == SIZES[-1]


def forest(
    trial: optuna.Trial,
    before: Callable[[float, int], None] = lambda trees, n: None,
    level: Callable[[float], float] = math.log,
) -> float:
    """Train a forest: seconds grow with the trees, to a tenth of them on all the data."""
    trees = trial.suggest_float("trees", 1, 10_000, log=True)

    def score(n: int) -> float:
        before(trees, n)
        return 0.8 + 0.01 * level(trees) - math.pow(n, -0.5)

    return scored(trial, score, seconds=lambda n: trees * n / 1e6)


@pytest.mark.parametrize("level", [math.sin, lambda trees: -math.log(trees), math.log])
def test_the_first_full_model_comes_early_and_costs_no_more_than_is_affordable(
    level: Callable[[float], float],
) -> None:
    """A full training takes 109 seconds on the average."""
    mean_full = (10_000 - 1) / math.log(10_000) / 10
    trained: list[tuple[int, float, int]] = []

    def training(trial: optuna.Trial) -> float:
        def before(trees: float, n: int) -> None:
            trained.append((trial.number, trees, n))

        return forest(trial, before, level)

    study = pair(DAUBPruner(max_resource=100_000), RandomSampler(seed=0))
    study.optimize(training, callbacks=[stop_at(40)])
    first = [n for *_, n in trained].index(100_000)
    cost, spent = trained[first][1] / 10, sum(trees * n / 1e6 for _, trees, n in trained[:first])
    assert cost + spent <= 2 * mean_full
    assert cost <= 2 * 2 * spent, "predictions may be off by a factor of two"
    stored = {trial.number: run.size for trial, run in runs(study)}
    assert stored == {number: n for number, _, n in reversed(trained)}, "stored as it was done"


@contextmanager
def clock() -> Iterator[list[float]]:
    """Show the library a clock that only the test moves: the time, and when `optimize` started."""
    now = [0.0, 0.0]

    def since(study: optuna.Study) -> float:
        return now[0] - now[1]

    with (
        patch("time.monotonic", lambda: now[0]),
        patch("optuna_daub.study.host.seconds_since_begin", since),
    ):
        yield now


class Listed(InOrder):
    """Proposes these numbers of trees, one after the other."""

    def __init__(self, trees: Iterable[float]) -> None:
        self.trees = iter(trees)

    def sample_independent(self, *_: Any) -> float:
        return next(self.trees)


@pytest.fixture(scope="module")
def whole() -> tuple[optuna.Study, list[float]]:
    """A search of all 300 seconds."""
    return TestDeclinedNewcomers().search(RandomSampler(seed=5))


class TestDeclinedNewcomers:
    """A training on all the data takes trees / 10 seconds, and there are 300 in all."""

    pruner = DAUBPruner(min_resource=1500, max_resource=100_000)

    def objective(self, now: list[float], begun: dict[float, bool]) -> Objective:
        """Return an objective that moves the clock, and notes the trees that it begins with.

        They are marked if there was a full model before.
        """

        def train(trial: optuna.Trial) -> float:
            def before(trees: float, n: int) -> None:
                trials = trial.study.get_trials(deepcopy=False)
                begun.setdefault(trees, any(t.state.is_finished() and t.values for t in trials))
                now[0] += trees * n / 1e6

            return forest(trial, before)

        return train

    def search(
        self, base: BaseSampler, n_trials: int | None = None, **options: Any
    ) -> tuple[optuna.Study, list[float]]:
        """Return a study, and what was trained after the first full model, by its trees."""
        begun: dict[float, bool] = {}
        with clock() as now:
            study = pair(self.pruner, base, seconds=300.0, **options)
            study.optimize(self.objective(now, begun), n_trials=n_trials)
        return study, [trees for trees, is_after in begun.items() if is_after]

    def declined(self, study: optuna.Study) -> list[FrozenTrial]:
        """Return the trials whose newcomer was declined."""
        reasons = [(t, t.user_attrs.get("daub:reason", "")) for t in study.get_trials()]
        return [trial for trial, reason in reasons if reason.startswith("declined: ")]

    def test_what_cannot_be_in_time_is_not_begun(
        self, whole: tuple[optuna.Study, list[float]]
    ) -> None:
        study, begun = whole
        declined = self.declined(study)
        assert not any(trial.intermediate_values for trial in declined)
        assert {trial.state for trial in declined} <= {TrialState.PRUNED}
        n_declined = sum(trial.params["trees"] > 3000 for trial in declined)
        assert n_declined > 20
        # Some that would take longer than there is are started, while costs are hardly known.
        assert sum(trees > 3000 for trees in begun) < n_declined / 10

    def test_all_seconds_are_used(self, whole: tuple[optuna.Study, list[float]]) -> None:
        """Among hundreds of learners the least promising new one is not declined as too late."""
        assert 295.0 < answer(whole[0]).seconds < 330.0

    def test_they_are_no_learners_and_the_base_sampler_sees_that_they_were_tried(
        self, whole: tuple[optuna.Study, list[float]]
    ) -> None:
        study, _ = whole
        numbers = {trial.number for trial in self.declined(study)}
        assert not numbers & {*worker_of(study).known.learners}
        assert isinstance(study.pruner, AllocationPruner)
        rows = BaseSamplerStudy(study, worker_of(study), study.pruner.policy).get_trials()
        states = {row.number: row.state for row in rows}
        assert {states[number] for number in numbers} == {TrialState.RUNNING}

    def test_what_is_enqueued_is_declined_too_and_the_reason_can_be_read(
        self, whole: tuple[optuna.Study, list[float]]
    ) -> None:
        study, _ = whole
        study.enqueue_trial({"trees": 9999.0})
        train = Mock()
        with clock():
            study.optimize(lambda trial: forest(trial, train), n_trials=1)
        train.assert_not_called()
        trial = study.get_trials()[-1]
        assert (trial.params, trial.state) == ({"trees": 9999.0}, TrialState.PRUNED)
        reason = "declined: with all the data it may end too late"
        assert trial.user_attrs["daub:reason"] == reason

    def test_with_a_sampler_that_proposes_nothing_else_it_ends_each_time(self) -> None:
        """Those declined by an earlier `optimize` do not end a later one."""
        trees = [*(2**k for k in range(11)), *range(9000, 9900)]
        study, _ = self.search(Listed(map(float, trees)), patience=Patience(declined=12))
        last = [trial.number for trial in study.get_trials()]
        declined = [trial.number for trial in self.declined(study)]
        assert declined[-12:] == last[-12:]
        assert last[-13] not in declined
        with clock():
            study.optimize(forest)
        later = [trial.number for trial in study.get_trials()]
        assert [trial.number for trial in self.declined(study)][-12:] == later[-12:]
        assert later[-12] > last[-1]

    def test_it_goes_on_while_some_newcomer_would_be_in_time(self) -> None:
        """Half of all full trainings take less than 10 of the 300 seconds, the first ones more."""
        study, _ = self.search(RandomSampler(seed=8))
        assert answer(study).seconds > 285.0

    def test_points_of_a_grid_are_a_list_and_none_is_declined(self) -> None:
        points = {"trees": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8000.0, 8500.0, 9000.0]}
        study, _ = self.search(GridSampler(points, seed=0))
        assert not self.declined(study)
        known = {learner.params["trees"] for learner in worker_of(study).known.learners.values()}
        assert known <= {*points["trees"]}  # as many as fit into the time

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [3, 6])
    def test_the_last_of_n_trials_is_not_declined(self, seed: int) -> None:
        """With seed 6 it would be if others came after it."""
        study, _ = self.search(RandomSampler(seed=seed), n_trials=20)
        assert study.get_trials()[-1] not in self.declined(study)

    @pytest.mark.slow
    def test_however_often_it_goes_on_it_ends_in_time(self) -> None:
        """An expensive learner among the cheap ones left must not pass for a slow call."""
        with clock() as now:
            study = pair(self.pruner, RandomSampler(seed=1), seconds=30.0)
            took = []
            for _ in range(3):
                now[1] = now[0]
                study.optimize(self.objective(now, {}))
                took.append(now[0] - now[1])
        assert max(took[1:]) < 60.0, "only the first full model may be late"


def test_an_open_study_decides_as_the_rule_does_on_the_same_curves() -> None:
    """Step by step, with each newcomer's parameters, and the seconds that were reported."""

    def outcome(trees: float, n: int) -> Observation:
        return Observation(n, 0.8 + 0.01 * math.log(trees) - n**-0.5, seconds=trees * n / 1e6)

    done: list[tuple[float, int]] = []

    def training(trial: optuna.Trial) -> float:
        def before(trees: float, n: int) -> None:
            done.append((trees, n))
            if len(done) == 60:
                trial.study.stop()

        return forest(trial, before)

    pruner = DAUBPruner(max_resource=100_000)
    study = pair(pruner, RandomSampler(seed=3))
    study.optimize(training)
    newcomers = iter(dict.fromkeys(trees for trees, _ in done))
    expected: list[tuple[float, int]] = []

    def trained(pool: Pool, learner: int, n: int) -> Pool:
        expected.append((trees := pool.curves[learner].parameters["trees"], n))
        return pool.observed(learner, outcome(trees, n))

    space = Space((("trees", Range(1, 10_000, is_log=True)),))
    pool = Pool(to_come=None, space=space, proposer=LikeRecent())
    assert isinstance(pruner.policy, ValuePerSecond)
    steps = search(pruner.policy, pool, lambda _: {"trees": next(newcomers)}, trained)
    assert any(len(expected) == 60 for _ in steps)
    assert done[:60] == expected
    assert len({n for _, n in expected}) >= 3


def test_sizes_asked_for_twice_are_the_same_whatever_others_did_meanwhile() -> None:
    """A size that was handed out can be reported, however costly other learners turn out to be."""
    pruner = DAUBPruner(max_resource=16_000)
    study = pair(pruner, RandomSampler(seed=6))
    run = by_formula(
        lambda x, n: 0.9 - abs(x - 0.3) - 30 / n, seconds=lambda x, n: 10 ** (2 * x - 4) * n
    )
    for _ in range(25):
        told(study, study.ask(), run)
    for _ in range(12):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        first = next(iter(training_sizes(trial)))
        told(study, study.ask(), run)
        assert next(iter(training_sizes(trial))) == first
        told(study, trial, run)


def told_by_optuna(trial: optuna.Trial, sizes: Iterable[int] = ()) -> float:
    """Report by `trial.report`, which measures no time; at given sizes knowing Optuna alone."""
    x = trial.suggest_float("x", 0, 1)
    for size in sizes or training_sizes(trial):
        time.sleep(0.01)
        trial.report(0.5 + x / 3 - 1 / size, size)
        if sizes and trial.should_prune():
            raise optuna.TrialPruned
    return 0.5 + x / 3 - 1 / SIZES[-1]


@pytest.mark.slow
@pytest.mark.parametrize("objective", [told_by_optuna, partial(told_by_optuna, sizes=SIZES)])
def test_where_no_time_is_reported_the_search_lasts_as_long_as_it_may(
    objective: Callable[[optuna.Trial], float],
) -> None:
    study = random_study(DAUBPruner(sizes=SIZES))
    begun = time.monotonic()
    study.optimize(objective, timeout=1.0)
    assert time.monotonic() - begun > 0.8
    assert study.best_trial.last_step == SIZES[-1]
    assert (answer(study).seconds > 0.0) == (objective is told_by_optuna)


def test_every_process_is_told_the_same_of_a_study_whose_time_is_over(tmp_path: Path) -> None:
    given: Any = {"storage": sqlite(tmp_path), "pruner": DAUBPruner(sizes=SIZES)}
    study = random_study(name="open", **given)
    study.optimize(told_by_optuna, timeout=0.5)
    other = optuna.load_study(study_name="open", **given)
    assert best_learner(study) == best_learner(other)
    assert learning_curves(study) == learning_curves(other)
    assert not answer(study).is_final


def test_seconds_count_from_the_first_question_on_after_an_optimize_too() -> None:
    study = random_study(seconds=0.5)
    study.optimize(slow(0.02))
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    assert next(training_sizes(trial)) in SIZES


def test_threads_that_end_a_study_warn_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for seed in range(3):
        random_study(seed=seed, n_learners=5).optimize(slow(0.005), n_jobs=3)
    assert "come to its end" not in caplog.text


@pytest.mark.parametrize("seed", range(2))
def test_a_grid_over_a_space_with_conditions_comes_to_all_its_points(seed: int) -> None:
    """Points that differ only in what is not asked for are one learner."""
    grid = {"kind": ["tree", "linear"], "depth": [1, 5, 9], "penalty": [0.1, 0.5, 1.0],
            "scaled": [True, False]}  # fmt: skip
    study = pair(DAUBPruner(sizes=SIZES, cost="examples"), GridSampler(grid, seed=seed))
    study.optimize(conditional, n_trials=200)
    assert len(learning_curves(study)) == 3 + 3 * 2


@pytest.mark.slow
def test_however_small_the_scores_the_study_is_the_same() -> None:
    """Except scores whose squares are 0: these are searched all the same."""
    made = []
    for factor in (1.0, 1e50, 2.0**-100, 1e-200):
        study = random_study()
        study.optimize(by_formula(lambda x, n, k=factor: k * (0.5 + x / 3 - 1 / n)), n_trials=30)
        assert study.best_trial.last_step == SIZES[-1]
        made.append([(run.learner, run.size) for _, run in runs(study)])
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("limit", [{"n_trials": 1}, {"n_trials": 1, "timeout": 0.05}])
def test_ask_and_tell_within_another_study_does_not_see_its_end(limit: dict[str, Any]) -> None:
    def asked() -> list[tuple[int, int]]:
        study = random_study()
        for _ in range(12):
            trial = study.ask()
            time.sleep(0.01)
            told(study, trial, objective)
        return [(run.learner or 0, run.size) for _, run in runs(study)]

    found: list[list[tuple[int, int]]] = []

    def outer(trial: optuna.Trial) -> float:
        found.append(asked())
        return 0.0

    optuna.create_study().optimize(outer, **limit)
    assert found == [asked()]


def test_the_time_of_another_studys_optimize_is_not_that_of_an_ask_within_it() -> None:
    inner, seen = random_study(), []

    def outer(trial: optuna.Trial) -> float:
        for study in inner, trial.study:
            seen.append((host.begin(study) is None, host.seconds_left(study) is None))
        return 0.0

    optuna.create_study().optimize(outer, n_trials=1, timeout=1000.0)
    assert seen == [(True, True), (False, False)]


def planned(
    study: optuna.Study, then: Callable[[], None] = lambda: None, **limit: Any
) -> list[float]:
    """Return for how many seconds three trials plan; something happens after each look."""
    left: list[float] = []

    def timed(trial: optuna.Trial) -> float:
        left.append((worker_of(study).horizon or math.inf) - time.monotonic())
        then()
        return objective(trial)

    study.optimize(timed, n_trials=3, **limit)
    return left


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_meanwhile_changes_no_limit(
    hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class Clock(metaclass=Kind):
        @staticmethod
        def now() -> datetime:
            return datetime.now() + timedelta(hours=hours)

    set_clock = partial(monkeypatch.setattr, host, "datetime", Clock)
    study = random_study(seconds=60.0)
    assert planned(study, set_clock) == pytest.approx([60.0, 60.0, 60.0], abs=5.0)


@pytest.mark.parametrize(("seconds", "timeout"), [(None, 60.0), (600.0, 60.0), (60.0, 600.0)])
def test_a_search_plans_until_seconds_or_timeout_whichever_is_first(
    seconds: float | None, timeout: float
) -> None:
    study = random_study(seconds=seconds)
    assert planned(study, timeout=timeout) == pytest.approx([60.0, 60.0, 60.0], abs=5.0)
