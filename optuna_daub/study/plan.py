"""Plans: sizes and costs of a study before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import optuna

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_n_learners
from optuna_daub.core.checks import number
from optuna_daub.core.costs.cost_model import typical_seconds
from optuna_daub.core.costs.going_on import go_on
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.decision import Extend
from optuna_daub.core.decision import Propose
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.core.replay import replay
from optuna_daub.core.sizes import checked_sizes
from optuna_daub.study.daub_pruner import DAUBPruner
from optuna_daub.study.sampler import DataAllocationSampler
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


SPREADS = 0.05, 0.1, 0.15, 0.2, 0.3
"""Spreads of the full-data scores in the simulated pools, in units of the score: from near ties to
a few clear favourites."""

GAIN = 0.045
"""Height of simulated curves: on n of N examples a score is GAIN ((N / n)^0.35 - 1) below that at
N on average, in units of the score. At a spread of 0.2 the first doubling from N / 16 gains 0.28
standard deviations of the scores there. It was chosen, not measured."""

DECAY = 0.35
"""Exponent of simulated curves: their distance to the limit falls as n^-0.35, as in the median of
LCDB 1.1."""

NOISE = 0.003
"""Standard deviation of a simulated score: that of an accuracy on some 10,000 examples."""

MIN_SECONDS, MAX_SECONDS = 1e-9, 1e9
"""Smallest and largest seconds that a training may be planned to take."""

MAX_LEARNERS = 100
"""Largest number of learners in a simulated pool. Costs of larger pools are scaled up."""


@dataclass(frozen=True)
class PlannedSize:
    """One training size with its cost."""

    size: int
    """Number of training examples."""
    share: float
    """Share of all the data, in (0, 1]."""
    seconds: float | None
    """Expected seconds of one training, None if nothing was timed."""


@dataclass(frozen=True)
class Plan:
    """Sizes and costs of a study to come; its `str` is a table."""

    sizes: tuple[PlannedSize, ...]
    """Training sizes, increasing."""
    first_size: int
    """Training size of each learner's first training."""
    n_learners: int | None
    """Number of learners to choose among, None for an open pool."""
    first_probes: Cost
    """Cost of the first trainings of all learners; in an open pool, of one learner."""
    last_training: Cost
    """Cost of one training on all the data, kept in reserve for the end."""
    everything: Cost | None
    """Cost of training every learner on all the data; None for an open pool."""
    least: Cost | None
    """Smallest cost of a simulated pool (see `plan`), None for an open pool."""
    most: Cost | None
    """Largest cost of a simulated pool, None for an open pool."""
    is_timed: bool
    """True if the seconds come from given or measured times."""
    seconds: float | None
    """Seconds that the study may take, from the sampler's `seconds`; None without a limit."""
    newcomers: int | None
    """Number of first trainings that fit into `seconds` after the reserve; None if unknown."""

    def __str__(self) -> str:
        lines = [f"{'training examples':>18}{'of all':>8}" + f"{'seconds':>12}" * self.is_timed]
        for row in self.sizes:
            line = f"{row.size:>18,} {row.share:>7.1%}"
            lines.append(line + ("" if row.seconds is None else f" {row.seconds:>11,.2f}"))
        learners = "each learner" if self.n_learners is None else f"{self.n_learners} learners"
        learners = "1 learner" if self.n_learners == 1 else learners
        rows = [(f"first training of {learners}, {self.first_size:,} each", self.first_probes)]
        rows.append(("last training on all the data, in reserve", self.last_training))
        lines.append("")
        lines += [f"{what:<52}{self._cost(cost)}" for what, cost in rows]
        if self.least is not None and self.most is not None and self.everything is not None:
            shares = [cost.examples / self.everything.examples for cost in (self.least, self.most)]
            lines.append(f"{'all in all, at least':<52}{self._cost(self.least)}, {shares[0]:.0%}")
            lines.append(f"{'all in all, at most':<52}{self._cost(self.most)}, {shares[1]:.0%}")
            lines.append(f"{'every learner on all the data':<52}{self._cost(self.everything)}")
            lines.append("(on simulated learning curves that rise like those of LCDB)")
        if self.newcomers is not None:
            assert self.seconds is not None
            said = f"{self.seconds:,.4g} s are"
            if self.seconds < self.last_training.seconds:
                lines.append(f"{said} too short for a training on all the data")
            else:
                lines.append(f"{said} enough for {self.newcomers:,} first trainings")
                lines[-1] += " and the last training"
        return "\n".join(lines)

    def _cost(self, cost: Cost) -> str:
        seconds = f" {cost.seconds:>11,.1f} seconds" if self.is_timed else ""
        return f" {cost.examples:>13,} examples{seconds}"


