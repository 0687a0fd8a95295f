from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.learners import AdaBoostRSClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import SpeedBoostClassifier
from optuna_daub.learners.budget import Budget
from tests.learners.data import noisy


COSTS = np.array([2.0, 0.5, 0.0, 1.0])


@given(purchases=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=6))
def test_a_feature_is_paid_once(purchases: list[list[int]]) -> None:
    budget = Budget(COSTS, limit=10.0)
    for features in purchases:
        budget = budget.buy(features)
    owned = {feature for features in purchases for feature in features}
    assert set(budget.bought) == owned
    assert len(budget.bought) == len(owned)
    assert budget.spent == sum(COSTS[j] for j in owned)
    assert budget.unpaid.tolist() == [0.0 if j in owned else COSTS[j] for j in range(4)]


def test_buying_leaves_the_old_budget_as_it_was() -> None:
    budget = Budget(COSTS, limit=3.0)
    budget.buy((0, 1))
    assert (budget.spent, budget.bought) == (0.0, ())


def test_what_is_left_can_be_spent_to_the_last_penny() -> None:
    budget = Budget(COSTS, limit=3.0).buy((0,))
    assert budget.affords([0.0, 0.5, 1.0, 1.0 + 1e-9]).tolist() == [True, True, True, False]


NAMES = ["age", "blood", "scan"]
BY_NAME = {"scan": 9.0, "age": 0.2, "blood": 1.0}


def frame_and_labels(names: Any) -> tuple[Any, Any]:
    pd = pytest.importorskip("pandas")
    X, y = noisy(80, 3, seed=0)
    return pd.DataFrame(X, columns=names), y


@pytest.mark.parametrize(
    "kind", [BudgetedAdaBoostClassifier, SpeedBoostClassifier, AdaBoostRSClassifier]
)
@pytest.mark.parametrize("container", [dict, "Series"])
def test_costs_with_names_belong_to_the_columns_of_these_names(kind: Any, container: Any) -> None:
    X, y = frame_and_labels(NAMES)
    container = pytest.importorskip("pandas").Series if container == "Series" else container
    params: dict[str, Any] = {"budget": 1.5, "n_estimators": 8}
    if kind is AdaBoostRSClassifier:
        params["random_state"] = 0
    for names in (NAMES, NAMES[::-1]):
        by_name = kind(container(BY_NAME), **params).fit(X[names], y)
        by_place = kind([BY_NAME[name] for name in names], **params).fit(X[names], y)
        paid = [BY_NAME[names[place]] for place in by_name.features_bought_]
        assert by_name.spent_ == by_place.spent_ == sum(paid)
        assert by_name.features_bought_.tolist() == by_place.features_bought_.tolist()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["age", "blood"], r"but lacks \['scan'\]\. Correct"),
        (["age", "blood", "scan", "mri"], r"but has the unknown \['mri'\]\. Correct"),
        (["age", "blod", "scan"], r"but lacks \['blood'\] and has the unknown \['blod'\]"),
        (["age", "age", "blood", "scan"], r"but repeats \['age'\]"),
    ],
)
def test_costs_name_exactly_the_columns(keys: list[Any], message: str) -> None:
    X, y = frame_and_labels(NAMES)
    series = pytest.importorskip("pandas").Series(1.0, index=keys)
    with pytest.raises(ValueError, match="must name each column of X once, " + message):
        BudgetedAdaBoostClassifier(series).fit(X, y)
    if len({*keys}) == len(keys):
        with pytest.raises(ValueError, match="must name each column of X once, " + message):
            BudgetedAdaBoostClassifier(dict.fromkeys(keys, 1.0)).fit(X, y)


@pytest.mark.parametrize("columns", [None, [5, 6, 7], NAMES])
def test_costs_without_names_are_taken_in_their_order(columns: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, y = frame_and_labels(columns)
    costs = [0.2, 1.0, 9.0]
    by_place = SpeedBoostClassifier(costs, 1.5).fit(X, y)
    for index in (None, [1, 2, 3]):  # row numbers, also of a filtered table
        series = SpeedBoostClassifier(pd.Series(costs, index=index), 1.5).fit(X, y)
        assert series.features_bought_.tolist() == by_place.features_bought_.tolist()
        assert series.spent_ == by_place.spent_
    others: list[Any] = [BY_NAME, dict(enumerate(costs)), pd.Series(BY_NAME)]
    for other in others if columns is not NAMES else ():
        with pytest.raises(ValueError, match=r"must be a list .* do not name the columns of X"):
            SpeedBoostClassifier(other, 1.5).fit(X, y)
    with pytest.raises(ValueError, match=r"each of the 3 features, but got shape \(2,\)"):
        SpeedBoostClassifier(pd.Series(costs[:2])).fit(X, y)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("much", "must be a list of one number for each of the 3"),
        (None, "'scan' costs nan"),
        (-1.0, r"'scan' costs -1\.0"),
        ([1.0, 2.0], "must be a list of one number for each of the 3"),
    ],
)
def test_costs_with_names_are_numbers(cost: Any, message: str) -> None:
    X, y = frame_and_labels(NAMES)
    with pytest.raises(ValueError, match=message):
        BudgetedAdaBoostClassifier({**BY_NAME, "scan": cost}).fit(X, y)
