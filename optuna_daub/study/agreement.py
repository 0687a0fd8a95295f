"""Agreement of the rankings of learners on samples and on all the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from scipy.stats import rankdata

from optuna_daub.core.checks import whole_number
from optuna_daub.core.costs.cost_model import typical_seconds
from optuna_daub.core.curve import LOST
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Pool
from optuna_daub.study.limits import limits_seen
from optuna_daub.study.messages import in_column
from optuna_daub.study.moves import INTERVAL
from optuna_daub.study.moves import Move
from optuna_daub.study.moves import moves_of
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import learning_curves
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking


MIN_LEARNERS = 3
"""Smallest number of learners on a size for a ranking. Two learners would be a single pair."""

DRAWS = 400
"""Number of draws of the scores on all the data. The ends of intervals are then within 0.02 of
their width."""


@dataclass(frozen=True)
class SizeAgreement:
    """Agreement between the rankings on one training size and on all the data."""

    size: int
    """Number of training examples."""
    share: float
    """Share of all the data, in (0, 1]."""
    learners: int
    """Number of learners that were scored on this size, without infeasible and failed ones."""
    known: int
    """Number of these that were trained on all the data; the others have forecasts."""
    rank_correlation: float
    """Median of Spearman's correlation between scores on this size and on all the data: 1 is the
    same order, 0 no relation, -1 the reverse order."""
    lower: float
    """Lower end of the rank correlation's 90 % interval; `upper` is the other end."""
    upper: float
    best_stays: float
    """Probability that this size's best learner is also the best on all the data."""
    lost: float
    """Expected loss from choosing the best learner of this size, at least 0. It is in units of the
    score on all the data."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of small samples with all the data; its `str` is a table."""

    full_size: int
    """Number of examples of all the data."""
    sizes: tuple[SizeAgreement, ...]
    """Sizes with scores of at least three learners, increasing, without `full_size`."""
    moves: tuple[Move, ...]
    """Moves of the parameters of the best learners, the farthest first."""
    spent: Cost
    """Cost of all trainings of the study."""
    everything: Cost
    """Cost of training each learner once on all the data. Seconds not measured are predicted; they
    are 0 if nothing was timed."""

    def __str__(self) -> str:
        head = f"{'training examples':>18}{'of all':>8}{'learners':>10}{'rank correlation':>26}"
        lines = [f"{head}{'best stays':>12}{'lost':>11}"]
        for row in self.sizes:
            interval = f"{row.rank_correlation:.2f} ({row.lower:.2f} to {row.upper:.2f})"
            line = f"{row.size:>18,}{row.share:>8.1%}{row.learners:>10,}{interval:>26}"
            lines.append(f"{line}{row.best_stays:>12.0%}{in_column(row.lost):>11}")
        if not self.sizes:
            lines.append("no size below all the data has scores of three learners")
        lines += [str(move) for move in self.moves if move.is_sure]
        if self.moves and not any(move.is_sure for move in self.moves):
            lines.append("no parameter of the best moves by more than chance")
        spent, everything = self.spent, self.everything
        if everything.seconds:
            cost = f"{_time(spent.seconds)}; training each learner on all the data would have "
            lines.append(f"spent {cost}taken {_time(everything.seconds)}")
        else:
            lines.append(
                f"spent {spent.examples:,} training examples; each learner on all the data would "
                f"have taken {everything.examples:,}"
            )
        return "\n".join(lines)


