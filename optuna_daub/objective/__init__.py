"""The ready-made objective: estimators trained on growing nested subsets of a table."""

from optuna_daub.objective.data import Rows as Rows
from optuna_daub.objective.training_size import TrainingSizeObjective as TrainingSizeObjective
