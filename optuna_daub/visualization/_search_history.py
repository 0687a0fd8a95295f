"""Search history: the best score so far against the seconds spent."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING
from typing import Literal
from typing import NamedTuple
from typing import TypeAlias

import optuna

from optuna_daub.core.curve import LOST
from optuna_daub.core.curve import is_finite
from optuna_daub.study.results import Allocation
from optuna_daub.study.results import allocations
from optuna_daub.study.results import learning_curves
from optuna_daub.study.results import no_scores
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.visualization import _plotly
from optuna_daub.visualization._axes import Axis
from optuna_daub.visualization._axes import Unit
from optuna_daub.visualization._axes import axis_of
from optuna_daub.visualization._axes import better_half
from optuna_daub.visualization._axes import beyond
from optuna_daub.visualization._axes import cost
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import near
from optuna_daub.visualization._axes import pool_of
from optuna_daub.visualization._axes import sign_of
from optuna_daub.visualization._axes import stretched
from optuna_daub.visualization._axes import unit_of
from optuna_daub.visualization._axes import usual
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._marks import Scale
from optuna_daub.visualization._numbers import amount
from optuna_daub.visualization._numbers import said


if TYPE_CHECKING:
    import plotly.graph_objects as go


_logger = logging.getLogger(__name__)

Kind: TypeAlias = Literal["first training", "more data", "all the data"]

KINDS: dict[Kind, tuple[str, float]] = {
    "first training": ("#6aa5ee", 4.0),
    "more data": ("#a463f2", 5.0),
    "all the data": ("#d99a00", 5.0),
}
"""Colour and size in points of the trainings of a search."""

PATH = "earlier scores of the best"
BEST = "best so far, all the data"
EARLY = "best so far, less data"


class Training(NamedTuple):
    """One training in `plot_search_history`."""

    at: float
    """Cost of all trainings up to and including this one, in seconds or examples."""
    score: float
    learner: int
    name: str
    """The name of the learner."""
    size: int
    kind: Kind


class SearchHistoryRecord(NamedTuple):
    """The contents of `plot_search_history`."""

    trainings: tuple[Training, ...]
    """Trainings with a finite score, in the order in which they ended."""
    paths: tuple[tuple[Training, ...], ...]
    """Trainings of each learner that once was the best on all the data."""
    best: tuple[Training, ...]
    """Trainings on all the data that were better than all earlier ones. Those of learners that
    failed or violate a constraint do not count."""
    early: tuple[Training, ...]
    """Trainings on any size that beat all earlier ones, of the same learners. They end with the
    first on all the data."""
    spent: float
    """The cost of all trainings."""
    unit: Unit
    axis: Axis

    @property
    def finding(self) -> str:
        """A sentence on the result."""
        if not self.trainings:
            return ""
        if not self.best:
            is_any = any(each.kind == "all the data" for each in self.trainings)
            return f"no {'feasible ' * is_any}learner was trained on all the data yet"
        found = self.best[-1]
        until = f"{amount(found.at)} of {amount(self.spent)} {self.unit}"
        score = said(found.score, *(self.axis.limits or ()))
        return f"{found.name}: {score} on all the data, after {until}"


def plot_search_history(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto"
) -> go.Figure:
    """Plot the best score so far on all the data against the seconds spent.

    Every training is a marker at the time of its end: the first one of a learner, those on more
    data, and those on all the data. The broad line is the best score on all the data so far.
    Before the first one, a thinner line is the best score on less data. Dotted lines join the
    trainings of each learner that was the best for a while. Learners that failed or
    violate a constraint have markers only.

    Args:
        study: a study, finished or running; its pruner is needed only for a policy of your own.
        unit: "seconds" or "examples" spent on all trainings so far, by all workers; "auto" (the
            default) is seconds if every training was timed, else examples.

    Returns:
        A figure, without marks if no score has been reported.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if `unit` is unknown, or the study's pruner is not one of optuna_daub.
    """
    return _plotly.draw(search_history_picture(study, unit))


def search_history_picture(study: optuna.Study, unit: Unit | Literal["auto"]) -> Picture:
    """Return `plot_search_history` as marks."""
    record = search_history_record(study, unit)
    gold, _ = KINDS["all the data"]
    joined = [each for path in record.paths if len(path) > 1 for each in (*path, None)]
    crowd = 0.7 if len(record.trainings) > 200 else 1.0  # so many markers lie over each other
    end = record.spent * 1.03  # some more, so a best model found at the very end has a line
    until = record.best[0].at if record.best else end
    lines = (
        Line(
            [each and each.at for each in joined],
            [each and each.score for each in joined],
            gold,
            width=1.0,
            dash="dot",
            label=PATH,
        ),
        *(_markers(kind, record.trainings, crowd) for kind in KINDS),
        _steps(record.early, until, KINDS["more data"][0], 1.5, EARLY),
        _steps(record.best, end, gold, 3.0, BEST),
    )
    marks = tuple(line for line in lines if line.ys)
    labels = {mark.label for mark in marks}
    return Picture(
        "Search history",
        (record.finding, beyond((each.score for each in record.trainings), record.axis)),
        Scale(f"{record.unit} of training", (0, end or None), is_amount=True),
        record.axis.scale(),
        marks,
        tuple(name for name in (BEST, EARLY, *reversed(KINDS), PATH) if name in labels),
    )


def _markers(kind: Kind, trainings: Sequence[Training], opacity: float) -> Line:
    """Return the trainings of one kind."""
    color, size = KINDS[kind]
    own = [each for each in trainings if each.kind == kind]
    return Line(
        [each.at for each in own],
        [each.score for each in own],
        color,
        opacity=opacity,
        symbol=kind,
        symbol_size=size,
        label=kind,
        name=[f"{each.name}, {each.size:,} examples" for each in own],
        point="%{y}",
    )


def _steps(
    records: Sequence[Training], until: float, color: str, width: float, label: str
) -> Line:
    """Return the scores as a step line: each holds until the next. Empty without scores."""
    scores = [each.score for each in records]
    ends = [*(each.at for each in records), until]
    return Line(ends, [*scores, *scores[-1:]], color, width=width, is_step=True, label=label)


def search_history_record(
    study: optuna.Study, unit: Unit | Literal["auto"]
) -> SearchHistoryRecord:
    """Return the contents of `plot_search_history`.

    Raises:
        ValueError: if `unit` is not "auto", "examples" or "seconds".
    """
    sequence = allocations(study)  # before the curves, so these know every learner in it
    names = {curve.learner: label(curve) for curve in learning_curves(study)}
    full_size, sign = policy_of(study).sizes[-1], sign_of(study)
    unit = unit_of(unit, [made.observation for made in sequence])
    made = [*_trainings(sequence, names, full_size, unit)]
    trainings = [each for _, each in made]
    lost = {i for i, curve in pool_of(study).curves.items() if curve.cause in LOST}
    results = [each for by, each in made if not (by.is_lost or by.learner in lost)]
    best = _records([each for each in results if each.kind == "all the data"], sign)
    # Until the first model on all the data: afterwards less data says nothing of the best score.
    early = _records(results[: results.index(best[0])] if best else results, sign)
    if not trainings:
        _logger.warning("There is no search to draw: %s.", no_scores(study))
    paths: dict[int, list[Training]] = {}
    for each in trainings:
        paths.setdefault(each.learner, []).append(each)
    reached = (tuple(paths[each.learner]) for each in best)
    return SearchHistoryRecord(
        tuple(trainings),
        tuple(reached),
        best,
        early,
        math.fsum(cost(each.observation, unit) for each in sequence),
        unit,
        axis_of(study, _limits(paths.values(), sign)),
    )


def _trainings(
    sequence: Sequence[Allocation], names: Mapping[int, str], full_size: int, unit: Unit
) -> Iterator[tuple[Allocation, Training]]:
    """Yield the trainings with a finite score, in order."""
    spent, scored = 0.0, set[int]()
    for made in sequence:
        seen, learner = made.observation, made.learner
        spent += cost(seen, unit)
        if not is_finite(seen.score):
            continue
        kind: Kind = "more data" if learner in scored else "first training"
        kind = "all the data" if seen.size >= full_size else kind
        scored.add(learner)
        yield made, Training(spent, seen.score, learner, names[learner], seen.size, kind)


def _limits(paths: Collection[Sequence[Training]], sign: int) -> tuple[float, float] | None:
    """Return a range that holds the better half of learners and the scores on all the data.

    Scores so far from most of these that the others would be flat are left out. Other scores,
    as of first trainings, are in the range if they are near.
    """
    if not paths:
        return None
    scores = [each.score for path in paths for each in path]
    better = better_half((sign * max(sign * each.score for each in path) for path in paths), sign)
    whole = [each.score for path in paths for each in path if each.kind == "all the data"]
    inner = near([*better, *whole], usual(scores, median(better)))
    return stretched(inner, near(scores, inner, share=1.0), share=1.0)


def _records(trainings: Sequence[Training], sign: int) -> tuple[Training, ...]:
    """Return the trainings whose scores are better than all before them."""
    found: list[Training] = []
    for each in trainings:
        if not found or sign * (each.score - found[-1].score) > 0:
            found.append(each)
    return tuple(found)
