"""A sequential study makes the decisions of `core.replay`, and no probe twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import replay
from tests.core.scenario import changed
from tests.strategies import GRID
from tests.strategies import known_curves
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import FailedFitError
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import assert_sound
from tests.study.table_study import expected
from tests.study.table_study import probes
from tests.study.table_study import replayed
from tests.study.table_study import runs
from tests.study.table_study import table_study


SIGN = {"maximize": 1, "minimize": -1}

rules = st.fixed_dictionaries(
    {
        "use_training_score": st.booleans(),
        "tolerance": st.sampled_from([0.0, 3 / 256, 0.125, float("inf")]),
        "stop": st.sampled_from(["verified", "first"]),
    }
)


def run(known: list[LearningCurve], direction: str, **rule: Any) -> optuna.Study:
    study = table_study(len(known), direction=direction, **rule)
    study.optimize(TableObjective(known, SIGN[direction]), catch=(FailedFitError,))
    return study


def assert_replayed(study: optuna.Study, known: list[LearningCurve]) -> None:
    made, last = replayed(study.pruner.policy, known)
    assert probes(study) == made
    winner = best_learner(study)
    if not isinstance(last, Finish) or last.learner is None:
        assert winner is None
        return
    assert winner is not None
    assert winner.is_final
    rank = sorted(curve.learner for curve in known).index(last.learner)
    by_rank = sorted(known, key=lambda curve: curve.learner)
    chosen = by_rank[winner.params["row"]]
    assert chosen.score == by_rank[rank].score  # full scores may tie
    assert study.best_trial.params["row"] == winner.params["row"]
    assert_sound(study)


@settings(max_examples=60)
@given(
    st.booleans().flatmap(lambda fitted: known_curves(GRID, with_training_score=fitted)),
    st.sampled_from([*SIGN]),
    rules,
)
def test_a_study_allocates_as_replay_does(
    known: list[LearningCurve], direction: str, rule: dict[str, Any]
) -> None:
    assert_replayed(run(known, direction, sizes=GRID, **rule), known)


@settings(max_examples=30)
@given(known_curves(GRID, failures=True), st.sampled_from([*SIGN]), rules)
def test_a_study_drops_what_fails_as_replay_does(
    known: list[LearningCurve], direction: str, rule: dict[str, Any]
) -> None:
    study = run(known, direction, sizes=GRID, **rule)
    assert_replayed(study, known)
    table = sorted(known, key=lambda curve: curve.learner)
    reached = {curve.params["row"]: curve for curve in learning_curves(study)}
    for step in replay(study.pruner.policy, table):
        if isinstance(step, Extend):
            row = [curve.learner for curve in table].index(step.learner)
            if table[row].at(step.size) is None:
                assert reached[row].state == "dropped"


@pytest.mark.parametrize("direction", SIGN)
def test_every_run_tells_the_reason_of_the_decision_and_the_answer_that_of_the_end(
    direction: str,
) -> None:
    study = run(RIVALS, direction, sizes=SIZES)
    *before, last = replay(study.pruner.policy, RIVALS)
    assert answer(study).reason == f"best: {last.reason.told(SIGN[direction])}"
    steps = {(step.learner, step.size): step.reason for step in before if isinstance(step, Extend)}
    assigned = runs(study)
    assert len(assigned) > len(RIVALS)  # some were resumed
    for _, run_ in assigned:
        assert run_.learner is not None
        reason = steps[run_.learner, run_.size]
        assert run_.reason == reason.told(SIGN[direction])


@pytest.mark.parametrize(
    ("direction", "rule"),
    [("maximize", {}), ("minimize", {"tolerance": 0.01, "stop": "first"})],
)
@pytest.mark.parametrize("table", ["parity", "covtype"])
def test_measured_tables_are_allocated_as_replay_does(
    measured: Callable[[str], list[LearningCurve]],
    table: str,
    direction: str,
    rule: dict[str, Any],
) -> None:
    known = measured(table)
    sizes = tuple(sorted({size for curve in known for size in curve.sizes}))
    assert_replayed(run(known, direction, sizes=sizes, **rule), known)


def test_scores_above_one_and_below_zero_are_no_different() -> None:
    """Log losses, negated R^2: DAUB's decisions do not change under a x + b, a > 0."""

    def moved(o: Observation) -> Observation:
        return replace(o, score=8 * o.score - 16, training_score=8 * (o.training_score or 0) - 16)

    known = [changed(curve, moved) for curve in RIVALS]
    study = run(known, "minimize", sizes=SIZES)
    assert study.best_value > 1
    assert probes(study) == expected()[0]
