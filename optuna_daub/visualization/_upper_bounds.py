"""Upper bounds: how bounds and the leader changed from training to training."""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING
from typing import NamedTuple

import optuna

from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Pool
from optuna_daub.study import records
from optuna_daub.study.limits import limits_of
from optuna_daub.study.results import Allocation
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import allocations
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import learning_curves
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
from optuna_daub.visualization._axes import state_shown
from optuna_daub.visualization._axes import stretched
from optuna_daub.visualization._axes import thinned
from optuna_daub.visualization._axes import usual
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Mark
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._marks import Scale


if TYPE_CHECKING:
    import plotly.graph_objects as go


_logger = logging.getLogger(__name__)

MOMENTS = 16
"""Number of moments at which bounds are computed per doubling of trainings: a power of two. In
short studies, of up to twice as many trainings, they are computed after each training."""

LEADER = "best bound"
POINT = "training %{x}: bound %{y}"


class BoundStep(NamedTuple):
    """A learner's bound after a training that changed it.

    The training may be another learner's.
    """

    number: int
    """Place of the training in the sequence of all trainings, from 1."""
    learner: int
    size: int
    score: float
    """The score of the learner's last training."""
    bound: float
    is_own: bool = True
    """True if the training is its own."""


class BoundTrack(NamedTuple):
    """One learner in `plot_upper_bounds`."""

    curve: LearnerCurve
    steps: tuple[BoundStep, ...]
    """Bounds up to the study's last training. Those of a dropped learner end at its own last one.
    The last bound is the one that the study reports."""
    color: str | None
    """Colour of the line; None for learners in the background."""


class Lead(NamedTuple):
    """The learner with the best bound from a training on, until the next lead."""

    number: int
    """Number of the training in the study, from 1."""
    learner: int
    bound: float


class BoundsRecord(NamedTuple):
    """The contents of `plot_upper_bounds`."""

    tracks: tuple[BoundTrack, ...]
    """Lines of the learners, the foremost learner first."""
    n_learners: int
    """Number of learners that were asked for, shown or not."""
    leads: tuple[Lead, ...]
    """Each change of the best bound among the learners that are not dropped."""
    n_trainings: int
    axis: Axis
    promise: str
    """Guarantee of the rule for the leader, as ABC has one; else empty."""
    leader: int | None = None
    """Id of the leader of an unfinished study."""


def plot_upper_bounds(
    study: optuna.Study, *, learners: Sequence[int] | None = None, top: int = 12
) -> go.Figure:
    """Plot how bounds and the leader changed: why each learner got data when it did.

    A line changes when its learner is trained (markers), and with the forecasts when others are.
    The broad line is the best bound of all: when a learner's line falls below it, another one
    leads. No bound is drawn beyond the limits of scores, such as 1 for scores in [0, 1].

    Args:
        study: a study, finished or running; its pruner is needed only for a policy of your own.
        learners: ids of the learners to show. None (the default) shows `top` learners in color
            and, in grey, at most 48 of the others, evenly over their ranks.
        top: number of learners in color: the best, then those trained on most data. Default: 12.

    Returns:
        A figure, without lines if no learner has a bound.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if one of `learners` is not in the study, `top` < 0, or the study's pruner is
            not one of optuna_daub.
    """
    return _plotly.draw(upper_bounds_picture(study, learners, top))


def upper_bounds_picture(study: optuna.Study, learners: Sequence[int] | None, top: int) -> Picture:
    """Return `plot_upper_bounds` as marks."""
    record = bounds_record(study, learners, top)
    drawn = [track for track in record.tracks if track.steps]
    colored = [track for track in drawn if track.color]
    others = [track for track in drawn if not track.color]
    marks: list[Mark] = []
    if record.leads:
        best = [lead.bound for lead in record.leads]
        marks.append(
            Line(
                [*(lead.number for lead in record.leads), record.n_trainings],
                [*best, best[-1]],
                BACKGROUND,
                width=8.0,
                opacity=0.35,
                is_step=True,
                label=LEADER,
                name=[f"learner {lead.learner} leads" for lead in record.leads],
                point="from training %{x} on: bound %{y}",
            )
        )
    if others:
        marks.append(_others(others))
    own = [_own_mark(track, state_shown(track.curve, record.leader)) for track in colored]
    marks += reversed(own)  # the foremost in front
    side = "lower" if record.axis.is_minimized else "upper"
    crowd = shown(len(colored), len(others), record.n_learners)
    bounds = (step.bound for track in drawn for step in track.steps)
    return Picture(
        f"{side.capitalize()} bounds by training",
        (crowd, beyond(bounds, record.axis, "bound"), record.promise),
        Scale("trainings", (0, None)),
        record.axis.scale(f"bound of {record.axis.name} on all data"),
        tuple(marks),
        (*([LEADER] if record.leads else []), *(mark.label for mark in own)),
    )


