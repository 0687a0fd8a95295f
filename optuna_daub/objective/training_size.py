"""The ready-made objective for scikit-learn compatible estimators."""

from __future__ import annotations

import logging
import warnings
import weakref
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from typing import Literal
from typing import cast

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from optuna.trial import Trial
from optuna.trial import TrialState
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.base import is_regressor

from optuna_daub.core.checks import flag
from optuna_daub.core.policies.policy import Needs
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import check_labels_known
from optuna_daub.objective.data import check_weights
from optuna_daub.objective.data import checked_column
from optuna_daub.objective.data import checked_rows
from optuna_daub.objective.data import checked_seed
from optuna_daub.objective.data import checked_validation
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.data import classes_to_keep
from optuna_daub.objective.data import is_categorical
from optuna_daub.objective.data import joined
from optuna_daub.objective.data import odd_columns
from optuna_daub.objective.data import said_of
from optuna_daub.objective.description import bounded
from optuna_daub.objective.description import stable
from optuna_daub.objective.fingerprint import check_fingerprint
from optuna_daub.objective.fingerprint import of_folds
from optuna_daub.objective.fingerprint import of_table
from optuna_daub.objective.fingerprint import read_fingerprint
from optuna_daub.objective.models import KeptModels
from optuna_daub.objective.models import Trained
from optuna_daub.objective.models import extended
from optuna_daub.objective.scoring import FitParams
from optuna_daub.objective.scoring import Scoring
from optuna_daub.objective.scoring import checked_fit_params
from optuna_daub.objective.scoring import checked_scoring
from optuna_daub.objective.scoring import fit_arguments
from optuna_daub.objective.scoring import fitted
from optuna_daub.objective.scoring import fitted_as_is
from optuna_daub.objective.scoring import named_in_errors
from optuna_daub.objective.scoring import takes_previous
from optuna_daub.objective.scoring import takes_size
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import check_all_scored
from optuna_daub.objective.subsets import checked_test_size
from optuna_daub.objective.subsets import complete_from
from optuna_daub.objective.subsets import cross_validation_folds
from optuna_daub.objective.subsets import held_out_fold
from optuna_daub.objective.subsets import nested_order
from optuna_daub.objective.subsets import undivided
from optuna_daub.study import AllocationPruner
from optuna_daub.study import DataAllocationSampler
from optuna_daub.study import allocations
from optuna_daub.study import best_learner
from optuna_daub.study import learning_curves
from optuna_daub.study import report
from optuna_daub.study import training_sizes
from optuna_daub.study.limit import write_limit
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.setup_errors import ending_study
from optuna_daub.study.stored_policy import policy_of


_logger = logging.getLogger(__name__)

TRAINING_SCORED = 5_000
"""Largest number of training rows that are scored. A share of 5,000 has a standard error of at
most 0.007 = sqrt(0.25 / 5,000)."""

MAX_TIES = 8
"""Largest number of models in memory that share the best score on all rows."""

_DIVISION = "division into training and validation rows"


