"""A study that several processes work on: storages that they share, and workers to be killed.

A learner's curve is a formula of its only parameter, so that nothing is trained and every process
knows the truth. Each worker writes a line before each probe, which tells probes begun from
probes stored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import optuna
import pytest
from optuna.storages import BaseStorage
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal import JournalRedisBackend

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import geometric_sizes


KINDS = (
    "sqlite",
    "postgresql",
    "journal_file",
    "journal_redis",
    "grpc_sqlite",
    "grpc_postgresql",
)
SIZES = geometric_sizes(100, 3000, 2.0)


def service(variable: str, what: str) -> str:
    """Return the URL of a running service, or skip; .ci/run starts them and requires them."""
    url = os.environ.get(variable)
    if url is None:
        message = f"needs {what}: set {variable} to its URL, as .ci/run does"
        if "OPTUNA_DAUB_REQUIRE_SERVICES" in os.environ:
            pytest.fail(message)
        pytest.skip(message)
    return url


@contextlib.contextmanager
def shared_storage(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of an empty storage that other processes can open."""
    if kind.startswith("grpc_"):
        if not hasattr(optuna.storages, "GrpcStorageProxy"):
            pytest.skip("needs Optuna 4.2 or newer, which has a gRPC proxy")
        with shared_storage(kind.removeprefix("grpc_"), folder) as behind, proxy(behind) as front:
            yield front
    elif kind == "sqlite":
        yield f"sqlite:///{folder}/study.db"
    elif kind == "journal_file":
        yield f"file:{folder}/study.journal"
    elif kind == "journal_redis":
        yield service("OPTUNA_DAUB_REDIS", "a Redis server")
    else:
        yield service("OPTUNA_DAUB_POSTGRESQL", "a PostgreSQL server")


@contextlib.contextmanager
def proxy(behind: str) -> Iterator[str]:
    """Yield the address of a gRPC proxy that runs in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", __name__, "proxy", behind, str(port)])
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"grpc:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def open_storage(address: str) -> BaseStorage | str:
    """Return the storage of an address, as a process of its own would open it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        match address.partition(":"):
            case "file", _, path:
                return JournalStorage(JournalFileBackend(path))
            case "redis", _, _:
                return JournalStorage(JournalRedisBackend(address))
            case "grpc", _, port:
                return optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=int(port))
            case "sqlite", _, _:
                patience = {"connect_args": {"timeout": 120}}
                return optuna.storages.RDBStorage(address, engine_kwargs=patience)
    return address


@dataclass(frozen=True)
class Plan:
    """What all workers of a study agree on."""

    address: str
    name: str
    folder: Path
    n_learners: int = 12
    seconds: float = 0.01
    """How long each probe sleeps."""

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def study(self) -> optuna.Study:
        return optuna.create_study(
            study_name=self.name,
            storage=open_storage(self.address),
            direction="maximize",
            load_if_exists=True,
            sampler=DataAllocationSampler(
                optuna.samplers.GridSampler({"i": range(self.n_learners)}, seed=0),
                n_learners=self.n_learners,
            ),
            pruner=DAUBPruner(sizes=SIZES),
        )

    def start(self) -> subprocess.Popen[bytes]:
        """Start one worker in a process of its own."""
        arguments = [self.address, self.name, self.folder, self.n_learners, self.seconds]
        return subprocess.Popen([sys.executable, "-m", __name__, "work", *map(str, arguments)])

    def begun(self) -> list[tuple[int, int]]:
        """Return the probes begun, (i, size), as the workers wrote them down."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(i), int(size)) for i, size in map(str.split, lines)]


def score(i: int, size: int, n_learners: int) -> float:
    """Return the score of learner `i`: curves cross, and 7 i mod n says who is best in the end."""
    quality = (7 * i) % n_learners / n_learners
    return 0.5 + 0.4 * quality - (0.3 + quality) / size**0.5


def work(plan: Plan) -> None:
    """Work on the study until it ends."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        i = trial.suggest_int("i", 0, plan.n_learners - 1)
        for n in training_sizes(trial):
            with plan.log.open("a") as log:
                log.write(f"{i} {n}\n")
            time.sleep(plan.seconds)
            value = score(i, n, plan.n_learners)
            report(trial, n, value, training_score=min(1.0, value + 2 / n**0.5))
        return value

    plan.study().optimize(objective)


def finish(plan: Plan, n_workers: int, timeout: float = 120.0) -> None:
    """Run workers until all have ended by themselves, each without an error."""
    workers = [plan.start() for _ in range(n_workers)]
    try:
        assert [worker.wait(timeout) for worker in workers] == [0] * n_workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def check_consistency(plan: Plan, kills: int = 0) -> None:
    """Assert that nothing was lost and nothing was done twice, but for probes that were killed."""
    study = plan.study()
    curves = learning_curves(study)
    assert len(curves) == plan.n_learners
    assert sorted(curve.params["i"] for curve in curves) == [*range(plan.n_learners)]
    for curve in curves:
        sizes = tuple(seen.size for seen in curve.observations)
        assert sizes == SIZES[: len(sizes)]
        assert len(sizes) >= 3
        scores = [score(curve.params["i"], n, plan.n_learners) for n in sizes]
        assert [seen.score for seen in curve.observations] == scores
        assert all(seen.training_score is not None for seen in curve.observations)
    stored = [(a.learner, a.observation.size) for a in allocations(study)]
    assert len(stored) == len(set(stored)), "a probe was stored twice"
    begun = plan.begun()
    assert len(begun) - len(set(begun)) <= kills, "more probes were repeated than killed"
    best = best_learner(study)
    assert best is not None
    assert best.is_final
    assert best.size == SIZES[-1]
    assert (7 * best.params["i"]) % plan.n_learners == plan.n_learners - 1
    assert study.best_trial.params == best.params


def kill(worker: subprocess.Popen[bytes]) -> None:
    """End a worker as a crash of the machine would."""
    worker.send_signal(signal.SIGKILL)
    worker.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["proxy", behind, port]:
            storage = optuna.storages.get_storage(open_storage(behind))
            optuna.storages.run_grpc_proxy_server(storage, host="127.0.0.1", port=int(port))
        case ["work", address, name, folder, n_learners, seconds]:
            work(Plan(address, name, Path(folder), int(n_learners), float(seconds)))
