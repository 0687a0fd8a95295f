"""A browser looks at optuna-dashboard while a worker still runs.

Needs Debian's `chromium` and `chromium-driver`; skipped without them, unless
OPTUNA_DAUB_REQUIRE_SERVICES is set (as in .ci/run).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest

from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.dashboard import GRAPHS
from optuna_daub.dashboard import DashboardCallback
from optuna_daub.dashboard import update_dashboard
from tests.study.process_study import free_port
from tests.study.process_study import wait_for
from tests.study.table_study import pair
from tests.study.table_study import scored
from tests.study.table_study import until
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import Table


pytest.importorskip("optuna_dashboard")
webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.chrome.service import Service  # noqa: E402


pytestmark = pytest.mark.slow

PATIENCE = 60
"""Seconds after which something that should happen has not happened."""

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1500,2400",
)  # fmt: skip


def program(variable: str, name: str) -> str:
    """Return the path of a program, or skip the test if it is not installed."""
    path = os.environ.get(variable) or shutil.which(name)
    if path and Path(path).exists():
        return path
    message = f"{name} is not installed: apt-get install chromium chromium-driver"
    if os.environ.get("OPTUNA_DAUB_REQUIRE_SERVICES"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = program("OPTUNA_DAUB_CHROMIUM", "chromium")
    for option in (*OPTIONS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver_path = program("OPTUNA_DAUB_CHROMEDRIVER", "chromedriver")
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    yield driver
    driver.quit()


class Gated:
    """An objective that waits in a trial, once it has parameters, until the gate is open."""

    def __init__(
        self,
        train: Callable[[optuna.Trial], float],
        at: int,
        point: Callable[[optuna.Trial], object] = lambda trial: None,
    ) -> None:
        self.train, self.at, self.point = train, at, point
        self.gate = threading.Event()
        self.is_waiting = threading.Event()

    def __call__(self, trial: optuna.Trial) -> float:
        self.point(trial)
        if trial.number == self.at:
            self.is_waiting.set()
            assert self.gate.wait(3 * PATIENCE)
        return self.train(trial)


Running = tuple[optuna.Study, Gated, threading.Thread]


@contextmanager
def running(study: optuna.Study, objective: Gated) -> Iterator[Running]:
    """Yield a study that a thread works on, with its pictures, and which waits at the gate."""
    callbacks = [DashboardCallback(every=0)]
    thread = threading.Thread(
        target=study.optimize, args=(objective,), kwargs={"callbacks": callbacks}
    )
    thread.start()
    try:
        assert objective.is_waiting.wait(PATIENCE)
        yield study, objective, thread
    finally:
        objective.gate.set()
        thread.join(PATIENCE)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Running]:
    """A study that is running: two learners are suspended, the third is being trained."""
    study = studies.new_study(storage=f"sqlite:///{tmp_path}/study.db")
    with running(study, Gated(Table(RIVALS), at=2)) as found:
        yield found


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address at which optuna-dashboard serves the study."""
    port = free_port()
    command = Path(sys.executable).with_name("optuna-dashboard")
    where = ["--host", "127.0.0.1", "--port", str(port), "--server", "wsgiref"]
    log = (tmp_path / "dashboard.log").open("w")
    server = subprocess.Popen(
        [command, f"sqlite:///{tmp_path}/study.db", *where], stdout=log, stderr=log
    )
    wait_for(port)
    yield f"http://127.0.0.1:{port}/dashboard/studies/1"
    server.terminate()
    server.wait(PATIENCE)
    log.close()


def traces(browser: Any, graph_id: str) -> list[str]:
    """Return the names of what a figure of the page draws, none before it is drawn."""
    script = """
        const plot = document.getElementById("user-defined-plot:" + arguments[0]);
        const isDrawn = plot && plot.querySelector("svg.main-svg");
        return isDrawn ? plot.data.map(trace => trace.name || "") : [];
    """
    names: list[str] = browser.execute_script(script, graph_id)
    return names


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_a_running_study_and_its_notes_are_shown_and_follow_what_happens(
    browser: Any, worker: Running, address: str
) -> None:
    study, objective, thread = worker

    browser.get(f"{address}/note")
    until(lambda: "0 oak leads" in text(browser), "the note on the running study")
    browser.get(f"{address}/trials?numbers=0")
    until(lambda: "trained on 100 then 200 then 400 examples" in text(browser), "a run's note")
    until(lambda: "daub:training_size" in text(browser), "a run's user attributes")

    browser.get(address)
    for graph_id in GRAPHS.keys() - {"daub-sample-agreement"}:  # two learners are not ranked
        until(lambda shown=graph_id: traces(browser, shown), f"{graph_id} is drawn")
    first = traces(browser, "daub-learning-curves")
    assert "0 oak, leader" in first
    assert not [name for name in first if "ash" in name], "it has no score yet"
    assert thread.is_alive(), "the worker runs while the page is open"

    objective.gate.set()
    thread.join(PATIENCE)
    assert study.best_trial.params == {"name": "ash"}
    until(
        lambda: "2 ash, best" in traces(browser, "daub-learning-curves"),
        "the open page has the end of the study",
    )
    assert "800" in traces(browser, "daub-allocations")
    assert "2 ash, best" in traces(browser, "daub-upper-bounds")
    assert traces(browser, "daub-sample-agreement")

    assert errors(browser) == []


