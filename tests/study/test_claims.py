"""Who gets which learner, and how a worker waits that finds none free."""

from __future__ import annotations

import pickle
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import DAUB
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Pool
from optuna_daub.core import Reason
from optuna_daub.study import claims
from optuna_daub.study import ending
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import waiting
from optuna_daub.study.claims import Asking
from optuna_daub.study.claims import TakenError
from optuna_daub.study.earlier import Earlier
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Run
from optuna_daub.study.turns import Patience
from optuna_daub.study.waiting import LONGEST_PAUSE
from optuna_daub.study.waiting import LONGEST_WAIT
from optuna_daub.study.waiting import LOOKING_SHARE
from optuna_daub.study.waiting import SHORTEST_WAIT
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of
from tests.study.forked import in_new_process
from tests.study.forked import train_asked
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import InOrder
from tests.study.table_study import Place
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_nothing_twice
from tests.study.table_study import assert_sound
from tests.study.table_study import final
from tests.study.table_study import in_thread
from tests.study.table_study import in_threads
from tests.study.table_study import once
from tests.study.table_study import pair
from tests.study.table_study import raising
from tests.study.table_study import repeats
from tests.study.table_study import sqlite
from tests.study.table_study import table_study
from tests.study.table_study import told


def waits(monkeypatch: pytest.MonkeyPatch, cpu_seconds: float, looks: int) -> list[float]:
    """Return how long a worker sleeps between looks that take so much CPU time each."""
    slept: list[float] = []
    assigned: Any = object()
    now = 0.0

    def look(*_: object, **__: object) -> Any:
        nonlocal now
        now += cpu_seconds
        return assigned if len(slept) == looks - 1 else None

    monkeypatch.setattr(waiting, "claim", look)
    monkeypatch.setattr(waiting, "_check_can_wait", lambda asking: None)
    monkeypatch.setattr(liveness, "fail_stale", lambda study: None)
    monkeypatch.setattr(time, "thread_time", lambda: now)
    monkeypatch.setattr(time, "sleep", slept.append)
    nothing: Any = None
    run = waiting.assign(Asking(table_study(), nothing, nothing, nothing, 1, None))
    assert run is assigned
    return slept


def test_waits_grow_from_the_shortest_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = waits(monkeypatch, cpu_seconds=1e-6, looks=12)
    assert slept == [min(SHORTEST_WAIT * 2**i, LONGEST_WAIT) for i in range(11)]


@pytest.mark.parametrize("cpu_seconds", [0.02, 0.1])
def test_looks_take_no_more_than_their_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch, cpu_seconds: float
) -> None:
    slept = waits(monkeypatch, cpu_seconds, looks=5)
    assert len(slept) == 4
    assert all(cpu_seconds <= LOOKING_SHARE * wait * (1 + 1e-9) for wait in slept)


def test_an_expensive_look_delays_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = waits(monkeypatch, cpu_seconds=5.0, looks=3)
    assert slept == [LONGEST_PAUSE, LONGEST_PAUSE]


# No wait without an end


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_wait_ends_at_the_timeout(n_jobs: int) -> None:
    """The only learner is held by another worker all the time."""
    study = table_study(1)
    assert in_thread(table_study(1, storage=study._storage).ask) == []
    begun = time.monotonic()
    study.optimize(TableObjective(), timeout=0.3, n_jobs=n_jobs)
    assert 0.3 <= time.monotonic() - begun < 30
    held, *waited = study.trials
    assert [trial.state for trial in waited] == [TrialState.PRUNED] * n_jobs
    assert held.state == TrialState.RUNNING, "its worker may be alive"


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
def test_what_an_exit_left_behind_is_not_waited_for(error: type[BaseException]) -> None:
    """Optuna catches exceptions and Ctrl-C only, and leaves the trial as it is."""

    def go_on() -> None:
        with pytest.raises(error):
            study.optimize(TableObjective(before=raising(error, MADE[1])))
        assert study.trials[0].state == TrialState.RUNNING
        study.optimize(TableObjective())

    study = table_study(1)
    assert in_thread(go_on) == []
    assert study.trials[0].state == TrialState.FAIL
    assert_sound(study)


