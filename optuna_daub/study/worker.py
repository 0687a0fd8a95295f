"""The state of one study object: trials it has read, its own runs, and signs of other workers.

A new process can compute all of it from the storage, except times and the runs of this process.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from typing import Any

import optuna

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Reason
from optuna_daub.core.decision import Wait
from optuna_daub.core.decision import check_decision
from optuna_daub.core.limits import Limits
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.core.pool import Proposer
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.study import host
from optuna_daub.study import log
from optuna_daub.study.known import Known
from optuna_daub.study.last_run import of_few_trials
from optuna_daub.study.messages import TAKEN_FOR_DEAD
from optuna_daub.study.messages import repetition
from optuna_daub.study.messages import status
from optuna_daub.study.records import Facts
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.turns import Assigned
from optuna_daub.study.turns import End
from optuna_daub.study.turns import Go
from optuna_daub.study.turns import Patience
from optuna_daub.study.turns import Turn


_logger = logging.getLogger(__name__)

STALE_SHARE = 0.01
"""Share of the time left that may pass before it is read again. A new reading discards all results
for the pool, and the seconds of trainings are known less precisely anyway."""


@dataclass(eq=False)
class Worker:
    """The state of this process for one study object; times are from `time.monotonic`."""

    reader: log.Reader
    name: str
    """Name of the study."""
    sign: int
    """-1 if smaller scores are better, else 1. Scores are multiplied by it when they are shown."""
    patience: Patience = field(default_factory=Patience)
    known: Known = field(default_factory=Known)
    """Knowledge as of the last look."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while a thread looks, or chooses and claims a learner. So a second thread sees what the
    first has written. Never held during a sleep."""
    assigned: dict[int, Assigned] = field(default_factory=dict)
    """Trials that this process has started and not ended, by number."""
    first: float = math.inf
    """Number of the first trial that this study object started; infinity before any."""
    turns: dict[int, Turn] = field(default_factory=dict)
    """Last size given to the objective of each trial, by trial number."""
    told: dict[int, Go | End] = field(default_factory=dict)
    """Last answer of `trial.should_prune` to each trial, by number. It tells if an objective that
    raises `TrialPruned` obeys or rejects its parameters. No decision depends on it."""
    holders: dict[int, host.Holder] = field(default_factory=dict)
    """Threads that claimed trials through this study object, by number of unfinished trials."""
    newcomers: dict[int, bool] = field(default_factory=dict)
    """Running new learners by trial number. True once they are known to be the only ones with
    their parameters."""
    seen: dict[int, tuple[tuple[Any, ...], float]] = field(default_factory=dict)
    """Last sign of life of each unfinished trial, and the time of its last change."""
    seen_at: float = -math.inf
    """Time of the last look. Silence of others is counted up to it, since this process may have
    been stopped itself while they went on."""
    heard_of: dict[str, float] = field(default_factory=dict)
    """Time of the last look that saw a run of each worker, by worker."""
    proposer: Proposer = field(default_factory=LikeRecent)
    """Rule for the points that could become learners, given by this process's sampler."""
    horizon: float | None = None
    """Time at which the sampler's seconds are over; None without a limit."""
    limits: Limits = field(default_factory=Limits)
    """Limits of scores (larger is better). Reasons show none beyond them."""
    asked_since: float | None = None
    """Time of the first trial asked for outside `study.optimize`; None if there was none."""
    begin: tuple[datetime | None, int] = None, 0
    """Start of the latest `study.optimize` (None in ask-and-tell), and its first trial: a learner
    that was declined in an earlier one may be in time in this one."""
    agreed: Policy | None = None
    """Policy whose sizes are known to equal those that the study was started with."""
    failed_in_a_row: frozenset[int] = frozenset()
    """Learners of this process that failed since the last one that did not."""
    given: dict[str, int] = field(default_factory=dict)
    """Points of earlier studies, as text, with the trial of this process that took or skipped
    each."""
    warned: set[str] = field(default_factory=set)
    """Kinds of warnings that were already logged."""
    _settled: Known = field(default_factory=Known)  # from finished trials, final
    _news: list[Facts] = field(default_factory=list)  # trials that were read, but not united
    _policy: Policy | None = None  # the policy asked last; its drops are valid
    # The last pool. With a time limit it is the last one that knew the time left.
    _shown: Pool = field(default_factory=Pool)

    @property
    def is_late(self) -> bool:
        """True once the sampler's seconds are over."""
        return self.horizon is not None and time.monotonic() >= self.horizon

    def is_over(self, decision: Decision) -> bool:
        """Return whether no further run is to start, given the policy's decision."""
        n_declined = self.known.declined(self.begin[1])
        return isinstance(decision, Finish) or self.is_late or n_declined >= self.patience.declined

    def look(self) -> Known:
        """Read all changes since the last look, and return the knowledge of the study."""
        # Read and unite in one step. Otherwise a thread that read earlier and unites later would
        # undo the changes that another has seen in between.
        # The first look reads all trials.
        is_first = not self.reader.n_trials
        with self.lock, host.without_collections if is_first else nullcontext():
            now = self.seen_at = time.monotonic()
            # Kept until all are united, since an interrupt may come before.
            news = self._news = [*self._news, *self.reader.news(self.holders)]
            of_unfinished = self.told, self.holders, self.newcomers, self.turns, self.seen
            for trial in news:
                life = trial.state, len(trial.params), len(trial.observations), trial.run
                if trial.is_finished:
                    for remembered in of_unfinished:
                        remembered.pop(trial.number, None)
                    _COLLECTED.pop((self.name, trial.number, trial.start), None)
                elif self.seen.get(trial.number, ((), now))[0] != life:
                    self.seen[trial.number] = life, now
            if ended := [trial for trial in news if trial.is_finished]:
                self._settled = self._settled.with_trials(ended)
            if news:
                unfinished = self.reader.unfinished.values()
                self.known = self._settled.with_trials(unfinished).without_surplus()
            self._news = []
            for run in self.known.runs.values():
                self.heard_of[run.worker] = now
            return self.known

    def foresee(self, trial: Facts) -> Known:
        """Count an unfinished trial as it will end, before Optuna stores its end."""
        with self.lock:
            others = {**self.reader.unfinished, trial.number: trial}
            self.known = self._settled.with_trials(others.values()).without_surplus()
            return self.known

    def pool(
        self,
        policy: Policy,
        number: int | None = None,
        *,
        is_at_work: bool = True,
        proposes: bool = False,
    ) -> Pool:
        """Return the pool of all usable facts, as trial `number` sees it.

        If the trial `proposes`, its own learner has no parameters yet and is left out. So this is
        the pool on which the trial was decided, and results computed for that stay valid. If
        `is_at_work` is False, as for results and pictures, the time and the runs left are unknown:
        they belong to one process.
        """
        with self.lock:
            if policy is not self._policy:  # another policy's drops no longer count
                self._policy = policy
                self._rule_out({})
            known, last = self.known, self._shown
            left, runs_left = (self._left(), self._runs_left()) if is_at_work else (None, None)
            curves, busy, to_come = known.curves, known.busy(but_for=number), known.to_come(number)
            own = known.trained_by(number) if runs_left == 0 else None
            if own is not None:  # if it ended now, no run would be left to resume another
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
            # Nothing has changed, so results computed for that pool are still valid.
            if pool.curves is last.curves and pool == last:
                return last
            if is_at_work or self.horizon is None:
                self._shown = pool
            return pool

    def answer(
        self, policy: Policy, number: int | None = None, *, is_at_work: bool = True
    ) -> tuple[Pool, Decision]:
        """Return the pool as trial `number` sees it, and the policy's decision."""
        # Under the lock: the pool and `known` must be of one moment, and drops found by one
        # thread must not be lost in another.
        with self.lock:
            while True:
                pool = self.pool(policy, number, is_at_work=is_at_work)
                last = None
                if is_at_work and number is not None and pool.to_come is not None:
                    is_last = self._trials_left() == 0
                    last = of_few_trials(self.known, policy, pool, number) if is_last else None
                with host.one_blas_thread():
                    decision = last or pool.once(policy.decide)
                if not type(policy).__module__.startswith("optuna_daub."):  # a user's own rule
                    decision = _checked(decision, pool, policy, is_at_work=is_at_work)
                if not isinstance(decision, Drop):
                    return pool, decision
                reason = decision.reason.told(self.sign, self.limits)
                self._rule_out({**self.known.drops, decision.learner: reason})

    def turn(self, policy: Policy, number: int, *, has_measured: bool = False) -> Go | End:
        """Return whether trial `number` goes on, as of the last look. Stores nothing.

        If it has measured a constraint it ends, since Optuna keeps a trial's first value: that of
        the next size is another run's.
        """
        known = self.known
        run = known.runs.get(number)
        if run is None:
            return End(TAKEN_FOR_DEAD)
        if run.learner is None:
            return End(run.reason)
        pool, decision = self.answer(policy, number)
        # An objective without `training_sizes` is compared at its first score.
        if run.learner == number and (other := known.twin(number)) is not None:
            return End(repetition(other))
        if isinstance(decision, Extend) and decision.learner == run.learner:
            if has_measured:
                return End(f"the next run measures its constraints at {decision.size:,}")
            return Go(decision.size)
        return End(status(policy, pool, self.sign, run.learner, decision, self.limits))

    def warn(self, kind: str, text: str) -> None:
        """Log a warning, once of each kind."""
        if kind not in self.warned:
            self.warned.add(kind)
            _logger.warning("%s", text)

    def holds(self, number: int, learner: int | None = None) -> bool:
        """Return whether a running trial is still this process's, and runs `learner`, if given."""
        # The worker may have been paused at any point since its last look.
        if time.monotonic() - self.seen_at > self.patience.checked:
            self.look()
        run = self.known.runs.get(number)
        return run is not None and learner in (None, run.learner) and not self.is_taken(number)

    def is_taken(self, number: int) -> bool:
        """Return whether another worker has a trial that this process has started.

        On SQLite Optuna may hand one trial to two. The one whose record was written last has it.
        """
        run, assigned = self.known.runs.get(number), self.assigned.get(number)
        return run is not None and assigned is not None and run.worker != assigned.run.worker

    def silence(self, number: int) -> float:
        """Return the seconds for which an unfinished trial was unchanged at the last look."""
        return self.seen_at - self.seen[number][1]

    def _rule_out(self, drops: dict[int, str]) -> None:
        if drops != self.known.drops:
            self._settled = self._settled.ruling_out(drops)
            self.known = self.known.ruling_out(drops)

    def _left(self) -> Cost | None:
        """Return the seconds left; those of the last pool until `STALE_SHARE` has passed."""
        if self.horizon is None:
            return None
        seconds, last = max(0.0, self.horizon - time.monotonic()), self._shown.left
        if last is not None and 0.0 <= last.seconds - seconds <= STALE_SHARE * seconds:
            return last
        return Cost(0, seconds)

    def _runs_left(self) -> int | None:
        """Return the number of trials left in an open pool; None in a closed one."""
        return self._trials_left() if self.known.newest[1] is None else None

    def _trials_left(self) -> int | None:
        """Return the number of trials that this thread may start after this one.

        None without `n_trials`, or if it is 1. None too if this `optimize` makes the smaller part
        of the study's trials, as with many workers or in a loop: its last trial is not the
        study's last.
        """
        # The thread may be in the `optimize` of another study.
        is_optimizing = self.reader.thread_local.in_optimize_loop
        asked = host.trials_asked_for() if is_optimizing else None
        if asked is None or asked[0] <= 1:
            return None
        n_trials, n_begun = asked
        return max(0, n_trials - n_begun) if self.reader.n_trials - n_begun <= n_trials else None


