"""The study of a search: created or continued, and run."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import field
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import optuna
from joblib import effective_n_jobs
from optuna.study import StudyDirection
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from optuna.trial import Trial
from sklearn import config_context
from sklearn import get_config

from optuna_daub.core.checks import brief
from optuna_daub.core.limits import Limits
from optuna_daub.objective.fingerprint import check_fingerprint
from optuna_daub.objective.fingerprint import read_fingerprint
from optuna_daub.objective.process import logs_from
from optuna_daub.sklearn.folds import Evaluation
from optuna_daub.sklearn.folds import FitError
from optuna_daub.sklearn.folds import metric_of
from optuna_daub.sklearn.folds import scorer_names
from optuna_daub.sklearn.measurements import write_folds
from optuna_daub.study import DataAllocationSampler
from optuna_daub.study import DAUBPruner
from optuna_daub.study import host
from optuna_daub.study import report
from optuna_daub.study import training_sizes
from optuna_daub.study.limits import write_limits
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.storages import opened


if TYPE_CHECKING:
    from optuna_daub.sklearn.search_cv import DataAllocationSearchCV


MAX_FAILED = 10
"""Number of candidates, all failed, after which a search ends."""


@dataclass(frozen=True)
class Candidates:
    """The parameters of estimators, for the candidates of the study."""

    space: Callable[[BaseTrial], dict[str, Any]]
    """Function from a trial to the estimator's parameters; a `TrialPruned` rejects the trial."""
    drawn: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Estimators' parameters that this process drew, by the text of the study's parameters."""

    def draw(self, trial: Trial) -> dict[str, Any]:
        """Return the estimator's parameters for a trial that runs."""
        try:
            params = self.space(trial)
        except optuna.TrialPruned:
            self.drawn.setdefault(_text(trial.params), trial.params)
            raise
        self.drawn[_text(trial.params)] = params
        return params

    def params_of(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the estimator's parameters for a candidate of the study."""
        # Candidates of other processes and earlier searches are not in memory: ask the space.
        found = self.drawn.get(_text(known))
        if found is not None:
            return found
        try:
            return self.space(FixedTrial({**known}))
        except optuna.TrialPruned:  # the space rejects them: no estimator has them
            return {**known}


def study_of(
    search: DataAllocationSearchCV,
    n_candidates: int | None,
    grid: tuple[int, ...],
    seed: int,
    started_with: Mapping[str, str],
    limits: Limits | None,
) -> optuna.Study:
    """Return a new study, or the one of that name.

    Args:
        search: search that asks.
        n_candidates: number of candidates to choose among, None for no limit.
        grid: training sizes.
        seed: seed of the sampler, unless the user passed one.
        started_with: fingerprint that all searches of the study share.
        limits: limits of scores, None if they are not known.

    Raises:
        ValueError: if the study does not maximize one score, or has results of another search.
    """
    if isinstance(search.sampler, DataAllocationSampler):
        raise ValueError(
            "`sampler` must be the sampler that proposes candidates, such as "
            "`optuna.samplers.TPESampler(seed=0)`, but got a DataAllocationSampler, which the "
            "search makes itself."
        )
    sampler = copy.deepcopy(search.sampler)
    if sampler is None and n_candidates is not None:
        # All of few candidates are proposed after their smallest trainings alone. The model
        # then stays too near the first ones: an SVC on digits, twelve candidates, five seeds
        # had 0.91 to 0.97, with TPE 0.97.
        sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(
        storage=opened(search.storage),
        study_name=search.study_name,
        load_if_exists=search.study_name is not None,
        direction="maximize",
        sampler=DataAllocationSampler(
            sampler,
            n_learners=n_candidates,
            seed=seed if sampler is None else None,
        ),
        pruner=DAUBPruner(sizes=grid, cost=search.cost),
    )
    if study.directions != [StudyDirection.MAXIMIZE]:
        goals = [each.name.lower() for each in study.directions]
        raise ValueError(
            f"A search maximizes one score, but study '{study.study_name}' is to {brief(goals)}. "
            "Take another `study_name`."
        )
    trials = study.get_trials(deepcopy=False)
    if not read_fingerprint(study) and any(t.values or t.intermediate_values for t in trials):
        raise ValueError(
            f"A search goes on with studies of searches only, but study '{study.study_name}' has "
            "results of something else. Take another `study_name`."
        )
    check_fingerprint(study, started_with)
    if limits is not None:
        write_limits(study, limits)
    return study


def run(search: DataAllocationSearchCV, candidates: Candidates, evaluate: Evaluation) -> None:
    """Train candidates until the study ends, or until the first `MAX_FAILED` have all failed."""
    config = get_config()  # scikit-learn keeps one for each thread
    n_validation = sum(len(fold.validation) for fold in evaluate.folds.folds)
    scored: list[int] = []
    trained: set[int] = set()

    def objective(trial: Trial) -> float:
        with config_context(**config):
            params = candidates.draw(trial)
            for size in training_sizes(trial):
                trained.add(trial.number)
                measured = evaluate(params, size)
                if names := scorer_names(measured):  # of a function, known only now
                    search._check_refit_for_multimetric(names)
                score = float(np.mean(metric_of(measured, search.refit)))
                if math.isfinite(score):
                    scored.append(trial.number)
                # Folds before the score, so a process that reads a score finds its folds.
                write_folds(trial, size, measured)
                report(trial, size, score, n_validation=n_validation)
            return score

    def end_if_all_fail(study: optuna.Study, trial: FrozenTrial) -> None:
        if not scored and len(trained) >= 2 * MAX_FAILED:  # each is tried twice
            study.stop()

    try:
        host.optimize(
            search.study_,
            objective,
            timeout=search.timeout,
            n_jobs=effective_n_jobs(search.n_jobs),
            catch=(FitError,),
            callbacks=[end_if_all_fail],
        )
    except SetupError:
        # If all fits fail, the search says so itself, with the first error (`check_some_fitted`).
        if scored or not evaluate.errors:
            raise


def _text(params: Mapping[str, Any]) -> str:
    return repr(sorted(params.items()))


def quiet(verbose: int) -> AbstractContextManager[None]:
    """Return a context for logs: if `verbose` is 0, only errors of Optuna and optuna_daub."""
    return nullcontext() if verbose else logs_from(logging.ERROR, "optuna", "optuna_daub")
