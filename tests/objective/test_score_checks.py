"""A scorer that cannot score the targets is found before anything is trained."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.metrics import accuracy_score
from sklearn.metrics import average_precision_score
from sklearn.metrics import d2_tweedie_score
from sklearn.metrics import fbeta_score
from sklearn.metrics import get_scorer
from sklearn.metrics import get_scorer_names
from sklearn.metrics import log_loss
from sklearn.metrics import make_scorer
from sklearn.metrics import mean_squared_error
from sklearn.metrics import mean_tweedie_deviance
from sklearn.metrics import ndcg_score
from sklearn.metrics import roc_auc_score
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import KFold
from sklearn.model_selection import LeaveOneOut
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import DecisionTreeRegressor

from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.sklearn import DataAllocationSearchCV
from tests.objective.studies import REGRESSION
from tests.objective.studies import Witness
from tests.objective.studies import numbered
from tests.objective.studies import study_of
from tests.objective.studies import witness


N = 240
X = np.random.default_rng(0).normal(size=(N, 3))
TURN = np.arange(N)
AMOUNTS = np.exp(X[:, 0])
FOUR = [0, 1, 2, 3]
TARGETS: dict[str, Any] = {
    "1 and 2": TURN % 2 + 1,
    "booleans": TURN % 2 == 0,
    "yes and no": np.array(["no", "yes"])[TURN % 2],
    "three numbers": TURN % 3,
    "three words": np.array(["a", "b", "c"])[TURN % 3],
    "above 0": AMOUNTS,
    "around 0": X[:, 0],
    "several labels": np.column_stack([TURN % 2, TURN // 2 % 2, TURN // 4 % 2]),
    "two columns of classes": np.column_stack([TURN % 3, TURN // 3 % 3]),
    "two columns of amounts": np.column_stack([AMOUNTS, AMOUNTS]),
}


def objective(y: Any, scoring: Any, **kwargs: Any) -> TrainingSizeObjective:
    return TrainingSizeObjective(witness, X, y, scoring=scoring, **kwargs)


def is_scored(scoring: str, y: Any) -> bool:
    """Return whether scikit-learn scores a tree that was trained on these targets."""
    kind = DecisionTreeRegressor if scoring in REGRESSION else DecisionTreeClassifier
    tree = kind(max_depth=1, min_samples_leaf=50)
    try:
        get_scorer(scoring)(tree.fit(X[:170], y[:170]), X[170:], y[170:])
    except Exception:
        return False
    return True


@pytest.mark.parametrize("scoring", get_scorer_names())
def test_a_scorer_is_refused_where_scikit_learn_cannot_score_a_tree(scoring: str) -> None:
    is_of_classes = scoring not in REGRESSION
    for y in TARGETS.values():
        if is_of_classes and y.dtype.kind == "f":
            continue  # amounts are refused by another sentence
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            can_be_scored = is_scored(scoring, y)
        said = f"^`scoring='{scoring}'` must be able to score `y`"
        with nullcontext() if can_be_scored else pytest.raises(ValueError, match=said):
            objective(y, scoring)


FIXED = {"X_valid": X[:60], "y_valid": TARGETS["three words"][:60]}


@pytest.mark.parametrize(
    ("y", "scoring", "kwargs", "way_out"),
    [
        ("three numbers", "roc_auc", {}, '"roc_auc_ovr"'),
        ("yes and no", "f1", {}, "such as 'no' .* call two classes 0 and 1"),
        ("yes and no", "precision", {"cv": 3}, "such as 'no' .* call two classes 0 and 1"),
        ("three words", "f1", FIXED, '"f1_macro"'),
        ("two columns of classes", "accuracy", {}, "`scoring=None`"),
        ("around 0", "neg_mean_squared_log_error", {}, '"neg_mean_absolute_error"'),
        ("yes and no", "r2", {}, 'To predict classes .* as "accuracy" is'),
        (
            "yes and no",
            make_scorer(mean_squared_error),
            {},
            'To predict classes .* as "accuracy" is',
        ),
    ],
)
def test_the_sentence_has_a_way_out(y: str, scoring: Any, kwargs: Any, way_out: str) -> None:
    with pytest.raises(ValueError, match=way_out) as raised:
        objective(TARGETS[y], scoring, **kwargs)
    assert "\n" not in str(raised.value)


def test_the_way_out_of_classes_in_several_columns_scores_a_tree() -> None:
    y = TARGETS["two columns of classes"]
    with pytest.raises(ValueError, match="lambda") as raised:
        objective(y, "accuracy")
    function = re.search(r"`(lambda [^`]*)`", str(raised.value))
    assert function is not None
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert 0.0 < eval(function[1])(tree, X, y) < 1.0
    with pytest.raises(ValueError, match="multioutput"):
        tree.score(X, y)
    with pytest.raises(ValueError, match="several outputs") as raised:
        objective(TARGETS["two columns of amounts"], "neg_log_loss")
    assert "lambda" not in str(raised.value)


ONE_ROW: dict[str, dict[str, Any]] = {
    "leave one out": {"cv": LeaveOneOut()},
    "one of time": {"cv": TimeSeriesSplit(3, test_size=1)},
    "one held out": {"test_size": 1},
    "one fixed": {"X_valid": X[:1], "y_valid": AMOUNTS[:1]},
}


@pytest.mark.parametrize("case", ONE_ROW)
def test_a_score_that_is_nan_for_one_row_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"`scoring='r2'` must be a number, but .* 1 row of `y`"):
        objective(AMOUNTS, "r2", **ONE_ROW[case])
    assert objective(AMOUNTS, "neg_mean_absolute_error", **ONE_ROW[case]).n_validation >= 1


def _of_probabilities(metric: Any, **options: Any) -> Any:
    return make_scorer(metric, response_method="predict_proba", **options)


def test_a_scorer_that_is_told_the_classes_may_score_rows_without_one() -> None:
    X, y = np.arange(60.0)[:, None], np.arange(60) % 2
    y[[0, 30]] = 2
    plain = _of_probabilities(log_loss, greater_is_better=False)
    cv = KFold(5)
    told = _of_probabilities(log_loss, greater_is_better=False, labels=[0, 1, 2])
    own = _of_probabilities(lambda y, p: float(p[np.arange(len(y)), y].mean()))
    space = {"var_smoothing": [0.1, 0.2]}
    for scoring in (told, own):
        built = TrainingSizeObjective(lambda trial: GaussianNB(), X, y, cv=cv, scoring=scoring)
        assert np.isfinite(built(optuna.trial.FixedTrial({})))
        search = DataAllocationSearchCV(GaussianNB(), space, scoring=scoring, cv=cv)
        assert np.isfinite(search.fit(X, y).best_score_)
    some = _of_probabilities(log_loss, greater_is_better=False, labels=[0, 1])
    area = _of_probabilities(roc_auc_score, multi_class="ovr", labels=[0, 1, 2])
    for scoring in (plain, some, area):
        with pytest.raises(ValueError, match=r"each class must be .* all classes as `labels`"):
            TrainingSizeObjective(lambda trial: GaussianNB(), X, y, cv=cv, scoring=scoring)
        with pytest.raises(ValueError, match=r"each class must be .* all classes as `labels`"):
            DataAllocationSearchCV(GaussianNB(), space, scoring=scoring, cv=cv).fit(X, y)


def _fails(*_: Any) -> float:
    raise ValueError("it needs the user's own estimator")


TWO, THREE, BELOW = TURN % 2, TURN % 3, X[:, 0] - 1


@pytest.mark.parametrize(
    ("y", "scoring"),
    [
        # Those that need the user's own estimator are not checked,
        (TWO, make_scorer(_fails)),
        (TWO, make_scorer(average_precision_score, response_method="decision_function")),
        (TWO, lambda estimator, X, y: estimator.loss_),
        (TWO, None),
        # nor are those with labels of their own.
        (THREE, _of_probabilities(log_loss, greater_is_better=False, labels=FOUR)),
        (THREE, _of_probabilities(top_k_accuracy_score, k=2, labels=FOUR)),
        # A metric that needs predictions above 0 takes targets below,
        (BELOW, make_scorer(mean_tweedie_deviance, greater_is_better=False, power=-1)),
        (BELOW, make_scorer(d2_tweedie_score, power=-1)),
        # and a ranking compares amounts.
        (TARGETS["two columns of amounts"], make_scorer(ndcg_score)),
    ],
)
def test_scorers_of_ones_own_are_taken(y: Any, scoring: Any) -> None:
    assert objective(y, scoring).n_train == 168


class _Counted:
    """The rows and classes of each call of a metric of scikit-learn."""

    __module__ = "sklearn.metrics.of_a_test"

    def __init__(self, metric: Callable[..., float]) -> None:
        self.metric = metric
        self.__name__ = metric.__name__
        self.seen: list[tuple[int, int]] = []

    def __call__(self, y: Any, predicted: Any, **options: Any) -> float:
        self.seen.append((len(y), len(np.unique(y))))
        return self.metric(y, predicted, **options)


@pytest.mark.parametrize("weighted", [True, False])
def test_few_rows_are_scored_and_all_kinds_are_among_them(weighted: bool) -> None:
    features = np.zeros((60_000, 1))
    rare = np.where(np.arange(60_000) % 2_000, 0, 1)
    weights: dict[str, Any] = {}
    if weighted:
        weights = {"sample_weight": 1.0 + rare, "weighted_score": True}
    for y, most_classes in ((rare, 2), (np.arange(60_000) % 100, 20)):
        metric = _Counted(accuracy_score)
        scorer = make_scorer(metric)
        TrainingSizeObjective(witness, features, y, scoring=scorer, cv=5, **weights)
        assert 1 <= len(metric.seen) <= 3
        assert all(rows <= 1_000 and 2 <= kinds <= most_classes for rows, kinds in metric.seen)
    auc = make_scorer(roc_auc_score, response_method="predict_proba", multi_class="ovr")
    TrainingSizeObjective(witness, features, np.arange(60_000) % 100, scoring=auc)


def test_one_amount_of_many_that_cannot_be_scored_is_found() -> None:
    y = np.random.default_rng(0).uniform(1, 2, 60_000)
    y[30_000] = -5
    X, scoring = np.zeros((60_000, 1)), "neg_mean_gamma_deviance"
    with pytest.raises(ValueError, match="must be able to score `y`"):
        TrainingSizeObjective(witness, X, np.abs(y), X_valid=X, y_valid=y, scoring=scoring)


def test_a_fold_of_one_row_is_one_of_three_that_are_tried() -> None:
    metric = _Counted(accuracy_score)
    objective(TURN % 2, make_scorer(metric), cv=LeaveOneOut())
    assert metric.seen in ([(1, 1)] * 2, [(1, 1)] * 3)
    uneven = [(TURN[120:], TURN[:60]), (TURN[:120], TURN[180:181]), (TURN[:120], TURN[120:180])]
    with pytest.raises(ValueError, match=r"1 row of `y` to score of fold 2, whatever"):
        objective(AMOUNTS, "r2", cv=uneven)


# -- weights -----------------------------------------------------------------------------------


def _own_weighted(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(estimator.predict(X) == y, weights=sample_weight))


class Weighing(Witness):
    """A classifier that takes weights and does not need them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Weighing:
        super().fit(X, y)
        return self


