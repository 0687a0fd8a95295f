"""The base of the pruners here: a policy, asked in one place whether a run goes on."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from optuna_daub.core.curve import is_finite
from optuna_daub.core.decision import Extend
from optuna_daub.core.policies.policy import Policy
from optuna_daub.study import liveness
from optuna_daub.study.messages import repetition
from optuna_daub.study.messages import status
from optuna_daub.study.state import State
from optuna_daub.study.state import synced_state_of


_logger = logging.getLogger(__name__)


def check_steps(policy: Policy, number: int, steps: Iterable[int]) -> None:
    """Raise a ValueError where a run that was handed out sizes has reported anything else."""
    others = [step for step in steps if step not in policy.sizes]
    if others:
        sizes = ", ".join(f"{size:,}" for size in policy.sizes)
        raise ValueError(
            f"The step of `trial.report` is the training size, one of {sizes}, but trial "
            f"{number} reported step {min(others):,}. Report the sizes of "
            "`training_sizes(trial)` only, and no epochs: leave out a callback that does, such as "
            "Optuna's pruning callbacks."
        )


class AllocationPruner(BasePruner):
    """End a run as soon as the policy gives the turn to another learner.

    Base class of the pruners here, and of one's own: with `DataAllocationSampler` it makes the
    pair. `examples/own_policy.py` shows a policy of one's own.

    Args:
        policy: the rule that allocates training data, a frozen value (`optuna_daub.core.Policy`).

    >>> from optuna_daub.core import SuccessiveHalving
    >>> AllocationPruner(SuccessiveHalving((500, 1000, 2000))).policy.keep_one_in
    2
    """

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(
                "`policy` must be an instance of optuna_daub.core.Policy, such as "
                f"SuccessiveHalving(sizes), but got {policy!r}. A policy of your own is a "
                "subclass that says what to do next in `decide`."
            )
        self.policy = policy
        """The rule that allocates the training data; a frozen value."""
        self.has_warned = False
        """Whether it was said that training scores are missing."""

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether the turn passes to another learner; reads the storage, writes nothing."""
        state = synced_state_of(study)
        run = state.runs.get(trial.number)
        if run is None:
            is_lost = trial.number not in state.unfinished or state.is_given_up(trial.number)
            return is_lost or self._prune_alone(state, trial)
        if trial.number in state.here.handed_out:
            check_steps(self.policy, trial.number, trial.intermediate_values)
        full_size = self.policy.sizes[-1]
        if (trial.last_step or 0) > full_size:
            raise ValueError(
                f"The step of `trial.report` is the training size, at most {full_size:,} examples "
                f"here, but trial {trial.number} reported {trial.last_step:,}."
            )
        if run.learner is not None and state.is_done(run.learner, full_size):
            return False  # nothing is left to be spared
        return isinstance(self.turn(state, trial.number), str)

    def turn(self, state: State, number: int) -> int | str:
        """Return the size on which a run goes on, or the sentence that ends it."""
        run = state.runs.get(number)
        if run is None:
            return liveness.GIVEN_UP
        if run.learner is None:
            return run.reason
        # An objective without `training_sizes` gets here with its first score.
        if run.learner == number and (other := state.twin(number)) is not None:
            return repetition(other)
        pool, decision = state.answer(self.policy, number)
        if isinstance(decision, Extend) and decision.learner == run.learner:
            return decision.size
        state.here.told_to_end.add(number)
        return status(self.policy, pool, state.sign, run.learner, decision)

    def _prune_alone(self, state: State, trial: FrozenTrial) -> bool:
        """Prune a trial of another sampler for good: its upper bound is below a score reached.

        This is DAUB's Remark 1. Where the policy bounds nothing yet, the trial goes on.
        """
        pool, rival = state.alone(trial)
        if rival is None or not pool.curves[trial.number].observations:
            return False
        if not all(map(is_finite, trial.intermediate_values.values())):
            return False  # a score that is no number says nothing of the next
        return self.policy.interval(pool, trial.number).upper < rival
