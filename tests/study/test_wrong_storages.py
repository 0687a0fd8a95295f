"""A storage that cannot be opened is one sentence, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

from optuna_daub import tabular
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.study.storages import opened


X = np.random.default_rng(0).random((200, 2))
Y = np.arange(200) % 2


class Untrained(DummyClassifier):  # type: ignore[misc]
    """A classifier that must not be trained."""

    def fit(self, *_: Any) -> None:
        raise AssertionError("it was trained")


def search(storage: Any) -> None:
    DataAllocationSearchCV(Untrained(), {"constant": [0, 1]}, storage=storage).fit(X, Y)


def fit_table(storage: Any) -> None:
    tabular.fit(pd.DataFrame(X).add_prefix("x").assign(y=Y), target="y", storage=storage)


def tune(storage: Any) -> None:
    lgb = pytest.importorskip("lightgbm")
    from optuna_daub.lightgbm import tune

    rows = lgb.Dataset(X, Y)
    held_out = rows.create_valid(X[:50], Y[:50])
    tune({"objective": "binary"}, rows, held_out, seconds=1, storage=storage)


FRONT_DOORS = {"search": search, "tabular.fit": fit_table, "lightgbm.tune": tune, "opened": opened}


@pytest.mark.parametrize("door", FRONT_DOORS.values(), ids=FRONT_DOORS)
@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("yes", "cannot be opened: ArgumentError"),
        ("study.db", "cannot be opened: ArgumentError"),
        ("", "cannot be opened: ArgumentError"),
        ("sqlite:////no/where.db", "cannot be opened: .*unable to open database file"),
        ("nothing://ann:hunter2@host/studies", "cannot be opened"),
        (Path("study.db"), r"but got PosixPath\('study.db'\)"),
        (True, "but got True"),
        (optuna.storages, "but got <module"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_one_sentence(
    door: Callable[[Any], object], storage: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        door(storage)
    text = str(raised.value)
    assert text.startswith('`storage` must be a URL such as "sqlite:///study.db", a storage of')
    assert "hunter2" not in text
    assert "\n" not in text


def test_storages_of_optuna_are_taken_as_they_are(tmp_path: Path) -> None:
    own = optuna.storages.InMemoryStorage()
    assert opened(own) is own
    url = f"sqlite:///{tmp_path}/study.db"
    DataAllocationSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, cv=2, storage=url).fit(X, Y)
    assert len(optuna.get_all_study_names(url)) == 1
