"""Problems of the search benchmark.

A problem trains one point of its space on so many rows and says what came of it and what it cost.
What is charged is decided here and nowhere else: the surrogate's seconds, or the CPU seconds that
fit and validation took.
"""

from __future__ import annotations

import json
import math
import random
import signal
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from statistics import mean
from traceback import walk_stack
from types import FrameType
from typing import Any
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import SHARED
from benchmarks.search_space import Config
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import Parameter
from benchmarks.search_space import Searched
from benchmarks.search_space import Space
from benchmarks.search_space import draw


class Problem(Searched, Protocol):
    """A search space with the scores and the costs of its points."""

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Return validation score and seconds; infinite seconds if the limit is exceeded."""

    def reference(self) -> dict[str, float]:
        """Return the mean seconds of a full training (`unit`), and the best score known."""


PERFECT = 1.0
"""Largest possible score. A run that reaches it may end, since its curve would not change."""
MOST_TRAININGS = 2000
"""Number of trainings after which a run ends. Few runs get there: those that have found a corner
of a surrogate where training costs next to nothing, and where some methods would think for
hours."""


class Race:
    """One method's run on one problem, with its clock.

    What finishes after the budget does not count, and neither does what was trained on fewer than
    all rows.
    """

    def __init__(self, problem: Problem, budget: float, grace: float = 0.0) -> None:
        self.problem = problem
        """Problem, for methods that train by themselves."""
        self.name, self.space = problem.name, problem.space
        self.smallest, self.full = problem.smallest, problem.full
        self.budget, self.grace = budget, grace
        """Seconds on the clock, and how many more the last training may take without counting."""
        self.facts: dict[str, float] = {"overrun": 0.0} if grace else {}
        """Further figures: `overrun`, how far past the budget the last training would end."""
        self.seconds = 0.0
        """Seconds on the clock."""
        self.cpu = 0.0
        """CPU seconds that this process spent on training. A surrogate charges other seconds."""
        self.trainings = self.full_trainings = 0
        self.curve: list[list[float]] = []
        """Seconds, validation score and test score of each full-data model better than before."""

    def evaluate(self, config: Config, size: int) -> tuple[float, float]:
        """Train, charge the seconds, and note a new best score at N.

        Raises:
            OutOfBudgetError: if the clock has run out before or during the training.
        """
        if not self.smallest <= size <= self.full:
            raise ValueError(
                f"`size` must be in [{self.smallest:,}, {self.full:,}], but got {size:,}."
            )
        left = self.budget - self.seconds
        if left <= 0.0 or self.trainings == MOST_TRAININGS:
            raise OutOfBudgetError
        if self.curve and self.curve[-1][1] >= PERFECT:
            raise OutOfBudgetError
        begun = time.process_time()
        try:
            score, seconds = self.problem.train(config, size, left + self.grace)
            self.note(score, size, seconds)
        finally:  # a training that is cut off is not what the method thought
            self.cpu += time.process_time() - begun
        return score, seconds

    def note(self, score: float, size: int, seconds: float) -> None:
        """Charge a training's seconds, and add its score to the curve."""
        self.seconds += seconds
        if self.seconds > self.budget:
            if self.grace:
                self.facts["overrun"] = min(self.seconds - self.budget, self.grace)
            self.seconds = self.budget
            raise OutOfBudgetError
        self.trainings += 1
        if size < self.full:
            return
        self.full_trainings += 1
        if not self.curve or score > self.curve[-1][1]:
            judge = getattr(self.problem, "judge", None)  # if there are test rows
            self.curve.append([self.seconds, score, *([judge()] if judge else [])])


# --- Random forests as YAHPO's surrogate predicts them ---

RANGER = SHARED / "surrogates"
RANGER_FILE = RANGER / "rbv2_ranger.onnx"
TASKS = (
    *(40923, 41150, 40996, 41161, 41159, 554, 41168, 41166, 23512, 41164),
    *(1457, 1486, 41163, 4541, 300, 1461, 40978, 1478, 151, 4534),
)
"""OpenML's numbers of the data sets for the development of methods."""
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
"""Smallest seconds of one training. The model predicts none at all for up to 8 % of all
configurations on all data and 80 % on the least data, and no training is free; the mean cost does
not change."""
N_FOR_UNIT = 2000
N_FOR_BEST = 200_000
BATCH = 10_000


