"""What pictures show, compared value by value with studies worked out by hand."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import optuna
import pytest

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.study import LearnerCurve
from optuna_daub.study import learning_curves
from optuna_daub.visualization._records import MOMENTS
from optuna_daub.visualization._records import PALETTE
from optuna_daub.visualization._records import AllocationsRecord
from optuna_daub.visualization._records import Axis
from optuna_daub.visualization._records import BoundStep
from optuna_daub.visualization._records import CurveLine
from optuna_daub.visualization._records import Edge
from optuna_daub.visualization._records import Layer
from optuna_daub.visualization._records import Lead
from optuna_daub.visualization._records import LearningCurvesRecord
from optuna_daub.visualization._records import _is_moment
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import bounds_record
from optuna_daub.visualization._records import learning_curves_record
from optuna_daub.visualization._records import search_history_record
from optuna_daub.visualization._records import size_colors
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES


def seen(size: int, score: float, training_score: float = 1.0) -> Observation:
    return Observation(size, score, training_score, n_validation=1000, seconds=size / 100)


def observed(*scores: float) -> tuple[Observation, ...]:
    return tuple(seen(size, score) for size, score in zip(SIZES, scores, strict=False))


class TestLearningCurves:
    def test_a_finished_study(self) -> None:
        oak, elm, ash = learning_curves(studies.finished())
        assert (oak.state, elm.state, ash.state) == ("complete", "suspended", "best")
        band = Edge(400, 0.5, 0.5), Edge(800, 0.5, 0.5)  # a flat curve promises nothing
        record = learning_curves_record(studies.finished(), None, 2)
        # Scores of the two in colour, training scores among them, and 4 % on each side.
        limits = pytest.approx((0.25 - 0.03, 1.0 + 0.03))
        ash_says = (
            "best: trained on all 800 examples with score 0.875; the",
            "largest other bound is 0.750 of learner 0",
        )
        assert record == LearningCurvesRecord(
            (
                CurveLine(
                    ash,
                    "2 ash",
                    ("name = ash", *ash_says),
                    observed(0.25, 0.5, 0.75, 0.875),
                    (),
                    PALETTE[2],
                ),
                CurveLine(
                    oak,
                    "0 oak",
                    ("name = oak", "trained on all 800 examples"),
                    observed(0.5, 0.625, 0.6875, 0.75),
                    (),
                    PALETTE[0],
                ),
                CurveLine(
                    elm,
                    "1 elm",
                    ("name = elm", "suspended at 400: bound 0.500 < 0.875 of learner 2"),
                    observed(0.5, 0.5, 0.5),
                    band,
                    None,
                ),
            ),
            SIZES,
            SIZES,
            Axis("score", is_minimized=False, limits=limits),
        )

    def test_the_band_of_a_learner_ends_at_its_bound(self) -> None:
        oak, _ = learning_curves_record(studies.running(), None, 12).lines
        # Least squares through (100, 0.5), (200, 0.625), (400, 0.6875): 0.65 / 1,120 per example.
        bound = 0.6875 + 400 * 0.65 / 1120
        end = Edge(800, worst=0.6875, best=pytest.approx(bound))
        assert oak.band == (Edge(400, 0.6875, 0.6875), end)

    def test_minimized_scores_and_bands_are_those_of_the_user(self) -> None:
        study = studies.new_study({"oak": [0.5, 0.375, 0.3125], "elm": [1.0, 1.0, 1.0]},
                                  direction="minimize")  # fmt: skip
        known = {"oak": [0.5, 0.375, 0.3125], "elm": [1.0, 1.0, 1.0]}
        studies.run(study, studies.Table(known, training_score=0.0), n_trials=2)
        oak, elm = learning_curves_record(study, None, 12).lines
        bound = 0.3125 - 400 * 0.65 / 1120
        end = Edge(800, worst=0.3125, best=pytest.approx(bound))
        assert oak.band == (Edge(400, 0.3125, 0.3125), end)
        assert [point.score for point in oak.points] == [0.5, 0.375, 0.3125]
        assert (oak.curve.learner, elm.curve.learner) == (0, 1), "the smaller score comes first"

    def test_the_interval_of_abc_has_two_ends(self) -> None:
        pruner = studies.ABCPruner(min_resource=100, max_resource=800, n_validation=5000)
        study = studies.run(studies.new_study(pruner=pruner), studies.Table(RIVALS), n_trials=2)
        record = learning_curves_record(study, None, 12)
        for line in record.lines:
            assert [edge.size for edge in line.band] == [line.curve.size, 800], (
                "nothing is forecast"
            )
            assert line.band[-1] == Edge(800, line.curve.worst, line.curve.bound)
            assert line.band[-1].worst < line.band[0].worst < line.band[-1].best <= 1.0

    def test_an_unfinished_study_of_abc_plots_what_it_reports(self) -> None:
        pruner = studies.ABCPruner(min_resource=100, max_resource=800, n_validation=5000)
        study = studies.new_study(pruner=pruner)
        studies.run(study, studies.Table(RIVALS), n_trials=1)  # two learners are still to come
        (line,) = learning_curves_record(study, None, 12).lines
        seen, failure = line.points[-1], 0.05 / 3**2
        half_width = math.sqrt(math.log(2 / failure) / (2 * 1000))
        assert line.band[-1].worst == pytest.approx(seen.score - half_width)

    def test_forecasts_are_drawn_as_a_band(self) -> None:
        pruner = DAUBPruner(sizes=SIZES)
        known = {"oak": (0.25, 0.5, 0.75, 0.875), "elm": (0.125, 0.25, 0.375, 0.5)}
        study = studies.run(studies.new_study(known, pruner), studies.Table(known), n_trials=2)
        oak, _ = learning_curves_record(study, None, 12).lines
        assert [edge.size for edge in oak.band] == [100, 200, 400, 800]
        assert oak.band[-1].best == oak.curve.bound
        widths = [edge.best - edge.worst for edge in oak.band]
        assert widths == sorted(widths), "the farther, the wider"
        assert widths[0] == 0.0

    def test_scores_that_are_no_finite_numbers_are_left_out(self) -> None:
        record = learning_curves_record(studies.infinite(), [3], 12)
        (yew,) = record.lines
        assert yew.points == (seen(100, 0.5),)
        assert (yew.band, yew.curve.state) == ((), "dropped")

    def test_a_learner_that_only_failed_has_no_points(self) -> None:
        lines = learning_curves_record(studies.failed_learners(), None, 12).lines
        assert [(line.curve.learner, len(line.points)) for line in lines] == [
            (2, 4), (0, 4), (4, 3), (1, 3), (3, 0),
        ]  # fmt: skip

    def test_learners_are_chosen_by_id(self) -> None:
        lines = learning_curves_record(studies.finished(), [1, 0], 1).lines
        assert [(line.curve.learner, line.color) for line in lines] == [(0, PALETTE[0]), (1, None)]

    def test_unknown_learners_are_refused(self) -> None:
        message = r"`learners` must be ids .* which are \[0, 1, 2\], but got \[7\]"
        with pytest.raises(ValueError, match=message):
            learning_curves_record(studies.finished(), [2, 7], 12)

    def test_top_is_not_negative(self) -> None:
        with pytest.raises(ValueError, match="`top` must be at least 0, but got -1"):
            learning_curves_record(studies.finished(), None, -1)

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    def test_the_axis_has_the_name_of_the_metric(self) -> None:
        study = studies.empty()
        study.set_metric_names(["accuracy"])
        assert learning_curves_record(study, None, 12).axis.name == "accuracy"

    def test_a_foreign_pruner_is_refused(self) -> None:
        with pytest.raises(ValueError, match="depend on its pruner"):
            learning_curves_record(optuna.create_study(), None, 12)


class TestAllocations:
    def test_examples(self) -> None:
        study = studies.finished()
        oak, elm, ash = learning_curves(study)
        colors = size_colors(SIZES)
        assert allocations_record(study, "examples", 60) == AllocationsRecord(
            (ash, oak, elm),
            ("2 ash", "0 oak", "1 elm"),
            (
                Layer(100, (100.0, 100.0, 100.0), "#74b9e8"),
                Layer(200, (200.0, 200.0, 200.0), colors[200]),
                Layer(400, (400.0, 400.0, 400.0), colors[400]),
                Layer(800, (800.0, 800.0, 0.0), "#eda03f"),
            ),
            spent=3700.0,
            everything=2400.0,
            measured=2400.0,
            unit="examples",
        )

    def test_seconds_are_projected_from_those_that_were_measured(self) -> None:
        record = allocations_record(studies.running(), "seconds", 60)
        assert record.layers[0].costs == (1.0, 1.0)
        assert record.spent == 8.0
        assert record.everything == pytest.approx(16.0, rel=0.15), "a second per hundred examples"
        assert record.measured == 0.0
        finished = allocations_record(studies.finished(), "seconds", 60)
        assert finished.measured == 16.0
        assert finished.everything == pytest.approx(24.0, rel=0.02)

    def test_seconds_where_every_probe_was_timed_else_examples(self) -> None:
        assert allocations_record(studies.finished(), "auto", 60).unit == "seconds"
        assert allocations_record(studies.empty(), "auto", 60).unit == "examples"

    def test_unmeasured_seconds_cost_nothing(self) -> None:
        def objective(trial: optuna.Trial) -> float:
            """Report as any objective of Optuna does."""
            trial.suggest_categorical("name", list(RIVALS))
            for size in studies.SIZES:
                trial.report(0.5, size)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return 0.5

        study = studies.new_study()
        study.optimize(objective)
        record = allocations_record(study, "seconds", 60)
        assert (record.spent, record.everything) == (0.0, 0.0)

    def test_learners_are_sorted_by_score_those_without_last(self) -> None:
        def order(study: optuna.Study) -> list[int]:
            return [curve.learner for curve in allocations_record(study, "examples", 60).curves]

        assert order(studies.failed_learners()) == [4, 2, 0, 1, 3]
        assert order(studies.minimized()) == [2, 0, 1]
        assert order(studies.infinite()) == [2, 0, 1, 3]

    def test_those_beyond_the_first_share_a_bar(self) -> None:
        record = allocations_record(studies.finished(), "examples", 1)
        assert record.names == ("2 ash", "mean of 2 others")
        assert [layer.costs for layer in record.layers] == [
            (100.0, 100.0), (200.0, 200.0), (400.0, 400.0), (800.0, 400.0),
        ]  # fmt: skip
        assert record.spent == 3700.0
        assert allocations_record(studies.finished(), "examples", 0).names == (
            "mean of 3 learners",
        )
        with pytest.raises(ValueError, match="`top` must be at least 0, but got -1"):
            allocations_record(studies.finished(), "examples", -1)

    def test_learners_that_were_never_trained_are_not_part_of_everything(self) -> None:
        assert allocations_record(studies.failed_learners(), "examples", 60).everything == 4 * 800

    def test_the_unit_is_one_of_two(self) -> None:
        with pytest.raises(
            ValueError, match="""must be "auto", "examples" or "seconds", but got 'euro'"""
        ):
            allocations_record(studies.finished(), "euro", 60)  # type: ignore[arg-type]


class TestSearchHistory:
    def test_marks_and_the_best_so_far(self) -> None:
        record = search_history_record(studies.finished(), "auto")
        ends = [mark.at for mark in record.marks]
        assert record.unit == "seconds"
        assert ends == [1, 3, 7, 8, 10, 14, 15, 17, 21, 29, 37]
        assert [mark.kind for mark in record.marks] == [
            "newcomer", "promotion", "promotion",
            "newcomer", "promotion", "promotion",
            "newcomer", "promotion", "promotion", "all the data", "all the data",
        ]  # fmt: skip
        assert [(mark.at, mark.score) for mark in record.best] == [(29, 0.875)]
        assert [path[0].learner for path in record.paths] == [2]
        assert [mark.size for mark in record.paths[0]] == [*SIZES]
        assert record.spent == 37

    def test_in_examples(self) -> None:
        record = search_history_record(studies.finished(), "examples")
        assert [mark.at for mark in record.marks][:3] == [100, 300, 700]
        assert record.spent == 3700

    def test_the_best_gets_ever_better(self) -> None:
        for study in (studies.crowded(8, 3), studies.minimized(), studies.abc()):
            record = search_history_record(study, "auto")
            scores = [mark.score for mark in record.best]
            assert scores == sorted({*scores}, reverse=record.axis.is_minimized)
            assert scores[-1] == study.best_value

    def test_minimized_searches_mirror_maximized_ones(self) -> None:
        up, down = (search_history_record(make(), "auto")
                    for make in (studies.finished, studies.minimized))  # fmt: skip
        assert [1 - mark.score for mark in down.marks] == [mark.score for mark in up.marks]
        assert [mark.at for mark in down.best] == [mark.at for mark in up.best]

    def test_what_everybody_wants_to_see_fits_in(self) -> None:
        record = search_history_record(studies.finished(), "auto")
        assert record.axis.limits is not None
        low, high = record.axis.limits
        assert all(low < mark.score < high for mark in record.marks if mark.size == SIZES[-1])


def forecast(direction: str = "maximize") -> optuna.Study:
    """Return a study by the default rule, whose forecasts rest on what all learners gain."""
    sign = -1 if direction == "minimize" else 1
    known = {
        f"tree {i}": [sign * (0.5 + i / 20 - (0.3 + i / 50) * (100 / n) ** 0.5) for n in SIZES]
        for i in range(6)
    }
    study = studies.new_study(known, DAUBPruner(sizes=SIZES), direction)
    return studies.run(study, studies.Table(known, training_score=None))


class TestBounds:
    def test_steps_and_leads(self) -> None:
        record = bounds_record(studies.finished(), None, 12)
        ash, oak, elm = record.tracks
        assert [track.curve.learner for track in record.tracks] == [2, 0, 1]
        # A bound takes the three sizes on which every learner is first trained.
        assert [step.number for step in oak.steps] == [3, 11]
        assert elm.steps[0] == BoundStep(6, 1, 400, 0.5, 0.5)
        assert ash.steps == (
            BoundStep(9, 2, 400, 0.75, 1.0),  # the training score
            BoundStep(10, 2, 800, 0.875, 0.875),  # its own score
            BoundStep(11, 2, 800, 0.875, 0.875, is_probe=False),
        )
        assert elm.steps[1:] == (BoundStep(11, 1, 400, 0.5, 0.5, is_probe=False),)
        assert record.n_probes == 11
        assert record.leads[-3:] == (
            Lead(9, 2, 1.0),
            Lead(10, 0, pytest.approx(0.6875 + 400 * 0.65 / 1120)),
            Lead(11, 2, 0.875),
        )

    def test_the_last_bound_of_each_learner_is_the_one_of_its_curve(self) -> None:
        for study in (studies.finished(), studies.minimized(), studies.running(), studies.abc(),
                      forecast(), forecast("minimize")):  # fmt: skip
            for track in bounds_record(study, None, 12).tracks:
                last = track.steps[-1].bound if track.steps else None
                assert last == pytest.approx(track.curve.bound)

    def test_a_study_drawn_again_and_again_has_the_bounds_of_one_drawn_once(self) -> None:
        study = studies.new_study()
        for _ in range(4):
            studies.run(study, studies.Table(RIVALS), n_trials=1)
            again = bounds_record(study, None, 12)
        assert again == bounds_record(studies.finished(), None, 12)

    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_what_others_gain_moves_the_bound_of_a_suspended_learner(self, direction: str) -> None:
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
                    n_moved += step.number == number and not step.is_probe
        assert n_moved > 10
        assert record.leads[-1].bound == pytest.approx(
            sign * max(policy.interval(pool, learner).upper for learner in curves)
        )

    def test_all_bounds_are_looked_at_sixteen_times_in_each_doubling(self) -> None:
        assert all(map(_is_moment, range(1, 32)))
        for begin in (32, 64, 1024, 2**20):
            assert sum(map(_is_moment, range(begin, 2 * begin))) == MOMENTS

    def test_minimized_bounds_mirror_maximized_ones(self) -> None:
        up, down = (
            bounds_record(studies.finished(), None, 12),
            bounds_record(studies.minimized(), None, 12),
        )
        assert [(lead.number, lead.learner) for lead in down.leads] == [
            (lead.number, lead.learner) for lead in up.leads
        ]
        assert [1 - lead.bound for lead in down.leads] == pytest.approx(
            [lead.bound for lead in up.leads]
        )
        assert down.axis.is_minimized

    def test_a_dropped_learner_leads_no_longer_after_its_last_probe(self) -> None:
        study = studies.failed_learners()
        record = bounds_record(study, None, 12)
        (box,) = (track for track in record.tracks if track.curve.learner == 4)
        assert box.curve.state == "dropped"
        assert box.steps[-1].bound == 1.0, "the largest of all bounds"
        assert not [lead for lead in record.leads if lead.number >= box.steps[-1].number
                    and lead.learner == 4]  # fmt: skip

    def test_scores_that_are_no_finite_numbers_have_no_bound(self) -> None:
        known = {**RIVALS, "yew": (0.5, 0.5, 0.5, float("-inf"))}
        study = studies.run(studies.new_study(known), studies.Table(known))
        (yew,) = bounds_record(study, [3], 12).tracks
        assert {step.size for step in yew.steps} == {400}


@pytest.mark.parametrize("state", [studies.empty, studies.begun, studies.only_failures])
def test_where_there_is_nothing_to_draw_the_log_says_so(
    state: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(state)
    study = state()
    with caplog.at_level(logging.WARNING, "optuna_daub.visualization"):
        learning_curves_record(study, None, 12)
        allocations_record(study, "examples", 60)
        bounds_record(study, None, 12)
        search_history_record(study, "auto")
    assert [
        record.getMessage() for record in caplog.records if ".visualization." in record.name
    ] == [
        "There is no learning curve to draw: no score has been reported yet.",
        "There is no allocation to draw: no examples are known yet.",
        "There is no bound to draw: no learner has one yet.",
        "There is no search to draw: no score has been reported yet.",
    ]


def test_records_are_the_same_when_asked_twice() -> None:
    study = studies.running()
    assert learning_curves_record(study, None, 12) == learning_curves_record(study, None, 12)
    assert bounds_record(study, None, 12) == bounds_record(study, None, 12)
    before = study.get_trials()
    allocations_record(study, "seconds", 60)
    assert study.get_trials() == before, "pictures change nothing"


def test_a_curve_is_what_the_results_say() -> None:
    study = studies.finished()
    (line,) = learning_curves_record(study, [1], 12).lines
    assert line.curve == LearnerCurve(
        1,
        {"name": "elm"},
        observed(0.5, 0.5, 0.5),
        "suspended",
        0.5,
        None,
        "suspended at 400: bound 0.500 < 0.875 of learner 2",
    )
