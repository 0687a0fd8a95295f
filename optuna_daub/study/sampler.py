"""The sampler: new learners come from a base sampler, suspended ones come back."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.policies.decision import Decision
from optuna_daub.core.policies.decision import Finish
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.core.sizes import next_size
from optuna_daub.core.sizes import whole_number
from optuna_daub.study import keys
from optuna_daub.study.dealing import deal
from optuna_daub.study.dealing import is_optimizing
from optuna_daub.study.failures import error_of_run
from optuna_daub.study.failures import told
from optuna_daub.study.keys import Failure
from optuna_daub.study.keys import Run
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import forget_ledger_of
from optuna_daub.study.ledger import ledger_of
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.pruners import AllocationPruner
from optuna_daub.study.pruners import is_done
from optuna_daub.study.reasons import verdict
from optuna_daub.study.view import OneRowPerLearner


_logger = logging.getLogger(__name__)


class DataAllocationSampler(BaseSampler):
    """Propose new learners until there are `n_learners`, resume suspended ones ever after.

    The other half of `DAUBPruner` and its like: which learner a trial runs is what the policy of
    the study's pruner says. A resumed learner keeps its parameters and inherits its curve. The
    study stops by itself when the policy knows the answer. With a pruner of another library this
    sampler is its base sampler and nothing more.

    Args:
        base_sampler: any Optuna sampler; it sees one trial per learner. Default: TPESampler().
        n_learners: how many learners to choose among, at least 1; enqueued trials count. Where
            the base sampler runs out of proposals (Grid, BruteForce) there are fewer; with several
            workers let it then be the size of the space, or the last proposals may come twice.
        stale_after: seconds without a report after which a run counts as dead and its learner is
            free again; None (the default) waits, except for processes of this machine, which are
            known to be dead at once. Give more than the longest training takes.

    Raises:
        ValueError: where `n_learners` < 1 or `stale_after` <= 0.

    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=40)
    """

    def __init__(
        self,
        base_sampler: BaseSampler | None = None,
        *,
        n_learners: int,
        stale_after: float | None = None,
    ) -> None:
        if whole_number("n_learners", n_learners) < 1:
            raise ValueError(f"`n_learners` must be at least 1, but got {n_learners}.")
        if stale_after is not None and not stale_after > 0:
            raise ValueError(f"`stale_after` must be greater than 0, but got {stale_after}.")
        self._base_sampler = base_sampler or optuna.samplers.TPESampler()
        self._n_learners = n_learners
        self._stale_after = stale_after
        self._dealt: dict[int, tuple[Run, OneRowPerLearner]] = {}
        self._has_warned = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave what running trials were dealt to this process."""
        return {**vars(self), "_dealt": {}}

    def reseed_rng(self) -> None:
        """Reseed the base sampler (Optuna calls this for each thread of `n_jobs`)."""
        self._base_sampler.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Deal the trial a learner, waiting for one if need be."""
        policy = self._policy_of(study)
        if policy is None:
            self._base_sampler.before_trial(study, trial)
            return
        with _failing(study, trial):
            if len(study.directions) > 1:
                raise NotImplementedError(
                    "Trial.report is not supported for multi-objective optimization."
                )
            _agree(study, policy)
            run = deal(study, trial, policy, self._n_learners, self._stale_after)
            view = OneRowPerLearner(study)
            if run.learner == trial.number:
                self._base_sampler.before_trial(view, trial)
        self._dealt[trial._trial_id] = run, view
        if run.learner is None and isinstance(ledger_of(study).decide(policy), Finish):
            _stop(study)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the base sampler's space for a new learner, a resumed one's own otherwise."""
        run, view = self._dealt.get(trial._trial_id, (None, study))
        if run is None or run.learner == trial.number:
            return self._base_sampler.infer_relative_search_space(view, trial)
        return {} if run.learner is None else ledger_of(study).distributions[run.learner]

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the base sampler's proposal for a new learner, a resumed one's parameters.

        Raises:
            optuna.TrialPruned: for an idle trial, out of the objective that asks for parameters.
        """
        run, view = self._dealt.get(trial._trial_id, (None, study))
        if run is None or run.learner == trial.number:
            return self._base_sampler.sample_relative(view, trial, search_space)
        if run.learner is not None:
            params = ledger_of(study).params[run.learner]
            return {name: params[name] for name in search_space}
        if is_optimizing(study):
            raise optuna.TrialPruned(run.reason)
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the base sampler's value, to a resumed learner what it would have been given."""
        run, view = self._dealt.get(trial._trial_id, (None, study))
        if run is not None and run.learner not in (None, trial.number):
            ledger = ledger_of(study)
            if param_name in ledger.params[run.learner]:  # enqueued, or out of its distribution
                return ledger.params[run.learner][param_name]
            rows = view._storage.get_all_trials(study._study_id, deepcopy=False)
            trial = next((row for row in rows if row.number == run.learner), trial)
        return self._base_sampler.sample_independent(view, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store how the run ended, and stop the study where the answer is known."""
        policy = self._policy_of(study)
        if policy is None:
            self._base_sampler.after_trial(study, trial, state, values)
            return
        run, view = self._dealt.pop(trial._trial_id, (None, None))
        run = run or keys.read_run(trial.system_attrs)
        if run is None:
            return
        view = view or OneRowPerLearner(study)
        if run.learner == trial.number:
            self._base_sampler.after_trial(view, trial, state, values)
            if view.is_stopped:
                keys.write_exhaustion(study, trial._trial_id)
        ledger = synced_ledger_of(study)
        if _is_early(ledger, policy, run, state):
            _reject(study, ledger, trial, run, policy, values)
        decision = ledger.decide(policy, trial.number)
        if run.learner is not None:
            _close(study, ledger, trial, run, policy, state, decision)
        if isinstance(decision, Finish):
            _stop(study)

    def _policy_of(self, study: optuna.Study) -> Policy | None:
        if isinstance(study.pruner, AllocationPruner):
            return study.pruner.policy
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "DataAllocationSampler suspends and resumes learners only together with a pruner "
                "of optuna_daub, but the study's pruner is %s.",
                type(study.pruner).__name__,
            )
        return None


@contextmanager
def _failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Leave no running trial behind where dealing it a learner raises: Optuna would.

    An enqueued one that was dealt nothing yet goes back to the queue.
    """
    try:
        yield
    except BaseException:
        as_it_is = study._storage.get_trial(trial._trial_id)
        state = TrialState.WAITING if keys.is_enqueued(as_it_is) else TrialState.FAIL
        with suppress(RuntimeError):
            study._storage.set_trial_state_values(trial._trial_id, state)
        raise


def _stop(study: optuna.Study) -> None:
    if is_optimizing(study):
        study.stop()


def _agree(study: optuna.Study, policy: Policy) -> None:
    """Raise where the study was begun with other settings; asks the storage until that is sure."""
    if ledger_of(study).agreed is policy:
        return
    if keys.is_new(study):
        forget_ledger_of(study)
    ledger = synced_ledger_of(study)
    keys.check_settings(study, policy.sizes, is_begun=ledger.is_begun)
    ledger.agreed = policy if ledger.is_begun else None


def _is_early(ledger: Ledger, policy: Policy, run: Run, state: TrialState) -> bool:
    """Return whether the objective returned although its learner has not seen all the data."""
    if state != TrialState.COMPLETE:
        return False
    return run.learner is None or ledger.curves[run.learner].size < policy.sizes[-1]


def _reject(
    study: optuna.Study,
    ledger: Ledger,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    values: Sequence[float] | None,
) -> None:
    """Refuse a value returned early.

    Optuna will store the trial as COMPLETE whatever is raised here; that it stores this very list
    is used to keep the value from being the study's best.
    """
    seen = 0 if run.learner is None else ledger.curves[run.learner].size
    failed_at = next_size(policy.sizes, seen) or 0
    error = f"returned after {seen:,} examples"
    keys.write_failure(study, trial._trial_id, Failure(failed_at, error))
    if isinstance(values, list):
        values[:] = [-ledger.sign * float("inf")]
    raise ValueError(
        f"An objective must return only when `training_sizes(trial)` is at an end, but trial "
        f"{trial.number} returned after {seen:,} of {policy.sizes[-1]:,} examples. Train on every "
        "size that is handed out, `report` it, and let `optuna.TrialPruned` pass."
    )


def _close(
    study: optuna.Study,
    ledger: Ledger,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    state: TrialState,
    decision: Decision,
) -> None:
    """Store how a run ended: whether it failed, and what users should see of it."""
    assert run.learner is not None
    curve = ledger.curves[run.learner]
    full_size = policy.sizes[-1]
    made_nothing = curve.size <= run.inherited or is_done(curve, full_size)
    gave_up = state == TrialState.PRUNED and made_nothing
    error = error_of_run() if gave_up or state == TrialState.FAIL else None
    if gave_up or (state == TrialState.FAIL and not isinstance(error, KeyboardInterrupt)):
        failed_at = next_size(policy.sizes, curve.size) or full_size
        keys.write_failure(study, trial._trial_id, Failure(failed_at, told(error)))
        curve = synced_ledger_of(study).curves[run.learner]
    if curve.dropped and run.learner not in ledger.drops:  # it failed, no policy has dropped it
        _logger.warning("Learner %d is dropped: %s.", run.learner, curve.dropped)
    attrs: dict[str, Any] = {
        "training_size": curve.size,
        "reason": verdict(ledger, policy, run.learner, decision),
    }
    upper = ledger.sign * policy.interval(curve, ledger.curves).upper
    if math.isfinite(upper):
        attrs["bound"] = upper
    for name, value in attrs.items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)