def weighted(scoring: Any, weight: Any, **kwargs: Any) -> TrainingSizeObjective:
    kwargs |= {"scoring": scoring, "sample_weight": weight, "weighted_score": True}
    return TrainingSizeObjective(lambda trial: Weighing(), *numbered(200), **kwargs)


@pytest.mark.parametrize(
    "scoring",
    [
        lambda estimator, X, y: float(np.mean(estimator.predict(X) == y)),
        make_scorer(lambda y, predicted: float(np.mean(predicted == y))),
        "neg_max_error",
        "adjusted_rand_score",
    ],
)
def test_a_scorer_without_weights_is_refused_for_weighted_scores(scoring: Any) -> None:
    with pytest.raises(ValueError, match=r"`weighted_score=True` .* does not take them\. Give"):
        weighted(scoring, np.ones(200))


@pytest.mark.parametrize(
    "scoring",
    [
        "accuracy",
        "roc_auc",
        "r2",
        make_scorer(accuracy_score),
        make_scorer(fbeta_score, beta=2),
        _own_weighted,
        lambda estimator, X, y, **more: _own_weighted(estimator, X, y, **more),
        None,
    ],
)
def test_scorers_that_take_weights_are_taken(scoring: Any) -> None:
    assert weighted(scoring, np.ones(200)).n_train == 140


