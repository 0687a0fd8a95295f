"""The tables of abc.py: one for each question, methods by numbers of configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

from benchmarks.markdown import table
from benchmarks.rows import Row
from benchmarks.rows import provenance


FULL = "full run"
EPSILON = 0.01
"""How far below the best ABC's answer may be."""

PUBLISHED = (
    "The paper (25 experiments on 1.4 to 10.6 million rows, 8 cores): ABC identifies 190 times "
    "sooner than the full run, with the last training included 60 times; ucb 128 times, "
    "round_robin in a few cases below 5. ABC's loss is at most 0.68 points; that of halving, "
    "relative to the best score, is 2 % in the mean and 8 % at most, with ABC's below 1 %. The "
    "text at hand has no figure by figure numbers, so none are quoted beside the cells."
)

Experiment = Mapping[str, Row]
"""Rows of one group of configurations by method."""
Experiments = Mapping[int, "list[Experiment]"]
"""Those of one data set by number of configurations."""


def report(rows: list[Row]) -> str:
    """Return the tables in Markdown, with what one must know to read them."""
    return "\n\n".join([provenance(rows), *_report(_grouped(rows))]) + "\n"


def _grouped(rows: list[Row]) -> Mapping[str, Experiments]:
    """Return the experiments in which all methods ran, by data set and count."""
    found: dict[tuple[str, int, int], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        key = row["key"]
        found[key["data"], key["configurations"], key["group"]][key["method"]] = row
    most = max(map(len, found.values()))
    data: dict[str, dict[int, list[Experiment]]] = {}
    for (name, n, _), experiment in sorted(found.items()):
        if len(experiment) == most:
            data.setdefault(name, {}).setdefault(n, []).append(experiment)
    return data


def _report(data: Mapping[str, Experiments]) -> Iterator[str]:
    yield (
        "Seconds are CPU seconds of one core: fit and validation, and for ABC training scores. "
        "*Full run*: all configurations trained on all the data. Halving scores on as many rows "
        "as ABC. Cells are over groups of configurations that share none: times of one method "
        "through those of another are of their sums, losses are the mean and, in parentheses, "
        "the largest. ~: only a part of the configurations was trained on all the data, the full "
        "run is as many times their mean, and the loss is below the best score known. CPU seconds "
        "are more on a machine that others use too: the first 20 configurations on all rows of "
        "flightlate took 377 s, training scores included, in issue3.md."
    )
    yield PUBLISHED
    for name, experiments in data.items():
        full = next(iter(experiments.values()))[0][FULL]
        yield f"### {name}: {full['full_size']:,} rows to train on"
        questions: Mapping[str, Callable[[list[Experiment], str], str]] = {
            "Identification, times sooner than the full run": _sooner("identifying_seconds"),
            "With the last training, times sooner than the full run": _sooner("seconds"),
            "Loss of accuracy in percentage points": _loss,
            "CPU seconds with the last training": _seconds,
            "Largest size of the others than the answer, first group": _largest,
        }
        for question, cell in questions.items():
            yield f"{question}:"
            yield _table(experiments, cell)
        yield _verdict(experiments)


def _table(experiments: Experiments, cell: Callable[[list[Experiment], str], str]) -> str:
    header = ["configurations", *(f"{n}" for n in experiments)]
    groups = ["groups", *(f"{len(own)}" for own in experiments.values())]
    methods = list(next(iter(experiments.values()))[0])
    lines = [[method, *(cell(own, method) for own in experiments.values())] for method in methods]
    return table(header, [groups, *lines])


def _sooner(part: str) -> Callable[[list[Experiment], str], str]:
    def cell(experiments: list[Experiment], method: str) -> str:
        if method == FULL:
            return "1"
        mark = "" if all(map(_is_complete, experiments)) else "~"
        return f"{mark}{_speed_up(experiments, method, part):.1f}"

    return cell


def _speed_up(experiments: list[Experiment], method: str, part: str) -> float:
    full = sum(map(_full_seconds, experiments))
    return full / sum(experiment[method][part] for experiment in experiments)


def _full_seconds(experiment: Experiment) -> float:
    """Return the time of training everything, from the mean of those that were trained."""
    full = experiment[FULL]
    seconds: float = full["seconds"] / full["probes"] * full["key"]["configurations"]
    return seconds


def _is_complete(experiment: Experiment) -> bool:
    full = experiment[FULL]
    return bool(full["probes"] == full["key"]["configurations"])


def _losses(experiments: list[Experiment], method: str) -> list[float]:
    """Return how far the choice is below the best score known, per group."""
    best = [max(row["score"] for row in experiment.values()) for experiment in experiments]
    return [top - own[method]["score"] for top, own in zip(best, experiments, strict=True)]


def _loss(experiments: list[Experiment], method: str) -> str:
    losses = _losses(experiments, method)
    mean = f"{100 * sum(losses) / len(losses):.2f}"
    return mean if len(losses) == 1 else f"{mean} ({100 * max(losses):.2f})"


def _seconds(experiments: list[Experiment], method: str) -> str:
    if method == FULL:
        mark = "" if all(map(_is_complete, experiments)) else "~"
        return f"{mark}{sum(map(_full_seconds, experiments)) / len(experiments):,.0f}"
    return f"{sum(own[method]['seconds'] for own in experiments) / len(experiments):,.0f}"


def _largest(experiments: list[Experiment], method: str) -> str:
    first = experiments[0][method]
    return f"{first.get('largest_of_others', first.get('full_size', 0)):,}"


def _verdict(experiments: Experiments) -> str:
    """Return a sentence on what the paper claims: loss below epsilon, as many times sooner."""
    method = next(name for name in next(iter(experiments.values()))[0] if name != FULL)
    single = [own for groups in experiments.values() for own in groups]
    within = sum(_losses([own], method)[0] <= EPSILON for own in single)
    faster = [
        sum(_speed_up([own], method, part) >= own[FULL]["key"]["configurations"] for own in single)
        for part in ("identifying_seconds", "seconds")
    ]
    return (
        f"{method} was within {EPSILON:g} of the best in {within} of {len(single)} experiments. "
        f"Faster than one average full training: identification in {faster[0]} (paper: 23 of "
        f"25), in all {faster[1]} (paper: 22 of 25)."
    )
