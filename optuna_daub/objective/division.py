"""A table divided into rows to train on and rows to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from typing import Any
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_seed
from optuna_daub.core.checks import flag
from optuna_daub.core.policies.policy import Needs
from optuna_daub.objective.data import Classes
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import Rows
from optuna_daub.objective.data import checked_column
from optuna_daub.objective.data import checked_rows
from optuna_daub.objective.data import checked_validation
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.data import classes_to_keep
from optuna_daub.objective.data import is_categorical
from optuna_daub.objective.data import joined
from optuna_daub.objective.score_checks import check_all_scored
from optuna_daub.objective.score_checks import check_scorable
from optuna_daub.objective.score_checks import check_weighted
from optuna_daub.objective.scoring import Scoring
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import checked_test_size
from optuna_daub.objective.subsets import complete_from
from optuna_daub.objective.subsets import cross_validation_folds
from optuna_daub.objective.subsets import held_out_fold
from optuna_daub.objective.subsets import nested_order
from optuna_daub.objective.subsets import undivided


@dataclass(frozen=True)
class Division:
    """The rows of an objective, and the folds that they are divided into."""

    rows: Rows
    """All rows of `X`."""
    layout: Layout
    """Properties of the rows by which they were divided."""
    folds: tuple[Fold, ...]
    """Rows to train on and rows to score; one fold unless it is cross-validation."""
    validation: tuple[Rows, ...]
    """Rows to score, by fold."""
    complete: tuple[int, Any]
    """Smallest size whose subsets hold every class, and the class that comes in last; (1, None)
    without classes."""
    is_crossed: bool
    """True for cross-validation, also with one fold."""

    @property
    def n_train(self) -> int:
        """Number of rows to train on in the largest fold."""
        return max(len(fold.training) for fold in self.folds)

    @property
    def n_validation(self) -> int:
        """Number of rows to score, summed over the folds."""
        return sum(map(len, self.validation))

    @property
    def tables(self) -> tuple[Rows, ...]:
        """The tables that were passed: all rows, and a fixed validation set."""
        is_fixed = not len(self.folds[0].validation)
        return (self.rows, self.validation[0]) if is_fixed else (self.rows,)

    def scored_at(self, needs: Needs, size: int) -> tuple[Rows, ...]:
        """Return the rows for scoring a learner trained on `size` examples, by fold."""
        wanted = needs.validation_size(size)
        if wanted is None or wanted >= self.n_validation:
            return self.validation
        return (self.validation[0].take(self._validation_order[:wanted]),)

    def for_refit(self, *, include_validation: bool) -> tuple[Rows, Rows | None]:
        """Return the rows to train the winner on, and those left to validate on."""
        if self.is_crossed:
            return self.rows.take(undivided(self.layout).training), None
        training = self.rows.take(self.folds[0].training)
        if include_validation:
            return joined(training, self.validation[0]), None
        return training, self.validation[0]

    @cached_property
    def _validation_order(self) -> Indices:
        """Validation rows in the order in which samples take them, shape (n_validation,)."""
        (rows,) = self.validation
        classes = None if self.layout.classes is None else class_labels(rows.y)
        codes = None if classes is None else classes.codes
        return nested_order(len(rows), self.layout.seed, codes)


def divided(
    X: Any,
    y: Any,
    scoring: Scoring,
    *,
    sample_weight: Any,
    weighted_score: bool,
    fixed: tuple[Any, Any, Any],
    cv: Any,
    test_size: float,
    groups: Any,
    stratify: bool | Literal["auto"],
    shuffle: bool,
    seed: int,
) -> Division:
    """Return the division of a table by the arguments of `TrainingSizeObjective`.

    `fixed` has the features, targets and weights of a fixed validation set.

    Raises:
        ValueError: if an argument breaks its rule, ways of validation are mixed, a class is
            missing where it is needed, or the scorer cannot score the rows to score.
    """
    test_size = checked_test_size(test_size)
    if not (isinstance(stratify, str) and stratify == "auto"):
        stratify = flag("stratify", stratify, or_else='"auto"')
    rows = checked_rows(X, y, sample_weight)
    _check_classes(rows.y, scoring)
    passed = checked_validation(*fixed, like=rows)
    if passed is not None and (cv is not None or groups is not None):
        raise ValueError(
            "`cv` and `groups` say how to divide the rows, but with `X_valid` nothing is "
            "divided. Leave out one or the other."
        )
    kept = classes_to_keep(rows.y, stratify, scoring.task, is_categorical=is_categorical(y))
    layout = Layout(
        n_rows=len(rows),
        seed=checked_seed(seed),
        classes=kept,
        groups=None if groups is None else checked_column(groups, "groups"),
        shuffle=flag("shuffle", shuffle),
    )
    if passed is not None:
        _check_known(passed, kept, rows.y, scoring, y)
        folds: tuple[Fold, ...] = (undivided(layout),)
    elif cv is not None:
        folds = cross_validation_folds(layout, cv, rows.X, rows.y)
        _check_in_time_order(folds, cv)
        layout = replace(layout, shuffle=not folds[0].recent)  # of a TimeSeriesSplit
    else:
        folds = (held_out_fold(layout, test_size, every_class=scoring.needs_all_classes),)
    scored = tuple(rows.take(f.validation) if passed is None else passed for f in folds)
    if weighted_score:
        check_weighted(scoring, rows, scored)
    every = kept  # the classes that each subset must hold
    if scoring.needs_all_classes and (labels := class_labels(rows.y)) is not None:
        check_all_scored(labels, [each.y for each in scored], scoring.scorer, scoring.given)
        every = labels  # stratified or not
    complete = complete_from(folds, every)
    check_scorable(scoring, rows.y, scored, weighted=weighted_score)
    return Division(rows, layout, folds, scored, complete, is_crossed=cv is not None)


def _check_in_time_order(folds: Sequence[Fold], cv: Any) -> None:
    """Raise a ValueError if a fold in time order trains on later rows."""
    for number, fold in enumerate(folds, start=1):
        if fold.recent and fold.training.max() > fold.validation.min():
            raise ValueError(
                "`shuffle=False` says that rows are in time order, but fold "
                f"{number} of `cv={brief(cv)}` trains on rows after those that it scores. Pass a "
                "TimeSeriesSplit, or leave out `shuffle=False`."
            )


def _check_known(
    passed: Rows, kept: Classes | None, targets: NDArray[Any], scoring: Scoring, y: Any
) -> None:
    """Raise a ValueError if a fixed validation set has a class without training rows.

    With `stratify=False` no class is kept in proportion, but targets may be classes all the same.
    """
    classes = kept
    if kept is None and (scoring.task == "classification" or targets.dtype.kind not in "iuf"):
        is_named = is_categorical(y)
        classes = classes_to_keep(targets, "auto", scoring.task, is_categorical=is_named)
    if classes is None:
        return
    known = {*classes.names.tolist()}
    unknown = [label for label in passed.y.tolist() if label not in known]
    if unknown:
        some = ", ".join(map(brief, classes.names.tolist()[:5]))
        raise ValueError(
            f"Every label of `y_valid` must be one of `y`, but {len(unknown):,} of "
            f"{len(passed.y):,} are not, such as {brief(unknown[0])}, while `y` has {some}"
            f"{', ...' if len(known) > 5 else ''}: no learner can be right there. Write labels "
            "alike in both, or leave such rows out (numbers that are amounts: pass a scorer of "
            'regression, such as `scoring="r2"`).'
        )


def check_varies(y: NDArray[Any]) -> None:
    """Raise a ValueError if all targets are equal: then all learners are equally good."""
    if len(y) > 1 and (y == y[0]).all():
        raise ValueError(
            f"`y` must have at least two classes or values, but all {len(y):,} are "
            f"{brief(y.tolist()[0])}."
        )


def _check_classes(y: NDArray[Any], scoring: Scoring) -> None:
    """Raise a ValueError if targets do not vary or suit a named scorer.

    Some metrics accept dates as classes, so a trial score would prove nothing.
    """
    if y.ndim > 1 or not isinstance(scoring.given, str | None):
        return
    check_varies(y)
    if scoring.task != "classification":
        return
    if y.dtype.kind in "mM":
        found = f"dates or durations, such as {y[0]}"
    elif y.dtype.kind == "f" and class_labels(y) is None:
        found = f"numbers that are not whole, such as {y[y != np.rint(y)][0]:.6g}"
    else:
        return
    raise ValueError(
        f"`scoring={brief(scoring.given)}` compares classes, but `y` has {found}. To predict "
        'amounts pass a regression scorer, such as `scoring="r2"`.'
    )
