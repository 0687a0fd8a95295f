"""The cost of a run; a run in a process of its own ends in any case.

Each process imports this module anew, so it imports nothing heavy.
"""

from __future__ import annotations

from typing import Any

from benchmarks.meter import Meter
from benchmarks.meter import apart


def test_a_pause_is_not_timed() -> None:
    meter = Meter()
    with meter.running():
        with meter.paused():
            _ = sum(i * i for i in range(3_000_000))
        _ = sum(i * i for i in range(300_000))
    assert 0.0 < meter.cpu < 0.15
    assert meter.wall > 0.0


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
