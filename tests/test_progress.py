"""The progress bar: what it says, when it is quiet, and that it ends with the study."""

from __future__ import annotations

import io
import pickle
import re
import time
from collections.abc import Callable
from contextlib import redirect_stderr

import optuna
import pytest

from optuna_daub.study import best_learner
from optuna_daub.visualization import ProgressBar
from optuna_daub.visualization._progress import projected_examples
from optuna_daub.visualization._progress import standing
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [
            line
            for line in re.split(r"[\r\n]", self.getvalue())
            if "examples" in line and "/?" not in line
        ]


def run(progress: ProgressBar, n_jobs: int = 1) -> Terminal:
    """Return what a study shows on a terminal while it runs."""
    study, terminal = studies.new_study(), Terminal()
    with redirect_stderr(terminal):
        study.optimize(studies.Table(RIVALS), callbacks=[progress], n_jobs=n_jobs)
    return terminal


def test_it_says_who_leads_and_what_was_spent() -> None:
    terminal = run(ProgressBar(every=0))
    last = terminal.lines[-1]
    assert "2 ash at 800: 0.8750, gap -0.1250" in last
    assert "3.70k/3.70k examples" in last
    assert terminal.getvalue().count("\n") == 1, "one line, closed with the study"


def test_it_is_quiet_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    studies.new_study().optimize(studies.Table(RIVALS), callbacks=[ProgressBar(every=0)])
    assert capsys.readouterr() == ("", "")


def test_it_is_updated_once_in_a_while_and_at_the_end() -> None:
    said = {line.partition(" |")[0]: None for line in run(ProgressBar(every=3600)).lines}
    assert list(said) == ["0 oak at 400: 0.6875", "2 ash at 800: 0.8750, gap -0.1250"]


def test_threads_share_a_bar() -> None:
    terminal = run(ProgressBar(every=0), n_jobs=4)
    assert terminal.getvalue().count("\n") == 1


def test_it_can_be_used_again() -> None:
    progress = ProgressBar(every=0)
    assert [run(progress).getvalue().count("\n") for _ in range(2)] == [1, 1]


def test_what_is_still_to_come_is_the_rest_of_the_leaders_sizes() -> None:
    best = best_learner(studies.running())
    assert best is not None
    assert (best.size, best.examples) == (400, 800)
    assert projected_examples(best, SIZES) == 800 + 800
    final = best_learner(studies.finished())
    assert final is not None
    assert projected_examples(final, SIZES) == final.examples


@pytest.mark.parametrize(("make", "sign"), [(studies.finished, 1), (studies.minimized, -1)])
def test_the_gap_is_below_zero_once_none_can_overtake(
    make: Callable[[], optuna.Study], sign: int
) -> None:
    best = best_learner(make())
    assert best is not None
    assert standing(best, sign).endswith("gap -0.1250")


def test_one_learner_has_no_rival() -> None:
    best = best_learner(studies.one_learner())
    assert best is not None
    assert standing(best, 1) == "0 oak at 800: 0.7500"


def test_a_study_without_scores_shows_an_empty_bar() -> None:
    study, terminal = studies.begun(), Terminal()
    with redirect_stderr(terminal):
        ProgressBar(every=0)(study, study.get_trials(deepcopy=False)[0])
    assert "0.00/? examples" in terminal.getvalue()
    assert terminal.lines == []


def test_it_can_be_sent_to_a_worker() -> None:
    assert len(run(pickle.loads(pickle.dumps(ProgressBar(every=0)))).lines) >= 2


def test_every_is_not_negative() -> None:
    with pytest.raises(ValueError, match="`every` must be at least 0 seconds, but got -1"):
        ProgressBar(every=-1)


def test_between_two_updates_it_costs_next_to_nothing() -> None:
    progress = ProgressBar(every=3600)
    study = studies.running()
    (trial, *_) = study.get_trials(deepcopy=False)
    progress(study, trial)
    begun = time.perf_counter()
    for _ in range(1000):
        progress(study, trial)
    assert (time.perf_counter() - begun) / 1000 < 1e-4
