"""Limits of a study's scores: no forecast, and no end of an interval, is shown beyond them.

A scorer may state them (0 and 1 for an accuracy), and the study then stores them. If it does not,
they are taken from the scores: 0 and 1 if all are in [0, 1] and larger is better. If all are
losses of at least 0, the best possible score is 0.
"""

from __future__ import annotations

import math

import optuna

from optuna_daub.core.checks import brief
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.core.limits import Limits
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking


def write_limits(study: optuna.Study, limits: Limits) -> None:
    """Store the limits of scores if they are new."""
    known = [end if math.isfinite(end) else None for end in limits]  # JSON has no infinity
    if log.read_mark(study, "limits") != known:
        log.write_mark(study, "limits", known)


def read_limits(study: optuna.Study) -> Limits | None:
    """Return the limits that are stored; None without them.

    Raises:
        ValueError: if the stored ones are damaged.
    """
    stored = log.read_mark(study, "limits")
    if stored is None:
        return None
    ends = stored if isinstance(stored, list) else []
    if len(ends) != 2 or not all(isinstance(end, int | float | None) for end in ends):
        raise ValueError(
            "The stored limits of a study's scores must be two numbers, but study "
            f"'{study.study_name}' has {brief(stored)}. {records.CHANGED}"
        )
    lowest, highest = ends
    return Limits(
        -math.inf if lowest is None else lowest, math.inf if highest is None else highest
    )


def limits_of(study: optuna.Study) -> Limits:
    """Return the limits of scores, in the user's direction; infinite if not known.

    A stored limit does not count once a score is beyond it.

    >>> study = optuna.create_study(direction="maximize")
    >>> limits_of(study)
    Limits(lowest=-inf, highest=inf)
    >>> write_limits(study, Limits(highest=1.0))
    >>> limits_of(study)
    Limits(lowest=-inf, highest=1.0)
    """
    worker = looking(study)
    return limits_seen(study, worker).signed(worker.sign)


def limits_seen(study: optuna.Study, worker: Worker) -> Limits:
    """Return the limits of scores at the worker's last look, larger is better."""
    stored, seen = read_limits(study), worker.known.curves.columns(_range)
    limits, seen = (stored or UNLIMITED).signed(worker.sign), seen[~(seen[:, 0] > seen[:, 1])]
    if not len(seen):
        return limits
    worst, best = float(seen[:, 0].min()), float(seen[:, 1].max())
    if stored is not None:
        lowest = limits.lowest if worst >= limits.lowest else -math.inf
        highest = limits.highest if best <= limits.highest else math.inf
    else:
        is_share = worker.sign > 0 and worst >= 0.0 and best <= 1.0
        lowest = 0.0 if is_share else -math.inf
        is_loss = worker.sign < 0 and best <= 0.0
        highest = 1.0 if is_share else 0.0 if is_loss else math.inf
    return Limits(lowest, highest)


def _range(curve: LearningCurve) -> tuple[float, float]:
    """Return the smallest and the largest score of a learner, including training scores."""
    scores = [
        score
        for seen in curve.observations
        for score in (seen.score, seen.training_score)
        if score is not None and is_finite(score)
    ]
    return min(scores, default=math.inf), max(scores, default=-math.inf)
