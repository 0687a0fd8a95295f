"""The same study on every storage of Optuna."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from optuna.storages import BaseStorage

from optuna_daub import learning_curves
from tests.study.table_study import MADE
from tests.study.table_study import SIZES
from tests.study.table_study import WINNER
from tests.study.table_study import TableObjective
from tests.study.table_study import Watched
from tests.study.table_study import assert_sound
from tests.study.table_study import expected
from tests.study.table_study import is_over
from tests.study.table_study import probes
from tests.study.table_study import raising
from tests.study.table_study import replayed
from tests.study.table_study import table_study
from tests.study.table_study import without


pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    # Optuna's search for a free port leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

MODES = [
    "inmemory",
    "cached_sqlite",  # as which a study opens each database
    "journal",
    "journal_redis",
    pytest.param("grpc_rdb", marks=pytest.mark.slow),
    "grpc_journal_file",
]


@pytest.fixture(params=MODES, scope="module")
def storage(request: pytest.FixtureRequest) -> Iterator[BaseStorage]:
    """Yield a storage; each test has a study of its own name in it."""
    testing = pytest.importorskip("optuna.testing.storages", exc_type=ImportError)
    mode: str = request.param
    if mode not in testing.STORAGE_MODES:
        pytest.skip(f"this Optuna has no {mode}")
    if mode == "journal_redis":
        pytest.importorskip("lupa")  # fakeredis runs Optuna's Lua scripts with it
    if mode.startswith("grpc"):
        pytest.importorskip("grpc")
    with testing.StorageSupplier(mode) as found:
        yield found


def test_a_study_is_the_same_everywhere(storage: BaseStorage) -> None:
    study = table_study(storage=storage, name="same")
    study.optimize(TableObjective())
    assert probes(study) == MADE
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_one_trial_at_a_time_is_the_same_and_other_sizes_are_refused_everywhere(
    storage: BaseStorage,
) -> None:
    objective = TableObjective()
    for _ in range(99):
        study = table_study(2, storage=storage, name="one by one")
        study.optimize(objective, n_trials=1)
        if is_over(study):
            break
    other = table_study(2, storage=storage, name="one by one", sizes=[1, 2, 3])
    with pytest.raises(ValueError, match="started with"):
        other.optimize(objective, n_trials=1)
    assert probes(study) == expected(2)[0]
    assert_sound(study)


def test_threads_find_the_winner_and_hold_nobody_twice_everywhere(storage: BaseStorage) -> None:
    watched = Watched()
    study = table_study(storage=storage, name="threads")
    study.optimize(TableObjective(before=watched), n_jobs=2)
    assert watched.collisions == []
    assert study.best_trial.params["row"] == WINNER
    assert_sound(study)


def test_enqueued_trials_are_learners_everywhere(storage: BaseStorage) -> None:
    study = table_study(3, storage=storage, name="enqueued")
    study.enqueue_trial({"row": WINNER})
    study.optimize(TableObjective())
    assert study.best_trial.params["row"] == WINNER
    assert len(learning_curves(study)) == 3
    assert_sound(study)


def test_failures_are_remembered_everywhere(storage: BaseStorage) -> None:
    made, winner = expected(2)
    at = (winner, SIZES[1])

    for _ in range(2):
        study = table_study(2, storage=storage, name="failures")
        with pytest.raises(RuntimeError):
            study.optimize(TableObjective(before=raising(RuntimeError, at)))
    study = table_study(2, storage=storage, name="failures")
    study.optimize(TableObjective())
    assert probes(study) == replayed(study.pruner.policy, without(*at)[:2])[0] != made
