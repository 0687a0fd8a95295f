"""The dashboard callback: what it writes, when, and that it never harms the study.

What is written is read back with the functions of optuna-dashboard itself.
"""

from __future__ import annotations

import json
import logging
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import optuna
import pytest

from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import Table


pytest.importorskip("plotly")
optuna_dashboard = pytest.importorskip("optuna_dashboard")

from optuna_dashboard._custom_plot_data import get_plotly_graph_objects  # noqa: E402
from optuna_dashboard._note import get_note_from_system_attrs  # noqa: E402

from optuna_daub import dashboard  # noqa: E402
from optuna_daub.dashboard import DashboardCallback  # noqa: E402
from optuna_daub.dashboard import update_dashboard  # noqa: E402
from optuna_daub.study import storage  # noqa: E402


IDS = {"daub-learning-curves", "daub-allocations", "daub-upper-bounds"}


def stored(study: optuna.Study) -> dict[str, Any]:
    attrs: dict[str, Any] = study._storage.get_study_system_attrs(study._study_id)
    return attrs


def figures(study: optuna.Study) -> dict[str, dict[str, Any]]:
    return {
        name: json.loads(text) for name, text in get_plotly_graph_objects(stored(study)).items()
    }


def run_note(study: optuna.Study, number: int) -> str:
    trial = study.trials[number]
    return get_note_from_system_attrs(stored(study), trial._trial_id)["body"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[optuna.Study]:
    """Return the studies drawn so far; drawing does nothing else."""
    calls: list[optuna.Study] = []
    monkeypatch.setattr(dashboard, "update_dashboard", calls.append)
    return calls


class TestPages:
    def test_each_figure_has_its_own_id(self) -> None:
        study = studies.finished()
        update_dashboard(study)
        shown = figures(study)
        assert set(shown) == IDS
        assert all(figure["data"] for figure in shown.values())

    @pytest.mark.parametrize("make", studies.STATES, ids=lambda make: make.__name__)
    def test_every_state_is_shown(self, make: Any) -> None:
        study = make()
        update_dashboard(study)
        assert set(figures(study)) == IDS
        assert optuna_dashboard.get_note(study).startswith("### Data allocation\n")

    def test_figures_suit_light_and_dark_pages(self) -> None:
        study = studies.finished()
        update_dashboard(study)
        for figure in figures(study).values():
            layout = figure["layout"]
            assert not layout.get("template")
            assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0, 0, 0, 0)"

    def test_a_long_figure_is_cut_and_put_together_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study = studies.finished()
        update_dashboard(study)
        whole = figures(study)
        other = studies.finished()
        monkeypatch.setattr(dashboard, "PIECE", 100)
        update_dashboard(other)
        assert len(stored(other)) > len(stored(study)) + 50
        assert figures(other) == whole

    def test_nothing_is_left_of_a_longer_figure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study = studies.finished()
        monkeypatch.setattr(dashboard, "PIECE", 100)
        update_dashboard(study)
        long = figures(study)
        monkeypatch.setattr(dashboard, "PIECE", 40_000)
        update_dashboard(study)
        assert figures(study) == long

    def test_what_has_not_changed_is_not_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study = studies.finished()
        update_dashboard(study)
        written: list[str] = []
        write = study._storage.set_study_system_attr

        def spy(study_id: int, key: str, value: Any) -> None:
            written.append(key)
            write(study_id, key, value)

        monkeypatch.setattr(study._storage, "set_study_system_attr", spy)
        update_dashboard(study)
        assert written == []

    def test_pictures_change_no_trial(self) -> None:
        study = studies.running()
        before = study.get_trials()
        update_dashboard(study)
        assert study.get_trials() == before

    def test_a_foreign_pruner_is_refused(self) -> None:
        with pytest.raises(ValueError, match="depend on its pruner"):
            update_dashboard(optuna.create_study())


