"""The names of the lazy root: its table, `__all__` and the imports for type checkers agree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import sklearn

import optuna_daub
import optuna_daub.core
import optuna_daub.sklearn


def typed_imports() -> dict[str, str]:
    """Return what is imported under TYPE_CHECKING in the root: name -> module."""
    tree = ast.parse(Path(optuna_daub.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    assert [ast.unparse(block.test) for block in blocks] == ["TYPE_CHECKING"]
    return {
        alias.asname or alias.name: node.module or ""
        for node in blocks[0].body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_all_and_the_typed_imports_hold_the_same_names_once() -> None:
    assert sorted(optuna_daub.__all__) == sorted(typed_imports())
    assert len(set(optuna_daub.__all__)) == len(optuna_daub.__all__)


@pytest.mark.parametrize("name", optuna_daub.__all__)
def test_every_name_is_what_its_typed_import_says(name: str) -> None:
    module = __import__(typed_imports()[name], fromlist=[name])
    assert getattr(optuna_daub, name) is getattr(module, name)


def test_names_are_listed() -> None:
    assert set(optuna_daub.__all__) <= set(dir(optuna_daub))
    assert "__version__" in dir(optuna_daub)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'optuna_daub' has no attribute 'HyperbandPruner'"):
        optuna_daub.HyperbandPruner  # noqa: B018


def test_the_names_of_the_design_are_there() -> None:
    fixed = {"DAUBPruner", "DataAllocationSampler", "TrainingSizeObjective", "training_sizes",
             "report", "learning_curves", "allocations", "best_learner"}  # fmt: skip
    assert fixed <= set(optuna_daub.__all__)


def test_the_core_exports_each_import_under_its_own_name() -> None:
    tree = ast.parse(Path(optuna_daub.core.__file__).read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name, "mypy re-exports `X as X` only"


def test_the_layer_named_sklearn_hides_nothing() -> None:
    assert optuna_daub.sklearn.__all__ == ["DataAllocationSearchCV"]
    assert optuna_daub.sklearn.DataAllocationSearchCV.__module__ == "optuna_daub.sklearn.search_cv"
    assert optuna_daub.sklearn is not sklearn
    assert issubclass(optuna_daub.sklearn.DataAllocationSearchCV, sklearn.base.BaseEstimator)
