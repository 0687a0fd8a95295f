"""Imports of optional packages when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def imported(module: str, extra: str) -> Any:
    """Return a module of an optional package.

    Raises:
        ImportError: if the package is not installed, with the line that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        raise ImportError(
            f"This needs {package}, which cannot be imported ({error}): "
            f"pip install 'optuna-daub[{extra}]'"
        ) from error
