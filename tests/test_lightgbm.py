"""`tune` beside `lightgbm.train`: the booster, the score and the parameters agree."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import FixedTrial
from sklearn.datasets import make_classification
from sklearn.datasets import make_regression
from sklearn.metrics import log_loss
from sklearn.metrics import mean_squared_error
from sklearn.metrics import roc_auc_score

from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import spaces
from optuna_daub.lightgbm import _Search
from optuna_daub.lightgbm import tune
from optuna_daub.spaces import first_points
from optuna_daub.spaces.lightgbm_params import ALIASES
from optuna_daub.spaces.lightgbm_params import checked_params
from tests import arguments
from tests.arguments import Case
from tests.arguments import Hostile


lightgbm = pytest.importorskip("lightgbm")

QUIET = {"verbose": -1, "num_threads": 1, "deterministic": True}
FEW = {"n_iter": 30}
"""Trees, which are searched otherwise."""
N = 800
BINARY = {**QUIET, "objective": "binary"}
QUICK = {**BINARY, **FEW}
MANY_CLASSES = (
    "multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr",
)  # fmt: skip
"""LightGBM's objectives for several classes, with their other names, from its documentation."""


def made(**options: Any) -> tuple[Any, Any]:
    return make_classification(1200, 8, random_state=0, **options)


def sets(X: Any, y: Any) -> tuple[Any, Any]:
    train = lightgbm.Dataset(X[:N], y[:N])
    return train, lightgbm.Dataset(X[N:], y[N:], reference=train)


X, Y = made()
UNKNOWN = np.where(np.arange(len(Y)) % 3 == 0, np.nan, Y)
"""Labels of which some are unknown; for LightGBM these are 0."""
AMOUNTS = make_regression(1200, 8, noise=10, random_state=0)


def tuned_for(params: Any, X: Any = X, y: Any = Y, n_trials: int = 8, **options: Any) -> Any:
    return tune(params, *sets(X, y), seconds=20, n_trials=n_trials, **options)


def smallest_training(study: optuna.Study) -> int:
    """Return the number of rows of the smallest training, which no seconds decide.

    How far each booster gets depends on them: all are trained on all rows if few take as long.
    """
    return min(seen.size for curve in learning_curves(study) for seen in curve.observations)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "n_classes", "score_of"),
    [
        ({"objective": "binary", "metric": "auc"}, 2, lambda y, p: roc_auc_score(y, p)),
        ({"objective": "multiclass", "num_class": 3, **FEW}, 3, lambda y, p: log_loss(y, p)),
        ({"objective": "l2", "metric": "l2", **FEW}, 0, lambda y, p: mean_squared_error(y, p)),
    ],
    ids=["auc", "three classes", "amounts"],
)
def test_the_booster_has_the_score_that_is_said(
    params: dict[str, Any], n_classes: int, score_of: Any
) -> None:
    X, y = make_regression(1200, 8, noise=10, random_state=0)
    if n_classes:
        X, y = made(n_informative=6, n_classes=n_classes, flip_y=0.1)
    train, valid = sets(X, y)
    tuned = tune({**QUIET, **params}, train, valid, seconds=20, n_trials=8)
    assert tuned.booster.predict(X[N:]).shape[0] == 400
    assert score_of(y[N:], tuned.booster.predict(X[N:])) == pytest.approx(tuned.best_score)
    larger = params.get("metric") == "auc"
    assert tuned.study.direction.name == ("MAXIMIZE" if larger else "MINIMIZE")
    # What it says are its parameters make the same booster once more.
    again = dict(tuned.best_params)
    rounds = again.pop("num_boost_round")
    booster = lightgbm.train(again, sets(X, y)[0], num_boost_round=rounds)
    np.testing.assert_allclose(booster.predict(X[N:]), tuned.booster.predict(X[N:]), rtol=1e-6)
    assert smallest_training(tuned.study) < N
    assert max(curve.size for curve in learning_curves(tuned.study)) == N


def test_a_bag_has_at_least_one_row() -> None:
    """LightGBM refuses shares of less."""
    X, y = make_regression(9, 2, random_state=0)
    train = lightgbm.Dataset(X, y, params=QUIET).construct()
    search = _Search(lightgbm, {**QUIET, "objective": "l2"}, train, train, None, (), 0)
    point = FixedTrial({**first_points("lightgbm", 9)[0], "rows": 0.1})
    for size in range(2, 10):
        search.train(search.chosen(point, size), size)
        spaces.lightgbm(point, size, task="regression").fit(X[:size], y[:size])
    assert spaces.lightgbm(point, 10).subsample == 0.1


