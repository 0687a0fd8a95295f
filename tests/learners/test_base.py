"""Properties of all four classifiers, beyond the checks of scikit-learn."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from optuna_daub.learners import AdaBoostRSClassifier
from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import SpeedBoostClassifier
from optuna_daub.learners.boosting import Ensemble
from tests.learners.data import noisy


ESTIMATORS = [
    BudgetedAdaBoostClassifier(n_estimators=8),
    AdaBoostRSClassifier(n_estimators=8, random_state=0),
    SpeedBoostClassifier(n_estimators=8),
    AdaptiveSamplingBoostClassifier(epsilon=0.5, n_estimators=8, random_state=0),
]


@pytest.fixture(params=ESTIMATORS, ids=lambda one: type(one).__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(request.param)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_lead_to_the_result(model: Any, n_classes: int) -> None:
    X, y = noisy(300, 4, seed=0, n_classes=n_classes)
    model.fit(X, y)
    for name in ("predict", "predict_proba", "decision_function"):
        stages = list(getattr(model, f"staged_{name}")(X))
        assert len(stages) == len(model.estimators_) == len(model.estimator_weights_)
        np.testing.assert_array_equal(stages[-1], getattr(model, name)(X))
        assert any((stages[0] != stage).any() for stage in stages[1:])
    *_, last = model.staged_score(X, y)
    assert last == model.score(X, y)


def test_predictions_do_not_keep_the_votes_of_all_rounds(model: Any) -> None:
    X, y = noisy(300, 4, seed=0, n_classes=3)
    many = np.tile(X, (100, 1))
    peaks = []
    for n_estimators in (5, 40):
        fitted = clone(model).set_params(n_estimators=n_estimators).fit(X, y)
        tracemalloc.start()
        fitted.predict(many)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_weights_of_nothing_but_0_are_refused(model: Any) -> None:
    X, y = noisy(60, 3, seed=0)
    with pytest.raises(ValueError, match=r"(?i)sample.weight.*(above 0|non-zero)"):
        model.fit(X, y, sample_weight=np.zeros(60))


def test_scores_of_stages_take_what_scores_take(model: Any) -> None:
    """A column of labels is no table of comparisons; a label or a weight is there for each row."""
    X, y = noisy(60, 3, seed=0)
    weights = np.arange(60.0)
    *_, last = model.fit(X, y).staged_score(X, y[:, np.newaxis], weights)
    assert last == model.score(X, y, weights)
    for wrong in ({"y": y[:1]}, {"y": y, "sample_weight": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            next(model.staged_score(X, **wrong))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_stages_are_the_votes_of_the_first_rounds(model: Any, n_classes: int) -> None:
    """Each stage against the sum of its rounds, and the logistic function of it by hand."""
    X, y = noisy(200, 4, seed=12, n_classes=n_classes)
    model.fit(X, y)
    scale = 1.0 if isinstance(model, AdaptiveSamplingBoostClassifier) else 2.0
    of_rounds = [one if isinstance(one, tuple) else (one,) for one in model.estimators_]
    weights = np.reshape(model.estimator_weights_, (len(of_rounds), -1))
    votes, probabilities = (
        list(getattr(model, f"staged_{name}")(X))
        for name in ("decision_function", "predict_proba")
    )
    predictions = list(model.staged_predict(X))
    assert len(votes) == len(probabilities) == len(of_rounds)
    for k in range(len(of_rounds)):
        expected = np.zeros((len(X), weights.shape[1]))
        for hypotheses, weight in zip(of_rounds[: k + 1], weights, strict=False):
            for problem, hypothesis in enumerate(hypotheses):
                expected[:, problem] += weight[problem] * hypothesis.vote(X)
        np.testing.assert_allclose(votes[k].reshape(expected.shape), expected, atol=1e-12)
        positive = 1.0 / (1.0 + np.exp(-scale * expected))
        shares = np.hstack([1.0 - positive, positive]) if n_classes == 2 else alone(positive)
        np.testing.assert_allclose(probabilities[k], shares, atol=1e-11)
        best = model.classes_[probabilities[k].argmax(axis=1)]
        np.testing.assert_array_equal(predictions[k], best)


def alone(positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how likely each class is the right one, given that exactly one is."""
    n_classes = positive.shape[1]
    rights = [
        np.prod([positive[:, j] if j == k else 1 - positive[:, j] for j in range(n_classes)], 0)
        for k in range(n_classes)
    ]
    return np.asarray(np.transpose(rights) / np.sum(rights, axis=0)[:, np.newaxis])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("size", [1e-18, 1e-9, 1.0, 30.0, 1e3])
