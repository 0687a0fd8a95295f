"""Contents of the pictures as plain data: a study in, named tuples out; no plotting library.

Scores are in the direction of the user. Whatever both renderers must agree on is settled here:
which learners stand out, colours, labels, which sizes get a tick, which scores fit in.
"""

from __future__ import annotations

import logging
import math
import reprlib
import textwrap
import weakref
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import groupby
from typing import Any
from typing import Literal
from typing import NamedTuple
from typing import TypeAlias

import numpy as np
import optuna
from optuna.study import StudyDirection

from optuna_daub.core.checks import whole_number
from optuna_daub.core.costs import expected_seconds
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.study import keys
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.results import Allocation
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import allocations
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import learning_curves
from optuna_daub.study.worker import check_study
from optuna_daub.study.worker import looking


_logger = logging.getLogger(__name__)

Unit: TypeAlias = Literal["examples", "seconds"]
UNITS: tuple[Unit, ...] = ("examples", "seconds")

PALETTE = (
    "#4269d0", "#d99a00", "#f0603c", "#1fa898", "#3ca951", "#e8649f",
    "#a463f2", "#6aa5ee", "#9c6b4e", "#b3224f", "#94a31a", "#c58be0",
)  # fmt: skip
"""Colours of the learners that stand out; of middle lightness, as all colours here, so that they
can be told apart on white and on black."""

KINDS = {"newcomer": "#6aa5ee", "promotion": "#a463f2", "all the data": "#d99a00"}
"""Colours of the probes of a search."""

BACKGROUND = "#8c8c8c"
"""Colour of the other learners."""

_SHADES = ("#74b9e8", "#3b82c4", "#7b61b8", "#cf5273", "#eda03f")
"""Colours of the training sizes, from the smallest to the largest."""

MOMENTS = 16
"""How often in each doubling of the probes the bounds of all learners are looked at, a power of
two; up to twice as many probes, after each."""

MOST_TOLD = 100
"""Learners in a picture of which those in the background are told of at length."""

MOST_BANDS = 5
"""Of the foremost learners: more bands over each other are mud."""

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


class Axis(NamedTuple):
    """How scores are to be read."""

    name: str
    """What the score is called: the study's metric name, "score" where it has none."""
    is_minimized: bool
    limits: tuple[float, float] | None
    """The smallest and the largest score that fit in; None where there is nothing to draw."""


class Edge(NamedTuple):
    """Where the score at some size is believed to lie."""

    size: int
    """Training examples."""
    worst: float
    """The pessimistic end; the last score itself where nothing bounds it on that side."""
    best: float
    """The optimistic end: at the full size the bound."""


class CurveLine(NamedTuple):
    """One learner in `plot_learning_curves`."""

    curve: LearnerCurve
    name: str
    facts: tuple[str, ...]
    """Its parameters and the reason of the last decision on it, as lines."""
    points: tuple[Observation, ...]
    """Its observations with a finite score."""
    band: tuple[Edge, ...]
    """From the last score to the full size, where it ends as the record says; empty at the full
    size, where the learner gets no more data or has no bound, and of all but the foremost."""
    color: str | None
    """None for the background: learners that do not stand out."""


class LearningCurvesRecord(NamedTuple):
    """What `plot_learning_curves` shows."""

    lines: tuple[CurveLine, ...]
    """The foremost learner first."""
    sizes: tuple[int, ...]
    """The training sizes of the study, increasing."""
    ticks: tuple[int, ...]
    """Those that can be written at a logarithmic axis."""
    axis: Axis


class Layer(NamedTuple):
    """What all learners were given at one training size."""

    size: int
    costs: tuple[float, ...]
    """By bar, in examples or seconds; 0 for those not trained on this size."""
    color: str


