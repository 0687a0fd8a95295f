"""The progress bar: what it says, when it is quiet, its end; and the bar of Optuna."""

from __future__ import annotations

import io
import pickle
import re
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import replace
from typing import Any

import optuna
import pytest

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub.study import best_learner
from optuna_daub.study import host
from optuna_daub.visualization import ProgressBar
from optuna_daub.visualization import _progress
from optuna_daub.visualization._progress import examples_left
from optuna_daub.visualization._progress import standing
from tests.study.table_study import TableObjective
from tests.study.table_study import table_study
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES
from tests.visualization.studies import reads_of


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [line for line in re.split(r"[\r\n]", self.getvalue()) if "examples" in line]


def run(progress: ProgressBar, n_jobs: int = 1, **limits: Any) -> Terminal:
    """Return what a study shows on a terminal while it runs."""
    study, terminal = studies.new_study(), Terminal()
    with redirect_stderr(terminal):
        study.optimize(studies.Table(RIVALS), callbacks=[progress], n_jobs=n_jobs, **limits)
    return terminal


def test_it_says_who_leads_and_what_was_spent() -> None:
    terminal = run(ProgressBar(every=0))
    last = terminal.lines[-1]
    assert "2 ash at 800: 0.8750, gap -0.1250" in last
    assert re.search(r"3,700 examples, \d\d:\d\d<00:00", last)
    assert terminal.getvalue().count("\n") == 1, "one line, closed with the study"


