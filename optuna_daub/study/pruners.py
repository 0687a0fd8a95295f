"""What the pruners have in common: a policy, asked whether a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.decision import Extend
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import synced_ledger_of


_Choice = TypeVar("_Choice")


class AllocationPruner(BasePruner):
    """Ends a run as soon as the policy gives the turn to another learner.

    Base class of the pruners here; with `DataAllocationSampler` it makes the pair.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def policy(self) -> Policy:
        """The rule that allocates the training data; a frozen value."""
        return self._policy

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether the turn passes to another learner; reads the storage, writes nothing."""
        ledger = synced_ledger_of(study)
        run = ledger.running.get(trial.number)
        if run is None:
            return self._prune_alone(ledger, trial)
        full_size = self.policy.sizes[-1]
        if (trial.last_step or 0) > full_size:
            raise ValueError(
                f"The step of `trial.report` is the training size, at most {full_size:,} examples "
                f"here, but trial {trial.number} reported {trial.last_step:,}."
            )
        if run.learner is not None and is_done(ledger.curves[run.learner], full_size):
            return False  # nothing is left to be spared
        decision = ledger.decide(self.policy, trial.number)
        return not (isinstance(decision, Extend) and decision.learner == run.learner)

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Raise where an observation about to be stored lacks what the policy needs."""

    def _prune_alone(self, ledger: Ledger, trial: FrozenTrial) -> bool:
        raise ValueError(
            f"{type(self).__name__} needs DataAllocationSampler as the study's sampler: pass "
            "`sampler=DataAllocationSampler(n_learners=...)` to `optuna.create_study`."
        )


def is_done(curve: LearningCurve, full_size: int) -> bool:
    """Return whether a learner was trained on all the data, with a score to show for it."""
    return curve.size == full_size and curve.observations[-1].is_finite


def named(argument: str, name: str, choices: Mapping[str, _Choice]) -> _Choice:
    """Return the choice of a name, the strings of the public edge."""
    if name not in choices:
        raise ValueError(f"`{argument}` must be one of {sorted(choices)}, but got {name!r}.")
    return choices[name]