def _checked(decision: Decision, pool: Pool, policy: Policy, *, is_at_work: bool) -> Decision:
    """Return a decision; raise a SetupError if it cannot be carried out, since no trial can go on.

    Results can still be read.
    """
    try:
        check_decision(decision, pool, policy.sizes, type(policy).__name__)
    except ValueError as error:
        if is_at_work:
            raise SetupError(str(error)) from error
        return Wait(Reason(str(error).replace("{", "{{").replace("}", "}}")))
    return decision


_WORKERS: weakref.WeakKeyDictionary[optuna.Study, Worker] = weakref.WeakKeyDictionary()
_WORKERS_LOCK = threading.Lock()

_COLLECTED: dict[tuple[str, int, datetime | None], host.Holder] = {}
"""Holders of trials of garbage-collected study objects, by study name, trial number and start. The
same name and number may come again, in another storage or after a deletion."""


def worker_of(study: optuna.Study) -> Worker:
    """Return the state of this process for a study, as of its last look.

    There is one for each `optuna.Study` object, since databases use ids of deleted studies again.
    """
    with _WORKERS_LOCK:  # else two threads could create one each, with two locks
        worker = _WORKERS.get(study) if isinstance(study, optuna.Study) else None
        if worker is None:
            log.check_study(study)
            reader = log.Reader(study)
            worker = _WORKERS[study] = Worker(reader, study.study_name, reader.sign)
            weakref.finalize(study, _keep_holders, worker).atexit = False
        return worker


