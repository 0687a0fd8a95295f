"""Several threads on one study: nobody holds what another holds, and it ends by itself."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from contextlib import suppress

import optuna
import pytest
from optuna.samplers import GridSampler
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from optuna_daub import training_sizes
from optuna_daub.core import LearningCurve
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study.worker import worker_of
from tests.strategies import power_law
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import TableObjective
from tests.study.table_study import Watched
from tests.study.table_study import assert_sound
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import in_thread
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import runs
from tests.study.table_study import table_study


def rivals(count: int, seed: int) -> list[LearningCurve]:
    rng = random.Random(seed)
    return [
        power_law(i, SIZES, rng.uniform(0.5, 1), rng.uniform(0, 2), rng.uniform(0.2, 0.9))
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_no_learner_is_held_twice_and_the_winner_is_the_best(n_jobs: int, seed: int) -> None:
    known = rivals(12, seed)
    watched = Watched()
    study = table_study(len(known), base=GridSampler({"row": range(len(known))}, seed=0))
    study.optimize(TableObjective(known, before=watched), n_jobs=n_jobs)
    assert watched.collisions == []
    assert_sound(study)
    assert len(idle(study)) <= n_jobs
    assert all(trial.state == TrialState.PRUNED for trial in idle(study))
    best = final(study)
    assert best.rival_bound is None or best.score >= best.rival_bound


@pytest.mark.parametrize("n_jobs", [4, 8])
@pytest.mark.parametrize("count", [1, 2])
def test_spare_threads_sleep_and_end(count: int, n_jobs: int) -> None:
    watched = Watched(0.02)
    study = table_study(count)
    study.optimize(TableObjective(before=watched), n_jobs=n_jobs)
    assert watched.collisions == []
    assert_sound(study)
    assert len({run.learner for _, run in runs(study)}) == count
    assert len(idle(study)) <= n_jobs


@pytest.mark.slow
def test_threads_without_a_pause_do_not_trip_over_each_other() -> None:
    """Decisions and verdicts of many threads, as dense as they get."""
    for seed in range(4):
        known = rivals(30, seed)
        study = table_study(len(known), base=TPESampler(seed=seed), tolerance=0.01)
        study.optimize(TableObjective(known), n_jobs=4)
        made = [
            (run.learner, size)
            for t, run in runs(study)
            for size in t.intermediate_values
            if size > run.inherited
        ]
        assert len(made) == len(set(made))
        assert {t.state for t in study.trials} <= {TrialState.PRUNED, TrialState.COMPLETE}
        assert study.best_trial.last_step == SIZES[-1]


@pytest.mark.parametrize("n_trials", [1, 5])
def test_threads_stop_after_n_trials_and_go_on(n_trials: int) -> None:
    study = table_study()
    study.optimize(TableObjective(before=Watched()), n_trials=n_trials, n_jobs=2)
    assert len(study.trials) == n_trials
    study.optimize(TableObjective(before=Watched()), n_jobs=2)
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_an_error_in_one_thread_ends_the_others_and_loses_nothing() -> None:
    broken = raising(RuntimeError, (WINNER, SIZES[3]), times=1)
    study = table_study()
    with pytest.raises(RuntimeError):
        study.optimize(TableObjective(before=broken, after=Watched()), n_jobs=2)
    assert TrialState.RUNNING not in {trial.state for trial in study.trials}
    study.optimize(TableObjective(), n_jobs=2)
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_failing_learners_are_retried_by_any_thread_and_dropped() -> None:
    broken = raising(RuntimeError, *((WINNER, size) for size in SIZES))
    study = table_study()
    objective = TableObjective(before=broken, after=Watched())
    study.optimize(objective, n_jobs=4, catch=RuntimeError)
    assert [trial.state for trial in study.trials].count(TrialState.FAIL) == 2
    assert WINNER not in {row for row, _ in probes(study)}
    assert_sound(study)


class Yielding:
    """A lock that hands the turn to another thread when it is released for the n-th time."""

    def __init__(self, lock: threading.RLock, other: Callable[[], None], n: int) -> None:
        self.lock, self.other, self.n = lock, other, n
        self.owner, self.depth = threading.get_ident(), 0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.depth += threading.get_ident() == self.owner

    def __exit__(self, *error: object) -> None:
        self.lock.release()
        if threading.get_ident() != self.owner:
            return
        self.depth -= 1
        if self.depth == 0:
            self.n -= 1
            if self.n == 0:
                assert in_thread(self.other) == []


@pytest.mark.parametrize("release", range(1, 8))
@pytest.mark.parametrize("first", [0, 1])
def test_equal_learners_of_two_threads_are_one_wherever_the_threads_change(
    first: int, release: int
) -> None:
    study = table_study(base=GridSampler({"row": [WINNER]}, seed=0))
    trials = [study.ask(), study.ask()]
    assert [run.learner for _, run in runs(study)] == [0, 1]
    sizes: list[list[int]] = [[], []]
    begun = [threading.Lock(), threading.Lock()]

    def begin(i: int) -> None:
        if begun[i].acquire(blocking=False):
            trials[i].suggest_int("row", 0, WINNER)
            with suppress(optuna.TrialPruned):
                sizes[i] = [*itertools.islice(training_sizes(trials[i]), 1)]

    worker = worker_of(study)
    worker.lock = Yielding(worker.lock, lambda: begin(1 - first), release)  # type: ignore[assignment]
    begin(first)
    begin(1 - first)
    assert sorted(map(len, sizes)) == [0, 1], "both are trained, or none"


def test_one_thread_trains_on_while_another_trains() -> None:
    is_first, others, were_enough = threading.Lock(), itertools.count(1), threading.Event()

    def before(row: int, size: int) -> None:
        if is_first.acquire(blocking=False):  # held for ever: there is one first training
            assert were_enough.wait(60), "the other thread waits for this one"
        elif next(others) == 5:
            were_enough.set()

    study = table_study(12, base=GridSampler({"row": range(12)}, seed=0))
    study.optimize(TableObjective(rivals(12, 0), before=before), n_jobs=2)
    assert_sound(study)


def test_a_trial_that_was_left_behind_is_released_by_one_thread_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = table_study()

    exiting = TableObjective(before=raising(SystemExit))
    assert [type(error) for error in in_thread(lambda: study.optimize(exiting))] == [SystemExit]
    begun = worker_of(study).holders
    (left_behind,) = begun

    def is_left(holder: host.Holder) -> bool:
        begun.pop(left_behind, None)  # another thread finds it at the same moment
        return True

    monkeypatch.setattr(liveness, "is_left", is_left)
    study.optimize(TableObjective(), n_trials=1)
    assert [trial.number for trial in study.trials] == [0, 1]


def test_a_trial_that_others_have_failed_is_left_though_another_thread_has_looked() -> None:
    """As if the machine had slept: other workers take this one for dead meanwhile."""
    study = table_study(3)

    def fail_the_first(row: int, size: int) -> None:
        if row == 0 and study.trials[0].state == TrialState.RUNNING:
            study._storage.set_trial_state_values(study.trials[0]._trial_id, TrialState.FAIL)
            worker_of(study).look()

    study.optimize(TableObjective(after=fail_the_first), n_trials=3)
    assert study.trials[0].state == TrialState.FAIL
    assert len(study.trials) == 4, "another trial replaces it"


def test_a_worker_sees_its_own_trial_run_though_an_earlier_one_waits_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another worker has taken the first of two enqueued trials, and puts it back."""
    study = table_study(4)
    storage = study._storage
    for row in (0, 1):
        study.enqueue_trial({"row": row})
    worker_of(study).look()
    first, second = (trial._trial_id for trial in study.get_trials(deepcopy=False))
    storage.set_trial_state_values(first, TrialState.RUNNING)
    real = storage.set_trial_state_values

    def set_state(trial_id: int, state: TrialState, values: list[float] | None = None) -> bool:
        done = real(trial_id, state, values)
        if trial_id == second and state == TrialState.RUNNING:
            real(first, TrialState.WAITING)
        return done

    monkeypatch.setattr(storage, "set_trial_state_values", set_state)
    asked: list[int] = []
    assert in_thread(lambda: asked.append(study.ask().number)) == []
    assert asked == [1]