@pytest.mark.parametrize(("y", "least"), [([0, 1], 4), ([0, 1, 1], 4), ([0, 1, 2, 2], 5)])
def test_too_few_rows_are_named(y: list[int], least: int) -> None:
    X = np.arange(len(y))[:, np.newaxis]
    train = lightgbm.Dataset(X, y)
    valid = lightgbm.Dataset(X, y, reference=train)
    given = {**QUIET, "objective": "multiclass", "num_class": 3} if least == 5 else QUIET
    with pytest.raises(ValueError, match=f"`train_set` must have at least {least} rows"):
        tune(given, train, valid, seconds=1)


def test_what_is_given_is_kept_under_any_of_its_names() -> None:
    tuned = tuned_for(BINARY | {"eta": 0.07, "feature_fraction": 0.5, "num_iterations": 30})
    assert tuned.best_params["eta"] == 0.07
    assert tuned.best_params["num_boost_round"] == 30
    assert not {"learning_rate", "colsample_bytree"} & {*tuned.best_params}
    assert tuned.booster.num_trees() == 30


@pytest.mark.parametrize("given", [{}, {"n_iter": 20}])
def test_a_number_of_rounds_is_that_of_lightgbm_train(given: dict[str, int]) -> None:
    """Where `params` have another one, it counts."""
    params = BINARY | given
    tuned = tuned_for(params, n_trials=3, num_boost_round=30)
    booster = lightgbm.train({**params, "num_leaves": 5}, sets(X, Y)[0], num_boost_round=30)
    assert tuned.booster.num_trees() == booster.num_trees() == given.get("n_iter", 30)
    assert tuned.best_params["num_boost_round"] == booster.num_trees()


def test_the_parameters_are_those_of_the_booster_whichever_of_equal_learners_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).random((1200, 2))
    lead = best_learner

    def another(study: optuna.Study) -> Any:
        best = lead(study)
        assert best is not None
        tied = [curve for curve in learning_curves(study) if curve.score == best.score]
        return replace(best, params=tied[-1].params)

    monkeypatch.setattr("optuna_daub.lightgbm.best_learner", another)
    tuned = tuned_for(BINARY | {"metric": "auc"}, X, X[:, 0] > 0.5)
    assert tuned.best_score == 1.0
    assert another(tuned.study).params != tuned.study.best_params
    names = {*tuned.best_params} & {*tuned.booster.params}
    assert {"num_leaves", "learning_rate"} <= names
    assert {n: tuned.best_params[n] for n in names} == {n: tuned.booster.params[n] for n in names}


@pytest.mark.parametrize("objective", ["binary", *MANY_CLASSES])
def test_the_smallest_subset_has_every_class(objective: str) -> None:
    """Also a rare one."""
    X, y = np.random.default_rng(0).random((1000, 2)), np.zeros(1000)
    y[: 10 if objective == "binary" else 20] = 1
    y[: 10 * (objective != "binary")] = 2
    train = lightgbm.Dataset(X, y, params=QUIET).construct()
    search = _Search(lightgbm, {"objective": objective}, train, train, None, (), 0)
    assert search.task == "classification"
    assert {*y[search._order[: search.smallest]]} == {*y}
    assert {*y[search._order[: search.smallest - 1]]} < {*y}


def test_datasets_may_be_files(tmp_path: Path) -> None:
    def read(of_train: Any, of_valid: Any) -> list[Any]:
        np.savetxt(tmp_path / "train.csv", np.column_stack([of_train, X])[:N], delimiter=",")
        np.savetxt(tmp_path / "valid.csv", np.column_stack([of_valid, X])[N:], delimiter=",")
        names = ("train.csv", "valid.csv")
        return [lightgbm.Dataset(tmp_path / name, params={"verbose": -1}) for name in names]

    tuned = tune(QUICK, *read(Y, Y), seconds=20, n_trials=6)
    assert log_loss(Y[N:], tuned.booster.predict(X[N:])) == pytest.approx(tuned.best_score)
    assert smallest_training(tuned.study) < N
    for name, files in {"train_set": (UNKNOWN, Y), "valid_sets": (Y, UNKNOWN)}.items():
        with pytest.raises(ValueError, match=f"`{name}` must have a label for each row"):
            tune(QUICK, *read(*files), seconds=1)


def test_shares_of_a_class_are_no_classes() -> None:
    shares = np.clip(Y + np.random.default_rng(0).uniform(-0.4, 0.4, 1200), 0.0, 1.0)
    tuned = tuned_for(QUICK | {"objective": "cross_entropy"}, X, shares, n_trials=6)
    assert smallest_training(tuned.study) < N


