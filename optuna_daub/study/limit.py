"""The best possible score: no forecast, and no end of an interval, is shown beyond it.

A scorer may state it (1 for an accuracy), and the study then stores it. If none does, it is taken
from the scores: 1 if all are in [0, 1] and larger is better, 0 if all are losses of at least 0.
"""

from __future__ import annotations

import math

import optuna

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import is_finite
from optuna_daub.study import log
from optuna_daub.study.worker import looking


def write_limit(study: optuna.Study, limit: float) -> None:
    """Store the best possible score if it is new. It is 1 for an accuracy, for example."""
    if log.read_mark(study, "limit") != limit:
        log.write_mark(study, "limit", limit)


def read_limit(study: optuna.Study) -> float | None:
    """Return the best possible score that is stored; None without one."""
    limit = log.read_mark(study, "limit")
    return None if limit is None else float(limit)


def limit_of(study: optuna.Study) -> float:
    """Return the best possible score; infinite if none is known.

    A stored limit does not count once a score is beyond it.

    >>> study = optuna.create_study(direction="maximize")
    >>> limit_of(study)
    inf
    >>> write_limit(study, 1)
    >>> limit_of(study)
    1.0
    """
    worker = looking(study)
    sign, stored = worker.sign, read_limit(study)
    seen = worker.known.curves.columns(_range)
    seen = seen[~(seen[:, 0] > seen[:, 1])]
    if not len(seen):
        return sign * math.inf if stored is None else stored
    lowest, highest = float(seen[:, 0].min()), float(seen[:, 1].max())  # larger is better
    if stored is not None:
        return stored if highest <= sign * stored else sign * math.inf
    if highest <= 0.0:
        return 0.0
    return 1.0 if sign > 0 and lowest >= 0.0 and highest <= 1.0 else sign * math.inf


def within(study: optuna.Study, score: float) -> float:
    """Return a forecast, or the best possible score if the forecast is beyond it.

    >>> study = optuna.create_study(direction="maximize")
    >>> within(study, 1.02)
    1.02
    >>> write_limit(study, 1)
    >>> within(study, 1.02), within(study, 0.98)
    (1.0, 0.98)
    """
    return cut(score, limit_of(study), looking(study).sign)


def cut(score: float, limit: float, sign: int) -> float:
    """Return a score, or the limit if the score is beyond it.

    Args:
        score: a score in the user's direction.
        limit: best possible score in the user's direction; infinite for none.
        sign: -1 if smaller scores are better, else 1.

    >>> cut(1.1, 1.0, 1), cut(-0.1, 0.0, -1), cut(0.1, 0.0, -1)
    (1.0, 0.0, 0.1)
    """
    return limit if sign * score > sign * limit else score


def _range(curve: LearningCurve) -> tuple[float, float]:
    """Return the smallest and the largest score of a learner, including training scores."""
    scores = [
        score
        for seen in curve.observations
        for score in (seen.score, seen.training_score)
        if score is not None and is_finite(score)
    ]
    return min(scores, default=math.inf), max(scores, default=-math.inf)
