"""DataAllocationSearchCV: what scikit-learn's users know of searches holds for it."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import GridSampler
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from scipy.sparse import csr_array
from scipy.stats import expon
from scipy.stats import loguniform
from scipy.stats import randint
from scipy.stats import uniform
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_selector
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.datasets import make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.metrics import fbeta_score
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.model_selection import GroupShuffleSplit
from sklearn.model_selection import KFold
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.model_selection import RandomizedSearchCV
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection import cross_val_score
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.sklearn import measurements
from optuna_daub.sklearn import searching
from optuna_daub.study import ending
from optuna_daub.study import log
from optuna_daub.study.records import Run
from optuna_daub.tabular import process


X, Y = make_classification(300, 6, n_informative=4, flip_y=0.1, random_state=0)
TREES = {"max_depth": randint(1, 12), "min_samples_leaf": randint(1, 20)}

SETTINGS = {"n_candidates": 6, "cv": 3, "cost": "examples", "random_state": 0}
Search = partial(DataAllocationSearchCV, **SETTINGS, error_score="raise")
NOISE = {"var_smoothing": loguniform(1e-9, 1)}
C = {"C": loguniform(0.01, 10)}
QUALITY = {"quality": uniform()}


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes what it is trained on; predicts the first class seen, as good as `quality` is."""

    def __init__(self, quality: float = 0.5, error: str = "", log: Any = None) -> None:
        self.quality = quality
        self.error = error
        self.log = log

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **arguments: Any) -> Recorder:
        if self.log is not None:
            self.log.append((X, y, {"sample_weight": sample_weight, **arguments}))
        if self.error == "fit" or (self.error == "large" and len(X) > 100):
            raise RuntimeError("it was told to fail")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        if self.error == "predict":
            raise RuntimeError("it was told to fail")
        return np.full(len(X), self.classes_[0])


class Log(list[tuple[Any, Any, dict[str, Any]]]):
    """A list that clones share, as scikit-learn copies what is no estimator."""

    def __deepcopy__(self, memo: Any) -> Log:
        return self