def sample_agreement(study: optuna.Study, *, seed: int = 0) -> Agreement:
    """Return how well scores on each size rank learners on all the data.

    For learners trained on all the data, their scores are used. For all others, scores are drawn
    from the forecasts of the study's rule, and cut at the limits of scores. So intervals are wide
    if forecasts are uncertain. Each size compares the learners that were scored on it. On large
    sizes these are the better ones, which are closer together and harder to rank. Learners that
    violate a constraint are left out, since they cannot be the best.

    Args:
        study: running or ended.
        seed: seed of the draws.

    Raises:
        ValueError: if no rule of `optuna_daub` has allocated the study.

    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         report(trial, n, skill - 10 / n, seconds=n / 100)
    ...     return skill - 10 / n
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=8)
    >>> pruner = DAUBPruner(max_resource=4000)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective)
    >>> agreement = sample_agreement(study)
    >>> agreement.sizes[0].learners, agreement.sizes[0].rank_correlation > 0.4
    (8, True)
    >>> agreement.everything.examples
    32000
    """
    curves = [curve for curve in learning_curves(study) if curve.observations]
    policy = policy_of(study)
    full = policy.sizes[-1]
    if whole_number("seed", seed) < 0:
        raise ValueError(f"`seed` must be at least 0, but got {seed}.")
    # The study's own pool: in an open one the rule forecasts by the parameters.
    worker = looking(study)
    pool, sign = worker.pool(policy, is_at_work=False), worker.sign
    # Only learners that may be the best: feasible, with finite scores and no failure.
    scored = [curve for curve in curves if pool.curves[curve.learner].cause not in LOST]
    scored = [curve for curve in scored if all(seen.is_finite for seen in curve.observations)]
    rng = np.random.default_rng(seed)
    drawn = _draws(policy, pool, scored, sign, rng)
    drawn = np.clip(drawn, *limits_seen(study, worker))
    # Shape (sizes, learners), larger is better; NaN without a score.
    scores = sign * np.array([[_score(c, size) for c in scored] for size in policy.sizes], float)
    sizes = [
        _of_size(size, full, here, scores[-1], drawn)
        for size, here in zip(policy.sizes[:-1], scores[:-1], strict=True)
        if np.isfinite(here).sum() >= MIN_LEARNERS
    ]
    ranges: dict[str, BaseDistribution] = {}
    for trial in study.get_trials(deepcopy=False):
        ranges |= trial.distributions
    return Agreement(
        full_size=full,
        sizes=tuple(sizes),
        moves=moves_of(ranges, [curve.params for curve in scored], scores[:-1], drawn, rng),
        spent=pool.spent,
        everything=Cost(
            full * len(curves), math.fsum(typical_seconds(pool.curves, full, full).values())
        ),
    )


def _draws(
    policy: Policy,
    pool: Pool,
    curves: Sequence[LearnerCurve],
    sign: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return draws of all scores on all the data, larger is better.

    Shape (DRAWS, learners). Errors of similar learners are similar, and so they change the ranking
    less than independent ones would.
    """
    if not curves:
        return np.empty((DRAWS, 0))
    forecasts = policy.forecasts(pool, policy.sizes[-1])
    if forecasts is None:  # the rule makes no forecasts
        forecasts = Joint().forecasts(pool, policy.sizes[-1])
    places = np.searchsorted(forecasts.learners, [curve.learner for curve in curves])
    drawn = forecasts.draws(DRAWS, rng)[:, places]
    for place, curve in enumerate(curves):
        own = _score(curve, policy.sizes[-1])
        if own is not None:
            drawn[:, place] = sign * own
        elif not np.isfinite(drawn[:, place]).all():  # no bound: take the last score
            drawn[:, place] = sign * curve.observations[-1].score
    return drawn


def _of_size(
    size: int,
    full: int,
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    drawn: NDArray[np.float64],
) -> SizeAgreement:
    """Return the agreement of one size; scores are NaN for learners without any there."""
    some = np.isfinite(here)
    here, there, drawn = here[some], there[some], drawn[:, some]
    correlations = rank_correlations(here, drawn)
    best = int(np.argmax(here))
    lower, middle, upper = np.quantile(correlations, [INTERVAL[0], 0.5, INTERVAL[1]])
    return SizeAgreement(
        size=size,
        share=size / full,
        learners=len(here),
        known=int(np.isfinite(there).sum()),
        rank_correlation=float(middle),
        lower=float(lower),
        upper=float(upper),
        best_stays=float(np.mean(drawn[:, best] >= drawn.max(axis=1))),
        lost=float(np.mean(drawn.max(axis=1) - drawn[:, best])),
    )


def rank_correlations(here: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[Any]:
    """Return Spearman's correlation of scores with each row of draws.

    0 if all scores are equal.

    >>> rank_correlations(np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 1.0]]))
    array([ 1., -1.])
    """
    first, others = rankdata(here), rankdata(drawn, axis=1)
    first, others = first - first.mean(), others - others.mean(axis=1, keepdims=True)
    norms = np.sqrt((first**2).sum() * (others**2).sum(axis=1))
    products = others @ first
    return np.asarray(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0))


def _score(curve: LearnerCurve, size: int) -> float | None:
    return next((seen.score for seen in curve.observations if seen.size == size), None)


def _time(seconds: float) -> str:
    """Return the text of a time in s, min or h.

    >>> _time(12.34), _time(150), _time(9000)
    ('12.3 s', '2.5 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
