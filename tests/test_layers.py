"""The import rule: core knows numpy at most, learners know core, and neither knows the study.

Each check runs in a fresh interpreter, since this one has loaded everything.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
OURS = "optuna_daub"

STANDARD = frozenset(sys.stdlib_module_names)
OUTER = ("study", "objective", "visualization", "dashboard")


def modules(package: str) -> list[str]:
    """Return the modules of a package of ours, as they are found on disk."""
    paths = sorted((ROOT / OURS / package).rglob("*.py"))
    assert paths, f"{package} holds no modules"
    dotted = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in dotted]


@cache
def loaded_by(*names: str) -> frozenset[str]:
    """Return what a fresh interpreter has loaded after importing `names` one by one."""
    imports = "".join(f"import {name}\n" for name in names)
    code = f"import sys\n{imports}print(*sys.modules)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


def packages(names: frozenset[str]) -> frozenset[str]:
    """Return the packages from outside the standard library that `names` belong to."""
    return frozenset(name.partition(".")[0] for name in names - loaded_by()) - STANDARD


def foreign(names: frozenset[str], layer: str, allowed: set[str]) -> set[str]:
    """Return what breaks the rule: packages not allowed, and our modules of an outer layer."""
    outer = {f"{OURS}.{package}" for package in OUTER}
    ours = {name for name in names if ".".join(name.split(".")[:2]) in outer}
    if layer == "core":
        ours |= {name for name in names if name.startswith(f"{OURS}.learners")}
    return set(packages(names) - allowed - {OURS}) | ours


@pytest.mark.parametrize("module", modules("core"))
def test_each_module_of_the_core_loads_the_standard_library_and_numpy(module: str) -> None:
    assert foreign(loaded_by(module), "core", {"numpy"}) == set()


def test_the_learners_load_neither_optuna_nor_the_study() -> None:
    loaded = loaded_by(*modules("learners"))
    assert "sklearn" in loaded
    assert "optuna" not in loaded
    assert not {name for name in foreign(loaded, "learners", set()) if name.startswith(OURS)}


def test_the_study_loads_no_objective() -> None:
    loaded = loaded_by(*modules("study"))
    assert not {name for name in loaded if name.startswith(f"{OURS}.objective")}


def test_the_objective_loads_neither_learners_nor_pictures() -> None:
    loaded = loaded_by(*modules("objective"))
    outer = tuple(f"{OURS}.{layer}" for layer in ("learners", "visualization", "dashboard"))
    assert f"{OURS}.study" in loaded
    assert not {name for name in loaded if name.startswith(outer)}


def test_the_root_loads_nothing_by_itself() -> None:
    assert {name for name in loaded_by(OURS) if name.startswith(OURS)} == {OURS}
    assert packages(loaded_by(OURS)) == {OURS}


class TestTheCheckCanFail:
    def test_it_finds_optuna_and_the_study(self) -> None:
        found = foreign(loaded_by("optuna_daub.study"), "core", {"numpy"})
        assert {"optuna", "optuna_daub.study"} <= found

    def test_it_finds_what_a_module_of_the_core_would_drag_in(self) -> None:
        found = foreign(loaded_by("optuna_daub.core", "sklearn"), "core", {"numpy"})
        assert {"sklearn", "scipy"} <= found

    def test_it_finds_the_learners_below_the_core(self) -> None:
        found = foreign(loaded_by("optuna_daub.learners"), "core", {"numpy"})
        assert "optuna_daub.learners" in found

    def test_it_looks_at_every_module(self) -> None:
        found = modules("core")
        assert "optuna_daub.core" in found
        assert "optuna_daub.core.policies.daub" in found

    def test_it_finds_the_objective(self) -> None:
        found = foreign(loaded_by("optuna_daub.objective"), "core", {"numpy"})
        assert {"optuna", "optuna_daub.study", "optuna_daub.objective"} <= found
