"""Tables of two classes, and models that were fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optuna_daub.tabular import TabularModel
from optuna_daub.tabular import fit


pandas = pytest.importorskip("pandas")

N = 300
QUICK: dict[str, Any] = {"seconds": 0.5, "models": ["linear", "extra_trees"], "jobs": 1}


def table(n: int = N, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["red", "blue"], n)
    frame["target"] = np.where(frame.a + rng.normal(0, 0.3, n) > 0, "yes", "no")
    return frame


def told(frame: Any, target: str = "target", **options: Any) -> tuple[TabularModel, str]:
    said: list[str] = []
    model = fit(frame, target, say=said.append, **(QUICK | options))
    return model, "\n".join(said)
