"""Facts about the running `study.optimize` and its threads.

Optuna does not pass them to samplers. They are local variables of Optuna's functions, some frames
above the sampler. If a release of Optuna names them otherwise, the functions here return None or
False, and callers go on.

Decisions run on one BLAS thread, trainings on as many as the user has set. The matrices of a
decision are small. On busy cores the threads of BLAS wait for each other longer than they compute:
a solve of 100 rows took 180 ms on two threads, 0.9 ms on one.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from functools import lru_cache
from types import FrameType
from typing import Any

import optuna
from threadpoolctl import ThreadpoolController


FinishedTrialError: type[RuntimeError] = getattr(
    optuna.exceptions, "UpdateFinishedTrialError", RuntimeError
)
"""The error of writing to a finished trial. In Optuna 4.0 other errors have this class too, so
callers check that the trial is finished."""

_LOOP = ("_run_trial", "_optimize_sequential")
"""Optuna's functions that run one trial, and that loop over trials."""

_JOBS = "_optimize"
"""Optuna's function that starts the threads of `n_jobs` and waits for them."""

_BAR_LOCK = threading.Lock()
"""Held while the one progress bar of all threads of a `study.optimize` is changed."""


@dataclass(frozen=True)
class Holder:
    """The thread that has a trial of this process."""

    thread: weakref.ref[threading.Thread]
    """The thread itself: its id is used again once it has ended."""
    begin: datetime | None
    """Start of the thread's `study.optimize`, which has one trial at a time. None in ask-and-tell,
    in which any thread may tell a trial."""
    process: int
    """Id of the process. A fork has the memory of its parent, but none of its other threads."""

    @classmethod
    def here(cls, study: optuna.Study) -> Holder:
        """Return the calling thread, as the holder of a trial of `study`."""
        return cls(weakref.ref(threading.current_thread()), begin(study), os.getpid())

    @property
    def is_here(self) -> bool:
        """True in the thread that has the trial."""
        return self.is_of_this_process and self.thread() is threading.current_thread()

    @property
    def is_of_this_process(self) -> bool:
        """False in a fork of the process."""
        return self.process == os.getpid()

    @property
    def is_alive(self) -> bool:
        """True until the thread has ended."""
        thread = self.thread()
        return thread is not None and thread.is_alive()

    @property
    def is_waiting_for_its_jobs(self) -> bool:
        """True while the thread waits in `study.optimize` for the threads of its `n_jobs`."""
        thread = self.thread()
        top = _top_frames().get(thread.ident or 0) if thread and thread.is_alive() else None
        names = (frame.f_code.co_name for frame in frames_from(top))
        return next((name for name in names if name in (*_LOOP, _JOBS)), None) == _JOBS


def is_optimizing(study: optuna.Study) -> bool:
    """Return whether the calling thread is in `study.optimize`, not in ask-and-tell."""
    return bool(study._thread_local.in_optimize_loop)


class Interrupted(KeyboardInterrupt, Exception):
    """Ctrl-C while a trial ends.

    There Optuna guards its log against errors of the class `Exception` only. A bare
    `KeyboardInterrupt` would come out of `study.optimize` as an `UnboundLocalError` of Optuna.
    """


@contextmanager
def passing_interrupts(study: optuna.Study) -> Iterator[None]:
    """Let Ctrl-C in this context come out of `study.optimize` as a `KeyboardInterrupt`."""
    try:
        yield
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted) or not is_optimizing(study):
            raise
        raise Interrupted(*error.args) from error


def optimize(
    study: optuna.Study, objective: Callable[[optuna.Trial], float], **given: Any
) -> None:
    """Call `study.optimize`; Ctrl-C always comes out as a `KeyboardInterrupt`.

    This is so even while Optuna itself stores the end of a trial.
    """
    try:
        study.optimize(objective, **given)
    except (Interrupted, UnboundLocalError) as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def stop(study: optuna.Study) -> None:
    """End `study.optimize` after this trial; do nothing in ask-and-tell."""
    if is_optimizing(study):
        study.stop()


