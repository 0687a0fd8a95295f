"""What the trials of a study say about its learners, folded in as the trials come.

Nothing in here is more than a cache of the storage: a new process reads the trials once and knows
the same. Each finished trial is read once, each unfinished one at every `sync`, so that the cost
of a decision does not grow with the study.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import Counter
from dataclasses import replace
from datetime import datetime

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Drop
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study import keys
from optuna_daub.study.keys import Run


MAX_FAILURES = 2
"""Errors of a learner at one size after which it is dropped."""

UNDEALT_SECONDS = 10.0
"""How long a trial that was dealt nothing yet keeps the place of a learner; dealing takes
milliseconds, so its worker is dead after that."""


class Ledger:
    """The learners of a study: their curves, who runs them, and who is still to come."""

    def __init__(self, study: optuna.Study) -> None:
        self.lock = threading.RLock()
        """Held while a worker of this process chooses and claims a learner."""
        self.curves = Curves()
        """The curve of each learner, scores signed so that larger is better."""
        self.sign = -1 if study.direction == StudyDirection.MINIMIZE else 1
        self.n_learners = 0
        """How many learners the study's sampler was asked for."""
        self.unfinished: dict[int, FrozenTrial] = {}
        """Running and waiting trials by number."""
        self.first_runs: dict[int, int] = {}
        """The id of the trial that ran a learner first, by learner."""
        self._study_id = study._study_id
        self._n_trials = 0
        self._policy: Policy | None = None
        self._seen: dict[int, dict[int, Observation]] = {}
        self._failures: dict[int, dict[int, int]] = {}
        self._leaders: dict[int, float] = {}
        self._drops: dict[int, str] = {}
        self._newest_run = -1
        self._is_exhausted = False
        self._placeholder: int | None = None

    def sync(self, storage: BaseStorage) -> None:
        """Take in what has happened since the last call."""
        with self.lock:
            for number in sorted(self.unfinished):
                trial = storage.get_trial(self.unfinished[number]._trial_id)
                if trial.state == TrialState.WAITING:
                    break  # they are taken in order, so that those behind wait too
                self._fold(trial)
            while True:
                try:
                    trial_id = storage.get_trial_id_from_study_id_trial_number(
                        self._study_id, self._n_trials
                    )
                except KeyError:
                    return
                self._n_trials += 1
                self._fold(storage.get_trial(trial_id))

    def decide(self, policy: Policy, number: int | None = None) -> Decision:
        """Return what the policy says to the worker of trial `number`.

        Where learners are still to come, the policy sees one that has no data yet. Its id is the
        number of the next trial, or of this trial if the worker may begin it.
        """
        with self.lock:
            if policy != self._policy:
                self._policy = policy
                self._drops.clear()
                for learner in self.first_runs:
                    self._put_curve(learner)
            busy = self.busy(but_for=number)
            self._hold_place(number, busy)
            while isinstance(decision := policy.decide(self.curves, busy), Drop):
                self._drops[decision.learner] = str(decision.reason)
                self._put_curve(decision.learner)
            return decision

    def run_of(self, number: int | None) -> Run | None:
        """Return what an unfinished trial was dealt."""
        trial = None if number is None else self.unfinished.get(number)
        return None if trial is None else keys.read_run(trial.system_attrs)

    def running(self) -> dict[int, Run]:
        """Return what each running trial was dealt, by number, idle ones left out."""
        running = [t for t in self.unfinished.values() if t.state == TrialState.RUNNING]
        runs = {trial.number: keys.read_run(trial.system_attrs) for trial in running}
        return {number: run for number, run in runs.items() if run and run.learner is not None}

    def busy(self, but_for: int | None = None) -> set[int]:
        """Return the learners that are being run by other trials than number `but_for`."""
        return {
            run.learner
            for number, run in self.running().items()
            if number != but_for and run.learner is not None
        }

    def is_excess(self, number: int) -> bool:
        """Return whether trial `number` began a learner although there were enough before it."""
        earlier = [learner for learner in self.first_runs if learner < number]
        return len(earlier) >= self.n_learners and len(self.first_runs) > self.n_learners

    def scores(self, learner: int) -> dict[int, float]:
        """Return the scores of a learner by size, as the user reported them."""
        return {seen.size: self.sign * seen.score for seen in self.curves[learner].observations}

    def signed(self, seen: Observation) -> Observation:
        """Return an observation with its scores turned so that larger is better."""
        training_score = seen.training_score
        return replace(
            seen,
            score=self.sign * seen.score,
            training_score=None if training_score is None else self.sign * training_score,
        )

    def best_score_but_for(self, number: int) -> float | None:
        """Return the best signed score that a trial other than `number` has reached so far."""
        return max((score for n, score in self._leaders.items() if n != number), default=None)

    def _hold_place(self, number: int | None, busy: set[int]) -> None:
        """Show the policy one learner to come, if any; busy where other trials will begin it."""
        if self._placeholder is not None:
            self.curves.remove(self._placeholder)
            self._placeholder = None
        missing = 0 if self._is_exhausted else self.n_learners - len(self.first_runs)
        if missing <= 0:
            return
        run = self.run_of(number)
        may_begin = number is not None and (run is None or run.learner is None)
        self._placeholder = number if number is not None and may_begin else self._n_trials
        self.curves.put(LearningCurve(self._placeholder))
        ahead = [other for other in self.unfinished if other < self._placeholder]
        if sum(self._is_undealt(other) for other in ahead) >= missing:
            busy.add(self._placeholder)

    def _is_undealt(self, number: int) -> bool:
        """Return whether a trial was begun a moment ago and has not been dealt a learner yet."""
        trial = self.unfinished[number]
        if trial.state != TrialState.RUNNING or keys.read_run(trial.system_attrs) is not None:
            return False
        begun = trial.datetime_start
        return begun is None or (datetime.now() - begun).total_seconds() < UNDEALT_SECONDS

    def _fold(self, trial: FrozenTrial) -> None:
        if trial.state.is_finished():
            self.unfinished.pop(trial.number, None)
        else:
            self.unfinished[trial.number] = trial
        self._compare(trial)
        run = keys.read_run(trial.system_attrs)
        if run is None or trial.state == TrialState.WAITING:
            return
        if trial.number >= self._newest_run:
            self._newest_run = trial.number
            self.n_learners = run.n_learners
        self._is_exhausted = self._is_exhausted or keys.read_exhaustion(trial.system_attrs)
        if trial.number in self.first_runs and run.learner != trial.number:
            self._forget(trial.number)
        if run.learner is not None:
            self._fold_run(run.learner, run, trial)

    def _compare(self, trial: FrozenTrial) -> None:
        """Keep the trial among the two with the best scores; two, since one may be asking."""
        values = [*trial.intermediate_values.values(), *(trial.values or ())]
        scores = [self.sign * value for value in values if math.isfinite(value)]
        if scores:
            self._leaders[trial.number] = max(scores)
        if len(self._leaders) > 2:
            del self._leaders[min(self._leaders, key=self._leaders.__getitem__)]

    def _forget(self, learner: int) -> None:
        """Undo a learner whose trial has withdrawn from it, before it was trained."""
        del self.first_runs[learner], self._seen[learner], self._failures[learner]
        self.curves.remove(learner)

    def _fold_run(self, learner: int, run: Run, trial: FrozenTrial) -> None:
        if learner not in self.first_runs:
            self.first_runs[learner] = trial._trial_id
            if self._placeholder == learner:
                self._placeholder = None
            self._seen[learner] = {}
            self._failures[learner] = {}
            self.curves.put(LearningCurve(learner))
        before = len(self._seen[learner])
        for seen, _ in keys.read_observations(trial, run.inherited):
            self._seen[learner].setdefault(seen.size, self.signed(seen))
        failed_at = keys.read_failure(trial.system_attrs)
        if failed_at is not None:
            self._failures[learner][trial.number] = failed_at
        if len(self._seen[learner]) > before or failed_at is not None:
            self._put_curve(learner)

    def _put_curve(self, learner: int) -> None:
        curve = LearningCurve(learner, dropped=self._drops.get(learner, ""))
        for _, seen in sorted(self._seen[learner].items()):
            curve = curve.extended(seen)
        for size, count in Counter(self._failures[learner].values()).items():
            if count >= MAX_FAILURES:
                curve = curve.drop(f"failed {count} times at {size:,} examples")
        self.curves.put(curve)


_LEDGERS: weakref.WeakKeyDictionary[BaseStorage, dict[int, Ledger]] = weakref.WeakKeyDictionary()
_LEDGERS_LOCK = threading.Lock()


def ledger_of(study: optuna.Study) -> Ledger:
    """Return the ledger of a study, in step with the storage."""
    with _LEDGERS_LOCK:
        ledgers = _LEDGERS.setdefault(study._storage, {})
        if study._study_id not in ledgers:
            ledgers[study._study_id] = Ledger(study)
    ledger = ledgers[study._study_id]
    ledger.sync(study._storage)
    return ledger