class Ranger:
    """R's random forest on a data set of OpenML, predicted by a model.

    The model predicts accuracy and seconds. Share 0.03 of the rows is the least that the model was
    made for; N counts as 100,000.
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
            str(RANGER_FILE), options, providers=["CPUExecutionProvider"]
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
        """Return the unit from some random configurations, and the best score of many."""
        rng = random.Random(0)
        best = -math.inf
        costs: list[float] = []
        for _ in range(N_FOR_BEST // BATCH):
            scores, seconds = self.predict(_drawn(self, BATCH, rng), self.full)
            best = max(best, float(scores.max()))
            costs.extend(seconds)
        return {"unit": float(np.mean(costs[:N_FOR_UNIT])), "best": best}


def _drawn(ranger: Ranger, count: int, rng: random.Random) -> list[Config]:
    return [draw(ranger.space, rng) for _ in range(count)]


class Several:
    """Four algorithms in one space, each the random forest on another data set.

    Their best scores are 0.9, 0.89, 0.88 and 0.85 (of random points), and the mean seconds of
    their random points 3, 10 or 30.
    """

    smallest, full = Ranger.smallest, Ranger.full

    def __init__(self, number: int) -> None:
        rng = random.Random(number)
        self.name = f"several-{number}"
        self._parts: dict[str, tuple[Ranger, float, float]] = {}
        space = [Parameter("algorithm", choices=("a", "b", "c", "d"))]
        tasks, bests = rng.sample(TASKS, 4), rng.sample([0.9, 0.89, 0.88, 0.85], 4)
        for name, task, best in zip("abcd", tasks, bests, strict=True):
            part, pace = Ranger(task), rng.choice([3.0, 10.0, 30.0])
            scores, seconds = part.predict(_drawn(part, N_FOR_UNIT, rng), self.full)
            self._parts[name] = part, best - float(scores.max()), pace / float(seconds.mean())
            for one in part.space:
                parent, values = f"{name}.{one.parent}", one.values
                if not one.parent:
                    parent, values = "algorithm", (name,)
                space.append(replace(one, name=f"{name}.{one.name}", parent=parent, values=values))
        self.space: Space = tuple(space)

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Return accuracy and seconds of the algorithm, moved to its best and its pace."""
        part, lift, slowness = self._parts[config["algorithm"]]
        own = {k.split(".", 1)[1]: value for k, value in config.items() if k != "algorithm"}
        score, seconds = part.train(own, size, limit)
        return score + lift, seconds * slowness

    def reference(self) -> dict[str, float]:
        """Return the unit, and the best score of many random configurations."""
        known = [(part.reference(), *rest) for part, *rest in self._parts.values()]
        unit = mean(one["unit"] * slowness for one, _, slowness in known)
        return {"unit": unit, "best": max(one["best"] + lift for one, lift, _ in known)}


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
        """Return the unit and the best score, both in closed form."""
        best, _ = self.train({"kind": "tree", "rate": 0.1, "depth": 10}, self.full, math.inf)
        # Mean cost of a random point: half are lines, half trees of mean depth 5.5.
        return {"unit": mean([0.5, 0.2 * 5.5]), "best": best}


# --- Real training ---

DATA = SHARED / "data"
HELD_OUT = 0.15
MOST_HELD_OUT = 20_000
"""Largest number of validation rows, and of test rows."""
NEAR_SMALLEST = 5_000
"""Number of rows near the smallest size, for large data. The size is N over a power of 3, 27 to
243."""
UNIT_DRAWS = 2
"""Number of random configurations of each algorithm that are timed for the unit."""
UNIT_CAP = 120.0
"""Largest CPU seconds of each of them. One that takes longer counts as this."""

