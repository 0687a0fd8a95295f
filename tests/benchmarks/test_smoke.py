"""Every benchmark program in smoke mode: seconds, on made data, nothing left in the results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.paper_tables import TABLES
from benchmarks.rows import ROOT
from benchmarks.rows import read_rows


PROGRAMS = sorted(
    path.name
    for path in (ROOT / "benchmarks").glob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)
ELSEWHERE = {"paper_tables.py", "replay.py", "search.py", "search_methods.py", "training.py"}
"""Programs of several commands, and those that have a test file of their own."""
WITHOUT = {"fit_calibrated.py", "gain_spread.py", "ideal_workers.py"}
"""No smoke mode: the first fits what the package ships, and so writes into it; the others take
seconds and write nothing."""

COMMANDS = [
    *([program] for program in PROGRAMS if program not in ELSEWHERE | WITHOUT),
    *(["paper_tables.py", name] for name in TABLES),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_program_writes_its_table_to_a_temporary_folder(
    command: list[str], tmp_path: Path
) -> None:
    program, *name = command
    subprocess.run(
        [sys.executable, f"benchmarks/{program}", *name, "--smoke"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        timeout=300,
    )
    stem = Path(command[-1]).stem
    (rows,), (table,) = (tmp_path.rglob(f"{stem}.{kind}") for kind in ("jsonl", "md"))
    assert read_rows(rows)
    assert "|---|" in table.read_text(encoding="utf-8")


def test_the_programs_are_found() -> None:
    assert {"stumps.py", "workers.py"} | ELSEWHERE | WITHOUT <= {*PROGRAMS}
