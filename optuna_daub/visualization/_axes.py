"""Choices that all pictures share: colours, labels, ticks, limits, and which learners stand out.

Scores are in the direction of the user.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Literal
from typing import NamedTuple
from typing import TypeAlias

import numpy as np
import optuna

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import listed
from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking
from optuna_daub.study.worker import worker_of
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Scale


Unit: TypeAlias = Literal["examples", "seconds"]
UNITS: tuple[Unit, ...] = ("examples", "seconds")

PALETTE = (
    "#4269d0", "#d99a00", "#f0603c", "#1fa898", "#3ca951", "#e8649f",
    "#a463f2", "#6aa5ee", "#9c6b4e", "#b3224f", "#94a31a", "#c58be0",
)  # fmt: skip
"""Colours of the learners that stand out. All are of middle lightness, so they can be read on
white and on black."""

BACKGROUND = "#8c8c8c"
"""Colour of the other learners, and of keys that stand for several colours."""

_SHADES = ("#74b9e8", "#3b82c4", "#7b61b8", "#cf5273", "#eda03f")
"""Colours of the training sizes from the smallest to the largest. Those between are blended."""

MAX_OTHERS = 48
"""Largest number of learners in grey; more lines would be a grey block."""

FAR = 20.0
"""Scores farther away than this many times the range of the main scores are not drawn. With them
the main scores would share a twentieth of the height."""

MAX_TICKS = 14
"""Largest number of gaps between the sizes under a picture of usual width."""

MAX_TICKS_OF_NARROW = 6
"""Largest number of gaps between the sizes under a narrow picture, of 300 pixels or 4 inches."""

MAX_LETTERS = 30
"""Largest number of letters in a line along the vertical axis: 220 pixels, plotly's usual height
without title, sizes and legend."""

MAX_PARAMETERS = 12
"""Largest number of a learner's parameters in the text on it."""


class Look(NamedTuple):
    """The line of a learner in some state."""

    width: float
    """Width in points."""
    opacity: float
    """Opacity in [0, 1]."""
    dash: Literal["solid", "dot"]


LOOKS = {
    "best": Look(3.0, 1.0, "solid"),
    "leader": Look(3.0, 1.0, "solid"),
    "complete": Look(2.0, 1.0, "solid"),
    "running": Look(2.0, 1.0, "solid"),
    "suspended": Look(1.5, 0.85, "solid"),
    "dropped": Look(1.5, 0.6, "dot"),
}


class Axis(NamedTuple):
    """The axis of the scores."""

    name: str
    """The study's metric name, "score" if it has none."""
    is_minimized: bool
    limits: tuple[float, float] | None
    """Smallest and largest score in the picture; None if it is empty."""

    def scale(self, title: str | None = None) -> Scale:
        """Return the axis as the plotting libraries need it. `title` replaces its name."""
        better = " (smaller is better)" if self.is_minimized else ""
        lines = textwrap.wrap((title or self.name) + better, MAX_LETTERS)
        return Scale("\n".join(lines), self.limits)


def axis_of(study: optuna.Study, limits: tuple[float, float] | None) -> Axis:
    """Return the axis of a study's scores."""
    names = study.metric_names
    return Axis(names[0] if names else "score", sign_of(study) < 0, limits)


def stretched(
    inner: Sequence[float], outer: Sequence[float], share: float = 0.25
) -> tuple[float, float]:
    """Return a range that holds `inner`, extended to `outer` by at most `share` of its width."""
    low, high = min(inner), max(inner)
    span = high - low or abs(high) or 1.0
    lowest = max(min((low, *outer)), low - share * span)
    highest = min(max((high, *outer)), high + share * span)
    margin = 0.04 * (highest - lowest or span)
    return lowest - margin, highest + margin


def near(scores: Iterable[float], inner: Sequence[float], share: float = FAR) -> list[float]:
    """Return the scores within the range of `inner`, extended by `share` of its width."""
    lowest, highest = stretched(inner, (-math.inf, math.inf), share)
    return [score for score in scores if lowest <= score <= highest]