def seconds_left(study: optuna.Study) -> float | None:
    """Return the seconds in which the thread's `study.optimize` may still start trials.

    None without a limit, and in ask-and-tell: an `optimize` around it may belong to another study.
    """
    timeout, elapsed = _of_caller("timeout"), seconds_since_begin(study)
    return None if timeout is None or elapsed is None else float(timeout) - elapsed


def begin(study: optuna.Study) -> datetime | None:
    """Return the start of the thread's `study.optimize`; None in ask-and-tell."""
    begun = _of_caller("time_start") if is_optimizing(study) else None
    return begun if isinstance(begun, datetime) else None


def seconds_since_begin(study: optuna.Study) -> float | None:
    """Return the seconds since the thread's `study.optimize` started; None in ask-and-tell."""
    begun = begin(study)
    return None if begun is None else time.monotonic() - _monotonic(begun)


@lru_cache(maxsize=256)
def _monotonic(begun: datetime) -> float:
    """Return the start of a `study.optimize` by `time.monotonic`, which nobody sets.

    The first call is at the start of its first trial. The other clock may be set later.
    """
    return time.monotonic() - (datetime.now() - begun).total_seconds()


def trials_asked_for() -> tuple[int, int] | None:
    """Return the `n_trials` of the thread's `study.optimize`, and the number started so far.

    The current trial is included. None in ask-and-tell and without a limit.
    """
    limit, begun, shared = _of_caller("n_trials"), _of_caller("i_trial"), _of_jobs()
    if shared is not None:
        limit, begun = shared["n_trials"], shared.get("n_submitted_trials")
    return None if limit is None or begun is None else (int(limit), int(begun))


def trials_left() -> int | None:
    """Return the number of trials that the thread's `study.optimize` has not ended yet.

    They include trials that have not started, and running ones of its other threads, but not the
    current one. None without a limit.
    """
    shared = _of_jobs()
    limit = shared["n_trials"] if shared else _of_caller("n_trials")
    ended = trials_ended()
    return None if limit is None or ended is None else int(limit) - ended


def trials_ended() -> int | None:
    """Return the number of ended trials of the thread's `study.optimize`, None if unknown.

    The current trial counts as ended, since callbacks ask after its end.
    """
    shared = _of_jobs()
    if shared is None:
        begun = _of_caller("i_trial")
        return None if begun is None else int(begun)
    submitted = shared.get("n_submitted_trials")
    return None if submitted is None else int(submitted) - _n_training(shared["time_start"])


def is_ending(study: optuna.Study) -> bool:
    """Return whether the thread's `study.optimize` will start no other trial."""
    if study._stop_flag or not is_optimizing(study):
        return bool(study._stop_flag)
    seconds = seconds_left(study)
    return trials_left() == 0 or (seconds is not None and seconds <= 0)


def error_of_run() -> BaseException | None:
    """Return the error of the run that Optuna is about to store.

    None if unknown. In ask-and-tell there is none.
    """
    error = _of_caller("func_err")
    return error if isinstance(error, BaseException) else None


def returned() -> object:
    """Return the objective's return value in the run that Optuna is about to store.

    None if it is unknown.
    """
    return _of_caller("value_or_values")


def trial_of_caller() -> optuna.Trial | None:
    """Return the trial for which Optuna calls the sampler, None if unknown."""
    frame = _frame_of_trial()
    return None if frame is None else frame.f_locals["self"]


def show_progress(to_come: int) -> None:
    """Let `show_progress_bar=True` of the thread's `study.optimize` show a closed pool's progress.

    Without `n_trials` and `timeout` Optuna shows no bar, only a warning.

    Args:
        to_come: smallest number of trials that still start after this one.
    """
    bar, jobs = _of_caller("progress_bar"), _of_jobs() or _of_this_job()
    if bar is None or not jobs.get("show_progress_bar"):
        return
    with _BAR_LOCK:
        facts = vars(bar)
        is_unused = facts.get("_n_trials", 0) is None and facts.get("_timeout", 0) is None
        if is_unused and not facts.get("_is_valid"):
            type(bar).__init__(bar, True, 1 + to_come)
            facts["_n_begun"] = 0
        shown = facts.get("_progress_bar")
        if "_n_begun" in facts and shown is not None:  # called once for each trial, by any thread
            facts["_n_begun"] += 1
            shown.total = facts["_n_begun"] + to_come


