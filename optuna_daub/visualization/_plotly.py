"""The pictures drawn by plotly."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal
from typing import TypeAlias

import optuna

from optuna_daub.visualization._imports import imported
from optuna_daub.visualization._records import BACKGROUND
from optuna_daub.visualization._records import KINDS
from optuna_daub.visualization._records import LOOKS
from optuna_daub.visualization._records import MOST_TOLD
from optuna_daub.visualization._records import BoundTrack
from optuna_daub.visualization._records import CurveLine
from optuna_daub.visualization._records import Unit
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import bounds_record
from optuna_daub.visualization._records import learning_curves_record
from optuna_daub.visualization._records import search_history_record


if TYPE_CHECKING:
    import plotly.graph_objects as go


Trace: TypeAlias = dict[str, Any]
"""A line of a figure as plotly reads it; a figure of dictionaries is made ten times as fast as
one of plotly's objects."""

_SYMBOLS = {
    "best": "star",
    "complete": "diamond",
    "running": "triangle-right",
    "suspended": "circle-open",
    "dropped": "x",
}


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot score against training size, one line per learner, all its runs merged.

    Dashed lines are training scores. Bands show where the scores of the five foremost learners are
    believed to lie from their last ones on, up to what the study reports of them on all the data:
    an interval of ABC, a forecast, or all scores up to DAUB's bound. Resting on a line tells the
    learner's parameters and the reason of the last decision on it; of many grey ones, their names.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        learners: ids of the learners to show; None (the default) shows all.
        top: how many of them stand out, the best and those with most data first; the others are
            thin and grey. Default: 12, as many colours as can be told apart.

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
    record = learning_curves_record(study, learners, top)
    traces: list[Trace] = []
    others = [line for line in record.lines if line.points and not line.color]
    if others:
        points = [(line, [(seen.size, seen.score) for seen in line.points]) for line in others]
        traces.append(_background(points, "%{x:,} examples: %{y:.5~g}"))
    for line in reversed(record.lines):  # the foremost on top
        if line.points and line.color:
            traces += _curve(line)
    return _figure(
        traces,
        title="Learning curves",
        xaxis={
            "title": "training examples",
            "type": "log",
            "tickvals": record.ticks,
            "ticktext": [f"{size:,}" for size in record.ticks],
            "tickangle": -45,
            "range": [math.log10(record.sizes[0] * 0.93), math.log10(record.sizes[-1] * 1.07)],
        },
        yaxis={"title": _escaped(record.axis.name), "range": record.axis.limits},
    )


