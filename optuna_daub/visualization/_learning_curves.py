"""Learning curves: score against training size, one line per learner."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING
from typing import NamedTuple

import optuna

from optuna_daub.core.curve import Observation
from optuna_daub.core.curve import is_finite
from optuna_daub.study.limits import limits_of
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import learning_curves
from optuna_daub.study.results import no_scores
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.visualization import _plotly
from optuna_daub.visualization._axes import BACKGROUND
from optuna_daub.visualization._axes import LOOKS
from optuna_daub.visualization._axes import Axis
from optuna_daub.visualization._axes import axis_of
from optuna_daub.visualization._axes import background
from optuna_daub.visualization._axes import better_half
from optuna_daub.visualization._axes import beyond
from optuna_daub.visualization._axes import check_top
from optuna_daub.visualization._axes import facts
from optuna_daub.visualization._axes import finite
from optuna_daub.visualization._axes import foremost
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import leader_of
from optuna_daub.visualization._axes import learner_colors
from optuna_daub.visualization._axes import near
from optuna_daub.visualization._axes import pool_of
from optuna_daub.visualization._axes import shown
from optuna_daub.visualization._axes import sign_of
from optuna_daub.visualization._axes import size_scale
from optuna_daub.visualization._axes import state_shown
from optuna_daub.visualization._axes import stretched
from optuna_daub.visualization._axes import thinned
from optuna_daub.visualization._axes import usual
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Mark
from optuna_daub.visualization._marks import Picture


if TYPE_CHECKING:
    import plotly.graph_objects as go


_logger = logging.getLogger(__name__)

MAX_BANDS = 3
"""Largest number of bands, those of the foremost learners; more would hide each other."""

TRAINING_SCORE = "training score"
FORECAST = "forecast"


class Edge(NamedTuple):
    """The forecast of a learner's score at one size."""

    size: int
    """Training examples."""
    worst: float
    """Pessimistic end; the last score if there is no bound on that side."""
    best: float
    """Optimistic end; at the full size it is the bound."""


class CurveLine(NamedTuple):
    """One learner in `plot_learning_curves`."""

    curve: LearnerCurve
    points: tuple[Observation, ...]
    """The observations with a finite score."""
    band: tuple[Edge, ...]
    """Forecast from the last score to the full size. Empty for all but the foremost suspended
    learners, and without a bound."""
    color: str | None
    """Colour of the line; None for learners in the background."""

    @property
    def trained(self) -> tuple[tuple[int, float], ...]:
        """Sizes and training scores that are known and finite."""
        found = ((seen.size, seen.training_score) for seen in self.points)
        return tuple((n, score) for n, score in found if score is not None and is_finite(score))

    @property
    def scores(self) -> list[float]:
        """All scores that are drawn: those of the background have no training scores."""
        trained = [score for _, score in self.trained] if self.color else []
        return [*(seen.score for seen in self.points), *trained]


class LearningCurvesRecord(NamedTuple):
    """The contents of `plot_learning_curves`."""

    lines: tuple[CurveLine, ...]
    """Lines of the learners, the foremost learner first."""
    n_learners: int
    """Number of learners that were asked for, shown or not."""
    sizes: tuple[int, ...]
    """The training sizes from the smallest one shown, increasing."""
    axis: Axis
    leader: int | None = None
    """Id of the leader of an unfinished study."""


