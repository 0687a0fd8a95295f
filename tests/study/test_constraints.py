"""Constraints: carried from run to run, seen by the base sampler, and no answer violates one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.samplers import PartialFixedSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import sample_agreement
from optuna_daub import training_sizes
from optuna_daub import what_if
from optuna_daub.core import Decision
from optuna_daub.core import Finish
from optuna_daub.core import Pool
from optuna_daub.core import Reason
from optuna_daub.core import SuccessiveHalving
from optuna_daub.visualization._search_history import search_history_record
from tests.study.table_study import SIZES
from tests.study.table_study import answer
from tests.study.table_study import final
from tests.study.table_study import open_study
from tests.study.table_study import pair
from tests.study.table_study import runs
from tests.study.table_study import scored
from tests.study.table_study import sqlite


needs_set_constraint = pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="set_constraint came with Optuna 5"
)

LIMIT = 0.5


def trained(
    trial: optuna.Trial,
    measure: Callable[[float, int], object] = lambda x, n: None,
    sizes: Iterable[int] | None = None,
    **also: Callable[[int], float],
) -> float:
    """Larger x are better, those above the limit infeasible; measure something at each size."""
    x = trial.suggest_float("x", 0, 1)

    def score(n: int) -> float:
        measure(x, n)
        return 0.4 + x / 2 - (1 + 3 * x) / n

    return scored(trial, score, sizes, training_score=lambda n: 0.4 + x / 2 + 1 / n, **also)


def by_attribute(trial: optuna.Trial) -> float:
    trial.set_user_attr("x", trial.suggest_float("x", 0, 1))
    return trained(trial)


def by_method(trial: optuna.Trial) -> float:
    trial.set_constraint("x", trial.suggest_float("x", 0, 1) - LIMIT)
    return trained(trial)


def measured(trial: FrozenTrial) -> tuple[float]:
    return (trial.user_attrs["x"] - LIMIT,)


def tpe(objective: Callable[[optuna.Trial], float]) -> TPESampler:
    if objective is by_method:
        return TPESampler(seed=0, n_startup_trials=5)
    with warnings.catch_warnings():  # experimental in 4, deprecated in 5
        warnings.simplefilter("ignore")
        return TPESampler(seed=0, n_startup_trials=5, constraints_func=measured)


@pytest.mark.parametrize(
    ("rule", "n_learners", "storage"),
    [
        (DAUBPruner, None, "memory"),
        (DAUBPruner, 12, "memory"),
        (DAUBPruner.paper, 12, "memory"),
        (DAUBPruner.paper, 12, "sqlite"),
    ],
)
@pytest.mark.parametrize(
    "objective", [by_attribute, pytest.param(by_method, marks=needs_set_constraint)]
)
def test_the_answer_is_feasible_and_optunas_own(
    objective: Callable[[optuna.Trial], float],
    rule: Callable[..., DAUBPruner],
    n_learners: int | None,
    storage: str,
    tmp_path: Path,
) -> None:
    study = pair(
        rule(sizes=SIZES),
        tpe(objective),
        n_learners=n_learners,
        storage=sqlite(tmp_path) if storage == "sqlite" else None,
    )
    study.optimize(objective, n_trials=24)
    best = answer(study)
    assert best.params["x"] <= LIMIT
    assert study.best_params == best.params
    for curve in learning_curves(study):
        violates = curve.params["x"] > LIMIT
        assert ("infeasible: constraint" in curve.reason) == violates
        assert (curve.state == "dropped") == violates
        if violates and objective is by_method:  # known before the first training
            assert len(curve.observations) == 1
    for trial, run in runs(study):
        assert run.learner is not None
        assert trial.params == study.trials[run.learner].params
        values = [v for k, v in trial.system_attrs.items() if k.startswith("constraints")]
        expected = trial.params["x"] - LIMIT
        assert values == [expected] or values == [(expected,)] or values == [[expected]]


@needs_set_constraint
@pytest.mark.parametrize("n_trials", [None, 8, 20])
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("rule", [DAUBPruner, DAUBPruner.paper])
def test_a_constraint_measured_in_the_loop_has_the_value_of_the_largest_size(
    rule: Callable[..., DAUBPruner], asks: bool, n_trials: int | None
) -> None:
    """Optuna keeps the first value of a trial, and memory grows with the data."""
    limit = SIZES[-2] + 1

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for n in training_sizes(trial):
            score = 0.4 + x / 2 - 1 / n
            if asks:
                trial.report(score, n)
            else:
                report(trial, n, score, training_score=0.4 + x / 2 + 1 / n)
            trial.set_constraint("memory", n - limit if x > LIMIT else -1.0)
            if asks and trial.should_prune():
                raise optuna.TrialPruned
        return score

    study = pair(rule(sizes=SIZES), RandomSampler(seed=0), n_learners=8)
    study.optimize(objective, n_trials=n_trials)
    if n_trials is not None:  # too few for an answer, but one learner is trained on all the data
        assert any(curve.size == SIZES[-1] for curve in learning_curves(study))
        return
    best = answer(study)
    assert best.params["x"] <= LIMIT
    assert best.params == study.best_params
    for curve in learning_curves(study):
        is_too_large = curve.params["x"] > LIMIT and curve.size > limit
        assert ("infeasible: constraint memory" in curve.reason) == is_too_large


@needs_set_constraint
def test_where_all_are_infeasible_there_is_no_answer() -> None:
    def hopeless(trial: optuna.Trial) -> float:
        trial.set_constraint("x", 1 + trial.suggest_float("x", 0, 1))
        return trained(trial)

    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=4)
    study.optimize(hopeless)
    assert best_learner(study) is None
    assert len(study.trials) == 4
    with pytest.raises(ValueError, match="No trials are completed yet"):
        study.best_trial  # noqa: B018


@needs_set_constraint
def test_a_constraint_measured_late_takes_the_answer_back() -> None:
    """As a model's memory may be, it is known only after a training on all the data."""

    def late(trial: optuna.Trial) -> float:
        def measure(x: float, n: int) -> None:
            if n == SIZES[-1]:
                trial.set_constraint("x", x - LIMIT)

        return trained(trial, measure)

    study = pair(DAUBPruner.paper(sizes=SIZES), RandomSampler(seed=0), n_learners=8)
    study.optimize(late)
    best = final(study)
    assert best.params == study.best_params
    assert best.params["x"] <= LIMIT
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert max(t.params["x"] for t in complete) > LIMIT


