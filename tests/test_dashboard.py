"""The dashboard callback: what it writes, when, and that it never harms the study.

What is written is read back with the functions of optuna-dashboard itself.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from optuna_daub import DAUBPruner
from tests.study.process_study import open_storage
from tests.study.process_study import shared_storage
from tests.study.table_study import answer
from tests.study.table_study import by_formula
from tests.study.table_study import pair
from tests.study.table_study import sqlite
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import Table
from tests.visualization.studies import reads_of


pytest.importorskip("plotly")
optuna_dashboard = pytest.importorskip("optuna_dashboard")

from optuna_dashboard._custom_plot_data import get_plotly_graph_objects  # noqa: E402
from optuna_dashboard._note import get_note_from_system_attrs  # noqa: E402

from optuna_daub import dashboard  # noqa: E402
from optuna_daub import learning_curves  # noqa: E402
from optuna_daub import one_row_per_learner  # noqa: E402
from optuna_daub.dashboard import DashboardCallback  # noqa: E402
from optuna_daub.dashboard import update_dashboard  # noqa: E402
from optuna_daub.study import bulk  # noqa: E402


IDS = {f"daub-{name}" for name in ("learning-curves", "allocations", "search-history",
                                   "upper-bounds", "sample-agreement")}  # fmt: skip


def stored(study: optuna.Study) -> dict[str, Any]:
    attrs: dict[str, Any] = study._storage.get_study_system_attrs(study._study_id)
    return attrs


def figures(study: optuna.Study) -> dict[str, dict[str, Any]]:
    return {
        name: json.loads(text) for name, text in get_plotly_graph_objects(stored(study)).items()
    }


def write_figure(study: optuna.Study, figure: dict[str, Any]) -> dict[str, str]:
    """Write a figure as `update_dashboard` writes each, and return its pieces."""
    pieces = dashboard._pieces("dashboard:plot_data:long:", json.dumps(figure), stored(study))
    for key, text in pieces.items():
        study._storage.set_study_system_attr(study._study_id, key, text)
    return pieces


def run_note(study: optuna.Study, number: int) -> str:
    trial = study.trials[number]
    return get_note_from_system_attrs(stored(study), trial._trial_id)["body"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[optuna.Study]:
    """Return the studies drawn so far; drawing does nothing else."""
    calls: list[optuna.Study] = []
    monkeypatch.setattr(dashboard, "_update", lambda study, **_: calls.append(study))
    return calls


def drawn_of(study: optuna.Study) -> optuna.Study:
    """Return a study with its pictures and notes up to date."""
    update_dashboard(study)
    return study


def note_of(study: optuna.Study) -> str:
    """Return the note on a study, brought up to date."""
    return optuna_dashboard.get_note(drawn_of(study))  # type: ignore[no-any-return]


def test_legends_leave_two_thirds_of_the_dashboards_450_pixels() -> None:
    """A row has 19 pixels. If there are more, plotly shows a scroll bar."""
    study = studies.crowded(20, n_sizes=4)
    for graph_id in IDS:
        figure = dashboard.GRAPHS[graph_id](study)
        assert figure.layout.legend.orientation == "h"
        named = [each for each in figure.data if each.name and each.showlegend is not False]
        assert 19 * len(named) <= 450 / 3, graph_id


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> optuna.storages.RDBStorage:
    return optuna.storages.RDBStorage(sqlite(tmp_path_factory.mktemp("database")))


class TestPages:
    def test_each_figure_has_its_own_id_and_suits_light_and_dark_pages(self) -> None:
        shown = figures(drawn_of(studies.finished()))
        assert set(shown) == IDS
        for figure in shown.values():
            assert figure["data"]
            layout = figure["layout"]
            assert not layout.get("template")
            assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0, 0, 0, 0)"

    @pytest.mark.parametrize("make", studies.STATES, ids=lambda make: make.__name__)
    def test_every_state_is_shown_and_its_learners_are_stored_in_a_database(
        self, make: Any, database: optuna.storages.RDBStorage
    ) -> None:
        study = make()
        before = study.get_trials()
        assert note_of(study).startswith("### Data allocation\n")
        assert set(figures(study)) == IDS
        assert study.get_trials() == before, "pictures change no trial"
        rows = one_row_per_learner(study).trials
        kept = optuna.create_study(storage=database)
        assert bulk.replace_trials(kept._storage, kept._study_id, rows) == kept._study_id
        for row, want in zip(kept.trials, rows, strict=True):
            assert (row.state, row.values, row.params) == (want.state, want.values, want.params)
            assert row.intermediate_values == want.intermediate_values, "infinite ones too"
            assert (row.datetime_start, row.datetime_complete) == (
                want.datetime_start,
                want.datetime_complete,
            )

    def test_few_sizes_are_written_in_the_width_of_a_card(self) -> None:
        study = drawn_of(studies.crowded(2, n_sizes=12))
        axis = figures(study)["daub-learning-curves"]["layout"]["xaxis"]
        assert len(axis["tickvals"]) == len(axis["ticktext"]) <= 7
        assert axis["ticktext"][-1] == f"{study.pruner.policy.sizes[-1]:,}"

    def test_names_of_bars_do_not_touch_each_other_in_the_height_of_a_card(self) -> None:
        figure = figures(drawn_of(studies.crowded(20, n_sizes=3)))["daub-allocations"]
        names = {name for bars in figure["data"] for name in bars["y"]}
        room = 450 - figure["layout"]["margin"]["t"] - 80  # below them is the axis
        assert len(names) > 10
        assert room / len(names) >= 1.3 * figure["layout"]["yaxis"]["tickfont"]["size"]

    def test_a_long_figure_is_cut_and_put_together_again_and_a_shorter_one_leaves_nothing_of_it(
        self,
    ) -> None:
        study = studies.empty()
        figure = {"data": [*range(20_000)]}
        assert len(write_figure(study, figure)) > 2
        assert figures(study) == {"long": figure}
        write_figure(study, {"data": [1]})
        assert figures(study) == {"long": {"data": [1]}}

    def test_a_long_note_is_cut_and_put_together_again(self) -> None:
        study = studies.finished()
        generated = note_of(study)
        for own in ("My words.\n" * 10_000, "Fewer words.\n"):
            optuna_dashboard.save_note(study, f"{own}{generated}")
            assert note_of(study) == f"{own}{generated}"

    def test_what_has_not_changed_is_not_written(self) -> None:
        study = drawn_of(studies.finished())
        written = writes_of(study, "set_study_system_attr", lambda: update_dashboard(study))
        assert written == []


class TestNotes:
    def test_a_finished_study(self) -> None:
        study = studies.finished()
        note = note_of(study)
        elm = one_row_per_learner(study).trials[1].value
        note = note.replace(f"studies/{study._study_id}/", "studies/1/")
        learners_id = study._storage.get_study_id_from_name("trees (learners)")
        assert note.replace(f"studies/{learners_id})", "studies/2)") == (
            "### Data allocation\n"
            "* **2 ash** is the best: score 0.8750 on 800 examples.\n"
            "* It is 0.1250 ahead of what any other may still reach (0.7500).\n"
            "* Why: best: trained on all 800 examples with score 0.875; the "
            "largest other bound is 0.750 of learner 0.\n"
            "* 3,700 examples, 154% of training 3 learners on all the data; 37 seconds, about "
            "149% of the 25 seconds that this would take (8.9 of them projected from smaller "
            "sizes).\n"
            "* Small samples: rank correlation -0.87 (90 %: -0.87 to -0.87) between scores of 3 "
            "learners on 100 examples and on all the data.\n"
            "* One learner, one trial: [trees (learners)](/dashboard/studies/2).\n"
            "\n"
            "| learner | on all the data | bound | rests on |\n"
            "|---|---|---|---|\n"
            "| [2](/dashboard/studies/1/trials?numbers=2) | score 0.8750 | 0.8750 | 0.8750 on 800 "
            "examples |\n"
            "| [0](/dashboard/studies/1/trials?numbers=0) | score 0.7500 | 0.7500 | 0.7500 on 800 "
            "examples |\n"
            f"| [1](/dashboard/studies/1/trials?numbers=1) | forecast {elm:.4f} | 0.5000 | 0.5000 "
            "on 400 examples |\n"
            "\n"
            "A forecast rests on the learner's last score and on 8 promotions to more data, of "
            "all learners of this study."
        )

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (studies.empty, "No score has been reported yet."),
            (
                studies.pruner_alone,
                "Trials are learners only if a DataAllocationSampler has run them.",
            ),
        ],
    )
    def test_a_study_without_learners(self, make: Callable[[], optuna.Study], said: str) -> None:
        assert note_of(make()) == f"### Data allocation\n{said}"

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (
                studies.running,
                "800 examples, 50% of training 2 learners on all the data; 8 seconds, about 49% "
                "of the 16 seconds that this would take (all projected from smaller sizes).",
            ),
            (  # seconds that were all measured are not said to be projected
                studies.one_learner,
                "1,500 examples, 188% of training 1 learner on all the data; 15 seconds, 188% of "
                "the 8 seconds that this takes.",
            ),
            (
                lambda: studies.run(studies.new_study(), Table(RIVALS), n_trials=2),
                "* **0 oak** leads: score 0.6875 on 400 examples.\n"
                "* It is 0.1875 ahead of what any other may still reach (0.5000).",
            ),
            (
                studies.minimized,
                "It is 0.1250 ahead of what any other may still reach (0.2500).",
            ),
            (studies.abc, "of the best of 3 learners with probability 0.95"),
        ],
        ids=["what was saved", "all measured", "who may still come out ahead", "minimized", "abc"],
    )
    def test_what_is_said(self, make: Callable[[], optuna.Study], said: str) -> None:
        assert said in note_of(make())

    @pytest.mark.parametrize(
        ("own", "gap"),
        [
            ("My **trees**.\n\n", ""), ("My **trees**.\n", ""), ("My **trees**. ", "\n\n"),
            ("  \n a", "\n\n"), (" ", ""),
        ],
    )  # fmt: skip
    def test_the_users_own_words_stay_and_end_before_the_heading(self, own: str, gap: str) -> None:
        study = studies.run(studies.new_study(), Table(RIVALS), n_trials=1)
        optuna_dashboard.save_note(study, own)
        assert note_of(study).startswith(f"{own}{gap}### Data allocation\n")
        note = note_of(studies.run(study, Table(RIVALS)))
        assert note.startswith(f"{own}{gap}### Data allocation\n* **2 ash** is the best")
        assert note.count("### Data allocation") == 1

    def test_words_written_while_pictures_are_drawn_stay(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        study, draw = studies.finished(), dashboard.GRAPHS["daub-allocations"]

        def draw_slowly(study: optuna.Study) -> Any:
            optuna_dashboard.save_note(study, "My words.\n")
            return draw(study)

        monkeypatch.setitem(dashboard.GRAPHS, "daub-allocations", draw_slowly)
        assert note_of(study).startswith("My words.\n### Data allocation\n")

    def test_tiny_scores_are_not_said_to_be_zero(self) -> None:
        known = {name: [1e-7 * s for s in row if s] for name, row in RIVALS.items()}
        study = studies.run(studies.new_study(known), Table(known, training_score=1e-7))
        note = note_of(study)
        assert "score 8.75e-08 on 800 examples" in note
        assert "It is 1.25e-08 ahead of what any other may still reach (7.5e-08)." in note
        assert "0.0000 " not in note

    def test_a_loss_that_may_fall_to_zero_is_not_said_to_be_below(self) -> None:
        known = {"oak": (0.75, 0.5, 0.25, 0.1), "elm": (0.8, 0.4, 0.05, 0.3)}
        study = studies.new_study(known, direction="minimize")
        studies.run(study, Table(known, training_score=None), n_trials=2)
        note = note_of(study)
        assert "Another may still come out 0.3000 ahead of it (bound 0)." in note
        assert "-0" not in note
        for trial in study.trials:
            assert math.copysign(1.0, trial.user_attrs["daub:bound"]) == 1.0

    def test_learners_that_were_dropped_come_last(self) -> None:
        study = studies.new_study()

        def objective(trial: optuna.Trial) -> float:
            score = Table(RIVALS)(trial)
            trial.set_constraint("too large", float(trial.params["name"] == "ash"))
            return score

        note = note_of(studies.run(study, objective))
        rows = [line for line in note.splitlines() if line.startswith("| [")]
        assert [" dropped, " in row for row in rows] == [False, False, True]

    def test_runs(self) -> None:
        study = drawn_of(studies.failed_learners())
        assert run_note(study, 1) == (
            "**Learner 1**, trained on 100 then 200 then 400 examples in this run.\n\n"
            + study.trials[1].user_attrs["daub:reason"]
        )
        assert run_note(study, 3).startswith(
            "**Learner 3**, trained on no examples in this run.\n\nended by an error"
        )

    def test_runs_of_a_learner_link_to_each_other(self) -> None:
        study = drawn_of(studies.finished())
        (again,) = (t.number for t in study.trials[3:] if t.params == study.trials[0].params)
        page = f"/dashboard/studies/{study._study_id}/trials?numbers="
        links = f"Its runs: [0]({page}0), [{again}]({page}{again})."
        assert run_note(study, 0).endswith(links)
        assert run_note(study, again).endswith(links)
        assert "Its runs" not in run_note(study, 1)

    def test_a_running_run_has_no_note_yet(self) -> None:
        study = drawn_of(studies.running())
        assert run_note(study, 0)
        assert run_note(study, 1) == ""

    def test_a_copied_trial_is_no_run_of_this_study(self) -> None:
        study = studies.run(studies.new_study(), Table(RIVALS), n_trials=3)
        others = studies.finished().trials
        study.add_trials(others)
        note = note_of(studies.run(study, Table(RIVALS)))
        copies = range(3, 3 + len(others))
        assert not any(run_note(study, number) for number in copies)
        for number in (0, 1, 2):
            links = run_note(study, number).partition("Its runs: ")[2]
            assert not any(f"[{copy}]" in links for copy in copies)
        table = note.partition("|---|---|---|---|\n")[2]
        assert table.count("\n| [") + 1 == 3, "three learners"

    def test_a_note_of_the_user_on_a_run_stays(self) -> None:
        study = studies.new_study()

        def objective(trial: optuna.Trial) -> float:
            optuna_dashboard.save_note(trial, "Look here.")
            return Table(RIVALS)(trial)

        study.optimize(objective, n_trials=1)
        assert run_note(drawn_of(study), 0) == "Look here."


def test_notes_show_names_and_errors_as_they_are() -> None:
    """A category or an error is no Markdown, nor HTML."""
    known = {"*oak* <b>": (0.5, 0.625, 0.75, 0.875), "elm": (0.5, 0.75, None, None)}
    table = studies.Table(known)

    def objective(trial: optuna.Trial) -> float:
        try:
            return table(trial)
        except ArithmeticError as error:
            raise ArithmeticError("a_b | <img src=x>") from error

    study = studies.new_study(known)
    study.optimize(objective, catch=ArithmeticError)
    note = note_of(study)
    notes = [*(run_note(study, trial.number) for trial in study.trials), note]
    assert "\\*oak\\* \\<b\\>" in notes[-1]
    assert any("a\\_b \\| \\<img src=x\\>" in note for note in notes)
    assert not any("<" in note.replace("\\<", "") for note in notes)


def learners_of(study: optuna.Study) -> optuna.Study:
    """Return the study of learners as another process would read it."""
    backend = study._storage
    if isinstance(backend, optuna.storages._cached_storage._CachedStorage):
        backend = optuna.storages.RDBStorage(backend._backend.url)
    return optuna.load_study(study_name=f"{study.study_name} (learners)", storage=backend)


@pytest.fixture(params=["memory", "sqlite", "journal"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        return sqlite(tmp_path)
    if request.param == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
        return optuna.storages.JournalStorage(backend)
    return None


SHOWN = (
    "number", "state", "values", "params", "distributions", "intermediate_values", "user_attrs",
    "system_attrs", "datetime_start", "duration",
)  # fmt: skip
"""Fields that a row of the study of learners shares with the row of its learner."""


class TestStudyOfLearners:
    def test_it_has_the_rows_of_the_learners_and_each_study_links_to_the_other(
        self, place: Any
    ) -> None:
        study = studies.new_study(storage=place)
        for n_trials in (2, 1, None):  # it grows, and what it had changes
            studies.run(study, Table(RIVALS), n_trials=n_trials)
            before = study.get_trials()
            note = note_of(study)
            assert study.get_trials() == before, "those of the study itself stay as they are"
            rows, wanted = learners_of(study).trials, one_row_per_learner(study).trials
            assert len(rows) == len(wanted) == len(learning_curves(study))
            for row, want in zip(rows, wanted, strict=True):
                for name in SHOWN:
                    assert getattr(row, name) == getattr(want, name), name
        learners = learners_of(study)
        assert learners.best_value == 0.875
        assert f"(/dashboard/studies/{learners._study_id})" in note
        back = f"[trees](/dashboard/studies/{study._study_id})"
        assert back in optuna_dashboard.get_note(learners)

    def test_in_a_database_everything_keeps_its_id(self, tmp_path: Path) -> None:
        study = studies.new_study(storage=sqlite(tmp_path))
        before = learners_of(drawn_of(studies.run(study, Table(RIVALS), n_trials=2)))
        ids = [trial._trial_id for trial in before.trials]
        after = learners_of(drawn_of(studies.run(study, Table(RIVALS))))
        assert after._study_id == before._study_id
        assert [trial._trial_id for trial in after.trials][:2] == ids

    def test_a_row_too_many_is_taken_away(self, tmp_path: Path) -> None:
        study = optuna.create_study(storage=sqlite(tmp_path))
        rows = one_row_per_learner(studies.finished()).trials
        bulk.replace_trials(study._storage, study._study_id, rows)
        bulk.replace_trials(study._storage, study._study_id, rows[:1])
        again = optuna.load_study(study_name=None, storage=study._storage._backend.url)
        (row,) = again.trials
        assert row.params == rows[0].params
        # SQLite gives a new trial the id of the one that went.
        again.ask()
        new = again.trials[1]
        assert new.params == new.user_attrs == new.system_attrs == new.intermediate_values == {}

    def test_a_name_of_markdown_is_shown_as_it_is(self) -> None:
        study = pair(DAUBPruner.paper(sizes=studies.SIZES), name="a]b*", n_learners=3)
        drawn_of(studies.run(study, Table(RIVALS)))
        note = optuna_dashboard.get_note(learners_of(study))
        assert "The learners of [a\\]b\\*](/dashboard" in note

    def test_a_study_of_this_name_that_is_not_ours_is_left_alone(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        study = studies.finished()
        other = optuna.create_study(study_name="trees (learners)", storage=study._storage)
        other.add_trial(optuna.create_trial(value=1.0))
        update_dashboard(study)
        assert "must not be named 'trees (learners)'" in caplog.text
        assert [trial.value for trial in other.trials] == [1.0]
        assert set(figures(study)) == IDS

    def test_hundreds_of_learners_are_written_by_few_statements(
        self, database: optuna.storages.RDBStorage
    ) -> None:
        study = optuna.create_study(storage=database)
        rows = one_row_per_learner(studies.finished()).trials * 100
        statements: list[str] = []
        sqlalchemy.event.listen(
            database.engine, "before_cursor_execute", lambda *args: statements.append(args[2])
        )
        bulk.replace_trials(study._storage, study._study_id, rows)
        assert len(statements) < 2 * len(rows), "trial by trial it is dozens for each"
        assert len(study.trials) == len(rows)


_score = by_formula(lambda x, n: x - 10 / n, seconds=lambda x, n: n / 1000)


def _begun(place: Any, name: str = "s", n_learners: int | None = None) -> optuna.Study:
    base = optuna.samplers.RandomSampler(seed=0)
    pruner = DAUBPruner(max_resource=20_000)
    return pair(pruner, base, storage=place, name=name, n_learners=n_learners)


def _go_on(study: optuna.Study, n_trials: int, callback: DashboardCallback) -> None:
    """Run trials one by one, none of which is the last one of an `optimize`."""
    for _ in range(n_trials):
        study.optimize(_score, n_trials=1)
        callback._next = 0.0  # drawing takes a hundredth of the time, and these trials take none
        callback(study, study.trials[-1])


def writes_of(study: optuna.Study, name: str, act: Callable[[], object]) -> list[Any]:
    """Return the calls of a method of the study's storage while something is done."""
    calls: list[Any] = []
    write = getattr(study._storage, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            study._storage,
            name,
            lambda *args, **more: (calls.append(args), write(*args, **more))[1],
        )
        act()
    return calls


