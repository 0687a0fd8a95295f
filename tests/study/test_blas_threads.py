"""Decisions run on one BLAS thread; whatever else the process does keeps its number."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import optuna
import pytest
import threadpoolctl
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler

from optuna_daub import AllocationPruner
from optuna_daub.core import Decision
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.study.host import one_blas_thread
from tests.study.table_study import pair
from tests.study.table_study import told
from tests.study.table_study import trained
from tests.study.table_study import until


SIZES = (6, 9, 15)

SET = 3
"""Threads that the user has set: neither 1 nor what the tests' environment sets."""


def blas_threads() -> set[int]:
    """Return the numbers of threads of the BLAS libraries that are loaded."""
    return {
        each["num_threads"]
        for each in threadpoolctl.threadpool_info()
        if each["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    with threadpoolctl.threadpool_limits(SET, user_api="blas"):
        assert blas_threads() == {SET}
        yield
        assert blas_threads() == {SET}


@dataclass(frozen=True)
class Watched(SuccessiveHalving):
    """Notes on how many BLAS threads it is asked."""

    asked_on: list[int] = field(default_factory=list, compare=False)

    def decide(self, pool: Pool) -> Decision:
        self.asked_on.extend(blas_threads())
        return super().decide(pool)


class Base(RandomSampler):
    """Notes on how many BLAS threads it proposes."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.asked_on: list[int] = []

    def infer_relative_search_space(self, *args: Any) -> dict[str, BaseDistribution]:
        self.asked_on.extend(blas_threads())
        return super().infer_relative_search_space(*args)

    def sample_independent(self, *args: Any) -> Any:
        self.asked_on.extend(blas_threads())
        return super().sample_independent(*args)

    def after_trial(self, *args: Any) -> None:
        self.asked_on.extend(blas_threads())
        super().after_trial(*args)


def study_of(policy: Policy, base: Base, n_learners: int = 6) -> optuna.Study:
    return pair(AllocationPruner(policy), base, n_learners=n_learners)


def skilled(trial: optuna.Trial) -> float:
    return trained(trial, trial.suggest_float("skill", 0.5, 0.9))


def test_decisions_and_proposals_run_on_one_thread_and_trainings_on_all() -> None:
    policy, base, trained_on = Watched(SIZES), Base(), list[int]()

    def objective(trial: optuna.Trial) -> float:
        trained_on.extend(blas_threads())
        score = skilled(trial)
        trained_on.extend(blas_threads())
        return score

    study_of(policy, base).optimize(objective)
    assert set(policy.asked_on) == {1} == set(base.asked_on)
    assert set(trained_on) == {SET}


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_a_training_in_another_thread_keeps_its_threads(n_jobs: int) -> None:
    policy, trained_on = Watched(SIZES), list[int]()

    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.5, 0.9)
        for _ in range(20):
            trained_on.extend(blas_threads())
            time.sleep(0.0005)
        return trained(trial, skill)

    study_of(policy, Base(), 12).optimize(objective, n_jobs=n_jobs)
    assert set(trained_on) == {SET}
    assert set(policy.asked_on) == {SET}


def test_two_studies_in_two_threads_keep_each_others_threads() -> None:
    seen, is_over = list[int](), threading.Event()

    def slow(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.5, 0.9)
        while not is_over.is_set():
            seen.extend(blas_threads())
            time.sleep(0.0005)
        return trained(trial, skill)

    other = threading.Thread(
        target=study_of(Watched(SIZES), Base()).optimize, args=(slow,), kwargs={"n_trials": 1}
    )
    other.start()
    try:
        until(lambda: seen)
        study_of(Watched(SIZES), Base()).optimize(skilled)
    finally:
        is_over.set()
        other.join()
    assert set(seen) == {SET}


@contextmanager
def another_thread() -> Iterator[None]:
    """Have a thread that waits."""
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_thread_that_trains_nothing_of_optuna_does_not_matter_in_optimize() -> None:
    policy = Watched(SIZES)
    with another_thread():
        study_of(policy, Base()).optimize(skilled)
    assert set(policy.asked_on) == {1}


@pytest.mark.parametrize("is_alone", [True, False])
def test_ask_and_tell_decides_on_one_thread_where_no_other_thread_is(is_alone: bool) -> None:
    policy = Watched(SIZES)
    study = study_of(policy, Base())
    with nullcontext() if is_alone else another_thread():
        expected = 1 if threading.active_count() == 1 else SET
        told(study, study.ask(), skilled)
    assert set(policy.asked_on) == {expected}
    assert is_alone or expected == SET


def test_a_number_that_the_user_sets_while_training_holds() -> None:
    seen = list[set[int]]()

    def objective(trial: optuna.Trial) -> float:
        seen.append(blas_threads())
        threadpoolctl.threadpool_limits(2, user_api="blas")
        return skilled(trial)

    study_of(Watched(SIZES), Base()).optimize(objective)
    assert seen == [{SET}] + [{2}] * (len(seen) - 1)
    threadpoolctl.threadpool_limits(SET, user_api="blas")


def test_an_error_in_a_decision_leaves_the_number_as_it_was() -> None:
    @one_blas_thread()
    def fail() -> None:
        assert blas_threads() == {1}
        raise ZeroDivisionError

    if threading.active_count() > 1:
        pytest.skip("a thread of the test runner is alive")
    with pytest.raises(ZeroDivisionError):
        fail()
    assert blas_threads() == {SET}
