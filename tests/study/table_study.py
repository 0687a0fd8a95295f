"""A study whose objective looks its scores up in known curves: nothing is trained."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState
from sqlalchemy import event
from sqlalchemy.engine import Engine

from optuna_daub import AllocationPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import Decision
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import Policy
from optuna_daub.core import replay
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.records import Run
from optuna_daub.study.results import BestLearner
from optuna_daub.study.turns import Patience
from optuna_daub.study.worker import worker_of
from tests.strategies import power_law


@event.listens_for(Engine, "connect")
def _hurry(connection: Any, _: object) -> None:
    """Do not wait for the disk: only processes die in these tests, not the machine."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


SIZES = (6, 9, 15, 24, 36, 54)

RIVALS = [
    power_law(0, SIZES, end=0.80, drop=0.5, power=0.3),
    power_law(1, SIZES, end=0.90, drop=1.5, power=0.5),
    power_law(2, SIZES, end=0.60, drop=0.1, power=0.9),
    power_law(3, SIZES, end=0.88, drop=1.2, power=0.5),
    power_law(4, SIZES, end=0.95, drop=2.9, power=0.6),
]
"""Five learners between which the turn changes hands several times."""

Objective = Callable[[optuna.Trial], float]
Place = str | BaseStorage
"""The URL of a database, or a storage of Optuna."""


def scored(
    trial: optuna.Trial,
    score: Callable[[int], float],
    sizes: Iterable[int] | None = None,
    **also: Callable[[int], float],
) -> float:
    """Report what follows from each size handed out, or given, and return the last score."""
    last = 0.0
    for n in training_sizes(trial) if sizes is None else sizes:
        last = score(n)
        report(trial, n, last, **{name: value(n) for name, value in also.items()})  # type: ignore[arg-type]
    return last


def trained(trial: optuna.Trial, skill: float) -> float:
    """Train a learner whose score rises towards its skill, for as long as it is its turn."""
    return scored(trial, lambda n: skill - 1 / n, training_score=lambda n: skill + 0.5 / n)


def report_row(trial: optuna.Trial, row: int, size: int, sign: int = 1) -> float:
    """Report the score of a row of `RIVALS` at a size, and return it."""
    score, fitted = scores_of(row, size)
    report(trial, size, sign * score, training_score=sign * fitted)
    return sign * score


def scores_of(row: int, size: int) -> tuple[float, float]:
    """Return the score of a row of `RIVALS` at a size, and its training score."""
    seen = RIVALS[row].at(size)
    assert seen is not None
    assert seen.training_score is not None
    return seen.score, seen.training_score


def plainly(trial: optuna.Trial, *, goes_on: bool = False) -> float:
    """Report a row of `RIVALS` as an objective that knows Optuna alone.

    It starts over, as most do, unless it `goes_on` after the sizes that its learner has.
    """
    row = trial.suggest_int("row", 0, len(RIVALS) - 1)
    stored = trial.study._storage.get_trial(trial._trial_id)
    for size in SIZES:
        if goes_on and size in stored.intermediate_values:
            continue
        trial.report(scores_of(row, size)[0], size)
        if trial.should_prune():
            raise optuna.TrialPruned
    return scores_of(row, SIZES[-1])[0]


def asking_itself(trial: optuna.Trial) -> float:
    """Report a row of `RIVALS` by Optuna alone at each size handed out, and ask the pruner."""
    row, score = trial.suggest_int("row", 0, len(RIVALS) - 1), 0.0
    for size in training_sizes(trial):
        score = scores_of(row, size)[0]
        trial.report(score, size)
        if trial.should_prune():
            raise optuna.TrialPruned("as the pruner says")
    return score


