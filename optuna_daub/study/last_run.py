"""The last run of `n_trials` in a closed pool."""

from __future__ import annotations

from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Propose
from optuna_daub.core.decision import Reason
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.study import host
from optuna_daub.study.known import Known


def of_few_trials(known: Known, policy: Policy, pool: Pool, number: int) -> Decision | None:
    """Return the decision to train on all the data in the last trial.

    So a study with few trials has a full-data model as well. None if there is a full-data score.
    In an open pool the rule itself does this (`Pool.runs_left`). The papers' rules go on as in the
    paper if there is a trial for each learner.

    Args:
        known: knowledge of the study.
        policy: the rule that allocates.
        pool: the pool as the trial's worker sees it.
        number: number of the trial, the last one that the thread's `study.optimize` starts.
    """
    asked, full = host.trials_asked_for(), policy.sizes[-1]
    assert asked is not None
    if known.n_learners is None:
        return None
    # Unless constraints are measured, which takes a trial for each size.
    measures = any(one.constraints for one in known.learners.values())
    if policy.needs.closed_pool and asked[0] >= known.n_learners and not measures:
        return None
    if any(known.is_done(learner, full) for learner in known.curves):
        return None
    run = known.runs.get(number)
    free = Pool(Curves([c for i, c in pool.curves.items() if i not in pool.busy]))
    leader = policy.leader(free) if run is None or run.learner is None else run.learner
    reason = Reason("the last run of `n_trials` is on all the data")
    if leader is None:
        return Propose(full, reason) if known.has_room(number) else None
    return None if pool.curves[leader].dropped else Extend(leader, full, reason)
