"""Parts of the examples that benchmarks use; the examples are scripts of one folder, no
package."""

from __future__ import annotations

import sys
from typing import Any

from optuna.trial import FixedTrial

from benchmarks.rows import ROOT


sys.path.insert(0, str(ROOT / "examples"))

from data import parity
from data import read_table
from five_learners import build as build_one_of_five
from pool import POOL
from pool import build as build_one_of_pool
from tables import features_and_classes
from tables import parcels
from tables import read


__all__ = [
    "POOL",
    "build_one_of_five",
    "features_and_classes",
    "learner_of_pool",
    "parcels",
    "parity",
    "read",
    "read_table",
]


def learner_of_pool(name: str) -> Any:
    """Return an unfitted learner of the pool."""
    _, settings = POOL[name]
    fixed = {f"{name}.{key}": value for key, value in settings.items()}
    return build_one_of_pool(FixedTrial({"learner": name, **fixed}))
