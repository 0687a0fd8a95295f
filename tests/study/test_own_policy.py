"""Rules of one's own that have a fault: the study ends, and says which."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from optuna.samplers import RandomSampler

from optuna_daub import learning_curves
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import Reason
from optuna_daub.core import replay
from optuna_daub.study import AllocationPruner
from optuna_daub.study.setup_errors import SetupError
from tests.study.table_study import SIZES
from tests.study.table_study import answer
from tests.study.table_study import one_number
from tests.study.table_study import pair


WHY = Reason("a fault")
FAULTS: dict[str, tuple[object, str]] = {
    "nothing": (None, "a decision, but returned None"),
    "an unknown learner": (Extend(99, SIZES[-1], WHY), "but the pool has no learner 99"),
    "an unknown winner": (Finish(99, WHY), "but the pool has no learner 99"),
    "an unknown drop": (Drop(99, WHY), "but the pool has no learner 99"),
    "a size again": (Extend(1, SIZES[0], WHY), f"learner 1 was trained on {SIZES[0]} already"),
    "a dropped one": (Extend(0, SIZES[-1], WHY), "learner 0 is dropped: a fault"),
    "one too many": (Propose(SIZES[0], WHY), "no further learner may be proposed"),
    "more than all": (Extend(1, 999, WHY), f"there are {SIZES[-1]} examples"),
}
"""Answers once two learners are there, of which 0 is ruled out, and what is said."""


@dataclass(frozen=True)
class Faulty(Policy):
    """A rule with a fault, or one that rules learner 0 out for ever."""

    fault: str = "the same drop"

    def decide(self, pool: Pool) -> Decision:
        if pool.may_propose:
            return Propose(self.sizes[0], Reason("all start small"))
        if self.fault == "the same drop" or not pool.curves[0].dropped:
            return Drop(0, WHY)
        return FAULTS[self.fault][0]  # type: ignore[return-value]


def said_of(fault: str) -> str:
    return FAULTS[fault][1] if fault in FAULTS else "learner 0 is dropped: a fault"


@pytest.mark.parametrize("fault", [*FAULTS, "the same drop"])
def test_a_fault_ends_the_study_also_under_catch(fault: str) -> None:
    study = pair(AllocationPruner(Faulty(SIZES, fault)), RandomSampler(seed=0), n_learners=2)
    with pytest.raises(SetupError, match=rf"Faulty\.decide must return .*{said_of(fault)}"):
        study.optimize(one_number, n_trials=20, catch=(Exception,))


def test_results_can_be_read_in_spite_of_a_fault() -> None:
    study = pair(AllocationPruner(Faulty(SIZES, "nothing")), RandomSampler(seed=0), n_learners=2)
    with pytest.raises(SetupError, match="must return a decision"):
        study.optimize(one_number)
    assert answer(study).learner == 1
    assert [curve.state for curve in learning_curves(study)] == ["dropped", "suspended"]


@pytest.mark.parametrize("fault", [*FAULTS, "the same drop"])
def test_a_replay_names_it_too(fault: str) -> None:
    known = [
        LearningCurve(i, tuple(Observation(size, 0.5 + i / 10) for size in SIZES))
        for i in range(2)
    ]
    with pytest.raises(ValueError, match=rf"Faulty\.decide must return .*{said_of(fault)}"):
        [*replay(Faulty(SIZES, fault), known)]
