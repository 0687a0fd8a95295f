"""What the paper tables take from the examples, which are scripts of one folder and no package."""

from __future__ import annotations

import sys

from benchmarks.rows import ROOT


sys.path.insert(0, str(ROOT / "examples"))

from data import parity as parity  # noqa: E402
from five_learners import build as build_one_of_five  # noqa: E402
from pool import POOL as POOL  # noqa: E402
from pool import build as build_one_of_pool  # noqa: E402
from tables import features_and_classes as features_and_classes  # noqa: E402
from tables import parcels as parcels  # noqa: E402
from tables import read as read  # noqa: E402


__all__ = [
    "POOL",
    "build_one_of_five",
    "build_one_of_pool",
    "features_and_classes",
    "parcels",
    "parity",
    "read",
]
