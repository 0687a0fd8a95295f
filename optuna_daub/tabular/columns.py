"""Checks of columns: useless ones, and ones that give the target away."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import DecisionTreeRegressor

from optuna_daub.core.checks import brief
from optuna_daub.tabular.process import quiet
from optuna_daub.tabular.signs import GROUPS_BY
from optuna_daub.tabular.signs import NUMBER
from optuna_daub.tabular.signs import bare
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import numbers_among
from optuna_daub.tabular.table import said_lost
from optuna_daub.tabular.table import unit_of
from optuna_daub.tabular.target import Target
from optuna_daub.tabular.times import are_durations
from optuna_daub.tabular.times import as_dates
from optuna_daub.tabular.times import as_durations
from optuna_daub.tabular.times import date_forms


MAX_LEAK_ROWS, MIN_LEAK_ROWS = 10_000, 400
"""Largest and smallest number of rows in the check for leaks. A leak is a column that gives the
target away."""

LEAK_COLUMNS = 50
"""Number of columns up to which each check takes the largest number of rows."""

LEAK_SHARE = 0.98
"""Smallest share of a constant guess's error that a leak removes."""

_TOTAL = re.compile(r"\s*(?:(?:grand )?totals?|sum|summe|gesamt|insgesamt)\s*:?\s*", re.IGNORECASE)
"""Names of a row of totals."""

_ID = re.compile(
    r"(?i:index|row|unnamed: 0(?:\.\d+)*|level_0|(?:.*[\W_])?id)|.*[a-z]I[dD]", re.DOTALL
)
"""Names of a column of identifiers, such as "id", "customer_id" and "CustomerId"."""

_NUMBERS = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
"""Types of numbers without gaps, by the kind of a column's type."""


