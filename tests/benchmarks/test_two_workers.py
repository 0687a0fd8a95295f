"""Two workers beside one: the simulated clock, and the shares that are read off curves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rows import Row
from benchmarks.rows import read_rows
from benchmarks.search import race
from benchmarks.search_problems import Made
from benchmarks.search_report import REFERENCE
from benchmarks.search_space import Config
from benchmarks.two_workers import WORKERS
from benchmarks.two_workers import _report
from benchmarks.two_workers import main
from benchmarks.two_workers import simulated
from tests.benchmarks.rows import reference
from tests.benchmarks.rows import row


def _shares(*rows: Row) -> list[str]:
    """Return the last column of the table, for a unit of a second."""
    _, table = _report([reference(unit=1.0), *rows])
    return [line.split("|")[-2].strip() for line in table.splitlines()[2:]]


def test_one_simulated_worker_is_ours_in_the_benchmark_of_search() -> None:
    best, curve = -math.inf, []
    for when, score in simulated(Made(), seed=5, n_workers=1, seconds=12.0)[0]:
        if score > best:
            best = score
            curve.append([when, score])
    expected = race(Made(), "ours", seed=5, budget=12.0)["curve"]
    assert len(expected) > 1
    assert np.array(curve) == pytest.approx(np.array(expected))


class _Even(Made):
    """Every training takes a second."""

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        return super().train(config, size, limit)[0], 1.0


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_simulated_workers_are_busy_all_the_time(n_workers: int) -> None:
    found, sizes = simulated(_Even(), seed=0, n_workers=n_workers, seconds=20.5)
    assert len(sizes) == 20 * n_workers
    assert found
    assert all(when in range(1, 21) for when, _ in found)


def test_a_worker_of_double_speed_needs_half_of_the_seconds() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0.0, 10.0, (40, 8)))
    scores = np.sort(rng.uniform(0.4, 0.9, (40, 8)))
    rows = [
        row(WORKERS[n - 1], seed, *zip(when / n, found, strict=True))
        for seed, (when, found) in enumerate(zip(times, scores, strict=True))
        for n in (1, 2)
    ]
    assert [float(share) for share in _shares(*rows)] == pytest.approx([0.5] * 3, abs=0.01)


def test_what_is_never_reached_is_never() -> None:
    worse = row(WORKERS[0], 0, (1.0, 0.8)), row(WORKERS[1], 0, (0.5, 0.7))
    assert _shares(*worse) == ["never"] * 3
    assert _shares(worse[0], row(WORKERS[1], 0, (0.6, 0.8))) == ["0.20", "0.12", "0.06"]


@pytest.mark.slow
def test_the_table_is_of_cells_that_both_have_run(tmp_path: Path) -> None:
    arguments = ["--problems", "made", "--units", "6", "--results", str(tmp_path)]
    main([*arguments, "--seeds", "1"])
    table = (tmp_path / "two_workers.md").read_text(encoding="utf-8")
    main([*arguments, "--seeds", "2", "--time-limit", "0"])
    assert (tmp_path / "two_workers.md").read_text(encoding="utf-8") == table
    rows = read_rows(tmp_path / "two_workers.jsonl")
    assert [row["key"]["method"] for row in rows] == [REFERENCE, *WORKERS]
