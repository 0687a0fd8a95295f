"""Files and frames of every kind come out as the table that went in."""

from __future__ import annotations

import errno
import gzip
import os
import zipfile
from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optuna_daub.tabular.lines import SAMPLE
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.table import NO_SIGNS
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import Signs
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import as_numbers


pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def houses(n: int = 30) -> Any:
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "size": rng.normal(100, 20, n).round(2),
            "rooms": rng.integers(1, 6, n),
            "street": rng.choice(["Elm; east", "Oak, 3", "Höhe"], n),
        }
    )


def csv(**options: Any) -> Callable[[Any, Path], None]:
    return lambda table, path: table.to_csv(path, index=False, **options)


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    **dict.fromkeys(
        ["t.csv", "t.CSV", *(f"t.csv.{z}" for z in ("gz", "bz2", "xz", "zip"))], csv()
    ),
    "t.tsv": csv(sep="\t"),
    "t.txt": csv(sep="|"),
    "excel.csv": csv(sep=";", decimal=",", encoding="utf-8-sig"),
    "windows.csv": csv(sep=";", encoding="cp1252"),
    "wide.csv": csv(encoding="utf-16"),
    "wide without a mark.csv": csv(encoding="utf-16-le"),
    "wider.csv": csv(encoding="utf-32"),
    "t.parquet": lambda t, p: t.to_parquet(p),
    "t.xlsx": lambda t, p: t.to_excel(p, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_holds_what_was_written(name: str, tmp_path: Path) -> None:
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    written = houses()
    WRITERS[name](written, tmp_path / name)
    read = read_table(str(tmp_path / name)).frame
    pandas.testing.assert_frame_equal(read, written, check_dtype=False)


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda t: t.set_index(pandas.Index(range(30, 60))),
    "polars": lambda t: pytest.importorskip("polars").from_pandas(t),
    "lazy": lambda t: pytest.importorskip("polars").from_pandas(t).lazy(),
    "pyarrow": lambda t: pytest.importorskip("pyarrow").Table.from_pandas(t),
    "dict": lambda t: t.to_dict("list"),
    "array": lambda t: t.to_numpy(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_any_library_is_taken(kind: str) -> None:
    numbers = pandas.DataFrame({"0": [1.0, 2.0], "1": [3.0, 4.0]})
    written = numbers if kind == "array" else houses()
    read = read_table(FRAMES[kind](written)).frame.reset_index(drop=True)
    pandas.testing.assert_frame_equal(read, written, check_dtype=False)


def test_decimals_of_a_data_base_stay(tmp_path: Path) -> None:
    table = pandas.DataFrame({"a": [Decimal("1.50"), Decimal("2.25")], "b": [1, 2]})
    table.to_parquet(tmp_path / "t.parquet")
    assert [*map(float, read_table(tmp_path / "t.parquet").frame["a"])] == [1.5, 2.25]


@pytest.mark.parametrize(
    "text", ["5.1,3.5,x\n4.9,3.0,y\n4.7,3.2,x\n", "1,7,0\n2,5,1\n3,6,0\n", "0.5,0.6\n0.1,0.2\n"]
)
def test_a_first_line_of_data_is_seen_and_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    assert len(table.frame) == text.count("\n")
    assert table.frame.columns[0] == "column_1"
    assert any("first line looks like data" in note for note in table.notes)
    as_asked = read_table(tmp_path / "t.csv", header="yes")
    assert len(as_asked.frame) == text.count("\n") - 1
    assert as_asked.notes == ()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("t.csv", b"", r"t\.csv is empty"),
        ("t.csv", b"\n\n\n", "is empty"),
        ("t.csv", b"a,b\n", "must have rows to learn from"),
        ("t.csv", b"only one column\nx\ny\n", "at least two columns"),
        ("t.csv", b"Sales of May\na,b\n1,2\n", "Sales of May', is not .*: remove lines above"),
        ("t.csv", b"# made by us\na,b\n1,2\n", "# made by us', is not .*: remove lines above"),
        ("t.csv", b"yes,no,yes\nno,no,yes\n", r"'yes' is there twice \(header=\"no\" if the fir"),
        ("t.parquet", b"this is no parquet", r"cannot be read as a \.parquet file"),
        ("t.csv.gz", b"this is not compressed", r"cannot be read as a \.gz file"),
        ("t.xlsx", b"no archive", r"cannot be read as a \.xlsx file"),
        (
            "t.xlsx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 99,
            "locked by a password or of another kind",
        ),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "it is damaged, .*EOFError"),
        ("t.zip", b"", r"t\.zip is empty"),
        ("t.zip", b"PK", r"but got t\.zip: if it holds CSV, rename it to t\.csv\.zip\."),
        ("t.json", b"{}", r"must be a file of CSV and TSV .* but got t\.json"),
        ("table", b"a,b\n", "must be a file of"),
        ("t.csv", b'a,b\n1,2\n3,4,5,6\n"', r"cannot be read as a \.csv file"),
        (".", None, "is a folder"),
        ("absent.csv", None, "is no file"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    name: str, content: bytes | None, match: str, tmp_path: Path
) -> None:
    pytest.importorskip("openpyxl")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=match) as error:
        read_table(tmp_path / name)
    assert "\n" not in str(error.value)


