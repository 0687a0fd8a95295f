"""The arguments that functions of the user take."""

from __future__ import annotations

import inspect
from typing import Any

from optuna_daub.core.checks import brief


def accepts(function: Any, n_arguments: int, *names: str) -> bool:
    """Return whether a function takes so many arguments by position, and these by name."""
    try:
        inspect.signature(function).bind(*range(n_arguments), **dict.fromkeys(names))
    except TypeError:
        return False
    except ValueError:  # some that are written in C have no signature
        return True
    return True


def takes_size(build: Any) -> bool:
    """Return whether `build` takes the training size after the trial.

    >>> takes_size(lambda trial: ...), takes_size(lambda trial, n: ...)
    (False, True)
    >>> takes_size(lambda trial, depth=3: ...)
    False

    Raises:
        ValueError: if it is not a function, or one that takes neither.
    """
    if not callable(build) or (isinstance(build, type) and hasattr(build, "fit")):
        raise ValueError(
            "`build` must be a function from a trial, or from a trial and a training size, to an "
            f"estimator, but got {brief(build)}. Wrap it: def build(trial): return ..."
        )
    if accepts(build, 1):
        return False
    if accepts(build, 2) or takes_previous(build):
        return True
    raise ValueError(
        "`build` must take a trial, or a trial and a training size, or these and `previous`, but "
        f"got a function of {inspect.signature(build)}. Give every other parameter a default."
    )


def takes_previous(build: Any) -> bool:
    """Return whether `build` also takes `previous`, the learner's last model.

    >>> takes_previous(lambda trial, n, previous: ...), takes_previous(lambda trial, X, y: ...)
    (True, False)
    """
    if accepts(build, 1) or accepts(build, 2) or not accepts(build, 3):
        return False
    return [*inspect.signature(build).parameters][2:3] == ["previous"]
