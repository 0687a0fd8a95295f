"""The replay benchmark: its problems, its accounting, methods that bound the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay import measure
from benchmarks.replay import summary
from benchmarks.replay_methods import METHODS
from benchmarks.replay_methods import exhausting
from benchmarks.replay_methods import upwards
from benchmarks.replay_problems import BASELINES
from benchmarks.replay_problems import Lcdb
from benchmarks.replay_problems import Problem
from benchmarks.replay_problems import lcdb
from benchmarks.replay_problems import lcdb_problems
from benchmarks.replay_problems import made_problem
from benchmarks.replay_problems import shaken
from benchmarks.replay_problems import table_problem
from benchmarks.replay_problems import timed_problems
from optuna_daub.core import LearningCurve
from optuna_daub.core import geometric_sizes


COLUMNS = (
    "learner,size,validation_score,training_score,fit_seconds,validation_seconds,"
    "training_score_seconds,error"
)


@pytest.fixture
def made() -> Problem:
    return made_problem(0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_chooses_a_learner_it_has_paid_for(name: str, made: Problem) -> None:
    outcome = METHODS[name].choose(made, 0)
    assert outcome.cost >= made.costs[outcome.learner, made.full_size]


@pytest.mark.parametrize("seed", range(5))
def test_made_curves_cross(seed: int) -> None:
    problem = made_problem(seed)
    early = max(problem.curves, key=lambda curve: curve.observations[0].score)
    assert problem.loss(early.learner) > 0.05


def test_an_order_of_learners_is_repeated_by_its_seed(made: Problem) -> None:
    method = METHODS["Optuna HyperbandPruner, from N / 48"]
    assert method.choose(made, 3) == method.choose(made, 3)


def test_known_costs_and_losses_add_up_to_the_summary(made: Problem) -> None:
    rows = [dict(measure(METHODS[name], made, 0)) for name in ("training everything", "oracle")]
    figures = summary(rows)
    assert figures["mean"] == figures["max"] == 0.0  # no noise: validation decides rightly
    # All costs at N are 10.
    assert figures["share"] == pytest.approx(50.0 * (1.0 + 1.0 / len(made.curves)))
    assert figures["oracle"] == pytest.approx((len(made.curves) + 1.0) / 2.0)
    assert figures["runs"] == 2


@pytest.mark.parametrize("k", [2, 3, 4])
def test_halving_costs_what_its_rounds_cost(k: int, made: Problem) -> None:
    """The rounds, counted without the policy."""
    sizes = exhausting(k, made)
    left, cost = {curve.learner: curve for curve in made.curves}, 0.0
    for round_, size in enumerate(sizes, start=1):
        cost += sum(made.costs[learner, size] for learner in left)
        kept = 1 if size == sizes[-1] else math.ceil(len(made.curves) / k**round_)
        order = sorted(left, key=lambda i: (-left[i].at(size).score, i))  # type: ignore[union-attr]
        left = {learner: left[learner] for learner in order[:kept]}
    outcome = METHODS[f"halving by 1/{k} to N"].choose(made, 0)
    assert outcome.cost == pytest.approx(cost)
    assert [outcome.learner] == [*left]


def test_halving_grows_by_the_factor_that_the_learners_shrink_by() -> None:
    sizes = geometric_sizes(500, 21_500, 1.5)
    problem = Problem("41 learners", sizes, tuple(map(LearningCurve, range(41))), {}, {})
    assert upwards(3, problem) == (500, 1688, 5697, 19229, 21500)
    assert upwards(3, replace(problem, sizes=(100, *sizes)))[:2] == (500, 1688), (
        "nearest to N / 48"
    )
    assert exhausting(3, problem) == (1125, 2532, 8546, 21500)


@pytest.fixture
def measured_table(tmp_path: Path) -> Problem:
    """Three learners on five sizes, of which the third fails at N."""
    lines = [COLUMNS]
    for learner, (name, full) in enumerate({"quick": 0.7, "slow": 0.8, "failing": 0.6}.items()):
        for size in (2000, 4000, 5000, 10_000, 20_000):
            if (name, size) == ("failing", 20_000):
                lines.append(f"{name},{size},,,3.0,,,MemoryError()")
                continue
            score = full - 100 / size
            lines.append(f"{name},{size},{score},{score + 0.1},{1 + learner},0.5,0.8,")
    (tmp_path / "small.csv").write_text("\n".join(lines) + "\n")
    return table_problem("small", tmp_path)


def test_a_table_is_charged_as_it_was_measured(measured_table: Problem) -> None:
    assert measured_table.sizes == (2000, 4000, 5000, 10_000, 20_000)
    assert [curve.size for curve in measured_table.curves] == [20_000, 20_000, 10_000]
    assert measured_table.full_cost == 1.5 + 2.5 + 3.0  # one that fails costs what it took
    assert measured_table.best == 1
    # Training scores are charged as if measured on 5,000 rows at most.
    scoring = measured_table.scoring_costs
    assert [scoring[0, size] for size in measured_table.sizes] == [0.8, 0.8, 0.8, 0.4, 0.2]


def test_training_scores_are_charged_to_those_who_use_them(measured_table: Problem) -> None:
    paper, halving = (
        METHODS[name].choose(measured_table, 0)
        for name in ("DAUB, as in the paper", "halving by 1/2 to N")
    )
    assert halving.scoring_cost == 0.0
    assert 3 * (0.8 + 0.8 + 0.8) <= paper.scoring_cost < paper.cost


def test_shaking_moves_learners_with_all_that_is_known_of_them(measured_table: Problem) -> None:
    moved = shaken(measured_table, 3)
    assert sorted(moved.verdicts.values()) == sorted(measured_table.verdicts.values())
    for curve in moved.curves:
        for seen in curve.observations:
            assert seen.seconds == moved.costs[curve.learner, seen.size]


def made_lcdb() -> Lcdb:
    """Return power laws in the form of LCDB. N is 1,024 to 8,192."""
    rng = np.random.default_rng(0)
    names = ("KNN", "SVM_RBF", "LDA", "GaussianNB", "Decision Tree", "MLP", "QDA", *BASELINES)
    size = np.ceil(16 * 2 ** (np.arange(73) / 8)).astype(np.int64)
    shape = (10, len(names), 1)
    # On one data set all gain alike, a little more or less.
    rate = rng.uniform(0.2, 0.8, (10, 1, 1)) * rng.uniform(0.8, 1.25, shape)
    limit, lost = rng.uniform(0.05, 0.3, shape), rng.uniform(0.1, 0.4, shape)
    falling = lost * (size / size[0]) ** -rate
    errors = np.stack([limit - limit * falling / lost, limit + falling, limit + falling], -1)
    full = rng.choice(np.arange(48, 73, 4), 10)
    full[:2] = 48, 72
    errors[np.arange(73) > full[:, None, None].repeat(len(names), 1)] = np.nan
    return Lcdb(
        np.stack([errors, np.full_like(errors, 0.005)], axis=2),
        np.arange(1, 10 + 1),
        np.array(names),
        size,
    )


def test_made_problems_in_the_form_of_lcdb_are_complete() -> None:
    problems = list(lcdb_problems(made_lcdb()))
    assert problems
    for problem in problems:
        assert problem.full_size >= 4096
        assert all(curve.sizes == problem.sizes for curve in problem.curves)
        assert len(problem.curves) == 7  # the baseline is left out


@pytest.mark.parametrize(
    ("table", "times_faster", "of_oracle"),
    [("parity", 8.2, pytest.approx(6.4, abs=0.05)), ("covtype", 1.8, pytest.approx(13, abs=0.5))],
)
def test_textbook_daub_costs_what_was_measured_elsewhere(
    shared: Callable[[str], Path], table: str, times_faster: float, of_oracle: object
) -> None:
    shared(f"tables/{table}.csv")
    problem = table_problem(table)
    figures = summary([dict(measure(METHODS["DAUB, as in the paper"], problem, 0))])
    assert figures["max"] == 0.0
    assert 100.0 / figures["share"] == pytest.approx(times_faster, abs=0.05)
    assert figures["oracle"] == of_oracle
    if table == "covtype":
        assert problem.full_cost == pytest.approx(254, abs=0.5)
        assert problem.oracle_cost == pytest.approx(11, abs=0.5)


def test_the_lcdb_part_has_the_data_sets_that_are_large_enough(
    shared: Callable[[str], Path],
) -> None:
    shared("tables/lcdb11_part.npz")
    problems = list(lcdb_problems(lcdb()))
    assert len(problems) == 55
    assert min(problem.full_size for problem in problems) == 4096
    assert {len(problem.curves) for problem in problems} <= {*range(21, 28)}
    assert np.isfinite([seen.score for p in problems for seen in p.curves[0].observations]).all()


def test_timed_curves_are_those_of_large_data_sets_with_enough_learners(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    lines = ["openmlid,learner,size_train,traintime,score_valid,score_test"]
    for data_set, full, count in ((1, 5000, 10), (2, 5000, 9), (3, 4000, 10), (4, 5000, 10)):
        for learner in range(count):
            for size in (64, 128, 512, full):
                seconds = size / 1000 if data_set != 4 else size / 1e6
                for split, off in enumerate((-0.1, 0.1)):
                    score = 0.5 + learner / 100 + off
                    numbers = f"{seconds * (split + 1)},{score},{score - 0.2}"
                    lines.append(f"{data_set},model{learner},{size},{numbers}")
    lines.append("1,slow,128,1,0.5,0.5")  # never measured on all the data
    path = tmp_path / "accuracies.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    (problem,) = timed_problems(path)
    assert problem.name == "openml 1"
    assert problem.sizes == (128, 512, 5000)
    assert len(problem.curves) == 10
    assert problem.costs[3, 512] == pytest.approx(0.512 * 1.5)
    assert problem.curves[3].score == pytest.approx(0.53)
    assert problem.verdicts[3] == pytest.approx(0.33)
    assert problem.best == 9
