"""Spaces: what they build can be trained, their ranges grow, and each point to start at fits."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import optuna
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FixedTrial
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.datasets import make_regression
from sklearn.preprocessing import StandardScaler

from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import spaces
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.spaces import SPACES
from optuna_daub.spaces import Task
from optuna_daub.spaces import first_points
from tests.study.table_study import random_study


pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

TASKS: tuple[Task, ...] = ("classification", "regression")
EVERY = (*SPACES, "tabular")


def asked(seed: int = 0) -> optuna.Trial:
    return optuna.create_study(sampler=RandomSampler(seed=seed)).ask()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", SPACES)
def test_what_a_space_builds_learns_with_gaps_and_codes(name: str, task: Task) -> None:
    make = make_classification if task == "classification" else make_regression
    X, y = make(400, 8, n_informative=5, random_state=0)
    X = np.c_[X, np.random.default_rng(0).integers(0, 5, 400)].astype(np.float32)
    X[::7, 1] = np.nan
    points = first_points(name, 400, task=task)
    point = points[min(1, len(points) - 1)]
    model = SPACES[name](FixedTrial(point), 400, task=task, categories=[8])
    assert is_classifier(model) == (task == "classification")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [model.fit(X[:300], y[:300]).score(X[300:], y[300:])]
        X[300:, 8] = 99.0  # a code that was not there before
        scores.append(model.score(X[300:], y[300:]))
    assert scores[0] > (0.7 if task == "classification" else 0.3)
    assert scores[1] == pytest.approx(scores[0], abs=0.2)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", SPACES)
def test_what_a_space_builds_learns_from_sparse_tables(name: str, task: Task) -> None:
    make = make_classification if task == "classification" else make_regression
    X, y = make(400, 8, n_informative=5, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0
    point = first_points(name, 400, task=task)[0]

    def score(table: Any) -> float:
        model = SPACES[name](FixedTrial(point), 400, task=task)
        return float(model.fit(table[:300], y[:300]).score(table[300:], y[300:]))

    # XGBoost takes what is not stored for missing, and forests draw other splits.
    far = name in ("xgboost", "random_forest", "extra_trees")
    assert score(scipy.sparse.csr_matrix(X)) == pytest.approx(score(X), abs=0.1 if far else 0.002)


@pytest.mark.parametrize("task", TASKS)
def test_dense_columns_are_standardized(task: Task) -> None:
    X = np.random.default_rng(0).normal(5, 3, (50, 4))
    for name in ("linear", "neighbours"):
        scaler = SPACES[name](asked(), 400, task=task).steps[0][1].steps[-1][1]
        for _ in range(2):  # also after it was fitted on a sparse table
            scaled = scaler.fit(X).transform(X)
            np.testing.assert_array_equal(scaled, StandardScaler().fit_transform(X))
            sparse = scaler.fit_transform(scipy.sparse.csr_matrix(X))
            np.testing.assert_allclose(sparse.toarray(), X / X.std(axis=0))


def test_neighbours_take_no_weights() -> None:
    """The study ends by a sentence that names `among`."""
    X, y = make_classification(900, 8, random_state=0)
    objective = TrainingSizeObjective(spaces.tabular, X, y, sample_weight=np.ones(900))
    study = random_study(DAUBPruner(min_resource=60, max_resource=objective.n_train), seed=3)
    for name in ("linear", "neighbours"):
        study.enqueue_trial(first_points("tabular", objective.n_train, among=[name])[0])
    with pytest.raises(TypeError, match=r"that of KNeighborsClassifier does not.* `among="):
        study.optimize(objective, timeout=20)
    assert not any(t.intermediate_values for t in study.trials if "neighbours" in t.params)
    assert study.trials[0].intermediate_values


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", EVERY)
@given(n_rows=st.integers(1, 3_000_000))
@settings(max_examples=20)
def test_every_first_point_is_in_its_space(name: str, task: Task, n_rows: int) -> None:
    points = first_points(name, n_rows, task=task)
    assert len({repr(sorted(point.items())) for point in points}) == len(points)
    for point in points:
        trial = FixedTrial(point)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Optuna warns of values out of their range
            getattr(spaces, name)(trial, n_rows, task=task)
        assert trial.params == point, "no value is left over, none is missing"


@pytest.mark.parametrize("name", EVERY)
def test_ranges_never_shrink_with_more_rows(name: str) -> None:
    def ranges(n_rows: int) -> dict[str, float]:
        trial = asked()
        getattr(spaces, name)(trial, n_rows, task="regression")
        return {
            parameter: range_.high
            for parameter, range_ in trial.distributions.items()
            if hasattr(range_, "high")
        }

    few, more, many = (ranges(n) for n in (10, 1_000, 1_000_000))
    assert all(few[p] <= more[p] <= many[p] for p in few.keys() & more.keys() & many.keys())


def test_a_cheap_point_of_each_kind_comes_before_any_larger_one() -> None:
    points = first_points("tabular", 10_000)
    kinds = [point["model"] for point in points]
    assert len({*kinds[: len(SPACES)]}) == len(SPACES)
    trees = [point.get("trees", point.get("forest_trees", 0)) for point in points]
    assert max(trees[: len(SPACES)]) < min(trees[len(SPACES) :])


def test_a_winner_may_be_fitted_on_more_rows_than_it_was_chosen_for() -> None:
    fixed = FixedTrial({"model": "neighbours", "neighbours": 5, "weights": "uniform"})
    assert spaces.tabular(fixed, 55_000).steps[-1][1].n_neighbors == 5


def test_there_are_never_more_neighbours_than_rows() -> None:
    """A trial keeps the range of all the data."""
    trial = asked()
    spaces.neighbours(trial, 20_000)
    assert spaces.neighbours(trial, 3).steps[-1][1].n_neighbors <= 3


def test_neighbours_are_left_out_of_large_tables() -> None:
    assert "neighbours" in {p["model"] for p in first_points("tabular", 50_000)}
    assert "neighbours" not in {p["model"] for p in first_points("tabular", 50_001)}


def test_early_folds_in_time_order_have_enough_rows_for_their_neighbours() -> None:
    X, y = make_classification(10_000, 4, n_informative=2, n_redundant=0, random_state=0)
    objective = TrainingSizeObjective(spaces.neighbours, X, y, shuffle=False, cv=10)
    pruner = DAUBPruner(max_resource=objective.n_train, cost="examples")
    study = random_study(pruner, n_learners=1)
    study.enqueue_trial({"neighbours": 90, "weights": "uniform"})
    study.optimize(objective, n_trials=1)
    assert min(study.trials[0].intermediate_values) == 500


@pytest.mark.parametrize("name", ["lightgbm", "tabular"])
def test_a_space_is_a_build_function_of_the_objective(name: str) -> None:
    """It is passed each size, and ranges stay those of the first call."""
    X, y = make_classification(900, 8, random_state=0)
    objective = TrainingSizeObjective(getattr(spaces, name), X, y)
    pruner = DAUBPruner(min_resource=60, max_resource=objective.n_train, cost="examples")
    study = random_study(pruner, seed=3)
    for point in first_points(name, objective.n_train)[:3]:
        study.enqueue_trial(point)
    study.optimize(objective, n_trials=8)  # warnings are errors here
    assert {t.state.name for t in study.trials} <= {"COMPLETE", "PRUNED"}
    assert any(len(t.intermediate_values) > 1 for t in study.trials)
    tops = {t.distributions["trees"].high for t in study.trials if "trees" in t.params}  # type: ignore[attr-defined]
    assert tops == {objective.n_train}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it may not have been trained on all
        objective.refit(study)


def test_a_space_is_one_of_the_search_of_scikit_learn() -> None:
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier

    X, y = make_classification(400, 8, random_state=0)
    among = ["linear", "extra_trees"]
    search = DataAllocationSearchCV(
        Pipeline([("model", DecisionTreeClassifier())]),
        lambda trial: {"model": spaces.tabular(trial, 320, among=among)},
        n_candidates=2,
        cv=2,
        cost="examples",
        random_state=0,
    ).fit(X, y)
    assert search.best_score_ > 0.7
    assert set(search.study_.best_params) >= {"model"}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n_rows": 0}, "`n_rows` must be at least 1, but got 0"),
        ({"task": "ranking"}, "`task` must be .* but got 'ranking'"),
        ({"among": ["catboost"]}, "`among` must have names of .* but got 'catboost'"),
        ({"among": []}, "`among` must be a list of names"),
        ({"among": "linear"}, "`among` must be a list of names"),
        ({"among": 3}, "`among` must be a list of names"),
        ({"among": [3]}, "`among` must have names of .* but got 3"),
        ({"among": ["x" * 10**6]}, "`among` must have names of .* but got 'xxx"),
        ({"n_rows": "many"}, "`n_rows` must be a whole number, but got 'many'"),
        ({"n_rows": None}, "`n_rows` must be a whole number, but got None"),
        ({"task": ["classification"]}, r"`task` must be .* but got \['classification'\]"),
        ({"task": "x" * 10**6}, "`task` must be .* but got 'xxx"),
        ({"jobs": 0}, "`jobs` must be at least 1, or -1 for all cores, but got 0"),
        ({"seed": -1}, r"`seed` must be an int from 0 to 2\*\*32 - 1, but got -1"),
        ({"seed": 2**32}, r"`seed` must be an int from 0 to 2\*\*32 - 1, but got 4294967296"),
        ({"jobs": "all"}, "`jobs` must be a whole number, but got 'all'"),
        ({"seed": "today"}, r"`seed` must be an int from 0 to 2\*\*32 - 1, but got 'today'"),
        ({"trial": 100}, "`trial` must be the trial that Optuna gives .* but got 100"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match) as raised:
        spaces.tabular(**{"trial": asked(), "n_rows": 100, **arguments})  # type: ignore[arg-type]
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("model", CategoricalDistribution(["linear", "svm"])),
        ("model", IntDistribution(1, 3)),
        ("weights", CategoricalDistribution([None, "balanced"])),
        ("neighbours", IntDistribution(1, 9)),
        ("neighbours", FloatDistribution(1, 9, log=True)),
        ("neighbours", CategoricalDistribution([1, 3])),
    ],
)
def test_a_name_that_the_trial_has_for_something_else_is_refused(name: str, own: Any) -> None:
    trial = optuna.create_study(sampler=RandomSampler(seed=0)).ask({name: own})
    with pytest.raises(ValueError, match=f"`trial` has the parameter '{name}' of another kind"):
        spaces.tabular(trial, 1000, among=["neighbours"])


def test_a_narrower_range_of_the_same_kind_is_kept() -> None:
    own = {
        "model": CategoricalDistribution(["neighbours"]),
        "neighbours": IntDistribution(7, 8, log=True),
        "weights": CategoricalDistribution(["distance"]),
    }
    for seed in range(5):
        trial = optuna.create_study(sampler=RandomSampler(seed=seed)).ask(own)
        found = spaces.tabular(trial, 100_000).steps[-1][1]
        assert (found.n_neighbors in (7, 8), found.weights) == (True, "distance")
        assert trial.distributions == own


@pytest.mark.parametrize("space", [spaces.linear, spaces.neighbours])
@pytest.mark.parametrize("categories", [3, "city", ["city"], {0: "city"}])
def test_categories_are_column_numbers(space: Any, categories: Any) -> None:
    with pytest.raises(ValueError, match="`categories` must be a "):
        space(asked(), 100, categories=categories)
    assert space(asked(), 100, categories=np.array([0, 2])).steps[0][0] == "columntransformer"


@pytest.mark.parametrize("space", ["svm", 3, ["linear"], "x" * 10**6])
def test_an_unknown_space_has_no_first_points(space: Any) -> None:
    with pytest.raises(ValueError, match=r"`space` must be one of .* but got ") as raised:
        first_points(space, 100)
    assert len(str(raised.value)) < 500


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"pip install 'optuna-daub\[boosters\]'"):
        spaces.lightgbm(asked(), 100)
