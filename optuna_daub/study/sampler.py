"""The sampler: new learners come from a base sampler, suspended ones come back."""

from __future__ import annotations

import logging
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
from optuna_daub.study.keys import Run
from optuna_daub.study.ledger import Ledger
from optuna_daub.study.ledger import ledger_of
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.pruners import AllocationPruner
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
        n_learners: how many learners to choose among, at least 1; enqueued trials count.
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
            self._dealt[trial._trial_id] = run, view
            if run.learner == trial.number:
                self._base_sampler.before_trial(view, trial)
        if run.learner is None:
            _stop(study)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the base sampler's space for a new learner, a resumed one's own otherwise."""
        run, view = self._dealt.get(trial._trial_id, (None, study))
        if run is None or run.learner == trial.number:
            return self._base_sampler.infer_relative_search_space(view, trial)
        if run.learner is not None:
            return self._first_run(study, run.learner).distributions
        if _is_optimizing(study):
            raise optuna.TrialPruned(run.reason)
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the base sampler's proposal for a new learner, a resumed one's parameters."""
        run, view = self._dealt.get(trial._trial_id, (None, study))
        if run is None or run.learner == trial.number:
            return self._base_sampler.sample_relative(view, trial, search_space)
        return {} if run.learner is None else self._first_run(study, run.learner).params

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the base sampler's value; a resumed learner needs one only for new parameters."""
        _, view = self._dealt.get(trial._trial_id, (None, study))
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
        run, view = self._dealt.pop(trial._trial_id, (None, OneRowPerLearner(study)))
        run = run or keys.read_run(trial.system_attrs)
        if run is None:
            return
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

    def _first_run(self, study: optuna.Study, learner: int) -> FrozenTrial:
        return study._storage.get_trial(ledger_of(study).first_runs[learner])


@contextmanager
def _failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Leave no running trial behind where dealing it a learner raises: Optuna would."""
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        raise


def _is_optimizing(study: optuna.Study) -> bool:
    """Return whether the calling thread is in `study.optimize`, not in ask-and-tell."""
    return bool(study._thread_local.in_optimize_loop)


def _stop(study: optuna.Study) -> None:
    if _is_optimizing(study):
        study.stop()


def _agree(study: optuna.Study, policy: Policy) -> None:
    """Raise where the study was begun with other settings; asks the storage until that is sure."""
    ledger = ledger_of(study)
    if ledger.agreed is not policy:
        ledger.sync(study._storage)
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
    keys.write_failure(study, trial._trial_id, next_size(policy.sizes, seen) or 0)
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
    gave_up = state == TrialState.PRUNED and curve.size <= run.inherited
    if state == TrialState.FAIL or gave_up:
        failed_at = next_size(policy.sizes, curve.size) or curve.size
        keys.write_failure(study, trial._trial_id, failed_at)
        return
    attrs: dict[str, Any] = {
        "training_size": curve.size,
        "reason": verdict(ledger, policy, run.learner, decision),
    }
    upper = ledger.sign * policy.interval(curve, ledger.curves).upper
    if abs(upper) != float("inf"):
        attrs["bound"] = upper
    for name, value in attrs.items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)
