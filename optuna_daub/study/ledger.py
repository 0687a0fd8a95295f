"""What the trials of a study say about its learners, folded in as the trials come.

Nothing in here is more than a cache of the storage: a new process reads the trials once and knows
the same. Each finished trial is read once, each unfinished one at every `sync`, so that the cost
of a decision does not grow with the study.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
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
from optuna_daub.study import workers
from optuna_daub.study.failures import reason_to_drop
from optuna_daub.study.keys import Failure
from optuna_daub.study.keys import Run


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
        self.running: dict[int, Run] = {}
        """What each running trial was dealt, by number; those dealt nothing yet are missing."""
        self.params: dict[int, dict[str, Any]] = {}
        """The parameters of each learner begun, as far as any of its runs has suggested them."""
        self.distributions: dict[int, dict[str, BaseDistribution]] = {}
        """The distributions of these parameters."""
        self.is_begun = False
        """Whether any score has been observed."""
        self.agreed: Policy | None = None
        """The policy whose sizes are known to be those that the study was begun with."""
        self.drops: dict[int, str] = {}
        """Why the policy has dropped learners, by learner."""
        self._study_id = study._study_id
        self._n_trials = 0
        self._answered: tuple[tuple[Policy, int | None, int], Decision] | None = None
        self._newest_run = -1
        self._is_exhausted = False
        self._placeholder: int | None = None
        self._policy: Policy | None = None
        self._failures: dict[int, dict[int, Failure]] = {}
        self._leaders: dict[int, float] = {}

    def sync(self, storage: BaseStorage) -> None:
        """Take in what has happened since the last call."""
        with self.lock:
            is_queue_seen = False  # trials wait in order: behind one that waits, the others do too
            for _, known in sorted(self.unfinished.items()):
                if known.state == TrialState.WAITING and is_queue_seen:
                    continue
                trial = storage.get_trial(known._trial_id)
                is_queue_seen = is_queue_seen or trial.state == TrialState.WAITING
                if trial is not known:  # some storages hand out the same object until it changes
                    self._fold(storage, trial)
            find = storage.get_trial_id_from_study_id_trial_number
            while True:
                try:
                    trial_id = find(self._study_id, self._n_trials)
                except KeyError:
                    return
                self._n_trials += 1
                self._fold(storage, storage.get_trial(trial_id))

    def decide(self, policy: Policy, number: int | None = None) -> Decision:
        """Return what the policy says to the worker of trial `number`.

        Where learners are still to come, the policy sees one that has no data yet. Its id is the
        number of the next trial, or of this trial if the worker may begin it.
        """
        with self.lock:
            question = policy, number, self.n_learners
            if self._answered is not None and self._answered[0] == question:
                return self._answered[1]  # nothing has happened since
            if policy is not self._policy:
                self._adopt(policy)
            busy = self.busy(but_for=number)
            self._hold_place(number, busy)
            while isinstance(decision := policy.decide(self.curves, busy), Drop):
                self.drops[decision.learner] = str(decision.reason)
                self._put_curve(self.curves[decision.learner])
            self._answered = question, decision
            return decision

    def busy(self, but_for: int | None = None) -> set[int]:
        """Return the learners that are being run by other trials than number `but_for`."""
        return {
            run.learner
            for number, run in self.running.items()
            if number != but_for and run.learner is not None
        }

    def n_enqueued(self, state: TrialState) -> int:
        """Return how many enqueued trials in this state were not dealt their learner yet."""
        unfinished = self.unfinished.values()
        return sum(trial.state == state and keys.is_enqueued(trial) for trial in unfinished)

    def is_abandoned(self, number: int) -> bool:
        """Return whether an unfinished trial was begun long ago and dealt nothing ever since."""
        return self._is_undealt(number) and not workers.is_just_begun(self.unfinished[number])

    def is_excess(self, number: int) -> bool:
        """Return whether trial `number` began a learner although there were enough before it."""
        is_crowded = len(self.params) > self.n_learners
        return is_crowded and sum(n < number for n in self.params) >= self.n_learners

    def scores(self, learner: int) -> dict[int, float]:
        """Return the scores of a learner by size, as the user reported them."""
        return {seen.size: self.sign * seen.score for seen in self.curves[learner].observations}

    def signed(self, seen: Observation) -> Observation:
        """Return an observation with its scores turned so that larger is better, or back."""
        if self.sign > 0:
            return seen
        training_score = None if seen.training_score is None else -seen.training_score
        return replace(seen, score=-seen.score, training_score=training_score)

    def best_score_but_for(self, number: int) -> float | None:
        """Return the best signed score that a trial of no learner, but `number`, has reached."""
        return max((score for n, score in self._leaders.items() if n != number), default=None)

    def _adopt(self, policy: Policy) -> None:
        """Forget what another policy has dropped, and how it ranked the learners."""
        self._policy, self.drops, dropped = policy, {}, self.drops
        for learner in dropped:
            self._put_curve(self.curves[learner])
        self.curves = Curves(self.curves.values())

    def _hold_place(self, number: int | None, busy: set[int]) -> None:
        """Show the policy one learner to come, if any; busy where other trials will begin it."""
        waiting, taken = map(self.n_enqueued, (TrialState.WAITING, TrialState.RUNNING))
        left = 0 if self._is_exhausted else self.n_learners - len(self.params)
        missing = max(waiting + taken, left)
        run = None if number is None else self.running.get(number)
        may_begin = number is not None and (run is None or run.learner is None)
        place = number if number is not None and may_begin else self._n_trials
        if self._placeholder is not None and (missing <= 0 or self._placeholder != place):
            self.curves.remove(self._placeholder)
            self._placeholder = None
        if missing <= 0:
            return
        if self._placeholder is None:
            self._placeholder = place
            self.curves.put(LearningCurve(place))
        ahead = sum(n < place and self._is_new(n) for n in self.unfinished)
        if taken + ahead + (waiting if may_begin else 0) >= missing:
            busy.add(place)

    def _is_new(self, number: int) -> bool:
        """Return whether a trial that nobody enqueued was begun a moment ago."""
        is_enqueued = keys.is_enqueued(self.unfinished[number])
        return self._is_undealt(number) and not is_enqueued and not self.is_abandoned(number)

    def _is_undealt(self, number: int) -> bool:
        return self.unfinished[number].state == TrialState.RUNNING and number not in self.running

    def _fold(self, storage: BaseStorage, trial: FrozenTrial) -> None:
        trial = keys.whole(storage, trial)
        run = keys.read_run(trial.system_attrs)
        self._answered = None
        self.running.pop(trial.number, None)
        if trial.state.is_finished():
            self.unfinished.pop(trial.number, None)
        else:
            self.unfinished[trial.number] = trial
            if run is not None and trial.state == TrialState.RUNNING:
                self.running[trial.number] = run
        if run is None:
            self._compare(trial)
        elif trial.state != TrialState.WAITING:
            self._fold_run(run, trial)

    def _compare(self, trial: FrozenTrial) -> None:
        """Keep the trial among the two with the best scores; two, since one may be asking."""
        values = [*trial.intermediate_values.values(), *(trial.values or ())]
        scores = [self.sign * value for value in values if math.isfinite(value)]
        if scores:
            self._leaders[trial.number] = max(scores)
        if len(self._leaders) > 2:
            del self._leaders[min(self._leaders, key=self._leaders.__getitem__)]

    def _fold_run(self, run: Run, trial: FrozenTrial) -> None:
        if trial.number >= self._newest_run:
            self._newest_run = trial.number
            self.n_learners = run.n_learners
        self._is_exhausted = self._is_exhausted or keys.read_exhaustion(trial.system_attrs)
        if trial.number in self.params and run.learner != trial.number:
            self._forget(trial.number)  # withdrawn from it before it was trained
        if run.learner is None:
            return
        if run.learner not in self.params:
            self._begin(run.learner, trial)
        self._learn_params(run.learner, trial)
        sizes = [n for n in trial.intermediate_values if run.inherited < n <= run.full_size]
        curve = known = self.curves[run.learner]
        if run.full_size in sizes and keys.is_lost(trial, run.full_size):
            sizes.remove(run.full_size)
            curve = curve.without(run.full_size)
        failure = keys.read_failure(trial.system_attrs)
        if failure is not None:
            self._failures[run.learner][trial.number] = failure
        news = [keys.read_observation(trial, size) for size in sizes if size not in curve]
        if news or failure is not None or curve is not known:
            self._put_curve(curve, map(self.signed, news))

    def _learn_params(self, learner: int, trial: FrozenTrial) -> None:
        """Keep what a run has suggested; a learner's first run may have failed before the end."""
        known = self.distributions[learner]
        if trial.distributions.keys() <= known.keys():
            return
        new = {name: space for name, space in trial.distributions.items() if name not in known}
        self.distributions[learner] = {**known, **new}
        self.params[learner] = {**self.params[learner], **{n: trial.params[n] for n in new}}

    def _begin(self, learner: int, trial: FrozenTrial) -> None:
        if self._placeholder == learner:
            self._placeholder = None
        self.curves.put(LearningCurve(learner))
        self.params[learner] = keys.wishes(trial)
        self.distributions[learner] = {}
        self._failures[learner] = {}

    def _forget(self, learner: int) -> None:
        for known in (self.params, self.distributions, self._failures):
            del known[learner]
        self.curves.remove(learner)

    def _put_curve(self, curve: LearningCurve, news: Iterable[Observation] = ()) -> None:
        """Take in new observations of a learner and whatever drops it."""
        learner = curve.learner
        seen = sorted((*curve.observations, *news), key=lambda each: each.size)
        curve = LearningCurve(learner, dropped=self.drops.get(learner, "")).extended(*seen)
        if reason := reason_to_drop(self._failures[learner]):
            curve = curve.drop(reason)
        self.is_begun = self.is_begun or bool(seen)
        self.curves.put(curve)


_LEDGERS: weakref.WeakKeyDictionary[BaseStorage, dict[int, Ledger]] = weakref.WeakKeyDictionary()
_LEDGERS_LOCK = threading.Lock()


def ledger_of(study: optuna.Study) -> Ledger:
    """Return the ledger of a study, as of its last `sync`."""
    with suppress(KeyError):
        return _LEDGERS[study._storage][study._study_id]
    with _LEDGERS_LOCK:
        ledgers = _LEDGERS.setdefault(study._storage, {})
        if study._study_id not in ledgers:
            ledgers[study._study_id] = Ledger(study)
        return ledgers[study._study_id]


def forget_ledger_of(study: optuna.Study) -> None:
    """Forget what is known of a study: a deleted study's id may be given to another."""
    with _LEDGERS_LOCK:
        _LEDGERS.get(study._storage, {}).pop(study._study_id, None)


def synced_ledger_of(study: optuna.Study) -> Ledger:
    """Return the ledger of a study, in step with the storage."""
    ledger = ledger_of(study)
    ledger.sync(study._storage)
    return ledger
