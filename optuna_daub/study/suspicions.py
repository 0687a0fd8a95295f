"""Signs at the end of a run that the set-up is wrong: the study is warned, or ends."""

from __future__ import annotations

import logging
import os
import socket
from itertools import pairwise

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study import host
from optuna_daub.study.records import Run
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.worker import Worker


MANY_FAILURES = 5
"""Number of learners failing in a row at which the log names their worker."""

MIN_STEPS, MAX_LEARNERS = 3, 50
"""Smallest number of steps and largest number of learners for a warning of a wrong direction. A
step goes from a score to the learner's next one. Three steps all rise by chance in one study of
eight."""

RISING_SHARE = 0.9
"""Smallest share of rising steps at which the direction is named."""

_logger = logging.getLogger(__name__)


def check_returned(
    study: optuna.Study, worker: Worker, trial: FrozenTrial, full_size: int, state: TrialState
) -> None:
    """End the study if an objective without `return` was trained on all the data.

    It would be so for every learner, and no result would be kept.
    """
    if state != TrialState.FAIL or host.error_of_run() or not host.is_optimizing(study):
        return
    known, is_full = worker.known, full_size in trial.intermediate_values
    has_result = any(known.is_done(learner, full_size) for learner in known.curves)
    if is_full and host.returned() is None and not has_result:
        _logger.error(
            "The objective must return its last score, but trial %d, which reported one on all "
            "%s examples, returned None. So the study ends. Add `return score`, and start it "
            "again.",
            trial.number,
            f"{full_size:,}",
        )
        host.stop(study)


def watch(study: optuna.Study, worker: Worker, run: Run, state: TrialState) -> None:
    """Log a worker's name if all its learners fail: it may be at fault, not the learners.

    Raises:
        SetupError: if no learner of an open pool was ever trained, and all fail by one error.
    """
    if state != TrialState.FAIL:
        worker.failed_in_a_row = frozenset()
    if state != TrialState.FAIL or run.learner is None:
        return
    before, worker.failed_in_a_row = worker.failed_in_a_row, worker.failed_in_a_row | {run.learner}
    if run.learner in before or len(worker.failed_in_a_row) != MANY_FAILURES:
        return
    learners = (worker.known.learners[learner] for learner in worker.failed_in_a_row)
    errors = {failure.error for learner in learners for failure in learner.failures.values()}
    # A closed pool ends by itself; an open one would go on failing for all of its time.
    if not worker.known.is_begun and len(errors) == 1 and run.n_learners is None:
        message = (
            f"The first {MANY_FAILURES} learners have all failed by one error, and none was "
            f"trained: {errors.pop().rstrip('.')}. Mend it, and start the study again."
        )
        if host.error_of_run() is not None:
            raise SetupError(message)
        _logger.error(message)  # Optuna asserts that a value that is no number raised nothing
        host.stop(study)
        return
    _logger.warning(
        "The last %d learners that process %d on %s trained have all failed. Look for the error "
        "above: if it is the machine's (memory, a missing package), stop this worker, "
        "and others will try these learners again.",
        MANY_FAILURES,
        os.getpid(),
        socket.gethostname(),
    )


def warn_of_direction(worker: Worker) -> None:
    """Warn once if a study minimizes but larger scores look better."""
    curves = worker.known.curves
    if worker.sign > 0 or len(curves) > MAX_LEARNERS:
        return
    scores = [[seen.score for seen in curve.observations] for curve in curves.values()]
    steps = [pair for each in scores for pair in pairwise(each)]
    n_rising = sum(later < earlier for earlier, later in steps)  # signed: larger is better
    if len(steps) >= MIN_STEPS and n_rising >= RISING_SHARE * len(steps):
        worker.warn(
            "direction",
            f"The study minimizes, but {n_rising} of {len(steps)} scores rose with more training "
            "examples of the same learner, as those of accuracy do: if larger scores are better, "
            'create the study with `direction="maximize"`.',
        )
