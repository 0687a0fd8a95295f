"""Agreement: how well scores on samples of the data rank the learners on all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.study import StudyDirection
from scipy.stats import rankdata

from optuna_daub.core.costs.cost_model import expected_seconds
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.pool import Pool
from optuna_daub.study.results import LearnerCurve
from optuna_daub.study.results import learning_curves
from optuna_daub.study.stored_policy import policy_of


FEWEST = 3
"""Learners scored on one size that can be ranked; two agree or do not."""

DRAWS = 400
"""Draws of the scores on all the data: an interval's ends are to within 0.02 of its width."""

INTERVAL = 0.05, 0.95
"""Probabilities of the ends of all intervals."""

BEST_SHARE = 0.25
"""Share of the learners of a size that count as its best, for where the best parameters are."""


@dataclass(frozen=True)
class SizeAgreement:
    """How scores on one training size rank learners on all the data."""

    size: int
    """Training examples."""
    share: float
    """Of all the data, in (0, 1]."""
    learners: int
    """Number of learners that were scored on this size."""
    known: int
    """How many of these were trained on all the data; forecasts stand for the others."""
    rank_correlation: float
    """Spearman's, of scores here and on all the data: the median of what it may be; 1 is the same
    order, 0 none, -1 the reverse."""
    lower: float
    """With 90 %, the rank correlation lies between this and `upper`."""
    upper: float
    best_stays: float
    """Probability that the learner that is best here is the best of these on all the data."""
    lost: float
    """Expected score on all the data that is lost by taking the learner that is best here, at
    least 0, in units of the score."""


@dataclass(frozen=True)
class Move:
    """How far a parameter of the best learners moves with more data."""

    parameter: str
    small: float
    """Geometric mean over the best quarter of the learners on the smallest size with ten of them
    (of linear ranges, the mean)."""
    full: float
    """The same over those that are the best quarter on all the data, by scores and forecasts."""
    distance: float
    """From `small` to `full` as a part of the parameter's range, in [-1, 1]."""
    lower: float
    """With 90 %, the distance lies between this and `upper`."""
    upper: float


@dataclass(frozen=True)
class Agreement:
    """What small samples told of all the data; `str` of it is a table."""

    full_size: int
    """Examples of all the data."""
    sizes: tuple[SizeAgreement, ...]
    """The sizes on which at least three learners were scored, increasing, without `full_size`."""
    moves: tuple[Move, ...]
    """Of each numeric parameter that the best learners have, the farthest first."""
    spent: Cost
    """What all trainings took."""
    everything: Cost
    """What training each learner once on all the data would have taken; the seconds are expected
    ones for those that were not, and 0 if nothing was timed."""

    def __str__(self) -> str:
        head = f"{'training examples':>18}{'of all':>8}{'learners':>10}{'rank correlation':>26}"
        lines = [f"{head}{'best stays':>12}{'lost':>10}"]
        for row in self.sizes:
            interval = f"{row.rank_correlation:.2f} ({row.lower:.2f} to {row.upper:.2f})"
            line = f"{row.size:>18,}{row.share:>8.1%}{row.learners:>10,}{interval:>26}"
            lines.append(f"{line}{row.best_stays:>12.0%}{row.lost:>10.4f}")
        if not self.sizes:
            lines.append("no size below all the data has scores of three learners")
        lines += [
            f"{move.parameter}: the best move from {move.small:.4g} to {move.full:.4g} with all "
            "the data"
            for move in self.moves
            if move.lower > 0 or move.upper < 0
        ]
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
    """Return how well scores on each training size rank the learners on all the data.

    Learners that were trained on all the data have their scores there. For all others the scores
    are drawn from the forecasts of the study's rule, so an interval is as wide as what is not
    known. Each size compares the learners that were scored on it: on large sizes these are
    the better ones, which are closer together and harder to rank.

    Args:
        study: running or ended.
        seed: of the draws.

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
    sign = 1 if study.direction == StudyDirection.MAXIMIZE else -1
    scored = [curve for curve in curves if all(seen.is_finite for seen in curve.observations)]
    drawn = _draws(policy, scored, sign, np.random.default_rng(seed))
    at = {s: [i for i, c in enumerate(scored) if _score(c, s) is not None] for s in policy.sizes}
    sizes = [
        _of_size(size, full, [scored[i] for i in at[size]], drawn[:, at[size]], sign)
        for size in policy.sizes[:-1]
        if len(at[size]) >= FEWEST
    ]
    spent = [seen for curve in curves for seen in curve.observations]
    pool = _pool(curves, sign)
    return Agreement(
        full_size=full,
        sizes=tuple(sizes),
        moves=_moves(study, scored, drawn, sign, at),
        spent=Cost(sum(s.size for s in spent), math.fsum(s.seconds or 0.0 for s in spent)),
        everything=Cost(
            full * len(curves), math.fsum(expected_seconds(pool.curves, full, full).values())
        ),
    )


def _pool(curves: Sequence[LearnerCurve], sign: int) -> Pool:
    """Return the learners as the core sees them, larger scores being better."""
    return Pool(
        Curves(
            LearningCurve(
                curve.learner,
                tuple(replace(seen, score=sign * seen.score) for seen in curve.observations),
                parameters=curve.params,
            )
            for curve in curves
        )
    )


def _draws(
    policy: Policy, curves: Sequence[LearnerCurve], sign: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return draws of all scores on all the data, larger is better, shape (DRAWS, learners).

    The one place that asks for forecasts. Learners' errors are drawn as if they were independent.
    """
    if not curves:
        return np.empty((DRAWS, 0))
    pool = _pool(curves, sign)
    forecasts = policy.forecasts(pool, policy.sizes[-1])
    if forecasts is None:  # by a rule that forecasts nothing
        forecasts = Joint().forecasts(pool, policy.sizes[-1])
    levels = np.linspace(0.005, 0.995, 100)
    quantiles = np.array([np.atleast_1d(forecasts.all.quantile(p)) for p in levels])
    places = [*forecasts]
    columns = []
    for curve in curves:
        of_learner = quantiles[:, places.index(curve.learner)]
        own = _score(curve, policy.sizes[-1])
        if own is not None:
            of_learner = np.full(len(levels), sign * own)
        elif not np.isfinite(of_learner).all():  # nothing bounds it: as good as the last score
            of_learner = np.full(len(levels), sign * curve.observations[-1].score)
        columns.append(np.interp(rng.uniform(size=DRAWS), levels, of_learner))
    return np.array(columns).T


