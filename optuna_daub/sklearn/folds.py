"""The folds of a search, and what a candidate is measured on in them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from itertools import dropwhile
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from optuna_daub.core.sizes import MIN_SIZES
from optuna_daub.core.sizes import MOST_SIZES
from optuna_daub.core.sizes import geometric_sizes
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import arrivals
from optuna_daub.objective.subsets import fold_of


FIRST_ROWS = 500
"""The smallest training size by default, from the DAUB paper: what a fit takes besides its rows
outweighs them below, and scores on few rows say little."""
FIRST_SHARES = 1 / 64, 1 / 8
"""Of all rows of a fold: what the smallest training size is at least and at most by default."""

Measured = dict[str, Any]
"""What came of one fold: times, test scores and, if asked for, training scores."""


class FitError(Exception):
    """Raised where a candidate cannot be fitted in some fold.

    Its first line is the sentence that says what is wrong; all lines of the error follow.
    """


@dataclass(frozen=True)
class Folds:
    """Divisions of the rows, whose training rows have nested subsets."""

    folds: tuple[Fold, ...]
    """Training rows in the order in which subsets take them."""
    training: tuple[Indices, ...]
    """The same rows in the order of the splitter."""
    n_classes: int
    """The number of classes; 1 where there are none."""
    complete_from: int = 1
    """The smallest size at which each subset holds all classes that its fold trains on."""

    @property
    def n_train(self) -> int:
        """The number of rows to train on in the largest fold."""
        return max(map(len, self.training))

    def rows(self, fold: int, size: int) -> tuple[Indices, Indices]:
        """Return the rows to train on and those to score at a size.

        A fold with fewer rows than the largest one takes the same share of its own. At the full
        size these are the rows that the splitter gave, in its order, so that scores are those of
        `cross_validate`.
        """
        validation, every = self.folds[fold].validation, self.training[fold]
        wanted = -(-size * len(every) // self.n_train)
        rows = every if wanted == len(every) else self.folds[fold].subset(wanted)
        return rows, validation


def divided(
    splitter: Any, estimator: Any, X: Any, y: Any, split: Mapping[str, Any], seed: int
) -> Folds:
    """Return the folds of a splitter; subsets of a classifier's rows are stratified.

    A `TimeSeriesSplit` keeps the order of time: subsets are then the most recent rows.

    Raises:
        ValueError: where there are no folds, or the splitter gives another number than promised.
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
    if not splits or any(len(train) == 0 for train, _ in splits):
        raise ValueError(
            "`cv` must give at least one fold, each with rows to train on, but no fits were "
            f"performed: {splitter!r} gave none. Is it an iterator that was used up before?"
        )
    classes = None
    has_labels = y is not None and is_classifier(estimator)
    if has_labels and type_of_target(y) in ("binary", "multiclass"):
        classes = class_labels(np.asarray(y).ravel())
    is_shuffled = not isinstance(splitter, TimeSeriesSplit)
    layout = Layout(len(every), seed, classes, shuffle=is_shuffled)
    folds = Folds(
        tuple(fold_of(layout, train, test) for train, test in splits),
        tuple(train for train, _ in splits),
        1 if classes is None else len(classes.names),
    )
    if classes is None:
        return folds
    # A fold takes its share, ceil(size * n_rows / n_train) rows. The smallest size for which that
    # reaches `last`, the row that completes its classes:
    latest = ((len(fold.training), arrivals(fold, classes)[1].max()) for fold in folds.folds)
    complete = max((last - 1) * folds.n_train // n_rows + 1 for n_rows, last in latest)
    return replace(folds, complete_from=int(complete))


def size_grid(
    folds: Folds, min_resources: int | str, max_resources: int | str, factor: float
) -> tuple[int, ...]:
    """Return the training sizes of a search, at least three.

    >>> rows = np.arange(100)
    >>> halves = Folds((Fold(rows, rows),), (rows,), 2)
    >>> size_grid(halves, "smallest", "auto", 3), size_grid(halves, 10, 90, 3)
    ((4, 12, 36, 100), (10, 30, 90))

    Raises:
        ValueError: where there are not three sizes from the smallest to the largest, or more than
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
    # As HalvingRandomSearchCV has it, for whom a fold must have two rows of each class.
    least = max(2 * len(folds.folds) * folds.n_classes, folds.complete_from)
    if min_resources == "auto":
        fewest, most_rows = (round(share * full) for share in FIRST_SHARES)
        least = max(least, fewest, min(FIRST_ROWS, most_rows))
    room = max(folds.n_classes, folds.complete_from)
    if most >= room:
        return _sizes(min(least, most), full, factor)
    least = min(room, full - 2)
    return least, (least + full) // 2, full


@dataclass(frozen=True)
class Evaluation:
    """All that it takes to train and score a candidate, as scikit-learn's searches do."""

    estimator: Any
    """Unfitted."""
    X: Any
    y: Any
    folds: Folds
    scorers: Any
    """What `BaseSearchCV._get_scorers` returns."""
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    error_score: Any
    return_train_score: bool
    errors: list[FitError] = field(default_factory=list)
    """Of all fits that failed, in the order in which they did."""

    def __call__(self, params: Mapping[str, Any], size: int) -> list[Measured]:
        """Train and score on the subsets of a size, and return what came of each fold.

        Raises:
            FitError: where some fit fails and `error_score` is no finite number to count for it.
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
                fit_params=self.fit_params,
                score_params=self.score_params,
                return_train_score=self.return_train_score,
                return_times=True,
                error_score=self.error_score,
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
    """Return the type of the error that ended a traceback and its first sentence, in one line.

    >>> said_in(
    ...     "Traceback:\\n  File 'a.py', line 1\\n    fit()\\nValueError: Bad column.\\n- a\\n- b"
    ... )
    'ValueError: Bad column.'
    """
    lines = traceback.strip().splitlines()
    frames = [place for place, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[frames[-1] + 1 :] if frames else lines[-1:]
    # Lines of code, and marks below them, are indented.
    said = [line.strip() for line in dropwhile(lambda line: line.startswith(" "), after)]
    said = [line for line in said if line]
    if not said:
        return lines[-1].strip() if lines else ""
    if said[0].endswith(":") and len(said) > 1:  # the message begins in the next line
        return f"{said[0]} {said[1]}"
    return said[0]


def by_scorer(measured: Sequence[Measured], names: Iterable[str]) -> list[Measured]:
    """Return what was measured with a score for each scorer.

    Of a scorer that is a function and returns several scores scikit-learn has a single number
    where a fit failed.

    >>> by_scorer([{"fit_time": 1.0, "test_scores": 0.0}], ["a", "b"])
    [{'fit_time': 1.0, 'test_scores': {'a': 0.0, 'b': 0.0}}]
    """
    names = [*names]
    return [
        {
            name: dict.fromkeys(names, value)
            if name.endswith("_scores") and not isinstance(value, Mapping)
            else value
            for name, value in fold.items()
        }
        for fold in measured
    ]


def metric_of(measured: Sequence[Measured], refit: Any) -> list[float]:
    """Return the scores that are searched by: those that `refit` names, or the first ones."""
    names = next((s for fold in measured if isinstance(s := fold["test_scores"], Mapping)), None)
    if names is None:
        return [fold["test_scores"] for fold in measured]
    name = refit if isinstance(refit, str) and refit in names else next(iter(names))
    return [fold["test_scores"][name] for fold in by_scorer(measured, names)]


def _sizes(least: int, full: int, factor: float) -> tuple[int, ...]:
    """Return the sizes between two that leave room for three.

    Raises:
        ValueError: where they are more than a thousand, in the words of a search's arguments.
    """
    try:
        return geometric_sizes(least, full, factor)
    except ValueError:  # how many there are depends on how each is rounded
        raise ValueError(
            "`factor` must lead from `min_resources` to `max_resources` in at most "
            f"{MOST_SIZES:,} sizes, but got {factor} for {least:,} to {full:,}. Take a larger "
            "one, such as 1.5."
        ) from None


def _plain(value: Any) -> Any:
    """Return numbers that can be stored."""
    if isinstance(value, Mapping):
        return {name: float(score) for name, score in value.items()}
    return float(value)
