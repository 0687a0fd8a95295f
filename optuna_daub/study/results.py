"""What happened in a study, as plain records in the direction of the user's scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.bounds.audit import AuditSummary
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study import keys
from optuna_daub.study.certificate import certificate
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.pruners import AllocationPruner
from optuna_daub.study.reasons import verdict


@dataclass(frozen=True)
class LearnerCurve:
    """The learning curve of one learner, all its runs merged."""

    learner: int
    """The learner's id: the number of the trial that ran it first."""
    params: Mapping[str, Any]
    """The learner's parameters."""
    observations: tuple[Observation, ...]
    """What was seen of it, sizes increasing."""
    state: Literal["best", "complete", "running", "suspended", "dropped"]
    """"best" is the selected learner; "complete" others trained on all the data."""
    bound: float | None
    """The bound on its score on all the data (the upper one for maximize), None without one."""
    reason: str
    """Why it is in this state."""

    @property
    def size(self) -> int:
        """The largest training size, in examples; 0 before the first."""
        return self.observations[-1].size if self.observations else 0

    @property
    def score(self) -> float | None:
        """The score at the largest training size."""
        return self.observations[-1].score if self.observations else None


@dataclass(frozen=True)
class Allocation:
    """One probe: a learner trained once, in the order in which the probes ended."""

    learner: int
    trial: int
    """Number of the trial that trained it."""
    observation: Observation
    """Size, scores and seconds."""


@dataclass(frozen=True)
class BestLearner:
    """The selected learner, or the leader as long as the study is unfinished."""

    learner: int
    params: Mapping[str, Any]
    score: float
    """Its score at `size`."""
    size: int
    """The number of examples it was trained on."""
    bound: float | None
    """The bound on its score on all the data; the score itself once it is trained on them."""
    rival_bound: float | None
    """The best bound among the other learners that are not dropped, None without one."""
    is_final: bool
    """Whether the study has come to its end."""
    reason: str
    """Why it is the best, or what the policy wants to do next."""
    promise: str
    """What is guaranteed of it and under which conditions (ABC); empty where nothing is."""
    audit: AuditSummary | None
    """How often bounds held, of learners that were then trained on more data; None with ABC."""
    better_size: int | None
    """A smaller training size at which its score on as many validation examples was better."""
    examples: int
    """Training examples spent on all learners, each probe counted in full."""
    seconds: float
    """Seconds spent on all probes, as far as they were measured."""


def learning_curves(study: optuna.Study) -> list[LearnerCurve]:
    """Return the curve of every learner, in the order of their ids.

    Raises:
        ValueError: where the study's pruner is none of `optuna_daub`.
    """
    policy = _pruner_of(study).policy
    ledger = synced_ledger_of(study)
    with ledger.lock:  # which other threads of this process hold while they fold trials in
        return _learning_curves(study, ledger, policy)


def allocations(study: optuna.Study) -> list[Allocation]:
    """Return the sequence of all probes (the paper's S), in the order in which they ended.

    Needs no pruner: also a study that was loaded only to be looked at has it.
    """
    stamped: list[tuple[float, int, int, Allocation]] = []
    for trial in study.get_trials(deepcopy=False):
        run = keys.read_run(trial.system_attrs)
        if run is None or run.learner is None:
            continue
        for size in keys.own_sizes(trial, run.inherited):
            stored_at = keys.read_time(trial, size) or _begun(trial)
            probe = Allocation(run.learner, trial.number, keys.read_observation(trial, size))
            stamped.append((stored_at, trial.number, size, probe))
    return [probe for *_, probe in sorted(stamped, key=lambda entry: entry[:3])]


def best_learner(study: optuna.Study) -> BestLearner | None:
    """Return the selected learner, or the leader of an unfinished study; None before any score.

    The selected learner is the one of `study.best_trial`, trained on all the data (with
    `ABCPruner(refit=False)` the one identified). Of an unfinished study it is ABC's best guess,
    with DAUB the learner with the best score at the largest size that any has reached.

    Raises:
        ValueError: where the study's pruner is none of `optuna_daub`.
    """
    policy = _pruner_of(study).policy
    ledger = synced_ledger_of(study)
    with ledger.lock:  # which other threads of this process hold while they fold trials in
        return _best_learner(study, ledger, policy)


