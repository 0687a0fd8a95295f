"""Everyone who chooses a learner by real training, in one table: this package and its rivals.

*Ours* goes through the ready-made objective, which scores the training rows as well. *Training
everything* is the yardstick of loss and cost.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import optuna
from optuna.pruners import BasePruner

from benchmarks.pools import learner
from benchmarks.pools import score
from benchmarks.rivals import flaml
from benchmarks.rivals import hyperband
from benchmarks.rivals import learning_curve_cv
from benchmarks.rivals import scikit_learn_halving
from benchmarks.rivals import successive_halving
from benchmarks.task import Answer
from benchmarks.task import Choice
from benchmarks.task import Task
from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective


FACTOR = 1.5


@dataclass(frozen=True)
class Method:
    """One line of the tables."""

    choose: Choice
    package: str | None = None
    """What must be installed; imported before the clock starts."""
    has_seconds: bool = False
    """Whether it is told how many seconds to take."""

    @property
    def missing(self) -> str | None:
        """What it needs that is not there."""
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


def _daub(mode: Mapping[str, Any], task: Task) -> BasePruner:
    return DAUBPruner(
        min_resource=task.smallest, max_resource=task.data.n_train, reduction_factor=FACTOR, **mode
    )


def _abc(task: Task) -> BasePruner:
    n_valid = len(task.data.validation[1])
    least = 2 * task.smallest  # 1,000, the pruner's default
    return ABCPruner(min_resource=least, max_resource=task.data.n_train, n_validation=n_valid)


def _smallest(rival: Callable[[int, Task], Answer]) -> Choice:
    return lambda task: rival(task.smallest, task)


def _our_first(rival: Callable[[int, Task], Answer]) -> Choice:
    def choose(task: Task) -> Answer:
        pruner = CALIBRATED(task)
        assert isinstance(pruner, DAUBPruner)
        return rival(pruner.policy.first_sizes[0], task)

    return choose


PAPER = partial(_daub, {"step": "geometric", "bound": "projection"})
CALIBRATED = partial(_daub, {"step": "adaptive", "bound": "calibrated"})
CAREFUL = partial(_daub, {"step": "adaptive", "bound": "calibrated", "price": 0.01})
EVERYTHING = "training everything"
OURS = "DAUB, calibrated"
OURS_PAPER = "DAUB, as in the paper"

METHODS: dict[str, Method] = {
    EVERYTHING: Method(full_training),
    OURS_PAPER: Method(partial(ours, PAPER)),
    "Optuna SuccessiveHalvingPruner": Method(_smallest(successive_halving)),
    "Optuna HyperbandPruner": Method(_smallest(hyperband)),
    "Optuna SuccessiveHalvingPruner, our first size": Method(_our_first(successive_halving)),
    "Optuna HyperbandPruner, our first size": Method(_our_first(hyperband)),
    "scikit-learn HalvingRandomSearchCV": Method(scikit_learn_halving),
    "lccv": Method(learning_curve_cv, "lccv"),
    "ABC": Method(partial(ours, _abc)),
    "ABC, n_jobs=2": Method(partial(ours, _abc, n_jobs=2)),
    OURS: Method(partial(ours, CALIBRATED)),
    f"{OURS}, price 0.01": Method(partial(ours, CAREFUL)),
    f"{OURS}, n_jobs=2": Method(partial(ours, CALIBRATED, n_jobs=2)),
    f"{OURS}, price 0.01, n_jobs=2": Method(partial(ours, CAREFUL, n_jobs=2)),
    f"{OURS_PAPER}, n_jobs=2": Method(partial(ours, PAPER, n_jobs=2)),
    "FLAML, the same seconds": Method(flaml, "flaml", has_seconds=True),
}
"""In the order in which they are run."""
