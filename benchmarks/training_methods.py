"""Methods that choose a learner by real training: this package and its peers.

*Ours* goes through the ready-made objective, which scores the training rows as well where the
pruner uses them. *Training everything* is the yardstick of loss and cost.

Each peer gets the same learners, training rows and validation rows, and starts with 500 rows or
near it if it lets that be chosen; each ends with one learner trained on all N rows, and nothing
is trained again after that. If that is not its own way, the choice is trained on all rows at
the end, at the method's cost.

*Optuna*: every learner is one trial, in random order. Trials train only on the sizes at which the
pruner looks, the smallest size times powers of its factor, and on N. Factors are Optuna's
defaults, 4 for halving and 3 for Hyperband. Both are run once more from N / 48 on, which is larger
than 500 where N is.

*scikit-learn*: `HalvingRandomSearchCV` that draws every learner once, with factor 3, a first size
such that the last round takes all rows ("exhaust", except what rounding leaves; so nothing is
trained again), the resource `n_samples` and one predefined split, on training and validation rows
joined. It takes unstratified samples of both parts in the same proportion: early rounds are scored
on few validation rows, which is its way. Training scores, its default, are switched off.

*lccv*: one learner after another, in random order, each against the best so far, with its
defaults except the smallest size of 512 rows, where the others start as well. Its evaluator draws
a new sample of the training rows each time, as its own does, with every class; all scores are on
the validation rows. At N all samples are the same: the second and third look there cost nothing.

*FLAML*: its own choice of hyperparameters for its default estimators but CatBoost, which is not
in the pool, for as many CPU seconds as ours took: its clock is made to show those, since on a
shared machine others would use up its time. If its best model was trained on a sample, it is
trained on all rows, and the better of the two is its answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
import optuna
from optuna.pruners import BasePruner
from optuna.pruners import HyperbandPruner
from optuna.pruners import SuccessiveHalvingPruner
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import Pipeline

from benchmarks.meter import Meter
from benchmarks.meter import cpu_seconds
from benchmarks.training_data import Data
from benchmarks.training_data import Part
from benchmarks.training_data import learner
from benchmarks.training_data import score
from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective


MIN_RESOURCE = 500
"""The smallest training size, except data sets with few rows."""


@dataclass(frozen=True)
class Task:
    """The argument of every method."""

    data: Data
    learners: tuple[str, ...]
    seed: int
    meter: Meter
    seconds: float | None = None
    """CPU seconds that ours took; only for methods that are given a time."""

    @property
    def smallest(self) -> int:
        """The smallest training size."""
        return min(MIN_RESOURCE, self.data.n_train // 8)


@dataclass(frozen=True)
class Answer:
    """The choice of a method."""

    learner: str
    """Name of a learner of the pool; for FLAML one of its own."""
    scores: Mapping[str, tuple[float, float]]
    """Validation and test score at N: of every learner from full training, of FLAML's own."""


Choice: TypeAlias = Callable[[Task], Answer]
"""A method at work."""


@dataclass(frozen=True)
class Method:
    """One line of the tables."""

    choose: Choice
    package: str | None = None
    """Package that must be installed; imported before the clock starts."""
    has_seconds: bool = False
    """True if the method is told how many seconds to take."""

    @property
    def missing(self) -> str | None:
        """Part that the method needs and that is not installed; None if there is none."""
        if self.package is not None and find_spec(self.package) is None:
            return f"pip install {self.package}"
        return None


def full_training(task: Task) -> Answer:
    """Train every learner on all rows and choose by validation score."""
    scores = {}
    for name in task.learners:
        try:
            model = learner(name).fit(*task.data.training)
        except Exception as error:
            print(f"{name} failed: {error}")
            continue
        valid = score(model, task.data.validation)
        with task.meter.paused():
            scores[name] = (valid, score(model, task.data.test))
    return Answer(max(scores, key=lambda name: scores[name][0]), scores)


