"""Replays of a study's scores and seconds under another rule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import optuna

from optuna_daub.core.checks import brief
from optuna_daub.core.costs.cost_model import typical_seconds
from optuna_daub.core.costs.going_on import go_on
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Decision
from optuna_daub.core.decision import Drop
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Finish
from optuna_daub.core.decision import Reason
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.limits import Limits
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.replay import replay
from optuna_daub.study.limits import limits_of
from optuna_daub.study.messages import in_column
from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.results import allocations
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import no_scores
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


INFEASIBLE = Reason("infeasible")


@dataclass(frozen=True)
class _Constrained(Policy):
    """A rule in a study with constraints.

    Constraints only drop learners; all other decisions are the rule's.
    """

    rule: Policy
    violated: Mapping[int, int]
    """Training size at which each infeasible learner was found to be infeasible."""

    def decide(self, pool: Pool) -> Decision:
        """Return the next decision of the rule, or drop an infeasible learner."""
        for learner, size in self.violated.items():
            curve = pool.curves.get(learner)
            if curve is not None and not curve.dropped and curve.size >= size:
                return Drop(learner, INFEASIBLE)
        decision = self.rule.decide(pool)
        answer = decision.learner if isinstance(decision, Finish) else None
        # A rule may choose a learner that it has not trained far enough to know.
        if answer is None or answer not in self.violated:
            return decision
        return Drop(answer, INFEASIBLE)

    def start(self, pool: Pool, learner: int, size: int) -> Extend | Drop:
        """Return the rule's first training of a new learner."""
        return self.rule.start(pool, learner, size)


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
    """A study compared with its replay under another rule; its `str` is a table."""

    actual: Outcome
    """Outcome of the study."""
    replayed: Outcome
    """Outcome of the other rule."""
    is_same: bool
    """True if both chose the same learner."""
    guessed: int
    """Number of trainings in the replay that the study had not made. See `what_if` for their
    scores."""

    def __str__(self) -> str:
        names = "learner", "score", "trainings", "on all", "examples", "seconds"
        lines = ["".join([f"{'':<10}", *(f" {name:>11}" for name in names)])]
        for title, each in (("actual", self.actual), ("replayed", self.replayed)):
            score = "" if each.score is None else in_column(each.score) + "?" * each.is_forecast
            lines.append(
                f"{title:<10} {each.learner!s:>11} {score:>11} {each.probes:>11,}"
                f" {each.full_trainings:>11,} {each.cost.examples:>11,}"
                f" {each.cost.seconds:>11,.1f}"
            )
        if self.guessed:
            lines.append(f"{self.guessed:,} trainings are not in the study: scores are guessed")
        return "\n".join(lines)


