"""How the bounds and the leader changed from probe to probe: the data behind a picture."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Sequence
from typing import NamedTuple

import optuna

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curves import Curves
from optuna_daub.study.ledger import synced_ledger_of
from optuna_daub.study.results import Allocation
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import allocations
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import learning_curves
from optuna_daub.visualization._records import Axis
from optuna_daub.visualization._records import axis_of
from optuna_daub.visualization._records import policy_of
from optuna_daub.visualization._records import shown
from optuna_daub.visualization._records import sign_of


_logger = logging.getLogger(__name__)


class BoundStep(NamedTuple):
    """One probe of a learner and the bound it led to."""

    number: int
    """Its place in the sequence of all probes, from 1."""
    learner: int
    size: int
    score: float
    bound: float


class BoundTrack(NamedTuple):
    """One learner in `plot_upper_bounds`."""

    curve: LearnerCurve
    steps: tuple[BoundStep, ...]
    is_highlighted: bool


class Lead(NamedTuple):
    """Who has the best bound from a probe on, until the next lead."""

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
    audit: str
    """How often the bounds held; empty where they are not audited."""


def bounds_record(study: optuna.Study, learners: Sequence[int] | None, top: int) -> BoundsRecord:
    """Return what `plot_upper_bounds` shows.

    Each bound is computed anew from what was known of its learner when the probe ended. A dropped
    learner counts among the leaders up to its last probe.

    Raises:
        ValueError: where one of `learners` is not in the study, or `top` < 0.
    """
    sequence = allocations(study)  # before the curves, so that these know every learner in it
    curves = learning_curves(study)
    sign = sign_of(study)
    steps = [*_steps(study, sequence, curves)]
    dropped = {curve.learner for curve in curves if curve.state == "dropped"}
    leads = tuple(_leads(steps, dropped, sign))
    if not leads:
        _logger.warning("There is no bound to draw: no learner has one yet.")
    own: dict[int, list[BoundStep]] = defaultdict(list)
    for step in steps:
        own[step.learner].append(step)
    tracks = tuple(
        BoundTrack(curve, tuple(own[curve.learner]), place < top)
        for place, curve in enumerate(shown(curves, learners, top, sign))
    )
    best = best_learner(study)
    audit = str(best.audit) if best and best.audit else ""
    return BoundsRecord(tracks, leads, len(sequence), axis_of(study), audit)


def _steps(
    study: optuna.Study, sequence: Sequence[Allocation], curves: Sequence[LearnerCurve]
) -> Iterator[BoundStep]:
    policy, sign, signed = policy_of(study), sign_of(study), synced_ledger_of(study).signed
    known = Curves(LearningCurve(curve.learner) for curve in curves)
    for number, probe in enumerate(sequence, 1):
        seen, before = probe.observation, known[probe.learner]
        if not math.isfinite(seen.score) or seen.size in before:
            continue
        probes = sorted((*before.observations, signed(seen)), key=lambda each: each.size)
        known.put(LearningCurve(probe.learner, tuple(probes)))
        upper = policy.interval(known[probe.learner], known).upper
        if not math.isinf(upper):
            yield BoundStep(number, probe.learner, seen.size, seen.score, sign * upper)


def _leads(steps: Sequence[BoundStep], dropped: set[int], sign: int) -> Iterator[Lead]:
    last = {step.learner: step.number for step in steps}
    ranks: dict[int, tuple[float, int, float, int]] = {}
    lead: Lead | None = None
    for step in steps:
        ranks[step.learner] = sign * step.bound, step.size, sign * step.score, -step.learner
        if step.learner in dropped and step.number == last[step.learner]:
            del ranks[step.learner]
        if not ranks:
            continue
        upper, *_, negated = max(ranks.values())
        if lead is None or (lead.learner, lead.bound) != (-negated, sign * upper):
            lead = Lead(step.number, -negated, sign * upper)
            yield lead
