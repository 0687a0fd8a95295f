"""Result rows: one JSON line per run, stamped, written as soon as the run is done.

A program lists its runs; those whose row is in the file already are not repeated, so that a
program that was stopped goes on where it stopped. To start over, delete the file.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from datetime import timezone
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path
from typing import Any
from typing import TypeAlias


CHANGED = ("status", "--porcelain", "--", ".", ":!benchmarks/results")
"""What git is asked for changes of the code: rows that are written are none."""
ROOT = Path(__file__).parents[1]
"""The project."""
SHARED = ROOT.parent / "shared"
"""Data and tables that stand beside the project, read in place and never copied."""
RESULTS = ROOT / "benchmarks" / "results"
"""Where rows, tables and pictures go."""

PACKAGES = ("optuna", "numpy", "scikit-learn", "lightgbm", "xgboost")
"""Whose versions every row states, where they are installed."""

Row: TypeAlias = dict[str, Any]
"""JSON-safe names and numbers: what was run, what came out, and the stamp."""


@dataclass(frozen=True)
class Run:
    """One run of a benchmark: what tells it from the others, and how to do it."""

    key: Mapping[str, Any]
    """Such as problem, method and seed; a row with the same values is this run's."""
    measure: Callable[[], Mapping[str, Any]]
    """Does the run and returns its results."""


def run_all(runs: Iterable[Run], path: Path, time_limit: float | None = None) -> list[Row]:
    """Do the runs whose row is not in the file yet, in order, and return the rows of all.

    Args:
        runs: what the program consists of.
        path: the file of JSON lines; made where it is absent.
        time_limit: seconds after which no further run is begun; None for no limit.
    """
    deadline = float("inf") if time_limit is None else time.monotonic() + time_limit
    known = {_identity(row["key"]): row for row in read_rows(path)}
    _warn_of(path, frozenset(row["stamp"]["machine"] for row in known.values()))
    rows = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for run in runs:
            row = known.get(_identity(run.key))
            if row is None and time.monotonic() < deadline:
                row = {"key": dict(run.key), **run.measure(), "stamp": stamp()}
                file.write(json.dumps(row) + "\n")
                file.flush()
            if row is not None:
                rows.append(row)
    return rows


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def stamp() -> Row:
    """Return when, on what and by which code a row is made."""
    return {"date": datetime.now(timezone.utc).isoformat(timespec="seconds"), **_setting()}


def versions(packages: Iterable[str]) -> Row:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def provenance(rows: Iterable[Row]) -> str:
    """Return one sentence on the days, commits and versions that rows come from."""
    stamps = [row["stamp"] for row in rows]
    days = sorted({stamp["date"][:10] for stamp in stamps})
    names = dict.fromkeys(name for stamp in stamps for name in stamp)
    made_with = ", ".join(
        f"{name} {_listed(stamp[name] for stamp in stamps if name in stamp)}"
        for name in names
        if name not in ("date", "commit")
    )
    commits = _listed(stamp["commit"] for stamp in stamps)
    return f"{len(stamps):,} rows of {_span(days)}, commit {commits}; {made_with}."


@cache
def _setting() -> Row:
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **versions(PACKAGES),
        "machine": f"{platform.system()}, {os.cpu_count()} cores, {_processor()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


@cache
def _warn_of(path: Path, machines: frozenset[str]) -> None:
    """Say so, once, where seconds of another machine would stand beside those of this one."""
    if others := machines - {_setting()["machine"]}:
        print(
            f"{path} has rows of another machine ({_listed(others)}), which are not made again. "
            "Give --results a folder of your own to have all of them from this one."
        )


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


def _span(days: list[str]) -> str:
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
