"""AutoML libraries, which have learners of their own and end by themselves.

Each is told the seconds that it has, and sees the training and validation rows of the others. Its
clock, by which it plans, is made to show CPU seconds, since others use this machine; its thinking
is on the clock, as the two can't be told apart. AutoGluon runs in an environment of its own:

    python -m benchmarks.search_automl FOLDER PRESET SECONDS
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from typing import Any
from unittest.mock import patch

from benchmarks.environments import environment
from benchmarks.rows import ROOT
from benchmarks.search_space import OutOfBudgetError


if TYPE_CHECKING:
    from benchmarks.search_problems import Race


def flaml_automl(problem: Race, seed: int) -> None:
    """Run FLAML's AutoML: its own learners, spaces, portfolio of starts and samples of rows.

    https://microsoft.github.io/FLAML/docs/Use-Cases/Task-Oriented-AutoML (`X_val`, "Optimization
    metric" for the function that scores, `retrain_full="budget"`, which trains the best on all
    rows before the time is up).
    """
    from flaml import AutoML

    from benchmarks.search_problems import accuracy

    training: Any = problem.problem
    data = training.data
    unseen = 0.0  # CPU seconds of scoring on test rows, which are not charged
    origin = time.process_time()

    def now() -> float:
        return time.process_time() - origin - unseen

    def note(model: Any, n_rows: int, score: float) -> None:
        nonlocal unseen
        training.model, seconds, begun = model, now() - problem.seconds, time.process_time()
        try:
            problem.note(score, min(n_rows, problem.full), seconds)
        except OutOfBudgetError:
            if now() >= problem.budget + problem.grace:
                raise
        finally:
            unseen += time.process_time() - begun
            problem.cpu = time.process_time() - origin

    def metric(X_val: Any, y_val: Any, model: Any, *given: Any, **_: Any) -> tuple[float, Any]:
        score = accuracy(model, X_val, y_val)
        note(model, len(given[2]), score)  # labels, X_train, y_train, ...
        return 1.0 - score, {}

    automl = AutoML()
    begun = time.time()
    with patch("time.time", lambda: begun + now()):
        automl.fit(
            data.X,
            data.y,
            X_val=data.X_valid,
            y_val=data.y_valid,
            task="classification",
            metric=metric,
            time_budget=problem.budget,
            retrain_full="budget",
            n_jobs=1,
            seed=seed,
            verbose=0,
        )
        if automl.model is not None:
            note(automl, problem.full, accuracy(automl, data.X_valid, data.y_valid))


def autogluon(preset: str, part: str, problem: Race, seed: int) -> None:
    """Run AutoGluon's TabularPredictor, which takes no seed; one fit serves both parts.

    "single" is its best one by validation score, with best_quality a bag of eight folds;
    "ensemble" is what it predicts with. A model that comes after the budget counts, with its
    overrun in the row.
    """
    found = _autogluon(problem.problem, preset, problem.budget)
    problem.trainings = problem.full_trainings = found["models"]
    overrun = max(0.0, found["cpu"] - problem.budget)
    problem.facts |= {"fit_cpu": found["cpu"], "fit_wall": found["wall"], "overrun": overrun}
    problem.seconds = min(found["cpu"], problem.budget)
    problem.curve.append([problem.seconds, *found[part]])


@cache
def _autogluon(training: Any, preset: str, limit: float) -> dict[str, Any]:
    import numpy as np

    with TemporaryDirectory() as folder:
        np.savez(Path(folder, "data.npz"), **vars(training.data))
        command = [environment("autogluon"), "-m", "benchmarks.search_automl", folder, preset]
        place = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run([*command, str(limit)], env=place, check=True)
        found: dict[str, Any] = json.loads(Path(folder, "found.json").read_text("utf-8"))
        return found


def main(folder: Path, preset: str, limit: float) -> None:
    """Fit AutoGluon on the rows in a folder; write seconds, and scores of both parts.

    https://auto.gluon.ai/stable/api/autogluon.tabular.TabularPredictor.fit.html (`tuning_data`,
    which best_quality only keeps to with `use_bag_holdout`) and `leaderboard`.
    """
    import numpy as np
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    with np.load(folder / "data.npz") as file:
        data = {name: pd.DataFrame(file[f"X{name}"]).add_prefix("x") for name in PARTS}
        for name, rows in data.items():
            rows["target"] = file[f"y{name}"]
    given = {"use_bag_holdout": True} if preset == "best_quality" else {}
    predictor = TabularPredictor("target", eval_metric="accuracy", path=str(folder), verbosity=0)
    begun, wall, today = time.process_time(), time.monotonic(), time.time()
    with patch("time.time", lambda: today + time.process_time() - begun):
        predictor.fit(
            data[""],
            tuning_data=data["_valid"],
            time_limit=limit,
            presets=preset,
            num_cpus=1,
            num_gpus=0,
            **given,
        )
    found = {"cpu": time.process_time() - begun, "wall": time.monotonic() - wall}
    board = predictor.leaderboard()
    singles = board[board["stack_level"] == 1].sort_values("score_val")
    for part, model in (("single", singles["model"].iloc[-1]), ("ensemble", predictor.model_best)):
        found[part] = [
            float(np.mean(predictor.predict(data[name], model=model) == data[name]["target"]))
            for name in PARTS[1:]
        ]
    text = json.dumps({**found, "models": len(board)})
    Path(folder, "found.json").write_text(text, encoding="utf-8")


PARTS = "", "_valid", "_test"
"""Endings of the names of training, validation and test rows."""


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