def plot_learning_curves(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot score against training size, one line per learner, all its runs merged.

    Dashed lines are training scores. A band is the forecast of a learner's scores on larger
    sizes; the three foremost suspended learners have one. At the full size it is what the study
    reports: an interval of ABC, a forecast, or all scores up to DAUB's bound. Hover over a line to
    see the learner's parameters and the reason of the last decision on it. The subtitle counts the
    scores beyond the axis, which are far from those of the better learners.

    Args:
        study: a study, finished or running; its pruner is needed only for a policy of your own.
        learners: ids of the learners to show. None (the default) shows `top` learners in color
            and, in grey, at most 48 of the others, evenly over their ranks.
        top: number of learners in color: the best, then those with several scores, by their
            largest size and their score. Default: 12, as many colours as can be told apart.

    Returns:
        A figure, without lines if no score has been reported.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if one of `learners` is not in the study, `top` < 0, or the study's pruner is
            not one of optuna_daub.

    >>> import optuna
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner
    >>> sampler = DataAllocationSampler(n_learners=3)
    >>> pruner = DAUBPruner(max_resource=2000)
    >>> study = optuna.create_study(sampler=sampler, pruner=pruner)
    >>> figure = plot_learning_curves(study)
    >>> figure.layout.title.text
    'Learning curves'
    """
    return _plotly.draw(learning_curves_picture(study, learners, top))


def learning_curves_picture(
    study: optuna.Study, learners: Sequence[int] | None, top: int
) -> Picture:
    """Return `plot_learning_curves` as marks."""
    record = learning_curves_record(study, learners, top)
    drawn = [line for line in record.lines if line.points]
    colored = [line for line in drawn if line.color]
    others = [line for line in drawn if not line.color]
    marks: list[Mark] = [_others(others)] if others else []
    for line in reversed(colored):  # the foremost in front
        marks += _own_marks(line, state_shown(line.curve, record.leader))
    keys = []
    if any(line.trained for line in colored):
        keys.append(Line((), (), BACKGROUND, 1.0, dash="dash", label=TRAINING_SCORE))
    if any(line.band for line in colored):
        keys.append(Line((), (), BACKGROUND, 8.0, 0.3, label=FORECAST))
    return Picture(
        "Learning curves",
        (
            shown(len(colored), len(others), record.n_learners),
            beyond((score for line in drawn for score in line.scores), record.axis),
        ),
        size_scale(record.sizes),
        record.axis.scale(),
        (*marks, *keys),
        (
            *(_label(line, state_shown(line.curve, record.leader)) for line in colored),
            *(each.label for each in keys),
        ),
    )


def learning_curves_record(
    study: optuna.Study, learners: Sequence[int] | None, top: int
) -> LearningCurvesRecord:
    """Return the contents of `plot_learning_curves`.

    Raises:
        ValueError: if one of `learners` is not in the study, or `top` < 0.
    """
    check_top(top)
    curves = learning_curves(study)
    sign = sign_of(study)
    leader = leader_of(best_learner(study))
    ranked = foremost(curves, learners, sign, leader)
    # A single score is not a curve: in front are the leader and those with several scores.
    ranked[1:] = sorted(ranked[1:], key=lambda curve: len(finite(curve)) < 2)
    n_learners = len(ranked)
    if learners is None:
        ranked = [*ranked[:top], *thinned(ranked[top:])]
    colors = learner_colors(curve.learner for curve in ranked[:top])
    bands = _bands(study, ranked)
    lines = tuple(
        CurveLine(
            curve,
            finite(curve),
            bands.get(curve.learner, ()),
            colors.get(curve.learner),
        )
        for curve in ranked
    )
    if not any(line.points for line in lines):
        why = no_scores(study) if learners is None else "none of `learners` has a finite score"
        _logger.warning("There is no learning curve to draw: %s.", why)
    first = min((line.points[0].size for line in lines if line.points), default=0)
    sizes = tuple(size for size in policy_of(study).sizes if size >= first)
    axis = axis_of(study, _limits(lines, sign))
    return LearningCurvesRecord(lines, n_learners, sizes, axis, leader)


def _limits(lines: Sequence[CurveLine], sign: int) -> tuple[float, float] | None:
    """Return a range that holds the scores of the learners that stand out.

    It also holds the better half of the last scores of all. Scores so far from most of these that
    the curves would be flat are left out. Bands stretch the range by a quarter at most, since
    early bounds may be far beyond all scores.
    """
    drawn = [line for line in lines if line.points]
    if not drawn:
        return None
    prominent = [line for line in drawn if line.color] or drawn
    last = better_half((line.points[-1].score for line in prominent), sign)
    scores = [score for line in prominent for score in line.scores]
    scores += better_half((line.points[-1].score for line in drawn), sign)
    ends = [end for line in prominent for edge in line.band for end in (edge.worst, edge.best)]
    return stretched(near(scores, usual(scores, median(last))), ends)


def _bands(study: optuna.Study, ranked: Sequence[LearnerCurve]) -> dict[int, tuple[Edge, ...]]:
    """Return the forecasts of the foremost suspended learners' later scores, cut at the limits.

    Both ends at the full size are those that the study reports. If the policy forecasts scores,
    the band widens between as the forecasts do; otherwise it is a wedge.
    """
    policy, sign, limits = policy_of(study), sign_of(study), limits_of(study)
    forecasts, full = cache(partial(policy.forecasts, pool_of(study))), policy.sizes[-1]
    bands: dict[int, tuple[Edge, ...]] = {}
    for curve in ranked:
        points, bound = finite(curve), curve.bound
        if len(bands) == MAX_BANDS or not points or points[-1].size >= full:
            continue
        if bound is None or curve.state == "dropped":
            continue  # nothing is known, or it gets no more data
        size, score = points[-1].size, points[-1].score
        end = Edge(full, score if curve.worst is None else curve.worst, bound)
        edges = [Edge(size, score, score)]
        for between in [n for n in policy.sizes if size < n < full]:
            here, there = forecasts(between), forecasts(full)
            if here is None or there is None:
                break  # ABC has intervals and forecasts nothing
            own, last = here[curve.learner], there[curve.learner]
            if not last.scale:
                break  # the forecast is a bound, taken for certain
            # The ends at the full size are some quantiles. At this size they are nearer to the
            # mean, in proportion to the width of the forecast.
            share, middle, mean = own.scale / last.scale, sign * own.mean, sign * last.mean
            worst = float(middle + share * (end.worst - mean))
            edges.append(Edge(between, worst, float(middle + share * (end.best - mean))))
        bands[curve.learner] = tuple(
            Edge(edge.size, limits.cut(edge.worst), limits.cut(edge.best))
            for edge in (*edges, end)
        )
    return bands


def _label(line: CurveLine, state: str) -> str:
    return f"{label(line.curve)}, {state}"


def _own_marks(line: CurveLine, state: str) -> list[Mark]:
    """Return the band, training scores and curve of a learner that stands out."""
    look, group, color = LOOKS[state], str(line.curve.learner), line.color or BACKGROUND
    marks: list[Mark] = []
    if line.band:
        sizes, worst, best = zip(*line.band, strict=True)
        marks.append(Band(sizes, worst, best, color, opacity=0.16, group=group))
    if line.trained:
        marks.append(
            Line(
                [size for size, _ in line.trained],
                [score for _, score in line.trained],
                color,
                width=1.0,
                opacity=0.6,
                dash="dash",
                group=group,
                name=label(line.curve),
                point="training score %{y} on %{x:,} examples",
            )
        )
    marks.append(
        Line(
            [seen.size for seen in line.points],
            [seen.score for seen in line.points],
            color,
            width=look.width,
            opacity=look.opacity,
            dash=look.dash,
            symbol=state,
            symbol_size=4 + 1.5 * look.width,
            label=_label(line, state),
            group=group,
            name=label(line.curve),
            point="%{x:,} examples: %{y}",
            notes=facts(line.curve),
        )
    )
    return marks


def _others(lines: Sequence[CurveLine]) -> Line:
    """Return the learners in the background.

    A learner with a single score has no line, so each last score has a small marker.
    """
    line = background(
        ((line.curve, [(seen.size, seen.score) for seen in line.points]) for line in lines),
        "%{x:,} examples: %{y}",
    )
    is_last = [y is not None and after is None for y, after in pairwise(line.ys)]
    return line._replace(symbol="suspended", symbol_size=3.0, marked=[*is_last, False])
