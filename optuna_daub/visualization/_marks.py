"""A picture as a table of marks.

Each plotting library draws them in its own way. Everything that both renderings must agree on
stands here: places, colours, widths, symbols, what the legend says and in which order marks lie
over each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from typing import NamedTuple


class Symbol(NamedTuple):
    """A marker, by its names in both plotting libraries."""

    plotly: str
    matplotlib: str
    is_open: bool = False
    """True for an outline only."""


SYMBOLS = {
    "best": Symbol("star", "*"),
    "leader": Symbol("star", "*"),
    "complete": Symbol("diamond", "D"),
    "running": Symbol("triangle-right", ">"),
    "suspended": Symbol("circle-open", "o", is_open=True),
    "dropped": Symbol("x", "x"),
    "first training": Symbol("circle-open", "o", is_open=True),
    "more data": Symbol("triangle-up", "^"),
    "all the data": Symbol("diamond", "D"),
}
"""Symbols of the states of a learner, and of the trainings of a search."""


class Line(NamedTuple):
    """A line, its markers, or both."""

    xs: Sequence[float | None]
    """Places on the x axis; None separates two lines of the same look."""
    ys: Sequence[float | None]
    color: str
    width: float = 0.0
    """Width in points; 0 draws the markers only."""
    opacity: float = 1.0
    """Opacity, in [0, 1]."""
    dash: Literal["solid", "dash", "dot"] = "solid"
    is_step: bool = False
    """True if each value holds up to the next one. False for straight lines between them."""
    symbol: str = ""
    """A key of `SYMBOLS`; empty draws no markers."""
    symbol_size: float = 6.0
    """Size of the markers in points."""
    marked: Sequence[bool] = ()
    """True for the points that have a marker; empty: all have."""
    label: str = ""
    """Text in the legend; empty leaves the line out of it."""
    group: str = ""
    """Name of the group. A click into the legend hides all its lines and bands."""
    point: str = ""
    """Text shown while the pointer is on a point, or empty. It is a template of plotly."""
    name: str | Sequence[str] = ""
    """First line of that text, for the whole line or for each point."""
    notes: str | Sequence[str] = ""
    """Last lines of that text, for the whole line or for each point. A line break separates
    them."""


class Band(NamedTuple):
    """The area between two lines."""

    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    color: str
    opacity: float
    group: str = ""


class Bars(NamedTuple):
    """One part of horizontal stacked bars; it continues the parts before it."""

    names: tuple[str, ...]
    """Names of the bars, the first on top. They are the same in all parts of a picture."""
    lengths: tuple[float, ...]
    color: str
    label: str
    point: str


Mark = Line | Band | Bars


class Scale(NamedTuple):
    """One of the two axes."""

    title: str = ""
    limits: tuple[float | None, float | None] | None = None
    """Smallest and largest value in the picture; None leaves an end to the library."""
    ticks: Sequence[int] | None = None
    """Values with labels; None leaves them to the library."""
    is_log: bool = False
    is_amount: bool = False
    """True for amounts: labels get separators of thousands."""


class Picture(NamedTuple):
    """A plot as data, for any plotting library."""

    title: str
    subtitle: tuple[str, ...]
    """Sentences, each on its own lines; long ones are cut."""
    x: Scale
    y: Scale
    marks: tuple[Mark, ...] = ()
    """Marks from the back to the front."""
    legend: tuple[str, ...] = ()
    """The labels of the marks in the order of the legend."""
    legend_title: str = ""
