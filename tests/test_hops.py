"""Few hops: how many files a score enters on its way from `report` to "suspended"."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import optuna

import optuna_daub
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.study import LearnerCurve


PACKAGE = str(Path(optuna_daub.__file__).parent)


class Trace:
    """The files of this package that are handed a score, one after the other."""

    def __init__(self, score: float) -> None:
        self.score = score
        self.files: list[str] = []
        self.calls: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a function that is called with the score, or with what holds it."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
        if any(holds(argument, self.score) for argument in arguments):
            self.files.append(code.co_filename.removeprefix(PACKAGE + "/"))
            self.calls.append(code.co_name)

    @property
    def entered(self) -> Counter[str]:
        """How often each file was entered from another one."""
        pairs = pairwise(["", *self.files])
        return Counter(later for earlier, later in pairs if later != earlier)


def holds(value: object, score: float) -> bool:
    """Return whether a value is the score, an observation or a curve or a trial that has it."""
    match value:
        case float():
            return value == score
        case Observation():
            return value.score == score
        case LearningCurve() | LearnerCurve():
            return any(seen.score == score for seen in value.observations)
        case optuna.trial.FrozenTrial():
            return score in value.intermediate_values.values()
        case tuple() | list():
            return any(holds(part, score) for part in value)
    return False


def suspension(pruner: optuna.pruners.BasePruner, **options: Any) -> Trace:
    """Return the way of the last score before a learner is suspended for the first time."""
    traces: list[Trace] = []

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.5, 0.9)
        score = 0.0
        try:
            for n in training_sizes(trial):
                sys.setprofile(None)
                score = x - 10 / n
                trace = Trace(score)
                sys.setprofile(trace)
                report(trial, n, score, training_score=x, seconds=n / 1000)
        except optuna.TrialPruned:
            sys.setprofile(None)
            traces.append(trace)
            raise
        finally:
            sys.setprofile(None)
        return score

    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), **options),
        pruner=pruner,
    )
    study.optimize(objective, n_trials=12)
    return traces[-1]


def test_a_score_enters_few_files() -> None:
    entered = suspension(DAUBPruner(max_resource=20_000)).entered
    assert len(entered) <= 7, entered
    assert max(entered.values()) <= 2, entered


def test_the_trace_sees_every_file() -> None:
    entered = suspension(DAUBPruner.paper(max_resource=20_000), n_learners=5).entered
    assert {"study/reporting.py", "study/state.py", "core/policies/daub.py"} <= entered.keys()
