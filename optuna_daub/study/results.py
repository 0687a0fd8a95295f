"""The results of a study as records. Scores are in the user's direction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from typing import Literal

import optuna
from optuna.trial import TrialState

from optuna_daub.core.curve import LARGEST_SCORE
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Finish
from optuna_daub.core.limits import Limits
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study import records
from optuna_daub.study.known import Known
from optuna_daub.study.learner import violation
from optuna_daub.study.limits import limits_of
from optuna_daub.study.messages import status
from optuna_daub.study.records import Facts
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


@dataclass(frozen=True)
class LearnerCurve:
    """The learning curve of one learner, over all its runs."""

    learner: int
    """Id of the learner: the number of the trial that ran it first."""
    params: Mapping[str, Any]
    """Parameters of the learner, by name."""
    observations: tuple[Observation, ...]
    """Outcomes of its trainings, by increasing size."""
    state: Literal["best", "complete", "running", "suspended", "dropped"]
    """"suspended" may be resumed, "dropped" never is; "complete" was trained on all the data, and
    "best" is the selected one, once the rule has ended the study."""
    bound: float | None
    """Optimistic bound on its score on all the data; None without one. It is the upper bound if
    larger is better."""
    worst: float | None
    """Pessimistic end of its score's interval on all the data; None without one."""
    reason: str
    """Reason for its state."""

    @property
    def size(self) -> int:
        """Largest training size, in examples; 0 before the first training."""
        return self.observations[-1].size if self.observations else 0

    @property
    def score(self) -> float | None:
        """Score at the largest training size; None before the first training."""
        return self.observations[-1].score if self.observations else None


@dataclass(frozen=True)
class Allocation:
    """One training of a learner."""

    learner: int
    """Id of the learner."""
    trial: int
    """Number of the trial that trained it."""
    observation: Observation
    """Size, scores and seconds of the training."""
    is_lost: bool
    """True if it belongs to no learning curve, since its trial failed after it. All of its seconds
    and examples were spent."""


@dataclass(frozen=True)
class BestLearner:
    """The selected learner, or the leader as long as the study is unfinished."""

    learner: int
    """Id of the learner: the number of the trial that ran it first."""
    params: Mapping[str, Any]
    """Parameters of the learner, by name."""
    score: float
    """Score at `size`."""
    size: int
    """Number of examples it was trained on."""
    bound: float | None
    """Bound on its score on all the data, or this score once it is known. None without one."""
    rival_bound: float | None
    """Best bound among the other learners, except dropped ones; None without one."""
    is_final: bool
    """True if the rule has ended the study."""
    reason: str
    """Reason why it is the best, or the reason of the policy's next decision."""
    promise: str
    """Guarantee of the rule with its conditions, as ABC has one; else empty."""
    better_size: int | None
    """Smaller size with a better score on as many validation examples, or None."""
    examples: int
    """Training examples spent on all learners; only the new ones if trainings continue models."""
    seconds: float
    """Seconds spent on all trainings; those not measured count as 0."""


def learning_curves(study: optuna.Study) -> list[LearnerCurve]:
    """Return the curve of every learner, in the order of their ids.

    Args:
        study: running or ended; its pruner is not needed, except for a policy of your own.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study, or if a policy of your own
            has and its pruner is not passed to the study.
    """
    worker = looking(study)
    policy, sign = policy_of(study), worker.sign
    limits = limits_of(study)
    with worker.lock:  # so the pool and `known` are of one moment
        pool, decision = worker.answer(policy, is_at_work=False)
        known = worker.known
    best = _winner(study, known, sign, decision.learner) if isinstance(decision, Finish) else None
    why = partial(_reason, policy, pool, decision, sign, limits.signed(sign))
    running = {run.learner: run.reason for run in known.runs.values()}
    curves = []
    for learner, curve in pool.curves.items():
        interval = policy.interval(pool, learner)
        reason = "" if curve.dropped else running.get(learner)
        curves.append(
            LearnerCurve(
                learner=learner,
                # Before the objective has suggested any: the enqueued parameters.
                params={**(curve.parameters or known.learners[learner].params)},
                observations=tuple(records.signed(seen, sign) for seen in curve.observations),
                state=_state_of(curve, policy.sizes[-1], learner == best, learner in running),
                bound=_shown(sign * interval.upper, limits),
                worst=_shown(sign * interval.lower, limits),
                reason=reason or why(learner, best),
            )
        )
    return curves


def allocations(study: optuna.Study) -> list[Allocation]:
    """Return all trainings in order (the paper's S), run by run.

    With one worker this is the order in which they were made. Runs that overlap are in the order
    of their trials, and the trainings of one learner in the order of sizes. Clocks are not
    compared, since those of two machines differ.

    Args:
        study: running or ended, with any pruner or none.
    """
    worker = looking(study)
    runs: dict[int, tuple[int, Facts]] = {}
    waiting = {}
    for learner, known in worker.known.learners.items():
        own = {n: trial for n, trial in known.runs.items() if n not in known.strangers}
        runs |= {n: (learner, trial) for n, trial in own.items()}
        # A waiting worker's trial may resume a later one's work.
        waiting[learner] = iter(sorted(own, key=lambda n: (_inherited(own[n]), n)))
    made: list[Allocation] = []
    written: set[int] = set()
    for number in sorted(runs):
        while number not in written:
            earlier = next(waiting[runs[number][0]])
            written.add(earlier)
            learner, trial = runs[earlier]
            for size, each in trial.observations.items():
                seen = records.signed(each, worker.sign)
                made.append(Allocation(learner, earlier, seen, size not in trial.counted))
    return made


