"""Spaces: scikit-learn's distributions and lists as Optuna's distributions, and back."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import optuna
import pytest
import scipy.stats
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.trial import FixedTrial
from sklearn.linear_model import Ridge

from optuna_daub.sklearn.space import TAIL
from optuna_daub.sklearn.space import checked_function
from optuna_daub.sklearn.space import checked_space


ONE_TWO_FOUR = CategoricalDistribution([1, 2, 4])
HALVES = CategoricalDistribution([0.5, 1.5])


def trials_of_geom(quantile: float) -> int:
    """Solve 1 - (1 - p)^n = quantile for p = 1e-8: too many numbers for a list of them."""
    return math.ceil(math.log1p(-quantile) / math.log1p(-1e-8))


@pytest.mark.parametrize(
    ("given", "distribution"),
    [
        (scipy.stats.randint(2, 9), IntDistribution(2, 8)),
        (scipy.stats.randint(2, 9, loc=1), IntDistribution(3, 9)),
        (scipy.stats.uniform(-1, 3), FloatDistribution(-1, 2)),
        (scipy.stats.uniform(), FloatDistribution(0, 1)),
        (scipy.stats.loguniform(1e-3, 10), FloatDistribution(1e-3, 10, log=True)),
        (scipy.stats.reciprocal(1, 4, scale=2), FloatDistribution(2, 8, log=True)),
        (scipy.stats.uniform, FloatDistribution(0, 1)),
        (scipy.stats.binom(4, 0.5, loc=1), IntDistribution(1, 5)),
        (scipy.stats.poisson(0.1), IntDistribution(0, 2)),
        (scipy.stats.geom(0.3), IntDistribution(1, 20)),
        (scipy.stats.rv_discrete(values=([1, 2, 4], [0.2, 0.3, 0.5])), ONE_TWO_FOUR),
        (scipy.stats.rv_discrete(values=([0, 1, 3], [0.2, 0.3, 0.5]))(loc=1), ONE_TWO_FOUR),
        (scipy.stats.rv_discrete(values=([0, 1, 2, 3, 4], [0, 0.5, 0.2, 0, 0.3])), ONE_TWO_FOUR),
        (scipy.stats.rv_discrete(values=([0.5, 1.5], [0.4, 0.6])), HALVES),
        (scipy.stats.rv_discrete(values=([0, 1], [0.4, 0.6]))(loc=0.5), HALVES),
        (scipy.stats.rv_discrete(values=([3, 4], [0.4, 0.6])), IntDistribution(3, 4)),
        (scipy.stats.geom(1e-8), IntDistribution(*map(trials_of_geom, (TAIL, 1 - TAIL)))),
        (["a", None, 3], CategoricalDistribution(["a", None, 3])),
        ({"b": 2, "a": 1}.values(), CategoricalDistribution([2, 1])),
        ((True, False), CategoricalDistribution([True, False])),
        (range(3), CategoricalDistribution([0, 1, 2])),
        (np.array([0.5, 2.0]), CategoricalDistribution([0.5, 2.0])),
        (IntDistribution(1, 9, log=True), IntDistribution(1, 9, log=True)),
        (FloatDistribution(0, 1, step=0.25), FloatDistribution(0, 1, step=0.25)),
        (CategoricalDistribution(["x", "y"]), CategoricalDistribution(["x", "y"])),
    ],
)
def test_what_optuna_has_is_searched_as_that(given: Any, distribution: BaseDistribution) -> None:
    space = checked_space({"p": given})
    assert space.sets[0][0].distribution == distribution
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    value = space(trial)["p"]
    assert value == trial.params["p"]
    assert distribution._contains(distribution.to_internal_repr(value))


@pytest.mark.parametrize(
    "given",
    [
        scipy.stats.norm(3, 2),
        scipy.stats.expon(scale=10),
        scipy.stats.loguniform(1, 4, loc=1),
        scipy.stats.randint(1, 5, loc=0.5),
        scipy.stats.poisson(3, loc=0.5),
    ],
)
def test_others_are_searched_by_their_quantiles(given: Any) -> None:
    space = checked_space({"p": given})
    values = [space(FixedTrial({"p (quantile)": q}))["p"] for q in (TAIL, 0.5, 1 - TAIL)]
    assert values == [given.ppf(TAIL), given.median(), given.ppf(1 - TAIL)]
    low, high = given.support()
    assert all(low <= value <= high for value in values)
    assert all(type(value) in (int, float) for value in values)


def test_estimators_functions_and_equal_values_are_chosen_by_place() -> None:
    values = [Ridge(), None, len, (1, 2), 1, True]
    space = checked_space({"p": values})
    (parameter,) = space.sets[0]
    assert isinstance(parameter.distribution, CategoricalDistribution)
    names = parameter.distribution.choices
    assert names[0] == "Ridge 0"
    assert [space(FixedTrial({"p": name}))["p"] for name in names] == values


def test_of_several_dicts_a_candidate_takes_one() -> None:
    space = checked_space(
        [
            {"kernel": ["rbf"], "C": scipy.stats.loguniform(1, 9), "shared": [1, 2]},
            {"kernel": ["poly"], "C": scipy.stats.uniform(1, 9), "shared": [1, 2]},
        ]
    )
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    kernels = set()
    for _ in range(20):
        trial = study.ask()
        params = space(trial)
        place = trial.params["param_distributions"]
        assert params.keys() == {"kernel", "C", "shared"}
        assert params["kernel"] == ["rbf", "poly"][place]
        assert params["C"] == trial.params[f"C [{place}]"]
        assert params["shared"] == trial.params["shared"]
        study.tell(trial, 0.0)
        kernels.add(params["kernel"])
    assert kernels == {"rbf", "poly"}


@pytest.mark.parametrize(
    ("given", "n_points"),
    [
        ({}, 1),
        ({"a": [1, 2], "b": scipy.stats.randint(0, 3)}, 6),
        ([{"a": [1, 2]}, {"b": IntDistribution(0, 8, step=4)}], 5),
        ({"a": [1], "b": FloatDistribution(2.0, 2.0)}, 1),
        ({"a": [1, 2], "b": scipy.stats.uniform()}, float("inf")),
    ],
)
def test_points_are_counted(given: Any, n_points: float) -> None:
    assert checked_space(given).n_points == n_points


class OnlyDrawn:
    def rvs(self, random_state: Any = None) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, TypeError, "must be a dict from parameter names"),
        ([3], TypeError, "must be a dict from parameter names"),
        ([], ValueError, "must not be an empty list"),
        ({"a": []}, ValueError, "at least one value, but 'a' has an empty list"),
        ({"a": 3}, TypeError, "a distribution or a list of values, but 'a' has 3"),
        ({"a": "rbf"}, TypeError, "a distribution or a list of values, but 'a' has 'rbf'"),
        ({"a": {"rbf", "poly"}}, TypeError, "a list of values, but 'a' has {"),
        ({"a": {0: 1, 1: 2}}, TypeError, "list of values, but 'a' has {0: 1, 1: 2}. Pass"),
        ({"a": iter([1, 2])}, TypeError, "a list of values, but 'a' has <list_i"),
        ({"a": b"rbf"}, TypeError, "a list of values, but 'a' has b'rbf'"),
        ({"a": OnlyDrawn()}, TypeError, "must have `ppf`"),
        ({"a": scipy.stats.uniform([0, 1], [1, 1])}, ValueError, "one at a time, but 'a' has"),
    ],
)
def test_what_is_no_space_is_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        checked_space(given)


def test_a_function_must_return_parameters() -> None:
    with pytest.raises(TypeError, match=r"must return a dict .* but returned Ridge"):
        checked_function(lambda trial: Ridge())(FixedTrial({}))


def test_a_function_may_return_one_dict_at_each_call() -> None:
    params: dict[str, Any] = {"alpha": 0.0}

    def given(trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        params["alpha"] = trial.suggest_float("alpha", 0, 9)
        return params

    space = checked_function(given)
    assert [space(FixedTrial({"alpha": each})) for each in (1, 2)] == [{"alpha": 1}, {"alpha": 2}]
