"""Choices that all pictures share."""

from __future__ import annotations

import logging
from dataclasses import replace

import optuna
import pytest

from optuna_daub.visualization._allocations import allocations_record
from optuna_daub.visualization._axes import MAX_OTHERS
from optuna_daub.visualization._axes import MAX_TICKS
from optuna_daub.visualization._axes import PALETTE
from optuna_daub.visualization._axes import facts
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import learner_colors
from optuna_daub.visualization._axes import size_colors
from optuna_daub.visualization._axes import stretched
from optuna_daub.visualization._axes import thinned
from optuna_daub.visualization._axes import tick_sizes
from optuna_daub.visualization._learning_curves import learning_curves
from optuna_daub.visualization._learning_curves import learning_curves_picture
from optuna_daub.visualization._learning_curves import learning_curves_record
from optuna_daub.visualization._numbers import said
from optuna_daub.visualization._search_history import search_history_record
from optuna_daub.visualization._upper_bounds import bounds_record
from tests.visualization import studies


@pytest.mark.parametrize("state", [studies.empty, studies.begun, studies.only_failures])
def test_the_log_names_empty_pictures(state: object, caplog: pytest.LogCaptureFixture) -> None:
    assert callable(state)
    study = state()
    with caplog.at_level(logging.WARNING, "optuna_daub.visualization"):
        learning_curves_record(study, None, 12)
        allocations_record(study, "examples", 60)
        bounds_record(study, None, 12)
        search_history_record(study, "auto")
    records = [record for record in caplog.records if ".visualization." in record.name]
    assert [record.getMessage() for record in records] == [
        "There is no learning curve to draw: no score has been reported yet.",
        "There is no allocation to draw: no examples are known yet.",
        "There is no bound to draw: no learner has one, and some rules give none.",
        "There is no search to draw: no score has been reported yet.",
    ]


def test_scores_of_a_pruner_alone_are_of_no_learner(caplog: pytest.LogCaptureFixture) -> None:
    study = studies.pruner_alone()
    assert study.trials[0].intermediate_values
    caplog.clear()  # of the sampler, while it ran
    with caplog.at_level(logging.WARNING, "optuna_daub.visualization"):
        learning_curves_record(study, None, 12)
        search_history_record(study, "auto")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    for each in said:
        assert "to draw: trials are learners only if a DataAllocationSampler has run them" in each


def test_the_background_is_thinned_evenly() -> None:
    assert thinned([]) == []
    assert thinned(range(MAX_OTHERS)) == [*range(MAX_OTHERS)]
    few = thinned(range(10 * MAX_OTHERS))
    assert few == [*range(0, 10 * MAX_OTHERS, 10)]
    assert len(thinned(range(MAX_OTHERS + 1))) <= MAX_OTHERS


def test_learners_that_stand_out_have_colors_of_their_own() -> None:
    first = learner_colors(range(12))
    assert len(set(first.values())) == len(PALETTE) == 12
    assert set(learner_colors(range(200)).values()) == set(PALETTE)


def test_a_learner_keeps_its_color_where_another_leaves() -> None:
    full, fewer = learner_colors(range(12)), learner_colors([*range(5), *range(6, 12)])
    assert fewer.items() <= full.items()


def test_sizes_go_from_the_first_color_to_the_last() -> None:
    assert size_colors([10]) == {10: "#74b9e8"}
    assert size_colors([10, 20, 30]) == {10: "#74b9e8", 20: "#7b61b8", 30: "#eda03f"}


def test_labels() -> None:
    oak, _, ash = learning_curves(studies.strange_names())
    assert label(oak) == "0 <b>oak</b> & %{x}"
    assert label(ash) == f"2 {'ash' * 7}…"
    (enqueued,) = learning_curves(studies.begun())
    assert label(enqueued) == "0 oak"


def test_names_are_on_one_line() -> None:
    (curve,) = learning_curves(studies.begun())
    curve = replace(curve, params={"name": "a\n b", "other": "c\nd"}, reason="")
    assert label(curve) == "0 a b"
    assert facts(curve) == "name = a b\nother = c d"


