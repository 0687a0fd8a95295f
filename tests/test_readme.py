"""The Python of README and documentation runs: a page's blocks in one go, each in the names of
those above it. Notebooks are run by the build of the documentation."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import matplotlib as mpl
import pytest

import optuna_daub
import optuna_daub.sklearn
from optuna_daub import dashboard
from optuna_daub import learners
from optuna_daub import study
from optuna_daub import visualization


ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)
PAGES = ["README.md"] + [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if "```python" in path.read_text()
]
NEEDS = re.compile(r"<!-- needs: (\w+) -->")
"""Marks the blocks below it, down to the next mark: they need a package that tests do without."""
ENOUGH = {"timeout=": 3, "seconds=": 2, "n_candidates=": 4, "make_classification(": 4_000}
"""Seconds, candidates and rows that a page may have here. A study warns unless it comes to a
training on all the rows in its time; `fit` and `tune` train one model in any."""
REFERENCE = "\n".join(path.read_text() for path in (ROOT / "docs/reference").glob("*.rst"))


def blocks(page: str) -> list[tuple[int, str]]:
    """Return the line and the code of each block that starts with a ```python fence."""
    text = (ROOT / page).read_text()
    return [
        (text.count("\n", 0, match.start("code")), match["code"])
        for match in FENCE.finditer(text)
        if match["language"] == "python"
    ]


def test_the_pages_are_found() -> None:
    assert {"docs/start.md", "docs/troubleshooting.md", "docs/jobs/text.md"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_no_block_is_missed(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("```") % 2 == 0
    assert len(blocks(page)) == text.count("```python") > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names: dict[str, object] = {"__name__": "page"}
    lines = (ROOT / page).read_text().splitlines()
    for line, code in blocks(page):
        if needed := NEEDS.findall("\n".join(lines[:line])):
            pytest.importorskip(needed[-1])
        for before, most in ENOUGH.items():
            number = rf"(?<=\b{re.escape(before)})([\d_]+)\b"
            code = re.sub(number, rf"min(\1, {most})", code)
        # Empty lines before the code make the line numbers of an error those of the page.
        exec(compile("\n" * line + code, page, "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md"])
def test_code_fits_into_a_page(page: str) -> None:
    for line, code in blocks(page):
        for number, text in enumerate(code.splitlines(), start=line + 1):
            assert len(text) <= 88, f"{page}:{number} is cut off where it is shown"


@pytest.mark.parametrize("name", optuna_daub.__all__)
def test_the_reference_has_every_name_of_the_root(name: str) -> None:
    assert re.search(rf"^\.\. auto(class|function):: {name}$", REFERENCE, re.M)


@pytest.mark.parametrize("module", [learners, study, visualization, optuna_daub.sklearn])
def test_the_reference_has_the_names_of_the_layers(module: object) -> None:
    names = [name for name, member in vars(module).items() if not name.startswith("_")]
    public = [n for n in names if not inspect.ismodule(getattr(module, n)) and n != "annotations"]
    assert public
    for name in public:
        assert re.search(rf"^\.\. auto(class|function):: {name}(\(\))?$", REFERENCE, re.M), name


def test_the_reference_has_the_dashboard() -> None:
    module = dashboard.__name__
    own = [n for n, o in vars(dashboard).items() if getattr(o, "__module__", "") == module]
    assert "DashboardCallback" in own
    for name in own:
        if not name.startswith("_"):
            assert f":: {module}.{name}\n" in REFERENCE


def test_the_reference_has_the_whole_core() -> None:
    assert ".. automodule:: optuna_daub.core\n   :members:\n   :imported-members:" in REFERENCE
