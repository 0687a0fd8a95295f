"""Spaces of the kinds of models: functions from a trial and a number of rows to an estimator."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from optuna.trial import BaseTrial

from optuna_daub.core.checks import listed
from optuna_daub.core.checks import whole_number
from optuna_daub.core.optional import imported
from optuna_daub.spaces.ranges import Ask
from optuna_daub.spaces.ranges import Task


def lightgbm(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted LightGBM model.

    The study's parameters are trees, leaves, leaf_rows, rate, rows, columns, l1 and l2.

    Args:
        trial: trial that suggests the parameters.
        n_rows: number of rows to train on, at least 1. The largest numbers of trees and leaves
            grow with it. A trial that has a parameter already keeps its range, so the function
            can be the `build` of `TrainingSizeObjective`, which passes each size.
        task: "classification" or "regression".
        jobs: number of threads of each training.
        seed: seed of the model.
        categories: not used; every space has the same arguments.

    Raises:
        ImportError: if LightGBM is not installed, with the line that installs it.
        ValueError: if an argument breaks its rule, or the trial has a parameter of one of these
            names with another kind of range.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> type(lightgbm(trial, 1000, task="regression")).__name__
    'LGBMRegressor'
    >>> trial.distributions["leaves"].high
    250
    """
    del categories
    ask = Ask(trial, n_rows, task, jobs, seed)
    options = ask.boosted("num_leaves")
    options["min_child_samples"] = ask.whole("leaf_rows", 2, 128)
    options["subsample"] = max(options["subsample"], 1 / n_rows)  # LightGBM needs a row in a bag
    package = imported("lightgbm", extra="boosters")
    kind = package.LGBMClassifier if ask.has_classes else package.LGBMRegressor
    return kind(subsample_freq=1, verbose=-1, **options)


def xgboost(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted XGBoost model, whose classes must be 0, 1, 2, ...

    The study's parameters are trees, leaves, leaf_weight, rate, rows, columns, l1 and l2.
    Arguments and errors are those of `lightgbm`.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> type(xgboost(trial, 1000)).__name__
    'XGBClassifier'
    """
    del categories
    ask = Ask(trial, n_rows, task, jobs, seed)
    options = ask.boosted("max_leaves")
    options["min_child_weight"] = ask.real("leaf_weight", 0.001, 128.0)
    package = imported("xgboost", extra="boosters")
    kind = package.XGBClassifier if ask.has_classes else package.XGBRegressor
    return kind(tree_method="hist", grow_policy="lossguide", max_depth=0, **options)


def random_forest(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted random forest of scikit-learn.

    The study's parameters are forest_trees, forest_leaves and features. Arguments and errors are
    those of `lightgbm`.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> type(random_forest(trial, 1000)).__name__
    'RandomForestClassifier'
    """
    del categories
    from sklearn import ensemble

    ask = Ask(trial, n_rows, task, jobs, seed)
    kinds = ensemble.RandomForestClassifier, ensemble.RandomForestRegressor
    return kinds[not ask.has_classes](**ask.forest())


def extra_trees(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted forest of extremely randomized trees of scikit-learn.

    The study's parameters are forest_trees, forest_leaves and features. Arguments and errors are
    those of `lightgbm`.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> type(extra_trees(trial, 1000)).__name__
    'ExtraTreesClassifier'
    """
    del categories
    from sklearn import ensemble

    ask = Ask(trial, n_rows, task, jobs, seed)
    kinds = ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor
    return kinds[not ask.has_classes](**ask.forest())


def linear(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted logistic or ridge regression behind imputation and scaling.

    The study's parameter is strength, the inverse of regularization: small values shrink more.
    Arguments and errors are those of `lightgbm`, except `categories`.

    Args:
        trial: trial that suggests the parameter.
        n_rows: number of rows to train on, at least 1.
        task: "classification" or "regression".
        jobs: not used: neither model has such an argument. Linear algebra takes a thread for each
            core, unless the training is within `threadpoolctl.threadpool_limits(jobs)`.
        seed: not used: both models have one solution.
        categories: positions of the columns of `X` that hold codes of categories. Each code
            becomes a column; of more than 50, the 49 most frequent do, and the others share one.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> linear(trial, 1000, task="regression").steps[-1][0]
    'ridge'
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.linear_model import Ridge

    ask = Ask(trial, n_rows, task, jobs, seed)
    strength = ask.real("strength", 2**-5, 2**15)
    if ask.has_classes:
        return _scaled(LogisticRegression(C=strength, max_iter=200, tol=1e-3), categories)
    return _scaled(Ridge(1 / strength), categories)


def neighbours(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return unfitted nearest neighbours behind imputation and scaling.

    The study's parameters are neighbours and weights. There are at most n_rows / 100 neighbours
    (at least 2 are allowed), so small training sizes have enough rows. Arguments and errors are
    those of `linear`; `jobs` is the number of threads of each prediction, except of dense tables:
    see `jobs` of `linear`.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> neighbours(trial, 1000).steps[-1][0]
    'kneighborsclassifier'
    """
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neighbors import KNeighborsRegressor

    ask = Ask(trial, n_rows, task, jobs, seed)
    asked = ask.whole("neighbours", 1, ask.most["neighbours"])
    weights = ask.word("weights", ["uniform", "distance"])
    kind = KNeighborsClassifier if ask.has_classes else KNeighborsRegressor
    return _scaled(kind(min(asked, n_rows), weights=weights, n_jobs=jobs), categories)


Space = Callable[..., Any]
SPACES: Mapping[str, Space] = MappingProxyType(
    {
        "random_forest": random_forest,
        "lightgbm": lightgbm,
        "xgboost": xgboost,
        "extra_trees": extra_trees,
        "linear": linear,
        "neighbours": neighbours,
    }
)
"""Spaces of all kinds of models that `tabular` tries. The cheapest to start with is first."""


def _scaled(model: Any, categories: Sequence[int]) -> Any:
    """Return the model in a pipeline that imputes, scales, and encodes categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from optuna_daub.spaces.scaling import Scaler

    columns = listed("categories", categories, "column numbers")
    for column in columns:
        whole_number("categories", column)
    imputer = SimpleImputer(keep_empty_features=True)
    numbers = Pipeline([("simpleimputer", imputer), ("standardscaler", Scaler())])
    if not columns:
        return make_pipeline(numbers, model).set_output(transform="default")
    codes = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50)
    prepared = make_column_transformer((codes, columns), remainder=numbers)
    # A user's `transform_output="pandas"` would refuse the sparse codes.
    return make_pipeline(prepared, model).set_output(transform="default")
