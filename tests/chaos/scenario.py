"""Studies under attack, and what is counted of them."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from tests.chaos.servers import Server
from tests.chaos.servers import opened
from tests.study.process_study import PATIENCE
from tests.study.process_study import SIZES
from tests.study.process_study import Plan
from tests.study.process_study import is_lost


@dataclass(frozen=True)
class Counts:
    """Attacks on studies, and their results."""

    studies: int = 0
    kills: int = 0
    """Workers killed (SIGKILL) at any moment, or before they took a claim back."""
    withdrawing: int = 0
    """Those of them that were killed before they took a claim back."""
    stalls: int = 0
    """Workers stopped (SIGSTOP) for so long that they are taken for dead, and continued."""
    restarts: int = 0
    """Number of restarts of a server that workers were using."""
    cut_off: int = 0
    """Workers that ended by the error of a storage whose server was restarted."""
    lost: int = 0
    """Scores that the storage had taken, and enqueued learners, which the study does not know at
    the end."""
    too_many: int = 0
    """Learners beyond those asked for."""
    late: int = 0
    """Scores that a worker has stored after others had given its run up and trained the learner
    with other parameters: those are of no learner, and left out."""
    stored_twice: int = 0
    """Probes of one learner at one size that two trials have stored, or learners that two have."""
    crashed: int = 0
    """Workers that ended by any other error."""
    hung: int = 0
    """Studies that did not come to their end."""
    wrong: int = 0
    """Studies whose winner is not the one that they have when nothing happens."""

    def __add__(self, other: Counts) -> Counts:
        """Return the sums."""
        names = [field.name for field in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def is_well(self) -> bool:
        """True if nothing went wrong.

        A worker that is stopped while it stores may store a training that others have made
        meanwhile. That wastes one training, and nothing else.
        """
        is_twice = self.stored_twice > self.stalls
        is_harmed = self.lost or self.too_many or is_twice or self.crashed
        return not (is_harmed or self.hung or self.wrong)


@dataclass(frozen=True)
class Scenario:
    """Attacks on studies of one kind of storage, until there were enough of each."""

    name: str
    kind: str
    kills: int = 0
    stalls: int = 0
    stalled: float = 40.0
    """Seconds of a stall."""
    restarts: int = 0
    n_workers: int = 4
    pause: float = 0.15
    """Mean seconds between two attacks."""
    plan: tuple[tuple[str, Any], ...] = ()
    """Fields of the study's plan."""
    clock: float = 0.0
    """Seconds by which the clocks of half of the workers are ahead."""
    clones: tuple[str, ...] = ("",)
    """Machines with one id and one name, on which the workers are in turn."""
    elsewhere: str = ""
    """The folder of another Optuna, which half of the workers have."""


def run(scenario: Scenario, folder: Path, seed: int) -> Counts:
    """Attack one study after another until there were as many attacks as asked for."""
    total = Counts()
    with opened(scenario.kind, folder) as server:
        while True:
            left = replace(
                scenario,
                kills=scenario.kills - total.kills,
                stalls=scenario.stalls - total.stalls,
                restarts=scenario.restarts - total.restarts,
            )
            if left.kills <= 0 and left.stalls <= 0 and left.restarts <= 0:
                return total
            total += _attack(left, server, folder, random.Random(seed + total.studies))


class _Elsewhere:
    """A worker in an interpreter with another Optuna, as `multiprocessing` shows one."""

    def __init__(self, plan: Plan, packages: str) -> None:
        names = (
            "address", "name", "n_learners", "seconds", "stale_after", "n_trials", "clock",
            "lock_seconds",
        )  # fmt: skip
        given = {name: getattr(plan, name) for name in names} | {"folder": str(plan.folder)}
        path = os.pathsep.join([packages, os.getcwd()])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.worker", json.dumps(given)],
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self.kill = self._process.kill
        self.join: Callable[..., object] = self._process.wait

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def is_alive(self) -> bool:
        return self._process.poll() is None


def _attack(scenario: Scenario, server: Server, folder: Path, chance: random.Random) -> Counts:
    """Attack one study until it has come to its end."""
    plan = Plan(server.address, folder, **dict(scenario.plan)).create()
    crew = _Crew(scenario, plan)
    restarts, restarted = 0, -math.inf
    progress = 0
    deadline = time.monotonic() + PATIENCE
    due = time.monotonic() + chance.uniform(0.0, 1.0)
    try:
        while crew.workers and time.monotonic() < deadline:
            time.sleep(0.02)
            crew.look(is_server_new=time.monotonic() - restarted < 60.0)
            awake = [one for one in crew.workers if one.pid not in crew.stopped]
            if crew.is_over or time.monotonic() < due or not awake:
                continue
            # On a slow machine workers would be killed before they have started anything.
            if len(plan.begun()) < progress:
                continue
            progress = len(plan.begun()) + 1
            if crew.kills < scenario.kills:
                crew.kill(chance.choice(awake))
            elif crew.stalls < scenario.stalls and len(awake) > 2:
                crew.stop(chance.choice(awake))
            elif restarts < scenario.restarts and server.restart is not None:
                server.restart()
                restarts, restarted = restarts + 1, time.monotonic()
            due = time.monotonic() + chance.expovariate(1.0 / scenario.pause)
            deadline = time.monotonic() + PATIENCE
    finally:
        is_hung = bool(crew.workers)
        crew.end()
    kills = crew.kills + crew.withdrawing
    done = Counts(1, kills, crew.withdrawing, crew.stalls, restarts, crew.cut_off)
    found = done + Counts(crashed=crew.crashed, hung=int(is_hung)) + _damage(plan)
    if not found.is_well:
        print(f"{scenario.name}, {plan.name}: {found}\n{plan.errors()}", flush=True)
    return found


