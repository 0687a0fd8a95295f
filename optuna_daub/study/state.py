"""The trials of a study, read as a pool of learners.

A cache of the storage, but for `Here`: a new process reads the trials once and knows the same.
Each finished trial is read once, each unfinished one at every `sync`, so that the cost of a
decision does not grow with the study.

Scores are signed on the way in, so that larger is better. On the way out the code that hands one
to the user or to the base sampler signs it back (`State.sign`), and `messages` does in sentences.
"""

from __future__ import annotations

import copy
import math
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from datetime import datetime
from typing import Any
from typing import NamedTuple

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.study import host
from optuna_daub.study import storage as stored
from optuna_daub.study.failures import reason_to_drop
from optuna_daub.study.messages import sentence
from optuna_daub.study.points import Point
from optuna_daub.study.points import is_explored
from optuna_daub.study.points import point
from optuna_daub.study.points import unexplored
from optuna_daub.study.storage import Facts
from optuna_daub.study.storage import Failure
from optuna_daub.study.storage import Run


MOST_REPEATS = 10
"""Proposals in a row that repeat a known learner, after which the base sampler counts as having
nothing new: on a space of a few points it would repeat itself for ever."""

MOMENT = 0.01
"""Share of the time left that may pass before it is looked at anew: until then what was worked out
of a pool holds. How long a training will take is known less well."""

RECENT = 60.0
"""Seconds for which a worker that was heard of counts as there, also between two trials."""


@dataclass(frozen=True)
class Learner:
    """What is known of a learner beside its curve."""

    params: Mapping[str, Any]
    """Its parameters, as far as any of its runs has suggested them, or as they were enqueued."""
    distributions: Mapping[str, BaseDistribution] = field(default_factory=dict)
    """Where these were drawn from."""
    failures: Mapping[int, Failure] = field(default_factory=dict)
    """Its runs that failed, by trial number."""
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    """What its runs have noted; later runs are given it."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """The values of its constraints, as Optuna has them; a learner that violates one is no
    answer, and gets no more data."""


@dataclass
class Here:
    """What one process knows of a study and does not store: its own runs, and when it saw others.

    Times are `time.monotonic` where nothing else is said: the clocks of two machines are never
    compared.
    """

    newcomers: dict[int, bool] = field(default_factory=dict)
    """Its running newcomers, by trial number: whether each is settled, that is, found to be the
    only one with its parameters."""
    handed_out: dict[int, tuple[int, float]] = field(default_factory=dict)
    """The size that each of its runs trains on, and since when (`time.perf_counter`), by trial
    number."""
    told_to_end: set[int] = field(default_factory=set)
    """Its runs that were told that the turn is another's, by trial number."""
    unchanged_since: dict[int, float] = field(default_factory=dict)
    """When it saw each unfinished trial change last, of whatever process."""
    signs_of_life: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """What each unfinished trial showed when it was read last."""
    heard_of: dict[str, float] = field(default_factory=dict)
    """When a run of each worker was read last while it went on."""
    seen_at: float = -math.inf
    """When it looked last. It may be stopped itself, and others go on meanwhile: what it has not
    looked at is no silence of theirs."""
    horizon: float | None = None
    """When the sampler's seconds are over, None where it has no limit."""
    asked_since: float | None = None
    """When the first trial was asked for outside `study.optimize`."""
    begin: datetime | None = None
    """When the `study.optimize` that was seen last began; None in ask-and-tell."""
    n_declined: int = 0
    """Newcomers that the policy has declined since `begin`, or since anything was trained."""
    agreed: Policy | None = None
    """The policy whose sizes are known to be those that the study was begun with."""


class Answer(NamedTuple):
    """A decision, and the pool that it was made of."""

    pool: Pool
    decision: Decision


