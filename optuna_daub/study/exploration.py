"""Exploration: where the base sampler proposes what is known, one that proposes what is not.

In a space of a few points a sampler that learns, or draws at random, soon repeats itself, and
some points it would never come to.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution
from optuna.samplers import BruteForceSampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study.state import State


MOST_VALUES = 1000
"""Of one parameter: in larger spaces a repeat is chance, and listing all points takes long."""


def is_finite(state: State) -> bool:
    """Return whether all parameters that learners have had so far take a few values only."""
    with state.lock:
        spaces = [learner.distributions for learner in state.learners.values()]
    return all(
        _n_values(distribution) <= MOST_VALUES
        for distribution in {name: d for space in spaces for name, d in space.items()}.values()
    )


def unexplored_value(
    study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
) -> Any:
    """Return the value of a parameter with which a trial comes to something new.

    None where that is not known: the parameter takes any value, or the space is another each time.

    Args:
        study: as base samplers see it.
        trial: the newcomer, with the parameters that it has so far.
        name: of the parameter.
        distribution: of the parameter.
    """
    if _n_values(distribution) > MOST_VALUES:
        return None
    with suppress(ValueError):
        return _sampler(trial).sample_independent(study, trial, name, distribution)
    return None


def note_end(study: optuna.Study, trial: FrozenTrial, state: TrialState) -> None:
    """Stop `study`, one as base samplers see it, where `trial` was the last point of its space."""
    with suppress(ValueError):  # a space that is another each time has no end
        _sampler(trial).after_trial(study, trial, state, None)


def _sampler(trial: FrozenTrial) -> BruteForceSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return BruteForceSampler(seed=trial.number)


def _n_values(distribution: BaseDistribution) -> float:
    match distribution:
        case CategoricalDistribution():
            return len(distribution.choices)
        case IntDistribution():
            return (distribution.high - distribution.low) // distribution.step + 1
        case FloatDistribution(step=float(step)):
            return (distribution.high - distribution.low) / step + 1
        case _:
            return float("inf")
