"""What the pictures show, as plain data: a study in, named tuples out; no plotting library.

Scores are in the direction of the user.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Literal
from typing import NamedTuple
from typing import TypeAlias

import optuna
from optuna.study import StudyDirection

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.protocol import Policy
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.pruners import AllocationPruner
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import learning_curves


_logger = logging.getLogger(__name__)

Unit: TypeAlias = Literal["examples", "seconds"]
UNITS: tuple[Unit, ...] = ("examples", "seconds")


class Axis(NamedTuple):
    """How scores are to be read."""

    name: str
    """What the score is called: the study's metric name, "score" where it has none."""
    is_minimized: bool


class Band(NamedTuple):
    """Where the score on all the data is believed to lie, as a wedge that opens at a score."""

    size: int
    """The training size, in examples, at which the wedge opens."""
    score: float
    full_size: int
    """The size of the whole training set, where the wedge ends."""
    worst: float
    """The pessimistic end; the last score itself where nothing bounds it on that side."""
    best: float
    """The optimistic end: the bound."""


class CurveLine(NamedTuple):
    """One learner in `plot_learning_curves`."""

    curve: LearnerCurve
    points: tuple[Observation, ...]
    """Its observations with a finite score."""
    band: Band | None
    """None at the full size, and where the learner gets no more data or has no bound."""
    is_highlighted: bool
    """Whether it stands out; the others are background."""


class LearningCurvesRecord(NamedTuple):
    """What `plot_learning_curves` shows."""

    lines: tuple[CurveLine, ...]
    """The foremost learner first."""
    sizes: tuple[int, ...]
    """The training sizes of the study, increasing."""
    axis: Axis


class Layer(NamedTuple):
    """What all learners were given at one training size."""

    size: int
    costs: tuple[float, ...]
    """By learner, in examples or seconds; 0 for those not trained on this size."""


class AllocationsRecord(NamedTuple):
    """What `plot_allocations` shows."""

    curves: tuple[LearnerCurve, ...]
    """The learner with the best score first."""
    layers: tuple[Layer, ...]
    """Sizes increasing; costs in the order of `curves`."""
    spent: float
    """The sum of all costs."""
    everything: float
    """What training each of these learners once on all the data takes. Seconds that were not
    measured are projected from the learner's last size in proportion to the examples, which is
    less than they take where time grows faster."""
    unit: Unit


def learning_curves_record(
    study: optuna.Study, learners: Sequence[int] | None, top: int
) -> LearningCurvesRecord:
    """Return what `plot_learning_curves` shows.

    Raises:
        ValueError: where one of `learners` is not in the study, or `top` < 0.
    """
    curves = learning_curves(study)
    policy, sign, signed = policy_of(study), sign_of(study), synced_ledger_of(study).signed
    known = Curves(
        LearningCurve(curve.learner, tuple(map(signed, _finite(curve)))) for curve in curves
    )
    lines = tuple(
        CurveLine(curve, _finite(curve), _band(curve, policy, known, sign), place < top)
        for place, curve in enumerate(shown(curves, learners, top, sign))
    )
    if not any(line.points for line in lines):
        _logger.warning("There is no learning curve to draw: no score has been reported yet.")
    return LearningCurvesRecord(lines, policy.sizes, axis_of(study))


def allocations_record(study: optuna.Study, unit: Unit) -> AllocationsRecord:
    """Return what `plot_allocations` shows.

    Raises:
        ValueError: where `unit` is neither "examples" nor "seconds".
    """
    if unit not in UNITS:
        raise ValueError(f'`unit` must be "examples" or "seconds", but got {unit!r}.')
    sign = sign_of(study)
    curves = sorted(
        learning_curves(study), key=lambda curve: (-_last_score(curve, sign), curve.learner)
    )
    sizes = sorted({seen.size for curve in curves for seen in curve.observations})
    costs = [{seen.size: _cost(seen, unit) for seen in curve.observations} for curve in curves]
    layers = tuple(Layer(size, tuple(cost.get(size, 0.0) for cost in costs)) for size in sizes)
    spent = math.fsum(cost for layer in layers for cost in layer.costs)
    if not spent:
        _logger.warning("There is no allocation to draw: no %s are known yet.", unit)
    full_size = policy_of(study).sizes[-1]
    everything = math.fsum(_full_cost(curve, unit, full_size) for curve in curves)
    return AllocationsRecord(tuple(curves), layers, spent, everything, unit)


def policy_of(study: optuna.Study) -> Policy:
    """Return the rule that allocates the data of a study whose curves have been read."""
    assert isinstance(study.pruner, AllocationPruner)  # `learning_curves` has seen to it
    return study.pruner.policy


def sign_of(study: optuna.Study) -> int:
    """Return what turns the user's scores so that larger is better: 1, or -1 for minimize."""
    return -1 if study.direction == StudyDirection.MINIMIZE else 1


def axis_of(study: optuna.Study) -> Axis:
    """Return how the scores of a study are to be read."""
    names = study.metric_names
    return Axis(names[0] if names else "score", study.direction == StudyDirection.MINIMIZE)


def _finite(curve: LearnerCurve) -> tuple[Observation, ...]:
    return tuple(seen for seen in curve.observations if math.isfinite(seen.score))


def _last_score(curve: LearnerCurve, sign: int) -> float:
    """Return the last score, larger is better; minus infinity where there is none."""
    points = _finite(curve)
    return sign * points[-1].score if points else -math.inf


def shown(
    curves: Sequence[LearnerCurve], learners: Sequence[int] | None, top: int, sign: int
) -> list[LearnerCurve]:
    """Return the learners asked for: the best, then those with most data, then by score."""
    if top < 0:
        raise ValueError(f"`top` must be at least 0, but got {top}.")
    ids = {curve.learner for curve in curves}
    unknown = [learner for learner in learners or () if learner not in ids]
    if unknown:
        raise ValueError(
            f"`learners` must be ids of learners of this study, which are {sorted(ids)}, but got "
            f"{unknown}. A learner's id is the number of the first trial that ran it."
        )
    return sorted(
        (curve for curve in curves if learners is None or curve.learner in learners),
        key=lambda curve: (
            curve.state != "best",
            -curve.size,
            -_last_score(curve, sign),
            curve.learner,
        ),
    )


def _band(curve: LearnerCurve, policy: Policy, known: Curves, sign: int) -> Band | None:
    signed = known[curve.learner]
    if not signed.observations or curve.state == "dropped" or signed.size >= policy.sizes[-1]:
        return None
    ends = policy.interval(signed, known)
    if math.isinf(ends.upper):
        return None
    worst = signed.score if math.isinf(ends.lower) else ends.lower
    return Band(
        signed.size, sign * signed.score, policy.sizes[-1], sign * worst, sign * ends.upper
    )


def _cost(seen: Observation, unit: Unit) -> float:
    return float(seen.size) if unit == "examples" else seen.seconds or 0.0


def _full_cost(curve: LearnerCurve, unit: Unit, full_size: int) -> float:
    """Return what training a learner on all the data takes; 0 where nothing is known of it."""
    known = [(seen.size, cost) for seen in curve.observations if (cost := _cost(seen, unit))]
    if not known:
        return 0.0
    size, cost = known[-1]
    return cost * full_size / size
