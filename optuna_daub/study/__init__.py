"""The study layer: Optuna's trials as a pool of learners, and the policy's decisions as trials."""

from optuna_daub.study.abc_pruner import ABCPruner as ABCPruner
from optuna_daub.study.daub_pruner import DAUBPruner as DAUBPruner
from optuna_daub.study.one_row import one_row_per_learner as one_row_per_learner
from optuna_daub.study.plan import Plan as Plan
from optuna_daub.study.plan import PlannedSize as PlannedSize
from optuna_daub.study.plan import plan as plan
from optuna_daub.study.pruner import AllocationPruner as AllocationPruner
from optuna_daub.study.reporting import report as report
from optuna_daub.study.reporting import training_sizes as training_sizes
from optuna_daub.study.results import Allocation as Allocation
from optuna_daub.study.results import BestLearner as BestLearner
from optuna_daub.study.results import LearnerCurve as LearnerCurve
from optuna_daub.study.results import allocations as allocations
from optuna_daub.study.results import best_learner as best_learner
from optuna_daub.study.results import learning_curves as learning_curves
from optuna_daub.study.sampler import DataAllocationSampler as DataAllocationSampler
from optuna_daub.study.what_if import Outcome as Outcome
from optuna_daub.study.what_if import WhatIf as WhatIf
from optuna_daub.study.what_if import what_if as what_if