def is_asking() -> bool:
    """Return whether the thread is in `study.ask`. An error there does not fail a trial."""
    frame = _frame_of_trial()
    return frame is not None and frame.f_code.co_name == "__init__"


def is_only_job() -> bool:
    """Return whether the calling thread certainly is the only one in a `study.optimize`.

    Only the main thread can be certain, in a `study.optimize` without `n_jobs`.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    others = (frame.f_code.co_name for frame in _frames_of_others())
    return bool(_of_this_job()) and _JOBS not in others


class _WithoutCollections:
    """A block without garbage collections; several threads may be in it at once."""

    def __init__(self) -> None:
        self._lock, self._inside, self._was_enabled = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:  # the last one to leave switches them on again
            self._inside -= 1
            if not self._inside and self._was_enabled:
                gc.enable()


without_collections = _WithoutCollections()
"""Context without garbage collections in this process. A study of many trials is millions of
objects that all stay: while it is read, half of the time went into looking for garbage in it."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a block, or a decorated function, on one BLAS thread.

    Restore the old number afterwards. The number belongs to the whole process. While another
    Python thread may be training (`n_jobs`, other `study.optimize` calls, ask-and-tell beside any
    thread) it stays unchanged. Otherwise that training would become slow. And a library in it that
    saves and restores the number, as scikit-learn's KMeans does, could leave the process with one
    thread for good.
    """
    if threading.active_count() > 1 and not is_only_job():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Return the handle of the BLAS libraries that decisions use, found once per process.

    Finding them takes some 10 ms, setting the number 0.02 ms. Libraries that the user loads later
    are not included; no decision runs on them.
    """
    import scipy.linalg  # noqa: F401  # loads scipy's BLAS, another one than numpy's

    return ThreadpoolController()


def _of_jobs() -> dict[str, Any] | None:
    """Return the local variables of the `_optimize` that started this thread; None without one."""
    begun = _of_caller("time_start")
    if begun is None or not _of_caller("reseed_sampler_rng"):
        return None
    for frame in _frames_of_others():
        if frame.f_code.co_name == _JOBS and frame.f_locals.get("time_start") is begun:
            return {**frame.f_locals}
    return None


def _of_this_job() -> dict[str, Any]:
    """Return the local variables of the `study.optimize` that the calling thread itself runs."""
    frames = frames_from(inspect.currentframe())
    return next(({**frame.f_locals} for frame in frames if frame.f_code.co_name == _JOBS), {})


def _n_training(begun: datetime) -> int:
    """Return the number of other threads of a `study.optimize` that are in a trial."""
    run_trial, optimize = _LOOP
    # Those threads run on meanwhile, and a frame that returns has no caller any more: look once.
    callers = (f.f_back for f in _frames_of_others() if f.f_code.co_name == run_trial)
    return sum(
        caller is not None
        and caller.f_code.co_name == optimize
        and caller.f_locals.get("time_start") is begun
        for caller in callers
    )


def _top_frames() -> dict[int, FrameType]:
    """Return the top frame of each thread."""
    # Python 3.10 and 3.11 hold a lock of their own here. A garbage collection meanwhile may want
    # the same lock, and then the process hangs for good (python/cpython#106883).
    with without_collections:
        return sys._current_frames()


def _frames_of_others() -> Iterator[FrameType]:
    here = threading.get_ident()
    for thread, top in _top_frames().items():
        if thread != here:
            yield from frames_from(top)


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those of its callers, the innermost first; none for None."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frame_of_trial() -> FrameType | None:
    frames = frames_from(inspect.currentframe())
    return next((f for f in frames if isinstance(f.f_locals.get("self"), optuna.Trial)), None)


def _of_caller(name: str) -> Any:
    """Return a local variable of the nearest function of Optuna's loop. None if no function has
    it."""
    frames = frames_from(inspect.currentframe())
    loops = (frame for frame in frames if frame.f_code.co_name in _LOOP)
    return next((loop.f_locals[name] for loop in loops if name in loop.f_locals), None)