@pytest.mark.parametrize("name", ["data_sample_strategy", "boosting"])
def test_a_booster_that_samples_by_itself_has_no_bagging(name: str) -> None:
    tuned = tuned_for(QUICK | {name: "goss"})
    assert not {"subsample", "bagging_fraction"} & {*tuned.best_params}
    assert not [c for c in learning_curves(tuned.study) if c.state == "dropped"]


def test_early_stopping_of_lightgbm_ends_trainings() -> None:
    X, y = made(flip_y=0.3)
    stop = lightgbm.early_stopping(5, verbose=False)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    given = BINARY | {"num_iterations": 500, "learning_rate": 0.3}
    tuned = tuned_for(given, X, y, callbacks=[stop])
    assert optuna.logging.get_verbosity() == optuna.logging.ERROR, "as it was"
    assert tuned.booster.current_iteration() < 500
    best = tuned.booster.predict(X[N:], num_iteration=tuned.booster.best_iteration)
    assert log_loss(y[N:], best) == pytest.approx(tuned.best_score)


def test_the_aliases_are_lightgbm_s() -> None:
    """It has the table itself, in a place that is not public; here is where they are compared."""
    known = lightgbm.basic._ConfigAliases
    for name, others in ALIASES.items():
        if name == "n_jobs":
            assert {*others} <= known.get("num_threads")
            continue
        assert {name, *others} <= known.get(*others, name)
        assert known.get(others[0]) - {name, *others} <= set(), name


@pytest.mark.parametrize(
    "table",
    [None, {}, {"eta": ["learning_rate"]}, {"eta": 3}, [1], lambda: None],
    ids=["gone", "empty", "a part", "numbers", "a list", "a function"],
)
def test_without_lightgbm_s_private_table_any_name_is_taken(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table is None:
        monkeypatch.delattr(lightgbm.basic, "_ConfigAliases")
    else:
        aliases = SimpleNamespace(_get_all_param_aliases=lambda: table)
        monkeypatch.setattr(lightgbm.basic, "_ConfigAliases", aliases)
    params = {"num_leaves": 5, "nun_leaves": 5, 7: 1}
    assert checked_params(lightgbm, params) == params
    with pytest.raises(ValueError, match="`n_iter` in `params` must be at least 1, but got 0"):
        checked_params(lightgbm, {"n_iter": 0})


def test_feval_is_the_score_if_no_metric_is_named() -> None:
    def own(predicted: Any, data: Any) -> tuple[str, float, bool]:
        return "own", float(np.mean((predicted > 0.5) == data.get_label())), True

    tuned = tuned_for(QUICK, n_trials=2, feval=own)
    assert tuned.metric == "own"
    assert tuned.study.direction.name == "MAXIMIZE"
    assert tuned.best_score == np.mean((tuned.booster.predict(X[N:]) > 0.5) == Y[N:])
    assert tuned_for(QUICK | {"metric": "auc"}, n_trials=2, feval=own).metric == "auc"


@pytest.mark.parametrize(
    ("of_train", "of_valid", "match"),
    [
        (UNKNOWN, Y, "`train_set` must have a label for each row"),
        (Y, UNKNOWN, "`valid_sets` must have a label for each row"),
        (None, Y, "must have a label for each row, but has none"),
        (Y, None, "must have a label for each row, but has none"),
    ],
)
def test_sets_without_labels_are_named(of_train: Any, of_valid: Any, match: str) -> None:
    train = lightgbm.Dataset(X[:N], None if of_train is None else of_train[:N])
    valid = lightgbm.Dataset(X[N:], None if of_valid is None else of_valid[N:], reference=train)
    with pytest.raises(ValueError, match=match):
        tune(BINARY, train, valid, seconds=1)


def test_sets_that_cannot_be_cut_are_named() -> None:
    train, valid = sets(X, Y)
    with pytest.raises(ValueError, match=r"a dataset other than `train_set`"):
        tune(BINARY, train, [train])
    done = lightgbm.Dataset(X[:N], Y[:N], params={"verbose": -1}).construct()
    with pytest.raises(ValueError, match=r"must not be constructed yet"):
        tune(BINARY, done, valid)
    grouped = lightgbm.Dataset(X[:N], Y[:N], group=[400, 400], params={"verbose": -1})
    with pytest.raises(ValueError, match=r"must have no groups"):
        tune(BINARY | {"objective": "lambdarank"}, grouped, valid)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"nun_leaves": 5}, "but got 'nun_leaves'. Did you mean 'num_leaves'?"),
        ({5: 5}, "parameters of LightGBM, but got 5"),
        ({"objective": "binar"}, "it says LightGBMError: Unknown objective type name: binar"),
        ({"objective": Hostile()}, "it says RuntimeError"),
        ({"num_leaves": "x"}, "num_leaves should be of type int"),
        ({"num_leaves": 1}, r"Check failed: \(num_leaves\) > \(1\)"),
        ({"num_leaves": Hostile()}, "it says RuntimeError"),
        ({"learning_rate": -1}, r"Check failed: \(learning_rate\)"),
        ({"max_iter": 0}, "`max_iter` in `params` must be at least 1, but got 0"),
        ({"n_estimators": "ten"}, "`n_estimators` must be a whole number, but got 'ten'"),
        ({"metric": "None"}, 'must have a metric .* such as "auc"'),
        ({"metric": " accuracy "}, "must have a metric .* with metric='accuracy'"),
        ({"metric": [" None"]}, r"must have a metric .* with metric=\['None'\]"),
        ({"metric": Hostile()}, "it says RuntimeError"),
        ({"metric": {"auc", "binary_error"}}, "`metric` .* must have an order, .* Pass a list"),
    ],
)
def test_wrong_parameters_are_named_before_the_search(
    given: dict[Any, Any], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna, "create_study", lambda **_: pytest.fail("a search was begun"))
    with pytest.raises(ValueError, match=match) as error:
        tune({**BINARY, **given}, *sets(X, Y), seconds=1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["valid_names", "optuna_callbacks", "study", "time_budget"])