class TestNotes:
    def test_a_finished_study(self) -> None:
        study = studies.finished()
        update_dashboard(study)
        assert optuna_dashboard.get_note(study) == (
            "### Data allocation\n"
            "* **2 ash** is the best: score 0.8750 on 800 examples.\n"
            "* It is 0.1250 ahead of what any other may still reach (0.7500).\n"
            "* The last decision on it: best: trained on all 800 examples with score 0.875; the "
            "largest other bound is 0.750 of learner 0.\n"
            "* 3,700 examples, 154% of training 3 learners on all the data.\n"
            "* 37 seconds, about 154% of training 3 learners on all the data."
        )

    def test_what_was_saved(self) -> None:
        study = studies.running()
        update_dashboard(study)
        note = optuna_dashboard.get_note(study)
        assert "800 examples, 50% of training 2 learners on all the data: 800 saved." in note

    def test_who_may_still_come_out_ahead(self) -> None:
        study = studies.run(studies.new_study(), Table(RIVALS), n_trials=2)
        update_dashboard(study)
        note = optuna_dashboard.get_note(study)
        assert "**0 oak** leads: score 0.6875 on 400 examples." in note
        assert "It is 0.1875 ahead of what any other may still reach (0.5000)." in note

    def test_minimized_gaps(self) -> None:
        study = studies.minimized()
        update_dashboard(study)
        note = optuna_dashboard.get_note(study)
        assert "It is 0.1250 ahead of what any other may still reach (0.2500)." in note

    def test_the_promise_of_abc_is_told(self) -> None:
        study = studies.abc()
        update_dashboard(study)
        assert "of the best of 3 learners with probability 0.95" in optuna_dashboard.get_note(
            study
        )

    def test_the_users_own_words_stay(self) -> None:
        study = studies.run(studies.new_study(), Table(RIVALS), n_trials=1)
        optuna_dashboard.save_note(study, "My **trees**.\n\n")
        update_dashboard(study)
        assert optuna_dashboard.get_note(study).startswith(
            "My **trees**.\n\n### Data allocation\n"
        )
        studies.run(study, Table(RIVALS))
        update_dashboard(study)
        note = optuna_dashboard.get_note(study)
        assert note.startswith("My **trees**.\n\n### Data allocation\n* **2 ash** is the best")
        assert note.count("### Data allocation") == 1

    def test_runs(self) -> None:
        study = studies.failed_learners()
        update_dashboard(study)
        assert run_note(study, 1) == (
            "**Learner 1**, trained on 100 then 200 then 400 examples in this run.\n\n"
            + study.trials[1].user_attrs["daub:reason"]
        )
        assert run_note(study, 3).startswith(
            "**Learner 3**, trained on no examples in this run.\n\nended by an error"
        )

    def test_a_running_run_has_no_note_yet(self) -> None:
        study = studies.running()
        update_dashboard(study)
        assert run_note(study, 0)
        assert run_note(study, 1) == ""

    def test_a_note_of_the_user_on_a_run_stays(self) -> None:
        study = studies.new_study()

        def objective(trial: optuna.Trial) -> float:
            optuna_dashboard.save_note(trial, "Look here.")
            return Table(RIVALS)(trial)

        study.optimize(objective, n_trials=1)
        update_dashboard(study)
        assert run_note(study, 0) == "Look here."


