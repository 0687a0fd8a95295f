"""The benchmark of real training: its methods, its clocks, its cap."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks.meter import Meter
from benchmarks.training import figures
from benchmarks.training_data import SOURCES
from benchmarks.training_data import Source
from benchmarks.training_data import affordable
from benchmarks.training_data import extrapolated
from benchmarks.training_methods import EVERYTHING
from benchmarks.training_methods import METHODS
from benchmarks.training_methods import Task


@pytest.mark.filterwarnings("ignore")  # of learners that do not suit so few rows
@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_with_a_learner(name: str) -> None:
    if METHODS[name].missing:
        pytest.skip(f"it needs: {METHODS[name].missing}")
    learners = ("stump", "gaussian_nb", "tree")
    task = Task(SOURCES["made"].load(0), learners, 0, Meter(), seconds=0.2)
    answer = METHODS[name].choose(task)
    assert answer.learner in learners or answer.learner in answer.scores


def test_a_fit_inside_another_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (DecisionTreeClassifier, BaggingClassifier, KNeighborsClassifier, StandardScaler)
    for kind in kinds:
        monkeypatch.setattr(kind, "fit", kind.fit)  # put back after the test
    meter = Meter()
    meter.watch(kinds)
    X, y = SOURCES["made"].load(0).first(100)
    BaggingClassifier(DecisionTreeClassifier(), n_estimators=3).fit(X, y)
    DecisionTreeClassifier().fit(X[:50], y[:50])
    assert (meter.fits, meter.examples) == (2, 150)
    make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, y)
    assert meter.fits == 4  # pipelines are not watched here, so both steps count


def test_learners_that_cost_too_much_are_left_out_with_their_projection() -> None:
    source = Source(SOURCES["made"].load, cap=1.0, learners=("stump", "knn5"))
    ticks = iter(range(1000))
    slow = affordable(source, lambda: 3.0 * next(ticks))  # every probe takes three seconds
    assert slow["learners"] == []
    assert set(slow["left_out"]) == {"stump", "knn5"}
    fast = affordable(source, lambda: 0.0)
    assert fast["learners"] == ["stump", "knn5"]


def test_projections_follow_the_last_two_probes() -> None:
    assert extrapolated([(100, 9.0), (1000, 1.0), (2000, 4.0)], 4000) == pytest.approx(16.0)


def test_prefixes_of_the_training_rows_hold_every_class() -> None:
    data = SOURCES["made"].load(1)
    assert set(data.first(3)[1]) == set(data.training[1])


def test_losses_are_those_of_full_training_unless_the_method_brought_its_own() -> None:
    scores: Mapping[str, list[float]] = {"a": [0.9, 0.8], "b": [0.7, 0.9]}
    cost = {"cpu": 2.0, "wall": 2.0, "examples": 10, "fits": 2, "peak_mb": 100}
    everything = {"key": {"method": EVERYTHING}, "learner": "a", "scores": scores, **cost}
    halving = figures({"learner": "b", "scores": {}, **cost, "cpu": 1.0}, everything, 10)
    assert halving["loss"] == pytest.approx(20.0)
    assert halving["test"] == pytest.approx(-10.0)
    assert halving["share"] == 50.0
    other = figures({"learner": "c", "scores": {"c": [0.95, 0.8]}, **cost}, everything, 10)
    assert other["loss"] == pytest.approx(-5.0)
