"""Targets: classes or amounts, what is said of it, and what cannot be predicted."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import checked_target


pandas = pytest.importorskip("pandas")

N = 60
HALF = N // 2


def frame(values: Any) -> Any:
    return pandas.DataFrame({"x": range(len(values)), "y": values})


def target_of(values: Any, task: Any = None) -> Any:
    return checked_target(frame(values), "y", task)


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
    "category of words and numbers": pandas.Categorical(["no", 3] * HALF),
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
}
DAYS = [datetime.date(2020, 2, 1) + datetime.timedelta(days=i) for i in range(N)]
DATES = {
    "datetime64": pandas.date_range("2020-02-01", periods=N),
    "nanoseconds": pandas.date_range("2020-02-01", periods=N).astype("datetime64[ns]"),
    "time zone": pandas.date_range("2020-02-01", periods=N, tz="UTC"),
    "other time zone": pandas.date_range("2020-02-01 01:00", periods=N, tz="Africa/Lagos"),
    "days": DAYS,
    "datetimes": [datetime.datetime.combine(day, datetime.time()) for day in DAYS],
    "zones": [datetime.datetime.combine(d, datetime.time(), datetime.timezone.utc) for d in DAYS],
    "periods": pandas.period_range("2020-02-01", periods=N),
    "arrow dates": pandas.array(DAYS, dtype="date32[pyarrow]"),
    "arrow": pandas.array(pandas.to_datetime(DAYS), dtype="timestamp[ms][pyarrow]"),
    "text": [str(day) for day in DAYS],
    "text and midnight": [f"{day}T00:00:00Z" for day in DAYS],
    "text of arrow": pandas.array([*map(str, DAYS)], dtype="string[pyarrow]"),
    "days first": [f"{day:%d.%m.%Y}" for day in DAYS],
    "months first and midnight": [f"{day:%m/%d/%Y 12:00 AM}" for day in DAYS],
    "names of months": [f"{day:%b %d, %Y}" for day in DAYS],
}
"""The days of February and March 2020, each kind of column that holds them."""
DURATIONS = {
    "timedelta": pandas.to_timedelta(range(N), unit="min"),
    "objects": np.array([datetime.timedelta(minutes=i) for i in range(N)], dtype=object),
    "objects of NumPy": pandas.Series([np.timedelta64(i, "m") for i in range(N)], dtype=object),
    "arrow": pandas.array(
        pandas.to_timedelta(range(N), unit="min").as_unit("us"), dtype="duration[us][pyarrow]"
    ),
    "text": [str(datetime.timedelta(days=1, minutes=i)) for i in range(N)],
    "words": [f"1d {i}m" for i in range(N)],
    "ISO": [f"P1DT{i}M" for i in range(N)],
}
"""Whole minutes, text with a day more, each kind of column that holds them."""


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_seen_and_come_back_as_they_were(kind: str) -> None:
    target = target_of(CLASSES[kind])
    assert (target.task, len(target.classes)) == ("classification", 2)
    assert [*map(str, target.classes[target.values])] == [*map(str, CLASSES[kind])]


@pytest.mark.parametrize("classes", [(1, 2.5), ((1, 2), (3, 4)), (Decimal(1), Decimal(2))])
def test_categories_that_have_an_order_stay_what_they_are(classes: tuple[object, ...]) -> None:
    """Only words beside numbers become text: others are given back by predictions."""
    names = pandas.Index([*classes, "unused"], dtype=object, tupleize_cols=False)
    found = target_of(pandas.Categorical.from_codes([0, 1] * HALF, names)).classes
    assert [(type(one), one) for one in found] == [(type(one), one) for one in classes]


@pytest.mark.parametrize("kind", AMOUNTS)
def test_amounts_are_seen(kind: str) -> None:
    target = target_of(AMOUNTS[kind])
    assert (target.task, target.values.dtype) == ("regression", np.float64)
    assert np.all(np.diff(target.values[:20]) != 0)


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_days_and_come_back_as_dates(kind: str) -> None:
    target = target_of(DATES[kind])
    assert (target.task, target.values.tolist()) == ("regression", [*range(N)])
    assert "60 different dates, predicted by days since 2020-02-01" in target.notes[0]
    assert 'task="classification" for classes' in target.notes[0]
    assert target.times.back(target.values + 0.3).astype(object).tolist() == DAYS


@pytest.mark.parametrize("kind", DURATIONS)
def test_durations_are_seconds_and_come_back(kind: str) -> None:
    target = target_of(DURATIONS[kind])
    day = 86_400 * isinstance(DURATIONS[kind], list)
    assert target.task == "regression"
    assert target.values.tolist() == [60 * i + day for i in range(N)]
    assert (target.times.back(target.values - day) == DURATIONS["timedelta"].to_numpy()).all()


def test_dates_with_a_time_of_day_come_back_with_it() -> None:
    hours = pandas.Series(pandas.date_range("2020-02-01 07:30", periods=N, freq="h"))
    hours[3] = None
    target = target_of(hours)
    assert np.flatnonzero(~target.kept).tolist() == [3]
    assert (target.times.back(target.values) == hours.dropna().to_numpy()).all()


@pytest.mark.parametrize("far", [-np.inf, -1e300, 1e300, np.inf])
def test_a_date_that_no_clock_reaches_is_the_last_one(far: float) -> None:
    (back,) = target_of(DATES["datetime64"]).times.back(np.array([far]))
    assert (back > np.datetime64("2020")) == (far > 0)
    assert not np.isnat(back)


@pytest.mark.parametrize("kind", ["datetime64", "days", "text", "time zone", "days first"])
@pytest.mark.parametrize("count", [2, HALF])
def test_dates_may_be_classes(kind: str, count: int) -> None:
    values = [*DATES[kind]][:count] * (N // count)
    target = target_of(values, "classification")
    assert (target.task, len(target.classes), target.times) == ("classification", count, None)
    if isinstance(values[0], str):
        assert sorted(target.classes) == sorted({*values})


CLASSES_OF: dict[str, tuple[Any, list[str]]] = {
    "the days of two surveys": (["2020-02-01", "2020-03-01"] * HALF, ["2020-02-01", "2020-03-01"]),
    "one row of a class": (["perhaps", *["no", "yes"] * (HALF - 1), "no"], ["no", "yes"]),
    "few numbers and a word": (["1", "2"] * (HALF - 1) + ["?"] * 2, ["1", "2", "?"]),
    "a word as of missing cells": (["None", "Nuts", None] * 20, ["None", "Nuts"]),
    # In a file they are written 0 and 1; only pandas makes them 0.0 and 1.0.
    "whole numbers beside gaps": ([0, 1, None] * 20, ["0", "1"]),
    "whole floats": ([0.0, 1.0] * HALF, ["0.0", "1.0"]),
}


@pytest.mark.parametrize("kind", CLASSES_OF)
def test_classes_are_called_as_they_are_written(kind: str) -> None:
    values, classes = CLASSES_OF[kind]
    assert sorted(map(str, target_of(values).classes)) == classes


NOTES: dict[str, tuple[Any, str]] = {
    "many whole numbers": (AMOUNTS["many whole numbers"], 'amounts.*task="classification"'),
    "28 whole numbers": (AMOUNTS["28 whole numbers"], 'taken for amounts.*task="classification"'),
    "one row of a class": (CLASSES_OF["one row of a class"][0], r"\(perhaps\)"),
    "a word as of missing cells": (
        CLASSES_OF["a word as of missing cells"][0],
        "`y` has classes called 'None': empty these cells if they are missing.",
    ),
    "classes with blanks": (["pos", "neg", "pos ", "neg "] * 15,
                            r"4 classes \('neg', 'neg ', 'pos', \.\.\.\)"),
    "classes that differ by blanks only": (["pos", "neg", "pos ", "neg"] * 15,
        r"`y` has classes that differ by blanks or capitals only \('pos' and 'pos '\)"),
    "classes that differ by capitals only": (["Yes", "no", "yes", "no"] * 15,
        r"`y` has classes that differ by blanks or capitals only \('Yes' and 'yes'\)"),
    "days that may be months": ([f"{1 + i % 6}/{1 + i % 5}/2020" for i in range(N)],
        r"`y` has dates such as \d/\d/2020: months are taken to come first."),
    "quarters": ([f"2{i % 25:03}-Q{1 + i % 4}" for i in range(N)],
        "`y` has 60 different dates, predicted by days since 2000-01-01"),
    "a word among dates": (["unknown", *DATES["days first"]],
        r"`y` has dates, but 1 of 61 cells is none \('unknown'\): taken for missing."),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOTES)
def test_what_the_target_is_taken_for_is_said(kind: str) -> None:
    values, said = NOTES[kind]
    assert any(re.search(said, note) for note in target_of(values).notes)


def test_the_task_can_be_given() -> None:
    classes = target_of([i % 28 for i in range(N)], "classification")
    assert (classes.task, len(classes.classes)) == ("classification", 28)
    amounts = target_of([1, 7] * HALF, "regression")
    assert {*amounts.values} == {1.0, 7.0}
    assert "as asked" in amounts.notes[0]
    codes = [str(i % 28) for i in range(N)]
    assert target_of(codes).task == "classification"
    assert target_of(codes, "regression").values[1] == 1.0
    assert {*target_of(CLASSES["category of numbers"], "regression").values} == {1.5, 2.5}
    for few in (["1 days", "2 days"], ["1d 0h", "2d 0h"], ["P1D", "PT48H"]):
        days = target_of(few * HALF, "regression")
        assert {*days.times.back(days.values).astype("timedelta64[D]").astype(int)} == {1, 2}
    for few in (["2020-02-01", "2020-03-01"], ["1.2.2020", "1.3.2020"]):
        assert {*target_of(few * HALF, "regression").values} == {0.0, 29.0}


DATES_AND_GAPS = ["NA" if i % 10 == 0 else str(DAYS[i % 45]) for i in range(100)]
GAPS: dict[str, tuple[Any, list[int]]] = {
    "NaN and infinity": ([0, 0.1, 0.2, np.nan, 0.4, np.nan, 0.6, np.inf, *range(52)], [3, 5, 7]),
    "beyond 32 bits": ([1e39, np.inf, *range(N - 2)], [0, 1]),
    "words among dates": (DATES_AND_GAPS, [*range(0, 100, 10)]),
}


@pytest.mark.parametrize("kind", GAPS)
def test_rows_without_a_target_are_left_out_and_counted(kind: str) -> None:
    values, gaps = GAPS[kind]
    target = target_of(values)
    assert target.task == "regression"
    assert np.flatnonzero(~target.kept).tolist() == gaps
    assert len(target.values) == len(values) - len(gaps)
    assert f"{len(gaps)} rows without a value of `y` left out." in target.notes
    if kind != "words among dates":
        np.testing.assert_array_equal(target.values, np.array(values)[target.kept])


def test_a_class_of_one_row_is_left_out() -> None:
    assert not target_of(CLASSES_OF["one row of a class"][0]).kept[0]


WORDS_AMONG_NUMBERS = ["perhaps" if i % 3 == 0 else f"{i}.5" for i in range(N)]
REFUSED: dict[str, tuple[Any, str | None, str]] = {
    "one date": ([datetime.date(2020, 1, 1)] * N, None, "2020-01-01 00:00:00 in every row"),
    "no dates": ([f"2020-{i:02}-01" for i in range(N)], None, "60 different ones in 60 rows"),
    "days beyond the clock": (
        np.array(["300000-01-01", "2020-01-01"] * HALF, "datetime64[s]"),
        None,
        "`y` are not: .*300000-01-01",
    ),
    "times of day": ([datetime.time(i) for i in range(20)] * 3, None, "has values of time"),
    "dates and numbers": ([*DAYS[1:], 3], None, "has values of date and int"),
    "lists": ([["a"]] * N, None, "has values of list"),
    "complex": (np.ones(N) * 1j, None, "of type complex128"),
    "nothing": ([None] * N, None, "is empty in every row"),
    "infinite": ([np.inf] * N, None, "are infinite"),
    "beyond floats": ([10**400 + i for i in range(N)], None, "those of `y` are infinite"),
    "one": ([3] * N, None, "`y` is 3 in every row"),
    "identifiers": ([f"id{i}" for i in range(N)], None, "60 different ones in 60 rows"),
    "few": ([1.5, 2.5, *[None] * (N - 2)], None, "at least 20 rows"),
    "text as amounts": (CLASSES["text"], "regression", '`task="regression"` needs numbers'),
    "numbers in words": ([f"{i}.5" for i in range(N)], None,
                         r'as numbers in words have \(task="regression"'),
    "many words as amounts": (WORDS_AMONG_NUMBERS, "regression", "20 of 60 cells of `y` are none, "
                              "such as 'perhaps': take these rows out"),
    "many words": (WORDS_AMONG_NUMBERS, None, r"since 20 cells are no numbers \('perhaps'\): "
                   "empty them if it has amounts"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_predicted_is_said_in_one_sentence(kind: str) -> None:
    values, task, match = REFUSED[kind]
    with pytest.raises(TableError, match=match) as error:
        target_of(values, task)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "hint"), [("Y", "Did you mean 'y'"), ("price", "There are")])
def test_a_column_that_is_not_there_is_named(name: str, hint: str) -> None:
    with pytest.raises(TableError, match=hint):
        checked_target(frame([1, 7] * HALF), name)


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match=r"`task` must be .* but got 'ranking'"):
        target_of([1, 7] * HALF, "ranking")


@pytest.mark.parametrize("task", [None, "regression"])
def test_few_words_among_amounts_are_missing_and_named(task: Any) -> None:
    values = [f"{i}.5" for i in range(N)]
    values[3], values[7] = "?", "unknown"
    target = target_of(values, task)
    assert target.task == "regression"
    assert np.flatnonzero(~target.kept).tolist() == [3, 7]
    assert target.values[:4].tolist() == [0.5, 1.5, 2.5, 4.5]
    said = "`y` has numbers, but 2 of 60 cells are none ('?', 'unknown'): taken for missing."
    assert {said, "2 rows without a value of `y` left out."} <= {*target.notes}


def test_categories_stay_classes_though_nearly_all_are_numbers() -> None:
    words = [str(100 + i % 30) if i % 30 else "other" for i in range(300)]
    target = target_of(pandas.Categorical(words))
    assert target.task == "classification"
    assert "other" in target.classes


def test_a_target_below_a_title_is_found() -> None:
    table = pandas.DataFrame({"Sales": [None, "a", "1"], "Unnamed: 1": [None, "price", "2"]})
    with pytest.raises(TableError, match="Row 2 holds it: names must be in the first line"):
        checked_target(table, "price")
    table.columns = ["Sales", "price "]
    with pytest.raises(TableError, match=r"Row 2 holds it.* Did you mean 'price '\?"):
        checked_target(table, "price")


LABELS = {"5,5 %": "5.5%", "1'000": 1000.0, "1.000 €": "1000€"}
"""Labels in a file, and what reading makes of their numbers."""


@pytest.mark.parametrize("label", LABELS)
def test_classes_are_as_in_their_file(label: str) -> None:
    column = [LABELS[label], None, LABELS[label]] * (N // 3)
    written = pandas.Series([label, None, "3 %"] * (N // 3))
    target = checked_target(frame(column), "y", "classification", {"y": written})
    assert [*target.classes] == sorted([label, "3 %"])
    assert repr(label) in target.notes[0]


def test_amounts_with_a_sign_in_a_file_are_amounts() -> None:
    column = [f"{i}.5€" for i in range(N)]
    written = pandas.Series([f"{i},5 €" for i in range(N)])
    target = checked_target(frame(column), "y", None, {"y": written})
    np.testing.assert_array_equal(target.values, np.arange(N) + 0.5)


SAME: dict[str, Any] = {
    "TRUE or FALSE": ["TRUE", "FALSE"] * HALF,
    "true or false": ["true", "false"] * HALF,
    "truth in several ways": ["true", "False ", "TRUE", "false"] * (N // 4),
    "currency": [f"€ {i}" for i in range(N)],
    "units": [f"{i} kg" for i in range(N)],
    "thousands": [f"{1 + i % 30},{100 + i}" for i in range(N)],
    "codes": [f"{i % 5:03}" for i in range(N)],
    "blank cells": ["a", "b", "", " "] * (N // 4),
    "durations": pandas.to_timedelta(range(-9, N - 9), unit="h"),
    "whole days": pandas.to_timedelta(range(N), unit="D"),
    "a gap among durations": [None, *pandas.to_timedelta(range(1, N), unit="h")],
    "summer and winter": pandas.date_range("2020", periods=N, freq="5D", tz="Europe/Berlin"),
    "decimal commas": [f"{i},{i % 7}" for i in range(N)],
}
"""Targets of a frame that a CSV file may hold too."""


@pytest.mark.parametrize("task", [None, "regression"])
def test_true_and_false_are_the_same_in_any_spelling(task: Any) -> None:
    for truth in (SAME["TRUE or FALSE"], SAME["truth in several ways"]):
        table = read_table(frame(truth))
        target = checked_target(table.frame, "y", task, table.written)
        assert target.values.tolist() == [1, 0] * HALF
        is_merged = any("several spellings: taken for the same" in note for note in target.notes)
        assert is_merged == ([*target.classes] == [False, True])


def test_whole_numbers_stored_as_objects_stay_whole() -> None:
    target = target_of(pandas.Series([0, 1] * HALF, dtype=object))
    assert repr([*target.classes]) in ("[0, 1]", "[np.int64(0), np.int64(1)]")
    exact = target_of(pandas.Series([2**53, 2**53 + 1] * HALF, dtype=object))
    assert [*exact.classes] == [2**53, 2**53 + 1]


def test_digits_in_the_text_of_a_frame_are_classes_with_a_note() -> None:
    column = [*map(str, range(N // 2))] * 2
    target = target_of(column)
    assert target.task == "classification"
    assert '`y` has text that holds numbers only: task="regression" for amounts.' in target.notes
    assert target_of(column, "regression").task == "regression"


@pytest.mark.parametrize("kind", SAME)
def test_a_frame_and_its_file_have_the_same_target(kind: str, tmp_path: Path) -> None:
    table = pandas.DataFrame({"x": range(N), "y": SAME[kind]})
    table.to_csv(tmp_path / "t.csv", index=False)
    read = [read_table(source) for source in (table, tmp_path / "t.csv")]
    one, other = (checked_target(each.frame, "y", None, each.written) for each in read)
    assert (one.task, one.notes, one.times) == (other.task, other.notes, other.times)
    assert [*map(repr, one.classes)] == [*map(repr, other.classes)]
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.kept, other.kept)
    assert {*one.classes} <= {*SAME[kind]} or [*one.classes] == [False, True]
