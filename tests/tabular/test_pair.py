"""Tests of what searches with a time limit share."""

from __future__ import annotations

import optuna
import pytest

from optuna_daub.tabular.pair import StartingPoints
from optuna_daub.tabular.pair import pruner


@pytest.mark.parametrize("n_rows", range(4, 60))
def test_the_first_size_has_a_row_in_the_smallest_bag_if_there_is_room(n_rows: int) -> None:
    first, *_, last = pruner(n_rows).policy.sizes
    assert last == n_rows
    assert int(first * 0.1) >= 1 or first == max(2, n_rows - 2)


def test_starting_points_leave_the_rule_every_second_run() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.0})

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0.0, 9.0)

    points = [{"x": 1.0}, {"x": 2.0}, {"x": 3.0}]
    study.optimize(objective, n_trials=9, callbacks=[StartingPoints(points)])
    given = [t.number for t in study.trials if "fixed_params" in t.system_attrs]
    assert given == [0, 2, 4, 6]
    assert [study.trials[i].params["x"] for i in given] == [0.0, 1.0, 2.0, 3.0]
