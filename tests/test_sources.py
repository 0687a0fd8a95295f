"""Source files say where their formulas come from, in plain words."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "optuna_daub"

WITHOUT_FORMULAS = {
    "__init__.py", "interval.py", "forecast.py", "policy.py",
    "by_process.py", "given_pool.py",  # they stand in `process.py`
    "value_per_second.py",  # they stand in `core/prices.py`
}  # fmt: skip
FORMULAS = [
    path
    for folder in ("intervals", "forecasts", "policies")
    for path in sorted((PACKAGE / "core" / folder).glob("*.py"))
    if path.name not in WITHOUT_FORMULAS
]

PLAIN = [
    path.name
    for path in sorted(PACKAGE.iterdir())
    if path.suffix == ".py" or (path / "__init__.py").is_file()
]
"""Folders and files of the package, which are all held to the checks of words below;
`python -m tests.test_sources NAME` prints the rates of one."""

BESIDE = ["tests", "benchmarks", "examples"]
"""Folders beside the package that are held to the same checks."""

PAGES = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("benchmarks/**/*.md")),
    *sorted(ROOT.glob("*.md")),
]
"""Pages for readers, whose texts are held to the same rates together."""

QUESTION = re.compile(r"(What|How|Which|Whether|Of|Its)\b")
"""Openings that no docstring has: it names the thing instead of asking for it."""

MAX_RATES = {
    r"where": 4.2,
    r"so that": 1.2,
    r"beg[aiu]n(s|ning)?": 1.0,
    r"but for": 0.0,
    r"dear(er|est)?": 0.0,
}
"""Largest count of each expression in 1,000 words of docstrings and comments: twice the largest
rate of the packages that were read as models (Optuna, optax, BayBE, trio, cmaes, optimistix)."""


def missing_citations(source: str) -> list[str]:
    """Return what a file with formulas lacks."""
    header = ast.get_docstring(ast.parse(source), clean=False) or ""
    body = source.replace(header, "", 1)
    references = re.split(r"^(?=\[\d+\] )", header, flags=re.MULTILINE)[1:]
    linked = [text.partition(" ")[0] for text in references if re.search(r"https?://\S", text)]
    if not linked:
        return ["a numbered reference with a link"]
    return [] if any(tag in body for tag in linked) else [f"a {linked[0]} at a formula"]


@cache
def docstrings(source: str) -> list[str]:
    """Return the texts that stand alone as statements: of modules, classes, functions, values."""
    return [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def comments(source: str) -> Iterator[str]:
    """Yield the comments, without their sign."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def questions(source: str) -> list[str]:
    """Return the openings of docstrings that ask instead of naming."""
    return [text.strip()[:50] for text in docstrings(source) if QUESTION.match(text.strip())]


def counts(sources: list[str]) -> tuple[int, dict[str, int]]:
    """Return the number of words in docstrings and comments, and the count of each expression."""
    return counts_of([text for each in sources for text in (*docstrings(each), *comments(each))])


def counts_of(texts: list[str]) -> tuple[int, dict[str, int]]:
    """Return the number of words in texts, and the count of each expression."""
    text = " ".join(" ".join(texts).split())
    found = {
        expression: len(re.findall(rf"\b{expression}\b", text, re.IGNORECASE))
        for expression in MAX_RATES
    }
    return len(re.findall(r"[A-Za-z]+", text)), found


def too_often(sources: list[str]) -> dict[str, float]:
    """Return the expressions that stand too often in docstrings and comments, with their rates.

    One of each is always free, since a rate of a short text says nothing.
    """
    return above(*counts(sources))


def above(n_words: int, found: dict[str, int]) -> dict[str, float]:
    """Return the expressions whose counts are above their largest rates."""
    rates = {expression: 1000 * count / max(n_words, 1) for expression, count in found.items()}
    return {
        expression: round(rate, 2)
        for expression, rate in rates.items()
        if found[expression] > (MAX_RATES[expression] > 0) and rate > MAX_RATES[expression]
    }


def files_of(name: str) -> list[Path]:
    """Return the source files of a folder or a file of the package, or of a folder beside it."""
    path = (ROOT if name in BESIDE else PACKAGE) / name
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


