"""The benchmark of real training: its command in smoke mode, its clocks, its cap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks import pools
from benchmarks.contest import EVERYTHING
from benchmarks.contest import METHODS
from benchmarks.meter import Meter
from benchmarks.meter import apart
from benchmarks.rows import ROOT
from benchmarks.rows import read_rows
from benchmarks.training_report import figures


def test_the_command_runs_in_smoke_mode_and_resumes(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/training.py", "--smoke", "--results", str(tmp_path)]
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    rows = read_rows(tmp_path / "training.jsonl")
    there = [name for name, method in METHODS.items() if not method.missing]
    assert [row["key"]["method"] for row in rows[1:]] == there
    assert all(row["learner"] for row in rows[1:])
    table = (tmp_path / "training.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in there)


def test_a_fit_inside_another_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (DecisionTreeClassifier, BaggingClassifier, KNeighborsClassifier, StandardScaler)
    for kind in kinds:
        monkeypatch.setattr(kind, "fit", kind.fit)  # put back after the test
    meter = Meter()
    meter.watch(kinds)
    X, y = pools.SOURCES["made"].load(0).first(100)
    BaggingClassifier(DecisionTreeClassifier(), n_estimators=3).fit(X, y)
    DecisionTreeClassifier().fit(X[:50], y[:50])
    assert (meter.fits, meter.examples) == (2, 150)
    make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, y)
    assert meter.fits == 4  # pipelines are not watched here, so both steps count


def test_a_pause_is_not_timed() -> None:
    meter = Meter()
    with meter.running():
        with meter.paused():
            _ = sum(i * i for i in range(3_000_000))
        _ = sum(i * i for i in range(300_000))
    assert 0.0 < meter.cpu < 0.15
    assert meter.wall > 0.0


def test_learners_that_cost_too_much_are_left_out_with_their_projection() -> None:
    source = pools.Source(pools.SOURCES["made"].load, cap=1.0, learners=("stump", "knn5"))
    ticks = iter(range(1000))
    slow = pools.affordable(source, lambda: 3.0 * next(ticks))  # every probe takes three seconds
    assert slow["learners"] == []
    assert set(slow["left_out"]) == {"stump", "knn5"}
    fast = pools.affordable(source, lambda: 0.0)
    assert fast["learners"] == ["stump", "knn5"]


def test_projections_follow_the_last_two_probes() -> None:
    assert pools._extrapolated([(100, 9.0), (1000, 1.0), (2000, 4.0)], 4000) == pytest.approx(16.0)


def test_prefixes_of_the_training_rows_hold_every_class() -> None:
    data = pools.SOURCES["made"].load(1)
    assert set(data.first(3)[1]) == set(data.training[1])


def _fails() -> Any:
    raise LookupError("no such data")


def _spins() -> Any:
    def run() -> None:
        while True:
            pass

    return run


def _answers() -> Any:
    return lambda: {"learner": "stump"}


def test_a_run_apart_answers_or_says_why_not() -> None:
    assert apart(_answers) == {"learner": "stump"}
    assert "no such data" in apart(_fails)["failed"]
    assert "stopped" in apart(_spins, limit=0.5)


def test_losses_are_those_of_full_training_unless_the_method_brought_its_own() -> None:
    scores: Mapping[str, list[float]] = {"a": [0.9, 0.8], "b": [0.7, 0.9]}
    cost = {"cpu": 2.0, "wall": 2.0, "examples": 10, "fits": 2, "peak_mb": 100}
    everything = {"key": {"method": EVERYTHING}, "learner": "a", "scores": scores, **cost}
    halving = figures({"learner": "b", "scores": {}, **cost, "cpu": 1.0}, everything)
    assert halving["loss"] == pytest.approx(20.0)
    assert halving["test"] == pytest.approx(-10.0)
    assert halving["share"] == 50.0
    other = figures({"learner": "c", "scores": {"c": [0.95, 0.8]}, **cost}, everything)
    assert other["loss"] == pytest.approx(-5.0)
