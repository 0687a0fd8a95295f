"""The search for a prepared table's best model, and its last training."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from collections.abc import Sequence
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

from optuna_daub import spaces
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.subsets import nested_order
from optuna_daub.study import BestLearner
from optuna_daub.study import DAUBPruner
from optuna_daub.study import LearnerCurve
from optuna_daub.study import best_learner
from optuna_daub.tabular import pair
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import Target


FEW_ROWS = 2_000
"""Number of rows below which scores are means over five folds: a held-out fifth is too small."""
FOLDS = 5
"""Number of folds on such tables; scikit-learn's default."""
MAX_SCORED = 20_000
"""Largest number of held-out rows: the standard error of an accuracy is at most 0.0035 =
sqrt(0.25 / 20,000)."""
SCORED_SHARE = 0.2
"""Share of the rows that is held out on larger tables. It is at most `MAX_SCORED` rows."""
ROWS_FOR_THREADS = 10_000
"""Number of rows below which a training has one thread: starting more would take longer."""

Say = Callable[[str], object]

_ANY = dict.fromkeys(("rate", "rows", "columns", "l1", "l2", "leaf_weight"), 1.0) | {
    "leaf_rows": 2
}


@dataclass(frozen=True)
class Search:
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
            test_size=min(SCORED_SHARE, MAX_SCORED / n),
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
        """Return the expected seconds of fitting a learner on all rows. They are in proportion to
        rows."""
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

        Without time to fit it on all rows, it is the model that was scored on all the data. If
        there is none, as many rows are taken as there is time for, and no fewer than it was
        scored on.
        """
        X, y = self.X, self.y
        is_late = self.takes(winner) > left
        if is_late and (at_hand := objective.model(study)) is not None:
            return at_hand, objective.n_train
        if is_late and winner.size < objective.n_train:
            n = max(winner.size, int(len(y) * left / self.takes(winner)))
            codes = y if self.target.task == "classification" else None
            rows = np.sort(nested_order(len(y), self.seed, codes)[:n])
            X, y = X[rows], y[rows]
        return self.build(FixedTrial(dict(winner.params)), len(y)).fit(X, y), len(y)

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
