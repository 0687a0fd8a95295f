"""Estimators that know the training size, and what is handed to `fit`."""

from __future__ import annotations

import functools
import inspect
from collections import abc
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from typing import Any

import lightgbm
import numpy as np
import optuna
import pandas
import pytest
import sklearn
import xgboost
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from optuna_daub.objective import Rows
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.fitting import own_callbacks
from optuna_daub.objective.signatures import takes_size
from optuna_daub.sklearn import DataAllocationSearchCV
from tests.objective.studies import SIZES
from tests.objective.studies import X
from tests.objective.studies import Y
from tests.objective.studies import numbered
from tests.objective.studies import observations
from tests.objective.studies import study_of
from tests.study.table_study import in_thread


class Recorder(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that notes the rows and the further arguments that it is fitted with."""

    def __init__(self, size: int = 0) -> None:
        self.size = size

    fits: list[tuple[NDArray[Any], dict[str, Any], int]]

    def fit(self, X: Any, y: Any, **arguments: Any) -> Recorder:
        Recorder.fits.append((np.asarray(X)[:, 0].astype(int), arguments, self.size))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


@pytest.fixture(autouse=True)
def _no_fits() -> None:
    Recorder.fits = []


def recorder(trial: optuna.Trial) -> Recorder:
    trial.suggest_float("unused", 0, 1)
    return Recorder()


def recorded(**options: Any) -> TrainingSizeObjective:
    """Return an objective whose estimators note the numbers of 200 rows."""
    return TrainingSizeObjective(recorder, *numbered(200), **options)


# -- build(trial, n) ---------------------------------------------------------------------------


def test_a_build_that_wants_the_size_is_called_anew_at_each() -> None:
    called: list[tuple[int, float]] = []

    def build(trial: optuna.Trial, n: int) -> Recorder:
        called.append((n, trial.suggest_float("unused", 0, 1)))
        return Recorder(n)

    objective = TrainingSizeObjective(build, *numbered(200))
    study = study_of(objective)
    assert [len(rows) for rows, _, _ in Recorder.fits] == [*SIZES]
    assert [size for *_, size in Recorder.fits] == [*SIZES]
    assert [n for n, _ in called] == [objective.n_train, *SIZES]
    assert {value for _, value in called} == {study.best_params["unused"]}
    objective.refit(study)
    objective.refit(study, include_validation=True)
    assert called[-2:] == [(n, study.best_params["unused"]) for n in (140, 200)]
    assert [len(rows) for rows, _, _ in Recorder.fits[-2:]] == [140, 200]


def test_with_folds_the_size_is_that_of_each() -> None:
    objective = TrainingSizeObjective(lambda trial, n: Recorder(n), *numbered(200), cv=2)
    study_of(objective)
    expected = [(size, size) for size in SIZES for _ in range(2)]
    assert [(len(rows), size) for rows, _, size in Recorder.fits] == expected


class Callable:
    def __call__(self, trial: optuna.Trial, n: int) -> Any: ...

    def plain(self, trial: optuna.Trial) -> Any: ...


def build_with_data(trial: Any, X: Any, depth: int) -> Any: ...


@pytest.mark.parametrize(
    ("build", "takes"),
    [
        (lambda trial: 0, False),
        (lambda trial, n: 0, True),
        (lambda trial, depth=3: 0, False),
        (lambda trial, /, n: 0, True),
        (lambda trial, *, depth=3: 0, False),
        (lambda *arguments: 0, False),
        (lambda trial, **options: 0, False),
        (lambda trial, n, depth=3: 0, True),
        (Callable(), True),
        (Callable().plain, False),
        (functools.partial(build_with_data, X=X, depth=3), False),
        (functools.partial(build_with_data, depth=3), True),
    ],
)
def test_the_signature_tells_who_wants_the_size(build: Any, takes: bool) -> None:
    assert takes_size(build) == takes


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: 0, r"must take a trial.* got a function of \(\)"),
        (lambda *, trial: 0, r"must take a trial.* got a function of \(\*, trial\)"),
        (build_with_data, r"must take a trial.*X: 'Any', depth: 'int'.* a default"),
        (lambda trial, *, depth: 0, "must take a trial"),
        (GaussianNB(), "must be a function from a trial.*GaussianNB.* Wrap it"),
        (GaussianNB, "must be a function from a trial.*GaussianNB.* Wrap it"),
        (None, "must be a function from a trial.*None"),
        ("GaussianNB", "must be a function from a trial"),
    ],
)
def test_what_cannot_build_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s)`build` {message}"):
        TrainingSizeObjective(build, X, Y)


@pytest.mark.parametrize("built", [None, 3, GaussianNB])
def test_what_is_no_estimator_is_refused(built: Any) -> None:
    with pytest.raises(ValueError, match=r"`build` must return .* estimator, .* but returned"):
        study_of(TrainingSizeObjective(lambda trial: built, X, Y))


# -- fit_params --------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_what_has_a_value_for_each_row_is_cut_to_those_in_use(
    cv: int | None, shuffle: bool
) -> None:
    pandas = pytest.importorskip("pandas")
    rows = np.arange(200)
    whole = {"name": "x", "number": 200, "pair": (1, 2), "short": np.arange(199)}
    of_validation = ["eval_X", "X_val", "y_valid", "val_X", "valid_y", "validation_X"]
    of_validation += ["sample_weight_val", "val_sample_weight", "validation_set", "step__X_val"]
    whole |= dict.fromkeys(of_validation, rows)
    by_row = {
        "array": rows,
        "wide": np.column_stack([rows, rows]),
        "column": pandas.Series(rows, index=rows[::-1]),
        "list": rows.tolist(),
        "value": rows,
        "interval": rows,
        "val_weight": rows,
        "is_valid": rows,
        "retrieval_y": rows,
        "validation_rows": rows,
    }
    objective = recorded(cv=cv, shuffle=shuffle, fit_params={**whole, **by_row})
    study = study_of(objective, (20, 30, 50))
    objective.refit(study)
    objective.refit(study, include_validation=True)
    assert len(Recorder.fits) == 3 * (cv or 1) + 2
    for trained_on, arguments, _ in Recorder.fits:
        assert all(arguments[name] is value for name, value in whole.items())
        for name in by_row.keys() - {"wide", "column", "list"}:
            assert np.array_equal(arguments[name], trained_on)
        assert np.array_equal(arguments["wide"], np.column_stack([trained_on, trained_on]))
        assert arguments["column"].tolist() == arguments["list"] == trained_on.tolist()


def test_with_a_fixed_validation_set_the_values_are_of_the_rows_of_x() -> None:
    X, y = numbered(50)
    objective = recorded(X_valid=X, y_valid=y, fit_params={"margin": np.arange(200)})
    study = study_of(objective)
    for trained_on, arguments, _ in Recorder.fits:
        assert np.array_equal(arguments["margin"], trained_on)
    objective.refit(study)
    with pytest.raises(ValueError, match="'margin' has one for each row of `X` and none for"):
        objective.refit(study, include_validation=True)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("cv", [None, 2])
def test_a_function_is_asked_before_each_fit_with_the_rows(cv: int | None, fixed: bool) -> None:
    X, y = numbered(200)
    weight = np.arange(200.0)
    asked: list[tuple[Rows, Rows | None]] = []

    def arguments(training: Rows, validation: Rows | None) -> dict[str, Any]:
        asked.append((training, validation))
        return {"asked": len(asked)}

    options: dict[str, Any] = {"cv": cv}
    if fixed:
        options = {"X_valid": X[:50], "y_valid": y[:50], "sample_weight_valid": weight[:50]}
    objective = recorded(sample_weight=weight, fit_params=arguments, **options)
    study = study_of(objective, (20, 30, 50))
    n_probes, n_before = len(asked), int(cv is not None and not fixed)
    n_folds = cv if cv and not fixed else 1
    assert all(validation is None for _, validation in asked[:n_before]), "as `refit` will ask"
    of_fits = zip(asked[n_before:], Recorder.fits, strict=True)
    for (training, validation), (trained_on, given, _) in of_fits:
        assert validation is not None
        assert np.array_equal(training.X[:, 0], trained_on)
        assert np.array_equal(training.positions, trained_on)
        assert np.array_equal(training.y, y[trained_on])
        assert np.array_equal(training.sample_weight, weight[trained_on])
        assert np.array_equal(given["sample_weight"], weight[trained_on])
        scored = validation.positions - 200 if fixed else validation.positions
        assert np.array_equal(validation.X[:, 0], scored)
        assert not {*validation.positions} & {*training.positions}
    calls = range(n_before + 1, n_probes + 1)
    assert [given["asked"] for _, given, _ in Recorder.fits] == [*calls]
    n_scored = [len(validation or ()) for _, validation in asked[n_before:]]
    of_sizes = [sum(n_scored[i : i + n_folds]) for i in range(0, len(n_scored), n_folds)]
    assert of_sizes == [seen.n_validation for seen in observations(study)], "a sample of them"

    objective.refit(study)
    training, validation = asked[-1]
    assert (validation is None) == (cv is not None and not fixed)
    objective.refit(study, include_validation=True)
    training, validation = asked[-1]
    assert validation is None
    assert sorted(training.positions) == [*range(250 if fixed else 200)]


@pytest.mark.parametrize("cv", [None, 2])
def test_that_refit_will_fail_is_said_before_anything_is_trained(
    cv: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    def fit_params(training: Rows, validation: Rows | None) -> dict[str, Any]:
        if validation is None:
            raise ValueError("no rows to stop early on")
        order.append(len(caplog.records))
        return {}

    order: list[int] = []
    study_of(recorded(cv=cv, fit_params=fit_params), (20, 30, 50))
    said = [each.getMessage() for each in caplog.records]
    told = [i for i, text in enumerate(said) if "`refit` would fail" in text]
    assert len(told) == (cv is not None)
    assert all(i < min(order) for i in told)


def test_where_no_row_is_left_the_function_must_do_without() -> None:
    objective = recorded(cv=2, fit_params=lambda _, validation: {"eval_X": validation.X})
    study = study_of(objective, (20, 30, 50))
    with pytest.raises(ValueError, match=r"must accept None as valid.* rows.* Return \{\} then"):
        objective.refit(study)
    with pytest.raises(ValueError, match=r"pass the training rows .* \(XGBoost with"):
        objective.refit(study, include_validation=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fit_params": 3}, r"mapping .* or a function \(training, validation\) .*got 3"),
        ({"fit_params": [("a", 1)]}, "`fit_params` must be a mapping"),
        ({"fit_params": lambda rows: {}}, "`fit_params` must be a mapping"),
        ({"fit_params": {1: 2}}, r"argument names as keys, but got \[1\]"),
        (
            {"fit_params": {"sample_weight": np.ones(200)}, "sample_weight": np.ones(200)},
            "weighed once, but got `sample_weight` and 'sample_weight' of `fit_params`",
        ),
    ],
)
def test_wrong_arguments_of_fit_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recorded(**options)


def test_weights_may_come_as_an_argument_of_fit_where_no_other_do() -> None:
    weight = np.arange(200.0)
    options: dict[str, Any] = {"fit_params": {"recorder__sample_weight": weight}}
    pipeline = make_pipeline(Recorder())
    study_of(TrainingSizeObjective(lambda trial: pipeline, *numbered(200), **options))
    for trained_on, arguments, _ in Recorder.fits:
        assert np.array_equal(arguments["sample_weight"], weight[trained_on])


# -- early stopping ----------------------------------------------------------------------------


LARGE_X, LARGE_Y = make_classification(1500, 8, n_informative=3, flip_y=0.3, random_state=0)
N_TREES = 200


def lightgbm_classifier(trial: optuna.Trial) -> Any:
    leaves = trial.suggest_int("num_leaves", 15, 15)
    return lightgbm.LGBMClassifier(num_leaves=leaves, n_estimators=N_TREES, n_jobs=1, verbose=-1)


def xgboost_classifier(trial: optuna.Trial) -> Any:
    depth = trial.suggest_int("max_depth", 4, 4)
    return xgboost.XGBClassifier(
        max_depth=depth, n_estimators=N_TREES, n_jobs=1, early_stopping_rounds=5
    )


def lightgbm_stops(training: Rows, validation: Rows | None) -> dict[str, Any]:
    if validation is None:
        return {}
    callbacks = [lightgbm.early_stopping(5, verbose=False)]
    if "eval_X" in inspect.signature(lightgbm.LGBMClassifier.fit).parameters:
        return {"eval_X": validation.X, "eval_y": validation.y, "callbacks": callbacks}
    return {"eval_set": [(validation.X, validation.y)], "callbacks": callbacks}  # before 4.7


def xgboost_stops(training: Rows, validation: Rows | None, estimator: Any) -> dict[str, Any]:
    if not isinstance(estimator, xgboost.XGBClassifier):
        return {}
    assert validation is not None
    return {"eval_set": [(validation.X, validation.y)], "verbose": False}


@pytest.mark.parametrize(
    ("build", "fit_params", "trees"),
    [
        (lightgbm_classifier, lightgbm_stops, lambda model: model.best_iteration_),
        (xgboost_classifier, xgboost_stops, lambda model: model.best_iteration + 1),
    ],
)
def test_boosters_stop_early(build: Any, fit_params: Any, trees: Any) -> None:
    stopped: list[int] = []

    def scoring(estimator: Any, X: Any, y: Any) -> float:
        stopped.append(trees(estimator))
        return float(estimator.score(X, y))

    options = {"scoring": scoring, "fit_params": fit_params}
    objective = TrainingSizeObjective(build, LARGE_X, LARGE_Y, **options)
    study = study_of(objective, (200, 500, objective.n_train))
    assert len(stopped) == 6  # validation and training score of each size
    assert all(0 < number < N_TREES for number in stopped)
    winner = objective.refit(study)
    assert trees(winner) == stopped[-1]
    held_out = objective._division.validation[0]
    assert study.best_value == winner.score(held_out.X, held_out.y)


@pytest.mark.parametrize("kind", ["tree", "boosting"])
def test_one_kind_of_several_stops_early(kind: str) -> None:
    """A decision tree would raise a TypeError if it were given `eval_set`."""

    def build(trial: optuna.Trial) -> Any:
        if trial.suggest_categorical("kind", [kind]) == "tree":
            return DecisionTreeClassifier()
        return xgboost_classifier(trial)

    objective = TrainingSizeObjective(build, LARGE_X, LARGE_Y, fit_params=xgboost_stops)
    winner = objective.refit(study_of(objective, (200, 500, objective.n_train)))
    assert isinstance(winner, DecisionTreeClassifier) == (kind == "tree")
    if kind == "boosting":
        assert winner.best_iteration < N_TREES - 1


@pytest.mark.parametrize("cv", [None, 2])
def test_a_booster_that_must_have_rows_to_stop_is_refitted_with_its_own(cv: int | None) -> None:
    def stops(training: Rows, validation: Rows | None) -> dict[str, Any]:
        rows = training if validation is None else validation
        return {"eval_set": [(rows.X, rows.y)], "verbose": False}

    options: dict[str, Any] = {"cv": cv, "fit_params": stops}
    objective = TrainingSizeObjective(xgboost_classifier, LARGE_X, LARGE_Y, **options)
    study = study_of(objective, (200, 500, 700))
    winner = objective.refit(study, include_validation=True)
    assert winner.best_iteration == N_TREES - 1


# -- rows, configuration and callbacks of their own ------------------------------------------


def in_place(table: Any) -> Any:
    table["a"] = np.log1p(table["a"] - table["a"].min())
    return table


@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize("step", [StandardScaler(copy=False), FunctionTransformer(in_place)])
def test_a_pipeline_that_changes_its_rows_in_place_scores_alike_twice(
    step: Any, is_fixed: bool
) -> None:
    def build(trial: optuna.Trial) -> Any:
        return make_pipeline(step, DecisionTreeClassifier(random_state=0))

    table = pandas.DataFrame(X * 100 + 7, columns=[*"abcdef"])
    if isinstance(step, StandardScaler):
        table = table.to_numpy()
    fixed, given = (table[150:], Y[150:]), table.copy()
    pair = dict(zip(("X_valid", "y_valid"), fixed, strict=True)) if is_fixed else {}
    objective = TrainingSizeObjective(build, table[:150], Y[:150], **pair)
    first, *others = [objective(optuna.trial.FixedTrial({})) for _ in range(3)]
    assert others == [first, first]
    np.testing.assert_array_equal(table, given)


def test_fit_params_may_change_the_rows_to_score() -> None:
    def spoilt(training: Rows, validation: Rows | None) -> dict[str, Any]:
        if validation is not None:
            validation.X[:] = 0
        return {}

    objective = TrainingSizeObjective(
        lambda trial: DecisionTreeClassifier(random_state=0), X, Y, fit_params=spoilt
    )
    plain = TrainingSizeObjective(lambda trial: DecisionTreeClassifier(random_state=0), X, Y)
    trial = optuna.trial.FixedTrial({})
    assert objective(trial) == plain(trial)


def noting_output() -> tuple[list[str], abc.Callable[[optuna.Trial], Any]]:
    """Return a list and a `build` that notes there the output set in scikit-learn."""
    seen: list[str] = []

    def build(trial: optuna.Trial) -> Any:
        trial.suggest_float("unused", 0, 1)
        seen.append(sklearn.get_config()["transform_output"])
        return GaussianNB()

    return seen, build


@pytest.mark.parametrize(
    ("is_made_within", "n_jobs", "in_own_thread"),
    [(True, 1, False), (True, 2, False), (False, 1, False), (False, 1, True)],
)
def test_the_configuration_of_scikit_learn_is_that_of_the_objective_or_of_its_thread(
    is_made_within: bool, n_jobs: int, in_own_thread: bool
) -> None:
    seen, build = noting_output()
    pandas = partial(sklearn.config_context, transform_output="pandas")
    with pandas() if is_made_within else nullcontext():
        objective = TrainingSizeObjective(build, X, Y)

    def search() -> None:
        with pandas():
            study_of(objective, n_learners=3, n_jobs=n_jobs)

    if in_own_thread:
        assert in_thread(search) == []
    else:
        search()
    assert {*seen} == {"pandas"}


class Stateful:
    """A callback that may serve one fit."""

    def __init__(self) -> None:
        self.is_used = False


class CalledBack(GaussianNB):  # type: ignore[misc]
    """A classifier that uses a callback."""

    def fit(self, X: Any, y: Any, callbacks: Any = ()) -> CalledBack:
        assert not any(each.is_used for each in callbacks)
        for each in callbacks:
            each.is_used = True
        super().fit(X, y)
        return self


def test_each_fit_has_callbacks_of_its_own() -> None:
    callback = Stateful()
    objective = TrainingSizeObjective(
        lambda trial: CalledBack(), X, Y, cv=3, fit_params={"callbacks": [callback]}
    )
    objective(optuna.trial.FixedTrial({}))
    for _ in range(2):
        rows, validation = objective._division.for_refit(include_validation=False)
        objective._training.refitted(optuna.trial.FixedTrial({}), rows, validation)
    assert not callback.is_used
    search = DataAllocationSearchCV(CalledBack(), {"var_smoothing": [0.1, 0.2]}, cv=3)
    search.fit(X, Y, callbacks=[callback])
    assert callback.is_used  # by the last fit


def test_a_callback_that_cannot_be_copied_is_shared() -> None:
    class Open(Stateful):
        def __deepcopy__(self, _: Any) -> Open:
            raise TypeError("cannot be copied")

    callback = Open()
    objective = TrainingSizeObjective(
        lambda trial: CalledBack(), X, Y, fit_params={"callbacks": [callback]}
    )
    objective(optuna.trial.FixedTrial({}))
    assert callback.is_used


def test_another_process_has_the_settings_of_the_objective() -> None:
    with sklearn.config_context(transform_output="pandas"):
        objective = TrainingSizeObjective(seen_in, X, Y)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(objective, optuna.trial.FixedTrial({})).exception() is None
    with pytest.raises(AssertionError, match="default"):
        TrainingSizeObjective(seen_in, X, Y)(optuna.trial.FixedTrial({}))


def seen_in(trial: optuna.Trial) -> GaussianNB:
    seen = sklearn.get_config()["transform_output"]
    assert seen == "pandas", seen
    return GaussianNB()


def test_callbacks_that_share_an_object_go_on_sharing_it() -> None:
    class Pair(Stateful):
        def __init__(self, other: Stateful) -> None:
            super().__init__()
            self.other = other

    one = Stateful()
    copies = own_callbacks({"callbacks": (one, Pair(one))})["callbacks"]
    assert copies[1].other is copies[0] is not one


def test_a_function_may_keep_the_callbacks_that_it_makes() -> None:
    made: list[Stateful] = []

    def fit_params(training: Rows, validation: Rows | None) -> dict[str, Any]:
        made.append(Stateful())
        return {"callbacks": made[-1:]}

    objective = TrainingSizeObjective(lambda trial: CalledBack(), X, Y, fit_params=fit_params)
    objective(optuna.trial.FixedTrial({}))
    assert [each.is_used for each in made] == [True]
