"""Problems of the search benchmark: a surrogate of real tuning runs, real training, a made one.

A problem trains one point of its space on so many rows and says what came of it and what it cost.
What is charged is decided here and nowhere else: the surrogate's seconds, or the CPU seconds that
fit and validation took.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import SHARED
from benchmarks.search_space import Config
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Parameter
from benchmarks.search_space import Space
from benchmarks.search_space import draw


class Problem(Protocol):
    """A search space with what training a point of it on some rows brings and costs."""

    name: str
    space: Space
    smallest: int
    full: int

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Return validation score and seconds; infinite seconds where the limit is exceeded."""

    def reference(self) -> dict[str, float]:
        """Return the mean seconds of a full training (`unit`), and the best score known."""

    def judge(self) -> float | None:
        """Return the test score of what was trained last; None where there are no test rows."""


class Race:
    """One method's run on one problem: keeps the clock, and ends the run when it has run out.

    What finishes after the budget does not count, and neither does what was trained on fewer than
    all rows.
    """

    def __init__(self, problem: Problem, budget: float) -> None:
        self._problem = problem
        self.name, self.space = problem.name, problem.space
        self.smallest, self.full = problem.smallest, problem.full
        self.budget = budget
        self.seconds = 0.0
        """On the clock."""
        self.cpu = 0.0
        """That this process took for training, which for a surrogate is not what it charges."""
        self.trainings = self.full_trainings = 0
        self.curve: list[list[float]] = []
        """Seconds, validation score and test score of each full-data model better than before."""

    def evaluate(self, config: Config, size: int) -> tuple[float, float]:
        """Train, charge the seconds, and note the score where it is the best of a full training.

        Raises:
            OutOfBudgetError: where the clock has run out before or during the training.
        """
        if not self.smallest <= size <= self.full:
            raise ValueError(
                f"`size` must be in [{self.smallest:,}, {self.full:,}], but got {size:,}."
            )
        left = self.budget - self.seconds
        if left <= 0.0:
            raise OutOfBudgetError
        begun = time.process_time()
        score, seconds = self._problem.train(config, size, left)
        self.note(score, size, seconds)
        self.cpu += time.process_time() - begun
        return score, seconds

    def note(self, score: float, size: int, seconds: float) -> None:
        """Charge a training's seconds and take its score into the curve."""
        self.seconds += seconds
        if self.seconds > self.budget:
            self.seconds = self.budget
            raise OutOfBudgetError
        self.trainings += 1
        if size < self.full:
            return
        self.full_trainings += 1
        if not self.curve or score > self.curve[-1][1]:
            test = self._problem.judge()
            self.curve.append([self.seconds, score, *([] if test is None else [test])])


# --- Random forests as YAHPO's surrogate predicts them ---

RANGER = SHARED / "surrogates"
TASKS = (
    *(40923, 41150, 40996, 41161, 41159, 554, 41168, 41166, 23512, 41164),
    *(1457, 1486, 41163, 4541, 300, 1461, 40978, 1478, 151, 4534),
)
"""OpenML's numbers of the data sets that methods may be developed on."""
ENCODED = (
    *("task_id", "respect.unordered.factors", "splitrule", "replace"),
    *("num.impute.selected.cpo", "repl"),
)
NUMBERS = (
    *("num.trees", "sample.fraction", "mtry.power", "min.node.size"),
    *("num.random.splits", "trainsize"),
)
"""Inputs of the model, in its order."""
ACCURACY, SECONDS = 0, 5
"""Columns of its output."""
LEAST_SECONDS = 0.1
"""For one training. The model predicts none at all for up to 8 % of all configurations on all
data and 80 % on the least data, and no training is free; the mean cost does not change."""
N_FOR_UNIT = 2000
N_FOR_BEST = 200_000
BATCH = 10_000