def usual(scores: Iterable[float], middle: float) -> list[float]:
    """Return the three quarters of the scores that are nearest to a middle.

    The rest may have diverged.

    >>> usual([0.5, 0.75, -9.0, 0.25], 0.5)
    [0.5, 0.75, 0.25]
    """
    nearest = sorted(scores, key=lambda score: abs(score - middle))
    return nearest[: math.ceil(0.75 * len(nearest))]


def beyond(values: Iterable[float], axis: Axis, noun: str = "score") -> str:
    """Return a note on the number of values outside an axis; empty without any.

    >>> beyond([0.5, 0.75, -9.0], Axis("accuracy", False, (0.0, 1.0)))
    '1 score is beyond the axis'
    """
    low, high = axis.limits or (-math.inf, math.inf)
    n = sum(not low <= value <= high for value in values)
    return f"{n:,} {noun}{'s are' if n > 1 else ' is'} beyond the axis" if n else ""


def better_half(scores: Iterable[float], sign: int) -> list[float]:
    """Return the better half of the scores, with the median, the best first."""
    best_first = sorted(scores, reverse=sign > 0)
    return best_first[: (len(best_first) + 1) // 2]


def size_scale(sizes: Sequence[int]) -> Scale:
    """Return a logarithmic axis of training sizes."""
    ends = sizes[0] * 0.93, sizes[-1] * 1.07
    return Scale("training examples", ends, tick_sizes(sizes), is_log=True)


def tick_sizes(sizes: Sequence[int], most: int = MAX_TICKS) -> tuple[int, ...]:
    """Return at most `most` + 1 sizes to label a logarithmic axis: the ends, and others."""
    room = math.log(sizes[-1] / sizes[0]) / most
    ticks = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(ticks[-1] / size) >= room:
            ticks.append(size)
    return tuple(sorted({*ticks[: max(1, len(ticks) - 1)], sizes[0]}))


def learner_colors(learners: Iterable[int]) -> dict[int, str]:
    """Return a colour for each learner; colours repeat only if there are too few.

    The colour depends on the id, so a learner mostly keeps it when a running study is drawn again.
    """
    taken: dict[int, str] = {}
    free = list(PALETTE)
    for learner in sorted(learners):
        wanted = PALETTE[learner % len(PALETTE)]
        taken[learner] = wanted if wanted in free else free[0]
        free.remove(taken[learner])
        free = free or list(PALETTE)
    return taken


def size_colors(sizes: Sequence[int]) -> dict[int, str]:
    """Return a colour for each training size, evenly spaced along `_SHADES`."""
    stops = np.array([[int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in _SHADES])
    places = np.linspace(0, len(stops) - 1, max(len(sizes), 2))
    mixed = [np.interp(places, range(len(stops)), channel).round() for channel in stops.T]
    return {
        size: "#" + "".join(f"{int(channel[place]):02x}" for channel in mixed)
        for place, size in enumerate(sizes)
    }


def label(curve: LearnerCurve | BestLearner) -> str:
    """Return the id of a learner and its first categorical choice, cut at 24 letters."""
    chosen = next((value for value in curve.params.values() if isinstance(value, str)), None)
    text = f"learner {curve.learner}" if chosen is None else f"{curve.learner} {chosen}"
    return _line(text, 24)


def _line(text: str, width: int) -> str:
    """Return a text on one line, cut at `width`."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def facts(curve: LearnerCurve) -> str:
    """Return lines of text: a learner's first parameters, and the last decision's reason."""
    lines = [
        _line(f"{name} = {value:.5g}" if isinstance(value, float) else f"{name} = {value}", 48)
        for name, value in curve.params.items()
    ]
    if (more := len(lines) - MAX_PARAMETERS) > 0:
        lines[MAX_PARAMETERS:] = [f"and {more} more"]
    return "\n".join([*lines, *textwrap.wrap(curve.reason, 60)])


def background(
    learners: Iterable[tuple[LearnerCurve, Iterable[tuple[float, float]]]], point: str
) -> Line:
    """Return learners in grey, with their points, as one mark. Each mark slows a page down."""
    points: list[tuple[float | None, float | None, str, str]] = []
    for curve, places in learners:
        points += [(x, y, label(curve), "") for x, y in places]
        points[-1] = *points[-1][:3], facts(curve)
        points.append((None, None, "", ""))
    xs, ys, names, notes = zip(*points, strict=True)
    return Line(xs, ys, BACKGROUND, 0.75, 0.5, point=point, name=names, notes=notes)


def finite(curve: LearnerCurve) -> tuple[Observation, ...]:
    """Return the observations of a learner with a finite score, sizes increasing."""
    return tuple(seen for seen in curve.observations if is_finite(seen.score))


def last_score(curve: LearnerCurve, sign: int) -> float:
    """Return the last finite score times the sign; minus infinity if there is none."""
    points = finite(curve)
    return sign * points[-1].score if points else -math.inf


def leader_of(best: BestLearner | None) -> int | None:
    """Return the id of an unfinished study's leader; None in a finished one."""
    return None if best is None or best.is_final else best.learner


def state_shown(curve: LearnerCurve, leader: int | None) -> str:
    """Return the state of a learner in pictures, a key of `LOOKS`.

    >>> from optuna_daub.study import LearnerCurve
    >>> state_shown(LearnerCurve(7, {}, (), "complete", None, None, ""), leader=7)
    'leader'
    """
    return "leader" if curve.learner == leader else curve.state


def foremost(
    curves: Sequence[LearnerCurve],
    learners: Sequence[int] | None,
    sign: int,
    leader: int | None,
) -> list[LearnerCurve]:
    """Return the learners asked for: the best, then those with most data, then by score.

    Raises:
        ValueError: if one of `learners` is not in the study.
    """
    wanted = None
    if learners is not None:
        wanted = [whole_number("learners", i) for i in listed("learners", learners, "ids")]
    ids = {curve.learner for curve in curves}
    unknown = [learner for learner in wanted or () if learner not in ids]
    if unknown:
        raise ValueError(
            f"`learners` must be ids of learners of this study, which are {brief(sorted(ids))}, "
            f"but got {brief(unknown)}. A learner's id is the number of the first trial that "
            "ran it."
        )

    def rank(curve: LearnerCurve) -> tuple[bool, int, float, int]:
        points = finite(curve)
        size = points[-1].size if points else 0
        is_first = state_shown(curve, leader) in ("best", "leader")
        return not is_first, -size, -last_score(curve, sign), curve.learner

    return sorted(
        (curve for curve in curves if wanted is None or curve.learner in wanted), key=rank
    )


def sign_of(study: optuna.Study) -> int:
    """Return 1 for a study that maximizes, -1 for one that minimizes."""
    return worker_of(study).sign


def pool_of(study: optuna.Study) -> Pool:
    """Return the pool of all learners, in which larger scores are better."""
    return looking(study).pool(policy_of(study), is_at_work=False)


def check_top(top: int) -> None:
    """Raise a ValueError if `top` is negative or not a whole number."""
    if whole_number("top", top) < 0:
        raise ValueError(f"`top` must be at least 0, but got {top}.")


def thinned(others: Sequence[LearnerCurve]) -> list[LearnerCurve]:
    """Return at most `MAX_OTHERS` of the learners in the background, evenly over their ranks."""
    every = math.ceil(len(others) / MAX_OTHERS)
    return list(others[:: every or 1])


def shown(n_colored: int, n_grey: int, n_learners: int) -> str:
    """Return a note on the number of learners shown.

    Empty if all of them stand out.

    >>> shown(12, 48, 300)
    '60 of 300 learners shown, 12 of them in color'
    """
    if not n_grey:
        return ""
    n_shown = n_colored + n_grey
    of_all = "all" if n_shown == n_learners else f"{n_shown} of"
    return f"{of_all} {n_learners} learners shown, {n_colored} of them in color"


def unit_of(unit: Unit | Literal["auto"], trainings: Sequence[Observation]) -> Unit:
    """Return the unit of costs: "auto" is seconds if every training was timed.

    Raises:
        ValueError: if `unit` is unknown.
    """
    if not isinstance(unit, str) or unit not in ("auto", *UNITS):
        raise ValueError(f'`unit` must be "auto", "examples" or "seconds", but got {brief(unit)}.')
    if unit != "auto":
        return unit
    return "seconds" if trainings and all(seen.seconds for seen in trainings) else "examples"


def cost(seen: Observation, unit: Unit) -> float:
    """Return the cost of a training, 0 seconds if it was not timed."""
    return float(getattr(Cost.of(seen), unit))
