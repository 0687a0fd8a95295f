"""Columns of any kind become finite numbers or NaN, the same before and after a file."""

from __future__ import annotations

import datetime
import re
import uuid
import warnings
from decimal import Decimal
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from optuna_daub.tabular.columns import checked_columns
from optuna_daub.tabular.preparation import Preparation
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import checked_target


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


def column(cells: Any) -> Any:
    return pandas.DataFrame({"q": cells})


def prepared(cells: Any) -> tuple[Preparation, Any]:
    """Return the preparation of a column, and its matrix."""
    preparation = Preparation(["q"])
    return preparation, preparation.fit_transform(column(cells))


def learnt_and_later(cells: Any, later: Any) -> tuple[Any, str, Any]:
    """Return a column's numbers in `fit`, and the warning and numbers of a later one."""
    preparation, before = prepared(cells)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        after = preparation.transform(column(later))
    return before[:, 0], " ".join(str(warning.message) for warning in seen), after[:, 0]


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
    assert preparation.transform(table.head(1).assign(w="green"))[0, at] == -1.0


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


def test_infinities_and_numbers_beyond_32_bits_are_counted() -> None:
    preparation, matrix = prepared([1.0, np.inf, -np.inf, np.finfo(float).max, 1e39, None])
    assert preparation.n_infinite_ == 4
    assert matrix[0] == 1.0
    assert np.isnan(matrix[1:]).all()


def test_a_column_that_is_missing_later_is_named() -> None:
    table = pandas.DataFrame({"a": range(N), "b": range(N)})
    preparation = Preparation(["a", "b"]).fit(table)
    with pytest.raises(TableError, match=r"'b' is missing\. There are: a\."):
        preparation.transform(table[["a"]])


CODES = {
    "category": pandas.Categorical([1, 2, 5] * 20),
    "category with a gap": pandas.Series([1, 2, 5, None] * 20).astype("category"),
    "words": ["1", "2", "5", "A"] * 20,
    "objects": [1, 2.0, "5", "A"] * 20,
}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize(
    "codes",
    [
        [1, 2, 5],
        [1, 2, 5, None],
        ["1", "2.0", "5"],
        pandas.array([1, 2, 5, None], dtype="Int64"),
        pandas.Categorical([1, 2, 5, None]),
    ],
    ids=["int", "float", "text", "Int64", "category"],
)
def test_a_whole_number_is_the_same_word_whatever_its_type(kind: str, codes: Any) -> None:
    before, _, later = learnt_and_later(CODES[kind], codes)
    np.testing.assert_array_equal(later[:3], before[:3])
    assert before[0] >= 0


def test_words_that_are_nearly_all_new_are_named() -> None:
    _, said, _ = learnt_and_later(WORDS, ["RED", "BLUE", None])
    assert re.search("`q` should have the words of `fit`, but 2 of 2 .*'RED'", said)
    assert learnt_and_later(WORDS, ["red", "green", None])[1] == ""


TIMES = {
    "days": pandas.period_range("2020", periods=N),
    "weeks": pandas.period_range("2020", periods=N, freq="W"),
    "months": pandas.period_range("2020", periods=N, freq="M"),
    "quarters": pandas.period_range("2020", periods=N, freq="Q"),
    "years": pandas.period_range("1900", periods=N, freq="Y"),
    "durations": pandas.to_timedelta(RNG.integers(-9, 9, N), unit="h"),
}


@pytest.mark.parametrize("form", ["%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q-%Y", "Q%q/%Y", " %YQ%q "])
def test_quarters_are_their_first_days_however_they_are_written(form: str) -> None:
    text = pandas.Series(TIMES["quarters"]).dt.strftime(form)
    for cells in (text, TIMES["quarters"]):
        before, said, after = learnt_and_later(cells, text)
        assert (said, before.tolist()) == ("", after.tolist())
        np.testing.assert_array_equal(before, TIMES["quarters"].year)


@pytest.mark.parametrize("kind", TIMES)
def test_periods_and_durations_are_the_same_from_their_own_file(kind: str, tmp_path: Any) -> None:
    preparation, before = prepared(TIMES[kind])
    column(TIMES[kind]).to_csv(tmp_path / "t.csv", index=False)
    later = preparation.transform(pandas.read_csv(tmp_path / "t.csv"))
    np.testing.assert_array_equal(later, before)
    assert np.isfinite(before).all()


