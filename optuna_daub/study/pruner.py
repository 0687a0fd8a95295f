"""Base class of the pruners: `should_prune` asks the policy."""

from __future__ import annotations

import logging

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial

from optuna_daub.core.checks import brief
from optuna_daub.core.curve import is_finite
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study import host
from optuna_daub.study import records
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.setup_errors import check_steps
from optuna_daub.study.turns import End
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking


_logger = logging.getLogger(__name__)


class AllocationPruner(BasePruner):
    """End a run when the policy chooses another learner.

    The base class of all pruners here, also of your own: pass it a policy, and pair it with
    `DataAllocationSampler`. `examples/own_policy.py` shows a policy of your own.

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
                f"SuccessiveHalving(sizes), but got {brief(policy)}. A policy of your own is a "
                "subclass that says what to do next in `decide`."
            )
        self.policy = policy
        """The rule that allocates the training data; a frozen value."""
        self.has_warned = False
        """True once the warning about missing training scores was given."""

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Raise an error: Optuna calls this for samplers only, so sampler and pruner were swapped.

        Raises:
            ValueError: always.
        """
        del trial
        raise ValueError(
            f"The study's sampler must be a sampler, but got {type(self).__name__}, a pruner (and "
            f"as the pruner {type(study.pruner).__name__}): pass "
            "`sampler=DataAllocationSampler(...)` and `pruner=DAUBPruner(...)`."
        )

    @host.one_blas_thread()
    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Return True if the run is over. Reads the storage and writes nothing."""
        worker = looking(study)
        known, number, full_size = worker.known, trial.number, self.policy.sizes[-1]
        run = known.runs.get(number)
        if run is None:
            is_lost = number not in known.unfinished or known.is_given_up(number)
            return is_lost or self._prune_alone(worker, trial)
        # An objective of the user's may report other sizes, but no epochs.
        epochs = [step for step in trial.intermediate_values if step < self.policy.sizes[0]]
        if number in worker.turns or epochs:
            check_steps(self.policy.sizes, number, epochs or trial.intermediate_values)
        if (trial.last_step or 0) > full_size:
            raise SetupError(
                f"The step of `trial.report` is the training size, at most {full_size:,} examples "
                f"here, but trial {number} reported {trial.last_step:,}."
            )
        if run.learner is not None and known.is_done(run.learner, full_size):
            return False  # already trained on all the data: nothing to save
        answer = worker.told[number] = worker.turn(self.policy, number)
        return isinstance(answer, End)

    def _prune_alone(self, worker: Worker, trial: FrozenTrial) -> bool:
        """Prune another sampler's trial for good if its bound is below another trial's score.

        This is DAUB's Remark 1. A trial without a bound goes on.
        """
        number = trial.number
        newer = records.read(trial, worker.sign)  # than in the last look
        known = worker.known.with_trials((newer,))
        rival = max((score for score, other in known.best_alone if other != number), default=None)
        if rival is None or number not in known.alone:
            return False
        if not all(map(is_finite, trial.intermediate_values.values())):
            return False  # NaN or infinity says nothing about the next score
        return self.policy.interval(Pool(known.alone), number).upper < rival


def name_of(pruner: object) -> str:
    """Return a pruner's name for messages. Its class may have been passed in its place."""
    return "the class itself" if isinstance(pruner, type) else type(pruner).__name__
