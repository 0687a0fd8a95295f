"""From a table to a fitted model within a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_seed
from optuna_daub.core.checks import listed
from optuna_daub.core.checks import seconds_above_0
from optuna_daub.core.checks import text_of
from optuna_daub.core.checks import whole_number
from optuna_daub.spaces import Task
from optuna_daub.spaces.mixed import checked_kinds
from optuna_daub.study import LearnerCurve
from optuna_daub.study import best_learner
from optuna_daub.study import learning_curves
from optuna_daub.study.agreement import sample_agreement
from optuna_daub.study.storages import opened
from optuna_daub.tabular.columns import checked_columns
from optuna_daub.tabular.columns import said_total
from optuna_daub.tabular.held_out import check_room
from optuna_daub.tabular.held_out import said_rare
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.metrics import check_measures
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.metrics import said_class
from optuna_daub.tabular.model import Found
from optuna_daub.tabular.model import Row
from optuna_daub.tabular.model import TabularModel
from optuna_daub.tabular.model import said_time
from optuna_daub.tabular.preparation import Preparation
from optuna_daub.tabular.process import limited
from optuna_daub.tabular.process import quiet
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.search import Say
from optuna_daub.tabular.search import Search
from optuna_daub.tabular.table import Header
from optuna_daub.tabular.table import Signs
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import said_names
from optuna_daub.tabular.target import Target
from optuna_daub.tabular.target import checked_target


LAST_SHARE = 0.1
"""Share of the time that is kept for the last training on all rows."""

SAMPLE = 2_000
"""Number of rows on which the time of the preparation is measured."""

LARGE = 10
"""Smallest number of samples in a table whose preparation is measured, so measuring takes at most
a tenth of it. A note follows if the preparation takes more than this part (1 / 10) of the time
left."""


def fit(
    table: Any,
    target: str,
    *,
    seconds: float = 600.0,
    task: Task | None = None,
    metric: str | None = None,
    ignore: Sequence[str] = (),
    models: Sequence[str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    header: Header = "auto",
    storage: Any = None,
    say: Say | None = print,
) -> TabularModel:
    """Find the best model for a table in the given time.

    The best model is fitted on all rows if time allows. Most models are trained on a part of the
    rows, and promising ones on more. skrub prepares text, dates, missing values and categories.
    This needs `pip install 'optuna-daub[tabular]'`.

    The last tenth of the time is kept for fitting the best model once more, on all rows. If that
    would take longer, it is fitted on as many rows as there is time for, or the result is the
    model that was scored.

    Args:
        table: path of a CSV, Parquet or Excel file, or a frame of pandas, polars or pyarrow.
        target: name of the column to predict.
        seconds: time for reading, preparation, search and the last training together, above 0.
            Preparation and trainings are not cut off, and at least one training is made.
        task: "classification" or "regression"; None guesses, and says what and why.
        metric: name of a metric in scikit-learn, FLAML or AutoGluon, such as "rmse", "auc" or
            "log_loss". None: accuracy for classification, r2 for regression.
        ignore: names of columns to leave out.
        models: kinds of models, names of `optuna_daub.spaces`; None for all.
        jobs: threads of the preparation and of trainings on 10,000 rows or more, at least 1, at
            most one per core; None for one per core. Other trainings have one thread.
        seed: seed of held-out rows, candidates and models, from 0 to 2**32 - 1. Decisions depend
            on measured seconds too, so two runs may find different models.
        header: whether the first line of a text or Excel file holds names: "auto", "yes" or "no".
        storage: storage of Optuna for the search, such as "sqlite:///search.db"; None: in memory.
        say: function that is called with each progress message; None for silence.

    Raises:
        TableError: before anything is trained, if nothing can be learnt from the table; one
            sentence says why.
        ValueError: if an argument breaks its rule.
        ImportError: if a package of the extra `tabular` is not installed.
        RuntimeError: if all models fail.

    >>> from sklearn.datasets import load_iris
    >>> table = load_iris(as_frame=True).frame
    >>> model = fit(table, "target", seconds=3, models=["linear"], jobs=1, say=None)
    >>> model.score > 0.9, model.predict(table.head(2))
    (True, array([0, 0]))
    """
    began = time.monotonic()
    seconds, seed = seconds_above_0(seconds), checked_seed(seed)
    if say is not None and not callable(say):
        raise ValueError(f"`say` must be a function or None, but got {brief(say)}.")
    say = say or (lambda _: None)
    models = None if models is None else checked_kinds("models", models)
    jobs = _checked_jobs(jobs)
    storage = opened(storage)
    notes: list[str] = []

    def tell(*said: str) -> None:
        for note in filter(None, said):
            notes.append(note)
            say(note)

    ready = _prepared(
        table,
        target,
        task=task,
        metric=metric,
        ignore=ignore,
        header=header,
        ends=began + seconds,
        jobs=jobs,
        say=say,
        tell=tell,
    )
    search = Search(
        X=ready.X,
        target=ready.goal,
        metric=ready.metric,
        models=models,
        jobs=jobs,
        seed=seed,
        categories=ready.preparation.categories_,
    )
    tell(*said_rare(ready.goal, ready.metric))
    left = seconds - (time.monotonic() - began)
    if left <= 0:
        took = "Reading and preparing the table took all"
        say(f"{took} of the {said_time(seconds)}: one model is trained.")
    with _working(jobs):
        searched = search.run((1 - LAST_SHARE) * max(left, 0.0), storage, say)
        study, objective = searched.study, searched.objective
        best = best_learner(study)
        curves = learning_curves(study)
        failures = (*dict.fromkeys(c.reason for c in curves if c.state == "dropped"),)
        if best is None:
            reasons = "; ".join(failures).rstrip(".") or "there was no time"
            raise RuntimeError(f"No model could be trained: {reasons}.")
        everything = sample_agreement(study).everything.seconds
        guess = search.guess()
        winner = search.winner(curves, best, searched.leading)
        left = seconds - (time.monotonic() - began)
        model, n_fitted = search.last(searched, winner, left)
    found = Found(
        n_rows=len(ready.X),
        n_train=objective.n_train,
        n_validation=objective.n_validation,
        folds=search.folds,
        best=_row(winner, ready.metric),
        guess=ready.metric.shown(guess),
        error=search.error(winner.score or 0.0, objective.n_validation),
        n_fitted=n_fitted,
        models=_rows(curves, winner, ready.metric),
        failures=failures,
        seconds=time.monotonic() - began,
        everything=everything,
    )
    return TabularModel(
        pipeline=Pipeline([("prepare", ready.preparation), ("model", model)]),
        task=ready.goal.task,
        target=ready.goal.name,
        metric=ready.metric,
        classes=ready.goal.classes,
        columns=ready.columns,
        score=found.best.score,
        notes=tuple(notes),
        found=found,
        study=study,
        times=ready.goal.times,
        signs=ready.signs,
    )


@dataclass(frozen=True)
class _Prepared:
    """A table that a search can learn from."""

    X: NDArray[np.float32]
    """Numbers made of the columns, shape (rows, columns)."""
    goal: Target
    metric: Metric
    preparation: Preparation
    """Fitted pipeline step from the table's columns to numbers."""
    columns: tuple[str, ...]
    """Names of the columns that are used."""
    signs: Signs
    """Signs in the numbers of a text file."""


