"""The rule of a study, stored in the study, so results need no pruner.

Optuna stores no pruner. The study stores the name of the policy and those of its fields that
differ from their defaults, as JSON. Only names in the table here are ever imported or called.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING
from dataclasses import fields
from dataclasses import is_dataclass
from typing import Any

import optuna

from optuna_daub.core.checks import brief
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.joint import Joint
from optuna_daub.core.forecasts.projection import Projection
from optuna_daub.core.intervals import chernoff
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.daub import DAUB
from optuna_daub.core.policies.halving import SuccessiveHalving
from optuna_daub.core.policies.policy import Policy
from optuna_daub.core.policies.value_per_second import ValuePerSecond
from optuna_daub.core.steps import next_of_grid
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.abc_pruner import HALF_WIDTHS
from optuna_daub.study.abc_pruner import SCHEDULERS
from optuna_daub.study.pruner import AllocationPruner


_MARK = "policy"
"""Name of the mark under which a study stores its rule."""

SETTINGS = "settings"
"""Name of the mark under which it stores its sizes and direction."""

_NAMED: dict[str, Callable[..., Any]] = {
    "ABC": ABC,
    "DAUB": DAUB,
    "Joint": Joint,
    "Process": Process,
    "Projection": Projection,
    "SuccessiveHalving": SuccessiveHalving,
    "ValuePerSecond": ValuePerSecond,
    "chernoff": chernoff.half_width,
    "next_of_grid": next_of_grid,
    **HALF_WIDTHS,
    **SCHEDULERS,
}
"""Policies, forecasters and functions in their fields, by their stored names."""

_NAME, _FIELDS = "name", "fields"


def write_policy(study: optuna.Study, policy: Policy) -> None:
    """Store the rule of a study, if it is new. Of a rule of your own, store only its name."""
    try:
        stored = _described(policy)
    except ValueError:
        stored = {_NAME: type(policy).__name__}
    if log.read_mark(study, _MARK) != stored:
        log.write_mark(study, _MARK, stored)


def settings_of(study: optuna.Study) -> Mapping[str, Any]:
    """Return the sizes and the direction that a study was started with, if any.

    Raises:
        ValueError: if the stored ones are damaged.
    """
    stored = log.read_mark(study, SETTINGS)
    if stored is None:
        return {}
    sizes = stored.get("sizes") if isinstance(stored, Mapping) else None
    if not sizes or not isinstance(sizes, list) or not all(isinstance(n, int) for n in sizes):
        raise ValueError(
            "The stored settings of a study must be a mapping with its training sizes, but study "
            f"'{study.study_name}' has {brief(stored)}. {records.CHANGED}"
        )
    return {**stored}


def policy_of(study: optuna.Study) -> Policy:
    """Return the rule of a study: that of its pruner, or else the stored one.

    A study without a stored rule comes from an old version, which stored only sizes; it gets the
    default rule with these sizes.

    Raises:
        ValueError: if the pruner is not one of `optuna_daub`, and no rule is stored, or one of the
            user's own.
    """
    if isinstance(study.pruner, AllocationPruner):
        return study.pruner.policy
    stored = log.read_mark(study, _MARK)
    if stored is None and (settings := settings_of(study)):
        return ValuePerSecond(tuple(settings["sizes"]))
    whose = "it stores none, as `DataAllocationSampler` has not run any trial of it"
    if stored is not None:
        is_named = isinstance(stored, Mapping) and _NAME in stored
        name = stored[_NAME] if is_named else brief(stored)
        whose = f"its rule, {name}, is not one that is stored"
        if is_named and _FIELDS in stored:
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # changed by hand, too
                policy = _rebuilt(stored)
                if isinstance(policy, Policy):
                    return policy
            whose = f"its rule, {name}, is of another version of optuna_daub"
    raise ValueError(
        f"The results of a study depend on its rule, but {whose}: load it with "
        "`optuna.load_study(..., pruner=DAUBPruner(...))`, with the pruner and the sizes it was "
        f"started with, in place of {type(study.pruner).__name__}."
    )


def _described(value: Any) -> Any:
    """Return a value of a policy in a form that JSON can store.

    >>> _described(ValuePerSecond((500, 1000, 2000), cost="examples"))["fields"]
    {'sizes': [500, 1000, 2000], 'cost': 'examples'}

    Raises:
        ValueError: if it is a function, or of a class, without a stored name.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) is tuple:  # a NamedTuple would come back without its names
        return [_described(part) for part in value]
    is_value = is_dataclass(value)
    which = type(value) if is_value else value
    names = [name for name, known in _NAMED.items() if known is which]
    if not names:
        raise ValueError(f"`value` must have a stored name, but got {brief(value)}.")
    found: dict[str, Any] = {_NAME: names[0]}
    if is_value:
        found[_FIELDS] = {
            field.name: _described(getattr(value, field.name))
            for field in fields(value)
            if field.init and getattr(value, field.name) != _default(field)
        }
    return found


def _rebuilt(stored: Any) -> Any:
    """Return the value that `_described` turned into a stored form."""
    if isinstance(stored, list):
        return tuple(_rebuilt(part) for part in stored)
    if not isinstance(stored, Mapping):
        return stored
    known = _NAMED[stored[_NAME]]
    if _FIELDS not in stored:
        return known
    return known(**{name: _rebuilt(part) for name, part in stored[_FIELDS].items()})


def _default(field: Any) -> Any:
    """Return the default of a field; `MISSING` without one."""
    return field.default if field.default_factory is MISSING else field.default_factory()
