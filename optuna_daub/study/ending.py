"""The end of a run: facts to store about it before Optuna stores the trial's state."""

from __future__ import annotations

import logging
import math
import reprlib
from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.claims import settle_at_end
from optuna_daub.study.exploring import fixed_by
from optuna_daub.study.exploring import has_explored
from optuna_daub.study.limits import limits_seen
from optuna_daub.study.messages import TAKEN_FOR_DEAD
from optuna_daub.study.messages import message_of
from optuna_daub.study.messages import status
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.setup_errors import check_steps
from optuna_daub.study.suspicions import check_returned
from optuna_daub.study.suspicions import warn_of_direction
from optuna_daub.study.suspicions import watch
from optuna_daub.study.turns import Assigned
from optuna_daub.study.turns import End
from optuna_daub.study.turns import Turn
from optuna_daub.study.turns import TurnOverError
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import worker_of


N_COMPARED = 50
"""Number of learners that are searched for trainings on less than all the data."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ending:
    """A run whose trial ends, before Optuna stores the trial's state."""

    study: optuna.Study
    worker: Worker
    trial: FrozenTrial
    """The trial as stored, still running."""
    run: Run
    policy: Policy
    state: TrialState
    """The state that Optuna is about to store."""


def close(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    state: TrialState,
    values: Sequence[float] | None,
    learn: Callable[[bool], bool],
) -> None:
    """Store how a run ended, and stop the study if the answer is known.

    Args:
        study: the study.
        trial: the trial as it is stored, still running.
        policy: the rule that allocates.
        state: state that Optuna is about to store.
        values: values that Optuna is about to store; replaced if they are not a full-data score.
        learn: function that lets the base sampler learn from a learner, given whether it is new.
            It returns True if the sampler has nothing left to propose.
    """
    worker, number, full_size = worker_of(study), trial.number, policy.sizes[-1]
    assigned, turn = worker.assigned.pop(number, None), worker.turns.get(number)
    # An objective that asks `trial.should_prune` itself does not ask for another size, so its
    # last training is timed here. In ask-and-tell the time until now may include anything.
    if turn is not None and turn.steps and not turn.is_reported and host.is_optimizing(study):
        log.write_seconds(study, trial, turn.size, turn.since)
    _refuse_steps(study, trial, policy, turn, values)
    run = worker.look().runs.get(number) or (assigned.run if assigned else None)
    worker.limits = limits_seen(study, worker)
    if run is None:
        return
    is_answer, is_complete = trial.last_step == full_size, state == TrialState.COMPLETE
    run = settle_at_end(study, worker, trial, run, state)
    ending = _Ending(study, worker, trial, run, policy, state)
    _keep_value(ending, values)
    _learn(ending, assigned, learn)
    # Under the lock: a look of another thread would undo `foresee`, which counts this trial as it
    # will end.
    with worker.lock:
        if worker.look().is_given_up(number):
            log.write_summary(study, trial, {"reason": TAKEN_FOR_DEAD})
        elif run.learner is None:
            is_answer = False
            _close_idle(ending, values)
        else:
            _close_run(ending)
            is_answer = worker.known.is_done(run.learner, full_size)
        decision = worker.answer(policy, number)[1]
    if is_complete and not is_answer:
        take_back(worker, values)
    check_returned(study, worker, trial, full_size, state)
    watch(study, worker, run, state)
    warn_of_direction(worker)
    if worker.is_over(decision):
        host.stop(study)


def take_back(worker: Worker, values: Sequence[float] | None) -> None:
    """Replace a value that must not count by the worst one.

    Optuna stores the trial as COMPLETE in any case, with this list object as its values, so the
    list is changed in place.
    """
    if isinstance(values, list):
        values[:] = [-worker.sign * math.inf]


def _keep_value(ending: _Ending, values: Sequence[float] | None) -> None:
    """Make the stored value of a trial the score that it reported at N."""
    if ending.state != TrialState.COMPLETE or ending.run.learner is None or not values:
        return
    worker, trial, full_size = ending.worker, ending.trial, ending.policy.sizes[-1]
    has_asked = trial.number in worker.turns or ending.run.inherited > 0
    seen = trial.intermediate_values.get(full_size)
    if not trial.intermediate_values and not has_asked:
        _keep_score(ending, values[0])
    elif seen is not None and not math.isclose(values[0], seen, rel_tol=1e-9):
        worker.warn(
            "value",
            f"The objective returned {values[0]}, but has reported {seen} at all {full_size:,} "
            "examples: the score reported is kept as the trial's value, so learners are "
            "compared by one score. Return the last score that was reported.",
        )
        if isinstance(values, list) and math.isfinite(seen):
            values[:] = [seen]  # the list that Optuna stores (see `take_back`)


