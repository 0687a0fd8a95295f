"""Results of a study that was loaded without its pruner are those that it has with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler

from optuna_daub import ABCPruner
from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import one_row_per_learner
from optuna_daub import plan
from optuna_daub import sample_agreement
from optuna_daub import what_if
from optuna_daub.core import DAUB
from optuna_daub.core import Decision
from optuna_daub.core import Finish
from optuna_daub.core import Forecaster
from optuna_daub.core import Joint
from optuna_daub.core import Policy
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import Reason
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import ValuePerSecond
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.dashboard import update_dashboard
from optuna_daub.study.abc_pruner import HALF_WIDTHS
from optuna_daub.study.abc_pruner import SCHEDULERS
from optuna_daub.study.stored_policy import _described
from optuna_daub.study.stored_policy import _rebuilt
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.stored_policy import write_policy
from optuna_daub.visualization import plot_allocations
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization import plot_sample_agreement
from optuna_daub.visualization import plot_search_history
from optuna_daub.visualization import plot_upper_bounds
from tests.core.forecasts import FORECASTERS
from tests.study.table_study import by_formula
from tests.study.table_study import pair
from tests.study.table_study import sqlite


SIZES = (500, 1000, 2000, 4000)


objective = by_formula(
    lambda x, n: x - 10 / n,
    0.5,
    0.9,
    training_score=lambda x, n: x + 10 / n,
    n_validation=lambda x, n: 1000,
    seconds=lambda x, n: n / 1000,
)


PRUNERS: dict[str, Callable[[], AllocationPruner]] = {
    "default": lambda: DAUBPruner(sizes=SIZES, cost="examples"),
    "paper": lambda: DAUBPruner.paper(sizes=SIZES, tolerance=0.001, stop="first"),
    "no training score": lambda: DAUBPruner.paper(sizes=SIZES, use_training_score=False),
    "ABC": lambda: ABCPruner(
        min_resource=500, max_resource=4000, n_validation=1000, epsilon=0.1, interval="massart",
        scheduler="ucb", refit=False,
    ),
    "halving": lambda: AllocationPruner(SuccessiveHalving(SIZES, keep_one_in=3)),
    "joint": lambda: AllocationPruner(DAUB(SIZES, Joint(), confidence=0.9)),
}  # fmt: skip


def new_study(
    pruner: AllocationPruner, storage: str | None = None, n_learners: int | None = 6
) -> optuna.Study:
    """Return a study that has come to its end."""
    study = pair(pruner, RandomSampler(seed=0), storage=storage, name="s", n_learners=n_learners)
    study.optimize(objective, n_trials=None if n_learners else 12)
    return study


def loaded(study: optuna.Study) -> optuna.Study:
    """Return the study as one loads it who knows nothing of it but its name."""
    return optuna.load_study(study_name="s", storage=study._storage)


@pytest.mark.parametrize("name", PRUNERS)
def test_every_rule_is_read_as_it_was_stored(name: str, tmp_path: Path) -> None:
    pruner = PRUNERS[name]()
    study = new_study(pruner, sqlite(tmp_path) if name == "default" else None)
    assert policy_of(loaded(study)) == pruner.policy
    # As another process sees it, which decides anew.
    known = optuna.load_study(study_name="s", storage=study._storage, pruner=pruner)
    assert best_learner(loaded(study)) == best_learner(known)
    assert best_learner(known) is not None
    assert learning_curves(loaded(study)) == learning_curves(known)


@pytest.mark.parametrize("interval", HALF_WIDTHS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_word_of_abc_is_stored(interval: Any, scheduler: Any) -> None:
    policy = ABCPruner(max_resource=8000, interval=interval, scheduler=scheduler).policy
    assert _rebuilt(_described(policy)) == policy


@pytest.mark.parametrize("forecaster", FORECASTERS.values(), ids=FORECASTERS)
def test_every_forecaster_is_stored(forecaster: Forecaster) -> None:
    policy = DAUB(SIZES, forecaster)
    assert _rebuilt(_described(policy)) == policy


def test_a_forecaster_with_a_prior_of_the_user_is_not_stored() -> None:
    policy = DAUB(SIZES, Process(SIZES[-1], PRIOR._replace(bend=0.5)))
    with pytest.raises(ValueError, match="stored name"):
        _described(policy)


RESULTS: dict[str, Callable[[optuna.Study], Any]] = {
    "allocations": allocations,
    "rows": lambda study: [(t.value, t.params) for t in one_row_per_learner(study).trials],
    "plan": plan,
    "agreement": sample_agreement,
    "what_if": lambda study: what_if(study, DAUBPruner.paper(sizes=SIZES)),
    "plot_allocations": lambda study: plot_allocations(study).to_json(),
    "plot_learning_curves": lambda study: plot_learning_curves(study).to_json(),
    "plot_sample_agreement": lambda study: plot_sample_agreement(study).to_json(),
    "plot_search_history": lambda study: plot_search_history(study).to_json(),
    "plot_upper_bounds": lambda study: plot_upper_bounds(study).to_json(),
}


def test_results_and_pictures_need_no_pruner() -> None:
    study = new_study(PRUNERS["default"](), n_learners=None)
    for name, result in RESULTS.items():
        assert result(loaded(study)) == result(study), name


def test_the_dashboard_is_drawn_without_a_pruner(tmp_path: Path) -> None:
    study = new_study(PRUNERS["default"](), sqlite(tmp_path))
    update_dashboard(loaded(study))
    assert "s (learners)" in optuna.get_all_study_names(study._storage)


@pytest.mark.filterwarnings("ignore")
def test_a_study_of_a_version_that_stored_sizes_only_is_read_by_the_default_rule() -> None:
    study = optuna.create_study(study_name="s")
    stored = {"sizes": [*SIZES], "direction": "minimize"}
    study._storage.set_study_system_attr(study._study_id, "daub:settings", stored)
    assert policy_of(study) == ValuePerSecond(SIZES)


@dataclass(frozen=True)
class Everything(Policy):
    """A rule of one's own."""

    def decide(self, pool: Pool) -> Decision:
        if pool.may_propose:
            return Propose(self.sizes[-1], Reason("all are trained on everything"))
        return Finish(self.leader(pool), Reason("all are trained"))


