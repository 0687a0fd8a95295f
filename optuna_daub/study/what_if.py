"""Replays of a study's measurements under another rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import optuna

from optuna_daub.core.costs.cost_model import expected_seconds
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.replay import replay
from optuna_daub.study.limit import within
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.results import best_learner
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


@dataclass(frozen=True)
class Outcome:
    """The learner that a rule chose, and the cost."""

    learner: int | None
    """Id of the chosen learner; None if no learner was left."""
    score: float | None
    """Score of the chosen learner on all the data."""
    is_forecast: bool
    """True if the score is a forecast: the learner was not trained on all the data."""
    probes: int
    """Number of trainings."""
    full_trainings: int
    """Number of trainings on all the data."""
    cost: Cost
    """Examples and seconds of all trainings."""


@dataclass(frozen=True)
class WhatIf:
    """A study beside its replay under another rule; `str` of it is a table."""

    actual: Outcome
    """Outcome of the study."""
    replayed: Outcome
    """Outcome of the other rule."""
    is_same: bool
    """True if both chose the same learner."""
    guessed: int
    """Number of trainings in the replay that the study had not made; see `what_if` for their
    scores."""

    def __str__(self) -> str:
        names = "learner", "score", "probes", "on all", "examples", "seconds"
        lines = ["".join([f"{'':<10}", *(f"{name:>12}" for name in names)])]
        for title, each in (("actual", self.actual), ("replayed", self.replayed)):
            score = "" if each.score is None else f"{each.score:.4f}{'?' * each.is_forecast}"
            lines.append(
                f"{title:<10}{each.learner!s:>12}{score:>12}{each.probes:>12,}"
                f"{each.full_trainings:>12,}{each.cost.examples:>12,}{each.cost.seconds:>12,.1f}"
            )
        if self.guessed:
            lines.append(f"{self.guessed:,} probes of the replay were never made: guessed")
        return "\n".join(lines)


def what_if(study: optuna.Study, pruner: AllocationPruner) -> WhatIf:
    """Return the outcome of another rule on the learners of a study.

    The learners start in the same order, one training at a time. Scores that the study has not
    measured are guessed. On larger sizes they are forecast. Between two sizes they are
    interpolated. On sizes smaller than a learner's first they are lower by the learners' mean gain
    for each doubling. Seconds are predicted from all measured ones. `guessed` counts such
    trainings: the more of them, the less certain the answer.

    Args:
        study: a study with a pruner of optuna_daub, with at least one score.
        pruner: the other rule, such as `DAUBPruner.paper(...)`; its full size must be the study's.

    Raises:
        ValueError: if one of the pruners is not one of `optuna_daub`, no score was reported yet,
            the full sizes differ, or the other rule needs values that were not reported.

    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         report(trial, n, skill - 10 / n, training_score=skill + 10 / n, seconds=n / 100)
    ...     return skill - 10 / n
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=4)
    >>> study = optuna.create_study(
    ...     direction="maximize", sampler=sampler, pruner=DAUBPruner.paper(max_resource=2000)
    ... )
    >>> study.optimize(objective)
    >>> print(what_if(study, DAUBPruner.paper(max_resource=2000, stop="first")))
                   learner       score      probes      on all    examples     seconds
    actual               1      0.7811          14           1      13,188       131.9
    replayed             1      0.7811          14           1      13,188       131.9
    """
    if not isinstance(pruner, AllocationPruner):
        raise ValueError(
            f"`pruner` must be one of optuna_daub, such as `DAUBPruner.paper(...)`, but got "
            f"{pruner!r}."
        )
    best = best_learner(study)
    if best is None:
        raise ValueError(
            "`what_if` replays the scores of a study's learners, but none has been reported yet: "
            "look at `plan(study)`. Trials are learners where the sampler of the study is a "
            "DataAllocationSampler."
        )
    own, other = policy_of(study), pruner.policy
    if own.sizes[-1] != other.sizes[-1]:
        raise ValueError(
            f"The full size of `pruner` must be that of the study, {own.sizes[-1]:,} examples, "
            f"but got {other.sizes[-1]:,}."
        )
    worker = looking(study)
    pool = worker.pool(own, is_at_work=False)
    failed = {learner for learner, curve in pool.curves.items() if curve.has_failed}
    whole = _completed(pool, other.sizes, failed)
    cost, probes, full, guessed = Cost(), 0, 0, 0
    winner: int | None = None
    for decision in replay(other, whole.values(), pool.space):
        if isinstance(decision, Finish):
            winner = decision.learner
        elif isinstance(decision, Extend) and (seen := whole[decision.learner].at(decision.size)):
            cost += Cost(seen.size, seen.seconds or 0.0)
            probes += 1
            full += seen.size == other.sizes[-1]
            guessed += seen.size not in pool.curves[decision.learner]
    spent = [seen for curve in pool.curves.values() for seen in curve.observations]
    n_full = sum(seen.size == own.sizes[-1] for seen in spent)

    def outcome(learner: int | None, cost: Cost, probes: int, full: int) -> Outcome:
        score = None if learner is None else whole[learner].at(own.sizes[-1])
        is_forecast = learner is not None and own.sizes[-1] not in pool.curves[learner]
        value = None if score is None else within(study, worker.sign * score.score)
        return Outcome(learner, value, is_forecast, probes, full, cost)

    return WhatIf(
        actual=outcome(best.learner, Cost(best.examples, best.seconds), len(spent), n_full),
        replayed=outcome(winner, cost, probes, full),
        is_same=winner == best.learner,
        guessed=guessed,
    )


def _completed(pool: Pool, sizes: tuple[int, ...], failed: set[int]) -> dict[int, LearningCurve]:
    """Return the curves with guesses for the sizes that were not measured.

    Learners that failed get no guesses: they would fail again.
    """
    begun = {i: curve for i, curve in pool.curves.items() if curve.observations}
    known = {i: curve.observations for i, curve in begun.items()}
    known_pool = Pool(Curves([replace(curve, dropped="") for curve in begun.values()]))
    gains = [
        (later.score - first.score) / math.log2(later.size / first.size)
        for first, later, *_ in (seen for seen in known.values() if len(seen) > 1)
        if first.is_finite and later.is_finite
    ]
    gain = float(np.median(gains)) if gains else 0.0
    curves = {i: LearningCurve(i, parameters=c.parameters) for i, c in pool.curves.items()}
    guesses: dict[int, dict[int, Observation]] = {i: {} for i in begun}
    for size in sizes:
        seconds = expected_seconds(known_pool.curves, size, sizes[-1])
        forecasts: Mapping[int, Any] = Joint().forecasts(known_pool, size)
        for learner, seen in known.items():
            if learner in failed or any(each.size == size for each in seen):
                continue
            if size > seen[-1].size:
                nearest, score = seen[-1], float(forecasts[learner].mean)
            elif size < seen[0].size:
                nearest = seen[0]
                score = nearest.score - gain * math.log2(nearest.size / size)
            else:
                ends = next(pair for pair in pairwise(seen) if pair[1].size > size)
                place = math.log(size / ends[0].size) / math.log(ends[1].size / ends[0].size)
                nearest = ends[place > 0.5]
                score = ends[0].score + place * (ends[1].score - ends[0].score)
            guess = replace(nearest, size=size, score=score, seconds=seconds.get(learner))
            guesses[learner][size] = guess
    for learner, seen in known.items():
        measured = {each.size: each for each in seen if each.size in sizes}
        merged = {**guesses[learner], **measured}
        observations = tuple(merged[size] for size in sorted(merged))
        curves[learner] = replace(curves[learner], observations=observations)
    return curves