@pytest.mark.parametrize("kind", TIMES)
def test_periods_and_durations_are_the_same_as_categories(kind: str) -> None:
    before, said, after = learnt_and_later(TIMES[kind], pandas.Categorical(TIMES[kind]))
    assert said == ""
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("kind", ["months", "durations"])
def test_times_that_are_missing_or_none_later_are_missing(kind: str) -> None:
    for cells in ([None, None], [np.nan, np.nan], ["x", None]):
        _, said, later = learnt_and_later(TIMES[kind], cells)
        assert np.isnan(later).all()
        assert ("`q` was a column of" in said) == ("x" in cells)
    assert re.search(r"1 of 2 cells .* 'x'", said)


def test_numbers_are_no_durations() -> None:
    _, said, later = learnt_and_later(TIMES["durations"], [5, 6])
    assert "2 of 2 cells are none, such as 5" in said
    assert np.isnan(later).all()


def test_written_dates_take_dates() -> None:
    dates = pandas.to_datetime(COLUMNS["written dates"])
    for kind in (dates, dates.date):
        before, _, later = learnt_and_later(COLUMNS["written dates"], kind)
        np.testing.assert_array_equal(later, before)


def test_few_words_among_numbers_are_missing_before_and_after() -> None:
    amounts = [f"${i}.25" for i in range(1_000, 1_000 + N)]
    cells = ["unknown", *amounts[1:]]
    before, said, later = learnt_and_later(cells, ["error", "$1,001.25", 7])
    np.testing.assert_array_equal(before, [np.nan, *np.arange(1_001.25, 1_000 + N)])
    assert "1 of 3 cells are none, such as 'error'" in said
    np.testing.assert_array_equal(later, [np.nan, 1_001.25, 7])


@pytest.mark.parametrize("unit", ["{} %", "€{}", "{} kg", "EUR {}"])
@pytest.mark.parametrize("other", ["{} %", "$ {}", "{} g", "USD {}"])
def test_a_number_of_another_unit_than_in_fit_is_missing(unit: str, other: str) -> None:
    cells = [unit.format(i) for i in range(40)]
    before, said, after = learnt_and_later(cells, [other.format(5), unit.format(7)])
    np.testing.assert_array_equal(before, np.arange(40))
    if other == unit:
        assert (said, *after) == ("", 5, 7)
    else:
        assert re.search(r"`q` was a column of numbers in \S+ in `fit`, but now 1 of 2", said)
        np.testing.assert_array_equal(after, [np.nan, 7])


@pytest.mark.parametrize("odd", ["$ 5", "5 g", "USD 5", "unknown"])
@pytest.mark.parametrize("unit", ["€{}", "{} kg", "EUR {}"])
def test_one_amount_in_another_unit_leaves_a_column_of_numbers(unit: str, odd: str) -> None:
    cells = [odd, *(unit.format(i) for i in range(1, 40))]
    before, _, after = learnt_and_later(cells, [odd, unit.format(7), "7"])
    np.testing.assert_array_equal(before, [np.nan, *range(1, 40)])
    np.testing.assert_array_equal(after, [np.nan, 7, 7])


@pytest.mark.parametrize(
    ("cells", "later", "is_same"),
    [
        (["5 %", "7 %"], [5.0], False),
        (["5 %", "7 %"], ["5"], False),
        (["5 %", "7 %"], pandas.Categorical(["5"]), False),
        ([0.05, 0.07], ["5 %"], False),
        (["0.05", "0.07"], ["5 %"], False),
        (["$4", "$7"], [5.0], True),
        ([4.0, 7.0], ["€ 5"], True),
        (["(4)", "7", "(2)"], ["(5)"], True),
        (["4 h", "7 h"], [5.0], True),
    ],
)
def test_a_number_without_a_sign_is_an_amount_but_no_share(
    cells: list[Any], later: list[Any], is_same: bool
) -> None:
    _, said, after = learnt_and_later(cells * 10, later)
    assert (said == "") == is_same
    assert np.isnan(after[0]) != is_same


