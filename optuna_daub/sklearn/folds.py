"""The folds of a search, and the measurement of a candidate on them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from itertools import dropwhile
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from optuna_daub.core.checks import brief
from optuna_daub.core.prices import LEAST_SHARE
from optuna_daub.core.sizes import FIRST_DIVISOR
from optuna_daub.core.sizes import FIRST_ROWS
from optuna_daub.core.sizes import MAX_SIZES
from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.objective.data import Classes
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.fitting import own_callbacks
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import arrivals
from optuna_daub.objective.subsets import fold_of


FIRST_SHARES = LEAST_SHARE, 1 / FIRST_DIVISOR
"""Bounds of the default smallest training size, as shares of a fold's rows."""

Measured = dict[str, Any]
"""Measurements of one fold: times, test scores and, if asked for, training scores."""


class FitError(Exception):
    """Raised if a candidate cannot be fitted in some fold.

    Its first line says what is wrong; the full traceback follows.
    """


@dataclass(frozen=True)
class Folds:
    """Folds whose training rows have nested subsets."""

    folds: tuple[Fold, ...]
    """Training rows in the order in which subsets take them."""
    training: tuple[Indices, ...]
    """The same rows in the order of the splitter."""
    classes: Classes | None = None
    """Classes of all rows; None unless a classifier learns one label for each row."""

    @property
    def n_train(self) -> int:
        """Number of rows to train on in the largest fold."""
        return max(map(len, self.training))

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 if there are none."""
        return 1 if self.classes is None else len(self.classes.names)

    @property
    def complete_from(self) -> int:
        """Smallest size at which each subset holds all classes that its fold trains on."""
        if self.classes is None:
            return 1
        return max(int(arrivals(fold, self.classes)[1].max()) for fold in self.folds)

    def rows(self, fold: int, size: int) -> tuple[Indices, Indices]:
        """Return the rows to train on and those to score at a size.

        At the full size those to train on are in the splitter's order, so scores equal those of
        `cross_validate`.
        """
        rows, every = self.folds[fold].subset(size), self.training[fold]
        return every if len(rows) == len(every) else rows, self.folds[fold].validation


def divided(
    splitter: Any, estimator: Any, X: Any, y: Any, split: Mapping[str, Any], seed: int
) -> Folds:
    """Return the folds of a splitter; subsets of a classifier's rows are stratified.

    With a `TimeSeriesSplit` subsets are the most recent rows.

    Raises:
        ValueError: if there are no folds, or the splitter gives another number than promised.
    """
    given = list(splitter.split(X, y, **split))
    n_splits = splitter.get_n_splits(X, y, **split)
    if len(given) != n_splits:
        raise ValueError(
            "`cv.split` and `cv.get_n_splits` return inconsistent results: got "
            f"{len(given)} folds where {n_splits} were promised."
        )
    every = np.arange(_num_samples(X))
    splits = [(every[train], every[test]) for train, test in given]
    if any(len(test) == 0 for _, test in splits):
        raise ValueError(
            f"`cv` must give folds with rows to score, but {brief(splitter)} gave one without any."
        )
    if not splits or any(len(train) == 0 for train, _ in splits):
        raise ValueError(
            "`cv` must give at least one fold, each with rows to train on, but no fits were "
            f"performed: {brief(splitter)} gave none. Is it an iterator that was used up before?"
        )
    classes = None
    has_labels = y is not None and is_classifier(estimator)
    if has_labels and type_of_target(y) in ("binary", "multiclass"):
        classes = class_labels(np.asarray(y).ravel())
    is_shuffled = not isinstance(splitter, TimeSeriesSplit)
    layout = Layout(len(every), seed, classes, shuffle=is_shuffled)
    training = tuple(train for train, _ in splits)
    most = max(map(len, training))
    folds = tuple(fold_of(layout, train, test, most) for train, test in splits)
    return Folds(folds, training, classes)


def size_grid(
    folds: Folds, min_resources: int | str, max_resources: int | str, factor: float
) -> tuple[int, ...]:
    """Return the training sizes of a search, at least three.

    >>> rows = np.arange(100)
    >>> folds = Folds((Fold(rows, rows),), (rows,), class_labels(rows % 2))
    >>> size_grid(folds, "smallest", "auto", 3), size_grid(folds, 10, 90, 3)
    ((4, 12, 36, 100), (10, 30, 90))

    Raises:
        ValueError: if there are not three sizes from the smallest to the largest, or more than
            a thousand.
    """
    full = folds.n_train if isinstance(max_resources, str) else max_resources
    if full > folds.n_train:
        raise ValueError(
            f"`max_resources` must be at most {folds.n_train}, the number of rows to train on in "
            f'the largest fold, but got {full}. Leave it at "auto".'
        )
    if full < MIN_SIZES:
        raise ValueError(
            f"A search needs at least {MIN_SIZES} rows to train on in a fold, but got n_samples = "
            f"{full} there."
        )
    most = min(int(full / factor**2), full - 2)
    if not isinstance(min_resources, str):
        if min_resources > most:
            raise ValueError(
                "`min_resources` must leave room for three training sizes: at most max_resources "
                f"/ factor^2 = {full} / {factor}^2, but got {min_resources}. Take a smaller one, "
                "or a smaller `factor`."
            )
        return _sizes(min_resources, full, factor)
    room = max(folds.n_classes, folds.complete_from)
    # The rule of HalvingRandomSearchCV: two rows of each class in each fold.
    least = max(2 * len(folds.folds) * folds.n_classes, room)
    if min_resources == "auto":
        fewest, most_rows = (round(share * full) for share in FIRST_SHARES)
        least = max(least, fewest, min(FIRST_ROWS, most_rows))
    if most >= room:
        return _sizes(min(least, most), full, factor)
    least = min(room, full - 2)
    if room > 2 * len(folds.folds) * folds.n_classes:
        warnings.warn(
            f"No sample of fewer than {least:,} of {full:,} rows has every class, so every "
            "candidate is trained on at least as many. If the rows are in time order, leave out "
            "the old ones with a class that has vanished.",
            UserWarning,
            stacklevel=3,
        )
    return least, (least + full) // 2, full


@dataclass(frozen=True)
class Evaluation:
    """Training and scoring of a candidate, as in scikit-learn's searches."""

    estimator: Any
    """The unfitted estimator."""
    X: Any
    y: Any
    folds: Folds
    scorers: Any
    """Scorers as `BaseSearchCV._get_scorers` returns them."""
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    error_score: Any
    return_train_score: bool
    task: Callable[[], Mapping[str, Any]] = dict
    """Function that returns more arguments for each training, those for callbacks."""
    errors: list[FitError] = field(default_factory=list)
    """Errors of all fits that failed, in their order."""

    @property
    def counted(self) -> list[FitError]:
        """Errors of the fits that have the number `error_score` as their score."""
        return self.errors if self.errors and math.isfinite(self.error_score) else []

    def __call__(self, params: Mapping[str, Any], size: int) -> list[Measured]:
        """Train and score on the subsets of a size, and return each fold's measurements.

        Raises:
            FitError: if a fit fails and `error_score` is not a finite number.
        """
        measured = []
        for fold in range(len(self.folds.folds)):
            train, test = self.folds.rows(fold, size)
            found = _fit_and_score(
                clone(self.estimator),
                self.X,
                self.y,
                scorer=self.scorers,
                train=train,
                test=test,
                verbose=0,
                parameters=params,
                fit_params=own_callbacks(self.fit_params),
                score_params=self.score_params,
                return_train_score=self.return_train_score,
                return_times=True,
                error_score=self.error_score,
                **self.task(),
            )
            error = found.pop("fit_error")
            if error is not None:
                failed = FitError(f"{said_in(error)}\n\n{error.strip()}")
                self.errors.append(failed)
                if not math.isfinite(self.error_score):
                    raise failed
            measured.append({name: _plain(value) for name, value in found.items()})
        return measured


