"""The sampler: new learners come from a base sampler, suspended ones come back."""

from __future__ import annotations

import copy
import logging
import math
import secrets
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import nullcontext
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_n_learners
from optuna_daub.core.checks import checked_seed
from optuna_daub.core.checks import number
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.proposals import AroundBest
from optuna_daub.core.proposals import LikeRecent
from optuna_daub.study import ending
from optuna_daub.study import host
from optuna_daub.study import liveness
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study import starting
from optuna_daub.study import storages
from optuna_daub.study.base_sampler_view import view_of
from optuna_daub.study.claims import Asking
from optuna_daub.study.claims import TakenError
from optuna_daub.study.earlier import Earlier
from optuna_daub.study.earlier import FromEarlier
from optuna_daub.study.exploring import Exploring
from optuna_daub.study.limits import limits_seen
from optuna_daub.study.model_sampler import ModelSampler
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.pruner import name_of
from optuna_daub.study.setup_errors import raise_anew
from optuna_daub.study.spaces import stored
from optuna_daub.study.turns import Assigned
from optuna_daub.study.waiting import assign
from optuna_daub.study.worker import worker_of


_logger = logging.getLogger(__name__)


class DataAllocationSampler(BaseSampler):
    """Propose new learners, and resume suspended ones that the pruner chooses.

    Use it with `DAUBPruner`, `ABCPruner` or another `AllocationPruner`. A resumed learner keeps
    its parameters and inherits its curve. In an open pool, the default, the base sampler proposes
    as long as the study runs. With `n_learners` the study also stops by itself when the answer is
    known. With any other pruner this sampler acts like its base sampler alone.

    Args:
        base_sampler: any Optuna sampler. It sees one trial per learner, whose value is the score
            on all the data or the forecast of it (with the rules of the papers the last score); in
            an open pool the default rule subtracts the cost of a training on all the data.
            Default: the package's forecast model; it proposes the point with the largest
            expected improvement per second.
        n_learners: number of learners to choose among, at least 1; enqueued trials count. None
            (the default): no limit. There are fewer if the base sampler runs out of proposals
            (Grid, BruteForce). With several workers pass at most the number of points.
        seconds: limit of each `study.optimize` call in seconds, above 0; a shorter `timeout`
            counts instead. Once an open pool has a learner trained on all the data, the default
            rule starts no training that may end too late; with `cost="examples"` it starts no
            new run once they are over. None (the default): the `timeout`, if any.
        stale_after: seconds without a report after which a run counts as dead, more than the
            longest training takes. None (the default): 3,600 behind a gRPC proxy. Elsewhere
            only a storage with heartbeat then declares workers of other machines dead.
        seed: seed of the default base sampler, from 0 to 2**32 - 1. None (the default): a random
            one.
        earlier: studies of this search space on other or older data, with the same direction.
            The first new learners take the parameters of their best learners, five at most, cheap
            ones first, if they are in the ranges of this study. Scores are not used. Default:
            none.

    Raises:
        ValueError: if an argument breaks its rule, or a study in `earlier` has no learner that was
            trained on all its data.

    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=40)
    """

    def __init__(
        self,
        base_sampler: BaseSampler | None = None,
        *,
        n_learners: int | None = None,
        seconds: float | None = None,
        stale_after: float | None = None,
        seed: int | None = None,
        earlier: Sequence[optuna.Study] = (),
    ) -> None:
        is_sampler = isinstance(base_sampler, BaseSampler | None)
        if not is_sampler or isinstance(base_sampler, DataAllocationSampler):
            raise ValueError(
                "`base_sampler` must be a sampler of Optuna other than this one, such as "
                f"`optuna.samplers.TPESampler(seed=0)`, but got {brief(base_sampler)}."
            )
        self._n_learners = checked_n_learners(n_learners)
        for name, value in (("seconds", seconds), ("stale_after", stale_after)):
            if value is not None and not 0 < number(name, value) < math.inf:
                raise ValueError(f"`{name}` must be greater than 0 and finite, but got {value}.")
        if seed is not None:
            seed = checked_seed(seed)
            if base_sampler is not None:
                raise ValueError(
                    "`seed` seeds the default base sampler, but got another one. Seed that one, "
                    f"as in `optuna.samplers.TPESampler(seed={seed})`."
                )
        self._seed = secrets.randbelow(2**32) if seed is None else seed
        self._proposes = base_sampler is None
        self._base_sampler = base_sampler or optuna.samplers.RandomSampler(seed=seed)
        self._seconds = seconds
        self._stale_after = stale_after
        self._earlier = Earlier.of(earlier)
        self._has_warned = False

    @property
    def n_learners(self) -> int | None:
        """Number of learners to choose among; None for no limit."""
        return self._n_learners

    @property
    def seconds(self) -> float | None:
        """Seconds that each `study.optimize` may take; None if not given."""
        return self._seconds

    def reseed_rng(self) -> None:
        """Reseed the base sampler (Optuna calls this for each thread of `n_jobs`)."""
        self._base_sampler.reseed_rng()

    @host.one_blas_thread()
    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Assign a learner to the trial; wait for one if necessary.

        Raises:
            ValueError: if the policy needs `n_learners` and the sampler was given none, the
                study was started with other sizes or another direction, or its sampler is a
                `PartialFixedSampler` around this one.
            NotImplementedError: if the study has several objectives.
            RuntimeError: if the learners are held by trials that this thread got from
                `study.ask` and has not passed to `study.tell`.
        """
        policy = self._policy_of(study)
        if policy is None:
            self._base_sampler.before_trial(study, trial)
            return
        explores, number = False, trial.number
        with starting.failing(study, trial):
            worker = worker_of(study)
            patience = liveness.patience_with(study, self._stale_after)
            asking = Asking(study, worker, trial, policy, self._n_learners, patience)
            starting.check(asking)
            self._earlier.check(study)
            liveness.release_left_behind(study, worker)
            worker.horizon = starting.horizon(study, worker, self._seconds)
            if worker.limits == UNLIMITED:
                worker.limits = limits_seen(study, worker)
            # In one assignment, since other threads read it.
            worker.proposer = (
                AroundBest(policy.sizes[-1], self._seed, policy.terms.forecaster)
                if self._proposes
                else LikeRecent()
            )
            asked = host.trial_of_caller()
            try:
                # This may wait as long as a training of others. Without heartbeats meanwhile the
                # trial would lose its learner.
                with log.beating(study, trial):
                    run = assign(asking)
                    if starting.is_new(worker, trial, run):
                        view = view_of(study, policy)
                        view._thread_local.cached_all_trials = None  # from the last trial
                        self._base_sampler.before_trial(view, trial)
                if self._n_learners is not None:
                    host.show_progress(worker.known.to_come(number) or 0)
                # Another `optimize` has another time limit, so what was too late before may now be
                # in time.
                if (begin := host.begin(study)) != worker.begin[0]:
                    worker.begin = begin, number
                # After repeats a new learner avoids known points, unless its point was enqueued or
                # is GridSampler's, which marks it in `before_trial` above.
                if run.learner == number and worker.known.repeats:
                    explores = not records.is_chosen(log.as_stored(study, trial))
            except (TakenError, host.FinishedTrialError) as error:
                # Another worker has this same trial, or this worker was declared dead meanwhile.
                is_theirs = isinstance(error, TakenError) or log.is_over(study, trial)
                if asked is None or not is_theirs:
                    raise
                run = liveness.come_back(study, asked)
                trial = asked._cached_frozen_trial
        # Once more, since this is another trial if others had taken the first one.
        with starting.failing(study, trial):
            with worker.lock:  # so a second thread takes another point
                point = self._earlier.next_point(study, worker, trial, run)
                worker.assigned[trial.number] = Assigned(run, explores, point)
                worker.first = min(worker.first, trial.number)
            if run.learner is None:
                starting.stop_if_over(asking, trial.number)

    @host.one_blas_thread()
    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the base sampler's space for a new learner.

        It is empty for a resumed one, whose parameters `sample_independent` returns one by one.
        """
        own = _own(study, trial)
        if own is not None and own.run.learner != trial.number:
            return {}
        with self._proposing(study, trial, own) as (proposer, view):
            return proposer.infer_relative_search_space(view, trial)

    @host.one_blas_thread()
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the base sampler's proposal for a new learner; nothing for a resumed one.

        Raises:
            optuna.TrialPruned: if the objective of an idle trial asks for parameters.
        """
        own = _own(study, trial)
        if own is None or own.run.learner == trial.number:
            with self._proposing(study, trial, own) as (proposer, view):
                return proposer.sample_relative(view, trial, search_space)
        if own.run.learner is None and host.is_optimizing(study):
            asked = host.trial_of_caller()
            if asked is not None and log.is_failed(study, asked):
                liveness.come_back(study, asked)
            raise optuna.TrialPruned(own.run.reason)
        return {}

    @host.one_blas_thread()
    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the base sampler's value for a new learner, and a resumed one's own.

        If a resumed learner lacks the parameter, the base sampler proposes a value.

        Raises:
            optuna.TrialPruned: if other workers have taken over the trial.
        """
        own, row = _own(study, trial), trial
        learner = trial.number if own is None else own.run.learner
        if learner not in (None, trial.number):
            params = worker_of(study).known.learners[learner].params
            if param_name in params:  # also enqueued, or out of its distribution
                kept = params[param_name]
                starting.warn_of_range(learner, param_name, kept, param_distribution)
                # A storage returns "a" for the choice `Kind.A`.
                is_choice = isinstance(param_distribution, CategoricalDistribution)
                return stored(kept, param_distribution) if is_choice else kept
        with self._proposing(study, trial, own) as (proposer, view):
            if learner not in (None, trial.number):
                rows = view.get_trials(deepcopy=False)
                row = copy.copy(next((row for row in rows if row.number == learner), trial))
                row.params = {**row.params, **trial.params}  # suggested by this run a moment ago
                row.distributions = {**row.distributions, **trial.distributions}
            return proposer.sample_independent(view, row, param_name, param_distribution)

    @host.one_blas_thread()
    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store how the run ended, and stop the study if the answer is known."""
        with host.passing_interrupts(study):
            policy = self._policy_of(study)
            if policy is None:
                self._base_sampler.after_trial(study, trial, state, values)
                raise_anew(host.error_of_run())
                return
            storages.end_interrupted(study, host.error_of_run())

            def learn(is_new: bool) -> bool:
                view, base = view_of(study, policy), self._base_sampler
                if is_new:
                    base.after_trial(view, trial, state, values)
                    return view.is_stopped
                while (within := getattr(base, "_base_sampler", None)) is not None:
                    base = within
                if (constraints := getattr(base, "_constraints_func", None)) is not None:
                    # Measured after each run: a model that is small enough after a few rows may be
                    # too large after all.
                    _process_constraints_after_trial(constraints, view, trial, state)
                return False

            try:
                # Optuna's own heartbeats stop earlier. If others have failed the trial meanwhile,
                # they have stored how it ended.
                with log.beating(study, trial), log.unless_over(study, trial):
                    ending.close(study, trial, policy, state, values, learn)
            except BaseException as error:  # Optuna stores the end of the trial in any case
                storages.end_interrupted(study, error)
                raise
            # Others may declare this worker dead while it stores the end of the run. Optuna would
            # then raise an error out of `study.optimize`, so a new trial takes the rest.
            if log.is_failed(study, trial):
                liveness.come_back(study, trial)
                if state == TrialState.COMPLETE:
                    ending.take_back(worker_of(study), values)
            raise_anew(host.error_of_run())

    @contextmanager
    def _proposing(
        self, study: optuna.Study, trial: FrozenTrial, own: Assigned | None
    ) -> Iterator[tuple[BaseSampler, optuna.Study]]:
        """Yield the base sampler or a wrapper of it, and its view of the study.

        The trial is kept alive meanwhile.

        Raises:
            optuna.TrialPruned: in an objective that asks for parameters of a trial that is over.
        """
        policy, proposer = self._policy_of(study), self._base_sampler
        if own is None or policy is None:  # no run of ours: act like the base sampler alone
            yield proposer, study
            return
        starting.check_held(study, trial)
        worker = worker_of(study)
        # Optuna before 4.6 asks for the space within `study.ask`, which fails no trial.
        in_ask = starting.failing(study, trial) if host.is_asking() else nullcontext()
        with in_ask, log.beating(study, trial):
            if own.point is not None:
                proposer = FromEarlier(proposer, own.point, worker)
            elif own.explores:
                proposer = Exploring(proposer, worker.known)
            elif self._proposes:
                pool, space = worker.pool(policy, trial.number, proposes=True), worker.known.drawn
                proposer = ModelSampler(proposer, pool, policy, {**space}, self._seed)
            yield proposer, view_of(study, policy)
        starting.check_held(study, trial)

    def _policy_of(self, study: optuna.Study) -> Policy | None:
        if isinstance(study.pruner, AllocationPruner):
            return study.pruner.policy
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "DataAllocationSampler suspends and resumes learners only together with a pruner "
                "of optuna_daub, but the study's pruner is %s.",
                name_of(study.pruner),
            )
        return None


def _own(study: optuna.Study, trial: FrozenTrial) -> Assigned | None:
    """Return what is remembered of a trial.

    None with another library's pruner, or if this study object did not start the trial.
    """
    if not isinstance(study.pruner, AllocationPruner):
        return None
    return worker_of(study).assigned.get(trial.number)
