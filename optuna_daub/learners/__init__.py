"""Estimators of the boosting papers in scikit-learn's interface, and sequential validation."""

from optuna_daub.learners.adaptive import (
    AdaptiveSamplingBoostClassifier as AdaptiveSamplingBoostClassifier,
)
from optuna_daub.learners.budgeted import BudgetedAdaBoostClassifier as BudgetedAdaBoostClassifier
from optuna_daub.learners.budgeted import SpeedBoostClassifier as SpeedBoostClassifier
from optuna_daub.learners.sequential import sequential_score as sequential_score
from optuna_daub.learners.vote_sampling import AdaBoostRSClassifier as AdaBoostRSClassifier
