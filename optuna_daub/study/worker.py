"""All that one process remembers of a study: what it has read, what it runs, when it saw others.

Everything here but the times and the runs of this process's own is a cache of the storage: a new
process reads the trials once and knows the same.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from typing import Any

import optuna

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import Proposer
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.study import host
from optuna_daub.study import log
from optuna_daub.study.known import Known
from optuna_daub.study.last_run import of_few_trials
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.messages import repetition
from optuna_daub.study.messages import sentence
from optuna_daub.study.messages import status
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Run


_logger = logging.getLogger(__name__)

MOMENT = 0.01
"""Share of the time left that may pass before it is looked at anew: until then what was worked out
of a pool holds. How long a training will take is known less well."""


@dataclass(frozen=True)
class Assigned:
    """A trial of this process that runs a learner, or is idle."""

    run: Run
    thread: int
    """The thread that started it (`threading.get_ident`)."""
    is_optimizing: bool
    """True in `study.optimize`, in which a thread has one trial at a time."""
    explores: bool = False
    """True of a new learner in the stead of one that the base sampler would repeat."""
    point: Mapping[str, Any] | None = None
    """Parameters that a new learner takes from an earlier study."""


@dataclass(frozen=True)
class Turn:
    """The size that an objective was told to train on, and when (`time.perf_counter`)."""

    size: int
    since: float
    is_run: bool
    """True if the trial runs a learner of the pair, which others may take over."""
    is_reported: bool = False


@dataclass(frozen=True)
class Go:
    """It is still the learner's turn."""

    size: int
    """The number of examples to train on next."""


@dataclass(frozen=True)
class End:
    """The run is over."""

    reason: str
    """Why, as a sentence for users."""


class TurnOverError(optuna.TrialPruned):
    """Raised out of an objective whose learner's turn is over; its own `TrialPruned` rejects."""


@dataclass(frozen=True)
class Patience:
    """Patience of a worker: with others in seconds, with its base sampler in proposals."""

    recent: float = 60.0
    """A worker that was heard of counts as there for so long, also between two of its trials."""
    checked: float = 1.0
    """A worker goes on for so long before it asks whether its run is still its own: a look takes
    some milliseconds, and no worker is taken for dead as soon."""
    rival: float = 1.0
    """The lower trial number waits for so long for a rival to step back: one that is alive does
    within two looks, some milliseconds each."""
    proxied: float = 3600.0
    """A run behind a gRPC proxy, which passes no heartbeat on, may be silent for so long."""
    abandoned: float = 30.0
    """An enqueued trial may stay for so long as it was taken from the queue: being assigned its
    learner takes milliseconds."""
    declined: int = 100
    """New learners in a row that the policy may decline. Then the study ends: nothing that the
    base sampler proposes fits into the time left."""


