"""Measurements of a search's candidates in its study, and `cv_results_` made of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import Trial
from optuna.trial import TrialState
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import odd_columns
from optuna_daub.objective.data import said_of
from optuna_daub.sklearn.folds import Evaluation
from optuna_daub.sklearn.folds import FitError
from optuna_daub.sklearn.folds import Measured
from optuna_daub.sklearn.folds import by_scorer
from optuna_daub.sklearn.folds import scorer_names
from optuna_daub.study import LearnerCurve
from optuna_daub.study import allocations
from optuna_daub.study import learning_curves
from optuna_daub.study import log
from optuna_daub.study import one_row_per_learner
from optuna_daub.study import records


if TYPE_CHECKING:
    from optuna_daub.sklearn.search_cv import DataAllocationSearchCV


_FOLDS = "folds:"
"""Key of a trial's measurements of each fold. The size follows it."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of all candidates of a study."""

    folds: dict[tuple[int, int], list[Measured]]
    """Measurements of each fold, by learner and size; scores by scorer."""
    seconds: dict[int, float]
    """Seconds of all trainings, by learner."""
    scorers: tuple[str, ...]
    """Names of the scorers; empty if there is one score without a name."""

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the scores in `cv_results_`."""
        return self.scorers or ("score",)

    @property
    def missing(self) -> Measured:
        """Measurements of a fold on which the candidate was not trained: NaN in each column."""
        some = next(iter(self.folds.values()))[0]
        return by_scorer([dict.fromkeys(some, np.nan)], self.shown)[0]


def write_folds(trial: Trial, size: int, measured: Sequence[Measured]) -> None:
    """Keep the measurements of each fold with the trial."""
    columns = {name: [fold[name] for fold in measured] for name in measured[0]}
    log.write_mark(trial, f"{_FOLDS}{size}", columns)


def measurements(study: optuna.Study, n_splits: int) -> Measurements:
    """Return the measurements of all candidates.

    Raises:
        ValueError: if a training was on another number of folds.
    """
    probes = allocations(study)
    # Read folds after the scores. A worker stores folds first, so each score read has its folds.
    trials = study.get_trials(deepcopy=False)
    folds: dict[tuple[int, int], list[Measured]] = {}
    seconds: dict[int, float] = {}
    for probe in probes:
        learner, seen = probe.learner, probe.observation
        seconds[learner] = seconds.get(learner, 0.0) + (seen.seconds or 0.0)
        columns = log.read_mark(trials[probe.trial], f"{_FOLDS}{seen.size}")
        if columns is None or len(columns["test_scores"]) != n_splits:
            raise ValueError(
                f"Study {brief(study.study_name)} must have been started by a search with the "
                f"same `cv`, {n_splits} folds, but trial {probe.trial} has others. Take "
                "another `study_name`."
            )
        rows = zip(*columns.values(), strict=True)
        folds[learner, seen.size] = [dict(zip(columns, r, strict=True)) for r in rows]
    scorers = scorer_names(fold for measured in folds.values() for fold in measured)
    names = scorers or ("score",)
    return Measurements({key: by_scorer(f, names) for key, f in folds.items()}, seconds, scorers)


def trained_curves(search: DataAllocationSearchCV) -> list[LearnerCurve]:
    """Return the curves of candidates that were trained or dropped.

    The others are left out: another worker may be at their first training.

    Raises:
        ValueError: if there are none.
    """
    curves = [c for c in learning_curves(search.study_) if c.observations or c.state == "dropped"]
    if not curves:
        raise ValueError(
            f"No candidate was trained within `timeout={search.timeout}` seconds. Give more."
        )
    return curves


def check_some_fitted(
    search: DataAllocationSearchCV,
    curves: Sequence[LearnerCurve],
    evaluate: Evaluation,
    *,
    has_best: bool,
) -> None:
    """Raise a ValueError from the first error if all fits failed.

    Args:
        search: search whose study has ended.
        curves: curves of its candidates.
        evaluate: evaluation that this process used; it holds the errors.
        has_best: True if some candidate with a score is left.
    """
    n_fits = search.n_splits_ * sum(len(curve.observations) for curve in curves)
    reasons = "\n".join(dict.fromkeys(curve.reason for curve in curves))
    if not n_fits and not evaluate.errors:
        raise ValueError(
            f"The space rejected all the {len(curves)} candidates, so there is none to choose. "
            "Choose a space of which less is rejected, or search for longer. Below are all "
            f"reasons:\n{reasons}"
        )
    # If `error_score` is a number, failed fits are among the observations.
    if has_best and len(evaluate.counted) != n_fits:
        return
    first = next(iter(evaluate.errors), None)
    fewest = min(len(fold.subset(search.min_resources_)) for fold in evaluate.folds.folds)
    # Errors of scorers are in scikit-learn's warnings only.
    seen = "above is the first error, and " if first else "warnings name errors of scorers, and "
    raise ValueError(
        f"All the {len(curves)} candidates failed, so there is none to choose. It is "
        "likely that the estimator is misconfigured, or cannot be fitted or scored on few "
        f"rows: then let `min_resources` be more than {search.min_resources_:,} "
        f"(the smallest fold has {fewest:,} of them); {seen}"
        '`error_score="raise"` shows where a fit fails. '
        f"{said_of(odd_columns(evaluate.X))} Below are all reasons:\n{reasons}"
    ) from first


def cv_results(
    search: DataAllocationSearchCV,
    curves: Sequence[LearnerCurve],
    measured: Measurements,
    params_of: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Return `cv_results_`, one row for each curve.

    Args:
        search: search whose study has ended.
        curves: curves of its candidates.
        measured: measurements of the same candidates, read after the curves.
        params_of: function from a candidate's parameters in the study to the estimator's.
    """
    forecasts = {
        records.read_summary(row, "learner"): row.values[0]
        for row in one_row_per_learner(search.study_).get_trials(states=(TrialState.COMPLETE,))
    }
    known = [(forecasts.get(c.learner), c.worst, c.bound) for c in curves]
    forecast, lower, upper = np.array(known, np.float64).T  # nan for what is not known
    more: dict[str, Any] = {
        "learner": [c.learner for c in curves],
        "iter": [search.n_resources_.index(c.size) if c.size else 0 for c in curves],
        "n_resources": [c.size for c in curves],
        "seconds": [measured.seconds.get(c.learner, 0.0) for c in curves],
        "state": [c.state for c in curves],
        "reason": [c.reason for c in curves],
        "forecast_test_score": forecast,
        "lower_test_score": lower,
        "upper_test_score": upper,
    }
    missing = [measured.missing] * search.n_splits_
    probes = [(curve.learner, curve.size) for curve in curves]
    out = [fold for probe in probes for fold in measured.folds.get(probe, missing)]
    params = [params_of(curve.params) for curve in curves]
    results: dict[str, Any] = search._format_results(params, search.n_splits_, out, more)
    is_full = np.asarray(more["n_resources"]) == search.max_resources_
    for name in measured.shown:
        results[f"rank_test_{name}"] = _ranks(is_full, results[f"mean_test_{name}"])
    return results


