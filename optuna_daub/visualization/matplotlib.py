"""The pictures drawn by matplotlib: the functions of `optuna_daub.visualization`.

Each draws into new axes, which it returns, and leaves the global style as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna

from optuna_daub.visualization._bounds import BoundsRecord
from optuna_daub.visualization._bounds import BoundTrack
from optuna_daub.visualization._bounds import bounds_record
from optuna_daub.visualization._imports import imported
from optuna_daub.visualization._records import AllocationsRecord
from optuna_daub.visualization._records import CurveLine
from optuna_daub.visualization._records import LearningCurvesRecord
from optuna_daub.visualization._records import Unit
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import learning_curves_record
from optuna_daub.visualization._style import BACKGROUND
from optuna_daub.visualization._style import LOOKS
from optuna_daub.visualization._style import bound_range
from optuna_daub.visualization._style import label
from optuna_daub.visualization._style import learner_colors
from optuna_daub.visualization._style import score_range
from optuna_daub.visualization._style import size_colors
from optuna_daub.visualization._style import spending
from optuna_daub.visualization._style import tick_sizes


if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MARKERS = {"best": "*", "complete": "D", "running": ">", "suspended": "o", "dropped": "x"}

_MAX_NAMES = 45
"""How many learners can be written under bars."""


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot score against training size; see `optuna_daub.visualization.plot_learning_curves`."""
    return _draw_curves(learning_curves_record(study, learners, top))


def plot_allocations(study: optuna.Study, *, unit: Unit = "examples") -> Axes:
    """Plot what each learner was given; see `optuna_daub.visualization.plot_allocations`."""
    return _draw_allocations(allocations_record(study, unit))


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot the bounds from probe to probe; see `optuna_daub.visualization.plot_upper_bounds`."""
    return _draw_bounds(bounds_record(study, learners, top))


def _draw_curves(record: LearningCurvesRecord) -> Axes:
    axes = _axes("Learning curves", "training examples", record.axis.name)
    colors = learner_colors(line.curve for line in record.lines if line.is_highlighted)
    for line in record.lines:
        if line.points:
            _draw_curve(axes, line, colors.get(line.curve.learner))
    ticks = tick_sizes(record.sizes)
    axes.set_xscale("log")
    axes.set_xlim(record.sizes[0] * 0.93, record.sizes[-1] * 1.07)
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks], rotation=45, ha="right")
    axes.minorticks_off()
    if limits := score_range(record.lines):
        axes.set_ylim(limits)
    _add_legend(axes)
    return axes


def _draw_curve(axes: Axes, line: CurveLine, color: str | None) -> None:
    sizes = [seen.size for seen in line.points]
    scores = [seen.score for seen in line.points]
    if color is None:
        axes.plot(sizes, scores, color=BACKGROUND, linewidth=0.75, alpha=0.5, zorder=1)
        return
    look, state = LOOKS[line.curve.state], line.curve.state
    axes.plot(
        sizes,
        scores,
        color=color,
        linewidth=look.width,
        linestyle="dotted" if look.is_dotted else "solid",
        marker=_MARKERS[state],
        markersize=3 + 2 * look.width,
        markerfacecolor="none" if state == "suspended" else color,
        alpha=look.opacity,
        label=_text(f"{label(line.curve)}, {state}"),
        zorder=2 + look.width,
    )
    trained = {
        seen.size: seen.training_score for seen in line.points if seen.training_score is not None
    }
    axes.plot(
        list(trained),
        list(trained.values()),
        color=color,
        linewidth=1,
        linestyle="dashed",
        alpha=0.6,
    )
    if line.band is not None:
        score, band = line.band.score, line.band
        sides = (score, band.worst), (score, band.best)
        axes.fill_between((band.size, band.full_size), *sides, color=color, alpha=0.15, lw=0)


def _draw_allocations(record: AllocationsRecord) -> Axes:
    title = f"{record.unit.capitalize()} given to each learner\n{spending(record)}"
    axes = _axes(title, "learners, best score first", record.unit)
    colors = size_colors([layer.size for layer in record.layers])
    count = len(record.curves)
    edges = [place - 0.5 for place in range(count + 1)]
    tops = [0.0] * count
    for layer in record.layers if record.spent else ():
        below, tops = tops, [top + cost for top, cost in zip(tops, layer.costs, strict=True)]
        axes.stairs(
            tops,
            edges,
            baseline=below,
            fill=True,
            color=colors[layer.size],
            label=f"{layer.size:,}",
        )
    names = [_text(label(curve)) for curve in record.curves]
    if len(names) <= _MAX_NAMES:
        axes.set_xticks(range(count), names, rotation=90)
    axes.yaxis.set_major_formatter("{x:,g}")
    _add_legend(axes, title="training size")
    return axes


def _draw_bounds(record: BoundsRecord) -> Axes:
    side = "lower" if record.axis.is_minimized else "upper"
    title = f"{side.capitalize()} bounds by probe\n{record.audit}"
    axes = _axes(title, "probes", f"{side} bound of {record.axis.name} on all the data")
    colors = learner_colors(track.curve for track in record.tracks if track.is_highlighted)
    for track in record.tracks:
        if track.steps:
            _draw_track(axes, track, colors.get(track.curve.learner), record.n_probes)
    if record.leads:
        numbers = [lead.number for lead in record.leads] + [record.n_probes]
        bounds = [lead.bound for lead in record.leads] + [record.leads[-1].bound]
        axes.step(
            numbers,
            bounds,
            where="post",
            color=BACKGROUND,
            linewidth=8,
            alpha=0.35,
            label="best bound",
            zorder=0.5,
        )
    if limits := bound_range(record):
        axes.set_ylim(limits)
    _add_legend(axes)
    return axes


def _draw_track(axes: Axes, track: BoundTrack, color: str | None, n_probes: int) -> None:
    look, state = LOOKS[track.curve.state], track.curve.state
    steps = list(track.steps)
    if state != "dropped":  # its bound stands until the end
        steps.append(steps[-1]._replace(number=n_probes))
    axes.step(
        [step.number for step in steps],
        [step.bound for step in steps],
        where="post",
        color=color or BACKGROUND,
        linewidth=look.width if color else 0.75,
        marker=_MARKERS[state] if color else "",
        markevery=range(len(track.steps)),
        markersize=3 + look.width,
        markerfacecolor="none" if state == "suspended" else color,
        alpha=look.opacity if color else 0.5,
        label=_text(f"{label(track.curve)}, {state}") if color else None,
        zorder=1 + look.width if color else 1,
    )


def _axes(title: str, x: str, y: str) -> Axes:
    pyplot = imported("matplotlib.pyplot", extra="plot")
    _, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    axes.set(xlabel=x, ylabel=_text(y))
    axes.set_title(title, fontsize="medium")
    result: Axes = axes
    return result


def _text(text: str) -> str:
    """Return a text of the user's as matplotlib shows it, which reads formulas between $."""
    return text.replace("$", r"\$")


def _add_legend(axes: Axes, title: str | None = None) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize="x-small", title=title)
