"""Objectives on small tables, and studies that they have run through."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import ClassVar

import numpy as np
import optuna
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub.core import Observation
from optuna_daub.objective import TrainingSizeObjective


SIZES = (30, 60, 100)
X, Y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
X_REG, Y_REG = make_regression(200, 4, noise=30, random_state=0)


REGRESSION = {
    "explained_variance",
    "neg_max_error",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_squared_log_error",
    "neg_root_mean_squared_log_error",
    "neg_median_absolute_error",
    "r2",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
    "neg_mean_absolute_percentage_error",
    "d2_absolute_error_score",
}
"""The part "Regression" of the table of scorers in scikit-learn's user guide."""


def build(trial: optuna.Trial) -> Any:
    return GaussianNB(var_smoothing=trial.suggest_float("var_smoothing", 1e-9, 1e-1, log=True))


def build_linear(trial: optuna.Trial) -> Any:
    return LinearRegression(fit_intercept=trial.suggest_categorical("fit_intercept", [True]))


def objective_of(
    X: Any = X, Y: Any = Y, *, build: Callable[..., Any] = build, **kwargs: Any
) -> TrainingSizeObjective:
    """Return an objective on the small table, with other arguments if some are given."""
    return TrainingSizeObjective(build, X, Y, **kwargs)


class Witness(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that notes the first feature, a row number, of what it is given."""

    def __init__(self, fault: type[BaseException] | None = None) -> None:
        self.fault = fault

    fits: ClassVar[list[NDArray[Any]]] = []
    predictions: ClassVar[list[NDArray[Any]]] = []

    def fit(self, X: Any, y: Any) -> Witness:
        if self.fault is not None:
            raise self.fault("no luck")
        assert not hasattr(self, "classes_"), "fitted before"
        self.fits.append(np.asarray(X)[:, 0].astype(int))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        self.predictions.append(np.asarray(X)[:, 0].astype(int))
        return np.full(len(X), self.classes_[0])


THE_WITNESS = Witness()


def witness(trial: optuna.Trial) -> Witness:
    trial.suggest_float("unused", 0, 1)
    return THE_WITNESS  # one for all, which the objective must copy before it is fitted


def numbered(n_rows: int, n_classes: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features whose first column is the row number, and labels in turn."""
    return np.column_stack([np.arange(n_rows), np.ones(n_rows)]), np.arange(n_rows) % n_classes


def halves(X: Any, y: Any) -> dict[str, Any]:
    """Return 150 rows to train on, and the others to score on."""
    return {"X": X[:150], "y": y[:150], "X_valid": X[150:], "y_valid": y[150:]}


def sampler_of(n_learners: int | None = None, seed: int = 0) -> DataAllocationSampler:
    """Return a sampler of so many learners at random points."""
    return DataAllocationSampler(optuna.samplers.RandomSampler(seed=seed), n_learners=n_learners)


def created(
    sizes: Sequence[int] = SIZES, *, n_learners: int | None = 1, **kwargs: Any
) -> optuna.Study:
    """Return a study that nothing has run through; `kwargs` go to `create_study`."""
    pruner = DAUBPruner.paper(sizes=sizes)
    usual = {"direction": "maximize", "sampler": sampler_of(n_learners), "pruner": pruner}
    return optuna.create_study(**{**usual, **kwargs})


def study_of(
    objective: Any, sizes: Sequence[int] = SIZES, *, n_learners: int = 1, **kwargs: Any
) -> optuna.Study:
    """Return a study that the objective has run through; with one learner, at every size."""
    given = {name: kwargs.pop(name) for name in ("direction", "pruner") if name in kwargs}
    study = created(sizes, n_learners=n_learners, **given)
    study.optimize(objective, **kwargs)
    return study


def observations(study: optuna.Study) -> list[Observation]:
    """Return what the study's one learner reported."""
    return [probe.observation for probe in allocations(study)]
