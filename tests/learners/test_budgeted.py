from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import DecisionTreeRegressor

from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import SpeedBoostClassifier
from optuna_daub.learners.stumps import Stump
from tests.learners.data import TIE_FREE_COSTS
from tests.learners.data import TIE_FREE_X
from tests.learners.data import TIE_FREE_Y
from tests.learners.data import noisy
from tests.learners.transcriptions import Score
from tests.learners.transcriptions import adaboost_bt


VARIANTS: dict[str, Any] = {
    "plain": BudgetedAdaBoostClassifier(trade_off="none"),
    "greedy": BudgetedAdaBoostClassifier(trade_off="greedy"),
    "smoothed": BudgetedAdaBoostClassifier(trade_off="smoothed"),
    "speedboost": SpeedBoostClassifier(),
}
SCORES: dict[str, Score] = {
    "plain": lambda gamma, cost, spent: gamma,
    "greedy": lambda gamma, cost, spent: -((1 - gamma**2) ** (1 / cost)),
    "smoothed": lambda gamma, cost, spent: -((1 - gamma**2) ** (1 / (spent + cost))),
    "speedboost": lambda gamma, cost, spent: (1 - math.sqrt(1 - gamma**2)) / cost,
}
PUBLISHED = {
    "plain": ([(2, 1, 0.804719), (4, 1, 0.867301), (0, -1, 0.536318), (2, 1, 0.701412)],
              0.369317, 0.166667),
    "greedy": ([(4, 1, 0.549306), (2, 1, 1.039721), (0, -1, 0.733169),
                (4, 1, 0.276034), (2, 1, 0.569717), (0, -1, 0.296843)],
               0.335844, 0.083333),
    "smoothed": ([(4, 1, 0.549306), (2, 1, 1.039721), (0, -1, 0.733169)],
                 0.424918, 0.083333),
    "speedboost": ([(4, 1, 0.549306), (0, -1, 0.346574), (2, 1, 1.198948),
                    (0, -1, 0.490415), (4, 1, 0.323314)],
                   0.381881, 0.083333),
}  # fmt: skip
"""Feature, sign and weight of each round, the bound on the training error, and that error."""


def configured(name: str, **params: Any) -> Any:
    """Return a fresh variant with the given parameters."""
    model = VARIANTS[name]
    return model.__class__(**{**model.get_params(), **params})


@pytest.mark.parametrize("name", VARIANTS)
def test_tie_free_run_is_the_published_one(name: str) -> None:
    model = configured(name, feature_costs=TIE_FREE_COSTS, budget=3.2, n_estimators=6)
    model.fit(TIE_FREE_X, TIE_FREE_Y)
    steps, product, error = PUBLISHED[name]
    # s (2 x - 1) votes -s where x <= 1/2.
    assert [(h.feature, -h.sign) for h in model.estimators_] == [step[:2] for step in steps]
    np.testing.assert_allclose(model.estimator_weights_, [step[2] for step in steps], atol=5e-7)
    assert np.prod(1.0 / np.cosh(model.estimator_weights_)) == pytest.approx(product, abs=5e-7)
    assert 1.0 - model.score(TIE_FREE_X, TIE_FREE_Y) == pytest.approx(error, abs=5e-7)
    assert model.spent_ == pytest.approx(2.0)
    assert sorted(model.features_bought_) == [0, 2, 4]


