"""The package for OptunaHub is what its registry asks for, and loads as from there."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
from pathlib import Path
from types import ModuleType

import optuna
import pytest

import optuna_daub


REGISTRY = Path(__file__).parents[1] / "examples/optunahub"
NAME = "samplers/data_allocation"
PACKAGE = REGISTRY / NAME


@pytest.fixture
def module() -> ModuleType:
    spec = importlib.util.find_spec("optunahub")
    # The folder of that name is found as a package without an origin where `examples` is searched.
    if spec is None or spec.origin is None:
        message = "optunahub is not installed: pip install optunahub"
        if "OPTUNA_DAUB_REQUIRE_SERVICES" in os.environ:
            pytest.fail(message)
        pytest.skip(message)
    import optunahub

    return optunahub.load_local_module(NAME, registry_root=str(REGISTRY))


def test_its_names_are_those_of_the_package(module: ModuleType) -> None:
    assert {"DataAllocationSampler", "DAUBPruner"} <= {*module.__all__}
    for name in module.__all__:
        assert getattr(module, name) is getattr(optuna_daub, name)


def test_a_study_runs_with_it(module: ModuleType) -> None:
    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0.5, 0.9)
        score = 0.0
        for n in module.training_sizes(trial):
            score = skill - 10 / n
            module.report(trial, n, score)
        return score

    study = optuna.create_study(
        direction="maximize",
        sampler=module.DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=4),
        pruner=module.DAUBPruner(max_resource=20_000, cost="examples"),
    )
    study.optimize(objective)
    best = max(trial.params["skill"] for trial in study.trials if trial.params)
    assert study.best_params == {"skill": best}


@pytest.mark.usefixtures("module")
def test_its_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert "max_depth" in capsys.readouterr().out


def test_it_holds_the_files_of_the_template_and_text_only() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert files == {"LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"}
    for name in files:
        assert "\0" not in (PACKAGE / name).read_text(encoding="utf-8")


def test_its_readme_has_the_front_matter_and_sections_of_the_template() -> None:
    text = (PACKAGE / "README.md").read_text()
    _, front, body = text.split("---\n", maxsplit=2)
    fields = dict(line.split(": ", maxsplit=1) for line in front.splitlines())
    assert [*fields] == [
        "author", "title", "description", "tags", "optuna_versions", "license",
    ]  # fmt: skip
    assert "sampler" in re.findall(r"[\w-]+", fields["tags"])
    assert re.fullmatch(r"\[\d+\.\d+\.\d+(, \d+\.\d+\.\d+)*\]", fields["optuna_versions"])
    assert fields["license"] == "MIT License"
    headings = re.findall(r"^## (.*)$", body, re.MULTILINE)
    assert headings == [
        "Abstract", "Class or Function Names", "Installation", "Example", "Others",
    ]  # fmt: skip
    tag = r"</?(a|br|code|details|div|img|p|picture|source|span|sub|summary|table)\b"
    assert not re.search(tag, body), "the registry takes no HTML"


def test_its_requirement_is_this_version_or_newer() -> None:
    needed = re.fullmatch(r"optuna-daub>=([\d.]+)\n", (PACKAGE / "requirements.txt").read_text())
    assert needed is not None
    assert optuna_daub.__version__.startswith(needed[1])
