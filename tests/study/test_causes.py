"""Causes: policies are told as data why a learner gets no more data."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from dataclasses import field

import optuna
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial

from optuna_daub import AllocationPruner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import Decision
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core.curve import Cause
from tests.study.table_study import pair


SIZES = (6, 9, 15)


@dataclass(frozen=True)
class Told(SuccessiveHalving):
    """Notes for what kind of reason each learner gets no more data."""

    causes: dict[int, Cause] = field(default_factory=dict, compare=False)

    def decide(self, pool: Pool) -> Decision:
        self.causes.update({learner: curve.cause for learner, curve in pool.curves.items()})
        return super().decide(pool)


def measured(trial: FrozenTrial) -> tuple[float]:
    return (float(trial.params["kind"] == "infeasible"),)


def objective(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", KINDS)
    score = {"best": 0.9, "good": 0.8}.get(kind, 0.7)
    for size in training_sizes(trial):
        if kind == "raises":
            raise MemoryError("upper end reached, ruled out")
        if kind == "rejected":
            raise optuna.TrialPruned("infeasible")
        report(trial, size, math.nan if kind == "nan" else score)
    return score


KINDS = ("best", "good", "poor", "raises", "rejected", "nan", "infeasible")

EXPECTED = {
    "best": "",
    "poor": "ruled out",
    "raises": "failed",
    "rejected": "failed",
    "nan": "collapsed",
    "infeasible": "infeasible",
}


def test_each_kind_of_end_is_told_as_data() -> None:
    policy = Told(SIZES, keep_one_in=3)
    with warnings.catch_warnings():  # experimental in Optuna 4, deprecated in 5
        warnings.simplefilter("ignore")
        base = TPESampler(seed=0, constraints_func=measured)
    study = pair(AllocationPruner(policy), base, n_learners=len(KINDS))
    for kind in KINDS:
        study.enqueue_trial({"kind": kind})
    study.optimize(objective, catch=(MemoryError,))
    kinds = {trial.number: trial.params["kind"] for trial in study.trials if trial.params}
    told = {kinds[learner]: cause for learner, cause in policy.causes.items()}
    assert {kind: told[kind] for kind in EXPECTED} == EXPECTED
