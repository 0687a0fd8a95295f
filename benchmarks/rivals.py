"""Rivals that choose a learner by real training: Optuna, scikit-learn, lccv, FLAML.

Each gets the same learners, training rows and validation rows, and begins with 500 rows or near
it where it lets that be chosen; each ends with one learner trained on all N rows, and nothing is
trained again after that. Where that is not its own way, the choice is trained on all rows at the
end, at the method's cost.

*Optuna*: every learner is one trial, in random order. A pruner looks at its rungs only, the
smallest size times powers of its factor, so its trials train on those and on N, and on no other
size. Factors are Optuna's defaults, 4 for halving and 3 for Hyperband. Both are run once more from
the size that ours begins with, which is larger than 500 where N is.

*scikit-learn*: `HalvingRandomSearchCV` that draws every learner once, with factor 3, a first size
such that the last round takes all rows ("exhaust", but for what rounding leaves; so nothing is
trained again), the resource `n_samples` and one predefined split, on training and validation rows
joined. It takes unstratified samples of both parts in the same proportion: early rounds are scored
on few validation rows, which is its way. Training scores, its default, are switched off.

*lccv*: one learner after another, in random order, each against the best so far, with its
defaults except the smallest size of 512 rows, where the others begin as well. Its evaluator draws
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
from collections.abc import Sequence
from typing import Any
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

from benchmarks.meter import cpu_seconds
from benchmarks.pools import Data
from benchmarks.pools import Part
from benchmarks.pools import learner
from benchmarks.pools import score
from benchmarks.task import Answer
from benchmarks.task import Task


HALVING_FACTOR = 4
HYPERBAND_FACTOR = 3
"""Optuna's defaults."""
LCCV_FIRST_EXPONENT = 9
"""Of 2: 512 rows."""
LCCV_IGNORED = {
    "fittime": 0.0,
    "scoretime_train_accuracy": 0.0,
    "score_train_accuracy": math.nan,
    "scoretime_test_accuracy": 0.0,
}
"""What lccv asks its evaluator for besides the score, and decides nothing by."""
FLAML_ESTIMATORS = ("lgbm", "xgboost", "xgb_limitdepth", "rf", "extra_tree", "sgd", "lrl1")


def successive_halving(first: int, task: Task) -> Answer:
    """Run Optuna's SuccessiveHalvingPruner from a first size on."""
    pruner = SuccessiveHalvingPruner(min_resource=first, reduction_factor=HALVING_FACTOR)
    return _stock(pruner, _rungs(first, HALVING_FACTOR, task.data.n_train), task)


def hyperband(first: int, task: Task) -> Answer:
    """Run Optuna's HyperbandPruner from a first size on."""
    n_train, factor = task.data.n_train, HYPERBAND_FACTOR
    pruner = HyperbandPruner(min_resource=first, max_resource=n_train, reduction_factor=factor)
    return _stock(pruner, _rungs(first, factor, n_train), task)


def _stock(pruner: BasePruner, sizes: Sequence[int], task: Task) -> Answer:
    """Run a study of one trial per learner under one of Optuna's pruners."""

    def objective(trial: optuna.Trial) -> float:
        name = trial.suggest_categorical("learner", task.learners)
        for size in sizes:
            model = learner(name).fit(*task.data.first(size))
            accuracy = score(model, task.data.validation)
            trial.report(accuracy, size)
            if size < task.data.n_train and trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"learner": task.learners}, seed=task.seed),
        pruner=pruner,
        study_name=f"training-{task.seed}",  # Hyperband deals trials to brackets by the name
    )
    study.optimize(objective, n_trials=len(task.learners), catch=Exception)
    return Answer(study.best_params["learner"], {})


def scikit_learn_halving(task: Task) -> Answer:
    """Run HalvingRandomSearchCV over all the learners, in random order."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
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


def _rungs(first: int, factor: int, n_train: int) -> list[int]:
    """Return the sizes at which a pruner looks, and N."""
    n_rungs = math.ceil(math.log(n_train / first, factor))
    return [*(first * factor**rung for rung in range(n_rungs)), n_train]


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