def _inherited(trial: Facts) -> int:
    assert trial.run is not None  # a learner's own runs all have a record
    return trial.run.inherited


def best_learner(study: optuna.Study) -> BestLearner | None:
    """Return the selected learner, or the leader of an unfinished study.

    Returns None before the first score. After a finished study it is the learner of
    `study.best_trial`; with `ABCPruner(refit=False)` it is the learner that ABC chose. In an
    unfinished study it is the learner of `study.best_trial` too, once a learner was trained on all
    the data. Before that the default rule names the best forecast, and DAUB the best score at the
    largest size reached so far. ABC names its best guess, trained on any size.

    Args:
        study: running or ended; its pruner is not needed, except for a policy of your own.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study, or if a policy of your own
            has and its pruner is not passed to the study.
    """
    worker = looking(study)
    policy, sign, limits = policy_of(study), worker.sign, limits_of(study)
    with worker.lock:  # as in `learning_curves`
        pool, decision = worker.answer(policy, is_at_work=False)
        known = worker.known
    is_final = isinstance(decision, Finish)
    chosen = decision.learner if isinstance(decision, Finish) else policy.leader(pool)
    learner = _winner(study, known, sign, chosen)
    if learner is None:
        return None
    curve = pool.curves[learner]
    rivals = [
        upper
        for other, rival in pool.curves.items()
        if other != learner and not rival.dropped
        if not math.isinf(upper := policy.interval(pool, other).upper)
    ]
    return BestLearner(
        learner=learner,
        params={**curve.parameters},
        score=sign * curve.score,
        size=curve.size,
        bound=_shown(sign * policy.interval(pool, learner).upper, limits),
        rival_bound=limits.cut(sign * max(rivals)) if rivals else None,
        is_final=is_final,
        reason=_reason(policy, pool, decision, sign, limits.signed(sign), learner, learner),
        promise=policy.promise(pool, learner) or "",
        better_size=_better_size(curve),
        examples=pool.spent.examples,
        seconds=pool.spent.seconds,
    )


def no_scores(study: optuna.Study) -> str:
    """Return the reason why no learner with a score is left, as a clause."""
    known = looking(study).known
    if known.alone and not known.learners:
        return "trials are learners only if a DataAllocationSampler has run them"
    if any(curve.finite() for curve in known.curves.values()):
        return "all learners with scores have failed, are infeasible or were ruled out"
    if any(curve.observations for curve in known.curves.values()):
        return f"no score that was reported is a finite number within ±{LARGEST_SCORE:g}"
    return "no score has been reported yet"


def _winner(study: optuna.Study, known: Known, sign: int, chosen: int | None) -> int | None:
    """Return the learner of the best COMPLETE trial, if the chosen learner has such a trial.

    So the best learner is that of the study's best trial. If the policy chose a learner that was
    not trained on all the data, return that one.
    """
    complete, best = [], -1
    with suppress(ValueError):  # of several equal trials Optuna's storages name different ones
        best = study.best_trial.number
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        run = records.read_run(trial)
        if run is None or run.learner is None or known.is_copy(trial.number, run):
            continue
        learner = known.learners.get(run.learner)
        if learner is None or violation(learner.constraints):
            continue
        # Others may tell a trial before all the data. A run that has ended since the last look is
        # not in the pool yet.
        if run.full_size <= (trial.last_step or 0) <= learner.curve.size:
            order = sign * trial.values[0], trial.number == best, -trial.number
            complete.append((*order, run.learner))
    return max(complete)[-1] if any(learner == chosen for *_, learner in complete) else chosen


def _reason(
    policy: Policy,
    pool: Pool,
    decision: Decision,
    sign: int,
    limits: Limits,
    learner: int,
    best: int | None,
) -> str:
    """Return the reason for a learner's state. The rule may have chosen another than `best`."""
    answer = decision.learner if isinstance(decision, Finish) else None
    if None in (answer, best) or answer == best or learner not in (answer, best):
        return status(policy, pool, sign, learner, decision, limits)
    said = decision.reason.told(sign, limits)
    if learner == answer:
        return f"answer of the rule: {said}. Learner {best} has the best score"
    why = f"no score on {pool.curves[learner].size:,} examples is better"
    return f"best: {why}. The rule takes learner {answer}: {said}"


def _better_size(curve: LearningCurve) -> int | None:
    """Return the `better_size` of a `BestLearner`."""
    last = curve.observations[-1]
    comparable = [s for s in curve.observations if s.n_validation == last.n_validation]
    best = max(comparable, key=lambda seen: (seen.score, seen.size))
    return best.size if best.size < last.size else None


def _shown(end: float, limits: Limits) -> float | None:
    """Return the end of an interval in the user's direction. None if it is infinite."""
    return None if math.isinf(end) else limits.cut(end)


def _state_of(
    curve: LearningCurve, full_size: int, is_best: bool, is_busy: bool
) -> Literal["best", "complete", "running", "suspended", "dropped"]:
    if is_best:
        return "best"
    if curve.dropped:
        return "dropped"
    if is_busy:
        return "running"
    return "complete" if curve.size == full_size else "suspended"
