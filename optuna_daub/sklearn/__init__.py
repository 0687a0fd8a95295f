"""scikit-learn's interface: a search with cross-validation that allocates training data."""

from optuna_daub.sklearn.search_cv import DataAllocationSearchCV as DataAllocationSearchCV


__all__ = ["DataAllocationSearchCV"]
