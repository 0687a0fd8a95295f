"""A table in, a fitted model out: `fit(table, target)` and `python -m optuna_daub fit`."""

from optuna_daub.tabular.fitting import fit as fit
from optuna_daub.tabular.model import TabularModel as TabularModel
from optuna_daub.tabular.table import TableError as TableError


__all__ = ["TableError", "TabularModel", "fit"]
