"""Rules for the allocation of training data, as pure functions of learning curves.

This layer does not load Optuna.

The symbols of the papers and their names here:

======================  ============================  ==========================================
paper                   name                          meaning, unit and range
======================  ============================  ==========================================
C_i                     learner                       one point of a search space; an int id
x_i                     parameters, row               that point, by name; as numbers in the order
                                                      of `Space.dimensions`
n, abs(S_tr)            size                          training examples, int >= 1
b, N, r (ABC: c)        min_resource, max_resource,   smallest and full size; their geometric
                        reduction_factor              ratio, > 1
d = log2(N / n)         doublings                     doublings from n to N, >= 0
f^V[n]                  score                         validation score, larger is better
f^T[n]                  training_score                score on the n examples trained on
abs(S_te)               n_validation                  validation examples, int >= 1
u_i, l_i                upper, lower                  ends of the interval of the score at N
y_i(d)                  forecast                      distribution of a score at a size
T_i                     seconds                       time of a training, seconds; `Seconds` is the
                                                      distribution of it
L                       price                         score per second at which a step just pays;
                                                      < 0 if it loses more than it gains
epsilon                 epsilon                       accuracy tolerance, in (0, 1)
delta                   delta                         probability of failure, in (0, 1)
S                       the sequence of `Extend`      allocations (i, n) in order
======================  ============================  ==========================================
"""

from optuna_daub.core.costs.cost_model import CostModel as CostModel
from optuna_daub.core.costs.cost_model import InExamples as InExamples
from optuna_daub.core.costs.cost_model import InSeconds as InSeconds
from optuna_daub.core.costs.cost_model import Seconds as Seconds
from optuna_daub.core.curve import LearningCurve as LearningCurve
from optuna_daub.core.curve import Observation as Observation
from optuna_daub.core.decision import Decision as Decision
from optuna_daub.core.decision import Drop as Drop
from optuna_daub.core.decision import Extend as Extend
from optuna_daub.core.decision import Finish as Finish
from optuna_daub.core.decision import Propose as Propose
from optuna_daub.core.decision import Ranking as Ranking
from optuna_daub.core.decision import Reason as Reason
from optuna_daub.core.decision import Wait as Wait
from optuna_daub.core.forecasts.by_process import Process as Process
from optuna_daub.core.forecasts.forecast import Forecast as Forecast
from optuna_daub.core.forecasts.forecast import Forecaster as Forecaster
from optuna_daub.core.forecasts.forecast import Forecasts as Forecasts
from optuna_daub.core.forecasts.joint import Joint as Joint
from optuna_daub.core.forecasts.projection import Projection as Projection
from optuna_daub.core.forecasts.projection import projected_bound as projected_bound
from optuna_daub.core.intervals.confidence import confidence_interval as confidence_interval
from optuna_daub.core.intervals.interval import Interval as Interval
from optuna_daub.core.policies.approximate_best import ABC as ABC
from optuna_daub.core.policies.approximate_best import BestGuess as BestGuess
from optuna_daub.core.policies.daub import DAUB as DAUB
from optuna_daub.core.policies.halving import SuccessiveHalving as SuccessiveHalving
from optuna_daub.core.policies.policy import Needs as Needs
from optuna_daub.core.policies.policy import Policy as Policy
from optuna_daub.core.policies.schedulers import gradient_ci as gradient_ci
from optuna_daub.core.policies.schedulers import round_robin as round_robin
from optuna_daub.core.policies.schedulers import step_for_growth as step_for_growth
from optuna_daub.core.policies.schedulers import ucb as ucb
from optuna_daub.core.policies.value_per_second import ValuePerSecond as ValuePerSecond
from optuna_daub.core.pool import Cost as Cost
from optuna_daub.core.pool import Curves as Curves
from optuna_daub.core.pool import Pool as Pool
from optuna_daub.core.prices import Prices as Prices
from optuna_daub.core.prices import Terms as Terms
from optuna_daub.core.replay import replay as replay
from optuna_daub.core.sizes import geometric_sizes as geometric_sizes
from optuna_daub.core.space import Range as Range
from optuna_daub.core.space import Space as Space
from optuna_daub.core.space import Words as Words
from optuna_daub.core.steps import StepRule as StepRule
from optuna_daub.core.steps import next_of_grid as next_of_grid
