"""Parts of the examples that benchmarks use; the examples are scripts of one folder, no
package."""

from __future__ import annotations

import sys

from benchmarks.rows import ROOT


sys.path.insert(0, str(ROOT / "examples"))

from data import LARGEST_TRAINING_SET
from data import LARGEST_VALIDATION_SET
from data import parity
from data import read_table
from five_learners import build as build_one_of_five
from pool import POOL
from pool import build as build_one_of_pool
from tables import features_and_classes
from tables import parcels
from tables import read


__all__ = [
    "LARGEST_TRAINING_SET",
    "LARGEST_VALIDATION_SET",
    "POOL",
    "build_one_of_five",
    "build_one_of_pool",
    "features_and_classes",
    "parcels",
    "parity",
    "read",
    "read_table",
]
