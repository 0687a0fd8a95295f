"""A study that several processes work on: storages that they share, and workers to be killed.

A learner's curve is a formula of its only parameter, so nothing is trained and every process
knows the truth. Each worker writes a line before each probe, which tells probes started from
probes stored.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import traceback
import uuid
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import optuna
import psutil
import pytest
from optuna.storages import BaseStorage
from optuna.storages import JournalStorage
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal import JournalRedisBackend
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import geometric_sizes
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.records import Run
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.study import releases
from tests.study.forks import CONTEXT
from tests.study.table_study import final
from tests.study.table_study import pair
from tests.study.table_study import until


KINDS = (
    "sqlite",
    "postgresql",
    "journal_file",
    "journal_redis",
    "grpc_sqlite",
    "grpc_postgresql",
)
SIZES = geometric_sizes(100, 3000, 2.0)

PATIENCE = 200.0
"""Seconds after which a study that has not ended never will, on the slowest machine."""


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
    """Yield the address of a storage that other processes can open."""
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
    port = free_port()
    server = serve(behind, port)
    try:
        wait_for(port, server.is_alive)
        yield f"grpc:{port}"
    finally:
        kill(server)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, is_coming: Callable[[], bool] = lambda: True) -> None:
    """Wait until somebody listens on a port of this machine."""

    def is_there() -> bool:
        with socket.socket() as probe:
            answers = probe.connect_ex(("127.0.0.1", port)) == 0
        assert answers or is_coming()
        return answers

    until(is_there, "a listener", PATIENCE)


def serve(behind: str, port: int) -> BaseProcess:
    """Start a gRPC proxy in a process of its own."""
    server = CONTEXT.Process(target=_serve, args=(behind, port), daemon=True)
    server.start()
    return server


def _serve(behind: str, port: int) -> None:
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.get_storage(open_storage(behind))
    optuna.storages.run_grpc_proxy_server(storage, host="127.0.0.1", port=port)


def open_storage(address: str, lock_seconds: int = 4, **heartbeat: Any) -> BaseStorage:
    """Return the storage of an address, as a process of its own would open it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        match address.partition(":"):
            case "file", _, path:
                # A worker killed while it writes leaves the lock behind, by default for 30 s.
                lock = releases.lock(path, grace_period=lock_seconds)
                return JournalStorage(JournalFileBackend(path, lock_obj=lock))
            case "redis", _, _:
                return JournalStorage(JournalRedisBackend(address))
            case "dask", _, behind:
                from optuna_integration import DaskStorage

                # On the scheduler there is one of a name; the first to open it brings it.
                return DaskStorage(open_storage(behind), name=behind)
            case "grpc", _, port:
                return optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=int(port))
            case "sqlite", _, _:
                patient = {"connect_args": {"timeout": PATIENCE}}
                return RDBStorage(address, engine_kwargs=patient, **heartbeat)
        return RDBStorage(address, **heartbeat)


class HarmError(Exception):
    """The error that a plan's objective raises."""


class HungerError(MemoryError):
    """Takes more memory than its process is allowed to have."""

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**26, hard))
        try:
            self.eaten = bytearray(2**30)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@dataclass(frozen=True)