def what_if(study: optuna.Study, pruner: AllocationPruner) -> WhatIf:
    """Return the outcome of another rule on the learners of a study.

    The other rule starts the learners in the same order, one training at a time. Scores that were
    not measured are guessed: forecast for larger sizes, interpolated between two sizes, and
    reduced by the median gain per doubling below a learner's first size. Seconds are predicted
    from all measured ones. `guessed` counts these trainings: the more there are, the less certain
    the answer is. A learner that violates a constraint is dropped at the size at which the study
    dropped it, and is never the answer. An open pool is replayed as a closed one, of the learners
    that it started: the replay ends by itself, and is cheaper even with the study's own rule. The
    study's cost includes trainings whose results were lost; the replay has none.

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
                   learner       score   trainings      on all    examples     seconds
    actual               1      0.7811          14           1      13,188       131.9
    replayed             1      0.7811          14           1      13,188       131.9
    """
    if not isinstance(pruner, AllocationPruner):
        raise ValueError(
            f"`pruner` must be one of optuna_daub, such as `DAUBPruner.paper(...)`, but got "
            f"{brief(pruner)}."
        )
    best = best_learner(study)
    if best is None:
        raise ValueError(
            f"`what_if` replays the scores of a study's learners, but {no_scores(study)}. Look at "
            "`plan(study)`."
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
    full_size, limits = own.sizes[-1], limits_of(study)
    whole = _completed(pool, other.sizes, failed, limits.signed(worker.sign))
    winner, made, guessed = _replayed(other, pool, whole)

    def outcome(learner: int | None, cost: Cost, trainings: Sequence[Observation]) -> Outcome:
        there = None if learner is None else whole[learner].at(full_size)
        return Outcome(
            learner=learner,
            score=None if there is None else worker.sign * there.score + 0.0,  # never -0.0
            is_forecast=learner is not None and full_size not in pool.curves[learner],
            probes=len(trainings),
            full_trainings=sum(seen.size == full_size for seen in trainings),
            cost=cost,
        )

    spent = [training.observation for training in allocations(study)]
    cost = sum(map(Cost.of, made), Cost())
    return WhatIf(
        actual=outcome(best.learner, Cost(best.examples, best.seconds), spent),
        replayed=outcome(winner, cost, made),
        is_same=winner == best.learner,
        guessed=guessed,
    )


def _replayed(
    policy: Policy, pool: Pool, whole: Mapping[int, LearningCurve]
) -> tuple[int | None, list[Observation], int]:
    """Return the final learner of a policy, its trainings, and the number of guesses."""
    made: list[Observation] = []
    guessed, winner = 0, None
    curves = pool.curves.items()
    violated = {i: curve.size for i, curve in curves if curve.cause == "infeasible"}
    policy = _Constrained(policy.sizes, policy, violated)
    is_going_on, before = go_on(pool.curves), dict.fromkeys(whole, 0)
    for decision in replay(policy, whole.values(), pool.space):
        if isinstance(decision, Finish):
            winner = decision.learner
        elif isinstance(decision, Extend) and (seen := whole[decision.learner].at(decision.size)):
            made.append(seen.going_on_from(before[decision.learner]))
            before[decision.learner] = seen.size if is_going_on else 0
            guessed += seen.size not in pool.curves[decision.learner]
    return winner, made, guessed


def _completed(
    pool: Pool, sizes: tuple[int, ...], failed: set[int], limits: Limits
) -> dict[int, LearningCurve]:
    """Return the curves with guesses, within the limits, for sizes that were not measured.

    Learners that failed get no guesses, since they would fail again.
    """
    started = {i: curve for i, curve in pool.curves.items() if curve.observations}
    known = Pool(Curves([replace(curve, dropped="") for curve in started.values()]))
    gain = _median_gain([curve.observations for curve in started.values()])
    is_going_on = go_on(pool.curves)
    whole: dict[int, dict[int, Observation]] = {i: {} for i in pool.curves}
    for i, curve in started.items():
        whole[i] = {seen.size: seen for seen in curve.observations if seen.size in sizes}
    for size in sizes:
        seconds = typical_seconds(known.curves, size, sizes[-1])
        forecasts: Mapping[int, Any] = Joint().forecasts(known, size)
        for i in started.keys() - failed:
            if size not in whole[i]:
                guess = _guess(started[i].observations, size, float(forecasts[i].mean), gain)
                score = limits.cut(guess.score)
                guess = replace(guess, score=score, seconds=seconds.get(i), examples=None)
                below = max((n for n in whole[i] if n < size), default=0) if is_going_on else 0
                whole[i][size] = guess.going_on_from(below)
    return {
        i: LearningCurve(
            i, tuple(seen[size] for size in sorted(seen)), parameters=pool.curves[i].parameters
        )
        for i, seen in whole.items()
    }


def _median_gain(curves: Iterable[Sequence[Observation]]) -> float:
    """Return the median gain in score per doubling, from each curve's first two sizes."""
    starts = [seen[:2] for seen in curves if len(seen) > 1]
    gains = [
        (later.score - first.score) / math.log2(later.size / first.size)
        for first, later in starts
        if first.is_finite and later.is_finite
    ]
    return float(np.median(gains)) if gains else 0.0


def _guess(seen: Sequence[Observation], size: int, forecast: float, gain: float) -> Observation:
    """Return the guessed observation of a curve at a size that was not measured.

    Args:
        seen: measured observations, sizes increasing.
        size: size in question.
        forecast: expected score at that size, for one beyond the last.
        gain: gain for each doubling of the examples, for a size before the first.
    """
    if size > seen[-1].size:
        return replace(seen[-1], size=size, score=forecast)
    if size < seen[0].size:
        score = seen[0].score - gain * math.log2(seen[0].size / size)
        return replace(seen[0], size=size, score=score)
    low, high = next(pair for pair in pairwise(seen) if pair[1].size > size)
    place = math.log(size / low.size) / math.log(high.size / low.size)
    score = low.score + place * (high.score - low.score)
    return replace(high if place > 0.5 else low, size=size, score=score)