def _refuse_steps(
    study: optuna.Study,
    trial: FrozenTrial,
    policy: Policy,
    turn: Turn | None,
    values: Sequence[float] | None,
) -> None:
    """End the study if a trial has reported steps that are not training sizes.

    Epochs are such steps. Their scores never count, also when the study is opened again.

    Raises:
        SetupError: that names the smallest of these steps.
    """
    worker, number, steps = worker_of(study), trial.number, {*trial.intermediate_values}
    if turn is not None and turn.steps:
        others = steps - turn.steps
        # A run that was taken for dead may have trained on more sizes, unasked.
        if others and worker.look().is_given_up(number):
            others -= {*policy.sizes}
    elif number in worker.known.runs:
        # Without `training_sizes` the user chooses the sizes; only smaller steps must be epochs.
        inherited = worker.known.runs[number].inherited
        others = {step for step in steps if inherited < step < policy.sizes[0]}
    else:
        return
    if not others:
        return
    with log.unless_over(study, trial):
        log.write_no_sizes(study, trial, others)
    if isinstance(host.error_of_run(), SetupError):
        return  # ends the study already
    if values:
        take_back(worker, values)
        log.write_failure(study, trial, Failure(min(others), "steps are no sizes", is_final=True))
    check_steps(policy.sizes, number, others, ())


def _keep_score(ending: _Ending, score: float) -> None:
    """Store the score of an objective that asked for no size. It was trained on all the data."""
    study, worker, trial, policy = ending.study, ending.worker, ending.trial, ending.policy
    full_size = policy.sizes[-1]
    if policy.needs.training_scores == "required" or not is_finite(score):
        return
    # If others were trained on less, or one in training has asked for a size, the objective asks
    # for sizes. Here it has returned before it asked, to reject the parameters.
    some = islice((curve.sizes for curve in worker.known.curves.values()), N_COMPARED)
    if worker.turns or any({*sizes} - {full_size} for sizes in some):
        return
    begun = trial.datetime_start
    seconds = None if begun is None else (datetime.now() - begun).total_seconds()
    # In ask-and-tell the time until now may include anything.
    is_timed = host.is_optimizing(study) and records.is_duration(seconds)
    seen = Observation(full_size, score, seconds=seconds if is_timed else None)
    log.write_score(study, trial, seen)
    worker.warn(
        "sizes",
        "The objective asks for no training sizes, so every learner is trained on all "
        f"{full_size:,} examples. To save time, train on those of `training_sizes(trial)`.",
    )
    worker.look()


def _learn(ending: _Ending, assigned: Assigned | None, learn: Callable[[bool], bool]) -> None:
    """Tell the base sampler of a new learner, and store whether it is exhausted."""
    run, worker = ending.run, ending.worker
    is_new = run.learner == ending.trial.number
    is_exhausted = run.learner is not None and learn(is_new)
    explores = is_new and assigned is not None and assigned.explores
    is_repeated = run.repeats is not None or explores
    fixed = fixed_by(ending.study.sampler)
    if not is_exhausted and is_repeated and has_explored(worker.look(), fixed):
        is_exhausted = True
        _warn_of_explored(worker)
    if is_exhausted:
        log.write_exhaustion(ending.study, ending.trial)


def _close_idle(ending: _Ending, values: Sequence[float] | None) -> None:
    """Store why a run trains nothing. Warn once if it has a value, which cannot be kept."""
    trial, reason = ending.trial, ending.run.reason
    log.write_summary(ending.study, trial, {"reason": reason})
    if ending.state == TrialState.COMPLETE and values:
        ending.worker.warn(
            "idle",
            f"Trial {trial.number} has no learner ({reason}), so its value, {values[0]}, is not "
            "kept. Ask `training_sizes(trial)` before you train: it ends such a trial by "
            "`optuna.TrialPruned`.",
        )


