"""Search spaces in scikit-learn's form, turned into Optuna's distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.trial import BaseTrial
from scipy.stats import rv_discrete

from optuna_daub.core.checks import brief
from optuna_daub.objective.description import stable


CHOICE = "param_distributions"
"""Name in the study of the choice among several spaces. No estimator has such a parameter."""

TAIL = 0.001
"""Probability at each end of a quantile range that is never drawn: some distributions have no
largest value."""

_KINDS = (FloatDistribution, IntDistribution, CategoricalDistribution)

_NO_LISTS = (str, bytes, Mapping, set, frozenset, Iterator)
"""Types that are no lists of values. Sets have another order in each process, the first `fit` uses
iterators up, and only the keys of a dict would be searched."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the estimator and the distribution of its values."""

    name: str
    """Name in the estimator's `set_params`."""
    key: str
    """Name in the study."""
    distribution: BaseDistribution
    """Optuna's distribution of the suggested value."""
    value: Callable[[Any], Any] | None = None
    """Function from the suggested value to the estimator's; None if they are the same."""
    meaning: str = ""
    """Description of the values of `value`, the same in each process; empty without one."""

    def suggest(self, trial: BaseTrial) -> Any:
        """Return the parameter's value for a trial."""
        match self.distribution:
            case FloatDistribution(low=low, high=high, step=step, log=log):
                found: Any = trial.suggest_float(self.key, low, high, step=step, log=log)
            case IntDistribution(low=low, high=high, step=step, log=log):
                found = trial.suggest_int(self.key, low, high, step=step, log=log)
            case CategoricalDistribution(choices=choices):
                found = trial.suggest_categorical(self.key, choices)
        return found if self.value is None else self.value(found)

    @property
    def description(self) -> str:
        """Description of the distribution, the same in each process."""
        return ": ".join([repr(self.key), self.meaning or str(self.distribution)])

    @property
    def n_values(self) -> float:
        """Number of values; infinity for continuous ones."""
        match self.distribution:
            case CategoricalDistribution(choices=choices):
                return len(choices)
            case IntDistribution(low=low, high=high, step=step):
                return (high - low) // step + 1
            case FloatDistribution(low=low, high=high, step=float(step)):
                return round((high - low) / step) + 1
            case FloatDistribution(low=low, high=high):
                return 1 if low == high else math.inf
        return math.inf


@dataclass(frozen=True)
class Space:
    """One or more sets of parameters, of which a trial takes one."""

    sets: tuple[tuple[Parameter, ...], ...]

    def __call__(self, trial: BaseTrial) -> dict[str, Any]:
        """Return the estimator's parameters for a trial."""
        chosen = 0
        if len(self.sets) > 1:
            chosen = trial.suggest_categorical(CHOICE, [*range(len(self.sets))])
        return {parameter.name: parameter.suggest(trial) for parameter in self.sets[chosen]}

    @property
    def description(self) -> str:
        """Description of all sets, the same in each process."""
        sets = (", ".join(parameter.description for parameter in some) for some in self.sets)
        return " or ".join(f"{{{some}}}" for some in sets)

    @property
    def n_points(self) -> float:
        """Number of different points; infinity for continuous parameters."""
        return sum(math.prod(parameter.n_values for parameter in some) for some in self.sets)


def checked_space(given: Any) -> Space:
    """Return a dict of distributions or lists, or several dicts, as a space.

    >>> from scipy.stats import loguniform
    >>> space = checked_space({"C": loguniform(0.1, 10), "kernel": ["rbf", "poly"]})
    >>> [parameter.distribution for parameter in space.sets[0]]  # doctest: +NORMALIZE_WHITESPACE
    [FloatDistribution(high=10.0, log=True, low=0.1, step=None),
     CategoricalDistribution(choices=('rbf', 'poly'))]
    >>> space.n_points
    inf

    Raises:
        TypeError: if `given` is neither, or a parameter has neither a distribution nor a list.
        ValueError: if a list of values, or of dicts, is empty.
    """
    dicts = [given] if isinstance(given, Mapping) else given
    if not isinstance(dicts, Sequence) or not all(isinstance(some, Mapping) for some in dicts):
        raise TypeError(
            "`param_distributions` must be a dict from parameter names to distributions or lists "
            f"of values, a list of such dicts, or a function of a trial, but got {brief(given)}."
        )
    if not dicts:
        raise ValueError("`param_distributions` must not be an empty list: give one dict or more.")
    sets = [[_parameter(name, values) for name, values in some.items()] for some in dicts]
    for place, some in enumerate(sets):
        for number, parameter in enumerate(some):
            alike = [p for other in sets for p in other if p.name == parameter.name]
            if any(not _is_same(parameter, other) for other in alike):
                # Optuna wants one distribution for each name.
                some[number] = replace(parameter, key=f"{parameter.name} [{place}]")
    return Space(tuple(map(tuple, sets)))


def checked_function(given: Callable[[BaseTrial], Any]) -> Callable[[BaseTrial], dict[str, Any]]:
    """Return a user's function of a trial. If it returns no dict, a TypeError is raised."""

    def space(trial: BaseTrial) -> dict[str, Any]:
        params = given(trial)
        if not isinstance(params, dict):
            raise TypeError(
                "A function as `param_distributions` must return a dict from names to values of "
                f"the estimator's parameters, but returned {brief(params)}."
            )
        return {**params}  # the function may change and return one dict at each call

    return space