def bounds_record(study: optuna.Study, learners: Sequence[int] | None, top: int) -> BoundsRecord:
    """Return the contents of `plot_upper_bounds`.

    A bound is the one of the policy when the training ended, or soon after it in a long study (see
    `MOMENTS`). So the trainings are replayed one by one, without drops. If forecasts depend on
    other learners, a training changes all bounds. A dropped learner may lead up to its last
    training.

    Raises:
        ValueError: if one of `learners` is not in the study, or `top` < 0.
    """
    check_top(top)
    sequence = allocations(study)  # before the curves, so these know every learner in it
    curves = learning_curves(study)
    sign = sign_of(study)
    limits = limits_of(study)
    best = best_learner(study)
    leader = leader_of(best)
    ranked = foremost(curves, learners, sign, leader)
    n_learners = len(ranked)
    if learners is None:
        ranked = [*ranked[:top], *thinned(ranked[top:])]
    colors = learner_colors(curve.learner for curve in ranked[:top])
    own: dict[int, list[BoundStep]] = {curve.learner: [] for curve in curves}
    for step in _bound_steps(study, sequence):
        own[step.learner].append(step)
    for curve in curves:
        steps = [step._replace(bound=limits.cut(step.bound)) for step in own[curve.learner]]
        own[curve.learner] = _ended(steps, curve, len(sequence))
    leads = _leads(own, curves, sign)
    if not leads:
        _logger.warning("There is no bound to draw: no learner has one, and some rules give none.")
    tracks = tuple(
        BoundTrack(curve, tuple(own[curve.learner]), colors.get(curve.learner)) for curve in ranked
    )
    axis = axis_of(study, _limits(tracks, leads, sign, half=len(sequence) / 2))
    promise = best.promise if best else ""
    return BoundsRecord(tracks, n_learners, tuple(leads), len(sequence), axis, promise, leader)


def _limits(
    tracks: Sequence[BoundTrack], leads: Sequence[Lead], sign: int, half: float
) -> tuple[float, float] | None:
    """Return the range of the axis; None if there is no bound.

    It holds the present bounds of the learners that stand out, the better half of all present
    bounds, and the best bounds since `half` of the study's trainings. Early bounds may be far
    beyond. Bounds so far from the better ones that these would be flat are left out.
    """
    drawn = [track for track in tracks if track.steps]
    if not drawn:
        return None
    prominent = [track for track in drawn if track.color] or drawn
    last = better_half((track.steps[-1].bound for track in prominent), sign)
    bounds = [track.steps[-1].bound for track in prominent]
    bounds += better_half((track.steps[-1].bound for track in drawn), sign)
    early = sum(lead.number <= half for lead in leads)
    bounds += [lead.bound for lead in leads[max(early - 1, 0) :]]
    scores = [seen.score for track in prominent for seen in finite(track.curve)]
    inner = usual([*bounds, *scores], median(last))
    return stretched(near(bounds, inner), [lead.bound for lead in leads])


def _ended(steps: list[BoundStep], curve: LearnerCurve, n_trainings: int) -> list[BoundStep]:
    """Return a learner's steps up to the last training of the study.

    Those of a dropped learner end at its own last training.
    """
    if curve.state == "dropped":
        last = max((place for place, step in enumerate(steps, 1) if step.is_own), default=0)
        return steps[:last]
    if not steps or curve.bound is None:
        return steps
    end = steps[-1]._replace(number=n_trainings, bound=curve.bound, is_own=False)
    return steps if end[:-1] == steps[-1][:-1] else [*steps, end]


class _Replay(NamedTuple):
    """A study's trainings, replayed one by one, with the bounds after each."""

    policy: Policy
    start: Pool
    """Pool before the first training."""
    places: list[tuple[int, int, int]]
    """Learner, trial and size of each training replayed."""
    pool: Pool
    steps: tuple[BoundStep, ...]
    waiting: tuple[BoundStep, ...]
    """Trainings after the last moment; their bounds are not known yet."""


_REPLAYS: weakref.WeakKeyDictionary[optuna.Study, _Replay] = weakref.WeakKeyDictionary()
"""Replays of studies, so drawing a running study again replays only new trainings. All of them are
replayed if the space has changed, as by a new branch."""


