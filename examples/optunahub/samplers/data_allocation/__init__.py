"""Training-set size as the resource: a sampler and a pruner that suspend and resume learners."""

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes


__all__ = [
    "DataAllocationSampler",
    "DAUBPruner",
    "ABCPruner",
    "TrainingSizeObjective",
    "training_sizes",
    "report",
    "learning_curves",
    "best_learner",
]