def test_arguments_of_the_tuner_are_told_what_they_are_called_here(name: str) -> None:
    with pytest.raises(TypeError, match=f"no argument '{name}'.* `time_budget` is `seconds` here"):
        tune({"objective": "binary"}, None, None, **{name: None})


def test_a_subset_has_no_features_filtered() -> None:
    """LightGBM filters those of the whole, and refuses smaller leaves in all of its subsets."""
    for is_whole_constructed in (False, True):
        all_rows = lightgbm.Dataset(X, Y, params={"verbose": -1})
        if is_whole_constructed:
            all_rows.construct()
        train, valid = (all_rows.subset(rows) for rows in ([*range(N)], [*range(N, 1200)]))
        if is_whole_constructed:
            match = r"`train_set` must not be constructed .* of a subset"
            with pytest.raises(ValueError, match=match):
                tune(QUICK, train, valid, seconds=1)
            continue
        tuned = tune(QUICK, train, valid, seconds=20, n_trials=2)
        assert log_loss(Y[N:], tuned.booster.predict(X[N:])) == pytest.approx(tuned.best_score)
        # Such leaves can be tried.
        lightgbm.train({**QUICK, "min_data_in_leaf": 2}, train, valid_sets=[valid])


def test_a_list_of_learning_rates_is_that_of_lightgbm_train() -> None:
    rates = lightgbm.reset_parameter(learning_rate=[*np.geomspace(0.3, 0.01, 30)])
    tuned = tuned_for(BINARY, n_trials=3, num_boost_round=30, callbacks=[rates])
    booster = lightgbm.train(dict(tuned.best_params), sets(X, Y)[0], callbacks=[rates])
    np.testing.assert_allclose(booster.predict(X[N:]), tuned.booster.predict(X[N:]))


def test_a_result_can_be_pickled() -> None:
    tuned = tuned_for(QUICK, n_trials=2)
    again = pickle.loads(pickle.dumps(tuned))
    assert (again.best_params, again.best_score) == (tuned.best_params, tuned.best_score)
    np.testing.assert_array_equal(again.booster.predict(X), tuned.booster.predict(X))


def test_a_metric_that_is_no_number_is_refused_before_the_search() -> None:
    def undefined(*_: Any) -> tuple[str, float, bool]:
        return "own", float("nan"), True

    match = r"`feval` must give a metric that is a finite number, but own is nan after one round"
    with pytest.raises(ValueError, match=match):
        tuned_for(QUICK | {"metric": "None"}, n_trials=2, feval=undefined)


def test_why_no_booster_could_be_trained_is_said() -> None:
    asked = count()

    def undefined(*_: Any) -> tuple[str, float, bool]:
        return "own", 0.5 if next(asked) == 0 else float("nan"), True

    match = r"No booster could be trained: .*score nan at 200 exam"
    with pytest.raises(RuntimeError, match=match):
        tuned_for(QUICK | {"metric": "None"}, n_trials=2, feval=undefined)


