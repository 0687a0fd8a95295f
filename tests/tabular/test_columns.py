"""Columns: which are lost, which tell too much, and that honest ones stay."""

from __future__ import annotations

import re
import uuid
from typing import Any

import numpy as np
import pytest

from optuna_daub.tabular.columns import checked_columns
from optuna_daub.tabular.columns import said_total
from optuna_daub.tabular.target import checked_target


pandas = pytest.importorskip("pandas")

N = 400
RNG = np.random.default_rng(0)
Y = RNG.choice(["no", "yes"], N)

LOST = {
    "one value": (["a"] * N, "has one value only"),
    "no value": ([None] * N, "has no value in any row"),
    "numbers from 0": (range(N), "numbers the rows"),
    "numbers from 7": (range(7, N + 7), "numbers the rows"),
    "words": ([f"A{i:04}" for i in range(N)], "has another word in each row"),
    "lists": ([["a"]] * N, r"are no numbers, dates or words \(list\)"),
    "a list among words": (["a", ["b"]] * (N // 2), r"no numbers, dates or words \(list\)"),
    "dicts": ([{"a": 1}] * N, r"are no numbers, dates or words \(dict\)"),
    "numbers that fall": (range(N, 0, -1), "numbers the rows"),
    "numbers with a type for gaps": (pandas.array(range(N), "Int64"), "numbers the rows"),
    "floats from 0": (np.arange(N) * 1.0, "numbers the rows"),
    "numbers in text": ([f"{i:06}" for i in range(N)], "numbers the rows"),
    "identifiers": ([uuid.UUID(int=i * 3**70) for i in range(N)], "has another word in each row"),
    "complex": (np.ones(N) * np.arange(N) * 1j, "has complex numbers"),
}
AMOUNTS = RNG.normal(size=N)
DAYS = pandas.date_range("2020", periods=N)
ODD_DAYS = pandas.date_range("1500-01-15", periods=N, freq="373D")
"""Dates that pandas warns of if it is to read them."""
CODES = [f"{i % 50:03}" for i in range(N)]

KEPT = {
    "floats": (RNG.normal(size=N), Y),
    "whole, all different": (RNG.permutation(N) * 3, Y),
    "free text": ([f"a sentence {i} of words" for i in range(N)], Y),
    "days": ([f"2020-01-{1 + i % 28:02} {i:05}" for i in range(N)], Y),
    "dates": (DAYS, Y),
    "written dates": ([str(day.date()) for day in DAYS], Y),
    "days before months": (ODD_DAYS.strftime("%d/%m/%Y"), Y),
    "quarters": ([f"Q1/{1600 + i}" for i in range(N)], Y),
    "written numbers": ([f"{i}.5" for i in range(N)], Y),
    "one value and gaps": (["a", None] * (N // 2), Y),
    "categories": (pandas.Categorical(RNG.choice(["a", "b"], N)), Y),
    "two numbers and gaps": ([{5: 0.0, 9: 1.0}.get(i) for i in range(N)], Y),
    "two numbers and typed gaps": (pandas.array([0, 1] + [None] * (N - 2), "Int64"), Y),
    "booleans": (RNG.integers(0, 2, N) > 0, Y),
    "codes": (["A1", *CODES[1:]], Y),
    "codes and a missing word": (["None", *CODES[1:]], Y),
    "beyond 32 bits": (np.append(RNG.normal(size=N - 1), 1e39), Y),
    "the largest float": (np.append(RNG.normal(size=N - 1), np.finfo(float).max), Y),
    "an infinity": (np.append(RNG.normal(size=N - 1), np.inf), Y),
    # If 99 % are alike, to be right in 99 % of the rows is no news.
    "a rare class": (RNG.normal(size=N), np.where(np.arange(N) % 100 == 0, "yes", "no")),
    "many classes": (RNG.normal(size=N), [f"c{i % 190}" for i in range(N)]),
    "large amounts": (RNG.normal(size=N), 1e37 * RNG.normal(size=N)),
    "amounts with noise": (3 * AMOUNTS + RNG.normal(size=N), AMOUNTS),
}
"""Columns and targets."""
LEAKS = {
    "copy": (Y, Y),
    "other words": (pandas.Categorical(np.where(Y == "yes", "paid", "open")), Y),
    "code": ((Y == "yes").astype(int), Y),
    "amount": (np.where(Y == "yes", 3.0, 1.0) + RNG.uniform(0, 0.5, N), Y),
    "date": (pandas.to_datetime(np.where(Y == "yes", "2021-03-01", "2020-03-01")), Y),
    "large numbers": (np.where(Y == "yes", 202401011230, 202401011231), Y),
    "amounts": (3 * AMOUNTS + 1, AMOUNTS),
    "large amounts": (AMOUNTS, 1e37 * AMOUNTS),
    "tiny amounts": (AMOUNTS, 1e-200 * AMOUNTS),
    "amounts far from 0": (AMOUNTS, 1e9 + AMOUNTS),
}
"""Columns and targets that they give away."""


def looked_at(column: Any, y: Any = Y) -> Any:
    table = pandas.DataFrame({"odd": column, "y": y})
    return checked_columns(table[["odd"]], checked_target(table, "y"))


@pytest.mark.parametrize("kind", LOST)
def test_a_lost_column_is_named(kind: str) -> None:
    values, match = LOST[kind]
    columns = looked_at(values)
    assert columns.used == ()
    assert len(columns.notes) == 1
    assert columns.notes[0].startswith("Left out: `odd`")
    assert re.search(match, columns.notes[0])


@pytest.mark.parametrize("kind", KEPT)
def test_an_honest_column_stays_without_a_word(kind: str) -> None:
    columns = looked_at(*KEPT[kind])
    assert (columns.used, columns.notes) == (("odd",), ())


@pytest.mark.parametrize("kind", LEAKS)
def test_a_column_that_gives_the_target_away_is_named_and_stays(kind: str) -> None:
    columns = looked_at(*LEAKS[kind])
    assert columns.used == ("odd",)
    assert len(columns.notes) == 1
    assert "`odd` alone gives `y` away" in columns.notes[0]


def test_few_words_among_numbers_are_named() -> None:
    q = [*map(str, RNG.normal(size=N))]
    q[3], q[5] = "unknown", "-"
    columns = looked_at(q)
    said = "`odd` has numbers, but 2 of 400 cells are none ('unknown', '-'): taken for missing."
    assert (columns.used, columns.notes) == (("odd",), (said,))


def test_dates_after_a_word_are_no_names() -> None:
    days = [str(day.date()) for day in pandas.date_range("2020", periods=N)]
    assert looked_at(["NA", *days[1:]]).used == ("odd",)


@pytest.mark.parametrize("word", ["Total", "SUMME:", "grand total"])
def test_a_row_of_totals_is_named(word: str) -> None:
    towns = [*"abcdefgh"]
    prices = [f"${i}.25" for i in range(8)]
    table = pandas.DataFrame({"town": [*towns, word], "price": [*prices, "$30.00"]})
    said = "The last row is the total of the others (`town`, `price`)"
    assert said_total(table).startswith(said)
    assert said_total(table.head(8)) == ""
    assert said_total(table.assign(price=[*prices, "$30.50"])) == ""
    assert said_total(table.assign(town=[word, *towns[1:], word])) == ""


@pytest.mark.parametrize(
    "name", ["CustomerId", "customerID", "order-id", "User ID", "id", "Unnamed: 0.1"]
)
def test_different_whole_numbers_called_identifiers_are_left_out(name: str) -> None:
    table = pandas.DataFrame({name: RNG.permutation(N) * 3, "paid": RNG.permutation(N), "y": Y})
    columns = checked_columns(table.drop(columns="y"), checked_target(table, "y"))
    assert columns.used == ("paid",)


@pytest.mark.parametrize("written", ["{:.2f}", "${:,.2f}", "{:.0f}", "{:.2f} kg"])
def test_a_copy_of_amounts_with_a_long_tail_is_named(written: str) -> None:
    prices = 1_000 * np.exp(2 * RNG.normal(size=N))
    assert "gives `y` away" in looked_at([*map(written.format, prices)], prices).notes[-1]


@pytest.mark.parametrize("kind", ["dates", "written dates", "durations", "written durations"])
def test_times_that_give_amounts_away_are_named(kind: str) -> None:
    amounts = RNG.permutation(N).astype(float) + 0.5
    start = pandas.Timestamp("2020") if "dates" in kind else pandas.Timedelta(0)
    times = pandas.Series(start + pandas.to_timedelta(amounts, unit="D"))
    if kind.startswith("written"):
        times = times.astype(str)
    assert "gives `y` away" in looked_at(times, amounts).notes[0]


def test_numbers_with_the_signs_of_another_country_are_named() -> None:
    size = [f"{i % 90},5" for i in range(N)]
    frame = pandas.DataFrame({"size": size, "weight": np.arange(N) + 0.5, "y": Y})
    columns = checked_columns(frame.drop(columns="y"), checked_target(frame, "y"))
    assert columns.notes == (
        "`size` is taken for text, since the signs in its numbers, such as '0,5', are not those "
        "of other columns. Write all numbers alike.",
    )