@pytest.mark.parametrize("form", ["{}", "{} ", " {}"])
@pytest.mark.parametrize(
    "cells",
    [
        ["555 123 456", "555 765 432"],
        ["5 kg", "500 g"],
        ["(1)", "(2)"],
        ["1-", "2", "2-", "3"],
        ["5- kg", "7 kg"],
        ["349.- €", "7 €"],  # without cents
        ["10 A", "12 B"],
        ["5 m", "3 h"],
        ["5m 3h", "1s 7d"],
        ["PM", "PT", "P", "P5M"],
        ["5 kg", "7"],
        ["ABC100", "ABC101"],
        ["1A", "2A"],
    ],
)
def test_what_may_be_no_number_stays_words(cells: list[str], form: str) -> None:
    cells = [form.format(cell) for cell in cells]
    assert prepared(cells * 10)[0].kinds_ == {"q": "words"}


@pytest.mark.parametrize(
    "codes",
    [
        ["1-2-3", "10.0.0.1", "May", "12:5", "2020-13-45", "3:2", "A 1/2/2020"],
        ["59:30", "1:00:30", "58:01", "1:02:00"],  # minutes and seconds, and hours
        ["88:44:18", "10:65:02", "71:99:01"],
        ["4500Q2", "4501Q1", "4500Q3"],
        ["31/12/2020", "30/11/2020", "12/31/2020"],  # days and months change places
    ],
)
def test_words_that_are_nearly_dates_stay_words(codes: list[str]) -> None:
    cells = [f"{code}{' ' * i}" for i in range(20) for code in codes]
    assert prepared(cells)[0].kinds_ == {"q": "words"}


@pytest.mark.parametrize(
    "years",
    [
        range(1930, 2006),  # of birth, the old and the young
        range(1945, 1961),
        range(2015, 2056),  # of payment
        range(1970, 2021),
    ],
)
def test_years_of_two_digits_stay_together(years: range) -> None:
    days = pandas.Series(pandas.to_datetime([f"{year}-05-17" for year in years]))
    table = column(days.dt.strftime("%d.%m.%y"))
    preparation, found = prepared(table["q"])
    np.testing.assert_array_equal(found[:, 0], [*years])
    np.testing.assert_array_equal(preparation.transform(table.tail(1)), found[-1:])
    assert "`q` has years of two digits: taken for" in preparation.notes_[0]


def test_a_date_between_dots_has_its_day_first() -> None:
    days = pandas.Series(pandas.date_range("2021-01-01", periods=60))
    for cells in (days, days.dt.strftime("%d.%m.%Y")):
        preparation, _ = prepared(cells)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = preparation.transform(column(["01.02.2021"]))
        assert found[0, :3].tolist() == [2021, 2, 1]


@pytest.mark.parametrize(("sign", "first"), [(".", "days"), ("/", "months")])
def test_days_and_months_that_look_alike_are_named(sign: str, first: str) -> None:
    (said,) = prepared([f"0{1 + i % 9}{sign}0{1 + i % 7}{sign}2021" for i in range(40)])[0].notes_
    assert re.fullmatch(rf"`q` has dates such as 0\d.*: {first} are taken to come first\.", said)
    days = pandas.date_range("2021", periods=60)
    _, said, _ = learnt_and_later(days, [f"02{sign}03{sign}2021"])
    assert re.search(f"`q` has dates .*: {first} are taken to come first", said)