def test_an_archive_holds_one_table_beside_the_files_of_a_system(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("in/", "in/t.csv", "__MACOSX/in/._t.csv"):
            archive.writestr(name, "a,b\n1,2\n" if name == "in/t.csv" else "")
    assert read_table(path).frame.to_dict("list") == {"a": [1], "b": [2]}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("in/u.csv", "a,b\n1,2\n")
    with pytest.raises(TableError, match=r"must hold one file, but .* holds 2: unpack it"):
        read_table(path)


def test_an_open_file_is_no_table() -> None:
    with pytest.raises(TableError, match=r"StringIO.*: pass its path"):
        read_table(StringIO("a,b\n1,2\n"))


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(pandas, "read_parquet", refused)
    with pytest.raises(TableError, match=r"t\.parquet cannot be read: Permission denied\.$"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_has_a_way_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"t\.csv is a pipe or a device: save its content to a"):
        read_table(tmp_path / "t.csv")


def test_a_table_in_the_second_sheet_is_not_called_empty_without_a_word(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as book:
        pandas.DataFrame({"Read me": []}).to_excel(book, sheet_name="notes", index=False)
        houses().to_excel(book, sheet_name="houses")
    with pytest.raises(
        TableError, match=r"has none\. Only the first of 2 sheets is read, 'notes'"
    ):
        read_table(tmp_path / "t.xlsx")


def test_names_of_several_levels_are_one_text_each() -> None:
    levels = pandas.MultiIndex.from_product([["a", "b"], [1]])
    table = read_table(pandas.DataFrame([[1, 2]], columns=levels))
    assert [*table.frame.columns] == ["('a', 1)", "('b', 1)"]


def written(frame: Any, form: str, folder: Path) -> Any:
    """Return a frame, or the path of a file that it was written to."""
    if form == "frame":
        return frame
    if form == "t.xlsx":
        pytest.importorskip("openpyxl")
    write = frame.to_csv if form == "t.csv" else frame.to_excel
    write(folder / form, index=False)
    return folder / form


@pytest.mark.parametrize("form", ["frame", "t.csv", "t.xlsx"])
def test_only_columns_that_a_model_does_not_use_may_come_twice(form: str, tmp_path: Path) -> None:
    twice = pandas.DataFrame([[1, 2, 3]], columns=["x", "note", "note"])
    source = written(twice, form, tmp_path)
    table = read_table(source, learnt=Learnt(NO_SIGNS, [], ["x"]))
    assert table.frame["x"].tolist() == [1]
    for learnt in (None, Learnt(NO_SIGNS, [], ["note"])):
        with pytest.raises(TableError, match="different names, but 'note' is there twice"):
            read_table(source, learnt=learnt)


CELLS_BESIDE_BLANKS: dict[str, list[Any]] = {
    "numbers": [1.5, 2.5, 4.0],
    "whole numbers": [1, 2, 4],
    "dates": [*pandas.date_range("2020-01-30", periods=3)],
    "words": ["x", "y", "z"],
    "true and false": [True, False, True],
    "words and numbers": ["x", 1, 2.5],
}


@pytest.mark.parametrize("form", ["frame", "t.xlsx"])
@pytest.mark.parametrize("kind", CELLS_BESIDE_BLANKS)
def test_a_blank_is_a_missing_cell_beside_any_other(kind: str, form: str, tmp_path: Path) -> None:
    cells = CELLS_BESIDE_BLANKS[kind]
    frame = pandas.DataFrame({"a": [*cells, " ", "\t", ""], "b": 1})
    column = read_table(written(frame, form, tmp_path)).frame["a"]
    assert column.isna().tolist() == [False] * 3 + [True] * 3
    assert column.dropna().tolist() == cells
    if kind in ("numbers", "whole numbers", "dates"):
        assert column.dtype.kind == ("M" if kind == "dates" else "f")


def test_a_first_line_of_equal_data_has_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("yes,no,yes\nno,no,yes\n")
    assert len(read_table(tmp_path / "t.csv", header="no").frame) == 2


@pytest.mark.parametrize("header", ["auto", "no"])
def test_an_excel_file_without_names_is_seen_and_said(header: Any, tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    rows = pandas.DataFrame([[5.1, 3, "x"], [4.9, 2, "y"], [4.7, 4, "x"]])
    rows.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    table = read_table(tmp_path / "t.xlsx", header=header)
    assert table.frame.to_dict("list") == {
        "column_1": [5.1, 4.9, 4.7], "column_2": [3, 2, 4], "column_3": ["x", "y", "x"]
    }  # fmt: skip
    assert len(table.notes) == 1
    assert "column_1, column_2, column_3" in table.notes[0]
    assert len(read_table(tmp_path / "t.xlsx", header="yes").frame) == 2


@pytest.mark.parametrize("form", ["frame", "t.parquet"])
def test_an_index_with_a_name_is_left_out_and_named(form: str, tmp_path: Path) -> None:
    frame: Any = pandas.DataFrame({"a": [1, 2], "b": [3, 4], "y": [0, 1]}).set_index("a")
    if form != "frame":
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / form)
    table = read_table(frame if form == "frame" else tmp_path / form)
    assert [*table.frame.columns] == ["b", "y"]
    said = "Left out: `a`, the table's index (`reset_index()` makes it a column)."
    assert table.notes == (said,)


class Broken:
    def to_pandas(self) -> None:
        raise TypeError("unhashable type: 'dict'")


@pytest.mark.parametrize(("given", "shown"), [(3, "3"), (None, "None"), (Broken(), "<")])
def test_what_is_no_table_is_named(given: Any, shown: str) -> None:
    with pytest.raises(TableError, match=f"a frame of pandas, polars or pyarrow, but got {shown}"):
        read_table(given)


def test_a_wrong_header_is_named() -> None:
    with pytest.raises(ValueError, match=r'`header` must be "auto", "yes" or "no"'):
        read_table("t.csv", header="maybe")  # type: ignore[arg-type]


def read(text: str, folder: Path, learnt: Learnt | None = None) -> dict[str, Any]:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return dict(read_table(folder / "t.csv", learnt=learnt).frame.to_dict("list"))


def test_dates_and_addresses_beside_points_in_thousands_stay_text(tmp_path: Path) -> None:
    lines = [f"{day}.12.2020;1.{day}4,56;10.0.0.{day};{day}.000" for day in range(10, 30)]
    columns = read("\n".join(["date;price;host;rows", *lines]), tmp_path)
    assert columns["date"][0] == "10.12.2020"
    assert columns["host"][0] == "10.0.0.10"
    assert columns["price"][:2] == [1104.56, 1114.56]
    assert columns["rows"][0] == 10_000


def test_a_sign_far_below_the_first_line_is_seen(tmp_path: Path) -> None:
    lines = ["1;2"] * 5_000 + ["1,5;2"]
    assert read("\n".join(["a;b", *lines]), tmp_path)["a"][-1] == 1.5


def test_long_lines_and_long_cells_are_read(tmp_path: Path) -> None:
    names = ",".join(f"measure_{i:06}" for i in range(25_000))
    values = ",".join(["0.5"] * 25_000)
    assert len(names) > SAMPLE
    assert len(read(f"{names}\n{values}\n", tmp_path)) == 25_000
    text = "word " * 40_000
    assert read(f"a,b\n1,{text}\n2,x\n", tmp_path)["b"][1] == "x"


CELLS: dict[str, tuple[str, Learnt | None, dict[str, Any]]] = {
    "points in thousands": (
        "a;b\n1.234,5;x\n2.000,25;y\n", None, {"a": [1234.5, 2000.25], "b": ["x", "y"]}
    ),
    "commas in thousands": (
        'a;b\n"1,234.5";x\n"22,000.25";y\n', None, {"a": [1234.5, 22000.25], "b": ["x", "y"]}
    ),
    "a line for Excel": ("sep=;\na;b\n1,5;x\n2,5;y\n", None, {"a": [1.5, 2.5], "b": ["x", "y"]}),
    "points": ("a,b\n1.5,x\n2.5,y\n", None, {"a": [1.5, 2.5], "b": ["x", "y"]}),
    "a comma in a word": ("a;b\n1.5;x\n2.5;y, z\n", None, {"a": [1.5, 2.5], "b": ["x", "y, z"]}),
    "years as names": (
        "a,2019,2020\nA,1,2\nB,3,4\n", None, {"a": ["A", "B"], "2019": [1, 3], "2020": [2, 4]}
    ),
    "years that fall": (
        "2022,2021,2020\n5,6,7\n8,9,1\n", None, {"2022": [5, 8], "2021": [6, 9], "2020": [7, 1]}
    ),
    "years that rise": (
        "2020,2021,2022\n5,6,7\n8,9,1\n", None, {"2020": [5, 8], "2021": [6, 9], "2022": [7, 1]}
    ),
    "a comma in a name": ('"a, b",c\n1,2\n3,4\n', None, {"a, b": [1, 3], "c": [2, 4]}),
    "quotes after a blank": (
        'a, "b, x", "b, y"\n5,6,7\n8,9,1\n', None, {"a": [5, 8], "b, x": [6, 9], "b, y": [7, 1]}
    ),
    "points between thousands and words": (
        "room;price\n12;1.200", Learnt(Signs(",", "."), ["room", "elsewhere"], []),
        {"room": ["12"], "price": [1200.0]},
    ),
    "commas between thousands": (
        "price;x\n1,200;0", Learnt(Signs(".", ""), [], []), {"price": [1200.0], "x": [0]}
    ),
    "another separator than in fit": (
        "x,price\n12,1.200", Learnt(Signs(",", "."), [], []), {"x": [12], "price": [1.2]}
    ),
    "no signs": ("price;x\n1,200;0", Learnt(Signs("", ""), [], []), {"price": [1.2], "x": [0]}),
    "one column": ("a\n1\n2\n", Learnt(NO_SIGNS, [], []), {"a": [1, 2]}),
    "one column of decimal commas": (
        "a\n1,5\n2,5\n", Learnt(Signs(",", ""), [], []), {"a": [1.5, 2.5]}
    ),
    "one column of words": ("a\nParis, FR\n", Learnt(NO_SIGNS, ["a"], []), {"a": ["Paris, FR"]}),
    "zeros before words without names": (
        "007;1.5\n012;2.5\n", Learnt(NO_SIGNS, ["column_1"], []),
        {"column_1": ["007", "012"], "column_2": [1.5, 2.5]},
    ),
    "separators at the ends of lines": (
        "a,price,b\n1,2,3,\n4,5,6,\n", None, {"a": [1, 4], "price": [2, 5], "b": [3, 6]}
    ),
    "names of rows": ("a,b\nfirst,1,2\nsecond,3,4\n", None, {"a": [1, 3], "b": [2, 4]}),
    "points in words": (
        "price;what\n5,5;1.5 l\n6,25;2.0 kg\n", None,
        {"price": [5.5, 6.25], "what": ["1.5 l", "2.0 kg"]},
    ),
}  # fmt: skip
"""The text of a file, what a model knows of it, and its columns."""


@pytest.mark.parametrize("kind", CELLS)
def test_cells_are_those_that_were_written(kind: str, tmp_path: Path) -> None:
    text, learnt, columns = CELLS[kind]
    assert read(text, tmp_path, learnt) == columns


def test_a_word_among_numbers_leaves_the_others_what_they_are(tmp_path: Path) -> None:
    learnt = Learnt(Signs(",", "."), ["room"], [])
    columns = read("room;area\n12;1.200\n13;2,5\n13;k.A.\n", tmp_path, learnt)
    assert columns == {"room": ["12", "13", "13"], "area": ["1200", "2.5", "k.A."]}
    columns = read('room;area\n1;5.5\n2;?\n3;"1,000"', tmp_path, Learnt(Signs(".", ","), [], []))
    assert columns["area"] == ["5.5", "?", "1000"]


@pytest.mark.parametrize("form", ["t.csv", "t.xlsx"])
def test_words_such_as_none_stay_in_columns_of_text(form: str, tmp_path: Path) -> None:
    table = pandas.DataFrame({"allergy": ["None", "Nuts", None, "NA"] * 5, "x": range(20)})
    table["n"] = ["NA", 2, None, 4] * 5
    read_back = read_table(written(table, form, tmp_path)).frame
    assert read_back["allergy"].isna().sum() == 5
    assert read_back["allergy"].dropna().head(3).tolist() == ["None", "Nuts", "NA"]
    assert read_back["n"].head(4).fillna(0).tolist() == [0, 2, 0, 4]
    assert pandas.api.types.is_float_dtype(read_back["n"])


def test_a_model_reads_words_such_as_none_as_its_fit_did(tmp_path: Path) -> None:
    columns = read("a,n\nNone,1\n,NA\n", tmp_path, Learnt(NO_SIGNS, ["a"], []))
    assert columns["a"][0] == "None"
    assert pandas.isna([columns["a"][1], columns["n"][1]]).all()


def test_categories_with_decimal_commas_are_numbers() -> None:
    frame = pandas.DataFrame({"size": pandas.Categorical(["1,5", "2,5", None])})
    assert read_table(frame).frame["size"].astype(float).tolist()[:2] == [1.5, 2.5]


@pytest.mark.parametrize("learnt", [None, Learnt(Signs(",", ""), [], [])])
def test_quoted_decimal_commas_are_numbers(learnt: Learnt | None, tmp_path: Path) -> None:
    columns = read('q,x\n"125,73",1\n"-0,5",2\n"1,234",3\n', tmp_path, learnt)
    assert columns["q"] == [125.73, -0.5, 1.234]
    assert read('q,x\n"1,234",1.5\n"2,345",2\n', tmp_path)["q"] == [1234, 2345]


def test_money_and_a_word_among_numbers_leave_numbers(tmp_path: Path) -> None:
    lines = [f"1.{i}4,5 €;x{i}" for i in range(10, 30)]
    columns = read("\n".join(["q;w", "k.A.;x", *lines]), tmp_path)
    assert columns["q"][:3] == ["k.A.", "1104.5€", "1114.5€"]
    assert columns["w"][1] == "x10"


def arrow_columns() -> dict[str, Any]:
    pyarrow = pytest.importorskip("pyarrow")
    days = pandas.date_range("2020", periods=3)
    return {
        "timestamp": pyarrow.array(days),
        "zoned": pyarrow.array(days.tz_localize("UTC")),
        "date": pyarrow.array(days.date),
        "list": pyarrow.array([[1, 2]] * 3),
        "struct": pyarrow.array([{"a": 1}] * 3),
        "dictionary": pyarrow.array(["u", "v", None]).dictionary_encode(),
        "int": pyarrow.array([1, 2**60 + 1, None]),
        "uint8": pyarrow.array([1, 2, None], pyarrow.uint8()),
        "bool": pyarrow.array([True, None, False]),
        "decimal": pyarrow.array([Decimal("1.5"), None, Decimal("2.5")]),
        "duration": pyarrow.array(pandas.to_timedelta([1, 2, 3], unit="s")),
        "null": pyarrow.nulls(3),
    }


@pytest.mark.parametrize("kind", arrow_columns())
def test_columns_of_arrow_become_those_of_pandas(kind: str) -> None:
    table = pytest.importorskip("pyarrow").table({"odd": arrow_columns()[kind], "x": [1, 2, 3]})
    given = table.to_pandas(types_mapper=pandas.ArrowDtype)
    back = read_table(given).frame["odd"]
    assert not isinstance(back.dtype, pandas.ArrowDtype)
    plain = table.to_pandas()["odd"].astype(object)
    if kind in ("int", "uint8"):
        assert back.tolist()[:2] == arrow_columns()[kind].to_pylist()[:2]
    else:
        pandas.testing.assert_series_equal(back.astype(object), plain, check_dtype=False)
    assert isinstance(given["odd"].dtype, pandas.ArrowDtype), "the table of the user is as it was"


@pytest.mark.parametrize(
    "text", ["a,b\nr1,None,2\nr2,,2\nr3,x,2\n", "a,b\nNone,2,\n,2,\nx,2,\n", "None,2.5\n,3\nx,4\n"]
)
def test_words_such_as_none_stay_in_files_of_any_form(text: str, tmp_path: Path) -> None:
    column, numbers = read(text, tmp_path).values()
    assert (column[0], column[2], numbers[0] // 1) == ("None", "x", 2)
    assert pandas.isna(column[1])


def test_numbers_with_signs_of_money_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("a,price\n" + "".join(f"{i},${i * 50}.5\n" for i in range(1, 40)))
    prices = as_numbers(read_table(path).frame["price"])
    assert prices.tolist() == [i * 50 + 0.5 for i in range(1, 40)]


@pytest.mark.parametrize(
    ("decimal", "cells", "numbers"),
    [
        (".", ["12 %", "7.5%", "-3 %"], [12, 7.5, -3]),
        (".", ["₹1,299", "₹399.5", "-₹5"], [1299, 399.5, -5]),
        (".", ["1'234'567.5", "12\u2019000.25", "7.5"], [1234567.5, 12000.25, 7.5]),
        (",", ["1 234,5", "12\u00a0000,25 €", "7\u202f000"], [1234.5, 12000.25, 7000]),
        (".", ["\u22125.5", "$-3", "-$ 2", "$ -4"], [-5.5, -3, -2, -4]),
        (".", ["(1,234.5)", "($3)", "2"], [-1234.5, -3, 2]),
        (".", ["$(1,490.8)", "$ (5)", "$5-", "2"], [-1490.8, -5, -5, 2]),
        (",", ["(1.349,5) €", "349,25- €", "5\u2212€", "2 €"], [-1349.5, -349.25, -5, 2]),
        (",", ["EUR (5,5)", "(2) EUR", "EUR 3-", "EUR 7"], [-5.5, -2, -3, 7]),
        (",", ["1.234,5 kg", "0,25 kg"], [1234.5, 0.25]),
        (",", ["EUR 1.234,5", "EUR -0,25"], [1234.5, -0.25]),
    ],
)
def test_numbers_are_read_as_they_are_shown(
    decimal: str, cells: list[str], numbers: list[float], tmp_path: Path
) -> None:
    text = "a;b\n" + "".join(f"{cell};0{decimal}5\n" for cell in cells)
    for learnt in (None, Learnt(Signs(decimal, "," if decimal == "." else ""), [], ["a"])):
        found = read(text, tmp_path, learnt)
        assert as_numbers(pandas.Series(found["a"])).tolist() == numbers
        assert found["b"] == [0.5] * len(cells)


def test_telephone_numbers_stay_words(tmp_path: Path) -> None:
    for numbers in (["030 123", "040 456"], ["555 123 456", "555 765 432"]):
        assert read(f"a;b\n{numbers[0]};1\n{numbers[1]};2\n", tmp_path)["a"] == numbers
    learnt = Learnt(NO_SIGNS, [], ["a"])
    assert read("a;b\n555 123 456;1\n", tmp_path, learnt)["a"] == [555123456]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["5 %", "7.5%", "0.05", "1 %"], [5, 7.5, np.nan, 1]),
        (["0.05"], [0.05]),
        (["5 %"], [5]),
        (["0.05", "7", "5 %"], [0.05, 7, np.nan]),
        (["€7", *["$5"] * 19, "3"], [np.nan, *[5.0] * 19, 3.0]),
    ],
)
def test_shares_and_currencies_are_not_mixed(cells: list[str], numbers: list[float]) -> None:
    np.testing.assert_array_equal(as_numbers(pandas.Series(cells)), numbers)


