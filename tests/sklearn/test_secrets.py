"""No password of a storage is shown, or stored with a model."""

from __future__ import annotations

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.storages.journal import JournalFileBackend
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.sklearn import secrets


SECRET = "hunter2s3cret"
SPACE = {"var_smoothing": [1e-9, 1e-3, 0.1]}
X, Y = make_classification(240, 4, random_state=0)
URLS = [
    f"postgresql+psycopg2://daub:{SECRET}@127.0.0.1:5599/daub",
    f"mysql://daub:{SECRET}@host/daub?charset=utf8",
    f"redis://:{SECRET}@host:6379/0",
    f"postgresql://daub:{SECRET}@1@host/daub",
    f"postgresql://daub:1/{SECRET}@host/daub",
    f"postgresql://daub:1/2@{SECRET}@host/daub",
    f"postgresql://host/daub?user=daub&password={SECRET}",
    f"postgresql://daub@host/daub?sslmode=require&sslpassword={SECRET}",
]


def _search(storage: Any) -> DataAllocationSearchCV:
    return DataAllocationSearchCV(GaussianNB(), SPACE, cv=2, storage=storage, random_state=0)


@pytest.mark.parametrize("url", URLS)
def test_what_is_shown_has_no_password(url: str) -> None:
    search, later = _search(url), _search(None).set_params(storage=url)
    for shown in (search, clone(search), make_pipeline(search), later):
        assert SECRET not in repr(shown)
        assert SECRET not in str(shown)
        assert SECRET not in shown._repr_html_()
        assert "***" in repr(shown)


@pytest.mark.parametrize("url", [*URLS, "sqlite:///study.db", None])
def test_the_storage_is_what_was_passed(url: str | None) -> None:
    search = _search(url)
    assert search.storage == url
    assert search.get_params()["storage"] == url
    assert clone(search).storage == url
    assert copy.deepcopy(search).storage == url
    sent = pickle.loads(pickle.dumps(search))  # to a process that is to fit it
    assert sent.storage == url
    assert SECRET not in repr(sent)


def test_urls_without_a_password_are_left_alone() -> None:
    for url in ("sqlite:///study.db", "postgresql://daub@host/x", "sqlite:////a:b@c/study.db"):
        assert secrets.masked(url) == url
        assert type(_search(url).storage) is str
    storage = optuna.storages.InMemoryStorage()
    assert _search(storage).storage is storage


class _Elsewhere(optuna.storages.InMemoryStorage):
    """A storage that is reached by a URL."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def __reduce__(self) -> Any:
        return type(self), (self.url,)


@pytest.mark.parametrize("url", URLS)
def test_a_fitted_search_is_stored_without_the_password(url: str) -> None:
    search = _search(_Elsewhere(url)).fit(X, Y)
    stored = pickle.dumps(search)
    assert SECRET.encode() not in stored
    loaded = pickle.loads(stored)
    assert SECRET not in repr(loaded.get_params())
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    assert best_learner(loaded.study_) == best_learner(search.study_)
    assert learning_curves(loaded.study_) == learning_curves(search.study_)
    assert search.storage.url == url  # which goes on as it was
    assert search.study_._storage is search.storage


@pytest.mark.parametrize("kind", ["url", "database", "journal"])
def test_a_fitted_search_is_loaded_without_its_storage(kind: str, tmp_path: Path) -> None:
    (folder := tmp_path / "there").mkdir()
    url = f"sqlite:///{folder}/study.db"
    storage: Any = url
    if kind == "database":
        storage = optuna.storages.RDBStorage(url)
    if kind == "journal":
        file = JournalFileBackend(str(folder / "journal.log"))
        storage = optuna.storages.JournalStorage(file)
    search = _search(storage).set_params(n_candidates=1).fit(X, Y)
    stored = pickle.dumps(search)
    if kind != "journal":
        search.study_._storage._backend.engine.dispose()
    shutil.rmtree(folder)
    loaded = pickle.loads(stored)
    assert kind == "journal" or loaded.storage == url
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    assert best_learner(loaded.study_).score == loaded.best_score_
    assert not folder.exists()


def test_a_model_is_pickled_though_its_storage_is_gone(tmp_path: Path) -> None:
    search = _search(f"sqlite:///{tmp_path}/study.db").set_params(n_candidates=1).fit(X, Y)
    search.study_._storage._backend.engine.dispose()
    (tmp_path / "study.db").unlink()
    with pytest.warns(UserWarning, match="has no `study_`, as its storage cannot be read"):
        stored = pickle.dumps(search)
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), search.predict(X))
    assert hasattr(search, "study_")
