"""A study with one trial per learner, for people and for Optuna's plots."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import optuna
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial

from optuna_daub.core.curve import Observation
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.pool import Cost
from optuna_daub.study import records
from optuna_daub.study.base_sampler_view import one_row_per_learner as merged_rows
from optuna_daub.study.limits import limits_seen
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import allocations
from optuna_daub.study.results import learning_curves
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


def one_row_per_learner(study: optuna.Study) -> optuna.Study:
    """Return a study in memory with one trial per learner.

    It suits Optuna's plots and tables. A learner that is suspended and resumed has several trials
    in the study, and only one trained on all the data is COMPLETE. Here each learner is one trial,
    in the order in which they started, so `optuna.visualization`, `optuna.importance` and
    `trials_dataframe()` compare learners:

    * parameters, constraints and user attributes are those set by all runs of the learner;
    * intermediate values are the whole learning curve;
    * the value is the score on all the data, or its forecast if that is not known yet. The user
      attribute `daub:forecast` tells which. The best trial here may be a forecast; ask
      `best_learner` for the best learner;
    * the state is COMPLETE if there is a value, RUNNING during the learner's first training, and
      FAIL if it was dropped for failing or its first training was interrupted;
    * the duration is the sum over all runs, as if each had started at the end of the one before;
    * `daub:learner`, `daub:state`, `daub:reason`, `daub:training_size`, `daub:examples`,
      `daub:seconds`, `daub:score` and `daub:bound` are further user attributes, if known.

    Finished trials that were added by `study.add_trial` stay as they are, but lose the
    attributes of this package if they were copied from another study.

    Args:
        study: running or ended; it is not changed.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study.

    >>> import optuna
    >>> from optuna.trial import TrialState
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         report(trial, n, skill - 10 / n, training_score=skill + 10 / n)
    ...     return skill - 10 / n
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=4)
    >>> study = optuna.create_study(
    ...     direction="maximize", sampler=sampler, pruner=DAUBPruner.paper(max_resource=2000)
    ... )
    >>> study.optimize(objective)
    >>> rows = one_row_per_learner(study)
    >>> len(study.trials), len(rows.trials), len(rows.get_trials(states=[TrialState.COMPLETE]))
    (5, 4, 4)
    >>> [trial.user_attrs["daub:forecast"] for trial in rows.trials]
    [True, False, True, True]
    """
    rows = learner_rows(study)
    storage = InMemoryStorage()
    study_id = storage.create_new_study(study.directions, learners_name(study))
    for name, value in study.user_attrs.items():
        storage.set_study_user_attr(study_id, name, value)
    if study.metric_names is not None:
        storage.set_study_system_attr(study_id, records.METRIC_NAMES, study.metric_names)
    for row in rows:
        storage.create_new_trial(study_id, row)  # `add_trial` refuses enqueued values out of range
    return optuna.Study(storage.get_study_name_from_id(study_id), storage)


def learners_name(study: optuna.Study) -> str:
    """Return the name of the study with one trial for each learner."""
    return f"{study.study_name} (learners)"


def learner_rows(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials of `one_row_per_learner`, numbered from 0 on.

    Args:
        study: running or ended; it is not changed.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study.
    """
    worker = looking(study)
    # Under this lock no other thread looks in between, so all is of the last look here.
    with worker.lock:
        # Read before the worker looks, so all of these trials are known then.
        trials = study.get_trials(deepcopy=False)
        made = allocations(study)
        curves = {curve.learner: curve for curve in learning_curves(study)}
        policy, known = policy_of(study), worker.known
        pool = worker.pool(policy, is_at_work=False)
    # Rules of closed pools may bound scores instead of forecasting them, as DAUB's paper does.
    of_rule = None if policy.needs.closed_pool else policy.forecasts(pool, policy.sizes[-1])
    forecasts = of_rule or Joint().forecasts(pool, policy.sizes[-1])
    cut = np.clip(forecasts.all.mean, *limits_seen(study, worker)).tolist()
    means = dict(zip(forecasts, cut, strict=True))
    spent: defaultdict[int, list[Observation]] = defaultdict(list)
    for training in made:
        spent[training.learner].append(training.observation)
    merged = merged_rows(trials, known, worker.sign, means)
    durations: dict[int, timedelta] = {}
    for trial in trials:
        run = records.read_run(trial)
        if run is None or run.learner is None or known.is_copy(trial.number, run):
            continue
        if trial.duration is not None:
            durations[run.learner] = durations.get(run.learner, timedelta()) + trial.duration
    rows: list[FrozenTrial] = []
    for shared in merged:
        row, curve = copy.copy(shared), curves.get(shared.number)
        if curve is None and not row.state.is_finished():
            continue  # still in the queue, started a moment ago, or declined
        if curve is None:
            row.user_attrs = records.noted(row)  # a copy's attributes are about another study
        else:
            row.system_attrs = {**known.learners[curve.learner].constraints}
            row.user_attrs |= summary(curve, policy.sizes[-1], spent[curve.learner])
            row.datetime_complete = None
            if row.state.is_finished() and row.datetime_start is not None:
                row.datetime_complete = row.datetime_start + durations.get(row.number, timedelta())
        row.number = len(rows)
        rows.append(row)
    return rows


def summary(
    curve: LearnerCurve, full_size: int, trainings: Sequence[Observation]
) -> dict[str, Any]:
    """Return the facts about a learner as user attributes of its trial.

    Args:
        curve: its learning curve.
        full_size: N.
        trainings: all its trainings, with those whose results were lost.
    """
    seconds = [seen.seconds for seen in trainings if seen.seconds is not None]
    facts = {
        "learner": curve.learner,
        "state": curve.state,
        "reason": curve.reason,
        "training_size": curve.size,
        "examples": sum(Cost.of(seen).examples for seen in trainings),
        "seconds": sum(seconds) if seconds else None,
        "score": curve.score,
        "bound": curve.bound,
        "forecast": curve.size < full_size if curve.observations else None,
    }
    return records.prefixed({name: fact for name, fact in facts.items() if fact is not None})
