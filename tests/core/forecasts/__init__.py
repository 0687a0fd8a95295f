"""Every forecaster: a new one is a line in the list, and is tested with all others."""

from __future__ import annotations

from optuna_daub.core import Forecaster
from optuna_daub.core import Joint
from optuna_daub.core import Process
from optuna_daub.core import Projection


FORECASTERS: dict[str, Forecaster] = {
    "projection": Projection(),
    "projection, no training score": Projection(use_training_score=False),
    "joint": Joint(),
    "process": Process(4000),
}