def test_other_sheets_are_named(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as book:
        for name in ("Data", "More"):
            houses().to_excel(book, sheet_name=name, index=False)
    (said,) = read_table(tmp_path / "t.xlsx").notes
    assert said == "Only the first of 2 sheets is read, 'Data'."


def test_a_unit_stays_with_its_number(tmp_path: Path) -> None:
    learnt = Learnt(Signs(",", "."), [], ["q"])
    cells = read("q;x\n5,5 %;1\n0,055;2\n€ 1.000;3\n", tmp_path, learnt)["q"]
    assert cells == ["5.5%", "0.055", "1000€"]


@pytest.mark.parametrize("index", [["u", "v"], [0.5, 1.5], pandas.date_range("2020", periods=2)])
def test_an_index_that_is_data_is_left_out_and_said(index: Any) -> None:
    frame = pandas.DataFrame({"a": [1, 2], "b": [3, 4]}, index=index)
    (said,) = read_table(frame).notes
    assert said == "Left out: the table's index (`reset_index()` makes it a column)."
    assert read_table(frame.set_axis([7, 3])).notes == ()


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "arrow types", "parquet"])
def test_whole_numbers_of_64_bits_are_exact_beside_a_gap(kind: str, tmp_path: Path) -> None:
    labels = [None, 2**60, 2**60 + 1] * 4
    pyarrow = pytest.importorskip("pyarrow")
    source: Any = pyarrow.table({"x": range(12), "y": labels})
    if kind == "polars":
        source = pytest.importorskip("polars").DataFrame({"x": range(12), "y": labels})
    elif kind == "arrow types":
        source = source.to_pandas(types_mapper=pandas.ArrowDtype)
    elif kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(source, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    found = read_table(source).frame["y"]
    assert [*found.dropna()] == [label for label in labels if label is not None]
    assert found.isna().sum() == 4


def test_a_frame_that_pandas_cannot_hold_is_refused_with_the_reason() -> None:
    class Odd:
        def to_pandas(self) -> None:
            raise NotImplementedError("no 128 bits")

        def __repr__(self) -> str:
            return "an odd frame"

    with pytest.raises(TableError, match=r"an odd frame, which pandas cannot hold: .*no 128 bits"):
        read_table(Odd())


THOUSANDS = [
    (";", ("173;2.643", "99;999", "101;1.250"), (2643, 999, 1250)),
    ("\t", ("173\t2,643", "99\t999"), (2643, 999)),
    (";", ("173;2.643.000", "99;1.050.000"), (2643000, 1050000)),
    ("\t", ("173\t2,643,000",), (2643000,)),
    # Three decimals everywhere are decimals, and so are those beside other decimals.
    (";", ("173;2.643", "99;1.250"), (2.643, 1.25)),
    (";", ("17.5;2.643", "99;999"), (2.643, 999)),
    (";", ("173;0.643", "99;999"), (0.643, 999)),
    (",", ("173,2.643", "99,999"), (2.643, 999)),
    # A point that divides no thousands is not taken away.
    (";", (*["1;4.033,18"] * 19, "3;4647.5"), (*[4033.18] * 19, 4647.5)),
]


@pytest.mark.parametrize(("sign", "lines", "rents"), THOUSANDS)
def test_signs_between_thousands_are_told_from_decimal_ones(
    sign: str, lines: tuple[str, ...], rents: tuple[float, ...], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"size{sign}rent", *lines * 10]), encoding="utf-8")
    read = as_numbers(read_table(path).frame["rent"])
    assert read.to_list() == pytest.approx([*rents] * 10)