def test_a_time_too_short_for_any_training_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"no training began within `seconds=1e-09`\. Give mo"):
        tune(QUICK, *sets(X, Y), seconds=1e-9)


@pytest.mark.parametrize("name", ["verbose", "verbosity"])
def test_lightgbm_speaks_if_it_is_told_to(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    tune({**FEW, "objective": "l2", name: 1}, *sets(*AMOUNTS), seconds=20, n_trials=1)
    assert "[Info] Start training from score" in capfd.readouterr().out


@pytest.mark.parametrize("has_booster", [True, False])
def test_an_interrupted_search_returns_its_best_booster(has_booster: bool) -> None:
    n_trainings = 0

    def interrupt(env: Any) -> None:
        nonlocal n_trainings
        n_trainings += env.iteration == env.begin_iteration
        if n_trainings > (8 if has_booster else 1):  # the first one shows the metric
            raise KeyboardInterrupt

    def search() -> Any:
        return tune(QUICK, *sets(X, Y), seconds=20, callbacks=[interrupt])

    if not has_booster:
        with pytest.raises(KeyboardInterrupt):
            search()
        return
    try:
        with pytest.warns(UserWarning, match="Interrupted: the best booster so far"):
            tuned = search()
    except KeyboardInterrupt:  # it would end all tests
        pytest.fail("the best booster is lost")
    assert log_loss(Y[N:], tuned.booster.predict(X[N:])) == pytest.approx(tuned.best_score)


@pytest.mark.parametrize("name", ["objective", "application", "loss"])
def test_blanks_around_words_are_no_part_of_them(name: str) -> None:
    tuned = tuned_for({**QUIET, name: " binary ", " metric": " auc "}, n_trials=2)
    assert tuned.metric == "auc"
    assert tuned.best_params[name] == "binary"


def asked(**given: Any) -> None:
    """Call `tune` up to its search."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), np.arange(60) % 2
    train = lightgbm.Dataset(X[:40], y[:40])
    valid = lightgbm.Dataset(X[40:], y[40:], reference=train)
    usual = {"params": QUIET, "train_set": train, "valid_sets": valid}
    arguments.up_to(optuna, "create_study", tune, **{**usual, **given})


TUNE = Case(
    asked,
    {},
    {
        "params": lambda value: value == {},
        "train_set": lambda value: False,
        "valid_sets": lambda value: False,
        "seconds": arguments.real(0, np.inf, is_open=True),
        "n_trials": arguments.none_or(arguments.whole()),
        "num_boost_round": arguments.none_or(arguments.whole()),
        "feval": lambda value: value is None or value == [],
        "callbacks": arguments.a_list(callable),
        "seed": arguments.whole(0, 2**32 - 1),
        "storage": lambda value: value is None,
    },
    tables=frozenset({"feval", "storage"}),
)


@pytest.mark.parametrize("argument", TUNE.rules)
def test_odd_arguments_are_refused_before_the_search(argument: str) -> None:
    for value in (*arguments.ODD, [["a"]]):
        arguments.check("lightgbm.tune", {argument: value}, TUNE)


def test_the_objective_may_be_a_function() -> None:
    """As in `lightgbm.train`; with half of the squared error it is LightGBM's own."""
    X, y = AMOUNTS

    def squares(predicted: Any, rows: Any) -> tuple[Any, Any]:
        return predicted - rows.get_label(), np.ones(len(predicted))

    given = {**QUIET, "objective": squares, "metric": "l2", "boost_from_average": False}
    tuned = tuned_for(given, X, y, n_trials=3, num_boost_round=30)
    assert tuned.best_params["objective"] is squares
    error = mean_squared_error(y[N:], tuned.booster.predict(X[N:]))
    assert error == pytest.approx(tuned.best_score)
    assert error < np.var(y[N:])


def test_two_tunings_at_a_time_leave_the_process_as_it_was() -> None:
    """The first to start is the first to end."""
    before = optuna.logging.get_verbosity(), [*warnings.filters]
    first_is_in, second_is_in, first_is_out = Event(), Event(), Event()

    def tuning(enters: Event, waits: Event) -> None:
        def wait(env: Any) -> None:
            enters.set()
            assert waits.wait(60)

        tune(QUICK, *sets(X, Y), seconds=1, n_trials=1, callbacks=[wait])

    first = Thread(target=tuning, args=(first_is_in, second_is_in))
    second = Thread(target=tuning, args=(second_is_in, first_is_out))
    first.start()
    assert first_is_in.wait(60)
    second.start()
    first.join()
    first_is_out.set()
    second.join()
    assert (optuna.logging.get_verbosity(), [*warnings.filters]) == before