class TestWhen:
    def test_the_end_of_a_study_is_drawn(self) -> None:
        study = studies.new_study()
        study.optimize(Table(RIVALS), callbacks=[DashboardCallback(every=3600)])
        assert "is the best" in optuna_dashboard.get_note(study)
        assert figures(study) == expected(study)

    def test_it_waits_between_two_drawings(self, drawn: list[optuna.Study]) -> None:
        callback, study = DashboardCallback(every=3600), studies.running()
        trial = study.trials[0]
        for _ in range(5):
            callback(study, trial)
        assert len(drawn) == 1

    def test_without_waiting_it_draws_after_every_run(self, drawn: list[optuna.Study]) -> None:
        study = studies.new_study()
        study.optimize(Table(RIVALS), callbacks=[DashboardCallback(every=0)])
        assert len(drawn) >= 2

    def test_one_worker_at_a_time_draws(self, drawn: list[optuna.Study], tmp_path: Path) -> None:
        study = studies.new_study(storage=f"sqlite:///{tmp_path}/study.db")
        studies.run(study, Table(RIVALS), n_trials=1)
        trial = study.trials[0]
        for _ in range(3):  # three processes, as far as the callback can tell
            DashboardCallback(every=3600)(study, trial)
        assert len(drawn) == 1

    def test_a_worker_that_died_is_followed_by_another(self, drawn: list[optuna.Study]) -> None:
        study = studies.running()
        DashboardCallback(every=0.05)(study, study.trials[0])
        time.sleep(0.1)
        DashboardCallback(every=0.05)(study, study.trials[0])
        assert len(drawn) == 2

    def test_a_thread_does_not_wait_for_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study, entered, leave = studies.running(), threading.Event(), threading.Event()

        def draw(_: optuna.Study) -> None:
            entered.set()
            assert leave.wait(30)

        monkeypatch.setattr(dashboard, "update_dashboard", draw)
        callback, trial = DashboardCallback(every=0), study.trials[0]
        other = threading.Thread(target=callback, args=(study, trial))
        other.start()
        assert entered.wait(30)
        callback(study, trial)  # would block for ever
        assert other.is_alive()
        leave.set()
        other.join(30)
        assert not other.is_alive()

    def test_slow_drawing_takes_a_twentieth_of_the_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[float] = []

        def draw(_: optuna.Study) -> None:
            calls.append(time.perf_counter())
            time.sleep(0.05)

        monkeypatch.setattr(dashboard, "update_dashboard", draw)
        callback, study = DashboardCallback(every=0), studies.running()
        trial = study.trials[0]
        while len(calls) < 2:
            callback(study, trial)
        assert calls[1] - calls[0] >= 0.05 / 0.05

    def test_what_cannot_be_drawn_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def draw(_: optuna.Study) -> None:
            raise OSError("disk full")

        monkeypatch.setattr(dashboard, "update_dashboard", draw)
        study = studies.new_study()
        with caplog.at_level(logging.WARNING, "optuna_daub.dashboard"):
            study.optimize(Table(RIVALS), callbacks=[DashboardCallback(every=3600)])
        assert study.best_value == 0.875
        assert "could not be brought up to date" in caplog.text
        assert "disk full" in caplog.text

    def test_between_two_drawings_it_costs_next_to_nothing(self, drawn: list[Any]) -> None:
        callback, study = DashboardCallback(every=3600), studies.running()
        trial = study.trials[0]
        callback(study, trial)
        begun = time.perf_counter()
        for _ in range(1000):
            callback(study, trial)
        assert (time.perf_counter() - begun) / 1000 < 1e-4

    def test_a_clock_that_is_ahead_does_not_stop_it(self, drawn: list[optuna.Study]) -> None:
        study = studies.running()
        ahead = time.time() + 86_400
        storage.write_drawing(study, ahead)
        DashboardCallback(every=60)(study, study.trials[0])
        assert len(drawn) == 1

    def test_it_can_be_sent_to_a_worker(self, drawn: list[optuna.Study]) -> None:
        callback, study = DashboardCallback(every=60), studies.running()
        pickle.loads(pickle.dumps(callback))(study, study.trials[0])
        assert len(drawn) == 1

    def test_every_is_not_negative(self) -> None:
        with pytest.raises(ValueError, match="`every` must be at least 0 seconds, but got -1"):
            DashboardCallback(every=-1)


def expected(study: optuna.Study) -> dict[str, dict[str, Any]]:
    """Return the figures of the study as it is now."""
    other = optuna.create_study()
    pages = dashboard._graphs(study, {})
    for key, value in pages.items():
        other._storage.set_study_system_attr(other._study_id, key, value)
    return figures(other)
