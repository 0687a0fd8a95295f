"""A text file that cannot be read is refused by its line, and no cell gets into another row."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from optuna_daub.tabular.lines import SAMPLE
from optuna_daub.tabular.reading import read_table
from optuna_daub.tabular.table import NO_SIGNS
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.target import checked_target


pytest.importorskip("pandas")

FAR = SAMPLE // 4
"""Number of rows, of at least four bytes each, that nothing but pandas reads to the end."""

FAULTS: dict[str, tuple[list[str], dict[str, Any], int, str]] = {
    # rows, how they are read, line of the fault, words
    "a comment": (["a,b", "1,2", "3,4", "# so, it, ends"], {}, 4, "'it', 'ends'], and no line"),
    "one cell too many": (["a,b", "1,2", "", "3,4,5"], {}, 4, "than 2. Put cells that hold comma"),
    "semicolons": (["a;b", "1;2", "3;4;5"], {}, 3, "cells that hold semicolons in quotes"),
    "a told separator": (["sep=;", "a;b", "1;2", "3;4;5"], {}, 4, "has 3 cells, ['3', '4', '5']"),
    "no names": (["1,2", "3,4,5"], {"header": "no"}, 2, "has 3 cells"),
    "cells that name rows": (["a,b", "r,1,2", "s,3,4,5"], {}, 3, "has 4 cells"),
    "far below": (["a,b", *["1,2"] * FAR, "3,4,5"], {}, FAR + 2, "has 3 cells"),
    "an open quote": (["a,b", "1,2", '3,"4', "5,6"], {}, 3, "never closed. Close it, or take it"),
    "a quote open at the end": (["a,b", "1,2", '3,"4'], {}, 3, "never closed"),
    "a quote open for long": (["a,b", '1,"2', *["3,4"] * 2 * FAR], {}, 2, "never closed"),
    "a quote that closes": (
        ["a,b", '1,"2', "3,4", '5,"6', "7,8,9"], {}, 5, "has 3 cells"
    ),
    "a quote that joins lines": (
        ["a,b", "1,2", '3,"4', "5,6", '7,"8,9'], {}, 3, "lines 3 to 5, which a quote"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["t.csv", "t.csv.gz", "wide.csv"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_said_with_its_line(kind: str, form: str, tmp_path: Path) -> None:
    rows, options, line, words = FAULTS[kind]
    text = "\n".join(rows).encode("utf-16" if form == "wide.csv" else "utf-8")
    (tmp_path / form).write_bytes(gzip.compress(text) if form.endswith("gz") else text)
    with pytest.raises(TableError, match=r"cannot be read as a \.(csv|gz) file: ") as error:
        read_table(tmp_path / form, **options)
    assert words in str(error.value)
    assert re.search(rf"\blines? {line:,}\b", str(error.value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 9,
        gzip.compress(b"a,b\n1,2\n", mtime=0),
        b"PK\3\4\x14\0\6\0\b\0",
        "a,b\n女,1\n".encode("cp932"),  # as Excel writes it in Japan
    ],
)
def test_what_is_no_text_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableError, match=r"must be text in UTF-8 .*: save it as UTF-8, or give"):
        read_table(tmp_path / "t.csv")


def test_a_title_with_an_odd_blank_is_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Sales\u00a0of\u2009May\na,b\n1,2\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"is not divided by .*: remove lines above the names"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("names", ["falling", "equal", "words"])
@pytest.mark.parametrize("labels", [("007", "008"), ("TRUE", "false"), ("None", "some")])
def test_names_of_rows_leave_cells_in_their_rows(
    names: str, labels: tuple[str, str], tmp_path: Path
) -> None:
    """As R writes them: a first cell in each row, without a name above it."""
    n = 40
    is_high = [at > 25 for at in range(n)]
    called = {"falling": range(n, 0, -1), "equal": [7] * n, "words": [f"r{at}" for at in range(n)]}
    rows = zip(called[names], range(n), [labels[high] for high in is_high], strict=True)
    lines = ["a,y", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = read_table(tmp_path / "t.csv")
    target = checked_target(table.frame, "y", None, table.written)
    assert table.frame["a"].tolist() == [*range(n)]
    assert target.classes[target.values].tolist() == [labels[high] for high in is_high]
    assert len(table.notes) == 1
    assert "the first cell of each line is taken for the name of a row" in table.notes[0]
    with pytest.warns(UserWarning, match="is taken for the name of a row, and left out"):
        later = read_table(tmp_path / "t.csv", learnt=Learnt(NO_SIGNS, [], ["a"]))
    assert later.frame["a"].tolist() == [*range(n)]
