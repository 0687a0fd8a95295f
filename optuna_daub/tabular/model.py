"""The fitted model of a table, its summary and its report."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import optuna
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from optuna_daub.core.checks import brief
from optuna_daub.objective.data import FEW_VALUES
from optuna_daub.spaces import Task
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.table import NO_SIGNS
from optuna_daub.tabular.table import Header
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import Signs
from optuna_daub.tabular.target import Times


@dataclass(frozen=True)
class Row:
    """One model of the search, for the summary."""

    kind: str
    params: Mapping[str, Any]
    score: float
    """Score as the user's metric."""
    size: int
    """Rows of its last training."""
    seconds: float
    """Seconds of its last training; 0 if not known."""


@dataclass(frozen=True)
class Found:
    """The results of a search in numbers."""

    n_rows: int
    """Number of rows with a known target."""
    n_train: int
    """Number of rows of a training on all the data."""
    n_validation: int
    """Number of rows that are scored."""
    folds: int
    """Number of folds of the cross-validation; 1 for one held-out set."""
    best: Row
    guess: float
    """Score of the best constant guess."""
    error: float | None
    """Standard error of the score, for accuracy."""
    n_fitted: int
    """Number of rows that the final model was fitted on."""
    models: tuple[Row, ...]
    """All models: the best one first, then by decreasing size and score."""
    failures: tuple[str, ...]
    """Reasons why models failed, each one once."""
    seconds: float
    """Seconds of the whole search, reading included."""
    everything: float
    """Expected seconds of training each model on all the data."""


@dataclass(frozen=True, eq=False)
class TabularModel:
    """The best model for a table, fitted; `str` of it is a summary.

    `save` writes it to a file, and `joblib.load("model.joblib").predict("new.csv")` uses it where
    optuna_daub is installed. Load only files that you trust.
    """

    pipeline: Pipeline
    """Preparation and model: a data frame of pandas in, numbers or class codes out."""
    task: Task
    target: str
    """Name of the column to predict."""
    metric: Metric
    classes: NDArray[Any]
    """Classes as in the table, by code; empty for regression."""
    columns: tuple[str, ...]
    """Names of the columns that are used."""
    score: float
    """The best model's score on rows outside its training, in the user's metric."""
    notes: tuple[str, ...]
    """Findings about the table, one sentence each."""
    found: Found
    study: optuna.Study | None = field(default=None, repr=False)
    """The search; None in a model that was loaded from a file."""
    times: Times | None = None
    """Dates or durations that predicted numbers stand for; None if they stand for themselves."""
    signs: Signs = NO_SIGNS
    """Signs in the numbers of the text file that it learnt from."""

    @property
    def model(self) -> Any:
        """The estimator itself, the last step of the pipeline."""
        return self.pipeline[-1]

    def predict(self, table: Any, *, header: Header = "auto") -> NDArray[Any]:
        """Return the class, amount, date or duration of each row.

        Args:
            table: a file or frame, as for `fit`; unknown columns are ignored. A text file is read
                with the decimal sign, and the columns of text, that `fit` found.
            header: as in `fit`.

        Raises:
            TableError: if the table cannot be read, or a column is missing.
        """
        found = self._predicted("predict", table, header)
        if self.times is not None:
            return self.times.back(found)
        return np.asarray(self.classes[found] if self.task == "classification" else found)

    def predict_proba(self, table: Any, *, header: Header = "auto") -> NDArray[np.float64]:
        """Return the probability of each class, shape (rows, classes), columns as in `classes`.

        Raises:
            ValueError: for regression.
            TableError: as `predict`.
        """
        if self.task != "classification":
            raise ValueError(
                "`predict_proba` needs a model of classes, but this one predicts amounts."
            )
        return np.asarray(self._predicted("predict_proba", table, header), np.float64)

    def _predicted(self, method: str, table: Any, header: Header) -> Any:
        learnt = Learnt(self.signs, self.pipeline[0].text_, self.columns)
        frame = read_table(table, header=header, learnt=learnt).frame
        with warnings.catch_warnings():
            # LightGBM before 4.7 makes up names for the columns of arrays, and misses them later.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            return getattr(self.pipeline, method)(frame)

    def save(self, path: str | Path) -> None:
        """Write the model, without its study, to a file for `joblib.load`.

        A file that is there is replaced once the new one is complete.
        """
        with replacing(path) as part:
            joblib.dump(replace(self, study=None), part)

    def report(self, path: str | Path) -> None:
        """Write a report with pictures as one HTML file that needs no network.

        A file that is there is replaced once the new one is complete.

        Raises:
            ValueError: if the model was loaded from a file, since it then has no study.
            ImportError: if plotly is not installed.
        """
        from optuna_daub.tabular.page import page

        text = page(self)
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        return summary(self)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield the file to write, which replaces `path` once it is complete."""
    target, part = target_of(Path(path))
    try:
        yield part
        if part != target:
            with suppress(OSError):  # there is no such file yet, or its disk knows no modes
                shutil.copymode(target, part)
            part.replace(target)
    except BaseException:
        if part != target:
            part.unlink(missing_ok=True)
        raise


def target_of(path: Path) -> tuple[Path, Path]:
    """Return a path without links, and the file that is written before it.

    It is the same for a device, and in a folder in which no file can be made.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # no error for a long name
        return path, path  # a pipe's own name is no path
    target = path.resolve()  # a link stays
    may_add = os.access(target.parent, os.W_OK)
    return target, target.with_name(f"part-{target.name}") if may_add else target


