"""The sampler: new learners come from a base sampler, suspended ones come back."""

from __future__ import annotations

import copy
import logging
import math
import threading
import time
import weakref
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import nullcontext
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import BaseSampler
from optuna.samplers import PartialFixedSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number
from optuna_daub.core.decision import Finish
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.sizes import next_size
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import storage as stored
from optuna_daub.study.assignment import assign
from optuna_daub.study.assignment import give_way_to_twin
from optuna_daub.study.base_sampler_view import BaseSamplerStudy
from optuna_daub.study.failures import message_of
from optuna_daub.study.interrupts import end_interrupted
from optuna_daub.study.messages import status
from optuna_daub.study.points import is_short
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.state import State
from optuna_daub.study.state import state_of
from optuna_daub.study.state import synced_state_of
from optuna_daub.study.storage import Failure
from optuna_daub.study.storage import Run


MANY_FAILURES = 5
"""Learners that fail one after another at one worker, after which its name is in the log."""

MOST_DECLINED = 100
"""Newcomers in a row that a policy may decline. Then the study ends: a base sampler that proposes
nothing that would be in time is to do so no longer."""

MOST_LEARNERS = 10**9
"""Of a closed pool: the number of a trial is a 32-bit integer in Optuna's databases."""

_logger = logging.getLogger(__name__)


def checked_n_learners(n_learners: object) -> int:
    """Return a number of learners.

    >>> checked_n_learners(40)
    40

    Raises:
        ValueError: where it is none, or more than can ever be begun.
    """
    count = whole_number("n_learners", n_learners)
    if count < 1:
        raise ValueError(f"`n_learners` must be at least 1, but got {count}.")
    if count > MOST_LEARNERS:
        raise ValueError(f"`n_learners` must be at most {MOST_LEARNERS:,}, but got {count}.")
    return count


@dataclass(frozen=True)
class _Assigned:
    """A trial of this process that runs a learner, or is idle."""

    run: Run
    thread: int
    """The thread that began it (`threading.get_ident`)."""
    is_optimizing: bool
    """Whether it is in `study.optimize`, where a thread has one trial at a time."""
    since: float
    """When it was known to be this process's own for the last time (`time.monotonic`)."""
    explores: bool
    """Whether it is a newcomer in the stead of one that the base sampler would repeat."""


