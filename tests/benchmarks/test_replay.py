"""The replay benchmark: its command in smoke mode, its problems, methods that bound the others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.methods import METHODS
from benchmarks.problems import Problem
from benchmarks.problems import lcdb_problems
from benchmarks.problems import made_problem
from benchmarks.problems import table_problem
from benchmarks.replay import measure
from benchmarks.replay import summary
from benchmarks.rows import ROOT
from benchmarks.rows import read_rows
from benchmarks.rungs import exhausting
from benchmarks.rungs import upwards


@pytest.fixture
def made() -> Problem:
    return made_problem(0)


def test_the_command_runs_in_smoke_mode_and_resumes(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/replay.py", "--smoke", "--results", str(tmp_path)]
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    rows = read_rows(tmp_path / "replay.jsonl")
    assert len(rows) == 2 * len(METHODS)
    table = (tmp_path / "replay.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in METHODS)
    assert (tmp_path / "replay.png").stat().st_size < 150_000


@pytest.mark.parametrize("name", METHODS)
def test_every_method_chooses_a_learner_it_has_paid_for(name: str, made: Problem) -> None:
    outcome = METHODS[name].choose(made, 0)
    assert outcome.cost >= made.costs[outcome.learner, made.full_size]
    assert made.loss(outcome.learner) >= 0.0


def test_an_order_of_learners_is_repeated_by_its_seed(made: Problem) -> None:
    method = METHODS["Optuna Hyperband 3, every size"]
    assert method.choose(made, 3) == method.choose(made, 3)


def test_known_costs_and_losses_add_up_to_the_summary(made: Problem) -> None:
    rows = [dict(measure(METHODS[name], made, 0)) for name in ("full training", "oracle")]
    figures = summary(rows)
    assert figures["mean"] == figures["max"] == 0.0  # no noise: validation decides rightly
    assert figures["share"] == pytest.approx(50.0 * (1.0 + 1.0 / len(made.curves)))
    assert figures["runs"] == 2


def test_halving_grows_by_the_factor_that_the_learners_shrink_by(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/parity.csv")
    problem = table_problem("parity")  # 41 learners, sizes 500, 750, ..., 21,500
    assert upwards(3, problem) == (500, 1688, 5697, 19229, 21500)
    assert exhausting(3, problem) == (1125, 2532, 8546, 21500)


def test_training_scores_are_charged_to_those_who_need_them(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/covtype.csv")
    problem = table_problem("covtype")
    with_scores, without, halving = (
        METHODS[name].choose(problem, 0)
        for name in (
            "DAUB, as in the paper",
            "DAUB, as in the paper, without training scores",
            "halving, keep 1/2, last round at N",
        )
    )
    assert without.scoring_cost == halving.scoring_cost == 0.0
    assert 0.0 < with_scores.scoring_cost < with_scores.cost


def test_textbook_daub_on_parity_costs_what_was_measured_elsewhere(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/parity.csv")
    (figures,) = [
        summary([dict(measure(METHODS["DAUB, as in the paper"], table_problem("parity"), 0))])
    ]
    assert figures["max"] == 0.0
    assert 100.0 / figures["share"] == pytest.approx(8.2, abs=0.05)
    assert figures["oracle"] == pytest.approx(6.4, abs=0.05)


def test_textbook_daub_on_covtype_costs_what_was_measured_elsewhere(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/covtype.csv")
    problem = table_problem("covtype")
    assert problem.full_cost == pytest.approx(254, abs=0.5)
    assert problem.oracle_cost == pytest.approx(11, abs=0.5)
    figures = summary([dict(measure(METHODS["DAUB, as in the paper"], problem, 0))])
    assert figures["max"] == 0.0
    assert 100.0 / figures["share"] == pytest.approx(1.8, abs=0.05)
    assert figures["oracle"] == pytest.approx(13, abs=0.5)


def test_the_lcdb_part_has_the_data_sets_that_are_large_enough(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/lcdb11_part.npz")
    problems = list(lcdb_problems())
    assert len(problems) == 55
    assert min(problem.full_size for problem in problems) == 4096
    for problem in problems:
        assert all(curve.sizes == problem.sizes for curve in problem.curves)


def test_noise_moves_what_is_decided_on_but_not_the_verdict(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/lcdb11_part.npz")
    exact, noisy, again = (next(lcdb_problems(seed)) for seed in (None, 1, 1))
    assert noisy.curves != exact.curves
    assert noisy.curves == again.curves
    assert noisy.verdicts == exact.verdicts