def plan(
    study: optuna.Study | Sequence[int],
    *,
    n_learners: int | None = None,
    probe_seconds: float | None = None,
) -> Plan:
    """Return the sizes and costs of a study before anything is trained.

    A closed pool's cost depends on the spread of the learners' scores, which is not known yet. So
    the policy is simulated on five pools, from near ties to clear favourites, with curves that
    rise like those of LCDB. The cheapest and the most expensive pool give the range to expect.

    Args:
        study: a study of `DataAllocationSampler`, started or not, or a list of increasing training
            sizes for the default rule.
        n_learners: number of learners to choose among. None: that of the study's sampler; if the
            study was loaded without it, the number with which the study was started.
        probe_seconds: seconds of a training on the smallest size, from 1e-9 to 1e9. Larger ones
            are assumed to take longer in proportion. None: the times that the study has
            measured; if there are none, the plan has no seconds.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study, or an argument breaks its
            rule.

    >>> print(plan([1000, 2000, 4000, 8000, 16000], n_learners=20, probe_seconds=0.5))
    ... # doctest: +ELLIPSIS
     training examples  of all     seconds
                 1,000    6.2%        0.50
                 2,000   12.5%        1.00
                 4,000   25.0%        2.00
                 8,000   50.0%        4.00
                16,000  100.0%        8.00
    <BLANKLINE>
    first training of 20 learners, 1,000 each                   20,000 examples        10.0 seconds
    last training on all the data, in reserve                   16,000 examples         8.0 seconds
    all in all, at least ...
    """
    curves, horizon = Curves(), None
    if isinstance(study, optuna.Study):
        policy = policy_of(study)
        curves, n_learners, horizon = _of_study(study, n_learners)
    else:
        policy = DAUBPruner(sizes=checked_sizes(study, "study")).policy
    n_learners = checked_n_learners(n_learners)
    if n_learners is None and policy.needs.closed_pool:
        raise ValueError(
            f"{type(policy).__name__} compares a known number of learners, but `n_learners` is "
            "None: pass `n_learners=...`."
        )
    times = _times_of(curves, policy.sizes, probe_seconds)
    sizes = [
        PlannedSize(size, size / policy.sizes[-1], seconds)
        for size, seconds in zip(policy.sizes, times, strict=True)
    ]
    of_size = {row.size: Cost(row.size, row.seconds or 0.0) for row in sizes}
    last, is_timed = of_size[policy.sizes[-1]], sizes[-1].seconds is not None
    first = policy.decide(Pool(to_come=n_learners))
    if not isinstance(first, Propose):
        raise ValueError(
            f"{type(policy).__name__}.decide must propose a learner for an empty pool, but got "
            f"{first}."
        )
    first_probe = of_size[first.size]
    newcomers = None
    if horizon is not None and is_timed:
        newcomers = max(0, int((horizon - last.seconds) / first_probe.seconds))
    least = most = everything = None
    if n_learners is not None:
        everything = _times(last, n_learners)
        goes_on = go_on(curves)
        tried = [
            _tried(policy, n_learners, of_size, spread, goes_on=goes_on) for spread in SPREADS
        ]
        least, most = (end(tried, key=lambda cost: cost.examples) for end in (min, max))
    return Plan(
        sizes=tuple(sizes),
        first_size=first.size,
        n_learners=n_learners,
        first_probes=_times(first_probe, n_learners or 1),
        last_training=last,
        everything=everything,
        least=least,
        most=most,
        is_timed=is_timed,
        seconds=horizon,
        newcomers=newcomers,
    )