def test_a_constraint_is_measured_after_each_run() -> None:
    """A model may be small enough after a few rows, and too large after all."""

    def objective(trial: optuna.Trial) -> float:
        return trained(trial, lambda x, n: trial.set_user_attr("x", x * n / SIZES[-1]))

    study = open_study(tpe(by_attribute))
    study.optimize(objective, n_trials=30)
    curves = learning_curves(study)
    resumed = [c for c in curves if len(c.observations) > 1 and c.size == SIZES[-1]]
    assert {c.state == "dropped" for c in resumed} == {True, False}
    for curve in resumed:
        assert (curve.state == "dropped") == (curve.params["x"] > LIMIT)
    assert study.best_params["x"] <= LIMIT


# Pictures and replays


def known_late(trial: optuna.Trial, sizes: Iterable[int] | None = None) -> float:
    """Train a learner whose constraint is measured on all the data only."""

    def measure(x: float, n: int) -> None:
        trial.set_user_attr("x", x if n == SIZES[-1] else 0.0)

    return trained(trial, measure, sizes, seconds=lambda n: n / 1000)


def studied_late(rule: Callable[..., DAUBPruner] = DAUBPruner.paper) -> optuna.Study:
    study = pair(rule(sizes=SIZES), tpe(by_attribute), n_learners=10)
    study.optimize(known_late)
    full = [t.params["x"] for t in study.trials if t.state == TrialState.COMPLETE]
    assert min(full) <= LIMIT < max(full)
    return study


