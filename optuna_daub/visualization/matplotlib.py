"""The pictures drawn by matplotlib: the functions of `optuna_daub.visualization`.

Each draws into new axes, which it returns, and leaves the global style as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Literal

import optuna

from optuna_daub.visualization._imports import imported
from optuna_daub.visualization._records import BACKGROUND
from optuna_daub.visualization._records import KINDS
from optuna_daub.visualization._records import LOOKS
from optuna_daub.visualization._records import CurveLine
from optuna_daub.visualization._records import Unit
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import bounds_record
from optuna_daub.visualization._records import learning_curves_record
from optuna_daub.visualization._records import search_history_record


if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MARKERS = {"best": "*", "complete": "D", "running": ">", "suspended": "o", "dropped": "x"}


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot score against training size; see `optuna_daub.visualization.plot_learning_curves`."""
    record = learning_curves_record(study, learners, top)
    axes = _axes("Learning curves", "training examples", record.axis.name)
    for line in record.lines:
        if line.points:
            _draw_curve(axes, line)
    axes.set_xscale("log")
    axes.set_xlim(record.sizes[0] * 0.93, record.sizes[-1] * 1.07)
    axes.set_xticks(record.ticks, [f"{size:,}" for size in record.ticks], rotation=45, ha="right")
    axes.minorticks_off()
    if record.axis.limits:
        axes.set_ylim(record.axis.limits)
    _add_legend(axes)
    return axes