class Plan:
    """Settings that all workers of a study share."""

    address: str
    folder: Path
    n_learners: int = 12
    seconds: float = 0.01
    """Seconds that each training sleeps."""
    crew: int = 1
    """Workers that wait for each other before the first of them asks for a trial."""
    n_jobs: int = 1
    """Threads of each worker."""
    is_scattered: bool = False
    """True if each worker believes that it is on a machine of its own."""
    clone: str = ""
    """Name of the worker's machine among several with one id and one host name; empty if there is
    only one."""
    slow_claims: float = 0.0
    """Seconds that pass at most, by chance, before a claim is written: others claim meanwhile."""
    dies_withdrawing: float = 0.0
    """Probability that a worker is killed after it wrote a claim and before it takes it back."""
    is_enqueued: bool = False
    """True if `create` enqueues the learners."""
    stale_after: float | None = None
    """Seconds of silence after which the sampler gives up a run."""
    heartbeat: bool = False
    """True if trials without a sign of life for 2 s fail; for databases only."""
    retries: bool = False
    """True if Optuna's callback enqueues such trials again."""
    harm: type[BaseException] | None = None
    """Error that the training `harmed` raises; None for none."""
    harmed: tuple[float, int] = (0.5, SIZES[1])
    """(x, size) of that probe."""
    times: int = 1
    """Number of times that it raises it, in all processes together."""
    deadly: tuple[int, ...] = ()
    """Trials whose worker is killed as soon as it has taken them; given up after 1 s."""
    catch: tuple[type[Exception], ...] = ()
    """Errors after which the workers go on."""
    n_trials: int = 0
    """Trials after which a study whose pool is open ends; 0 for a closed pool."""
    lock_seconds: int = 4
    """Seconds after which the lock of a journal file is taken from a worker that seems dead."""
    clock: float = 0.0
    """Seconds by which the clock of the worker's machine is ahead."""
    clock_jumps: float = 0.0
    """Seconds after which it comes to be ahead; until then it is right."""
    name: str = field(default_factory=lambda: f"study-{uuid.uuid4().hex[:8]}")

    def create(self, *, is_enqueued: bool = False) -> Plan:
        """Make the study, with learners x = 0, 1/n, 2/n, ... if they are not the sampler's.

        On SQLite, Optuna hands out an enqueued trial to more than one process now and then.
        """
        study = self.study()
        for x in self.enqueued() if is_enqueued or self.is_enqueued else []:
            study.enqueue_trial({"x": x})
        return self

    def enqueued(self) -> list[float]:
        """Return the learners that `create` enqueues, in their order."""
        return [7 * i % self.n_learners / self.n_learners for i in range(self.n_learners)]

    def study(self) -> optuna.Study:
        """Return the study with a storage, a sampler and a pruner of its own."""
        return pair(
            (DAUBPruner if self.n_trials else DAUBPruner.paper)(sizes=SIZES),
            optuna.samplers.RandomSampler(),
            name=self.name,
            storage=open_storage(self.address, self.lock_seconds, **self._heartbeat()),
            n_learners=None if self.n_trials else self.n_learners,
            stale_after=self.stale_after,
        )

    def start(self) -> BaseProcess:
        """Start one worker in a process of its own."""
        worker = CONTEXT.Process(target=work, args=(self,), daemon=True)
        worker.start()
        return worker

    def begun(self) -> list[tuple[float, int]]:
        """Return the probes started, (x, size), as the workers wrote them down."""
        return [(float(x), int(size)) for x, size, _ in self._lines("begun")]

    def stored(self) -> list[tuple[float, int]]:
        """Return the probes whose scores the storage has taken, (x, size)."""
        return [(float(x), int(size)) for x, size, *_ in self._lines("stored")]

    def stored_late(self) -> list[tuple[float, int]]:
        """Return those of them that were reported after others had given the run up.

        Only where it is known: all workers share the clock of this machine, and one that gives a
        run up notes when it has done so.
        """
        given_up = {int(trial): float(at) for trial, at in self._lines("given_up")}
        return [
            (float(x), int(size))
            for x, size, trial, since in self._lines("stored")
            if float(since) > given_up.get(int(trial), math.inf)
        ]

    def last_to_begin(self) -> int:
        """Return the process id of the worker that started the latest probe."""
        return int(self._lines("begun")[-1][2])

    def withdrawing(self) -> set[int]:
        """Return the process ids of workers that were killed before they took a claim back."""
        return {int(pid) for (pid,) in self._lines("withdrawing")}

    def costs(self) -> list[tuple[float, float]]:
        """Return (CPU seconds, wall-clock seconds) of each worker that came to its end."""
        return [(float(cpu), float(wall)) for cpu, wall in self._lines("costs")]

    def write(self, book: str, *words: object) -> None:
        """Write a line; it is whole even if others write, or this process is killed."""
        with self._path(book).open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def errors(self) -> str:
        """Return the tracebacks of workers that ended by an error."""
        return "\n".join(" ".join(line) for line in self._lines("errors"))

    def _lines(self, book: str) -> list[list[str]]:
        path = self._path(book)
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def _path(self, book: str) -> Path:
        return self.folder / f"{self.name}.{book}"

    def _heartbeat(self) -> dict[str, Any]:
        if not self.heartbeat:
            return {}
        callback = releases.retry(max_retry=3) if self.retries else None
        return releases.heartbeat(1, grace_period=2, callback=callback)