def reporting(steps: Iterable[int], *, asks: bool = True) -> Objective:
    """Return an objective that knows Optuna alone, and reports its x at each of some steps."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in steps:
            trial.report(x, step)
            if asks and trial.should_prune():
                raise optuna.TrialPruned
        return x

    return objective


def one_number(trial: optuna.Trial) -> float:
    """Train a learner whose skill is its only parameter."""
    return trained(trial, trial.suggest_float("x", 0, 1))


Formula = Callable[[float, int], float]
"""Value by x and size."""


def by_formula(score: Formula, low: float = 0.0, high: float = 1.0, **also: Formula) -> Objective:
    """Return an objective whose scores at each size follow from its only parameter x.

    Args:
        score: formula of the scores.
        low: least value of x.
        high: largest value of x.
        also: formulas of what else is reported: `training_score`, `seconds`, `n_validation`.
    """

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", low, high)
        of_size = {name: partial(value, x) for name, value in also.items()}
        return scored(trial, partial(score, x), None, **of_size)

    return objective


def conditional(trial: optuna.Trial) -> float:
    """Train a learner of one of two kinds, with parameters of their own; 0.9 is the best skill."""
    if trial.suggest_categorical("kind", ["tree", "linear"]) == "tree":
        return trained(trial, 0.5 + trial.suggest_float("depth", 1, 20) / 50)
    skill = 0.4 + trial.suggest_float("penalty", 0.05, 1, log=True) / 4
    return trained(trial, skill + 0.1 * trial.suggest_categorical("scaled", [True, False]))


def bits(trial: optuna.Trial) -> float:
    """Train one of the two learners that there are."""
    return trained(trial, 0.5 + 0.2 * trial.suggest_categorical("on", [True, False]))


def alike(trial: optuna.Trial) -> float:
    """Optuna stores the first of the choices that are equal, False for 0 and True for 1."""
    choice = trial.suggest_categorical("choice", [None, False, 0, True, 1, "a"])
    return trained(trial, 0.4 + 0.1 * trial.suggest_int("i", 0, 1) + 0.2 * (choice is None))


def stop_at(*counts: int) -> Callable[[optuna.Study, FrozenTrial], None]:
    """Return a callback that ends `optimize` when there are so many trials."""

    def enough(study: optuna.Study, trial: FrozenTrial) -> None:
        if len(study.trials) in counts:
            study.stop()

    return enough


def told(
    study: optuna.Study, trial: optuna.Trial, objective: Objective, *, by_number: bool = False
) -> None:
    """Run an objective on a trial that was asked for, and tell how it ended."""
    who = trial.number if by_number else trial
    try:
        study.tell(who, objective(trial))
    except optuna.TrialPruned:
        study.tell(who, state=TrialState.PRUNED)


class FailedFitError(Exception):
    """Raised by the objective if the table has no score."""


class InOrder(BaseSampler):
    """Proposes row 0, 1, 2, ...: as many as the learners that it sees before this one."""

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        seen = [row for row in study.get_trials(deepcopy=False) if row.number < trial.number]
        # Another thread's trial may be there already, and turn out to be a later run, or idle.
        runs = {row.number: records.read_run(row) for row in seen}
        return sum(run is not None and run.learner == number for number, run in runs.items())


class TableObjective:
    """Reports the scores of a row of the table; raises if there is none.

    `before` and `after` are called with (row, size) around each look-up: the place to be killed.
    """

    def __init__(
        self,
        known: Sequence[LearningCurve] = RIVALS,
        sign: int = 1,
        before: Callable[[int, int], None] = lambda row, size: None,
        after: Callable[[int, int], None] = lambda row, size: None,
    ) -> None:
        self.rows = sorted(known, key=lambda curve: curve.learner)
        self.sign = sign
        self.before = before
        self.after = after

    def __call__(self, trial: optuna.Trial) -> float:
        row = trial.suggest_int("row", 0, len(self.rows) - 1)
        score = float("nan")
        for size in training_sizes(trial):
            self.before(row, size)
            seen = self.rows[row].at(size)
            if seen is None:
                raise FailedFitError(f"row {row} at {size}")
            score = self.sign * seen.score
            fitted = None if seen.training_score is None else self.sign * seen.training_score
            told = {"n_validation": seen.n_validation, "seconds": seen.seconds}
            report(trial, size, score, training_score=fitted, **told)
            self.after(row, size)
        return score


def optimize_some(
    study: optuna.Study,
    objective: Objective,
    n_trials: int | None,
    **given: Any,
) -> None:
    """Run some trials, and stop; `n_trials` of `optimize` would make the last one a full one."""
    if n_trials is None or n_trials < 2:
        study.optimize(objective, n_trials, **given)
        return
    ended: list[int] = []

    def stop(study: optuna.Study, trial: FrozenTrial) -> None:
        ended.append(trial.number)
        if len(ended) == n_trials:
            study.stop()

    study.optimize(objective, callbacks=[stop], **given)


def pair(
    pruner: AllocationPruner,
    base: BaseSampler | None = None,
    *,
    direction: str = "maximize",
    storage: Place | None = None,
    name: str | None = None,
    patience: Patience = Patience(),  # noqa: B008 - a frozen value
    **options: Any,
) -> optuna.Study:
    """Return a study with a pruner and our sampler; opened if it has a name and is there already.

    Args:
        pruner: ours.
        base: the base sampler; None for the default one.
        direction: direction of the study.
        storage: in memory unless given.
        name: name of the study.
        patience: waiting times of this process.
        options: options of the sampler.
    """
    study = optuna.create_study(
        study_name=name,
        storage=storage,
        direction=direction,
        load_if_exists=name is not None,
        sampler=DataAllocationSampler(base, **options),
        pruner=pruner,
    )
    worker_of(study).patience = patience
    return study


def table_study(
    n_learners: int | None = len(RIVALS),
    storage: Place | None = None,
    name: str = "table",
    direction: str = "maximize",
    base: BaseSampler | None = None,
    stale_after: float | None = None,
    pruner: AllocationPruner | None = None,
    patience: Patience = Patience(),  # noqa: B008 - a frozen value
    **rule: Any,
) -> optuna.Study:
    """Return a study of the table, in whose order learners are proposed.

    The pruner is that of DAUB's paper with the options `rule`, unless another one is given.
    """
    return pair(
        pruner or DAUBPruner.paper(**{"sizes": SIZES, **rule}),
        base or InOrder(),
        direction=direction,
        storage=storage,
        name=name,
        patience=patience,
        n_learners=n_learners,
        stale_after=stale_after,
    )


def open_study(
    base: BaseSampler | None = None, pruner: AllocationPruner | None = None, **options: Any
) -> optuna.Study:
    """Return a study of an open pool, which a seed makes the same on every machine."""
    return pair(pruner or DAUBPruner(sizes=SIZES, cost="examples"), base, **options)


def random_study(
    pruner: AllocationPruner | None = None, seed: int = 0, **options: Any
) -> optuna.Study:
    """Return a study of an open pool whose learners are drawn at random."""
    return open_study(RandomSampler(seed=seed), pruner, **options)


def sqlite(folder: Path) -> str:
    """Return the URL of a database in a folder; it is made if it is not there."""
    file = folder / "study.db"
    if not file.exists():
        file.write_bytes(_empty_database())
    return f"sqlite:///{file}"


@cache
def _empty_database() -> bytes:
    """Return an SQLite file with Optuna's tables: to copy it is faster than to make them."""
    with TemporaryDirectory() as folder:
        storage = RDBStorage(f"sqlite:///{folder}/study.db")
        storage.remove_session()
        storage.engine.dispose()
        return Path(folder, "study.db").read_bytes()