def plot_allocations(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto", top: int = 60
) -> Axes:
    """Plot what each learner was given; see `optuna_daub.visualization.plot_allocations`."""
    record = allocations_record(study, unit, top)
    title = f"{record.unit.capitalize()} given to each learner\n{record.spending}"
    count = len(record.names)
    axes = _axes(title, record.unit, "", height=max(5.0, 1.2 + 0.18 * count))
    edges = [place - 0.5 for place in range(count + 1)]
    ends = [0.0] * count
    for layer in record.layers if record.spent else ():
        before, ends = ends, [end + cost for end, cost in zip(ends, layer.costs, strict=True)]
        bars = axes.stairs(ends, edges, baseline=before, orientation="horizontal", fill=True)
        bars.set(color=layer.color, label=f"{layer.size:,}")
    # Bars that touch look like one; lines in the colour of the page part them.
    across, page = axes.get_yaxis_transform(), axes.get_facecolor()
    axes.hlines(edges, 0, 1, transform=across, color=page, linewidth=2)
    axes.set_yticks(range(count), [_text(name) for name in record.names], fontsize=8)
    axes.set_ylim(max(count, 1) - 0.5, -0.5)  # the best on top
    axes.xaxis.set_major_formatter("{x:,g}")
    _add_legend(axes, title="training size")
    return axes


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot the bounds from probe to probe; see `optuna_daub.visualization.plot_upper_bounds`."""
    record = bounds_record(study, learners, top)
    side = "lower" if record.axis.is_minimized else "upper"
    title = "\n".join([f"{side.capitalize()} bounds by probe", *_wrapped(record.promise)])
    axes = _axes(title, "probes", f"{side} bound of {record.axis.name} on all the data")
    for track in record.tracks:
        if not track.steps:
            continue
        look, state, color = LOOKS[track.curve.state], track.curve.state, track.color
        axes.step(
            [step.number for step in track.steps],
            [step.bound for step in track.steps],
            where="post",
            color=color or BACKGROUND,
            linewidth=look.width if color else 0.75,
            marker=_MARKERS[state] if color else "",
            markevery=[place for place, step in enumerate(track.steps) if step.is_probe],
            markersize=3 + look.width,
            markerfacecolor="none" if state == "suspended" else color,
            alpha=look.opacity if color else 0.5,
            label=_text(f"{track.name}, {state}") if color else None,
            zorder=1 + look.width if color else 1,
        )
    if record.leads:
        numbers = [lead.number for lead in record.leads] + [record.n_probes]
        bounds = [lead.bound for lead in record.leads] + [record.leads[-1].bound]
        (line,) = axes.step(numbers, bounds, where="post", label="best bound")
        line.set(color=BACKGROUND, linewidth=8, alpha=0.35, zorder=0.5)
    if record.axis.limits:
        axes.set_ylim(record.axis.limits)
    _add_legend(axes)
    return axes


def plot_search_history(study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto") -> Axes:
    """Plot what was found by when; see `optuna_daub.visualization.plot_search_history`."""
    record = search_history_record(study, unit)
    axes = _axes(f"Search by {record.unit}", f"{record.unit} of training", record.axis.name)
    for path in record.paths:
        ends, scores = [mark.at for mark in path], [mark.score for mark in path]
        axes.plot(ends, scores, color=KINDS["all the data"], linewidth=1, linestyle="dotted")
    for kind, color in KINDS.items():
        marks = [mark for mark in record.marks if mark.kind == kind]
        if marks:
            shape, size = _PROBES[kind]
            axes.plot(
                [mark.at for mark in marks],
                [mark.score for mark in marks],
                linestyle="none",
                marker=shape,
                markersize=size,
                color=color,
                markerfacecolor="none" if kind == "newcomer" else color,
                label=kind,
                zorder=2,
            )
    if record.best:
        ends = [mark.at for mark in record.best] + [record.spent]
        scores = [mark.score for mark in record.best] + [record.best[-1].score]
        (line,) = axes.step(ends, scores, where="post", label="best so far")
        line.set(color=KINDS["all the data"], linewidth=3, zorder=3)
    if record.axis.limits:
        axes.set_ylim(record.axis.limits)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,g}")
    _add_legend(axes)
    return axes


_PROBES = {"newcomer": ("o", 3), "promotion": ("^", 4), "all the data": ("D", 4)}
"""Marker and size of each kind of mark."""


def _draw_curve(axes: Axes, line: CurveLine) -> None:
    sizes = [seen.size for seen in line.points]
    scores = [seen.score for seen in line.points]
    if line.color is None:
        axes.plot(sizes, scores, color=BACKGROUND, linewidth=0.75, alpha=0.5, zorder=1)
        return
    look, state = LOOKS[line.curve.state], line.curve.state
    axes.plot(
        sizes,
        scores,
        color=line.color,
        linewidth=look.width,
        linestyle="dotted" if look.is_dotted else "solid",
        marker=_MARKERS[state],
        markersize=3 + 2 * look.width,
        markerfacecolor="none" if state == "suspended" else line.color,
        alpha=look.opacity,
        label=_text(f"{line.name}, {state}"),
        zorder=2 + look.width,
    )
    trained = [seen for seen in line.points if seen.training_score is not None]
    axes.plot(
        [seen.size for seen in trained],
        [seen.training_score or 0.0 for seen in trained],
        color=line.color,
        linewidth=1,
        linestyle="dashed",
        alpha=0.6,
    )
    if line.band:
        ends = [edge.worst for edge in line.band], [edge.best for edge in line.band]
        sizes = [edge.size for edge in line.band]
        axes.fill_between(sizes, *ends, color=line.color, alpha=0.15, lw=0)


def _axes(title: str, x: str, y: str, height: float = 5.0) -> Axes:
    pyplot = imported("matplotlib.pyplot", extra="plot")
    _, axes = pyplot.subplots(figsize=(9, height), layout="constrained")
    axes.set(xlabel=x, ylabel=_text(y))
    axes.set_title(title, fontsize="medium")
    result: Axes = axes
    return result


def _text(text: str) -> str:
    """Return a text of the user's as matplotlib shows it, which reads formulas between $."""
    return text.replace("$", r"\$")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(_text(text), 100)[:2]


def _add_legend(axes: Axes, title: str | None = None) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize="x-small", title=title)