@dataclass(eq=False)
class Worker:
    """One process at work on a study; `worker_of` has it.

    Times are `time.monotonic` if nothing else is said: the clocks of two machines are never
    compared.
    """

    reader: log.Reader
    """The trials as they were read."""
    sign: int
    """-1 if smaller scores are better, by which scores are turned on the way out."""
    patience: Patience = Patience()
    """Seconds and proposals for which it waits (`Patience`)."""
    known: Known = field(default_factory=Known)
    """Knowledge as of the last look."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while a thread of this process looks, or chooses and claims a learner: of two threads,
    the second sees what the first has written. Never held while one sleeps."""
    assigned: dict[int, Assigned] = field(default_factory=dict)
    """The trials that this process has started and not ended, by number."""
    turns: dict[int, Turn] = field(default_factory=dict)
    """The sizes that its objectives were told to train on last, by trial number."""
    told: dict[int, Go | End] = field(default_factory=dict)
    """The last answers of `trial.should_prune` to its trials, by number. A trial that ends by its
    own `TrialPruned` obeys that, or rejects its parameters; the policy would say something else
    by then, as others go on. No decision rests on it."""
    holders: dict[int, int] = field(default_factory=dict)
    """The threads (`threading.get_ident`) that have claimed this process's trials, by number."""
    newcomers: dict[int, bool] = field(default_factory=dict)
    """The running new learners by trial number: whether each is settled, that is, found to be the
    only one with its parameters."""
    seen: dict[int, tuple[tuple[Any, ...], float]] = field(default_factory=dict)
    """The sign of life of each unfinished trial, of whatever process, by number, and since when it
    has been the same."""
    seen_at: float = -math.inf
    """When it looked last. It may be stopped itself, and others go on meanwhile: what it has not
    looked at is no silence of theirs."""
    heard_of: dict[str, float] = field(default_factory=dict)
    """When a run of each worker was seen last."""
    proposer: Proposer = field(default_factory=LikeRecent)
    """Points that could become learners, as the sampler of this process finds them."""
    horizon: float | None = None
    """When the sampler's seconds are over, None if it has no limit."""
    limit: float = math.inf
    """The best score that there can be as far as is known, larger is better; sentences keep to
    it."""
    asked_since: float | None = None
    """When the first trial was asked for outside `study.optimize`."""
    begin: tuple[datetime | None, int] = None, 0
    """When the `study.optimize` that was seen last began (None in ask-and-tell), and its first
    trial: what was declined in another one may be in time in this one."""
    agreed: Policy | None = None
    """The policy whose sizes are known to be those that the study was started with."""
    failed_in_a_row: frozenset[int] = frozenset()
    """The learners that failed here one after another, the last ones that were trained."""
    given: set[str] = field(default_factory=set)
    """Points of earlier studies that this process has taken or left out, as text."""
    warned: set[str] = field(default_factory=set)
    """Kinds of warnings that were logged."""
    _settled: Known = field(default_factory=Known)  # folded from finished trials, for good
    _policy: Policy | None = None  # the one that was asked last, whose drops hold
    _shown: Pool = field(default_factory=Pool)  # the last one; where time is limited, with its end

    @property
    def is_late(self) -> bool:
        """True once the sampler's seconds are over."""
        return self.horizon is not None and time.monotonic() >= self.horizon

    def is_over(self, decision: Decision) -> bool:
        """Return whether no other run is to be started, given what the policy says."""
        n_declined = self.known.declined(self.begin[1])
        return isinstance(decision, Finish) or self.is_late or n_declined >= self.patience.declined

    def look(self) -> Known:
        """Take in what has happened since the last look, and return what is known."""
        # Reading and folding are one step: a thread that has read earlier and folds later would
        # undo what another has seen in between.
        with self.lock:
            now = self.seen_at = time.monotonic()
            news = self.reader.news()
            of_unfinished = self.told, self.holders, self.newcomers, self.turns, self.seen
            for trial in news:
                if trial.is_finished:
                    for remembered in of_unfinished:
                        remembered.pop(trial.number, None)
                    continue
                life = _sign_of_life(trial)
                if self.seen.get(trial.number, ((), now))[0] != life:
                    self.seen[trial.number] = life, now
            if news:
                self._settled = self._settled.with_trials([t for t in news if t.is_finished])
                self.known = self._settled.with_trials([*self.reader.unfinished.values()])
            for run in self.known.runs.values():
                self.heard_of[run.worker] = now
            return self.known

    def foresee(self, trial: Facts) -> Known:
        """Take in how an unfinished trial is about to end, before Optuna stores that it has."""
        with self.lock:
            others = {**self.reader.unfinished, trial.number: trial}
            self.known = self._settled.with_trials(others.values())
            return self.known

    def pool(
        self,
        policy: Policy,
        number: int | None = None,
        *,
        is_at_work: bool = True,
        proposes: bool = False,
    ) -> Pool:
        """Return all that a decision may use, as the worker of trial `number` sees it.

        If it `proposes`, its own learner is left out, which has no parameters yet. This is the
        pool for which a new learner was decided on, and what was worked out for it holds.

        Where one only looks on (`is_at_work` is False), no end is known: the seconds left are this
        process's own, and all processes are to show the same of a study.
        """
        with self.lock:
            if policy is not self._policy:  # another one has ruled some out, and has no say now
                self._policy = policy
                self._rule_out({})
            known, last = self.known, self._shown
            curves, busy = known.curves, known.busy(but_for=number)
            to_come, is_open = known.to_come(number), known.n_learners is None
            left = self._left() if is_at_work else None
            runs_left = self._trials_left() if is_open else None
            own = known.trained_by(number) if runs_left == 0 else None
            if own is not None:  # should it end now, there is no run in which another could go on
                busy = frozenset(curves) - {own}
            proposed = curves.get(number) if proposes and number is not None else None
            if proposed is not None and not proposed.observations:
                curves = curves.remove(proposed.learner)
            pool = Pool(
                curves=last.curves if curves == last.curves else curves,
                busy=busy,
                to_come=to_come,
                spent=known.spent,
                left=left,
                runs_left=runs_left,
                space=known.space,
                proposer=self.proposer,
            )
            # Nothing has happened since: what was worked out for that pool holds.
            if pool.curves is last.curves and pool == last:
                return last
            if is_at_work or self.horizon is None:
                self._shown = pool
            return pool

    def answer(
        self, policy: Policy, number: int | None = None, *, is_at_work: bool = True
    ) -> tuple[Pool, Decision]:
        """Return the pool as the worker of trial `number` sees it, and what the policy says."""
        # Under the lock, so that the pool and what is known stay of one moment, and the drops of
        # one thread's question are not lost in another's.
        with self.lock:
            while True:
                pool = self.pool(policy, number, is_at_work=is_at_work)
                last = None
                if is_at_work and number is not None and pool.to_come is not None:  # no open pool
                    is_last = self._trials_left() == 0
                    last = of_few_trials(self.known, policy, pool, number) if is_last else None
                decision = last or pool.once(policy.decide)
                if not isinstance(decision, Drop):
                    return pool, decision
                reason = sentence(decision.reason, self.sign, self.limit)
                self._rule_out({**self.known.drops, decision.learner: reason})

    @host.one_blas_thread()
    def turn(self, policy: Policy, number: int) -> Go | End:
        """Return whether trial `number` goes on, as of the last look; changes nothing."""
        known = self.known
        run = known.runs.get(number)
        if run is None:
            return End(GIVEN_UP)
        if run.learner is None:
            return End(run.reason)
        # An objective without `training_sizes` gets here with its first score.
        if run.learner == number and (other := known.twin(number)) is not None:
            return End(repetition(other))
        pool, decision = self.answer(policy, number)
        if isinstance(decision, Extend) and decision.learner == run.learner:
            return Go(decision.size)
        return End(status(policy, pool, self.sign, run.learner, decision, self.limit))

    def warn(self, kind: str, text: str) -> None:
        """Log a warning, once of each kind."""
        if kind not in self.warned:
            self.warned.add(kind)
            _logger.warning("%s", text)

    def holds(self, number: int, learner: int | None = None) -> bool:
        """Return whether a running trial is still this process's, and runs a learner, if given.

        The process may have been paused at any point since it looked last.
        """
        if time.monotonic() - self.seen_at > self.patience.checked:
            self.look()
        run = self.known.runs.get(number)
        return run is not None and learner in (None, run.learner)

    def silence(self, number: int) -> float:
        """Return for how many seconds an unfinished trial was the same whenever it was seen."""
        return self.seen_at - self.seen[number][1]

    def has_changed(self, number: int) -> bool:
        """Return whether an unfinished trial has changed since it was seen last."""
        return _sign_of_life(self.reader.now(number)) != self.seen[number][0]

    def _rule_out(self, drops: dict[int, str]) -> None:
        if drops != self.known.drops:
            self._settled = self._settled.ruling_out(drops)
            self.known = self.known.ruling_out(drops)

    def _left(self) -> Cost | None:
        """Return the seconds left, as in the last pool until a moment has passed."""
        if self.horizon is None:
            return None
        seconds, last = max(0.0, self.horizon - time.monotonic()), self._shown.left
        if last is not None and 0.0 <= last.seconds - seconds <= MOMENT * seconds:
            return last
        return Cost(0, seconds)

    def _trials_left(self) -> int | None:
        """Return how many trials this thread may still start after its own.

        None if its `optimize` has no `n_trials`, or where these are the smaller part of the
        study's: many workers, or `optimize` in a loop, of which each does a little.
        """
        # It may be within the `optimize` of another study.
        is_optimizing = self.reader.thread_local.in_optimize_loop
        asked = host.trials_asked_for() if is_optimizing else None
        if asked is None:
            return None
        n_trials, n_begun = asked
        return max(0, n_trials - n_begun) if self.reader.n_trials - n_begun <= n_trials else None


_WORKERS: weakref.WeakKeyDictionary[optuna.Study, Worker] = weakref.WeakKeyDictionary()
_WORKERS_LOCK = threading.Lock()


def worker_of(study: optuna.Study) -> Worker:
    """Return what this process remembers of a study, as of its last look.

    One for each `optuna.Study` object and not for each study id, which a database may hand out
    again when a study is deleted.
    """
    with _WORKERS_LOCK:  # or two threads would make one each, and lock different locks
        worker = _WORKERS.get(study) if isinstance(study, optuna.Study) else None
        if worker is None:
            log.check_study(study)
            reader = log.Reader(study)
            worker = _WORKERS[study] = Worker(reader, reader.sign)
        return worker


def looking(study: optuna.Study) -> Worker:
    """Return what this process remembers of a study, in step with the storage."""
    worker = worker_of(study)
    worker.look()
    return worker


def _sign_of_life(trial: Facts) -> tuple[Any, ...]:
    """Return what changes of an unfinished trial as long as its worker goes on."""
    return trial.state, len(trial.params), len(trial.observations), trial.run
