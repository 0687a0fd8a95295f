"""A ready-made objective for scikit-learn compatible estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any
from typing import cast

import numpy as np
from optuna.study import Study
from optuna.trial import FixedTrial
from optuna.trial import Trial
from optuna.trial import TrialState

from optuna_daub.core.policy import Needs
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import check_weights
from optuna_daub.objective.data import checked_rows
from optuna_daub.objective.data import checked_validation
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.data import joined
from optuna_daub.objective.scoring import checked_scorer
from optuna_daub.objective.scoring import fitted
from optuna_daub.objective.scoring import named_in_errors
from optuna_daub.objective.scoring import scored
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import complete_from
from optuna_daub.objective.subsets import cross_validation_folds
from optuna_daub.objective.subsets import held_out_fold
from optuna_daub.objective.subsets import nested_order
from optuna_daub.objective.subsets import undivided
from optuna_daub.study import AllocationPruner
from optuna_daub.study import report
from optuna_daub.study import training_sizes


TRAINING_SCORED = 5_000
"""Rows trained on that are scored: enough for a share to within 0.007, one standard error."""


class TrainingSizeObjective:
    """Objective that trains an estimator on growing nested subsets of the data.

    At each training size that the study's pruner hands out, a fresh copy of the estimator is
    fitted on the first so many rows of one seeded permutation, and scored on validation rows and
    on rows it was trained on: the first 5,000 (for ABC, whose intervals are that precise, all).
    Pass `max_resource=objective.n_train` to the pruner.

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

    **Validation** is one of three: the fixed set `X_valid`, `y_valid`; cross-validation with `cv`,
    where scores are means over the folds and every fold trains on as many rows as the size says;
    or else a held-out part of the rows. With a fixed or a held-out set, a policy that asks for a
    `validation_size` (ABC) is scored on a growing nested sample of the set, all others on all.

    **Time order**: with `shuffle=False` rows are taken to be in time order. The last rows are held
    out, an int `cv` is a `TimeSeriesSplit`, and a subset is the most recent rows before the ones
    scored. A `TimeSeriesSplit` passed as `cv` is treated so in any case; every other splitter
    is taken at its word.

    Args:
        build: Function from a trial to an unfitted estimator or pipeline. Define it at the top of
            a module where the objective is to be sent to other processes.
        X: Features, one row per example: array, pandas data frame, scipy sparse matrix or list.
        y: Targets, shape (n,) or, for several outputs, (n, number of outputs).
        X_valid: Features of a fixed validation set; all of `X` is then for training.
        y_valid: Its targets.
        sample_weight_valid: Its weights; needed to score with weights, and to refit on them.
        cv: Number of folds, or a scikit-learn splitter, or an iterable of pairs (training rows,
            validation rows). Its folds are fixed here, once.
        test_size: Part of the rows to hold out where there is neither fixed set nor `cv`: a
            fraction in (0, 1), or a number of rows (with `groups`, of groups). 0.3 is the DAUB
            paper's split.
        groups: For each row the group that it belongs to; no group is both trained on and scored.
        scoring: A scikit-learn scorer, by name or as a function (estimator, X, y) -> float.
        sample_weight: Weights of the rows, at least 0, handed to `fit` (of a pipeline: to its last
            step).
        weighted_score: Whether the scorer gets the weights too, as its `sample_weight`.
        stratify: Whether every subset holds every class in its share of the rows, and the held-out
            part or the folds do. With groups or time order, which come first, the objective only
            insists that every class is present. A target of numbers that are not all whole has no
            classes; for one of whole numbers pass False.
        shuffle: Whether rows are permuted; False for time order.
        seed: Of all permutations, at least 0. The same seed gives the same subsets everywhere.

    Raises:
        ValueError: where rows are missing or do not match, the ways of validation are mixed, a
            class is absent from the training rows, a splitter is not reproducible or leaks, or the
            scorer is unknown; and at the first call, before anything is trained, where the
            pruner's sizes do not fit the rows.
    """

    def __init__(
        self,
        build: Callable[[Trial], Any],
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
        stratify: bool = True,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        if not callable(build):
            raise ValueError(
                f"`build` must be a function from a trial to an estimator, but got {build!r}. "
                "Wrap it: def build(trial): return ..."
            )
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"`seed` must be an int of at least 0, but got {seed!r}.")
        self._build = build
        self._scorer, self._scoring, self._has_warned = checked_scorer(scoring), scoring, False
        self._weighted_score = weighted_score
        rows = checked_rows(X, y, sample_weight)
        fixed = checked_validation(X_valid, y_valid, sample_weight_valid, like=rows)
        if fixed is not None and (cv is not None or groups is not None):
            raise ValueError(
                "`cv` and `groups` say how to divide the rows, but with `X_valid` nothing is "
                "divided. Leave out one or the other."
            )
        self._rows = rows
        groups = None if groups is None else np.asarray(groups)
        classes = class_labels(rows.y) if stratify else None
        self._layout = Layout(len(rows), int(seed), classes, groups, shuffle)
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
        if weighted_score:
            check_weights(rows, *self._validation)
        self._complete = complete_from(self._folds, classes)

    @property
    def n_train(self) -> int:
        """Number of rows to train on; with `cv` in the smallest fold. The largest size."""
        return min(len(fold.training) for fold in self._folds)

    @property
    def n_validation(self) -> int:
        """Number of rows to score; with `cv` the sum over the folds."""
        return sum(map(len, self._validation))

    def __call__(self, trial: Trial) -> float:
        """Train and report at each size handed out, and return the last validation score.

        An error of the estimator or the scorer is raised with a note that names the learner and
        the size.
        """
        estimator = self._build(trial)
        sizes = training_sizes(trial)
        pruner = cast(AllocationPruner, trial.study.pruner)
        self._check_pruner(pruner)
        needs = pruner.policy.needs
        for size in sizes:
            validation = self._validation_at(needs, size)
            with named_in_errors(trial.params, size):
                score, training_score = self._probe(estimator, size, validation, needs)
            n_validation = sum(map(len, validation))
            report(trial, size, score, training_score=training_score, n_validation=n_validation)
        return score

    def refit(self, study: Study, *, include_validation: bool = False) -> Any:
        """Return the winner of the study, `study.best_trial`, fitted on all the training data.

        Those are the `n_train` training rows: for a held-out split or a fixed validation set the
        rows that the winner was trained on at `max_resource=n_train`, so that its score is
        `study.best_value`. With `include_validation` the validation rows are trained on as well,
        and no row is left to score it on. With `cv` it is fitted on all rows of `X` either way.

        Raises:
            ValueError: where no learner has been trained on `max_resource` examples yet, or the
                validation rows have no weights while the training rows have.
        """
        if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            raise ValueError(
                "A learner must have been trained on `max_resource` examples to be fitted again, "
                f"but study {study.study_name!r} has no such trial. Continue it with "
                "`study.optimize` and a pruner that trains its winner fully."
            )
        winner = study.best_trial
        fixed_trial = FixedTrial(winner.params, number=winner.number)
        return fitted(self._build(cast(Trial, fixed_trial)), self._refit_rows(include_validation))

    def _check_pruner(self, pruner: AllocationPruner) -> None:
        """Raise a ValueError where the pruner's sizes or its samples do not fit the rows."""
        needs = pruner.policy.needs
        least, largest = pruner.policy.sizes[0], pruner.policy.sizes[-1]
        if largest > self.n_train:
            raise ValueError(
                f"`max_resource` must not exceed the {self.n_train} rows there are to train on"
                f"{' in the smallest fold' if self._cross_validated else ''}, but got {largest}. "
                "Pass `max_resource=objective.n_train`."
            )
        complete, last_class = self._complete
        if least < complete:
            raise ValueError(
                f"`min_resource` must be at least {complete}, the smallest training size that "
                f"holds every class (class {last_class} comes last), but got {least}. Pass "
                f"`min_resource={complete}` or more, or `stratify=False` (for a regression "
                "target too)."
            )
        if len(self._folds) > 1 and (needs.mean_of_examples or needs.n_validation):
            raise ValueError(
                "The pruner's intervals need one validation set that no learner is trained on, "
                f"but got `cv` with {len(self._folds)} folds. Leave `cv` out, or pass `X_valid`."
            )
        if needs.n_validation not in (None, self.n_validation):
            raise ValueError(
                f"`n_validation` of {type(pruner).__name__} must be the size of the full held-out "
                f"set, {self.n_validation}, but got {needs.n_validation}. Pass "
                "`n_validation=objective.n_validation`."
            )
        if needs.mean_of_examples and self._scoring != "accuracy" and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"The intervals of {type(pruner).__name__} assume a score that is a mean over "
                "examples of values in [0, 1], such as accuracy, but `scoring` is "
                f"{self._scoring!r}: unless it is such a mean, the promise of epsilon and delta "
                "does not hold.",
                stacklevel=2,
            )

    def _validation_at(self, needs: Needs, size: int) -> tuple[Rows, ...]:
        """Return the rows to score a learner trained on `size` examples on, per fold."""
        wanted = needs.validation_size(size)
        if wanted is None or wanted >= self.n_validation:
            return self._validation
        return (self._validation[0].take(self._validation_order[:wanted]),)

    @cached_property
    def _validation_order(self) -> Indices:
        """The order in which samples of the one validation set take its rows."""
        (rows,) = self._validation
        classes = None if self._layout.classes is None else class_labels(rows.y)
        codes = None if classes is None else classes.codes
        return nested_order(len(rows), self._layout.seed, codes)

    def _probe(
        self, estimator: Any, size: int, validation: tuple[Rows, ...], needs: Needs
    ) -> tuple[float, float | None]:
        """Train on `size` examples; return the validation and the training score.

        The training score is None where nobody uses it.
        """
        known = size if needs.mean_of_examples else min(size, TRAINING_SCORED)
        scores, training_scores = [], []
        for fold, held_out in zip(self._folds, validation, strict=True):
            model = fitted(estimator, self._rows.take(fold.subset(size)))
            scores.append(scored(self._scorer, model, held_out, weighted=self._weighted_score))
            if needs.training_scores != "unused":
                seen = self._rows.take(fold.subset(known))
                weighted = self._weighted_score
                training_scores.append(scored(self._scorer, model, seen, weighted=weighted))
        training_score = float(np.mean(training_scores)) if training_scores else None
        return float(np.mean(scores)), training_score

    def _refit_rows(self, include_validation: bool) -> Rows:
        if self._cross_validated:
            return self._rows.take(undivided(self._layout).training)
        training = self._rows.take(self._folds[0].training)
        return joined(training, self._validation[0]) if include_validation else training
