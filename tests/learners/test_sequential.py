from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import KNeighborsRegressor

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub.learners import sequential_score
from optuna_daub.learners.sequential import SequentialScorer
from optuna_daub.learners.sequential import next_possible_stop
from optuna_daub.learners.stopping import SizeRule
from optuna_daub.learners.stopping import absolute_error_size
from tests.learners.data import noisy


class Oracle:
    """Predicts the first column and counts how many rows it saw."""

    def __init__(self) -> None:
        self.seen = 0

    def predict(self, X: Any) -> NDArray[np.float64]:
        self.seen += X.shape[0]
        return np.asarray(X)[:, 0]


def validation(accuracy: float, n_samples: int, seed: int) -> tuple[Any, Any]:
    """Return rows that the oracle predicts with the given accuracy."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    return np.where(rng.random(n_samples) < accuracy, y, 1 - y)[:, np.newaxis], y


def massart_by_definition(n: int, p: float, epsilon: float, delta: float) -> bool:
    inside = 0.25 - (abs(p - 0.5) - 2 / 3 * epsilon) ** 2  # formulas.md 3.2, rule (1)
    return n >= 2 * math.log(2 / delta) / epsilon**2 * inside


@settings(max_examples=50)
@given(
    accuracy=st.floats(0.0, 1.0),
    epsilon=st.floats(0.03, 0.3),
    batch_size=st.integers(0, 400),
    seed=st.integers(0, 1000),
)
def test_estimate_equals_predictions_one_by_one(
    accuracy: float, epsilon: float, batch_size: int, seed: int
) -> None:
    X, y = validation(accuracy, 500, seed)
    scorer = SequentialScorer(epsilon, 0.1, batch_size=batch_size, seed=seed)
    right = n = 0
    for i in np.random.default_rng(seed).permutation(500):
        n += 1
        right += int(X[i, 0] == y[i])
        if massart_by_definition(n, right / n, epsilon, 0.1):
            break
    estimate = scorer.estimate(Oracle(), X, y)
    assert (estimate.accuracy, estimate.n_samples) == (right / n, n)


@settings(max_examples=50)
@given(right=st.integers(0, 300), wrong=st.integers(0, 300), seed=st.integers(0, 1000))
def test_nothing_stops_before_the_next_possible_stop(right: int, wrong: int, seed: int) -> None:
    rule = SizeRule(absolute_error_size, 0.05, 0.1)
    seen = right + wrong
    first = next_possible_stop(rule, seen, right, 5000)
    outcomes = np.random.default_rng(seed).random(first - seen) < seed / 1000
    n = np.arange(seen + 1, first + 1)
    stops = rule(n, (right + np.cumsum(outcomes)) / n)
    assert not stops[:-1].any()


@pytest.mark.parametrize("accuracy", [0.5, 0.9, 1.0])
def test_few_examples_are_predicted_beyond_those_used(accuracy: float) -> None:
    X, y = validation(accuracy, 20_000, seed=0)
    oracle = Oracle()
    estimate = SequentialScorer(0.05, 0.05).estimate(oracle, X, y)
    assert oracle.seen == estimate.n_predicted < estimate.n_samples + 32
    assert estimate.satisfied
    assert estimate.n_samples < 800  # Hoeffding: 738


def test_extreme_accuracies_need_fewer_examples() -> None:
    sizes = [
        SequentialScorer(0.05, 0.05).estimate(Oracle(), *validation(p, 20_000, 1)).n_samples
        for p in (0.5, 0.8, 0.95, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 4


def test_errors_beyond_epsilon_are_as_rare_as_promised() -> None:
    misses = 0
    for seed in range(300):
        X, y = validation(0.85, 3000, seed)
        estimate = sequential_score(Oracle(), X, y, epsilon=0.05, delta=0.1)
        misses += abs(estimate - 0.85) >= 0.05
    assert misses <= 30, f"{misses} of 300 runs missed"


def test_examples_that_run_out_give_their_exact_accuracy() -> None:
    X, y = validation(0.7, 200, seed=0)
    estimate = SequentialScorer(0.01, 0.05).estimate(Oracle(), X, y)
    assert not estimate.satisfied
    assert estimate.n_samples == 200
    assert estimate.accuracy == np.mean(X[:, 0] == y)


def test_scorer_and_direct_call_agree() -> None:
    X, y = noisy(2000, 3, seed=5)
    model = KNeighborsClassifier().fit(X[:500], y[:500])
    scorer = sequential_score(epsilon=0.05, delta=0.05, rule="chernoff")
    direct = sequential_score(model, X, y, epsilon=0.05, delta=0.05, rule="chernoff")
    assert scorer(model, X, y) == direct
    assert abs(direct - model.score(X, y)) < 0.05


def test_scorer_serves_scikit_learn() -> None:
    X, y = noisy(2000, 3, seed=6)
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    assert check_scoring(KNeighborsClassifier(), scoring=scorer) is scorer
    scores = cross_val_score(KNeighborsClassifier(), X, y, scoring=scorer)
    exact = cross_val_score(KNeighborsClassifier(), X, y)
    assert np.abs(scores - exact).max() < 0.05


def test_scorer_is_a_value_that_can_be_pickled() -> None:
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    assert pickle.loads(pickle.dumps(scorer)) == scorer


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.coo_matrix])
def test_sparse_rows_can_be_scored(container: Callable[[Any], Any]) -> None:
    X, y = noisy(2000, 3, seed=5)
    model = KNeighborsClassifier(algorithm="brute").fit(sparse.csr_matrix(X[:500]), y[:500])
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    assert scorer(model, container(X[500:]), y[500:]) == scorer(model, X[500:], y[500:])


@pytest.mark.parametrize("labels", ["flat", "column"])
@pytest.mark.parametrize("predictions", ["flat", "column"])
def test_columns_of_labels_and_predictions_are_flat_lists(labels: str, predictions: str) -> None:
    class Columns(Oracle):
        def predict(self, X: Any) -> NDArray[np.float64]:
            found = super().predict(X)
            return found[:, np.newaxis] if predictions == "column" else found

    X, y = validation(0.8, 2000, seed=4)
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    given = y[:, np.newaxis] if labels == "column" else y
    assert scorer(Columns(), X, given) == scorer(Oracle(), X, y)


def test_data_frames_can_be_scored() -> None:
    pd = pytest.importorskip("pandas")
    X, y = noisy(1000, 3, seed=5)
    frame, target = pd.DataFrame(X, columns=list("abc")), pd.Series(y, index=range(7, 1007))
    model = KNeighborsClassifier().fit(frame[:500], target[:500])
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    plain = KNeighborsClassifier().fit(X[:500], y[:500])
    assert scorer(model, frame[500:], target[500:]) == scorer(plain, X[500:], y[500:])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, r"`epsilon` must be in \(0, 1\), but got 0\.0"),
        ({"delta": 1.0}, r"`delta` must be in \(0, 1\), but got 1\.0"),
        ({"rule": "madaboost"}, "`rule` must be one of .*, but got 'madaboost'"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sequential_score(**{"epsilon": 0.1, "delta": 0.1, **params})


def test_a_regressor_and_no_rows_have_no_accuracy() -> None:
    X, y = noisy(100, 3, seed=5)
    scorer = sequential_score(epsilon=0.05, delta=0.05)
    with pytest.raises(ValueError, match="must be a classifier, but got KNeighborsRegressor"):
        scorer(KNeighborsRegressor().fit(X, y), X, y)
    with pytest.raises(ValueError, match="`X` must have at least one validation example"):
        scorer(KNeighborsClassifier().fit(X, y), X[:0], y[:0])


def test_data_without_an_estimator_are_refused() -> None:
    with pytest.raises(ValueError, match="must come with `X` and `y`; leave out all three"):
        sequential_score(None, np.zeros((3, 1)), [0, 1, 1], epsilon=0.1, delta=0.1)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (None, None, "must come with `X` and `y`"),
        (np.zeros((3, 1)), [0, 1], "inconsistent numbers of samples"),
        (np.zeros((3, 1)), np.zeros((3, 2)), "y should be a 1d array"),
        (np.zeros((3, 1)), ["0", "1", "1"], "Mix of label input types"),
        (np.zeros((3, 1)), [0.0, np.nan, 1.0], "Input y contains NaN"),
    ],
)
def test_data_that_do_not_match_are_refused(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sequential_score(Oracle(), X, y, epsilon=0.1, delta=0.1)


def test_scorer_serves_the_objective_of_a_study() -> None:
    X, y = noisy(1500, 3, seed=12)
    objective = TrainingSizeObjective(
        lambda trial: KNeighborsClassifier(trial.suggest_int("n_neighbors", 1, 9)),
        X,
        y,
        scoring=sequential_score(epsilon=0.05, delta=0.05),
    )
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=2),
        pruner=DAUBPruner(min_resource=100, max_resource=objective.n_train),
    )
    study.optimize(objective)
    model = objective.refit(study)
    assert abs(study.best_value - model.score(X, y)) < 0.2
    assert study.best_params == {"n_neighbors": model.n_neighbors}
