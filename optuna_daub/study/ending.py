"""Ending: what is stored of a run when its trial ends, before Optuna stores its state."""

from __future__ import annotations

import logging
import math
import reprlib
import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.core.decision import Finish
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.sizes import next_size
from optuna_daub.study import host
from optuna_daub.study import keys
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study.claims import repeating
from optuna_daub.study.exploring import has_explored
from optuna_daub.study.failures import message_of
from optuna_daub.study.known import Known
from optuna_daub.study.limit import limit_of
from optuna_daub.study.messages import GIVEN_UP
from optuna_daub.study.messages import status
from optuna_daub.study.pruner import check_steps
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.worker import Go
from optuna_daub.study.worker import TurnOverError
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


MANY_FAILURES = 5
"""Learners that fail one after another at one worker, after which its name is in the log."""

MOST_DECLINED = 100
"""New learners in a row that a policy may decline. Then the study ends: a base sampler that
proposes nothing that would be in time is to do so no longer."""

FEW, MANY = 5, 50
"""Learners with two scores, and learners in all, between which the direction is looked at: fewer
may rise by chance, and in a study that has gone on for longer it is too late."""

NEARLY_ALL = 0.9
"""Share of learners whose scores rise that is no chance."""

_logger = logging.getLogger(__name__)


def close(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    state: TrialState,
    values: Sequence[float] | None,
    learn: Callable[[], bool],
) -> None:
    """Store how a run ended, and stop the study where the answer is known.

    Args:
        study: the study.
        trial: the trial as it is stored, still running.
        policy: the rule that allocates.
        state: what Optuna is about to store.
        values: what Optuna is about to store; taken back where it is no full-data score.
        learn: lets the base sampler learn from a new learner, and returns whether it has nothing
            left to propose.
    """
    worker, number = worker_of(study), trial.number
    assigned, turn = worker.assigned.pop(number, None), worker.turns.get(number)
    # Where the objective asks `trial.should_prune` itself, it does not ask for another size, so
    # that its last one is timed here. In ask-and-tell what passed until now may be anything.
    if turn is not None and turn.is_run and not turn.is_reported and host.is_optimizing(study):
        log.write_seconds(study, trial, turn.size, turn.since)
    known = worker.look()
    worker.limit = worker.sign * limit_of(study)
    run = known.runs.get(number) or (assigned.run if assigned else None)
    if run is None:
        return
    if state == TrialState.COMPLETE and run.learner is not None and values:
        known = _kept(study, worker, trial, run, policy, values)
    is_given_up = known.is_given_up(number)
    if state == TrialState.PRUNED and not is_given_up:
        run = _unless_twin(study, worker, trial, run)
    is_new = run.learner == number
    is_exhausted = is_new and learn()
    if (is_new and assigned is not None and assigned.explores) or run.repeats is not None:
        is_exhausted = is_exhausted or has_explored(worker.look())
        if is_exhausted:
            _warn_of_explored(worker)
    if is_exhausted:
        log.write_exhaustion(study, trial)
    worker.look()
    with worker.lock:  # no other thread looks, and decides, before this run's failure is known
        if is_given_up:
            log.write_summary(study, trial, {"reason": GIVEN_UP})
            if state == TrialState.COMPLETE and trial.last_step != policy.sizes[-1]:
                take_back(worker, values)
        elif run.learner is not None:
            _close_run(study, worker, trial, run, policy, state, values)
            _watch(worker, run, state)
        else:
            log.write_summary(study, trial, {"reason": run.reason})
            if state == TrialState.COMPLETE:
                take_back(worker, values)
        decision = worker.answer(policy, number).decision
    _warn_of_direction(worker)
    is_late = worker.horizon is not None and time.monotonic() >= worker.horizon
    if isinstance(decision, Finish) or is_late or worker.n_declined >= MOST_DECLINED:
        host.stop(study)


def take_back(worker: Worker, values: Sequence[float] | None) -> None:
    """Keep a value returned early from being the study's best.

    Optuna stores the trial as COMPLETE whatever is done here, and this very list as its values.
    """
    if isinstance(values, list):
        values[:] = [-worker.sign * math.inf]


