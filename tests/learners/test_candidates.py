"""Features that fitted classifiers use."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.ensemble import StackingClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners.candidates import used_features


CORNERS = np.array([*product([0.0, 1.0], repeat=4)])
X, Y = np.repeat(CORNERS, 4, axis=0), np.repeat(CORNERS[:, 0] != CORNERS[:, 2], 4)
"""Labels that neither column 0 nor column 2 tells anything about by itself."""

TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
WHOLE_FOREST = RandomForestClassifier(1, bootstrap=False, max_features=None, random_state=0)
ENSEMBLES = {
    "forest": WHOLE_FOREST,
    "random forest": RandomForestClassifier(2, random_state=0),
    "extra trees": ExtraTreesClassifier(2, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=1, random_state=0),
    "boosted": AdaBoostClassifier(DecisionTreeClassifier(random_state=0), n_estimators=1),
    "boosted forests": AdaBoostClassifier(WHOLE_FOREST, n_estimators=1),
    "bagging": BaggingClassifier(
        DecisionTreeClassifier(), 3, max_features=0.75, random_state=1, bootstrap=False
    ),
    "bagged forests": BaggingClassifier(WHOLE_FOREST, 2, max_features=0.75, random_state=1),
    "voting": VotingClassifier([("tree", TREE), ("forest", WHOLE_FOREST)]),
    "mixed": VotingClassifier([("forest", WHOLE_FOREST), ("linear", LogisticRegression())]),
}


def influential(model: Any) -> set[int]:
    """Return the columns whose value changes a prediction at any corner."""
    found = set()
    for column in range(CORNERS.shape[1]):
        flipped = CORNERS.copy()
        flipped[:, column] = 1.0 - flipped[:, column]
        if (probabilities(model, CORNERS) != probabilities(model, flipped)).any():
            found.add(column)
    return found


def probabilities(model: Any, corners: NDArray[np.float64]) -> NDArray[np.float64]:
    has = hasattr(model, "predict_proba")
    return np.asarray(model.predict_proba(corners) if has else model.predict(corners))


@pytest.mark.parametrize("name", ENSEMBLES)
@pytest.mark.parametrize("constant", [(), (1, 3)])
def test_no_other_column_changes_a_vote(name: str, constant: tuple[int, ...]) -> None:
    table = X.copy()
    table[:, constant] = 0.0
    model = clone(ENSEMBLES[name]).fit(table, Y)
    used = used_features(model, 4)
    assert influential(model) <= set(used)
    if constant and name != "mixed":  # no tree splits on a constant column
        assert set(used) <= {0, 2}


def test_a_stack_of_trees_is_not_only_trees() -> None:
    stack = StackingClassifier([("tree", TREE)], LogisticRegression(), cv=2, passthrough=True)
    assert used_features(stack.fit(X, Y), 4) == (0, 1, 2, 3)


def test_a_forest_pays_for_a_split_that_gains_nothing_by_itself() -> None:
    table = X.copy()
    table[:, [1, 3]] = 0.0
    model = BudgetedAdaBoostClassifier(
        [1.0, 5.0, 2.0, 5.0], estimator=WHOLE_FOREST, trade_off="none", random_state=0
    ).fit(table, Y)
    assert model.score(table, Y) == 1.0
    assert (model.spent_, set(model.features_bought_.tolist())) == (3.0, {0, 2})


def test_what_boosting_starts_from_may_use_all_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + rng.normal(size=60) > 0.0).astype(int)
    tree = {"n_estimators": 1, "max_depth": 1, "random_state": 0}
    assert len(used_features(GradientBoostingClassifier(**tree).fit(X, y), 4)) == 1
    started = GradientBoostingClassifier(**tree, init=GaussianNB()).fit(X, y)
    assert used_features(started, 4) == (0, 1, 2, 3)
