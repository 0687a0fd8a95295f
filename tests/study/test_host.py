"""Looking at the frames of other threads never meets a garbage collection."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType

import optuna
import pytest

from optuna_daub.study import host


def is_waiting() -> bool:
    return host.is_waiting_for_its_jobs(threading.get_ident())


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("question", [host.is_only_job, is_waiting])
def test_no_garbage_is_collected_while_frames_are_looked_at(
    question: Callable[[], bool], is_enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python 3.11.7 such a collection hung a study for good."""
    seen = []

    def current_frames() -> dict[int, FrameType]:
        seen.append(gc.isenabled())
        return {}

    def objective(trial: optuna.Trial) -> float:
        question()
        return 0.0

    study = optuna.create_study()
    monkeypatch.setattr(sys, "_current_frames", current_frames)
    if not is_enabled:
        gc.disable()
    try:
        study.optimize(objective, n_trials=1)
        after = gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False]
    assert after == is_enabled


def test_collection_is_on_again_if_the_look_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def current_frames() -> dict[int, FrameType]:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "_current_frames", current_frames)
    with pytest.raises(KeyboardInterrupt):
        is_waiting()
    assert gc.isenabled()
    assert host._FRAMES_LOCK.acquire(blocking=False), "the lock is free"
    host._FRAMES_LOCK.release()
