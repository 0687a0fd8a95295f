"""Everyday mistakes: one clear sentence, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from scipy.stats import loguniform
from scipy.stats import randint
from scipy.stats import uniform
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import sample_agreement
from optuna_daub.sklearn import DataAllocationSearchCV


X = np.random.default_rng(0).random((120, 3))
Y = np.arange(120) % 2
WEIGHTS = np.ones(30)


class Untrained(DecisionTreeClassifier):  # type: ignore[misc]
    """A classifier that must not be trained."""

    def fit(self, *_: Any, **__: Any) -> None:
        raise AssertionError("it was trained")


class UntrainedRidge(Ridge):  # type: ignore[misc]
    """A regressor that must not be trained."""

    fit = Untrained.fit


def search(
    space: Any = None, y: Any = Y, fit: Any = None, estimator: Any = None, **kwargs: Any
) -> Callable[[], Any]:
    """Return a search that is run when called."""
    space = {"max_depth": [1, 2]} if space is None else space
    estimator = estimator or Untrained()
    return lambda: DataAllocationSearchCV(estimator, space, **kwargs).fit(X, y, **(fit or {}))


def study(sampler: Any = None, pruner: Any = None) -> optuna.Study:
    return optuna.create_study(
        direction="maximize",
        sampler=sampler or DataAllocationSampler(n_learners=3),
        pruner=pruner or DAUBPruner(sizes=[20, 40, 60]),
    )


def objective(y: Any = Y, **kwargs: Any) -> TrainingSizeObjective:
    return TrainingSizeObjective(lambda trial: Untrained(), X, y, **kwargs)


def optimized(objective: Any, **kwargs: Any) -> None:
    study(**kwargs).optimize(objective, n_trials=5)


WORDS = np.where(Y == 1, "yes", "no")
GAPS = np.where(Y == 1, X[:, 0], np.nan)
RIDGE = {"space": {"alpha": [1, 2]}, "estimator": UntrainedRidge()}
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a parameter by number": (search({1: [1, 2]}), "names of the estimator's .* but got 1"),
    "several, one by number": (search([{"a": [1]}, {None: [1]}]), "names of the .* but got None"),
    "a range reversed": (search({"max_depth": randint(9, 1)}), r"`randint\(9, 1\)`, which has no"),
    "a width below 0": (search({"ccp_alpha": uniform(5, -1)}), r"`uniform\(5, -1\)`, which has"),
    "logarithms reversed": (search({"ccp_alpha": loguniform(9, 1)}), r"`loguniform\(9, 1\)`, whi"),
    "ends by name": (
        search({"max_depth": randint(low=9, high=1)}),
        r"`randint\(low=9, high=1\)`, which has none",
    ),
    "a family": (search({"max_depth": randint}), r"must have its arguments, .* `randint` without"),
    "another family": (search({"ccp_alpha": loguniform}), "`loguniform` without any"),
    "a metric": (search(scoring=accuracy_score), "`scoring` must be a scorer, .* `make_scorer"),
    "one metric": (
        search(scoring={"a": "f1", "b": f1_score}, refit="a"),
        "be a scorer, .*f1_",
    ),
    "the pair": (search(sampler=DataAllocationSampler()), "which the search makes itself"),
    "no targets": (search(y=None), "`y` must hold a target for each .* Untrained, but got None"),
    "amounts": (search(y=X[:, 0]), "must hold classes for Untrained, a classifier, .* such as 0"),
    "one class": (search(y=np.zeros(120)), "at least two classes or values, but all 120 are 0"),
    "one word": (search(y=["a"] * 120), "at least two classes or values, but all 120 are 'a'"),
    "one amount": (
        search({"alpha": [1, 2]}, y=np.full(120, 0.5), estimator=UntrainedRidge()),
        "at least two classes or values, but all 120 are 0.5",
    ),
    "gaps": (search(y=GAPS, **RIDGE), "a finite value for each row, but got nan"),
    "gaps of pandas": (
        search(y=pd.Series([None, 1, 0] * 40, dtype="Int64"), **RIDGE),
        "a finite value for each row, but got nan|a value for each row, but got <NA>",
    ),
    "gaps among words": (search(y=[*WORDS[1:], None]), "a value for each row, but got None"),
    "classes with a gap": (search(y=[np.nan, *Y[1:]]), "a finite value for each row, but got nan"),
    "an endless amount": (search(y=[np.inf, *X[1:, 0]], **RIDGE), "each row, but got inf"),
    "few weights": (search(fit={"sample_weight": WEIGHTS}), "one weight for each of the 120 rows"),
    "a word as weights": (search(fit={"sample_weight": "balanced"}), "but got 'balanced'"),
    "one weight": (search(fit={"sample_weight": 2.0}), "each of the 120 rows, but got 2.0"),
    "objective of one class": (lambda: objective(np.ones(120)), "but all 120 are 1"),
    "objective of one word": (lambda: objective(["a"] * 120), "but all 120 are 'a'"),
    "objective of one amount": (
        lambda: objective(np.full(120, 0.5), scoring="r2"),
        "but all 120 are 0.5",
    ),
    "r2 of words": (
        lambda: objective(WORDS, scoring="r2"),
        "must be able to score `y`, .* such as 'no' .* To predict classes",
    ),
    "rmse of words": (
        lambda: objective([*WORDS], scoring="neg_root_mean_squared_error"),
        "must be able to score `y`, .* such as 'no' .* To predict classes",
    ),
    "refit of a name": (lambda: objective().refit("study"), "must be a study .* got 'study'"),
    "refit of nothing": (lambda: objective().refit(None), "must be a study .* but got None"),
    "model of a trial": (lambda: objective().model(study().ask()), "`study` must be a study"),
    "called with nothing": (lambda: objective()(None), "`trial` must be the trial .* got None"),
    "called with a study": (lambda: objective()(study()), "`trial` must be the trial .* <optuna"),
    "a pair in a pair": (
        lambda: DataAllocationSampler(DataAllocationSampler()),
        "`base_sampler` must be a sampler of Optuna other than this one",
    ),
    "earlier names": (
        lambda: DataAllocationSampler(earlier=["sqlite:///a.db"]),
        r"`earlier` must be a list of studies, .* but got \['sqlite:///a.db'\]",
    ),
    "a pruner's class": (
        lambda: optimized(objective(), pruner=DAUBPruner),
        "must be one of optuna_daub, but got the class itself: pass `pruner=DAUBPruner",
    ),
    "another pruner": (
        lambda: optimized(objective(), pruner=optuna.pruners.NopPruner()),
        "must be one of optuna_daub, but got NopPruner: pass `pruner=DAUBPruner",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_before_anything_is_trained(mistake: str) -> None:
    make, said = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError), match=said) as raised:
        make()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("seed", ["x", -1, 0.5, None])
def test_the_seed_of_an_agreement_is_a_whole_number(seed: Any) -> None:
    made = study(optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(ValueError, match="`seed` must be "):
        sample_agreement(made, seed=seed)


def test_what_is_no_mistake_is_trained() -> None:
    for y in (Y, WORDS, Y.astype(float), Y == 1):
        model = DataAllocationSearchCV(
            DecisionTreeClassifier(), {"max_depth": randint(1, 4)}, n_candidates=2, cv=2
        ).fit(X, y, sample_weight=np.ones(120))
        assert len(model.classes_) == 2
    few = {"alpha": [1, 2]}
    assert (
        DataAllocationSearchCV(Ridge(), few, n_candidates=2, cv=2).fit(X, X[:, 0]).n_splits_ == 2
    )
