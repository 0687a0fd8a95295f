"""The pictures drawn by plotly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import optuna

from optuna_daub.visualization._bounds import BoundsRecord
from optuna_daub.visualization._bounds import bounds_record
from optuna_daub.visualization._imports import imported
from optuna_daub.visualization._records import AllocationsRecord
from optuna_daub.visualization._records import LearningCurvesRecord
from optuna_daub.visualization._records import Unit
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import learning_curves_record
from optuna_daub.visualization._style import bound_range
from optuna_daub.visualization._style import label
from optuna_daub.visualization._style import learner_colors
from optuna_daub.visualization._style import score_range
from optuna_daub.visualization._style import size_colors
from optuna_daub.visualization._style import spending
from optuna_daub.visualization._style import tick_sizes
from optuna_daub.visualization._traces import Trace
from optuna_daub.visualization._traces import background
from optuna_daub.visualization._traces import bound_track
from optuna_daub.visualization._traces import escaped
from optuna_daub.visualization._traces import leaders
from optuna_daub.visualization._traces import short
from optuna_daub.visualization._traces import training
from optuna_daub.visualization._traces import validation
from optuna_daub.visualization._traces import wedge


if TYPE_CHECKING:
    import plotly.graph_objects as go


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot score against training size, one line per learner, all its runs merged.

    Dashed lines are training scores. A wedge shows where a learner's score on all the data is
    believed to lie: up to DAUB's bound, or ABC's interval. Resting on a line tells the learner's
    parameters and the reason of the last decision on it.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        learners: ids of the learners to show; None (the default) shows all.
        top: how many of them stand out, the best and those with most data first; the others are
            thin and grey. As many as there are colours that can be told apart.

    Returns:
        A figure, without lines where no score has been reported.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where one of `learners` is not in the study, `top` < 0, or the study's pruner
            is none of optuna_daub.

    >>> import optuna
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner
    >>> sampler = DataAllocationSampler(n_learners=3)
    >>> pruner = DAUBPruner(max_resource=2000)
    >>> study = optuna.create_study(sampler=sampler, pruner=pruner)
    >>> figure = plot_learning_curves(study)
    >>> figure.layout.title.text
    'Learning curves'
    """
    return _draw_curves(learning_curves_record(study, learners, top))


def plot_allocations(study: optuna.Study, *, unit: Unit = "examples") -> go.Figure:
    """Plot what each learner was given, the best score first, stacked by probe.

    The title compares the total with training each of these learners once on all the data. It is
    the paper's Figure 2.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        unit: "examples", each probe counted in full, or "seconds", as far as they were measured;
            training everything is then projected in proportion to the examples, which is less
            than it takes where time grows faster.

    Returns:
        A figure, without bars where nothing was trained yet.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where `unit` is another word, or the study's pruner is none of optuna_daub.
    """
    return _draw_allocations(allocations_record(study, unit))


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot how bounds and the leader changed from probe to probe: why each got data when it did.

    A learner's line moves when it is trained (markers) and rests while it is suspended; the broad
    line is the best bound of all. Who comes to lie under it has lost the turn.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        learners: ids of the learners to show; None (the default) shows all.
        top: how many of them stand out, the best and those with most data first.

    Returns:
        A figure, without lines where no learner has a bound.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where one of `learners` is not in the study, `top` < 0, or the study's pruner
            is none of optuna_daub.
    """
    return _draw_bounds(bounds_record(study, learners, top))


def _draw_curves(record: LearningCurvesRecord) -> go.Figure:
    colors = learner_colors(line.curve for line in record.lines if line.is_highlighted)
    traces: list[Trace] = []
    for line in reversed(record.lines):  # the foremost on top
        color = colors.get(line.curve.learner)
        if not line.points:
            continue
        if color is None:
            traces.append(background(line))
        else:
            traces += [*wedge(line, color), *training(line, color), validation(line, color)]
    ticks = tick_sizes(record.sizes)
    limits = score_range(record.lines)
    return _figure(
        traces,
        title="Learning curves",
        xaxis={
            "title": "training examples",
            "type": "log",
            "tickvals": ticks,
            "ticktext": [f"{size:,}" for size in ticks],
            "tickangle": -45,
            "range": [math.log10(record.sizes[0] * 0.93), math.log10(record.sizes[-1] * 1.07)],
        },
        yaxis={"title": record.axis.name, "range": limits},
    )


def _draw_allocations(record: AllocationsRecord) -> go.Figure:
    names = [escaped(label(curve, width=16)) for curve in record.curves]
    colors = size_colors([layer.size for layer in record.layers])
    traces = [
        {
            "type": "bar",
            "x": names,
            "y": [short(cost) for cost in layer.costs],
            "name": f"{layer.size:,}",
            "marker": {"color": colors[layer.size], "line": {"width": 0}},
            "hovertemplate": f"%{{x}}<br>{layer.size:,} examples: %{{y:,.4~g}} {record.unit}"
            "<extra></extra>",
        }
        for layer in record.layers
    ]
    return _figure(
        traces if record.spent else [],
        title=f"{record.unit.capitalize()} given to each learner<br><sup>{spending(record)}</sup>",
        xaxis={
            "title": "learners, best score first",
            "type": "category",
            "tickfont": {"size": 10},
        },
        yaxis={"title": record.unit, "tickformat": ",~s"},
        barmode="stack",
        bargap=0.15,
        legend={"title": "training size", "font": {"size": 10}},
    )


def _draw_bounds(record: BoundsRecord) -> go.Figure:
    colors = learner_colors(track.curve for track in record.tracks if track.is_highlighted)
    traces: list[Trace] = [leaders(record)] if record.leads else []
    for track in reversed(record.tracks):
        if track.steps:
            traces.append(bound_track(track, colors.get(track.curve.learner), record.n_probes))
    side = "lower" if record.axis.is_minimized else "upper"
    return _figure(
        traces,
        title=f"{side.capitalize()} bounds by probe<br><sup>{record.audit}</sup>",
        xaxis={"title": "probes", "rangemode": "tozero"},
        yaxis={
            "title": f"{side} bound of {record.axis.name} on all the data",
            "range": bound_range(record),
        },
    )


def _figure(traces: list[Trace], **layout: Any) -> go.Figure:
    go = imported("plotly.graph_objects", extra="plot")
    legend = {"traceorder": "reversed", "font": {"size": 11}, **layout.pop("legend", {})}
    shared = {"hovermode": "closest", "margin": {"t": 70, "r": 20}, "legend": legend}
    return go.Figure({"data": traces, "layout": {**shared, **layout}})
