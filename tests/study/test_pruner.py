"""The pruners: arguments, asking without a trace, alone with another sampler, plain objectives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import DAUB
from optuna_daub.core import LearningCurve
from optuna_daub.core import Projection
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import next_of_grid
from optuna_daub.core import projected_bound
from tests.core.scenario import changed
from tests.strategies import GRID
from tests.strategies import known_curves
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import assert_sound
from tests.study.table_study import expected
from tests.study.table_study import one_number
from tests.study.table_study import pair
from tests.study.table_study import plainly
from tests.study.table_study import probes
from tests.study.table_study import report_row
from tests.study.table_study import reporting
from tests.study.table_study import table_study


@pytest.mark.parametrize(
    ("rule", "arguments", "message"),
    [
        (DAUBPruner, {}, "`max_resource` .* or `sizes` must be given"),
        (DAUBPruner, {"max_resource": 1000, "min_resource": 500}, r"500 \* 1.5\^2 = 1125 > 1000"),
        (DAUBPruner, {"max_resource": 2}, r"1 \* 1.5\^2 = 2.25 > 2"),
        (DAUBPruner, {"max_resource": -5}, r"1 \* 1.5\^2 = 2.25 > -5"),
        (DAUBPruner, {"max_resource": 50, "reduction_factor": 8},
         r"1 \* 8\^2 = 64 > 50.* `reduction_factor`"),
        (DAUBPruner, {"max_resource": 10**15 + 1}, "`max_resource` must be at most"),
        (DAUBPruner, {"max_resource": 1000.5}, "`max_resource` must be a whole number.* 1000.5"),
        (DAUBPruner, {"max_resource": 1000, "min_resource": 0},
         "`min_resource` must be at least 1.* 0"),
        (DAUBPruner, {"max_resource": 1000, "min_resource": 10.0},
         "`min_resource` must be a whole .* 10.0"),
        *((DAUBPruner, {"max_resource": 9000, "reduction_factor": factor},
           f"`reduction_factor` .* {factor}") for factor in (1, 0.5, math.nan, math.inf)),
        (DAUBPruner, {"sizes": [10, 20]}, r"at least 3 training sizes.*\[10, 20\]"),
        (DAUBPruner, {"sizes": [10, 20, 40], "max_resource": 50}, "40 and 50"),
        (DAUBPruner, {"max_resource": 9000, "cost": "money"}, "`cost` must be .* got 'money'"),
        (DAUBPruner.paper, {"max_resource": 1000}, r"500 \* 1.5\^2 = 1125 > 1000"),
        (DAUBPruner.paper, {"max_resource": 9000, "use_training_score": "no"},
         "`use_training_score` must be True"),
        *((DAUBPruner.paper, {"max_resource": 9000, "tolerance": tolerance},
           f"`tolerance` .* {tolerance}") for tolerance in (-0.1, math.nan)),
        (DAUBPruner.paper, {"max_resource": 9000, "stop": "never"},
         "`stop` must be one of .* 'never'"),
    ],
)  # fmt: skip
def test_wrong_arguments_state_the_rule_and_the_value(
    rule: Callable[..., DAUBPruner], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rule(**arguments)


@pytest.mark.parametrize("full", [3, 8, 100, 1000, 3999])
def test_any_number_of_examples_suits_the_default(full: int) -> None:
    """Some learner is trained on all of them."""
    pruner = DAUBPruner(max_resource=full)
    study = pair(pruner, RandomSampler(seed=0))
    study.optimize(one_number, n_trials=8)
    assert best_learner(study).size == full


FIVE_THOUSAND = (500, 750, 1125, 1688, 2532, 3798, 5000)


def test_by_default_the_rule_is_value_per_second() -> None:
    assert DAUBPruner(max_resource=5000).policy == ValuePerSecond(FIVE_THOUSAND)
    by_examples = DAUBPruner(max_resource=5000, cost="examples").policy
    assert by_examples == ValuePerSecond(FIVE_THOUSAND, cost="examples")


def test_the_papers_algorithm_has_a_name() -> None:
    assert DAUBPruner.paper(max_resource=5000).policy == DAUB(FIVE_THOUSAND)
    other = DAUBPruner.paper(
        sizes=[10, 20, 40], use_training_score=False, tolerance=0.1, stop="first"
    )
    assert other.policy == DAUB(
        (10, 20, 40), Projection(use_training_score=False), next_of_grid, (), 0.1, "first"
    )


def kept(study: optuna.Study) -> tuple[Any, ...]:
    """Return all that is stored of a study."""
    attrs = study._storage.get_study_system_attrs(study._study_id)
    return study.trials, study.user_attrs, attrs


def test_should_prune_twice_answers_alike_and_writes_nothing() -> None:
    study = table_study()
    answers: set[bool] = set()

    def objective(trial: optuna.Trial) -> float:
        row = trial.suggest_int("row", 0, 9)
        score = math.nan
        for size in training_sizes(trial):
            score = report_row(trial, row, size)
            before = copy.deepcopy(kept(study))
            first, second = trial.should_prune(), trial.should_prune()
            assert first == second
            assert type(first) is bool
            assert before == kept(study)
            answers.add(first)
        return score

    study.optimize(objective)
    assert answers == {True, False}
    assert probes(study) == expected()[0]


# Plain objectives: trial.report and should_prune, nothing of ours


def test_the_pair_works_with_a_plain_objective() -> None:
    """The curves without training scores are what `use_training_score=False` sees."""
    study = table_study()
    study.optimize(partial(plainly, goes_on=True), n_trials=99)
    other = table_study(use_training_score=False)
    other.optimize(TableObjective())
    assert probes(study) == probes(other)
    assert study.best_trial.params == other.best_trial.params
    assert_sound(study)


@pytest.mark.filterwarnings("ignore:The reported value is ignored:UserWarning")
def test_the_pair_works_with_a_plain_objective_that_starts_over() -> None:
    study = table_study()
    study.optimize(plainly, n_trials=99)
    assert study.best_trial.params["row"] == expected()[1]
    assert_sound(study)


def test_missing_training_scores_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    known = [changed(c, lambda o: replace(o, training_score=None)) for c in RIVALS]
    table_study().optimize(TableObjective(known))
    assert sum("No training score" in r.getMessage() for r in caplog.records) == 1


@pytest.mark.parametrize("steps", [(7, 8, 20, 30, 54), (20, 40, 60), (55, 56, 57)])
def test_steps_off_the_grid_do_not_break_the_pair(steps: tuple[int, ...]) -> None:
    study = table_study(base=RandomSampler(seed=0))
    refused = pytest.raises(ValueError, match="size") if steps[-1] > SIZES[-1] else nullcontext()
    with refused:
        study.optimize(reporting(steps), n_trials=30)
        assert len(study.trials) < 30, "the study does not end"


# The pruner alone


def alone(direction: str = "maximize", **rule: Any) -> optuna.Study:
    return optuna.create_study(
        direction=direction,
        sampler=TPESampler(seed=0),
        pruner=DAUBPruner.paper(**{"sizes": GRID, **rule}),
    )


@settings(max_examples=50)
@given(known_curves(GRID), st.sampled_from([1, -1]), st.booleans())
def test_alone_it_prunes_where_the_bound_is_below_a_score_already_reached(
    known: list[LearningCurve], sign: int, use_training_score: bool
) -> None:
    study = alone("maximize" if sign > 0 else "minimize", use_training_score=use_training_score)
    reached = -math.inf
    for curve in known:
        trial = study.ask()
        highest = -math.inf
        for i, seen in enumerate(curve.observations, start=1):
            training_score = sign * (seen.training_score or 0.0)
            report(trial, seen.size, sign * seen.score, training_score=training_score)
            highest = max(highest, seen.score)
            upto = LearningCurve(0, curve.observations[:i])
            bound = projected_bound(upto, GRID[-1], use_training_score=use_training_score)
            assert trial.should_prune() == (i >= 3 and bound < reached)
        reached = max(reached, highest)
        study.tell(trial, sign * seen.score)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("known", "scores", "is_pruned"),
    [
        pytest.param([0.9], [], False, id="what was never reported is not pruned"),
        pytest.param([0.9], [0.5, 0.5, 0.5], True, id="complete trials added by hand count"),
        pytest.param([], [0.9, 0.5, 0.4, 0.3], False, id="a trial is not compared with itself"),
        *(
            pytest.param([0.9], [0.1, 0.1, score, 0.1], False, id=f"{score} tells nothing")
            for score in (NAN, INF, -INF)
        ),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_alone_it_prunes_as_the_last_report_says(
    sign: int, known: list[float], scores: list[float], is_pruned: bool
) -> None:
    study = alone("maximize" if sign > 0 else "minimize")
    for value in known:
        study.add_trial(optuna.create_trial(value=sign * value))
    trial = study.ask()
    for size, score in zip(GRID, scores, strict=False):
        if all(map(math.isfinite, scores)):
            assert not trial.should_prune()
        trial.report(sign * score, size)
    assert trial.should_prune() is is_pruned
    if not all(map(math.isfinite, scores)):  # no infinite score is compared with
        study.tell(trial, state=TrialState.PRUNED)
        other = study.ask()
        for size in GRID[:3]:
            other.report(sign * 0.95, size)
        assert not other.should_prune()


@pytest.mark.parametrize("steps", [range(8), range(0, 80, 10), range(100, 500, 100)])
def test_alone_it_takes_any_steps(steps: range) -> None:
    """A drop-in for HyperbandPruner: steps need not be those of the grid."""
    study = alone()
    study.optimize(reporting(steps), n_trials=20)
    states = {trial.state for trial in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}
    assert study.best_value == max(trial.params["x"] for trial in study.trials)


def test_alone_training_sizes_are_all_of_them_until_it_prunes() -> None:
    study = alone(sizes=SIZES)
    study.enqueue_trial({"row": 4})
    study.enqueue_trial({"row": 2})
    study.optimize(TableObjective(), n_trials=2)
    best, worst = study.trials
    assert sorted(best.intermediate_values) == [*SIZES]
    assert best.state == TrialState.COMPLETE
    assert worst.state == TrialState.PRUNED
    assert len(worst.intermediate_values) >= 3