@settings(max_examples=25)
@given(name=st.sampled_from(sorted(VARIANTS)), seed=st.integers(0, 10**6))
def test_rounds_equal_the_transcription(name: str, seed: int) -> None:
    X, y = noisy(40, 4, seed)
    costs = np.random.default_rng(seed).uniform(0.1, 2.0, 4).tolist()
    steps = adaboost_bt(X.tolist(), (2 * y - 1).tolist(), C=costs, B=3.0, T=15, score=SCORES[name])
    model = configured(name, feature_costs=costs, budget=3.0, n_estimators=15)
    if not steps:
        with pytest.raises(ValueError, match="The hypothesis chosen first costs"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert [h.feature for h in model.estimators_] == [step.h.j for step in steps]
    np.testing.assert_allclose([h.upper for h in model.estimators_], [s.h.high for s in steps])
    np.testing.assert_allclose(model.estimator_weights_, [s.alpha for s in steps], atol=1e-7)
    assert model.spent_ == pytest.approx(3.0 - steps[-1].left)


@pytest.mark.parametrize("name", ["greedy", "smoothed", "speedboost"])
def test_equal_costs_and_no_limit_coincide_with_plain_adaboost(name: str) -> None:
    X, y = noisy(200, 5, seed=1)
    plain = configured("plain", n_estimators=30).fit(X, y)
    assert len(plain.estimators_) == 30
    model = configured(name, feature_costs=np.full(5, 0.7), n_estimators=30).fit(X, y)
    assert model.estimators_ == plain.estimators_
    np.testing.assert_array_equal(model.estimator_weights_, plain.estimator_weights_)


@pytest.mark.parametrize("depth", [1, 3])
def test_given_trees_coincide_with_adaboost_of_scikit_learn(depth: int) -> None:
    X, y = noisy(300, 4, seed=2)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    theirs = AdaBoostClassifier(tree, n_estimators=20, random_state=0).fit(X, y)
    ours = configured("plain", estimator=tree, n_estimators=20, random_state=0).fit(X, y)
    # SAMME's weights are twice AdaBoost's; scikit-learn divides the vote by their sum, doubled.
    np.testing.assert_allclose(2.0 * ours.estimator_weights_, theirs.estimator_weights_)
    votes = 2.0 * ours.decision_function(X) / ours.estimator_weights_.sum()
    np.testing.assert_allclose(votes, theirs.decision_function(X))


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(VARIANTS)),
    seed=st.integers(0, 10**6),
    n_classes=st.integers(2, 4),
    affordable_only=st.booleans(),
)
def test_budget_is_kept_and_features_are_paid_once(
    name: str, seed: int, n_classes: int, affordable_only: bool
) -> None:
    X, y = noisy(60, 6, seed, n_classes=n_classes)
    costs = np.random.default_rng(seed).uniform(0.1, 1.0, 6)
    model = configured(name, feature_costs=costs, budget=1.0 * n_classes, n_estimators=12)
    if name != "speedboost":
        model.set_params(affordable_only=affordable_only)
    model.fit(X, y)
    rounds = model.ensemble_.hypotheses
    used = {feature for round_ in rounds for one in round_ for feature in one.features}
    assert used == set(model.features_bought_.tolist())
    assert len(set(model.features_bought_)) == len(model.features_bought_)
    assert model.spent_ == pytest.approx(costs[model.features_bought_].sum())
    assert model.spent_ <= 1.0 * n_classes


def test_a_budget_equal_to_a_sum_of_costs_suffices_in_spite_of_rounding() -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    model = configured("plain", feature_costs=[0.1, 0.2], budget=0.3, n_estimators=2)
    model.fit(X, [0, 0, 0, 1], sample_weight=[1, 2, 3, 5])
    assert model.spent_ == 0.1 + 0.2 > 0.3


def test_affordable_only_goes_on_where_the_paper_stops() -> None:
    params = {"feature_costs": TIE_FREE_COSTS, "budget": 1.9, "n_estimators": 6}
    paper = configured("plain", **params).fit(TIE_FREE_X, TIE_FREE_Y)
    assert paper.features_bought_.tolist() == [2, 4]
    cautious = configured("plain", affordable_only=True, **params).fit(TIE_FREE_X, TIE_FREE_Y)
    assert set(cautious.features_bought_.tolist()) == {2, 4}
    assert len(cautious.estimators_) == 6 > len(paper.estimators_)