class AllocationsRecord(NamedTuple):
    """What `plot_allocations` shows."""

    curves: tuple[LearnerCurve, ...]
    """The learner with the best score first."""
    names: tuple[str, ...]
    """What each bar is called: the first learners, then the mean of all others."""
    layers: tuple[Layer, ...]
    """Sizes increasing; costs in the order of `names`."""
    spent: float
    """The sum of all costs."""
    everything: float
    """What training each of these learners once on all the data takes. Seconds that were not
    measured are projected from the times that were."""
    measured: float
    """How much of that is no projection."""
    unit: Unit

    @property
    def share(self) -> str:
        """What was spent, in comparison with training everything."""
        if not self.spent:
            return f"no {self.unit} spent yet"
        about = "" if self.measured >= self.everything else "about "
        return f"{self.spent:,.0f} {self.unit}, {about}{self.spent / self.everything:.0%}"

    @property
    def spending(self) -> str:
        """The same as a sentence."""
        if not self.spent:
            return self.share
        count = sum(bool(curve.observations) for curve in self.curves)
        learners = f"{count} learner{'s' * (count != 1)}"
        return f"{self.share} of training {learners} on all the data"


class BoundStep(NamedTuple):
    """The bound of a learner after a probe: its own, or one of another that says more of it."""

    number: int
    """Place of the probe in the sequence of all probes, from 1."""
    learner: int
    size: int
    score: float
    """Of the learner's last probe."""
    bound: float
    is_probe: bool = True
    """Whether the probe is its own."""


class BoundTrack(NamedTuple):
    """One learner in `plot_upper_bounds`."""

    curve: LearnerCurve
    name: str
    facts: tuple[str, ...]
    """Its parameters and the reason of the last decision on it, as lines."""
    steps: tuple[BoundStep, ...]
    """Up to the last probe of all, with the bound that the record states; a dropped learner's up
    to its own last one. In a crowded background, its own probes and the end."""
    color: str | None
    """None for the background: learners that do not stand out."""


class Lead(NamedTuple):
    """The learner with the best bound from a probe on, until the next lead."""

    number: int
    """Place of the probe in the sequence, from 1."""
    learner: int
    bound: float


class BoundsRecord(NamedTuple):
    """What `plot_upper_bounds` shows."""

    tracks: tuple[BoundTrack, ...]
    """The foremost learner first."""
    leads: tuple[Lead, ...]
    """Each change of the best bound among the learners that are not dropped."""
    n_probes: int
    axis: Axis
    promise: str
    """What is promised of the leader, or known of the bounds; empty where nothing is."""


class Mark(NamedTuple):
    """One probe in `plot_search_history`."""

    at: float
    """What all probes up to this one have cost, in seconds or examples."""
    score: float
    learner: int
    name: str
    """Of the learner."""
    size: int
    kind: Literal["newcomer", "promotion", "all the data"]


class SearchHistoryRecord(NamedTuple):
    """What `plot_search_history` shows."""

    marks: tuple[Mark, ...]
    """Probes with a finite score, in the order in which they ended."""
    paths: tuple[tuple[Mark, ...], ...]
    """The probes of each learner that was the best on all the data for a while."""
    best: tuple[Mark, ...]
    """Each that was better on all the data than any before."""
    spent: float
    """What all probes have cost."""
    unit: Unit
    axis: Axis


def learning_curves_record(
    study: optuna.Study, learners: Sequence[int] | None, top: int
) -> LearningCurvesRecord:
    """Return what `plot_learning_curves` shows.

    Raises:
        ValueError: where one of `learners` is not in the study, or `top` < 0.
    """
    curves = learning_curves(study)
    policy, sign = policy_of(study), sign_of(study)
    foremost = _foremost(curves, learners, top, sign)
    colors = learner_colors(curve.learner for curve in foremost[:top])
    bands = _bands(foremost, policy, looking(study).pool(policy, is_at_work=False), sign)
    banded = [curve.learner for curve in foremost if bands[curve.learner]][:MOST_BANDS]
    lines = tuple(
        CurveLine(
            curve,
            label(curve),
            _facts(curve),
            _finite(curve),
            bands[curve.learner] if curve.learner in banded else (),
            colors.get(curve.learner),
        )
        for curve in foremost
    )
    if not any(line.points for line in lines):
        _logger.warning("There is no learning curve to draw: no score has been reported yet.")
    # Scores of those that stand out fit in; bands stretch the axis by a quarter at most, since
    # early bounds may be far beyond all scores.
    prominent = [line for line in lines if line.color] or lines
    points = [seen for line in prominent for seen in line.points]
    scores = [seen.score for seen in points]
    scores += [t for seen in points if (t := seen.training_score) is not None and math.isfinite(t)]
    ends = [end for line in prominent for edge in line.band for end in (edge.worst, edge.best)]
    limits = stretched(scores, ends) if scores else None
    return LearningCurvesRecord(
        lines, policy.sizes, tick_sizes(policy.sizes), _axis_of(study, limits)
    )


