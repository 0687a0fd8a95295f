"""Columns of any kind become finite numbers or NaN, the same before and after a file."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from optuna_daub.tabular.preparation import Preparation
from optuna_daub.tabular.table import TableError


pytest.importorskip("skrub")
pandas = pytest.importorskip("pandas")

N = 120
RNG = np.random.default_rng(0)
WORDS = RNG.choice(["red", "blue"], N)

COLUMNS: dict[str, Any] = {
    "int": RNG.integers(0, 9, N),
    "float": RNG.normal(size=N),
    "bool": RNG.integers(0, 2, N) > 0,
    "Int64": pandas.array(RNG.choice([1, 2, None], N), dtype="Int64"),
    "boolean": pandas.array(RNG.choice([True, False, None], N), dtype="boolean"),
    "string": pandas.array(RNG.choice(["a", "b", None], N), dtype="string"),
    "category": pandas.Categorical(WORDS),
    "category of numbers": pandas.Categorical(RNG.integers(0, 4, N)),
    "objects": np.array([True, False, None] * (N // 3), dtype=object),
    "zoned": pandas.date_range("2020", periods=N, tz="UTC"),
    "timedelta": pandas.to_timedelta(RNG.integers(0, 9, N), unit="h"),
    "period": pandas.period_range("2020", periods=N),
    "decimal": [Decimal(i) / 4 for i in range(N)],
    "date": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(N)],
    "time": [datetime.time(i % 24, 5) for i in range(N)],
    "mixed": ["a", 1, None] * (N // 3),
    "inf": [np.inf, -np.inf, *RNG.normal(size=N - 2)],
    "text": [f"a sentence with {i} words" for i in range(N)],
    "written dates": [f"2020-01-{1 + i % 28:02}" for i in range(N)],
    "written numbers": [f"{i}.5" for i in range(N)],
    "question marks": ["?", "3", "4"] * (N // 3),
    "sparse": pandas.arrays.SparseArray(RNG.integers(0, 2, N)),
    "arrow": pandas.array(RNG.normal(size=N), dtype="double[pyarrow]"),
    "half missing": [1.5, None] * (N // 2),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_becomes_numbers(kind: str, tmp_path: Any) -> None:
    table = pandas.DataFrame({"odd": COLUMNS[kind], "x": RNG.normal(size=N)})
    preparation = clone(Preparation(["odd", "x"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = preparation.fit_transform(table)
        joblib.dump(preparation, tmp_path / "p.joblib")
        again = joblib.load(tmp_path / "p.joblib").transform(table[["x", "odd"]].head(50))
    assert matrix.dtype == np.float32
    assert matrix.shape[0] == N
    assert matrix.shape[1] >= 2
    assert not np.isinf(matrix).any()
    assert np.isfinite(matrix).any(axis=0).all(), "no column is lost"
    if kind != "text":  # whose parts are of a matrix factorization
        np.testing.assert_allclose(again, matrix[:50], rtol=1e-5)


def test_words_become_codes_whose_places_are_told() -> None:
    table = pandas.DataFrame({"x": RNG.normal(size=N), "w": WORDS, "d": COLUMNS["zoned"]})
    preparation = Preparation(["x", "w", "d"])
    matrix = preparation.fit_transform(table)
    (at,) = preparation.categories_
    assert {*matrix[:, at]} == {0.0, 1.0}
    strange = preparation.transform(table.head(1).assign(w="green"))
    assert strange[0, at] == -1.0


def test_numbers_that_come_as_words_later_are_numbers() -> None:
    table = pandas.DataFrame({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3]})
    preparation = Preparation(["a", "b"]).fit(table)
    later = pandas.DataFrame({"a": ["4.5", "unknown"], "b": [None, 7]})
    with pytest.warns(UserWarning, match="`a` was a column of numbers .* 1 of 2 cells .*unknown"):
        matrix = preparation.transform(later)
    np.testing.assert_array_equal(matrix, [[4.5, np.nan], [np.nan, 7.0]])


def test_words_that_come_as_numbers_later_are_the_same_words() -> None:
    table = pandas.DataFrame({"room": ["12", "7", "A3", None] * 10, "x": range(40)})
    preparation = Preparation(["room", "x"])
    before = preparation.fit_transform(table)
    for rooms in ([12.0, 7.0, None], [12, 7, 7]):
        later = preparation.transform(pandas.DataFrame({"room": rooms, "x": [0, 1, 2]}))
        np.testing.assert_array_equal(later[:2, 1], before[:2, 1])


def test_infinities_are_counted() -> None:
    table = pandas.DataFrame({"odd": COLUMNS["inf"], "x": RNG.normal(size=N)})
    preparation = Preparation(["odd", "x"])
    preparation.fit(table)
    assert preparation.n_infinite_ == 2


def test_a_column_that_is_missing_later_is_named() -> None:
    table = pandas.DataFrame({"a": range(N), "b": range(N)})
    preparation = Preparation(["a", "b"]).fit(table)
    with pytest.raises(TableError, match=r"\['b'\] is missing"):
        preparation.transform(table[["a"]])
