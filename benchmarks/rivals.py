"""Ways to choose a learner by real training: this package, Optuna, scikit-learn, lccv, FLAML.

Each gets the same learners, training rows and validation rows, and the sizes 500, 750, 1,125, ...,
N where it lets sizes be chosen; each ends with one learner trained on all N rows. Where it is
not its own way to do so, the choice is trained on all rows at the end, at the method's cost.

*Ours*: the ready-made objective, which scores the training rows as well.

*Optuna*: every learner is one trial, in random order. A pruner looks at its rungs only, the
smallest size times powers of its factor, so its trials train on those and on N, and on no other
size. Factors are Optuna's defaults, 4 for halving and 3 for Hyperband.

*scikit-learn*: `HalvingGridSearchCV` with its defaults (factor 3, "exhaust"), the resource
`n_samples` and one predefined split, on training and validation rows joined. It takes unstratified
samples of both parts in the same proportion: early rounds are scored on few validation
rows, which is its way. Training scores, which it would compute by default, are switched off.

*lccv*: one learner after another, in random order, each against the best so far, with its
defaults except the smallest size of 512 rows, where the others begin as well. Its evaluator draws
a new sample of the training rows each time, as its own does, with every class; all scores are on
the validation rows. At N all samples are the same: the second and third look there cost nothing.

*FLAML*: its own choice of hyperparameters for its default estimators but CatBoost, which is not
in the pool, for as many seconds as ours took. If its best model was trained on a sample, it is
trained on all rows, and the better of the two is its answer.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any
from typing import TypeAlias

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
from benchmarks.pools import Data
from benchmarks.pools import Part
from benchmarks.pools import learner
from benchmarks.pools import score
from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective


MIN_RESOURCE = 500
FACTOR = 1.5
LCCV_FIRST_EXPONENT = 9
"""Of 2: 512 rows."""
LCCV_RESULT = {
    "fittime": 0.0,
    "scoretime_train_accuracy": 0.0,
    "score_train_accuracy": math.nan,
    "scoretime_test_accuracy": 0.0,
}
"""What lccv asks its evaluator for besides the score, and decides nothing by."""
FLAML_ESTIMATORS = ("lgbm", "xgboost", "xgb_limitdepth", "rf", "extra_tree", "sgd", "lrl1")


@dataclass(frozen=True)
class Task:
    """What every method is given."""

    data: Data
    learners: tuple[str, ...]
    seed: int
    meter: Meter
    seconds: float | None = None
    """What ours took; only for methods that are given a time."""

    @property
    def smallest(self) -> int:
        """The smallest training size."""
        return min(MIN_RESOURCE, self.data.n_train // 8)


@dataclass(frozen=True)
class Answer:
    """What a method chose."""

    learner: str
    """Of the pool; or, of FLAML, its own."""
    scores: Mapping[str, tuple[float, float]]
    """Validation and test score at N: of every learner from full training, of FLAML's own."""


Choice: TypeAlias = Callable[[Task], Answer]


@dataclass(frozen=True)
class Method:
    """One line of the tables."""

    choose: Choice
    package: str | None = None
    """What must be installed; imported before the clock starts."""
    needs_calibration: bool = False
    """Whether the package must be one with the calibrated bound."""
    has_seconds: bool = False
    """Whether it is told how many seconds to take."""
    only_for: tuple[str, ...] = ()
    """Data sets to run it on; none for all."""

    @property
    def missing(self) -> str | None:
        """What it needs that is not there."""
        if self.package is not None and find_spec(self.package) is None:
            return f"pip install {self.package}"
        if self.needs_calibration and not has_calibration():
            return "a later version of optuna_daub"
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


def stock(pruner_for: Callable[[Task], BasePruner], factor: int, task: Task) -> Answer:
    """Run an Optuna study of one trial per learner under one of Optuna's pruners."""

    def objective(trial: optuna.Trial) -> float:
        name = trial.suggest_categorical("learner", task.learners)
        for size in _rungs(task, factor):
            model = learner(name).fit(*task.data.first(size))
            accuracy = score(model, task.data.validation)
            trial.report(accuracy, size)
            if size < task.data.n_train and trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"learner": task.learners}, seed=task.seed),
        pruner=pruner_for(task),
        study_name=f"training-{task.seed}",  # Hyperband deals trials to brackets by the name
    )
    study.optimize(objective, n_trials=len(task.learners), catch=Exception)
    return Answer(study.best_params["learner"], {})


