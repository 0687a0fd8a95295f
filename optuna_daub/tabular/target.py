"""The column to predict: classes or amounts, and the rows in which it is known.

Dates and durations are amounts: days since the first date, and seconds. Predictions of them are
dates and durations again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import text_of
from optuna_daub.objective.data import FEW_VALUES
from optuna_daub.spaces import Task
from optuna_daub.tabular.table import MISSING_WORDS
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import listed_words
from optuna_daub.tabular.table import numbers_among
from optuna_daub.tabular.table import said_lost
from optuna_daub.tabular.table import said_names
from optuna_daub.tabular.target_kinds import kind_of
from optuna_daub.tabular.target_kinds import times_among


MIN_ROWS = 20
"""Smallest number of rows with a known target: enough for three training sizes and some to
score."""

MOST_DAYS = 50_000_000.0
"""Largest number of days between the first date and a predicted one: `datetime64` in microseconds
ends after twice as many."""

_HELD: dict[Task | None, str] = {"classification": "classes", "regression": "amounts"}
"""Words for the values of a target, by task."""


class NoTargetError(TableError):
    """The error for a target that is no column of the table."""


@dataclass(frozen=True)
class Times:
    """Dates or durations that amounts stand for."""

    first: np.datetime64 | None
    """Date that is 0, from which days are counted; None for durations, in seconds."""
    are_days: bool = False
    """True for dates without a time of day."""

    def back(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Return amounts as dates (`datetime64`) or durations (`timedelta64`), of any shape.

        >>> Times(np.datetime64("2020-02-28"), are_days=True).back(np.array([0.2, 1.9]))
        array(['2020-02-28', '2020-03-01'], dtype='datetime64[D]')
        >>> Times(None).back(np.array([90.0])) == np.timedelta64(90, "s")
        array([ True])
        """
        seconds = np.asarray(amounts, np.float64) * (1.0 if self.first is None else 86_400.0)
        seconds = np.clip(seconds, -86_400.0 * MOST_DAYS, 86_400.0 * MOST_DAYS)
        if self.are_days:
            days = np.rint(seconds / 86_400.0).astype("timedelta64[D]")
            return np.asarray(np.asarray(self.first, "datetime64[D]") + days)
        passed = np.rint(1e6 * seconds).astype("timedelta64[us]")
        return np.asarray(passed if self.first is None else self.first + passed)


@dataclass(frozen=True)
class Target:
    """The target column, ready for training."""

    name: str
    """Name of the column."""
    task: Task
    values: NDArray[Any]
    """Class codes or amounts, shape (number of kept rows,)."""
    classes: NDArray[Any]
    """Classes as in the table, by code; empty for regression."""
    kept: NDArray[np.bool_]
    """True for rows with a known target, which are used, shape (number of rows,)."""
    notes: tuple[str, ...]
    """Notes for the user; the first says whether the target holds classes or amounts."""
    times: Times | None = None
    """Dates or durations that the amounts stand for; None if they are numbers."""


def checked_target(
    frame: Any,
    name: Any,
    task: Task | Literal["auto"] | None = None,
    written: Mapping[str, Any] | None = None,
) -> Target:
    """Return the target column as classes or amounts, by `task` or by its values.

    Text, categories and booleans are classes. Whole numbers are classes if there are at most 20
    different ones, fewer than half the rows. All other numbers are amounts, and so are dates and
    durations. Text is dates or durations if there are more than 20 different ones.

    Args:
        frame: table with the target.
        name: name of its column.
        task: "classification" or "regression"; None or "auto" to guess.
        written: columns as in a text file, by name, whose numbers reading has rewritten. Such a
            target may be amounts, and its classes are as in the file.

    Raises:
        TableError: if there is no such column, or its values cannot be predicted.

    >>> import pandas as pd
    >>> rings = pd.DataFrame({"rings": [*range(28)] * 3})
    >>> print(checked_target(rings, "rings").notes[0])
    `rings` has 28 different whole numbers: taken for amounts (task="classification" for classes).
    """
    given = _checked_task(task)
    name = _column(frame, name)
    column = frame[name]
    kept = column.notna().to_numpy(dtype=bool, copy=True)
    if not kept.any():
        raise TableError(f"`target` must have values, but `{name}` is empty in every row.")
    as_written = (written or {}).get(name)
    kind, known, words = _read(column[kept], name, given, as_written)
    if kind != "text":
        finite = _are_finite(known, kind)
        kept[np.flatnonzero(kept)[~finite]] = False
        known = known[finite]
        if not len(known):
            raise TableError(
                f"`target` must have values, but those of `{name}` are infinite or beyond 3e38."
            )
    if known.nunique() == 1:
        raise TableError(
            f"`target` must have at least two different values, but `{name}` is "
            f"{known.iloc[0]} in every row."
        )
    guessed, said = _guess(known, name, kind)
    if given is None and kind not in ("text", "yes or no"):  # those are classes only
        other: Task = "regression" if guessed == "classification" else "classification"
        said += f': taken for {_HELD[guessed]} (task="{other}" for {_HELD[other]})'
    elif given not in (None, guessed):
        said += f": taken for {_HELD[given]}, as asked"
    notes = [said + ".", *words]
    if n_lost := len(column) - int(kept.sum()):
        notes.append(f"{_rows(n_lost)} without a value of `{name}` left out.")
    if (given or guessed) == "classification":
        kind, known = _as_written(kind, known, as_written)
        return _of_classes(known, name, kept, notes, kind)
    _check_rows(len(known), name)
    values, times = _amounts(known, kind)
    return Target(name, "regression", values, np.array([]), kept, tuple(notes), times)


