"""Several processes on one study, on every storage that processes can share."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import replay
from optuna_daub.study import records
from tests.study.process_study import KINDS
from tests.study.process_study import PATIENCE
from tests.study.process_study import SIZES
from tests.study.process_study import HarmError
from tests.study.process_study import HungerError
from tests.study.process_study import Plan
from tests.study.process_study import at_work
from tests.study.process_study import check_consistency
from tests.study.process_study import ended
from tests.study.process_study import finish
from tests.study.process_study import idle_trials
from tests.study.process_study import kill
from tests.study.process_study import score
from tests.study.process_study import shared_storage
from tests.study.process_study import wait_for_probes
from tests.study.process_study import work


pytestmark = pytest.mark.slow

Planned = Callable[..., Plan]


@pytest.fixture
def planned(kind: str, tmp_path: Path) -> Iterator[Planned]:
    """Yield what makes plans of studies in a storage of this kind."""
    with shared_storage(kind, tmp_path) as address:
        yield partial(Plan, address, tmp_path)


def test_undisturbed_the_largest_x_is_the_best() -> None:
    """The winner that every study here has to find, by the rule alone."""
    xs = [i / 60 for i in range(60)]
    curves = [
        LearningCurve(i, tuple(Observation(n, score(x, n), 1.0) for n in SIZES))
        for i, x in enumerate(xs)
    ]
    *_, last = replay(DAUBPruner.paper(sizes=SIZES).policy, curves)
    assert last.learner == 59


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("grpc")])
def test_three_processes_find_the_best_and_train_nothing_twice(planned: Planned) -> None:
    """Those of other storages have clocks that jump, below."""
    plan = planned().create()
    finish(plan, n_workers=3)
    study = check_consistency(plan)
    assert all(trial.state.is_finished() for trial in study.trials)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "journal_file"])
def test_two_processes_of_two_threads(planned: Planned) -> None:
    plan = planned(n_jobs=2).create()
    finish(plan, n_workers=2)
    check_consistency(plan)


@pytest.mark.parametrize("kind", ["sqlite", "journal_redis", "grpc_postgresql"])
def test_one_process_after_another_goes_on_where_the_last_one_was(planned: Planned) -> None:
    """On other storages many workers are killed and replaced, below."""
    plan = planned(seconds=0.05).create()
    with at_work(plan, 1) as (worker,):
        wait_for_probes(plan, 15)
        kill(worker)
    work(plan)
    check_consistency(plan, kills=1)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "journal_file"])
def test_eight_processes_race_for_three_learners(planned: Planned) -> None:
    plan = planned(n_learners=3, seconds=0.5).create()
    finish(plan, n_workers=8)
    study = check_consistency(plan)
    assert len(idle_trials(study)) <= 8  # one for each worker, which it ends with
    cpu, wall = map(sum, zip(*plan.costs(), strict=True))
    print(f"{cpu:.2f} s of CPU in {wall:.1f} s of {len(plan.costs())} workers")
    assert cpu < 0.2 * wall, "a worker that waits is busy"


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", ["postgresql"])
def test_sixteen_processes_lose_nothing_and_train_nothing_twice(planned: Planned) -> None:
    """Prints what a trial takes, with `-s`; probes sleep for half a second."""
    plan = planned(n_learners=24, seconds=0.5).create()
    with at_work(plan, 16) as crew:
        assert ended(crew, 6 * PATIENCE) == [0] * 16, plan.errors()
    study = check_consistency(plan)
    known = {(curve.params["x"], o.size) for curve in learning_curves(study)
             for o in curve.observations}  # fmt: skip
    assert {*plan.stored()} <= known
    cpu, wall = zip(*plan.costs(), strict=True)
    n, seconds = len(study.trials), max(wall)
    print(
        f"{n} trials, {len(plan.begun())} probes in {seconds:.0f} s of 16 processes: "
        f"{n / seconds:.1f} trials a second, {1e3 * sum(cpu) / n:.0f} ms of CPU each"
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "journal_file", "journal_redis"])
@pytest.mark.parametrize("is_scattered", [False, True], ids=["one machine", "many"])
def test_clocks_that_jump_change_nothing(planned: Planned, is_scattered: bool) -> None:
    """An hour forwards, or backwards, in the middle of a study."""
    stale_after = 20.0 if is_scattered else None
    plan = planned(seconds=0.03, is_scattered=is_scattered, stale_after=stale_after).create()
    jumps = ((0.0, 0.0), (3600.0, 0.4), (-3600.0, 0.4))
    crew = [replace(plan, clock=clock, clock_jumps=at).start() for clock, at in jumps]
    try:
        assert ended(crew) == [0, 0, 0], plan.errors()
    finally:
        for worker in crew:
            kill(worker)
    study = check_consistency(plan)
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert not any((records.GIVEN_UP in trial.system_attrs) for trial in study.trials)


@pytest.mark.parametrize(
    ("kind", "n_workers", "n_learners", "is_enqueued"),
    [
        ("postgresql", 6, 60, True),
        ("postgresql", 3, 12, False),
        ("journal_file", 3, 12, False),
        ("grpc_sqlite", 3, 12, False),
    ],
)
def test_chaos_changes_nothing(
    planned: Planned, n_workers: int, n_learners: int, is_enqueued: bool
) -> None:
    """A random worker is killed again and again and replaced, until the study ends."""
    chance = random.Random(0)
    plan = planned(n_learners=n_learners, seconds=0.1).create(is_enqueued=is_enqueued)
    kills, progress, deadline = 0, 0, time.monotonic() + 2 * PATIENCE
    with at_work(plan, n_workers) as crew:
        wait_for_probes(plan, n_workers)
        while any(worker.is_alive() for worker in crew):
            time.sleep(chance.uniform(0.2, 0.8))
            assert time.monotonic() < deadline, plan.errors()
            if len(plan.begun()) < progress:
                continue  # on a slow machine workers would be killed before they have started
            progress = len(plan.begun()) + n_workers
            alive = [number for number, worker in enumerate(crew) if worker.is_alive()]
            if alive:
                number = chance.choice(alive)
                kill(crew[number])
                crew[number] = plan.start()
                kills += 1
        assert {worker.exitcode for worker in crew} == {0}, plan.errors()
    print(f"{kills} kills, {len(plan.begun())} probes begun")
    assert kills > 1
    check_consistency(plan, kills)


@pytest.mark.parametrize("kind", ["postgresql", "journal_file"])
def test_enqueued_learners_whose_workers_died_at_once_come_again(planned: Planned) -> None:
    plan = planned(seconds=0.1, deadly=(2, 5, 7, 11)).create(is_enqueued=True)
    with at_work(plan, 4) as crew:
        deadline = time.monotonic() + PATIENCE
        while any(worker.exitcode != 0 for worker in crew):
            assert time.monotonic() < deadline, plan.errors()
            time.sleep(0.01)
            for number, worker in enumerate(crew):
                if worker.exitcode == -signal.SIGKILL:
                    crew[number] = plan.start()
    study = check_consistency(plan)
    assert all(study.trials[number].state == TrialState.RUNNING for number in plan.deadly)


@pytest.mark.parametrize("kind", ["postgresql", "journal_file"])
@pytest.mark.parametrize(
    ("harm", "name"), [(HarmError, "HarmError"), (HungerError, "MemoryError")]
)
def test_a_worker_that_fails_once_leaves_the_answer_as_it_is(
    planned: Planned, harm: type[Exception], name: str
) -> None:
    plan = planned(harm=harm, seconds=0.05).create(is_enqueued=True)
    with at_work(plan, 3) as crew:
        assert sorted(map(str, ended(crew))) == ["0", "0", "1"], plan.errors()
    assert name in plan.errors()
    study = check_consistency(plan, kills=1)
    assert [trial.state for trial in study.trials].count(TrialState.FAIL) == 1


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_learner_that_fails_in_two_processes_is_dropped(planned: Planned) -> None:
    """A worker that has trained nothing yet may itself be at fault, so all begin together."""
    best, second = 11 / 12, 10 / 12
    harm = {"harm": MemoryError, "harmed": (best, SIZES[3]), "times": 99, "catch": (MemoryError,)}
    plan = planned(seconds=0.05, crew=3, **harm).create(is_enqueued=True)
    finish(plan, n_workers=3)
    study = check_consistency(plan, kills=1, best=second)
    (lost,) = [curve for curve in learning_curves(study) if curve.state == "dropped"]
    assert lost.params["x"] == best
    assert plan.begun().count((best, SIZES[3])) == 2


@pytest.mark.parametrize("kind", ["sqlite", "journal_file"])
def test_an_interrupted_worker_leaves_its_learner_to_others(planned: Planned) -> None:
    plan = planned(seconds=0.05).create()
    with at_work(plan, 3) as crew:
        wait_for_probes(plan, 10)
        os.kill(crew[0].pid or 0, signal.SIGINT)
        assert ended(crew) == [1, 0, 0], plan.errors()
    check_consistency(plan, kills=1)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_locked_file_is_waited_for(planned: Planned, tmp_path: Path) -> None:
    plan = planned(seconds=0.02).create()
    with at_work(plan, 3) as crew:
        wait_for_probes(plan, 10)
        with contextlib.closing(sqlite3.connect(tmp_path / "study.db", PATIENCE)) as other:
            other.execute("BEGIN EXCLUSIVE")
            begun = len(plan.begun())
            time.sleep(0.7)
            assert len(plan.begun()) <= begun + 3  # those that were about to start
            other.rollback()
        assert ended(crew) == [0, 0, 0], plan.errors()
    check_consistency(plan)


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_database_that_hangs_up_costs_a_worker_its_probe_and_no_more(planned: Planned) -> None:
    plan = planned(seconds=0.05).create()
    with at_work(plan, 3) as crew:
        wait_for_probes(plan, 20)
        hang_up(plan.address)
        codes = ended(crew)
    assert 1 in codes
    finish(plan, n_workers=2)
    check_consistency(plan, kills=3)


def hang_up(address: str) -> None:
    """Close all other connections of the database."""
    engine = sqlalchemy.create_engine(address)
    with engine.connect() as connection:
        connection.execute(
            sqlalchemy.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid != pg_backend_pid() AND datname = current_database()"
            )
        )
    engine.dispose()


@pytest.mark.parametrize(
    ("kind", "n_learners", "retries"),
    [
        ("sqlite", 1, False),  # nobody else has anything to do
        ("sqlite", 12, True),
        ("postgresql", 12, False),
        ("postgresql", 12, True),
    ],
)
def test_a_heartbeat_that_stops_frees_the_learner(
    planned: Planned, n_learners: int, retries: bool
) -> None:
    options: dict[str, Any] = {"is_scattered": True, "heartbeat": True, "retries": retries}
    plan = planned(n_learners=n_learners, seconds=0.1, **options).create()
    with at_work(plan, 2) as crew:
        wait_for_probes(plan, 3 * n_learners)
        holder = crew[[worker.pid for worker in crew].index(plan.last_to_begin())]
        kill(holder)
        crew.remove(holder)
        assert ended(crew) == [0], plan.errors()
    study = check_consistency(plan, kills=1)
    assert TrialState.FAIL in {trial.state for trial in study.trials}


@pytest.mark.parametrize(
    ("kind", "stop"),
    [
        ("sqlite", signal.SIGKILL),
        ("journal_file", signal.SIGSTOP),
        ("grpc_sqlite", signal.SIGSTOP),
    ],
)
def test_a_run_that_is_silent_too_long_is_given_up(planned: Planned, stop: signal.Signals) -> None:
    """A machine that is gone, or that hangs and comes back to a trial that is not its own."""
    plan = planned(n_learners=1, seconds=0.3, is_scattered=True, stale_after=1.0).create()
    with at_work(plan, 1) as (first,):
        wait_for_probes(plan, 2)
        os.kill(first.pid or 0, stop)
        finish(plan, n_workers=1)
        os.kill(first.pid or 0, signal.SIGCONT) if stop == signal.SIGSTOP else None
        assert ended([first]) == [-stop if stop == signal.SIGKILL else 0], plan.errors()
    study = check_consistency(plan, kills=1)
    (given_up,) = [trial for trial in study.trials if (records.GIVEN_UP in trial.system_attrs)]
    is_back = stop == signal.SIGSTOP
    assert given_up.state == (TrialState.PRUNED if is_back else TrialState.RUNNING)