def test_millions_in_text_of_a_frame_are_numbers() -> None:
    frame = pandas.DataFrame({"rent": ["2.643.000 €", "1.050.000 €"], "size": [1, 2]})
    assert as_numbers(read_table(frame).frame["rent"]).to_list() == [2643000, 1050000]


def test_addresses_and_versions_divide_no_thousands(tmp_path: Path) -> None:
    path = tmp_path / "hosts.csv"
    path.write_text("host;load\n192.168.100.200;1.5\n10.0.0.1;2.250\n", encoding="utf-8")
    frame = read_table(path).frame
    assert frame["load"].to_list() == [1.5, 2.25]
    assert frame["host"].to_list() == ["192.168.100.200", "10.0.0.1"]


def test_decimal_commas_do_not_divide_columns_without_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("-1,5;0,3;u\n2,25;0,5;v\n" * 5, encoding="utf-8")
    assert read_table(path).frame.iloc[0].to_list() == [-1.5, 0.3, "u"]


@pytest.mark.parametrize("text", ["17,3,250\n", "1,2,3\n1,2,4\n", "u,2,3\n"])
def test_a_model_without_names_finds_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    learnt = Learnt(NO_SIGNS, (), ("column_1", "column_2", "column_3"))
    assert len(read_table(path, learnt=learnt).frame) == text.count("\n")
    path.write_text("column_3,column_1,column_2\n" + text, encoding="utf-8")
    assert len(read_table(path, learnt=learnt).frame) == text.count("\n")


def test_names_that_are_numbers_are_known_to_the_model(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("10,5,7\n1,2,3\n", encoding="utf-8")
    learnt = Learnt(NO_SIGNS, (), ("5", "10", "7"))
    assert read_table(path, learnt=learnt).frame["10"].to_list() == [1]


def test_blank_lines_in_a_file_of_one_column_are_its_gaps(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n\n3\n", encoding="utf-8")
    frame = read_table(path, learnt=Learnt(NO_SIGNS, (), ("x",))).frame
    assert frame["x"].isna().to_list() == [False, True, False]