def score(x: float, size: int) -> float:
    """Return the score of learner `x`: curves cross, and the largest x is the best in the end."""
    return 0.5 + 0.4 * x - (0.3 + x) / size**0.5


def work(plan: Plan) -> None:
    """Work on the study until it ends."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _set_up(plan)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for n in training_sizes(trial):
            plan.write("begun", x, n, os.getpid())
            time.sleep(plan.seconds)
            if plan.harm and (x, n) == plan.harmed and plan.begun().count((x, n)) <= plan.times:
                raise plan.harm
            value, number, since = score(x, n), trial.number, time.monotonic()
            report(trial, n, value, training_score=min(1.0, value + 2 / n**0.5))
            if n < SIZES[-1]:  # all the data are only known once the trial is COMPLETE
                plan.write("stored", x, n, number, since)
        return value

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        # A trial that stands in for one that others have failed has no score.
        if trial.state == TrialState.COMPLETE and math.isfinite(trial.values[0]):
            plan.write("stored", trial.params["x"], SIZES[-1], trial.number, -math.inf)
        if plan.n_trials and trial.number >= plan.n_trials:
            study.stop()

    study = plan.study()
    if plan.deadly:
        worker_of(study).patience = Patience(abandoned=1.0)
        study.sampler.before_trial = dying(plan.deadly, study.sampler.before_trial)
    plan.write("ready", os.getpid())
    until(lambda: len(plan._lines("ready")) >= plan.crew, "a crew", PATIENCE)
    cpu, wall = time.process_time(), time.monotonic()
    try:
        study.optimize(objective, n_jobs=plan.n_jobs, catch=plan.catch, callbacks=[note])
    except BaseException:
        plan.write("errors", traceback.format_exc())
        raise
    plan.write("costs", time.process_time() - cpu, time.monotonic() - wall)


def _set_up(plan: Plan) -> None:
    """Make this process the worker that the plan wants, on the machine that it wants."""
    if plan.is_scattered:
        liveness._machine = lambda: f"machine of {os.getpid()}"  # type: ignore[assignment]
    if plan.clone:
        liveness._boot = lambda: f"boot of {plan.clone}"  # type: ignore[assignment]
    if plan.slow_claims or plan.dies_withdrawing:
        log.write_run = dying_between(plan, log.write_run)
    write_given_up = log.write_given_up

    def note_given_up(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        write_given_up(study, trial)
        plan.write("given_up", trial.number, time.monotonic())

    log.write_given_up = note_given_up
    if plan.clock:
        shift_clock(plan.clock, plan.clock_jumps)


def shift_clock(seconds: float, after: float = 0.0) -> None:
    """Put this process's clock ahead, as Optuna and this package read it; the monotonic one stays.

    It is right for `after` seconds, and then jumps. The time of a database's server is its own.
    """
    now, due = time.time, time.monotonic() + after

    def ahead() -> float:
        return seconds if time.monotonic() >= due else 0.0

    time.time = lambda: now() + ahead()

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Shifted:  # type: ignore[override]
            return super().now(tz) + datetime.timedelta(seconds=ahead())

    for name, module in [*sys.modules.items()]:
        is_ours = name.partition(".")[0] in ("optuna", "optuna_daub")
        if is_ours and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Shifted  # type: ignore[attr-defined]


def dying(deadly: tuple[int, ...], before_trial: Callable[..., None]) -> Callable[..., None]:
    """Return what kills its process in place of assigning one of the trials anything."""

    def assign(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if trial.number in deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        before_trial(study, trial)

    return assign


def dying_between(plan: Plan, write_run: Callable[..., None]) -> Callable[..., None]:
    """Return what writes claims late, and at times kills its process in place of a withdrawal."""
    claimed: set[int] = set()
    chance = random.Random(os.getpid())

    def write(study: optuna.Study, trial: log.AnyTrial, run: Run) -> None:
        if run.learner is not None and trial.number not in claimed:
            time.sleep(chance.uniform(0.0, plan.slow_claims))
        is_withdrawn = run.learner is None and trial.number in claimed and run.repeats is None
        if is_withdrawn and chance.random() < plan.dies_withdrawing:
            plan.write("withdrawing", os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
        write_run(study, trial, run)
        if run.learner is not None:
            claimed.add(trial.number)
        else:
            claimed.discard(trial.number)

    return write


@contextlib.contextmanager
def at_work(plan: Plan, n_workers: int) -> Iterator[list[BaseProcess]]:
    """Yield running workers; afterwards there are none."""
    crew = [plan.start() for _ in range(n_workers)]
    try:
        yield crew
    finally:
        for worker in crew:
            kill(worker)


def ended(crew: list[BaseProcess], patience: float = PATIENCE) -> list[int | None]:
    """Wait until all workers have ended by themselves and return their exit codes."""
    deadline = time.monotonic() + patience
    for worker in crew:
        worker.join(max(0.0, deadline - time.monotonic()))
    return [worker.exitcode for worker in crew]


def finish(plan: Plan, n_workers: int) -> None:
    """Run workers until all have ended by themselves, each without an error."""
    with at_work(plan, n_workers) as crew:
        assert ended(crew) == [0] * n_workers, plan.errors()


def wait_for_probes(plan: Plan, number: int) -> None:
    """Wait until so many probes were started."""
    until(lambda: len(plan.begun()) >= number, plan.errors, PATIENCE)


def check_consistency(plan: Plan, kills: int = 0, best: float | None = None) -> optuna.Study:
    """Assert that nothing was lost and nothing was done twice, except probes that were killed."""
    study = plan.study()
    curves = learning_curves(study)
    assert len(curves) == plan.n_learners
    assert len({curve.params["x"] for curve in curves}) == plan.n_learners
    for curve in curves:
        x = curve.params["x"]
        sizes = tuple(seen.size for seen in curve.observations)
        assert sizes == SIZES[: len(sizes)]
        assert len(sizes) >= 3 or curve.state == "dropped"
        assert [seen.score for seen in curve.observations] == [score(x, n) for n in sizes]
        assert all(seen.training_score is not None for seen in curve.observations)
    lost = {trial.number for trial in study.trials if is_lost(trial)}
    assert len(lost) <= kills
    probes = [(a.learner, a.observation.size) for a in allocations(study) if a.trial not in lost]
    assert len(probes) == len(set(probes)), "a probe was stored twice"
    begun = plan.begun()
    assert len(begun) - len(set(begun)) <= kills, "more probes were repeated than killed"
    answer = final(study)
    assert answer.size == SIZES[-1]
    assert answer.params["x"] == (best or max(curve.params["x"] for curve in curves))
    assert study.best_trial.params == answer.params
    assert sorted(study.best_trial.intermediate_values) == [*SIZES]
    running = [trial for trial in study.trials if trial.state == TrialState.RUNNING]
    assert all(is_blank(trial) or (records.GIVEN_UP in trial.system_attrs) for trial in running)
    assert len(running) <= kills + len(plan.deadly)
    return study


def is_lost(trial: optuna.trial.FrozenTrial) -> bool:
    """Return whether a worker was killed between its report on all the data and the trial's end.

    Then no trial is COMPLETE, and the learner has to be trained on all the data once more.
    """
    is_over = trial.state == TrialState.FAIL or (records.GIVEN_UP in trial.system_attrs)
    return is_over and SIZES[-1] in trial.intermediate_values


def is_blank(trial: optuna.trial.FrozenTrial) -> bool:
    """Return whether a worker started a trial and was killed before it was assigned a learner.

    Optuna makes the trial, or takes it from the queue, before it asks the sampler.
    """
    is_assigned = records.read_run(trial) is not None
    return not (trial.params or trial.intermediate_values or is_assigned)


def idle_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the trials that ran no learner."""
    return [trial for trial in study.trials if not trial.intermediate_values]


def kill(worker: BaseProcess) -> None:
    """End a worker as a crash of the machine would."""
    worker.kill()
    worker.join()
