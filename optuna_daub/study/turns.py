"""Turns: what a process remembers of a trial, and its answers to an objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optuna

from optuna_daub.study.records import Run


@dataclass(frozen=True)
class Assigned:
    """A trial of this process: it runs a learner, or is idle."""

    run: Run
    explores: bool = False
    """True if it avoids a point that the base sampler would repeat (see `exploring`)."""
    point: Mapping[str, Any] | None = None
    """Parameters that a new learner takes from an earlier study, or None."""


@dataclass(frozen=True)
class Turn:
    """The size that an objective was given to train on, with the time (`time.perf_counter`)."""

    size: int
    since: float
    steps: frozenset[int] = frozenset()
    """Steps that the trial may have: all sizes given so far, and those that it inherited. Empty
    for another library's sampler: then no worker takes over the learner."""
    is_reported: bool = False


@dataclass(frozen=True)
class Go:
    """Answer to an objective: it is still the learner's turn, to train on `size` examples."""

    size: int


@dataclass(frozen=True)
class End:
    """Answer to an objective: the run is over, with the reason as a sentence for users."""

    reason: str


class TurnOverError(optuna.TrialPruned):
    """Raised in an objective whose learner's turn is over.

    A plain `TrialPruned` is the objective's own, and rejects the parameters.
    """


@dataclass(frozen=True)
class Patience:
    """Limits of waiting: seconds for other workers, proposals for the base sampler."""

    recent: float = 60.0
    """Seconds for which a worker counts as present after its last sign of life. Between two trials
    it gives none."""
    checked: float = 1.0
    """Seconds between two checks that a run is still the worker's own: a check takes milliseconds,
    and no worker is declared dead faster."""
    rival: float = 1.0
    """Seconds for which the lower trial number waits for a rival to step back. A living rival does
    so within two looks of some milliseconds."""
    proxied: float = 3600.0
    """Seconds of silence allowed to a run behind a gRPC proxy, which passes no heartbeat."""
    abandoned: float = 30.0
    """Seconds for which an enqueued trial may lack a learner; normally it takes milliseconds."""
    declined: int = 100
    """Number of new learners declined in a row that ends the study: nothing that the base sampler
    proposes fits into the time left."""
