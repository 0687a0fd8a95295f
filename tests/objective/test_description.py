"""Descriptions: equal for equal values in any process, and else different."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import expon
from scipy.stats import gamma
from sklearn.compose import ColumnTransformer
from sklearn.compose import make_column_selector
from sklearn.ensemble import BaggingClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.metrics import f1_score
from sklearn.metrics import fbeta_score
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler

from optuna_daub.objective.description import MAX_LETTERS
from optuna_daub.objective.description import bounded
from optuna_daub.objective.description import described
from optuna_daub.objective.description import stable
from optuna_daub.sklearn.space import checked_space


class Thing:
    def __call__(self, *given: Any) -> float:
        return 0.0


def columns(selected: Any) -> ColumnTransformer:
    return ColumnTransformer([("scale", StandardScaler(), selected)])


def objects(rows: Any) -> Any:
    return np.array(rows, dtype=object)


DIFFERENT = [
    *(None, True, 1.5, 2, "2", b"2", 1j, range(2), range(3), float("nan")),
    *([], [1], (1,), (1, 2), [1, 2], {1, 2}, {}, {1: 2}, {1: 3}, [[1], 2]),
    *(np.arange(3), np.arange(3.0), np.arange(3)[:, None], np.array([0, 1, 3])),
    *(objects([1, "a"]), objects([1, "b"]), objects([None, Thing()])),
    *(accuracy_score, f1_score, np.log, np.exp, Thing, Thing(), LogisticRegression, len),
    *(partial(fbeta_score, beta=1), partial(fbeta_score, beta=2)),
    *(partial(pow, 2), partial(pow, 3)),
    *(make_scorer(accuracy_score), make_scorer(f1_score), make_scorer(fbeta_score, beta=2)),
    *(make_scorer(partial(fbeta_score, beta=2)), make_scorer(f1_score, greater_is_better=False)),
    *(LogisticRegression(), LogisticRegression(C=2), LogisticRegression(class_weight={0: 2})),
    *(BaggingClassifier(LogisticRegression(C=3)), BaggingClassifier(LogisticRegression(C=4))),
    *(FunctionTransformer(np.log), FunctionTransformer(np.exp), FunctionTransformer(Thing())),
    *(KFold(3), KFold(4), ShuffleSplit(3), ShuffleSplit(3, test_size=0.5), RBF(1.0), RBF(2.0)),
    *(columns([0]), columns([1]), columns(make_column_selector("a"))),
    columns(make_column_selector("b")),
]


def test_different_values_have_different_descriptions() -> None:
    found = [stable(value) for value in DIFFERENT]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("value", DIFFERENT)
def test_equal_values_have_equal_descriptions_without_addresses(value: Any) -> None:
    assert stable(deepcopy(value)) == stable(value)
    assert "0x" not in stable(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(0.5), 0.5),
        (np.str_("a"), "a"),
        (objects([[np.float64(1.5), "a"], [None, True]]), objects([[1.5, "a"], [None, True]])),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (partial(pow, exp=2, mod=3), partial(pow, mod=3, exp=2)),
        (np.asfortranarray(np.eye(3)), np.eye(3)),
        (LogisticRegression(), LogisticRegression(verbose=1)),
        (BaggingClassifier(), BaggingClassifier(n_jobs=2)),
    ],
)
def test_what_makes_no_difference_is_not_described(one: Any, other: Any) -> None:
    assert stable(one) == stable(other)


def test_what_is_no_array_after_all_is_known_by_its_class() -> None:
    class OnGpu:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    assert stable(OnGpu()).endswith("OnGpu object")


def test_a_script_has_one_name_in_all_processes_of_multiprocessing() -> None:
    def one() -> None: ...

    def other() -> None: ...

    other.__qualname__ = one.__qualname__
    one.__module__, other.__module__ = "__main__", "__mp_main__"
    assert stable(one) == stable(other)


def pipeline(C: float = 1.0, tol: float = 1e-4, *, with_mean: bool = True) -> Pipeline:
    model = LogisticRegression(C=C, tol=tol)
    return Pipeline([("scale", StandardScaler(with_mean=with_mean)), ("model", model)])


def test_what_is_searched_of_an_estimator_is_left_out() -> None:
    searched = ["model__C"]
    plain = described(pipeline(), searched)
    assert described(pipeline(C=2), searched) == plain
    assert described(pipeline(tol=0.1), searched) != plain
    assert described(pipeline(with_mean=False), searched) != plain
    for steps in (["model"], ["model", "model__C", "model__missing__C"]):
        assert described(pipeline(tol=0.1), steps) == described(pipeline(), steps)
        assert described(pipeline(with_mean=False), steps) != described(pipeline(), steps)
    assert described(pipeline(with_mean=False), ["steps"]) == described(pipeline(), ["steps"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(50, 50), (40,)], [(1,), (2,)]),
        ([StandardScaler()], [StandardScaler(with_mean=False)]),
        ([np.log, np.exp], [np.exp, np.log]),
        ([float("nan"), 1.0], [float("nan"), 2.0]),
        (expon(scale=1), expon(scale=1e-6)),
        (expon(), expon(loc=1)),
        (gamma(2), gamma(3)),
        (expon(), [1.0, 2.0]),
        ([1, 2], [1, 3]),
    ],
)
def test_spaces_that_differ_in_values_differ_in_words(one: Any, other: Any) -> None:
    words = [checked_space({"p": given}).description for given in (one, deepcopy(one), other)]
    assert words[0] == words[1] != words[2]
    assert "0x" not in words[0]


def test_spaces_are_the_same_by_what_they_are_searched_as() -> None:
    spaces = [checked_space({"p": given}) for given in (expon(scale=1), expon(), expon)]
    assert len({space.description for space in spaces}) == 1


def test_long_texts_are_bounded_and_still_told_apart() -> None:
    text = "a" * (MAX_LETTERS + 1)
    assert bounded(text[1:]) == text[1:]
    assert len(bounded(100 * text)) < MAX_LETTERS + 50
    assert bounded(text) != bounded(text[:-1] + "b")
