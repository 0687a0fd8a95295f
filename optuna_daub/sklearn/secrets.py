"""Passwords in the URLs of storages: never shown, never pickled with a fitted search."""

from __future__ import annotations

import re
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.storages import InMemoryStorage

from optuna_daub.study import log


_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*):([^/\s]*|\S*)@")
"""User and password between a URL's scheme and its host. A password may contain @ or /."""

_IN_QUERY = re.compile(r"(?i)([?&](?:password|passwd|pwd|sslpassword|token|secret)=)[^&\s]+")


def masked(url: str) -> str:
    """Return a URL with *** in place of a password.

    >>> masked("postgresql://ann:hunter2@db.example.org/studies")
    'postgresql://ann:***@db.example.org/studies'
    >>> masked("sqlite:///study.db")
    'sqlite:///study.db'
    """
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


class StorageURL(str):
    """The URL of a storage, shown without its password."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the URL without its password."""
        return repr(masked(self))

    def __copy__(self) -> StorageURL:
        """Return itself, as strings do."""
        return self

    def __deepcopy__(self, _: Any) -> StorageURL:
        """Return itself: scikit-learn's `clone` checks that it got the same object."""
        return self


def url_or_storage(storage: Any) -> Any:
    """Return what a pickled model keeps of a storage.

    This is its URL with the password masked, so loading opens no connection. A storage without a
    URL is returned itself.

    >>> url_or_storage("postgresql://ann:hunter2@db/studies")
    'postgresql://ann:***@db/studies'
    """
    url = storage
    if not isinstance(storage, str | None):
        behind = getattr(storage, "_backend", storage)  # behind Optuna's cache
        behind = getattr(behind, "_backend", behind)  # behind a journal in Redis
        url = getattr(behind, "url", None) or getattr(behind, "_url", None)
    return masked(url) if isinstance(url, str) else storage


def in_memory(study: optuna.Study) -> optuna.Study:
    """Return a study in memory: a copy, or the study itself if it is there.

    The copy has its sampler and pruner.
    """
    if type(log.storage_of(study)) is InMemoryStorage:
        return study
    storage: BaseStorage = InMemoryStorage()
    study_id = storage.create_new_study(study.directions, study.study_name)
    for name, value in log.study_attrs(study).items():
        storage.set_study_system_attr(study_id, name, value)
    for name, value in study.user_attrs.items():
        storage.set_study_user_attr(study_id, name, value)
    for trial in study.get_trials(deepcopy=False):
        storage.create_new_trial(study_id, template_trial=trial)
    return optuna.Study(study.study_name, storage, sampler=study.sampler, pruner=study.pruner)
