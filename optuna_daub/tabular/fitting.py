"""From a table to a fitted model within a given time."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from sklearn.dummy import DummyClassifier
from sklearn.dummy import DummyRegressor
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline

from optuna_daub import spaces
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.spaces import Task
from optuna_daub.study import BestLearner
from optuna_daub.study import DAUBPruner
from optuna_daub.study import LearnerCurve
from optuna_daub.study import best_learner
from optuna_daub.study import learning_curves
from optuna_daub.study.agreement import sample_agreement
from optuna_daub.tabular import pair
from optuna_daub.tabular.columns import checked_columns
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.model import Found
from optuna_daub.tabular.model import Row
from optuna_daub.tabular.model import TabularModel
from optuna_daub.tabular.model import said_time
from optuna_daub.tabular.preparation import Preparation
from optuna_daub.tabular.reading import Header
from optuna_daub.tabular.reading import TableError
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.target import Target
from optuna_daub.tabular.target import checked_target


FEW_ROWS = 2_000
"""Number of rows below which scores are means over five folds: a held-out fifth is too small."""
FOLDS = 5
SCORED = 20_000
"""Largest number of held-out rows: the standard error of an accuracy is at most 0.0035 =
sqrt(0.25 / 20,000)."""
SCORED_SHARE = 0.2
LAST_SHARE = 0.1
"""Share of the time that is kept for the last training on all rows."""
ROWS_FOR_THREADS = 10_000
"""Number of rows below which a training has one thread: starting more would take longer."""

Say = Callable[[str], object]

_ANY = dict.fromkeys(("rate", "rows", "columns", "l1", "l2", "leaf_weight"), 1.0) | {
    "leaf_rows": 2
}


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
    """Find the best model for a table in a given time, and fit it on all rows.

    Most models are trained on a part of the rows; promising ones on more, and the best on all.
    skrub prepares text, dates, gaps and categories. This needs
    `pip install 'optuna-daub[tabular]'`.

    The last tenth of the time is kept for fitting the best model once more, on all rows. If that
    would take longer, the result is the model that was scored, fitted without the held-out rows.

    Args:
        table: path of a CSV, Parquet or Excel file, or a frame of pandas, polars or pyarrow.
        target: name of the column to predict.
        seconds: time for reading, preparation, search and the last training together, above 0. At
            least one training is made, even if it takes longer.
        task: "classification" or "regression"; None guesses, and says what and why.
        metric: name of a metric in scikit-learn, FLAML or AutoGluon, such as "rmse", "auc" or
            "log_loss". None: accuracy for classes, r2 for amounts.
        ignore: names of columns to leave out.
        models: kinds of models, names of `optuna_daub.spaces`; None for all.
        jobs: threads of each training, at least 1; None for one per core.
        seed: seed of held-out rows, candidates and models, from 0 to 2**32 - 1. Decisions depend
            on measured seconds too, so two runs may find different models.
        header: whether the first line of a CSV file holds names: "auto", "yes" or "no".
        storage: storage of Optuna for the search, such as "sqlite:///search.db"; None: in memory.
        say: function that is called with each progress message; None for silence.

    Raises:
        TableError: before anything is trained, if nothing can be learnt from the table; one
            sentence says why.
        ValueError: if an argument breaks its rule.
        ImportError: if a package of the extra `tabular` is not installed.

    >>> from sklearn.datasets import load_iris
    >>> table = load_iris(as_frame=True).frame
    >>> model = fit(table, "target", seconds=3, models=["linear"], jobs=1, say=None)
    >>> model.score > 0.9, model.predict(table.head(2))
    (True, array([0, 0]))
    """
    began = time.monotonic()
    say = say or _silent
    if not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
        raise ValueError(f"`seconds` must be above 0 and finite, but got {seconds!r}.")
    if jobs is not None and not (isinstance(jobs, int) and jobs >= 1):
        raise ValueError(f"`jobs` must be at least 1 or None, but got {jobs!r}.")
    given = read_table(table, header=header)
    frame, notes = given.frame, [*given.notes]
    say(f"{len(frame):,} rows, {frame.shape[1]:,} columns.")
    goal = checked_target(frame, target, task)
    measure = checked_metric(metric, goal.task, len(goal.classes))
    if strangers := [name for name in ignore if name not in frame.columns]:
        raise TableError(f"`ignore` must have columns of the table, but got {strangers[0]!r}.")
    frame = frame.loc[goal.kept, [n for n in frame.columns if n not in (goal.name, *ignore)]]
    frame = frame.reset_index(drop=True)
    columns = checked_columns(frame, goal)
    notes += [*goal.notes, *columns.notes]
    for note in notes:
        say(note)
    if not columns.used:
        raise TableError(
            f"A table must have a column to learn `{goal.name}` from, but none is left."
        )
    with _quiet():
        preparation = Preparation(columns.used)
        X = preparation.fit_transform(frame)
    if preparation.n_infinite_:
        n = preparation.n_infinite_
        notes.append(f"{n:,} infinite value{'s' * (n > 1)} taken for missing.")
        say(notes[-1])
    if X.shape[1] == 0:
        raise TableError(
            f"A table must have a column to learn `{goal.name}` from, but none can be made a "
            "number."
        )
    cores = jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs
    search = _Search(
        X=X,
        target=goal,
        metric=measure,
        models=models,
        jobs=cores or os.cpu_count() or 1,
        seed=seed,
        categories=preparation.categories_,
    )
    left = seconds - (time.monotonic() - began)
    if left <= 0:
        say(f"Reading the table took all of the {said_time(seconds)}: one model is trained.")
    with _quiet():
        study, objective = search.run((1 - LAST_SHARE) * max(left, 0.0), storage, say)
        best = best_learner(study)
        curves = learning_curves(study)
        failures = _failures(curves)
        if best is None:
            reasons = "; ".join(failures) or "there was no time"
            raise RuntimeError(f"No model could be trained: {reasons}.")
        everything = sample_agreement(study).everything.seconds
        left = seconds - (time.monotonic() - began)
        winner = search.winner(curves, best, left)
        model, n_fitted = search.last(study, objective, winner, left)
    found = Found(
        n_rows=len(X),
        n_train=objective.n_train,
        n_validation=objective.n_validation,
        folds=search.folds,
        best=_row(winner, measure),
        guess=measure.shown(search.guess()),
        error=search.error(winner.score or 0.0, objective.n_validation),
        n_fitted=n_fitted,
        models=_rows(curves, winner, measure),
        failures=failures,
        seconds=time.monotonic() - began,
        everything=everything,
    )
    return TabularModel(
        pipeline=Pipeline([("prepare", preparation), ("model", model)]),
        task=goal.task,
        target=goal.name,
        metric=measure,
        classes=goal.classes,
        columns=columns.used,
        score=found.best.score,
        notes=tuple(notes),
        found=found,
        study=study,
    )


@dataclass(frozen=True)
class _Search:
    """The data and settings of one search."""

    X: NDArray[np.float32]
    target: Target
    metric: Metric
    models: Sequence[str] | None
    jobs: int
    seed: int
    categories: tuple[int, ...]

    @property
    def y(self) -> NDArray[Any]:
        return self.target.values

    @property
    def folds(self) -> int:
        """Number of folds of cross-validation; 1 for one held-out set."""
        if len(self.y) >= FEW_ROWS:
            return 1
        if self.target.task == "regression":
            return FOLDS
        # Scores can only be compared if each fold holds each class.
        return min(FOLDS, int(np.bincount(self.y).min()))

    def build(self, trial: BaseTrial, size: int) -> Any:
        """Return the unfitted model of a trial for a training size."""
        return spaces.tabular(
            trial,
            len(self.y),
            task=self.target.task,
            among=self.models,
            jobs=self.jobs if size >= ROWS_FOR_THREADS else 1,
            seed=self.seed,
            categories=self.categories,
        )

    def run(
        self, seconds: float, storage: Any, say: Say
    ) -> tuple[optuna.Study, TrainingSizeObjective]:
        """Search for the given seconds; make at least one training."""
        n = len(self.y)
        _warm_up(self.models)
        objective = TrainingSizeObjective(
            self.build,
            self.X,
            self.y,
            scoring=self.metric.scoring,
            stratify=self.target.task == "classification",
            cv=self.folds if self.folds > 1 else None,
            test_size=min(SCORED_SHARE, SCORED / n),
            seed=self.seed,
        )
        study = optuna.create_study(
            direction="maximize",
            storage=storage,
            sampler=pair.sampler(self.seed, max(seconds, 1.0)),
            pruner=_pruner(objective),
        )
        points = spaces.first_points("tabular", n, task=self.target.task, among=self.models)
        cheap = len({point["model"] for point in points})
        for point in points[:cheap]:
            study.enqueue_trial(point)
        progress = _Progress(self.metric, say, points[cheap:])
        try:
            if seconds > 0:
                study.optimize(
                    objective, timeout=seconds, catch=(Exception,), callbacks=[progress]
                )
            if best_learner(study) is None:  # the time ended before the first training did
                study.optimize(
                    objective,
                    n_trials=len(spaces.SPACES),
                    catch=(Exception,),
                    callbacks=[_first_is_enough],
                )
        except KeyboardInterrupt:
            say("Interrupted: the best model so far is taken.")
            if best_learner(study) is None:
                raise
        return study, objective

    def winner(
        self, curves: Sequence[LearnerCurve], best: BestLearner, left: float
    ) -> LearnerCurve:
        """Return the learner for the last training.

        It is the best one on all the data, unless another one has a better score on fewer rows
        already and there is time to fit it.
        """
        ahead = [c for c in curves if c.observations and c.state != "dropped"]
        ahead = [c for c in ahead if (c.score or 0.0) > best.score and self.takes(c) <= left]
        leader = next(c for c in curves if c.learner == best.learner)
        return max(ahead, key=lambda c: c.score or 0.0, default=leader)

    def takes(self, curve: LearnerCurve) -> float:
        """Return the expected seconds of fitting a learner on all rows, in proportion to rows."""
        last = curve.observations[-1]
        return (last.seconds or 0.0) / self.folds * len(self.y) / last.size

    def last(
        self,
        study: optuna.Study,
        objective: TrainingSizeObjective,
        winner: LearnerCurve,
        left: float,
    ) -> tuple[Any, int]:
        """Return the fitted winner, and the number of rows that it was fitted on.

        Without time to fit it on all rows, it is the model that was scored.
        """
        n = len(self.y)
        if self.takes(winner) > left and (at_hand := objective.model(study)) is not None:
            return at_hand, objective.n_train
        return self.build(FixedTrial(dict(winner.params)), n).fit(self.X, self.y), n

    def guess(self) -> float:
        """Return the score of the best constant guess."""
        dummy = DummyRegressor() if self.target.task == "regression" else DummyClassifier()
        nothing = np.zeros((len(self.y), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some metrics are undefined for a constant
            fitted = dummy.fit(nothing, self.y)
            return float(get_scorer(self.metric.scoring)(fitted, nothing, self.y))

    def error(self, score: float, n: int) -> float | None:
        """Return the standard error of an accuracy; None for other metrics."""
        if self.metric.scoring != "accuracy":
            return None
        return math.sqrt(max(score * (1 - score), 0.0) / n)


def _warm_up(models: Sequence[str] | None) -> None:
    """Import the packages of models, so their time does not count as training time."""
    for name in ("lightgbm", "xgboost"):
        if models is None or name in models:
            trial = FixedTrial({"trees": 4, "leaves": 4, **_ANY})
            model = getattr(spaces, name)(trial, 16, task="regression")
            model.fit(np.arange(16.0)[:, None], np.arange(16.0))


def _pruner(objective: TrainingSizeObjective) -> DAUBPruner:
    n, smallest = objective.n_train, objective.smallest_size
    if smallest + 2 > n:
        raise TableError(
            f"A table must have more rows of its rarest class: {n:,} rows to learn from hold each "
            f"class from {smallest:,} on only."
        )
    return pair.pruner(n, smallest)


class _Progress:
    """A callback that reports each better score on all the data.

    It also enqueues the remaining starting points, one after every two runs. Optuna runs enqueued
    trials first, so enqueueing all at once would leave the rule no choice.
    """

    def __init__(self, metric: Metric, say: Say, points: Sequence[spaces.Point]) -> None:
        self._metric, self._say, self._points = metric, say, iter(points)
        self._best, self._began = -math.inf, time.monotonic()

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        if trial.number % 2 and (point := next(self._points, None)) is not None:
            study.enqueue_trial(point)
        if trial.state != optuna.trial.TrialState.COMPLETE or trial.value is None:
            return
        if trial.value > self._best:
            self._best = trial.value
            seconds = time.monotonic() - self._began
            score = self._metric.said(self._metric.shown(trial.value))
            kind = trial.params.get("model", "")
            self._say(f"{seconds:>6.0f} s   {self._metric.name} {score}   {kind}")


def _first_is_enough(study: optuna.Study, trial: FrozenTrial) -> None:
    if trial.intermediate_values:
        study.stop()


def _rows(curves: Sequence[LearnerCurve], winner: LearnerCurve, metric: Metric) -> tuple[Row, ...]:
    scored = [c for c in curves if c.observations and c.state != "dropped"]
    scored.sort(key=lambda c: (c.learner != winner.learner, -c.size, -(c.score or 0.0)))
    return tuple(_row(curve, metric) for curve in scored)


def _row(curve: LearnerCurve, metric: Metric) -> Row:
    last = curve.observations[-1]
    params = {name: value for name, value in curve.params.items() if name != "model"}
    kind = str(curve.params.get("model", ""))
    return Row(kind, params, metric.shown(last.score), last.size, last.seconds or 0.0)


def _failures(curves: Sequence[LearnerCurve]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(curve.reason for curve in curves if curve.state == "dropped"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings of the libraries and Optuna's log: `say` reports what matters."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


def _silent(sentence: str) -> None:
    del sentence
