"""Every program in smoke mode: made data, no file beside the project, nothing left in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import automl
from benchmarks import decision_cost
from benchmarks import replay
from benchmarks import search_cv
from benchmarks import two_workers
from benchmarks.fit import process
from benchmarks.fit import seconds
from benchmarks.replay_methods import METHODS
from benchmarks.rows import ROOT
from benchmarks.rows import read_rows


pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of learners that do not suit made data
]


@pytest.mark.parametrize("program", [automl, decision_cost, search_cv, two_workers])
def test_a_program_writes_its_rows_and_its_table(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the runs in new processes the first one is.
    ways = iter([decision_cost.apart])
    monkeypatch.setattr(decision_cost, "apart", lambda run: next(ways, lambda run: run())(run))
    program.main(["--smoke", "--results", str(tmp_path)])
    stem = program.__name__.rpartition(".")[2]
    assert read_rows(tmp_path / f"{stem}.jsonl")
    assert "|---|" in (tmp_path / f"{stem}.md").read_text(encoding="utf-8")


def test_automl_tells_parts_apart_and_the_largest_overrun() -> None:
    def row(method: str, seed: int, seconds: float, **accuracy: float) -> dict[str, Any]:
        key = {"table": "made", "method": method, "minutes": 1.0, "seed": seed}
        return {"key": key, "seconds": seconds, "accuracy": accuracy}

    single, both = "AutoGluon medium", {", single": 0.5, ", ensemble": 0.75}
    rows = [row("ours", 0, 59.0, **{"": 0.5}), row("ours", 1, 63.0, **{"": 0.7})]
    (shown,) = automl.report([*rows, row(single, 0, 61.0, **both)])
    assert "| ours | 60.00 ± 10.00 | 3 |" in shown
    assert "| AutoGluon medium, single | 50.00 | 1 |" in shown
    assert "| AutoGluon medium, ensemble | 75.00 | 1 |" in shown


def test_replay_runs_as_a_script_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    arguments = ["--smoke", "--results", str(tmp_path)]
    subprocess.run(
        [sys.executable, "benchmarks/replay.py", *arguments, "--methods", "oracle", "ABC"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    assert len(read_rows(tmp_path / "replay.jsonl")) == 2 * 2
    for _ in range(2):
        replay.main(arguments)
    assert len(read_rows(tmp_path / "replay.jsonl")) == 2 * len(METHODS)
    table = (tmp_path / "replay.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in METHODS)


def test_the_intervals_of_open_pools_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds.main(["--smoke", "--values", "0.2", "0.4", "--results", str(tmp_path)])
    report = (tmp_path / "seconds.md").read_text(encoding="utf-8")
    assert all(f"| count_mean {value} | one, new |" in report for value in (0.2, 0.4))
    process.main(["--smoke"])
    assert "| new |" in capsys.readouterr().out


def test_length_scales_are_compared_by_what_searches_lose(
    capsys: pytest.CaptureFixture[str],
) -> None:
    process.main(["--smoke", "--values", "0.4"])
    header, _, row = capsys.readouterr().out.splitlines()[-3:]
    assert header.endswith("| 100 units |")
    lost = [float(entry) for entry in row.split("|")[4:-1]]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] < 0.1, "at most what the made problem may lose"


def test_values_of_the_prior_are_compared_on_boosted_trees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    automl.read(None)[:600].to_parquet(tmp_path / "rows.parquet")
    now = process.PRIOR.median.w
    values = ["--number", "w", "--values", str(now), "50.0"]
    process.main(["--tables", str(tmp_path / "rows.parquet"), *values])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"rows.parquet, w {value}".replace("rows", str(tmp_path / "rows")) for value in (now, 50.0)
    ]
    same, other = (float(line.split()[-1]) for line in lines)
    assert same != other


def test_no_program_has_nothing_to_say_where_the_files_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = tmp_path / "absent"
    for name, source in replay.SOURCES.items():
        if source.path is not None:
            monkeypatch.setitem(
                replay.SOURCES, name, type(source)(source.problems, absent, source.seeds)
            )
    replay.main(["--results", str(tmp_path), "--methods", "oracle"])
    assert f"lcdb is left out: {absent} is not there" in capsys.readouterr().out
    assert {row["key"]["source"] for row in read_rows(tmp_path / "replay.jsonl")} == {"made"}
