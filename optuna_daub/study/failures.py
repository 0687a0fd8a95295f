"""Failures: the sentence on an error, and the rule by which a learner has failed often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping
from textwrap import shorten

from optuna_daub.study.records import Failure


MAX_FAILURES = 2
"""Errors of a learner at one size after which it is dropped."""

MAX_FAILURES_OF_SICK = 4
"""The same where workers failed that never succeeded, while others did: it may be their fault."""

WIDTH = 120
"""Characters of an error that are kept."""


def reason_to_drop(failures: Mapping[int, Failure], well: Collection[str] = ()) -> str:
    """Return why a learner with these failures, by trial, is dropped; empty while it is not.

    Args:
        failures: of the learner, by trial.
        well: the workers that have trained any learner.

    >>> failures = {3: Failure(500, "ValueError: bad"), 5: Failure(500, "MemoryError")}
    >>> reason_to_drop(failures)
    'failed 2 times at 500 examples: MemoryError'
    """
    for failure in failures.values():
        if failure.is_final:
            return failure.error
    if len(failures) < MAX_FAILURES:
        return ""
    counts = Counter(failure.size for failure in failures.values())
    for size in sorted(size for size, times in counts.items() if times >= MAX_FAILURES):
        there = [trial for trial in failures if failures[trial].size == size]
        n_of_sick = sum(bool(well) and failures[i].worker not in ("", *well) for i in there)
        if len(there) - n_of_sick < MAX_FAILURES and len(there) < MAX_FAILURES_OF_SICK:
            continue
        last = failures[max(there)]
        error = last.error and f": {last.error}"
        workers = {failures[trial].worker for trial in there if failures[trial].worker}
        alone = ", only one worker tried" if len(workers) == 1 else ""
        return f"failed {len(there)} times at {size:,} examples{alone}{error}"
    return ""


def message_of(error: BaseException | None) -> str:
    """Return the type of an error and the first line of its message; empty for none.

    >>> message_of(ValueError("Input contains NaN.\\nSee the manual.")), message_of(MemoryError())
    ('ValueError: Input contains NaN.', 'MemoryError')
    """
    if error is None:
        return ""
    try:
        message = str(error).partition("\n")[0]
    except Exception:  # of a class whose own `__str__` fails
        message = "(an error without a message)"
    return shorten(f"{type(error).__name__}: {message}".rstrip(": "), WIDTH, placeholder="...")