@dataclass(frozen=True)
class Columns:
    """The columns to learn from, and notes on the others."""

    frame: Any
    """Columns worth learning from, in which text that is numbers was read as such."""
    notes: tuple[str, ...]
    """Notes for the user, one sentence each."""
    units: Mapping[str, str]
    """Units of the numbers that were read from text, by column."""

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns worth learning from."""
        return (*self.frame.columns,)


def said_total(frame: Any) -> str:
    """Return a note if the last row of a table is a total with a sum, else "".

    >>> import pandas as pd
    >>> said_total(pd.DataFrame({"town": ["Ulm", "Bonn", "Total"], "flats": [3, 4, 7]}))
    'The last row is the total of the others (`town`, `flats`): take it out of the table.'
    """
    above = frame.iloc[:-1]
    for name in frame.columns:
        last = frame[name].iloc[-1]
        if not isinstance(last, str) or not _TOTAL.fullmatch(last) or (above[name] == last).any():
            continue
        for other in frame.columns:
            *amounts, total = as_numbers(frame[other])
            if total and math.isclose(np.nansum(amounts), total, rel_tol=1e-6):
                both = f"`{name}`, `{other}`"
                return (
                    f"The last row is the total of the others ({both}): take it out of the table."
                )
    return ""


def checked_columns(frame: Any, target: Target) -> Columns:
    """Return the columns that are worth learning from.

    Text in which nearly all words are numbers counts as numbers, with a note on the other words.
    Columns are left out if they have no value or only one, or if they number or name the rows. A
    column that gives the target away stays, with a note: only the user knows whether it will be
    known for new rows.

    Args:
        frame: features of the kept rows.
        target: target of these rows.

    >>> import pandas as pd
    >>> from optuna_daub.tabular.target import checked_target
    >>> paid = pd.DataFrame({"id": range(40), "euros": 1, "late": ["no", "yes"] * 20})
    >>> columns = checked_columns(paid.drop(columns="late"), checked_target(paid, "late"))
    >>> columns.used
    ()
    >>> print(*columns.notes, sep="\\n")
    Left out: `id`, which numbers the rows.
    Left out: `euros`, which has one value only.
    """
    said, units = [], {}
    frame = frame.copy(deep=False)
    for name in frame.columns:
        if found := numbers_among(frame[name]):
            units[name] = unit_of(frame[name])
            frame[name] = found[0]
            said += [f"`{name}` {said_lost(found[1], len(frame))}."] if len(found[1]) else []
        elif is_text(frame[name]) and (odd := _number_of_others(frame[name])):
            said.append(
                f"`{name}` is taken for text, since the signs in its numbers, such as "
                f"{brief(odd)}, are not those of other columns. Write all numbers alike."
            )
    lost = {name: reason for name in frame.columns if (reason := _lost(frame[name], name))}
    by_reason: dict[str, list[str]] = {}
    for name, reason in lost.items():
        by_reason.setdefault(reason, []).append(name)
    notes = said + [f"Left out: {_listed(names)}, which {r}." for r, names in by_reason.items()]
    frame = frame[[name for name in frame.columns if name not in lost]]
    with quiet(hidden=UserWarning):  # scikit-learn warns of many classes
        notes += _giving_away(frame, target)
    return Columns(frame, tuple(notes), units)


def _number_of_others(column: Any) -> str:
    """Return a cell of text whose cells are numbers with other signs; "" if they are none."""
    forms = (NUMBER, *GROUPS_BY.values())
    known = column.dropna()
    words = [*map(bare, known.iloc[:: -(-len(known) // MAX_LEAK_ROWS)])]
    numbers = [word for word in words if any(form.fullmatch(word) for form in forms)]
    odd = next((word for word in numbers if {*word} & {*",."}), "")
    return odd if len(numbers) >= NEARLY_ALL * len(words) else ""


def _lost(column: Any, name: str) -> str:
    """Return the reason why a column is useless, or an empty string."""
    pandas = imported("pandas")
    types = pandas.api.types
    known = column.dropna()
    if not len(known):
        return "has no value in any row"
    is_whole = len(known) == len(column)
    if types.is_complex_dtype(column.dtype):
        return "has complex numbers"
    if types.is_numeric_dtype(column.dtype):
        numbers = known.to_numpy(dtype=_NUMBERS[column.dtype.kind])
        if is_whole and numbers.min() == numbers.max():
            return "has one value only"
        return "numbers the rows" if is_whole and _counts(numbers, name) else ""
    try:
        n_values = known.nunique()
    except TypeError:  # lists, dicts and the like
        odd = known[~known.map(_is_hashable)].iloc[0]
        return f"has values that are no numbers, dates or words ({type(odd).__name__})"
    if n_values == 1 and is_whole:
        return "has one value only"
    is_of_words = n_values == len(column) and _are_names(known)
    return "has another word in each row" if is_of_words else ""


def _is_hashable(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def _are_names(column: Any) -> bool:
    """Return whether the first values are single words, and neither dates nor numbers."""
    words = column.iloc[:MAX_LEAK_ROWS]
    if imported("pandas").api.types.infer_dtype(words) in ("mixed", "bytes"):  # such as UUIDs
        words = words.map(str)
    if not all(isinstance(word, str) and word and " " not in word.strip() for word in words):
        return False
    return not (are_durations(words) or date_forms(words) or all(map(_is_number, words)))


def _counts(known: NDArray[Any], name: str) -> bool:
    """Return whether whole numbers count the rows.

    They rise or fall by one, or they all differ and are called "id", "index" or the like.
    """
    if known.dtype.kind == "b" or not (np.isfinite(known) & (np.rint(known) == known)).all():
        return False
    steps = np.diff(known) if known.dtype.kind == "f" else np.diff(known.astype(np.int64))
    if len(steps) and abs(steps[0]) == 1 and (steps == steps[0]).all():
        return True
    return bool(_ID.fullmatch(name)) and len(np.unique(known)) == len(known)


def _is_number(word: str) -> bool:
    try:
        float(word.replace(",", "."))
    except ValueError:
        return False
    return True


def _giving_away(frame: Any, target: Target) -> Iterator[str]:
    """Yield a note for each column that predicts the target alone."""
    n_rows = max(MIN_LEAK_ROWS, MAX_LEAK_ROWS * LEAK_COLUMNS // max(LEAK_COLUMNS, frame.shape[1]))
    rows = np.random.default_rng(0).permutation(len(frame))[:n_rows]
    y = target.values[rows]
    if target.task == "regression":
        # Ranks, since squares overflow, and a few large amounts hide that all others are known.
        y = np.unique(y, return_inverse=True)[1].astype(np.float64)
    half, has_classes = len(rows) // 2, target.task == "classification"
    guess = np.bincount(y[:half]).argmax() if has_classes else y[:half].mean()
    constant = _mean_error(guess, y[half:], has_classes=has_classes)
    if constant <= 0:
        return
    kind = DecisionTreeClassifier if has_classes else DecisionTreeRegressor
    for name in frame.columns:
        x = _as_numbers(frame[name].iloc[rows])
        tree = kind(min_samples_leaf=3, random_state=0).fit(x[:half], y[:half])
        error = _mean_error(tree.predict(x[half:]), y[half:], has_classes=has_classes)
        if error <= (1 - LEAK_SHARE) * constant:
            yield (
                f"`{name}` alone gives `{target.name}` away ({1 - error / constant:.1%} of the "
                f"error of a guess is gone). Leave it out (ignore) if it is not known before "
                f"`{target.name}` is."
            )


def _as_numbers(column: Any) -> NDArray[np.float64]:
    """Return numbers and times as ranks, and words as numbers in order of appearance.

    A tree rounds to 32 bits, which different large numbers do not survive. Their ranks do. Numbers
    beyond 3e38 are missing, as in the preparation.
    """
    pandas = imported("pandas")
    types = pandas.api.types
    if is_text(column):
        column = as_durations(column) if are_durations(column) else as_dates(column)
    if types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        numbers = column.astype("int64").to_numpy(dtype=np.float64)
    else:
        words = column.astype(object).map(str).str.strip()  # as the preparation reads them
        numbers = pandas.factorize(words)[0].astype(np.float64)
    ranks = np.full(len(numbers), np.nan)
    with np.errstate(over="ignore"):
        finite = np.isfinite(numbers.astype(np.float32))
    ranks[finite] = np.unique(numbers[finite], return_inverse=True)[1]
    return ranks[:, None]


def _mean_error(guess: Any, y: NDArray[Any], *, has_classes: bool) -> float:
    return float(np.mean(guess != y) if has_classes else np.mean((guess - y) ** 2))


def _listed(names: list[str]) -> str:
    some = ", ".join(f"`{name}`" for name in names[:8])
    return some + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