def summary(model: TabularModel) -> str:
    """Return a summary of the model, its score and its cost in plain text."""
    found, metric = model.found, model.metric
    best = found.best
    lines = [f"Best of {_models(len(found.models))}: {best.kind}"]
    lines += [f"  {name} {_short(value)}" for name, value in best.params.items()]
    error = "" if found.error is None else f" +- {found.error:.4f}"
    where = f"on {found.n_validation:,} rows that it did not learn from"
    if found.folds > 1:
        where = f"in cross-validation with {found.folds} folds"
    lines += [
        "",
        f"{metric}: {metric.said(best.score)}{error} {where}",
        f"  always the same guess: {metric.said(found.guess)}",
    ]
    is_better = best.score < found.guess if metric.is_loss else best.score > found.guess
    if not is_better:
        lines.append(f"  No model is better than a guess: {_why_not(model)}")
    if best.size < found.n_train:
        lines.append(
            f"  This is the score after {best.size:,} of {found.n_train:,} rows: there was no "
            "time to score it on more."
        )
    lines += [
        f"The final model was fitted on {found.n_fitted:,} of {found.n_rows:,} rows.",
        "",
        f"All in all {said_time(found.seconds)}.",
    ]
    if found.everything > 0:
        n = len(found.models)
        each = "it" if n == 1 else f"each of the {_models(n)}"
        lines[-1] += (
            f" Training {each} on all rows would have taken about {said_time(found.everything)}."
        )
    if found.failures:
        lines.append(f"Failed: {'; '.join(found.failures)}")
    lines += ["", _table(model)]
    return "\n".join(lines)


def _table(model: TabularModel) -> str:
    """Return the five best models as a table."""
    head = f"{model.metric.name:>24} {'rows learnt from':>17} {'seconds':>9}  model"
    return "\n".join(
        [head]
        + [
            f"{model.metric.said(row.score):>24} {row.size:>17,} {row.seconds:>9.2f}  {row.kind}"
            for row in model.found.models[:5]
        ]
    )


def said_time(seconds: float) -> str:
    """Return the text of a time in s, min or h.

    >>> said_time(7.3), said_time(340), said_time(9000)
    ('7 s', '5 min 40 s', '2 h 30 min')
    """
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 100:
        return f"{minutes} min {whole % 60} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _why_not(model: TabularModel) -> str:
    if model.task == "regression" and not model.metric.compares_squares:
        return (
            f"models minimize squared errors, which {model.metric.name} does not compare. Try "
            'metric="r2" to see if the columns say something of the target.'
        )
    if not model.metric.compares_labels:
        return "nothing in the columns tells the target."
    if model.metric.scoring == "recall":
        return (
            f"a model that always says {brief(model.classes[1])} has recall 1. Try "
            'metric="f1" or "auc".'
        )
    other = "auc" if len(model.classes) <= FEW_VALUES else "log_loss"
    return (
        f"{model.metric.name} compares the likeliest classes, and cannot tell if the columns say "
        f'something of a rare class. Try metric="{other}", which compares probabilities.'
    )


def _models(n: int) -> str:
    return "1 model" if n == 1 else f"{n:,} models"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