@pytest.mark.parametrize("lowest", [-1e6, -1e300])
@pytest.mark.parametrize("is_trained", [False, True])
def test_a_learner_that_diverged_flattens_no_other(lowest: float, is_trained: bool) -> None:
    """Neither by its scores nor by its training scores."""
    known = {**studies.RIVALS, "fir": (0.5, 0.6, 0.7, 0.7), "yew": (lowest,) * 4}
    if is_trained:
        known["yew"] = (0.45,) * 4

    class Diverging(studies.Table):
        def __call__(self, trial: optuna.Trial) -> float:
            is_yew = trial.suggest_categorical("name", list(self.known)) == "yew"
            self.training_score = lowest if is_yew and is_trained else 1.0
            return super().__call__(trial)

    study = studies.run(studies.new_study(known), Diverging(known))
    axes = [learning_curves_record(study, None, 12).axis]
    axes += [] if is_trained else [bounds_record(study, None, 12).axis]
    for axis in axes:
        assert axis.limits is not None
        assert axis.limits[1] - axis.limits[0] < 2
    if abs(lowest) < 1e100:
        assert "beyond the axis" in learning_curves_picture(study, None, 12).subtitle[1]
    else:
        scores = [s for line in learning_curves_record(study, None, 12).lines for s in line.scores]
        assert max(map(abs, scores)) <= 1, "it counts as infinite"
        (track,) = [t for t in bounds_record(study, None, 12).tracks if t.curve.learner == 4]
        assert track.steps == ()


@pytest.mark.parametrize("last", [(0.93, 0.88), (0.90, 0.88, 0.85)])
def test_that_the_better_learners_agree_hides_no_other(last: tuple[float, ...]) -> None:
    known = {f"{i}": (x,) * 4 for i, x in enumerate((0.95, 0.9502, 0.9503, *last))}
    study = studies.run(studies.new_study(known), studies.Table(known))
    for record in (learning_curves_record, bounds_record):
        low, _ = record(study, None, 12).axis.limits or (float("inf"), 0.0)
        assert low <= min(last)


@pytest.mark.parametrize("n_learners", [1, 3])
@pytest.mark.parametrize("gain", [1e-9, 0.001, 0.1])
def test_usual_scores_are_all_in_the_picture(n_learners: int, gain: float) -> None:
    """Also if learning curves are flat and the training scores are not."""
    scores = tuple(0.85 + gain * step for step in range(4))
    known = {name: scores for name in [*studies.RIVALS][:n_learners]}
    study = studies.run(studies.new_study(known), studies.Table(known))
    record = learning_curves_record(study, None, 12)
    low, high = record.axis.limits or (0.0, 0.0)
    assert all(low <= score <= high for line in record.lines for score in line.scores)
    assert learning_curves_picture(study, None, 12).subtitle == ("", "")


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e12, 1e20])
@pytest.mark.parametrize("level", [0.0, 1.0, 1e5])
def test_different_scores_are_said_differently(scale: float, level: float) -> None:
    scores = [scale * (level + step / 16) for step in range(5, 10)]
    texts = [said(score, *scores) for score in scores]
    assert len({*texts}) == 5
    for text, score in zip(texts, scores, strict=True):
        assert abs(float(text.replace(",", "")) - score) <= scale / 100
        assert said(score) not in ("0", "0.0000")
    assert said(0.0) == "0"


def test_parameters_are_cut() -> None:
    (curve,) = learning_curves(studies.begun())
    few = replace(curve, params={"rate": 0.123456789, "name": "x" * 99}, reason="dropped")
    assert facts(few) == f"rate = 0.12346\nname = {'x' * 40}…\ndropped"
    many = replace(curve, params={f"p{i}": i for i in range(20)}, reason="")
    assert facts(many).splitlines()[10:] == ["p10 = 10", "p11 = 11", "and 8 more"]


def test_ticks_are_few_and_hold_the_full_size() -> None:
    assert tick_sizes([500, 750, 1125]) == (500, 750, 1125)
    assert len(tick_sizes(range(1, 1001))) <= MAX_TICKS + 1
    assert tick_sizes(range(1, 1001))[-1] == 1000
    assert tick_sizes([500, 10_000, 38_000, 38_500]) == (500, 10_000, 38_500)
    assert tick_sizes([100, 200, 400, 800, 1600], most=3) == (100, 400, 1600)
    assert tick_sizes([100, 150, 300, 600], most=2) == (100, 600), "the first size has a label"
    assert tick_sizes([800]) == (800,)


def test_a_range_holds_what_is_near() -> None:
    assert stretched([0.0, 1.0], [1.2]) == pytest.approx((-0.048, 1.248))
    assert stretched([0.0, 1.0], [9.0]) == pytest.approx((-0.05, 1.3))
    low, high = stretched([0.5], [])
    assert low < 0.5 < high
