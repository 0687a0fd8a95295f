"""Storages that users name by a URL."""

from __future__ import annotations

from typing import Any

from optuna.storages import BaseStorage
from optuna.storages import get_storage

from optuna_daub.core.checks import brief
from optuna_daub.study.messages import message_of


def opened(storage: Any) -> BaseStorage:
    """Return the storage of a search, in memory for None.

    Raises:
        ValueError: if it is neither a storage of Optuna nor the URL of one.
    """
    rule = '`storage` must be a URL such as "sqlite:///study.db", a storage of Optuna or None'
    if not isinstance(storage, str | BaseStorage | None):
        raise ValueError(f"{rule}, but got {brief(storage)}.")
    try:
        return get_storage(storage)
    except Exception as error:  # each database has its own; the URL may hold a password
        raise ValueError(f"{rule}, but this one cannot be opened: {message_of(error)}") from error
