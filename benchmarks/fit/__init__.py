"""Fits of the forecasts that the package ships."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.search_space import Parameter
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words


STATED = (0.5, 0.8, 0.9, 0.95)
"""Probabilities of the intervals around the median that are judged."""
NEAR = 0.02
"""Largest distance from the best at which a learner is a contender, in units of the score."""


def space_of(parameters: Sequence[Parameter]) -> Space:
    """Return the space that a problem searches."""
    found: dict[str, Range | Words] = {
        one.name: Words(one.choices)
        if one.choices
        else Range(one.low, one.high, one.is_log, is_whole=one.is_int)
        for one in parameters
    }
    return Space(tuple(sorted(found.items())))