def _prepared(
    table: Any,
    target: str,
    *,
    task: Task | None,
    metric: str | None,
    ignore: Sequence[str],
    header: Header,
    ends: float,
    jobs: int,
    say: Say,
    tell: Callable[..., None],
) -> _Prepared:
    """Return a table as numbers, and say what was found in it.

    `tell` keeps what it says as notes of the model, `say` does not.

    Raises:
        TableError: if nothing can be learnt from it.
    """
    given = read_table(table, header=header)
    frame = given.frame
    n = len(frame)
    say(f"{n:,} row{'s' * (n > 1)}, {frame.shape[1]:,} columns.")
    tell(*given.notes, said_total(frame))  # before an error that they may explain
    goal = checked_target(frame, target, task, given.written)
    measure = checked_metric(metric, goal.task, len(goal.classes))
    check_measures(measure, goal)
    check_room(goal, measure)
    tell(said_class(measure, goal))
    left_out = set()
    for name in listed("ignore", ignore, "columns"):
        if (text := text_of(name)) not in frame.columns:
            raise TableError(
                f"`ignore` must have columns of the table, but got {brief(name)}."
                + said_names(text, frame.columns)
            )
        if text == goal.name:
            raise TableError(f"`ignore` must not have the target, but got {brief(name)}.")
        left_out.add(text)
    frame = frame.loc[goal.kept, [n for n in frame.columns if n not in (goal.name, *left_out)]]
    frame = frame.reset_index(drop=True)
    columns = checked_columns(frame, goal)
    tell(*goal.notes, *columns.notes)
    if not columns.used:
        raise TableError(
            f"A table must have a column to learn `{goal.name}` from, but none is left."
        )
    preparation = Preparation(columns.used, columns.units)
    with _working(jobs):
        if note := _slow_preparation(preparation, columns.frame, ends - time.monotonic()):
            say(note)
        X = preparation.fit_transform(columns.frame)
    tell(*preparation.notes_)
    if n := preparation.n_infinite_:
        tell(f"{n:,} infinite value{'s' * (n > 1)} taken for missing.")
    if X.shape[1] == 0:
        raise TableError(
            f"A table must have a column to learn `{goal.name}` from, but none can be made a "
            "number."
        )
    return _Prepared(X, goal, measure, preparation, columns.used, given.signs)