def test_prediction_looks_at_bought_features_only() -> None:
    X, y = noisy(100, 6, seed=3)
    model = configured("greedy", feature_costs=np.arange(1.0, 7.0), budget=4.0).fit(X, y)
    unknown = np.setdiff1d(np.arange(6), model.features_bought_)
    assert unknown.size
    veiled = X.copy()
    veiled[:, unknown] = -99.0
    np.testing.assert_array_equal(model.decision_function(veiled), model.decision_function(X))


def test_tau_leads_from_smoothed_to_greedy() -> None:
    X, y = noisy(300, 6, seed=4)
    costs = np.random.default_rng(4).uniform(0.1, 2.0, 6)
    params = {"feature_costs": costs, "n_estimators": 40}
    chosen = {
        tau: [h.feature for h in configured("smoothed", tau=tau, **params).fit(X, y).estimators_]
        for tau in (1e-12, 0.05, 1.0)
    }
    greedy = configured("greedy", **params).fit(X, y)
    assert chosen[1e-12] == [h.feature for h in greedy.estimators_]
    assert len(set(map(tuple, chosen.values()))) == 3


def test_given_trees_pay_for_all_their_features() -> None:
    X, y = noisy(200, 5, seed=5)
    params = {"estimator": DecisionTreeClassifier(max_depth=2, random_state=0), "random_state": 0}
    model = configured("plain", feature_costs=np.ones(5), budget=3.0, **params).fit(X, y)
    for one in model.estimators_:
        splits = one.estimator.tree_.feature
        assert set(one.features) == set(splits[splits >= 0].tolist())
    assert model.spent_ == len(model.features_bought_) <= 3


def test_given_trees_can_be_traded_off() -> None:
    X, y = noisy(200, 5, seed=6)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    params = {"estimator": tree, "feature_costs": [9.0, 0.1, 9.0, 9.0, 9.0], "random_state": 0}
    model = configured("greedy", n_estimators=5, budget=1.0, **params).fit(X, y)
    assert model.features_bought_.tolist() == [1]
    with pytest.raises(ValueError, match="set affordable_only=True"):
        configured("plain", budget=1.0, **params).fit(X, y)


def test_what_cannot_be_set_is_no_way_out() -> None:
    X, y = noisy(200, 3, seed=6)
    costs = [1.1, 9.0, 0.9]  # the signal is expensive, what can be paid is noise
    with pytest.raises(ValueError, match=r"costs 1\.1: raise the budget\.$"):
        configured("speedboost", feature_costs=costs, budget=1.0).fit(X, y)


def test_a_hypothesis_that_cannot_be_paid_is_the_cause_if_no_other_has_an_edge() -> None:
    X = np.column_stack([np.zeros(40), np.tile([0.0, 1.0], 20)])
    model = configured("plain", feature_costs=[1.0, 5.0], budget=2.0, affordable_only=True)
    with pytest.raises(ValueError, match=r"costs 5\.0: raise the budget\.$"):
        model.fit(X, X[:, 1])
    X = np.column_stack([X, np.append(np.ones(8), X[8:, 1])])  # the third pays for one round
    model.set_params(feature_costs=[1.0, 5.0, 2.0], n_estimators=9)
    assert model.fit(X, X[:, 1]).features_bought_.tolist() == [2]  # without a warning


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_given_classifiers_without_a_tree_pay_for_what_they_use(estimator: Any) -> None:
    X, y = noisy(100, 3, seed=7)
    model = configured("plain", estimator=estimator, n_estimators=1).fit(X, y)
    assert model.spent_ == 3.0
    assert model.score(X, y) > 0.6


def signs(y: NDArray[np.int64], right: float, seed: int) -> NDArray[np.int64]:
    """Return a column that agrees with the same share of the labels 0 and of the labels 1."""
    column = y.copy()
    for label in (0, 1):
        rows = np.random.default_rng(seed + label).permutation(np.flatnonzero(y == label))
        wrong = rows[: round((1.0 - right) * len(rows))]
        column[wrong] = 1 - label
    return column