def said_in(traceback: str) -> str:
    """Return the error at the end of a traceback, in one line.

    The line has its type and the first line of its message.

    >>> said_in(
    ...     "Traceback:\\n  File 'a.py', line 1\\n    fit()\\nValueError: Bad column.\\n- a\\n- b"
    ... )
    'ValueError: Bad column.'
    """
    lines = traceback.strip().splitlines()
    frames = [place for place, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[frames[-1] + 1 :] if frames else lines[-1:]
    # Skip lines of code and the marks below them, which are indented.
    said = [line.strip() for line in dropwhile(lambda line: line.startswith(" "), after)]
    said = [line for line in said if line]
    if not said:
        return lines[-1].strip() if lines else ""
    if said[0].endswith(":") and len(said) > 1:  # the message begins in the next line
        return f"{said[0]} {said[1]}"
    return said[0]


def by_scorer(measured: Sequence[Measured], names: Sequence[str]) -> list[Measured]:
    """Return the measurements with one score for each scorer.

    A fit that failed has a single number, which becomes the score of each scorer. So all
    measurements have the same columns.

    >>> by_scorer([{"fit_time": 1.0, "test_scores": 0.0}], ["a", "b"])
    [{'fit_time': 1.0, 'test_scores': {'a': 0.0, 'b': 0.0}}]
    """
    return [
        {
            name: dict.fromkeys(names, value)
            if name.endswith("_scores") and not isinstance(value, Mapping)
            else value
            for name, value in fold.items()
        }
        for fold in measured
    ]


def scorer_names(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Return the names of the scorers.

    Empty if there is one score without a name. A fit that failed has one number for all scorers,
    and tells no names.
    """
    return next((tuple(s) for f in measured if isinstance(s := f["test_scores"], Mapping)), ())


def deciding(names: Collection[str], refit: Any) -> str:
    """Return the scorer that decides the search: the one that `refit` names, or the first.

    >>> deciding(["accuracy", "f1"], "f1"), deciding(["accuracy", "f1"], True)
    ('f1', 'accuracy')
    """
    return refit if isinstance(refit, str) and refit in names else next(iter(names))


def metric_of(measured: Sequence[Measured], refit: Any) -> list[float]:
    """Return the scores that decide the search, one for each fold."""
    names = scorer_names(measured) or ("score",)
    name = deciding(names, refit)
    return [fold["test_scores"][name] for fold in by_scorer(measured, names)]


def _sizes(least: int, full: int, factor: float) -> tuple[int, ...]:
    """Return the sizes from `least` to `full`.

    Raises:
        ValueError: if there are more than a thousand; the message names the search's arguments.
    """
    try:
        return geometric_sizes(least, full, factor)
    except ValueError:  # too many sizes; their number depends on rounding, so just try
        raise ValueError(
            "`factor` must lead from `min_resources` to `max_resources` in at most "
            f"{MAX_SIZES:,} sizes, but got {factor} for {least:,} to {full:,}. Take a larger "
            "one, such as 1.5."
        ) from None


def _plain(value: Any) -> Any:
    """Return a score, or scores by name, as floats, which can be stored."""
    if isinstance(value, Mapping):
        return {name: float(score) for name, score in value.items()}
    return float(value)
