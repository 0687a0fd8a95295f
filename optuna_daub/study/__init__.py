"""Translation between Optuna's trials and the learning curves of the core."""

from optuna_daub.study.abc_pruner import ABCPruner as ABCPruner
from optuna_daub.study.daub_pruner import DAUBPruner as DAUBPruner
from optuna_daub.study.objective import TrainingSizeObjective as TrainingSizeObjective
from optuna_daub.study.pruners import AllocationPruner as AllocationPruner
from optuna_daub.study.results import Allocation as Allocation
from optuna_daub.study.results import BestLearner as BestLearner
from optuna_daub.study.results import LearnerCurve as LearnerCurve
from optuna_daub.study.results import allocations as allocations
from optuna_daub.study.results import best_learner as best_learner
from optuna_daub.study.results import learning_curves as learning_curves
from optuna_daub.study.sampler import DataAllocationSampler as DataAllocationSampler
from optuna_daub.study.training import report as report
from optuna_daub.study.training import training_sizes as training_sizes