def _kept(
    study: optuna.Study,
    worker: Worker,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    values: Sequence[float],
) -> Known:
    """Return what is known once the value that an objective has returned is the score at N.

    Raises:
        ValueError: where it has reported steps that are no training sizes.
    """
    known, full_size, number = worker.known, policy.sizes[-1], trial.number
    own = {*keys.own_sizes(trial, run.inherited)}
    if number not in worker.turns and (epochs := {n for n in own if n < policy.sizes[0]}):
        take_back(worker, values)
        log.write_failure(study, trial, Failure(min(epochs), "steps are no sizes", is_final=True))
        check_steps(policy, number, epochs)
    needs, score = policy.needs, values[0]
    if not own and number not in worker.turns and not run.inherited:
        if needs.training_scores == "required" or not is_finite(score):
            return known
        # Where others are trained on less, it is Optuna's idiom for what cannot be trained.
        some = islice((curve.sizes for curve in known.curves.values()), MANY)
        if any(size != full_size for sizes in some for size in sizes):
            return known
        # It has asked for no size, so that it was trained on everything.
        begun = trial.datetime_start
        seconds = None if begun is None else (datetime.now() - begun).total_seconds()
        is_timed = host.is_optimizing(study) and keys.is_duration(seconds)
        seen = Observation(full_size, score, seconds=seconds if is_timed else None)
        log.write_score(study, trial, seen)
        worker.warn(
            "sizes",
            "The objective asks for no training sizes, so that every learner is trained on all "
            f"{full_size:,} examples. To save time, train on those of `training_sizes(trial)`.",
        )
        return worker.look()
    seen_at = trial.intermediate_values.get(full_size)
    if seen_at is not None and not math.isclose(score, seen_at, rel_tol=1e-9):
        worker.warn(
            "value",
            f"The objective returned {score}, but has reported {seen_at} at all {full_size:,} "
            "examples: the score reported is kept as the trial's value, so that learners are "
            "compared by one score. Return the last score that was reported.",
        )
        if isinstance(values, list) and math.isfinite(seen_at):
            values[:] = [seen_at]  # the very list that Optuna stores (see `take_back`)
    return known


def _unless_twin(study: optuna.Study, worker: Worker, trial: FrozenTrial, run: Run) -> Run:
    """Return the run of a first run that has ended: idle, if another learner has its parameters.

    The same parameters twice are one learner. Where the objective asks for no sizes, that is
    found out with the first score.
    """
    if run.learner != trial.number or run.inherited or trial.number not in worker.known.runs:
        return run
    with worker.lock:
        other = worker.known.twin(trial.number)
        return run if other is None else repeating(study, worker, trial, run, other)


def _close_run(
    study: optuna.Study,
    worker: Worker,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    state: TrialState,
    values: Sequence[float] | None,
) -> None:
    """Store whether a run failed, and what users should see of it."""
    assert run.learner is not None
    known, learner, full_size = worker.known, run.learner, policy.sizes[-1]
    failure = _failure(study, worker, trial, run, policy, state)
    facts = known.unfinished.get(trial.number)
    if failure is not None:
        log.write_failure(study, trial, failure)
        if failure.is_final:
            _logger.warning("Learner %d ends: %s.", learner, failure.error)
    if state == TrialState.COMPLETE and not known.is_done(learner, full_size):
        take_back(worker, values)
    if facts is not None:
        seen = facts.observations
        if state != TrialState.COMPLETE:  # no COMPLETE trial will hold a full-data score
            seen = {n: x for n, x in seen.items() if n != full_size or not x.is_finite}
        if failure is not None or len(seen) < len(facts.observations):
            known = worker.foresee(replace(facts, failure=failure, observations=seen))
    found = known.learners[learner]
    if found.curve.has_failed:
        _logger.warning("Learner %d is dropped: %s.", learner, found.curve.dropped)
    log.write_constraints(study, trial, found.constraints)
    pool, decision = worker.answer(policy, trial.number)
    curve = pool.curves[learner]
    summary: dict[str, Any] = {
        "training_size": curve.size,
        "reason": status(policy, pool, worker.sign, learner, decision, worker.limit),
    }
    upper = policy.interval(pool, learner).upper
    if math.isfinite(upper):
        summary["bound"] = worker.sign * min(upper, worker.limit)
    log.write_summary(study, trial, summary)


