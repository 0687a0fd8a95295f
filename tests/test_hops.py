"""Few hops: how many files a score's way, and a new learner's, enters, counting every call."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import optuna
import pytest

from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import records
from tests.study.table_study import random_study
from tests.tracing import PACKAGE
from tests.tracing import Trace
from tests.tracing import traced


def ways(pruner: AllocationPruner, **options: Any) -> tuple[list[Trace], list[Trace]]:
    """Return the ways of the last scores before suspensions, and of new learners' parameters."""
    suspended: list[Trace] = []
    started: list[Trace] = []

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.5, 0.9)
        with traced() as trace:
            sizes = training_sizes(trial)
            n = next(sizes, None)
        run = records.read_run(trial.study.trials[trial.number])
        if run is not None and run.learner == trial.number:
            started.append(trace)
        score = 0.0
        while n is not None:
            score = x - 10 / n
            try:
                with traced() as trace:
                    report(trial, n, score, training_score=x, seconds=n / 1000)
                    n = next(sizes, None)
            except optuna.TrialPruned:
                suspended.append(trace)
                raise
        return score

    study = random_study(pruner, **options)
    study.optimize(objective, n_trials=12)
    return suspended, started


PRUNERS: dict[str, tuple[AllocationPruner, dict[str, Any]]] = {
    "default": (DAUBPruner(max_resource=20_000), {}),
    "paper": (DAUBPruner.paper(max_resource=20_000), {"n_learners": 5}),
}

MOST: dict[str, tuple[int, int]] = {"suspended": (9, 23), "started": (9, 26)}
"""Files and moves of the study layer on either way; `python -m tests.test_hops` prints them."""

MOST_AT_ALL: dict[str, tuple[int, int]] = {"suspended": (17, 50), "started": (12, 33)}
"""Files and moves of the whole package with the paper's rule, the core's part included."""

LONGEST, MOST_BRANCHES = 400, 15
"""Lines of a file, and branches of a function."""

BRANCHES = (
    ast.If, ast.For, ast.While, ast.IfExp, ast.BoolOp, ast.comprehension, ast.ExceptHandler,
    ast.match_case,
)  # fmt: skip

STATE = {
    f"study/{name}.py"
    for name in (
        "known", "learner", "records", "log", "worker", "claims", "starting", "ending", "sampler",
        "exploring", "reporting", "pruner", "liveness", "turns", "waiting",
    )
}  # fmt: skip
"""Files of a study's state, of which each function has a branch less."""


def branches(source: str) -> list[tuple[str, int]]:
    """Return the number of branches of each function: as one counts by hand.

    These are conditions, loops, and where several conditions are joined.
    """
    return [
        (node.name, sum(isinstance(each, BRANCHES) for each in ast.walk(node)))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("name", PRUNERS)
def test_the_ways_of_a_score_and_of_a_new_learner_are_short(name: str) -> None:
    pruner, options = PRUNERS[name]
    for what, traces in zip(MOST, ways(pruner, **options), strict=True):
        assert traces
        most_files, most_moves = MOST[what]
        for trace in traces:
            own = trace.within("study")
            assert {"study/reporting.py", "study/known.py"} <= {*own.files}
            assert len({*own.files}) <= most_files, {*own.files}
            assert own.moves <= most_moves
            if name == "paper":
                assert len({*trace.files}) <= MOST_AT_ALL[what][0], {*trace.files}
                assert trace.moves <= MOST_AT_ALL[what][1]


FILES = {
    str(file.relative_to(PACKAGE)): file.read_text()
    for file in sorted(Path(PACKAGE).rglob("*.py"))
}
"""The sources of the package, by path."""


def test_no_file_is_long() -> None:
    lines = {name: len(text.splitlines()) for name, text in FILES.items()}
    assert {name: n for name, n in lines.items() if n > LONGEST} == {}


def test_no_function_branches_often() -> None:
    assert FILES.keys() >= STATE
    assert {
        f"{name}: {function}": n
        for name, text in FILES.items()
        for function, n in branches(text)
        if n > MOST_BRANCHES - (name in STATE)
    } == {}


def test_the_check_of_branches_can_fail() -> None:
    source = "def often(x):\n    return [y for y in x if y or x] if x else x"
    assert branches(source) == [("often", 3)]


def main() -> None:
    """Print the figures: most files and most moves between them."""
    for name, (pruner, options) in PRUNERS.items():
        for what, traces in zip(MOST, ways(pruner, **options), strict=True):
            for layer in ("study", "core"):
                parts = [trace.within(layer) for trace in traces]
                files, moves = (max(len({*p.files}) for p in parts), max(p.moves for p in parts))
                print(f"{name}, {what}: {layer} {files} files, {moves} moves")
            files, moves = (max(len({*t.files}) for t in traces), max(t.moves for t in traces))
            print(f"{name}, {what}: all {files} files, {moves} moves")


if __name__ == "__main__":
    main()
