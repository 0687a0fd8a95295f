"""Settings of each test process, and fixtures: shared files, a clock to put forward."""

from __future__ import annotations

import csv
import os
import signal
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path


# Each process of the tests computes in one thread: several would fight over the same cores. It
# counts only before NumPy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# isort: split

import pytest
from hypothesis import settings

from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation


pytest.register_assert_rewrite("tests.core.stepping", "tests.study.process_study")

# One decision may be slow on a loaded machine, so no example has a deadline. Whoever changes
# something tries a third of the examples, new ones each time; `.ci/run` tries all.
settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# A shell leaves SIGINT ignored to what it runs in the background; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def _own_settings_of_libraries() -> Iterator[None]:
    """Start each test with the same settings of Optuna and scikit-learn, whatever ran before."""
    if optuna := sys.modules.get("optuna"):  # tests of the core need not wait for them
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    if "sklearn" not in sys.modules:
        yield
        return
    with sys.modules["sklearn"].config_context():
        yield


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Return the path of a file in ../shared, or skip the test if it is absent."""

    def find(path: str) -> Path:
        if not (SHARED / path).exists():
            pytest.skip(f"{SHARED / path} is not there: it is read in place, never copied")
        return SHARED / path

    return find


@pytest.fixture(scope="session")
def measured(shared: Callable[[str], Path]) -> Callable[[str], list[LearningCurve]]:
    """Return the learning curves of ../shared/tables/<name>.csv; failed fits leave gaps."""

    def read(name: str) -> list[LearningCurve]:
        observations: dict[str, list[Observation]] = {}
        with shared(f"tables/{name}.csv").open() as file:
            for row in csv.DictReader(file):
                seen = observations.setdefault(row["learner"], [])
                if row["validation_score"]:
                    scores = float(row["validation_score"]), float(row["training_score"])
                    seen.append(Observation(int(row["size"]), *scores))
        return [LearningCurve(i, tuple(seen)) for i, seen in enumerate(observations.values())]

    return read


@pytest.fixture
def skip(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that puts the monotonic clock forward."""
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])

    def forward(seconds: float) -> None:
        ahead[0] += seconds

    return forward
