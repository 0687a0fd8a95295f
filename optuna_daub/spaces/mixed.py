"""A space of all kinds of models, and starting points of each space."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from optuna.trial import BaseTrial

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import listed
from optuna_daub.spaces.models import SPACES
from optuna_daub.spaces.ranges import Ask
from optuna_daub.spaces.ranges import Task
from optuna_daub.spaces.ranges import check
from optuna_daub.spaces.ranges import limits


Point = dict[str, Any]

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
            {"trees": 141, "leaves": 139, "leaf_rows": 8, "rate": 0.048,
             "rows": 1.0, "columns": 0.53, "l1": 0.0029, "l2": 0.024},
            {"trees": 1009, "leaves": 42, "leaf_rows": 12, "rate": 0.022,
             "rows": 1.0, "columns": 0.74, "l1": 0.0036, "l2": 12.1},
        ),
        "xgboost": (
            {**_SOME, "trees": 4, "leaves": 4, "leaf_weight": 1.0},
            {**_SOME, "trees": 100, "leaves": 31, "leaf_weight": 1.0},
            {"trees": 392, "leaves": 46, "leaf_weight": 0.21, "rate": 0.08,
             "rows": 0.65, "columns": 0.42, "l1": 0.029, "l2": 4.6},
            {"trees": 512, "leaves": 1024, "leaf_weight": 0.0046, "rate": 0.053,
             "rows": 0.87, "columns": 0.95, "l1": 0.0037, "l2": 2.2},
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
)  # fmt: skip


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

    The study has a parameter `model`, and the parameters of the chosen kind. Boosted models share
    their parameters, and so do forests.

    Args:
        trial: trial that suggests the parameters.
        n_rows: number of rows to train on, at least 1.
        task: "classification" or "regression".
        among: names of spaces of this module. None: all, except neighbours if there are more than
            50,000 rows.
        jobs: number of threads of each training.
        seed: seed of the models.
        categories: positions of the columns that hold codes, for linear models and neighbours.

    Raises:
        ImportError: if the package of the chosen kind is not installed.
        ValueError: if `among` is empty or has an unknown name, or as for `lightgbm`.

    >>> import optuna
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.enqueue_trial(first_points("tabular", 1000)[0])
    >>> type(tabular(study.ask(), 1000)).__name__
    'RandomForestClassifier'
    """
    ask = Ask(trial, n_rows, task, jobs, seed)
    name = ask.word("model", _among(n_rows, among), others=SPACES)
    return SPACES[name](trial, n_rows, task=task, jobs=jobs, seed=seed, categories=categories)


def first_points(
    space: str, n_rows: int, *, task: Task = "classification", among: Sequence[str] | None = None
) -> list[Point]:
    """Return points to enqueue before a search: the cheapest first, then good ones.

    Numbers of trees, leaves and neighbours are cut to the ranges for `n_rows` rows.

    Args:
        space: name of a space of this module.
        n_rows: number of rows to train on, as passed to the space.
        task: as passed to the space.
        among: names of spaces to choose from, as passed to `tabular`.

    Returns:
        Parameters for `study.enqueue_trial`, each point once.

    >>> [point["model"] for point in first_points("tabular", 60, among=["lightgbm", "linear"])]
    ['lightgbm', 'linear', 'lightgbm', 'lightgbm', 'lightgbm']
    >>> first_points("lightgbm", 60)[1]["trees"]
    60
    """
    check(n_rows, task)
    if not isinstance(space, str) or space not in {*SPACES, "tabular"}:
        raise ValueError(f"`space` must be one of {[*SPACES, 'tabular']}, but got {brief(space)}.")
    if space != "tabular":
        most = limits(n_rows)
        points = [
            {name: min(value, most.get(name, value)) for name, value in point.items()}
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


def _among(n_rows: int, among: Sequence[str] | None) -> list[str]:
    if among is None:
        return [n for n in SPACES if n != "neighbours" or n_rows <= MAX_ROWS_OF_NEIGHBOURS]
    return checked_kinds("among", among)


def checked_kinds(argument: str, kinds: Any) -> list[str]:
    """Return names of spaces, at least one; raise a ValueError if they are not."""
    of = f"names of {[*SPACES]}"
    names = listed(argument, kinds, of)
    for name in names:
        if not isinstance(name, str) or name not in SPACES:
            raise ValueError(f"`{argument}` must have {of}, but got {brief(name)}.")
    if not names:
        raise ValueError(f"`{argument}` must be a list of {of}, but got {brief(kinds)}.")
    return [str(name) for name in names]
