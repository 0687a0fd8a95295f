"""The search for a prepared table's best model, and its last training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from optuna.trial import Trial
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.dummy import DummyRegressor
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler

from optuna_daub import spaces
from optuna_daub.core.checks import brief
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.subsets import nested_order
from optuna_daub.study import BestLearner
from optuna_daub.study import DataAllocationSampler
from optuna_daub.study import LearnerCurve
from optuna_daub.study import best_learner
from optuna_daub.study import host
from optuna_daub.study.messages import message_of
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.tabular import pair
from optuna_daub.tabular.held_out import folds_of
from optuna_daub.tabular.held_out import n_folds
from optuna_daub.tabular.held_out import scored_share
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.target import Target


ROWS_FOR_THREADS = 10_000
"""Number of rows below which a training has one thread: starting more would take longer."""

Say = Callable[[str], object]

_WARM_UP = dict.fromkeys(("rate", "rows", "columns", "l1", "l2", "leaf_weight"), 1.0) | {
    "leaf_rows": 2
}
"""Parameters of boosters that are fitted once, so their packages are loaded."""


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
        return n_folds(self.target)

    def build(self, trial: BaseTrial, size: int) -> Any:
        """Return the unfitted model of a trial for a training size."""
        model = spaces.tabular(
            trial,
            len(self.y),
            task=self.target.task,
            among=self.models,
            jobs=self.jobs if size >= ROWS_FOR_THREADS else 1,
            seed=self.seed,
            categories=self.categories,
        )
        if self.target.task == "classification":
            return model
        # Boosters keep amounts in 32 bits, and do not split for gains below 1e-15. So they would
        # learn nothing of times near 1.7e9 seconds, nor of lengths near 1e-9 metres.
        scaler = _TargetScaler().set_output(transform="default")  # whatever the user's setting
        scaled = TransformedTargetRegressor(model, transformer=scaler)
        lowest = self.metric.lowest(self.y)
        if lowest is None:
            return scaled
        cut = FunctionTransformer(inverse_func=partial(np.maximum, lowest))
        cut.set_output(transform="default")
        return TransformedTargetRegressor(scaled, transformer=cut, check_inverse=False)

    def objective(self, build: Callable[..., Any], X: NDArray[Any]) -> TrainingSizeObjective:
        """Return an objective that scores models on the rows of this search."""
        return TrainingSizeObjective(
            build,
            X,
            self.y,
            scoring=self.metric.scoring,
            stratify=self.target.task == "classification",
            cv=folds_of(self.target, self.seed),
            test_size=scored_share(len(self.y)),
            seed=self.seed,
        )

    def run(self, seconds: float, storage: Any, say: Say) -> Searched:
        """Search for the given seconds; make at least one training.

        Raises:
            RuntimeError: if all models fail by one error.
        """
        n = len(self.y)
        _warm_up(self.models)
        kept = _Kept(self.build)
        objective = self.objective(kept.build if self.folds == 1 else self.build, self.X)
        study = optuna.create_study(
            direction="maximize",
            storage=storage,
            sampler=DataAllocationSampler(seed=self.seed, seconds=max(seconds, 1.0)),
            pruner=pair.pruner(objective.n_train, objective.smallest_size),
        )
        points = spaces.first_points("tabular", n, task=self.target.task, among=self.models)
        cheap = len({point["model"] for point in points})
        for point in points[:cheap]:
            study.enqueue_trial(point)
        later, progress = pair.StartingPoints(points[cheap:]), _Progress(self.metric, say)
        errors: list[str] = []

        def train(trial: Trial) -> float:
            try:
                return objective(trial)
            except (SetupError, optuna.TrialPruned):
                raise
            except Exception as error:
                errors.append(message_of(error).rstrip("."))
                raise

        try:
            if seconds > 0:
                host.optimize(
                    study,
                    train,
                    timeout=seconds,
                    catch=(Exception,),
                    callbacks=[kept, later, progress],
                )
            if best_learner(study) is None:  # the time ended before the first training did
                host.optimize(
                    study,
                    train,
                    n_trials=len(spaces.SPACES),
                    catch=(Exception,),
                    callbacks=[kept, _first_is_enough],
                )
        except SetupError as error:  # all models fail, or there is another reason
            if not errors:
                raise
            raise RuntimeError(
                f"No model could be trained: {'; '.join(dict.fromkeys(errors))}. Take other kinds "
                f"of `models`, or a `metric` other than {brief(self.metric.name)}."
            ) from error
        except KeyboardInterrupt:
            say("Interrupted: the best model so far is taken.")
            if best_learner(study) is None:
                raise
            return Searched(study, objective, kept.model, is_interrupted=True)
        return Searched(study, objective, kept.model)

    def winner(
        self, curves: Sequence[LearnerCurve], best: BestLearner, leading: Leading | None
    ) -> LearnerCurve:
        """Return the learner for the last training: the one with the best score.

        All are scored on the same rows. If scores are equal, it is the best one on all the data,
        or else the one whose model was kept.
        """

        def rank(curve: LearnerCurve) -> tuple[float, bool]:
            score = -math.inf if curve.score is None else curve.score
            return score, leading is not None and leading.params == curve.params

        ahead = [c for c in curves if c.observations and c.state != "dropped"]
        ahead = [c for c in ahead if rank(c)[0] > best.score]
        leader = next(c for c in curves if c.learner == best.learner)
        return max(ahead, key=rank, default=leader)

    def last(self, searched: Searched, winner: LearnerCurve, left: float) -> tuple[Any, int]:
        """Return the fitted winner, and the number of rows that it was fitted on.

        Without time to fit it on all rows, it is fitted on as many as there is time for. If these
        are no more than it was scored on, or the fit is interrupted, take the model that was
        scored.
        """
        X, y = self.X, self.y
        n = self._n_affordable(winner, 0.0 if searched.is_interrupted else left)
        if n < len(y):
            is_full = winner.size == searched.objective.n_train
            if n <= winner.size or is_full:
                at_hand = searched.model_of(winner.params, winner.size)
                if at_hand is not None:
                    return at_hand, winner.size
            codes = y if self.target.task == "classification" else None
            rows = nested_order(len(y), self.seed, codes)[: max(winner.size, n)]
            X, y = X[np.sort(rows)], y[np.sort(rows)]
        try:
            return self.build(FixedTrial(dict(winner.params)), len(y)).fit(X, y), len(y)
        except KeyboardInterrupt:
            at_hand = searched.model_of(winner.params, winner.size)
            if at_hand is None:
                raise
            return at_hand, winner.size

    def _n_affordable(self, curve: LearnerCurve, left: float) -> int:
        """Return the number of rows that a learner can be fitted on in the time left.

        Times are in proportion to rows.
        """
        last = curve.observations[-1]
        takes = (last.seconds or 0.0) / self.folds * len(self.y) / last.size
        left = max(left, 0.0)
        return len(self.y) if takes <= left else int(len(self.y) * left / takes)

    def guess(self) -> float:
        """Return the score of the best constant guess, on the rows that models are scored on.

        Guesses of classes are their shares, the most frequent one, and each one if there are two:
        a metric may count one of them only. Those of amounts are the mean and each tenth quantile.
        """
        tried: list[Any] = [DummyClassifier(strategy=name) for name in ("prior", "most_frequent")]
        if len(self.target.classes) == 2:
            tried += [DummyClassifier(strategy="constant", constant=code) for code in (0, 1)]
        if self.target.task == "regression":
            quantiles = [DummyRegressor(strategy="quantile", quantile=q / 10) for q in range(11)]
            tried = [DummyRegressor(), *quantiles]
        nothing = np.zeros((len(self.y), 1))
        objective = self.objective(lambda trial: tried[trial.number], nothing)
        scores = []
        for number in range(len(tried)):
            with suppress(ValueError):  # some metrics cannot score some guesses, as 0
                scores.append(objective(FixedTrial({}, number=number)))
        return max((score for score in scores if not math.isnan(score)), default=math.nan)

    def error(self, score: float, n: int) -> float | None:
        """Return the standard error of an accuracy; None for other metrics."""
        if self.metric.scoring != "accuracy":
            return None
        return math.sqrt(max(score * (1 - score), 0.0) / n)


@dataclass(frozen=True)
class Searched:
    """The result of a search."""

    study: optuna.Study
    objective: TrainingSizeObjective
    leading: Leading | None
    """The model with the best score, if it was kept."""
    is_interrupted: bool = False
    """True after Ctrl-C: nobody waits for another training."""

    def model_of(self, params: Mapping[str, Any], size: int) -> Any:
        """Return the model that was trained on `size` rows and scored, None if it is gone."""
        if (kept := self.leading) and (kept.params, kept.size) == (params, size):
            return kept.model
        best = best_learner(self.study)
        is_best = best is not None and best.params == params and size == self.objective.n_train
        return self.objective.model(self.study) if is_best else None


@dataclass(frozen=True)
class Leading:
    """The model with the best score so far."""

    params: Mapping[str, Any]
    size: int
    """Number of rows that it was fitted on."""
    score: float
    model: Any


class _Kept:
    """A build function and a callback that keep the leader's last model."""

    def __init__(self, build: Callable[[BaseTrial, int], Any]) -> None:
        self._build = build
        self._last: tuple[int, Any] | None = None
        self.model: Leading | None = None

    def build(self, trial: BaseTrial, size: int) -> Any:
        """Return the unfitted model of a trial, whose copy is noted."""
        return _Noted(self._build(trial, size), partial(self._note, size))

    def _note(self, size: int, model: Any) -> None:
        self._last = size, model

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Keep the last model of a run if it is the best, or its learner led before."""
        del study
        last, self._last = self._last, None
        score = math.nan if last is None else trial.intermediate_values.get(last[0], math.nan)
        if last is None or math.isnan(score):
            return
        best = self.model
        if best is None or score >= best.score or trial.params == best.params:
            self.model = Leading(dict(trial.params), last[0], score, last[1])


class _Noted:
    """An estimator that passes its copy, the one to be fitted, to a function."""

    def __init__(self, model: Any, note: Callable[[Any], None]) -> None:
        self._model, self._tell = model, note

    def __sklearn_clone__(self) -> Any:
        copy = clone(self._model)
        self._tell(copy)
        return copy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class _TargetScaler(StandardScaler):  # type: ignore[misc]
    """Scaler that returns predicted amounts in 64 bits. XGBoost predicts in 32."""

    def inverse_transform(self, X: NDArray[Any], copy: bool | None = None) -> Any:
        return super().inverse_transform(np.asarray(X, np.float64), copy)


def _warm_up(models: Sequence[str] | None) -> None:
    """Import the packages of models, so their time does not count as training time."""
    for name in ("lightgbm", "xgboost"):
        if models is None or name in models:
            trial = FixedTrial({"trees": 4, "leaves": 4, **_WARM_UP})
            model = getattr(spaces, name)(trial, 16, task="regression")
            model.fit(np.arange(16.0)[:, None], np.arange(16.0))


class _Progress:
    """A callback that reports each better score on all the data."""

    def __init__(self, metric: Metric, say: Say) -> None:
        self._metric, self._say = metric, say
        self._best, self._began = -math.inf, time.monotonic()

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        del study
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