def _slow_preparation(preparation: Preparation, frame: Any, left: float) -> str:
    """Return a note on the time that the preparation will take; "" if it is short.

    The time is measured on a sample.

    Args:
        preparation: preparation of the columns, not fitted.
        frame: table to prepare.
        left: seconds that are left.
    """
    if len(frame) < LARGE * SAMPLE:
        return ""
    clocks: list[float] = []
    try:
        for n in (2, 2, SAMPLE):  # the first imports what it needs, the second has the fixed time
            part = frame.sample(n, random_state=0)
            clocks.append(time.monotonic())
            measured = clone(preparation).fit(part)
    except Exception:  # the preparation of all rows says what is wrong with the table
        return ""
    fixed, sample = clocks[2] - clocks[1], time.monotonic() - clocks[2]
    seconds = max(sample - fixed, 0.0) * len(frame) / SAMPLE
    if seconds < left / LARGE:
        return ""
    text = ", ".join(f"`{name}`" for name in measured.text_)
    note = f"The columns take about {said_time(seconds)} to be made numbers"
    if 2 * seconds < left:  # the whole table may take twice as long as its sample suggests
        return note + "."
    way = f"`ignore` columns of text ({text}), or give more time" if text else "give more time"
    rest = f"about {said_time(left)} are" if left > 0.0 else "no time is"
    return f"{note}, and {rest} left: {way}."


def _checked_jobs(jobs: Any) -> int:
    """Return the number of threads of each training."""
    if jobs is None:
        return int(cpu_count())
    if (n := whole_number("jobs", jobs)) < 1:
        raise ValueError(f"`jobs` must be at least 1 or None, but got {n}.")
    return min(n, int(cpu_count()))


def _rows(curves: Sequence[LearnerCurve], winner: LearnerCurve, metric: Metric) -> tuple[Row, ...]:
    scored = [c for c in curves if c.observations and c.state != "dropped"]
    scored.sort(key=lambda c: (c.learner != winner.learner, -c.size, -(c.score or 0.0)))
    return tuple(_row(curve, metric) for curve in scored)


def _row(curve: LearnerCurve, metric: Metric) -> Row:
    last = curve.observations[-1]
    params = {name: value for name, value in curve.params.items() if name != "model"}
    kind = str(curve.params.get("model", ""))
    return Row(kind, params, metric.shown(last.score), last.size, last.seconds or 0.0)


@contextmanager
def _working(jobs: int) -> Iterator[None]:
    """Limit threads, and hide warnings and logs: `say` and the summary report what matters."""
    with limited(jobs), quiet("optuna", "optuna_daub"):
        yield