def test_a_rule_of_ones_own_is_asked_for_by_its_name() -> None:
    study = new_study(AllocationPruner(Everything(SIZES)))
    with pytest.raises(ValueError, match="its rule, Everything, is not one that is stored: load"):
        best_learner(loaded(study))


NEW, NONE = "is of another version of optuna_daub", "is not one that is stored"
OTHERS: list[tuple[object, str]] = [
    ({"name": "New", "fields": {}}, f"New, {NEW}"),
    ({"name": "DAUB", "fields": {"sizes": 5, "new": 1}}, f"DAUB, {NEW}"),
    ({"name": "DAUB", "fields": 5}, f"DAUB, {NEW}"),
    ({"name": "Joint", "fields": {}}, f"Joint, {NEW}"),
    (5, f"5, {NONE}"),
    ({}, f"{{}}, {NONE}"),
]


@pytest.mark.parametrize(("stored", "complaint"), OTHERS)
def test_a_rule_that_is_damaged_or_of_another_version_is_named(
    stored: object, complaint: str
) -> None:
    study = new_study(PRUNERS["paper"]())
    study._storage.set_study_system_attr(study._study_id, "daub:policy", stored)
    with pytest.raises(ValueError, match=f"but its rule, {complaint}: load it with"):
        best_learner(loaded(study))


ANSWERS = RESULTS | {"best learner": best_learner, "curves": learning_curves}
OF_A_RULE = ANSWERS | {"dashboard": update_dashboard}
del OF_A_RULE["allocations"]


@pytest.mark.parametrize("name", OF_A_RULE)
def test_a_study_that_no_rule_has_allocated_is_told_from_others(name: str) -> None:
    said = "depend on its rule, .*it stores none, as `DataAllocationSampler` has not run"
    with pytest.raises(ValueError, match=said):
        OF_A_RULE[name](optuna.create_study())


@pytest.mark.parametrize("name", ANSWERS)
def test_asking_changes_nothing_and_answers_the_same(name: str) -> None:
    study = pair(PRUNERS["default"](), RandomSampler(seed=0), n_learners=None)
    study.optimize(objective, n_trials=3)
    study.ask()
    before = study.get_trials()
    assert ANSWERS[name](study) == ANSWERS[name](study)
    assert study.get_trials() == before


def test_the_rule_is_written_once_and_anew_where_it_changes() -> None:
    study = new_study(PRUNERS["default"]())
    written: list[Any] = []
    study._storage.set_study_system_attr = (  # type: ignore[method-assign]
        lambda _, name, value: written.append((name, value))
    )
    write_policy(study, PRUNERS["default"]().policy)
    assert written == []
    write_policy(study, PRUNERS["paper"]().policy)
    assert [name for name, _ in written] == ["daub:policy"]