def allocations_record(
    study: optuna.Study, unit: Unit | Literal["auto"], top: int
) -> AllocationsRecord:
    """Return what `plot_allocations` shows.

    Raises:
        ValueError: where `unit` is none of "auto", "examples" and "seconds", or `top` < 0.
    """
    _check_top(top)
    sign = sign_of(study)
    curves = sorted(
        learning_curves(study), key=lambda curve: (-_last_score(curve, sign), curve.learner)
    )
    probes = [seen for curve in curves for seen in curve.observations]
    unit = _unit(unit, probes)
    sizes = sorted({seen.size for seen in probes})
    colors = size_colors(sizes)
    costs = [{seen.size: _cost(seen, unit) for seen in curve.observations} for curve in curves]
    names = [label(curve) for curve in curves[:top]]
    if len(curves) > top:
        others = f"{len(curves) - top} others" if top else f"{len(curves)} learners"
        names.append(f"mean of {others}")
    layers = []
    for size in sizes:
        own = [cost.get(size, 0.0) for cost in costs]
        mean = [math.fsum(own[top:]) / len(own[top:])] if len(own) > top else []
        layers.append(Layer(size, (*own[:top], *mean), colors[size]))
    spent = math.fsum(_cost(seen, unit) for seen in probes)
    if not spent:
        _logger.warning("There is no allocation to draw: no %s are known yet.", unit)
    full_size = policy_of(study).sizes[-1]
    everything = measured = float(full_size * sum(bool(curve.observations) for curve in curves))
    if unit == "seconds":
        known = Curves(
            LearningCurve(c.learner, c.observations, parameters=c.params) for c in curves
        )
        everything = math.fsum(expected_seconds(known, full_size).values())
        measured = math.fsum(_cost(seen, unit) for seen in probes if seen.size == full_size)
    return AllocationsRecord(
        tuple(curves), tuple(names), tuple(layers), spent, everything, measured, unit
    )


def bounds_record(study: optuna.Study, learners: Sequence[int] | None, top: int) -> BoundsRecord:
    """Return what `plot_upper_bounds` shows.

    Each bound is what the policy said, or would have said, when the probe ended: the probes are
    observed once more, one by one. Where a forecast rests on what others gain, a probe moves the
    bounds of all; those are looked at now and then. A dropped learner counts among the leaders up
    to its last probe.

    Raises:
        ValueError: where one of `learners` is not in the study, or `top` < 0.
    """
    sequence = allocations(study)  # before the curves, so that these know every learner in it
    curves = learning_curves(study)
    sign = sign_of(study)
    foremost = _foremost(curves, learners, top, sign)
    colors = learner_colors(curve.learner for curve in foremost[:top])
    own: dict[int, list[BoundStep]] = {curve.learner: [] for curve in curves}
    for step in _bound_steps(study, sequence, curves, sign):
        own[step.learner].append(step)
    for curve in curves:
        steps = own[curve.learner]
        if curve.state == "dropped":
            while steps and not steps[-1].is_probe:
                steps.pop()
        elif steps and curve.bound is not None:
            end = steps[-1]._replace(number=len(sequence), bound=curve.bound, is_probe=False)
            if end[:-1] != steps[-1][:-1]:
                steps.append(end)
    leads = _leads(own, curves, sign)
    if not leads:
        _logger.warning("There is no bound to draw: no learner has one yet.")
    for curve in curves if len(foremost) > MOST_TOLD else ():
        if curve.learner not in colors:
            steps = own[curve.learner]
            steps[:-1] = [step for step in steps[:-1] if step.is_probe]
    tracks = tuple(
        BoundTrack(
            curve,
            label(curve),
            _facts(curve),
            tuple(own[curve.learner]),
            colors.get(curve.learner),
        )
        for curve in foremost
    )
    # What fits in: the bounds of those that stand out as they are now, and the best bound since
    # the study was half done. The first ones, of the smallest sizes, may be far beyond.
    prominent = [track for track in tracks if track.color] or tracks
    inner = [track.steps[-1].bound for track in prominent if track.steps]
    early = sum(lead.number <= len(sequence) / 2 for lead in leads)
    inner += [lead.bound for lead in leads[max(early - 1, 0) :]]
    limits = stretched(inner, [lead.bound for lead in leads]) if inner else None
    best = best_learner(study)
    promise = best.promise if best else ""
    return BoundsRecord(tracks, tuple(leads), len(sequence), _axis_of(study, limits), promise)