class State:
    """The learners of a study: their curves, the runs in flight, and the newcomers to come."""

    def __init__(self, study: optuna.Study) -> None:
        self.lock = threading.RLock()
        """Held while a worker of this process chooses and claims a learner."""
        self.sign = -1 if study.direction == StudyDirection.MINIMIZE else 1
        self.learners: dict[int, Learner] = {}
        """Every learner begun, by id."""
        self.unfinished: dict[int, FrozenTrial] = {}
        """Running and waiting trials by number."""
        self.runs: dict[int, Run] = {}
        """What each running trial was assigned, by number; others are missing."""
        self.here = Here()
        """What no other process knows."""
        self.n_learners: int | None = 0
        """How many learners the study's sampler was asked for; None for an open pool, 0 where no
        sampler of ours has begun a trial, so that nothing may be proposed."""
        self.is_begun = False
        """Whether any score has been observed."""
        self.copies: set[int] = set()
        """Trials whose records speak of learners of another study, or of a run that was retried:
        `study.add_trials` and Optuna's retries copy all that a trial bears."""
        self._storage = study._storage
        self._study_id = study._study_id
        # Says of each thread whether it is in this study's `optimize`.
        self._thread_local = study._thread_local
        # All learners and what was spent on them; `pool` adds what one worker sees.
        self._pool = Pool()
        # How many trials were read so far: the number of the next one.
        self._n_trials = 0
        # The number of the newest run, whose record last said `n_learners`.
        self._newest_run = -1
        # Whether the base sampler had nothing left to propose.
        self._is_exhausted = False
        # Idle trials for which a known learner was proposed once more, and how many of them were
        # read since anything was trained.
        self._repeats: set[int] = set()
        self._n_repeats = 0
        self._declined: set[int] = set()  # those whose parameters the policy declined
        # By trial, how many of its observations are in `spent` already.
        self._n_counted: dict[int, int] = {}
        # Learners by what `_key` says of their parameters.
        self._by_params: dict[str, tuple[int, ...]] = {}
        # Enqueued trials that were assigned nothing yet.
        self._queue: set[int] = set()
        # Trials whose parameters were enqueued anew.
        self._replaced: set[int] = set()
        # Trials whose learner others have taken over: it is theirs, whatever the worker writes.
        self._given_up: set[int] = set()
        # Runs of learners that are read later: a worker may wait and then resume a learner whose
        # first trial has a higher number than its own.
        self._early: dict[int, dict[int, FrozenTrial]] = {}
        # Learners with a COMPLETE trial on all the data.
        self._completed: set[int] = set()
        # Trials of other samplers, each as a learner, and the two best scores of them, by trial.
        self._alone = Pool()
        self._best_alone: dict[int, float] = {}
        # Workers that have trained something.
        self._well: set[str] = set()
        # The policy that was asked last, and why it drops learners, by learner.
        self._policy: Policy | None = None
        self._drops: dict[int, str] = {}
        # The pool that was handed out last; where time is limited, the last one with its end.
        self._shown = Pool()

    def sync(self) -> None:
        """Take in what has happened since the last call."""
        with self.lock:
            self.here.seen_at = time.monotonic()
            if not self._n_trials:
                # Read all at once: one by one takes ten times as long on a database.
                trials = self._storage.get_all_trials(self._study_id, deepcopy=False)
                for trial in trials:
                    self._fold(trial)
                self._n_trials = len(trials)
                return
            is_queue_seen = False  # trials wait in order: behind one that waits, the others do too
            for _, known in sorted(self.unfinished.items()):
                if known.state == TrialState.WAITING and is_queue_seen:
                    continue
                trial = self._storage.get_trial(known._trial_id)
                is_queue_seen = is_queue_seen or trial.state == TrialState.WAITING
                if trial is not known:  # some storages hand out the same object until it changes
                    self._fold(trial)
            find = self._storage.get_trial_id_from_study_id_trial_number
            while True:
                try:
                    trial_id = find(self._study_id, self._n_trials)
                except KeyError:
                    return
                self._n_trials += 1
                self._fold(self._storage.get_trial(trial_id))

    def pool(self, policy: Policy, number: int | None = None, *, is_at_work: bool = True) -> Pool:
        """Return all that a decision may use, as the worker of trial `number` sees it.

        Where one only looks on (`is_at_work` is False), no end is known: the seconds left are this
        process's own, and all processes are to show the same of a study.
        """
        with self.lock:
            if policy is not self._policy:
                self._policy, dropped, self._drops = policy, self._drops, {}
                for learner in dropped:  # by another policy, which has no say any more
                    self._put(self._pool.curves[learner])
            last, left = self._shown, None
            if self.here.horizon is not None and is_at_work:
                seconds = max(0.0, self.here.horizon - time.monotonic())
                left = Cost(0, seconds)
                passed = math.inf if last.left is None else last.left.seconds - seconds
                if 0.0 <= passed <= MOMENT * seconds:
                    left = last.left
            busy, runs_left = self.busy(but_for=number), self._runs_left()
            own = self._begun_by(number) if runs_left == 0 else None
            if own is not None:  # should it end now, there is no run in which another could go on
                busy = frozenset(self._pool.curves) - {own}
            pool = replace(
                self._pool,
                busy=busy,
                to_come=self._to_come(number),
                left=left,
                runs_left=runs_left,
            )
            # Nothing has happened since: what was worked out for that pool holds.
            if pool.curves is last.curves and pool == last:
                return last
            if is_at_work or self.here.horizon is None:
                self._shown = pool
            return pool

    def answer(
        self, policy: Policy, number: int | None = None, *, is_at_work: bool = True
    ) -> Answer:
        """Return what the policy says to the worker of trial `number`, and of which pool."""
        with self.lock:
            while True:
                pool = self.pool(policy, number, is_at_work=is_at_work)
                decision = pool.once(policy.decide)
                if not isinstance(decision, Drop):
                    return Answer(pool, decision)
                self._drops[decision.learner] = sentence(decision.reason, self.sign)
                self._put(pool.curves[decision.learner])

    def decide(self, policy: Policy, number: int | None = None) -> Decision:
        """Return what the policy says to the worker of trial `number`."""
        return self.answer(policy, number).decision

    def curve(self, learner: int) -> LearningCurve:
        """Return the learning curve of a learner, signed so that larger is better."""
        return self._pool.curves[learner]

    def is_done(self, learner: int, full_size: int) -> bool:
        """Return whether a learner was trained on all the data, with a score to show for it."""
        curve = self._pool.curves[learner]
        return curve.size == full_size and curve.observations[-1].is_finite

    def busy(self, but_for: int | None = None) -> frozenset[int]:
        """Return the learners that are being run by other trials than number `but_for`."""
        return frozenset(
            run.learner
            for number, run in self.runs.items()
            if number != but_for and run.learner is not None
        )

    def silence(self, number: int) -> float:
        """Return for how many seconds an unfinished trial was the same whenever it was seen."""
        return self.here.seen_at - self.here.unchanged_since[number]

    def has_changed(self, number: int) -> bool:
        """Return whether an unfinished trial has changed since it was seen last."""
        trial = self._storage.get_trial(self.unfinished[number]._trial_id)
        return _sign_of_life(trial) != self.here.signs_of_life[number]

    def lose(self, learner: int, size: int) -> None:
        """Forget the score at `size`, whose run does not end COMPLETE."""
        self._put(self.curve(learner).without(size))

    def fail(self, learner: int, number: int, failure: Failure) -> None:
        """Take in that run `number` of a learner has failed, as soon as it is stored."""
        self._note(learner, number, failure)
        self._put(self.curve(learner))

    def has_failed(self, learner: int) -> bool:
        """Return whether a learner was dropped for its errors or for a score that is no number."""
        curve = self.curve(learner)
        is_judged = learner in self._drops or not self.is_feasible(learner)
        return bool(curve.dropped) and not is_judged

    def is_feasible(self, learner: int) -> bool:
        """Return whether a learner violates no constraint, as far as it was measured."""
        return not stored.violation(self.learners[learner].constraints)

    def is_replaced(self, number: int) -> bool:
        """Return whether a trial was taken from the queue and left, and its like enqueued anew."""
        return number in self._replaced

    def is_given_up(self, number: int) -> bool:
        """Return whether others have taken a running trial's learner from it."""
        trial = self.unfinished.get(number)  # another thread may take in its end meanwhile
        return trial is not None and stored.is_given_up(trial)

    def enqueued(self, state: TrialState) -> list[FrozenTrial]:
        """Return the enqueued trials in this state that were not assigned their learner yet."""
        queue = (self.unfinished[number] for number in sorted(self._queue - self._replaced))
        return [trial for trial in queue if trial.state == state]

    def too_many(self, number: int) -> tuple[int, ...] | None:
        """Return which newcomers have to step back lest trial `number` begins one too many.

        Empty where there is room; None where it has to step back itself.
        """
        others = [learner for learner in self.learners if learner != number]
        if self.n_learners is None or len(others) < self.n_learners:
            return ()
        if sum(learner < number for learner in others) >= self.n_learners:
            return None
        return tuple(i for i in others if i > number and not self.curve(i).observations) or None

    def twin(self, learner: int) -> int | None:
        """Return the learner that goes first of all with the same parameters, if it is another.

        That is the one with most data, or else the lowest id: every process names the same.
        """
        with self.lock:
            same = {learner, *self._others_like(learner)}
            first = max(same, key=lambda i: (self.curve(i).size, -i))
        return first if first != learner else None

    def forerunner(self, newcomer: int) -> int | None:
        """Return the learner with the same parameters that a newcomer gives way to.

        That is any but those that are in their first run as well, have a higher id, no score yet,
        and are not settled.
        """
        ahead = {}
        with self.lock:
            for other in self._others_like(newcomer):
                size, is_settled = self.curve(other).size, self._is_settled(other)
                if size or is_settled or other < newcomer or other not in self.runs:
                    ahead[other] = size, is_settled, -other
        return max(ahead, key=ahead.__getitem__, default=None)

    def is_contested(self, newcomer: int) -> bool:
        """Return whether another process runs a newcomer with the same parameters.

        One of this process looks under the lock, and sees what is settled by then.
        """
        with self.lock:
            others = self._others_like(newcomer)
            return any(i in self.runs and i not in self.here.newcomers for i in others)

    def _others_like(self, learner: int) -> set[int]:
        """Return the other learners with the same parameters."""
        return {*self._by_params.get(_key(self.learners[learner]), ())} - {learner}

    def _is_settled(self, learner: int) -> bool:
        run = self.runs.get(learner)
        return self.here.newcomers.get(learner, False) or (run is not None and run.is_settled)

    def failed_here(self, worker: str) -> frozenset[int]:
        """Return the learners that a worker has failed at their next size, if others can try."""
        now = time.monotonic()
        there = {run.worker for run in self.runs.values()}
        there |= {other for other, at in self.here.heard_of.items() if now - at < RECENT}
        if not there - {worker}:
            return frozenset()
        return frozenset(
            i
            for i, learner in self.learners.items()
            if any(
                failure.worker == worker and failure.size > self._pool.curves[i].size
                for failure in learner.failures.values()
            )
        )

    def scores(self, learner: int) -> dict[int, float]:
        """Return the scores of a learner by size, as the user reported them."""
        return {seen.size: self.sign * seen.score for seen in self.curve(learner).observations}

    def signed(self, seen: Observation) -> Observation:
        """Return an observation with its scores turned so that larger is better, or back."""
        if self.sign > 0:
            return seen
        training_score = None if seen.training_score is None else -seen.training_score
        return replace(seen, score=-seen.score, training_score=training_score)

    def alone(self, trial: FrozenTrial) -> tuple[Pool, float | None]:
        """Return the trials of other samplers, each as a learner, and the best score of another.

        The score is that of any trial but this one, at any size; None before there is one.
        """
        with self.lock:
            self._fold_alone(*stored.read(self._storage, trial))
            others = (score for n, score in self._best_alone.items() if n != trial.number)
            return self._alone, max(others, default=None)

    @property
    def has_repeated(self) -> bool:
        """Whether the base sampler's last proposal was a learner that is known."""
        return self._n_repeats > 0

    @property
    def _has_nothing_new(self) -> bool:
        """Whether the base sampler has run out of proposals, or repeats itself."""
        return self._is_exhausted or self._n_repeats >= MOST_REPEATS

    def unexplored(
        self, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> tuple[Any, ...]:
        """Return the value by which a newcomer becomes a new learner; empty where none is known.

        Args:
            trial: the newcomer, with the parameters that it was given so far.
            name: of the parameter.
            distribution: of the parameter.
        """
        with self.lock:
            spaces, known = self._points(frozenset({trial.number}))
        so_far = point(trial.params, trial.distributions)
        return unexplored(name, {**spaces, name: distribution}, so_far, known, trial.number)

    def is_explored(self) -> bool:
        """Return whether there is a learner for every point of the search space."""
        with self.lock:
            # One that is about to be trained may not have been given all its parameters.
            begun = {i for i in self.busy() if not self.curve(i).observations}
            spaces, known = self._points(frozenset(begun))
        return is_explored(spaces, {}, known)

    def _points(self, but_for: frozenset[int]) -> tuple[dict[str, BaseDistribution], list[Point]]:
        others = [learner for i, learner in self.learners.items() if i not in but_for]
        spaces = {n: d for learner in others for n, d in learner.distributions.items()}
        return spaces, [point(learner.params, learner.distributions) for learner in others]

    def has_room(self, number: int) -> bool:
        """Return whether trial `number` may begin a learner that was not enqueued."""
        if self._has_nothing_new:
            return False
        if self.n_learners is None:
            return True
        return len(self.learners) + self._n_enqueued(number) < self.n_learners

    def _to_come(self, number: int | None) -> int | None:
        """Return how many newcomers the worker of trial `number` may still see begun."""
        enqueued = self._n_enqueued(number)
        if self._has_nothing_new:
            return enqueued
        if self.n_learners is None:
            return None
        return max(enqueued, self.n_learners - len(self.learners))

    def _runs_left(self) -> int | None:
        """Return how many runs of an open pool this thread may still begin after its own.

        None where its `optimize` has no `n_trials`, or where these are the smaller part of the
        study's: many workers, or `optimize` in a loop, of which each does a little.
        """
        if self.n_learners is not None or not self._thread_local.in_optimize_loop:
            return None  # it may be within the `optimize` of another study
        asked = host.trials_asked_for()
        if asked is None:
            return None
        n_trials, n_begun = asked
        return max(0, n_trials - n_begun) if self._n_trials - n_begun <= n_trials else None

    def _begun_by(self, number: int | None) -> int | None:
        """Return the learner that trial `number` has trained, None where it has trained none."""
        run = None if number is None else self.runs.get(number)
        if run is None or run.learner is None:
            return None
        return run.learner if self.curve(run.learner).size > run.inherited else None

    def _n_enqueued(self, number: int | None) -> int:
        """Return how many enqueued learners others will begin."""
        taken = sum(trial.number != number for trial in self.enqueued(TrialState.RUNNING))
        return taken + len(self.enqueued(TrialState.WAITING))

    def _fold(self, trial: FrozenTrial) -> None:
        """Take in a trial as it is now."""
        trial, facts = stored.read(self._storage, trial)
        number, run = trial.number, facts.run
        self._queue.discard(number)
        self.copies.discard(number)
        if facts.is_given_up:
            self._given_up.add(number)
        is_early = False
        if run is not None and self._is_copy(trial, run):
            self.copies.add(number)
            is_early = run.trial == number and run.learner not in self.learners
            if is_early and run.learner is not None:
                self._early.setdefault(run.learner, {})[number] = trial
            run = None
        is_finished = trial.state.is_finished()
        if is_finished:
            self.unfinished.pop(number, None)
            self.here.newcomers.pop(number, None)
            self.here.handed_out.pop(number, None)
            self.here.told_to_end.discard(number)
            self.here.unchanged_since.pop(number, None)
            self.here.signs_of_life.pop(number, None)
        else:
            self.unfinished[number] = trial
            sign_of_life = _sign_of_life(trial)
            if self.here.signs_of_life.get(number) != sign_of_life:
                self.here.signs_of_life[number] = sign_of_life
                self.here.unchanged_since[number] = time.monotonic()
            if facts.is_enqueued:
                self._queue.add(number)
        # A run that goes on is there all the time: its thread may be looking.
        if run is not None and trial.state == TrialState.RUNNING and not facts.is_given_up:
            self.runs[number] = run
            self.here.heard_of[run.worker] = time.monotonic()
        else:
            self.runs.pop(number, None)
        if facts.replaces is not None:
            self._replaced.add(facts.replaces)
        if run is not None and trial.state != TrialState.WAITING:
            self._fold_run(trial, run, facts)
            for early in self._early.pop(number, {}).values() if run.learner == number else ():
                self._fold(early)
        elif run is None and not is_early and (number not in self.copies or is_finished):
            self._fold_alone(trial, facts)

    def _is_copy(self, trial: FrozenTrial, run: Run) -> bool:
        """Return whether a record was written for another trial than the one that bears it."""
        if run.trial not in (trial.number, stored.UNKNOWN):
            return True
        if run.learner in (None, trial.number):
            return False
        first = self.learners.get(run.learner)
        if first is None:
            return run.learner not in self._given_up
        return any(
            first.params[name] != value and value == value  # NaN is a category too
            for name, value in trial.params.items()
            if name in first.distributions
        )

    def _fold_alone(self, trial: FrozenTrial, facts: Facts) -> None:
        """Take in a trial of another sampler: its curve, and whether it is among the best."""
        seen = [self.signed(observation) for observation in facts.observations.values()]
        finite = [observation for observation in seen if observation.is_finite]
        self._alone = self._alone.put(LearningCurve(trial.number).extended(*finite))
        values = [self.sign * value for value in trial.values or () if math.isfinite(value)]
        if scores := [*values, *(observation.score for observation in finite)]:
            self._best_alone[trial.number] = max(scores)
        if len(self._best_alone) > 2:  # two, since one may be asking
            del self._best_alone[min(self._best_alone, key=self._best_alone.__getitem__)]

    def _fold_run(self, trial: FrozenTrial, run: Run, facts: Facts) -> None:
        """Take in what a run says of its learner."""
        if trial.number >= self._newest_run:
            self._newest_run = trial.number
            self.n_learners = run.n_learners
        self._is_exhausted = self._is_exhausted or facts.is_exhausted
        is_withdrawn = run.learner != trial.number and not facts.is_given_up
        if trial.number in self.learners and is_withdrawn:
            self._forget(trial.number)  # withdrawn from it before it was trained
        if run.learner is None:
            if run.repeats is not None and trial.number not in self._repeats:
                self._repeats.add(trial.number)
                self._n_repeats += 1
            if run.is_declined and trial.number not in self._declined:
                self._declined.add(trial.number)
                self.here.n_declined += 1
            return
        learner = run.learner
        if learner not in self.learners:
            self.learners[learner] = Learner(stored.enqueued_params(trial))
            self._pool = self._pool.put(LearningCurve(learner))
        if learner == trial.number and facts.too_late:
            # It may be another point of the space by now than others train as this learner.
            on_time = copy.copy(trial)
            known_then = trial.distributions.keys() - facts.too_late
            on_time.distributions = {name: trial.distributions[name] for name in known_then}
            self._learn(learner, on_time, replace(facts, user_attrs={}, constraints={}))
            return
        self._learn(learner, trial, facts)
        seen = {n: self.signed(x) for n, x in facts.observations.items() if n <= run.full_size}
        known = self.curve(learner)
        # A probe whose result is lost was paid for all the same.
        n_counted = self._n_counted.get(trial.number, 0)
        before, news = [*seen.values()][:n_counted], [*seen.values()][n_counted:]
        self._n_counted[trial.number] = len(seen)
        # `trial.report` stores a score before its seconds are: some may have looked in between.
        late = [x for x in before if x.seconds and known.at(x.size) == replace(x, seconds=None)]
        costs = [*(Cost(x.size, x.seconds or 0.0) for x in news)]
        costs += [Cost(0, x.seconds or 0.0) for x in late]
        self._pool = replace(self._pool, spent=sum(costs, start=self._pool.spent))
        curve = known.without(*(x.size for x in late))
        if run.full_size in seen and trial.state == TrialState.COMPLETE:
            self._completed.add(learner)
        elif facts.is_lost and run.full_size in seen:
            del seen[run.full_size]
            if learner not in self._completed:  # by another run, after this one was given up
                curve = curve.without(run.full_size)
        if facts.failure is not None:
            self._note(learner, trial.number, facts.failure)
        added = [observation for size, observation in seen.items() if size not in curve.sizes]
        if added or facts.failure is not None or facts.constraints or curve is not known:
            self._put(curve, *added)
        if news:
            self._n_repeats = self.here.n_declined = 0
            self._trust(run.worker)

    def _learn(self, learner: int, trial: FrozenTrial, facts: Facts) -> None:
        """Keep what a run has suggested and noted; a first run may have failed before the end."""
        known = self.learners[learner]
        new = {n: d for n, d in trial.distributions.items() if n not in known.distributions}
        if new:
            self._unlist(learner)
            params = {**known.params, **{name: trial.params[name] for name in new}}
            known = replace(known, params=params, distributions={**known.distributions, **new})
            self._by_params[_key(known)] = (*self._by_params.get(_key(known), ()), learner)
            curve = replace(self.curve(learner), parameters=_suggested(known))
            self._pool = self._pool.put(curve)
        if facts.user_attrs:
            known = replace(known, user_attrs={**known.user_attrs, **facts.user_attrs})
        if facts.constraints:
            known = replace(known, constraints={**known.constraints, **facts.constraints})
        self.learners[learner] = known

    def _trust(self, worker: str) -> None:
        """Take in that a worker has trained something: what fails there is not its fault."""
        if worker in self._well:
            return
        self._well.add(worker)
        for learner, known in self.learners.items():
            if known.failures:
                self._put(self.curve(learner))

    def _note(self, learner: int, number: int, failure: Failure) -> None:
        known = self.learners[learner]
        failures = {**known.failures, number: failure}
        self.learners[learner] = replace(known, failures=failures)

    def _forget(self, learner: int) -> None:
        self._unlist(learner)
        del self.learners[learner]
        self._pool = replace(self._pool, curves=self._pool.curves.remove(learner))

    def _unlist(self, learner: int) -> None:
        key = _key(self.learners[learner])
        kept = tuple(other for other in self._by_params.get(key, ()) if other != learner)
        if kept:
            self._by_params[key] = kept
        else:
            self._by_params.pop(key, None)

    def _put(self, curve: LearningCurve, *news: Observation) -> None:
        """Take in new observations of a learner and whatever drops it."""
        learner = curve.learner
        seen = sorted((*curve.observations, *news), key=lambda each: each.size)
        known = self.learners[learner]
        dropped = self._drops.get(learner, "")
        curve = LearningCurve(learner, (), dropped, _suggested(known)).extended(*seen)
        if known.constraints and (reason := stored.violation(known.constraints)):
            curve = curve.drop(reason)
        if known.failures and (reason := reason_to_drop(known.failures, self._well)):
            curve = curve.drop(reason)
        self.is_begun = self.is_begun or bool(seen)
        self._pool = self._pool.put(curve)


_STATES: weakref.WeakKeyDictionary[optuna.Study, State] = weakref.WeakKeyDictionary()
_STATES_LOCK = threading.Lock()


def check_study(study: object) -> None:
    """Raise where an argument `study` is none, or has several objectives.

    Raises:
        ValueError: where it is no study.
        NotImplementedError: where it has several objectives, as `Trial.report` does.
    """
    if not isinstance(study, optuna.Study):
        raise ValueError(f"`study` must be a study of Optuna, but got {study!r}.")
    if len(study.directions) > 1:
        raise NotImplementedError(
            "Trial.report is not supported for multi-objective optimization."
        )


def state_of(study: optuna.Study) -> State:
    """Return the state of a study, as of its last `sync`.

    One for each `optuna.Study` object and not for each study id, which a database may hand out
    again when a study is deleted.
    """
    check_study(study)
    with _STATES_LOCK:
        if study not in _STATES:
            _STATES[study] = State(study)
        return _STATES[study]


def synced_state_of(study: optuna.Study) -> State:
    """Return the state of a study, in step with the storage."""
    state = state_of(study)
    state.sync()
    return state


def _sign_of_life(trial: FrozenTrial) -> tuple[Any, ...]:
    """Return what changes of an unfinished trial as long as its worker goes on."""
    run = stored.read_run(trial.system_attrs)
    return trial.state, len(trial.params), len(trial.intermediate_values), run


def _suggested(learner: Learner) -> dict[str, Any]:
    """Return the parameters of a learner but for what was enqueued and never asked for."""
    return {name: learner.params[name] for name in learner.distributions}


def _key(learner: Learner) -> str:
    """Return what two learners with the same parameters have in common.

    What was enqueued and never asked for by the objective is no parameter.
    """
    return repr(sorted(point(learner.params, learner.distributions).items()))
