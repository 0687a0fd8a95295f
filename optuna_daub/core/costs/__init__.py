"""Costs of trainings, known and predicted."""

from optuna_daub.core.costs.guarded import ALPHA_WEIGHT as ALPHA_WEIGHT
from optuna_daub.core.costs.guarded import DEAREST as DEAREST
from optuna_daub.core.costs.guarded import DISBELIEF as DISBELIEF
from optuna_daub.core.costs.guarded import ENOUGH as ENOUGH
from optuna_daub.core.costs.guarded import FIXED as FIXED
from optuna_daub.core.costs.guarded import PRIOR_ERROR as PRIOR_ERROR
from optuna_daub.core.costs.guarded import RIDGE as RIDGE
from optuna_daub.core.costs.guarded import STEEPEST as STEEPEST
from optuna_daub.core.costs.guarded import Costs as Costs
from optuna_daub.core.costs.guarded import Guess as Guess
from optuna_daub.core.costs.guarded import by_parameters as by_parameters
from optuna_daub.core.costs.guarded import expected_seconds as expected_seconds
from optuna_daub.core.costs.guarded import in_examples as in_examples
from optuna_daub.core.costs.guarded import in_seconds as in_seconds
from optuna_daub.core.costs.guarded import is_timed as is_timed
