"""Values are read as they were written, under every key and on every kind of storage."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from optuna.storages import InMemoryStorage
from optuna.storages import JournalStorage

from optuna_daub import DataAllocationSampler
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.core import Observation
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study import starting
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run
from tests.study.table_study import SIZES
from tests.study.table_study import TableObjective
from tests.study.table_study import sqlite
from tests.study.table_study import table_study


pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def journal(folder: Path) -> JournalStorage:
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(f"{folder}/journal.log"))


STORAGES: dict[str, Callable[[Path], object]] = {
    "memory": lambda folder: InMemoryStorage(),
    "sqlite": sqlite,
    "journal": journal,
}


@pytest.fixture(params=STORAGES)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> optuna.Study:
    return optuna.create_study(storage=STORAGES[request.param](tmp_path))  # type: ignore[arg-type]


some_runs = st.builds(
    Run,
    learner=st.none() | st.integers(0, 10**6),
    size=st.integers(1, 10**9),
    inherited=st.integers(0, 10**9),
    n_learners=st.none() | st.integers(1, 10**6),
    full_size=st.integers(1, 10**9),
    reason=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300),
    worker=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60),
    trial=st.integers(0, 10**6),
    repeats=st.none() | st.integers(0, 10**6),
    is_declined=st.booleans(),
    is_settled=st.booleans(),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_runs)
def test_a_run_is_read_as_it_was_written(study: optuna.Study, run: Run) -> None:
    trial = study.ask()
    assert records.read_run(study.trials[trial.number]) is None
    log.write_run(study, trial, run)
    assert records.read_run(study.trials[trial.number]) == run


@pytest.mark.parametrize("training_score", [None, 0.25, float("nan"), float("inf")])
def test_an_observation_is_read_as_it_was_written(
    study: optuna.Study, training_score: float | None
) -> None:
    trial = study.ask()
    written = Observation(500, 0.5, training_score, 100, 2.5, order=1)
    log.write_observation(study, trial, written)
    trial.report(0.5, 500)
    trial.report(0.6, 750)
    frozen = study.trials[0]
    seen = records.read(frozen).observations
    assert repr(seen[500]) == repr(written)
    assert seen[750] == Observation(750, 0.6)
    assert records.own_sizes(frozen) == [500, 750]
    assert records.own_sizes(frozen, inherited=500) == [750]


def facts_of(study: optuna.Study) -> Facts:
    """Return what the first trial says of its learner."""
    return records.read(study.trials[0])


def test_failures_and_exhaustion_are_remembered(study: optuna.Study) -> None:
    trial = study.ask()
    assert (facts_of(study).failure, facts_of(study).is_exhausted) == (None, False)
    failure = Failure(500, "ValueError: no", "machine|1|2", is_final=True)
    log.write_failure(study, trial, failure)
    log.write_exhaustion(study, trial)
    assert (facts_of(study).failure, facts_of(study).is_exhausted) == (failure, True)


RUN = Run(3, 500, 0, 5, 2000, "because", "machine|1|2", 1, "trees", 0)
RUN_KEY = "daub:run"  # as it stands in the databases of users


NEWER = {**vars(RUN), "invented_later": [1, 2]}


def test_only_a_sampler_that_fixes_parameters_adds_to_the_record(study: optuna.Study) -> None:
    trial, earlier = study.ask(), {name: value for name, value in vars(RUN).items() if value != ""}
    for run, more in ((RUN, {}), (replace(RUN, fixed="[('x', 1)]"), {"fixed": "[('x', 1)]"})):
        log.write_run(study, trial, run)
        assert study._storage.get_trial(trial._trial_id).system_attrs[RUN_KEY] == earlier | more
        assert facts_of(study).run == run


@pytest.mark.parametrize(
    ("record", "run"),
    [(NEWER, RUN), ({"learner": 3}, Run(3))],
    ids=["what a newer version adds is ignored", "what an older one did not know has a default"],
)
def test_records_of_other_versions_are_read(
    study: optuna.Study, record: dict[str, object], run: Run
) -> None:
    trial = study.ask()
    study._storage.set_trial_system_attr(trial._trial_id, RUN_KEY, record)
    assert facts_of(study).run == run


DAMAGED: list[tuple[str, object, str]] = [
    ("run", {"size": 500}, r"run must be a mapping with ['learner'], but this study has {'size'"),
    ("run", {}, "run must be a mapping with ['learner'], but this study has {}"),
    ("run", "gone", "run must be a mapping with ['learner'], but this study has 'gone'"),
    ("run", {"learner": "x"}, "`learner` must have the type that optuna_daub writes, but this"),
    ("run", {"learner": 1.5}, "`learner` must have the type"),
    ("run", {"learner": 0, "full_size": None}, "`full_size` must have the type"),
    ("run", {"learner": 0, "worker": 5}, "`worker` must have the type"),
    ("failed", {"size": "x"}, "`size` must have the type"),
    ("failed", 7, "failure must be a mapping with ['size'], but this study has 7"),
    ("given_up", True, "`daub:given_up` must have the type"),
    ("no_sizes", 5, "`daub:no_sizes` must have the type"),
    ("replaces", [1], "`daub:replaces` must have the type"),
    ("observation:500", 5, "`daub:observation:500` must have the type"),
    ("observation:500", {"training_score": "x"}, "`training_score` must have the type"),
    ("observation:500", {"n_validation": 1.5}, "`n_validation` must have the type"),
]


@pytest.mark.parametrize(("key", "record", "complaint"), DAMAGED)
def test_a_damaged_record_is_refused_with_a_sentence(
    key: str, record: object, complaint: str
) -> None:
    study = optuna.create_study()
    trial = study.ask()
    trial.report(0.5, 500)
    study._storage.set_trial_system_attr(trial._trial_id, f"daub:{key}", record)
    with pytest.raises(ValueError, match=re.escape(f"A stored {complaint}")) as caught:
        facts_of(study)
    assert "changed by hand or is of another version of optuna_daub: update it" in str(caught)


@pytest.mark.parametrize("results", [learning_curves, best_learner, allocations])
def test_results_of_a_damaged_study_are_refused_with_the_sentence(
    results: Callable[[optuna.Study], object],
) -> None:
    study = table_study()
    study.optimize(TableObjective(), n_trials=2)
    trial = study.ask()
    study._storage.set_trial_system_attr(trial._trial_id, RUN_KEY, {"size": 7})
    with pytest.raises(ValueError, match=r"A stored run must be a mapping with \['learner'\]"):
        results(study)


def test_settings_are_stored_once_and_compared_ever_after(study: optuna.Study) -> None:
    for is_begun in (False, True):
        starting.check_settings(study, SIZES, is_begun=is_begun)
    with pytest.raises(ValueError, match=r"sizes it was started with.*but now has \[1, 2, 3\]"):
        starting.check_settings(study, (1, 2, 3), is_begun=True)
    starting.check_settings(study, SIZES, is_begun=True)


def test_settings_that_lack_a_field_are_refused_with_a_sentence(study: optuna.Study) -> None:
    study._storage.set_study_system_attr(study._study_id, "daub:settings", {"sizes": [*SIZES]})
    with pytest.raises(ValueError, match=r"direction it was started with.* do not say it, but"):
        starting.check_settings(study, SIZES, is_begun=True)


@pytest.mark.parametrize(
    "damaged",
    [5, "x", [], {}, {"direction": "maximize"}, {"sizes": 5}, {"sizes": []}, {"sizes": "x"}],
)
def test_damaged_settings_are_refused_with_a_sentence_until_they_do_not_matter(
    damaged: object,
) -> None:
    study = table_study()
    study.optimize(TableObjective(), n_trials=2)
    study._storage.set_study_system_attr(study._study_id, "daub:settings", damaged)
    complaint = "settings of a study must be a mapping with its training sizes, but study '.*' has"
    for going_on in (
        lambda: starting.check_settings(study, SIZES, is_begun=True),
        lambda: DataAllocationSampler(earlier=[study]),
    ):
        with pytest.raises(ValueError, match=f"{complaint} {re.escape(repr(damaged))}. It was"):
            going_on()
    study._storage.set_study_system_attr(study._study_id, "daub:policy", None)
    with pytest.raises(ValueError, match=complaint):
        best_learner(optuna.load_study(study_name=study.study_name, storage=study._storage))
    starting.check_settings(study, SIZES, is_begun=False)  # nothing was trained: they are new
    starting.check_settings(study, SIZES, is_begun=True)


PACKAGE = Path(records.__file__).parents[1]


def test_keys_are_spelt_in_one_module_only() -> None:
    spelling = {
        file.name
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("daub:")
    }
    assert spelling == {"records.py"}


@pytest.mark.parametrize("private", ["_storage", "_study_id", "_trial_id"])
def test_one_file_alone_touches_optunas_storage(private: str) -> None:
    touching = {
        file.name
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == private
    }
    assert touching == {"log.py"}


def test_no_trial_is_missed_if_another_thread_starts_one_during_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optuna's cache then has this trial, but lacks one that another process started before."""
    study = optuna.create_study(storage=sqlite(tmp_path), study_name="shared")
    study.ask()
    storage = log.storage_of(study)
    other = log.storage_of(optuna.load_study(storage=sqlite(tmp_path), study_name="shared"))
    read = storage._read_trials_from_remote_storage  # type: ignore[attr-defined]

    def read_slowly(study_id: int) -> None:
        read(study_id)
        monkeypatch.undo()
        other.create_new_trial(study_id)
        storage.create_new_trial(study_id)

    monkeypatch.setattr(storage, "_read_trials_from_remote_storage", read_slowly)
    reader = log.Reader(study)
    assert [facts.number for facts in reader.news()] == [0]
    assert [facts.number for facts in reader.news()] == [1, 2]
    assert reader.n_trials == 3