def _read(
    column: Any, name: str, given: Task | None, as_written: Any
) -> tuple[str, Any, list[str]]:
    """Return the kind of known values, the values, and notes on words among them."""
    pandas = imported("pandas")
    words: list[str] = []
    kind, known = kind_of(column, name, pandas)
    is_category = isinstance(column.dtype, pandas.CategoricalDtype)
    may_be_more = kind == "text" and (given == "regression" or not is_category)
    if may_be_more and given != "classification":
        # Text with few different dates or durations stays text, unless amounts are asked for.
        few = 0 if given else FEW_VALUES
        kind, known, words = times_among(known, name, few)
    if may_be_more and kind == "text":
        # Digits alone in a frame's text may be codes, but € 5 and 5 kg are amounts.
        has_digits_alone = bool(pandas.to_numeric(known, errors="coerce").notna().any())
        may_be_amounts = given is not None or as_written is not None or not has_digits_alone
        kind, known, words = _numbers_or_words(known, name, given, may_be_amounts=may_be_amounts)
    if given == "classification" or (kind in ("text", "yes or no") and not given):
        kind, known = _as_written(kind, known, as_written)
        if kind == "yes or no" and as_written is not None:
            words.append(f"`{name}` has true and false in several spellings: taken for the same.")
    return kind, known, words


def _as_written(kind: str, known: Any, as_written: Any) -> tuple[str, Any]:
    """Return the kind of classes, and the classes as written in their file.

    True and false in several spellings stay as they were read.
    """
    if as_written is None:
        return kind, known
    words = as_written.loc[known.index].astype(object)
    is_merged = kind == "yes or no" and words.nunique() > known.nunique()
    return (kind, known) if is_merged else ("text", words)


def _are_finite(known: Any, kind: str) -> NDArray[np.bool_]:
    """Return True for known dates and durations, and for numbers finite in 32 bits.

    Several kinds of models cannot learn other values.
    """
    if kind in ("dates", "durations"):
        return np.asarray(known.notna(), bool)
    with np.errstate(over="ignore"):
        return np.asarray(np.isfinite(known.to_numpy(dtype=np.float64).astype(np.float32)))


def _numbers_or_words(
    known: Any, name: str, given: Task | None, *, may_be_amounts: bool
) -> tuple[str, Any, list[str]]:
    """Return the kind of text, its values, and notes on them.

    Text is amounts if nearly all of it is numbers, and these are amounts or were asked for. Other
    words count as missing then. If all of it is numbers, `may_be_amounts` decides. Without it they
    are classes, with a note.

    Raises:
        TableError: if amounts were asked for and too many words are no numbers.
    """
    found = numbers_among(known) if given != "classification" else None
    said: list[str] = []
    if found and (given or _guess(found[0].dropna(), name, "numbers")[0] == "regression"):
        numbers, others = found
        if may_be_amounts or len(others):
            said += [f"`{name}` {said_lost(others, len(known))}."] if len(others) else []
            return "numbers", numbers, said
        said = [f'`{name}` has text that holds numbers only: task="regression" for amounts.']
    if given == "regression":
        numbers = as_numbers(known)
        others = known[numbers.isna()]
        if not len(others):  # categories that are numbers
            return "numbers", numbers, []
        raise TableError(
            f'`task="regression"` needs numbers, but {len(others):,} of {len(known):,} cells of '
            f"`{name}` are none, such as {brief(others.iloc[0])}: take these rows out, or empty "
            "the cells."
        )
    if set(known) & MISSING_WORDS:
        called = listed_words(word for word in known if word in MISSING_WORDS)
        said += [f"`{name}` has classes called {called}: empty these cells if they are missing."]
    return "text", known, said


def _amounts(known: Any, kind: str) -> tuple[NDArray[np.float64], Times | None]:
    """Return known values as numbers, and the dates or durations that they stand for."""
    if kind == "durations":
        return known.dt.total_seconds().to_numpy(dtype=np.float64), Times(None)
    if kind == "dates":
        dates = known.to_numpy(dtype="datetime64[us]")
        are_days = bool((dates == dates.astype("datetime64[D]")).all())
        days = (dates - dates.min()) / np.timedelta64(1, "D")
        return days, Times(dates.min(), are_days=are_days)
    return known.to_numpy(dtype=np.float64), None