@pytest.mark.parametrize("name", ["greedy", "smoothed", "speedboost"])
@pytest.mark.parametrize("right", [0.5, 0.59])
@pytest.mark.filterwarnings("ignore:Boosting stopped")
def test_a_rounding_error_of_a_free_feature_does_not_end_boosting(name: str, right: float) -> None:
    """A free stump that was taken, or is as good as a coin, has no edge left."""
    y = np.arange(200) % 2
    X = np.column_stack([signs(y, right, 0), signs(y, 0.9, 2), signs(y, 0.5, 4)])
    weights = np.random.default_rng(0).uniform(0.1, 1.0, 100).repeat(2)
    model = configured(name, feature_costs=[0.0, 1.0, 1.0], budget=2.0)
    model.fit(X, y, sample_weight=weights if right == 0.59 else None)
    assert 1 in model.features_bought_
    assert model.score(X, y) == 0.9


@pytest.mark.parametrize("name", ["greedy", "smoothed", "speedboost"])
def test_a_small_cost_lets_paid_features_compete_with_a_weak_free_one(name: str) -> None:
    X, y = noisy(300, 2, seed=8, digits=9)
    X = np.column_stack([X[:, 0], np.random.default_rng(8).random(300)])  # signal, noise
    free, cheap = (
        configured(name, feature_costs=[1.0, cost], n_estimators=20).fit(X, y)
        for cost in (0.0, 0.1)
    )
    assert free.features_bought_.tolist() == [1]  # noise has an edge in every round
    assert 0 in cheap.features_bought_
    assert cheap.score(X, y) > 0.8


@pytest.mark.parametrize("name", VARIANTS)
def test_a_class_without_a_hypothesis_better_than_guessing_buys_nothing(name: str) -> None:
    cells = np.array([*product([0, 1], repeat=3)])
    # Class 2 is as frequent in every cell; x1 is right on 3 of 4 examples of the others.
    y = np.concatenate([[b, b, b, 1 - b, 2, 2, 2] for _, b, _ in cells])
    X = cells.repeat(7, axis=0)
    model = configured(name, feature_costs=[5.0, 1.0, 3.0], n_estimators=1)
    model.fit(X, y, sample_weight=np.where(y == 2, 0.3, 0.7))
    assert model.features_bought_.tolist() == [1]
    assert model.spent_ == 1.0
    assert model.estimator_weights_[0, 2] == 0.0


def test_faultless_stump_ends_boosting() -> None:
    X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    model = configured("plain").fit(X, [0, 0, 1, 1])
    assert model.estimators_ == [Stump(0, -np.inf, 1.5, -1)]
    assert model.score(X, [0, 0, 1, 1]) == 1.0


def test_rounds_without_a_hypothesis_better_than_guessing_end_with_a_warning() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    y = [0, 0, 0, 1]
    with pytest.warns(UserWarning, match="stopped after 1 of 50 rounds: no hypothesis is right"):
        model = configured("plain").fit(X, y, sample_weight=[1.0, 1.0, 1.0, 2.0])
    assert len(model.estimators_) == 1


def test_no_hypothesis_at_all_is_an_error() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="the first round found none"):
        configured("plain").fit(X, [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"feature_costs": [1.0, -0.5, 1.0]}, r"at least 0, but feature 'x1' costs -0\.5"),
        ({"feature_costs": [1.0, 1.0, math.inf]}, "finite and at least 0, but feature 'x2'"),
        ({"feature_costs": [math.nan, 1.0, 1.0]}, "finite and at least 0, but feature 'x0'"),
        ({"feature_costs": [1.0, 1e308, 1e308]}, "finite sum, but the largest of 3 costs is 1e"),
        ({"feature_costs": [1.0, 1.0]}, r"each of the 3 features, but got shape \(2,\)"),
        (
            {"feature_costs": [3.0, 2.0, 2.5], "budget": 1.5},
            r"but got 1\.5; the cheapest feature is 'x1' at 2\.0\. Raise the budget",
        ),
        (
            {"feature_costs": [3.0, 2.0, 1.0], "budget": 1.5, "trade_off": "none"},
            r"cheapest feature is 'x2' at 1\.0\. The hypothesis chosen first costs 3\.0",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match=message):
        BudgetedAdaBoostClassifier(**params).fit(X, y)