def _parameter(name: object, given: Any) -> Parameter:
    if not isinstance(name, str):
        raise TypeError(
            "`param_distributions` must have names of the estimator's parameters as keys, but "
            f"got {brief(name)}."
        )
    if isinstance(given, _KINDS):
        return Parameter(name, name, given)
    if hasattr(given, "freeze"):  # such as `scipy.stats.uniform`, with its defaults
        given = _frozen(name, given)
    if hasattr(given, "dist") and hasattr(given, "ppf"):
        return _of_scipy(name, given)
    if hasattr(given, "rvs"):
        raise TypeError(
            f"A distribution must have `ppf`, as those of scipy.stats have, but {brief(name)} has "
            f"{brief(given)}, which can only be drawn from. Pass a distribution of Optuna or "
            "scipy, or a list of values."
        )
    if isinstance(given, _NO_LISTS) or not isinstance(given, Iterable):
        raise TypeError(
            f"Each parameter must have a distribution or a list of values, but {brief(name)} has "
            f"{brief(given)}. Pass a list: of one for a single value, `list(d.values())` for a "
            "dict `d`, `list(s)` for a set or an iterator `s`."
        )
    values = list(given)
    if not values:
        raise ValueError(
            f"Each parameter must have at least one value, but {brief(name)} has an empty list."
        )
    choices = [value.item() if isinstance(value, np.generic) else value for value in values]
    if _is_plain(choices):
        return Parameter(name, name, CategoricalDistribution(choices))
    # Optuna stores only names and numbers, so other values are stored by their positions. Their
    # `repr` may be long, equal for two values, or different in each process.
    choices = [f"{type(value).__name__} {place}" for place, value in enumerate(values)]
    by_choice = dict(zip(choices, values, strict=True))
    among = CategoricalDistribution(choices)
    return Parameter(name, name, among, by_choice.__getitem__, stable(values))


def _frozen(name: str, family: Any) -> Any:
    """Return a distribution of scipy with its defaults."""
    try:
        return family.freeze()
    except TypeError as error:
        raise TypeError(
            f"A distribution must have its arguments, as `randint(1, 10)` has, but {brief(name)} "
            f"has `{family.name}` without any: {error}."
        ) from error


def _of_scipy(name: str, frozen: Any) -> Parameter:
    """Return a frozen distribution of scipy as one of Optuna, or as its quantiles."""
    kind, (low, high) = frozen.dist.name, frozen.support()
    if np.ndim(low) or not low <= high:  # NaN for arguments that scipy takes and cannot draw from
        given = [*map(brief, frozen.args), *(f"{k}={brief(v)}" for k, v in frozen.kwds.items())]
        raise ValueError(
            f"A distribution must have values to draw, one at a time, but {brief(name)} has "
            f"`{kind}({', '.join(given)})`, which has none or draws several. Give the smaller end "
            "first; the second number of `uniform` is a width; for arrays pass a list of them."
        )
    _, shift, _ = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
    if kind == "uniform":
        return Parameter(name, name, FloatDistribution(float(low), float(high)))
    if kind in ("loguniform", "reciprocal") and shift == 0:
        return Parameter(name, name, FloatDistribution(float(low), float(high), log=True))
    if hasattr(frozen.dist, "xk"):
        points = _points(frozen)
        if not np.array_equal(points, int(points[0]) + np.arange(len(points))):
            return Parameter(name, name, CategoricalDistribution(points.tolist()))
        low, high = points[0], points[-1]
    elif isinstance(frozen.dist, rv_discrete) and kind != "randint":
        low, high = frozen.ppf([TAIL, 1 - TAIL])
    if isinstance(frozen.dist, rv_discrete) and low == np.rint(low):  # else `loc` is a fraction
        return Parameter(name, name, IntDistribution(int(low), int(high)))

    def value(quantile: float) -> Any:
        return np.asarray(frozen.ppf(quantile)).item()

    quantiles = FloatDistribution(TAIL, 1 - TAIL)
    # Six digits: the last ones depend on the machine.
    some = ", ".join(f"{value(share):.6g}" for share in np.linspace(TAIL, 1 - TAIL, 9))
    meaning = f"{kind} with quantiles {some}"
    return Parameter(name, f"{name} (quantile)", quantiles, value, meaning)


def _points(frozen: Any) -> NDArray[Any]:
    """Return the values, which may be fractions, of an `rv_discrete` that was given them.

    >>> _points(rv_discrete(values=([0, 0.5, 2], [0.2, 0, 0.8]))(loc=1))
    array([1., 3.])
    """
    points = np.unique(frozen.dist.xk[frozen.dist.pk > 0])
    return np.asarray(points + (frozen.support()[0] - frozen.dist.xk.min()))


def _is_plain(values: list[Any]) -> bool:
    """Return whether Optuna can store the values and tell them apart."""
    return all(
        value is None
        or isinstance(value, bool | int | str)
        or (isinstance(value, float) and math.isfinite(value))
        for value in values
    ) and len(set(values)) == len(values)


def _is_same(one: Parameter, other: Parameter) -> bool:
    is_itself = one.value is None and other.value is None
    return one is other or (is_itself and one.distribution == other.distribution)
