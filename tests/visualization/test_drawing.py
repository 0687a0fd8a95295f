"""Both renderers draw every state; warnings are errors."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from collections.abc import Iterator

import optuna
import pytest

from optuna_daub import best_learner
from optuna_daub.core.optional import imported
from tests.visualization import studies


matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

from matplotlib import pyplot  # noqa: E402

import optuna_daub.visualization as by_plotly  # noqa: E402
import optuna_daub.visualization.matplotlib as by_matplotlib  # noqa: E402
from optuna_daub import learning_curves  # noqa: E402
from optuna_daub.visualization._plotly import _short  # noqa: E402
from optuna_daub.visualization._search_history import search_history_record  # noqa: E402


PLOTS = ("plot_learning_curves", "plot_allocations", "plot_search_history", "plot_upper_bounds",
         "plot_sample_agreement")  # fmt: skip
Make = Callable[[], optuna.Study]
NOTHING = {studies.empty, studies.begun, studies.only_failures}
"""Studies without any mark in any plot."""
FEW = {studies.running, studies.one_learner}
"""Studies with fewer than three learners, which are not ranked."""


def has_marks(plot: str, make: Make) -> bool:
    return make not in NOTHING and not (plot == "plot_sample_agreement" and make in FEW)


@pytest.fixture(autouse=True)
def _off_screen() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.mark.parametrize("make", studies.STATES, ids=lambda make: make.__name__)
def test_every_state_is_drawn(make: Make) -> None:
    study = make()
    for plot in PLOTS:
        figure = getattr(by_plotly, plot)(study)
        drawn = json.loads(figure.to_json())
        assert figure.layout.title.text
        assert bool(drawn["data"]) == has_marks(plot, make), plot
        axes = getattr(by_matplotlib, plot)(study)
        axes.figure.canvas.draw()
        assert bool(axes.lines or axes.patches) == has_marks(plot, make), plot
        pyplot.close("all")


def test_seconds_are_drawn() -> None:
    study = studies.finished()
    assert "seconds" in by_plotly.plot_allocations(study, unit="seconds").layout.title.text
    assert "seconds" in by_matplotlib.plot_allocations(study, unit="seconds").get_title()


@pytest.mark.parametrize("plot", PLOTS)
def test_two_hundred_learners_are_small_and_few_marks(plot: str) -> None:
    figure = getattr(by_plotly, plot)(studies.many())
    assert len(figure.to_json()) < 1_000_000
    assert len(figure.data) < 50
    assert len(getattr(by_matplotlib, plot)(studies.many()).get_children()) < 50
    assert figure.layout.legend.orientation == "h", "beside the picture it takes half of the width"
    _, *lines = figure.layout.title.text.split("<br>")
    assert all(len(re.sub(r"<[^>]*>", "", line)) <= 54 for line in lines), "the width of a phone"


class TestPlotly:
    def test_sizes_are_written_at_the_axis(self) -> None:
        axis = by_plotly.plot_learning_curves(studies.crowded(2)).layout.xaxis
        assert axis.type == "log"
        assert axis.ticktext[-1] == "43,249"
        assert axis.tickvals[-1] == 43_249

    def test_states_are_told_apart(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.failed_learners())
        looks = {
            trace.name.partition(", ")[2]: (trace.marker.symbol, trace.line.dash, trace.line.width)
            for trace in figure.data
            if trace.name and ", " in trace.name
        }
        assert set(looks) == {"best", "complete", "suspended", "dropped"}
        assert len(set(looks.values())) == 4
        assert looks["best"][2] > looks["suspended"][2]

    def test_large_sizes_keep_all_their_digits(self) -> None:
        study = studies.finished()
        figure = by_plotly.plot_learning_curves(study)
        sizes = {x for trace in figure.data for x in trace.x if x is not None}
        assert {seen.size for c in learning_curves(study) for seen in c.observations} <= sizes
        assert _short(1_234_567) == 1_234_567
        assert _short(2 / 3) == 0.666667

    def test_training_scores_are_dashed(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.finished())
        *dashed, key = [trace for trace in figure.data if trace.line.dash == "dash"]
        assert [set(trace.y) for trace in dashed] == [{1.0}] * 3
        assert (key.name, key.y) == ("training score", (None,)), "for the legend"

    def test_hover_tells_parameters_and_the_last_reason(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.finished(), learners=[1])
        (curve,) = (trace for trace in figure.data if ", " in (trace.name or ""))
        assert "name = elm" in curve.hovertemplate
        assert "suspended at 400: bound 0.500 &lt; 0.875 of learner 2" in curve.hovertemplate

    def test_a_name_is_shown_as_it_is(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.strange_names(), learners=[0])
        (curve,) = (trace for trace in figure.data if ", " in (trace.name or ""))
        assert curve.name.startswith("0 &lt;b&gt;oak&lt;/b&gt; &amp; ")
        assert "name = &lt;b&gt;oak&lt;/b&gt; &amp; %&#123;x}" in curve.hovertemplate

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    def test_the_name_of_the_metric_is_shown_as_it_is(self) -> None:
        study = studies.finished()
        study.set_metric_names(["<b>share</b>"])
        shown = "&lt;b&gt;share&lt;/b&gt;"
        assert by_plotly.plot_learning_curves(study).layout.yaxis.title.text == shown
        assert by_plotly.plot_search_history(study).layout.yaxis.title.text == shown
        assert shown in by_plotly.plot_upper_bounds(study).layout.yaxis.title.text

    @pytest.mark.parametrize("plot", PLOTS[:1] + PLOTS[2:4])
    def test_scores_that_differ_in_their_last_digits_are_drawn_apart(self, plot: str) -> None:
        """A log-likelihood has many digits before those that tell two learners apart."""
        level = 1_234_567.0
        known = {name: tuple(level + s for s in row if s) for name, row in studies.RIVALS.items()}
        study = studies.run(studies.new_study(known), studies.Table(known, training_score=None))
        figure = getattr(by_plotly, plot)(study)
        drawn = {y for trace in figure.data for y in trace.y if y is not None}
        assert {level + 0.75, level + 0.875} <= drawn
        low, high = figure.layout.yaxis.range
        assert high - low < 10
        digits = int(figure.layout.yaxis.hoverformat.strip(",.~r"))
        assert f"{level + 0.75:.{digits}g}" != f"{level + 0.875:.{digits}g}"

    def test_a_dollar_begins_no_formula(self) -> None:
        """On a page with MathJax, as a notebook is, plotly reads formulas between two of them."""
        figure = by_plotly.plot_learning_curves(studies.strange_names())
        assert any("&#36;el_m&#36;" in (trace.name or "") for trace in figure.data)
        assert "$" not in figure.to_json()

    def test_others_are_background(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.many(), top=3)
        assert len([trace for trace in figure.data if ", " in (trace.name or "")]) == 3
        (others,) = (trace for trace in figure.data if trace.text)
        assert others.line.color == "#8c8c8c"
        groups = itertools.groupby(others.y, lambda y: y is None)
        lengths = [len([*group]) for is_gap, group in groups if not is_gap]
        assert lengths == [5] * len(lengths)
        assert 24 < len(lengths) <= 48

    def test_others_tell_their_parameters_at_the_end(self) -> None:
        study = studies.finished()
        (others,) = by_plotly.plot_learning_curves(study, top=0).data
        ends = [i for i, y in enumerate(others.y) if y is None]
        assert [others.text[i - 1] for i in ends] == ["2 ash", "0 oak", "1 elm"]
        assert all(others.customdata[i - 1].startswith("name = ") for i in ends)
        assert [others.marker.size[i - 1] for i in ends] == [4.0] * 3
        (best, others) = by_plotly.plot_upper_bounds(study, top=0).data
        assert best.name == "best bound"
        assert [others.x[i - 1] for i, x in enumerate(others.x) if x is None] == [11, 11, 11]

    def test_the_legend_goes_from_the_foremost_to_the_last(self) -> None:
        figure = by_plotly.plot_learning_curves(studies.finished())
        shown = sorted((t for t in figure.data if t.name), key=lambda trace: trace.legendrank)
        assert [trace.name for trace in shown] == [
            "2 ash, best", "0 oak, complete", "1 elm, suspended", "training score", "forecast",
        ]  # fmt: skip

    @pytest.mark.parametrize("plot", ["plot_learning_curves", "plot_upper_bounds"])
    def test_the_leader_of_an_unfinished_study_is_in_front_of_all_others(self, plot: str) -> None:
        """An open pool never ends by itself, so most studies have no learner called best."""
        study = studies.running()
        best = best_learner(study)
        assert best is not None
        assert not best.is_final
        named = [each for each in getattr(by_plotly, plot)(study).data if "," in (each.name or "")]
        first = named[-1]
        assert first.name == f"{best.learner} {best.params['name']}, leader"
        assert first.marker.symbol == "star"

    def test_the_total_is_compared_with_training_everything(self) -> None:
        title = by_plotly.plot_allocations(studies.finished()).layout.title.text
        said = " ".join(re.sub(r"<[^>]*>", " ", title).split())
        assert re.search(
            r"37 seconds, about 1[45]\d% of training 3 learners on all the data", said
        )
        figure = by_plotly.plot_allocations(studies.running(), unit="examples")
        assert "800 examples, 50% of training 2 learners" in figure.layout.title.text

    def test_every_name_is_written(self) -> None:
        figure = by_plotly.plot_allocations(studies.crowded(60, n_sizes=3))
        assert figure.layout.yaxis.dtick == 1
        assert len(figure.data[0].y) == 60
        between = (figure.layout.height - 130) / 60
        assert between >= 1.5 * figure.layout.yaxis.tickfont.size, "room between two lines"

    def test_minimized_bounds_are_lower_ones(self) -> None:
        assert "Lower bounds" in by_plotly.plot_upper_bounds(studies.minimized()).layout.title.text


@pytest.mark.parametrize("plot", ["plot_learning_curves", "plot_upper_bounds"])
def test_curves_have_room_above_a_legend_of_one_name_in_a_row(plot: str) -> None:
    """That is the legend on a phone, with rows of 19 pixels; 80 more are below the axis."""
    figure = getattr(by_plotly, plot)(studies.crowded(20, n_sizes=4))
    n_rows = len([trace for trace in figure.data if trace.name and trace.showlegend is not False])
    assert n_rows > 12
    assert figure.layout.height - figure.layout.margin.t - 80 - 19 * n_rows >= 150


@pytest.mark.parametrize("n_learners", [2, 60, 61])
def test_names_do_not_touch_each_other(n_learners: int) -> None:
    axes = by_matplotlib.plot_allocations(studies.crowded(n_learners, n_sizes=3))
    axes.figure.canvas.draw()
    labels = axes.get_yticklabels()
    names = [f"{learner} learner of kind {learner}" for learner in range(min(n_learners, 60))]
    assert [each.get_text() for each in labels][: len(names)] == names
    assert len(labels) == (n_learners if n_learners <= 60 else 61)
    boxes = [each.get_window_extent() for each in labels]
    assert all(upper.y0 >= lower.y1 for upper, lower in itertools.pairwise(boxes))
    assert all(each.get_fontsize() >= 8 for each in labels)
    assert all(box.x0 >= 0 for box in boxes)


def test_matplotlib_draws_in_the_size_that_was_set() -> None:
    study = studies.finished()
    assert [*by_matplotlib.plot_upper_bounds(study).figure.get_size_inches()] == [9.0, 5.0]
    with pyplot.rc_context({"figure.figsize": (5.0, 4.0)}):
        axes = by_matplotlib.plot_upper_bounds(study)
    assert [*axes.figure.get_size_inches()] == [5.0, 4.0]
    axes.figure.canvas.draw()
    (legend,) = axes.figure.legends
    assert legend.get_window_extent().y1 <= axes.get_window_extent().y0, "under the picture"


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("plot", ["plot_learning_curves", "plot_upper_bounds"])
def test_a_long_name_of_the_score_is_no_longer_than_its_axis(plot: str) -> None:
    study = studies.minimized()
    study.set_metric_names(["mean_absolute_percentage_error"])
    axes = getattr(by_matplotlib, plot)(study)
    axes.figure.canvas.draw()
    title, plain = axes.yaxis.label.get_window_extent(), axes.get_window_extent()
    assert plain.y0 - 5 <= title.y0 < title.y1 <= plain.y1 + 5, "pixels, of some 380"
    text = getattr(by_plotly, plot)(study).layout.yaxis.title.text
    assert max(map(len, text.split("<br>"))) <= 30, "220 pixels of the 450 that plotly gives"
    assert "mean_absolute_percentage_error" in text
    assert text.replace("<br>", " ") == axes.get_ylabel().replace("\n", " ")


def test_two_lines_under_a_narrow_title_are_not_cut() -> None:
    study = studies.strange_names()  # the best has a long name
    with pyplot.rc_context({"figure.figsize": (4.0, 4.0)}):
        axes = by_matplotlib.plot_search_history(study)
    _, *lines = axes.get_title().split("\n")
    assert " ".join(lines).startswith(search_history_record(study, "auto").finding)
    assert max(map(len, lines)) <= 40


def test_sizes_under_a_narrow_picture_do_not_touch_each_other() -> None:
    study = studies.crowded(3, n_sizes=12)
    with pyplot.rc_context({"figure.figsize": (4.0, 4.0)}):
        axes = by_matplotlib.plot_learning_curves(study)
    axes.figure.canvas.draw()
    labels = axes.get_xticklabels()
    assert labels[-1].get_text() == f"{study.pruner.policy.sizes[-1]:,}"
    # Slanted by 45 degrees, lines of text touch if their ends are nearer than their height.
    ends = [each.get_window_extent().x1 for each in labels]
    height = labels[0].get_fontsize() / 72 * axes.figure.dpi
    assert all(b - a >= math.sqrt(2) * height for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("plot", PLOTS)
def test_both_libraries_have_the_same_legend(plot: str) -> None:
    study = studies.failed_learners()
    figure = getattr(by_plotly, plot)(study)
    named = sorted((t for t in figure.data if t.name), key=lambda trace: trace.legendrank)
    (legend,) = getattr(by_matplotlib, plot)(study).figure.legends
    assert [trace.name for trace in named] == [text.get_text() for text in legend.get_texts()]


def test_matplotlib_keeps_the_global_style() -> None:
    before = matplotlib.rcParams.copy()
    for plot in PLOTS:
        getattr(by_matplotlib, plot)(studies.finished())
    assert matplotlib.rcParams == before


def test_a_missing_library_is_named_with_its_install_line() -> None:
    with pytest.raises(ImportError, match=r"needs no-such, .* pip install 'optuna-daub\[plot\]'"):
        imported("no_such.module", extra="plot")