class Ranger:
    """R's random forest on a data set of OpenML: accuracy and seconds, predicted by a model.

    Share 0.03 of the rows is the least that the model was made for; N counts as 100,000.
    """

    full = 100_000
    smallest = 3_704
    space: Space = (
        Parameter("num.trees", 1, 2000, is_int=True, cheap=1),
        Parameter("sample.fraction", 0.1, 1.0, cheap=0.1),
        Parameter("mtry.power", 0.0, 1.0, cheap=0.0),
        Parameter("min.node.size", 1, 100, is_int=True, cheap=100),
        Parameter("replace", choices=("TRUE", "FALSE")),
        Parameter("respect.unordered.factors", choices=("ignore", "order", "partition")),
        Parameter(
            "num.impute.selected.cpo", choices=("impute.mean", "impute.median", "impute.hist")
        ),
        Parameter("splitrule", choices=("gini", "extratrees")),
        Parameter(
            "num.random.splits", 1, 100, is_int=True, parent="splitrule", values=("extratrees",)
        ),
    )

    def __init__(self, task: int) -> None:
        import onnxruntime

        if task not in TASKS:
            raise ValueError(f"`task` must be one that is for development, but got {task}.")
        self.name = f"ranger-{task}"
        self._fixed = {"task_id": str(task), "repl": "10"}
        self._codes = json.loads((RANGER / "encoding.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._model = onnxruntime.InferenceSession(
            str(RANGER / "rbv2_ranger.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Return accuracy and seconds as the model predicts them."""
        scores, seconds = self.predict([config], size)
        return float(scores[0]), float(seconds[0])

    def predict(
        self, configs: Sequence[Config], size: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return accuracies and seconds of many configurations on so many rows."""
        given = [{**config, **self._fixed, "trainsize": size / self.full} for config in configs]
        encoded = [[self._codes[k][one.get(k, "#na#")] for k in ENCODED] for one in given]
        numbers = [[one.get(k, 0.0) for k in NUMBERS] for one in given]
        inputs = np.array(encoded, np.int32), np.array(numbers, np.float32)
        names = (one.name for one in self._model.get_inputs())
        (out,) = self._model.run(None, dict(zip(names, inputs, strict=True)))
        out = np.asarray(out, np.float64)
        return out[:, ACCURACY], np.maximum(out[:, SECONDS], LEAST_SECONDS)

    def reference(self) -> dict[str, float]:
        """Return the unit from some random configurations, the best score from many."""
        rng = random.Random(0)
        best, costs = -math.inf, []
        for _ in range(N_FOR_BEST // BATCH):
            scores, seconds = self.predict(
                [draw(self.space, rng) for _ in range(BATCH)], self.full
            )
            best = max(best, float(scores.max()))
            costs.extend(seconds)
        return {"unit": float(np.mean(costs[:N_FOR_UNIT])), "best": best}

    def judge(self) -> None:
        """Return nothing: the model knows one accuracy only."""


# --- A made problem ---


@dataclass(frozen=True)
class Made:
    """Learning curves in closed form that cross: simple learners lead on little data.

    A *line* reaches 0.80 at most and is there soon. A *tree* of depth d could reach
    0.75 + 0.02 d, but lacks 0.02 d at the smallest size. The score that is lost falls with the
    power -1/2 of the rows. Best on all rows: a tree of depth 10, at rate 0.1.
    """

    name: str = "made"
    smallest: int = 370
    full: int = 10_000
    space: Space = (
        Parameter("kind", choices=("line", "tree")),
        Parameter("rate", 0.001, 1.0, is_log=True),
        Parameter("depth", 1, 10, is_int=True, parent="kind", values=("tree",), cheap=1),
    )

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Return score and seconds in closed form."""
        share = size / self.full
        off = 0.02 * math.log10(config["rate"] / 0.1) ** 2
        lost = math.sqrt(self.smallest / size)
        if config["kind"] == "line":
            return 0.80 - off - 0.02 * lost, 0.5 * share
        depth = config["depth"]
        return 0.75 + 0.02 * depth - off - 0.025 * depth * lost, 0.2 * depth * share

    def reference(self) -> dict[str, float]:
        """Return the unit, half of 0.5 and half of 0.2 times 5.5, and the best score."""
        best, _ = self.train({"kind": "tree", "rate": 0.1, "depth": 10}, self.full, math.inf)
        return {"unit": mean([0.5, 0.2 * 5.5]), "best": best}

    def judge(self) -> None:
        """Return nothing: there is one score only."""


# --- All of them ---


@dataclass(frozen=True)
class Source:
    """A problem by name, and what it needs."""

    open: Callable[[int], Problem]
    """For a seed: real data are shuffled by it."""
    path: Path | None = None
    """The file that must be there; None where nothing is read."""
    is_real: bool = False
    """Whether training is real, and budgets are seconds."""

    @property
    def is_there(self) -> bool:
        """Return whether the file is there."""
        return self.path is None or self.path.exists()


PROBLEMS: dict[str, Source] = {
    "made": Source(lambda seed: Made()),
    **{
        f"ranger-{task}": Source(lambda seed, task=task: Ranger(task), RANGER / "rbv2_ranger.onnx")
        for task in TASKS
    },
}
"""By name; what stands before a hyphen is the family."""