def ours(pruner_for: Callable[[Task], BasePruner], task: Task, n_jobs: int = 1) -> Answer:
    """Run a study with the plugin, through the ready-made objective."""
    objective = TrainingSizeObjective(
        lambda trial: learner(trial.suggest_categorical("learner", task.learners)),
        *task.data.training,
        X_valid=task.data.validation[0],
        y_valid=task.data.validation[1],
        seed=task.seed,
    )
    each = optuna.samplers.GridSampler({"learner": task.learners}, seed=task.seed)
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(each, n_learners=len(task.learners)),
        pruner=pruner_for(task),
    )
    study.optimize(objective, n_jobs=n_jobs, catch=Exception)
    return Answer(study.best_params["learner"], {})


# --- Peers ---

LATER_FIRST = 1 / 48
"""First size of Optuna's pruners in the variants that start later, as a share of N."""
LCCV_FIRST_EXPONENT = 9
"""Exponent of lccv's first size, a power of 2: 512 rows."""
LCCV_IGNORED = {
    "fittime": 0.0,
    "scoretime_train_accuracy": 0.0,
    "score_train_accuracy": math.nan,
    "scoretime_test_accuracy": 0.0,
}
"""Values that lccv asks its evaluator for besides the score, and decides nothing by."""
FLAML_ESTIMATORS = ("lgbm", "xgboost", "xgb_limitdepth", "rf", "extra_tree", "sgd", "lrl1")


def pruned(
    pruner_for: Callable[[int, int], BasePruner], factor: int, share: float, task: Task
) -> Answer:
    """Run a study of one trial per learner under one of Optuna's pruners.

    Args:
        pruner_for: makes the pruner, of the first size and N.
        factor: of the pruner; its sizes are the first one times powers of it, and N.
        share: of N; the first size, where it is above the smallest one.
        task: what is to be done.
    """
    n_train = task.data.n_train
    first = max(task.smallest, round(share * n_train))
    n_sizes = math.ceil(math.log(n_train / first, factor))
    sizes = [*(first * factor**power for power in range(n_sizes)), n_train]

    def objective(trial: optuna.Trial) -> float:
        name = trial.suggest_categorical("learner", task.learners)
        for size in sizes:
            model = learner(name).fit(*task.data.first(size))
            accuracy = score(model, task.data.validation)
            trial.report(accuracy, size)
            if size < n_train and trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"learner": task.learners}, seed=task.seed),
        pruner=pruner_for(first, n_train),
        study_name=f"training-{task.seed}",  # Hyperband assigns trials to brackets by the name
    )
    study.optimize(objective, n_trials=len(task.learners), catch=Exception)
    return Answer(study.best_params["learner"], {})