def test_the_class_predicted_is_the_most_probable(model: Any, n_classes: int, size: float) -> None:
    X, y = noisy(400, 4, seed=7, n_classes=n_classes)
    model.fit(X, y)
    model.ensemble_ = replace(model.ensemble_, weights=size * model.ensemble_.weights)
    predicted, probabilities = model.predict(X), model.predict_proba(X)
    np.testing.assert_array_equal(predicted, model.classes_[probabilities.argmax(axis=1)])
    stages = zip(model.staged_predict(X), model.staged_predict_proba(X), strict=True)
    for predicted, probabilities in stages:
        np.testing.assert_array_equal(predicted, model.classes_[probabilities.argmax(axis=1)])


def test_votes_that_are_off_by_a_rounding_are_a_tie(model: Any) -> None:
    X, y = noisy(300, 4, seed=7)
    model.fit(X, y)
    hypothesis = model.ensemble_.hypotheses[0]
    opposite = (replace(hypothesis[0], sign=-hypothesis[0].sign),)
    model.ensemble_ = Ensemble((hypothesis, hypothesis, opposite), np.array([[0.1], [0.2], [0.3]]))
    assert 0.1 + 0.2 - 0.3 != 0
    assert not model.decision_function(X).any()
    assert set(model.predict_proba(X).ravel()) == {0.5}
    assert set(model.predict(X)) == {model.classes_[0]}


def test_more_classes_are_each_against_the_rest(model: Any) -> None:
    X, y = noisy(400, 4, seed=2, n_classes=4)
    names = np.array(["ash", "birch", "cedar", "date"])
    model.fit(X, names[y])
    votes = model.decision_function(X)
    assert votes.shape == (400, 4)
    assert model.estimator_weights_.shape == (len(model.estimators_), 4)
    np.testing.assert_array_equal(model.predict(X), names[votes.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, names[y]) > 0.4


def test_first_round_of_each_class_is_that_of_the_binary_problem() -> None:
    X, y = noisy(400, 4, seed=2, n_classes=3)
    whole = BudgetedAdaBoostClassifier(n_estimators=1).fit(X, y)
    for number in range(3):
        alone = BudgetedAdaBoostClassifier(n_estimators=1).fit(X, y == number)
        assert whole.estimators_[0][number] == alone.estimators_[0]
        assert whole.estimator_weights_[0, number] == alone.estimator_weights_[0]


def test_probabilities_of_a_single_stump_are_the_shares_of_the_classes() -> None:
    X, y = noisy(500, 3, seed=4)
    model = BudgetedAdaBoostClassifier(n_estimators=1, trade_off="none").fit(X, y)
    right = model.score(X, y)
    # alpha = 1/2 ln(right / wrong), so the vote's probability is its share of right answers.
    np.testing.assert_allclose(model.predict_proba(X).max(axis=1), right)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_input_is_worth_the_dense(model: Any, container: Callable[[Any], Any]) -> None:
    X, y = noisy(200, 5, seed=5, digits=1)
    X[X < 0.4] = 0.0
    dense = clone(model).fit(X, y)
    thin = model.fit(container(X), y)
    np.testing.assert_array_equal(thin.estimator_weights_, dense.estimator_weights_)
    np.testing.assert_array_equal(thin.decision_function(container(X)), dense.decision_function(X))


def test_sparse_input_reaches_a_given_estimator() -> None:
    X, y = noisy(200, 5, seed=5, digits=1)
    thin = sparse.csr_matrix(X)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = BudgetedAdaBoostClassifier(estimator=tree, n_estimators=3, random_state=0)
    dense = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.fit(thin, y).decision_function(thin), dense)


def test_data_frames_give_their_names(model: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, y = noisy(200, 3, seed=6)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), clone(model).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])


