"""Every source file says where its formulas come from, and speaks the words of the field."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "optuna_daub").rglob("*.py"))

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]

WITHOUT_FORMULAS = {"__init__.py", "interval.py", "forecast.py"}
FORMULAS = [
    path
    for folder in ("intervals", "forecasts", "policies")
    for path in sorted((ROOT / "optuna_daub/core" / folder).glob("*.py"))
    if path.name not in WITHOUT_FORMULAS
]

WORDS_THAT_GO = re.compile(
    r"\b(prospects?|deals?|dealt|dealing|ledger|naps?|wishes|spoken|verdict|purse|noun|rungs?"
    r"|ladders?)\b",
    re.IGNORECASE,
)
"""Words of our own where the field has one (`docs/architecture.md` has the words)."""

PERSONS = re.compile(r"\b(who|nobody|everybody|everyone|somebody|someone)\b", re.IGNORECASE)
"""A learner is no person; workers and users have these names."""

QUESTIONS = re.compile(r'\A"""(What|How|Which|Where|Who|When)\b')
"""A module text names the thing; it does not ask for it."""


def missing_citations(source: str) -> list[str]:
    """Return what a file with formulas lacks."""
    header = ast.get_docstring(ast.parse(source), clean=False) or ""
    body = source.replace(header, "", 1)
    references = re.split(r"^(?=\[\d+\] )", header, flags=re.MULTILINE)[1:]
    linked = [text.partition(" ")[0] for text in references if re.search(r"https?://\S", text)]
    if not linked:
        return ["a numbered reference with a link"]
    return [] if any(tag in body for tag in linked) else [f"a {linked[0]} at a formula"]


@pytest.mark.parametrize("path", FORMULAS, ids=lambda path: path.name)
def test_formulas_say_where_they_come_from(path: Path) -> None:
    assert missing_citations(path.read_text()) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_use_the_words_of_the_field(path: Path) -> None:
    text = path.read_text()
    assert not WORDS_THAT_GO.findall(text)
    assert not QUESTIONS.match(text)
    assert not PERSONS.findall(text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    assert not WORDS_THAT_GO.findall(path.read_text())


def test_the_files_are_found() -> None:
    assert {"README.md", "architecture.md", "start.md", "quickstart.py"} <= {p.name for p in PAGES}
    assert {"projection.py", "daub.py", "joint.py"} <= {path.name for path in FORMULAS}
    assert {path.name for path in SOURCES} >= WITHOUT_FORMULAS


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ('"""A bound."""\nx = 1  # [1] Eq. (2)\n', ["a numbered reference with a link"]),
        ('"""A.\n\n[1] Who.\n"""\nx = 1  # [1]\n', ["a numbered reference with a link"]),
        ('"""A.\n\n[1] W. https://a.b\n"""\nx = 1\n', ["a [1] at a formula"]),
        ('"""A [1].\n\n[1] W. https://a.b\n"""\nx = 1  # [3]\n', ["a [1] at a formula"]),
        ('"""A.\n\n[1] W. https://a.b\n"""\nx = 1  # [1] Eq. (2)\n', []),
    ],
)
def test_the_check_of_citations_can_fail(source: str, lacks: list[str]) -> None:
    assert missing_citations(source) == lacks


def test_the_check_of_words_can_fail() -> None:
    assert WORDS_THAT_GO.findall("It was dealt its prospect.") == ["dealt", "prospect"]
    assert QUESTIONS.match('"""What a policy answers."""')
    assert not QUESTIONS.match('"""Decisions: which learner goes on."""')
    assert PERSONS.findall("Nobody says whose turn it is, or who has it.") == ["Nobody", "who"]
