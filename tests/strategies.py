"""Hypothesis strategies: one for each type of the core.

Scores are multiples of 3/256 and sizes multiples of 3, so means, mended scores and sums of
products are exact in floating point: what ties on paper ties in the computer.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Cost
from optuna_daub.core import Curves
from optuna_daub.core import Decision
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Forecast
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core import Propose
from optuna_daub.core import Reason
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import Wait
from optuna_daub.core import geometric_sizes


GRID = (6, 9, 15, 24, 36, 54)
"""A short grid for where the sizes do not matter."""

N_VALIDATION = 1000
"""Validation examples behind every score, for policies that need to know."""

finite = st.floats(-1e6, 1e6)
learners = st.integers(0, 10_000)

scores = st.one_of(
    st.integers(0, 85).map(lambda step: step * 3 / 256),
    st.sampled_from([0.375, 0.75]),  # the same few again and again: flat curves and ties
)
training_scores = st.sampled_from([0.375, 0.75, 1.0]) | scores  # many a learner memorises


def grids() -> st.SearchStrategy[tuple[int, ...]]:
    """Increasing training sizes."""
    steps = st.sets(st.integers(1, 200), min_size=3, max_size=7)
    return steps.map(lambda found: tuple(3 * step for step in sorted(found)))


@st.composite
def observations(draw: st.DrawFn, size: int, *, with_training_score: bool = True) -> Observation:
    """The outcome of a probe at `size`."""
    training_score = draw(training_scores) if with_training_score else None
    return Observation(size, draw(scores), training_score, N_VALIDATION, seconds=size / 1000)


@st.composite
def learning_curves(
    draw: st.DrawFn,
    learner: int,
    sizes: tuple[int, ...] = GRID,
    *,
    complete: bool = False,
    with_training_score: bool = True,
) -> LearningCurve:
    """A curve over the first few of `sizes`, or over all of them."""
    upto = len(sizes) if complete else draw(st.integers(0, len(sizes)))
    probes = [
        draw(observations(size, with_training_score=with_training_score)) for size in sizes[:upto]
    ]
    if draw(st.booleans()):  # a learner that learns: its bound is far up, at its training score
        rising = sorted(probe.score for probe in probes)
        probes = [replace(probe, score=s) for probe, s in zip(probes, rising, strict=True)]
    return LearningCurve(learner, tuple(probes))


@st.composite
def known_curves(
    draw: st.DrawFn,
    sizes: tuple[int, ...] = GRID,
    *,
    max_learners: int = 6,
    with_training_score: bool = True,
    failures: bool = False,
) -> list[LearningCurve]:
    """Complete curves of several learners, in no order; with `failures`, some have gaps."""
    ids = draw(st.lists(learners, min_size=1, max_size=max_learners, unique=True))
    options = {"complete": True, "with_training_score": with_training_score}
    curves = [draw(learning_curves(learner, sizes, **options)) for learner in ids]
    if not failures:
        return curves
    return [
        LearningCurve(
            curve.learner, tuple(o for o in curve.observations if draw(one_in_ten_fails))
        )
        for curve in curves
    ]


one_in_ten_fails = st.integers(0, 9).map(lambda number: number != 9)


def power_law(
    learner: int, sizes: tuple[int, ...], end: float, drop: float, power: float
) -> LearningCurve:
    """A noise-free, concave learner: end - drop * n^-power, with a falling training score."""
    lost = {size: drop * size**-power for size in sizes}
    return LearningCurve(
        learner,
        tuple(Observation(n, end - by, min(1.0, end + by / 2)) for n, by in lost.items()),
    )


FOUR_SIZES = geometric_sizes(1000, 1_000_000, 2)
FOUR_SHAPES = [(0.86, 1, 1), (0.85, 2, 3), (0.80, 0.8, 0.5), (0.70, 0.5, 0.2)]
FOUR = [
    LearningCurve(
        i,
        tuple(
            Observation(
                size,
                end - gap / math.sqrt(size),
                min(1.0, end + gap / math.sqrt(size)),
                min(2 * size, 100_000),
                seconds=pace * size / 1000,
            )
            for size in FOUR_SIZES
        ),
    )
    for i, (end, gap, pace) in enumerate(FOUR_SHAPES)
]
"""The learners of a run of ABC that is known step by step: scores end - gap / sqrt(size)."""


@st.composite
def power_laws(draw: st.DrawFn, sizes: tuple[int, ...], count: int = 6) -> list[LearningCurve]:
    """Noise-free learners."""
    shapes = st.tuples(st.floats(0.5, 1.0), st.floats(0.0, 2.0), st.floats(0.05, 1.0))
    drawn = draw(st.lists(shapes, min_size=1, max_size=count))
    return [power_law(learner, sizes, *shape) for learner, shape in enumerate(drawn)]


@st.composite
def noisy_learners(
    draw: st.DrawFn,
    grid: tuple[int, ...],
    most_scored_on: tuple[int, ...] = (10_000, 10_000, 9000),
) -> list[LearningCurve]:
    """Learners whose scores are noisy at every size, and of which each has a pace of its own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = []
    for i in range(draw(st.integers(1, 7))):
        end, gap, pace = rng.uniform(0.6, 0.95), rng.uniform(0.2, 3), rng.uniform(0.1, 5)
        noise = rng.normal(0, 0.3, (len(grid), 2))
        probes = [
            Observation(
                size,
                float(np.clip(end + (test - gap) / math.sqrt(size), 0, 1)),
                float(np.clip(end + (train + gap) / math.sqrt(size), 0, 1)),
                min(2 * size, draw(st.sampled_from(most_scored_on))),
                seconds=float(pace * size * rng.uniform(0.8, 1.2)),
            )
            for size, (train, test) in zip(grid, noise, strict=True)
        ]
        found.append(LearningCurve(i, tuple(probes)))
    return found


