"""Checks that a study fits its objective, before anything is trained."""

from __future__ import annotations

import logging
import warnings
import weakref
from typing import Any
from typing import cast

import optuna
from optuna.study import StudyDirection
from optuna.trial import Trial

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.description import bounded
from optuna_daub.objective.description import of_arguments
from optuna_daub.objective.description import stable
from optuna_daub.objective.division import Division
from optuna_daub.objective.fingerprint import TRAINING
from optuna_daub.objective.fingerprint import check_fingerprint
from optuna_daub.objective.fingerprint import of_folds
from optuna_daub.objective.fingerprint import of_table
from optuna_daub.objective.fingerprint import read_fingerprint
from optuna_daub.objective.fitting import last_step
from optuna_daub.objective.scoring import has_scorer
from optuna_daub.objective.scoring import own_limits
from optuna_daub.objective.scoring import task_of
from optuna_daub.objective.training import Training
from optuna_daub.study import AllocationPruner
from optuna_daub.study import host
from optuna_daub.study.limits import write_limits
from optuna_daub.study.records import read_run
from optuna_daub.study.setup_errors import SetupError


_logger = logging.getLogger(__name__)

_DIVISION = "division into training and validation rows"


class StudyChecks:
    """Checks of the studies that an objective runs in. Each message is shown once."""

    def __init__(self, training: Training) -> None:
        self._training, self._division = training, training.division
        self._scoring, self._weighted = training.scoring, training.weighted
        self._made_of = _of_tables(training.division)
        self._asked = set[type]()  # kinds of estimators of which it is known whether they refit
        self._has_warned = False  # of a score for which the promise of intervals does not hold
        # Studies whose fingerprint was found to be this one, with their training sizes and the
        # start of the `study.optimize` in which it was.
        self._agreed: weakref.WeakKeyDictionary[optuna.Study, tuple[Any, ...]]
        self._agreed = weakref.WeakKeyDictionary()
        self._told: weakref.WeakSet[optuna.Study] = weakref.WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what was compared and logged in this process."""
        own = ("_agreed", "_told")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the checks, with nothing compared yet."""
        vars(self).update(state, _agreed=weakref.WeakKeyDictionary(), _told=weakref.WeakSet())

    def check(self, trial: Trial, estimator: Any) -> None:
        """Raise a SetupError if the trial's study does not fit. Warn of rows left out."""
        study, pruner = trial.study, cast(AllocationPruner, trial.study.pruner)
        sizes = pruner.policy.sizes
        self._check_direction(study)
        self._check_pruner(pruner, estimator)
        self._check_same_rows(trial, sizes)
        self._say_once(study, sizes[-1], estimator)
        self._warn_of_refit(estimator)

    def _check_direction(self, study: optuna.Study) -> None:
        """Raise a SetupError if the study's direction would find the worst score."""
        larger = self._scoring.larger_is_better
        if larger is None:
            return
        wrong = StudyDirection.MINIMIZE if larger else StudyDirection.MAXIMIZE
        if wrong in study.directions:
            better, way_out = ("smaller", 'Pass `direction="minimize"` to `create_study`.')
            if larger:
                better = "larger (as all of scikit-learn's are)"
                way_out = (
                    'Pass `direction="maximize"` to `optuna.create_study`, which minimizes unless '
                    'told; for losses there are negated scorers, such as "neg_log_loss".'
                )
            raise SetupError(
                f"The study must not {wrong.name.lower()} a score that is {better} for better "
                f"learners, but got `scoring={brief(self._scoring.given)}` in such a study: it "
                f"would pick the worst learner. {way_out}"
            )

    def _check_pruner(self, pruner: AllocationPruner, estimator: Any) -> None:
        """Raise a SetupError if the pruner's sizes or samples do not fit the rows."""
        division, needs = self._division, pruner.policy.needs
        least, largest = pruner.policy.sizes[0], pruner.policy.sizes[-1]
        if largest > division.n_train:
            raise SetupError(
                f"`max_resource` must not exceed the {division.n_train} rows there are to train on"
                f"{' in the largest fold' if division.is_crossed else ''}, but got {largest}. "
                "Pass `max_resource=objective.n_train`."
            )
        complete, last_class = division.complete
        if least < complete:
            raise SetupError(
                f"`min_resource` must be at least {complete}, the smallest training size that "
                f"holds every class (class {last_class} comes last), but got {least}. Pass "
                f'`min_resource={complete}` or more, `scoring="r2"` for amounts, or '
                "`stratify=False`."
            )
        if len(division.folds) > 1 and (needs.mean_of_examples or needs.n_validation):
            raise SetupError(
                "The pruner's intervals need one validation set that no learner is trained on, "
                f"but got `cv` with {len(division.folds)} folds. Leave `cv` out, or pass "
                "`X_valid`."
            )
        if needs.n_validation not in (None, division.n_validation):
            raise SetupError(
                f"`n_validation` of {type(pruner).__name__} must be the size of the full held-out "
                f"set, {division.n_validation}, but got {needs.n_validation}. Pass "
                "`n_validation=objective.n_validation`."
            )
        if needs.mean_of_examples:
            self._check_mean(type(pruner).__name__, estimator)

    def _check_mean(self, name: str, estimator: Any) -> None:
        """Raise a SetupError if scores are of a sample. Warn once if they may be no mean.

        Args:
            name: name of the pruner, whose intervals need means over the examples it counts.
            estimator: estimator of the trial, whose own score may be the one.
        """
        given = brief(self._scoring.given)
        if getattr(self._scoring.given, "scores_a_sample", False):
            raise SetupError(
                f"The intervals of {name} need a score on all validation rows, since their width "
                f"depends on the number of rows, but got `scoring={given}`, which scores only a "
                'sample of them. Pass `scoring="accuracy"`, or take `DAUBPruner`.'
            )
        if self._has_warned or self._is_accuracy(estimator):
            return
        self._has_warned = True
        # Hoeffding's inequality and its relatives hold for n values that count alike.
        weights = " with `weighted_score=True`" if self._weighted else ""
        way_out = " Leave out `weighted_score`." if self._weighted else ""
        warnings.warn(
            f"The intervals of {name} assume a score that is a mean over examples of values in "
            f"[0, 1], such as accuracy, but `scoring` is {given}{weights}: unless it is such a "
            f"mean, the promise of epsilon and delta does not hold.{way_out}",
            stacklevel=2,
        )

    @property
    def fingerprint(self) -> dict[str, str]:
        """The fingerprint that all scores of a study share, by name."""
        weighted = ", with weights" if self._weighted else ""
        texts = {
            "data": _of_tables(self._division),
            _DIVISION: of_folds(self._division.folds),
            "scoring": f"{stable(self._scoring.given)}{weighted}",
            "fit_params": of_arguments(self._training.fit_params),
            TRAINING: self._training.way,
        }
        return {name: bounded(text) for name, text in texts.items()}

    def _check_same_rows(self, trial: Trial, sizes: tuple[int, ...]) -> None:
        """Raise a SetupError if scores in the study have other rows, sizes or scorers."""
        study = trial.study
        now = (sizes, host.begin(study))
        if self._agreed.get(study) == now:
            return
        begun_with = {**self.fingerprint, "training sizes": bounded(str([*sizes]))}
        if begun_with["data"] != self._made_of:
            raise SetupError(
                "`X` and `y` must stay as they were when the objective was made, since the rows "
                "to score were copied then, but they have been changed in place. Make a new "
                "objective of them."
            )
        if not read_fingerprint(study):
            _check_own_results(study, sizes)
        try:
            is_begun = check_fingerprint(study, begun_with, trial.number)
        except ValueError as error:
            raise SetupError(str(error)) from None
        if is_begun:  # before, another worker may still store another fingerprint
            self._agreed[study] = now

    def _say_once(self, study: optuna.Study, largest: int, estimator: Any) -> None:
        """Warn of rows left out, and store the limits of scores, once for each study."""
        if study in self._told:
            return
        self._told.add(study)
        if largest < self._division.n_train:
            _logger.warning(
                "%s of %s rows to train on are left out: `max_resource` is %s. Pass "
                "`max_resource=objective.n_train` to use them all.",
                f"{self._division.n_train - largest:,}",
                f"{self._division.n_train:,}",
                f"{largest:,}",
            )
        is_own = self._scoring.given is None
        limits = own_limits(estimator) if is_own else self._scoring.limits
        if limits is not None:
            write_limits(study, limits)

    def _warn_of_refit(self, estimator: Any) -> None:
        """Log once for each kind of estimator if `refit`, without validation rows, would fail."""
        kind, training = type(last_step(estimator)), self._training
        if not self._division.is_crossed or not callable(training.fit_params):
            return
        if kind not in self._asked:
            self._asked.add(kind)
            rows, validation = self._division.for_refit(include_validation=False)
            try:
                training.fit_arguments_of(estimator, rows, validation)
            except SetupError as error:
                _logger.warning("`refit` would fail with this objective: %s", error)

    def warn_of_other_rows(self, study: optuna.Study) -> None:
        """Warn if the study's scores come from other rows than the fit of the winner."""
        begun_with, now = read_fingerprint(study), self.fingerprint
        for name in ("data", _DIVISION):
            if begun_with.get(name) not in (None, now[name]):
                warnings.warn(
                    f"The winner of study {brief(study.study_name)} was scored on other rows than "
                    f"those that it is fitted on now: the {name} of the study is "
                    f"{begun_with[name]}, that of this objective {now[name]}.",
                    UserWarning,
                    stacklevel=3,
                )
                return

    def _is_accuracy(self, estimator: Any) -> bool:
        if self._weighted:
            return False
        if self._scoring.given is None:  # accuracy of classifiers, R^2 of regressors
            if has_scorer(estimator):
                return False
            task = task_of(estimator)
            has_labels = class_labels(self._division.rows.y) is not None
            return task == "classification" or (task is None and has_labels)
        return bool(self._scoring.given == "accuracy")


def _check_own_results(study: optuna.Study, sizes: tuple[int, ...]) -> None:
    """Raise a SetupError if a study without a fingerprint has results of another objective.

    Scores at the training sizes may be of an older version: they only cause a warning.
    """
    trials = study.get_trials(deepcopy=False)
    scored = [trial for trial in trials if trial.values or trial.intermediate_values]
    for trial in scored:
        is_at_sizes = len(trial.intermediate_values.keys() & {*sizes}) > 0
        if read_run(trial) is None and not is_at_sizes:
            raise SetupError(
                "A study must go on with the objective it was started with: study "
                f"'{study.study_name}' has results of another one, such as that of trial "
                f"{trial.number}. They would be compared with scores of this one. Take another "
                "`study_name`, and give parameters that you know to be good to "
                "`study.enqueue_trial`."
            )
    if scored:
        _logger.warning(
            "Study '%s' has %d trials with scores and no record of their rows and scorer. They "
            "are compared with scores of this objective. If rows or scorer differ, take another "
            "`study_name`.",
            study.study_name,
            len(scored),
        )


def _of_tables(division: Division) -> str:
    return " and ".join(of_table(each.X, each.y, each.sample_weight) for each in division.tables)
