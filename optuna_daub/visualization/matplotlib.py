"""Pictures drawn by matplotlib: the functions of `optuna_daub.visualization`.

Each draws into new axes, which it returns, and leaves the global style as it is. They are 9 by 5
inches large, or as `rcParams["figure.figsize"]` says if it was changed. With many bars they are
higher.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Literal

import optuna

from optuna_daub.core.optional import imported
from optuna_daub.visualization._allocations import allocations_picture
from optuna_daub.visualization._axes import MAX_TICKS_OF_NARROW
from optuna_daub.visualization._axes import Unit
from optuna_daub.visualization._axes import tick_sizes
from optuna_daub.visualization._learning_curves import learning_curves_picture
from optuna_daub.visualization._marks import SYMBOLS
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Bars
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Mark
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._sample_agreement import sample_agreement_picture
from optuna_daub.visualization._search_history import search_history_picture
from optuna_daub.visualization._upper_bounds import upper_bounds_picture


if TYPE_CHECKING:
    from matplotlib.axes import Axes


SIZE = (9.0, 5.0)
"""Width and height in inches."""

NARROW = 7.0
"""Width in inches below which the legend is under the picture."""

_DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot score against training size; see `optuna_daub.visualization.plot_learning_curves`."""
    return draw(learning_curves_picture(study, learners, top))


def plot_allocations(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto", top: int = 60
) -> Axes:
    """Plot the cost of each learner; see `optuna_daub.visualization.plot_allocations`."""
    return draw(allocations_picture(study, unit, top))


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> Axes:
    """Plot bounds by training; see `optuna_daub.visualization.plot_upper_bounds`."""
    return draw(upper_bounds_picture(study, learners, top))


def plot_search_history(study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto") -> Axes:
    """Plot score against cost; see `optuna_daub.visualization.plot_search_history`."""
    return draw(search_history_picture(study, unit))


def plot_sample_agreement(study: optuna.Study) -> Axes:
    """Plot rank correlations; see `optuna_daub.visualization.plot_sample_agreement`."""
    return draw(sample_agreement_picture(study))


def draw(picture: Picture) -> Axes:
    """Return a picture as axes of matplotlib."""
    pyplot = imported("matplotlib.pyplot", extra="plot")
    bars = [mark for mark in picture.marks if isinstance(mark, Bars)]
    width, height = pyplot.rcParams["figure.figsize"]
    if [width, height] == [*pyplot.rcParamsDefault["figure.figsize"]]:
        width, height = SIZE
    if bars:
        height = max(height, 1.2 + 0.18 * len(bars[0].names))
    _, new = pyplot.subplots(figsize=(width, height), layout="constrained")
    axes: Axes = new
    for place, mark in enumerate(picture.marks):
        if not isinstance(mark, Bars):
            _draw(axes, mark, 2 + place / len(picture.marks))  # above the grid, below the frame
    _draw_bars(axes, bars)
    axes.set(xlabel=_text(picture.x.title), ylabel=_text(picture.y.title))
    # The title is centred over the plot; the legend beside it takes a quarter of the width.
    room = round(10 * width)
    lines = [
        line
        for text in picture.subtitle
        for line in textwrap.wrap(text, room, max_lines=2, placeholder=" …")
    ]
    axes.set_title("\n".join([picture.title, *map(_text, lines)]), fontsize="medium")
    is_narrow = width < NARROW
    _scale(axes, picture, is_narrow=is_narrow)
    if picture.legend:
        handles, found = axes.get_legend_handles_labels()
        labels = [_text(label) for label in picture.legend]
        axes.figure.legend(
            [handles[found.index(label)] for label in labels],
            labels,
            title=picture.legend_title or None,
            loc="outside lower center" if is_narrow else "outside right upper",
            ncols=2 if is_narrow else 1,
            fontsize="small" if is_narrow else "x-small",
        )
    return axes


def _scale(axes: Axes, picture: Picture, *, is_narrow: bool) -> None:
    x, y = picture.x, picture.y
    if x.is_log:
        axes.set_xscale("log")
        axes.minorticks_off()
    if x.ticks is not None:
        ticks = tick_sizes(x.ticks, MAX_TICKS_OF_NARROW) if is_narrow else x.ticks
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45, ha="right")
    if x.is_amount:
        axes.xaxis.set_major_formatter("{x:,.10g}")
    if x.limits is not None:
        axes.set_xlim(*x.limits)
    if y.limits is not None:
        axes.set_ylim(*y.limits)


def _draw(axes: Axes, mark: Mark, depth: float) -> None:
    if isinstance(mark, Band):
        area = axes.fill_between(mark.xs, mark.lows, mark.highs, zorder=depth)
        area.set(color=mark.color, alpha=mark.opacity, linewidth=0)
        return
    assert isinstance(mark, Line)
    xs, ys = ([math.nan if end is None else end for end in ends] for ends in (mark.xs, mark.ys))
    (line,) = axes.plot(
        xs,
        ys,
        color=mark.color,
        linewidth=mark.width,
        linestyle=_DASHES[mark.dash] if mark.width else "none",
        drawstyle="steps-post" if mark.is_step else "default",
        alpha=mark.opacity,
        label=_text(mark.label) or None,
        zorder=depth,
    )
    if mark.symbol:
        symbol = SYMBOLS[mark.symbol]
        line.set(marker=symbol.matplotlib, markersize=mark.symbol_size)
        line.set_markerfacecolor("none" if symbol.is_open else mark.color)
        if mark.marked:
            line.set_markevery([place for place, is_marked in enumerate(mark.marked) if is_marked])


def _draw_bars(axes: Axes, layers: Sequence[Bars]) -> None:
    if not layers:
        return
    names = layers[0].names
    edges = [place - 0.5 for place in range(len(names) + 1)]
    ends = [0.0] * len(names)
    for layer in layers:
        before, ends = ends, [end + more for end, more in zip(ends, layer.lengths, strict=True)]
        part = axes.stairs(ends, edges, baseline=before, orientation="horizontal", fill=True)
        part.set(color=layer.color, label=layer.label)
    # Bars that touch look like one; lines in the colour of the page part them.
    across, page = axes.get_yaxis_transform(), axes.get_facecolor()
    axes.hlines(edges, 0, 1, transform=across, color=page, linewidth=2)
    axes.set_yticks(range(len(names)), [_text(name) for name in names], fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)  # the best on top


def _text(text: str) -> str:
    """Return a user's text with $ escaped, since matplotlib reads formulas between them."""
    return text.replace("$", r"\$")