class TrainingSizeObjective:
    """Objective that trains an estimator on growing nested subsets of the data.

    The rows are shuffled once. At each training size n that the pruner hands out, a fresh copy of
    the estimator is fitted on the first n rows and scored on the validation rows. If the pruner's
    rule uses training scores, it is also scored on rows it was trained on: on the first 5,000, for
    ABC on all. Pass `max_resource=objective.n_train` to the pruner.

    >>> from optuna import create_study
    >>> from optuna.samplers import RandomSampler
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner
    >>> def build(trial):
    ...     smoothing = trial.suggest_float("var_smoothing", 1e-9, 1, log=True)
    ...     return GaussianNB(var_smoothing=smoothing)
    >>> objective = TrainingSizeObjective(build, *load_iris(return_X_y=True))
    >>> objective.n_train, objective.n_validation
    (105, 45)
    >>> sampler = DataAllocationSampler(RandomSampler(seed=0), n_learners=3)
    >>> pruner = DAUBPruner(min_resource=30, max_resource=objective.n_train)
    >>> study = create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective)
    >>> objective.refit(study).var_smoothing == study.best_params["var_smoothing"]
    True

    The winner is `study.best_params`, its validation score `study.best_value`.

    **Validation** is done in one of three ways: on the fixed set `X_valid`, `y_valid`; by
    cross-validation with `cv`; or else on a held-out part of the rows. With `cv` scores are means
    over the folds; the largest fold trains on as many rows as the size says, a smaller one on its
    share. Without `cv`, ABC scores small training sizes on a part of the validation rows; every
    other rule uses all of them.

    **Time order**: `shuffle=False` says that rows are in time order. Then the last rows are held
    out, an int `cv` is a `TimeSeriesSplit`, and a subset is the most recent rows before those that
    are scored. A `TimeSeriesSplit` as `cv` does the same. Other splitters are used as they are.

    **Direction**: pass `direction="maximize"` to `optuna.create_study`, which is not Optuna's
    default. In scikit-learn's scorers larger is better; losses are negated ("neg_log_loss"). A
    scoring function of your own may be minimized.

    **Early stopping** takes one function as `fit_params`, which is given the rows. The first one
    is for LightGBM (before 4.7 with `eval_set=[(validation.X, validation.y)]`), the second for
    XGBoost with `early_stopping_rounds`::

        lambda training, validation: {
            "eval_X": validation.X,
            "eval_y": validation.y,
            "callbacks": [lightgbm.early_stopping(20)],
        }
        lambda training, validation: {"eval_set": [(validation.X, validation.y)], "verbose": False}

    If `build` returns several kinds of estimators, take the estimator as a third argument::

        def stop_early(training, validation, estimator):
            if not isinstance(estimator, XGBClassifier):
                return {}
            return {"eval_set": [(validation.X, validation.y)], "verbose": False}

    The same rows then stop the training and score it, so all scores are a little too good.

    **Training further** continues with a learner's model instead of starting anew. With
    `incremental=True` estimators with `partial_fit` learn from the new rows only. A function
    `build(trial, n, previous)` is given the learner's model from its last size, or None, and
    returns the estimator to fit, such as `previous` itself; that estimator is fitted, not a copy.
    A learner whose model was not kept starts anew, and so does `refit`::

        def build(trial, n, previous):
            rate = trial.suggest_float("rate", 0.01, 1.0, log=True)
            model = MLPClassifier(learning_rate_init=rate, warm_start=True)
            return model if previous is None else previous

    Args:
        build: Function from a trial to an unfitted estimator or pipeline. If it has a second
            parameter without a default, `build(trial, n)`, it is called anew at each training size
            n, and once for the full size before. It must suggest the same parameters at all sizes.
            Define it at the top of a module to send the objective to other processes.
        X: Features, one row per example: array, pandas data frame, scipy sparse matrix or list.
        y: Targets, shape (n,) or, for several outputs, (n, number of outputs); all strings or all
            numbers.
        X_valid: Features of a fixed validation set; all of `X` is then for training.
        y_valid: Its targets.
        sample_weight_valid: Its weights; needed to score with weights, and to refit on them.
        cv: Number of folds, at least 2, or a scikit-learn splitter, or an iterable of pairs
            (training rows, validation rows). Its folds are fixed here, once.
        test_size: Rows to hold out if there is neither a fixed set nor `cv`: a fraction in (0, 1),
            or a number of rows. With `groups` it counts groups. 0.3 is the DAUB paper's split.
        groups: Group of each row, shape (n,); no group is both trained on and scored.
        scoring: A scikit-learn scorer, by name or as a function (estimator, X, y) -> float; None
            for the estimator's own `score`. A function may have an attribute `greater_is_better`,
            which is compared with the study's direction.
        sample_weight: Weights of the rows, at least 0, passed to `fit` (in a pipeline to that of
            its last step).
        weighted_score: Pass the weights to the scorer too, as its `sample_weight`.
        fit_params: More arguments of `fit`, as a mapping or a function. In a mapping, an array,
            column or list with as many rows as `X` is cut to the rows trained on, unless its name
            begins with `eval_`. A function (training, validation) or (training, validation,
            estimator) is called before each fit and returns a mapping. `training` and `validation`
            have the attributes `X`, `y`, `sample_weight` and `positions` (row numbers in `X`);
            `validation` is None if `refit` trains on all rows. `estimator` comes from `build`.
        stratify: Keep the shares of the classes in every subset, the held-out part and the folds.
            "auto": labels are classes if `scoring` is a classification scorer of scikit-learn, and
            not if it is a regression scorer. If neither is known, strings, booleans and categories
            are classes, and so are whole numbers of at most 20 different values. True: any whole
            numbers are classes as well. Fractions and several outputs never are. With groups or
            in time order shares are not kept, but every class must be present.
        shuffle: Shuffle the rows; False for rows in time order.
        incremental: Train further on the new rows only, by `partial_fit`. In time order the new
            rows are older ones.
        keep_models: Number of learners, those trained last, whose models are kept in memory; or a
            folder for this study's models. None: 32 learners. Nothing is kept without
            `incremental` or a third argument of `build`.
        seed: Seed of all permutations, from 0 to 2**32 - 1. The same seed gives the same subsets
            on every machine.

    Raises:
        ValueError: if rows are missing or do not match, ways of validation are mixed, a class is
            absent from the training rows, a splitter is not reproducible or leaks, the scorer is
            unknown or compares classes while targets are amounts, or an argument breaks its rule.
            At the first call, before anything is trained, also if the pruner's sizes do not fit
            the rows or the study's direction does not fit the scorer.
    """

    def __init__(
        self,
        build: Callable[[Trial], Any] | Callable[[Trial, int], Any],
        X: Any,
        y: Any,
        *,
        X_valid: Any = None,
        y_valid: Any = None,
        sample_weight_valid: Any = None,
        cv: Any = None,
        test_size: float = 0.3,
        groups: Any = None,
        scoring: Any = "accuracy",
        sample_weight: Any = None,
        weighted_score: bool = False,
        fit_params: FitParams | None = None,
        stratify: bool | Literal["auto"] = "auto",
        shuffle: bool = True,
        incremental: bool = False,
        keep_models: int | str | Path | None = None,
        seed: int = 0,
    ) -> None:
        self._build: Callable[..., Any] = build
        self._takes_size = takes_size(build)
        self._takes_previous = takes_previous(build)
        self._incremental = flag("incremental", incremental)
        if self._incremental and self._takes_previous:
            raise ValueError(
                "`incremental=True` goes on with `partial_fit`, `build(trial, n, previous)` by "
                "itself, but got both. Leave out one or the other."
            )
        self._kept: KeptModels | None = None
        self._scoring, self._has_warned = checked_scoring(scoring), False
        self._has_named = False
        self._weighted_score = flag("weighted_score", weighted_score)
        test_size = checked_test_size(test_size)
        if not (isinstance(stratify, str) and stratify == "auto"):
            stratify = flag("stratify", stratify, or_else='"auto"')
        rows = checked_rows(X, y, sample_weight)
        _check_labels(rows.y, self._scoring)
        fixed = checked_validation(X_valid, y_valid, sample_weight_valid, like=rows)
        if fixed is not None and (cv is not None or groups is not None):
            raise ValueError(
                "`cv` and `groups` say how to divide the rows, but with `X_valid` nothing is "
                "divided. Leave out one or the other."
            )
        self._rows = rows
        self._fit_params = checked_fit_params(
            fit_params, has_weights=rows.sample_weight is not None
        )
        task, is_named = self._scoring.task, is_categorical(y)
        classes = classes_to_keep(rows.y, stratify, task, is_categorical=is_named)
        labels = classes
        if not stratify and (task == "classification" or rows.y.dtype.kind not in "iuf"):
            labels = classes_to_keep(rows.y, "auto", task, is_categorical=is_named)
        if fixed is not None and labels is not None:
            check_labels_known(fixed.y, labels)
        self._layout = Layout(
            n_rows=len(rows),
            seed=checked_seed(seed),
            classes=classes,
            groups=None if groups is None else checked_column(groups, "groups"),
            shuffle=flag("shuffle", shuffle),
        )
        self._cross_validated = cv is not None
        if fixed is not None:
            self._folds: tuple[Fold, ...] = (undivided(self._layout),)
        elif cv is not None:
            self._folds = cross_validation_folds(self._layout, cv, rows.X, rows.y)
        else:
            self._folds = (held_out_fold(self._layout, test_size),)
        self._validation: tuple[Rows, ...] = tuple(
            rows.take(fold.validation) if fixed is None else fixed for fold in self._folds
        )
        if self._weighted_score:
            check_weights(rows, *self._validation)
        if self._scoring.needs_all_classes and (all_classes := class_labels(rows.y)) is not None:
            scored = [each.y for each in self._validation]
            check_all_scored(self._folds, all_classes, scored, self._scoring.given)
            classes = all_classes  # each subset must hold all of them, stratified or not
        self._complete = complete_from(self._folds, classes)
        if self._incremental or self._takes_previous:
            self._kept = KeptModels(keep_models, str(self._fingerprint))
        elif keep_models is not None:
            raise ValueError(
                "`keep_models` is of models to go on from, but got it without "
                "`incremental=True` or a `build(trial, n, previous)`. Leave it out."
            )
        # Studies whose fingerprint was found to be this one, with their training sizes.
        self._agreed: weakref.WeakKeyDictionary[optuna.Study, tuple[int, ...]]
        self._agreed = weakref.WeakKeyDictionary()
        self._told: weakref.WeakSet[optuna.Study] = weakref.WeakSet()
        # The best score on all rows (larger is better), with the parameters and models that share
        # it.
        self._best: list[tuple[float, dict[str, Any], Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out caches of this process: compared studies and the best models."""
        own = ("_agreed", "_told")
        known = {name: value for name, value in vars(self).items() if name not in own}
        return known | {"_best": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the objective with empty caches."""
        vars(self).update(state, _agreed=weakref.WeakKeyDictionary(), _told=weakref.WeakSet())

    @property
    def n_train(self) -> int:
        """Number of rows to train on, the largest size; with `cv` that of the largest fold.

        A smaller fold takes its share: at half of the size, half of its own rows.
        """
        return max(len(fold.training) for fold in self._folds)

    @property
    def n_validation(self) -> int:
        """Number of rows to score; with `cv` summed over the folds."""
        return sum(map(len, self._validation))

    @property
    def smallest_size(self) -> int:
        """Smallest training size that holds every class; 1 for amounts."""
        return max(1, self._complete[0])

    def __call__(self, trial: Trial | FrozenTrial | FixedTrial) -> float:
        """Train and report at each size handed out, and return the last validation score.

        A trial that does not run in a study, such as `study.best_trial` or a `FixedTrial`, is
        trained once on all `n_train` rows, and nothing is reported. An error of the estimator or
        the scorer has a note with the learner's parameters and the size (from Python 3.11 on).
        """
        if isinstance(trial, FrozenTrial | FixedTrial):
            estimator = self._estimator(trial, self.n_train)
            with named_in_errors(trial.params, self.n_train):
                unscored = Needs(training_scores="unused")  # on the rows that it was trained on
                models = self._anew(trial, estimator, self.n_train, None)
                score, _ = self._scores(models, self.n_train, self._validation, unscored)
            return score
        with ending_study(trial.study):
            return self._run(trial)

    def _run(self, trial: Trial) -> float:
        """Train and report for as long as it is the trial's turn; return the last score."""
        # Suggest parameters before asking for the first size, which may depend on them.
        estimator = self._estimator(trial, self.n_train)
        params = trial.params
        sizes = training_sizes(trial)
        pruner = cast(AllocationPruner, trial.study.pruner)
        self._check_direction(trial.study)
        self._check_pruner(pruner)
        self._check_same_rows(trial, pruner.policy.sizes)
        self._say_once(trial.study, pruner.policy.sizes[-1], estimator)
        needs = pruner.policy.needs
        for size in sizes:
            validation = self._validation_at(needs, size)
            with self._explaining(), named_in_errors(params, size):
                if self._takes_size and not self._takes_previous:
                    estimator = self._estimator(trial, size)
                    _check_same(params, trial.params)
                before = None if self._kept is None else self._kept.take(params)
                models = self._anew(trial, estimator, size, before)
                score, training_score = self._scores(models, size, validation, needs)
                if self._kept is not None:
                    self._kept.put(params, Trained(size, tuple(models)))
            n_validation = sum(map(len, validation))
            report(trial, size, score, training_score=training_score, n_validation=n_validation)
            if size == self.n_train and len(models) == 1:
                sign = 1 if trial.study.direction == StudyDirection.MAXIMIZE else -1
                level = max((each[0] for each in self._best), default=sign * score)
                if sign * score >= level:
                    ties = [each for each in self._best if each[0] == sign * score]
                    self._best = [*ties[: MAX_TIES - 1], (sign * score, params, models[0])]
        return score

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Add to an estimator's error, once, the columns that may have caused it."""
        try:
            yield
        except Exception as error:
            is_set_up = isinstance(error, SetupError | optuna.TrialPruned)
            if not is_set_up and not self._has_named and (odd := odd_columns(self._rows.X)):
                self._has_named = True
                warnings.warn(said_of(odd), UserWarning, stacklevel=2)
            raise

    def refit(self, study: optuna.Study, *, include_validation: bool = False) -> Any:
        """Return the winner of the study fitted on all the training data.

        The winner is that of `best_learner`; with another library's pruner or sampler it is
        `study.best_trial`. It is fitted on the `n_train` training rows, the same rows as at
        `max_resource=n_train`, so its score is `study.best_value`. With `include_validation` it
        is fitted on the validation rows too, and no row is left to score it. With `cv` it is
        always fitted on all rows of `X`.

        In an unfinished study without a learner trained on all the data, the leader is fitted,
        with a UserWarning that says what is not known of it.

        Raises:
            ValueError: if nothing was scored yet, all learners were dropped, or only the training
                rows have weights.
        """
        self._warn_of_other_rows(study)
        params, number = self._winner(study)
        training, validation = self._refit_rows(include_validation)
        with named_in_errors(params, len(training)):
            estimator = self._estimator(FixedTrial(params, number=number), len(training))
            arguments = self._fit_arguments(estimator, training, validation)
            if self._incremental:
                return extended(clone(estimator), training, arguments, self._classes)
            return fitted(estimator, training, arguments)

    def model(self, study: optuna.Study) -> Any:
        """Return the model that made the winner's score, without another training.

        None unless this process trained it on all `n_train` rows, with a held-out or a fixed
        validation set.
        """
        if not self._best:
            return None
        winner, _ = self._winner(study)
        return next((model for _, params, model in self._best if params == winner), None)

    def _estimator(self, trial: BaseTrial, size: int, previous: Any = None) -> Any:
        more = ((size,) if self._takes_size else ()) + (
            (previous,) if self._takes_previous else ()
        )
        estimator = self._build(trial, *more)
        if not hasattr(estimator, "fit") or isinstance(estimator, type):
            raise SetupError(
                "`build` must return an unfitted estimator, an object with a method `fit`, but "
                f"returned {estimator!r}."
            )
        return estimator

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
                f"learners, but got `scoring={self._scoring.given!r}` in such a study: it would "
                f"pick the worst learner. {way_out}"
            )

    def _check_pruner(self, pruner: AllocationPruner) -> None:
        """Raise a SetupError if the pruner's sizes or its samples do not fit the rows."""
        needs = pruner.policy.needs
        least, largest = pruner.policy.sizes[0], pruner.policy.sizes[-1]
        if largest > self.n_train:
            raise SetupError(
                f"`max_resource` must not exceed the {self.n_train} rows there are to train on"
                f"{' in the largest fold' if self._cross_validated else ''}, but got {largest}. "
                "Pass `max_resource=objective.n_train`."
            )
        complete, last_class = self._complete
        if least < complete:
            raise SetupError(
                f"`min_resource` must be at least {complete}, the smallest training size that "
                f"holds every class (class {last_class} comes last), but got {least}. Pass "
                f"`min_resource={complete}` or more, or `stratify=False` (for a regression "
                "target too)."
            )
        if len(self._folds) > 1 and (needs.mean_of_examples or needs.n_validation):
            raise SetupError(
                "The pruner's intervals need one validation set that no learner is trained on, "
                f"but got `cv` with {len(self._folds)} folds. Leave `cv` out, or pass `X_valid`."
            )
        if needs.n_validation not in (None, self.n_validation):
            raise SetupError(
                f"`n_validation` of {type(pruner).__name__} must be the size of the full held-out "
                f"set, {self.n_validation}, but got {needs.n_validation}. Pass "
                "`n_validation=objective.n_validation`."
            )
        if needs.mean_of_examples and not self._has_warned and not self._is_accuracy():
            self._has_warned = True
            warnings.warn(
                f"The intervals of {type(pruner).__name__} assume a score that is a mean over "
                "examples of values in [0, 1], such as accuracy, but `scoring` is "
                f"{self._scoring.given!r}: unless it is such a mean, the promise of epsilon and "
                "delta does not hold.",
                stacklevel=2,
            )

    @cached_property
    def _fingerprint(self) -> dict[str, str]:
        """The fingerprint that all scores of a study share, by name."""
        tables = [self._rows]
        if not len(self._folds[0].validation):  # a separate validation set was passed
            tables.append(self._validation[0])
        weighted = ", with weights" if self._weighted_score else ""
        texts = {
            "data": " and ".join(of_table(t.X, t.y, t.sample_weight) for t in tables),
            _DIVISION: of_folds(self._folds),
            "scoring": f"{stable(self._scoring.given)}{weighted}",
        }
        return {name: bounded(text) for name, text in texts.items()}

    def _check_same_rows(self, trial: Trial, sizes: tuple[int, ...]) -> None:
        """Raise a SetupError if the study has scores of other rows, sizes or another scorer."""
        study = trial.study
        if self._agreed.get(study) == sizes:
            return
        begun_with = {**self._fingerprint, "training sizes": bounded(str([*sizes]))}
        try:
            is_begun = check_fingerprint(study, begun_with, trial.number)
        except ValueError as error:
            raise SetupError(str(error)) from None
        if is_begun:  # before, another worker may still store another fingerprint
            self._agreed[study] = sizes

    def _say_once(self, study: optuna.Study, largest: int, estimator: Any) -> None:
        """Log what a set-up loses, and store the best possible score, once for each study."""
        if study in self._told:
            return
        self._told.add(study)
        if not isinstance(study.sampler, DataAllocationSampler):
            _logger.warning(
                "The sampler of study '%s' is %s, so learners are pruned for good and none is "
                "resumed. Pass `sampler=DataAllocationSampler()` to `optuna.create_study`.",
                study.study_name,
                type(study.sampler).__name__,
            )
        if largest < self.n_train:
            _logger.warning(
                "%s of %s rows to train on are left out: `max_resource` is %s. Pass "
                "`max_resource=objective.n_train` to use them all.",
                f"{self.n_train - largest:,}",
                f"{self.n_train:,}",
                f"{largest:,}",
            )
        limit = self._scoring.limit
        if self._scoring.given is None and (is_classifier(estimator) or is_regressor(estimator)):
            limit = 1.0  # accuracy, or R^2
        if limit is not None:
            write_limit(study, limit)

    def _warn_of_other_rows(self, study: optuna.Study) -> None:
        """Warn if the study's scores come from other rows than those the winner is fitted on."""
        begun_with = read_fingerprint(study)
        for name in ("data", _DIVISION):
            before, now = begun_with.get(name), self._fingerprint[name]
            if before not in (None, now):
                warnings.warn(
                    f"The winner of study {study.study_name!r} was scored on other rows than "
                    f"those that it is fitted on now: the {name} of the study is {before}, that "
                    f"of this objective {now}.",
                    UserWarning,
                    stacklevel=3,
                )
                return

    def _is_accuracy(self) -> bool:
        if self._scoring.given is None:  # accuracy of classifiers, R^2 of regressors
            return class_labels(self._rows.y) is not None
        return isinstance(self._scoring.given, str) and self._scoring.given == "accuracy"

    def _validation_at(self, needs: Needs, size: int) -> tuple[Rows, ...]:
        """Return the rows to score a learner trained on `size` examples on, per fold."""
        wanted = needs.validation_size(size)
        if wanted is None or wanted >= self.n_validation:
            return self._validation
        return (self._validation[0].take(self._validation_order[:wanted]),)

    @cached_property
    def _validation_order(self) -> Indices:
        """Order in which samples of the validation set take its rows, shape (n_validation,)."""
        (rows,) = self._validation
        classes = None if self._layout.classes is None else class_labels(rows.y)
        codes = None if classes is None else classes.codes
        return nested_order(len(rows), self._layout.seed, codes)

    def _anew(
        self, trial: BaseTrial, estimator: Any, size: int, before: Trained | None
    ) -> list[Any]:
        """Return a model for each fold, trained on `size` rows, or further from `before`."""
        if before is not None and not before.size < size:
            before = None
        models = []
        for place, (fold, held_out) in enumerate(zip(self._folds, self._validation, strict=True)):
            rows = fold.subset(size)
            previous = None if before is None else before.models[place]
            if self._takes_previous:
                params = trial.params
                estimator = self._estimator(trial, size, previous)
                _check_same(params, trial.params)
            elif self._incremental and before is not None:
                rows = rows[~np.isin(rows, fold.subset(before.size))]
            training = self._rows.take(rows)
            arguments = self._fit_arguments(estimator, training, held_out)
            if self._incremental:
                fresh = clone(estimator) if previous is None else previous
                models.append(extended(fresh, training, arguments, self._classes))
            elif self._takes_previous:
                models.append(fitted_as_is(estimator, training, arguments))
            else:
                models.append(fitted(estimator, training, arguments))
        return models

    def _scores(
        self, models: Sequence[Any], size: int, validation: tuple[Rows, ...], needs: Needs
    ) -> tuple[float, float | None]:
        """Return the models' mean validation score and mean training score.

        The training score is None if the policy does not use it.
        """
        known = size if needs.mean_of_examples else min(size, TRAINING_SCORED)
        if self._scoring.needs_all_classes:
            known = max(known, min(size, self._complete[0]))
        weighted = self._weighted_score
        scores, training_scores = [], []
        for model, fold, held_out in zip(models, self._folds, validation, strict=True):
            scores.append(self._scoring(model, held_out, weighted=weighted))
            if needs.training_scores != "unused":
                seen = self._rows.take(fold.subset(known))
                training_scores.append(self._scoring(model, seen, weighted=weighted))
        training_score = float(np.mean(training_scores)) if training_scores else None
        return float(np.mean(scores)), training_score

    @cached_property
    def _classes(self) -> NDArray[Any] | None:
        """All classes, for the first call of `partial_fit`; None for amounts."""
        labels = class_labels(self._rows.y)
        is_of_classes = self._layout.classes is not None or self._scoring.task == "classification"
        return labels.names if labels is not None and is_of_classes else None

    def _fit_arguments(
        self, estimator: Any, training: Rows, validation: Rows | None
    ) -> Mapping[str, Any]:
        return fit_arguments(self._fit_params, estimator, training, validation, len(self._rows))

    def _winner(self, study: optuna.Study) -> tuple[dict[str, Any], int]:
        """Return the parameters and the number of the trial to fit again."""
        try:
            policy = policy_of(study)
        except ValueError:  # of a study that another library's pruner has allocated
            policy = None
        curves = learning_curves(study) if policy else []
        # A COMPLETE trial is not enough: the objective may have returned early, or the learner may
        # violate a constraint.
        if not curves and study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            return study.best_params, study.best_trial.number
        is_scored = any(trial.intermediate_values for trial in study.get_trials(deepcopy=False))
        leader = best_learner(study) if is_scored else None
        if leader is None:
            reasons = dict.fromkeys(curve.reason for curve in curves if is_scored)
            if reasons:
                raise ValueError(
                    "A learner must be left to be fitted again, but all those of study "
                    f"{study.study_name!r} were dropped: {'; '.join(reasons)}."
                )
            raise ValueError(
                "A learner must have been trained to be fitted again, but no trial of study "
                f"{study.study_name!r} has a score yet. Continue it with `study.optimize`."
            )
        full_size = policy_of(study).sizes[-1]
        if leader.size < full_size:
            is_any_full = any(curve.size == full_size for curve in curves)
            doubt = ", and another may turn out to be better. Continue with `study.optimize`"
            warnings.warn(
                f"{'The leader has not' if is_any_full else 'No learner has'} been trained on all "
                f"{full_size:,} examples yet. Learner {leader.learner}, which leads with "
                f"{leader.score:.4g} at {leader.size:,} examples, is fitted: its score on all of "
                f"them is not known{'' if leader.is_final else doubt}.",
                UserWarning,
                stacklevel=3,
            )
        # `build` may use the trial's number, so return that of the run with this score.
        of_leader = (each for each in allocations(study) if each.learner == leader.learner)
        return dict(leader.params), [*of_leader][-1].trial

    def _refit_rows(self, include_validation: bool) -> tuple[Rows, Rows | None]:
        """Return the rows to train the winner on, and those left to validate on."""
        if self._cross_validated:
            return self._rows.take(undivided(self._layout).training), None
        training = self._rows.take(self._folds[0].training)
        if include_validation:
            return joined(training, self._validation[0]), None
        return training, self._validation[0]


def _check_labels(y: NDArray[Any], scoring: Scoring) -> None:
    """Raise a ValueError if a named scorer compares classes while the targets are amounts.

    Functions and scorers of `make_scorer` are not checked: they may accept amounts.
    """
    is_of_classes = isinstance(scoring.given, str) and scoring.task == "classification"
    if is_of_classes and y.ndim == 1 and y.dtype.kind == "f" and class_labels(y) is None:
        amount = y[y != np.rint(y)][0]
        raise ValueError(
            f"`scoring={scoring.given!r}` compares classes, but `y` has numbers that are not "
            f"whole, such as {amount:.6g}. To predict amounts pass a scorer of regression, such "
            'as `scoring="r2"` or "neg_root_mean_squared_error".'
        )


def _check_same(params: dict[str, Any], now: dict[str, Any]) -> None:
    if params.keys() != now.keys():
        raise SetupError(
            "`build` must suggest the same parameters at each training size, but suggested "
            f"{[*now]} where it suggested {[*params]} for the full size. Suggest all of them, and "
            "use those that the size needs."
        )