class _Crew:
    """The workers of a study, each replaced when it is killed or ends by an error."""

    def __init__(self, scenario: Scenario, plan: Plan) -> None:
        self.stopped: dict[int, float] = {}
        """When each stalled worker was stopped, by process id."""
        self.is_over = False
        """True once a worker has seen the study end."""
        self.kills = self.stalls = self.cut_off = self.crashed = self.withdrawing = 0
        self._scenario, self._plan, self._begun = scenario, plan, 0
        self.workers = [self._start() for _ in range(scenario.n_workers)]

    def look(self, *, is_server_new: bool) -> None:
        """Continue who was stopped for long enough, and replace who has ended by an error."""
        for pid, since in [*self.stopped.items()]:
            if time.monotonic() - since > self._scenario.stalled:
                os.kill(pid, signal.SIGCONT)
                del self.stopped[pid]
        for worker in [one for one in self.workers if one.exitcode is not None]:
            self.workers.remove(worker)
            if worker.exitcode == 0:
                self.is_over = True
                continue
            if worker.exitcode == -signal.SIGKILL and worker.pid in self._plan.withdrawing():
                self.withdrawing += 1
            else:
                self.cut_off += is_server_new
                self.crashed += not is_server_new
            self.workers.append(self._start())

    def kill(self, worker: Any) -> None:
        """Kill a worker, and start another."""
        worker.kill()
        worker.join()
        self.workers[self.workers.index(worker)] = self._start()
        self.kills += 1

    def stop(self, worker: Any) -> None:
        """Stop a worker, to be continued."""
        os.kill(worker.pid, signal.SIGSTOP)
        self.stopped[worker.pid] = time.monotonic()
        self.stalls += 1

    def end(self) -> None:
        """Leave no worker behind."""
        for worker in self.workers:
            worker.kill()
            worker.join()

    def _start(self) -> Any:
        self._begun += 1
        is_odd = bool(self._begun % 2)
        if is_odd and self._scenario.elsewhere:
            return _Elsewhere(self._plan, self._scenario.elsewhere)
        clone = self._scenario.clones[self._begun % len(self._scenario.clones)]
        clock = self._scenario.clock if is_odd else 0.0
        return replace(self._plan, clock=clock, clone=clone).start()


def _damage(plan: Plan) -> Counts:
    """Return what a study has lost, or has twice, and whether its winner is the right one."""
    study = plan.study()
    learners = learning_curves(study)
    # One whose worker was killed before it had parameters is a learner without x.
    curves = [curve for curve in learners if "x" in curve.params]
    known = {(curve.params["x"], seen.size) for curve in curves for seen in curve.observations}
    missing = {*plan.stored()} - known
    gone = {*plan.enqueued()} - {c.params["x"] for c in curves} if plan.is_enqueued else {*()}
    late = missing & {*plan.stored_late()}
    # Trained on all the data and killed before the trial was COMPLETE: trained once more.
    repeated = {trial.number for trial in study.trials if is_lost(trial)}
    probes = Counter(
        (probe.learner, probe.observation.size)
        for probe in allocations(study)
        if probe.trial not in repeated
    )
    twice = sum(count - 1 for count in probes.values())
    too_many = 0 if plan.n_trials else max(0, len(learners) - plan.n_learners)
    twice += len(curves) - len({curve.params["x"] for curve in curves})
    answer = best_learner(study)
    if plan.n_trials:
        full = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
        best = max(full, key=lambda trial: trial.values[0], default=None)
        is_right = best is not None and answer is not None and answer.params == best.params
    else:
        largest = max(curve.params["x"] for curve in curves)
        is_right = answer is not None and answer.is_final and answer.params["x"] == largest
        is_right = is_right and answer is not None and answer.size == SIZES[-1]
        is_right = is_right and len(learners) == plan.n_learners
    return Counts(
        lost=len(missing - late) + len(gone),
        too_many=too_many,
        late=len(late),
        stored_twice=twice,
        wrong=int(not is_right),
    )
