"""Results: what a study tells when it is over, and on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.objective.winner import winner_of
from optuna_daub.study import AllocationPruner
from optuna_daub.study.known import Known
from optuna_daub.study.results import _winner
from optuna_daub.study.results import no_scores
from optuna_daub.study.worker import worker_of
from tests.study.table_study import MADE
from tests.study.table_study import RIVALS
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import Place
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import assert_sound
from tests.study.table_study import by_formula
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import is_over
from tests.study.table_study import optimize_some
from tests.study.table_study import pair
from tests.study.table_study import runs
from tests.study.table_study import scores_of
from tests.study.table_study import stop_at
from tests.study.table_study import table_study


@cache
def finished(direction: str = "maximize") -> optuna.Study:
    """Return a study that has come to its end, to look at only."""
    study = table_study(direction=direction)
    study.optimize(TableObjective(RIVALS, 1 if direction == "maximize" else -1))
    return study


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_trial_is_the_winner_trained_on_all_the_data(direction: str) -> None:
    study = finished(direction)
    sign = 1 if direction == "maximize" else -1
    best = final(study)
    assert best.params == study.best_params == {"row": WINNER}
    assert best.score == best.bound == study.best_value == sign * RIVALS[WINNER].score
    assert best.size == SIZES[-1]
    assert best.rival_bound is not None
    assert sign * best.rival_bound <= sign * best.score
    assert_sound(study)
    assert [trial.state for trial in idle(study)] in ([], [TrialState.PRUNED])


def test_what_was_spent_is_the_sum_of_the_probes() -> None:
    best, made = answer(finished()), allocations(finished())
    assert best.examples == sum(size for _, size in MADE)
    assert best.seconds == pytest.approx(sum(probe.observation.seconds or 0 for probe in made))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_curves_are_the_known_ones_as_far_as_they_were_asked_for(direction: str) -> None:
    study = finished(direction)
    sign = 1 if direction == "maximize" else -1
    newest = {run.learner: trial for trial, run in runs(study)}
    for curve in learning_curves(study):
        row = curve.params["row"]
        asked = [size for other, size in MADE if other == row]
        assert [seen.size for seen in curve.observations] == asked
        for seen in curve.observations:
            score, fitted = scores_of(row, seen.size)
            assert (seen.score, seen.training_score) == (sign * score, sign * fitted)
        scores = {seen.size: seen.score for seen in curve.observations}
        assert newest[curve.learner].intermediate_values == scores, "the newest run shows all"
        assert curve.reason
    states = {curve.params["row"]: curve.state for curve in learning_curves(study)}
    assert states[WINNER] == "best"
    assert [*states.values()].count("best") == 1


@pytest.mark.parametrize("n_trials", [0, 1, 4, 9])
def test_results_are_there_at_any_time_and_change_nothing(n_trials: int) -> None:
    study = table_study()
    if n_trials:
        optimize_some(study, TableObjective(), n_trials)
    before = study.trials
    learning_curves(study), allocations(study), best_learner(study)
    assert study.trials == before
    assert (best_learner(study) is None) == (n_trials == 0)
    assert not is_over(study)
    study.optimize(TableObjective())
    assert [(p.learner, p.observation.size) for p in allocations(study)] == MADE


def rounded(seed: int, digits: int, look: Callable[[optuna.Study], None]) -> optuna.Study:
    """Return an unfinished study with rounded scores, looked at after each trial."""
    rule = DAUBPruner(sizes=(250, 500, 1000, 2000, 4000), cost="examples")
    study = pair(rule, RandomSampler(seed=seed))

    def after(study: optuna.Study, trial: FrozenTrial) -> None:
        assert not is_over(study)
        if answer(study).size == 4000:
            look(study)

    objective = by_formula(lambda x, n: round(0.5 + 0.3 * x - 80 * x / n, digits))
    study.optimize(objective, n_trials=50, callbacks=[after, stop_at(25)])
    return study


def test_among_equal_scores_the_answer_is_the_trial_that_optuna_names() -> None:
    """In memory Optuna keeps the trial that ended first, not the one with the lowest number."""
    study = pair(DAUBPruner(sizes=SIZES, cost="examples"), RandomSampler(seed=0), n_learners=2)
    first, second = study.ask(), study.ask()
    for trial in (first, second):
        trial.suggest_float("x", 0, 1)
    for trial in (second, first):
        study.tell(trial, 1.0)
    assert answer(study).params == study.best_params


def test_among_equal_scores_an_unfinished_study_names_the_learner_of_its_best_trial() -> None:
    is_tied = []

    def look(study: optuna.Study) -> None:
        best, first = answer(study), study.best_trial
        assert (best.params, best.score) == (first.params, first.value)
        assert winner_of(study) == (first.params, first.number)
        full = [curve for curve in learning_curves(study) if curve.size == best.size]
        tied = [curve.learner for curve in full if curve.score == best.score]
        is_tied.append(best.learner != min(tied))

    rounded(3, 1, look)
    assert any(is_tied), "the first trial is not of the first learner"


def test_a_run_that_ended_after_the_last_look_is_not_the_leader_s() -> None:
    """It is another worker's, so the pool has its learner on less data."""
    seen: list[tuple[Known, int]] = []

    def look(study: optuna.Study) -> None:
        worker = worker_of(study)
        seen.append((worker.known, answer(study).learner))

    study = rounded(3, 9, look)
    for known, leader in seen:
        assert _winner(study, known, 1, leader) == leader
    first, best = seen[0], answer(study)
    assert best.learner != first[1]
    assert first[0].curves[best.learner].size < best.size


