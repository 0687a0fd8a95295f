"""The import rules: arrows between layers run one way, and core knows numpy and scipy at most.

Which layer imports which is read from the sources; what is loaded by that is seen in a fresh
interpreter, since this one has loaded everything.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
OURS = "optuna_daub"

STANDARD = frozenset(sys.stdlib_module_names)
BELOW = {
    "core": set[str](),
    "learners": {"core"},
    "study": {"core"},
    "objective": {"core", "study"},
    "visualization": {"core", "study"},
    "dashboard": {"core", "study", "visualization"},
    "sklearn": {"core", "study", "objective"},
    "spaces": {"core"},
    "tabular": {"core", "study", "objective", "visualization", "spaces"},
    "lightgbm": {"core", "study", "objective", "visualization", "spaces", "tabular"},
}
"""The layers that each may import from, besides itself; the root imports from all of them."""

OUTER = ("study", "objective", "visualization", "dashboard", "sklearn", "spaces", "tabular")


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


EACH = """
import os, sys
import scipy.linalg, scipy.optimize, scipy.special
for name in sys.argv[1:]:
    if not os.fork():
        __import__(name)
        print(name, *sys.modules, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@cache
def loaded_by_each(*names: str) -> dict[str, frozenset[str]]:
    """Return what each module loads in an interpreter that has loaded what the core may load.

    The interpreter is fresh, and a copy of it imports one module only.
    """
    run = [sys.executable, "-c", EACH, *names]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: frozenset(loaded) for name, *loaded in lines}


def packages(names: frozenset[str]) -> frozenset[str]:
    """Return the packages from outside the standard library that `names` belong to."""
    return frozenset(name.partition(".")[0] for name in names - loaded_by()) - STANDARD


def numpy_and_scipy() -> set[str]:
    """Return the two packages that the core may load, with what they load themselves."""
    return set(packages(loaded_by("scipy.linalg", "scipy.optimize", "scipy.special")))


def foreign(names: frozenset[str], layer: str, allowed: set[str]) -> set[str]:
    """Return what breaks the rule: packages not allowed, and our modules of an outer layer."""
    outer = {f"{OURS}.{package}" for package in OUTER}
    ours = {name for name in names if ".".join(name.split(".")[:2]) in outer}
    if layer == "core":
        ours |= {name for name in names if name.startswith(f"{OURS}.learners")}
    return set(packages(names) - allowed - {OURS}) | ours


@pytest.mark.parametrize("module", modules("core"))
def test_each_module_of_the_core_loads_the_standard_library_numpy_and_scipy(module: str) -> None:
    loaded = loaded_by_each(*modules("core"))[module]
    assert module in loaded
    assert foreign(loaded, "core", numpy_and_scipy()) == set()


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


def test_the_search_loads_neither_learners_nor_pictures() -> None:
    loaded = loaded_by(*modules("sklearn"))
    outer = tuple(f"{OURS}.{layer}" for layer in ("learners", "visualization", "dashboard"))
    assert {"sklearn", f"{OURS}.sklearn", f"{OURS}.objective"} <= loaded
    assert not {name for name in loaded if name.startswith(outer)}


def test_the_objective_loads_no_search() -> None:
    loaded = loaded_by(*modules("objective")) | loaded_by(*modules("study"))
    assert "sklearn" in loaded
    assert not {name for name in loaded if name.startswith(f"{OURS}.sklearn")}


def test_the_root_loads_nothing_by_itself() -> None:
    assert {name for name in loaded_by(OURS) if name.startswith(OURS)} == {OURS}
    assert packages(loaded_by(OURS)) == {OURS}


def arrows(source: str) -> Iterator[str]:
    """Yield the layers of ours that a module imports from, also within functions and for types.

    The root is a layer that none may import: behind its lazy names is everything.
    """
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == OURS:
                layer = rest.partition(".")[0]
                yield layer if layer in BELOW else "the root"


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT / OURS).with_suffix("").parts[0]


SOURCES = [
    path
    for path in sorted((ROOT / OURS).rglob("*.py"))
    if layer_of(path) not in {"__init__", "__main__"}  # which use what users use
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_between_layers_run_one_way(path: Path) -> None:
    layer = layer_of(path)
    assert layer in BELOW, f"{layer} is a new layer: say what is below it"
    assert set(arrows(path.read_text())) <= BELOW[layer] | {layer}


def test_no_layer_is_below_itself() -> None:
    for layer, below in BELOW.items():
        assert layer not in below
        for lower in below:
            assert BELOW[lower] <= below, f"{layer} reaches around {lower}"


class TestTheCheckCanFail:
    @pytest.mark.parametrize(
        ("source", "layers"),
        [
            ("from optuna_daub.study.known import Known", {"study"}),
            ("import optuna_daub.visualization", {"visualization"}),
            ("from optuna_daub import study", {"study"}),
            ("from optuna_daub import DAUBPruner", {"the root"}),
            ("import optuna_daub", {"the root"}),
            ("if TYPE_CHECKING:\n    from optuna_daub.objective.data import Data", {"objective"}),
            ("def f():\n    from optuna_daub.dashboard import publish", {"dashboard"}),
            ("import optuna\nfrom optuna.study import Study", set()),
        ],
    )
    def test_it_sees_every_way_to_import(self, source: str, layers: set[str]) -> None:
        assert set(arrows(source)) == layers

    def test_it_looks_at_every_layer_that_there_is(self) -> None:
        assert {"core", "learners", "study", "visualization", "dashboard", "sklearn"} <= {
            layer_of(path) for path in SOURCES
        }

    def test_it_finds_arrows_in_each_of_them(self) -> None:
        for layer in ("learners", *(layer for layer in OUTER if BELOW[layer])):
            found = [p for p in SOURCES if layer_of(p) == layer]
            assert {a for p in found for a in arrows(p.read_text())} - {layer}

    def test_it_finds_optuna_and_the_study(self) -> None:
        found = foreign(loaded_by(*modules("study")), "core", numpy_and_scipy())
        assert {"optuna", "optuna_daub.study"} <= found

    def test_it_finds_what_one_module_of_several_loads(self) -> None:
        core = "optuna_daub.core.curve", "optuna_daub.core.sizes"
        found = loaded_by_each(core[0], "sklearn", core[1])
        assert "sklearn" in foreign(found["sklearn"], "core", numpy_and_scipy())
        assert not any(foreign(found[name], "core", numpy_and_scipy()) for name in core)

    def test_it_finds_what_a_module_of_the_core_would_drag_in(self) -> None:
        found = foreign(loaded_by("optuna_daub.core", "sklearn"), "core", numpy_and_scipy())
        assert "sklearn" in found

    def test_it_finds_the_learners_below_the_core(self) -> None:
        found = foreign(loaded_by(*modules("learners")), "core", numpy_and_scipy())
        assert "optuna_daub.learners" in found

    def test_it_looks_at_every_module(self) -> None:
        found = modules("core")
        assert "optuna_daub.core" in found
        assert "optuna_daub.core.policies.daub" in found

    def test_it_finds_the_objective(self) -> None:
        found = foreign(loaded_by(*modules("objective")), "core", numpy_and_scipy())
        assert {"optuna", "optuna_daub.study", "optuna_daub.objective"} <= found