def _rows_of(storage: optuna.storages.BaseStorage) -> tuple[optuna.Study, list[Any]]:
    """Return a study with the rows of learners, and these."""
    study = optuna.create_study(storage=storage, direction="maximize")
    rows = one_row_per_learner(studies.finished()).trials
    bulk.replace_trials(storage, study._study_id, rows)
    return study, rows


def _range(rows: list[Any]) -> float:
    values = [row.value for row in rows]
    return max(values) - min(values)


def _move_bound(row: Any, least: float) -> None:
    row.user_attrs["daub:bound"] += least


def _move_forecast(row: Any, least: float) -> None:
    row.values = [row.values[0] - least]


def _other_reason(row: Any) -> dict[str, str]:
    return {"daub:reason": "waits: promises 3"} if row.user_attrs["daub:forecast"] else {}


CHANGES: dict[str, Callable[[Any, float], object]] = {
    "nothing": lambda row, least: None,
    "forecast": _move_forecast,
    "bound": _move_bound,
    "reason": lambda row, least: row.user_attrs.update(_other_reason(row)),
}


class TestJournals:
    """A journal keeps all that is written, so only news may be written."""

    @pytest.fixture(params=["file", "redis"])
    def kept(self, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
        kind = "journal_file" if request.param == "file" else "journal_redis"
        with shared_storage(kind, tmp_path) as address:
            yield open_storage(address)

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "journal.log"

    def test_a_journal_grows_by_a_few_times_its_trials(self, place: Path) -> None:
        study = _begun(JournalStorage(JournalFileBackend(str(place))))
        n = 20
        study.optimize(_score, n_trials=n)
        per_trial = place.stat().st_size / n
        callback = DashboardCallback(every=0)
        _go_on(study, 1, callback)
        before = place.stat().st_size
        _go_on(study, n, callback)
        grown = (place.stat().st_size - before) / n
        update_dashboard(study)
        drawing = place.stat().st_size - before - n * grown
        assert grown < 8 * per_trial
        assert grown < drawing / 4, "each time it would be more than a drawing"

    def test_a_new_learner_is_one_more_row(self, kept: Any) -> None:
        study = _begun(kept, f"s{uuid.uuid4().hex}")
        study.optimize(_score, n_trials=40)  # so one more moves no forecast far
        update_dashboard(study)
        shown, n_learners = learners_of(study), len(learning_curves(study))
        before = shown.trials
        study.enqueue_trial({"x": 0.5})
        study.optimize(_score, n_trials=1)
        written = writes_of(study, "create_new_trial", lambda: update_dashboard(study))
        after = learners_of(study)
        assert after._study_id == shown._study_id
        assert after.trials[:n_learners] == before
        assert len(after.trials) == len(learning_curves(study)) > n_learners
        assert len(written) == len(after.trials) - n_learners

    def test_what_a_learner_has_gained_is_seen(self, kept: Any) -> None:
        # All learners of a closed pool are known after 20 trials, so later ones resume some.
        study = _begun(kept, f"s{uuid.uuid4().hex}", n_learners=20)
        study.optimize(_score, n_trials=20)
        update_dashboard(study)
        steps = {row.number: row.intermediate_values for row in learners_of(study).trials}
        for _ in range(200):
            study.optimize(_score, n_trials=1)
            curves = {curve.learner: curve for curve in learning_curves(study)}
            if any(len(curves[i].observations) > len(steps[i]) for i in steps if i in curves):
                break
        else:
            pytest.fail("no learner was resumed")
        update_dashboard(study)
        seen = {row.user_attrs["daub:learner"]: row for row in learners_of(study).trials}
        assert {*seen} == {*curves}
        for learner, curve in curves.items():
            assert [*seen[learner].intermediate_values] == [o.size for o in curve.observations]

    def test_forecasts_that_moved_where_anybody_sees_it_are_written(self, kept: Any) -> None:
        study, rows = _rows_of(kept)
        moved = copy.deepcopy(rows)
        moved[0].values = [rows[0].values[0] + 0.02 * _range(rows)]
        study_id = bulk.replace_trials(kept, study._study_id, moved)
        assert [row.values for row in kept.get_all_trials(study_id)] == [r.values for r in moved]

    def test_that_another_is_the_best_now_is_written(self, kept: Any) -> None:
        study, rows = _rows_of(kept)
        changed = copy.deepcopy(rows)
        (best,) = [row for row in changed if row.user_attrs["daub:reason"].startswith("best")]
        best.user_attrs["daub:reason"] = "trained on all 800 examples"
        study_id = bulk.replace_trials(kept, study._study_id, changed)
        stored = [row.user_attrs["daub:reason"] for row in kept.get_all_trials(study_id)]
        assert not any(reason.startswith("best") for reason in stored)

    @pytest.mark.parametrize("change", [*CHANGES])
    def test_what_nobody_sees_is_not_written(self, kept: Any, change: str) -> None:
        study, rows = _rows_of(kept)
        changed = copy.deepcopy(rows)
        for row in changed:
            CHANGES[change](row, 0.004 * _range(rows))
        ids = [trial._trial_id for trial in kept.get_all_trials(study._study_id)]
        assert bulk.replace_trials(kept, study._study_id, changed) == study._study_id
        assert [trial._trial_id for trial in kept.get_all_trials(study._study_id)] == ids

    def test_a_learner_is_written_when_it_has_a_score(self, kept: Any) -> None:
        study, rows = _rows_of(kept)
        running = optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING, user_attrs={"daub:learner": 99}
        )
        for _ in range(2):
            assert bulk.replace_trials(kept, study._study_id, [*rows, running]) == study._study_id
            assert len(kept.get_all_trials(study._study_id)) == len(rows)
        scored = optuna.trial.create_trial(value=0.5, user_attrs={"daub:learner": 99})
        between = [rows[0], scored, *rows[1:]]
        assert bulk.replace_trials(kept, study._study_id, between) == study._study_id
        last = kept.get_all_trials(study._study_id)[-1]
        assert (len(rows), 0.5) == (last.number, last.value)

    def test_trials_of_others_are_written_once(self, kept: Any) -> None:
        study, rows = _rows_of(kept)
        others = [optuna.trial.create_trial(value=each) for each in (1.0, math.inf)]
        others += [copy.deepcopy(others[0])]
        for _ in range(2):
            assert bulk.replace_trials(kept, study._study_id, [*rows, *others]) == study._study_id
            assert len(kept.get_all_trials(study._study_id)) == len(rows) + len(others)

    def test_notes_are_up_to_date_and_the_end_is_drawn_as_a_whole(self, place: Path) -> None:
        study = _begun(JournalStorage(JournalFileBackend(str(place))))
        callback = DashboardCallback(every=0)
        study.optimize(_score, n_trials=12)
        _go_on(study, 2, callback)
        learners = optuna.load_study(study_name="s (learners)", storage=study._storage)
        n_rows, n_learners = len(learners.trials), len(learning_curves(study))
        _go_on(study, 2, callback)
        assert len(learning_curves(study)) > n_learners
        assert len(learners.trials) == n_rows
        best = answer(study)
        assert f"score {best.score:.4f}" in optuna_dashboard.get_note(study)
        assert f"/dashboard/studies/{learners._study_id}" in optuna_dashboard.get_note(study)
        study.optimize(_score, n_trials=1, callbacks=[callback])
        learners = optuna.load_study(study_name="s (learners)", storage=study._storage)
        assert len(learners.trials) == len(learning_curves(study))
        assert figures(study) == expected(study)

    def test_other_workers_draw_no_earlier(self, place: Path) -> None:
        study = _begun(JournalStorage(JournalFileBackend(str(place))))
        study.optimize(_score, n_trials=11)
        _go_on(study, 1, DashboardCallback(every=0))
        before = stored(study)["daub:drawing"]["trials"]
        assert before == 12
        for _ in range(2):  # two other processes, as far as the callback can tell
            other = DashboardCallback(every=0)
            _go_on(study, 1, other)
            other(study, study.trials[-1])
        assert stored(study)["daub:drawing"]["trials"] == before

    def test_elsewhere_all_is_drawn_each_time(self, tmp_path: Path) -> None:
        study = _begun(sqlite(tmp_path))
        study.optimize(_score, n_trials=9)
        _go_on(study, 2, DashboardCallback(every=0))
        learners = optuna.load_study(study_name="s (learners)", storage=study._storage)
        assert len(learners.trials) == len(learning_curves(study))
        assert figures(study) == expected(study)


