"""`python -m optuna_daub`: it passes here, says what is missing, and fails where the pair does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import metadata
from io import BytesIO
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

import optuna
import pytest

import optuna_daub
from optuna_daub import __main__ as program
from optuna_daub.core import ValuePerSecond
from optuna_daub.study import BestLearner


@pytest.mark.slow
def test_it_passes_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "optuna_daub"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith(f"optuna-daub {optuna_daub.__version__}\n")
    assert f"optuna {metadata.version('optuna')}\n" in done.stdout
    assert "passed" in done.stdout
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_an_extra_that_is_there_shows_its_versions() -> None:
    plotly, matplotlib = metadata.version("plotly"), metadata.version("matplotlib")
    assert program.extra_line("plot") == f"matplotlib {matplotlib}, plotly {plotly}"


def test_an_extra_that_is_absent_shows_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = metadata.version

    def without_plotly(name: str) -> str:
        if name == "plotly":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_plotly)
    line = 'plotly is missing: pip install "optuna-daub[plot]"'
    assert program.extra_line("plot") == line


def test_an_extra_that_is_too_old_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.1")
    line = 'optuna-dashboard 0.1 is not >=0.16: pip install "optuna-daub[dashboard]"'
    assert program.extra_line("dashboard") == line


@pytest.mark.parametrize("extra", program.EXTRAS)
def test_every_extra_needs_something(extra: str) -> None:
    assert list(program.requirements(extra))


def test_a_policy_that_raises_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def decide(*_: object) -> NoReturn:
        raise RuntimeError("no decision")

    monkeypatch.setattr(sys, "argv", ["optuna_daub"])
    monkeypatch.setattr(ValuePerSecond, "decide", decide)
    assert program.main() == 1
    assert "FAILED: RuntimeError: no decision" in capsys.readouterr().out


def test_an_answer_that_has_not_seen_all_the_data_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["optuna_daub"])
    small = partial(_shrunk, program.best_learner)
    monkeypatch.setattr(program, "best_learner", small)
    assert program.main() == 1
    assert "the best learner has seen 100 of 1,347 examples" in capsys.readouterr().out


def _shrunk(
    answer: Callable[[optuna.Study], BestLearner | None], study: optuna.Study
) -> BestLearner:
    best = answer(study)
    assert best is not None
    return replace(best, size=100)


def test_sources_that_were_not_installed_are_tested_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def requires(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(sys, "argv", ["optuna_daub"])
    monkeypatch.setattr(metadata, "requires", requires)
    assert program.main() == 0
    printed = capsys.readouterr().out
    assert "Extras\n  unknown: these are sources that were not installed\n" in printed
    assert "passed" in printed


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--quiet", "unrecognized arguments: --quiet"),
        ("tune", "argument COMMAND: invalid choice: 'tune'"),
    ],
)
def test_an_unknown_argument_or_command_is_refused(
    argument: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["optuna_daub", argument])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert said in capsys.readouterr().err


def test_output_that_nobody_reads_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as output:
        monkeypatch.setattr(sys, "stdout", output)
        program.say("one line")
        program.say("x" * 100_000)
        monkeypatch.setattr(sys, "stdout", None)  # as with `>&-`
        program.say("another line")
        monkeypatch.undo()


def test_a_sign_that_the_output_does_not_have_is_shown_as_a_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(shown, "cp1252"))
    program.say("`Ł` in €")
    assert shown.getvalue().decode("cp1252").splitlines() == ["`\\u0141` in €"], "at once"
    monkeypatch.undo()