def _bound_steps(study: optuna.Study, sequence: Sequence[Allocation]) -> tuple[BoundStep, ...]:
    policy, sign, present = policy_of(study), sign_of(study), pool_of(study)
    # ABC's intervals depend on the number of learners, including those still to come.
    n_learners = None if present.to_come is None else present.to_come + len(present.curves)
    start = Pool(to_come=n_learners, space=present.space)
    # A score that is NaN is not equal to itself.
    places = [(made.learner, made.trial, made.observation.size) for made in sequence]
    known = _REPLAYS.get(study)
    if known is None or (policy, start, places[: len(known.places)]) != known[:3]:
        known = _Replay(policy, start, [], start, (), ())
    pool, steps, waiting = known.pool, list(known.steps), list(known.waiting)
    n_known = len(known.places)
    for number, made in enumerate(sequence[n_known:], n_known + 1):
        if made.learner not in pool.curves:
            pool = pool.with_newcomer(made.learner, present.curves[made.learner].parameters)
        seen, before = made.observation, pool.curves[made.learner]
        if not seen.is_finite or seen.size <= before.size:
            continue  # the latter was trained twice, on two workers or after a failure
        pool = pool.observed(made.learner, records.signed(seen, sign))
        waiting.append(BoundStep(number, made.learner, seen.size, seen.score, math.nan))
        if _is_moment(number):
            steps += _steps_at(policy, pool, waiting, steps, sign)
            waiting.clear()
    _REPLAYS[study] = _Replay(policy, start, places, pool, tuple(steps), tuple(waiting))
    return (*steps, *_steps_at(policy, pool, waiting, steps, sign))


def _steps_at(
    policy: Policy,
    pool: Pool,
    waiting: Sequence[BoundStep],
    earlier: Sequence[BoundStep],
    sign: int,
) -> list[BoundStep]:
    """Return the steps at a moment: of each learner trained since the last one, and of others."""
    if not waiting:
        return []
    uppers = ((learner, policy.interval(pool, learner).upper) for learner in pool.curves)
    bounds = {learner: sign * upper for learner, upper in uppers if not math.isinf(upper)}
    latest = {step.learner: step for step in waiting}  # an earlier one had another bound
    steps = [step._replace(bound=bounds[i]) for i, step in latest.items() if i in bounds]
    before = {step.learner: step.bound for step in (*earlier, *steps)}
    last = waiting[-1].number
    for learner, bound in bounds.items():
        if before.get(learner) != bound:
            curve = pool.curves[learner]
            steps.append(BoundStep(last, learner, curve.size, sign * curve.score, bound, False))
    return steps


def _is_moment(number: int) -> bool:
    """Return whether bounds are computed after training `number`."""
    every = 1 << max(0, number.bit_length() - MOMENTS.bit_length())
    return number % every == 0


def _leads(
    steps: Mapping[int, Sequence[BoundStep]], curves: Sequence[LearnerCurve], sign: int
) -> list[Lead]:
    last = {
        curve.learner: steps[curve.learner][-1].number
        for curve in curves
        if curve.state == "dropped" and steps[curve.learner]
    }
    ranks: dict[int, tuple[float, int, float, int]] = {}
    leads: list[Lead] = []
    leader: int | None = None
    in_order = sorted(
        (step for own in steps.values() for step in own), key=lambda step: step.number
    )
    for number, group in groupby(in_order, key=lambda step: step.number):
        rivals = []
        for step in group:
            ranks[step.learner] = sign * step.bound, step.size, sign * step.score, -step.learner
            rivals.append(step.learner)
            if number == last.get(step.learner):
                del ranks[step.learner]
        if leader in rivals:  # it may have fallen behind any other
            rivals = [*ranks]
        elif leader is not None:
            rivals.append(leader)
        leader = max((i for i in rivals if i in ranks), key=ranks.__getitem__, default=None)
        if leader is not None:
            lead = Lead(number, leader, sign * ranks[leader][0])
            if not leads or leads[-1][1:] != lead[1:]:
                leads.append(lead)
    return leads


def _own_mark(track: BoundTrack, state: str) -> Line:
    """Return the line of a learner that stands out."""
    look, name = LOOKS[state], label(track.curve)
    return Line(
        [step.number for step in track.steps],
        [step.bound for step in track.steps],
        track.color or BACKGROUND,
        width=look.width,
        opacity=look.opacity,
        is_step=True,
        symbol=state,
        symbol_size=3 + 1.5 * look.width,
        marked=[step.is_own for step in track.steps],
        label=f"{name}, {state}",
        name=[f"{name}, {step.size:,} examples" for step in track.steps],
        point=POINT,
        notes=facts(track.curve),
    )


def _others(tracks: Sequence[BoundTrack]) -> Line:
    """Return the learners in the background."""
    steps = ((each.curve, [(step.number, step.bound) for step in each.steps]) for each in tracks)
    return background(steps, POINT)._replace(is_step=True)
