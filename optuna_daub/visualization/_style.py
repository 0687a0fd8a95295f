"""What both renderers agree on: colours, labels, which sizes get a tick, which scores fit in.

All colours are of middle lightness, so that they can be told apart on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import LearnerCurve
from optuna_daub.visualization._bounds import BoundsRecord
from optuna_daub.visualization._records import AllocationsRecord
from optuna_daub.visualization._records import CurveLine


PALETTE = (
    "#4269d0", "#d99a00", "#f0603c", "#1fa898", "#3ca951", "#e8649f",
    "#a463f2", "#6aa5ee", "#9c6b4e", "#b3224f", "#94a31a", "#c58be0",
)  # fmt: skip
"""Colours of the learners that stand out."""

BACKGROUND = "#8c8c8c"
"""Colour of the other learners."""

_LADDER = ("#74b9e8", "#3b82c4", "#7b61b8", "#cf5273", "#eda03f")
"""Colours of the training sizes, from the smallest to the largest."""

MAX_TICKS = 14
"""How many sizes can be written under a picture of usual width."""


class Look(NamedTuple):
    """How the line of a learner in some state is drawn."""

    width: float
    """In points."""
    opacity: float
    """In [0, 1]."""
    is_dotted: bool


LOOKS = {
    "best": Look(3.0, 1.0, False),
    "complete": Look(2.0, 1.0, False),
    "running": Look(2.0, 1.0, False),
    "suspended": Look(1.5, 0.85, False),
    "dropped": Look(1.5, 0.6, True),
}


def learner_colors(curves: Iterable[LearnerCurve]) -> dict[int, str]:
    """Return a colour for each learner, different ones as long as there are enough.

    A learner mostly keeps its colour when a running study is drawn again: it goes by the id.
    """
    taken: dict[int, str] = {}
    free = list(PALETTE)
    for learner in sorted(curve.learner for curve in curves):
        wanted = PALETTE[learner % len(PALETTE)]
        taken[learner] = wanted if wanted in free else free[0]
        free.remove(taken[learner])
        free = free or list(PALETTE)
    return taken


def size_colors(sizes: Sequence[int]) -> dict[int, str]:
    """Return a colour for each training size, evenly spaced."""
    last = max(len(sizes) - 1, 1)
    return {size: _between(_LADDER, place / last) for place, size in enumerate(sizes)}


def label(curve: LearnerCurve | BestLearner, width: int = 24) -> str:
    """Return the id of a learner and its first categorical choice, cut at `width`."""
    chosen = next((value for value in curve.params.values() if isinstance(value, str)), None)
    text = f"learner {curve.learner}" if chosen is None else f"{curve.learner} {chosen}"
    return text if len(text) <= width else text[: width - 1] + "…"


def parameter_lines(params: Mapping[str, Any], most: int = 12, width: int = 48) -> list[str]:
    """Return "name = value" for the first parameters, each cut at `width`."""
    lines = []
    for name, value in params.items():
        text = f"{name} = {value:.5g}" if isinstance(value, float) else f"{name} = {value}"
        lines.append(text if len(text) <= width else text[: width - 1] + "…")
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"and {more} more"]


def tick_sizes(sizes: Sequence[int]) -> list[int]:
    """Return the sizes that can be written at a logarithmic axis, the last in any case."""
    room = math.log(sizes[-1] / sizes[0]) / MAX_TICKS
    ticks = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(ticks[-1] / size) >= room:
            ticks.append(size)
    return ticks[::-1]


def score_range(lines: Sequence[CurveLine]) -> tuple[float, float] | None:
    """Return the scores that fit in: those of the learners that stand out, None without any.

    Bands stretch it by a quarter at most: early bounds may be far beyond all scores.
    """
    shown = [line for line in lines if line.is_highlighted] or lines
    points = [seen for line in shown for seen in line.points]
    training = [seen.training_score for seen in points if seen.training_score is not None]
    scores = [seen.score for seen in points] + [
        score for score in training if math.isfinite(score)
    ]
    if not scores:
        return None
    bands = [line.band for line in shown if line.band is not None]
    return stretched(scores, [end for band in bands for end in (band.worst, band.best)])


def bound_range(record: BoundsRecord) -> tuple[float, float] | None:
    """Return the bounds that fit in, None without any.

    Those of the learners that stand out as they are now, and the best bound since the study was
    half done: the first bounds, projected from the smallest sizes, may be far beyond.
    """
    highlighted = [track for track in record.tracks if track.is_highlighted] or record.tracks
    bounds = [track.steps[-1].bound for track in highlighted if track.steps]
    leads = [lead.bound for lead in record.leads]
    early = sum(lead.number <= record.n_probes / 2 for lead in record.leads)
    inner = bounds + leads[max(early - 1, 0) :]
    return stretched(inner, leads) if inner else None


def spending(record: AllocationsRecord) -> str:
    """Return what was spent, in comparison with training everything."""
    if not record.spent:
        return f"no {record.unit} spent yet"
    count = sum(bool(curve.observations) for curve in record.curves)
    spent, everything = f"{record.spent:,.0f} {record.unit}", "learners on all the data"
    if record.unit == "examples":
        return f"{spent}, {record.spent / record.everything:.0%} of training {count} {everything}"
    if record.everything <= record.spent:  # what takes "at least" that says nothing
        return spent
    return f"{spent}; training {count} {everything} takes {record.everything:,.0f} or more"


def stretched(
    inner: Sequence[float], outer: Sequence[float], share: float = 0.25
) -> tuple[float, float]:
    """Return a range that holds `inner`, and of `outer` what is at most `share` of it away."""
    low, high = min(inner), max(inner)
    span = high - low or abs(high) or 1.0
    lowest = max(min((low, *outer)), low - share * span)
    highest = min(max((high, *outer)), high + share * span)
    margin = 0.04 * (highest - lowest or span)
    return lowest - margin, highest + margin


def _between(stops: Sequence[str], place: float) -> str:
    """Return the colour at `place`, in [0, 1], on the way along `stops`."""
    position = place * (len(stops) - 1)
    left = min(int(position), len(stops) - 2)
    mixed = (
        round(a + (b - a) * (position - left))
        for a, b in zip(_channels(stops[left]), _channels(stops[left + 1]), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _channels(color: str) -> list[int]:
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]