def text(browser: Any) -> str:
    shown: str = browser.execute_script("return document.body.innerText")
    return shown


def point(trial: optuna.Trial) -> float:
    """Suggest three parameters, and return the one that decides."""
    trial.suggest_float("dead", 0.0, 1.0)
    trial.suggest_categorical("kind", ["tree", "net"])
    return trial.suggest_float("live", 0.0, 1.0)


def wide(trial: optuna.Trial) -> float:
    live = point(trial)
    return scored(
        trial,
        lambda n: 0.5 + 0.4 * live - 10 / n,
        training_score=lambda n: 1.0,
        seconds=lambda n: n / 100,
    )


@pytest.fixture
def search(tmp_path: Path) -> Iterator[Running]:
    """A study of twenty learners; after twelve runs the next one waits."""
    study = pair(
        DAUBPruner.paper(sizes=studies.SIZES),
        optuna.samplers.RandomSampler(seed=0),
        storage=f"sqlite:///{tmp_path}/study.db",
        name="wide",
        n_learners=20,
    )
    with running(study, Gated(wide, at=12, point=point)) as found:
        update_dashboard(study)  # the callback may be resting
        yield found


def drawn(browser: Any, plot_id: str) -> list[dict[str, Any]]:
    """Return what a plot of the page draws, nothing before it is drawn."""
    script = """
        const plot = document.getElementById(arguments[0]);
        if (!plot || !plot.data || !plot.querySelector("svg.main-svg")) return [];
        return plot.data.map(trace => ({
            type: trace.type, mode: trace.mode || "", x: [...(trace.x || [])],
            y: [...(trace.y || [])], n_dimensions: (trace.dimensions || []).length,
        }));
    """
    found: list[dict[str, Any]] = browser.execute_script(script, plot_id)
    return found


def test_the_study_of_learners_fills_the_pages_that_runs_leave_empty(
    browser: Any, search: Running, address: str
) -> None:
    study, objective, thread = search

    browser.get(f"{address}/note")
    until(lambda: "wide (learners)" in text(browser), "the note links to the study of learners")
    browser.find_element("link text", "wide (learners)").click()
    page = f"{address.rpartition('/')[0]}/2"
    until(lambda: browser.current_url == page, "the link leads to the study of learners")
    assert thread.is_alive(), "the worker runs while the page is open"

    until(lambda: drawn(browser, "plot-history"), "the history")
    values = [y for trace in drawn(browser, "plot-history") for y in trace["y"]]
    assert len({*values}) >= 12, "a value for each learner"
    importances = "graph-hyperparameter-importances"
    until(lambda: any(trace["y"] for trace in drawn(browser, importances)), "the importances")
    (bars,) = drawn(browser, importances)
    found = dict(zip([label.strip() for label in bars["y"]], bars["x"], strict=True))
    assert found["live"] > found["dead"] > 0.0

    browser.get(f"{page}/analytics")
    until(lambda: any(t["type"] == "contour" for t in drawn(browser, "graph-contour")), "contours")
    until(lambda: any(len(t["x"]) >= 12 for t in drawn(browser, "graph-rank")), "a rank for each")
    browser.get(f"{page}/smartSelection")
    coordinates = "plot-parallel-coordinate"
    until(
        lambda: any(t["n_dimensions"] == 4 for t in drawn(browser, coordinates)),
        "a value and three parameters as parallel coordinates",
    )
    browser.get(f"{page}/trials?numbers=0")
    until(lambda: "daub:forecast" in text(browser), "what is known of the learner")
    assert errors(browser) == []

    objective.gate.set()
    thread.join(PATIENCE)
    browser.get(page)
    until(lambda: "Best Trial" in text(browser), "the page after the end")
    until(
        lambda: len(drawn(browser, "graph-intermediate-values")) == len(learning_curves(study)),
        "a curve for each learner",
    )
    assert errors(browser) == []