def search_history_record(
    study: optuna.Study, unit: Unit | Literal["auto"]
) -> SearchHistoryRecord:
    """Return what `plot_search_history` shows.

    Raises:
        ValueError: where `unit` is none of "auto", "examples" and "seconds".
    """
    sequence = allocations(study)  # before the curves, so that these know every learner in it
    names = {curve.learner: label(curve) for curve in learning_curves(study)}
    sign, full_size = sign_of(study), policy_of(study).sizes[-1]
    unit = _unit(unit, [probe.observation for probe in sequence])
    marks: list[Mark] = []
    best: list[Mark] = []
    paths: dict[int, list[Mark]] = {}
    spent = 0.0
    for probe in sequence:
        seen = probe.observation
        spent += _cost(seen, unit)
        if not math.isfinite(seen.score):
            continue
        path = paths.setdefault(probe.learner, [])
        kind: Literal["newcomer", "promotion", "all the data"]
        kind = "promotion" if path else "newcomer"
        if seen.size >= full_size:
            kind = "all the data"
        name = names[probe.learner]
        path.append(Mark(spent, seen.score, probe.learner, name, seen.size, kind))
        marks.append(path[-1])
        if kind == "all the data" and (not best or sign * (seen.score - best[-1].score) > 0):
            best.append(path[-1])
    if not marks:
        _logger.warning("There is no search to draw: no score has been reported yet.")
    # Scores on all the data fit in, and the better half of all; newcomers may be far behind.
    good = sorted((mark.score for mark in marks), reverse=sign > 0)
    inner = [*good[: (len(good) + 1) // 2], *(m.score for m in marks if m.kind == "all the data")]
    limits = stretched(inner, good, share=1.0) if inner else None
    reached = (tuple(paths[mark.learner]) for mark in best)
    return SearchHistoryRecord(
        tuple(marks), tuple(reached), tuple(best), spent, unit, _axis_of(study, limits)
    )


def policy_of(study: optuna.Study) -> Policy:
    """Return the rule that allocates the data of a study whose curves have been read."""
    assert isinstance(study.pruner, AllocationPruner)  # `learning_curves` has seen to it
    return study.pruner.policy


def sign_of(study: optuna.Study) -> int:
    """Return what turns the user's scores so that larger is better: 1, or -1 for minimize."""
    check_study(study)
    return -1 if study.direction == StudyDirection.MINIMIZE else 1


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


def _facts(curve: LearnerCurve) -> tuple[str, ...]:
    return *parameter_lines(curve.params), *textwrap.wrap(curve.reason, 60)


def learner_colors(learners: Iterable[int]) -> dict[int, str]:
    """Return a colour for each learner, different ones as long as there are enough.

    A learner mostly keeps its colour when a running study is drawn again: it goes by the id.
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
    """Return a colour for each training size, evenly spaced on the way along `_SHADES`."""
    stops = np.array([[int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in _SHADES])
    places = np.linspace(0, len(stops) - 1, max(len(sizes), 2))
    mixed = [np.interp(places, range(len(stops)), channel).round() for channel in stops.T]
    return {
        size: "#" + "".join(f"{int(channel[place]):02x}" for channel in mixed)
        for place, size in enumerate(sizes)
    }


def tick_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes that can be written at a logarithmic axis, the last in any case."""
    room = math.log(sizes[-1] / sizes[0]) / MAX_TICKS
    ticks = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(ticks[-1] / size) >= room:
            ticks.append(size)
    return tuple(ticks[::-1])


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


def _unit(unit: Unit | Literal["auto"], probes: Sequence[Observation]) -> Unit:
    """Return what costs are counted in: "auto" is seconds where every probe was timed."""
    if not isinstance(unit, str) or unit not in ("auto", *UNITS):
        raise ValueError(f'`unit` must be "auto", "examples" or "seconds", but got {unit!r}.')
    if unit != "auto":
        return unit
    return "seconds" if probes and all(seen.seconds for seen in probes) else "examples"


def _cost(seen: Observation, unit: Unit) -> float:
    return float(seen.size) if unit == "examples" else seen.seconds or 0.0


def _axis_of(study: optuna.Study, limits: tuple[float, float] | None) -> Axis:
    names = study.metric_names
    return Axis(names[0] if names else "score", sign_of(study) < 0, limits)


def _finite(curve: LearnerCurve) -> tuple[Observation, ...]:
    return tuple(seen for seen in curve.observations if math.isfinite(seen.score))


def _last_score(curve: LearnerCurve, sign: int) -> float:
    """Return the last score, larger is better; minus infinity where there is none."""
    points = _finite(curve)
    return sign * points[-1].score if points else -math.inf


def _foremost(
    curves: Sequence[LearnerCurve], learners: Sequence[int] | None, top: int, sign: int
) -> list[LearnerCurve]:
    """Return the learners asked for: the best, then those with most data, then by score."""
    _check_top(top)
    if learners is not None:
        learners = _ids(learners)
    ids = {curve.learner for curve in curves}
    unknown = [learner for learner in learners or () if learner not in ids]
    if unknown:
        raise ValueError(
            f"`learners` must be ids of learners of this study, which are {sorted(ids)}, but got "
            f"{reprlib.repr(unknown)}. A learner's id is the number of the first trial that "
            "ran it."
        )

    def rank(curve: LearnerCurve) -> tuple[bool, int, float, int]:
        points = _finite(curve)
        size = points[-1].size if points else 0
        return curve.state != "best", -size, -_last_score(curve, sign), curve.learner

    return sorted(
        (curve for curve in curves if learners is None or curve.learner in learners), key=rank
    )


def _ids(learners: Iterable[int]) -> list[int]:
    try:
        if isinstance(learners, str | bytes | Mapping):
            raise TypeError
        given = [*learners]
    except TypeError:  # also of an array without a dimension
        raise ValueError(f"`learners` must be a list of ids, but got {learners!r}.") from None
    return [whole_number("learners", learner) for learner in given]


def _check_top(top: int) -> None:
    if whole_number("top", top) < 0:
        raise ValueError(f"`top` must be at least 0, but got {top}.")


def _bands(
    curves: Sequence[LearnerCurve], policy: Policy, pool: Pool, sign: int
) -> dict[int, tuple[Edge, ...]]:
    """Return where each learner's scores are believed to lie, from its last one on.

    Both ends are what the study reports of it: a wedge. Where the policy forecasts, the way in
    between goes as the forecasts do.
    """
    full = policy.sizes[-1]
    bands: dict[int, tuple[Edge, ...]] = {}
    for curve in curves:
        points, bound = _finite(curve), curve.bound
        bands[curve.learner] = ()
        if not points or bound is None or curve.state == "dropped":
            continue  # nothing is known, or it gets no more data
        size, score = points[-1].size, points[-1].score
        if size < full:
            worst = score if curve.worst is None else curve.worst
            bands[curve.learner] = Edge(size, score, score), Edge(full, worst, bound)
    at_full = policy.forecasts(pool, full) if any(bands.values()) else None
    if at_full is None:
        return bands
    means = dict(zip(at_full, np.atleast_1d(at_full.all.mean).tolist(), strict=True))
    spreads = dict(zip(at_full, _spread(at_full.all), strict=True))
    inner: dict[int, list[Edge]] = {learner: [] for learner in bands}
    for size in policy.sizes[:-1]:
        forecasts = policy.forecasts(pool, size)
        assert forecasts is not None
        centers = np.atleast_1d(forecasts.all.mean).tolist()
        widths = _spread(forecasts.all)
        for learner, center, width in zip(forecasts, centers, widths, strict=True):
            # Without a spread the forecast is a bound, taken for certain: the wedge stays.
            if bands.get(learner) and bands[learner][0].size < size and spreads[learner] > 0:
                # Whatever quantiles the ends at the full size are, at this size they are as much
                # nearer to the mean as the whole forecast is narrower.
                share = width / spreads[learner]
                _, end = bands[learner]
                middle, mean = sign * center, sign * means[learner]
                worst = middle + share * (end.worst - mean)
                inner[learner].append(Edge(size, worst, middle + share * (end.best - mean)))
    return {
        learner: (band[0], *inner[learner], band[-1]) if band else ()
        for learner, band in bands.items()
    }


def _spread(forecasts: Any) -> list[float]:
    """Return between which scores the middle four fifths of each forecast lie, as a width."""
    with np.errstate(invalid="ignore"):  # infinite before the first score
        width = np.atleast_1d(forecasts.quantile(0.9) - forecasts.quantile(0.1))
    widths: list[float] = np.nan_to_num(width, nan=0.0, posinf=0.0).tolist()
    return widths


class _Replay(NamedTuple):
    """How far the probes of a study were observed once more."""

    policy: Policy
    n_learners: int | None
    probes: tuple[Allocation, ...]
    pool: Pool
    """As it was after these."""
    steps: tuple[BoundStep, ...]


_REPLAYS: weakref.WeakKeyDictionary[optuna.Study, _Replay] = weakref.WeakKeyDictionary()
"""A running study is drawn again and again: each probe is observed once more only once."""


def _bound_steps(
    study: optuna.Study, sequence: Sequence[Allocation], curves: Sequence[LearnerCurve], sign: int
) -> tuple[BoundStep, ...]:
    policy, worker = policy_of(study), looking(study)
    to_come = worker.pool(policy, is_at_work=False).to_come
    # ABC's intervals depend on how many learners there are, those still to come among them.
    n_learners = None if to_come is None else to_come + len(curves)
    known = _REPLAYS.get(study)
    if (
        known is None
        or (known.policy, known.n_learners) != (policy, n_learners)
        or known.probes != tuple(sequence[: len(known.probes)])
    ):
        known = _Replay(policy, n_learners, (), Pool(to_come=n_learners), ())
    pool, steps = known.pool, list(known.steps)
    bounds: dict[int, float | None] = {step.learner: step.bound for step in steps}
    for number, probe in enumerate(sequence[len(known.probes) :], len(known.probes) + 1):
        if probe.learner not in pool.curves:
            pool = pool.with_newcomer(probe.learner)
        seen, before = probe.observation, pool.curves[probe.learner]
        if not math.isfinite(seen.score) or seen.size <= before.size:
            continue  # the latter was trained twice, on two workers or after a failure
        pool = pool.observed(probe.learner, keys.signed(seen, sign))
        bounds[probe.learner] = None
        for learner in pool.curves if _is_moment(number) else (probe.learner,):
            upper, curve = policy.interval(pool, learner).upper, pool.curves[learner]
            if not math.isinf(upper) and bounds.get(learner) != sign * upper:
                bounds[learner] = sign * upper
                facts = curve.size, sign * curve.score, sign * upper, learner == probe.learner
                steps.append(BoundStep(number, learner, *facts))
    known = _Replay(policy, n_learners, tuple(sequence), pool, tuple(steps))
    _REPLAYS[study] = known
    return known.steps


def _is_moment(number: int) -> bool:
    """Return whether the bounds of all learners are looked at after probe `number`."""
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
