"""Few hops: how many files are entered on a learning curve's way to a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optuna
import pytest

from optuna_daub import learning_curves
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization.matplotlib import plot_learning_curves as plot_by_matplotlib
from tests.tracing import traced
from tests.visualization import studies


pytest.importorskip("plotly")
pytest.importorskip("matplotlib")


@pytest.fixture
def study() -> optuna.Study:
    study = studies.finished()
    learning_curves(study)  # its trials are read
    return study


@pytest.mark.parametrize("plot", [plot_learning_curves, plot_by_matplotlib])
def test_a_picture_enters_few_files(plot: Callable[..., Any], study: optuna.Study) -> None:
    plot(study)  # its library is imported
    with traced() as trace:
        plot(study)
    own = {*trace.within("visualization").files}
    assert {"visualization/_learning_curves.py", "visualization/_axes.py"} <= own
    assert len(own) <= 7, own
