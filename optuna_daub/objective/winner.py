"""The winner of a study, to be fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.trial import TrialState

from optuna_daub.core.checks import brief
from optuna_daub.study import allocations
from optuna_daub.study import best_learner
from optuna_daub.study import learning_curves
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.stored_policy import policy_of


def winner_of(study: optuna.Study) -> tuple[dict[str, Any], int]:
    """Return the parameters and the number of the trial to fit again."""
    try:
        policy = policy_of(study)
    except ValueError:  # of a study that another library's pruner has allocated
        policy = None
    curves = learning_curves(study) if policy else []
    # A COMPLETE trial is not enough: the objective may have returned early, or the learner may
    # violate a constraint.
    if not curves and study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return study.best_params, study.best_trial.number
    is_scored = any(trial.intermediate_values for trial in study.get_trials(deepcopy=False))
    leader = best_learner(study) if is_scored else None
    if leader is None:
        raise _nothing_to_fit(study, curves, is_scored=is_scored)
    full_size = policy_of(study).sizes[-1]
    if leader.size < full_size:
        is_any_full = any(curve.size == full_size for curve in curves)
        doubt = ", and another may turn out to be better. Continue with `study.optimize`"
        warnings.warn(
            f"{'The leader has not' if is_any_full else 'No learner has'} been trained on all "
            f"{full_size:,} examples yet. Learner {leader.learner}, which leads with "
            f"{leader.score:.4g} at {leader.size:,} examples, is fitted: its score on all of "
            f"them is not known{'' if leader.is_final else doubt}.",
            UserWarning,
            stacklevel=3,
        )
    # `build` may use the trial's number, so return that of the run with this score.
    of_leader = (each for each in allocations(study) if each.learner == leader.learner)
    return dict(leader.params), [*of_leader][-1].trial


def _nothing_to_fit(
    study: optuna.Study, curves: Sequence[LearnerCurve], *, is_scored: bool
) -> ValueError:
    """Return the error for a study without a learner that could be fitted again."""
    name = brief(study.study_name)
    if curves and (is_scored or all(curve.state == "dropped" for curve in curves)):
        reasons = "; ".join({curve.reason: None for curve in curves})
        return ValueError(
            "A learner must be left to be fitted again, but all those of study "
            f"{name} were dropped: {reasons}."
        )
    return ValueError(
        "A learner must have been trained to be fitted again, but no trial of study "
        f"{name} has a score yet. Continue it with `study.optimize`."
    )
