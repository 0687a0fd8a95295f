"""Allocations: the data or the seconds of each learner, stacked by training size."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Literal
from typing import NamedTuple

import optuna

from optuna_daub.core.costs.cost_model import typical_seconds
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import allocations
from optuna_daub.study.results import learning_curves
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.visualization import _plotly
from optuna_daub.visualization._axes import Unit
from optuna_daub.visualization._axes import check_top
from optuna_daub.visualization._axes import cost
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import last_score
from optuna_daub.visualization._axes import pool_of
from optuna_daub.visualization._axes import sign_of
from optuna_daub.visualization._axes import size_colors
from optuna_daub.visualization._axes import unit_of
from optuna_daub.visualization._marks import Bars
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._marks import Scale
from optuna_daub.visualization._numbers import amount


if TYPE_CHECKING:
    import plotly.graph_objects as go


_logger = logging.getLogger(__name__)


class Layer(NamedTuple):
    """The trainings of all learners on one training size."""

    size: int
    costs: tuple[float, ...]
    """Cost of each bar, in examples or seconds. 0 for learners not trained on this size."""
    color: str


class AllocationsRecord(NamedTuple):
    """The contents of `plot_allocations`."""

    curves: tuple[LearnerCurve, ...]
    """Curves of the learners, the one with the best score first."""
    names: tuple[str, ...]
    """Name of each bar: the first learners, then the mean of all others."""
    layers: tuple[Layer, ...]
    """One layer for each size, increasing; costs in the order of `names`."""
    spent: float
    """Sum of all costs, those of lost trainings too."""
    everything: float
    """Cost of training each of these learners once on all the data. Seconds not measured are
    predicted."""
    measured: float
    """The measured part of `everything`."""
    unit: Unit

    @property
    def share(self) -> str:
        """Cost so far as a share of training all learners completely, in words."""
        if not self.spent:
            return f"no {self.unit} spent yet"
        if not self.everything:  # all trainings were lost
            return f"{amount(self.spent)} {self.unit}, none kept"
        about = "" if self.measured >= self.everything else "about "
        return f"{amount(self.spent)} {self.unit}, {about}{self.spent / self.everything:.0%}"

    @property
    def spending(self) -> str:
        """The same share in a sentence."""
        if not self.spent or not self.everything:
            return self.share
        count = sum(bool(curve.observations) for curve in self.curves)
        learners = f"{count} learner{'s' * (count != 1)}"
        return f"{self.share} of training {learners} on all the data"


def plot_allocations(
    study: optuna.Study, *, unit: Unit | Literal["auto"] = "auto", top: int = 60
) -> go.Figure:
    """Plot the cost of each learner, by training size; the best score is first.

    The subtitle compares the total with training each of these learners once on all the data. The
    plot is Figure 2 of the DAUB paper with horizontal bars, so the names can be read.

    Args:
        study: a study, finished or running; its pruner is needed only for a policy of your own.
        unit: "examples" counts those of each training, only the new ones if models go on;
            "seconds" counts measured seconds, and predicts those of training everything. "auto"
            (the default) is seconds if every training was timed, else examples.
        top: number of learners with a bar of their own, those with the best scores. The last bar
            is the mean of all others.

    Returns:
        A figure, without bars if nothing was trained yet.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if `unit` is unknown, `top` < 0, or the study's pruner is not one of
            optuna_daub.
    """
    return _plotly.draw(allocations_picture(study, unit, top))


def allocations_picture(study: optuna.Study, unit: Unit | Literal["auto"], top: int) -> Picture:
    """Return `plot_allocations` as marks."""
    record = allocations_record(study, unit, top)
    layers: Sequence[Layer] = record.layers if record.spent else ()
    form = ",.0f" if record.unit == "examples" else ",.4~r"
    bars = tuple(
        Bars(
            record.names,
            layer.costs,
            layer.color,
            label=f"{layer.size:,}",
            point=f"{layer.size:,} examples: %{{x:{form}}} {record.unit}",
        )
        for layer in layers
    )
    return Picture(
        f"{record.unit.capitalize()} given to each learner",
        (record.spending,),
        Scale(record.unit, (0, None), is_amount=True),
        Scale(),
        bars,
        tuple(part.label for part in bars),
        legend_title="training size",
    )


def allocations_record(
    study: optuna.Study, unit: Unit | Literal["auto"], top: int
) -> AllocationsRecord:
    """Return the contents of `plot_allocations`.

    Raises:
        ValueError: if `unit` is not "auto", "examples" or "seconds", or `top` < 0.
    """
    check_top(top)
    sequence = allocations(study)  # before the curves, so these know every learner in it
    curves = learning_curves(study)
    full_size, sign = policy_of(study).sizes[-1], sign_of(study)
    curves.sort(key=lambda curve: (-last_score(curve, sign), curve.learner))
    unit = unit_of(unit, [made.observation for made in sequence])
    costs: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for made in sequence:
        of_learner, size = costs[made.learner], made.observation.size
        of_learner[size] = of_learner.get(size, 0.0) + cost(made.observation, unit)
    names = [label(curve) for curve in curves[:top]]
    if len(curves) > top:
        others = f"{len(curves) - top} others" if top else f"{len(curves)} learners"
        names.append(f"mean of {others}")
    spent = math.fsum(cost(made.observation, unit) for made in sequence)
    if not spent:
        _logger.warning("There is no allocation to draw: no %s are known yet.", unit)
    everything = measured = float(full_size * sum(bool(curve.observations) for curve in curves))
    if unit == "seconds":
        known = pool_of(study).curves
        everything = math.fsum(typical_seconds(known, full_size, full_size).values())
        whole = [seen for c in curves for seen in c.observations if seen.size == full_size]
        measured = math.fsum(cost(seen, unit) for seen in whole)
    layers = tuple(_layers([costs[curve.learner] for curve in curves], top))
    return AllocationsRecord(
        tuple(curves), tuple(names), layers, spent, everything, measured, unit
    )


def _layers(costs: Sequence[Mapping[int, float]], top: int) -> Iterator[Layer]:
    """Yield the costs at each size. The first `top` learners come one by one, then the mean of the
    others."""
    sizes = sorted({size for of_learner in costs for size in of_learner})
    colors = size_colors(sizes)
    for size in sizes:
        own = [of_learner.get(size, 0.0) for of_learner in costs]
        mean = [math.fsum(own[top:]) / len(own[top:])] if len(own) > top else []
        yield Layer(size, (*own[:top], *mean), colors[size])
