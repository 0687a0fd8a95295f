"""The import rules: arrows between layers run one way, and core knows numpy and scipy at most.

Which layer imports which is read from the sources; what is loaded by that is seen in a fresh
interpreter, since this one has loaded everything.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from collections.abc import Sequence
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


CHAINS = (("root",), ("core",), ("learners",), ("study", "objective", "sklearn"))
"""Layers imported one after the other, each chain from the start and by a copy of a process."""

LOAD = """
import os, sys

def follow(chain):
    if not os.fork():
        for step in chain.split():
            layer, *names = step.split(",")
            for name in names:
                __import__(name)
            print(layer, *sys.modules, sep=",", flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, chain

print("nothing", *sys.modules, sep=",", flush=True)
follow(sys.argv[1])
import scipy.linalg, scipy.optimize, scipy.special
print("numpy and scipy", *sys.modules, sep=",", flush=True)
for chain in sys.argv[2:]:
    follow(chain)
"""


@cache
def _loaded() -> dict[str, frozenset[str]]:
    names = {layer: [OURS] if layer == "root" else modules(layer) for c in CHAINS for layer in c}
    chains = [" ".join(",".join([layer, *names[layer]]) for layer in chain) for chain in CHAINS]
    run = [sys.executable, "-c", LOAD, *chains]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split(",") for line in done.stdout.splitlines()]
    return {layer: frozenset(loaded) for layer, *loaded in lines}


def loaded_by(layer: str) -> frozenset[str]:
    """Return what a fresh interpreter has loaded after all modules of a layer.

    It has the layers before it in its chain and, except the root, what the core may load.
    """
    return _loaded()[layer]


def packages(names: frozenset[str]) -> frozenset[str]:
    """Return the packages from outside the standard library that `names` belong to."""
    return frozenset(name.partition(".")[0] for name in names - loaded_by("nothing")) - STANDARD


def of(package: str, names: frozenset[str]) -> set[str]:
    """Return those of `names` in a package of ours."""
    return {name for name in names if f"{name}.".startswith(f"{OURS}.{package}.")}


def foreign_to_the_core(names: frozenset[str]) -> set[str]:
    """Return what breaks its rule: packages beside NumPy and SciPy, and our other layers."""
    allowed = packages(loaded_by("numpy and scipy")) | {OURS}
    layers = BELOW.keys() - {"core"}
    return set(packages(names) - allowed).union(*(of(layer, names) for layer in layers))


def test_the_core_loads_the_standard_library_numpy_and_scipy() -> None:
    loaded = loaded_by("core")
    assert {*modules("core")} <= loaded
    assert foreign_to_the_core(loaded) == set()


@pytest.mark.parametrize(
    ("layer", "needed", "others"),
    [
        ("learners", {"sklearn"}, OUTER),
        ("study", {"optuna"}, ("objective", "sklearn")),
        (
            "objective",
            {"sklearn", f"{OURS}.study"},
            ("learners", "visualization", "dashboard", "sklearn"),
        ),
        ("sklearn", {"sklearn", f"{OURS}.objective"}, ("learners", "visualization", "dashboard")),
    ],
)
def test_a_layer_loads_no_outer_one(layer: str, needed: set[str], others: Sequence[str]) -> None:
    loaded = loaded_by(layer)
    assert {*modules(layer)} | needed <= loaded
    assert not set[str]().union(*(of(other, loaded) for other in others))


def test_the_learners_load_no_optuna() -> None:
    assert "optuna" not in loaded_by("learners")


def test_the_root_loads_nothing_by_itself() -> None:
    loaded = loaded_by("root")
    assert {name for name in loaded if name.startswith(OURS)} == {OURS}
    assert packages(loaded) == {OURS}


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

    def test_it_finds_what_the_core_would_drag_in(self) -> None:
        assert {"sklearn", f"{OURS}.learners"} <= foreign_to_the_core(loaded_by("learners"))
        found = foreign_to_the_core(loaded_by("objective"))
        assert {"optuna", f"{OURS}.study", f"{OURS}.objective"} <= found

    def test_it_looks_at_every_module(self) -> None:
        assert {f"{OURS}.core", f"{OURS}.core.policies.daub"} <= {*modules("core")}
