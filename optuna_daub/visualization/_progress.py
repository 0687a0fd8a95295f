"""How far a study is, on one line of the terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from tqdm import tqdm

from optuna_daub.study.pruner import AllocationPruner
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import best_learner
from optuna_daub.visualization._records import label
from optuna_daub.visualization._records import sign_of


BAR_FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt} examples {elapsed}<{remaining}"


_SHOWING = threading.Lock()
"""Held by the thread that updates a bar; not in the callback, which is sent to workers."""


class ProgressBar:
    """Show who leads by how much, and what was spent of how much, while a study runs.

    A callback of `study.optimize`, in place of `show_progress_bar=True`, which knows no end of a
    study without `n_trials`. The bar counts training examples; its end is what is spent once the
    leader has been trained on all the data, if it stays the leader. Nothing is shown where
    stderr is no terminal. Optuna's own log lines break the bar: turn them off with
    `optuna.logging.set_verbosity(optuna.logging.WARNING)`.

    The gap is how far the best bound of the other learners is ahead of the leader's score; once
    the leader is trained on all the data and the gap is below 0, none can overtake it.

    Args:
        every: seconds between two updates, at least 0; to read the state of a study takes some
            milliseconds.

    Raises:
        ValueError: where `every` < 0.

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
        if not every >= 0:
            raise ValueError(f"`every` must be at least 0 seconds, but got {every}.")
        self._every = every
        self._next = 0.0
        self._bar: Any = None
        self._is_over = False

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Update the bar, if it is time."""
        is_ending = study._stop_flag
        if not is_ending and time.monotonic() < self._next:
            return
        with _SHOWING:
            self._next = time.monotonic() + self._every
            if self._is_over and is_ending:
                return  # other threads end their runs after the study is over
            if self._bar is None or self._is_over:
                self._bar = _new_bar()
            if not self._bar.disable:
                _show(self._bar, study)
            if is_ending:
                self._bar.close()
            self._is_over = is_ending


def _new_bar() -> Any:
    """Return a bar on stderr; a disabled one where that is no terminal."""
    return tqdm(disable=None, bar_format=BAR_FORMAT, unit_scale=True, dynamic_ncols=True)


def _show(bar: Any, study: optuna.Study) -> None:
    best = best_learner(study)
    if best is None:
        return
    assert isinstance(study.pruner, AllocationPruner)  # `best_learner` has seen to it
    bar.initial = bar.initial or best.examples  # spent before: no measure of the speed
    bar.n = best.examples
    bar.total = projected_examples(best, study.pruner.policy.sizes)
    bar.set_description_str(standing(best, sign_of(study)))


def projected_examples(best: BestLearner, sizes: Sequence[int]) -> int:
    """Return what is spent in all once the leader is trained on all the data.

    The least that the study can take, as long as the leader does not change.
    """
    to_come = 0 if best.is_final else sum(size for size in sizes if size > best.size)
    return best.examples + to_come


def standing(best: BestLearner, sign: int) -> str:
    """Return who leads, its size and score, and how far others may come out ahead of it.

    Args:
        best: the leader.
        sign: 1 where larger scores are better, else -1.
    """
    text = f"{label(best)} at {best.size:,}: {best.score:.4f}"
    if best.rival_bound is None:
        return text
    return f"{text}, gap {sign * (best.rival_bound - best.score):.4f}"
