"""The order of probes: by what is known, whatever machines' clocks say."""

from __future__ import annotations

import random
from datetime import timedelta

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState

from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub.study import log
from optuna_daub.study.base_sampler_view import one_row_per_learner
from optuna_daub.study.records import Run
from optuna_daub.study.worker import looking
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import expected
from tests.study.table_study import probes
from tests.study.table_study import table_study


ROWS = IntDistribution(0, 4)


def begun(study: optuna.Study, run: Run) -> int:
    """Return the number of a running trial with such a record."""
    trial_id = study._storage.create_new_trial(study._study_id)
    number = study._storage.get_trial_number_from_id(trial_id)
    log.write_run(study, study._storage.get_trial(trial_id), run)
    for size in SIZES[: SIZES.index(run.inherited) + 1] if run.inherited else ():
        study._storage.set_trial_intermediate_value(trial_id, size, size / 100)
    return number


def test_a_learners_sizes_are_in_order_also_where_a_waiting_worker_resumes_it() -> None:
    """Trial 1 waited while trial 2 started, trained learner 0 further, and ended."""
    study = table_study()
    scores = {0: SIZES[:2], 2: SIZES[2:3], 1: SIZES[3:4], 3: SIZES[:1]}
    runs = {0: (0, 0), 1: (0, SIZES[2]), 2: (0, SIZES[1]), 3: (3, 0)}
    for number, (learner, inherited) in runs.items():
        run = Run(learner, 6, inherited, n_learners=5, full_size=54, trial=number)
        assert begun(study, run) == number
        trial_id = study._storage.get_all_trials(study._study_id)[number]._trial_id
        for size in scores[number]:
            study._storage.set_trial_intermediate_value(trial_id, size, size / 100)
        study._storage.set_trial_state_values(trial_id, TrialState.PRUNED)
    order = [(probe.trial, probe.observation.size) for probe in allocations(study)]
    assert order == [(0, 6), (0, 9), (2, 15), (1, 24), (3, 6)]


@pytest.mark.parametrize("is_first_look", [True, False])
def test_a_run_of_a_learner_that_was_begun_after_it_is_known_to_all(is_first_look: bool) -> None:
    """Trial 1 waited while trial 2 started a learner, and has trained that one on.

    A process that reads the trials in their order meets the later run first.
    """
    study = table_study()
    other = table_study(storage=study._storage)
    for number, learner in {0: 0, 1: None, 2: 2}.items():
        run = Run(learner, 6, n_learners=5, full_size=54, trial=number)
        assert begun(study, run) == number
        if not is_first_look and number < 2:
            learning_curves(other)
    ids = [trial._trial_id for trial in study.trials]
    log.write_run(study, study.trials[1], Run(2, 9, 6, n_learners=5, full_size=54, trial=1))
    for number, size in ((0, 6), (2, 6), (1, 9)):
        study._storage.set_trial_param(ids[number], "row", 2 if number else 0, ROWS)
        study._storage.set_trial_intermediate_value(ids[number], size, size / 100)
        study._storage.set_trial_state_values(ids[number], TrialState.PRUNED)
    known = {c.learner: [seen.size for seen in c.observations] for c in learning_curves(other)}
    assert known == {0: [6], 2: [6, 9]}
    assert [(each.learner, each.trial) for each in allocations(other)] == [(0, 0), (2, 2), (2, 1)]
    known = looking(other).known
    rows = one_row_per_learner(other.get_trials(deepcopy=False), known, 1, {0: 0.5, 2: 0.5})
    assert [(row.number, row._trial_id) for row in rows] == [(0, ids[0]), (2, ids[2])]


@pytest.mark.parametrize("seed", range(3))
def test_clocks_that_jump_change_nothing(seed: int) -> None:
    study = table_study()
    study.optimize(TableObjective())
    rng = random.Random(seed)
    for trial in study._storage.get_all_trials(study._study_id, deepcopy=False):
        trial.datetime_start += timedelta(seconds=rng.uniform(-9e5, 9e5))  # type: ignore[operator]
    assert probes(study) == expected()[0]