def probes(study: optuna.Study) -> list[tuple[int, int]]:
    """Return the allocations (row of the table, size) of a study, in order."""
    trials = study.trials
    return [
        (trials[probe.trial].params["row"], probe.observation.size) for probe in allocations(study)
    ]


def outcome(study: optuna.Study) -> list[tuple[Any, ...]]:
    """Return the parameters, the state and the scores of each trial."""
    return [(t.params, t.state, t.intermediate_values) for t in study.trials]


def as_text(points: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return points as text, sorted: equal texts are equal points."""
    return sorted(str(sorted(point.items())) for point in points)


def points(study: optuna.Study) -> list[str]:
    """Return the parameters of each learner as text, sorted."""
    return as_text(curve.params for curve in learning_curves(study))


def runs(study: optuna.Study) -> list[tuple[FrozenTrial, Run]]:
    """Return the trials that ran a learner, with what they were assigned."""
    assigned = [(trial, records.read_run(trial)) for trial in study.trials]
    return [(trial, run) for trial, run in assigned if run is not None and run.learner is not None]


def run_of(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> Run:
    """Return what a trial was assigned."""
    run = records.read_run(study.trials[trial.number])
    assert run is not None
    return run


def name_as_dead(study: optuna.Study, trial: optuna.Trial) -> None:
    """Let a trial be that of a process of this machine that is gone."""
    run = run_of(study, trial)
    machine, _, began = run.worker.split("|")
    boot = began.rpartition("/")[0]
    log.write_run(study, trial, replace(run, worker=f"{machine}|999999999|{boot}/gone"))


def idle(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that ran no learner."""
    busy = {trial.number for trial, _ in runs(study)}
    return [trial for trial in study.trials if trial.number not in busy]


def repeats(study: optuna.Study) -> dict[int, int]:
    """Return the learner that each trial repeats which was given a learner's parameters again."""
    assigned = {t.number: records.read_run(t) for t in study.trials}
    return {n: run.repeats for n, run in assigned.items() if run and run.repeats is not None}


def replayed(
    policy: Policy, known: Sequence[LearningCurve]
) -> tuple[list[tuple[int, int]], Decision]:
    """Return the successful allocations of a replay, by row of the table, and its last word."""
    rows = sorted(known, key=lambda curve: curve.learner)
    row = {curve.learner: i for i, curve in enumerate(rows)}
    table = {curve.learner: curve for curve in known}
    steps = [*replay(policy, rows)]
    made = [
        (row[step.learner], step.size)
        for step in steps
        if isinstance(step, Extend) and table[step.learner].at(step.size)
    ]
    return made, steps[-1]


def without(row: int, size: int) -> list[LearningCurve]:
    """Return the table with the row failing at a size, as replay sees it."""
    return [
        LearningCurve(c.learner, tuple(o for o in c.observations if o.size < size))
        if c.learner == row
        else c
        for c in RIVALS
    ]


def expected(n_learners: int = len(RIVALS)) -> tuple[list[tuple[int, int]], int]:
    """Return the allocations and the winner of `RIVALS`, or of the first of them, as replayed."""
    made, last = replayed(DAUBPruner.paper(sizes=SIZES).policy, RIVALS[:n_learners])
    assert last.learner is not None
    return made, last.learner


MADE, WINNER = expected()
"""Allocations of a study of `RIVALS`, in order, and the learner that it ends with."""


def answer(study: optuna.Study) -> BestLearner:
    """Return the best learner of a study that has one."""
    best = best_learner(study)
    assert best is not None
    return best


def final(study: optuna.Study) -> BestLearner:
    """Return the answer of a study that has come to its end."""
    best = answer(study)
    assert best.is_final
    return best


def is_over(study: optuna.Study) -> bool:
    """Return whether a study has come to its end."""
    best = best_learner(study)
    return best is not None and best.is_final


def assert_nothing_twice(study: optuna.Study) -> None:
    """Assert that no learner was trained twice at one size."""
    made = [(probe.learner, probe.observation.size) for probe in allocations(study)]
    assert len(made) == len(set(made))


def assert_sound(study: optuna.Study) -> None:
    """Assert what holds of every finished study, however it got there."""
    trials = study.trials
    full = study.pruner.policy.sizes[-1]
    made = [(str(trials[a.trial].params), a.observation.size) for a in allocations(study)]
    assert len(made) == len(set(made)), "a learner was trained twice at one size"
    assert not [t for t in trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            assert trial.last_step == full
            assert trial.value == trial.intermediate_values[full]
    assert study.best_trial.last_step == full


class Watched:
    """Sleeps a little at each probe, and notes who is held by two at a time."""

    def __init__(self, longest: float = 0.004) -> None:
        self.longest = longest
        self.lock = threading.Lock()
        self.held: set[int] = set()
        self.collisions: list[int] = []

    @contextmanager
    def hold(self, row: int) -> Iterator[None]:
        with self.lock:
            if row in self.held:
                self.collisions.append(row)
            self.held.add(row)
        try:
            yield
        finally:
            with self.lock:
                self.held.discard(row)

    def __call__(self, row: int, size: int) -> None:
        with self.hold(row):
            time.sleep(random.uniform(0, self.longest))


def killing(*at: int) -> Callable[[int, int], None]:
    """Return what kills its own process at a probe, as the out-of-memory killer would."""

    def kill(*probe: int) -> None:
        if probe == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def raising(
    error: BaseException | type[BaseException], *at: tuple[int, int], times: int = sys.maxsize
) -> Callable[[int, int], None]:
    """Return what raises an error at some probes, (row, size), so many times at each.

    Without a probe it raises at all of them.
    """
    raised = Counter[tuple[int, int]]()

    def act(*probe: int) -> None:
        row, size = probe
        raised[row, size] += 1
        if (not at or probe in at) and raised[row, size] <= times:
            raise error

    return act


def until(
    condition: Callable[[], object], what: str | Callable[[], str] = "", seconds: float = 60.0
) -> None:
    """Wait until something is the case, and fail if it is not within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        late = time.monotonic() >= deadline
        assert not late, f"not within {seconds:g} s: {what() if callable(what) else what}"
        time.sleep(0.01)


def in_thread(call: Callable[[], object]) -> list[BaseException]:
    """Call in a thread that must end by itself, and return what it raised."""
    raised: list[BaseException] = []

    def target() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for ever"
    return raised


def in_threads(*calls: Callable[[], object], names: Iterable[str] = ()) -> None:
    """Make calls side by side, each in a thread that must end by itself within a minute."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread, name in zip(threads, names, strict=False):
        thread.name = name
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, then: Callable[..., Any]) -> None:
    """Let something else happen the first time that a function is called."""
    as_it_is = getattr(owner, name)

    def call(*given: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, as_it_is)
        return then(as_it_is, *given, **options)

    monkeypatch.setattr(owner, name, call)
