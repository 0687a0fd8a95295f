"""Bounds, compared value by value with studies worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import optuna
import pytest

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Pool
from optuna_daub.visualization._axes import MAX_OTHERS
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._upper_bounds import _REPLAYS
from optuna_daub.visualization._upper_bounds import MOMENTS
from optuna_daub.visualization._upper_bounds import BoundStep
from optuna_daub.visualization._upper_bounds import Lead
from optuna_daub.visualization._upper_bounds import _bound_steps
from optuna_daub.visualization._upper_bounds import _is_moment
from optuna_daub.visualization._upper_bounds import bounds_record
from optuna_daub.visualization._upper_bounds import upper_bounds_picture
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES


def forecast(direction: str = "maximize") -> optuna.Study:
    """Return a study by the default rule, whose forecasts rest on what all learners gain."""
    sign = -1 if direction == "minimize" else 1
    known = {
        f"tree {i}": [sign * (0.5 + i / 20 - (0.3 + i / 50) * (100 / n) ** 0.5) for n in SIZES]
        for i in range(6)
    }
    study = studies.new_study(known, DAUBPruner(sizes=SIZES), direction)
    return studies.run(study, studies.Table(known, training_score=None))


def test_steps_and_leads() -> None:
    record = bounds_record(studies.finished(), None, 12)
    ash, oak, elm = record.tracks
    assert [track.curve.learner for track in record.tracks] == [2, 0, 1]
    # A bound takes the three sizes on which every learner is first trained.
    assert [step.number for step in oak.steps] == [3, 11]
    assert elm.steps[0] == BoundStep(6, 1, 400, 0.5, 0.5)
    assert ash.steps == (
        BoundStep(9, 2, 400, 0.75, 1.0),  # the training score
        BoundStep(10, 2, 800, 0.875, 0.875),  # its own score
        BoundStep(11, 2, 800, 0.875, 0.875, is_own=False),
    )
    assert elm.steps[1:] == (BoundStep(11, 1, 400, 0.5, 0.5, is_own=False),)
    assert record.n_trainings == 11
    assert record.leads[-3:] == (
        Lead(9, 2, 1.0),
        Lead(10, 0, pytest.approx(0.6875 + 400 * 0.65 / 1120)),
        Lead(11, 2, 0.875),
    )


def test_the_last_bound_of_each_learner_is_the_one_of_its_curve() -> None:
    for study in (studies.finished(), studies.minimized(), studies.running(), studies.abc(),
                  forecast(), forecast("minimize")):  # fmt: skip
        for track in bounds_record(study, None, 12).tracks:
            last = track.steps[-1].bound if track.steps else None
            assert last == pytest.approx(track.curve.bound)


def test_a_study_drawn_again_and_again_has_the_bounds_of_one_drawn_once() -> None:
    study = studies.new_study()
    for _ in range(4):
        studies.run(study, studies.Table(RIVALS), n_trials=1)
        again = bounds_record(study, None, 12)
    assert again == bounds_record(studies.finished(), None, 12)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_others_gain_moves_the_bound_of_a_suspended_learner(direction: str) -> None:
    study = forecast(direction)
    record, policy = bounds_record(study, None, 60), study.pruner.policy
    sign = -1 if direction == "minimize" else 1
    curves: dict[int, LearningCurve] = {}
    n_moved = 0
    for number, probe in enumerate(allocations(study), 1):
        seen = probe.observation
        seen = replace(seen, score=sign * seen.score, training_score=None)
        curve = curves.get(probe.learner, LearningCurve(probe.learner)).extended(seen)
        curves[probe.learner] = curve
        pool = Pool(Curves(curves.values()))
        for track in record.tracks:
            learner = track.curve.learner
            if learner in curves:
                (*_, step) = (step for step in track.steps if step.number <= number)
                upper = policy.interval(pool, learner).upper
                assert step.bound == pytest.approx(sign * upper), (number, learner)
                assert step.size == curves[learner].size
                n_moved += step.number == number and not step.is_own
    assert n_moved > 10
    best = max(policy.interval(pool, learner).upper for learner in curves)
    assert record.leads[-1].bound == pytest.approx(sign * best)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_bounds_of_an_open_pool_rest_on_the_parameters_too(direction: str) -> None:
    sign = -1 if direction == "minimize" else 1

    def objective(trial: optuna.Trial) -> float:
        x, score = trial.suggest_float("x", 0.0, 1.0), 0.0
        for size in training_sizes(trial):
            score = sign * (0.9 - (x - 0.3) ** 2 - 10 / size)
            report(trial, size, score, seconds=size / 100)
        return score

    study = optuna.create_study(
        direction=direction,
        sampler=DataAllocationSampler(optuna.samplers.RandomSampler(seed=0)),
        pruner=DAUBPruner(sizes=SIZES),
    )
    study.optimize(objective, n_trials=12)
    last = {step.learner: step.bound for step in _bound_steps(study, allocations(study))}
    curves = learning_curves(study)
    assert len(curves) > 6
    assert last == pytest.approx({curve.learner: curve.bound for curve in curves})


def test_all_bounds_are_looked_at_sixteen_times_in_each_doubling() -> None:
    assert all(map(_is_moment, range(1, 32)))
    for begin in (32, 64, 1024, 2**20):
        assert sum(map(_is_moment, range(begin, 2 * begin))) == MOMENTS


def test_a_long_replay_forecasts_at_its_moments_only(monkeypatch: pytest.MonkeyPatch) -> None:
    study = studies.finished()
    sequence, calls, table = allocations(study), list[int](), DAUB._table
    monkeypatch.setattr("optuna_daub.visualization._upper_bounds.MOMENTS", 1)

    def counted(policy: DAUB, pool: Pool) -> Any:
        calls.append(len(pool.curves))
        return table(policy, pool)

    monkeypatch.setattr(DAUB, "_table", counted)
    steps = _bound_steps(study, sequence)
    assert len(calls) <= len(sequence).bit_length() + 1 < len(sequence) / 2
    own = [(step.number, step.learner, step.size) for step in steps if step.is_own]
    assert own == [(3, 0, 400), (6, 1, 400), (10, 2, 800), (11, 0, 800)]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_score_that_is_no_number_does_not_start_the_replay_anew(direction: str) -> None:
    def objective(trial: optuna.Trial) -> float:
        score = math.nan if trial.number == 1 else trial.suggest_float("x", 0.0, 1.0)
        for size in training_sizes(trial):
            report(trial, size, score)
        return score

    sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0))
    pruner = DAUBPruner(sizes=SIZES, cost="examples")
    study = optuna.create_study(direction=direction, sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=4)
    _bound_steps(study, allocations(study))
    before = _REPLAYS[study]
    _bound_steps(study, allocations(study))
    assert _REPLAYS[study].pool is before.pool


def test_minimized_bounds_mirror_maximized_ones() -> None:
    up = bounds_record(studies.finished(), None, 12)
    down = bounds_record(studies.minimized(), None, 12)
    for one, other in zip(up.leads, down.leads, strict=True):
        assert (one.number, one.learner) == (other.number, other.learner)
        assert one.bound == pytest.approx(1 - other.bound)
    assert down.axis.is_minimized


def test_a_dropped_learner_leads_no_longer_after_its_last_probe() -> None:
    study = studies.failed_learners()
    record = bounds_record(study, None, 12)
    (box,) = (track for track in record.tracks if track.curve.learner == 4)
    assert box.curve.state == "dropped"
    assert box.steps[-1].bound == 1.0, "the largest of all bounds"
    assert not [lead for lead in record.leads if lead.number >= box.steps[-1].number
                and lead.learner == 4]  # fmt: skip


def test_scores_that_are_no_finite_numbers_have_no_bound() -> None:
    known = {**RIVALS, "yew": (0.5, 0.5, 0.5, float("-inf"))}
    study = studies.run(studies.new_study(known), studies.Table(known))
    (yew,) = bounds_record(study, [3], 12).tracks
    assert {step.size for step in yew.steps} == {400}


def test_of_many_learners_some_are_shown_and_the_picture_says_so() -> None:
    study = studies.many()
    record = bounds_record(study, None, 12)
    assert 12 + MAX_OTHERS // 2 < len(record.tracks) <= 12 + MAX_OTHERS
    crowd, _, promise = upper_bounds_picture(study, None, 12).subtitle
    assert crowd == f"{len(record.tracks)} of 200 learners shown, 12 of them in color"
    assert promise == record.promise
    everyone = bounds_record(study, range(200), 12)
    assert everyone.leads == record.leads, "the best bound is that of all, shown or not"
    assert len(everyone.tracks) == 200


@pytest.mark.parametrize(("direction", "limit"), [("maximize", 1.0), ("minimize", 0.0)])
def test_no_bound_is_beyond_what_a_score_can_be(direction: str, limit: float) -> None:
    study = studies.steep(direction)
    (track,) = bounds_record(study, None, 12).tracks
    assert track.curve.bound == limit
    assert [step.bound for step in track.steps] == [limit]
    picture = upper_bounds_picture(study, None, 12)
    assert all({*mark.ys} == {limit} for mark in picture.marks if isinstance(mark, Line))