def scikit_learn_halving(task: Task) -> Answer:
    """Run HalvingRandomSearchCV over all the learners, in random order."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401  it makes the next import
    from sklearn.model_selection import HalvingRandomSearchCV

    X, y = map(np.concatenate, zip(task.data.training, task.data.validation, strict=True))
    is_held_out = np.arange(len(y)) >= task.data.n_train
    candidates = {name: learner(name) for name in task.learners}
    search = HalvingRandomSearchCV(
        Pipeline([("learner", DummyClassifier())]),
        {"learner": list(candidates.values())},
        n_candidates=len(candidates),
        min_resources="exhaust",
        cv=PredefinedSplit(np.where(is_held_out, 0, -1)),
        scoring="accuracy",
        refit=False,
        return_train_score=False,
        random_state=task.seed,
    ).fit(X, y)
    chosen = search.best_params_["learner"]
    return Answer(next(name for name, one in candidates.items() if one is chosen), {})


def learning_curve_cv(task: Task) -> Answer:
    """Let lccv judge one learner after another against the best so far."""
    from lccv import lccv

    rng = np.random.default_rng(task.seed)
    best_name, best = "", 0.0
    for name in rng.permutation(task.learners).tolist():
        try:
            reached, _, estimates, _ = lccv(
                learner(name),
                X=None,
                y=None,
                r=best,
                min_exp=LCCV_FIRST_EXPONENT,
                target_anchor=task.data.n_train,
                evaluator=_lccv_evaluator(task.data, rng),
                base_scoring="accuracy",
            )
        except Exception as error:
            print(f"lccv, {name}: {type(error).__name__}: {error}")
            continue
        if task.data.n_train in estimates and reached > best:
            best_name, best = name, reached
    return Answer(best_name, {})


def flaml(task: Task) -> Answer:
    """Let FLAML choose its own hyperparameters for some seconds, on the same rows."""
    from flaml import AutoML

    automl = AutoML()
    X_valid, y_valid = task.data.validation
    with patch("time.time", cpu_seconds):
        automl.fit(
            *task.data.training,
            X_val=X_valid,
            y_val=y_valid,
            task="classification",
            metric="accuracy",
            estimator_list=list(FLAML_ESTIMATORS),
            time_budget=task.seconds,
            n_jobs=1,
            seed=task.seed,
            verbose=0,
        )
    answers = [automl]
    if (automl.best_config or {}).get("FLAML_sample_size", task.data.n_train) < task.data.n_train:
        answers.append(clone(automl.model.estimator).fit(*task.data.training))
    chosen = max(answers, key=lambda model: score(model, task.data.validation))
    with task.meter.paused():
        scores = score(chosen, task.data.validation), score(chosen, task.data.test)
    name = f"its own {automl.best_estimator}"
    return Answer(name, {name: scores})


def _lccv_evaluator(data: Data, rng: np.random.Generator) -> Callable[..., Mapping[str, float]]:
    """Return how lccv is to train and score one learner on so many rows."""
    n_classes = len(np.unique(data.training[1]))
    at_full_size: dict[int, Mapping[str, float]] = {}

    def sample(anchor: int) -> Part:
        if anchor == data.n_train:
            return data.training
        drawn = rng.choice(np.arange(n_classes, data.n_train), anchor - n_classes, replace=False)
        rows = np.concatenate([np.arange(n_classes), drawn])  # the first are one of each class
        return data.training[0][rows], data.training[1][rows]

    def evaluate(learner_inst: Any, anchor: int, **_: Any) -> Mapping[str, float]:
        if anchor not in at_full_size:
            model = clone(learner_inst).fit(*sample(anchor))
            accuracy = score(model, data.validation)
            result = {**LCCV_IGNORED, "score_test_accuracy": accuracy}
            if anchor < data.n_train:
                return result
            at_full_size[anchor] = result
        return at_full_size[anchor]

    return evaluate


# --- All of them ---

EVERYTHING = "training everything"
OURS = "value per second (the default)"


def _default(task: Task) -> BasePruner:
    return DAUBPruner(min_resource=task.smallest, max_resource=task.data.n_train)


def _paper(task: Task) -> BasePruner:
    return DAUBPruner.paper(min_resource=task.smallest, max_resource=task.data.n_train)


def _abc(task: Task) -> BasePruner:
    n_valid = len(task.data.validation[1])
    least = 2 * task.smallest  # 1,000, the pruner's default
    return ABCPruner(min_resource=least, max_resource=task.data.n_train, n_validation=n_valid)


def _halving(first: int, n_train: int) -> BasePruner:
    return SuccessiveHalvingPruner(min_resource=first, reduction_factor=4)


def _hyperband(first: int, n_train: int) -> BasePruner:
    return HyperbandPruner(min_resource=first, max_resource=n_train, reduction_factor=3)


METHODS: Mapping[str, Method] = {
    EVERYTHING: Method(full_training),
    OURS: Method(partial(ours, _default)),
    f"{OURS}, n_jobs=2": Method(partial(ours, _default, n_jobs=2)),
    "DAUB, as in the paper": Method(partial(ours, _paper)),
    "ABC": Method(partial(ours, _abc)),
    "scikit-learn HalvingRandomSearchCV": Method(scikit_learn_halving),
    "Optuna SuccessiveHalvingPruner": Method(partial(pruned, _halving, 4, 0.0)),
    "Optuna SuccessiveHalvingPruner, from N / 48": Method(
        partial(pruned, _halving, 4, LATER_FIRST)
    ),
    "Optuna HyperbandPruner": Method(partial(pruned, _hyperband, 3, 0.0)),
    "Optuna HyperbandPruner, from N / 48": Method(partial(pruned, _hyperband, 3, LATER_FIRST)),
    "lccv": Method(learning_curve_cv, "lccv"),
    "FLAML, the same seconds": Method(flaml, "flaml", has_seconds=True),
}
"""In the order in which they are run."""
