"""Search spaces for models of tables, with ranges by number of rows, and starting points.

Each space is a function from an Optuna trial and a number of rows to an unfitted estimator in
scikit-learn's interface. `first_points` returns points to enqueue: cheap ones first, then good
ones."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any
from typing import Literal

from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.trial import BaseTrial


__all__ = [
    "extra_trees",
    "first_points",
    "lightgbm",
    "linear",
    "neighbours",
    "random_forest",
    "tabular",
    "xgboost",
]

Task = Literal["classification", "regression"]
Point = dict[str, Any]

MAX_TREES = 2048
"""Largest number of boosted trees; FLAML (https://github.com/microsoft/FLAML) allows 32,768."""

MAX_LEAVES = 1024
"""Largest number of leaves of a boosted tree."""

MAX_LEAVES_OF_FORESTS = 32_768
"""Largest number of leaves of a forest's tree, as in FLAML."""

MAX_TREES_OF_FORESTS = 512
"""Largest number of trees of a forest: more change the score by less than its standard error."""

MAX_NEIGHBOURS = 100
"""Largest number of neighbours in a prediction."""

MAX_ROWS_OF_NEIGHBOURS = 50_000
"""Number of rows up to which `tabular` tries nearest neighbours: a prediction reads all rows."""

_SOME: Point = {"rate": 0.1, "rows": 1.0, "columns": 1.0, "l1": 2**-10, "l2": 1.0}
_FORESTS: tuple[Point, ...] = (
    {"forest_trees": 4, "forest_leaves": 16, "features": 0.5},
    {"forest_trees": 100, "forest_leaves": 2000, "features": 0.5},
)

# The points after the second of each kind are figures of FLAML's zero-shot portfolios (Microsoft,
# MIT licence, https://github.com/microsoft/FLAML/tree/main/flaml/default), rounded, with fewer
# trees. They were tuned on tables of the AutoML benchmark, adult and covertype among them.
_FIRST: Mapping[str, tuple[Point, ...]] = MappingProxyType(
    {
        "linear": ({"strength": 1.0},),
        "neighbours": ({"neighbours": 5, "weights": "distance"},),
        "lightgbm": (
            {**_SOME, "trees": 4, "leaves": 4, "leaf_rows": 20},
            {**_SOME, "trees": 100, "leaves": 31, "leaf_rows": 20},
            {
                "trees": 141,
                "leaves": 139,
                "leaf_rows": 8,
                "rate": 0.048,
                "rows": 1.0,
                "columns": 0.53,
                "l1": 0.0029,
                "l2": 0.024,
            },
            {
                "trees": 1009,
                "leaves": 42,
                "leaf_rows": 12,
                "rate": 0.022,
                "rows": 1.0,
                "columns": 0.74,
                "l1": 0.0036,
                "l2": 12.1,
            },
        ),
        "xgboost": (
            {**_SOME, "trees": 4, "leaves": 4, "leaf_weight": 1.0},
            {**_SOME, "trees": 100, "leaves": 31, "leaf_weight": 1.0},
            {
                "trees": 392,
                "leaves": 46,
                "leaf_weight": 0.21,
                "rate": 0.08,
                "rows": 0.65,
                "columns": 0.42,
                "l1": 0.029,
                "l2": 4.6,
            },
            {
                "trees": 512,
                "leaves": 1024,
                "leaf_weight": 0.0046,
                "rate": 0.053,
                "rows": 0.87,
                "columns": 0.95,
                "l1": 0.0037,
                "l2": 2.2,
            },
        ),
        "random_forest": (
            *_FORESTS,
            {"forest_trees": 500, "forest_leaves": 7499, "features": 0.18},
        ),
        "extra_trees": (
            *_FORESTS,
            {"forest_trees": 500, "forest_leaves": 9287, "features": 0.6},
        ),
    }
)


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
        task: kind of targets: classes or amounts.
        jobs: number of threads of each training.
        seed: seed of the model.
        categories: not used; every space has the same arguments.

    Raises:
        ImportError: if LightGBM is not installed, with the line that installs it.
        ValueError: if `task` is no task, or `n_rows` is not at least 1.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> type(lightgbm(trial, 1000, task="regression")).__name__
    'LGBMRegressor'
    >>> trial.distributions["leaves"].high
    250
    """
    del categories
    ask = _Ask(trial, n_rows, task)
    options = ask.boosted(seed) | {"n_jobs": jobs}
    options |= {"num_leaves": ask.whole("leaves", 4, _limits(n_rows)["leaves"])}
    options |= {"min_child_samples": ask.whole("leaf_rows", 2, 128)}
    package = _imported("lightgbm")
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
    ask = _Ask(trial, n_rows, task)
    options = ask.boosted(seed) | {"n_jobs": jobs}
    options |= {"max_leaves": ask.whole("leaves", 4, _limits(n_rows)["leaves"])}
    options |= {"min_child_weight": ask.real("leaf_weight", 0.001, 128.0)}
    package = _imported("xgboost")
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

    ask = _Ask(trial, n_rows, task)
    kinds = ensemble.RandomForestClassifier, ensemble.RandomForestRegressor
    return kinds[not ask.has_classes](n_jobs=jobs, **ask.forest(seed))


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

    ask = _Ask(trial, n_rows, task)
    kinds = ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor
    return kinds[not ask.has_classes](n_jobs=jobs, **ask.forest(seed))


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
        task: kind of targets: classes or amounts.
        jobs: not used: both models are solved in one thread.
        seed: not used: both models have one solution.
        categories: positions of the columns of `X` that hold codes of categories. Each becomes a
            column for each of its 50 most frequent codes.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> linear(trial, 1000, task="regression").steps[-1][0]
    'ridge'
    """
    del jobs, seed
    from sklearn.linear_model import LogisticRegression
    from sklearn.linear_model import Ridge

    ask = _Ask(trial, n_rows, task)
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

    The study's parameters are neighbours and weights. There are at most n_rows / 100 neighbours,
    so small training sizes have enough rows. Arguments and errors are those of `linear`; `jobs`
    is the number of threads of each prediction.

    >>> import optuna
    >>> trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    >>> neighbours(trial, 1000).steps[-1][0]
    'kneighborsclassifier'
    """
    del seed
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neighbors import KNeighborsRegressor

    ask = _Ask(trial, n_rows, task)
    asked = ask.whole("neighbours", 1, _limits(n_rows)["neighbours"])
    weights = ask.word("weights", ["uniform", "distance"])
    kind = KNeighborsClassifier if ask.has_classes else KNeighborsRegressor
    return _scaled(kind(asked, weights=weights, n_jobs=jobs), categories)


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
"""Spaces of all kinds of models that `tabular` tries, the cheapest to start with first."""


def tabular(
    trial: BaseTrial,
    n_rows: int,
    *,
    task: Task = "classification",
    among: Sequence[str] | None = None,
    jobs: int = 1,
    seed: int = 0,
    categories: Sequence[int] = (),
) -> Any:
    """Return an unfitted model of one of several kinds.

    The study's parameters are model and those of the chosen kind. Boosted models share their
    parameters, and so do forests.

    Args:
        trial: trial that suggests the parameters.
        n_rows: number of rows to train on, at least 1.
        task: kind of targets: classes or amounts.
        among: names of spaces of this module. None: all, except neighbours if there are more than
            50,000 rows.
        jobs: number of threads of each training.
        seed: seed of the models.
        categories: positions of the columns that hold codes, for linear models and neighbours.

    Raises:
        ImportError: if the package of the chosen kind is not installed.
        ValueError: if `among` is empty or has an unknown name.

    >>> import optuna
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.enqueue_trial(first_points("tabular", 1000)[0])
    >>> type(tabular(study.ask(), 1000)).__name__
    'RandomForestClassifier'
    """
    names = _among(n_rows, among)
    name = _Ask(trial, n_rows, task).word("model", names)
    return SPACES[name](trial, n_rows, task=task, jobs=jobs, seed=seed, categories=categories)


def first_points(
    space: str, n_rows: int, *, task: Task = "classification", among: Sequence[str] | None = None
) -> list[Point]:
    """Return points to enqueue before a search: the cheapest first, then good ones.

    Numbers of trees, leaves and neighbours are cut to the ranges for `n_rows` rows.

    Args:
        space: name of a space of this module.
        n_rows: the space's argument.
        task: the space's argument.
        among: the argument of `tabular`.

    Returns:
        Parameters for `study.enqueue_trial`, each point once.

    >>> [point["model"] for point in first_points("tabular", 60, among=["lightgbm", "linear"])]
    ['lightgbm', 'linear', 'lightgbm', 'lightgbm', 'lightgbm']
    >>> first_points("lightgbm", 60)[1]["trees"]
    60
    """
    _Ask.check(n_rows, task)
    limits = _limits(n_rows)
    if space != "tabular":
        if space not in SPACES:
            raise ValueError(f"`space` must be one of {[*SPACES, 'tabular']}, but got {space!r}.")
        points = [
            {name: min(value, limits.get(name, value)) for name, value in point.items()}
            for point in _FIRST[space]
        ]
        return [point for at, point in enumerate(points) if point not in points[:at]]
    names = _among(n_rows, among)
    of_each = {name: first_points(name, n_rows, task=task) for name in SPACES if name in names}
    rounds = range(max(map(len, of_each.values())))
    return [
        {"model": name, **points[at]}
        for at in rounds
        for name, points in of_each.items()
        if at < len(points)
    ]


class _Ask:
    """Suggestions of a trial by kind of range; a parameter it has already keeps its range."""

    def __init__(self, trial: BaseTrial, n_rows: int, task: Task) -> None:
        self.check(n_rows, task)
        self._trial, self._known, self._n_rows = trial, trial.distributions, n_rows
        self.has_classes = task == "classification"

    @staticmethod
    def check(n_rows: int, task: str) -> None:
        if task not in ("classification", "regression"):
            raise ValueError(f'`task` must be "classification" or "regression", but got {task!r}.')
        if not n_rows >= 1:
            raise ValueError(f"`n_rows` must be at least 1, but got {n_rows!r}.")

    def whole(self, name: str, low: int, high: int) -> int:
        match self._known.get(name):
            case IntDistribution() as range_:
                low, high = range_.low, range_.high
        return self._trial.suggest_int(name, low, high, log=True)

    def real(self, name: str, low: float, high: float) -> float:
        match self._known.get(name):
            case FloatDistribution() as range_:
                low, high = range_.low, range_.high
        return self._trial.suggest_float(name, low, high, log=True)

    def word(self, name: str, words: Sequence[str]) -> str:
        match self._known.get(name):
            case CategoricalDistribution() as range_:
                words = [str(choice) for choice in range_.choices]
        return str(self._trial.suggest_categorical(name, [*words]))

    def boosted(self, seed: int) -> dict[str, Any]:
        """Return the parameters that LightGBM and XGBoost share."""
        return {
            "n_estimators": self.whole("trees", 4, _limits(self._n_rows)["trees"]),
            "learning_rate": self.real("rate", 2**-10, 1.0),
            "subsample": self.real("rows", 0.1, 1.0),
            "colsample_bytree": self.real("columns", 0.1, 1.0),
            "reg_alpha": self.real("l1", 2**-10, 2**10),
            "reg_lambda": self.real("l2", 2**-10, 2**10),
            "random_state": seed,
        }

    def forest(self, seed: int) -> dict[str, Any]:
        limits = _limits(self._n_rows)
        return {
            "n_estimators": self.whole("forest_trees", 4, limits["forest_trees"]),
            "max_leaf_nodes": self.whole("forest_leaves", 4, limits["forest_leaves"]),
            "max_features": self.real("features", 0.1, 1.0),
            "random_state": seed,
        }


def _limits(n_rows: int) -> dict[str, int]:
    """Return the upper ends of the ranges that grow with the rows.

    A boosted tree has at most n_rows / 4 leaves, a forest's tree at most n_rows.
    """
    return {
        "trees": min(max(n_rows, 8), MAX_TREES),
        "leaves": min(max(n_rows // 4, 8), MAX_LEAVES),
        "forest_trees": min(max(n_rows, 8), MAX_TREES_OF_FORESTS),
        "forest_leaves": min(max(n_rows, 8), MAX_LEAVES_OF_FORESTS),
        "neighbours": min(max(n_rows // 100, 2), MAX_NEIGHBOURS),
    }


def _among(n_rows: int, among: Sequence[str] | None) -> list[str]:
    if among is None:
        return [n for n in SPACES if n != "neighbours" or n_rows <= MAX_ROWS_OF_NEIGHBOURS]
    if strangers := [name for name in among if name not in SPACES]:
        raise ValueError(f"`among` must have names of {[*SPACES]}, but got {strangers[0]!r}.")
    if isinstance(among, str) or not among:
        raise ValueError(f"`among` must be a list of names of {[*SPACES]}, but got {among!r}.")
    return [*among]


def _scaled(model: Any, categories: Sequence[int]) -> Any:
    """Return the model in a pipeline that fills gaps, scales, and encodes categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.preprocessing import StandardScaler

    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    if not categories:
        return make_pipeline(numbers, model)
    codes = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50)
    prepared = make_column_transformer((codes, [*categories]), remainder=numbers)
    return make_pipeline(prepared, model)


def _imported(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"This space needs {package}, which is not installed: "
            "pip install 'optuna-daub[boosters]'"
        ) from error
