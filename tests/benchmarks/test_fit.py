"""How often forecasts hold, if what learners gain is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit.open_intervals import held


@pytest.mark.parametrize(("late", "least", "most"), [(0.0, 0.85, 1.0), (0.3, 0.0, 0.6)])
def test_intervals_hold_where_learners_gain_alike_and_not_where_dear_ones_gain_late(
    late: float, least: float, most: float
) -> None:
    rng = np.random.default_rng(0)
    sizes = (500, 1000, 2000, 4000, 8000, 16_000)
    rise = 0.3 - 2.0 / np.sqrt(sizes)
    known = []
    for i in range(60):
        # Every second learner takes ten times as long, and may catch up on all the data only.
        scores = 0.5 + 0.1 * rng.random() + rise + rng.normal(0.0, 0.002, len(sizes))
        scores -= late * (i % 2) * (np.array(sizes) < 16_000)
        seconds = [size / 1000 * (1 + 9 * (i % 2)) for size in sizes]
        known.append({"point": {"kind": i % 2}, "sizes": sizes, "scores": scores, "s": seconds})
    found = [pair for seed in range(5) for pair in held(known, seed)[30]]
    inside, above = np.mean(found, axis=0)
    assert least <= inside <= most
    assert inside + above == pytest.approx(1.0), "none ends below"
