"""Several processes on one study, on every storage that processes can share."""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from tests.study.process_study import KINDS
from tests.study.process_study import Plan
from tests.study.process_study import check_consistency
from tests.study.process_study import finish
from tests.study.process_study import kill
from tests.study.process_study import shared_storage
from tests.study.process_study import work


def fresh_name() -> str:
    return f"study-{uuid.uuid4().hex[:8]}"


def idle_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return [trial for trial in study.trials if not trial.intermediate_values]


@pytest.mark.parametrize("kind", KINDS)
def test_three_processes_find_the_best_and_train_nothing_twice(kind: str, tmp_path: Path) -> None:
    with shared_storage(kind, tmp_path) as address:
        plan = Plan(address, fresh_name(), tmp_path)
        plan.study()
        finish(plan, n_workers=3)
        check_consistency(plan)
        assert all(trial.state.is_finished() for trial in plan.study().trials)


@pytest.mark.parametrize("kind", KINDS)
def test_one_process_after_another_goes_on_where_the_last_one_was(
    kind: str, tmp_path: Path
) -> None:
    with shared_storage(kind, tmp_path) as address:
        plan = Plan(address, fresh_name(), tmp_path, seconds=0.05)
        plan.study()
        worker = plan.start()
        while len(plan.begun()) < 40:
            assert worker.poll() is None
            time.sleep(0.02)
        kill(worker)
        work(plan)
        check_consistency(plan, kills=1)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "journal_file"])
def test_eight_processes_race_for_three_learners(kind: str, tmp_path: Path) -> None:
    with shared_storage(kind, tmp_path) as address:
        plan = Plan(address, fresh_name(), tmp_path, n_learners=3, seconds=0.3)
        plan.study()
        finish(plan, n_workers=8)
        check_consistency(plan)
        assert len(idle_trials(plan.study())) <= 8


@pytest.mark.parametrize(
    ("kind", "n_workers", "n_learners"),
    [("postgresql", 6, 60), ("journal_file", 3, 12), ("grpc_sqlite", 3, 12)],
)
def test_chaos_changes_nothing(kind: str, n_workers: int, n_learners: int, tmp_path: Path) -> None:
    """A random worker is killed every few seconds and replaced, until the study ends."""
    chance = random.Random(0)
    with shared_storage(kind, tmp_path) as address:
        plan = Plan(address, fresh_name(), tmp_path, n_learners=n_learners, seconds=0.2)
        plan.study()
        workers = [plan.start() for _ in range(n_workers)]
        kills, deadline, next_kill = 0, time.monotonic() + 240, time.monotonic() + 6
        try:
            while any(worker.poll() is None for worker in workers):
                assert time.monotonic() < deadline
                time.sleep(0.1)
                running = [n for n, worker in enumerate(workers) if worker.poll() is None]
                if running and time.monotonic() > next_kill:
                    number = chance.choice(running)
                    kill(workers[number])
                    kills += 1
                    workers[number] = plan.start()
                    next_kill = time.monotonic() + chance.uniform(2, 4)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        print(f"{kind}: {kills} kills, {len(plan.begun())} probes begun")
        assert kills > 0
        check_consistency(plan, kills)


def test_a_worker_that_is_silent_too_long_is_given_up(tmp_path: Path) -> None:
    with shared_storage("sqlite", tmp_path) as address:
        plan = Plan(address, fresh_name(), tmp_path)
        study = plan.study()
        study.sampler = type(study.sampler)(
            study.sampler._base_sampler, n_learners=plan.n_learners, stale_after=1.0
        )
        lost = study.ask()  # held by this living process, which never comes back to it
        work_with = Plan(address, plan.name, tmp_path)
        time.sleep(1.2)
        other = work_with.study()
        other.sampler = study.sampler
        other.ask()
        assert study._storage.get_trial(lost._trial_id).state == TrialState.FAIL
