"""Allocation of training data as pure functions of learning curves; loads no Optuna.

The symbols of the papers and their names here:

======================  ============================  ==========================================
paper                   name                          meaning, unit and range
======================  ============================  ==========================================
C_i                     learner                       one point of a search space; an int id
n, abs(S_tr)            size                          training examples, int >= 1
b, N, r (ABC: c)        min_resource, max_resource,   smallest and full size; their geometric
                        reduction_factor              ratio, > 1
f^V[n]                  score                         validation score, larger is better
f^T[n]                  training_score                the same on the examples trained on
abs(S_te)               n_validation                  validation examples, int >= 1
u_i, l_i                upper, lower                  ends of the interval of the score at N
T_i                     seconds                       time of a probe, seconds
epsilon                 epsilon                       accuracy tolerance, in (0, 1)
delta                   delta                         probability of failure, in (0, 1)
S                       the sequence of `Extend`      allocations (i, n) in order
======================  ============================  ==========================================
"""

from optuna_daub.core.bounds.calibrated import CalibratedBound as CalibratedBound
from optuna_daub.core.bounds.confidence import confidence_interval as confidence_interval
from optuna_daub.core.bounds.interval import Interval as Interval
from optuna_daub.core.bounds.projection import ProjectedBound as ProjectedBound
from optuna_daub.core.bounds.projection import projected_bound as projected_bound
from optuna_daub.core.curve import LearningCurve as LearningCurve
from optuna_daub.core.curve import Observation as Observation
from optuna_daub.core.curves import Curves as Curves
from optuna_daub.core.policies import ABC as ABC
from optuna_daub.core.policies import DAUB as DAUB
from optuna_daub.core.policies import BestGuess as BestGuess
from optuna_daub.core.policies import Decision as Decision
from optuna_daub.core.policies import Drop as Drop
from optuna_daub.core.policies import Extend as Extend
from optuna_daub.core.policies import Finish as Finish
from optuna_daub.core.policies import Policy as Policy
from optuna_daub.core.policies import Reason as Reason
from optuna_daub.core.policies import SuccessiveHalving as SuccessiveHalving
from optuna_daub.core.policies import Wait as Wait
from optuna_daub.core.policies import gradient_ci as gradient_ci
from optuna_daub.core.policies import growth_exponent as growth_exponent
from optuna_daub.core.policies import round_robin as round_robin
from optuna_daub.core.policies import step_for_growth as step_for_growth
from optuna_daub.core.policies import ucb as ucb
from optuna_daub.core.replay import replay as replay
from optuna_daub.core.sizes import PAPER_SIZES as PAPER_SIZES
from optuna_daub.core.sizes import anchored_sizes as anchored_sizes
from optuna_daub.core.sizes import geometric_sizes as geometric_sizes
from optuna_daub.core.steps import AdaptiveStep as AdaptiveStep