@pytest.mark.parametrize("path", FORMULAS, ids=lambda path: path.name)
def test_formulas_say_where_they_come_from(path: Path) -> None:
    assert missing_citations(path.read_text()) == []


@pytest.mark.parametrize("name", PLAIN + BESIDE)
def test_docstrings_name_things_and_texts_are_in_plain_words(name: str) -> None:
    sources = {path: path.read_text() for path in files_of(name)}
    asked = {str(path): questions(source) for path, source in sources.items()}
    assert {path: openings for path, openings in asked.items() if openings} == {}
    assert too_often([*sources.values()]) == {}


def test_pages_are_in_plain_words() -> None:
    texts = [re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL) for path in PAGES]
    n_words, found = counts_of(texts)
    assert n_words > 10_000
    assert above(n_words, found) == {}


def test_the_files_are_found() -> None:
    assert {"projection.py", "daub.py", "joint.py"} <= {path.name for path in FORMULAS}
    assert {path.name for path in PACKAGE.rglob("*.py")} >= WITHOUT_FORMULAS
    assert all(path.is_file() for name in PLAIN + BESIDE for path in files_of(name))
    assert all(map(files_of, PLAIN + BESIDE))


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


def test_the_checks_of_words_can_fail() -> None:
    source = '"""Bounds."""\nx = 1\n"""Which learner leads."""\n# It was begun.\n'
    assert questions(source) == ["Which learner leads."]
    assert questions('"""Whichever comes first."""') == []
    assert too_often([source]) == {}
    often = too_often([source, "x = 2  # Begin here, where it is dear"])
    assert often.keys() == {r"beg[aiu]n(s|ning)?", r"dear(er|est)?"}
    assert too_often(['x = "where dear where begun where"']) == {}, "a value is no text"


def whole_values(source: str) -> list[int]:
    """Return the lines in which a message shows a value whole, however long it is."""
    nodes = [*ast.walk(ast.parse(source))]
    shown = [n.lineno for n in nodes if isinstance(n, ast.FormattedValue) and n.conversion == 114]
    raised = [part for n in nodes if isinstance(n, ast.Raise) for part in ast.walk(n)]
    return shown + [
        n.lineno
        for n in raised
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "repr"
    ]


def test_messages_cut_values_that_are_long() -> None:
    """A value of the user may have a million characters, or a `repr` that fails: see `brief`."""
    files = [p for p in sorted(PACKAGE.rglob("*.py")) if p != PACKAGE / "__init__.py"]
    found = {str(p.relative_to(PACKAGE)): whole_values(p.read_text()) for p in files}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert whole_values("raise ValueError(f'but got {x!r}')") == [1]
    assert whole_values("raise ValueError('but got ' + repr(x))") == [1]


OF_A_TEST = re.compile(r"from tests[.\w]* import test_|(from|import) tests[.\w]*\.test_")
"""Imports from a module of tests, in a program within a text as well."""


def test_no_module_imports_from_a_module_of_tests() -> None:
    """A helper of several modules stands in one of its own, which is no test."""
    found = {str(path): OF_A_TEST.findall(path.read_text()) for path in files_of("tests")}
    assert {path: imports for path, imports in found.items() if imports} == {}


@pytest.mark.parametrize("source", ["from tests.{}a import b", "from tests import {}a as b"])
def test_the_check_of_imports_can_fail(source: str) -> None:
    assert OF_A_TEST.search(source.format("test_"))
    assert not OF_A_TEST.search(source.format(""))


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:] or sorted(path.name for path in PACKAGE.iterdir()):
        sources = {path: path.read_text() for path in files_of(name)}
        for path, source in sources.items():
            for text in questions(source):
                print(f"{path.relative_to(ROOT)}: opens with {text!r}")
        n_words, found = counts([*sources.values()])
        often = too_often([*sources.values()])
        for expression, count in found.items():
            rate = f"{1000 * count / max(n_words, 1):.2f} in 1,000 words"
            mark = "TOO OFTEN, " if expression in often else ""
            print(f"{name}: {expression!r} {rate} ({mark}at most {MAX_RATES[expression]})")
