"""Progress of a study, on one line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from tqdm.auto import tqdm

from optuna_daub.core.checks import seconds_between
from optuna_daub.study import host
from optuna_daub.study import records
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import best_learner
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import worker_of
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import sign_of
from optuna_daub.visualization._numbers import said


LINE_EVERY = 60.0
"""Seconds between two lines in a pipe or a log file. Nothing can be drawn over there."""

_SHOWING = threading.Lock()
"""Held by the thread that updates a bar. It is not in the callback, which is sent to workers."""


class ProgressBar:
    """Show the leader, the gap, the cost and the time left while a study runs.

    A callback of `study.optimize`. It replaces `show_progress_bar=True`, which counts trials and
    does not show the leader or the gap. It is a bar on a terminal and in a notebook; elsewhere it
    is a line a minute and one at the end. Optuna's own log lines break the bar: turn them off with
    `optuna.logging.set_verbosity(optuna.logging.WARNING)`.

    The time left is the smallest known of these: until `timeout`, until the end of the sampler's
    `seconds`, for `n_trials` at the speed so far, and, in a closed pool, for training the leader
    on all the data. It is "?" if none is known.

    The gap is how far the best bound of the other learners is ahead of the leader's score. Once
    the leader is trained on all the data and the gap is below 0, no bound is above its score.

    Args:
        every: seconds between two updates of a bar, at least 0. Reading the state of a study
            takes some milliseconds. Default: 0.5.

    Raises:
        ValueError: if `every` is negative or not finite.

    >>> import optuna
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         report(trial, n, skill - 10 / n, training_score=skill + 10 / n)
    ...     return skill - 10 / n
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=3)
    >>> pruner = DAUBPruner(max_resource=2000)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective, callbacks=[ProgressBar()])
    """

    def __init__(self, *, every: float = 0.5) -> None:
        self._every = seconds_between(every)
        self._next = 0.0
        self._bar: Any = None
        self._begun = 0.0
        self._before = 0
        self._session: datetime | None = None
        self._is_over = True

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Update the bar, if it is time."""
        is_ending = host.is_ending(study)
        if not is_ending and time.monotonic() < self._next:
            return
        with _SHOWING:
            # Asked again: another thread may have ended the study while this one waited.
            is_ending = host.is_ending(study)
            if self._is_over and is_ending and self._session == host.begin(study):
                return  # other threads end their runs after the study is over
            best = best_learner(study)
            if self._is_over or self._session != host.begin(study):
                if not self._is_over:  # an error has ended the last `study.optimize`
                    self._bar.close()
                self._session = host.begin(study)
                self._begin(best)
            is_live = not self._bar.disable
            if best is not None:
                said = standing(best, sign_of(study))
                run = records.read_run(trial)
                if best.is_final and run is not None and run.learner is None:
                    said = f"finished, nothing is left to train: {said}"
                since = host.seconds_since_begin(study)
                elapsed = time.monotonic() - self._begun if since is None else since
                left = 0.0 if is_ending else self._seconds_left(study, best)
                self._show(said, best, elapsed, left, is_ending=is_ending)
            if is_ending:
                self._bar.close()
            self._is_over = is_ending
            self._next = time.monotonic() + (self._every if is_live else LINE_EVERY)

    def _begin(self, best: BestLearner | None) -> None:
        """Create a new bar. Examples spent before it do not count for the speed."""
        self._begun = time.monotonic()
        self._before = best.examples if best else 0
        # In a notebook bars are widgets.
        is_notebook = any(base.__name__ == "tqdm_notebook" for base in tqdm.__mro__)
        is_live = sys.stderr.isatty() or is_notebook
        # The position is fixed: a bar that some other callback has ended takes no line of its own.
        self._bar = tqdm(
            disable=not is_live, bar_format="{desc}", dynamic_ncols=True, position=0, total=1.0
        )

    def _show(
        self,
        said: str,
        best: BestLearner,
        elapsed: float,
        left: float | None,
        *,
        is_ending: bool,
    ) -> None:
        until = "?" if left is None else tqdm.format_interval(left)
        spent = f"{best.examples:,} examples, {tqdm.format_interval(elapsed)}<{until}"
        if self._bar.disable:
            if is_ending or time.monotonic() - self._begun >= LINE_EVERY:
                sys.stderr.write(f"{said}; {spent}\n")
                sys.stderr.flush()
            return
        # Shares, since a notebook's bar keeps its first total.
        self._bar.total = None if left is None else 1.0
        self._bar.n = 0.0 if left is None else elapsed / (elapsed + left) if left else 1.0
        self._bar.bar_format = "{desc} |{bar}| " + spent
        self._bar.set_description_str(said)

    def _seconds_left(self, study: optuna.Study, best: BestLearner) -> float | None:
        """Return the seconds that the study still takes at least; None if unknown."""
        left = [host.seconds_left(study)]
        worker, elapsed = worker_of(study), host.seconds_since_begin(study)
        if worker.horizon is not None:
            left.append(worker.horizon - time.monotonic())
        trials = host.trials_left()
        done = host.trials_ended()
        if trials is not None and done and elapsed is not None:
            left.append(trials * elapsed / done)
        spent = best.examples - self._before
        if worker.known.n_learners is not None and spent > 0:
            to_come = examples_left(best, policy_of(study).sizes)
            left.append(to_come * (time.monotonic() - self._begun) / spent)
        known = [max(0.0, seconds) for seconds in left if seconds is not None]
        return min(known, default=None)


def examples_left(best: BestLearner, sizes: Sequence[int]) -> int:
    """Return the examples that a closed pool still takes at least.

    The leader may go to all the data at once, if it stays the leader.
    """
    return 0 if best.is_final or best.size >= sizes[-1] else sizes[-1]


def standing(best: BestLearner, sign: int) -> str:
    """Return a text on the leader, its size and score, and its rivals.

    It says how far others may get ahead of it.

    Args:
        best: the leader.
        sign: 1 if larger scores are better, else -1.
    """
    text, rival = f"{label(best)} at {best.size:,}: ", best.rival_bound
    if rival is None:
        return f"{text}{said(best.score)}"
    return f"{text}{said(best.score, rival)}, gap {said(sign * (rival - best.score))}"