def interrupt(study: optuna.Study, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise KeyboardInterrupt once, at a moment of a trial that Optuna does not guard."""
    of, name = {
        "assigned": (Earlier, "next_point"),
        "close": (ending, "warn_of_direction"),
        "state": (study._storage, "set_trial_state_values"),
    }[moment]

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    once(monkeypatch, of, name, interrupted)


@pytest.mark.parametrize("is_same_thread", [False, True])
@pytest.mark.parametrize("moment", ["assigned", "close", "state"])
def test_what_an_interrupt_left_behind_is_not_waited_for(
    moment: str, is_same_thread: bool, storage: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C while Optuna asks or tells, which may leave the trial RUNNING."""
    study = table_study(1, storage=storage)
    interrupt(study, moment, monkeypatch)
    left = {
        "assigned": TrialState.FAIL,
        "close": TrialState.COMPLETE,
        "state": TrialState.RUNNING,
    }[moment]
    # Optuna's own code turns Ctrl-C into this error while it stores the state.
    error = UnboundLocalError if moment == "state" else KeyboardInterrupt

    def interrupted() -> None:
        with pytest.raises((KeyboardInterrupt, error)):
            study.optimize(TableObjective())
        assert study.trials[0].state == left
        if is_same_thread:
            study.optimize(TableObjective())

    assert in_thread(interrupted) == []
    if not is_same_thread:
        assert in_thread(lambda: study.optimize(TableObjective())) == []
    if moment != "close":
        assert study.trials[0].state == TrialState.FAIL
    final(study)
    assert len(learning_curves(study)) == 1


def test_ctrl_c_while_a_trial_is_pruned_comes_out_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    study = table_study(2)
    interrupt(study, "close", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(TableObjective(), catch=(Exception,))
    assert study.trials[0].state == TrialState.PRUNED
    study.optimize(TableObjective())
    final(study)


def test_a_trial_whose_telling_was_interrupted_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In ask-and-tell it is the caller's: it is neither waited for nor failed."""
    study = table_study(1)

    def asking() -> None:
        trial = study.ask()
        trial.suggest_int("row", 0, 4)
        report(trial, next(training_sizes(trial)), 0.5, training_score=0.6)
        interrupt(study, "state", monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            study.tell(trial, state=TrialState.PRUNED)
        with pytest.raises(RuntimeError, match=r"asked for trials \[0\] without telling"):
            study.ask()
        study.tell(trial, state=TrialState.PRUNED)

    assert in_thread(asking) == []


def test_what_was_asked_for_here_is_trained_in_another_process(tmp_path: Path) -> None:
    study = pair(
        DAUBPruner(sizes=SIZES, cost="examples"),
        RandomSampler(seed=0),
        n_learners=3,
        storage=sqlite(tmp_path),
    )
    while best_learner(study) is None:
        trial = study.ask()
        assert trial.number < 20, "nothing is trained"
        trial.suggest_float("x", 0, 1)
        assert in_new_process(train_asked, pickle.dumps(trial)) == 0
        scores = study.trials[trial.number].intermediate_values
        if SIZES[-1] in scores:
            study.tell(trial.number, scores[SIZES[-1]])
        else:
            study.tell(trial.number, state=TrialState.PRUNED)
    assert "dropped" not in {curve.state for curve in learning_curves(study)}
    assert_nothing_twice(study)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_thread_does_not_wait_for_what_it_was_asked_to_tell(n_jobs: int) -> None:
    def asking_first() -> None:
        study.ask()
        study.optimize(TableObjective(), n_jobs=n_jobs)

    study = table_study(1)
    (raised,) = in_thread(asking_first)
    assert isinstance(raised, RuntimeError)
    assert "asked for trials [0] without telling their results" in str(raised)


def test_more_asks_than_learners_are_refused_and_telling_frees_one() -> None:
    def asking() -> None:
        first, _ = study.ask(), study.ask()
        with pytest.raises(RuntimeError, match=r"asked for trials \[0, 1\] without telling"):
            study.ask()
        study.tell(first, state=TrialState.FAIL)
        assert study.ask().number == 3

    study = table_study(2)
    assert in_thread(asking) == []
    assert study.trials[2].state == TrialState.FAIL


def test_one_thread_may_ask_and_another_tell() -> None:
    """As a server does that handles each request in a thread of its own."""
    study = table_study()
    asked: list[optuna.Trial] = []
    objective = TableObjective()
    for _ in range(3):
        assert in_thread(lambda: asked.append(study.ask())) == []
    for trial in asked:
        told(study, trial, objective)
    study.optimize(objective)
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


@pytest.mark.parametrize("method", ["before_trial", "infer_relative_search_space"])
def test_an_error_in_the_base_sampler_leaves_nothing_held(method: str) -> None:
    """Before Optuna 4.6 it asks for the search space within `ask`."""
    left = [1, 2, 3]

    def fail(study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if left:
            raise ValueError(f"no space, {left.pop()}")
        return {}

    base = InOrder()
    setattr(base, method, fail)
    study = table_study(1, base=base)
    with pytest.raises(ValueError, match="no space"):
        study.optimize(TableObjective())
    assert TrialState.RUNNING not in {trial.state for trial in study.trials}
    other = table_study(1, storage=study._storage)
    assert in_thread(lambda: other.optimize(TableObjective([RIVALS[0], *RIVALS]))) == []
    assert final(other).params == other.best_params


def test_a_long_wait_names_what_is_waited_for() -> None:
    study = table_study(1)
    held = study.ask()
    known = looking(study).known
    late = study._storage.get_trial(held._trial_id)
    assert f"one of the learners {held.number} (trial {held.number})" in waiting._complaint(
        known, late
    )
    taken = {7: Facts(7, enqueued={"x": 1})}
    assert "taken and not started" in waiting._complaint(replace(known, unfinished=taken), late)
    nobody = waiting._complaint(replace(known, unfinished={}), late)
    assert "as the rule asks, though no learner is in training" in nobody


# Two workers, one place


def place(study: optuna.Study) -> tuple[FrozenTrial, Run]:
    """Return a new trial and the run that its worker would claim."""
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    worker = looking(study)
    worker.known = replace(worker.known, newest=(-1, 2, ""))
    asking = Asking(study, worker, trial, study.pruner.policy, 2, None)
    run = claims._offer(asking, may_be_late=True, is_over=False)
    assert run is not None
    assert run.learner == trial.number
    return trial, run


def stands(study: optuna.Study, trial: FrozenTrial, run: Run) -> bool:
    if claims._is_only_claim(looking(study), trial, run):
        return True
    log.write_run(study, trial, Run(None, n_learners=2, trial=trial.number))
    return False


@pytest.fixture
def workers() -> list[optuna.Study]:
    """Two workers on a study of two learners, of which one has started."""
    storage = InMemoryStorage()
    table_study(2, storage=storage).optimize(TableObjective(), n_trials=1)
    return [table_study(2, storage=storage, base=RandomSampler()) for _ in range(2)]


@pytest.mark.parametrize(
    ("left", "is_run"), [(-0.01, True), (None, False)], ids=["of timeout", "of seconds"]
)
def test_a_trial_that_optuna_began_before_its_timeout_is_not_empty(
    workers: list[optuna.Study],
    left: float | None,
    is_run: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time ends while its worker looks at the study."""
    study = workers[0]
    trial = study._storage.get_trial(study._storage.create_new_trial(study._study_id))
    worker = looking(study)
    worker.horizon = time.monotonic() - 0.01
    monkeypatch.setattr(host, "seconds_left", lambda study: left)
    run = waiting.assign(Asking(study, worker, trial, study.pruner.policy, 2, None))
    assert (run.learner is not None) == is_run


@pytest.mark.parametrize("is_lower_first", [False, True])
def test_the_second_to_look_does_not_take_a_place_that_is_taken(
    workers: list[optuna.Study], is_lower_first: bool
) -> None:
    """Whatever their numbers: the first has looked, and gone ahead, before the other claimed."""
    for study in workers:
        worker_of(study).patience = Patience(rival=0.1)
    both = [(study, *place(study)) for study in workers]
    first, second = both if is_lower_first else reversed(both)
    log.write_run(first[0], first[1], first[2])
    assert stands(*first)
    log.write_run(second[0], second[1], second[2])
    assert not stands(*second)
    assert len(looking(workers[0]).known.learners) == 2


def test_of_two_that_claim_at_once_the_lower_number_stays(workers: list[optuna.Study]) -> None:
    both = [(study, *place(study)) for study in workers]
    for study, trial, run in both:
        log.write_run(study, trial, run)
    lower: list[bool] = []
    thread = threading.Thread(target=lambda: lower.append(stands(*both[0])), daemon=True)
    thread.start()
    assert not stands(*both[1])
    thread.join(30)
    assert lower == [True]


def test_a_claim_that_another_worker_has_overwritten_is_theirs(
    workers: list[optuna.Study],
) -> None:
    """Optuna may hand one waiting trial to two workers; both may then write their claims."""
    study, trial, run = workers[0], *place(workers[0])
    log.write_run(study, trial, run)
    log.write_run(study, trial, replace(run, learner=None, worker="another"))
    worker_of(study).look()
    with pytest.raises(TakenError, match=f"Trial {trial.number} was handed to two workers"):
        stands(study, trial, run)


@pytest.mark.parametrize("seed", range(2))
def test_waiting_threads_never_begin_one_learner_too_many(seed: int) -> None:
    """Failing first runs free places again and again."""

    def failing(trial: optuna.Trial) -> float:
        raise optuna.TrialPruned

    storage = InMemoryStorage()
    studies = [table_study(3, storage=storage, base=RandomSampler(seed=i)) for i in range(4)]
    in_threads(*(partial(own.optimize, failing, n_trials=30) for own in studies))
    assert len(learning_curves(studies[0])) == 3


# One visit


@dataclass(frozen=True)
class Counted(DAUB):
    """Notes the questions that it is asked."""

    asked: list[str] = field(default_factory=list, compare=False)

    def decide(self, pool: Pool) -> Decision:
        self.asked.append("decide")
        return super().decide(pool)

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        self.asked.append("start")
        return super().start(pool, learner, size)


def test_of_a_new_trial_the_policy_is_asked_once_and_once_more_when_its_parameters_are_known() -> (
    None
):
    policy = Counted(sizes=SIZES)
    study = table_study(pruner=AllocationPruner(policy))
    for _ in range(3):
        policy.asked.clear()
        trial = study.ask()
        assert policy.asked == ["decide"]
        trial.suggest_int("row", 0, 4)
        assert policy.asked == ["decide"]
        assert next(training_sizes(trial)) == SIZES[0]
        assert policy.asked == ["decide", "start"]


@dataclass(frozen=True)
class Starting(DAUB):
    """Starts new learners on the second size, and declines odd ones."""

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        if learner % 2:
            return Drop(learner, Reason("it is odd"))
        return Extend(learner, self.sizes[1], Reason("it is even"))


def test_who_asks_for_sizes_again_is_told_the_same() -> None:
    study = table_study(pruner=AllocationPruner(Starting(sizes=SIZES)))
    same, odd = "has the parameters of learner 0", "declined: it is odd"
    for row, answer in ((0, SIZES[1]), (1, odd), (0, same)):
        study.enqueue_trial({"row": row})
        trial = study.ask()
        trial.suggest_int("row", 0, 4)
        for _ in range(2):
            if isinstance(answer, int):
                assert next(training_sizes(trial)) == answer
            else:
                with pytest.raises(optuna.TrialPruned, match=answer):
                    next(training_sizes(trial))


def test_a_worker_with_the_seed_of_another_does_not_follow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite(tmp_path)

    def study() -> optuna.Study:
        return pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0), storage=url, name="one")

    first = study()
    for _ in range(4):
        trial = first.ask()
        trial.suggest_float("x", 0, 1)
        assert next(training_sizes(trial))
    monkeypatch.setattr("optuna_daub.study.liveness.this_worker", lambda: "elsewhere|1|1")
    second = study()
    for _ in range(4):
        trial = second.ask()
        trial.suggest_float("x", 0, 1)
        with suppress(optuna.TrialPruned):
            next(training_sizes(trial))
    assert list(repeats(second)) == [4]
