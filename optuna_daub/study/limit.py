"""The best score that there can be, a fact of the study: no forecast goes beyond it."""

from __future__ import annotations

import optuna
from optuna.study import StudyDirection

from optuna_daub.study import log


def write_limit(study: optuna.Study, limit: float) -> None:
    """Store the best score that there can be, such as 1 of an accuracy, if it is new."""
    if log.read_mark(study, "limit") != limit:
        log.write_mark(study, "limit", limit)


def read_limit(study: optuna.Study) -> float | None:
    """Return the best score that there can be; None if that is not known."""
    limit = log.read_mark(study, "limit")
    return None if limit is None else float(limit)


def within(study: optuna.Study, score: float) -> float:
    """Return a forecast, or the best score that there can be if the forecast is beyond it.

    >>> study = optuna.create_study(direction="maximize")
    >>> within(study, 1.02)
    1.02
    >>> write_limit(study, 1)
    >>> within(study, 1.02), within(study, 0.98)
    (1.0, 0.98)
    """
    limit = read_limit(study)
    if limit is None:
        return score
    return max(score, limit) if study.direction == StudyDirection.MINIMIZE else min(score, limit)
