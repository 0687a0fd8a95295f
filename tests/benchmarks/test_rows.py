"""Rows: written one by one, stamped, and not run twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import parser_of
from benchmarks.rows import provenance
from benchmarks.rows import read_rows
from benchmarks.rows import record
from benchmarks.rows import run_all


def test_a_run_whose_row_is_there_is_not_repeated(tmp_path: Path) -> None:
    done = []

    def run(seed: int) -> Run:
        def measure() -> dict[str, int]:
            done.append(seed)
            return {"square": seed**2}

        return Run({"method": "square", "seed": seed}, measure)

    path = tmp_path / "rows.jsonl"
    run_all([run(2)], path)
    rows = run_all([run(2), run(3), run(3)], path)
    assert done == [2, 3]
    assert [row["square"] for row in rows] == [4, 9, 9]
    assert read_rows(path) == rows[:2]


def test_after_the_time_limit_only_known_rows_are_returned(tmp_path: Path) -> None:
    known, late = Run({"seed": 0}, lambda: {"loss": 0.5}), Run({"seed": 1}, lambda: {})
    run_all([known], tmp_path / "rows.jsonl")
    rows = run_all([known, late], tmp_path / "rows.jsonl", time_limit=0.0)
    assert [row["loss"] for row in rows] == [0.5]


def test_every_row_says_when_and_by_which_versions_it_was_made(tmp_path: Path) -> None:
    (row,) = run_all([Run({"seed": 0}, lambda: {})], tmp_path / "rows.jsonl")
    assert {"date", "commit", "python", "optuna", "numpy"} <= set(row["stamp"])
    assert provenance([row]).startswith("1 rows of ")


def test_a_report_names_where_its_rows_come_from(tmp_path: Path) -> None:
    options = parser_of(None).parse_args(["--results", str(tmp_path)])
    runs = [Run({"seed": 0}, lambda: {"loss": 0.5})]
    record("known", runs, options, lambda rows: [f"loss {rows[0]['loss']}"])
    text = (tmp_path / "known.md").read_text(encoding="utf-8")
    assert text == f"{provenance(read_rows(tmp_path / 'known.jsonl'))}\n\nloss 0.5\n"
    with pytest.raises(SystemExit, match="nothing to report"):
        record("none", [], options, lambda rows: [])


def test_a_run_that_breaks_down_keeps_no_other_from_being_done(tmp_path: Path) -> None:
    def broken() -> Row:
        raise RuntimeError("no rung left")

    path = tmp_path / "rows.jsonl"
    runs = [Run({"seed": 0}, broken), Run({"seed": 1}, lambda: {"loss": 0.5})]
    with pytest.raises(RuntimeError, match="no rung left"):
        run_all(runs, path)
    assert [row["key"]["seed"] for row in read_rows(path)] == [1]