def _failure(
    study: optuna.Study,
    worker: Worker,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    state: TrialState,
) -> Failure | None:
    """Return how a run failed, None where it did not."""
    assert run.learner is not None
    known, sizes, cause = worker.known, policy.sizes, host.error_of_run()
    curve = known.curves[run.learner]
    is_full = known.is_done(run.learner, sizes[-1])
    # A run that has reported what it was handed out would have gone on to the next size at least.
    turn = worker.turns.get(trial.number)
    trained_on = turn.size if turn is not None and turn.is_run else run.size
    size = max(trained_on, next_size(sizes, curve.size) or sizes[-1])
    me = liveness.this_worker()
    if state == TrialState.COMPLETE:
        if is_full:
            return None
        # The idiom for infeasible trials: a value returned before the sizes are at an end.
        error = f"the objective returned after {curve.size:,} of {sizes[-1]:,} examples"
        return Failure(size, error, me, is_final=True)
    is_rejected = state == TrialState.PRUNED and _rejects(worker, trial.number, policy, cause)
    if state == TrialState.PRUNED and not (is_full or is_rejected or curve.size <= run.inherited):
        return None  # suspended
    if isinstance(cause, KeyboardInterrupt | SetupError):
        return None
    error = message_of(cause)
    if cause is None and host.is_optimizing(study):  # what Optuna refuses to store
        error = f"the objective returned {reprlib.repr(host.returned())}, and no number"
    return Failure(size, error, me, is_rejected)


def _rejects(worker: Worker, number: int, policy: Policy, cause: BaseException | None) -> bool:
    """Return whether the objective's own `TrialPruned` rejects parameters: to ask again is no use.

    One that asks `trial.should_prune` raises its own too when it is told to end, and what it was
    told is not kept. So the question is asked once more; while others train, the answer may be
    another by now, and a learner with a score is rather suspended than dropped for good.
    """
    if not isinstance(cause, optuna.TrialPruned) or isinstance(cause, TurnOverError):
        return False
    learner = worker.known.trained_by(number)
    if learner is None or worker.known.is_done(learner, policy.sizes[-1]):
        return True  # before its first score no objective asks, and at N none is told to end
    return len(worker.known.runs) == 1 and isinstance(worker.turn(policy, number), Go)


def _warn_of_direction(worker: Worker) -> None:
    """Say once that scores look as if larger ones were better, in a study that minimizes."""
    curves = worker.known.curves
    if worker.sign > 0 or not FEW <= len(curves) <= MANY:
        return
    seen = [curve.observations for curve in curves.values() if len(curve.observations) > 1]
    n_rising = sum(later[-1].score < later[0].score for later in seen)  # which are signed
    if len(seen) >= FEW and n_rising >= NEARLY_ALL * len(seen):
        worker.warn(
            "direction",
            f"The study minimizes, but the scores of {n_rising} of {len(seen)} learners rise with "
            "more training examples, as those of accuracy do: where larger scores are better, "
            'create the study with `direction="maximize"`.',
        )


def _warn_of_explored(worker: Worker) -> None:
    """Say once that a search proposes nothing new any more before it has what it was asked for."""
    known = worker.known
    count, wanted = len(known.learners), known.n_learners
    if wanted is None or count < wanted:
        asked = "" if wanted is None else f", though `n_learners` is {wanted:,}"
        worker.warn(
            "explored",
            f"All {count:,} points of the search space, as far as it was seen, are learners, and "
            f"no new one is proposed{asked}. If there are more, let parameters and their ranges "
            "not depend on the trial's number, on time or on chance.",
        )


def _watch(worker: Worker, run: Run, state: TrialState) -> None:
    """Name a worker at which everything fails: the learners may be as good as others."""
    if state != TrialState.FAIL or run.learner is None:
        worker.failed_in_a_row = frozenset()
        return
    before, worker.failed_in_a_row = worker.failed_in_a_row, worker.failed_in_a_row | {run.learner}
    if len(before) < MANY_FAILURES == len(worker.failed_in_a_row):
        _logger.warning(
            "The last %d learners that worker %s trained have all failed. Look for the error "
            "above: where it is the machine's (memory, a missing package), stop this worker, "
            "and others will try these learners again.",
            MANY_FAILURES,
            liveness.this_worker(),
        )
