"""Find the best model without training every candidate on all the data: a plugin for Optuna.

Names are looked up on first use, so `import optuna_daub.core` does not load Optuna.
"""

from importlib import import_module
from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from optuna_daub.objective import TrainingSizeObjective as TrainingSizeObjective
    from optuna_daub.study import ABCPruner as ABCPruner
    from optuna_daub.study import AllocationPruner as AllocationPruner
    from optuna_daub.study import DataAllocationSampler as DataAllocationSampler
    from optuna_daub.study import DAUBPruner as DAUBPruner
    from optuna_daub.study import allocations as allocations
    from optuna_daub.study import best_learner as best_learner
    from optuna_daub.study import learning_curves as learning_curves
    from optuna_daub.study import one_row_per_learner as one_row_per_learner
    from optuna_daub.study import plan as plan
    from optuna_daub.study import report as report
    from optuna_daub.study import training_sizes as training_sizes
    from optuna_daub.study import what_if as what_if
    from optuna_daub.study.agreement import sample_agreement as sample_agreement

__version__ = "0.2.0"

__all__ = [
    "DAUBPruner",
    "ABCPruner",
    "DataAllocationSampler",
    "AllocationPruner",
    "TrainingSizeObjective",
    "training_sizes",
    "report",
    "learning_curves",
    "allocations",
    "best_learner",
    "one_row_per_learner",
    "plan",
    "what_if",
    "sample_agreement",
]


_ELSEWHERE = {
    "TrainingSizeObjective": "optuna_daub.objective",
    "sample_agreement": "optuna_daub.study.agreement",
}
"""Modules of the public names that are not in `optuna_daub.study`."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        layer = _ELSEWHERE.get(name, "optuna_daub.study")
        return getattr(import_module(layer), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
