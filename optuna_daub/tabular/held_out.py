"""Rows that models are scored on: folds of a small table, or a part that is held out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from optuna_daub.core.checks import brief
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.target import Target


FEW_ROWS = 2_000
"""Number of rows below which scores are means over five folds: a held-out fifth is too small. More
rows have folds only if nearly all amounts are the same (see `n_folds`)."""
FOLDS = 5
"""Number of folds on such tables; scikit-learn's default."""
MAX_SCORED = 20_000
"""Largest number of held-out rows: the standard error of an accuracy is at most 0.0035 =
sqrt(0.25 / 20,000)."""
SCORED_SHARE = 0.2
"""Share of the rows that is held out on larger tables. It is at most `MAX_SCORED` rows."""
FEW_OF_A_CLASS = 10
"""Number of scored rows of a class below which a note says that scores vary: the standard error of
the share that is right is up to 0.16 = sqrt(0.25 / 10)."""
SIZES = 3
"""Smallest number of training sizes; the smallest size has a row of each class."""


def n_folds(target: Target) -> int:
    """Return the number of folds of cross-validation; 1 for one held-out set."""
    n = len(target.values)
    if target.task == "regression":
        # If nearly all amounts are 0, the rows held out may have no other.
        n_others = n - np.count_nonzero(_is_usual(target))
        is_rare = FOLDS <= n_others < FEW_OF_A_CLASS / scored_share(n)
        return FOLDS if n < FEW_ROWS or is_rare else 1
    if n >= FEW_ROWS:
        return 1
    # Scores can only be compared if each fold holds each class.
    return min(FOLDS, int(np.bincount(target.values).min()))


def folds_of(target: Target, seed: int) -> Any:
    """Return the folds as `TrainingSizeObjective` takes them; None for one held-out set.

    If most rows have one amount, such as 0, each fold has its share of the others.
    """
    folds = n_folds(target)
    if folds == 1 or target.task == "classification":
        return None if folds == 1 else folds
    is_usual = _is_usual(target)
    n_others = np.count_nonzero(~is_usual)
    if not folds <= n_others < len(is_usual) / 2:
        return folds
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [*splitter.split(is_usual, is_usual)]


def _is_usual(target: Target) -> NDArray[np.bool_]:
    """Return which rows have the median amount: the usual one if most rows have one."""
    half = len(target.values) // 2
    return np.asarray(target.values == np.partition(target.values, half)[half])


def scored_share(n_rows: int) -> float:
    """Return the share of rows that is held out if there are no folds.

    >>> scored_share(5_000), scored_share(1_000_000)
    (0.2, 0.02)
    """
    return min(SCORED_SHARE, MAX_SCORED / n_rows)


def said_rare(target: Target, metric: Metric) -> list[str]:
    """Return a note if scores vary much, since a rare class leaves few folds or scored rows."""
    if target.task == "regression":
        return []
    n, folds = len(target.values), n_folds(target)
    if folds == FOLDS or (folds == 1 and metric.counts_rows):
        return []
    counts = np.bincount(target.values)
    is_rare = counts < FOLDS if folds > 1 else counts * scored_share(n) < FEW_OF_A_CLASS
    if not is_rare.any():
        return []
    few = target.classes[is_rare]
    names = ", ".join(map(str, few[:3])) + (", ..." if len(few) > 3 else "")
    if folds == 1:
        return [
            f"`{metric.name}` compares classes, and fewer than {FEW_OF_A_CLASS} rows of some are "
            f"scored ({names}): scores vary much. Add rows of such classes, join them with "
            "others, or leave them out."
        ]
    return [
        f"Scores are means over {folds} folds instead of {FOLDS}, since each class must be in "
        f"each fold and some have {counts.min()} rows ({names}). Leave rows of such classes out "
        "of the table for scores that vary less."
    ]


def check_room(target: Target, metric: Metric) -> None:
    """Raise a TableError if the rows to train on or to score are too much alike.

    Both must hold every class. Amounts to score must differ if the metric is relative to their
    variance.
    """
    if target.task == "regression":
        others = target.values[~_is_usual(target)]
        if len(others) < FOLDS and metric.scoring in ("r2", "explained_variance"):
            raise TableError(
                f"`metric={brief(metric.name)}` needs different amounts in each of {FOLDS} parts "
                f"of the table, but only {len(others)} of {len(target.values):,} of "
                f'`{target.name}` differ from the rest: take "rmse" or "mae".'
            )
        return
    n, n_classes, folds = len(target.values), len(target.classes), n_folds(target)
    scored = n // folds if folds > 1 else math.ceil(n * scored_share(n))
    if n_classes > scored or n_classes + SIZES - 1 > n - scored:
        are_numbers = as_numbers(imported("pandas").Series([*target.classes])).notna().all()
        way_out = ', or give `task="regression"` if they are amounts' if are_numbers else ""
        raise TableError(
            f"A table must have more rows of each class: of {n:,} rows {n - scored:,} are learnt "
            f"from and {scored:,} scored, which is too few for the {n_classes:,} classes of "
            f"`{target.name}`. Leave rows of rare classes out of the table, or join "
            f"classes{way_out}."
        )