def test_weights_decide_the_score() -> None:
    weight = np.where(np.arange(200) % 2, 3.0, 1.0)  # of the rows with class 1
    for scoring in ("accuracy", _own_weighted):
        assert study_of(weighted(scoring, weight)).best_value == pytest.approx(1 / 4)


NO_WEIGHT = np.arange(200) >= 100  # one of two folds in time order


@pytest.mark.parametrize(
    ("zero", "kwargs", "where"),
    [
        (NO_WEIGHT, {"shuffle": False}, "all 60 weights of `sample_weight` are 0"),
        (NO_WEIGHT, {"cv": TimeSeriesSplit(3)}, "`sample_weight` of fold 2 are 0"),
    ],
)
def test_rows_to_score_without_any_weight_are_refused(zero: Any, kwargs: Any, where: str) -> None:
    with pytest.raises(ValueError, match=f"`weighted_score=True` needs a weight above 0.*{where}"):
        weighted("accuracy", 1.0 - zero, **kwargs)


def test_weights_that_are_all_0_are_refused_if_they_are_used() -> None:
    def weighed(training: Any, scoring: Any, **kwargs: Any) -> TrainingSizeObjective:
        X, y = numbered(200)
        weights = {"sample_weight": training, "sample_weight_valid": scoring}
        return TrainingSizeObjective(witness, X, y, X_valid=X, y_valid=y, **weights, **kwargs)

    ones, zeros = np.ones(200), np.zeros(200)
    with pytest.raises(ValueError, match="`sample_weight` must have a weight above 0"):
        weighed(zeros, ones)
    assert weighed(ones, zeros).n_validation == 200
    with pytest.raises(ValueError, match="all 200 weights of `sample_weight_valid` are 0"):
        weighed(ones, zeros, weighted_score=True)


@pytest.mark.parametrize("scoring", ["r2", "explained_variance"])
def test_r2_is_refused_where_all_targets_to_score_are_equal(scoring: Any) -> None:
    """It would be 1 or 0, whatever is predicted: a table with few amounts above 0."""
    y = np.zeros(N)
    y[TURN[:3]] = 5.0
    with pytest.raises(ValueError, match=r"needs different values of `y` to score, but all .* 0"):
        TrainingSizeObjective(
            lambda trial: DecisionTreeRegressor(), X, y, scoring=scoring, shuffle=False
        )
    TrainingSizeObjective(
        lambda trial: DecisionTreeRegressor(), X, y, scoring="neg_mean_absolute_error"
    )
