"""Few hops: how many files a learning curve enters on its way to a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import optuna
import pytest

from optuna_daub import learning_curves
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization.matplotlib import plot_learning_curves as plot_by_matplotlib
from tests.test_hops import Trace
from tests.visualization import studies


pytest.importorskip("plotly")
pytest.importorskip("matplotlib")


@pytest.fixture
def study() -> optuna.Study:
    study = studies.finished()
    learning_curves(study)  # its trials are read
    return study


@pytest.mark.parametrize("plot", [plot_learning_curves, plot_by_matplotlib])
def test_a_curve_enters_few_files(plot: Callable[..., Any], study: optuna.Study) -> None:
    trace = Trace(0.6875)  # a score of learner 0
    sys.setprofile(trace)
    try:
        plot(study)
    finally:
        sys.setprofile(None)
    entered = trace.entered
    assert {"visualization/_learning_curves.py", "study/results.py"} <= entered.keys()
    assert len(entered) <= 6, entered
    assert max(entered.values()) <= 5, entered
