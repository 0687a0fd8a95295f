"""Projected seconds against those that the whole training takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from optuna_daub.core import Observation
from optuna_daub.study.costs import seconds_at


SIZES = tuple(1000 * 2**step for step in range(5))


def made(seed: int, count: int = 3000) -> Mapping[int, tuple[Observation, ...]]:
    """Return learners timed at every size; what grows fastest takes most of the seconds."""
    rng = np.random.default_rng(seed)
    return {
        learner: tuple(
            Observation(n, 0.5, seconds=float(second * (n / SIZES[0]) ** alpha)) for n in SIZES
        )
        for learner, (second, alpha) in enumerate(
            zip(rng.lognormal(0.0, 1.0, count), rng.normal(1.0, 0.3, count), strict=True)
        )
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known_sizes", [1, 2, 3])
def test_the_projected_total_is_that_of_the_whole_training(seed: int, known_sizes: int) -> None:
    whole = made(seed)
    begun = {learner: seen[:known_sizes] for learner, seen in whole.items()}
    truth = sum(seen[-1].seconds or 0.0 for seen in whole.values())
    projected = sum(seconds_at(SIZES[-1], begun).values())
    assert projected == pytest.approx(truth, rel=0.2)
    # As if each grew as the mean learner does.
    growth = np.array([seen[1].seconds / seen[0].seconds for seen in whole.values()])
    alpha = float(np.log2(growth).mean())
    plain = sum(
        (seen[-1].seconds or 0.0) * (SIZES[-1] / seen[-1].size) ** alpha for seen in begun.values()
    )
    assert abs(projected - truth) < abs(plain - truth)


def test_what_was_timed_is_not_projected() -> None:
    whole = made(0, 20)
    for place, size in enumerate(SIZES):
        assert seconds_at(size, whole) == {
            learner: pytest.approx(seen[place].seconds) for learner, seen in whole.items()
        }


def test_a_learner_without_times_counts_as_the_mean_of_the_others() -> None:
    whole = {**made(0, 3), 3: (Observation(1000, 0.5),), 4: ()}
    seconds = seconds_at(16_000, whole)
    assert seconds[3] == pytest.approx(sum(seconds[i] for i in range(3)) / 3)
    assert 4 not in seconds, "it was never trained"
    assert seconds_at(16_000, {3: whole[3]}) == {}


def test_its_own_times_outweigh_what_is_expected() -> None:
    def timed(alpha: float) -> tuple[Observation, ...]:
        return tuple(Observation(n, 0.5, seconds=n**alpha) for n in SIZES)

    flat, usual, steep = (seconds_at(64_000, {0: timed(a)})[0] for a in (0.2, 1.0, 2.0))
    assert flat < usual < steep
    assert 32_000**0.2 < flat < 4 * 64_000**0.2