def _guess(known: Any, name: str, kind: str) -> tuple[Task, str]:
    """Return the task that fits known values, and what they are in words."""
    n_values = known.nunique()
    if kind == "text":
        called = listed_words(sorted(known.unique(), key=str))
        return "classification", f"`{name}` has {n_values:,} classes ({called})"
    if kind == "yes or no":
        return "classification", f"`{name}` is true or false: two classes"
    if kind == "dates":
        days = f"days since {known.min():%Y-%m-%d}"
        return "regression", f"`{name}` has {n_values:,} different dates, predicted by {days}"
    if kind == "durations":
        return "regression", f"`{name}` has {n_values:,} different durations, counted in seconds"
    values = known.to_numpy(dtype=np.float64)
    if not np.array_equal(values, np.rint(values)):
        return "regression", f"`{name}` has {n_values:,} different numbers"
    is_few = n_values <= FEW_VALUES and n_values < len(values) / 2
    said = f"`{name}` has {n_values:,} different whole numbers"
    return "classification" if is_few else "regression", said


def _of_classes(
    known: Any, name: str, kept: NDArray[np.bool_], notes: list[str], kind: str
) -> Target:
    if kind == "numbers" and not kept.all() and (known % 1 == 0).all():
        known = known.map(int)  # pandas makes floats of whole numbers with gaps
    counts = known.value_counts()
    lone = counts.index[counts < 2]
    if len(counts) > len(known) / 2:
        raise TableError(
            f"`target` must have values that repeat, but `{name}` has {len(counts):,} "
            f"different ones in {len(known):,} rows"
            + (_hint(known) if kind == "text" else " to be classes.")
        )
    if len(lone):
        is_lone = known.isin(lone).to_numpy(dtype=bool)
        kept[np.flatnonzero(kept)[is_lone]] = False
        known = known[~is_lone]
        some = ", ".join(map(str, lone[:3])) + (", ..." if len(lone) > 3 else "")
        notes.append(
            f"{_rows(len(lone))} of classes with one row only ({some}) left out: nothing could be "
            "both learnt and checked."
        )
        if known.nunique() < 2:
            raise TableError(
                f"`target` must have two classes of at least two rows, but `{name}` has "
                f"{known.nunique()}."
            )
    _check_rows(len(known), name)
    classes, codes = np.unique(known.to_numpy(), return_inverse=True)
    words = sorted((word for word in classes if isinstance(word, str)), key=_plain)
    alike = [pair for pair in pairwise(words) if _plain(pair[0]) == _plain(pair[1])]
    if alike:
        one, other = alike[0]
        notes.append(
            f"`{name}` has classes that differ by blanks or capitals only ({brief(one)} and "
            f"{brief(other)}): write them alike if they are the same."
        )
    return Target(name, "classification", codes, classes, kept, tuple(notes))


def _plain(word: str) -> str:
    return word.strip().casefold()


def _hint(known: Any) -> str:
    """Return what text with too many classes may be."""
    others = known[as_numbers(known).isna()]
    if 2 * len(others) >= len(known):
        return ", as an identifier or free text has."
    if not len(others):
        return ', as numbers in words have (task="regression" for amounts).'
    return (
        f". It is text since {len(others):,} cells are no numbers ({listed_words(others)}): empty "
        "them if it has amounts."
    )


def _checked_task(task: Any) -> Task | None:
    """Return the task, None if it is to be guessed."""
    if task is None or (isinstance(task, str) and task == "auto"):
        return None
    if not isinstance(task, str) or task not in _HELD:
        raise ValueError(
            f'`task` must be "classification", "regression" or None, but got {brief(task)}.'
        )
    return "classification" if task == "classification" else "regression"


def _column(frame: Any, name: Any) -> str:
    names = [*frame.columns]
    text = text_of(name)
    if text in names:
        return text
    hint = ""
    rows = frame.head(MIN_ROWS).to_numpy(dtype=object)
    below = (n for n, row in enumerate(rows, 1) if text in [c for c in row if isinstance(c, str)])
    if number := next(below, 0):  # below a title
        hint += f" Row {number} holds it: names must be in the first line"
        hint += ' (header="yes" if they are).'
    if not isinstance(name, str) and hasattr(name, "__len__"):
        hint += " Give its name, with the values in the table: `fit(X.assign(y=values), 'y')`."
    raise NoTargetError(
        f"`target` must be a column of the table, but got {brief(name)}.{hint}"
        + said_names(text, names)
    )


def _check_rows(n: int, name: str) -> None:
    if n < MIN_ROWS:
        raise TableError(
            f"A table must have at least {MIN_ROWS} rows with a known target, but `{name}` is "
            f"known in {n}."
        )


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"