FOREST: Space = (
    Parameter("n_estimators", 10, 100, is_int=True, is_log=True, cheap=10),
    Parameter("max_features", 0.05, 1.0, is_log=True, cheap=0.05),
    Parameter("min_samples_leaf", 1, 50, is_int=True, is_log=True, cheap=50),
    Parameter("criterion", choices=("gini", "entropy")),
)
ALGORITHMS: dict[str, Space] = {
    "lightgbm": (
        Parameter("n_estimators", 10, 500, is_int=True, is_log=True, cheap=10),
        Parameter("num_leaves", 4, 256, is_int=True, is_log=True, cheap=4),
        Parameter("learning_rate", 0.01, 0.5, is_log=True),
        Parameter("min_child_samples", 2, 200, is_int=True, is_log=True),
        Parameter("colsample_bytree", 0.3, 1.0),
        Parameter("reg_lambda", 1e-3, 1e2, is_log=True),
    ),
    "xgboost": (
        Parameter("n_estimators", 10, 500, is_int=True, is_log=True, cheap=10),
        Parameter("max_depth", 2, 10, is_int=True, cheap=2),
        Parameter("learning_rate", 0.01, 0.5, is_log=True),
        Parameter("min_child_weight", 1.0, 100.0, is_log=True),
        Parameter("subsample", 0.5, 1.0),
        Parameter("colsample_bytree", 0.3, 1.0),
        Parameter("reg_lambda", 1e-3, 1e2, is_log=True),
    ),
    "random_forest": FOREST,
    "extra_trees": FOREST,
    "logistic": (
        Parameter("C", 1e-4, 1e2, is_log=True, cheap=1e-4),
        Parameter("tol", 1e-5, 1e-1, is_log=True, cheap=1e-1),
    ),
    "knn": (
        Parameter("n_neighbors", 1, 100, is_int=True, is_log=True),
        Parameter("weights", choices=("uniform", "distance")),
    ),
}
"""Parameters of each algorithm, by name. In the space they carry the algorithm's name."""
ALGORITHM = "algorithm"
CONDITIONAL: Space = (
    Parameter(ALGORITHM, choices=tuple(ALGORITHMS)),
    *(
        replace(one, name=f"{name}.{one.name}", parent=ALGORITHM, values=(name,))
        for name, parameters in ALGORITHMS.items()
        for one in parameters
    ),
)


def build(config: Config) -> Any:
    """Return an unfitted classifier that uses one core."""
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    given = {name.partition(".")[2]: value for name, value in config.items() if "." in name}
    match config[ALGORITHM]:
        case "lightgbm":
            return LGBMClassifier(**given, n_jobs=1, random_state=0, verbose=-1)
        case "xgboost":
            return XGBClassifier(**given, tree_method="hist", n_jobs=1, random_state=0)
        case "random_forest":
            return RandomForestClassifier(**given, n_jobs=1, random_state=0)
        case "extra_trees":
            return ExtraTreesClassifier(**given, n_jobs=1, random_state=0)
        case "logistic":
            return make_pipeline(StandardScaler(), LogisticRegression(**given))
        case "zero-shot":  # not in the space: LightGBM as FLAML's portfolio sets it for the data
            from flaml.default import LGBMClassifier as FromPortfolio

            return FromPortfolio(n_jobs=1, random_state=0, verbose=-1)
        case "knn":
            return make_pipeline(StandardScaler(), KNeighborsClassifier(**given, n_jobs=1))
        case other:
            raise ValueError(f"The algorithm must be one of {[*ALGORITHMS]}, but got {other!r}.")


