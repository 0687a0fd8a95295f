"""Pictures drawn by plotly."""

from __future__ import annotations

import html
import math
import textwrap
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

from optuna_daub.core.optional import imported
from optuna_daub.visualization._marks import SYMBOLS
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Bars
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Mark
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._marks import Scale
from optuna_daub.visualization._numbers import digits_of


if TYPE_CHECKING:
    import plotly.graph_objects as go


Trace: TypeAlias = dict[str, Any]
"""A mark of a figure as plotly reads it. A figure of dictionaries is made ten times as fast as one
of plotly's objects."""

LINE = 54
"""Largest number of letters in a line under the title: so many fit on a phone."""

MAX_TEXT = 200
"""Largest number of letters of a sentence under the title."""

ROW = 19
"""Height of a row of the legend in pixels."""

PIXELS = 4 / 3
"""Pixels in a point: 96 to 72 in an inch."""


def draw(picture: Picture) -> go.Figure:
    """Return a picture as a figure of plotly."""
    go = imported("plotly.graph_objects", extra="plot")
    places = {label: place for place, label in enumerate(picture.legend)}
    ends = [end for end in picture.y.limits or () if end is not None]
    digits = 2 + digits_of(ends) if ends else 6  # a hundred thousandth of the axis
    traces = [_trace(mark, places, digits) for mark in picture.marks]
    short = [textwrap.shorten(text, MAX_TEXT, placeholder=" …") for text in picture.subtitle]
    lines = [line for text in short for line in textwrap.wrap(text, LINE)]
    small = [f'<span style="font-size:12px">{_escaped(line)}</span>' for line in lines]
    title = "<br>".join([picture.title, *small])
    layout: Trace = {
        "title": {"text": title, "y": 1, "yanchor": "top", "pad": {"t": 40}},
        # On a phone each learner takes a row of the legend, and curves need room above it.
        "height": max(450, 370 + ROW * len(picture.legend)),
        "hovermode": "closest",
        "margin": {"t": 60 + 22 * max(1, len(lines)), "r": 20, "l": 20},
        # Under the picture: beside it, it would leave no room on a phone and in a dashboard.
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0.01,
            "yanchor": "bottom",
            "traceorder": "normal",
            "font": {"size": 10},
        },
        "xaxis": _axis(picture.x),
        "yaxis": {**_axis(picture.y), "hoverformat": _form(ends, digits - 1)},
    }
    if picture.legend_title:
        layout["legend"]["title"] = {"text": picture.legend_title}
    bars = next((mark for mark in picture.marks if isinstance(mark, Bars)), None)
    if bars is not None:
        layout |= {
            "barmode": "stack",
            "bargap": 0.15,
            "height": max(450, 130 + 16 * len(bars.names)),
        }
        layout["margin"]["t"] += 30
        layout["legend"] |= {"yref": "paper", "y": 1}  # above them: they may be many
        layout["yaxis"] |= {
            "type": "category",
            "autorange": "reversed",
            "dtick": 1,  # every name, however many
            "tickfont": {"size": 10},
        }
    return go.Figure({"data": traces, "layout": layout})


def _axis(scale: Scale) -> Trace:
    axis: Trace = {"title": {"text": _escaped(scale.title)}, "automargin": True}
    if scale.ticks is not None:
        axis |= {
            "tickvals": scale.ticks,
            "ticktext": [f"{tick:,}" for tick in scale.ticks],
            "tickangle": -45,
        }
    if scale.limits is not None:
        low, high = scale.limits
        if low == 0 and high is None:
            axis["rangemode"] = "tozero"
        else:
            ends = [low, high]
            is_log = scale.is_log
            axis["range"] = [math.log10(end) if is_log and end else end for end in ends]
    if scale.is_log:
        axis["type"] = "log"
    if scale.is_amount:
        axis["tickformat"] = ",.10~r"
    return axis


