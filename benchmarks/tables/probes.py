"""Learning curves that are measured when a method asks for them, and kept.

No learner is trained twice on one size: every probe is a row of a file, and methods that ask for
the same one get the same scores and the same CPU seconds. So they differ by their decisions only.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.rows import Run
from benchmarks.rows import read_rows
from benchmarks.rows import run_all
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Policy
from optuna_daub.core import replay


@dataclass(frozen=True)
class Split:
    """Examples in random order, to train on and held out; samples are the first so many."""

    X: Any
    y: NDArray[Any]
    X_valid: Any
    y_valid: NDArray[Any]


@dataclass(frozen=True)
class Trace:
    """The trainings and the choice of a policy."""

    learner: int
    """Id of the chosen learner."""
    probes: tuple[tuple[int, int], ...]
    """Learner and training size of every training, in order."""
    n_identifying: int
    """Number of trainings while more than one learner was left."""


@dataclass(frozen=True)
class Bench:
    """Learners on one data set, and all that was measured of them."""

    data: str
    """Name of the data set."""
    full_size: int
    """N, the number of examples of the whole training set."""
    n_validation: int
    """Number of all examples held out."""
    measure: Callable[[int, int], Mapping[str, Any]]
    """Trains a learner, by its number, on so many examples: `trained` with its first arguments."""
    path: Path
    """The file of probes; probes of other data sets may be in it too."""
    rows: dict[tuple[int, int], Mapping[str, Any]]
    """The probes known, by learner and training size."""

    def probe(self, learner: int, size: int) -> Mapping[str, Any]:
        """Return what training a learner on so many examples gives, trained if not known."""
        if (learner, size) not in self.rows:
            key = {"data": self.data, "learner": learner, "size": size}
            run = Run(key, partial(self.measure, learner, size))
            (self.rows[learner, size],) = run_all([run], self.path)
        return self.rows[learner, size]

    def score(self, learner: int) -> float:
        """Return the score of a learner trained on all the data; minus infinity if it cannot."""
        row = self.probe(learner, self.full_size)
        return -np.inf if row["error"] else float(row["score"])

    def seconds(
        self, probes: Iterable[tuple[int, int]], *, with_training_score: bool = False
    ) -> float:
        """Return the CPU seconds of probes: fit and validation, and training scores if needed."""
        parts = ["fit_seconds", "validation_seconds"]
        parts += ["training_score_seconds"] * with_training_score
        return float(sum(self.probe(*probe).get(part, 0.0) for probe in probes for part in parts))

    def follow(self, policy: Policy, learners: Iterable[int]) -> Trace:
        """Follow a policy until it names its choice."""
        left, probes, n_identifying = set(learners), [], 0
        curves = [_MeasuredCurve(i, measure=partial(self._observation, i)) for i in sorted(left)]
        for decision in replay(policy, curves):
            match decision:
                case Extend(learner, size):
                    probes.append((learner, size))
                    n_identifying += len(left) > 1
                case Drop(learner):
                    left.discard(learner)
                case Finish(int(learner)):
                    return Trace(learner, tuple(probes), n_identifying)
        raise AssertionError(f"no learner was chosen on {self.data}")

    def _observation(self, learner: int, size: int) -> Observation | None:
        row = self.probe(learner, size)
        if row["error"]:
            return None
        seconds = self.seconds([(learner, size)], with_training_score=True)
        return Observation(size, row["score"], row["training_score"], row["n_validation"], seconds)


def known_probes(path: Path, data: str) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Return the probes of a data set that a file has, by learner and training size."""
    keyed = ((row["key"], row) for row in read_rows(path))
    return {(key["learner"], key["size"]): row for key, row in keyed if key["data"] == data}


def trained(
    split: Split,
    build: Callable[[int], Any],
    validation_factor: int | None,
    learner: int,
    size: int,
) -> dict[str, Any]:
    """Train a learner and return scores and CPU seconds; one that fails costs what it took.

    Args:
        split: the data.
        build: from the number of a learner to an unfitted estimator.
        validation_factor: validation examples per training example; None for all of them.
        learner: its number.
        size: training examples.
    """
    n_valid = len(split.y_valid)
    if validation_factor is not None:
        n_valid = min(n_valid, validation_factor * size)
    training = split.X[:size], split.y[:size]
    validation = split.X_valid[:n_valid], split.y_valid[:n_valid]
    model, begin = clone(build(learner)), time.process_time()
    row: dict[str, Any] = {"score": None, "training_score": None, "n_validation": n_valid}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of learners that do not suit the data
        try:
            _, row["fit_seconds"] = _timed(model.fit, *training)
            row["score"], row["validation_seconds"] = _timed(model.score, *validation)
            row["training_score"], row["training_score_seconds"] = _timed(model.score, *training)
        except Exception as error:  # whatever an estimator raises
            return {**row, "fit_seconds": time.process_time() - begin, "error": repr(error)}
    return {**row, "error": ""}


def _timed(step: Callable[..., Any], X: Any, y: NDArray[Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = step(X, y)
    return result, time.process_time() - begin


@dataclass(frozen=True)
class _MeasuredCurve(LearningCurve):
    """A curve whose points are measured when they are looked at."""

    measure: Callable[[int], Observation | None] = lambda size: None

    def at(self, size: int) -> Observation | None:
        return self.measure(size)