def plot_allocations(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto", top: int = 60
) -> go.Figure:
    """Plot what each learner was given, the best score first, stacked by probe.

    The title compares the total with training each of these learners once on all the data. It is
    the paper's Figure 2, lying down so that names can be read.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        unit: "examples", each probe counted in full, or "seconds", as far as they were measured;
            training everything is then projected from the times of all learners. "auto" (the
            default) is seconds where every probe was timed, examples elsewhere.
        top: how many learners have a bar of their own, those with the best scores; the others
            share the last one, which is their mean.

    Returns:
        A figure, without bars where nothing was trained yet.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where `unit` is another word, `top` < 0, or the study's pruner is none of
            optuna_daub.
    """
    record = allocations_record(study, unit, top)
    names = [_escaped(name) for name in record.names]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [_short(cost) for cost in layer.costs],
            "y": names,
            "name": f"{layer.size:,}",
            "marker": {"color": layer.color, "line": {"width": 0}},
            "hovertemplate": f"%{{y}}<br>{layer.size:,} examples: %{{x:,.4~g}} {record.unit}"
            "<extra></extra>",
        }
        for layer in record.layers
    ]
    return _figure(
        traces if record.spent else [],
        title=f"{record.unit.capitalize()} given to each learner<br><sup>{record.spending}</sup>",
        height=max(450, 130 + 16 * len(names)),
        xaxis={"title": record.unit, "tickformat": ",~s"},
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "dtick": 1,  # every name, however many
            "tickfont": {"size": 10},
        },
        barmode="stack",
        bargap=0.15,
        legend={"title": "training size", "font": {"size": 10}, "traceorder": "normal"},
    )


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot how bounds and the leader changed from probe to probe: why each got data when it did.

    A learner's line moves when it is trained (markers) and rests while it is suspended; the broad
    line is the best bound of all. A learner whose line comes to lie under it has lost the turn.

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
    record = bounds_record(study, learners, top)
    traces: list[Trace] = []
    if record.leads:
        bounds = [_short(lead.bound) for lead in record.leads]
        traces.append(
            {
                "type": "scatter",
                "x": [*(lead.number for lead in record.leads), record.n_probes],
                "y": [*bounds, bounds[-1]],
                "mode": "lines",
                "name": "best bound",
                "line": {"color": BACKGROUND, "width": 9, "shape": "hv"},
                "opacity": 0.35,
                "text": [f"learner {lead.learner} leads" for lead in record.leads],
                "hovertemplate": "from probe %{x} on: %{text} with %{y:.5~g}<extra></extra>",
            }
        )
    others = [track for track in record.tracks if track.steps and not track.color]
    if others:
        points = [(track, [(step.number, step.bound) for step in track.steps]) for track in others]
        traces.append(_background(points, "probe %{x}: bound %{y:.5~g}", shape="hv"))
    for track in reversed(record.tracks):
        if not track.steps or not track.color:
            continue
        look, color = LOOKS[track.curve.state], track.color
        marks = [(4 + look.width) * step.is_probe for step in track.steps]
        symbol = {"symbol": _SYMBOLS[track.curve.state], "size": marks}
        traces.append(
            {
                "type": "scatter",
                "x": [step.number for step in track.steps],
                "y": [_short(step.bound) for step in track.steps],
                "customdata": [step.size for step in track.steps],
                "mode": "lines+markers",
                "name": f"{_escaped(track.name)}, {track.curve.state}",
                "line": {"color": color, "width": look.width, "shape": "hv"},
                "marker": {**symbol, "line": {"color": color}},  # white where sizes differ
                "opacity": look.opacity,
                "hovertemplate": _hover(
                    track, "probe %{x}: %{customdata:,} examples, bound %{y:.5~g}"
                ),
            }
        )
    side = "lower" if record.axis.is_minimized else "upper"
    promise = "<br>".join(textwrap.wrap(_escaped(record.promise), 140)[:2])
    return _figure(
        traces,
        title=f"{side.capitalize()} bounds by probe<br><sup>{promise}</sup>",
        xaxis={"title": "probes", "rangemode": "tozero"},
        yaxis={
            "title": f"{side} bound of {_escaped(record.axis.name)} on all the data",
            "range": record.axis.limits,
        },
    )


def plot_search_history(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto"
) -> go.Figure:
    """Plot what a search has found by when: the best score on all the data against seconds.

    Every probe is a mark where it ended: newcomers, promotions of suspended learners to more data,
    and trainings on all the data. The broad line is the best of these so far; thin ones join the
    probes of each learner that was.

    Args:
        study: a study with a pruner of optuna_daub, finished or running.
        unit: "seconds" or "examples" spent on all probes so far, whoever trained them; "auto" (the
            default) is seconds where every probe was timed, examples elsewhere.

    Returns:
        A figure, without marks where no score has been reported.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where `unit` is another word, or the study's pruner is none of optuna_daub.
    """
    record = search_history_record(study, unit)
    traces: list[Trace] = []
    if record.paths:
        joined = [mark for path in record.paths for mark in (*path, None)]
        traces.append(
            {
                "type": "scatter",
                "x": [mark and _short(mark.at) for mark in joined],
                "y": [mark and _short(mark.score) for mark in joined],
                "mode": "lines",
                "line": {"color": KINDS["all the data"], "width": 1, "dash": "dot"},
                "showlegend": False,
                "hoverinfo": "skip",
            }
        )
    for kind, color in KINDS.items():
        marks = [mark for mark in record.marks if mark.kind == kind]
        symbol, size = _PROBES[kind]
        traces.append(
            {
                "type": "scatter",
                "x": [_short(mark.at) for mark in marks],
                "y": [_short(mark.score) for mark in marks],
                "text": [f"{_escaped(mark.name)}<br>{mark.size:,} examples" for mark in marks],
                "mode": "markers",
                "name": kind,
                "marker": {"color": color, "symbol": symbol, "size": size},
                "hovertemplate": "%{text}: %{y:.5~g}<extra></extra>",
            }
        )
    if record.best:
        scores = [_short(mark.score) for mark in record.best]
        traces.append(
            {
                "type": "scatter",
                "x": [*(_short(mark.at) for mark in record.best), _short(record.spent)],
                "y": [*scores, scores[-1]],
                "mode": "lines",
                "name": "best so far",
                "line": {"color": KINDS["all the data"], "width": 3, "shape": "hv"},
                "hoverinfo": "skip",
            }
        )
    return _figure(
        traces if record.marks else [],
        title=f"Search by {record.unit}",
        xaxis={"title": f"{record.unit} of training", "tickformat": ",~s", "rangemode": "tozero"},
        yaxis={"title": _escaped(record.axis.name), "range": record.axis.limits},
        legend={"traceorder": "normal"},
    )


