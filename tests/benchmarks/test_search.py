"""The benchmark of search: its clock, its figures, its methods on a made problem."""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.samplers import RandomSampler

from benchmarks import search
from benchmarks.rows import ROOT
from benchmarks.rows import read_rows
from benchmarks.search import race
from benchmarks.search_methods import METHODS
from benchmarks.search_methods import one_sample
from benchmarks.search_problems import MOST_TRAININGS
from benchmarks.search_problems import RANGER
from benchmarks.search_problems import CutOffError
from benchmarks.search_problems import Made
from benchmarks.search_problems import Race
from benchmarks.search_problems import Ranger
from benchmarks.search_problems import Several
from benchmarks.search_problems import Training
from benchmarks.search_problems import at_most
from benchmarks.search_problems import read
from benchmarks.search_report import REFERENCE
from benchmarks.search_report import collect
from benchmarks.search_report import reached
from benchmarks.search_report import report
from benchmarks.search_space import Config
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Parameter
from benchmarks.search_space import Parts
from benchmarks.search_space import active
from benchmarks.search_space import draw
from benchmarks.search_space import introduction
from benchmarks.search_space import sizes
from tests.benchmarks.rows import reference
from tests.benchmarks.rows import row


HERE = ["random", "TPE", "TPE + Hyperband", "TPE + halving"]
"""Methods of this environment whose runs are the same on every machine."""
LINE = {"kind": "line", "rate": 0.1}
DEEP = {"kind": "tree", "rate": 0.1, "depth": 10}
SLOW = {
    "algorithm": "extra_trees",
    "extra_trees.n_estimators": 100_000,
    "extra_trees.max_features": 1.0,
    "extra_trees.min_samples_leaf": 1,
    "extra_trees.criterion": "gini",
}