LARGE = {
    "minutes": 202401010000 + np.arange(N),
    "Julian dates": 2460310.5 + np.arange(N) / 1440,
    "nanoseconds": 1_704_067_200_000_000_000 + 60_000_000_000 * np.arange(N),
    "with zeros": np.append(0, 202401010000 + np.arange(N)),
    "Int64": pandas.array(202401010000 + np.arange(N), dtype="Int64"),
    "words": [str(202401010000 + i) for i in range(N)],
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_numbers_stay_different(kind: str) -> None:
    before, _, later = learnt_and_later(LARGE[kind], LARGE[kind][:9])
    assert len(before) == len(LARGE[kind])
    assert np.all(np.diff(before) > 0)
    np.testing.assert_array_equal(later, before[:9])


def test_numbers_that_stay_different_are_what_they_were() -> None:
    near = pandas.DataFrame({"a": [100.25, 101.1, 102.7], "b": [16_777_215, 3, 4]})
    np.testing.assert_allclose(Preparation(["a", "b"]).fit_transform(near), near, rtol=1e-6)


@pytest.mark.parametrize("written", ["2024/05/17", "05/17/2024", "2024-05-17", "May 17, 2024"])
@pytest.mark.parametrize("kind", ["date", "zoned", "period"])
def test_dates_are_read_however_they_are_written(kind: str, written: str) -> None:
    days, _ = prepared(COLUMNS[kind])
    assert days.transform(column([written, written]))[0, :3].tolist() == [2024, 5, 17]
    with pytest.warns(UserWarning, match="dates such as 2024-12-31 in `fit`, but now 2 of 3"):
        read = days.transform(column(["x", "soon", "2024-05-17"]))
    assert read[2, :3].tolist() == [2024, 5, 17]


def test_moments_a_second_apart_stay_apart() -> None:
    moments = pandas.date_range("2024-01-01 12:00", periods=600, freq="s")
    assert len(np.unique(prepared(moments)[1], axis=0)) == 600


@pytest.mark.parametrize(
    "later",
    [pandas.to_datetime(["2024-01-01"]), pandas.period_range("2024-01", periods=1)],
    ids=["dates", "periods"],
)
def test_a_date_among_durations_is_missing(later: Any) -> None:
    waits = pandas.to_timedelta(np.arange(50.0), unit="s")
    _, said, read = learnt_and_later(waits, later)
    assert "taken for missing" in said
    assert np.isnan(read).all()


WAYS = [
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%m/%d/%y",
    "%d.%m.%y %H:%M",
]


@pytest.mark.parametrize("way", WAYS)
def test_dates_in_text_are_dates_before_and_after(way: str) -> None:
    """The same as from a column of dates, all over the year: May has no shorter name."""
    moments = pandas.Series(pandas.date_range("2021-01-01", periods=N, freq="73h17min"))
    text = moments.dt.strftime(way)
    _, wanted = prepared(pandas.to_datetime(text, format=way))
    preparation, found = prepared(text.replace(text[9], "unknown"))
    np.testing.assert_array_equal(np.delete(found, 9, 0), np.delete(wanted, 9, 0))
    said = "`q` has dates, but 1 of 120 cells is none ('unknown'): taken for missing."
    assert preparation.notes_[-1] == said
    assert preparation.text_ == ("q",), "a file of a model must not read 01.02 as a number"
    day = str(pandas.to_datetime(text[0], format=way).date())
    form = datetime.datetime(2024, 12, 31, 20, 15).strftime(way)
    for known in (text[0], str(pandas.to_datetime(text[0], format=way)), f" {day}"):
        with pytest.warns(UserWarning, match=f"`q` was .* of dates such as {form} in .* 'soon'"):
            later = preparation.transform(column(["soon", "soon", known]))
        np.testing.assert_array_equal(later[-1, :3], wanted[0, :3])


def test_moments_of_several_precisions_and_zones_are_dates() -> None:
    text = ["2021-03-04T05:06:07Z", "2021-03-04T05:06:07.5Z", "2021-03-04 07:06:07+02:00"] * 40
    assert prepared(text)[1][:3, :4].tolist() == [[2021, 3, 4, 5]] * 3


@pytest.mark.parametrize(
    ("words", "minutes"),
    [
        (["8:15", "27:00", "-1:30"], [495, 1620, -90]),
        (["12:15 AM", "12:15 pm", "11:00:30PM"], [15, 735, 1380.5]),
        (["11d 21h 49m", "-2h5m", "3D 4H"], [17_149, -125, 4_560]),
        (["285 h 49 min", "2 hours, 5 minutes", "45 min"], [17_149, 125, 45]),
        (["1 week and 2 days", "1 day 8:15", "3 hrs 90 secs"], [12_960, 1_935, 181.5]),
        (["P11DT21H49M", "PT5M", "-PT1H6S"], [17_149, 5, -60.1]),
        (["11 days, 21:49:06", "1 day, 0:00:00", "0:01:00"], [17_149.1, 1_440, 1]),
        ([datetime.time(0, 5), datetime.time(23, 0), None], [5, 1380, np.nan]),
        (
            [np.timedelta64(n, unit) for n, unit in [(3, "h"), (6, "ms"), (6, "us")]],
            [180, 1e-4, 1e-7],
        ),
        ([datetime.time(0, 5, tzinfo=datetime.timezone.utc)] * 3, [5, 5, 5]),
    ],
)
def test_times_and_durations_in_text_are_seconds(words: list[Any], minutes: list[float]) -> None:
    before, _, later = learnt_and_later(words * 10, pandas.Series(words * 10, dtype=object))
    np.testing.assert_array_equal(before[:3], np.float32(60 * np.array(minutes)))
    np.testing.assert_array_equal(later, before)


@pytest.mark.parametrize("fitted", ["zone", "zones", "text"])
def test_a_moment_is_the_same_in_any_zone_and_in_text(fitted: str) -> None:
    hours = pandas.date_range("2021-01-01", periods=N, freq="h", tz="Europe/Berlin")
    berlin = pandas.Series(hours)
    tokyo = berlin.dt.tz_convert("Asia/Tokyo")
    moments = {
        "zone": berlin,
        "zones": pandas.Series([*berlin[: N // 2], *tokyo[N // 2 :]], dtype=object),
        "text": tokyo.map(str),
    }
    preparation, found = prepared(moments[fitted])
    assert found[0, :4].tolist() == [2020, 12, 31, 23]  # in UTC
    for later in moments.values():
        again = preparation.transform(column(later.tail(3)))
        np.testing.assert_array_equal(again, found[-3:])


SAME: dict[str, Any] = {
    "quarters": TIMES["quarters"],
    "weeks": TIMES["weeks"],
    "quarters of years": [f"Q{1 + i % 4}/{1990 + i // 4}" for i in range(N)],
    "whole days": pandas.to_timedelta(RNG.integers(0, 50, N), unit="D"),
    "sentences": [f"a {word} {i}" for i, word in enumerate(WORDS)],
    "identifiers": [uuid.UUID(int=i * 3**70) for i in range(N)],
    "some identifiers": [uuid.UUID(int=i // 2 * 3**70) for i in range(N)],
    "bytes": [bytes([200, i % 7]) for i in range(N)],
    "numbers of the rows": pandas.array(range(N), "Int64"),
    "blanks around words": [f"{' ' * (i % 2)}{w}{' ' * (i % 3)}" for i, w in enumerate(WORDS)],
    "blank cells": [[" ", "", "a", "b"][i % 4] for i in range(N)],
    "nothing but blank cells": [""] * N,
    "blank cells among numbers": [["", f"${i}.5"][i % 2] for i in range(N)],
    "TRUE or FALSE": [["TRUE", "FALSE"][i % 2] for i in range(N)],
    "true, false or nothing": [["true", "false", ""][i % 3] for i in range(N)],
    "truth and blanks": [["true", "FALSE ", "True", "false"][i % 4] for i in range(N)],
    "true, false or a word": [["true", "false", "both"][i % 3] for i in range(N)],
    "durations in words": [f"{i % 50} h {i} min" for i in range(N)],
    "durations by ISO": [f"PT{i % 50}H{i}M" for i in range(N)],
    "decimal commas": [f"{i},{i % 7}" for i in range(N)],
    "decimal commas and a unit": [f"{i},{i % 7} kg" for i in range(N)],
    "amounts in India": [f"{1 + i % 9},23,{i % 90 + 10},678" for i in range(N)],
    "codes": [f"{i % 50:05}" for i in range(N)],
}
"""Columns of a frame that a CSV file may hold too."""


def ready(source: Any) -> tuple[Preparation, Any, Any, Any]:
    """Return the preparation of a table, its matrix, its notes and a reader of others like it."""
    table = read_table(source)
    target = checked_target(table.frame, "y")
    columns = checked_columns(table.frame.drop(columns="y"), target)
    preparation = Preparation(columns.used, columns.units)
    matrix = preparation.fit_transform(columns.frame)
    learnt = Learnt(table.signs, preparation.text_, columns.used)
    return preparation, matrix, columns.notes, lambda other: read_table(other, learnt=learnt).frame


@pytest.mark.parametrize("kind", SAME)
def test_a_frame_and_its_file_become_the_same(kind: str, tmp_path: Any) -> None:
    frame = pandas.DataFrame({"odd": SAME[kind], "rest": RNG.permutation(N)})
    frame["y"] = ["a", "b"] * (N // 2)
    frame.to_csv(tmp_path / "t.csv", index=False)
    sources = frame, tmp_path / "t.csv"
    (one, matrix, notes, read_one), (other, same, noted, read_other) = map(ready, sources)
    assert notes == noted
    np.testing.assert_array_equal(matrix, same)
    for source in sources:
        np.testing.assert_array_equal(one.transform(read_one(source)), matrix)
        np.testing.assert_array_equal(other.transform(read_other(source)), matrix)


@pytest.mark.parametrize(
    "kind", ["category", "sparse", "text", "written dates", "written numbers"]
)
def test_a_column_may_have_any_name(kind: str) -> None:
    """Names of arguments of pandas' methods too."""
    of_odd = pandas.DataFrame({"odd": COLUMNS[kind], "y": ["a", "b"] * (N // 2)})
    (_, matrix, _, _), (_, same, _, _) = map(
        ready, (of_odd, of_odd.rename(columns={"odd": "self"}))
    )
    np.testing.assert_array_equal(matrix, same)


def test_decimal_commas_of_a_later_frame_are_those_of_the_fit() -> None:
    table = pandas.DataFrame({"odd": SAME["decimal commas"], "y": ["a", "b"] * (N // 2)})
    preparation, _, _, read = ready(table)
    for later, amount in {"1,500": 1.5, 1.5: 1.5, "1500": 1500}.items():
        found = preparation.transform(read(pandas.DataFrame({"odd": [later], "rest": ["0"]})))
        assert found.tolist() == [[amount]]
    points = read_table(pandas.DataFrame({"a": ["1,5", "2,5"], "b": [0.5, 1.5]})).frame
    assert points["a"].tolist() == ["1,5", "2,5"]


@pytest.mark.parametrize("other", ["unknown", "NA"])
def test_another_word_leaves_later_truth_values_as_they_are(other: str) -> None:
    table = pandas.DataFrame({"odd": SAME["TRUE or FALSE"], "y": ["a", "a", "b", "b"] * (N // 4)})
    preparation, _, _, read = ready(table)
    later = pandas.DataFrame({"odd": ["TRUE", "FALSE", other]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = preparation.transform(read(later))
    np.testing.assert_array_equal(found, [[1], [0], [np.nan]])


@pytest.mark.parametrize("word", ["2,5", "3,4"])
def test_commas_between_thousands_are_no_decimal_commas(word: str) -> None:
    amounts = [f"{n:,}" for n in range(950, 950 + N)]
    table = pandas.DataFrame({"odd": amounts, "y": ["a", "b"] * (N // 2)})
    table["note"] = [word, *table["y"][1:]]
    assert read_table(table).frame["odd"].tolist() == table["odd"].tolist()
    preparation, _, _, read = ready(table[["odd", "y"]].sample(frac=1, random_state=0))
    with pytest.warns(UserWarning, match="none, such as '2,5|none, such as '3,4"):
        found = preparation.transform(read(pandas.DataFrame({"odd": ["1,234", word]})))
    np.testing.assert_array_equal(found, [[1234], [np.nan]])


@pytest.mark.parametrize(
    ("form", "scale"),
    [("{} days", 86_400), ("{}days", 86_400), ("{}\u00a0days", 1), ("{}00000 days", 1e5)],
)
def test_only_whole_days_that_a_clock_can_count_are_durations(form: str, scale: float) -> None:
    n = RNG.integers(1, 90, N)
    _, found = prepared([form.format(k) for k in n])
    np.testing.assert_allclose(found[:, 0], n * scale, rtol=1e-6)
    _, found = prepared([f"{k}.5 days" for k in n])
    np.testing.assert_allclose(found[:, 0], n + 0.5, rtol=1e-6)
