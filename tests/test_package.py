"""Facts about the package agree: version, changelog, citation, links, workflows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optuna_daub
from optuna_daub.core import optional
from optuna_daub.tabular import table as of_tables


ROOT = Path(__file__).parents[1]


def test_the_version_is_written_alike_everywhere() -> None:
    version = optuna_daub.__version__
    newest = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
    assert re.fullmatch(r"unreleased|20\d\d-\d\d-\d\d", newest[2])
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_changelog_has_the_sections_of_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert {*re.findall(r"^### (.*)$", text, re.MULTILINE)} <= {
        "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security",
    }  # fmt: skip
    for version in re.findall(r"^## \[(.+?)\]", text, re.MULTILINE):
        assert f"\n[{version}]: https://" in text


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_what_other_sites_show_has_absolute_links(name: str) -> None:
    """PyPI shows the README, the documentation the changelog: files beside them are not there."""
    text = (ROOT / name).read_text()
    forms = r"\]\(([^)\s]+)", r"^\[[^]]+\]: (\S+)", r'(?:src|srcset|href)="([^"]+)"'
    targets = [found for form in forms for found in re.findall(form, text, re.MULTILINE)]
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_links_into_the_repository_name_files_that_are_there() -> None:
    ours = r"https://(?:github\.com|raw\.githubusercontent\.com)/optuna-daub/optuna-daub/"
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(ours + r"(?:(?:blob|tree)/)?main/([^)\s\"#]+)", path.read_text()):
            assert (ROOT / target).exists(), f"{path.name} links {target}"


def test_the_oldest_python_is_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    workflow = (ROOT / ".github/workflows/tests.yml").read_text()
    oldest = re.findall(r'requires-python = ">=([\d.]+)"', project)
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested is not None
    assert re.findall(r"[\d.]+", tested[1]) == classified
    assert classified[:1] == oldest
    assert f'target-version = "py{oldest[0].replace(".", "")}"' in project


@pytest.mark.parametrize(
    "imported",
    [of_tables.imported, lambda name: optional.imported(name, "plot")],
)
def test_an_optional_package_that_is_broken_says_why(
    imported: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be there, of a version that does not go with another package."""
    (tmp_path / "brokenpackage.py").write_text("from re import nothing_of_this_name")
    monkeypatch.syspath_prepend(tmp_path)
    said = r"brokenpackage, which .*cannot import name 'nothing_of_this_name'.*pip install "
    with pytest.raises(ImportError, match=said):
        imported("brokenpackage")