def scikit_learn_halving(task: Task) -> Answer:
    """Run HalvingGridSearchCV over the learners, and train its choice on all rows."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    X, y = map(np.concatenate, zip(task.data.training, task.data.validation, strict=True))
    is_held_out = np.arange(len(y)) >= task.data.n_train
    candidates = {name: learner(name) for name in task.learners}
    search = HalvingGridSearchCV(
        Pipeline([("learner", DummyClassifier())]),
        {"learner": list(candidates.values())},
        cv=PredefinedSplit(np.where(is_held_out, 0, -1)),
        scoring="accuracy",
        refit=False,
        return_train_score=False,
        random_state=task.seed,
    ).fit(X, y)
    chosen = search.best_params_["learner"]
    name = next(name for name, candidate in candidates.items() if candidate is chosen)
    score(learner(name).fit(*task.data.training), task.data.validation)
    return Answer(name, {})


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


def _rungs(task: Task, factor: int) -> Iterator[int]:
    size = task.smallest
    while size < task.data.n_train:
        yield size
        size *= factor
    yield task.data.n_train


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
            parts = {
                "fittime": 0.0,
                "scoretime_train_accuracy": 0.0,
                "score_train_accuracy": np.nan,
            }
            result = {**parts, "scoretime_test_accuracy": 0.0, "score_test_accuracy": accuracy}
            if anchor < data.n_train:
                return result
            at_full_size[anchor] = result
        return at_full_size[anchor]

    return evaluate


def has_calibration() -> bool:
    """Return whether this version of the package has the calibrated bound."""
    return "bound" in inspect.signature(DAUBPruner).parameters


def _daub(step: str, bound: str, task: Task) -> BasePruner:
    mode: dict[str, Any] = {"step": step, "bound": bound} if has_calibration() else {}
    return DAUBPruner(
        min_resource=task.smallest, max_resource=task.data.n_train, reduction_factor=FACTOR, **mode
    )


def _abc(task: Task) -> BasePruner:
    n_valid = len(task.data.validation[1])
    least = 2 * task.smallest  # 1,000, the pruner's default
    return ABCPruner(min_resource=least, max_resource=task.data.n_train, n_validation=n_valid)


def _halving(task: Task) -> BasePruner:
    return SuccessiveHalvingPruner(min_resource=task.smallest, reduction_factor=4)


def _hyperband(task: Task) -> BasePruner:
    return HyperbandPruner(
        min_resource=task.smallest, max_resource=task.data.n_train, reduction_factor=3
    )


PAPER = partial(_daub, "geometric", "projection")
CALIBRATED = partial(_daub, "adaptive", "calibrated")
EVERYTHING = "training everything"
OURS = "DAUB, calibrated"
OURS_PAPER = "DAUB, as in the paper"

LARGE = ("covtype-400k", "flightlate", "made")
"""Where rows are many enough for confidence intervals to tell learners apart; and smoke runs."""
SMALL = ("parity", "covtype", "made")

METHODS: dict[str, Method] = {
    EVERYTHING: Method(full_training),
    OURS_PAPER: Method(partial(ours, PAPER)),
    "Optuna SuccessiveHalvingPruner": Method(partial(stock, _halving, 4)),
    "Optuna HyperbandPruner": Method(partial(stock, _hyperband, 3)),
    "scikit-learn HalvingGridSearchCV": Method(scikit_learn_halving),
    "lccv": Method(learning_curve_cv, "lccv"),
    "ABC": Method(partial(ours, _abc), only_for=LARGE),
    OURS: Method(partial(ours, CALIBRATED), needs_calibration=True),
    f"{OURS}, n_jobs=2": Method(
        partial(ours, CALIBRATED, n_jobs=2), needs_calibration=True, only_for=SMALL
    ),
    f"{OURS_PAPER}, n_jobs=2": Method(partial(ours, PAPER, n_jobs=2), only_for=SMALL),
    "FLAML, the same seconds": Method(flaml, "flaml", has_seconds=True),
}
"""In the order in which they are run."""