class DataAllocationSampler(BaseSampler):
    """Propose new learners and resume suspended ones, as the policy of the study's pruner says.

    The other half of `DAUBPruner` and its like. A resumed learner keeps its parameters and
    inherits its curve. In an open pool, the default, the base sampler proposes for as long as the
    study runs; with `n_learners` the study also stops by itself when the answer is known. With a
    pruner of another library this sampler is its base sampler and nothing more.

    Args:
        base_sampler: any Optuna sampler; it sees one trial per learner, whose value is its score
            on all the data or the forecast of it. In an open pool the default rule takes off what
            training on all the data costs, at the score per second that the search gains, so
            that dear learners are proposed where they are worth it. Default: TPESampler().
        n_learners: how many learners to choose among, at least 1; enqueued trials count. None
            (the default): no limit. Where the base sampler runs out of proposals (Grid,
            BruteForce) there are fewer; with several workers let it then be the size of the
            space, or the last proposals may come twice.
        seconds: how long each `study.optimize` may take, above 0: the default rule then begins
            nothing that would not be through in time, but for the first full training. None (the
            default): the `timeout` of `study.optimize`, if it has one.
        stale_after: seconds without a report after which a run counts as dead and its learner is
            free again; None (the default) waits, except for processes of this machine, which are
            known to be dead at once. Give more than the longest training takes.

    Raises:
        ValueError: where an argument breaks its rule; at the first trial, where the policy needs
            `n_learners`.

    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=40)
    """

    def __init__(
        self,
        base_sampler: BaseSampler | None = None,
        *,
        n_learners: int | None = None,
        seconds: float | None = None,
        stale_after: float | None = None,
    ) -> None:
        if base_sampler is not None and not isinstance(base_sampler, BaseSampler):
            raise ValueError(
                "`base_sampler` must be a sampler of Optuna, such as "
                f"`optuna.samplers.TPESampler(seed=0)`, but got {base_sampler!r}."
            )
        if n_learners is not None:
            n_learners = checked_n_learners(n_learners)
        for name, value in (("seconds", seconds), ("stale_after", stale_after)):
            if value is not None and not 0 < number(name, value) < math.inf:
                raise ValueError(f"`{name}` must be greater than 0 and finite, but got {value}.")
        self._base_sampler = base_sampler or optuna.samplers.TPESampler()
        self._n_learners = n_learners
        self._seconds = seconds
        self._stale_after = stale_after
        # By study: storages hand out the same trial ids, and so does one whose study was deleted.
        self._assigned: weakref.WeakKeyDictionary[optuna.Study, dict[int, _Assigned]] = (
            weakref.WeakKeyDictionary()
        )
        self._views: weakref.WeakKeyDictionary[optuna.Study, BaseSamplerStudy] = (
            weakref.WeakKeyDictionary()
        )
        self._has_warned = False
        self._has_warned_of_proxy = False
        self._failed_here: frozenset[int] = frozenset()

    @property
    def n_learners(self) -> int | None:
        """How many learners to choose among; None for no limit."""
        return self._n_learners

    @property
    def seconds(self) -> float | None:
        """How long each `study.optimize` may take; None where it was not said."""
        return self._seconds

    def __getstate__(self) -> dict[str, Any]:
        """Leave what belongs to this process to this process."""
        return {name: value for name, value in vars(self).items() if name not in _OF_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with nothing assigned."""
        vars(self).update(state, **{name: weakref.WeakKeyDictionary() for name in _OF_PROCESS})

    def reseed_rng(self) -> None:
        """Reseed the base sampler (Optuna calls this for each thread of `n_jobs`)."""
        self._base_sampler.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Assign the trial a learner, waiting for one if need be.

        Raises:
            ValueError: where the policy needs `n_learners` and the sampler was given none, the
                study was begun with other sizes or another direction, or its sampler is a
                `PartialFixedSampler` around this one.
            NotImplementedError: where the study has several objectives.
            RuntimeError: where the learners are held by trials that this thread has asked for and
                not told.
        """
        policy = self._policy_of(study)
        if policy is None:
            self._base_sampler.before_trial(study, trial)
            return
        explores = False
        with _failing(study, trial):
            self._check(study, policy)
            self._release_left_behind(study)
            state = state_of(study)
            state.here.horizon = self._horizon(study, state)
            asked = host.trial_of_caller()
            try:
                with liveness.thinking(study, trial):
                    run = assign(
                        study,
                        trial,
                        policy,
                        self._n_learners,
                        self._patience_with(study),
                        lambda known: self._check_can_wait(study, known, trial),
                    )
                    # A worker may have died before the base sampler had its say on a newcomer.
                    is_new = run.learner == trial.number
                    if run.learner is not None and not run.inherited:
                        is_new = is_new or not state.learners[run.learner].params
                    if is_new:
                        self._base_sampler.before_trial(self._fresh_view(study), trial)
                # Another `optimize` has other seconds: what was too late may be in time.
                if (begin := host.begin(study)) != state.here.begin:
                    state.here.begin, state.here.n_declined = begin, 0
                if run.learner == trial.number and state.has_repeated:
                    as_it_is = study._storage.get_trial(trial._trial_id)
                    # GridSampler has marked the point that it proposes by now.
                    is_taken = stored.enqueued_params(as_it_is) or stored.marks_of_others(as_it_is)
                    explores = not is_taken
            except host.FinishedTrialError:
                if asked is None or not liveness.is_over(study, trial):
                    raise
                run = liveness.come_back(study, asked)
                trial = asked._cached_frozen_trial
        self._assigned_of(study)[trial._trial_id] = _Assigned(
            run, threading.get_ident(), host.is_optimizing(study), time.monotonic(), explores
        )
        if run.learner is None:
            is_over = state.here.horizon is not None and time.monotonic() >= state.here.horizon
            is_finished = isinstance(state.decide(policy), Finish)
            is_asked_for_more = self._n_learners is not None and not _has_just_ended(study)
            if is_finished and is_asked_for_more and [*state.unfinished] == [trial.number]:
                _logger.warning(
                    "Study '%s' has come to its end, so trial %d is empty: Optuna begins a trial "
                    "before it asks the sampler. Raise `n_learners`, or enqueue trials, to go on.",
                    study.study_name,
                    trial.number,
                )
            if is_over or is_finished:
                host.stop(study)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the base sampler's space for a new learner, a resumed one's own otherwise."""
        run = self._run_of(study, trial)
        if run is None:
            return self._base_sampler.infer_relative_search_space(study, trial)
        if run.learner == trial.number:
            in_ask = _failing(study, trial) if host.is_asking() else nullcontext()  # Optuna < 4.6
            with in_ask, self._proposing(study, trial):
                return self._base_sampler.infer_relative_search_space(self._view(study), trial)
        return (
            {} if run.learner is None else {**state_of(study).learners[run.learner].distributions}
        )

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the base sampler's proposal for a new learner, a resumed one's parameters.

        Raises:
            optuna.TrialPruned: for an idle trial, out of the objective that asks for parameters.
        """
        run = self._run_of(study, trial)
        if run is None:
            return self._base_sampler.sample_relative(study, trial, search_space)
        if run.learner == trial.number:
            with self._proposing(study, trial):
                proposed = self._base_sampler.sample_relative(
                    self._view(study), trial, search_space
                )
            if self._explores(study, trial):  # but for what takes any value
                return {n: v for n, v in proposed.items() if not is_short(search_space[n])}
            return proposed
        if run.learner is not None:
            params = state_of(study).learners[run.learner].params
            return {name: params[name] for name in search_space}
        if host.is_optimizing(study):
            asked = host.trial_of_caller()
            if asked is not None and liveness.is_failed(study, asked):
                liveness.come_back(study, asked)
            raise optuna.TrialPruned(run.reason)
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the base sampler's value, to a resumed learner its own.

        Where a resumed one has none, it is what the base sampler would have given it.

        Raises:
            optuna.TrialPruned: where the base sampler has nothing left to propose.
        """
        run = self._run_of(study, trial)
        if run is None:
            return self._base_sampler.sample_independent(
                study, trial, param_name, param_distribution
            )
        view, row = self._view(study), trial
        if run.learner not in (None, trial.number):
            params = state_of(study).learners[run.learner].params
            if param_name in params:  # enqueued, or out of its distribution
                kept = params[param_name]
                is_number = isinstance(param_distribution, FloatDistribution | IntDistribution)
                if is_number and not param_distribution._contains(
                    param_distribution.to_internal_repr(kept)
                ):
                    _logger.warning(
                        "Learner %d goes on with %s = %s, which is not in the %s that is "
                        "suggested now: a learner keeps its parameters. To leave it out, raise "
                        "`optuna.TrialPruned` in the objective before it is trained.",
                        run.learner,
                        param_name,
                        kept,
                        param_distribution,
                    )
                return kept
            rows = view.get_trials(deepcopy=False)
            row = copy.copy(next((row for row in rows if row.number == run.learner), trial))
            row.params = {**row.params, **trial.params}  # what this run has just suggested
            row.distributions = {**row.distributions, **trial.distributions}
        elif self._explores(study, trial):
            for value in state_of(study).unexplored(trial, param_name, param_distribution):
                return value
        with self._proposing(study, trial):
            return self._base_sampler.sample_independent(view, row, param_name, param_distribution)

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
        end_interrupted(study, host.error_of_run())
        try:
            with liveness.thinking(study, trial):  # Optuna's own heartbeats end before
                self._end(study, trial, policy, state, values)
        except host.FinishedTrialError:
            if not liveness.is_over(study, trial):
                raise
        except BaseException as error:
            end_interrupted(study, error)  # Optuna stores how the trial ended all the same
            raise
        # Others may take this worker for dead while it tells how the run ended. Optuna then raises
        # out of `study.optimize`, unless another trial takes what it stores next.
        if liveness.is_failed(study, trial):
            liveness.come_back(study, trial)
            if state == TrialState.COMPLETE:
                _take_back(state_of(study), values)

    def _end(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        policy: Policy,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        assigned = self._assigned_of(study).pop(trial._trial_id, None)
        # Where the objective asks `trial.should_prune` itself, it does not ask for another size.
        # In ask-and-tell, what passed until it was told may be anything.
        handed_out = state_of(study).here.handed_out.get(trial.number)
        if handed_out is not None and host.is_optimizing(study):
            stored.write_seconds(study, trial, *handed_out)
        known = synced_state_of(study)
        run = known.runs.get(trial.number) or (assigned.run if assigned else None)
        if run is None:
            return
        is_given_up = known.is_given_up(trial.number)
        if state == TrialState.PRUNED and not is_given_up:
            run = give_way_to_twin(study, trial, run)
        if run.learner == trial.number:
            view = self._view(study)
            self._base_sampler.after_trial(view, trial, state, values)
            if view.is_stopped:
                stored.write_exhaustion(study, trial._trial_id)
            known.sync()
        is_new = assigned is not None and assigned.explores and run.learner == trial.number
        if (is_new or run.repeats is not None) and known.is_explored():
            stored.write_exhaustion(study, trial._trial_id)
            known.sync()
        with known.lock:
            if is_given_up:
                stored.write_summary(study, trial._trial_id, {"reason": liveness.GIVEN_UP})
                if state == TrialState.COMPLETE and trial.last_step != policy.sizes[-1]:
                    _take_back(known, values)
            elif run.learner is not None:
                _close(study, known, trial, run, policy, state, values)
                self._watch(run, state)
            else:
                stored.write_summary(study, trial._trial_id, {"reason": run.reason})
                if state == TrialState.COMPLETE:
                    _take_back(known, values)
            decision = known.decide(policy, trial.number)
        is_over = known.here.horizon is not None and time.monotonic() >= known.here.horizon
        if isinstance(decision, Finish) or is_over or known.here.n_declined >= MOST_DECLINED:
            host.stop(study)

    def _check(self, study: optuna.Study, policy: Policy) -> None:
        """Raise where the study, the pruner and this sampler do not fit together."""
        state = state_of(study)
        if isinstance(study.sampler, PartialFixedSampler):
            raise ValueError(
                "`PartialFixedSampler` must be the base sampler of DataAllocationSampler, not the "
                "other way round, as a learner that is resumed keeps its parameters: pass "
                "`sampler=DataAllocationSampler(PartialFixedSampler(fixed_params, base_sampler))`."
            )
        if self._n_learners is None and policy.needs.closed_pool:
            raise ValueError(
                f"{type(study.pruner).__name__} with {type(policy).__name__} compares a known "
                "number of learners, but `n_learners` is None: pass `n_learners=...` to "
                "DataAllocationSampler, or take `DAUBPruner(max_resource=...)` for an open search."
            )
        if state.here.agreed is not policy:  # asks the storage until that is sure
            state.sync()
            stored.check_settings(study, policy.sizes, is_begun=state.is_begun)
            state.here.agreed = policy if state.is_begun else None

    def _release_left_behind(self, study: optuna.Study) -> None:
        """Give up trials that threads of this process began and left: by `SystemExit`, say."""
        here = threading.get_ident()
        begun = self._assigned_of(study)
        for trial_id, assigned in [*begun.items()]:
            if not assigned.is_optimizing:
                continue  # what one thread has asked for may be told by any other
            is_left = assigned.thread == here or not liveness.is_thread_alive(assigned.thread)
            if is_left and begun.pop(trial_id, None) is not None:  # else another thread has it
                liveness.release_own(study, trial_id)

    def _check_can_wait(self, study: optuna.Study, state: State, trial: FrozenTrial) -> None:
        """Raise where a thread would wait for trials that it alone can end."""
        here = threading.get_ident()
        own = {
            i
            for i, assigned in [*self._assigned_of(study).items()]
            if assigned.thread == here or host.is_waiting_for_its_jobs(assigned.thread)
        }
        with state.lock:
            held = {
                n: other._trial_id
                for n, other in state.unfinished.items()
                if n != trial.number and other.state == TrialState.RUNNING
                if n not in state.runs or state.runs[n].learner is not None  # idle: waits like us
            }
        if held and own.issuperset(held.values()):
            raise RuntimeError(
                "Every learner that deserves data is held by trials that this thread has asked "
                f"for, but trials {[*held]} were not told: call `study.tell` for one of them "
                "before you ask for the next."
            )

    def _patience_with(self, study: optuna.Study) -> float | None:
        """Return after how many seconds of silence a run counts as dead, None for never."""
        patience = liveness.patience_with(study, self._stale_after)
        if patience != self._stale_after and not self._has_warned_of_proxy:
            self._has_warned_of_proxy = True
            _logger.warning(
                "A gRPC proxy passes no heartbeat on: a run counts as dead once it was silent for "
                "%.0f s. Pass `stale_after=` to DataAllocationSampler for another time.",
                patience,
            )
        return patience

    @contextmanager
    def _proposing(self, study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
        """Let the base sampler propose, and end a trial that was taken for dead meanwhile.

        Raises:
            optuna.TrialPruned: out of the objective that asks for parameters.
        """
        self._check_held(study, trial)
        with liveness.thinking(study, trial):
            yield
        self._check_held(study, trial)

    def _check_held(self, study: optuna.Study, trial: FrozenTrial) -> None:
        assigned = self._assigned_of(study).get(trial._trial_id)
        now = time.monotonic()
        if assigned is None or now - assigned.since < liveness.CHECKED_SECONDS:
            return
        self._assigned_of(study)[trial._trial_id] = replace(assigned, since=now)
        asked = host.trial_of_caller()
        state = synced_state_of(study)
        if asked is None or host.is_asking() or trial.number in state.runs:
            return
        if trial.number not in state.unfinished:
            liveness.come_back(study, asked)
        raise optuna.TrialPruned(liveness.GIVEN_UP)

    def _watch(self, run: Run, state: TrialState) -> None:
        """Name a worker at which everything fails: the learners may be as good as others."""
        if state != TrialState.FAIL or run.learner is None:
            self._failed_here = frozenset()
            return
        before, self._failed_here = self._failed_here, self._failed_here | {run.learner}
        if len(before) < MANY_FAILURES == len(self._failed_here):
            _logger.warning(
                "The last %d learners that worker %s trained have all failed. Look for the error "
                "above: where it is the machine's (memory, a missing package), stop this worker, "
                "and others will try these learners again.",
                MANY_FAILURES,
                liveness.this_worker(),
            )

    def _horizon(self, study: optuna.Study, state: State) -> float | None:
        """Return when the seconds of this `optimize` are over, by the monotonic clock."""
        if self._seconds is None:
            left = host.seconds_left(study)  # of the `timeout`
            return None if left is None else time.monotonic() + left
        elapsed = host.seconds_since_begin(study)
        if elapsed is None:  # ask-and-tell: from the first question on
            state.here.asked_since = state.here.asked_since or time.monotonic()
            return state.here.asked_since + self._seconds
        return time.monotonic() - elapsed + self._seconds

    def _assigned_of(self, study: optuna.Study) -> dict[int, _Assigned]:
        """Return the trials of a study that this process has begun and not ended, by id."""
        return self._assigned.setdefault(study, {})

    def _run_of(self, study: optuna.Study, trial: FrozenTrial) -> Run | None:
        assigned = self._assigned_of(study).get(trial._trial_id)
        return None if assigned is None else assigned.run

    def _explores(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        assigned = self._assigned_of(study).get(trial._trial_id)
        return assigned is not None and assigned.explores

    def _view(self, study: optuna.Study) -> BaseSamplerStudy:
        """Return the study as the base sampler sees it."""
        policy = self._policy_of(study)
        assert policy is not None
        view = self._views.get(study)
        if view is None or view.policy is not policy:  # the study was given another pruner
            view = self._views[study] = BaseSamplerStudy(study, state_of(study), policy)
        return view

    def _fresh_view(self, study: optuna.Study) -> BaseSamplerStudy:
        """Return the view for a new trial, with nothing kept from the last one."""
        view = self._view(study)
        view._thread_local.cached_all_trials = None
        return view

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


_OF_PROCESS = ("_assigned", "_views")


@contextmanager
def _failing(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Leave no running trial behind where assigning it a learner raises: Optuna would.

    An enqueued one that was assigned nothing yet goes back to the queue.
    """
    try:
        yield
    except BaseException as error:
        end_interrupted(study, error)
        as_it_is = study._storage.get_trial(trial._trial_id)
        state = TrialState.WAITING if stored.is_enqueued(as_it_is) else TrialState.FAIL
        with suppress(RuntimeError):
            study._storage.set_trial_state_values(trial._trial_id, state)
        raise


def _has_just_ended(study: optuna.Study) -> bool:
    """Return whether the thread's `study.optimize` has ended a trial, maybe in another thread."""
    begun = host.begin(study)
    if begun is None:
        return False
    ends = (trial.datetime_complete for trial in study.get_trials(deepcopy=False))
    return any(end is not None and end >= begun for end in ends)


def _close(
    study: optuna.Study,
    known: State,
    trial: FrozenTrial,
    run: Run,
    policy: Policy,
    state: TrialState,
    values: Sequence[float] | None,
) -> None:
    """Store how a run ended: whether it failed, and what users should see of it."""
    assert run.learner is not None
    full_size = policy.sizes[-1]
    curve = known.curve(run.learner)
    is_full = known.is_done(run.learner, full_size)
    worker = liveness.this_worker()
    # A run that has reported what it was handed out would have gone on to the next size at least.
    trained_on, _ = known.here.handed_out.get(trial.number, (run.size, 0.0))
    failed_at = max(trained_on, next_size(policy.sizes, curve.size) or full_size)
    failure: Failure | None = None
    cause = host.error_of_run()
    # The objective's own TrialPruned rejects the parameters: to ask again is no use.
    was_told = trial.number in known.here.told_to_end
    is_rejected = isinstance(cause, optuna.TrialPruned) and not was_told
    if state == TrialState.COMPLETE and not is_full:
        # The idiom for infeasible trials: a value returned before the sizes are at an end.
        error = f"the objective returned after {curve.size:,} of {full_size:,} examples"
        failure = Failure(failed_at, error, worker, True)
        _take_back(known, values)
    elif state == TrialState.FAIL or (
        state == TrialState.PRUNED and (is_full or is_rejected or curve.size <= run.inherited)
    ):
        # Its full-data score has no COMPLETE trial to stand in: the learner is to try again.
        if is_full:
            known.lose(run.learner, full_size)
            curve = known.curve(run.learner)
        if not isinstance(cause, KeyboardInterrupt):
            error = message_of(cause)
            if cause is None and host.is_optimizing(study):
                error = "the objective returned no number"  # which Optuna refuses
            failure = Failure(failed_at, error, worker, is_rejected)
    if failure is not None:
        stored.write_failure(study, trial._trial_id, failure)
        if failure.is_final:
            _logger.warning("Learner %d ends: %s.", run.learner, failure.error)
        known.fail(run.learner, trial.number, failure)
        curve = known.curve(run.learner)
    if curve.dropped and known.has_failed(run.learner):
        _logger.warning("Learner %d is dropped: %s.", run.learner, curve.dropped)
    stored.write_constraints(study, trial, known.learners[run.learner].constraints)
    pool, decision = known.answer(policy, trial.number)
    summary: dict[str, Any] = {
        "training_size": curve.size,
        "reason": status(policy, pool, known.sign, run.learner, decision),
    }
    upper = known.sign * policy.interval(pool, run.learner).upper
    if math.isfinite(upper):
        summary["bound"] = upper
    stored.write_summary(study, trial._trial_id, summary)


def _take_back(known: State, values: Sequence[float] | None) -> None:
    """Keep a value returned early from being the study's best.

    Optuna stores the trial as COMPLETE whatever is done here, and this very list as its values.
    """
    if isinstance(values, list):
        values[:] = [-known.sign * math.inf]