def quality(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score by the parameter."""
    return float(estimator.quality)


def by_trees(**settings: Any) -> DataAllocationSearchCV:
    return Search(DecisionTreeClassifier(random_state=0), TREES, **settings)


def by_bayes(**settings: Any) -> DataAllocationSearchCV:
    return Search(GaussianNB(), NOISE, **settings)


def recorded(space: Any = QUALITY, error: str = "", log: Any = None, **settings: Any) -> Any:
    """Return a search for the best quality of recorders."""
    return Search(Recorder(error=error, log=log), space, **{"scoring": quality, **settings})


@pytest.fixture(scope="module")
def trees() -> DataAllocationSearchCV:
    return by_trees(n_candidates=15).fit(X, Y)


# --- What is found ---


def test_scores_on_all_rows_are_those_of_cross_validate(trees: DataAllocationSearchCV) -> None:
    results = trees.cv_results_
    full = np.flatnonzero(results["n_resources"] == trees.max_resources_)
    assert len(full) >= 1
    for row in full:
        model = DecisionTreeClassifier(random_state=0, **results["params"][row])
        expected = cross_val_score(model, X, Y, cv=3)
        found = [results[f"split{fold}_test_score"][row] for fold in range(3)]
        np.testing.assert_allclose(found, expected)
        assert results["mean_test_score"][row] == pytest.approx(expected.mean())
        assert results["std_test_score"][row] == pytest.approx(expected.std())


def test_the_best_has_the_best_score_on_all_rows(trees: DataAllocationSearchCV) -> None:
    results = trees.cv_results_
    is_full = results["n_resources"] == trees.max_resources_
    assert trees.best_score_ == results["mean_test_score"][is_full].max()
    assert results["rank_test_score"][trees.best_index_] == 1
    assert results["rank_test_score"][is_full].max() < results["rank_test_score"][~is_full].min()
    assert results["params"][trees.best_index_] == trees.best_params_
    assert results["state"][trees.best_index_] == "best"
    assert trees.best_params_ == trees.study_.best_params
    assert trees.best_score_ == trees.study_.best_value
    best = best_learner(trees.study_)
    assert best is not None
    assert best.learner == results["learner"][trees.best_index_]


def test_the_best_is_fitted_on_all_the_data(trees: DataAllocationSearchCV) -> None:
    alone = DecisionTreeClassifier(random_state=0, **trees.best_params_).fit(X, Y)
    np.testing.assert_array_equal(trees.predict(X), alone.predict(X))
    np.testing.assert_array_equal(trees.predict_proba(X), alone.predict_proba(X))
    assert trees.score(X, Y) == alone.score(X, Y)
    assert trees.refit_time_ > 0
    assert trees.n_features_in_ == 6
    np.testing.assert_array_equal(trees.classes_, [0, 1])


def test_there_is_a_row_for_each_candidate(trees: DataAllocationSearchCV) -> None:
    results = trees.cv_results_
    assert trees.n_candidates_ == len(results["params"]) == 15
    assert {len(column) for column in results.values()} == {15}
    curves = {curve.learner: curve for curve in learning_curves(trees.study_)}
    assert [*results["learner"]] == [*curves]
    for row, learner in enumerate(results["learner"]):
        curve = curves[learner]
        assert results["n_resources"][row] == curve.size
        assert trees.n_resources_[results["iter"][row]] == curve.size
        assert results["mean_test_score"][row] == pytest.approx(curve.score)
        assert results["params"][row] == curve.params
        assert results["reason"][row] == curve.reason
        assert results["lower_test_score"][row] == curve.worst
        assert results["upper_test_score"][row] == curve.bound
        seconds = sum(seen.seconds or 0 for seen in curve.observations)
        assert results["seconds"][row] == pytest.approx(seconds)
    assert (results["lower_test_score"] <= results["forecast_test_score"]).all()
    assert (results["forecast_test_score"] <= results["upper_test_score"]).all()
    assert trees.min_resources_ == trees.n_resources_[0]
    assert trees.max_resources_ == trees.n_resources_[-1] == 200


def test_candidates_are_trained_on_as_many_rows_as_it_says() -> None:
    log = Log()
    search = recorded(log=log, refit=False, cv=2).fit(X, Y)
    n_rows = [len(X) for X, _, _ in log]
    assert set(n_rows) <= set(search.n_resources_)
    assert max(n_rows) == search.max_resources_ == 150
    # Each probe is one training for each of two folds.
    probes = [seen for curve in learning_curves(search.study_) for seen in curve.observations]
    assert sorted(n_rows) == sorted(2 * [seen.size for seen in probes])


def test_a_lucky_score_on_few_rows_is_not_chosen() -> None:
    class Counting(Recorder):
        def fit(self, X: Any, y: Any, **arguments: Any) -> Counting:
            self.n_rows_ = len(X)
            super().fit(X, y, **arguments)
            return self

    def lucky(estimator: Any, X: Any, y: Any) -> float:
        return float(estimator.quality) + 0.1 * (estimator.n_rows_ < 100)

    settings = {"scoring": lucky, "n_candidates": 15, "sampler": RandomSampler(seed=0)}
    search = Search(Counting(), {"quality": uniform(0, 0.5)}, **settings).fit(X, Y)
    assert search.cv_results_["mean_test_score"].max() > 0.5 >= search.best_score_
    assert search.cv_results_["n_resources"][search.best_index_] == search.max_resources_


# --- When it ends ---


def test_time_ends_it_and_a_model_is_there() -> None:
    search = by_bayes(cost="seconds", timeout=3.0, n_candidates=None).fit(X, Y)
    assert search.cv_results_["n_resources"][search.best_index_] == search.max_resources_


def test_without_a_full_model_the_best_forecast_is_chosen() -> None:
    class Slow(GaussianNB):
        def fit(self, X: Any, y: Any) -> Slow:
            time.sleep(0.1 if len(X) < 100 else 0.5)
            super().fit(X, y)
            return self

    search = Search(Slow(), NOISE, timeout=0.35, cv=2)
    with pytest.warns(UserWarning, match=r"No candidate was trained on all 150 rows"):
        search.fit(X, Y)
    assert search.cv_results_["n_resources"].max() < search.max_resources_
    assert search.predict(X).shape == Y.shape


@pytest.mark.parametrize(("least", "n_candidates"), [(40, 10), ("smallest", 16)])
def test_without_number_or_time_there_are_as_many_as_the_first_round_affords(
    least: Any, n_candidates: int
) -> None:
    """There are 200 rows, and 12 are the smallest subset."""
    search = by_bayes(min_resources=least, n_candidates=None, sampler=RandomSampler(seed=0))
    assert search.fit(X, Y).n_candidates_ == n_candidates


@pytest.mark.parametrize("depths", [[1, 2], IntDistribution(1, 2)])
def test_few_points_are_all_searched_once(depths: Any) -> None:
    space = {"max_depth": depths, "criterion": ["gini", "entropy"]}
    search = Search(DecisionTreeClassifier(random_state=0), space, n_candidates=9)
    with pytest.warns(UserWarning, match="has 4 points, fewer than the 9 candidates"):
        search.fit(X, Y)
    points = {tuple(params.values()) for params in search.cv_results_["params"]}
    assert len(points) == search.n_candidates_ == 4


@pytest.mark.parametrize(
    "ends", [{"n_candidates": None}, {"n_candidates": None, "timeout": 60}, {"n_candidates": 3}]
)
def test_an_empty_space_has_one_candidate(ends: dict[str, Any]) -> None:
    search = Search(GaussianNB(), {}, **ends).fit(X, Y)
    assert search.n_candidates_ == 1
    assert search.best_params_ == {}
    assert search.best_score_ == pytest.approx(cross_val_score(GaussianNB(), X, Y, cv=3).mean())


# --- Seeds, clones, copies ---


def same(one: DataAllocationSearchCV, other: DataAllocationSearchCV) -> bool:
    names = ("params", "mean_test_score", "n_resources", "state")
    return all([*one.cv_results_[name]] == [*other.cv_results_[name]] for name in names)


def test_the_same_seed_gives_the_same_search(trees: DataAllocationSearchCV) -> None:
    again = clone(trees).fit(X, Y)
    assert same(trees, again)
    assert not same(trees, again.set_params(random_state=1, n_candidates=3).fit(X, Y))
    other = clone(again).fit(X, Y)
    assert same(again, other)
    assert same(again, other.fit(X, Y))


def test_a_sampler_of_ones_own_stays_as_it_was() -> None:
    search = by_bayes(sampler=RandomSampler(seed=3))
    first = clone(search.fit(X, Y)).fit(X, Y)
    assert same(search, first)
    assert same(search, clone(search).set_params(random_state=0).fit(X, Y))
    assert isinstance(search.sampler, RandomSampler)


def test_steps_of_a_range_are_points() -> None:
    space = {"var_smoothing": FloatDistribution(0.1, 0.3, step=0.1)}
    search = Search(GaussianNB(), space, n_candidates=9, cost="examples", random_state=0)
    with pytest.warns(UserWarning, match="has 3 points, fewer than the 9 candidates"):
        search.fit(X, Y)
    assert search.n_candidates_ == 3


def test_random_states_advance() -> None:
    search = by_bayes(random_state=np.random.RandomState(0))
    one, other = (search.fit(X, Y).cv_results_["params"] for _ in range(2))
    assert one != other


def test_pickles_predict_alike(trees: DataAllocationSearchCV) -> None:
    copy = pickle.loads(pickle.dumps(trees))
    np.testing.assert_array_equal(copy.predict(X), trees.predict(X))
    assert same(copy, trees)
    assert copy.study_.best_value == trees.study_.best_value
    scores = [[c.score for c in learning_curves(each.study_)] for each in (copy, trees)]
    assert scores[0] == scores[1]


def test_threads_search_alike() -> None:
    search = by_trees(n_jobs=2).fit(X, Y)
    assert search.n_candidates_ == 6
    model = DecisionTreeClassifier(random_state=0, **search.best_params_)
    assert search.best_score_ == pytest.approx(cross_val_score(model, X, Y, cv=3).mean())


def test_it_is_quiet_unless_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("optuna")
    monkeypatch.setattr(logger, "propagate", True)
    caplog.set_level(logging.INFO, "optuna")
    search = by_bayes(n_candidates=3).fit(X, Y)
    assert not caplog.records
    assert logger.level == logging.INFO
    search.set_params(verbose=1).fit(X, Y)
    assert sum("Trial" in record.getMessage() for record in caplog.records) >= 3


# --- Several scorers, refit ---


@pytest.mark.parametrize(
    ("scoring", "refit"),
    [
        (["accuracy", "roc_auc"], "accuracy"),
        (("accuracy", "roc_auc"), "roc_auc"),
        ({"accuracy": make_scorer(accuracy_score), "roc_auc": "roc_auc"}, "roc_auc"),
    ],
    ids=["list", "tuple", "dict"],
)
def test_of_several_scorers_refit_names_the_one_that_counts(scoring: Any, refit: str) -> None:
    several = by_trees(scoring=scoring, refit=refit)
    one = clone(several).set_params(scoring=refit, refit=True).fit(X, Y)
    several.fit(X, Y)
    assert several.multimetric_
    assert not one.multimetric_
    for name in ("best_params_", "best_score_", "best_index_"):
        assert getattr(several, name) == getattr(one, name)
    found = several.cv_results_
    for column in ("mean_test", "std_test", "rank_test", "split0_test"):
        same_column = one.cv_results_[f"{column}_score"]
        np.testing.assert_array_equal(found[f"{column}_{refit}"], same_column)
    assert several.score(X, Y) == one.score(X, Y)
    assert several.scorer_.keys() == {"accuracy", "roc_auc"}
    row = int(np.flatnonzero(found["n_resources"] == several.max_resources_)[0])
    model = DecisionTreeClassifier(random_state=0, **found["params"][row])
    for name in ("accuracy", "roc_auc"):
        expected = cross_val_score(model, X, Y, cv=3, scoring=name)
        assert found[f"mean_test_{name}"][row] == pytest.approx(expected.mean())


def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    return {"share": estimator.score(X, y), "depth": -float(estimator.get_depth())}


def test_a_function_may_return_several_scores() -> None:
    search = by_trees(scoring=both, refit="depth").fit(X, Y)
    assert search.multimetric_
    assert search.best_score_ == search.cv_results_["mean_test_depth"][search.best_index_]
    single, plain = by_trees(scoring=both, refit="share").fit(X, Y), by_trees().fit(X, Y)
    assert single.best_params_ == plain.best_params_
    assert single.score(X, Y) == plain.score(X, Y)


@pytest.mark.parametrize("scoring", [["accuracy", "roc_auc"], both], ids=["list", "function"])
@pytest.mark.parametrize("refit", [True, "recall"])
def test_of_several_scorers_refit_must_name_one(scoring: Any, refit: Any) -> None:
    with pytest.raises(ValueError, match="parameter refit must be set to a scorer key"):
        by_trees(scoring=scoring, refit=refit).fit(X, Y)


@pytest.mark.parametrize("refit", [True, "recall"])
def test_a_wrong_refit_of_a_function_is_named_after_the_first_training(refit: Any) -> None:
    search = by_trees(scoring=both, refit=refit)
    with pytest.raises(ValueError, match="parameter refit must be set to a scorer key"):
        search.fit(X, Y)
    assert len(search.study_.trials) == 1


def test_several_scorers_without_refit_have_no_best() -> None:
    search = by_trees(scoring=["accuracy", "recall"], refit=False).fit(X, Y)
    assert not hasattr(search, "best_params_")
    assert not hasattr(search, "best_index_")
    by_first = by_trees(scoring="accuracy").fit(X, Y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(search.cv_results_["mean_test_accuracy"], by_first)


def test_without_refit_there_is_a_best_and_no_model() -> None:
    search = by_trees(refit=False).fit(X, Y)
    assert search.best_params_ in search.cv_results_["params"]
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        search.predict(X)


def test_refit_may_choose() -> None:
    def shallow(results: dict[str, Any]) -> int:
        return int(np.argmin(results["param_max_depth"].astype(int)))

    search = by_trees(refit=shallow).fit(X, Y)
    least = min(params["max_depth"] for params in search.cv_results_["params"])
    assert search.best_params_["max_depth"] == search.best_estimator_.max_depth == least
    assert not hasattr(search, "best_score_")


def test_refit_must_choose_a_row() -> None:
    with pytest.raises(TypeError, match="not an integer"):
        by_trees(refit=lambda results: "two").fit(X, Y)
    with pytest.raises(IndexError, match="out of range"):
        by_trees(refit=lambda results: 99).fit(X, Y)


def test_training_scores_are_kept_where_asked_for(trees: DataAllocationSearchCV) -> None:
    search = by_trees(return_train_score=True).fit(X, Y)
    model = DecisionTreeClassifier(random_state=0, **search.best_params_)
    expected = cross_validate(model, X, Y, cv=3, return_train_score=True)["train_score"]
    found = search.cv_results_["mean_train_score"][search.best_index_]
    assert found == pytest.approx(expected.mean())
    assert not any("train" in name for name in trees.cv_results_)


# --- Failures ---


def test_a_candidate_that_fails_is_dropped() -> None:
    space = {"error": ["", "fit"], "quality": [0.2, 0.4, 0.6]}
    search = recorded(space, error_score=np.nan)
    with (
        pytest.warns(FitFailedWarning, match=r"(?s)candidates were dropped.*told to fail"),
        pytest.warns(UserWarning, match="test scores are non-finite"),
    ):
        search.fit(X, Y)
    results = search.cv_results_
    failed = np.array([params["error"] == "fit" for params in results["params"]])
    assert failed.sum() == 3
    assert np.isnan(results["mean_test_score"][failed]).all()
    assert np.isfinite(results["mean_test_score"][~failed]).all()
    found = [set(results[name][failed]) for name in ("rank_test_score", "state", "n_resources")]
    assert found == [{4}, {"dropped"}, {0}]
    assert search.best_params_ == {"error": "", "quality": 0.6}


def test_one_that_fails_later_keeps_its_score_and_is_not_chosen() -> None:
    space = [{"error": ["large"], "quality": [0.9]}, {"error": [""], "quality": [0.4, 0.5]}]
    search = recorded(space, error_score=np.nan, n_candidates=3)
    with pytest.warns(FitFailedWarning, match="1 of 3 candidates were dropped"):
        search.fit(X, Y)
    failed = [params["quality"] for params in search.cv_results_["params"]].index(0.9)
    assert 0 < search.cv_results_["n_resources"][failed] <= 100
    assert search.best_params_["quality"] == 0.5


def test_errors_are_raised_where_asked_for() -> None:
    with pytest.raises(RuntimeError, match="told to fail"):
        recorded(error="fit").fit(X, Y)


@pytest.mark.parametrize("is_several", [False, True])
def test_a_number_counts_for_a_fit_that_fails(is_several: bool) -> None:
    def several(model: Any, X: Any, y: Any) -> dict[str, float]:
        return {"other": 1.0, "quality": model.quality}

    settings = {"scoring": several, "refit": "quality"} if is_several else {"scoring": quality}
    search = recorded({"error": ["", "fit"]}, error_score=-1.0, n_candidates=2, **settings)
    with pytest.warns(FitFailedWarning, match="3 fits failed, whose score is `error_score=-1.0`"):
        found = search.fit(X, Y).cv_results_
    scores = {"quality": 0.5, "other": 1.0} if is_several else {"score": 0.5}
    for name, score in scores.items():
        by_error = zip(found["params"], found[f"mean_test_{name}"], strict=True)
        assert {p["error"]: s for p, s in by_error} == {"": score, "fit": -1.0}


@pytest.mark.parametrize("ends", [{"n_candidates": 3}, {"n_candidates": None, "timeout": 600}])
def test_where_all_fail_it_says_so_at_once(ends: dict[str, Any]) -> None:
    said = r"(?s)All the \d+ candidates failed.*above is the first error.*told to fail"
    with pytest.raises(ValueError, match=said) as raised:
        recorded(error="fit", error_score=np.nan, **ends).fit(X, Y)
    first, *rest = str(raised.value.__cause__).splitlines()
    assert first.endswith("told to fail")
    assert "Traceback (most recent call last):" in rest
    assert first == rest[-1]


@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
def test_where_all_scores_fail_it_says_where_the_error_is() -> None:
    search = Search(GaussianNB(), {}, scoring="f1", error_score=np.nan)
    with pytest.raises(ValueError, match="warnings name errors of scorers"):
        search.fit(X, np.where(Y, "yes", "no"))


@pytest.mark.parametrize("scoring", ["neg_log_loss", {"neg_log_loss": "neg_log_loss"}])
def test_a_class_that_is_not_scored_is_refused_in_the_users_words(scoring: Any) -> None:
    settings = {"scoring": scoring, "refit": "neg_log_loss"}
    search = Search(GaussianNB(), {}, cv=[(range(100, 300), range(100))], **settings)
    said = r"`scoring='neg_log_loss'` scores prob.* class 2, with 1 "
    with pytest.raises(ValueError, match=said):
        search.fit(X, np.r_[Y[:-1], 2])


@pytest.mark.parametrize(
    ("error", "error_score", "refit"), [("fit", 0.0, True), ("large", np.nan, False)]
)
def test_if_all_fail_on_all_rows_it_says_so(error: str, error_score: float, refit: bool) -> None:
    """Also if each has a score on fewer rows, and if a number counts for what fails."""
    search = recorded(error=error, error_score=error_score, refit=refit, n_candidates=2)
    with pytest.raises(ValueError, match=r"(?s)All the 2 candidates failed.*`min_resources`"):
        search.fit(X, Y)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize(("n_folds", "n_failing"), [(1, 1), (1, 4), (2, 2), (3, 3)])
def test_however_many_fail_what_does_not_is_chosen(n_folds: int, n_failing: int) -> None:
    """Also if as many fits failed as others were made."""
    errors = ["", *(f"fit{i}" for i in range(n_failing))]

    def space(trial: optuna.Trial) -> dict[str, Any]:
        return {"error": trial.suggest_categorical("error", errors)[:3]}

    ends = {"n_candidates": len(errors), "sampler": GridSampler({"error": errors}, seed=0)}
    cv = GroupShuffleSplit(n_folds, random_state=0)
    search = recorded(space, cv=cv, error_score=np.nan, **ends)
    with pytest.warns(FitFailedWarning, match=f"{n_failing} of {len(errors)} candidates"):
        search.fit(X, Y, groups=np.arange(len(X)))
    assert search.best_params_ == {"error": ""}


def test_a_failure_is_said_to_be_at_the_size_that_was_fitted() -> None:
    log = Log()
    search = recorded(error="large", log=log, error_score=np.nan, n_candidates=1)
    with pytest.raises(ValueError, match="All the 1 candidates failed") as raised:
        search.fit(X, Y)
    (failed_at,) = {len(X) for X, *_ in log if len(X) > 100}
    assert f"failed 2 times at {failed_at} examples" in str(raised.value)


def by_accuracy(estimator: Any, X: Any, y: Any) -> float:
    return float(estimator.score(X, y))


def small(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
    return {"C": trial.suggest_float("C", 0.01, 10)}


def large(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
    return {"C": 1000 * trial.suggest_float("C", 0.01, 10)}


def f_of(beta: float) -> Any:
    return make_scorer(partial(fbeta_score, beta=beta))


def stored(estimator: Any, space: Any, **settings: Any) -> DataAllocationSearchCV:
    """Return a search of two candidates in a storage of its own."""
    storage = optuna.storages.InMemoryStorage()
    where = {"storage": storage, "study_name": "s", "n_candidates": 2}
    return Search(estimator, space, **where).set_params(**settings)


def space_of(**space: Any) -> dict[str, Any]:
    return {"param_distributions": space}


def scored_by(scorer: Any) -> dict[str, Any]:
    return {"scoring": {"one": scorer}, "refit": "one"}


LIGHT, HEAVY, HEAVIER = {0: 1, 1: 2}, {0: 1, 1: 5}, {0: 1, 1: 9}
WEIGHTS = space_of(class_weight=[None, LIGHT, HEAVY])
BOTH = {"scoring": ["recall", "precision"], "refit": "recall"}
SPACE, SEEDS = "param_distributions", "cv and random_state"

OTHERS: list[tuple[dict[str, Any], str, dict[str, Any], Any]] = [
    ({}, SPACE, space_of(C=loguniform(0.01, 5)), Y),
    ({}, SPACE, {SPACE: [C, {"tol": [1e-3]}]}, Y),
    ({}, "scoring", {"scoring": "neg_log_loss"}, Y),
    ({}, "scoring", {"scoring": ["accuracy"], "refit": "accuracy"}, Y),
    ({}, SEEDS, {"cv": 4}, Y),
    ({}, SEEDS, {"random_state": 1}, Y),
    ({}, "estimator", {"estimator": SVC()}, Y),
    ({}, "estimator", {"estimator": LogisticRegression(max_iter=50)}, Y),
    ({}, "estimator", {"estimator": LogisticRegression(class_weight={0: 1, 1: 50})}, Y),
    ({}, "return_train_score", {"return_train_score": True}, Y),
    ({}, "data", {}, Y[::-1]),
    ({}, "data", {}, Y.astype(str)),
    (WEIGHTS, SPACE, space_of(class_weight=[None, LIGHT, HEAVIER]), Y),
    (WEIGHTS, SPACE, space_of(class_weight=[None, HEAVY, LIGHT]), Y),
    (space_of(C=expon()), SPACE, space_of(C=expon(scale=0.001)), Y),
    ({SPACE: small}, SPACE, {SPACE: large}, Y),
    (scored_by("accuracy"), "scoring", scored_by("recall"), Y),
    (scored_by(f_of(1)), "scoring", scored_by(f_of(2)), Y),
    ({"scoring": f_of(1)}, "scoring", {"scoring": f_of(2)}, Y),
    ({"scoring": by_accuracy}, "scoring", {"scoring": quality}, Y),
    (BOTH, r"score searched by \(`refit`\)", BOTH | {"refit": "precision"}, Y),
]
"""Settings of a search, the name of what differs later, the settings that do, and the labels."""


@pytest.mark.parametrize(("before", "name", "after", "y"), OTHERS)
def test_a_stored_search_goes_on_with_what_it_was_begun_with_only(
    before: dict[str, Any], name: str, after: dict[str, Any], y: Any
) -> None:
    search = stored(LogisticRegression(), C, **before).fit(X, Y)
    n_trials = len(search.study_.trials)
    with pytest.raises(ValueError, match=f"must go on with the {name} it was started with"):
        clone(search).set_params(**after).fit(X, y)
    assert len(search.study_.trials) == n_trials
    assert clone(search).set_params(n_candidates=3).fit(X, Y).n_candidates_ == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"estimator__C": 5}),  # which is searched
        ({}, {"estimator__verbose": 1}),
        ({}, {"refit": False}),
        ({"scoring": f_of(2)}, {"scoring": f_of(2)}),
        (BOTH | {"refit": False}, {"refit": "recall"}),  # the first
        (
            BOTH | {"refit": False},
            {"scoring": {"precision": "precision", "recall": "recall"}, "refit": "recall"},
        ),
        (space_of(C=expon()), space_of(C=expon(scale=1))),
    ],
)
def test_a_stored_search_goes_on_with_what_comes_to_the_same(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    search = stored(LogisticRegression(), C, **before).fit(X, Y)
    assert clone(search).set_params(**after, n_candidates=3).fit(X, Y).n_candidates_ == 3


def test_of_long_settings_the_refusal_shows_what_differs() -> None:
    choices = [{0: 1, 1: weight} for weight in range(1, 101)]
    search = stored(LogisticRegression(), {"class_weight": choices}).fit(X, Y)
    other = [*choices[:98], {0: 1, 1: 1234}, {0: 1, 1: 5678}]
    with pytest.raises(ValueError, match="must go on with the param_distributions") as raised:
        clone(search).set_params(param_distributions={"class_weight": other}).fit(X, Y)
    then, now = str(raised.value).split("but now has")
    assert "{0: 1, 1: 99}, {0: 1, 1: 100}]" in then
    assert "{0: 1, 1: 1234}, {0: 1, 1: 5678}]" in now
    assert len(str(raised.value)) < 700


OF_FUNCTIONS = """
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from functools import partial
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score
from sklearn.metrics import make_scorer
from sklearn.preprocessing import FunctionTransformer
from optuna_daub.sklearn import DataAllocationSearchCV

class Callable:
    def __call__(self, estimator, X, y):
        return estimator.score(X, y)

def function(estimator, X, y):
    return estimator.score(X, y)

def pick(n):
    return lambda estimator, X, y: {"a": estimator.score(X, y), "b": 0.0}

X, y = make_classification(200, random_state=0)
by_f = make_scorer(partial(fbeta_score, beta=2))
scorers = {
    "callable": Callable(), "function": function, "partial": by_f, "lambda": pick(1),
    "several": {"f": by_f, "accuracy": "accuracy", "function": function},
}
space = {"C": [0.1, 1.0, 10.0], "class_weight": [None, {0: 1, 1: 2}]}
for name, scoring in scorers.items():
    refit = {"lambda": "a", "several": "f"}.get(name, True)
    search = DataAllocationSearchCV(
        LogisticRegression(), space, n_candidates=n_candidates, cv=2, random_state=0,
        cost="examples", scoring=scoring, refit=refit, study_name=name,
        storage=JournalStorage(JournalFileBackend(path)),
    )
    assert search.fit(X, y).n_candidates_ == n_candidates
"""


@pytest.mark.slow
def test_a_search_by_functions_goes_on_in_another_process(tmp_path: Any) -> None:
    """If addresses, and the order of sets, are others."""
    path = str(tmp_path / "journal")
    exec(OF_FUNCTIONS, {"__name__": "__main__", "path": path, "n_candidates": 1})
    code = f"path, n_candidates = {path!r}, 2\n{OF_FUNCTIONS}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_candidate_that_the_space_rejects_is_dropped() -> None:
    def space(trial: optuna.Trial) -> dict[str, Any]:
        depth = trial.suggest_int("depth", 1, 9)
        if depth > 4:
            raise optuna.TrialPruned("too deep")
        return {"max_depth": depth, "min_samples_leaf": trial.suggest_int("leaf", 1, 9)}

    search = stored(DecisionTreeClassifier(random_state=0), space, n_candidates=8)
    with pytest.warns(FitFailedWarning, match=r"(?s)of 8 candidates were dropped"):
        search.fit(X, Y)
    results = search.cv_results_
    rejected = [params for params in results["params"] if "depth" in params]
    assert min(params["depth"] for params in rejected) > 4
    assert all(params.keys() == {"depth"} for params in rejected)
    is_rejected = np.array([params in rejected for params in results["params"]])
    assert set(results["state"][is_rejected]) == {"dropped"}
    assert set(results["n_resources"][is_rejected]) == {0}
    assert "dropped" not in set(results["state"][~is_rejected])
    assert search.best_params_["max_depth"] <= 4
    # Those of an earlier search are asked for once more.
    with pytest.warns(FitFailedWarning, match=r"of 9 candidates were dropped"):
        again = clone(search).set_params(n_candidates=9).fit(X, Y)
    assert again.cv_results_["params"][:8] == results["params"]


def test_a_space_that_rejects_all_is_named() -> None:
    def space(trial: optuna.Trial) -> dict[str, Any]:
        raise optuna.TrialPruned(f"{trial.suggest_int('depth', 1, 9)} is too deep")

    with pytest.raises(ValueError, match=r"(?s)space rejected all the 4 candidates.*is too deep"):
        Search(DecisionTreeClassifier(), space, n_candidates=4).fit(X, Y)


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores")
def test_an_error_on_few_rows_names_those_of_the_smallest_fold() -> None:
    search = Search(
        KNeighborsClassifier(),
        {"n_neighbors": randint(31, 34)},
        n_candidates=2,
        min_resources=60,
        cv=TimeSeriesSplit(2),
        error_score=np.nan,
    )
    few = r"`min_resources` be more than 60 \(the smallest fold has 3\d of them\)"
    with pytest.raises(ValueError, match=few):
        search.fit(X[:300], np.repeat(Y[:30], 10))


def test_a_subclass_may_have_arguments_of_any_name() -> None:
    class Mine(DataAllocationSearchCV):
        def __init__(self, estimator: Any, param_distributions: Any, *, seed: int = 0) -> None:
            super().__init__(estimator, param_distributions, n_candidates=2, random_state=seed)
            self.seed = seed

    assert clone(Mine(LogisticRegression(), {"C": [1.0, 2.0]}, seed=3)).seed == 3
    assert [*inspect.signature(Mine).parameters] == ["estimator", "param_distributions", "seed"]
    with pytest.raises(TypeError, match="`seed` is called `random_state` here"):
        DataAllocationSearchCV(LogisticRegression(), {}, seed=3)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_function_is_asked_with_trials_of_the_study_only() -> None:
    def space(trial: optuna.Trial) -> dict[str, Any]:
        assert trial.study.direction.name == "MAXIMIZE"  # a FixedTrial has none
        if trial.number == 1:
            raise optuna.TrialPruned
        return {"C": trial.suggest_float("C", 0.1, 10), "random_state": trial.number}

    search = Search(LogisticRegression(), space, n_candidates=3)
    with pytest.warns(FitFailedWarning, match="1 of 3 candidates were dropped"):
        search.fit(X, Y)
    points = search.cv_results_["params"]
    assert len({params.get("random_state") for params in points}) == len(points) == 3
    assert {} in points


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_what_a_space_rejects_has_not_failed() -> None:
    """A search without end is ended if all fail to be fitted, not if few are wanted."""

    def space(trial: optuna.Trial) -> dict[str, Any]:
        strength = trial.suggest_float("C", 0.1, 10)
        if trial.number <= searching.MAX_FAILED:
            raise optuna.TrialPruned
        return {"C": strength}

    search = Search(LogisticRegression(), space, n_candidates=None, timeout=3)
    with pytest.warns(FitFailedWarning, match="11 of .* candidates were dropped"):
        search.fit(X, Y)
    assert 0.1 <= search.best_params_["C"] <= 10


@pytest.mark.parametrize("is_running", [False, True])
def test_what_another_worker_trains_at_the_end_of_a_search_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    """Rows are of the sizes that they say, whatever came in since these were read."""
    size, begun, n_calls = 200, [], 0  # of all rows

    def begin(study: optuna.Study) -> None:
        curve = next(curve for curve in learning_curves(study) if curve.state == "suspended")
        run = Run(curve.learner, size, inherited=curve.size, full_size=200)
        begun.append(log.stand_in(study, copy.copy(study.trials[curve.learner]), run)._trial_id)

    def curves_of(study: optuna.Study) -> list[Any]:
        curves = learning_curves(study)
        if is_running:
            begin(study)
        return curves

    def probes_of(study: optuna.Study) -> list[Any]:
        nonlocal n_calls
        n_calls += 1
        if not is_running:
            begin(study)
        folds = {name: [0.25] * 3 for name in ("fit_time", "score_time", "test_scores")}
        study._storage.set_trial_system_attr(begun[0], f"daub:folds:{size}", folds)
        study._storage.set_trial_intermediate_value(begun[0], size, 0.25)
        return allocations(study)

    monkeypatch.setattr(measurements, "learning_curves", curves_of)
    monkeypatch.setattr(measurements, "allocations", probes_of)
    search = by_trees(n_candidates=15).fit(X, Y)
    assert n_calls == len(begun) == 1
    results = search.cv_results_
    curves = learning_curves(search.study_)
    assert [*results["learner"]] == [curve.learner for curve in curves]
    for row, curve in enumerate(curves):
        scores = {seen.size: seen.score for seen in curve.observations}
        expected = scores[results["n_resources"][row]]
        assert results["mean_test_score"][row] == pytest.approx(expected)


@pytest.mark.parametrize("goals", [["minimize"], ["maximize", "maximize"]])
def test_a_study_that_does_not_maximize_one_score_is_refused(goals: list[str]) -> None:
    search = stored(LogisticRegression(), C)
    optuna.create_study(study_name="s", storage=search.storage, directions=goals)
    with pytest.raises(ValueError, match="maximizes one score, but study 's' is to ") as raised:
        search.fit(X, Y)
    assert str(goals) in str(raised.value)


def test_a_study_with_results_of_something_else_is_refused() -> None:
    search = stored(LogisticRegression(), C)
    study = optuna.create_study(study_name="s", storage=search.storage, direction="maximize")
    study.enqueue_trial({"C": 2.0})
    begun = clone(search).fit(X, Y)  # which deep copies the storage
    assert {"C": 2.0} in begun.cv_results_["params"]
    study.optimize(lambda trial: trial.suggest_float("C", 0.01, 10), n_trials=1)
    with pytest.raises(ValueError, match="but study 's' has results of something else"):
        search.fit(X, Y)


def test_searches_in_threads_leave_the_logs_as_they_were() -> None:
    loggers = [logging.getLogger(name) for name in ("optuna", "optuna_daub")]
    before = [logger.level for logger in loggers]
    begun = threading.Barrier(2, timeout=60)

    def search(pause: float) -> None:
        class Slow(Recorder):
            def fit(self, X: Any, y: Any, **arguments: Any) -> Recorder:
                if not hasattr(Slow, "waited"):
                    Slow.waited = True  # type: ignore[attr-defined]
                    begun.wait()
                    time.sleep(pause)
                if len(X) < 300:  # the last fit, on all rows, is none of the search
                    assert loggers[0].level == logging.ERROR
                return super().fit(X, y, **arguments)

        Search(Slow(), {"quality": [0.5, 0.6]}, scoring=quality, n_candidates=2).fit(X, Y)

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(search, (0.0, 0.2))]
    assert [logger.level for logger in loggers] == before


@pytest.mark.parametrize(
    ("other", "level"),
    [
        (searching.quiet(0), logging.ERROR),
        (process.quiet("optuna", "optuna_daub"), logging.CRITICAL),
    ],
    ids=["another search", "a `fit` of a table"],
)
def test_searches_that_overlap_in_time_leave_the_logs_as_they_were(other: Any, level: int) -> None:
    loggers = [logging.getLogger(name) for name in ("optuna", "optuna_daub")]
    before = [logger.level for logger in loggers]
    search = searching.quiet(0)
    search.__enter__()
    other.__enter__()
    search.__exit__(None, None, None)  # the first to begin ends first
    assert [logger.level for logger in loggers] == 2 * [level]
    other.__exit__(None, None, None)
    assert [logger.level for logger in loggers] == before


def test_what_an_interrupted_search_has_found_is_there() -> None:
    fits = count(1)

    def interrupted(estimator: Recorder, X: Any, y: Any) -> float:
        if next(fits) == 7:
            raise KeyboardInterrupt
        return quality(estimator, X, y)

    search = recorded(scoring=interrupted, timeout=600)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert learning_curves(search.study_)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        search.predict(X)


@pytest.mark.parametrize("moment", ["closed by the sampler", "stored by Optuna"])
def test_ctrl_c_while_a_trial_ends_is_no_error_of_optuna(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    if moment == "stored by Optuna":
        monkeypatch.setattr(InMemoryStorage, "set_trial_state_values", interrupted)
    else:
        monkeypatch.setattr(ending, "close", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        recorded(n_candidates=2).fit(X, Y)
    assert not isinstance(raised.value, Exception), "`except Exception` would hide it"


@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
def test_scores_that_are_no_numbers_drop_a_candidate() -> None:
    search = Search(Recorder(), {"error": ["", "predict"]}, n_candidates=2, error_score=np.nan)
    with (
        pytest.warns(FitFailedWarning, match="1 of 2 candidates were dropped"),
        pytest.warns(UserWarning, match="test scores are non-finite"),
    ):
        assert search.fit(X, Y).best_params_ == {"error": ""}


def test_unknown_parameters_are_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'alfa' for estimator Ridge"):
        Search(Ridge(), {"alfa": uniform()}, error_score=np.nan).fit(X, Y)


# --- What is passed to fit ---


def test_arguments_of_fit_are_cut_to_the_rows() -> None:
    log = Log()
    rows = np.arange(len(X), dtype=float)
    recorded(log=log).fit(rows[:, None], Y, sample_weight=rows, flag="as it is")
    for table, _, arguments in log:
        np.testing.assert_array_equal(table[:, 0], arguments["sample_weight"])
        assert arguments["flag"] == "as it is"
    assert len(log[-1][0]) == len(X)


def test_rows_that_weigh_nothing_count_for_nothing() -> None:
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    search = Search(LogisticRegression(), C, n_candidates=2).fit(X, Y, sample_weight=weight)
    model = LogisticRegression(C=search.best_params_["C"]).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(search.best_estimator_.coef_, model.coef_, rtol=1e-3)


@pytest.mark.parametrize(
    "cv", [LeaveOneGroupOut(), GroupKFold(3), GroupShuffleSplit(2, random_state=0)]
)
def test_groups_stay_together(cv: Any) -> None:
    groups = np.arange(len(X)) % 5
    log = Log()
    search = recorded(log=log, cv=cv, refit=False).fit(groups[:, None], Y, groups=groups)
    assert search.n_splits_ == cv.get_n_splits(groups=groups)
    assert all(len({*table[:, 0]}) < 5 for table, _, _ in log)
    with pytest.raises(ValueError, match="The 'groups' parameter should not be None"):
        search.fit(groups[:, None], Y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_metadata_is_routed(n_jobs: int | None) -> None:
    weight, groups = np.linspace(0, 1, len(X)), np.arange(len(X)) % 6
    seen: list[Any] = []

    def weighed(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        seen.append(sample_weight)
        return float(accuracy_score(y_true, y_pred, sample_weight=sample_weight))

    log = Log()
    with config_context(enable_metadata_routing=True):
        model = Recorder(log=log).set_fit_request(sample_weight="inner")
        scorer = make_scorer(weighed).set_score_request(sample_weight="outer")
        settings = {"cv": GroupKFold(3), "scoring": scorer, "n_jobs": n_jobs, "n_candidates": 3}
        search = Search(model, QUALITY, **settings)
        search.fit(X, Y, inner=weight, outer=1 - weight, groups=groups)
        expected = accuracy_score(Y, search.predict(X), sample_weight=weight)
        assert search.score(X, Y, outer=weight) == expected
        with pytest.raises(TypeError, match="unexpected argument"):
            search.fit(X, Y, other=weight)
    assert all(len(arguments["sample_weight"]) == len(table) for table, _, arguments in log)
    assert all(some is not None for some in seen)
    assert len(log[0][0]) < search.max_resources_


# --- Estimators and tables ---


def test_steps_of_a_pipeline_are_searched_and_exchanged() -> None:
    scales = ["passthrough", StandardScaler()]
    space = [
        {"scale": scales, "model": [SVC()], "model__C": loguniform(0.1, 10)},
        {"model": [DecisionTreeClassifier(random_state=0)], "model__max_depth": randint(1, 9)},
    ]
    pipeline = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    search = Search(pipeline, space, n_candidates=10).fit(X, Y)
    kinds = [type(params["model"]) for params in search.cv_results_["params"]]
    assert {*kinds} == {SVC, DecisionTreeClassifier}
    is_svc = [kind is SVC for kind in kinds]
    np.testing.assert_array_equal(search.cv_results_["param_model__C"].mask, ~np.array(is_svc))
    assert type(search.best_estimator_["model"]) is type(search.best_params_["model"])
    assert search.best_estimator_["model"] is not search.best_params_["model"]


def test_a_function_may_be_the_space() -> None:
    def space(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        depth = trial.suggest_int("depth", 1, 9)
        return {"max_depth": depth, "max_leaf_nodes": 2**depth}

    search = Search(DecisionTreeClassifier(random_state=0), space).fit(X, Y)
    assert search.best_params_["max_leaf_nodes"] == 2 ** search.best_params_["max_depth"]
    assert search.study_.best_params == {"depth": search.best_params_["max_depth"]}


def test_text_and_missing_values_are_left_to_the_estimator() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kind = rng.choice(["oak", "elm", None], 400)
    height = np.where(kind == "oak", 9.0, 4.0) + rng.normal(size=400)
    height[rng.random(400) < 0.1] = np.nan
    table = pandas.DataFrame({"kind": kind, "height": height})
    target = np.where((kind == "oak") ^ (rng.random(400) < 0.1), "tall", "low")
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), remainder=SimpleImputer()
    )
    model = Pipeline([("columns", columns), ("model", LogisticRegression())])
    search = Search(model, {"model__C": loguniform(0.01, 10)}).fit(table, target)
    assert search.best_score_ > 0.8
    assert set(search.predict(table)) == {"tall", "low"}
    assert [*search.feature_names_in_] == ["kind", "height"]


@pytest.mark.parametrize("form", [np.ndarray.tolist, csr_array])
def test_lists_and_sparse_tables_are_searched_alike(form: Any) -> None:
    search = Search(LogisticRegression(), C, n_candidates=3)
    dense = clone(search).fit(X, Y).cv_results_["mean_test_score"]
    other = clone(search).fit(form(X), Y.tolist()).cv_results_["mean_test_score"]
    np.testing.assert_allclose(other, dense, atol=0.02)


def test_kernels_computed_before_are_cut_on_both_sides() -> None:
    direct = Search(SVC(kernel="linear"), {"C": loguniform(0.01, 1)}, n_candidates=4).fit(X, Y)
    computed = clone(direct).set_params(estimator=SVC(kernel="precomputed")).fit(X @ X.T, Y)
    one, other = (each.cv_results_["mean_test_score"] for each in (direct, computed))
    np.testing.assert_allclose(other, one)


def test_amounts_and_several_outputs() -> None:
    table, target = make_regression(200, 5, n_targets=2, noise=1.0, random_state=0)
    search = Search(Ridge(), {"alpha": loguniform(1e-3, 1e3)}, scoring="neg_mean_squared_error")
    search.fit(table, target)
    assert search.best_score_ < 0
    assert search.predict(table).shape == (200, 2)


@pytest.mark.parametrize(
    ("model", "space"),
    [
        (KernelDensity(), {"bandwidth": loguniform(0.1, 10)}),
        (KMeans(n_init=1, random_state=0), {"n_clusters": randint(2, 6)}),
    ],
    ids=["density", "clusters"],
)
def test_targets_may_be_missing(model: Any, space: Any) -> None:
    search = Search(model, space, n_candidates=4).fit(X)
    expected = cross_val_score(clone(model).set_params(**search.best_params_), X, cv=3)
    assert search.best_score_ == pytest.approx(expected.mean())


def test_methods_are_those_of_the_estimator() -> None:
    names = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
    svc = Search(SVC(), {"C": [0.1, 1.0]})
    assert [name for name in names if hasattr(svc, name)] == ["predict", "decision_function"]
    with pytest.raises(NotFittedError, match="not fitted yet"):
        svc.predict(X)
    settings = {"n_candidates": 1, "scoring": lambda model, X, y=None: 1.0}
    scaler = Search(FunctionTransformer(), {}, **settings).fit(X)
    np.testing.assert_array_equal(scaler.transform(X), X)
    np.testing.assert_array_equal(scaler.inverse_transform(X), X)


def test_it_can_be_cross_validated_and_shown(trees: DataAllocationSearchCV) -> None:
    scores = cross_val_score(clone(trees).set_params(n_candidates=3), X, Y, cv=2)
    assert scores.min() > 0.6
    assert "best_estimator_: DecisionTreeClassifier" in trees._repr_html_()


# --- Studies ---


def test_a_stored_study_is_continued(tmp_path: Any) -> None:
    where = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "trees"}
    search = Search(DecisionTreeClassifier(random_state=0), TREES, n_candidates=3, **where)
    search.fit(X, Y)
    before = search.cv_results_["params"]
    more = clone(search).set_params(n_candidates=6).fit(X, Y)
    assert more.cv_results_["params"][:3] == before
    assert more.n_candidates_ == 6
    assert more.best_score_ >= search.best_score_
    assert len(learning_curves(more.study_)) == 6
    with pytest.raises(ValueError, match=r"started with 3 folds, .* but now has 4 folds"):
        clone(more).set_params(cv=KFold(4), max_resources=200, min_resources=25).fit(X, Y)


# --- Arguments ---


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("timeout", 0),
        ("n_candidates", 0),
        ("n_candidates", 2.5),
        ("min_resources", "exhaust"),
        ("max_resources", 0),
        ("factor", 1),
        ("cost", "euros"),
        ("sampler", "TPE"),
        ("param_distributions", "SVC"),
        ("cv", "five"),
        ("error_score", "ignore"),
    ],
)
def test_arguments_that_break_their_rule_are_refused(argument: str, value: Any) -> None:
    search = Search(GaussianNB(), {}).set_params(**{argument: value})
    with pytest.raises(InvalidParameterError, match=f"The '{argument}' parameter of DataAlloc"):
        search.fit(X, Y)


def test_an_estimator_without_score_needs_a_scorer() -> None:
    class Silent(BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Silent:
            return self

    with pytest.raises(TypeError, match="does not"):
        Search(Silent(), {}).fit(X, Y)


def test_callbacks_see_the_tasks_of_scikit_learns_own_search() -> None:
    """The fit, the search, each training on each fold, and the last fit, with weights if given."""
    pytest.importorskip("sklearn.callback", reason="of scikit-learn 1.9 and newer")

    class Listener:
        def __init__(self) -> None:
            self.begun: list[str] = []
            self.ended: list[str] = []
            self.weighted: set[str] = set()

        def setup(self, estimator: Any, context: Any) -> None: ...

        def on_fit_task_begin(
            self, estimator: Any, context: Any, *, X: Any = None, metadata: Any = None
        ) -> None:
            self.begun.append(context.task_name)
            if metadata is not None and len(metadata["sample_weight"]) == len(X):
                self.weighted.add(context.task_name)

        def on_fit_task_end(self, estimator: Any, context: Any) -> None:
            self.ended.append(context.task_name)

        def teardown(self, estimator: Any, context: Any) -> None: ...

    space = {"var_smoothing": [1e-9, 1e-3]}
    ours, theirs = Listener(), Listener()
    search = Search(GaussianNB(), space, n_candidates=2).set_callbacks(ours)
    other = RandomizedSearchCV(GaussianNB(), space, n_iter=2, cv=2).set_callbacks(theirs)
    for each in (search, other):
        each.fit(X, Y, sample_weight=np.ones(len(Y)))
    assert {*ours.begun} == {*ours.ended} == {*theirs.begun}
    assert ours.weighted == theirs.weighted
    n_trainings = sum(len(curve.observations) for curve in learning_curves(search.study_))
    once = ["fit", "search", "refit-with-best-params"]
    trainings = ["candidate-split-evaluation"] * (n_trainings * search.n_splits_)
    assert sorted(ours.begun) == sorted(ours.ended) == sorted(once + trainings)


def test_n_iter_is_the_number_of_candidates() -> None:
    """As `RandomizedSearchCV` calls it, so one can stand in for the other."""
    by_iter = by_bayes(n_iter=7, n_candidates=None).fit(X, Y)
    assert by_iter.n_candidates_ == 7
    assert by_iter.best_params_ == by_bayes(n_candidates=7).fit(X, Y).best_params_
    with pytest.raises(ValueError, match=r"`n_candidates` and `n_iter` are the same number"):
        by_bayes(n_iter=7, n_candidates=7).fit(X, Y)
    with pytest.raises(ValueError, match=r"The 'n_iter' parameter"):
        by_bayes(n_iter=0, n_candidates=None).fit(X, Y)