class TestWithoutATerminal:
    def test_it_is_a_line_at_the_end(self, capsys: pytest.CaptureFixture[str]) -> None:
        studies.new_study().optimize(studies.Table(RIVALS), callbacks=[ProgressBar(every=0)])
        out, err = capsys.readouterr()
        assert out == ""
        said = r"2 ash at 800: 0\.8750, gap -0\.1250; 3,700 examples, \d\d:\d\d<00:00\n"
        assert re.fullmatch(said, err)

    def test_and_a_line_a_minute(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = [1000.0]
        monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
        study, progress = studies.running(), ProgressBar(every=0)
        (trial, *_) = study.get_trials(deepcopy=False)
        for _ in range(150):  # a run a second
            progress(study, trial)
            clock[0] += 1.0
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 2
        assert lines[0].startswith("0 oak at 400: 0.6875; 800 examples, 01:00<")


class TestWhatIsLeft:
    @staticmethod
    def left(terminal: Terminal) -> list[str]:
        return [line.rpartition("<")[2].strip() for line in terminal.lines]

    def test_trials_at_the_speed_so_far(self, skip: Callable[[float], None]) -> None:
        class Slow(studies.Table):
            def __call__(self, trial: optuna.Trial) -> float:
                skip(1.0)
                return super().__call__(trial)

        known = {f"{i}": (0.5, 0.6, 0.7, 0.8) for i in range(9)}
        study, terminal = studies.new_study(known), Terminal()
        with redirect_stderr(terminal):
            study.optimize(Slow(known), n_trials=3, callbacks=[ProgressBar(every=0)])
        elapsed, left = (
            int(text.strip()[3:]) for text in terminal.lines[0].rpartition(", ")[2].split("<")
        )
        assert elapsed >= 1
        assert 2 * elapsed <= left <= 2 * elapsed + 2, "two more of three, both rounded down"
        assert self.left(terminal)[-1] == "00:00"

    def test_the_timeout(self) -> None:
        left = self.left(run(ProgressBar(every=0), timeout=3600))
        assert left[0] >= "59:40", "nothing else is known after the first run"
        assert left[-1] == "00:00", "the study has come to its end"

    @pytest.mark.parametrize("seconds", [1800, None])
    def test_the_seconds_of_the_sampler(self, seconds: float | None) -> None:
        """Nothing is known of an open search without them."""
        study, terminal = studies.new_study(), Terminal()
        base = optuna.samplers.RandomSampler(seed=0)
        study.sampler = DataAllocationSampler(base, seconds=seconds)
        study.pruner = DAUBPruner(sizes=studies.SIZES)

        def stop(study: optuna.Study, trial: object) -> None:
            if len(study.trials) == 3:
                study.stop()

        with redirect_stderr(terminal):
            study.optimize(studies.Table(RIVALS), callbacks=[ProgressBar(every=0), stop])
        left = self.left(terminal)
        assert any("29:40" <= each <= "30:00" for each in left) if seconds else left[0] == "?"

    @pytest.mark.parametrize("n_jobs", [1, 2, 4])
    def test_trials_are_counted_across_threads(
        self, n_jobs: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        counts: list[tuple[int | None, int | None, bool]] = []

        def count(study: optuna.Study, trial: object) -> None:
            counts.append((host.trials_ended(), host.trials_left(), host.is_ending(study)))

        class Slow(studies.Table):
            def __call__(self, trial: optuna.Trial) -> float:
                time.sleep(0.1 + 0.13 * (trial.number % n_jobs))  # few end at once
                return super().__call__(trial)

        known = {f"{i}": (0.5, 0.6, 0.7, 0.8) for i in range(9)}
        study = studies.new_study(known)
        study.optimize(Slow(known), n_trials=8, n_jobs=n_jobs, callbacks=[count, ProgressBar()])
        assert len(counts) == 8
        assert all(ended + left == 8 for ended, left, _ in counts)
        assert [is_ending for *_, is_ending in counts][-1]
        assert not any(is_ending for *_, is_ending in counts[:-n_jobs])
        (last,) = capsys.readouterr().err.splitlines()
        assert last.endswith("<00:00"), "it has ended with the last trial"

    def test_a_bar_ends_with_the_last_trial(self) -> None:
        terminal = run(ProgressBar(every=3600), n_trials=2)
        assert terminal.getvalue().count("\n") == 1
        assert self.left(terminal)[-1] == "00:00"


@pytest.mark.parametrize("is_live", [True, False])
def test_a_finished_study_says_so(is_live: bool, capsys: pytest.CaptureFixture[str]) -> None:
    study, terminal, progress = studies.finished(), Terminal(), ProgressBar()
    said = "finished, nothing is left to train: 2 ash at 800: 0.8750, gap -0.1250"
    if is_live:
        with redirect_stderr(terminal):
            study.optimize(studies.Table(RIVALS), callbacks=[progress])
        assert terminal.lines[-1].startswith(said)
    else:
        study.optimize(studies.Table(RIVALS), callbacks=[progress])
        assert capsys.readouterr().err.startswith(said)


def test_in_a_notebook_it_is_a_bar_of_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class tqdm_notebook(_progress.tqdm):  # type: ignore[misc]
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(file=io.StringIO(), **kwargs)
            made.append(self)

    monkeypatch.setattr(_progress, "tqdm", tqdm_notebook)
    study = studies.new_study()
    study.optimize(studies.Table(RIVALS), callbacks=[ProgressBar(every=0)])
    (bar,) = made
    assert "3,700 examples" in bar.fp.getvalue(), "though stderr of a notebook is no terminal"
    assert bar.desc == "2 ash at 800: 0.8750, gap -0.1250"
    assert bar.n == bar.total == 1.0, "a widget keeps its first total"


def test_it_is_updated_once_in_a_while_and_at_the_end() -> None:
    said = {line.partition(" |")[0]: None for line in run(ProgressBar(every=3600)).lines}
    assert list(said) == ["0 oak at 400: 0.6875", "2 ash at 800: 0.8750, gap -0.1250"]


def test_threads_share_a_bar() -> None:
    terminal = run(ProgressBar(every=0), n_jobs=4)
    assert terminal.getvalue().count("\n") == 1


def test_a_thread_that_waits_while_another_ends_the_study_makes_no_new_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress, study, terminal = ProgressBar(every=0), studies.new_study(), Terminal()
    late = []

    def from_another_thread(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if host.is_ending(study):
            answers = iter([False, True])  # before the bar is free, and after
            with monkeypatch.context() as patch:
                patch.setattr(_progress.host, "is_ending", lambda study: next(answers))
                progress(study, trial)
            progress(study, trial)  # and a third one, after both
            late.append(trial)

    with redirect_stderr(terminal):
        study.optimize(studies.Table(RIVALS), callbacks=[progress, from_another_thread])
    assert late
    assert terminal.getvalue().count("\n") == 1


def test_it_can_be_used_again() -> None:
    progress = ProgressBar(every=0)
    assert [run(progress).getvalue().count("\n") for _ in range(2)] == [1, 1]


def test_after_an_error_it_begins_anew() -> None:
    def failing(trial: optuna.Trial) -> float:
        if trial.number == 3:
            raise RuntimeError
        return studies.Table(RIVALS)(trial)

    progress, study = ProgressBar(every=0), studies.new_study()
    with redirect_stderr(Terminal()), pytest.raises(RuntimeError):
        study.optimize(failing, callbacks=[progress])
    first = progress._begun
    with redirect_stderr(Terminal()):
        study.optimize(studies.Table(RIVALS), callbacks=[progress])
    assert progress._begun > first


def test_what_is_still_to_come_is_the_rest_of_the_leaders_sizes() -> None:
    best = best_learner(studies.running())
    assert best is not None
    assert (best.size, best.examples) == (400, 800)
    assert examples_left(best, SIZES) == 800
    final = best_learner(studies.finished())
    assert final is not None
    assert examples_left(final, SIZES) == 0


@pytest.mark.parametrize(("make", "sign"), [(studies.finished, 1), (studies.minimized, -1)])
def test_the_gap_is_below_zero_once_none_can_overtake(
    make: Callable[[], optuna.Study], sign: int
) -> None:
    best = best_learner(make())
    assert best is not None
    assert standing(best, sign).endswith("gap -0.1250")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_gap_of_nothing_has_no_sign(direction: str) -> None:
    known = {name: (0.5,) * 4 for name in ("oak", "elm")}
    study = studies.new_study(known, direction=direction)
    best = best_learner(studies.run(study, studies.Table(known, training_score=None)))
    assert best is not None
    assert standing(best, -1 if direction == "minimize" else 1) == "0 oak at 800: 0.5000, gap 0"


def test_tiny_scores_and_gaps_are_not_said_to_be_zero() -> None:
    best = best_learner(studies.finished())
    assert best is not None
    tiny = replace(best, score=8.75e-8, rival_bound=7.5e-8)
    assert standing(tiny, 1) == "2 ash at 800: 8.75e-08, gap -1.25e-08"
    near = replace(best, score=0.99995, rival_bound=0.99994)
    assert re.fullmatch(r"2 ash at 800: 0\.9999500*, gap -1(\.0*)?e-05", standing(near, 1))


def test_one_learner_has_no_rival() -> None:
    best = best_learner(studies.one_learner())
    assert best is not None
    assert standing(best, 1) == "0 oak at 800: 0.7500"


def test_a_study_without_scores_shows_an_empty_bar() -> None:
    study, terminal = studies.begun(), Terminal()
    with redirect_stderr(terminal):
        ProgressBar(every=0)(study, study.get_trials(deepcopy=False)[0])
    assert terminal.lines == []


def test_it_can_be_sent_to_a_worker() -> None:
    assert len(run(pickle.loads(pickle.dumps(ProgressBar(every=0)))).lines) >= 2


def test_between_two_updates_it_costs_next_to_nothing() -> None:
    progress = ProgressBar(every=3600)
    study = studies.running()
    (trial, *_) = study.get_trials(deepcopy=False)
    assert reads_of(study, lambda: progress(study, trial))
    assert reads_of(study, lambda: progress(study, trial)) == []


# Optuna's own progress bar


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_closed_pool_shows_progress(n_jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    study = table_study(5)
    with pytest.warns(UserWarning, match="Progress bar won't be displayed"):
        study.optimize(TableObjective(), show_progress_bar=True, n_jobs=n_jobs)
    n_trials = sum(trial.state.is_finished() for trial in study.trials)
    shown = capsys.readouterr().err.replace("\r", "\n").splitlines()
    assert f" {n_trials}/{n_trials} " in shown[-1]
    assert "Best trial" in shown[-1]
    capsys.readouterr()
    study.optimize(TableObjective(), n_trials=1)
    assert "%|" not in capsys.readouterr().err


@pytest.mark.parametrize("limits", [{"n_trials": 3}, {"timeout": 60}])
def test_a_bar_with_an_end_of_its_own_is_left_to_optuna(
    limits: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    study = table_study(5)
    study.optimize(TableObjective(), show_progress_bar=True, **limits)
    end = "3/3 " if "n_trials" in limits else "01:00"
    assert end in capsys.readouterr().err