@pytest.mark.parametrize("kind", [BudgetedAdaBoostClassifier, SpeedBoostClassifier])
@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (KNeighborsClassifier(), "must take `sample_weight` in its fit method"),
        (DecisionTreeRegressor(), "must be a classifier, but got DecisionTreeRegressor"),
    ],
)
def test_what_cannot_be_boosted_is_refused(kind: Any, estimator: Any, message: str) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match=message):
        kind(estimator=estimator).fit(X, y)


@pytest.mark.parametrize("trade_off", ["none", "smoothed"])
def test_an_estimator_that_wants_classes_from_0_upwards(trade_off: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    X, y = noisy(200, 3, seed=0, n_classes=3)
    kind = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
    model = BudgetedAdaBoostClassifier(n_estimators=4, trade_off=trade_off, estimator=kind)
    assert model.fit(X, y).score(X, y) > 0.6


@pytest.mark.parametrize("estimator", [SVC(), LogisticRegression(C=0.1)])
@pytest.mark.parametrize("weight", [1.0, 1e-6])
def test_a_first_round_is_the_estimator_itself(estimator: Any, weight: float) -> None:
    """Regularized as much as alone, whatever the size of the weights."""
    X, y = noisy(200, 3, seed=0)
    model = configured("plain", estimator=estimator, n_estimators=1)
    (first,) = model.fit(X, y, sample_weight=np.full(200, weight)).estimators_
    alone = clone(estimator).fit(X, y, sample_weight=np.ones(200)).predict(X)
    np.testing.assert_array_equal(first.vote(X) > 0, alone == 1)


def test_an_estimator_that_cannot_fit_one_feature_is_named() -> None:
    X, y = noisy(50, 3, seed=0)
    two = BaggingClassifier(max_features=2)
    with pytest.raises(ValueError, match=r"must fit each feature alone.*BaggingClassifier.*max_f"):
        SpeedBoostClassifier(estimator=two).fit(X, y)


def test_messages_use_the_names_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    X, y = noisy(50, 2, seed=0)
    frame = pd.DataFrame(X, columns=["age", "income"])
    with pytest.raises(ValueError, match="cheapest feature is 'income'"):
        SpeedBoostClassifier([5.0, 4.0], budget=1.0).fit(frame, y)


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(VARIANTS)),
    seed=st.integers(0, 10**6),
    budget=st.floats(2.0, 6.0),
)
def test_a_budget_only_cuts_the_rounds_without_budget(name: str, seed: int, budget: float) -> None:
    X, y = noisy(60, 6, seed)
    costs = np.random.default_rng(seed).uniform(0.1, 2.0, 6)
    params = {"feature_costs": costs, "n_estimators": 12}
    whole = configured(name, **params).fit(X, y).estimators_
    cut = configured(name, budget=budget, **params).fit(X, y).estimators_
    assert cut == whole[: len(cut)]
    if len(cut) < len(whole):
        assert costs[[*{h.feature for h in whole[: len(cut) + 1]}]].sum() > budget


def test_a_sparse_table_and_a_linear_estimator() -> None:
    X, y = make_classification(80, 4, random_state=0)
    kind = SVC(kernel="linear")
    model = BudgetedAdaBoostClassifier(estimator=kind, n_estimators=3, random_state=0)
    assert model.fit(csr_matrix(X), y).score(csr_matrix(X), y) > 0.8


def test_estimators_within_an_estimator_are_seeded_too() -> None:
    X, y = make_classification(80, 4, random_state=0)
    kind = CalibratedClassifierCV(DecisionTreeClassifier(splitter="random"), cv=2)
    one, other = (
        BudgetedAdaBoostClassifier(estimator=kind, n_estimators=3, random_state=0).fit(X, y)
        for _ in "ab"
    )
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