def test_results_within_an_objective_say_who_is_running() -> None:
    study = table_study()
    states: list[str] = []

    def look(row: int, size: int) -> None:
        states.append(next(c.state for c in learning_curves(study) if c.params["row"] == row))

    study.optimize(TableObjective(before=look))
    assert {*states} == {"running"}


def test_bounds_shown_are_those_of_the_policy() -> None:
    study = finished()
    policy = DAUBPruner.paper(sizes=SIZES).policy
    curves = learning_curves(study)
    pool = Pool(Curves(LearningCurve(curve.learner, curve.observations) for curve in curves))
    for curve in curves:
        interval = policy.interval(pool, curve.learner)
        assert curve.bound == pytest.approx(interval.upper)
        assert curve.worst == (interval.lower if math.isfinite(interval.lower) else None)


def test_each_run_shows_its_size_bound_and_reason_beside_the_users_of_the_same_names() -> None:
    own = {"training_size": "mine", "bound": 7, "reason": [1, 2]}

    def objective(trial: optuna.Trial) -> float:
        for name, value in own.items():
            trial.set_user_attr(name, value)
        return TableObjective()(trial)

    study = table_study()
    study.optimize(objective)
    assert len(runs(study)) > len(RIVALS), "some learner was resumed"
    for trial, _ in runs(study):
        assert {name: trial.user_attrs[name] for name in own} == own
        assert trial.user_attrs["daub:training_size"] == trial.last_step
        assert math.isfinite(trial.user_attrs["daub:bound"])
        assert trial.user_attrs["daub:reason"]


def test_a_resumed_run_reads_the_attributes_that_its_learner_has_set(storage: Place) -> None:
    noted: dict[int, Any] = {}

    def objective(trial: optuna.Trial) -> float:
        noted[trial.number] = trial.user_attrs.get("params")
        try:
            return TableObjective()(trial)
        finally:
            trial.set_user_attr("params", trial.params)

    study = table_study(storage=storage)
    study.optimize(objective)
    assert len(runs(study)) > len(RIVALS), "some learner was resumed"
    for trial, run in runs(study):
        assert noted[trial.number] == (None if run.learner == trial.number else trial.params)


@pytest.mark.parametrize(
    ("last_finite", "said"),
    [
        (SIZES[0], "all learners with scores have failed, are infeasible or were ruled out"),
        (0, "no score that was reported is a finite number within ±1e+100"),
    ],
)
def test_scores_of_learners_that_are_all_lost_are_not_said_to_be_missing(
    last_finite: int, said: str
) -> None:
    study = pair(AllocationPruner(SuccessiveHalving(SIZES)), RandomSampler(seed=0), n_learners=4)
    assert no_scores(study) == "no score has been reported yet"
    study.optimize(by_formula(lambda x, n: x if n <= last_finite else math.nan))
    assert [curve.state for curve in learning_curves(study)] == ["dropped"] * 4
    assert no_scores(study) == said


def test_a_trial_that_was_added_is_no_learner_whichever_sampler_the_study_has() -> None:
    study = pair(AllocationPruner(SuccessiveHalving(SIZES)), RandomSampler(seed=0), n_learners=4)
    x = optuna.distributions.FloatDistribution(0, 1)
    study.add_trial(
        optuna.trial.create_trial(value=1.0, params={"x": 0.5}, distributions={"x": x})
    )
    assert no_scores(study) == "trials are learners only if a DataAllocationSampler has run them"


def test_optunas_own_tables_and_pictures_work() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    study = finished()
    columns = ("number", "value", "params", "user_attrs", "system_attrs", "state")
    assert len(study.trials_dataframe(attrs=columns)) == len(study.trials)
    figure = optuna.visualization.plot_intermediate_values(study)
    assert SIZES in {tuple(line.x) for line in figure.data}
    optuna.visualization.plot_optimization_history(study)
    optuna.visualization.plot_slice(study)
    optuna.visualization.plot_timeline(study)


def test_reasons_to_drop_have_the_sign_of_the_users_scores() -> None:
    pruner = AllocationPruner(SuccessiveHalving((500, 1000, 2000)))
    study = pair(pruner, RandomSampler(seed=0), n_learners=4, direction="minimize")
    study.optimize(by_formula(lambda x, n: 0.3 + x + 1 / n))
    reasons = [curve.reason for curve in learning_curves(study) if curve.state == "dropped"]
    assert len(reasons) == 3
    for reason in reasons:
        assert re.search(r"score [01]\.\d+ at", reason), reason
        assert "-" not in reason


def test_what_was_enqueued_and_never_asked_for_is_no_parameter() -> None:
    study = table_study()
    study.enqueue_trial({"row": 0, "rate": 0.5})
    study.optimize(TableObjective(), n_trials=1)
    assert answer(study).params == learning_curves(study)[0].params == {"row": 0}
    assert dict(worker_of(study).known.curves[0].parameters) == {"row": 0}, "nor of costs"


@pytest.mark.parametrize(
    "ask",
    [best_learner, learning_curves, allocations, lambda study: study.optimize(TableObjective())],
)
def test_several_objectives_are_refused(ask: Callable[..., Any]) -> None:
    both = table_study()
    given: dict[str, Any] = {"sampler": both.sampler, "pruner": both.pruner}
    study = optuna.create_study(directions=["maximize", "minimize"], **given)
    said = r"one direction, but got \['maximize', 'minimize'\]: .* multi-objective optimization"
    with pytest.raises(NotImplementedError, match=said):
        ask(study)
    assert TrialState.RUNNING not in {trial.state for trial in study.trials}
