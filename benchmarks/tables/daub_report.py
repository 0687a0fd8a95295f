"""The tables of daub.py: measured figures with the paper's in parentheses."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.markdown import table
from benchmarks.rows import Row
from benchmarks.rows import provenance


FULL, PLAIN, PAPER = "full training", "DAUB without f^T", "DAUB"
"""The lines of the paper's Table 1; its Table 2 is of DAUB."""


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables."""

    iterations: int
    allocation: str
    """Examples, as printed."""
    seconds: int


PUBLISHED = {
    ("parity", FULL): Published(41, "860k", 5_939),
    ("parity", PLAIN): Published(26, "171k", 617),
    ("parity", PAPER): Published(19, "156k", 397),
    ("higgs", FULL): Published(41, "1,578k", 49_905),
    ("higgs", PLAIN): Published(105, "590k", 17_186),
    ("higgs", PAPER): Published(56, "372k", 2_001),
    ("covtype", FULL): Published(41, "1,578k", 43_578),
    ("covtype", PAPER): Published(13, "160k", 3_848),
}
"""[1] Tables 1 and 2, by the first word of a data set's name; 860k is 40 x 21,500."""
PUBLISHED_LOSS = {"higgs": 0.0, "covtype": 1.1}
"""[1] Table 2, in per cent."""


def report(rows: list[Row]) -> str:
    """Return the tables in Markdown, with what one must know to read them."""
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(row["key"]["data"], {})[row["key"]["method"]] = row
    return "\n\n".join([provenance(rows), *_report(groups)]) + "\n"


def _report(groups: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    yield (
        "Measured (published). *Iterations* and *allocation* (training examples) leave out the "
        "first three sizes of every learner, as the paper's do; *examples* and *seconds* have "
        "them. *Regret* is the part of the examples that went to learners at least 0.01 below "
        "the best. Seconds are CPU seconds of fit and validation, of training scores where a rule "
        "uses them. *Loss* is in percentage points of accuracy on the held-out rows, below the "
        "best of training everything. The paper's learners are WEKA's and its higgs and covtype "
        "have 38,500 training examples: there, compare factors."
    )
    for data, own in groups.items():
        if FULL not in own:
            continue
        full = own[FULL]
        yield (
            f"### {data}: N = {full['full_size']:,}, {full['n_validation']:,} held out, "
            f"{full['iterations']} learners"
        )
        yield _table(data, own)
    yield "### Table 2 of the paper: DAUB on all data sets"
    yield _second_table(groups)


def _table(data: str, own: Mapping[str, Row]) -> str:
    header = ["method", "iterations", "allocation", "examples", "regret", "seconds", "x sooner"]
    lines = []
    for method, row in own.items():
        cell = PUBLISHED.get((data.split()[0], method))
        full = PUBLISHED.get((data.split()[0], FULL))
        sooner = full.seconds / cell.seconds if cell and full and method != FULL else None
        lines.append(
            [
                method,
                f"{row['iterations']}" + _beside(cell and f"{cell.iterations}"),
                _thousands(row["allocation"]) + _beside(cell and cell.allocation),
                _thousands(row["examples"]),
                f"{100 * row['regret'] / row['examples']:.0f} %",
                f"{row['seconds']:,.1f}" + _beside(cell and f"{cell.seconds:,}"),
                f"{own[FULL]['seconds'] / row['seconds']:.1f}"
                + _beside(sooner and f"{sooner:.1f}"),
                f"{100 * row['loss']:.2f}",
                row["learner"],
            ]
        )
    return table([*header, "loss, pp", "choice"], lines)


def _second_table(groups: Mapping[str, Mapping[str, Row]]) -> str:
    header = [
        "data",
        "iterations",
        "allocation",
        "seconds",
        "full training",
        "x sooner",
        "loss, pp",
    ]
    lines, factors, losses = [], [], []
    for data, own in groups.items():
        if PAPER not in own:
            continue
        row, full = own[PAPER], own[FULL]
        name = data.split()[0]
        published = PUBLISHED_LOSS.get(name)
        factors.append(full["seconds"] / row["seconds"])
        losses.append(100 * row["loss"])
        lines.append(
            [
                data,
                f"{row['iterations']}",
                _thousands(row["allocation"]),
                f"{row['seconds']:,.1f}",
                f"{full['seconds']:,.1f}",
                f"{factors[-1]:.1f}",
                f"{losses[-1]:.2f}" + _beside(None if published is None else f"{published} %"),
            ]
        )
    mean = [f"{sum(values) / len(values):.1f}" for values in (factors, losses)]
    lines.append(["mean", "", "", "", "", f"{mean[0]} (16)", f"{mean[1]} (0.4 %)"])
    return table(header, lines)


def _thousands(examples: int) -> str:
    return f"{examples / 1000:,.0f}k"


def _beside(published: object) -> str:
    return f" ({published})" if published else ""