def _close_run(ending: _Ending) -> None:
    """Store whether a run failed, and the summary of it that users see."""
    learner = ending.run.learner
    assert learner is not None
    study, worker, trial, policy = ending.study, ending.worker, ending.trial, ending.policy
    failure, facts = _failure(ending), worker.known.unfinished.get(trial.number)
    if failure is not None:
        log.write_failure(study, trial, failure)
        if failure.is_final:
            _logger.warning("Learner %d ends: %s.", learner, failure.error)
    # Optuna stores the state after this. If that is not COMPLETE, no trial will hold the
    # full-data score, and the learner must be trained there once more.
    lost = policy.sizes[-1] if ending.state != TrialState.COMPLETE else None
    if facts and (failure or lost in facts.observations):
        kept = {n: x for n, x in facts.observations.items() if n != lost or not x.is_finite}
        worker.foresee(replace(facts, failure=failure, observations=kept))
    found = worker.known.learners[learner]
    if found.curve.has_failed:
        _logger.warning("Learner %d is dropped: %s.", learner, found.curve.dropped)
    log.write_constraints(study, trial, found.constraints)
    pool, decision = worker.answer(policy, trial.number)
    summary: dict[str, Any] = {
        "training_size": found.curve.size,
        "reason": status(policy, pool, worker.sign, learner, decision, worker.limits),
    }
    upper = policy.interval(pool, learner).upper
    if math.isfinite(upper):
        summary["bound"] = worker.limits.signed(worker.sign).cut(worker.sign * upper)
    log.write_summary(study, trial, summary)


def _failure(ending: _Ending) -> Failure | None:
    """Return the failure of a run; None if it did not fail."""
    worker, trial, run, policy = ending.worker, ending.trial, ending.run, ending.policy
    assert run.learner is not None
    known, sizes, state, cause = worker.known, policy.sizes, ending.state, host.error_of_run()
    curve, is_full = known.curves[run.learner], known.is_done(run.learner, sizes[-1])
    # A run that has reported its size would have gone on to the next size at least.
    turn = worker.turns.get(trial.number)
    trained_on = turn.size if turn is not None and turn.steps else run.size
    size = max(trained_on, sizes[min(bisect_right(sizes, curve.size), len(sizes) - 1)])
    me = liveness.this_worker()
    if state == TrialState.COMPLETE:
        # A value returned before the last size rejects the parameters.
        error = f"the objective returned after {curve.size:,} of {sizes[-1]:,} examples"
        return None if is_full else Failure(size, error, me, is_final=True)
    is_rejected = state == TrialState.PRUNED and _rejects(worker, trial.number, is_full, cause)
    is_new_score = curve.size > run.inherited and not is_full
    # A loop that starts over may be told to end at a size of an earlier run.
    # In ask-and-tell it raises nothing.
    told = worker.told.get(trial.number)
    is_obedient = isinstance(told, End) or type(cause) is optuna.TrialPruned
    # Another worker, taken for dead, may have trained it on all the data meanwhile.
    is_theirs = is_full and sizes[-1] not in trial.intermediate_values
    may_end = is_new_score or is_obedient or is_theirs
    if state == TrialState.PRUNED and may_end and not is_rejected:
        return None
    if isinstance(cause, KeyboardInterrupt | SetupError):
        return None
    error = message_of(cause)
    if cause is None and host.is_optimizing(ending.study):  # a value that Optuna refuses to store
        error = f"the objective returned {reprlib.repr(host.returned())}, and no number"
    return Failure(size, error, me, is_rejected)


def _rejects(worker: Worker, number: int, is_full: bool, cause: BaseException | None) -> bool:
    """Return whether the objective raised `TrialPruned` to reject its parameters for good.

    An objective that asks `trial.should_prune` also raises it when it is told to end, and that is
    no rejection. No trial is told to end at N.
    """
    if not isinstance(cause, optuna.TrialPruned) or isinstance(cause, TurnOverError):
        return False
    return is_full or not isinstance(worker.told.get(number), End)


def _warn_of_explored(worker: Worker) -> None:
    """Warn once if a search ends early because there are no new points."""
    known = worker.known
    count, wanted = len({x.key for x in known.learners.values() if x.key}), known.n_learners
    if wanted is None or count < wanted:
        asked = "" if wanted is None else f", though `n_learners` is {wanted:,}"
        worker.warn(
            "explored",
            f"All {count:,} points of the search space, as far as it was seen, are learners, and "
            f"no new one is proposed{asked}. If there are more, let parameters and their ranges "
            "not depend on the trial's number, on time or on chance.",
        )
