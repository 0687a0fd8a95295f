"""Every inequality is found by its file, so a new one is tested with all others."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from optuna_daub.core import intervals
from optuna_daub.core.intervals.confidence import HalfWidth


_MODULES = {
    each.name: import_module(f"{intervals.__name__}.{each.name}")
    for each in pkgutil.iter_modules(intervals.__path__)
}

INEQUALITIES: dict[str, HalfWidth] = {
    name: module.half_width for name, module in _MODULES.items() if hasattr(module, "half_width")
}
"""By the name of their file: `chernoff`, `hoeffding`, ..."""