def _trace(mark: Mark, places: dict[str, int], digits: int) -> Trace:
    """Return a mark, its heights with so many digits."""
    match mark:
        case Line():
            return _line(mark, places, digits)
        case Band():
            return {
                "type": "scatter",
                "x": [*mark.xs, *reversed(mark.xs)],
                "y": [_short(y, digits) for y in (*mark.highs, *reversed(mark.lows))],
                "mode": "lines",
                "fill": "toself",
                "legendgroup": mark.group,
                "showlegend": False,
                "line": {"color": mark.color, "width": 0},
                "opacity": mark.opacity,
                "hoverinfo": "skip",
            }
        case Bars():
            return {
                "type": "bar",
                "orientation": "h",
                "x": [_short(length) for length in mark.lengths],
                "y": [_escaped(name) for name in mark.names],
                "name": mark.label,
                "legendrank": 1 + places[mark.label],
                "marker": {"color": mark.color, "line": {"width": 0}},
                "hovertemplate": f"%{{y}}<br>{mark.point}<extra></extra>",
            }


def _line(mark: Line, places: dict[str, int], digits: int) -> Trace:
    modes = ["lines"] * (mark.width > 0) + ["markers"] * bool(mark.symbol)
    trace: Trace = {
        "type": "scatter",
        "x": [x if x is None else _short(x) for x in mark.xs or (None,)],
        "y": [y if y is None else _short(y, digits) for y in mark.ys or (None,)],
        "mode": "+".join(modes),
        "line": {"color": mark.color, "width": round(mark.width * PIXELS, 2), "dash": mark.dash},
        "opacity": mark.opacity,
        "showlegend": bool(mark.label),
    }
    if mark.is_step:
        trace["line"]["shape"] = "hv"
    if mark.label:
        trace |= {"name": _escaped(mark.label), "legendrank": 1 + places[mark.label]}
    if mark.group:
        trace["legendgroup"] = mark.group
    if mark.symbol:
        size = round(mark.symbol_size * PIXELS, 1)
        sizes = [size * is_marked for is_marked in mark.marked]
        trace["marker"] = {
            "symbol": SYMBOLS[mark.symbol].plotly,
            "size": sizes or size,
            "color": mark.color,
            "line": {"color": mark.color},  # plotly makes it white if sizes differ
        }
    return trace | _hover(mark)


def _hover(mark: Line) -> Trace:
    """Return the text shown when the pointer rests on a mark: its name, its template, its
    notes."""
    if not mark.point:
        return {"hoverinfo": "skip"}
    said: Trace = {}
    name, notes = "%{text}", "%{customdata}"
    if isinstance(mark.name, str):
        name = _escaped(mark.name)
    else:
        said["text"] = [*map(_escaped, mark.name)]
    if isinstance(mark.notes, str):
        notes = _escaped(mark.notes)
    else:
        said["customdata"] = [*map(_escaped, mark.notes)]
    said["hovertemplate"] = f"<b>{name}</b><br>{mark.point}<br>{notes}<extra></extra>"
    return said


def _escaped(text: str) -> str:
    """Return a user's text escaped for plotly.

    It reads HTML and `%{...}`, and formulas between $ on pages that have MathJax.
    """
    escaped = html.escape(text, quote=False).replace("%{", "%&#123;")
    return escaped.replace("$", "&#36;").replace("\n", "<br>")


def _form(ends: list[float], digits: int) -> str:
    """Return d3's form of scores with so many digits.

    It has exponents only where `_numbers.said` has them; d3's `g` has them from five digits on.
    """
    is_plain = all(not end or 1e-4 <= abs(end) < 1e15 for end in ends)
    return f",.{digits}~r" if is_plain else f".{digits}~g"


def _short(value: float, digits: int = 6) -> float:
    """Return a number with few digits, to keep figures small. Whole numbers keep all of theirs."""
    return float(value) if float(value).is_integer() else float(f"{value:.{digits}g}")