@dataclass(frozen=True)
class Data:
    """A table as numbers, in three parts; prefixes of the training rows are stratified."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    X_valid: NDArray[np.float32]
    y_valid: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


def read(path: Path, target: str, most: int | None, seed: int) -> Data:
    """Return a file's rows, shuffled and split.

    The file is CSV, Parquet, or of NumPy with `X` and `y`. Columns of text become one column per
    value, missing numbers the median. At most so many rows are for training.
    """
    if path.suffix == ".npz":
        with np.load(path) as file:
            X, y = file["X"].reshape(len(file["y"]), -1).astype(np.float32), file["y"]
    else:
        import pandas as pd

        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        if target not in table:
            columns = ", ".join(map(str, table))
            raise SystemExit(f"--target must be a column of {path}, which has {columns}.")
        y = pd.factorize(table.pop(target), sort=True)[0]
        table = pd.get_dummies(table, dtype=np.float32)
        X = table.fillna(table.median()).to_numpy(np.float32)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    n_out = min(MOST_HELD_OUT, round(HELD_OUT * len(y)))
    valid, test, training = rows[:n_out], rows[n_out : 2 * n_out], rows[2 * n_out :][:most]
    # The k-th of a class's n rows stands at about k / n of the order, the first at its head.
    y = y.astype(np.int64)
    place = np.empty(len(training))
    for label in np.unique(y):
        of_class = np.flatnonzero(y[training] == label)
        place[of_class] = (np.arange(len(of_class)) + rng.random(len(of_class))) / len(of_class)
        place[of_class[:1]] = 0.0
    training = training[np.argsort(place, kind="stable")]
    parts = [(np.ascontiguousarray(X[part]), y[part]) for part in (training, valid, test)]
    return Data(*(array for part in parts for array in part))


CALLED_BACK = ("_next_wrapper", "_reset_wrapper", "_log_callback")
"""Functions of XGBoost and LightGBM that their C++ calls."""
SOON = 0.01
"""CPU seconds between two attempts to cut a training off."""


class CutOffError(BaseException):
    """A training has taken all the seconds that are left."""


@contextmanager
def at_most(limit: float) -> Iterator[None]:
    """Raise `CutOffError` in the block after so many CPU seconds.

    It is raised at the next line of Python, except in a function that C++ calls back. There an
    error is lost, and C++ left halfway, which has ended whole runs with "double free". So it waits
    until that function ends.
    """

    def ring(_: int, frame: FrameType | None) -> None:
        if any(inner.f_code.co_name in CALLED_BACK for inner, _ in walk_stack(frame)):
            signal.setitimer(signal.ITIMER_PROF, SOON)
        else:
            raise CutOffError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, limit if math.isfinite(limit) else 0.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


class Training:
    """Real training on a table; seconds are CPU seconds of fit and validation."""

    space = CONDITIONAL

    def __init__(self, name: str, data: Data) -> None:
        self.name, self.data = name, data
        self.full = len(data.y)
        n_steps = round(math.log(self.full / NEAR_SMALLEST, 3)) if self.full > 1 else 0
        self.smallest = max(self.full // 3 ** min(max(n_steps, 3), 5), 1)
        self.model: Any = None
        """Model that was trained last."""

    def train(self, config: Config, size: int, limit: float) -> tuple[float, float]:
        """Train and score. A model that cannot be trained has score 0."""
        begun = time.process_time()
        self.model = model = build(config)
        try:
            with at_most(limit):
                model.fit(self.data.X[:size], self.data.y[:size])
                score = accuracy(model, self.data.X_valid, self.data.y_valid)
        except CutOffError:
            return 0.0, math.inf
        except Exception as error:
            print(f"{self.name}, {model} on {size:,} rows: {type(error).__name__}: {error}")
            score = 0.0
        return score, time.process_time() - begun

    def reference(self) -> dict[str, float]:
        """Return the unit and the best score of a few random configurations of each algorithm."""
        rng = random.Random(0)
        seconds, best = [], 0.0
        for algorithm in ALGORITHMS:
            for _ in range(UNIT_DRAWS):
                config: Config = {}
                while config.get(ALGORITHM) != algorithm:
                    config = draw(self.space, rng)
                score, taken = self.train(config, self.full, UNIT_CAP)
                seconds.append(min(taken, UNIT_CAP))
                best = max(best, score)
        return {"unit": mean(seconds), "best": best, "cut_off": seconds.count(UNIT_CAP)}

    def judge(self) -> float:
        """Return the test score of what was trained last."""
        return accuracy(self.model, self.data.X_test, self.data.y_test)


def accuracy(model: Any, X: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    """Return the share of rows that a model gets right."""
    return float(np.mean(np.asarray(model.predict(X)).ravel() == y))


# --- All of them ---


@dataclass(frozen=True)
class Source:
    """A problem by name, and its needs."""

    open: Callable[[int], Problem]
    """Function from a seed, which shuffles real data, to the problem."""
    path: Path | None = None
    """File that the problem needs; None if nothing is read."""
    is_real: bool = False
    """True if training is real, and budgets are seconds."""


def of_file(path: Path, target: str, name: str, most: int | None = None) -> Source:
    """Return real training on a file."""

    def opened(seed: int) -> Problem:
        return Training(name, read(path, target, most, seed))

    return Source(opened, path, is_real=True)


def _table(stem: str, most: int | None = None, *, kind: str = "parquet", name: str = "") -> Source:
    return of_file(DATA / f"{stem}.{kind}", "target", f"real-{name or stem}", most)


PROBLEMS: dict[str, Source] = {
    "made": Source(lambda seed: Made()),
    **{f"ranger-{task}": Source(lambda _, task=task: Ranger(task), RANGER_FILE) for task in TASKS},
    **{f"several-{i}": Source(lambda _, i=i: Several(i), RANGER_FILE) for i in range(20)},
    "real-covtype": _table("covtype"),
    "real-flightlate-400k": _table("flightlate", 400_000, name="flightlate-400k"),
    "real-flightlate": _table("flightlate"),
    "real-higgs": _table("higgs"),
    "real-adult": _table("adult"),
    "real-mnist": _table("mnist", kind="npz"),
    "real-letter": _table("letter"),
    "real-magic": _table("magic"),
}
"""Problems by name. The word before the first hyphen is the family."""
