"""Allocation policies, one paper per file."""

from optuna_daub.core.policies.daub import DAUB as DAUB
from optuna_daub.core.policies.decision import Decision as Decision
from optuna_daub.core.policies.decision import Drop as Drop
from optuna_daub.core.policies.decision import Extend as Extend
from optuna_daub.core.policies.decision import Finish as Finish
from optuna_daub.core.policies.decision import Reason as Reason
from optuna_daub.core.policies.decision import Wait as Wait
from optuna_daub.core.policies.halving import SuccessiveHalving as SuccessiveHalving
from optuna_daub.core.policies.protocol import Policy as Policy