def holders_elsewhere(worker: Worker, number: int) -> list[host.Holder]:
    """Return who holds a trial through other study objects of this process.

    These objects may be garbage-collected; a trial asked for through one may still be told.
    """
    start = _start(worker, number)
    collected = _COLLECTED.get((worker.name, number, start))
    with _WORKERS_LOCK:  # else the dictionary could change while it is read
        others = [x for x in _WORKERS.values() if x.name == worker.name and x is not worker]
    # Without the other's lock, since its thread may wait for this one's: one lookup is atomic,
    # and a claim notes its holder before the record by which others know it.
    found = [x.holders.get(number) for x in others if _start(x, number) in (None, start)]
    return [holder for holder in (collected, *found) if holder is not None]


def _start(worker: Worker, number: int) -> datetime | None:
    """Return the start of an unfinished trial. None if the last look did not see it."""
    facts = worker.reader.unfinished.get(number)
    return None if facts is None else facts.start


def _keep_holders(worker: Worker) -> None:
    """Keep the holders of a garbage-collected study object. Its trials may still be told."""
    # Without a lock: a garbage collection calls this, maybe in a thread that holds it.
    for number, holder in worker.holders.items():
        if (start := _start(worker, number)) is not None:
            _COLLECTED[worker.name, number, start] = holder


def looking(study: optuna.Study) -> Worker:
    """Return the state of this process for a study, after a look."""
    worker = worker_of(study)
    worker.look()
    return worker
