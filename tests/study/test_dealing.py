"""How a worker waits that finds no learner free."""

from __future__ import annotations

import time
from typing import Any

import pytest
from optuna_daub.study.dealing import LONGEST_NAP
from optuna_daub.study.dealing import LONGEST_PAUSE
from optuna_daub.study.dealing import LOOKING_SHARE
from optuna_daub.study.dealing import SHORTEST_NAP

from optuna_daub.study import dealing


def naps(monkeypatch: pytest.MonkeyPatch, cpu_seconds: float, looks: int) -> list[float]:
    """Return how long a worker sleeps between looks that take so much CPU time each."""
    slept: list[float] = []
    dealt: Any = object()
    now = 0.0

    def look(*_: object) -> Any:
        nonlocal now
        now += cpu_seconds
        return dealt if len(slept) == looks - 1 else None

    monkeypatch.setattr(dealing, "_claim", look)
    monkeypatch.setattr(dealing, "fail_silent", lambda study: None)
    monkeypatch.setattr(time, "thread_time", lambda: now)
    monkeypatch.setattr(time, "sleep", slept.append)
    nothing: Any = None
    assert dealing.deal(nothing, nothing, nothing, 1, None) is dealt
    return slept


def test_naps_grow_from_the_shortest_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = naps(monkeypatch, cpu_seconds=1e-6, looks=12)
    assert slept == [min(SHORTEST_NAP * 2**i, LONGEST_NAP) for i in range(11)]


@pytest.mark.parametrize("cpu_seconds", [0.02, 0.1])
def test_looks_take_no_more_than_their_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch, cpu_seconds: float
) -> None:
    slept = naps(monkeypatch, cpu_seconds, looks=5)
    assert len(slept) == 4
    assert all(cpu_seconds <= LOOKING_SHARE * nap * (1 + 1e-9) for nap in slept)


def test_a_look_that_was_dear_puts_nobody_to_sleep_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept = naps(monkeypatch, cpu_seconds=5.0, looks=3)
    assert slept == [LONGEST_PAUSE, LONGEST_PAUSE]
