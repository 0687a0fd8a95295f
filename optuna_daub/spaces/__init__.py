"""Search spaces for models of tables, and points to start with.

Ranges depend on the number of rows. Each space is a function from an Optuna trial and a number of
rows to an unfitted estimator in scikit-learn's interface. `first_points` returns points to
enqueue: cheap ones first, then good ones.
"""

from optuna_daub.spaces.mixed import Point as Point
from optuna_daub.spaces.mixed import first_points as first_points
from optuna_daub.spaces.mixed import tabular as tabular
from optuna_daub.spaces.models import SPACES as SPACES
from optuna_daub.spaces.models import extra_trees as extra_trees
from optuna_daub.spaces.models import lightgbm as lightgbm
from optuna_daub.spaces.models import linear as linear
from optuna_daub.spaces.models import neighbours as neighbours
from optuna_daub.spaces.models import random_forest as random_forest
from optuna_daub.spaces.models import xgboost as xgboost
from optuna_daub.spaces.ranges import Task as Task


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
