"""The picture of the README shows what the rows say."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pytest

from benchmarks.pictures import race
from benchmarks.rows import Row
from tests.benchmarks.rows import reference
from tests.benchmarks.rows import row


def test_the_points_missing_are_drawn_against_time_in_units() -> None:
    mpl.use("Agg")
    rows = [
        reference(unit=2.0),
        row("ours", 0, (6.0, 0.8), (100.0, 0.89), budget=100.0),
        row("TPE", 0, (60.0, 0.7), budget=100.0),
    ]
    ours, tpe = race(rows, ["ours", "TPE"]).axes[0].lines
    assert [ours.get_label(), tpe.get_label()] == ["optuna_daub", "TPE"]
    assert [*ours.get_ydata()][-1] == pytest.approx(1.0)
    assert [*tpe.get_ydata()][-1] == pytest.approx(20.0)
    drops = [x for x, y in zip(ours.get_xdata(), ours.get_ydata(), strict=True) if y < 50.0]
    assert 3.0 <= min(drops) < 3.3, "the first model is there after 6 seconds, 3 units"


def test_on_a_real_table_the_score_is_drawn_against_seconds() -> None:
    mpl.use("Agg")
    given: Any = {"problem": "real-a", "budget": 100.0}
    ran = row("ours", 0, (50.0, 0.8, 0.79), **given), row("TPE", 0, **given)
    rows = [reference("real-a", 40.0, 1.0), *ran]
    ours, tpe = race(rows, ["ours", "TPE"]).axes[0].lines
    at = dict(zip(ours.get_xdata(), ours.get_ydata(), strict=True))
    assert max(at) == 200.0, "all the seconds of the budget"
    assert (at[0.0], at[200.0]) == (0.0, pytest.approx(79.0)), "of the test rows"
    assert {*tpe.get_ydata()} == {0.0}, "a run without a model"
    assert 49.0 < min(x for x, y in at.items() if y > 0.0) <= 51.0


def test_two_real_tables_are_not_drawn_as_one() -> None:
    rows: list[Row] = []
    for name in ("real-a", "real-b"):
        rows += [reference(name), row("ours", 0, (5.0, 0.8, 0.7), problem=name)]
    with pytest.raises(ValueError, match="name it: `--problem`"):
        race(rows, ["ours"])