class TestWhen:
    @pytest.mark.parametrize("limit", [{}, {"n_trials": 2}, {"timeout": 0.5}])
    def test_the_last_trial_is_drawn(self, limit: dict[str, Any]) -> None:
        """Also where the study has no end of its own, and before the timeout."""
        study = studies.new_study()

        def slow(trial: optuna.Trial) -> float:
            time.sleep(0.3 if "timeout" in limit else 0.0)
            return Table(RIVALS)(trial)

        study.optimize(slow, callbacks=[DashboardCallback(every=3600)], **limit)
        assert len(study.trials[0].intermediate_values) == 3
        assert figures(study) == expected(study)
        assert ("is the best" in optuna_dashboard.get_note(study)) == (not limit)

    def test_between_two_drawings_it_waits_and_costs_next_to_nothing(
        self, drawn: list[optuna.Study]
    ) -> None:
        callback, study = DashboardCallback(every=3600), studies.running()
        trial = study.trials[0]
        callback(study, trial)
        assert reads_of(study, lambda: callback(study, trial)) == []
        assert len(drawn) == 1

    def test_it_may_wait_for_longer_than_an_hour(
        self, drawn: list[optuna.Study], skip: Callable[[float], None]
    ) -> None:
        callback, study = DashboardCallback(every=7200), studies.running()
        for seconds, count in ((0, 1), (3700, 1), (3700, 2)):
            skip(seconds)
            callback(study, study.trials[0])
            assert len(drawn) == count

    def test_without_waiting_it_draws_after_every_run(self, drawn: list[optuna.Study]) -> None:
        study = studies.new_study()
        study.optimize(Table(RIVALS), callbacks=[DashboardCallback(every=0)])
        assert len(drawn) >= 2

    def test_one_worker_at_a_time_draws(self, drawn: list[optuna.Study], tmp_path: Path) -> None:
        study = studies.new_study(storage=sqlite(tmp_path))
        studies.run(study, Table(RIVALS), n_trials=1)
        trial = study.trials[0]
        for _ in range(3):  # three processes, as far as the callback can tell
            DashboardCallback(every=3600)(study, trial)
        assert len(drawn) == 1

    def test_a_worker_that_died_is_followed_by_another(
        self, drawn: list[optuna.Study], skip: Callable[[float], None]
    ) -> None:
        study = studies.running()
        DashboardCallback(every=0.05)(study, study.trials[0])
        other = DashboardCallback(every=0.05)
        other(study, study.trials[0])  # it cannot know how long ago that was
        assert len(drawn) == 1
        skip(0.1)
        other(study, study.trials[0])
        assert len(drawn) == 2

    def test_a_thread_does_not_wait_for_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study, entered, leave = studies.running(), threading.Event(), threading.Event()

        def draw(_: optuna.Study, *, is_whole: bool) -> None:
            entered.set()
            assert leave.wait(30)

        monkeypatch.setattr(dashboard, "_update", draw)
        callback, trial = DashboardCallback(every=0), study.trials[0]
        other = threading.Thread(target=callback, args=(study, trial))
        other.start()
        assert entered.wait(30)
        callback(study, trial)  # would block for ever
        assert other.is_alive()
        leave.set()
        other.join(30)
        assert not other.is_alive()

    def test_slow_drawing_takes_a_hundredth_of_the_time(
        self, monkeypatch: pytest.MonkeyPatch, skip: Callable[[float], None]
    ) -> None:
        n_drawn: list[int] = []

        def draw(_: optuna.Study, *, is_whole: bool) -> None:
            n_drawn.append(1)
            skip(5.0)

        monkeypatch.setattr(dashboard, "_update", draw)
        callback, study = DashboardCallback(every=0), studies.running()
        for pause, expected in ((0.0, 1), (494.0, 1), (2.0, 2)):
            skip(pause)
            callback(study, study.trials[0])
            assert len(n_drawn) == expected
        drawing = dashboard._read_drawing(study)
        assert drawing is not None
        assert drawing.pause == pytest.approx(495.0, abs=1.0), "other workers wait as long"

    def test_what_cannot_be_drawn_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def draw(_: optuna.Study, *, is_whole: bool) -> None:
            raise OSError("disk full")

        monkeypatch.setattr(dashboard, "_update", draw)
        study = studies.new_study()
        study.optimize(Table(RIVALS), callbacks=[DashboardCallback(every=3600)])
        assert study.best_value == 0.875
        assert "could not be brought up to date" in caplog.text
        assert "disk full" in caplog.text

    @pytest.mark.parametrize("ahead", [-300.0, 300.0])
    def test_the_clocks_of_two_machines_are_not_compared(
        self, drawn: list[optuna.Study], ahead: float, monkeypatch: pytest.MonkeyPatch, skip: Any
    ) -> None:
        study, now = studies.running(), time.time
        here, there = DashboardCallback(every=0.2), DashboardCallback(every=0.2)
        with monkeypatch.context() as machine:
            machine.setattr(time, "time", lambda: now() + ahead)
            there(study, study.trials[0])
        here(study, study.trials[0])
        assert len(drawn) == 1, "another worker has just drawn"
        skip(0.3)
        here(study, study.trials[0])
        assert len(drawn) == 2, "its pause is over"

    def test_it_can_be_sent_to_a_worker(self, drawn: list[optuna.Study]) -> None:
        callback, study = DashboardCallback(every=60), studies.running()
        pickle.loads(pickle.dumps(callback))(study, study.trials[0])
        assert len(drawn) == 1


def expected(study: optuna.Study) -> dict[str, dict[str, Any]]:
    """Return the figures of the study as it is now."""
    return {name: json.loads(text) for name, text in dashboard._figures(study).items()}


def test_a_picture_that_cannot_be_drawn_keeps_no_other_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(study: optuna.Study) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(dashboard.GRAPHS, "daub-upper-bounds", broken)
    figures = dashboard._figures(studies.finished())
    assert {*figures} == {*dashboard.GRAPHS} - {"daub-upper-bounds"}
    assert "'daub-upper-bounds' could not be drawn" in caplog.text


def test_without_plotly_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"pip install 'optuna-daub\[dashboard\]'"):
        update_dashboard(studies.finished())
