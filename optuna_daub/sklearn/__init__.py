"""A search in scikit-learn's interface that allocates training data."""

from optuna_daub.sklearn.search_cv import DataAllocationSearchCV as DataAllocationSearchCV


__all__ = ["DataAllocationSearchCV"]