_PROBES = {
    "newcomer": ("circle-open", 5),
    "promotion": ("triangle-up", 6),
    "all the data": ("diamond", 7),
}
"""Symbol and size of each kind of mark."""


def _curve(line: CurveLine) -> list[Trace]:
    """Return the band, the training scores and the learning curve of a learner that stands out."""
    look, group = LOOKS[line.curve.state], str(line.curve.learner)
    traces: list[Trace] = []
    if line.band:
        edges = [*((edge.size, edge.best) for edge in line.band)]
        edges += [(edge.size, edge.worst) for edge in reversed(line.band)]
        traces.append(
            {
                "type": "scatter",
                "x": [size for size, _ in edges],
                "y": [_short(end) for _, end in edges],
                "mode": "lines",
                "fill": "toself",
                "legendgroup": group,
                "showlegend": False,
                "line": {"color": line.color, "width": 0},
                "opacity": 0.16,
                "hoverinfo": "skip",
            }
        )
    trained = [each for each in line.points if each.training_score is not None]
    if trained:
        traces.append(
            {
                "type": "scatter",
                "x": [each.size for each in trained],
                "y": [_short(each.training_score) for each in trained],
                "mode": "lines",
                "legendgroup": group,
                "showlegend": False,
                "line": {"color": line.color, "width": 1, "dash": "dash"},
                "opacity": 0.6,
                "hovertemplate": f"{_escaped(line.name)}<br>"
                "training score %{y:.5~g} on %{x:,} examples<extra></extra>",
            }
        )
    dash = "dot" if look.is_dotted else "solid"
    traces.append(
        {
            "type": "scatter",
            "x": [seen.size for seen in line.points],
            "y": [_short(seen.score) for seen in line.points],
            "mode": "lines+markers",
            "name": f"{_escaped(line.name)}, {line.curve.state}",
            "legendgroup": group,
            "showlegend": True,
            "line": {"color": line.color, "width": look.width, "dash": dash},
            "marker": {"symbol": _SYMBOLS[line.curve.state], "size": 4 + 2 * look.width},
            "opacity": look.opacity,
            "hovertemplate": _hover(line, "%{x:,} examples: %{y:.5~g}"),
        }
    )
    return traces


def _background(
    lines: Sequence[tuple[CurveLine | BoundTrack, Sequence[tuple[int, float]]]],
    point: str,
    shape: str = "linear",
) -> Trace:
    """Return the learners that do not stand out, as one trace: a page draws each trace anew.

    Args:
        lines: each with its points.
        point: plotly's template of what is said at one of them.
        shape: plotly's name of how points are joined.
    """
    is_told = len(lines) <= MOST_TOLD
    joined: list[tuple[int | None, float | None, str, str]] = []
    for line, points in lines:
        name = _escaped(line.name)
        joined += [(x, _short(y), name, "") for x, y in points]
        if is_told:
            joined[-1] = *joined[-1][:3], "<br>".join(map(_escaped, line.facts))
        joined.append((None, None, "", ""))
    xs, ys, names, facts = zip(*joined, strict=True)
    return {
        "type": "scatter",
        "x": xs,
        "y": ys,
        "text": names,
        "customdata": facts,
        "mode": "lines",
        "line": {"color": BACKGROUND, "width": 0.75, "shape": shape},
        "opacity": 0.5,
        "showlegend": False,
        "hovertemplate": f"<b>%{{text}}</b><br>{point}<br>%{{customdata}}<extra></extra>",
    }


def _hover(line: CurveLine | BoundTrack, point: str) -> str:
    """Return what is said of a learner at one of its points; `point` is plotly's template."""
    facts = "<br>".join(map(_escaped, line.facts))
    return f"<b>{_escaped(line.name)}</b><br>{point}<br>{facts}<extra></extra>"


def _escaped(text: str) -> str:
    """Return a text of the user's as plotly shows it, which reads HTML and `%{...}`."""
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def _short(value: float | None) -> float:
    """Return a number with the six digits that a picture can show, to keep figures small."""
    return float(f"{value:.6g}")


def _figure(traces: list[Trace], **layout: Any) -> go.Figure:
    go = imported("plotly.graph_objects", extra="plot")
    legend = {"traceorder": "reversed", "font": {"size": 11}, **layout.pop("legend", {})}
    shared = {"hovermode": "closest", "margin": {"t": 70, "r": 20}, "legend": legend}
    return go.Figure({"data": traces, "layout": {**shared, **layout}})
