"""Starts that were good elsewhere, enqueued in an open pool: FLAML's portfolio, as it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import optuna
import pytest

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import learning_curves
from tests.study.table_study import pair
from tests.study.table_study import scored


FULL = 50_000
MADE: list[dict[str, Any]] = [
    {"class": "lgbm", "lgbm.n_estimators": 2541, "lgbm.num_leaves": 1667},
    {"class": "rf", "rf.n_estimators": 501, "rf.criterion": "gini"},
    {"class": "lgbm", "lgbm.n_estimators": 31_204, "lgbm.num_leaves": 4},
    {"class": "rf", "rf.n_estimators": 73, "rf.criterion": "entropy"},
]


@pytest.fixture(params=["made", "FLAML's"])
def portfolio(
    request: pytest.FixtureRequest, shared: Callable[[str], Path]
) -> list[dict[str, Any]]:
    """Points of a space with branches, each named by the algorithm and its parameters."""
    if request.param == "made":
        return MADE
    points = []
    text = shared("portfolios/flaml_binary.json").read_text(encoding="utf-8")
    for one in json.loads(text)["portfolio"]:
        values = {f"{one['class']}.{k}": v for k, v in one["hyperparameters"].items()}
        points.append({"class": one["class"], **values})
    return points


def test_a_portfolio_is_begun_before_anything_is_proposed(portfolio: list[dict[str, Any]]) -> None:
    """Values are kept, each once; the most expensive are not trained on all the data early."""
    classes = sorted({point["class"] for point in portfolio})
    ranges: dict[str, list[Any]] = {}
    for point in portfolio:
        for name, value in point.items():
            if name != "class":
                ranges.setdefault(name, []).append(value)

    def value_of(trial: optuna.Trial, name: str) -> Any:
        seen = ranges[name]
        if isinstance(seen[0], str):
            return trial.suggest_categorical(name, sorted({*seen}))
        if all(isinstance(value, int) for value in seen):
            return trial.suggest_int(name, min(seen), max(seen))
        return trial.suggest_float(name, min(seen), max(seen))

    def objective(trial: optuna.Trial) -> float:
        chosen = trial.suggest_categorical("class", classes)
        names = [name for name in ranges if name.startswith(f"{chosen}.")]
        values = {name: value_of(trial, name) for name in names}
        trees = values.get(f"{chosen}.n_estimators", 10)
        return scored(
            trial,
            lambda n: 0.9 - 1.0 / (10 + trees) - math.pow(n, -0.5),
            seconds=lambda n: trees * n / FULL / 100,
        )

    study = pair(DAUBPruner(max_resource=FULL), optuna.samplers.TPESampler(seed=0))
    for point in portfolio:
        study.enqueue_trial(point)
    study.optimize(objective, n_trials=4 * len(portfolio))
    begun = sorted(learning_curves(study), key=lambda curve: curve.learner)
    for point, curve in zip(portfolio, begun, strict=False):
        assert {name: curve.params.get(name) for name in point} == point
    assert len(begun) > len(portfolio), "then the base sampler proposes"
    dearest = max(point.get("lgbm.n_estimators", 0) for point in portfolio) / 100
    made = [probe.observation for probe in allocations(study)]
    before = takewhile(lambda seen: seen.size < FULL, made)
    assert sum(seen.seconds or 0.0 for seen in before) < 2 * dearest, "it waits for the dearest"
    assert study.best_trial.last_step == FULL
