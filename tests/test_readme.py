"""The Python of the README runs: all its blocks in one go, each in the names of those above it."""

from __future__ import annotations

import re
from pathlib import Path

import optuna
import pytest


README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)


def blocks() -> list[tuple[int, str]]:
    """Return the line and the code of each block that begins with a ```python fence."""
    text = README.read_text()
    return [
        (text.count("\n", 0, match.start("code")), match["code"])
        for match in FENCE.finditer(text)
        if match["language"] == "python"
    ]


def test_no_block_is_missed() -> None:
    text = README.read_text()
    assert text.count("```") % 2 == 0
    assert len(blocks()) == text.count("```python") > 0


def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names: dict[str, object] = {"__name__": "readme"}
    for line, code in blocks():
        # Empty lines before the code make the line numbers of an error those of the README.
        exec(compile("\n" * line + code, str(README), "exec"), names)