def warn_of_failures(
    search: DataAllocationSearchCV, curves: Sequence[LearnerCurve], errors: Sequence[FitError]
) -> None:
    """Warn of failed fits, dropped candidates, and a lack of fully trained ones."""
    if errors:
        warnings.warn(
            f"{len(errors)} fits failed, whose score is `error_score={search.error_score}`. "
            f"Below are the errors:\n" + "\n".join(dict.fromkeys(map(str, errors))),
            FitFailedWarning,
            stacklevel=5,
        )
    if dropped := [curve for curve in curves if curve.state == "dropped"]:
        warnings.warn(
            f"{len(dropped)} of {len(curves)} candidates were dropped. Below are the reasons; "
            '`error_score="raise"` shows where a fit fails, and a larger `min_resources` than '
            f"{search.min_resources_:,} helps if they lack rows.\n"
            + "\n".join({curve.reason: None for curve in dropped}),
            FitFailedWarning,
            stacklevel=5,
        )
    if all(curve.size < search.max_resources_ for curve in curves):
        within = "" if search.timeout is None else f" within `timeout={search.timeout}` seconds"
        warnings.warn(
            f"No candidate was trained on all {search.max_resources_:,} rows of a fold{within}: "
            "the one with the best forecast is chosen.",
            UserWarning,
            stacklevel=5,
        )


def _ranks(is_full: NDArray[np.bool_], means: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return ranks from 1: scores on all rows first, then other scores, then missing ones.

    >>> _ranks(np.array([True, False, True, True]), np.array([0.7, 0.9, 0.8, np.nan]))
    array([2, 3, 1, 4], dtype=int32)
    """
    is_scored = np.isfinite(means)
    worst_first = np.where(is_scored, means, 0.0), is_scored & is_full, is_scored
    _, place = np.unique(np.stack(worst_first[::-1]), axis=1, return_inverse=True)
    return np.asarray(rankdata(-place.ravel(), method="min"), dtype=np.int32)
