"""Replays on known curves: what was found when, and how much small samples mislead."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rows import Row
from benchmarks.small_samples import misjudged
from benchmarks.small_samples import misled
from benchmarks.small_samples import open_pool
from benchmarks.small_samples import training_everything


SIZES = 250, 1000, 4000, 16000


def learners(n: int) -> list[Row]:
    """Return learners with curves of four sizes, drawn anew each time alike."""
    rng = np.random.default_rng(0)
    levels, costs = rng.uniform(0.6, 0.9, n), rng.lognormal(0.0, 1.0, n)
    return [
        {
            "parameters": {"cost": float(cost)},
            "curve": [(m, level - m**-0.5, cost * m / 16000) for m in SIZES],
        }
        for level, cost in zip(levels, costs, strict=True)
    ]


def test_pairs_in_another_order_are_counted() -> None:
    def row(small: float, full: float) -> Row:
        return {"curve": [(250, small, 1.0), (16000, full, 1.0)]}

    assert misled([row(0.1, 0.1), row(0.2, 0.2), row(0.3, 0.3)]) == 0.0
    assert misled([row(0.3, 0.1), row(0.2, 0.2), row(0.1, 0.3)]) == 1.0
    assert misled([row(0.2, 0.1), row(0.1, 0.2), row(0.3, 0.3)]) == pytest.approx(1 / 3)
    assert misled([row(0.1, 0.1), row(0.1, 0.2)]) == 0.0, "a tie misleads in neither direction"


def test_how_far_off_predicted_seconds_are() -> None:
    """Not at all in proportion to size; less with every size where half take as long on all."""
    some = learners(40)
    assert misjudged(some) == pytest.approx([1.0, 1.0, 1.0])
    for row in some[::2]:
        row["curve"] = [(m, score, 1.0) for m, score, _ in row["curve"]]
    one, two, three = misjudged(some)
    assert one > two > three > 1.2


def test_training_everything_takes_one_after_the_other() -> None:
    some = learners(3)
    full = [row["curve"][-1] for row in some]
    ends = [full[0][2], full[0][2] + full[1][2], sum(seconds for _, _, seconds in full)]
    assert training_everything(some) == [
        (pytest.approx(end), score) for end, (_, score, _) in zip(ends, full, strict=True)
    ]


@pytest.mark.parametrize("n", [40, 100])
def test_an_open_pool_finds_the_best_of_curves_that_do_not_cross_sooner(n: int) -> None:
    some = learners(n)
    best = max(row["curve"][-1][1] for row in some)
    found, everything = open_pool(some), training_everything(some)
    assert [end for end, _ in found] == sorted(end for end, _ in found)
    assert len(found) < len(everything)
    first, first_of_everything = (
        next(end for end, score in ends if score == best) for ends in (found, everything)
    )
    assert first < first_of_everything / 2
