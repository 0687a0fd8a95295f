"""Learning curves, compared value by value with studies worked out by hand."""

from __future__ import annotations

import math

import pytest

from optuna_daub import DAUBPruner
from optuna_daub.core import Observation
from optuna_daub.study import LearnerCurve
from optuna_daub.study import learning_curves
from optuna_daub.visualization import _learning_curves
from optuna_daub.visualization._axes import MAX_OTHERS
from optuna_daub.visualization._axes import PALETTE
from optuna_daub.visualization._axes import Axis
from optuna_daub.visualization._axes import facts
from optuna_daub.visualization._learning_curves import CurveLine
from optuna_daub.visualization._learning_curves import Edge
from optuna_daub.visualization._learning_curves import LearningCurvesRecord
from optuna_daub.visualization._learning_curves import learning_curves_picture
from optuna_daub.visualization._learning_curves import learning_curves_record
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Line
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES


def seen(size: int, score: float) -> Observation:
    return Observation(size, score, 1.0, n_validation=1000, seconds=size / 100)


def observed(*scores: float | None) -> tuple[Observation, ...]:
    pairs = zip(SIZES, scores, strict=False)
    return tuple(seen(size, score) for size, score in pairs if score is not None)


def test_a_finished_study() -> None:
    oak, elm, ash = learning_curves(studies.finished())
    assert (oak.state, elm.state, ash.state) == ("complete", "suspended", "best")
    band = Edge(400, 0.5, 0.5), Edge(800, 0.5, 0.5)  # a flat curve promises nothing
    record = learning_curves_record(studies.finished(), None, 2)
    # Scores of the two in colour, training scores among them, and 4 % on each side.
    limits = pytest.approx((0.25 - 0.03, 1.0 + 0.03))
    seen_of = {name: observed(*scores) for name, scores in RIVALS.items()}
    lines = (
        CurveLine(ash, seen_of["ash"], (), PALETTE[2]),
        CurveLine(oak, seen_of["oak"], (), PALETTE[0]),
        CurveLine(elm, seen_of["elm"][:3], band, None),
    )
    axis = Axis("score", is_minimized=False, limits=limits)
    assert record == LearningCurvesRecord(lines, 3, SIZES, axis)
    assert [facts(curve).splitlines() for curve in (oak, elm, ash)] == [
        ["name = oak", "trained on all 800 examples"],
        ["name = elm", "suspended at 400: bound 0.500 < 0.875 of learner 2"],
        [
            "name = ash",
            "best: trained on all 800 examples with score 0.875; the",
            "largest other bound is 0.750 of learner 0",
        ],
    ]


def test_the_axis_starts_at_the_smallest_size_shown() -> None:
    study = studies.new_study(pruner=DAUBPruner(sizes=(10, 20, 50, *SIZES)))
    known = {name: (0.0, 0.0, 0.0, *scores) for name, scores in RIVALS.items()}
    record = learning_curves_record(studies.run(study, studies.Table(known)), None, 12)
    first = min(line.points[0].size for line in record.lines)
    assert record.sizes[0] == first > 10
    assert record.sizes[-1] == SIZES[-1]
    assert learning_curves_record(studies.empty(), None, 12).sizes == SIZES


def test_the_band_of_a_learner_ends_at_its_bound() -> None:
    oak, _ = learning_curves_record(studies.running(), None, 12).lines
    # Least squares through (100, 0.5), (200, 0.625), (400, 0.6875): 0.65 / 1,120 per example.
    bound = 0.6875 + 400 * 0.65 / 1120
    end = Edge(800, worst=0.6875, best=pytest.approx(bound))
    assert oak.band == (Edge(400, 0.6875, 0.6875), end)


def test_minimized_scores_and_bands_are_those_of_the_user() -> None:
    known = {"oak": [0.5, 0.375, 0.3125], "elm": [1.0, 1.0, 1.0]}
    study = studies.new_study(known, direction="minimize")
    studies.run(study, studies.Table(known, training_score=0.0), n_trials=2)
    oak, elm = learning_curves_record(study, None, 12).lines
    bound = 0.3125 - 400 * 0.65 / 1120
    end = Edge(800, worst=0.3125, best=pytest.approx(bound))
    assert oak.band == (Edge(400, 0.3125, 0.3125), end)
    assert [point.score for point in oak.points] == [0.5, 0.375, 0.3125]
    assert (oak.curve.learner, elm.curve.learner) == (0, 1), "the smaller score comes first"


def test_the_interval_of_abc_has_two_ends() -> None:
    pruner = studies.ABCPruner(min_resource=100, max_resource=800, n_validation=5000)
    study = studies.run(studies.new_study(pruner=pruner), studies.Table(RIVALS), n_trials=2)
    record = learning_curves_record(study, None, 12)
    for line in record.lines:
        assert [edge.size for edge in line.band] == [line.curve.size, 800], "nothing is forecast"
        assert line.band[-1] == Edge(800, line.curve.worst, line.curve.bound)
        assert line.band[-1].worst < line.band[0].worst < line.band[-1].best <= 1.0


def test_an_unfinished_study_of_abc_plots_what_it_reports() -> None:
    pruner = studies.ABCPruner(min_resource=100, max_resource=800, n_validation=5000)
    study = studies.new_study(pruner=pruner)
    studies.run(study, studies.Table(RIVALS), n_trials=1)  # two learners are still to come
    (line,) = learning_curves_record(study, None, 12).lines
    seen, failure = line.points[-1], 0.05 / 3**2
    half_width = math.sqrt(math.log(2 / failure) / (2 * 1000))
    assert line.band[-1].worst == pytest.approx(seen.score - half_width)


