"""`training_sizes` and `report`: what an objective may do, and what it is told when it may not."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import answer
from tests.study.table_study import asking_itself
from tests.study.table_study import runs
from tests.study.table_study import sqlite
from tests.study.table_study import table_study


def asked(**options: Any) -> optuna.Trial:
    trial = table_study(**options).ask()
    trial.suggest_int("row", 0, 4)
    return trial


def test_a_size_that_is_not_reported_is_an_error() -> None:
    sizes = training_sizes(asked())
    assert next(sizes) == SIZES[0]
    with pytest.raises(ValueError, match=r"must be reported, .*report\(trial, 6, score\)"):
        next(sizes)


@pytest.mark.parametrize(
    ("size", "asks"),
    [
        *((size, True) for size in (SIZES[1], 7, SIZES[-1], 10**6, 0, -1)),
        (7, False),
        (10**6, False),
    ],
)
def test_a_size_that_was_not_handed_out_is_an_error(size: int, asks: bool) -> None:
    trial = asked()
    if asks:
        next(training_sizes(trial))
    with pytest.raises(ValueError, match="that `training_sizes"):
        report(trial, size, 0.5)
    assert trial.study.trials[0].intermediate_values == {}


@pytest.mark.parametrize("size", [6.0, "6", None])
def test_a_size_must_be_a_whole_number(size: Any) -> None:
    trial = asked()
    next(training_sizes(trial))
    with pytest.raises(ValueError, match=f"`size` must be a whole number, but got '?{size}"):
        report(trial, size, 0.5)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"n_validation": 0}, "`n_validation`.* at least 1, but got 0"),
        ({"n_validation": -3}, "`n_validation`.* at least 1, but got -3"),
        ({"seconds": -0.5}, r"`seconds` must be from 0 to 1e\+09, but got -0.5"),
        ({"seconds": 1e10}, r"`seconds` must be from 0 to 1e\+09, but got 10,?000"),
        ({"seconds": math.inf}, r"`seconds` must be from 0 to 1e\+09, but got inf"),
        ({"seconds": math.nan}, r"`seconds` must be from 0 to 1e\+09, but got nan"),
        ({"examples": 0}, "`examples`.* must be from 1 to `size`, .*, but got 0"),
        ({"examples": 2001}, "`examples`.* must be from 1 to `size`, .*, but got 2,001"),
        ({"examples": 0.5}, "`examples` must be a whole number, but got 0.5"),
    ],
)
def test_impossible_measures_are_refused_before_anything_is_stored(
    told: dict[str, Any], rule: str
) -> None:
    trial = asked()
    size = next(training_sizes(trial))
    with pytest.raises(ValueError, match=rule):
        report(trial, size, 0.5, **told)
    assert trial.study.trials[0].intermediate_values == {}
    assert allocations(trial.study) == []
    report(trial, size, 0.5, n_validation=1, seconds=0.0)
    assert len(allocations(trial.study)) == 1


def test_sizes_asked_for_a_second_time_are_not_trained_on_again() -> None:
    trial = asked()
    report(trial, next(training_sizes(trial)), 0.5)
    assert next(training_sizes(trial)) == SIZES[1]


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    """In a database: what is stored there must be JSON."""
    trial = asked(storage=sqlite(tmp_path))
    size = next(training_sizes(trial))
    numbers: Any = {"training_score": np.float32(0.75), "n_validation": np.int64(100)}
    report(trial, *(np.int64(size), np.float32(0.5)), **numbers, seconds=np.float32(2))  # type: ignore[arg-type]
    seen = allocations(table_study(storage=sqlite(tmp_path)))[0].observation
    assert seen == type(seen)(6, 0.5, 0.75, 100, 2.0)


def test_everything_stored_is_json(tmp_path: Path) -> None:
    study = table_study(storage=sqlite(tmp_path))
    study.optimize(TableObjective())
    for trial in study.trials:
        json.dumps([trial.system_attrs, trial.user_attrs], allow_nan=False)
    names = {name for trial in study.trials for name in trial.system_attrs}
    assert all(name.startswith("daub:") for name in names)


def test_seconds_are_measured_since_the_size_was_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    trial = asked()
    sizes = training_sizes(trial)
    report(trial, next(sizes), 0.5)
    report(trial, next(sizes), 0.5, seconds=3.0)
    assert [probe.observation.seconds for probe in allocations(trial.study)] == [10.0, 3.0]


def test_a_resumed_run_starts_where_the_learner_stopped() -> None:
    handed_out: list[tuple[int, int]] = []
    study = table_study()
    study.optimize(TableObjective(before=lambda *probe: handed_out.append(probe)))
    assert len(handed_out) == len(set(handed_out))
    for trial, run in runs(study):
        if run.inherited:
            known = [size for size in trial.intermediate_values if size <= run.inherited]
            assert sorted(known) == [*SIZES[: len(known)]]
            assert run.size == SIZES[len(known)]


def test_a_fixed_trial_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="`trial` must be the trial that Optuna hands"):
        TableObjective()(optuna.trial.FixedTrial({"row": 1}))  # type: ignore[arg-type]


def test_every_size_is_timed_where_the_objective_asks_should_prune_itself() -> None:
    """The idiom of Optuna's pruners: what a run was trained on last is timed at its end."""
    study = table_study()
    study.optimize(asking_itself)
    probes = allocations(study)
    assert len(probes) > len(study.trials)
    assert all(probe.observation.seconds for probe in probes)
    assert [curve.state for curve in learning_curves(study)].count("suspended") > 1


def test_what_passes_until_a_trial_is_told_is_no_time_of_training() -> None:
    trial = asked()
    size = next(training_sizes(trial))
    trial.report(0.5, size)
    trial.study.tell(trial, state=TrialState.PRUNED)
    (probe,) = allocations(trial.study)
    assert (probe.observation.size, probe.observation.seconds) == (size, None)


def test_seconds_of_a_score_that_others_saw_before_are_taken_in_later(tmp_path: Path) -> None:
    """Optuna's `trial.report` stores the score; how long it took is known at the next size."""
    trial = asked(storage=sqlite(tmp_path))
    study = trial.study
    sizes = training_sizes(trial)
    trial.report(0.5, next(sizes))
    trial.should_prune()
    assert [probe.observation.seconds for probe in allocations(study)] == [None]
    next(sizes)
    (known,) = [curve.observations[0] for curve in learning_curves(study)]
    (stored,) = [probe.observation for probe in allocations(study)]
    assert known == stored
    best = answer(study)
    assert best.seconds == stored.seconds is not None
    assert best.examples == SIZES[0]
