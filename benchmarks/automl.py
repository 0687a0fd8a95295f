"""A table in, a fitted model out: `python -m optuna_daub fit` beside AutoML libraries.

Each is given all rows but the test rows, the time and all cores, as by a user: which rows it holds
out, and what it trains last, is its own choice. Each fit is a process of its own:

    python -m benchmarks.automl METHOD FOLDER SECONDS SEED
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

from benchmarks.environments import environment
from benchmarks.rows import ROOT
from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import record
from benchmarks.rows import shown
from benchmarks.rows import table


if TYPE_CHECKING:
    import pandas as pd


TABLES = ("flightlate.parquet", "covtype.parquet", "mnist.npz", "connect_4.parquet",
          "adult.parquet", "bank.parquet")  # fmt: skip
"""The largest tables in `../shared/data`; the column to predict is `target`."""
TEST_SHARE, MOST_TESTED = 0.2, 100_000
"""Share of the rows that is for the test, at most so many: standard errors of 0.16 points."""
CORES = os.cpu_count() or 1

Predictors: TypeAlias = dict[str, Callable[["pd.DataFrame"], Any]]
"""Functions from rows to labels, by the part of a method's model."""


def ours(folder: Path, seconds: float, seed: int) -> Predictors:
    """Return the model that the command line saves."""
    import joblib

    command = [sys.executable, "-m", "optuna_daub", "fit", folder / "train.parquet"]
    options = {"target": "target", "minutes": seconds / 60, "seed": seed, "save": folder / "model"}
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    subprocess.run([*command, *given], check=True, stdout=sys.stderr)
    return {"": joblib.load(folder / "model").predict}


def flaml(folder: Path, seconds: float, seed: int) -> Predictors:
    """Return FLAML's best model. By default it trains that on all rows at last.

    https://microsoft.github.io/FLAML/docs/Use-Cases/Task-Oriented-AutoML
    """
    import pandas as pd
    from flaml import AutoML

    rows, found = pd.read_parquet(folder / "train.parquet"), AutoML()
    labels = rows.pop("target")
    options = {"metric": "accuracy", "n_jobs": CORES, "seed": seed, "verbose": 0}
    found.fit(rows, labels, task="classification", time_budget=seconds, **options)
    return {"": found.predict}


def autogluon(preset: str, folder: Path, seconds: float, seed: int) -> Predictors:
    """Return AutoGluon's best single model by its own validation, and its ensemble.

    It takes no seed. https://auto.gluon.ai/stable/api/autogluon.tabular.TabularPredictor.fit.html
    and `leaderboard`.
    """
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    rows = pd.read_parquet(folder / "train.parquet")
    found = TabularPredictor("target", eval_metric="accuracy", path=str(folder), verbosity=0)
    found.fit(rows, time_limit=seconds, presets=preset, num_cpus=CORES, num_gpus=0)
    board = found.leaderboard()
    single = board[board["stack_level"] == 1].sort_values("score_val")["model"].iloc[-1]
    parts = {", single": single, ", ensemble": found.model_best}
    return {part: partial(found.predict, model=model) for part, model in parts.items()}


METHODS: dict[str, Callable[[Path, float, int], Predictors]] = {
    "ours": ours,
    "FLAML": flaml,
    "AutoGluon medium": partial(autogluon, "medium_quality"),
    "AutoGluon best": partial(autogluon, "best_quality"),
}
"""Functions that fit to `train.parquet` in a folder, in so many seconds, with a seed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("--tables", nargs="+", default=TABLES, help="files in ../shared/data")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--minutes", type=float, default=10.0, help="for each fit")
    parser.add_argument("--seeds", type=int, default=3, help="how many divisions")
    parser.add_argument("--first-seed", type=int, default=0, help="so several machines share")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.tables, options.methods = ["made"], ["ours"]
        options.minutes, options.seeds = 0.1, 1
    record("automl", runs(options), options, report)


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield every method on every table, division after division."""
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.tables:
            path = None if name == "made" else SHARED / "data" / name
            for method in options.methods if is_there(name, path) else ():
                key = {"table": name, "method": method, "minutes": options.minutes, "seed": seed}
                yield Run(key, partial(measure, path, method, 60 * options.minutes, seed))


def measure(path: Path | None, method: str, seconds: float, seed: int) -> Row:
    """Fit one method to a division of a table. Return its seconds, and accuracies by part."""
    rows = read(path).sample(frac=1, random_state=seed)
    n_test = min(MOST_TESTED, round(TEST_SHARE * len(rows)))
    with TemporaryDirectory() as folder:
        for name, part in (("test", rows[:n_test]), ("train", rows[n_test:])):
            part.to_parquet(Path(folder, f"{name}.parquet"), index=False)
        python = environment("autogluon") if method.startswith("AutoGluon") else sys.executable
        command = [python, "-m", "benchmarks.automl", method, folder, str(seconds), str(seed)]
        place = os.environ | {"PYTHONPATH": str(ROOT)}
        place.pop("OMP_NUM_THREADS", None)  # all cores
        subprocess.run(command, env=place, check=True, stdout=sys.stderr)
        found: Row = json.loads(Path(folder, "found.json").read_text(encoding="utf-8"))
    print(method, path, seed, found, flush=True)
    return found


def read(path: Path | None) -> pd.DataFrame:
    """Return a table with a column `target`; a made one without a path."""
    import numpy as np
    import pandas as pd

    if path is not None and path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path is None:
        X = np.random.default_rng(0).normal(size=(4_000, 5))
        y = X[:, 0] > X[:, 1] ** 2
    else:
        with np.load(path) as file:
            X, y = file["X"].reshape(len(file["y"]), -1), file["y"]
    return pd.DataFrame(X).add_prefix("x").assign(target=y)


def report(rows: list[Row]) -> Iterator[str]:
    """Yield test accuracies in %, and by how many seconds a fit was too late at most."""
    names = [*grouped(rows, "table")]
    lines = []
    for method, own in grouped(rows, "method").items():
        on = grouped(own, "table")
        late = max(row["seconds"] - 60 * row["key"]["minutes"] for row in own)
        for part in own[0]["accuracy"]:
            hits = [[100 * row["accuracy"][part] for row in on.get(name, ())] for name in names]
            cells = [shown(values, 2) if values else "" for values in hits]
            lines.append([method + part, *cells, f"{late:.0f}"])
    yield table(["test accuracy, %", *names, "largest overrun, s"], lines)


def fit(method: str, folder: Path, seconds: float, seed: int) -> None:
    """Fit one method to the rows in a folder, and write what it reaches on the test rows."""
    import pandas as pd

    begun = time.monotonic()
    parts = METHODS[method](folder, seconds, seed)
    found: Row = {"seconds": time.monotonic() - begun, "accuracy": {}}
    rows = pd.read_parquet(folder / "test.parquet")
    labels = rows.pop("target").to_numpy()
    for part, predict in parts.items():
        found["accuracy"][part] = float((pd.Series(predict(rows)).to_numpy() == labels).mean())
    Path(folder, "found.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in METHODS:
        fit(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