def test_the_best_line_of_the_history_is_of_feasible_learners_and_others_keep_their_markers() -> (
    None
):
    study = studied_late()
    record, best = search_history_record(study, "examples"), best_learner(study)
    assert best is not None
    assert record.best[-1].score == study.best_value
    assert record.finding.startswith(f"{record.best[-1].name}: ")
    assert record.best[-1].learner == best.learner
    params = {curve.learner: curve.params["x"] for curve in learning_curves(study)}
    for line in (record.best, record.early):
        assert max(params[each.learner] for each in line) <= LIMIT
    full = [each for each in record.trainings if each.kind == "all the data"]
    assert max(params[each.learner] for each in full) > LIMIT
    assert max(each.score for each in full) > study.best_value


def test_a_history_of_infeasible_learners_has_no_best() -> None:
    study = open_study(tpe(by_attribute))
    study.enqueue_trial({"x": 0.9})
    study.optimize(lambda trial: known_late(trial, SIZES), n_trials=1)
    record = search_history_record(study, "examples")
    assert len(record.trainings) == len(SIZES)
    assert record.best == record.early == ()
    assert record.finding == "no feasible learner was trained on all the data yet"


@pytest.mark.parametrize("rule", [DAUBPruner, DAUBPruner.paper])
def test_a_replay_chooses_no_infeasible_learner(rule: Callable[..., DAUBPruner]) -> None:
    study = studied_late(rule)
    assert isinstance(study.pruner, AllocationPruner)
    again = what_if(study, study.pruner)
    assert again.guessed == 0
    assert replace(again.replayed, cost=again.actual.cost) == again.actual
    assert again.replayed.cost.examples == again.actual.cost.examples
    feasible = {c.learner for c in learning_curves(study) if "infeasible" not in c.reason}
    other = DAUBPruner.paper if rule is DAUBPruner else DAUBPruner
    # The last one answers on little data, on which no constraint is known.
    for pruner in (other(sizes=SIZES), AllocationPruner(Early(SIZES))):
        assert what_if(study, pruner).replayed.learner in feasible


class Early(SuccessiveHalving):
    """Answers as soon as all learners are trained on the smallest size."""

    def decide(self, pool: Pool) -> Decision:
        if pool.may_propose:
            return super().decide(pool)
        return Finish(self.leader(pool), Reason("early"))


def test_no_size_s_best_learner_is_infeasible() -> None:
    study = open_study(tpe(by_attribute), n_learners=12)
    study.optimize(lambda trial: known_late(trial, SIZES), n_trials=12)
    feasible = [c for c in learning_curves(study) if c.params["x"] <= LIMIT]
    assert 3 <= len(feasible) < 12
    full = [curve.observations[-1].score for curve in feasible]
    rows = sample_agreement(study).sizes
    assert len(rows) == len(SIZES) - 1
    for place, row in enumerate(rows):
        here = [curve.observations[place].score for curve in feasible]
        chosen = full[here.index(max(here))]
        assert row.lost == pytest.approx(max(full) - chosen)
        assert row.best_stays == float(chosen == max(full))


def test_constraints_of_a_sampler_within_another_are_measured_after_each_run() -> None:
    def grows(trial: FrozenTrial) -> tuple[float]:
        return (trial.user_attrs["size"] - SIZES[-2],)  # feasible, except on all the data

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("depth", 1, 9)
        return trained(trial, lambda x, n: trial.set_user_attr("size", n))

    with warnings.catch_warnings():  # experimental in 4, deprecated in 5
        warnings.simplefilter("ignore")
        base = PartialFixedSampler({"depth": 5}, TPESampler(seed=0, constraints_func=grows))
    study = pair(DAUBPruner.paper(sizes=SIZES), base, n_learners=4)
    study.optimize(objective)
    whole = [curve for curve in learning_curves(study) if curve.size == SIZES[-1]]
    assert all("infeasible" in curve.reason for curve in whole)
    assert any(
        run.inherited for trial, run in runs(study) if SIZES[-1] in trial.intermediate_values
    )
