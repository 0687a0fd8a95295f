"""Garbage collections: none while frames are looked at or a study is read, then on again."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial

from optuna_daub.study import host
from optuna_daub.study.worker import looking


def is_waiting() -> bool:
    here = weakref.ref(threading.current_thread())
    return host.Holder(here, None, os.getpid()).is_waiting_for_its_jobs


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


def test_collections_come_back_once_the_last_thread_has_left() -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def other() -> None:
        with host.without_collections:
            is_inside.set()
            may_leave.wait(10)

    thread = threading.Thread(target=other)
    with host.without_collections:
        thread.start()
        assert is_inside.wait(10)
    assert not gc.isenabled(), "the other thread is still inside"
    may_leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_study_is_read_without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study()
    study.add_trial(optuna.trial.create_trial(value=0.5))
    read, seen = study._storage.get_all_trials, []

    def get_all_trials(*arguments: Any, **options: Any) -> list[FrozenTrial]:
        seen.append(gc.isenabled())
        return read(*arguments, **options)

    monkeypatch.setattr(study._storage, "get_all_trials", get_all_trials)
    looking(study)
    assert seen == [False]
    assert gc.isenabled()


class _Returning:
    """A frame of another thread that returns between two looks at it."""

    def __init__(self, name: str, caller: _Returning | None, begun: object) -> None:
        self.f_code = self
        self.co_name, self.f_locals = name, {"time_start": begun}
        self._callers = [caller]

    @property
    def f_back(self) -> _Returning | None:
        return self._callers.pop() if self._callers else None


def test_a_frame_that_returns_while_it_is_looked_at_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_trial, optimize = host._LOOP
    begun, other = object(), object()
    loops = [_Returning(optimize, None, when) for when in (begun, begun, other)]
    frames = [_Returning(run_trial, loop, None) for loop in (*loops, None)]
    monkeypatch.setattr(host, "_frames_of_others", lambda: iter(frames))
    assert host._n_training(begun) == 2  # type: ignore[arg-type]