def _of_size(
    size: int,
    full: int,
    curves: Sequence[LearnerCurve],
    drawn: NDArray[np.float64],
    sign: int,
) -> SizeAgreement:
    here = np.array([sign * _known(_score(curve, size)) for curve in curves])
    correlations = _rank_correlations(here, drawn)
    best = int(np.argmax(here))
    lower, middle, upper = np.quantile(correlations, [INTERVAL[0], 0.5, INTERVAL[1]])
    return SizeAgreement(
        size=size,
        share=size / full,
        learners=len(curves),
        known=sum(_score(curve, full) is not None for curve in curves),
        rank_correlation=float(middle),
        lower=float(lower),
        upper=float(upper),
        best_stays=float(np.mean(drawn[:, best] >= drawn.max(axis=1))),
        lost=float(np.mean(drawn.max(axis=1) - drawn[:, best])),
    )


def _rank_correlations(here: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[Any]:
    """Return Spearman's correlation of scores with each row of draws; 0 if all scores are equal.

    >>> _rank_correlations(np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 1.0]]))
    array([ 1., -1.])
    """
    first, others = rankdata(here), rankdata(drawn, axis=1)
    first, others = first - first.mean(), others - others.mean(axis=1, keepdims=True)
    norms = np.sqrt((first**2).sum() * (others**2).sum(axis=1))
    products = others @ first
    return np.asarray(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0))


def _moves(
    study: optuna.Study,
    curves: Sequence[LearnerCurve],
    drawn: NDArray[np.float64],
    sign: int,
    at: dict[int, list[int]],
) -> tuple[Move, ...]:
    """Return how parameters of the best quarter move, of the learners of one small size."""
    size = next((s for s in [*at][:-1] if len(at[s]) >= 10), None)
    if size is None:
        return ()
    some, drawn = [curves[i] for i in at[size]], drawn[:, at[size]]
    n_best = max(1, round(BEST_SHARE * len(some)))
    here = np.array([sign * _known(_score(curve, size)) for curve in some])
    ranges = _ranges(study)
    best_here = np.argsort(-here, kind="stable")[:n_best]
    best_there = np.argsort(-drawn, axis=1, kind="stable")[:, :n_best]
    moves = []
    for name, distribution in ranges.items():
        values = np.array([_place(curve.params.get(name), distribution) for curve in some])
        if np.isnan(values[best_here]).any() or np.isnan(values[best_there]).all(axis=1).any():
            continue  # a parameter of one kind of learners only
        small = float(values[best_here].mean())
        places = np.nanmean(values[best_there], axis=1)
        lower, upper = np.quantile(places - small, INTERVAL)
        full = float(places.mean())
        moves.append(
            Move(
                name,
                _value(small, distribution),
                _value(full, distribution),
                full - small,
                float(lower),
                float(upper),
            )
        )
    return tuple(sorted(moves, key=lambda move: -abs(move.distance)))


def _ranges(study: optuna.Study) -> dict[str, FloatDistribution | IntDistribution]:
    """Return the numeric parameters of the study, each with the range that it had last."""
    found: dict[str, BaseDistribution] = {}
    for trial in study.get_trials(deepcopy=False):
        found |= trial.distributions
    return {
        name: range_
        for name, range_ in found.items()
        if not isinstance(range_, CategoricalDistribution)
        and isinstance(range_, FloatDistribution | IntDistribution)
        and range_.low < range_.high
    }


def _place(value: Any, range_: FloatDistribution | IntDistribution) -> float:
    """Return where a value lies in its range, from 0 to 1; NaN without a value."""
    if value is None:
        return math.nan
    low, high = float(range_.low), float(range_.high)
    if range_.log:
        return math.log(value / low) / math.log(high / low)
    return (float(value) - low) / (high - low)


def _value(place: float, range_: FloatDistribution | IntDistribution) -> float:
    low, high = float(range_.low), float(range_.high)
    return low * (high / low) ** place if range_.log else low + place * (high - low)


def _score(curve: LearnerCurve, size: int) -> float | None:
    return next((seen.score for seen in curve.observations if seen.size == size), None)


def _known(score: float | None) -> float:
    assert score is not None
    return score


def _time(seconds: float) -> str:
    """Return a time as people say it.

    >>> _time(12.34), _time(150), _time(9000)
    ('12.3 s', '2.5 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
