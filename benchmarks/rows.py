"""Parts that all programs share: command line, rows and tables.

A row is one JSON line per run, stamped, written as soon as the run is done. A program lists its
runs; those whose row is in the file already are not repeated, so a program that was stopped
goes on where it stopped. To start over, delete the file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from datetime import timezone
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from statistics import stdev
from typing import Any
from typing import TypeAlias


ROOT = Path(__file__).parents[1]
"""The project."""
SHARED = ROOT.parent / "shared"
"""Data and tables that stand beside the project, read in place and never copied."""
RESULTS = ROOT / "benchmarks" / "results"
"""Folder of rows, tables and pictures. Git keeps the rows in `ranger`, `several` and `real`,
and ignores others."""

CHANGED = ("status", "--porcelain", "--", ".", ":!benchmarks/results")
"""Arguments of git that list changes of the code. Written results are left out."""
PACKAGES = ("optuna", "numpy", "scikit-learn", "lightgbm", "xgboost")
"""Packages whose versions every row states, if they are installed."""

Row: TypeAlias = dict[str, Any]
"""JSON-safe names and values of a run, its result and its stamp."""


def parser_of(
    doc: str | None, *, writes: bool = True, continues: bool = True
) -> argparse.ArgumentParser:
    """Return a parser for a program with a docstring.

    It has --smoke; --results if the program writes a file; --time-limit if it goes on where it
    ended.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--smoke", action="store_true", help="seconds, on little or made data")
    if continues:
        parser.add_argument("--time-limit", type=float, help="seconds after which no run is begun")
    if writes:
        parser.add_argument("--results", type=Path, help="folder to write to")
    return parser


def results_of(options: argparse.Namespace) -> Path:
    """Return the folder to write to. A smoke run has a folder of its own."""
    if not options.results:
        options.results = Path(tempfile.mkdtemp()) if options.smoke else RESULTS
    return Path(options.results)


def is_there(name: str, path: Path | None) -> bool:
    """Return whether a file is there, if one is needed. If not, say what is left out."""
    if path is None or path.exists():
        return True
    print(f"{name} is left out: {path} is not there; it is read in place, never copied")
    return False


@dataclass(frozen=True)
class Run:
    """One run of a benchmark."""

    key: Mapping[str, Any]
    """Names and values that tell the run from others. Examples are problem, method and seed; a row
    with the same values is this run's."""
    measure: Callable[[], Mapping[str, Any]]
    """Function that does the run and returns its results."""


def run_all(runs: Iterable[Run], path: Path, time_limit: float | None = None) -> list[Row]:
    """Do the runs whose row is not in the file yet, and return all rows.

    Runs are done in order. One that breaks down has no row. The others go on, hours of them may be
    left, and the first error is raised at the end.

    Args:
        runs: what the program consists of.
        path: the file of JSON lines; made if it is absent.
        time_limit: seconds after which no further run is started; None for no limit.
    """
    deadline = float("inf") if time_limit is None else time.monotonic() + time_limit
    known = {_identity(row["key"]): row for row in read_rows(path)}
    rows, broken = [], None
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for run in runs:
            row = known.get(_identity(run.key))
            if row is None and time.monotonic() < deadline:
                try:
                    row = {"key": dict(run.key), **run.measure(), "stamp": stamp()}
                except Exception as error:
                    print(f"{dict(run.key)} broke down: {type(error).__name__}: {error}")
                    broken = broken or error
                    continue
                file.write(json.dumps(row) + "\n")
                file.flush()
                known[_identity(run.key)] = row
            if row is not None:
                rows.append(row)
    if broken:
        raise broken
    return rows


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def grouped(rows: Iterable[Row], part: str) -> dict[Any, list[Row]]:
    """Return the rows by a part of their key, in the order of the rows."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["key"][part], []).append(row)
    return groups


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown. The first column is text, the others are numbers.

    >>> print(table(["rule", "n"], [["Massart", "30"]]))
    | rule | n |
    |---|---:|
    | Massart | 30 |
    """
    rule = "|---|" + "---:|" * (len(header) - 1)
    cells = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([f"| {' | '.join(header)} |", rule, *cells])


def shown(values: Collection[float], decimals: int) -> str:
    """Return the mean, with its standard error if there are several values.

    >>> shown([1.0, 2.0, 6.0], 1), shown([0.5], 2)
    ('3.0 ± 1.5', '0.50')
    """
    text = f"{mean(values):.{decimals}f}"
    if len(values) == 1:
        return text
    return f"{text} ± {stdev(values) / len(values) ** 0.5:.{decimals}f}"


def record(
    name: str,
    runs: Iterable[Run],
    options: argparse.Namespace,
    report: Callable[[list[Row]], Iterable[str]],
) -> None:
    """Do the runs. Write their rows, and the tables and the origin of these in Markdown."""
    path = results_of(options) / f"{name}.jsonl"
    rows = run_all(runs, path, options.time_limit)
    if not rows:
        sys.exit("There is nothing to report: no run was done, and no row is there.")
    text = "\n\n".join([provenance(rows), *report(rows)]) + "\n"
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text, path.with_suffix(".md"), sep="\n")


def stamp() -> Row:
    """Return time, machine, versions and commit of a row."""
    return {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), **_setting()}


def provenance(rows: Iterable[Row]) -> str:
    """Return one sentence on the days, commits and versions of rows."""
    stamps = [row["stamp"] for row in rows]
    days = sorted({stamp["date"][:10] for stamp in stamps})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    names = dict.fromkeys(name for stamp in stamps for name in stamp)
    made_with = ", ".join(
        f"{name} {_listed(stamp[name] for stamp in stamps if name in stamp)}"
        for name in names
        if name not in ("date", "commit")
    )
    commits = _listed(stamp["commit"] for stamp in stamps)
    return f"{len(stamps):,} rows of {span}, commit {commits}; {made_with}."


@cache
def _setting() -> Row:
    found = {"commit": _commit(), "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return {**found, "machine": f"{platform.system()}, {os.cpu_count()} cores, {_processor()}"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _commit() -> str:
    commit = _git("describe", "--always", "--exclude=*") or "unknown"
    return commit + "-dirty" * bool(_git(*CHANGED))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""  # an unpacked source distribution has no history
    return done.stdout.strip()


def _identity(key: Mapping[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))
