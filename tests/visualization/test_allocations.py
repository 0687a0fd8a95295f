"""Allocations, compared value by value with studies worked out by hand."""

from __future__ import annotations

import optuna
import pytest

from optuna_daub.study import learning_curves
from optuna_daub.visualization._allocations import AllocationsRecord
from optuna_daub.visualization._allocations import Layer
from optuna_daub.visualization._allocations import allocations_record
from optuna_daub.visualization._axes import size_colors
from tests.study.table_study import reporting
from tests.visualization import studies
from tests.visualization.studies import SIZES


def test_examples() -> None:
    study = studies.finished()
    oak, elm, ash = learning_curves(study)
    colors = size_colors(SIZES)
    assert allocations_record(study, "examples", 60) == AllocationsRecord(
        (ash, oak, elm),
        ("2 ash", "0 oak", "1 elm"),
        (
            Layer(100, (100.0, 100.0, 100.0), "#74b9e8"),
            Layer(200, (200.0, 200.0, 200.0), colors[200]),
            Layer(400, (400.0, 400.0, 400.0), colors[400]),
            Layer(800, (800.0, 800.0, 0.0), "#eda03f"),
        ),
        spent=3700.0,
        everything=2400.0,
        measured=2400.0,
        unit="examples",
    )


def test_seconds_are_projected_from_those_that_were_measured() -> None:
    record = allocations_record(studies.running(), "seconds", 60)
    assert record.layers[0].costs == (1.0, 1.0)
    assert record.spent == 8.0
    assert record.everything == pytest.approx(16.0, rel=0.25), (
        "a second per hundred examples; a mean, which is above the median"
    )
    assert record.measured == 0.0
    finished = allocations_record(studies.finished(), "seconds", 60)
    assert finished.measured == 16.0
    assert finished.everything == pytest.approx(24.0, rel=0.05)


def test_seconds_where_every_probe_was_timed_else_examples() -> None:
    assert allocations_record(studies.finished(), "auto", 60).unit == "seconds"
    assert allocations_record(studies.empty(), "auto", 60).unit == "examples"


def test_unmeasured_seconds_cost_nothing() -> None:
    study = studies.new_study()
    study.optimize(reporting(studies.SIZES))
    record = allocations_record(study, "seconds", 60)
    assert (record.spent, record.everything) == (0.0, 0.0)


def test_learners_are_sorted_by_score_those_without_last() -> None:
    def order(study: optuna.Study) -> list[int]:
        return [curve.learner for curve in allocations_record(study, "examples", 60).curves]

    assert order(studies.failed_learners()) == [4, 2, 0, 1, 3]
    assert order(studies.minimized()) == [2, 0, 1]
    assert order(studies.infinite()) == [2, 0, 1, 3]


def test_those_beyond_the_first_share_a_bar() -> None:
    record = allocations_record(studies.finished(), "examples", 1)
    assert record.names == ("2 ash", "mean of 2 others")
    assert [layer.costs for layer in record.layers] == [
        (100.0, 100.0), (200.0, 200.0), (400.0, 400.0), (800.0, 400.0),
    ]  # fmt: skip
    assert record.spent == 3700.0
    assert allocations_record(studies.finished(), "examples", 0).names == ("mean of 3 learners",)
    with pytest.raises(ValueError, match="`top` must be at least 0, but got -1"):
        allocations_record(studies.finished(), "examples", -1)


def test_learners_that_were_never_trained_are_not_part_of_everything() -> None:
    assert allocations_record(studies.failed_learners(), "examples", 60).everything == 4 * 800


def test_the_unit_is_one_of_two() -> None:
    with pytest.raises(
        ValueError, match="""must be "auto", "examples" or "seconds", but got 'euro'"""
    ):
        allocations_record(studies.finished(), "euro", 60)  # type: ignore[arg-type]


def test_the_share_of_nothing_is_not_asked_for() -> None:
    """All trainings were lost, as those on all the data of failed trials are."""
    lost = AllocationsRecord((), (), (), 800.0, 0.0, 0.0, "examples")
    assert lost.share == lost.spending == "800 examples, none kept"
