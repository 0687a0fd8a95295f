"""Targets: classes or amounts, what is said of it, and what cannot be predicted."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optuna_daub.tabular.reading import TableError
from optuna_daub.tabular.target import checked_target


pandas = pytest.importorskip("pandas")

N = 60
HALF = N // 2


def frame(values: Any) -> Any:
    return pandas.DataFrame({"x": range(N), "y": values})


CLASSES = {
    "text": ["no", "yes"] * HALF,
    "category": pandas.Categorical(["no", "yes"] * HALF),
    "category of numbers": pandas.Categorical([1.5, 2.5] * HALF),
    "string": pandas.array(["no", "yes"] * HALF, dtype="string"),
    "arrow": pandas.array(["no", "yes"] * HALF, dtype="string[pyarrow]"),
    "bool": [False, True] * HALF,
    "objects": np.array([False, True] * HALF, dtype=object),
    "boolean": pandas.array([False, True] * HALF, dtype="boolean"),
    "few whole numbers": [1, 7] * HALF,
    "few whole floats": [0.0, 1.0] * HALF,
    "Int64": pandas.array([0, 1] * HALF, dtype="Int64"),
    "words and numbers": ["no", 3] * HALF,
}
AMOUNTS = {
    "float": np.linspace(0, 1, N),
    "two fractions": [0.5, 1.5] * HALF,
    "many whole numbers": np.arange(N),
    "28 whole numbers": [i % 28 for i in range(N)],
    "Decimal": [Decimal(i) / 8 for i in range(N)],
    "Fraction": [Fraction(i, 8) for i in range(N)],
    "Float64": pandas.array(np.linspace(0, 1, N), dtype="Float64"),
    "arrow": pandas.array(np.linspace(0, 1, N), dtype="double[pyarrow]"),
    "timedelta": pandas.to_timedelta(range(N), unit="min"),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_seen_and_come_back_as_they_were(kind: str) -> None:
    target = checked_target(frame(CLASSES[kind]), "y")
    assert target.task == "classification"
    assert len(target.classes) == 2
    back = target.classes[target.values]
    assert [*map(str, back)] == [*map(str, CLASSES[kind])]


@pytest.mark.parametrize("kind", AMOUNTS)
def test_amounts_are_seen(kind: str) -> None:
    target = checked_target(frame(AMOUNTS[kind]), "y")
    assert target.task == "regression"
    assert target.values.dtype == np.float64
    assert np.all(np.diff(target.values[:20]) != 0)


@pytest.mark.parametrize("kind", ["many whole numbers", "28 whole numbers"])
def test_the_guess_is_said_with_the_way_out(kind: str) -> None:
    said = checked_target(frame(AMOUNTS[kind]), "y").notes[0]
    assert "taken for amounts" in said
    assert 'task="classification"' in said


def test_the_task_can_be_given() -> None:
    values = [i % 28 for i in range(N)]
    classes = checked_target(frame(values), "y", "classification")
    assert (classes.task, len(classes.classes)) == ("classification", 28)
    amounts = checked_target(frame([1, 7] * HALF), "y", "regression")
    assert {*amounts.values} == {1.0, 7.0}
    assert "as asked" in amounts.notes[0]


def test_rows_without_a_target_are_left_out_and_counted() -> None:
    values = np.linspace(0, 1, N)
    values[[3, 5]], values[7] = np.nan, np.inf
    target = checked_target(frame(values), "y")
    assert np.flatnonzero(~target.kept).tolist() == [3, 5, 7]
    assert len(target.values) == N - 3
    assert "3 rows without a value of `y` left out." in target.notes


def test_classes_of_one_row_are_left_out_and_named() -> None:
    target = checked_target(frame(["perhaps", *["no", "yes"] * (HALF - 1), "no"]), "y")
    assert [*target.classes] == ["no", "yes"]
    assert not target.kept[0]
    assert any("(perhaps)" in note for note in target.notes)


REFUSED = {
    "dates": (pandas.date_range("2020", periods=N), "has dates, such as 2020-01-01"),
    "days": ([datetime.date(2020, 1, 1)] * N, "has dates"),
    "periods": (pandas.period_range("2020", periods=N), "has dates"),
    "lists": ([["a"]] * N, "has values of list"),
    "complex": (np.ones(N) * 1j, "of type complex128"),
    "nothing": ([None] * N, "is empty in every row"),
    "infinite": ([np.inf] * N, "are infinite"),
    "one": ([3] * N, "`y` is 3 in every row"),
    "identifiers": ([f"id{i}" for i in range(N)], "60 different ones in 60 rows"),
    "few": ([1.5, 2.5, *[None] * (N - 2)], "at least 20 rows"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_predicted_is_said_in_one_sentence(kind: str) -> None:
    values, match = REFUSED[kind]
    with pytest.raises(TableError, match=match) as error:
        checked_target(frame(values), "y")
    assert "\n" not in str(error.value)


def test_text_is_no_amount() -> None:
    with pytest.raises(TableError, match=r'`task="regression"` needs numbers'):
        checked_target(frame(CLASSES["text"]), "y", "regression")


@pytest.mark.parametrize(("name", "hint"), [("Y", "Did you mean 'y'"), ("price", "There are")])
def test_a_column_that_is_not_there_is_named(name: str, hint: str) -> None:
    with pytest.raises(TableError, match=hint):
        checked_target(frame([1, 7] * HALF), name)


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match=r"`task` must be .* but got 'ranking'"):
        checked_target(frame([1, 7] * HALF), "y", "ranking")  # type: ignore[arg-type]
