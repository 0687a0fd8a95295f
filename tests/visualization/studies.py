"""Hand-made studies in every state that a picture may meet."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache

import optuna
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage

from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import ABCPruner
from optuna_daub.study import AllocationPruner
from tests.study.table_study import optimize_some
from tests.study.table_study import random_study


SIZES = (100, 200, 400, 800)

Make = Callable[[], optuna.Study]

Scores = Sequence["float | None"]
"""The score at each size; where it is None, training fails."""

RIVALS: Mapping[str, Scores] = {
    "oak": (0.50, 0.625, 0.6875, 0.75),
    "elm": (0.50, 0.50, 0.50, 0.50),
    "ash": (0.25, 0.50, 0.75, 0.875),
}
"""Learner 0, 1 and 2 if every training score is 1: the last wins, the others are suspended."""


class Table:
    """An objective that looks scores up by name; it takes a second per hundred examples."""

    def __init__(self, known: Mapping[str, Scores], training_score: float | None = 1.0) -> None:
        self.known = known
        self.training_score = training_score

    def __call__(self, trial: optuna.Trial) -> float:
        name = trial.suggest_categorical("name", list(self.known))
        sizes = trial.study.pruner.policy.sizes
        score = float("nan")
        for size in training_sizes(trial):
            known = self.known[name][sizes.index(size)]
            if known is None:
                raise ArithmeticError(f"no fit on {size} examples")
            score = known
            report(
                trial,
                size,
                score,
                training_score=self.training_score,
                n_validation=1000,
                seconds=size / 100,
            )
        return score


def new_study(
    known: Mapping[str, Scores] = RIVALS,
    pruner: AllocationPruner | None = None,
    direction: str = "maximize",
    storage: str | BaseStorage | None = None,
) -> optuna.Study:
    """Return a study whose learners will come in the order of `known`."""
    study = random_study(
        pruner or DAUBPruner.paper(sizes=SIZES),
        name="trees",
        storage=storage,
        direction=direction,
        n_learners=len(known),
    )
    for name in known:
        study.enqueue_trial({"name": name})
    return study


def run(study: optuna.Study, objective: Table, n_trials: int | None = None) -> optuna.Study:
    """Let a study run, to its end or so many runs."""
    optimize_some(study, objective, n_trials, catch=ArithmeticError)
    return study


def finished() -> optuna.Study:
    return run(new_study(), Table(RIVALS))


def empty() -> optuna.Study:
    return new_study()


def pruner_alone() -> optuna.Study:
    """Return a study with another sampler, whose trials are no learners."""
    study = new_study(pruner=DAUBPruner(sizes=SIZES))
    study.sampler = RandomSampler(seed=0)
    return run(study, Table(RIVALS), n_trials=1)


def running() -> optuna.Study:
    """Return a study with a suspended learner and one that is half through its first run."""
    study = run(new_study(), Table(RIVALS), n_trials=1)
    trial = study.ask()
    trial.suggest_categorical("name", list(RIVALS))
    report(trial, next(training_sizes(trial)), 0.5, training_score=1.0, seconds=1.0)
    return study


def begun() -> optuna.Study:
    """Return a study whose only run has reported nothing yet."""
    study = new_study()
    study.ask()
    return study


def one_learner() -> optuna.Study:
    return run(new_study({"oak": RIVALS["oak"]}), Table(RIVALS))


def failed_learners() -> optuna.Study:
    """Return a study with a learner that never works and one that fails on more data."""
    known = {**RIVALS, "fir": (None,) * 4, "box": (0.5, 0.75, 0.9, None)}
    return run(new_study(known), Table(known))


def only_failures() -> optuna.Study:
    known = {"fir": (None,) * 4}
    return run(new_study(known), Table(known))


def minimized() -> optuna.Study:
    errors = {name: [1.0 - score for score in scores if score] for name, scores in RIVALS.items()}
    return run(new_study(errors, direction="minimize"), Table(errors, training_score=0.0))


def without_training_scores() -> optuna.Study:
    return run(new_study(), Table(RIVALS, training_score=None))


def abc() -> optuna.Study:
    pruner = ABCPruner(min_resource=100, max_resource=800, n_validation=1000)
    return run(new_study(pruner=pruner), Table(RIVALS))


def infinite() -> optuna.Study:
    """Return a study with a learner dropped for a score that is no finite number."""
    known = {**RIVALS, "yew": (0.5, float("-inf"), 0.5, 0.5)}
    return run(new_study(known), Table(known))


def strange_names() -> optuna.Study:
    """Return a study with parameters that mean something to HTML, plotly and matplotlib."""
    known = dict(zip(("<b>oak</b> & %{x}", "$el_m$ $", "ash" * 50), RIVALS.values(), strict=True))
    return run(new_study(known), Table(known))


def steep(direction: str) -> optuna.Study:
    """Return a study whose only learner so far gains so much that its bound is no score."""
    known = {"oak": (0.25, 0.60, 0.95, 0.96), "elm": (0.25, 0.25, 0.25, 0.25)}
    if direction == "minimize":
        known = {name: tuple(1 - score for score in scores) for name, scores in known.items()}
    study = new_study(known, direction=direction)
    return run(study, Table(known, training_score=None), n_trials=1)


def crowded(n_learners: int, n_sizes: int = 12) -> optuna.Study:
    """Return a study in which every learner is trained on every size."""
    sizes = tuple(round(500 * 1.5**step) for step in range(n_sizes))
    known = {
        f"learner of kind {kind}": [0.3 + 0.05 * place for place in range(n_sizes)]
        for kind in range(n_learners)
    }
    return run(new_study(known, DAUBPruner.paper(sizes=sizes)), Table(known))


@cache
def many() -> optuna.Study:
    """Return the study of two hundred learners, which no test may change."""
    return crowded(200, n_sizes=5)


STATES = (
    finished, empty, begun, running, one_learner, failed_learners, only_failures, minimized,
    without_training_scores, abc, infinite, strange_names,
)  # fmt: skip


def reads_of(study: optuna.Study, act: Callable[[], object]) -> list[str]:
    """Return what `act` asks of the study's storage."""
    asked: list[str] = []

    class Asked:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            return getattr(storage, name)

    storage = study._storage
    study._storage = Asked()  # type: ignore[assignment]
    try:
        act()
    finally:
        study._storage = storage
    return asked