def test_forecasts_are_drawn_as_a_band() -> None:
    pruner = DAUBPruner(sizes=SIZES)
    known = {"oak": (0.25, 0.5, 0.75, 0.875), "elm": (0.125, 0.25, 0.375, 0.5)}
    study = studies.run(studies.new_study(known, pruner), studies.Table(known), n_trials=2)
    oak, _ = learning_curves_record(study, None, 12).lines
    assert [edge.size for edge in oak.band] == [100, 200, 400, 800]
    assert oak.band[-1].best == oak.curve.bound
    widths = [edge.best - edge.worst for edge in oak.band]
    assert widths == sorted(widths), "the farther, the wider"
    assert widths[0] == 0.0


def test_scores_that_are_no_finite_numbers_are_left_out() -> None:
    record = learning_curves_record(studies.infinite(), [3], 12)
    (yew,) = record.lines
    assert yew.points == (seen(100, 0.5),)
    assert (yew.band, yew.curve.state) == ((), "dropped")


def test_a_learner_that_only_failed_has_no_points() -> None:
    lines = learning_curves_record(studies.failed_learners(), None, 12).lines
    assert [(line.curve.learner, len(line.points)) for line in lines] == [
        (2, 4), (0, 4), (4, 3), (1, 3), (3, 0),
    ]  # fmt: skip


def test_learners_are_chosen_by_id() -> None:
    lines = learning_curves_record(studies.finished(), [1, 0], 1).lines
    assert [(line.curve.learner, line.color) for line in lines] == [(0, PALETTE[0]), (1, None)]


def test_unknown_learners_are_refused() -> None:
    message = r"`learners` must be ids .* which are \[0, 1, 2\], but got \[7\]"
    with pytest.raises(ValueError, match=message):
        learning_curves_record(studies.finished(), [2, 7], 12)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_axis_has_the_name_of_the_metric() -> None:
    study = studies.empty()
    study.set_metric_names(["accuracy"])
    assert learning_curves_record(study, None, 12).axis.name == "accuracy"


def test_of_many_learners_some_are_shown_and_the_picture_says_so() -> None:
    study = studies.many()
    record = learning_curves_record(study, None, 12)
    assert [line.color is not None for line in record.lines[:13]] == [True] * 12 + [False]
    assert 12 + MAX_OTHERS // 2 < len(record.lines) <= 12 + MAX_OTHERS
    picture = learning_curves_picture(study, None, 12)
    n_shown = len(record.lines)
    assert picture.subtitle == (f"{n_shown} of 200 learners shown, 12 of them in color", "")
    assert learning_curves_picture(study, range(12), 12).subtitle == ("", ""), "all in color"
    said, _ = learning_curves_picture(study, range(90), 12).subtitle
    assert said == "all 90 learners shown, 12 of them in color"


def test_training_scores_and_forecasts_are_in_the_legend() -> None:
    assert learning_curves_picture(studies.running(), None, 12).legend == (
        "0 oak, leader", "1 elm, running", "training score", "forecast",
    )  # fmt: skip
    without = learning_curves_picture(studies.without_training_scores(), None, 12)
    assert "training score" not in without.legend
    assert not [each for each in without.marks if isinstance(each, Line) and each.dash == "dash"]


@pytest.mark.parametrize(("direction", "limit"), [("maximize", 1.0), ("minimize", 0.0)])
def test_no_band_is_beyond_what_a_score_can_be(direction: str, limit: float) -> None:
    (line,) = learning_curves_record(studies.steep(direction), None, 12).lines
    assert line.curve.bound == limit
    assert line.band[-1].best == limit
    picture = learning_curves_picture(studies.steep(direction), None, 12)
    (band,) = (mark for mark in picture.marks if isinstance(mark, Band))
    assert all(0 <= end <= 1 for end in (*band.lows, *band.highs))


def test_a_single_score_is_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    def learner(number: int, *points: tuple[int, float]) -> LearnerCurve:
        seen = tuple(Observation(size, score) for size, score in points)
        return LearnerCurve(number, {}, seen, "complete", None, None, "")

    known = [
        learner(0, (800, 0.8)),
        learner(1, (800, 0.9)),
        learner(2, (100, 0.5), (800, 0.7)),
        learner(3, (100, 0.5), (200, 0.6)),
        learner(4, (100, 0.4)),
    ]
    monkeypatch.setattr(_learning_curves, "learning_curves", lambda study: known)
    lines = learning_curves_record(studies.empty(), None, 2).lines
    assert [line.curve.learner for line in lines] == [1, 2, 3, 0, 4], "the leader comes first"
    assert [bool(line.color) for line in lines] == [True, True, False, False, False]


def test_a_curve_is_what_the_results_say() -> None:
    study = studies.finished()
    (line,) = learning_curves_record(study, [1], 12).lines
    said = "suspended at 400: bound 0.500 < 0.875 of learner 2"
    seen_of_elm = observed(0.5, 0.5, 0.5)
    assert line.curve == LearnerCurve(
        1, {"name": "elm"}, seen_of_elm, "suspended", 0.5, None, said
    )
