"""Rows as the benchmark of search writes them."""

from __future__ import annotations

from benchmarks.rows import Row
from benchmarks.search_report import REFERENCE


STAMP = {"date": "2026-11-22", "commit": "c", "numpy": "2"}


def row(
    method: str,
    seed: int,
    *curve: tuple[float, ...],
    problem: str = "made",
    budget: float = 10.0,
) -> Row:
    """Return the row of a run that took its whole budget, in units of two seconds."""
    key = {"problem": problem, "method": method, "seed": seed, "budget": budget}
    counts = {"trainings": 1, "full_trainings": 1, "thinking": 0.0}
    used = {"seconds": 2.0 * budget, "budget_seconds": 2.0 * budget}
    return {"key": key, "curve": [[*point] for point in curve], **counts, **used, "stamp": STAMP}


def reference(problem: str = "made", unit: float = 2.0, best: float = 0.9) -> Row:
    """Return the row of a problem: the seconds of its unit, and its best score."""
    key = {"problem": problem, "method": REFERENCE}
    return {"key": key, "unit": unit, "best": best, "stamp": STAMP}