def test_single_precision_is_kept(model: Any) -> None:
    X, y = noisy(200, 3, seed=7)
    single = X.astype(np.float32)
    model.fit(single, y)
    np.testing.assert_array_equal(model.predict(single), model.predict(single.astype(np.float64)))


def test_examples_of_weight_zero_are_left_out(model: Any) -> None:
    X, y = noisy(300, 3, seed=8)
    weights = (np.arange(300) % 3 > 0).astype(float)
    X[weights == 0.0] = 1e6
    kept = clone(model).fit(X[weights > 0.0], y[weights > 0.0])
    model.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.decision_function(X), kept.decision_function(X))


@pytest.mark.parametrize("scale", [2.0**1023, 2.0**-1000])
def test_only_ratios_of_weights_count(model: Any, scale: float) -> None:
    """Also of weights whose sum is beyond the largest float."""
    X, y = noisy(200, 3, seed=8)
    weights = np.where(np.arange(200) % 3 == 0, 0.25, 1.0)
    plain = clone(model).fit(X, y, sample_weight=weights)
    scaled = model.fit(X, y, sample_weight=scale * weights)
    np.testing.assert_array_equal(scaled.decision_function(X), plain.decision_function(X))


def test_a_single_varying_feature_suffices(model: Any) -> None:
    X, y = noisy(200, 1, seed=9)
    padded = np.hstack([np.ones((200, 1)), X, np.zeros((200, 1))])
    model.fit(padded, y)
    assert {h.feature for h in model.estimators_} == {1}


def test_one_class_is_refused(model: Any) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match="at least two classes, but got only one class"):
        model.fit(X, np.zeros(50))
    with pytest.raises(ValueError, match=r"only one class with positive weight: \[1\]"):
        model.fit(X, y, sample_weight=(y == 1).astype(float))


def test_negative_weights_are_refused(model: Any) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(X, y, sample_weight=np.where(y == 1, 1.0, -1.0))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many"])
def test_number_of_rounds_is_checked(model: Any, wrong: Any) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match="`n_estimators` must be an integer of at least 1, but"):
        model.set_params(n_estimators=wrong).fit(X, y)


def test_constant_features_are_refused_and_leave_nothing_to_predict_with(model: Any) -> None:
    X, y = noisy(50, 3, seed=0)
    for _ in range(2):
        with pytest.raises(ValueError, match="feature must take two values, but all 3 are const"):
            model.fit(np.ones((50, 3)), np.where(y == 1, "other", "classes"))
        with pytest.raises(NotFittedError):
            model.predict(X)
        model.fit(X, y)


def test_a_fit_holds_less_than_twice_its_input_beside_it() -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 40))  # no two values alike: the worst case
    y = X[:, 0] > 0.1 * X[:, 1]
    tracemalloc.start()
    BudgetedAdaBoostClassifier(n_estimators=2).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.0 * X.nbytes, f"{peak / X.nbytes:.2f} times the input"


def test_a_class_that_is_solved_early_does_not_end_the_others(model: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = noisy(900, 3, seed=11, n_classes=2)
    alone = rng.random(900) < 0.3
    X = np.column_stack([X, alone])
    y = np.where(alone, 2, y)
    params = {"n_estimators": 40}
    if isinstance(model, AdaptiveSamplingBoostClassifier):
        params["n_intervals"] = 2
    model.set_params(**params).fit(X, y)
    weights = model.estimator_weights_
    assert weights.shape == (40, 3)
    assert np.flatnonzero(weights[:, 2]).max() < 10
    assert (weights[-1, :2] > 0.0).any()
    assert model.score(X[y == 2], y[y == 2]) == 1.0


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_probabilities_are_a_distribution_however_far_from_0_the_votes(scale: float) -> None:
    votes = scale * np.array([[-1.0, -2.0, -3.0], [1.0, -1.0, -2.0], [0.5, 0.4, -1.0]])
    found = AdaBoostRSClassifier(budget=1)._probabilities(votes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found.argmax(axis=1) == votes.argmax(axis=1)).all()
    if scale == 1.0:
        each = 1.0 / (1.0 + np.exp(-AdaBoostRSClassifier(budget=1)._logit_scale * votes))
        np.testing.assert_allclose(found, alone(each))