def _of_study(
    study: optuna.Study, n_learners: int | None
) -> tuple[Curves, int | None, float | None]:
    """Return the learning curves so far, the number of learners, and the seconds of the sampler.

    The number is the given one, else the sampler's, else the one the study was started with; None
    for an open pool.
    """
    sampler, known = study.sampler, looking(study).known
    if isinstance(sampler, DataAllocationSampler):
        wanted, seconds = sampler.n_learners, sampler.seconds
    else:
        wanted, seconds = known.n_learners, None
        if wanted == 0 and n_learners is None:  # no run has stored a number yet
            raise ValueError(
                "The study must have a DataAllocationSampler, or have been started with one, but "
                f"its sampler is {type(sampler).__name__}: pass `sampler=DataAllocationSampler()` "
                "to `optuna.create_study`, or `n_learners=...` to `plan`."
            )
    return known.curves, wanted if n_learners is None else n_learners, seconds


def _times_of(
    curves: Curves, sizes: Sequence[int], probe_seconds: float | None
) -> list[float | None]:
    """Return the mean seconds of a training on each size.

    None if they are not known.

    Raises:
        ValueError: if `probe_seconds`, those of the smallest size, is out of its range.
    """
    if probe_seconds is not None:
        seconds = number("probe_seconds", probe_seconds)
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            raise ValueError(
                f"`probe_seconds` must be from {MIN_SECONDS:g} to {MAX_SECONDS:g}, but got "
                f"{brief(probe_seconds)}."
            )
        return [seconds * size / sizes[0] for size in sizes]
    times = [[*typical_seconds(curves, size, sizes[-1]).values()] for size in sizes]
    return [math.fsum(of_size) / len(of_size) if of_size else None for of_size in times]


def _times(cost: Cost, count: float) -> Cost:
    return Cost(round(cost.examples * count), cost.seconds * count)


def _tried(
    policy: Policy, n_learners: int, of_size: Mapping[int, Cost], spread: float, *, goes_on: bool
) -> Cost:
    """Return the cost of a policy on a simulated pool; of new examples alone if models go on."""
    rng = np.random.default_rng(0)
    made = min(n_learners, MAX_LEARNERS)
    full = policy.sizes[-1]
    needs = policy.needs
    curves = []
    for learner in range(made):
        # Gains have mean GAIN, and a standard deviation of 0.95 GAIN.
        level, gain = rng.uniform(0.9 - spread, 0.9), GAIN * rng.lognormal(-(0.8**2) / 2, 0.8)
        seen = []
        for size in policy.sizes:
            rest = gain * ((size / full) ** -DECAY - 1.0)
            score = float(np.clip(level - rest + rng.normal(0.0, NOISE), 0.0, 1.0))
            seen.append(
                Observation(
                    size,
                    score,
                    training_score=min(1.0, level + rest + 0.02),
                    n_validation=needs.validation_size(size) or needs.n_validation or full,
                    seconds=of_size[size].seconds or None,
                )
            )
        curves.append(LearningCurve(learner, tuple(seen)))
    cost, before = Cost(), dict.fromkeys(range(made), 0)
    for decision in replay(policy, curves):
        if isinstance(decision, Extend):
            learner, size = decision.learner, decision.size
            cost += _times(of_size[size], 1.0 - before[learner] / size)
            before[learner] = size if goes_on else 0
    return _times(cost, n_learners / made)
