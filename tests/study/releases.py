"""Names that differ between Optuna's releases: heartbeats, retries, locks of journal files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import optuna
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileSymlinkLock
from optuna.trial import FrozenTrial


Callback = Callable[[optuna.Study, FrozenTrial], None]
"""Function that a storage calls for a trial whose heartbeat has stopped."""


def retry(**options: Any) -> Callback:
    """Return Optuna's callback that enqueues such a trial anew."""
    name = "RetryHeartbeatStaleTrialCallback"
    if not hasattr(optuna.storages, name):
        name = "RetryFailedTrialCallback"  # before Optuna 4.9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return getattr(optuna.storages, name)(**options)  # type: ignore[no-any-return]


def heartbeat(seconds: int, grace_period: int, callback: Callback | None = None) -> dict[str, Any]:
    """Return the arguments of `RDBStorage` for a heartbeat every so many seconds."""
    name = "heartbeat_stale_trial_callback"
    if name not in signature(RDBStorage).parameters:
        name = "failed_trial_callback"  # before Optuna 4.9
    return {"heartbeat_interval": seconds, "grace_period": grace_period, name: callback}


def lock(path: str, grace_period: int) -> JournalFileSymlinkLock:
    """Return the lock of a journal file, given up after some seconds where Optuna allows that."""
    if "grace_period" not in signature(JournalFileSymlinkLock).parameters:
        return JournalFileSymlinkLock(path)  # 4.0, of which a killed worker's lock stays
    return JournalFileSymlinkLock(path, grace_period=grace_period)
