"""The base of the pruners here: a policy, asked in one place whether a run goes on."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TypeVar

import optuna
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Extend
from optuna_daub.core.intervals.confidence import check_probe
from optuna_daub.core.policy import Policy
from optuna_daub.study import liveness
from optuna_daub.study.messages import repetition
from optuna_daub.study.messages import status
from optuna_daub.study.state import State
from optuna_daub.study.state import synced_state_of


_Choice = TypeVar("_Choice")

_logger = logging.getLogger(__name__)


class AllocationPruner(BasePruner):
    """Ends a run as soon as the policy gives the turn to another learner.

    Base class of the pruners here, and of one's own: with `DataAllocationSampler` it makes the
    pair. `examples/own_policy.py` shows a policy of one's own.

    >>> from optuna_daub.core import SuccessiveHalving
    >>> AllocationPruner(SuccessiveHalving((500, 1000, 2000))).policy.keep_one_in
    2
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        """The rule that allocates the training data; a frozen value."""
        self._has_said = False

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return whether the turn passes to another learner; reads the storage, writes nothing."""
        state = synced_state_of(study)
        run = state.runs.get(trial.number)
        if run is None:
            is_lost = trial.number not in state.unfinished or state.is_given_up(trial.number)
            return is_lost or self._prune_alone(state, trial)
        full_size = self.policy.sizes[-1]
        if (trial.last_step or 0) > full_size:
            raise ValueError(
                f"The step of `trial.report` is the training size, at most {full_size:,} examples "
                f"here, but trial {trial.number} reported {trial.last_step:,}."
            )
        if run.learner is not None and is_done(state.curve(run.learner), full_size):
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
        return status(self.policy, pool, state.sign, run.learner, decision)

    def check(self, seen: Observation, trial: optuna.Trial) -> None:
        """Raise where an observation about to be stored lacks what the policy needs.

        Raises:
            ValueError: where it is no mean over examples, or lacks its training score or its
                number of validation examples, and the policy rests on these.
        """
        needs = self.policy.needs
        if needs.mean_of_examples:
            if trial.study.direction == StudyDirection.MINIMIZE:
                raise ValueError(
                    f"{type(self).__name__} needs scores in [0, 1] that are larger for better "
                    'learners: create the study with `direction="maximize"`, and report 1 - error '
                    "for an error rate."
                )
            if math.isfinite(seen.score):
                where = f"trial {trial.number} at {seen.size:,} training examples"
                check_probe(seen, where, needs.n_validation)
        elif needs.training_scores == "required" and seen.training_score is None:
            raise ValueError(
                f"{type(self).__name__} needs the training score of every probe, but got none: "
                "pass `training_score=` to `report`."
            )
        elif (
            needs.training_scores == "helpful"
            and seen.training_score is None
            and not self._has_said
        ):
            self._has_said = True
            _logger.warning(
                "No training score was reported, so forecasts rest on validation scores alone: "
                "pass `training_score=` to `report`, or `use_training_score=False` to the pruner."
            )

    def _prune_alone(self, state: State, trial: FrozenTrial) -> bool:
        """Prune a trial of another sampler for good: its upper bound is below a score reached.

        This is DAUB's Remark 1. Where the policy bounds nothing yet, the trial goes on.
        """
        pool, rival = state.alone(trial)
        if rival is None or not pool.curves[trial.number].observations:
            return False
        return self.policy.interval(pool, trial.number).upper < rival


def is_done(curve: LearningCurve, full_size: int) -> bool:
    """Return whether a learner was trained on all the data, with a score to show for it."""
    return curve.size == full_size and curve.observations[-1].is_finite


def named(argument: str, name: str, choices: Mapping[str, _Choice]) -> _Choice:
    """Return the choice of a name, the strings of the public edge."""
    if name not in choices:
        raise ValueError(f"`{argument}` must be one of {sorted(choices)}, but got {name!r}.")
    return choices[name]
