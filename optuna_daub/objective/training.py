"""The training and the scores of a learner's estimators on a division's subsets."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import BaseTrial
from sklearn.base import clone

from optuna_daub.core.checks import brief
from optuna_daub.core.policies.policy import Needs
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.division import Division
from optuna_daub.objective.fitting import FitParams
from optuna_daub.objective.fitting import fit_arguments
from optuna_daub.objective.fitting import fitted
from optuna_daub.objective.fitting import last_step
from optuna_daub.objective.fitting import learns_with_weights
from optuna_daub.objective.fitting import own_callbacks
from optuna_daub.objective.models import Trained
from optuna_daub.objective.models import extended
from optuna_daub.objective.scoring import Scoring
from optuna_daub.study.setup_errors import SetupError


TRAINING_SCORED = 5_000
"""Largest number of training rows that are scored. A share of 5,000 has a standard error of at
most 0.007 = sqrt(0.25 / 5,000)."""


@dataclass(frozen=True)
class Training:
    """Settings by which an objective trains and scores."""

    build: Callable[..., Any]
    """Function from a trial to an estimator, as the user passed it."""
    takes_size: bool
    """True if `build` also takes the training size."""
    takes_previous: bool
    """True if `build` also takes the learner's previous model."""
    is_incremental: bool
    """True if `partial_fit` trains further on the new rows."""
    fit_params: FitParams
    """More arguments of `fit`, or a function that returns them."""
    division: Division
    """Rows to train on and to score."""
    scoring: Scoring
    """Scorer of the models."""
    weighted: bool
    """True if scores are weighted."""

    @property
    def way(self) -> str:
        """The way of training at a larger size: anew, or further by one of two means."""
        if self.is_incremental:
            return "further by `incremental=True`"
        return "further by `build(trial, n, previous)`" if self.takes_previous else "anew"

    def estimator(self, trial: BaseTrial, size: int, previous: Any = None) -> Any:
        """Return the unfitted estimator of a trial for a training size."""
        more = ((size,) if self.takes_size else ()) + ((previous,) if self.takes_previous else ())
        estimator = self.build(trial, *more)
        if not hasattr(estimator, "fit") or isinstance(estimator, type):
            raise SetupError(
                "`build` must return an unfitted estimator, an object with a method `fit`, but "
                f"returned {brief(estimator)}."
            )
        self._check_learns(estimator)
        return estimator

    def _check_learns(self, estimator: Any) -> None:
        """Raise an error if an estimator cannot be trained as the arguments say.

        Raises:
            SetupError: if it cannot train further.
            TypeError: if it takes no weights, as its own `fit` would. Other learners of the study
                may take them, so `catch` drops this one alone.
        """
        method = "partial_fit" if self.is_incremental else "fit"
        if not hasattr(estimator, method):
            raise SetupError(
                "`incremental=True` needs estimators with `partial_fit`, but "
                f"{type(estimator).__name__} has none. Leave it out, or let "
                "`build(trial, n, previous)` go on from the model before."
            )
        has_weights = self.division.rows.sample_weight is not None
        if has_weights and not learns_with_weights(estimator, method):
            raise TypeError(
                f"`sample_weight` needs estimators whose `{method}` takes weights, but that of "
                f"{type(last_step(estimator)).__name__} does not. Leave such estimators out, of "
                "a space by `among=`, or leave out `sample_weight`."
            )

    def models(
        self, trial: BaseTrial, estimator: Any, size: int, before: Trained | None
    ) -> list[Any]:
        """Return a model for each fold, trained on `size` rows, or further from `before`."""
        models = []
        folds = zip(self.division.folds, self.division.validation, strict=True)
        for place, (fold, held_out) in enumerate(folds):
            rows = fold.subset(size)
            previous = None if before is None else before.models[place]
            made, params = estimator, trial.params
            if self.takes_previous:
                made = self.estimator(trial, size, previous)
            elif self.takes_size and len(rows) < size:
                made = self.estimator(trial, len(rows))  # early folds in time order are smaller
            check_same_parameters(params, trial.params)
            if self.is_incremental and before is not None:
                rows = rows[~np.isin(rows, fold.subset(before.size))]
            if self.is_incremental and not len(rows):  # a small fold's share is the same as before
                models.append(previous)
                continue
            training = self.division.rows.take(rows)
            arguments = self.fit_arguments_of(made, training, held_out)
            if self.is_incremental:
                fresh = clone(made) if previous is None else previous
                models.append(extended(fresh, training, arguments, self._classes))
            else:
                fresh = made if self.takes_previous else clone(made)
                models.append(fitted(fresh, training, arguments))
        return models

    def usable(self, before: Trained | None, estimator: Any, size: int) -> Trained | None:
        """Return a learner's earlier models if they can be trained further, else None."""
        if before is None or before.size >= size:
            return None
        if self.takes_previous:
            return before  # `build` decides
        is_same_kind = all(type(model) is type(estimator) for model in before.models)
        return before if is_same_kind else None

    def scores(
        self, models: Sequence[Any], size: int, validation: tuple[Rows, ...], needs: Needs
    ) -> tuple[float, float | None]:
        """Return the models' mean validation score and mean training score.

        The training score is None if the policy does not use it.
        """
        known = size if needs.mean_of_examples else min(size, TRAINING_SCORED)
        if self.scoring.needs_all_classes:
            known = max(known, min(size, self.division.complete[0]))
        scores, training_scores = [], []
        for model, fold, held_out in zip(models, self.division.folds, validation, strict=True):
            scores.append(self.scoring(model, held_out.copy(), weighted=self.weighted))
            if needs.training_scores != "unused":
                seen = self.division.rows.take(fold.subset(known))
                training_scores.append(self.scoring(model, seen, weighted=self.weighted))
        training_score = float(np.mean(training_scores)) if training_scores else None
        return float(np.mean(scores)), training_score

    def refitted(self, trial: BaseTrial, rows: Rows, validation: Rows | None) -> Any:
        """Return the estimator of a trial fitted anew on these rows."""
        estimator = self.estimator(trial, len(rows))
        arguments = self.fit_arguments_of(estimator, rows, validation)
        if self.is_incremental:
            return extended(clone(estimator), rows, arguments, self._classes)
        # As in `models`: what `build(trial, n, previous)` has prepared would be lost in a copy.
        return fitted(estimator if self.takes_previous else clone(estimator), rows, arguments)

    @cached_property
    def _classes(self) -> list[NDArray[Any]] | None:
        """All labels of each output, for the first call of `partial_fit`; None without any."""
        columns = np.atleast_2d(self.division.rows.y.T)
        labels = [found.names for y in columns if (found := class_labels(y)) is not None]
        return labels if len(labels) == len(columns) else None

    def fit_arguments_of(
        self, estimator: Any, training: Rows, validation: Rows | None
    ) -> Mapping[str, Any]:
        """Return the arguments of `fit` for these training rows (see `fit_arguments`)."""
        n_rows = len(self.division.rows)
        arguments = fit_arguments(self.fit_params, estimator, training, validation, n_rows)
        # Callbacks keep what they saw in their last training. A function may make them anew.
        return arguments if callable(self.fit_params) else own_callbacks(arguments)


def check_same_parameters(params: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise a SetupError if a size's parameters are not those of the full size."""
    if params.keys() != now.keys():
        raise SetupError(
            "`build` must suggest the same parameters at each training size, but suggested "
            f"{[*now]} where it suggested {[*params]} for the full size. Suggest all of them, and "
            "use those that the size needs."
        )