def _learning_curves(study: optuna.Study, ledger: Ledger, policy: Policy) -> list[LearnerCurve]:
    decision = ledger.decide(policy)
    best = _winner(study, ledger, decision) if isinstance(decision, Finish) else None
    busy = {run.learner: run.reason for run in ledger.running.values()}
    curves = []
    for learner in sorted(ledger.params):
        curve = ledger.curves[learner]
        curves.append(
            LearnerCurve(
                learner=learner,
                params={**ledger.params[learner]},
                observations=tuple(ledger.signed(seen) for seen in curve.observations),
                state=_state(curve, policy.sizes[-1], learner == best, learner in busy),
                bound=_bound(study, ledger, curve),
                reason=(not curve.dropped and busy.get(learner))
                or verdict(ledger, policy, learner, decision),
            )
        )
    return curves


def _best_learner(study: optuna.Study, ledger: Ledger, policy: Policy) -> BestLearner | None:
    decision = ledger.decide(policy)
    is_final = isinstance(decision, Finish)
    learner = _winner(study, ledger, decision) if is_final else _leader(ledger, policy)
    if learner is None:
        return None
    curve = ledger.curves[learner]
    bounds = {
        other: ledger.sign * bound
        for other in ledger.params
        if not ledger.curves[other].dropped
        and (bound := _bound(study, ledger, ledger.curves[other])) is not None
    }
    rivals = [bound for other, bound in bounds.items() if other != learner]
    spent = [seen for other in ledger.params for seen in ledger.curves[other].observations]
    return BestLearner(
        learner=learner,
        params={**ledger.params[learner]},
        score=ledger.sign * curve.score,
        size=curve.size,
        bound=_bound(study, ledger, curve),
        rival_bound=ledger.sign * max(rivals) if rivals else None,
        is_final=is_final,
        reason=verdict(ledger, policy, learner, decision),
        promise=certificate(policy, _known(ledger), learner) if isinstance(policy, ABC) else "",
        audit=policy.audit(ledger.curves) if isinstance(policy, DAUB) else None,
        better_size=_better_size(curve),
        examples=sum(seen.size for seen in spent),
        seconds=sum(seen.seconds or 0.0 for seen in spent),
    )


def _pruner_of(study: optuna.Study) -> AllocationPruner:
    if isinstance(study.pruner, AllocationPruner):
        return study.pruner
    raise ValueError(
        "The results of a study depend on its pruner, which Optuna does not store: load it with "
        "`optuna.load_study(..., pruner=DAUBPruner(...))`, with the sizes it was begun with, but "
        f"got {type(study.pruner).__name__}."
    )


def _winner(study: optuna.Study, ledger: Ledger, decision: Decision) -> int | None:
    """Return the learner of the best trial, so that there is one answer to who is the best.

    Where the policy ended without training on all the data there is none but the policy's.
    """
    complete = [
        (ledger.sign * trial.values[0], -trial.number, run.learner)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if (run := keys.read_run(trial.system_attrs)) is not None and run.learner is not None
    ]
    chosen = decision.learner if isinstance(decision, Finish) else None
    return max(complete)[2] if any(learner == chosen for *_, learner in complete) else chosen


def _leader(ledger: Ledger, policy: Policy) -> int | None:
    if isinstance(policy, ABC):
        guess = policy.best_guess(_known(ledger))
        return None if guess is None else guess.learner
    curves = [ledger.curves[learner] for learner in ledger.params]
    alive = [curve for curve in curves if curve.observations and not curve.dropped]
    if not alive:
        return None
    return max(alive, key=lambda curve: (curve.size, curve.score, -curve.learner)).learner


def _known(ledger: Ledger) -> Curves:
    """Return the curves of those of whom something is known, without those still to come."""
    curves = [ledger.curves[learner] for learner in ledger.params]
    return Curves(curve for curve in curves if curve.observations or curve.dropped)


def _better_size(curve: LearningCurve) -> int | None:
    """Return the size with the best score on as many examples, if it is not the last one."""
    last = curve.observations[-1]
    comparable = [s for s in curve.observations if s.n_validation == last.n_validation]
    best = max(comparable, key=lambda seen: (seen.score, seen.size))
    return best.size if best.size < last.size else None


def _bound(study: optuna.Study, ledger: Ledger, curve: LearningCurve) -> float | None:
    upper = _pruner_of(study).policy.interval(curve, ledger.curves).upper
    return None if abs(upper) == float("inf") else ledger.sign * upper


def _state(
    curve: LearningCurve, full_size: int, is_best: bool, is_busy: bool
) -> Literal["best", "complete", "running", "suspended", "dropped"]:
    if is_best:
        return "best"
    if curve.dropped:
        return "dropped"
    if is_busy:
        return "running"
    return "complete" if curve.size == full_size else "suspended"


def _begun(trial: FrozenTrial) -> float:
    return trial.datetime_start.timestamp() if trial.datetime_start else 0.0