costs = st.builds(Cost, st.integers(0, 10**9), st.floats(0, 1e6))


@st.composite
def pools(
    draw: st.DrawFn, sizes: tuple[int, ...] = GRID, *, with_training_score: bool = True
) -> Pool:
    """A snapshot as a study may be in: learners started or not, some dropped, some busy."""
    ids = draw(st.lists(learners, max_size=6, unique=True))
    curves = [
        draw(learning_curves(i, sizes, with_training_score=with_training_score)) for i in ids
    ]
    return Pool(
        Curves(curve.drop(draw(st.sampled_from(["", "", "failed"]))) for curve in curves),
        frozenset(i for i in ids if draw(st.booleans())),
        draw(st.none() | st.integers(0, 5)),
        draw(costs),
        draw(st.none() | costs),
    )


reasons = st.lists(finite, min_size=1, max_size=3).map(
    lambda found: Reason(
        " {less} ".join(f"{{{i}}}" for i in range(len(found))) + ", the {largest}", tuple(found)
    )
)

decisions: st.SearchStrategy[Decision] = st.one_of(
    st.builds(Extend, learners, st.integers(1, 10_000), reasons),
    st.builds(Propose, st.integers(1, 10_000), reasons),
    st.builds(Drop, learners, reasons),
    st.builds(Finish, st.none() | learners, reasons),
    st.builds(Wait, reasons),
)

levels = st.floats(-10, 10)


@st.composite
def forecasts(draw: st.DrawFn, count: int) -> Forecast:
    """Forecasts of so many learners at once, some of them certain."""
    spread = st.just(0.0) | st.floats(1e-3, 5)
    of_each = [(draw(levels), draw(spread)) for _ in range(count)]
    return Forecast(*np.array(of_each).reshape(count, 2).T)


daubs = st.builds(
    DAUB,
    grids(),
    st.builds(Projection, use_training_score=st.booleans()),
    tolerance=st.just(0.0) | st.sampled_from([3 / 256, 0.125, math.inf]),
    stop=st.sampled_from(["verified", "first"]),
)

halvings = st.builds(SuccessiveHalving, grids(), keep_one_in=st.integers(2, 4))