@pytest.mark.slow
def test_the_command_resumes_and_a_fresh_process_gives_the_same_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = [*HERE, "ours, no costs"]  # whose decisions depend on no seconds
    for seed in ("1", "2"):  # strings are hashed differently
        arguments = ["--smoke", "--results", str(tmp_path / seed), "--methods", *methods]
        subprocess.run(
            [sys.executable, "benchmarks/search.py", *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            timeout=300,
        )
    monkeypatch.setattr(sys, "argv", ["search.py", *arguments])
    search.main()
    first, second = (read_rows(tmp_path / seed / "search.jsonl") for seed in ("1", "2"))
    assert [row["key"]["method"] for row in second] == [REFERENCE, *methods]
    same = [[row.get("curve") for row in rows[: 1 + len(HERE)]] for rows in (first, second)]
    assert same[0] == same[1]
    table = (tmp_path / "2" / "search.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in table for name in methods)


def test_the_clock_adds_seconds_and_only_full_trainings_count() -> None:
    problem = Made()
    one = Race(problem, budget=5.0)
    one.evaluate(DEEP, 5_000)  # 0.2 * 10 * 0.5 = 1 second
    assert one.seconds == pytest.approx(1.0)
    assert one.curve == []
    one.evaluate(LINE, 10_000)  # 0.5 seconds
    one.evaluate(DEEP, 10_000)  # 2 seconds
    one.evaluate(LINE, 10_000)  # no better than before
    lost = math.sqrt(370 / 10_000)
    assert [when for when, _ in one.curve] == pytest.approx([1.5, 3.5])
    assert [score for _, score in one.curve] == pytest.approx(
        [0.80 - 0.02 * lost, 0.95 - 0.25 * lost]
    )
    assert (one.trainings, one.full_trainings) == (4, 3)
    assert one.seconds == pytest.approx(4.0)


@pytest.mark.parametrize(("grace", "expected"), [(0.0, {}), (9.0, {"overrun": 1.1})])
def test_the_overrun_is_what_the_last_training_would_take_beyond_the_budget(
    grace: float, expected: dict[str, float]
) -> None:
    one = Race(Made(), 2.4, grace)
    one.evaluate(LINE, 10_000)  # 0.5 seconds
    one.evaluate(LINE, 10_000)
    one.evaluate(LINE, 10_000)
    with pytest.raises(OutOfBudgetError):
        one.evaluate(DEEP, 10_000)  # 2 seconds
    assert one.facts == pytest.approx(expected)
    with pytest.raises(OutOfBudgetError):
        one.evaluate(LINE, 370)
    assert (one.seconds, one.trainings, len(one.curve)) == (2.4, 3, 1), "it does not count"


def test_a_training_that_goes_on_past_the_grace_is_cut_off(tmp_path: Path) -> None:
    problem = Training("file", read(_table(tmp_path), "label", None, seed=0))
    one = Race(problem, 0.2, grace=0.3)
    with pytest.raises(OutOfBudgetError):
        one.evaluate(SLOW, problem.full)
    assert one.facts == {"overrun": 0.3}
    assert (one.seconds, one.curve) == (0.2, [])
    assert 0.4 < one.cpu < 2.0
    assert Race(problem, 0.2, grace=0.3).facts == {"overrun": 0.0}, "nothing was under way"


def test_a_size_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`size` must be in \[370, 10,000\], but got 369"):
        Race(Made(), budget=1.0).evaluate(LINE, 369)


def test_a_run_on_all_data_is_the_sum_of_its_parts() -> None:
    row = race(Made(), "random", seed=0, budget=30.0)
    assert row["trainings"] == row["full_trainings"]
    assert row["seconds"] == 30.0  # the last training was under way
    assert row["curve"] == sorted(row["curve"])
    assert row["thinking"] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("method", [*HERE, "ours", "ours, seconds known"])
def test_methods_find_a_model_before_the_clock_runs_out(method: str) -> None:
    row = race(Made(), method, seed=0, budget=40.0)
    assert "failed" not in row
    assert row["curve"][-1][1] > 0.80  # which no line reaches


def test_one_sample_is_searched_for_half_of_the_budget_and_then_the_best_come_first() -> None:
    row = race(Made(), "TPE, 1/10, then the best", seed=0, budget=8.0)
    ((first, score),) = row["curve"]
    assert 4.0 < first < 8.0
    assert row["trainings"] - row["full_trainings"] > 20, "on the sample"
    assert score > 0.89, "a deep tree, which is the best on a tenth of the rows already"


def test_a_sample_leaves_trainings_for_its_best_on_all_the_rows() -> None:
    class Cheap:
        name, smallest, full, budget = "cheap", 10, 1_000, 1e9
        space = (Parameter("x", 0.0, 1.0),)

        def __init__(self) -> None:
            self.made: list[tuple[float, int]] = []

        def evaluate(self, config: Any, size: int) -> tuple[float, float]:
            self.made.append((config["x"], size))
            if len(self.made) > MOST_TRAININGS:
                raise OutOfBudgetError
            return config["x"], 1.0

    problem = Cheap()
    with pytest.raises(OutOfBudgetError):
        one_sample(lambda seed: RandomSampler(seed), 1 / 10, problem, 0)
    on_sample = [x for x, size in problem.made if size == 100]
    on_all = [x for x, size in problem.made[:MOST_TRAININGS] if size == 1_000]
    assert on_all == sorted(on_sample, reverse=True)[: len(on_all)]
    assert len(on_all) >= 100


@pytest.mark.parametrize("name", ["LightGBM's defaults", "FLAML zero-shot"])
def test_a_floor_is_one_training_on_all_the_rows(name: str, tmp_path: Path) -> None:
    pytest.importorskip("flaml" if "FLAML" in name else "lightgbm")
    problem = Training("file", read(_table(tmp_path), "label", None, seed=0))
    row = race(problem, name, seed=0, budget=60.0, grace=60.0)
    ((seconds, score, test),) = row["curve"]
    assert (row["trainings"], row["full_trainings"], row["overrun"]) == (1, 1, 0.0)
    assert (seconds, test) == (row["seconds"], problem.judge())
    assert score > 0.8


@pytest.mark.slow
def test_flaml_that_goes_on_past_its_budget_says_by_how_much(tmp_path: Path) -> None:
    pytest.importorskip("flaml")
    problem = Training("file", read(_table(tmp_path), "label", None, seed=0))
    row = race(problem, "FLAML AutoML", seed=0, budget=2.0, grace=4.0)
    assert row["curve"][-1][0] <= 2.0
    assert 0.0 <= row["overrun"] <= 4.0
    assert row["thinking"] < 1.0, "all is on its clock"


def test_regret_and_rank_of_curves_known_by_hand() -> None:
    rows = [
        reference(),
        row("random", 0, (1.0, 0.5), (6.0, 0.8)),
        row("TPE", 0, (4.0, 0.95)),
        row("random", 1),
        row("TPE", 1, (2.0, 0.75)),
        row("random", 2, (2.0, 0.75)),  # TPE has not been run
    ]
    (results,) = collect(rows).values()
    assert results.cells == (("made", 0), ("made", 1))
    assert results.methods == ("random", "TPE")
    # The best known is 0.95, which a method found; a unit is two seconds.
    np.testing.assert_allclose(results.regret(1.0), [[45.0, 95.0], [95.0, 20.0]])
    np.testing.assert_allclose(results.regret(3.0), [[15.0, 0.0], [95.0, 20.0]])
    assert np.isnan(results.scores(1.0)).tolist() == [[False, True], [True, False]]
    assert reached(rows[1], 5.9) == 0.5


def test_tables_hold_the_figures() -> None:
    rows = [reference(), row("random", 0, (1.0, 0.5)), row("TPE", 0, (4.0, 0.8))]
    text = report(rows)
    assert "| random | 40.00 (40.00) | 40.00 (40.00) | 40.00 (40.00) |" in text
    assert "| TPE | 90.00 (90.00) | 10.00 (10.00) | 10.00 (10.00) |" in text
    assert "| random | 1.0 | 2.0 | 2.0 |" in text
    assert "regret less that of ours" not in text


def test_a_lead_is_the_mean_difference_in_the_same_cells_with_its_error_over_problems() -> None:
    rows = [
        reference(),
        reference("made-2"),
        row("ours", 0, (1.0, 0.8)),
        row("TPE", 0, (1.0, 0.5)),
        row("ours", 0, (1.0, 0.7), problem="made-2"),
        row("TPE", 0, (1.0, 0.6), problem="made-2"),
    ]
    text = report(rows)
    # 30 points on one problem, 10 on the other: 20 ± 14.14 / sqrt 2.
    assert "| TPE | 20.00 ± 10.00 | 20.00 ± 10.00 | 20.00 ± 10.00 |" in text


def test_the_table_of_test_scores_counts_runs_without_a_model_apart() -> None:
    rows = [
        row("random", 0, (1.0, 0.5, 0.6), (2.0, 0.7, 0.5)) | {"overrun": 3.0},
        row("random", 1, (1.0, 0.5, 0.7)) | {"overrun": 7.0},
        row("TPE", 0, (1.0, 0.5, 0.9)),
        row("TPE", 1),
        row("GP", 0, (1.0, 0.5, 0.4), problem="other"),
        row("TPE", 0, problem="other"),
        row("TPE", 0, (1.0, 0.5), problem="without test rows"),
    ]
    text = report(rows)
    assert "| test score, % | made | other | rank | seeds | largest overrun, s |" in text
    assert "| random | 60.0 ± 10.0 |  |  | 2 | 7 |" in text
    assert "| TPE | 90.0, none in 1 | none | 1.0 | 2 |  |" in text
    assert "| GP |  | 40.0 |  | 1 |  |" in text
    # A benchmark that was stopped: no method was run on both problems.
    text = report([rows[0], rows[4]])
    assert "| random | 50.0 |  |  | 1 | 3 |" in text


def test_the_made_problem_has_curves_that_cross_and_a_known_best() -> None:
    problem = Made()
    (line, _), (deep, _) = (problem.train(c, 370, math.inf) for c in (LINE, DEEP))
    assert line > deep
    rng = random.Random(0)
    points = [draw(problem.space, rng) for _ in range(2_000)]
    scores, seconds = zip(*(problem.train(c, 10_000, math.inf) for c in points), strict=True)
    reference = problem.reference()
    assert 0.0 < reference["best"] - max(scores) < 0.005
    assert np.mean(seconds) == pytest.approx(reference["unit"], rel=0.05)


def test_spaces_keep_conditions() -> None:
    space = Made().space
    assert active(space, {"kind": "line", "rate": 1, "depth": 3}) == {"kind": "line", "rate": 1.0}
    assert active(space, {"kind": "tree", "rate": 1, "depth": 3}).keys() == {
        "kind",
        "rate",
        "depth",
    }


def test_sizes_end_at_all_rows_and_begin_at_the_smallest() -> None:
    one = Race(Made(), budget=1.0)
    assert sizes(one, 3) == [370, 1_111, 3_333, 10_000]
    parts = Parts.of(one)
    assert [parts.size(k) for k in (1, 3, 9, 27)] == sizes(one, 3)


def test_a_peer_in_another_process_is_answered(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.search_methods"]
    here: dict[str, Any] = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    one = Race(Made(), budget=8.0)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **here) as peer:
        assert peer.stdin
        assert peer.stdout
        print(introduction(one, "random", 0), file=peer.stdin, flush=True)
        for line in peer.stdout:
            asked = json.loads(line)
            try:
                score, seconds = one.evaluate(asked["config"], asked["size"])
            except OutOfBudgetError:
                print(json.dumps({"end": True}), file=peer.stdin, flush=True)
                break
            print(json.dumps({"score": score, "seconds": seconds}), file=peer.stdin, flush=True)
    assert peer.returncode == 0
    assert one.curve == race(Made(), "random", seed=0, budget=8.0)["curve"]


def _table(folder: Path, n_rows: int = 1_500) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    path = folder / "table.csv"
    columns = ",".join(["a", "b", "c", "d", "label"])
    np.savetxt(path, np.c_[X, y], delimiter=",", header=columns, comments="")
    return path


def test_a_file_is_split_and_its_prefixes_are_stratified(tmp_path: Path) -> None:
    data = read(_table(tmp_path), "label", None, seed=0)
    assert [len(part) for part in (data.y, data.y_valid, data.y_test)] == [1050, 225, 225]
    whole = data.y.mean()
    assert all(abs(data.y[:n].mean() - whole) < 1.5 / n for n in (2, 10, 39, 500))


def test_training_is_cut_off_when_the_seconds_are_used_up(tmp_path: Path) -> None:
    problem = Training("file", read(_table(tmp_path), "label", None, seed=0))
    one = Race(problem, budget=0.3)
    with pytest.raises(OutOfBudgetError):
        one.evaluate(SLOW, problem.full)
    assert one.seconds == 0.3
    assert one.cpu > 0.2  # which the method did not think
    assert one.curve == []
    quick = {"algorithm": "logistic", "logistic.C": 1.0, "logistic.tol": 1e-3}
    other = Race(problem, budget=30.0)
    score, seconds = other.evaluate(quick, problem.full)
    assert score > 0.8
    assert 0.0 < seconds < 5.0
    assert other.curve == [[seconds, score, problem.judge()]]


def test_what_is_called_back_by_c_is_not_cut_off_before_it_returns() -> None:
    returned = []
    begun = time.process_time()

    def _next_wrapper() -> int:  # XGBoost's is called so
        while time.process_time() < begun + 0.1:
            pass
        return 7

    @at_most(0.03)
    def train() -> None:
        returned.append(ctypes.CFUNCTYPE(ctypes.c_int)(_next_wrapper)())
        while time.process_time() < begun + 5.0:
            pass

    with pytest.raises(CutOffError):
        train()
    assert returned == [7]
    assert time.process_time() < begun + 2.0


@pytest.mark.skipif(not RANGER.exists(), reason="the surrogate is not there")
def test_the_surrogate_answers_alike_alone_and_in_batches() -> None:
    pytest.importorskip("onnxruntime")
    problem = Ranger(40923)
    rng = random.Random(1)
    points = [draw(problem.space, rng) for _ in range(50)]
    scores, seconds = problem.predict(points, problem.full)
    alone = [problem.train(point, problem.full, math.inf) for point in points]
    np.testing.assert_allclose(alone, np.c_[scores, seconds], rtol=1e-5)
    assert 0.5 < scores.min() < scores.max() < 0.93
    assert (seconds >= 0.1).all()
    less, cheaper = problem.predict(points, problem.smallest)
    assert less.mean() < scores.mean() - 0.1
    assert cheaper.mean() < 0.2 * seconds.mean()


@pytest.mark.skipif(not RANGER.exists(), reason="the surrogate is not there")
def test_one_of_several_algorithms_has_its_own_parameters_best_score_and_pace() -> None:
    pytest.importorskip("onnxruntime")
    problem, again, rng = Several(3), Several(3), random.Random(1)
    points = [draw(problem.space, rng) for _ in range(400)]
    found = [problem.train(point, problem.full, math.inf) for point in points]
    assert found == [again.train(point, again.full, math.inf) for point in points]
    best = []
    for name in "abcd":
        own = [i for i, point in enumerate(points) if point["algorithm"] == name]
        assert all(key[0] == name for i in own for key in points[i] if key != "algorithm")
        best.append(max(found[i][0] for i in own))
        assert 1.0 < np.mean([found[i][1] for i in own]) < 90.0
    assert sorted(best) == pytest.approx([0.85, 0.88, 0.89, 0.9], abs=0.01)


@pytest.mark.skipif(not RANGER.exists(), reason="the surrogate is not there")
def test_no_new_algorithm_takes_all_the_time_that_is_left() -> None:
    """In a space where it did. The rule knows the time, but not a new algorithm's seconds."""
    pytest.importorskip("onnxruntime")
    race, longest = Race(Several(12), 60.0), 0.0
    train = race.evaluate

    def evaluate(config: Config, size: int) -> tuple[float, float]:
        nonlocal longest
        score, seconds = train(config, size)
        longest = max(longest, seconds)
        return score, seconds

    race.evaluate = evaluate  # type: ignore[method-assign]
    METHODS["ours, seconds known"].run(race, 12)
    assert longest < 30.0
    assert race.curve[-1][1] > 0.87  # the best there is has 0.9


@pytest.mark.skipif(not RANGER.exists(), reason="the surrogate is not there")
def test_tasks_that_are_not_for_development_are_refused() -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(ValueError, match="must be one that is for development, but got 3"):
        Ranger(3)
