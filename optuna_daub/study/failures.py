"""Runs that end by an error: what is said of it, and when a learner has failed often enough."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from textwrap import shorten

from optuna_daub.study.keys import Failure


MAX_FAILURES = 2
"""Errors of a learner at one size after which it is dropped."""

WIDTH = 120
"""Characters of an error that are kept."""


def reason_to_drop(failures: Mapping[int, Failure]) -> str:
    """Return why a learner with these failures, by trial, is dropped; empty while it is not.

    >>> failures = {3: Failure(500, "ValueError: bad"), 5: Failure(500, "MemoryError")}
    >>> reason_to_drop(failures)
    'failed 2 times at 500 examples: MemoryError'
    """
    if len(failures) < MAX_FAILURES:
        return ""
    counts = Counter(failure.size for failure in failures.values())
    for size in sorted(size for size, times in counts.items() if times >= MAX_FAILURES):
        last = failures[max(trial for trial in failures if failures[trial].size == size)]
        error = last.error and f": {last.error}"
        return f"failed {MAX_FAILURES} times at {size:,} examples{error}"
    return ""


def error_of_run() -> BaseException | None:
    """Return what ended the run that Optuna is about to store, None where it is not known.

    Optuna tells a sampler that a run failed, but not of what: the error is a local variable of
    the function that runs a trial, some frames above. There is none in ask-and-tell.
    """
    frame = inspect.currentframe()
    while frame is not None:
        error = frame.f_locals.get("func_err")
        if isinstance(error, BaseException):
            return error
        frame = frame.f_back
    return None


def told(error: BaseException | None) -> str:
    """Return the type of an error and the first line of its message; empty for none.

    >>> told(ValueError("Input contains NaN.\\nSee the manual.")), told(MemoryError())
    ('ValueError: Input contains NaN.', 'MemoryError')
    """
    if error is None:
        return ""
    message = str(error).partition("\n")[0]
    return shorten(f"{type(error).__name__}: {message}".rstrip(": "), WIDTH, placeholder="...")
